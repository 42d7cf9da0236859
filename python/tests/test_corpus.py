"""The module that examples/cluster runs on Ray and Spark, without a cluster (make cluster has one)."""

import argparse
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from golden import testdata

pa = pytest.importorskip("pyarrow")
import pyarrow.dataset as ds  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

sys.path.insert(0, str(testdata.parent / "examples" / "cluster"))
import check  # noqa: E402
import corpus  # noqa: E402

MODEL = testdata / "models" / "tiny-bert"
TEXTS = ["A cat", "The old man", "", "It rains", "Yes"]


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "source").mkdir()
    return tmp_path / "source", tmp_path / "target"


def write(path: Path, texts=TEXTS, first=0, **options) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.string())
    pq.write_table(pa.table({"id": list(range(first, first + len(text))), "text": text}), path, **options)


def job_of(folders, **options):
    return corpus.Job(str(folders[0]), str(folders[1]), str(MODEL), "float32", **options)


def run(job):
    """Returns the failures."""
    model = corpus.load(job)
    return [failure for name in corpus.unfinished(job) for failure in corpus.embed_file(model, job, name)[1]]


def not_utf8(texts):
    """An Arrow array of strings with bytes that are none, as files from other programs have."""
    return pa.array(texts, pa.binary()).view(pa.string())


def test_each_row_gets_the_vector_of_its_text(folders):
    write(folders[0] / "a.parquet")
    write(folders[0] / "b.parquet", ["Two", "more"], first=5)
    job = job_of(folders)
    assert run(job) == []
    table = pq.read_table(folders[1]).sort_by("id")
    assert table["id"].to_pylist() == list(range(7))
    wanted = corpus.load(job).embed([*TEXTS, "Two", "more"])
    np.testing.assert_array_equal(np.array(table["embedding"].to_pylist(), np.float32), wanted)
    assert corpus.unfinished(job) == []


def test_more_rows_than_a_batch_keep_their_order(folders, monkeypatch):
    monkeypatch.setattr(corpus, "ROWS", 3)
    write(folders[0] / "a.parquet", [f"text {i}" for i in range(10)])
    job = job_of(folders)
    run(job)
    wanted = corpus.load(job).embed([f"text {i}" for i in range(10)])
    np.testing.assert_array_equal(np.array(pq.read_table(folders[1])["embedding"].to_pylist(), np.float32), wanted)


def test_partitioned_folders_keep_their_structure(folders):
    write(folders[0] / "year=2023" / "a.parquet", ["Old"])
    write(folders[0] / "year=2024" / "month=1" / "a.parquet", ["New"], first=1)
    run(job_of(folders))
    assert corpus.names_in(str(folders[1])) == ["year=2023/a.parquet", "year=2024/month=1/a.parquet"]
    found = ds.dataset(folders[1] / "year=2023", partitioning="hive").to_table()
    assert found.num_rows == 1


def test_the_part_of_a_killed_worker_is_read_by_no_reader_and_removed_by_the_program(folders):
    write(folders[0] / "a.parquet")
    job = job_of(folders)
    run(job)
    part = folders[1] / f"_part-{job.run}-0123"
    whole = (folders[1] / "a.parquet").read_bytes()
    part.write_bytes(whole)
    other = folders[1] / "_part-another-run"
    other.write_bytes(whole[:1000])
    assert pq.read_table(folders[1]).num_rows == len(TEXTS)
    assert ds.dataset(folders[1], format="parquet").to_table().num_rows == len(TEXTS)
    assert corpus.names_in(str(folders[1])) == ["a.parquet"]
    corpus.remove_parts(job)
    assert not part.exists() and other.exists()


def test_a_failure_leaves_no_part(folders):
    write(folders[0] / "a.parquet", ["Yes", None])
    with pytest.raises(corpus.CorpusError, match="a.parquet, row 1: the text is null"):
        run(job_of(folders))
    assert list(folders[1].rglob("*")) == []


def test_nulls_and_bytes_that_are_not_utf8_get_a_null_if_asked(folders):
    write(folders[0] / "a.parquet", not_utf8([b"Yes", None, b"caf\xe9", b"No"]))
    with pytest.raises(corpus.CorpusError, match="row 1"):
        run(job_of(folders))
    job = job_of(folders, on_error="null")
    assert [str(each) for each in run(job)] == [
        "a.parquet, row 1: the text is null",
        "a.parquet, row 2: byte 3 of the text is not UTF-8",
    ]
    found = pq.read_table(folders[1], columns=["embedding"])["embedding"].to_pylist()
    assert [each is None for each in found] == [False, True, True, False]
    np.testing.assert_array_equal(np.array([found[0], found[3]], np.float32), corpus.load(job).embed(["Yes", "No"]))


