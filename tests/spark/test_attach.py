"""A query that knows nothing of Penstock, under control in one line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.control.journal import Header, Ticked
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.journal_file import read_journal
from penstock.runtimes.spark.attached_query import trigger_s

# A process of its own: a session on a cluster cannot stand beside the tests' local one.
_PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from penstock.runtimes.spark.cluster import LocalCluster
from penstock.java import environment

work = Path(sys.argv[1])
os.environ.update({**environment(), "SPARK_LOCAL_IP": "127.0.0.1"})

def slowly(batches):
    for batch in batches:
        time.sleep(0.004 * batch.num_rows)
        yield batch

def until(actuator, enough):
    deadline = time.monotonic() + 120
    while not enough(set(actuator.executors())):
        assert time.monotonic() < deadline, actuator.executors()
        actuator.poll()
        time.sleep(0.5)

with LocalCluster(work / "cluster", room=2) as cluster:  # and one more
    from pyspark.sql import SparkSession
    import penstock
    from penstock.domain.objective import Objective
    from penstock.bench.attached import process_of
    from penstock.runtimes.spark.attached_executors import ExecutorActuator
    spark = (
        SparkSession.builder.master(cluster.master_url)
        .config("spark.executor.cores", "1").config("spark.executor.memory", "512m")
        .config("spark.driver.host", "127.0.0.1").config("spark.ui.port", "0")
        .config("spark.ui.showConsoleProgress", "false").getOrCreate()
    )
    spark.sparkContext.setLogLevel("FATAL")
    actuator = ExecutorActuator(spark)
    until(actuator, lambda there: len(there) == 3)
    actuator.resize(1)
    until(actuator, lambda there: there == {"0"} and not actuator.changing)
    os.kill(process_of(spark.sparkContext.applicationId, "0"), signal.SIGKILL)
    until(actuator, lambda there: len(there) == 1 and "0" not in there)
    numbers = spark.readStream.format("rate").option("rowsPerSecond", 300).option("numPartitions", 6).load()
    query = (
        numbers.mapInArrow(slowly, numbers.schema).writeStream.format("noop")
        .option("checkpointLocation", str(work / "checkpoint")).start()
    )
    attached = penstock.attach(
        spark, query, objective=Objective(response_time_s=5), max_replicas=3, interval_s=3,
        out=work / "run",
    )
    until(attached.actuator, lambda there: len(there) >= 2)
    attached.stop()
    assert attached.problem is None, attached.problem
    query.stop()
    spark.stop()
"""


def test_a_busy_query_gets_more_executors_a_killed_one_is_replaced_and_all_is_written_down(
    tmp_path: Path,
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    header, *rounds = read_journal(tmp_path / "run" / "journal.jsonl")
    assert isinstance(header, Header)
    granted = [entry.plan.granted for entry in rounds if isinstance(entry, Ticked) and entry.plan.granted]
    assert "needed for 5 s" in granted[0][0].reason
    seen = [one for entry in rounds if isinstance(entry, Ticked) for one in entry.seen.operators]
    assert {one.useful_replicas for one in seen if one.service_time_s is not None} == {6}  # its partitions
    waits_s = [one.service_time_s for one in seen if one.service_time_s is not None]
    assert 0.004 <= min(waits_s) < 0.02  # as the query waits, and what Spark adds to a task
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["tuples"] > 0


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
