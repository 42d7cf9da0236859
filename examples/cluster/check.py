"""Runs both programs on local clusters and holds what they write against one process's vectors: rows, order by id, and bits.

python check.py [--texts N] [--rows N] [--model FOLDER] [--weights int8|float32] [--peer]
A worker of each is killed in the middle. Spark needs Java 17 or newer.
"""

import argparse
import contextlib
import functools
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import corpus

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
print = functools.partial(print, flush=True)


def make_corpus(folder, count, rows):
    """Reviews of films and products, repeated with a number."""
    files = [ROOT / "testdata" / "sentiment" / name for name in ("films.json", "products.json")]
    reviews = [each["text"] for file in files for each in json.loads(file.read_text("utf-8"))["texts"]]
    for first in range(0, count, rows):
        ids = range(first, min(first + rows, count))
        texts = [reviews[i] if i < len(reviews) else f"{i}: {reviews[i % len(reviews)]}" for i in ids]
        pq.write_table(pa.table({"id": list(ids), "text": texts}), folder / f"part-{first // rows:05}.parquet")


def digest(folder):
    """Counts rows and other files and hashes the vectors, ordered by id; fails if a row is missing or duplicated.

    Reads the folder as a user would, with whatever a killed worker left in it.
    """
    left = [path.name for path in folder.iterdir() if path.suffix != ".parquet"]
    table = pq.read_table(folder).sort_by("id")
    ids = table["id"].to_pylist()
    if ids != list(range(len(ids))):
        raise SystemExit(f"{folder.name}: rows are missing or duplicated")
    vectors = table["embedding"].combine_chunks().flatten().to_numpy()
    return len(ids), hashlib.sha256(vectors.tobytes()).hexdigest()[:16], len(left)


def children(pid):
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
    return [child for each in found for child in (int(each), *children(each))]


def kill_a_worker(program, name, target):
    """Kills a worker, found by its process name, once some files exist; returns their number."""
    while not corpus.names_in(str(target)):
        if program.poll() is not None:
            raise SystemExit("the program ended before the first file")
        time.sleep(0.02)
    workers = [pid for pid in children(program.pid) if name in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()]
    os.kill(workers[-1], signal.SIGKILL)
    return len(corpus.names_in(str(target)))


class Workers(threading.Thread):
    """Measures the processes below a program that have had a worker's name: seconds of processor time, and the most memory of one in MB."""

    def __init__(self, program, name):
        super().__init__(daemon=True)
        self.program, self.name = program, name
        self.known, self.seconds, self.memory = set(), {}, {}
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(0.5):
            for pid in children(self.program.pid):
                with contextlib.suppress(OSError, IndexError, StopIteration):  # it has ended
                    self.look(pid)

    def look(self, pid):
        process = pathlib.Path(f"/proc/{pid}")
        if pid not in self.known and self.name not in (process / "cmdline").read_bytes().replace(b"\0", b" ").decode():
            return
        self.known.add(pid)
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        self.seconds[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        peak = next(line for line in (process / "status").read_text().splitlines() if line.startswith("VmHWM:"))
        self.memory[pid] = int(peak.split()[1]) / 1024

    def __str__(self):
        return f"workers {sum(self.seconds.values()):.1f} s of processor time, {max(self.memory.values(), default=0):.0f} MB each at most"


def run(what, command, target, worker, kill=False, env=None):
    """Runs a program; `worker` is the name of its worker processes, of which it kills one on request."""
    started = time.monotonic()
    log = target.with_suffix(".log")
    with log.open("w") as output:
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, **(env or {})}
        program = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=HERE, env=environment)
        workers = Workers(program, worker)
        workers.start()
        killed = f", a worker killed after {kill_a_worker(program, worker, target)} files" if kill else ""
        ended = program.wait()
        workers.over.set()
        workers.join()
        if ended != 0:
            raise SystemExit(f"{what} ended with {program.returncode}:\n{log.read_text()[-3000:]}")
    said = [line for line in log.read_text().splitlines() if "rows in" in line][-1]
    rows, bits, left = digest(target)
    print(f"{what}{killed}: {said}; {rows} rows, vectors {bits}, {left} files left over, {time.monotonic() - started:.1f} s, {workers}")
    return bits


