"""A streaming query that Penstock did not build, as a runtime: what Spark reports of any query, and how
many executors its application has.
"""

import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.domain.deployment import Replicas
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import Migrate, Verdict
from penstock.runtimes.spark.executors import Executor, executors
from penstock.runtimes.spark.measures import skew, utilisations, waits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OPERATOR = "query"
_ARRIVES_WITHIN_S = 120.0  # an executor that is not there by then may never come: others may be asked for


class QueryMonitor:
    """Observes a query that Penstock did not build."""

    def __init__(self, actuator: "ExecutorActuator", query: "StreamingQuery", cores: int) -> None:
        self._actuator, self._query, self._cores = actuator, query, cores
        self._last_batch = -1
        self._last_s = self._measured_s = time.time()
        self._busy: dict[str, float] = {}
        self._began_s: float | None = None  # of the latest batch
        self._idle = False  # at the last look

    def observe(self) -> ApplicationObservation:
        now_s = time.time()
        interval_s, self._last_s = now_s - self._last_s, now_s
        there = self._actuator.executors()
        loads = utilisations(
            self._busy, {one.id: one.busy_s / self._cores for one in there.values()}, interval_s
        )
        self._busy = {one.id: one.busy_s / self._cores for one in there.values()}
        done = [p for p in self._query.recentProgress if p["batchId"] > self._last_batch]
        if done:
            self._last_batch = int(done[-1]["batchId"])
        # Spark reports micro-batches that ended, and nothing while there is no input: then the query
        # counts as measured, with nothing to do. One that hangs in a micro-batch is not, whatever its
        # executors do: their tasks may belong to another query.
        self._idle = self._query.isActive and not self._query.status["isDataAvailable"]
        if done or self._idle:
            self._measured_s = now_s
        elif loads is not None and not any(loads):
            loads = None  # a task counts when it ends: where none did, utilisation is unknown
        rows = sum(int(p["numInputRows"]) for p in done)
        batches = [self._batch(p) for p in done]
        took = waits((one.stay_s, ((0.0, one.tuples),)) for one in batches)
        worked = [one for one in batches if one.tuples]
        operator = OperatorObservation(
            operator=OPERATOR,
            at_s=self._measured_s,
            replicas=Replicas((max(len(there), 1),)),
            arrival_rate=rows / interval_s if done and interval_s > 0 else None,
            response_time_s=took.mean_s,
            utilisation=max(loads) if loads else None,
            response_time_p95_s=took.p95_s,
            skew=skew(loads),
            utilisation_by_replica=loads,
            batch_s=sum(one.batch_s for one in worked) / len(worked) if worked else None,
            batch_tuples=sum(one.tuples for one in worked) / len(worked) if worked else None,
        )
        return ApplicationObservation(
            at_s=now_s,
            response_time_s=took.mean_s,
            operators=(operator,),
            source_rate=operator.arrival_rate,
            reconfiguring=(OPERATOR,) if self._actuator.changing(len(there)) else (),
        )

    def _batch(self, progress: Any) -> "_Batch":
        """A tuple waits half the time between two batches for its own to begin, and then until it ends."""
        batch_s = float(progress["durationMs"]["triggerExecution"]) / 1000
        began_s = datetime.fromisoformat(progress["timestamp"]).timestamp()
        before_s, self._began_s = self._began_s, began_s
        # Without a batch before it, or after a time without input, nothing has been waiting for long.
        period_s = batch_s if before_s is None or self._idle else max(began_s - before_s, 0.0)
        return _Batch(int(progress["numInputRows"]), batch_s, period_s / 2 + batch_s)


class _Batch(NamedTuple):
    tuples: int
    batch_s: float
    stay_s: float  # of a tuple, from its arrival to the end of its batch, on average


class ExecutorActuator:
    """Changes how many executors the application has."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark
        self._wanted: int | None = None
        self._asked_s = 0.0

    def executors(self) -> dict[str, Executor]:
        """Those that are there, by id."""
        return executors(self._spark)

    def changing(self, there: int) -> bool:
        """Whether executors that were asked for are still to come, or to go."""
        if self._wanted is None or there == self._wanted:
            return False
        return time.time() - self._asked_s < _ARRIVES_WITHIN_S

    def apply(self, verdict: Verdict) -> None:
        for request in verdict.granted:
            if not isinstance(request, Migrate):
                self.resize(request.target.total)

    def resize(self, wanted: int) -> None:
        """From now on Spark keeps to this number."""
        self._wanted, self._asked_s = wanted, time.time()
        context: Any = self._spark.sparkContext._jsc.sc()
        jvm: Any = self._spark.sparkContext._jvm
        no_preferences = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(jvm.java.util.HashMap())
        context.requestTotalExecutors(wanted, 0, no_preferences)
        # Asking for fewer stops none: the newest are stopped one by one.
        for executor in sorted(self.executors(), key=int)[wanted:]:
            context.killExecutor(executor)
