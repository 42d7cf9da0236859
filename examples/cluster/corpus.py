"""Embeds a corpus: a folder of Parquet files with a column of texts, in subfolders or not.

Each file becomes one of the same name in the target folder, with a column of vectors added. Both programs of this folder use this module.
"""

import argparse
import collections
import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import pathlib
import platform
import posixpath
import re
import time
import uuid

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

import attn

ROWS = 4096  # at once
METADATA = b"attn"  # key of the schema's metadata in the files written
SHOWN = 20  # failures printed at the end


class CorpusError(Exception):
    """The source, the target or the options are wrong. Nothing was written."""


@dataclasses.dataclass(frozen=True)
class Job:
    """What the workers need to know."""

    source: str
    target: str
    model: str
    weights: str
    threads: int = 1
    column: str = "text"
    output_column: str = "embedding"
    on_error: str = "fail"
    run: str = dataclasses.field(default_factory=lambda: uuid.uuid4().hex)

    @functools.cached_property
    def metadata(self):
        """Identifies the vectors: two files with the same metadata may be searched together."""
        return {
            "model": digest(self.model),
            "weights": self.weights,
            "attn": importlib.metadata.version("attn"),
            "column": self.column,
            "output_column": self.output_column,
        }


@dataclasses.dataclass(frozen=True)
class Failure:
    """A text without a vector."""

    file: str
    row: int
    reason: str

    def __str__(self):
        return f"{self.file}, row {self.row}: {self.reason}"


@contextlib.contextmanager
def errors_of_workers():
    """Raises the error of a worker, which Ray and Spark wrap into theirs with its traceback as text."""
    try:
        yield
    except CorpusError:
        raise
    except Exception as error:
        found = re.search(r"CorpusError: (.+)", str(error))
        if not found:
            raise
        raise CorpusError(found[1]) from None


@contextlib.contextmanager
def named(where):
    """Adds a name to the errors of Arrow and of the file system."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(f"{where}: {error}") from error


def open_folder(uri):
    """Returns the file system and path of a local folder, s3://, gs:// or hdfs://."""
    if "://" not in uri:
        return pa.fs.LocalFileSystem(), str(pathlib.Path(uri).expanduser().resolve())
    with named(uri):
        return pa.fs.FileSystem.from_uri(uri)


def names_in(uri):
    """Returns the paths of the Parquet files below a folder. Like Arrow, Spark and Hive, it skips names with "_" or "." in front."""
    files, folder = open_folder(uri)
    found = files.get_file_info(pa.fs.FileSelector(folder, allow_not_found=True, recursive=True))
    names = [posixpath.relpath(info.path, folder) for info in found if info.is_file and info.path.endswith(".parquet")]
    return sorted(name for name in names if not any(part.startswith(("_", ".")) for part in name.split("/")))


def schema_of(uri, name):
    files, folder = open_folder(uri)
    with named(f"{uri}/{name} cannot be read as Parquet"), files.open_input_file(f"{folder}/{name}") as opened:
        return pq.read_schema(opened)


def digest(model):
    """Identifies a model's files by their contents."""
    folder = pathlib.Path(model)
    hashed = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".safetensors")):
        with path.open("rb") as file:
            contents = hashlib.file_digest(file, "sha256").hexdigest()
        hashed.update(f"{path.relative_to(folder).as_posix()}\0{contents}\n".encode())
    return hashed.hexdigest()[:16]


def is_text(kind):
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary))


def check_source(job, name, schema):
    if job.column not in schema.names:
        raise CorpusError(f"{job.source}/{name} has no column '{job.column}', expected one of {', '.join(schema.names)} as --column")
    if schema.names.count(job.column) > 1:
        raise CorpusError(f"{job.source}/{name} has several columns '{job.column}', expected one")
    if not is_text(schema.field(job.column).type):
        raise CorpusError(f"{job.source}/{name}: column '{job.column}' has type {schema.field(job.column).type}, expected texts")
    if job.output_column in schema.names:
        raise CorpusError(f"{job.source}/{name} already has a column '{job.output_column}': choose another --output-column")


def written_metadata(target, name):
    return json.loads((schema_of(target, name).metadata or {}).get(METADATA, b"{}"))


