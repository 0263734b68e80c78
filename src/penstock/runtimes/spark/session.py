"""A Spark session in which every operator can have executors of its own."""

import logging
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.java import environment, standard_error_in
from penstock.java_errors import in_one_line
from penstock.runtimes.spark.callbacks import guard_callbacks
from penstock.runtimes.spark.cluster import LOOPBACK, POOL, SPEED_VARIABLE, ClusterError, is_loopback
from penstock.runtimes.spark.daemon import DAEMON, MODULES_VARIABLE
from penstock.runtimes.spark.log_source import LogSource
from penstock.runtimes.spark.private import PAGES, Private, folder_of_process, java_options, logging_option

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile
    from pyspark.sql import SparkSession

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
EXECUTOR_MEMORY = "512m"
# What control depends on, and nobody else may set.
OURS = (
    "spark.decommission.",
    "spark.dynamicAllocation.",
    "spark.executor.cores",
    "spark.executor.instances",
    "spark.executor.resource.",
    "spark.executorEnv.PYTHONPATH",
    "spark.master",
    "spark.pyspark.",
    "spark.python.daemon.module",
    "spark.scheduler.mode",
    "spark.sql.shuffle.partitions",
    "spark.sql.streaming.stateStore.providerClass",
    "spark.task.",
)
# What keeps others out of an embedded cluster.
GUARDED = ("spark.authenticate", *PAGES)
_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
# On one machine with few cores: compiling the expressions in SQL costs every new executor .7 s of CPU.
EMBEDDED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def session(
    name: str,
    master_url: str,
    *,
    work: Path,
    tagged: bool = False,
    speedup: float = 1.0,
    variables: Mapping[str, str] | None = None,
    executor_options: str = "",
    most_executors: int | None = None,
    conf: Mapping[str, str] | None = None,
    private: Private | None = None,
) -> "SparkSession":
    """Without executors at first. Workers carry tags (`tagged`), or are all alike, of this speed.

    `variables` are in the environment of executors; `executor_options` are Java's. Spark's own
    allocation, where it decides, has no more than `most_executors` of each profile. `conf` comes last,
    but for what is `private` of the cluster.
    """
    check_alone()
    wanted = ("SPARK_HOME", "SPARK_LAUNCHER_OPTS", "PYSPARK_PYTHON")
    os.environ.update({key: value for key, value in environment().items() if key in wanted})
    from pyspark.sql import SparkSession

    settings = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.initialExecutors": "0",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.decommission.enabled": "true",
        "spark.executor.cores": "1",
        "spark.executor.memory": EXECUTOR_MEMORY,
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        # A commit writes what has changed, not the whole state.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # The default one forks dozens of processes for every micro-batch on a local disk.
        "spark.sql.streaming.checkpointFileManagerClass": _FILES,
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.sql.adaptive.enabled": "false",
        "spark.locality.wait": "0",
        # Losing a replica must not end the application.
        "spark.task.maxFailures": "20",
        "spark.stage.maxConsecutiveAttempts": "20",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "FATAL",  # the queries and the protocol report what goes wrong
        "spark.ui.port": "0",
        # A regular expression in Spark recurses deeply when a query stops in the middle of a batch.
        # On few cores the second compiler takes more than it gives.
        "spark.driver.extraJavaOptions": "-Xss8m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executor.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {executor_options}",
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.python.daemon.module": DAEMON,
        # Else functions in SQL get a second daemon, beside the one for those on RDDs.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        # Small messages over TCP wait 40 ms for each other (Nagle's algorithm, delayed acknowledgements).
        "spark.python.unix.domain.socket.enabled": "true",
    }
    for variable, value in (variables or {}).items():
        settings[f"spark.executorEnv.{variable}"] = value
    if most_executors is not None:
        settings["spark.dynamicAllocation.maxExecutors"] = str(most_executors)
    if tagged:
        settings[f"spark.executor.resource.{POOL}.amount"] = "1"
    else:
        settings[f"spark.executorEnv.{SPEED_VARIABLE}"] = str(speedup)
    if is_loopback(master_url):
        settings |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
        os.environ["SPARK_LOCAL_IP"] = LOOPBACK
    if private is not None:
        settings["spark.local.dir"] = str(folder_of_process())
        for key, folder in zip(_JAVA_OPTIONS, (folder_of_process(), private.folder), strict=True):
            settings[key] = " ".join((settings[key], *java_options(folder)))
        settings["spark.executor.extraJavaOptions"] += f" {logging_option(private.folder)}"
    for key, value in (conf or {}).items():
        settings[key] = f"{settings[key]} {value}" if key in _JAVA_OPTIONS else value
    settings |= {"spark.master": master_url, "spark.app.name": name}
    work.mkdir(parents=True, exist_ok=True)
    log = work / "spark.log"
    try:
        with standard_error_in(log):
            _start_java(settings)
            builder = SparkSession.builder
            for key, value in (settings | (private.settings if private is not None else {})).items():
                builder = builder.config(key, value)
            spark = builder.getOrCreate()
    except Exception as problem:  # Java's, py4j's or Spark's own: it did not start
        what = "the driver's Java has ended" if java_has_ended() else "Spark did not start"
        raise ClusterError(f"{what}: {in_one_line(problem)}; see {log}") from problem
    _say_nothing(spark)
    spark.dataSource.register(LogSource)
    return spark


def _say_nothing(spark: "SparkSession") -> None:
    """Where Java ends, Python's servers would print traces: it is told in one line elsewhere."""
    server: Any = spark.sparkContext._accumulatorServer
    server.handle_error = lambda *_: logging.getLogger(__name__).debug("accumulators", exc_info=True)


def _start_java(settings: Mapping[str, str]) -> None:
    """The driver's, unless it runs already; these settings stand on its command line, for all to read."""
    from pyspark import SparkConf, SparkContext

    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, value)
    SparkContext._ensure_initialized(conf=conf)
    guard_callbacks(SparkContext._gateway)


def stop(spark: "SparkSession") -> None:
    """The end of a session, also of one whose Java has ended before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where that is so, Spark says it in many lines
        try:
            spark.stop()
        except OSError:
            if not java_has_ended():
                raise
    if java_has_ended():
        _forget_java()


def java_has_ended() -> bool:
    """Whether the driver's Java was there, and is no more: killed, or out of memory."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None


def _forget_java() -> None:
    """So that another session in this process gets one of its own."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None


def check_alone() -> None:
    """A process has one Spark context: a second session would get the settings of the first."""
    from pyspark import SparkContext

    present = SparkContext._active_spark_context
    if present is not None:
        raise ClusterError(
            f"this process has a Spark session already, on {present.master!r}: stop it first, "
            "or start Penstock from a process of its own"
        )


def python_variables(modules: Iterable[str], places: Iterable[str]) -> dict[str, str]:
    """With which Python workers load these `modules`, found in these `places`, before their first task."""
    known = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    return {MODULES_VARIABLE: " ".join(modules), "PYTHONPATH": os.pathsep.join((*places, *known))}


def profile(tag: str | None = None, *, memory: str = EXECUTOR_MEMORY) -> "ResourceProfile":
    """Executors of one chain; with a tag, on workers that carry it and on no others."""
    from pyspark.resource import ExecutorResourceRequests, ResourceProfileBuilder, TaskResourceRequests

    wanted = ExecutorResourceRequests().memory(memory).cores(1)
    if tag is not None:
        wanted = wanted.resource(tag, 1)
    return ResourceProfileBuilder().require(wanted).require(TaskResourceRequests().cpus(1)).build
