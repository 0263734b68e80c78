"""One query with an operator per stage against a query per operator: the same applications, the same load."""

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from penstock.bench.cpu_time import CpuMeter
from penstock.bench.figure import Figure
from penstock.bench.light_load import Steady, place
from penstock.bench.one_replica import OneReplica, is_good
from penstock.reconfigure.words import Record
from penstock.runtimes.spark.cluster import ClusterError
from penstock.runtimes.spark.measures import waits
from penstock.runtimes.spark.monitor import SparkMonitor
from penstock.runtimes.spark.running import BatchReport, Measurements
from penstock.runtimes.spark.stream_log import Origins

# Replicas and trigger as `penstock run` has them.
_PACED = Steady(application="paced", scaled="heavy", tuples=60.0, max_replicas=3, trigger_s=0.5)
# 1, 8 and 2 ms one after the other leave room for 91 tuples/s; 8 ms alone, for 125.
_NEARLY_FULL = replace(_PACED, tuples=85.0)
APPLICATIONS = (
    _PACED,
    Steady(
        application="top-routes",
        scaled="countByWindow+partialRank",
        tuples=300.0,
        max_replicas=3,
        trigger_s=0.5,
    ),
)
STAGES, NEARLY_FULL_STAGES = 2 * len(APPLICATIONS), 2
_SETTLED_S = 30.0  # the first micro-batches are slow
_MEASURED_S = 40.0
_CHANGES = 3
_CHANGE_FELT_S = 2.0  # after it has ended
_KILLS = 2
_AFTER_KILL_S = 20.0  # from one to the next, or to the end
_INSIDE_S = 5.0
_OBSERVED_EVERY_S = 5.0  # as a controller does

Left = Sequence[tuple[float, Origins]]  # (when tuples left the application, when they had come)


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What one form of an application takes; times in seconds."""

    p50_s: float
    p95_s: float
    cpu_s_per_1000: float  # of all processes, for a thousand tuples
    changes: int  # that were asked for
    first_tasks_s: tuple[float, ...]  # from a grant, one each; a change that failed has none
    longest_in_change_s: float | None
    replaced_s: tuple[float, ...]  # from a kill, one each
    back_s: tuple[float, ...]  # from a kill until all tuples are inside again
    longest_after_kill_s: float | None


def run_queries(
    *, stage: Callable[[str], None], applications: Sequence[Steady] = APPLICATIONS
) -> Iterator[Figure]:
    yield Figure(name="machine load before", value=os.getloadavg()[0], unit="")
    for steady in applications:
        yield from _both_forms(stage, steady, changes=_CHANGES, kills=_KILLS)


def run_nearly_full(*, stage: Callable[[str], None]) -> Iterator[Figure]:
    """Operators that wait, with little time to spare where they take turns; nothing changes."""
    yield Figure(name="machine load before", value=os.getloadavg()[0], unit="")
    yield from _both_forms(stage, _NEARLY_FULL, changes=0, kills=0)


def _both_forms(
    stage: Callable[[str], None], steady: Steady, *, changes: int, kills: int
) -> Iterator[Figure]:
    """Every run in a process of its own: the second in one would find the driver's Java warm."""
    found: list[Costs] = []
    for what, joined in (("joined", True), ("apart", False)):
        stage(f"{steady.application}, {what}: {steady.tuples:g} tuples/s")
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
            course = alone.submit(_run, replace(steady, joined=joined), changes, kills).result()
        found.append(costs(course))
    yield from figures(steady.application, *found)


_WHAT: tuple[tuple[str, Callable[[Costs], float | None]], ...] = (
    ("response time p50", lambda one: one.p50_s),
    ("response time p95", lambda one: one.p95_s),
    ("CPU per 1,000 tuples", lambda one: one.cpu_s_per_1000),
    (f"grant to first task, median of {_CHANGES}", lambda one: _median(one.first_tasks_s)),
    ("longest response time in a change", lambda one: one.longest_in_change_s),
    (f"a killed executor is replaced, median of {_KILLS}", lambda one: _median(one.replaced_s)),
    (f"inside {_INSIDE_S:g} s again after a kill, longest", lambda one: max(one.back_s, default=None)),
    ("longest response time after a kill", lambda one: one.longest_after_kill_s),
)


def figures(application: str, joined: Costs, apart: Costs) -> Iterator[Figure]:
    """Both forms, and one over the other where both have a value."""
    for form, costs in (("joined", joined), ("apart", apart)):
        if len(costs.first_tasks_s) < costs.changes:
            name = f"{application}, {form}: changes that succeeded"
            yield Figure(name=name, value=len(costs.first_tasks_s), unit="", at_least=costs.changes)
    for what, value_of in _WHAT:
        together, alone = value_of(joined), value_of(apart)
        for form, seconds in (("joined", together), ("apart", alone)):
            if seconds is not None:
                yield Figure(name=f"{application}, {form}: {what}", value=seconds, unit="s")
        if together is not None and alone:
            yield Figure(name=f"{application}, joined over apart: {what}", value=together / alone, unit="x")