@pytest.mark.parametrize("kind", [pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_of_other_types_have_the_same_vectors(folders, kind):
    write(folders[0] / "a.parquet", pa.array(TEXTS).cast(pa.binary()).cast(kind) if pa.types.is_binary(kind) else pa.array(TEXTS).cast(kind))
    job = job_of(folders)
    run(job)
    found = np.array(pq.read_table(folders[1])["embedding"].to_pylist(), np.float32)
    np.testing.assert_array_equal(found, corpus.load(job).embed(TEXTS))


def test_vectors_of_another_model_or_type_of_weights_are_not_mixed(folders):
    write(folders[0] / "a.parquet")
    run(job_of(folders))
    write(folders[0] / "b.parquet")
    other = corpus.Job(str(folders[0]), str(folders[1]), str(MODEL), "int8")
    with pytest.raises(corpus.CorpusError, match="a.parquet has other vectors .weights float32 instead of int8."):
        corpus.unfinished(other)
    with pytest.raises(corpus.CorpusError, match="model "):
        corpus.unfinished(corpus.Job(str(folders[0]), str(folders[1]), str(MODEL.parent / "tiny-distilbert"), "float32"))
    assert corpus.unfinished(job_of(folders)) == ["b.parquet"]


def test_a_worker_with_another_model_is_refused_from_the_first_file_on(folders, tmp_path):
    write(folders[0] / "a.parquet")
    model = tmp_path / "model"
    shutil.copytree(MODEL, model)
    job = corpus.Job(str(folders[0]), str(folders[1]), str(model), "float32")
    assert corpus.unfinished(job) == ["a.parquet"]
    sent = pickle.loads(pickle.dumps(job))
    shutil.rmtree(model)
    shutil.copytree(MODEL.parent / "tiny-distilbert", model)
    with pytest.raises(corpus.CorpusError, match="has other files"):
        corpus.load(sent)


def test_damaged_files_and_models_are_named(folders, tmp_path, monkeypatch):
    source, target = folders
    write(source / "a.parquet", [f"text {i}" for i in range(2000)], compression="snappy")
    whole = (source / "a.parquet").read_bytes()
    (source / "a.parquet").write_bytes(whole[:100] + bytes(byte ^ 255 for byte in whole[100:4000]) + whole[4000:])
    with pytest.raises(corpus.CorpusError, match="source/a.parquet to .*target: "):
        run(job_of(folders, on_error="null"))
    assert list(target.rglob("*")) == []
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    (source / "a.parquet").write_bytes(whole[:footer] + b"\xff" * 50 + whole[footer + 50 :])
    with pytest.raises(corpus.CorpusError, match="source/a.parquet cannot be read as Parquet: "):
        run(job_of(folders))
    (source / "a.parquet").write_bytes(whole)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(corpus.CorpusError, match="file is a file, expected a folder"):
        run(job_of((source, tmp_path / "file")))
    with pytest.raises(corpus.CorpusError, match="/proc/none: "):
        run(job_of((source, "/proc/none")))
    with pytest.raises(corpus.CorpusError, match="foo://x: "):
        run(job_of((source, "foo://x")))
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in (str(source), "~/source"):
        with pytest.raises(corpus.CorpusError, match="source on .*config.json"):
            corpus.job_of(corpus.parser("").parse_args([str(source), str(target), "--model", given]))
    pq.write_table(pa.table([pa.array(TEXTS), pa.array(TEXTS)], names=["text", "text"]), source / "b.parquet")
    with pytest.raises(corpus.CorpusError, match="b.parquet has several columns 'text'"):
        run(job_of(folders))


def test_wrong_sources_are_errors_before_anything_is_written(folders, tmp_path):
    source, target = folders
    with pytest.raises(corpus.CorpusError, match="has no Parquet file"):
        run(job_of(folders))
    with pytest.raises(corpus.CorpusError, match="is not a folder"):
        run(job_of((tmp_path / "nothing", target)))
    write(source / "a.parquet")
    with pytest.raises(corpus.CorpusError, match="has no column 'body', expected one of id, text"):
        run(job_of(folders, column="body"))
    with pytest.raises(corpus.CorpusError, match="column 'id' has type int64"):
        run(job_of(folders, column="id"))
    with pytest.raises(corpus.CorpusError, match="already has a column 'text'"):
        run(job_of(folders, output_column="text"))
    for of in ((source, source), (source, source / "out"), (source, f"{source}/../source"), (source, tmp_path)):
        with pytest.raises(corpus.CorpusError, match="the target is the source, or one is inside the other"):
            run(job_of(of))
    (source / "b.parquet").write_bytes(b"PK")
    with pytest.raises(corpus.CorpusError, match="b.parquet cannot be read as Parquet"):
        run(job_of(folders))
    assert not target.exists()


def test_columns_of_other_names_and_the_compression_are_kept(folders):
    write(folders[0] / "a.parquet", compression={"id": "none", "text": "gzip"})
    run(job_of(folders, output_column="vector"))
    group = pq.read_metadata(folders[1] / "a.parquet").row_group(0)
    assert {group.column(i).path_in_schema: group.column(i).compression for i in range(3)} == {
        "id": "UNCOMPRESSED",
        "text": "GZIP",
        "vector.list.element": "GZIP",
    }


def test_an_empty_file_gives_an_empty_file(folders):
    write(folders[0] / "a.parquet", [])
    run(job_of(folders))
    assert pq.read_table(folders[1]).column_names == ["id", "text", "embedding"]


def test_auto_takes_the_weights_of_the_target_or_measures(folders, capsys):
    write(folders[0] / "a.parquet")
    given = [str(folders[0]), str(folders[1]), "--model", str(MODEL)]
    job, names = corpus.job_of(corpus.parser("").parse_args(given))
    assert job.weights in ("int8", "float32") and names == ["a.parquet"]
    assert f"weights {job.weights}, the faster ones on this machine" in capsys.readouterr().out
    run(job_of(folders))
    write(folders[0] / "b.parquet")
    job, names = corpus.job_of(corpus.parser("").parse_args(given))
    assert (job.weights, names) == ("float32", ["b.parquet"])
    assert "weights float32, as in the target" in capsys.readouterr().out
    with pytest.raises(corpus.CorpusError, match="is not a folder with a model"):
        corpus.job_of(argparse.Namespace(model=str(folders[0] / "nothing")))


def test_errors_of_workers_are_found_in_the_text_of_their_traceback():
    with pytest.raises(corpus.CorpusError, match="^a.parquet, row 1: the text is null$"), corpus.errors_of_workers():
        raise RuntimeError("Traceback\n  …\ncorpus.CorpusError: a.parquet, row 1: the text is null\n\n  at org.apache.spark")
    with pytest.raises(ZeroDivisionError), corpus.errors_of_workers():
        raise ZeroDivisionError


def test_a_finished_job_is_reported_as_such(capsys):
    corpus.report(0, 0, [])
    assert capsys.readouterr().out == "all files of the source are done\n"


def test_the_report_counts_failures_by_file(capsys):
    failures = [corpus.Failure("a.parquet", row, "the text is null") for row in range(25)]
    corpus.report(100, 2, failures)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "a.parquet, row 0: the text is null"
    assert said[-2:] == ["and 5 more: 5 in a.parquet", "100 rows in 2 files, 25 of them without a vector"]


def test_the_workers_of_a_program_are_measured() -> None:
    worker = "import time; x = bytearray(100_000_000); t = time.process_time()\nwhile time.process_time() - t < 1: pass\nprint('used', flush=True); time.sleep(60)"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {worker!r}, 'ray::MapWorker'])"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as running:
        workers = check.Workers(running, "'ray::MapWorker'")  # as written in the program only
        named = check.Workers(running, "ray::MapWorker")
        workers.start()
        named.start()
        assert running.stdout is not None
        assert running.stdout.readline() == "used\n"
        time.sleep(2)
        children = check.children(running.pid)
        for each in children:
            os.kill(each, signal.SIGKILL)
        running.wait()
        for each in (workers, named):
            each.over.set()
            each.join()
    assert not workers.memory
    assert list(named.memory) == children
    assert 95 < next(iter(named.memory.values())) < 200
    assert 1 <= sum(named.seconds.values()) < 5
    assert str(named).startswith("workers ")