def unfinished(job):
    """Returns the files that are in the source only, after checking those of both folders.

    A file gets its name when it is complete, so what has a name is done.
    """
    wanted = job.metadata  # computed here, so that the workers get it with the job
    files, folder = open_folder(job.source)
    to, target = open_folder(job.target)
    with named(job.source):
        if files.get_file_info(folder).type != pa.fs.FileType.Directory:
            raise CorpusError(f"{job.source} is not a folder")
    with named(job.target):
        if to.get_file_info(target).type == pa.fs.FileType.File:
            raise CorpusError(f"{job.target} is a file, expected a folder")
    if files == to and (f"{folder}/".startswith(f"{target}/") or f"{target}/".startswith(f"{folder}/")):
        raise CorpusError("the target is the source, or one is inside the other: choose another folder")
    names = names_in(job.source)
    if not names:
        raise CorpusError(f"{job.source} has no Parquet file")
    done = set(names_in(job.target))
    for name in sorted(done):
        found = written_metadata(job.target, name)
        differing = [key for key, value in wanted.items() if found.get(key) != value]
        if differing:
            pairs = ", ".join(f"{key} {found.get(key)} instead of {wanted[key]}" for key in differing)
            raise CorpusError(f"{job.target}/{name} has other vectors ({pairs}): choose another target, or delete the file")
    left = [name for name in names if name not in done]
    for name in left:
        check_source(job, name, schema_of(job.source, name))
    return left


def decoded(column):
    """Returns each text, or the reason why it is none."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    # Arrow checks no string: the bytes of a file may be anything.
    wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    for raw in column.cast(pa.large_binary() if wide else pa.binary()).to_pylist():
        if raw is None:
            yield None, "the text is null"
            continue
        try:
            yield raw.decode("utf-8"), None
        except UnicodeDecodeError as error:
            yield None, f"byte {error.start} of the text is not UTF-8"


def embed_batch(model, width, job, name, first, column):
    """Returns the vectors of the rows from `first` on, and the failures."""
    texts, failures = [], []
    for row, (text, reason) in enumerate(decoded(column), first):
        if reason:
            failures.append(Failure(name, row, reason))
            if job.on_error == "fail":
                raise CorpusError(f"{failures[0]}. With --on-error null such rows get a null and the job goes on")
        texts.append(text)
    found = [text for text in texts if text is not None]
    try:
        vectors = model.embed(found)
    except attn.AttnError as error:
        raise CorpusError(f"{name}, rows {first} to {first + len(texts) - 1}: {error}") from error
    if not failures:
        return pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), width), failures
    places = iter(vectors)
    rows = [None if text is None else next(places) for text in texts]
    return pa.array(rows, pa.list_(pa.float32(), width)), failures


def compressions(rows, job):
    """Returns the source's compression of each column; the vectors get that of the texts."""
    group = rows.metadata.row_group(0) if rows.metadata.num_row_groups else None
    if group is None:
        return "snappy"
    columns = [group.column(i) for i in range(group.num_columns)]
    found = {column.path_in_schema: column.compression.lower().replace("uncompressed", "none") for column in columns}
    return {**found, f"{job.output_column}.list.element": found[job.column]}


def embed_file(model, job, name):
    """Writes one file of the target; returns the number of rows and the failures."""
    files, folder = open_folder(job.source)
    to, target_folder = open_folder(job.target)
    where = posixpath.dirname(f"{target_folder}/{name}")
    with named(job.target):
        to.create_dir(where)
    width = model.embed([""]).shape[1]
    part = f"{where}/_part-{job.run}-{uuid.uuid4().hex}"  # unique, because another worker may repeat this file
    failures = []
    try:
        with named(f"{job.source}/{name} to {job.target}"), files.open_input_file(f"{folder}/{name}") as opened:
            rows = pq.ParquetFile(opened)
            given = rows.schema_arrow
            check_source(job, name, given)
            schema = given.append(pa.field(job.output_column, pa.list_(pa.float32(), width)))
            schema = schema.with_metadata({**(given.metadata or {}), METADATA: json.dumps(job.metadata).encode()})
            first = 0
            with pq.ParquetWriter(part, schema, filesystem=to, compression=compressions(rows, job)) as writer:
                for batch in rows.iter_batches(ROWS):
                    vectors, failed = embed_batch(model, width, job, name, first, batch[job.column])
                    writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, vectors], schema=schema))
                    failures += failed
                    first += batch.num_rows
        with named(job.target):
            to.move(part, f"{target_folder}/{name}")
        return first, failures
    finally:
        with contextlib.suppress(OSError):
            to.delete_file(part)


