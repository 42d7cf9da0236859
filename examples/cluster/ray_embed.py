"""Sentence embeddings of a corpus on a Ray cluster.

python ray_embed.py SOURCE TARGET --model FOLDER [--workers N] [options of corpus.py]
Every node needs attn, this folder and the model at the same paths. Run again, it does the files that are not done.
"""

import json
import sys

import ray

import corpus


class Embed:
    """One model per worker of the pool."""

    def __init__(self, job):
        self.job = job
        self.model = corpus.load(job)

    def __call__(self, batch):
        done = [corpus.embed_file(self.model, self.job, name) for name in batch["name"]]
        return {"rows": [rows for rows, _ in done], "failures": [json.dumps([vars(each) for each in failures]) for _, failures in done]}


def main():
    parser = corpus.parser(__doc__)
    parser.add_argument("--workers", type=int, default=1, help="each asks Ray for as many CPUs as --threads (default 1)")
    options = parser.parse_args()
    job, names = corpus.job_of(options)
    if not names:
        return corpus.report(0, 0, [])
    # A worker that took a second file in advance would keep it from an idle one.
    pool = ray.data.ActorPoolStrategy(size=options.workers, max_tasks_in_flight_per_actor=1)
    files = ray.data.from_items([{"name": name} for name in names], override_num_blocks=len(names))
    done = files.map_batches(Embed, fn_constructor_args=[job], batch_size=1, num_cpus=options.threads, compute=pool)
    rows, failures, progress = 0, [], corpus.Progress(len(names))
    try:
        with corpus.errors_of_workers():
            for count, each in enumerate(done.iter_rows(), 1):
                rows += each["rows"]
                failures += [corpus.Failure(**failure) for failure in json.loads(each["failures"])]
                progress.update(count, rows)
    finally:
        corpus.remove_parts(job)
    return corpus.report(rows, len(names), failures)


if __name__ == "__main__":
    try:
        main()
    except corpus.CorpusError as error:
        sys.exit(f"ray_embed: {error}")
