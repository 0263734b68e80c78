"""New executors of a chain, warm before they get a share of its work.

The first task of a new executor takes seconds, and a micro-batch would wait for it. So its Python is
started at once, by a job that takes no planning and holds it until a trial is planned: the chain's
operators as a batch, on a few tuples, whose results go nowhere. While one job follows the other no
micro-batch begins: Spark would give its tasks to whoever is free.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.runtimes.spark.log_source import schema_of
from penstock.runtimes.spark.taps import REPORT_SCHEMA, exit_tap, let_go, python_started, started, trial_tap
from penstock.runtimes.spark.topology import Chain

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile
    from pyspark.sql import DataFrame, SparkSession

_STARTS, _START_S = 10, 2.0  # of Python on a new executor: how often, how long apart
_GIVEN_OUT_S = 1.0  # for a trial's tasks
_LOOK_S = 0.02

Sample = tuple[Path, str]  # a file with a few tuples of a stream, and their schema


@dataclass(frozen=True, kw_only=True)
class WarmUp:
    """Of some executors of one chain."""

    spark: "SparkSession"
    chain: Chain
    profile: "ResourceProfile | None"  # None: a local master has no executors to choose among
    executors: int  # of the chain, warm ones too
    cold: frozenset[str] | None  # None: all of them
    place: Path  # a folder of its own, that executors see
    samples: Callable[[Path], Mapping[str, Sample]]  # of the chain's inputs; raises where there are none yet
    resting: Callable[[], AbstractContextManager[None]]  # no micro-batch begins
    worked: Callable[[], set[str]]  # executors that have had real work

    def run(self) -> None:
        """Returns when they are warm, or nothing more can be done about it."""
        held = [_in_background(self._start_python)]
        try:
            # Before the first tuples there is nothing to try; then at least Python is started.
            with suppress(Exception):
                trial = self._trial()
                for _ in range(_STARTS):
                    if self.profile is None or _is_soon(self._are_held, _START_S):
                        break
                    # One that has just come takes no tasks yet, and the warm ones have done them all.
                    held.append(_in_background(self._start_python))
                self._try_out(trial, held)
        finally:
            let_go(self.place)
            for thread in held:
                thread.join()

    def _are_held(self) -> bool:
        """All that are cold, but for those that were given real work before they could be held."""
        worked = self.worked() & (self.cold or frozenset())
        return len(started(self.place) | worked) >= (self.executors if self.cold is None else len(self.cold))

    def _start_python(self) -> None:
        if self.profile is not None:
            tasks = self.spark.sparkContext.parallelize(range(self.executors), self.executors)
            tasks.withResources(self.profile).foreachPartition(python_started(self.cold, str(self.place)))

    def _trial(self) -> "DataFrame":
        """The operators up to one with state as a batch, planned but not begun."""
        apart = self.spark.newSession()  # its own settings: others start queries meanwhile
        apart.conf.set("spark.sql.shuffle.partitions", str(self.executors))
        frames = []
        for sample, schema in self.samples(self.place).values():
            tap = trial_tap(str(sample), self.cold)
            each = apart.range(0, self.executors, 1, self.executors)
            frames.append(each.mapInArrow(tap, schema_of(schema), profile=self.profile))
        for operator in self.chain.operators:
            if operator.stateful:  # Spark has state in streams only
                break
            frames = [operator.transform(*frames)]
        trial = frames[0].mapInArrow(exit_tap(str(self.place)), REPORT_SCHEMA, profile=self.profile)
        java: Any = trial
        java._jdf.queryExecution().executedPlan()
        return trial

    def _try_out(self, trial: "DataFrame", held: Sequence[threading.Thread]) -> None:
        with self.resting():
            let_go(self.place)
            for thread in held:
                thread.join()
            tried = _in_background(lambda: self._collect(trial))
            # Once one of its tasks is given out, every executor that was free has one.
            _is_soon(lambda: not tried.is_alive() or self._is_given_out(), _GIVEN_OUT_S)
        tried.join()

    def _collect(self, trial: "DataFrame") -> None:
        self.spark.sparkContext.setJobGroup(self.place.name, "a trial")
        trial.collect()

    def _is_given_out(self) -> bool:
        tracker = self.spark.sparkContext.statusTracker()
        numbers = tracker.getJobIdsForGroup(self.place.name)
        jobs = [job for number in numbers if (job := tracker.getJobInfo(number))]
        stages = [tracker.getStageInfo(number) for job in jobs for number in job.stageIds]
        return any(stage and stage.numActiveTasks + stage.numCompletedTasks > 0 for stage in stages)


def _in_background(work: Callable[[], object]) -> threading.Thread:
    def done() -> None:
        with suppress(Exception):  # Spark stops meanwhile, for one; then nobody needs it any more
            work()

    thread = threading.Thread(target=done, daemon=True)
    thread.start()
    return thread


def _is_soon(done: Callable[[], bool], within_s: float) -> bool:
    """Whether something comes true within this time."""
    deadline_s = time.monotonic() + within_s
    while not (there := done()) and time.monotonic() < deadline_s:
        time.sleep(_LOOK_S)
    return there