def remove_parts(job):
    """Deletes the unfinished files of this run's lost workers, which readers skip."""
    files, folder = open_folder(job.target)
    for info in files.get_file_info(pa.fs.FileSelector(folder, allow_not_found=True, recursive=True)):
        if info.is_file and info.base_name.startswith(f"_part-{job.run}-"):
            files.delete_file(info.path)


@functools.lru_cache(maxsize=1)
def load(job):
    """Loads one model per process: a worker of Spark keeps its process, and thus the model, for further tasks."""
    if digest(job.model) != job.metadata["model"]:
        raise CorpusError(f"{job.model} on {platform.node()} has other files than where the program was started")
    # attn manages its own threads and ignores OMP_NUM_THREADS, which Ray sets to 1, and the thread count of a forked
    # worker's parent.
    attn.set_num_threads(job.threads)
    return load_model(job.model, job.weights)


def load_model(folder, weights):
    try:
        return attn.TextModel.load(folder, weights=weights)
    except attn.AttnError as error:
        raise CorpusError(f"{folder} on {platform.node()}: {error}") from error


def faster_weights(model):
    """Returns the type of weights that this machine computes faster: int8 wins if it has VNNI or dot products.

    The program asks once, so that all vectors of a corpus have the same type on every machine.
    """
    texts = ["A text of average length, as reviews of films and of products have: about twenty words, one or two sentences."] * 64
    seconds = {}
    for weights in ("int8", "float32"):
        loaded = load_model(model, weights)
        times = []
        for _ in range(3):
            started = time.perf_counter()
            loaded.embed(texts)
            times.append(time.perf_counter() - started)
        seconds[weights] = min(times)
    return min(seconds, key=seconds.get)


def parser(doc):
    """The options of both programs."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("source", help="folder of Parquet files; subfolders such as year=2024 are kept")
    made.add_argument("target", help="folder to write to; files that are there already are kept")
    made.add_argument("--model", required=True, help="folder of the model, on every node")
    made.add_argument("--threads", type=int, default=1, help="of a worker (default 1)")
    made.add_argument("--weights", default="auto", choices=["auto", "int8", "float32"], help="auto: those of the target, else the faster ones here")
    made.add_argument("--column", default="text", help="column of the texts (default text)")
    made.add_argument("--output-column", default="embedding", help="column of the vectors (default embedding)")
    made.add_argument("--on-error", default="fail", choices=["fail", "null"], help="for a text that is null or not UTF-8: stop, or write a null")
    return made


def job_of(options):
    """Returns the job and its unfinished files."""
    model = pathlib.Path(options.model).expanduser()
    if not model.is_dir():
        raise CorpusError(f"{options.model} is not a folder with a model")
    weights = options.weights
    if weights == "auto":
        done = names_in(options.target)
        weights = written_metadata(options.target, done[0]).get("weights") if done else None
        why = "as in the target" if weights else "the faster ones on this machine"
        weights = weights or faster_weights(str(model))
        print(f"weights {weights}, {why}")
    job = Job(
        **{name: getattr(options, name) for name in ("source", "target", "threads", "column", "output_column", "on_error")},
        model=str(model),
        weights=weights,
    )
    return job, unfinished(job)


class Progress:
    """Prints rows a second and files left, at most every five seconds."""

    def __init__(self, files):
        self.files, self.done, self.rows = files, 0, 0
        self.started = self.printed = time.monotonic()

    def update(self, done, rows):
        self.done, self.rows = done, rows
        now = time.monotonic()
        if now - self.printed >= 5:
            self.printed = now
            print(f"{self.rows / (now - self.started):.0f} rows a second, {self.files - self.done} files left", flush=True)


def report(rows, files, failures):
    """Prints the result and the texts without a vector."""
    if files == 0:
        print("all files of the source are done")
        return
    for failure in failures[:SHOWN]:
        print(failure)
    if len(failures) > SHOWN:
        rest = collections.Counter(failure.file for failure in failures[SHOWN:])
        print(f"and {len(failures) - SHOWN} more: {', '.join(f'{count} in {file}' for file, count in rest.items())}")
    print(f"{rows} rows in {files} files" + (f", {len(failures)} of them without a vector" if failures else ""))