def _median(seconds: Sequence[float]) -> float | None:
    return median(seconds) if seconds else None


@dataclass
class _Kept(Measurements):
    """Everything that was ever reported, for after the monitor has taken it."""

    every: list[BatchReport] = field(default_factory=list)

    def add(self, report: BatchReport) -> None:
        self.every.append(report)
        super().add(report)


@dataclass
class _Looks:
    """Looks at processes and queries now and then, whoever polls how often."""

    meter: CpuMeter
    monitor: SparkMonitor | None = None  # once there is something to see
    _metered_s: float = 0.0
    _observed_s: float = 0.0

    def __call__(self) -> None:
        now_s = time.monotonic()
        if now_s - self._metered_s >= 1:
            self._metered_s = now_s
            self.meter.look()
        if self.monitor is not None and now_s - self._observed_s >= _OBSERVED_EVERY_S:
            self._observed_s = now_s
            self.monitor.observe()


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What happened in one run; moments as `time.time` gives them."""

    began_s: float  # the time without changes
    ended_s: float
    cpu_s: float  # used in it
    records: tuple[Record, ...]  # of the replicas that came
    killed_s: tuple[float, ...]
    replaced_after_s: tuple[float, ...]
    left: Left


def _run(steady: Steady, changes: int, kills: int) -> Course:
    """All processes are this one, which feeds and drives, and those it starts."""
    looks, kept = _Looks(CpuMeter(os.getpid())), _Kept()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as work, place(Path(work), steady) as where:
        where.running.measurements = kept
        one = OneReplica(where, on_poll=looks)
        with one.at_work():
            looks.monitor = one.monitor()
            one.idle(_SETTLED_S)
            began_s, cpu_began_s = time.time(), looks.meter.look()
            one.idle(_MEASURED_S)
            ended_s, cpu_ended_s = time.time(), looks.meter.look()
            records = tuple(one.added() for _ in range(changes))
            killed_s, replaced_after_s = [], []
            for _ in range(kills):
                killed_s.append(time.time())
                replaced_after_s.append(one.killed())
                one.idle(_AFTER_KILL_S - replaced_after_s[-1])
        sinks = where.running.app.sinks.values()
        last = {name for name, chain in where.running.chains.items() if chain.output in sinks}
    return Course(
        began_s=began_s,
        ended_s=ended_s,
        cpu_s=cpu_ended_s - cpu_began_s,
        records=records,
        killed_s=tuple(killed_s),
        replaced_after_s=tuple(replaced_after_s),
        left=[(report.ended_s, report.finished) for report in kept.every if report.chain in last],
    )


def costs(course: Course) -> Costs:
    left = course.left
    usual = _between(left, course.began_s, course.ended_s)
    took, tuples = waits(usual), sum(tuples for _, came in usual for _, tuples in came)
    if took.p50_s is None or took.p95_s is None:
        raise ClusterError(f"nothing left the application in {course.ended_s - course.began_s:.0f} s")
    changes = [(record.granted_at_s, record.ended_at_s + _CHANGE_FELT_S) for record in course.records]
    kills = [(killed_s, killed_s + _AFTER_KILL_S) for killed_s in course.killed_s]
    return Costs(
        p50_s=took.p50_s,
        p95_s=took.p95_s,
        cpu_s_per_1000=1000 * course.cpu_s / tuples,
        changes=len(course.records),
        first_tasks_s=tuple(
            record.first_task_at_s - record.granted_at_s
            for record in course.records
            if is_good(record) and record.first_task_at_s is not None
        ),
        longest_in_change_s=max((_longest_s(_between(left, *change)) for change in changes), default=None),
        replaced_s=course.replaced_after_s,
        back_s=tuple(_back_s(left, *kill) for kill in kills),
        longest_after_kill_s=max((_longest_s(_between(left, *kill)) for kill in kills), default=None),
    )


def _between(left: Left, began_s: float, ended_s: float) -> Left:
    """What left in this time."""
    return [(at_s, came) for at_s, came in left if began_s <= at_s < ended_s]


def _longest_s(left: Left) -> float:
    return max((at_s - came_s for at_s, came in left for came_s, tuples in came if tuples), default=0.0)


def _back_s(left: Left, killed_s: float, ended_s: float) -> float:
    """From a kill until the last that took too long have left; all the time if nothing left after them."""
    after = _between(left, killed_s, ended_s)
    late = [at_s for at_s, came in after if _longest_s([(at_s, came)]) > _INSIDE_S]
    if not after or late[-1:] == [after[-1][0]]:
        return ended_s - killed_s
    return max(late, default=killed_s) - killed_s
