"""A corpus is a folder of Parquet files with a column "text". Each file becomes one of the same name with the column "embedding" added."""

import functools
import uuid

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

import attn

ROWS = 4096  # at once


def open_folder(uri):
    """Returns the file system and path of a local folder, s3://, gs:// or hdfs://."""
    return pa.fs.FileSystem.from_uri(uri) if "://" in uri else (pa.fs.LocalFileSystem(), uri)


def names_in(uri):
    files, folder = open_folder(uri)
    found = files.get_file_info(pa.fs.FileSelector(folder, allow_not_found=True))
    return sorted(info.base_name for info in found if info.base_name.endswith(".parquet"))


def unfinished(source, target):
    """Repeated runs process missing files only. Files are renamed when complete, so no partial file exists."""
    done = set(names_in(target))
    return [name for name in names_in(source) if name not in done]


def embed_file(model, source, target, name):
    """Returns the number of rows."""
    files, folder = open_folder(source)
    to, target_folder = open_folder(target)
    to.create_dir(target_folder)
    width = model.embed([""]).shape[1]
    part = f"{target_folder}/{name}.{uuid.uuid4().hex}"  # unique, because another worker may repeat this file
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
    """One model per process: a worker of Spark keeps its process, and thus the model, for further tasks."""
    # attn manages its own threads and ignores OMP_NUM_THREADS, which Ray sets to 1, and the thread count of a forked
    # worker's parent.
    attn.set_num_threads(threads)
    return attn.TextModel.load(path, weights=weights)
