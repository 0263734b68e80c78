"""`penstock.attach` on a plain query of Spark's own: two objectives, the same load, and a killed executor.

The query waits 20 ms for every tuple, as for an answer of a service, in eight partitions; it knows nothing
of Penstock. Waiting takes no CPU, so two cores are enough for several executors.
"""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.bench.figure import Figure
from penstock.domain.objective import Objective
from penstock.java import environment, standard_error_in
from penstock.live.attach import Attached, attach
from penstock.live.record import Interval, late_pct
from penstock.reports.attached import write_report
from penstock.runtimes.spark.attached_executors import ExecutorActuator
from penstock.runtimes.spark.cluster import LOOPBACK, ClusterError, LocalCluster
from penstock.runtimes.spark.executors import executors

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OBJECTIVES_S = (3.0, 40.0)
STAGES = len(OBJECTIVES_S) + 1
_PARTITIONS = 8
_WAIT_S = 0.02  # per tuple
# Tuples/s: seven tenths of what one executor can do, which is enough for a slack objective only. At the four
# fifths up to which replicas are used, chance would decide.
_RATE = 36
_EXECUTORS = 4  # at most
_WARM_S = 15.0  # a query has run for a while when somebody attaches to it
_MEASURED_S = 110.0  # under each objective
_SETTLED_S = 60.0  # of them, before it is judged, as everywhere: decisions begin after half a minute
_COMES_WITHIN_S = 60.0  # an executor in the place of a killed one
_MOST_LATE_PCT = 5.0


def run_attached(*, stage: Callable[[str], None]) -> Iterator[Figure]:
    """One objective after the other on one cluster; nothing else should run meanwhile."""
    yield Figure(name="machine load before", value=os.getloadavg()[0], unit="")
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as place,
        LocalCluster(Path(place) / "cluster", room=_EXECUTORS, guarded=False) as cluster,
    ):
        spark = _session(cluster.master_url, Path(place) / "spark.log")
        try:
            used: list[float] = []
            for objective_s in OBJECTIVES_S:
                stage(f"an objective of {objective_s:g} s, {_WARM_S + _MEASURED_S:.0f} s")
                query = _query(spark, Path(place) / f"checkpoint-{objective_s:g}")
                _one_executor(spark, seconds=_WARM_S)
                attached = _attached(spark, query, objective_s, Path(place) / f"run-{objective_s:g}")
                time.sleep(_MEASURED_S)
                kept = attached.kept
                judged = [one for one in list(kept.latest) if one.seen.at_s - kept.began_s > _SETTLED_S]
                used.append(executors_of(judged))
                yield from figures(objective_s, judged)
                if objective_s == OBJECTIVES_S[-1]:
                    stage("a killed executor")
                    yield _replaced(spark)
                attached.stop()
                query.stop()
                if attached.problem is not None:
                    raise ClusterError(f"the controller stopped: {attached.problem}")
            saved = used[0] - used[-1]
            yield Figure(name="executors saved by the slack objective", value=saved, unit="", at_least=0.5)
        finally:
            spark.stop()


def executors_of(intervals: Sequence[Interval]) -> float:
    counts = [operator.replicas.total for one in intervals for operator in one.seen.operators]
    return sum(counts) / len(counts) if counts else 0.0


def figures(objective_s: float, intervals: Sequence[Interval]) -> Iterator[Figure]:
    """Executors and response times of one objective."""
    name = f"objective {objective_s:g} s"
    responses = [one.seen.response_time_s for one in intervals if one.seen.response_time_s is not None]
    yield Figure(name=f"{name}: executors (mean)", value=executors_of(intervals), unit="")
    if responses:
        yield Figure(name=f"{name}: response time, mean", value=sum(responses) / len(responses), unit="s")
        yield Figure(name=f"{name}: response time, worst interval", value=max(responses), unit="s")
    late = late_pct(intervals, objective_s)
    yield Figure(
        name=f"{name}: intervals outside after the first minute",
        value=100.0 if late is None else late,
        unit="%",
        at_most=_MOST_LATE_PCT,
    )


def waiting(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
    """An answer for every tuple, after a while."""
    for batch in batches:
        time.sleep(_WAIT_S * batch.num_rows)
        yield batch


def _session(master_url: str, log: Path) -> "SparkSession":
    """As people start one; decommissioning is off, as it is by default."""
    os.environ.update({**environment(), "SPARK_LOCAL_IP": LOOPBACK})
    from pyspark.sql import SparkSession

    settings = {
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "FATAL",
        "spark.cores.max": str(_EXECUTORS),
    }
    builder = SparkSession.builder.master(master_url).appName("attached")
    for key, value in settings.items():
        builder = builder.config(key, value)
    with standard_error_in(log):
        return builder.getOrCreate()


def _query(spark: "SparkSession", checkpoint: Path) -> "StreamingQuery":
    numbers = spark.readStream.format("rate").option("rowsPerSecond", _RATE)
    tuples = numbers.option("numPartitions", _PARTITIONS).load()
    answers = tuples.mapInArrow(waiting, tuples.schema)
    return answers.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()


def _one_executor(spark: "SparkSession", *, seconds: float) -> None:
    """What the application has when it is attached to; a master gives as many as there is room for."""
    executors_there = ExecutorActuator(spark)
    executors_there.resize(1)
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        executors_there.poll()
        time.sleep(0.5)


def _attached(spark: "SparkSession", query: "StreamingQuery", objective_s: float, out: Path) -> Attached:
    return attach(
        spark,
        query,
        objective=Objective(response_time_s=objective_s),
        max_replicas=_EXECUTORS,
        out=out,
        ended=write_report,
    )


def _replaced(spark: "SparkSession") -> Figure:
    """How long one is missing that was killed; infinite where none has come in its place."""
    before = executors(spark)
    victim = min(before)
    os.kill(process_of(spark.sparkContext.applicationId, victim), signal.SIGKILL)
    killed_s, missing_s = time.monotonic(), float("inf")
    while missing_s == float("inf") and time.monotonic() - killed_s < _COMES_WITHIN_S:
        time.sleep(0.1)
        there = executors(spark)
        if victim not in there and len(there) >= len(before):
            missing_s = time.monotonic() - killed_s
    return Figure(
        name="a killed executor is replaced after", value=missing_s, unit="s", at_most=_COMES_WITHIN_S
    )


def process_of(application: str | None, executor: str) -> int:
    """The process of an executor on this machine."""
    wanted = {f"--executor-id {executor} ", f"--app-id {application} "}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended
            continue
        if all(word in words for word in wanted):
            return int(path.parent.name)
    raise ClusterError(f"executor {executor} of {application}: no such process")
