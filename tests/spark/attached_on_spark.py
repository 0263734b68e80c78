"""The contract of runtimes on a query that knows nothing of Penstock, whose executors come and go.

`test_in_own_process.py` runs it in a process of its own: a session on a cluster cannot stand
beside the tests' local one.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.control.ports import Actuator, Monitor
from penstock.java import environment
from penstock.runtimes.spark.attached_executors import OPERATOR, ExecutorActuator
from penstock.runtimes.spark.attached_query import QueryMonitor
from penstock.runtimes.spark.cluster import LocalCluster
from penstock.testing.runtime import RuntimeContract

SLOW_MACHINE_S = 120.0
Runtime = tuple[QueryMonitor, ExecutorActuator]


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    work: Path = tmp_path_factory.mktemp("run")
    os.environ.update({**environment(), "SPARK_LOCAL_IP": "127.0.0.1"})
    with LocalCluster(work / "cluster", room=1) as cluster:  # and one more
        spark = (
            SparkSession.builder.master(cluster.master_url)
            .config("spark.executor.cores", "1")
            .config("spark.executor.memory", "512m")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.ui.port", "0")
            .config("spark.ui.showConsoleProgress", "false")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("FATAL")
        actuator = ExecutorActuator(spark)
        _until_there(actuator, 2)
        numbers = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
        query = (
            numbers.writeStream.format("noop").option("checkpointLocation", str(work / "checkpoint")).start()
        )
        yield QueryMonitor(actuator, [query], slots=1), actuator
        query.stop()
        spark.stop()


def _until_there(actuator: ExecutorActuator, count: int) -> None:
    deadline = time.monotonic() + SLOW_MACHINE_S
    while len(actuator.executors()) != count:
        assert time.monotonic() < deadline, f"{len(actuator.executors())} executors, not {count}"
        time.sleep(0.5)


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
