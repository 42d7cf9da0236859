"""Sentence embeddings of a corpus on a Spark cluster.

spark-submit --py-files corpus.py spark_embed.py SOURCE TARGET --model FOLDER [--threads N] [--weights int8|float32]
Every node needs attn and the model at the same path. Run again, it does the files that are not done.
"""

import argparse

import pyarrow as pa
from pyspark.sql import SparkSession

import corpus


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=1, help="of a worker; set spark.task.cpus to as many")
    parser.add_argument("--weights", default="int8", choices=["int8", "float32"])
    options = parser.parse_args()

    def embed(batches):
        model = corpus.load(options.model, options.weights, options.threads)
        for batch in batches:
            rows = [corpus.embed_file(model, options.source, options.target, name) for name in batch["name"].to_pylist()]
            yield pa.RecordBatch.from_pydict({"rows": rows})

    spark = SparkSession.builder.appName("attn").getOrCreate()
    names = corpus.unfinished(options.source, options.target)
    # One task per file, so that losing a worker repeats at most one file.
    files = spark.sparkContext.parallelize([(name,) for name in names], max(1, len(names))).toDF("name string")
    done = files.mapInArrow(embed, "rows long").groupBy().sum().first()[0]
    print(f"{done or 0} rows in {len(names)} files")


if __name__ == "__main__":
    main()
