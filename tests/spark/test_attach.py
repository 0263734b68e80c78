"""What `attach` asks of a query, on the local session; `attached_on_spark.py` has it on a cluster."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.runtimes.spark.attached_query import trigger_s


def test_a_query_without_executors_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    numbers = spark.readStream.format("rate").load()
    query = numbers.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    try:
        with pytest.raises(InputError, match=r"'local\[.*start the application on a cluster"):
            penstock.attach(spark, query, objective=Objective(response_time_s=5))
    finally:
        query.stop()


@pytest.mark.parametrize(("every", "seconds"), [("10 seconds", 10.0), (None, 0.0)])
def test_how_often_a_query_is_triggered_is_known(
    spark: SparkSession, tmp_path: Path, every: str | None, seconds: float
) -> None:
    writer = spark.readStream.format("rate").load().writeStream.format("noop")
    writer = writer.option("checkpointLocation", str(tmp_path / "c"))
    query = (writer.trigger(processingTime=every) if every else writer).start()
    try:
        assert trigger_s(query) == seconds
    finally:
        query.stop()
