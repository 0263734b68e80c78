"""Streaming queries that Penstock did not build, as a runtime: what Spark reports of any query.

Queries of one application share its executors, so they are seen as one operator: their arrivals, their
work and what waits for them add up, and the slowest of them is the one whose response time counts.
"""

import time
from collections import deque
from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.domain.deployment import Replicas
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.perf.overhead import TaskTime, told
from penstock.runtimes.spark.attached_executors import OPERATOR, ExecutorActuator
from penstock.runtimes.spark.measures import (
    Waits,
    mean_of,
    skew,
    total_of,
    utilisations,
    waits,
    with_overload,
)
from penstock.runtimes.spark.progress import Reported, reported
from penstock.runtimes.spark.query_work import Work, last_job, work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


_BATCHES = 50  # the latest, that tell what a batch's tasks take whatever is in them


class _Seen(NamedTuple):
    """One query since the last look at it."""

    measured_s: float  # when something was last known of it
    ended: tuple[tuple[float, int], ...]  # (time a tuple stayed, tuples) of every batch with any
    batches_s: tuple[float, ...]  # how long those batches took
    rate: float | None  # tuples/s
    behind: float | None  # tuples that wait beyond the batch that runs
    busy_s: float  # in tasks
    task_time: TaskTime | None  # where batches have told it
    tasks: int  # that its widest stage can run at the same time; 0: no batch has ended yet

    @property
    def took(self) -> Waits:
        return waits((stay_s, ((0.0, tuples),)) for stay_s, tuples in self.ended)

    @property
    def tuples(self) -> int:
        return sum(tuples for _, tuples in self.ended)


