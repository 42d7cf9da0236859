"""Trains the small sentiment classifier and writes testdata/models/sentiment/ and testdata/sentiment/.

A teacher that is a hundred times as large (teacher.py) learns from ratings by people and rates variants of these texts (variants.py); the small model
learns from both. Sentences whose class depends on a negation come from templates (negations.py).

Usage: testdata/make/sentiment/make.sh, or python testdata/make/sentiment/train.py [--validate]
With --validate two parts of the training texts replace the held-out ones and testdata does not change. Use it to choose settings.
"""

import argparse
import hashlib
import json
import string
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch.nn import functional as F
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig, BertForSequenceClassification, BertTokenizer

import data
import negations
from variants import Neighbours, variants

sys.path += [str(data.ROOT / "testdata" / "make" / "goldens"), str(data.ROOT / "testdata" / "make" / "corpora")]
import teacher as teacher_module  # noqa: E402
import training  # noqa: E402
from fetch_models import fetch  # noqa: E402
from teacher import Teacher  # noqa: E402
from word_table import SPECIAL, frequent, projected  # noqa: E402

SEED = 0
WORD_TABLE = "embeddings.word_embeddings.weight"
PIECES = 13500
NEGATIONS, TEACHERS_NEGATIONS = 12000, 3000  # sentences from templates
VALIDATION = (2, 3)
VARIANTS = 3
EPOCHS = 4
BATCH = 64
LEARNING_RATE = 2e-3
MASKED = 0.15  # share of pieces replaced by [MASK] in training
LABELS = ["negative", "positive"]


def build(minilm, texts):
    """The untrained classifier and its tokenizer."""
    chosen, counts = frequent(minilm, texts, PIECES)
    print(f"{len(chosen)} word pieces; {len(counts)} occur")
    tokenizer = BertTokenizer(vocab={token: id for id, token in enumerate(chosen)}, do_lower_case=True, model_max_length=128)
    config = BertConfig(
        vocab_size=len(chosen),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=128,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
        id2label=dict(enumerate(LABELS)),
        label2id={label: id for id, label in enumerate(LABELS)},
    )
    model = BertForSequenceClassification(config)
    model.bert.embeddings.word_embeddings.weight.data = projected(minilm, chosen, config.hidden_size)
    return model, tokenizer


def encode(tokenizer, texts):
    return tokenizer(texts, truncation=True, max_length=128)["input_ids"]


def probabilities(snippets):
    """A probability of "positive" from the rating, which also covers texts that are neither clearly positive nor negative."""
    return torch.sigmoid(torch.tensor([snippet.rating for snippet in snippets]))


def digest(*parts):
    return hashlib.sha256(repr([part.tolist() if isinstance(part, torch.Tensor) else part for part in parts]).encode()).hexdigest()[:16]


def kept(name, make):
    """Caches tensors that take minutes to compute in build/sentiment, so that settings of the small model can be tried quickly."""
    path = data.KEPT.parent / f"{name}.safetensors"
    if not path.is_file():
        save_file(make(), path)
    return load_file(path)


def taught(minilm, reviews, turned):
    """Texts and targets for the small model: ratings by people and by a teacher that has not seen their ratings. Each of two teachers learns from one
    half of the reviews and rates the other half, because a teacher only repeats ratings that it has memorised."""
    words = Neighbours(
        load_file(minilm / "model.safetensors")[WORD_TABLE],
        Tokenizer.from_file(str(minilm / "tokenizer.json")).get_vocab(),
        [snippet.text for snippet in reviews + turned],
    )
    halves = [[snippet for snippet in reviews if data.part(snippet.text) % 2 == half] for half in (0, 1)]
    texts, targets = [snippet.text for snippet in turned], [probabilities(turned)]
    for half, (mine, others) in enumerate((halves, reversed(halves))):
        lesson = others + turned[:TEACHERS_NEGATIONS]
        learned = ([snippet.text for snippet in lesson], probabilities(lesson))
        own = [snippet.text for snippet in mine]
        own += variants(own, words, VARIANTS, f"attn variants {half}")
        teacher = Teacher(minilm, SEED)
        name = digest(*learned, Path(teacher_module.__file__).read_text("utf-8"))
        teacher.load_state_dict(kept(f"teacher_{name}", lambda: teacher.fit(*learned).state_dict()))
        judged = torch.sigmoid(kept(f"logits_{digest(name, own)}", lambda: {"logits": teacher.logits(own)})["logits"])
        print(f"a teacher is right in {accuracy(judged[: len(mine)], mine):.4f} of {len(mine)} texts that it has not seen", flush=True)
        judged[: len(mine)] = (judged[: len(mine)] + probabilities(mine)) / 2
        texts += own
        targets.append(judged)
    return texts, torch.cat(targets)


