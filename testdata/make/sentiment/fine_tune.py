"""fine_tune.py start FOLDER: writes the untrained encoder of train.py without a head, and rated film reviews as examples.json; trains the encoder on
them by train.py and prints its accuracy.
fine_tune.py logistic FILE: accuracy of scikit-learn's logistic regression on the vectors of a safetensors file.

fine_tune.mjs calls both."""

import json
import sys
from pathlib import Path

import torch
from safetensors.numpy import load_file
from sklearn.linear_model import LogisticRegression

import data
import train
import training


def start(folder):
    training.reproducible()
    torch.manual_seed(train.SEED)
    reviews, held_out = data.films()
    texts = [s.text for s in reviews]
    model, tokenizer = train.build(train.fetch(), texts)
    training.save(model.bert, tokenizer, folder)
    parts = {"training": reviews, "heldOut": held_out}
    examples = {name: [{"text": s.text, "rating": s.rating} for s in part] for name, part in parts.items()}
    (folder / "examples.json").write_text(json.dumps(examples), "utf-8")
    ids = train.encode(tokenizer, texts)
    model = train.fit(model, ids, train.probabilities(reviews), epochs=4, batch=32, learning_rate=1e-3, masked=0.3).float()
    print(train.accuracy(train.positive(model, tokenizer, held_out), held_out))


def logistic(file):
    tensors = load_file(file)
    model = LogisticRegression(max_iter=10000).fit(tensors["training"], tensors["training_labels"])
    print(model.score(tensors["held_out"], tensors["held_out_labels"]))


if __name__ == "__main__":
    {"start": start, "logistic": logistic}[sys.argv[1]](Path(sys.argv[2]))