class _Watched:
    """One query, from look to look."""

    def __init__(self, query: "StreamingQuery", spark: "SparkSession") -> None:
        self.query, self._spark = query, spark
        known = [reported(one) for one in query.recentProgress[-1:]]
        self.last: Reported | None = known[0] if known else None  # the latest batch that ended
        self._since_s = self.last.began_s if self.last else None  # arrivals are counted from here on
        self._idle = False  # at the last look
        self._measured_s = time.time()
        # Rows count from now on, so work does too: all that was done before would be far too much for them.
        self._last_job = self._job_of(self.last.batch) if self.last else -1
        self._sizes: deque[tuple[float, float]] = deque(maxlen=_BATCHES)  # (tuples, seconds in tasks)
        self._task_time: TaskTime | None = None
        self._look_back()
        self._tasks = 0
        self._behind = self.last.behind if self.last else None
        self.trigger_s = trigger_s(query)

    def look(self, now_s: float, interval_s: float) -> _Seen:
        before = self.last.batch if self.last else -1
        done = [reported(one) for one in self.query.recentProgress if one["batchId"] > before]
        if done and done[0].batch > before + 1:
            # Spark keeps 100 reports, less than an interval of short batches has: begin anew after the gap.
            self.last, self._since_s = None, None
        # Spark reports micro-batches that ended, and nothing while there is no input: then the query
        # counts as measured, with nothing to do. One that hangs in a micro-batch is not, whatever its
        # executors do: their tasks may belong to another query.
        was_idle, self._idle = self._idle, self._is_idle()
        if done or self._idle:
            self._measured_s = now_s
        quiet = was_idle or self._idle
        rate = self._rate(done)
        ended = tuple((self._stay_s(one, quiet), one.rows) for one in done)
        if self._idle:
            self._behind = None if self._behind is None else 0.0
            rate = 0.0 if not done else rate
            self._since_s = max(self._since_s or 0.0, now_s - interval_s)
        busy_s = 0.0
        if done:
            worked = self._work(done, after_job=self._last_job)
            self._last_job = worked.last_job
            # An empty batch is no measure, and what it took was no work on tuples.
            empty = [one.batch for one in done if not one.rows]
            busy_s = worked.busy_s - sum(worked.by_batch.get(batch, 0.0) for batch in empty)
            if len(empty) < len(done):
                self._tasks = worked.tasks or self._tasks
        return _Seen(
            measured_s=self._measured_s,
            ended=tuple((stay_s, tuples) for stay_s, tuples in ended if tuples),
            batches_s=tuple(one.took_s for one in done if one.rows),
            rate=rate,
            behind=self._behind,
            busy_s=busy_s,
            task_time=self._task_time,
            tasks=self._tasks,
        )

    def _look_back(self) -> None:
        """At the latest batches before it was attached to: they may tell more than those to come."""
        before = [reported(one) for one in self.query.recentProgress[-_BATCHES:]]
        if before:
            self._work(before, after_job=self._job_of(before[0].batch - 1))

    def _work(self, done: Sequence[Reported], *, after_job: int) -> Work:
        worked = work(
            self._spark,
            str(self.query.runId),
            after_job=after_job,
            first=done[0].batch,
            last=done[-1].batch,
        )
        self._sizes.extend(
            (one.rows, worked.by_batch[one.batch])
            for one in done
            if one.rows and one.batch in worked.by_batch
        )
        known = self._task_time
        # Once told it stays so while batches are all alike, and as long as they are as it says.
        stays = known if known is not None and known.fits(self._sizes) else None
        self._task_time = told(self._sizes) or stays
        return worked

    def _job_of(self, batch: int) -> int:
        return last_job(self._spark, str(self.query.runId), batch=batch)

    def _is_idle(self) -> bool:
        return bool(self.query.isActive and not self.query.status["isDataAvailable"])

    def _rate(self, done: Sequence[Reported]) -> float | None:
        """What was taken, and by how much the lag has grown, from the beginning of one batch to another."""
        if not done:
            return None
        rows, since_s, behind = sum(one.rows for one in done), self._since_s, self._behind
        if since_s is None:  # what the first batch took has come before anything is known of
            rows, since_s, behind = rows - done[0].rows, done[0].began_s, done[0].behind
        grown = 0.0
        if behind is not None and done[-1].behind is not None:
            grown = done[-1].behind - behind
        self._since_s = done[-1].began_s
        if not done[-1].began_s > since_s:
            return None
        return max(rows + grown, 0.0) / (done[-1].began_s - since_s)

    def _stay_s(self, batch: Reported, quiet: bool) -> float:
        """A tuple waits half the time between two batches for its own to begin, and then until it ends.

        Where batches leave tuples behind, it first waits until those before it are taken.
        """
        before, self.last = self.last, batch
        # Without a batch before it, or after a time without input, nothing has been waiting for long.
        period_s = batch.took_s if before is None or quiet else max(batch.began_s - before.began_s, 0.0)
        self._behind = batch.behind
        queued_s = batch.behind * period_s / batch.rows if batch.behind and batch.rows else 0.0
        return queued_s + period_s / 2 + batch.took_s

    def waiting(self, now_s: float) -> tuple[float, int] | None:
        """(time since then at least, tuples) of what the last batch left."""
        if self.last is None or not self._behind:
            return None
        return now_s - self.last.began_s, round(self._behind)


def trigger_s(query: "StreamingQuery") -> float:
    """How long after one micro-batch the next begins at the earliest; 0 where it begins at once.

    Spark has no public API for it.
    """
    try:
        java: Any = query._jsq
        return float(java.streamingQuery().trigger().intervalMs()) / 1000
    except Exception:  # another kind of trigger, or of query
        return 0.0


