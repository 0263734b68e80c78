"""An application of a user's own, with Spark's sources and sinks, from the command line."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

MODULE = """
from penstock import App, Objective
from pyspark.sql import functions as F

PARTS = "timestamp timestamp, parts array<struct<x: long, at: timestamp>>"  # as Spark's own sources have them


def doubled(frame):
    return frame.mapInArrow(_double, f"value long, twice long, {PARTS}")


def _double(batches):
    import pyarrow.compute as pc

    for batch in batches:
        values = batch.column("value")
        columns = [values, pc.multiply(values, 2), batch.column("timestamp"), batch.column("parts")]
        yield type(batch).from_arrays(columns, names=["value", "twice", "timestamp", "parts"])


def rate(spark):
    numbers = spark.readStream.format("rate").option("rowsPerSecond", 40).load()
    part = F.struct(F.col("value").alias("x"), F.col("timestamp").alias("at"))
    return numbers.withColumn("parts", F.array(part))


app = App("mine", objective=Objective(response_time_s=6))
results = app.operator("double", doubled, app.source("numbers", reader=rate), max_replicas=2)
app.sink("pairs", results, writer=lambda batch, number: batch.write.mode("append").parquet("pairs"))
app.sink("kept", results)
"""


def test_it_is_read_by_spark_and_written_by_its_own_writer(tmp_path: Path) -> None:
    from pyarrow import parquet

    (tmp_path / "mine.py").write_text(MODULE)
    command = [sys.executable, "-m", "penstock", "run", "mine:app", "--minutes", "0.5", "--out", "run"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    rows = parquet.read_table(tmp_path / "pairs").to_pylist()
    values = sorted(row["value"] for row in rows)
    assert values == list(range(len(values)))  # every number once
    assert len(values) > 100  # of 1,200 at the most: a slow machine has to start executors first
    assert all(row["twice"] == 2 * row["value"] for row in rows)
    assert all(row["parts"] == [{"x": row["value"], "at": row["timestamp"]}] for row in rows)
    assert "writers put them" in ran.stdout
    kept = parquet.read_table(tmp_path / "run" / "results" / "kept").column("value").to_pylist()
    # Every number once, though the writer was past them; the last batch it had may not have been published.
    assert sorted(kept) == values[: len(kept)]
    assert len(kept) > 100
