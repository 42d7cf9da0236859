"""Sentence embeddings of a corpus on a Ray cluster.

python ray_embed.py SOURCE TARGET --model FOLDER [--workers N] [--threads N] [--weights int8|float32]
Every node needs attn, this folder and the model at the same paths. Run again, it does the files that are not done.
"""

import argparse

import ray

import corpus


class Embed:
    """One model per worker of the pool."""

    def __init__(self, options):
        self.options = options
        self.model = corpus.load(options.model, options.weights, options.threads)

    def __call__(self, batch):
        rows = [corpus.embed_file(self.model, self.options.source, self.options.target, name) for name in batch["name"]]
        return {"name": batch["name"], "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--model", required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of a worker; Ray is asked for as many CPUs")
    parser.add_argument("--weights", default="int8", choices=["int8", "float32"])
    options = parser.parse_args()

    names = corpus.unfinished(options.source, options.target)
    pool = ray.data.ActorPoolStrategy(size=options.workers)
    files = ray.data.from_items([{"name": name} for name in names], override_num_blocks=max(1, len(names)))
    done = files.map_batches(Embed, fn_constructor_args=[options], batch_size=1, num_cpus=options.threads, compute=pool)
    print(f"{sum(row['rows'] for row in done.take_all())} rows in {len(names)} files")


if __name__ == "__main__":
    main()
