"""Texts a second of one worker on Ray: attn in float32 and int8, and sentence-transformers on PyTorch, in turns over the same texts.

python ray_beside.py MODEL [--texts N] [--rounds N]      (needs sentence-transformers beside what examples/cluster needs)
Counted is the processor time of the worker, one thread each, whatever else the machine does.
"""

import argparse
import json
import pathlib
import statistics
import time

import numpy as np
import ray

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Embed:
    def __init__(self, model, library):
        if library == "sentence-transformers":
            import torch
            from sentence_transformers import SentenceTransformer

            torch.set_num_threads(1)
            loaded = SentenceTransformer(model, device="cpu")
            self.embed = lambda texts: loaded.encode(texts, batch_size=32, show_progress_bar=False)
        else:
            import attn

            attn.set_num_threads(1)
            self.embed = attn.TextModel.load(model, weights=library.removeprefix("attn ")).embed

    def __call__(self, batch):
        texts = batch["text"].tolist()
        self.embed(texts[:8])
        started = time.process_time()
        vectors = self.embed(texts)
        return {"seconds": [time.process_time() - started], "texts": [len(texts)], "first": vectors[:1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    reviews = json.loads((ROOT / "testdata" / "sentiment" / "products.json").read_text("utf-8"))["texts"]
    texts = [{"text": each["text"]} for each in reviews[: options.texts]]
    ray.init(num_cpus=1, log_to_driver=False)
    libraries = ["sentence-transformers", "attn float32", "attn int8"]
    rates, vectors = {name: [] for name in libraries}, {}
    for _ in range(options.rounds):
        for name in libraries:
            data = ray.data.from_items(texts, override_num_blocks=1)
            pool = ray.data.ActorPoolStrategy(size=1)
            (row,) = data.map_batches(Embed, fn_constructor_args=[options.model, name], batch_size=None, compute=pool).take_all()
            rates[name].append(row["texts"] / row["seconds"])
            vectors[name] = row["first"]
    peer = statistics.median(rates[libraries[0]])
    for name in libraries:
        rate = statistics.median(rates[name])
        cosine = float(np.dot(vectors[name], vectors[libraries[0]]))
        print(f"{name}: {rate:.0f} texts a second, {rate / peer:.2f} x; cosine of the first to the peer's {cosine:.6f}")


if __name__ == "__main__":
    main()