def fit(model, ids, targets, epochs=EPOCHS, batch=BATCH, learning_rate=LEARNING_RATE, masked=MASKED):
    """Trains on probabilities of "positive"; returns the running mean of the weights, rounded to float16."""
    generator = torch.Generator().manual_seed(SEED)
    steps = training.plan([len(row) for row in ids], epochs, batch, SEED)

    def loss(step):
        rows = steps[step]
        input_ids, attention_mask = training.pad([ids[row] for row in rows])
        hidden = (torch.rand(input_ids.shape, generator=generator) < masked) & (input_ids >= len(SPECIAL))
        input_ids = input_ids.masked_fill(hidden, SPECIAL.index("[MASK]"))
        positive = targets[rows]
        return F.cross_entropy(model(input_ids, attention_mask=attention_mask).logits, torch.stack([1 - positive, positive], 1))

    return training.fit(model, len(steps), learning_rate, loss, every=500).half()


@torch.no_grad()
def positive(model, tokenizer, snippets):
    """The probability of "positive" for each text alone: (N) in the dtype of the model."""
    model.eval()
    rows = (torch.tensor([row]) for row in encode(tokenizer, [snippet.text for snippet in snippets]))
    return torch.cat([model(row).logits.softmax(1)[:, 1] for row in rows])


def accuracy(probabilities, snippets):
    labels = torch.tensor([snippet.label for snippet in snippets]).bool()
    return ((probabilities > 0.5) == labels).double().mean().item()


def judge(folder, name, snippets, path=None):
    """Loads the folder with transformers, prints and returns the accuracy in float32, and writes texts and results to `path`."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    single, double = (
        positive(AutoModelForSequenceClassification.from_pretrained(folder, dtype=dtype), tokenizer, snippets)
        for dtype in (torch.float32, torch.float64)
    )
    result = accuracy(single, snippets)
    ties = int(((single > 0.5) != (double > 0.5)).sum())
    print(f"{name}: {result:.4f} of {len(snippets)} right; {ties} other classes in float64, max difference {(single - double).abs().max():.1e}")
    if path:
        versions = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}
        lines = [
            json.dumps({"id": s.id, "label": s.label, "positive": float(f"{p:.9g}"), "text": s.text}, ensure_ascii=False)
            for s, p in zip(snippets, single.tolist())
        ]
        head = json.dumps({"versions": versions, "accuracy": result})[:-1]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + ', "texts": [\n' + ",\n".join(lines) + "\n]}\n", "utf-8")
    return result, double


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--validate", action="store_true")
    validate = parser.parse_args().validate

    transformers.utils.logging.disable_progress_bar()
    training.reproducible()
    minilm = fetch()
    reviews, held_out = data.films(VALIDATION if validate else ())
    turned = negations.sentences("validation" if validate else "held_out", 4)
    products = data.products()

    texts, targets = taught(minilm, reviews + data.tweets(), negations.training(NEGATIONS, ("validation", "held_out")))
    torch.manual_seed(SEED)
    model, tokenizer = build(minilm, texts)
    parameters = sum(p.numel() for p in model.parameters())
    model = fit(model, encode(tokenizer, texts), targets)

    testdata = data.ROOT / "testdata"
    folder = data.ROOT / "build" / "sentiment" / "validation" if validate else testdata / "models" / "sentiment"
    training.save(model, tokenizer, folder)
    if validate:
        judge(folder, "films, validation", held_out)
        judge(folder, "negations, validation", turned)
        return
    on_films, exact = judge(folder, "films, held out", held_out, testdata / "sentiment" / "films.json")
    on_negations, _ = judge(folder, "negations, held out", turned, testdata / "sentiment" / "negations.json")
    on_products, _ = judge(folder, "products", products, testdata / "sentiment" / "products.json")
    clear = torch.tensor([abs(s.rating) >= 1 for s in held_out])
    clear_right = accuracy(exact[clear], [s for s in held_out if abs(s.rating) >= 1])
    card = string.Template((Path(__file__).parent / "card.md").read_text("utf-8")).substitute(
        training=len(reviews),
        held_out=len(held_out),
        held_out_positive=sum(s.label for s in held_out),
        products=len(products),
        products_positive=sum(s.label for s in products),
        films_accuracy=f"{100 * on_films:.1f}",
        clear=int(clear.sum()),
        clear_accuracy=f"{100 * clear_right:.1f}",
        negations=len(turned),
        negations_accuracy=f"{100 * on_negations:.1f}",
        products_accuracy=f"{100 * on_products:.1f}",
        turned=NEGATIONS,
        texts=f"{len(texts):,}".replace(",", " "),
        parameters=f"{parameters:,}".replace(",", " "),
        pieces=len(tokenizer),
        masked=round(100 * MASKED),
        epochs=EPOCHS,
    )
    (folder / "README.md").write_text(card, "utf-8")
    print(f"{sum(path.stat().st_size for path in folder.iterdir())} bytes in {folder.relative_to(data.ROOT)}")


if __name__ == "__main__":
    main()
