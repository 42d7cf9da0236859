"""A corpus is a folder of Parquet files with a column "text". Each file becomes one of the same name with the column "embedding" added."""

import functools
import uuid

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

import attn

ROWS = 4096  # in memory at a time


def open_folder(uri):
    """Its file system and its path there: a local folder, s3://, gs:// or hdfs://."""
    return pa.fs.FileSystem.from_uri(uri) if "://" in uri else (pa.fs.LocalFileSystem(), uri)


def names_in(uri):
    files, folder = open_folder(uri)
    found = files.get_file_info(pa.fs.FileSelector(folder, allow_not_found=True))
    return sorted(info.base_name for info in found if info.base_name.endswith(".parquet"))


def unfinished(source, target):
    """A run again does what is not there yet. Files get their names when they are whole, so none is there in part."""
    done = set(names_in(target))
    return [name for name in names_in(source) if name not in done]


def embed_file(model, source, target, name):
    """Gives the number of its rows."""
    files, folder = open_folder(source)
    to, target_folder = open_folder(target)
    to.create_dir(target_folder)
    width = model.embed([""]).shape[1]
    part = f"{target_folder}/{name}.{uuid.uuid4().hex}"  # another worker may be doing it over
    with files.open_input_file(f"{folder}/{name}") as opened:
        rows = pq.ParquetFile(opened)
        schema = rows.schema_arrow.append(pa.field("embedding", pa.list_(pa.float32(), width)))
        with pq.ParquetWriter(part, schema, filesystem=to) as writer:
            for batch in rows.iter_batches(ROWS):
                vectors = pa.array(model.embed(batch["text"].to_pylist()).reshape(-1))
                columns = [*batch.columns, pa.FixedSizeListArray.from_arrays(vectors, width)]
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    to.move(part, f"{target_folder}/{name}")
    return rows.metadata.num_rows


@functools.lru_cache(maxsize=1)
def load(path, weights, threads):
    """One model in each process: a worker of Spark keeps its process, and so the model, for its next tasks."""
    # attn has threads of its own: neither OMP_NUM_THREADS, which Ray sets to 1, nor what the parent of a forked worker had counts.
    attn.set_num_threads(threads)
    return attn.TextModel.load(path, weights=weights)
