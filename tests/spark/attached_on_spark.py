"""Queries that know nothing of Penstock, whose executors come and go: the contract of runtimes, and `attach`.

`test_in_own_process.py` runs it in a process of its own: a session on a cluster cannot stand
beside the tests' local one.
"""

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyarrow import RecordBatch
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock.bench.attached import process_of
from penstock.control.journal import Header, Ticked
from penstock.control.ports import Actuator, Monitor
from penstock.domain.objective import Objective
from penstock.java import environment
from penstock.journal_file import read_journal
from penstock.runtimes.spark.attached_executors import OPERATOR, ExecutorActuator
from penstock.runtimes.spark.attached_query import QueryMonitor
from penstock.runtimes.spark.cluster import LocalCluster
from penstock.testing.runtime import RuntimeContract

SLOW_MACHINE_S = 120.0
_SOON_THERE = "-XX:TieredStopAtLevel=1"  # on few cores the second compiler takes more than it gives
Runtime = tuple[QueryMonitor, ExecutorActuator]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    os.environ.update({**environment(), "SPARK_LOCAL_IP": "127.0.0.1"})
    place = tmp_path_factory.mktemp("cluster")
    with LocalCluster(place, room=2, guarded=False) as cluster:  # and one more
        spark = (
            SparkSession.builder.master(cluster.master_url)
            .config("spark.executor.cores", "1")
            .config("spark.executor.memory", "512m")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.extraJavaOptions", _SOON_THERE)
            .config("spark.executor.extraJavaOptions", _SOON_THERE)
            .config("spark.ui.port", "0")
            .config("spark.ui.showConsoleProgress", "false")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("FATAL")
        yield spark
        spark.stop()


@pytest.fixture(scope="module")
def actuator(spark: SparkSession) -> ExecutorActuator:
    return ExecutorActuator(spark)


@pytest.fixture(scope="class")
def runtime(
    spark: SparkSession, actuator: ExecutorActuator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runtime]:
    numbers = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
    checkpoint = str(tmp_path_factory.mktemp("checkpoint"))
    query = numbers.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    yield QueryMonitor(actuator, [query], slots=1), actuator
    query.stop()


def _until(actuator: ExecutorActuator, enough: Callable[[set[str]], bool]) -> None:
    deadline = time.monotonic() + SLOW_MACHINE_S
    while not enough(set(actuator.executors())):
        assert time.monotonic() < deadline, actuator.executors()
        actuator.poll()
        time.sleep(0.2)


def test_executors_are_sent_away_and_one_that_dies_is_replaced(
    spark: SparkSession, actuator: ExecutorActuator
) -> None:
    _until(actuator, lambda there: len(there) == 3)
    actuator.resize(1)
    _until(actuator, lambda there: there == {"0"} and not actuator.changing)
    os.kill(process_of(spark.sparkContext.applicationId, "0"), signal.SIGKILL)
    _until(actuator, lambda there: len(there) == 1 and "0" not in there)


class TestAttachedQuery(RuntimeContract):
    operators = (OPERATOR,)
    scaled = OPERATOR
    changes_within = int(SLOW_MACHINE_S)

    @pytest.fixture(autouse=True)
    def _shared(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def start(self) -> tuple[Monitor, Actuator]:
        return self.runtime

    def advance(self) -> None:
        time.sleep(1)


def _waiting(numbers: DataFrame) -> DataFrame:
    def slowly(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        for batch in batches:
            time.sleep(0.004 * batch.num_rows)
            yield batch

    return numbers.mapInArrow(slowly, numbers.schema)


def test_a_busy_query_gets_more_executors_gives_one_back_and_all_is_written_down(
    spark: SparkSession, actuator: ExecutorActuator, tmp_path: Path
) -> None:
    actuator.resize(1)
    _until(actuator, lambda there: len(there) == 1 and not actuator.changing)
    numbers = spark.readStream.format("rate").option("rowsPerSecond", 300).option("numPartitions", 6).load()
    writer = _waiting(numbers).writeStream.format("noop")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    attached = penstock.attach(
        spark,
        query,
        objective=Objective(response_time_s=5),
        max_replicas=3,
        interval_s=3,
        out=tmp_path / "run",
    )
    _until(attached.actuator, lambda there: len(there) >= 2)
    attached.stop()
    assert attached.problem is None, attached.problem
    _one_leaves_amid_the_work(spark, query, actuator)
    assert query.exception() is None
    query.stop()
    _says_why_and_what_was_seen(tmp_path / "run")


def _one_leaves_amid_the_work(spark: SparkSession, query: StreamingQuery, actuator: ExecutorActuator) -> None:
    """It ends what it has begun: no task fails."""
    there = len(actuator.executors())
    actuator.resize(there - 1)
    _until(actuator, lambda left: len(left) == there - 1 and not actuator.changing)
    began, deadline = _batch(query), time.monotonic() + SLOW_MACHINE_S
    while _batch(query) == began:
        assert time.monotonic() < deadline, "no other micro-batch"
        time.sleep(0.2)
    status = spark.sparkContext.statusTracker()
    jobs = [status.getJobInfo(number) for number in status.getJobIdsForGroup(str(query.runId))]
    stages = [status.getStageInfo(number) for job in jobs if job for number in job.stageIds]
    failed = [stage.numFailedTasks for stage in stages if stage]
    assert failed, "no job of the query is known"
    assert not any(failed)


def _batch(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])


def _says_why_and_what_was_seen(run: Path) -> None:
    header, *rounds = read_journal(run / "journal.jsonl")
    assert isinstance(header, Header)
    granted = [entry.plan.granted for entry in rounds if isinstance(entry, Ticked) and entry.plan.granted]
    assert re.search("expected costs to come|too little", granted[0][0].reason)
    seen = [one for entry in rounds if isinstance(entry, Ticked) for one in entry.seen.operators]
    assert {one.useful_replicas for one in seen if one.service_time_s is not None} == {6}  # its partitions
    waits_s = [one.service_time_s for one in seen if one.service_time_s is not None]
    assert 0.004 <= min(waits_s) < 0.02  # as the query waits, and what Spark adds to a task
    assert json.loads((run / "summary.json").read_text())["tuples"] > 0
