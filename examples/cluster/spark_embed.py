"""Sentence embeddings of a corpus on a Spark cluster.

spark-submit --py-files corpus.py spark_embed.py SOURCE TARGET --model FOLDER [options of corpus.py]
Every node needs attn and the model at the same path. Run again, it does the files that are not done. Set spark.task.cpus to --threads.
"""

import json
import sys
import threading

import pyarrow as pa
from pyspark.sql import SparkSession

import corpus


def main():
    options = corpus.parser(__doc__).parse_args()
    job, names = corpus.job_of(options)
    if not names:
        return corpus.report(0, 0, [])
    spark = SparkSession.builder.appName("attn").getOrCreate()
    rows_done, files_done = spark.sparkContext.accumulator(0), spark.sparkContext.accumulator(0)

    def embed(batches):
        model = corpus.load(job)
        for batch in batches:
            for name in batch["name"].to_pylist():
                rows, failures = corpus.embed_file(model, job, name)
                rows_done.add(rows)
                files_done.add(1)
                yield pa.RecordBatch.from_pydict({"rows": [rows], "failures": [json.dumps([vars(each) for each in failures])]})

    # One task per file, so that losing a worker repeats at most one file.
    files = spark.sparkContext.parallelize([(name,) for name in names], len(names)).toDF("name string")
    progress, over = corpus.Progress(len(names)), threading.Event()

    def watch():
        while not over.wait(1):
            progress.update(files_done.value, rows_done.value)

    threading.Thread(target=watch, daemon=True).start()
    try:
        with corpus.errors_of_workers():
            done = files.mapInArrow(embed, "rows long, failures string").collect()
    finally:
        over.set()
        corpus.remove_parts(job)
    failures = [corpus.Failure(**failure) for each in done for failure in json.loads(each["failures"])]
    return corpus.report(sum(each["rows"] for each in done), len(names), failures)


if __name__ == "__main__":
    try:
        main()
    except corpus.CorpusError as error:
        sys.exit(f"spark_embed: {error}")