RAY_WORKER, SPARK_WORKER = "ray::MapWorker", "pyspark.daemon"


def compare(folder, source, options, alone):
    """Runs sentence-transformers on Ray on the same files, and compares its vectors with those of `alone`."""
    peer = [sys.executable, str(ROOT / "benchmarks" / "cluster" / "ray_peer.py"), str(source), "--model", options.model, "--weights", "float32"]
    environment = {"PYTHONPATH": str(HERE)}  # of the workers, too
    for kill in (False, True):
        target = folder / f"peer-{kill}"
        run("sentence-transformers on Ray, workers 2", [*peer, str(target), "--workers", "2"], target, RAY_WORKER, kill, environment)
    ours, theirs = (vectors_by_id(each) for each in (alone, target))
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    print(f"cosine of attn's and sentence-transformers' vectors: at least {((ours * theirs).sum(axis=1) / lengths).min():.7f}")


def vectors_by_id(folder):
    table = pq.read_table(folder).sort_by("id")
    return np.stack(table["embedding"].to_numpy())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=250, help="of a file")
    parser.add_argument("--model", default=str(ROOT / "models" / "all-MiniLM-L6-v2"), type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--weights", default="int8")
    parser.add_argument("--peer", action="store_true", help="also sentence-transformers on Ray, which must be installed")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        source = folder / "corpus"
        source.mkdir()
        make_corpus(source, options.texts, options.rows)

        alone = folder / "alone"
        job = corpus.Job(str(source), str(alone), options.model, options.weights)
        model = corpus.load(job)
        started = time.monotonic()
        for name in corpus.unfinished(job):
            corpus.embed_file(model, job, name)
        rows, wanted, _ = digest(alone)
        seconds = time.monotonic() - started
        print(f"one process: {rows} rows, vectors {wanted}, {rows / seconds:.0f} texts a second")

        common = [str(source), "--model", options.model, "--weights", options.weights]
        ray = [sys.executable, "ray_embed.py", *common]
        spark = [str(pathlib.Path(sys.executable).with_name("spark-submit")), "--py-files", "corpus.py", "spark_embed.py", *common]
        found = []
        for workers in (1, 2):
            target = folder / f"ray-{workers}"
            found.append(run(f"Ray, workers {workers}", [*ray, str(target), "--workers", str(workers)], target, RAY_WORKER))
        target = folder / "ray-killed"
        found.append(run("Ray, workers 2", [*ray, str(target), "--workers", "2"], target, RAY_WORKER, kill=True))
        if options.peer:
            compare(folder, source, options, alone)
        for workers in (1, 2):
            target = folder / f"spark-{workers}"
            found.append(run(f"Spark, workers {workers}", [spark[0], "--master", f"local[{workers}]", *spark[1:], str(target)], target, SPARK_WORKER))
        target = folder / "spark-killed"
        # In local mode Spark gives up at the first failure unless the number of allowed failures is given.
        found.append(run("Spark, workers 2", [spark[0], "--master", "local[2,4]", *spark[1:], str(target)], target, SPARK_WORKER, kill=True))
        # Runs again with some output files removed.
        for path in sorted(target.glob("*.parquet"))[::3]:
            path.unlink()
        found.append(run("Spark again", [spark[0], "--master", "local[2]", *spark[1:], str(target)], target, SPARK_WORKER))
        if any(bits != wanted for bits in found):
            raise SystemExit("not the vectors of one process")
        print(f"{len(found)} runs, the same vectors bit for bit")


if __name__ == "__main__":
    main()