class QueryMonitor:
    """Observes queries that Penstock did not build, on executors that run so many tasks each at a time."""

    def __init__(self, actuator: ExecutorActuator, queries: "Sequence[StreamingQuery]", slots: int) -> None:
        self._actuator, self._slots = actuator, slots
        self._queries = [_Watched(query, actuator.spark) for query in queries]
        self._last_s = time.time()
        self._busy: dict[str, float] = {}
        self._finished: list[tuple[float, int]] = []

    def observe(self) -> ApplicationObservation:
        now_s = time.time()
        interval_s, self._last_s = now_s - self._last_s, now_s
        self._actuator.poll()
        there = self._actuator.executors()
        busy = {one.id: one.busy_s / self._slots for one in there.values()}
        loads, self._busy = utilisations(self._busy, busy, interval_s), busy
        active = [one for one in self._queries if one.query.isActive] or self._queries
        seen = [one.look(now_s, interval_s) for one in active]
        measured_s = min(one.measured_s for one in seen)
        if measured_s < now_s and loads is not None and not any(loads):
            loads = None  # a task counts when it ends: where none did, utilisation is unknown
        self._finished += [stayed for one in seen for stayed in one.ended]
        slowest = max(seen, key=lambda one: one.took.mean_s or 0.0)
        took, rate, service_s = slowest.took, total_of(one.rate for one in seen), self._service_s(seen)
        loads = with_overload(loads, rate, service_s)
        operator = OperatorObservation(
            operator=OPERATOR,
            at_s=measured_s,
            replicas=Replicas((max(len(there), 1),)),
            arrival_rate=rate,
            response_time_s=took.mean_s,
            utilisation=max(loads) if loads else None,
            response_time_p95_s=took.p95_s,
            service_time_s=service_s,
            backlog=total_of(one.behind for one in seen),
            skew=skew(loads),
            utilisation_by_replica=loads,
            batch_s=mean_of(slowest.batches_s),
            batch_tuples=_tuples_in_a_batch(slowest, rate),
            batch_tasks_s=self._tasks_s(seen, slowest),
            trigger_s=max((one.trigger_s for one in active), default=None),
            ready_s=self._actuator.ready_s,
            useful_replicas=self._useful(seen),
        )
        return ApplicationObservation(
            at_s=now_s,
            response_time_s=took.mean_s,
            operators=(operator,),
            source_rate=rate,
            response_time_p50_s=took.p50_s,
            response_time_p95_s=took.p95_s,
            response_time_p99_s=took.p99_s,
            reconfiguring=(OPERATOR,) if self._actuator.changing else (),
        )

    def finished(self) -> list[tuple[float, int]]:
        """(response time, tuples) of all that was processed since the last call."""
        finished, self._finished = self._finished, []
        return finished

    def unfinished(self) -> list[tuple[float, int]]:
        """(time they have waited at least, tuples) of what sources are known to hold."""
        waiting = [one.waiting(time.time()) for one in self._queries]
        return [one for one in waiting if one is not None]

    def _service_s(self, seen: Sequence[_Seen]) -> float | None:
        """Of a tuple, by what all batches have told, or else by all the time that tasks took now."""
        tuples = sum(one.tuples for one in seen)
        busy_s = sum(
            one.busy_s if one.task_time is None else one.task_time.tuple_s * one.tuples for one in seen
        )
        return busy_s / self._slots / tuples if tuples and busy_s > 0 else None

    def _tasks_s(self, seen: Sequence[_Seen], slowest: _Seen) -> float | None:
        """What tasks take whatever is in them, of all queries, while one batch of the slowest lasts."""
        batches = len(slowest.batches_s)
        told_s = [one.task_time.batch_s * len(one.batches_s) for one in seen if one.task_time is not None]
        return sum(told_s) / batches / self._slots if told_s and batches else None

    def _useful(self, seen: Sequence[_Seen]) -> int | None:
        """Queries run at the same time."""
        if not all(one.tasks for one in seen):
            return None
        return ceil(sum(one.tasks for one in seen) / self._slots)


def _tuples_in_a_batch(slowest: _Seen, rate: float | None) -> float | None:
    """Of all queries, by the time that one of the slowest takes: they share the executors."""
    own = slowest.tuples / len(slowest.batches_s) if slowest.batches_s else None
    if own is None or not slowest.rate or not rate:
        return own
    return own * rate / slowest.rate
