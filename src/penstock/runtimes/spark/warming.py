"""New executors of a chain, warm before they get a share of its work.

The first task of a new executor takes a second or more, and a micro-batch would wait for it. So its
Python is started at once, by a job that takes no planning and holds it until a trial is planned and
begun: the chain's operators as a batch, on a few tuples, whose results go nowhere. Spark gives out the
tasks of earlier jobs first, so an executor that is let go takes one of the trial's, unless a micro-batch
that began earlier has more tasks than replicas.
"""

import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.runtimes.spark.executors import executors
from penstock.runtimes.spark.log_source import struct_of
from penstock.runtimes.spark.taps import (
    REPORT_SCHEMA,
    STARTED,
    TRIED,
    let_go,
    marked,
    python_started,
    trial_tap,
    tried_tap,
)
from penstock.runtimes.spark.topology import Chain

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile
    from pyspark.sql import DataFrame, SparkSession

_STARTS, _START_S = 10, 2.0  # of Python on a new executor: how often, how long apart
_NEXT_S = 20.0  # for one more of the first executors of all
_FIRST_S, _AGAIN_S = 0.5, 0.1  # that warm executors leave it the tasks
_BEGUN_S = 1.0  # a trial, at the latest
_QUEUED_S = 0.05  # from the beginning of a stage until its tasks can be given out
_LOOK_S = 0.02

Sample = tuple[Path, str]  # a file with a few tuples of a stream, and their schema


@dataclass(frozen=True, kw_only=True)
class WarmUp:
    """Of some executors of one chain."""

    spark: "SparkSession"
    chain: Chain
    profile: "ResourceProfile | None"  # None: a local master has no executors to choose among
    executors: int  # of the chain, warm ones too
    cold: frozenset[str] | None  # None: all of them, which are the first
    place: Path  # a folder of its own, that executors see; it is gone when they have done with it
    samples: Callable[[Path], Mapping[str, Sample]]  # of the chain's inputs; raises where there are none yet
    worked: Callable[[], set[str]]  # executors that have had real work
    one_by_one: AbstractContextManager[object]  # trials of the chain

    def run(self) -> None:
        """Returns when they are warm, or nothing more can be done about it. Raises what keeps the first ones
        of all from starting Python: then nothing works."""
        start = _in_background(lambda: self._start_python(_FIRST_S))
        jobs = [start]
        try:
            if self.cold is None:
                self._wait_for_first(start)
            trial = self._trial()
            for _ in range(_STARTS):
                if self.profile is None or self.cold is None or _is_soon(self._are_held, _START_S):
                    break
                # The warm ones have taken all tasks before it could take one.
                jobs.append(_in_background(lambda: self._start_python(_AGAIN_S)))
            with self.one_by_one:
                if self.cold is None or marked(self.place, STARTED):
                    jobs.append(_in_background(lambda: self._collect(trial)))
                    self._wait_for(jobs[-1])
        except Exception:  # before the first tuples there is nothing to try; then at least Python is started
            let_go(self.place)
            _join(jobs)
        finally:
            let_go(self.place)
            _in_background(lambda: self._clean_up_after(jobs))
        if self.cold is None and start.problem is not None:
            raise start.problem

    def _wait_for_first(self, start: "_Job") -> None:
        """Until all have come, or no more do: on a full cluster those that are there have to do."""
        came, deadline_s = 0, inf
        while start.is_alive() and not self._are_held() and time.monotonic() < deadline_s:
            if len(held := marked(self.place, STARTED)) > came:
                came, deadline_s = len(held), time.monotonic() + _NEXT_S
            time.sleep(_LOOK_S)

    def _are_held(self) -> bool:
        """All that are cold, but for those that died, or got real work before they could be held."""
        held = marked(self.place, STARTED)
        if self.cold is None:
            return len(held) >= self.executors
        missing = self.cold - held - self.worked()
        return not missing or missing.isdisjoint(executors(self.spark))

    def _start_python(self, patience_s: float) -> None:
        if self.profile is not None:
            tasks = self.spark.sparkContext.parallelize(range(self.executors), self.executors)
            started = python_started(self.cold, str(self.place), patience_s)
            tasks.withResources(self.profile).foreachPartition(started)

    def _trial(self) -> "DataFrame":
        """The operators up to one with state as a batch, planned but not begun."""
        apart = self.spark.newSession()  # its own settings: others start queries meanwhile
        apart.conf.set("spark.sql.shuffle.partitions", str(self.executors))
        frames = []
        for sample, schema in self.samples(self.place).values():
            wanted = struct_of(schema)
            tap = trial_tap(str(sample), wanted, self.cold, str(self.place))
            each = apart.range(0, self.executors, 1, self.executors)
            frames.append(each.mapInArrow(tap, wanted, profile=self.profile))
        for operator in self.chain.operators:
            if operator.stateful:  # Spark has state in streams only
                break
            frames = [operator.transform(*frames)]
        trial = frames[0].mapInArrow(tried_tap(str(self.place)), REPORT_SCHEMA, profile=self.profile)
        java: Any = trial
        java._jdf.queryExecution().executedPlan()
        return trial

    def _wait_for(self, trial: threading.Thread) -> None:
        _is_soon(lambda: not trial.is_alive() or self._has_begun(), _BEGUN_S)
        time.sleep(_QUEUED_S)
        let_go(self.place)
        # The tasks of those that are warm may have to wait until a micro-batch ends, and nobody for them.
        while trial.is_alive() and not (self.cold and self._are_tried()):
            time.sleep(_LOOK_S)

    def _are_tried(self) -> bool:
        return marked(self.place, TRIED) >= marked(self.place, STARTED)

    def _collect(self, trial: "DataFrame") -> None:
        self.spark.sparkContext.setJobGroup(self.place.name, "a trial")
        trial.collect()

    def _clean_up_after(self, jobs: Sequence[threading.Thread]) -> None:
        _join(jobs)
        shutil.rmtree(self.place, ignore_errors=True)

    def _has_begun(self) -> bool:
        tracker = self.spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(self.place.name)]
        mine = {stage for job in jobs if job for stage in job.stageIds}
        return not mine.isdisjoint(tracker.getActiveStageIds())


class _Job(threading.Thread):
    """Keeps what was raised: Spark stops meanwhile, for one, and then nobody needs it any more."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self.problem: Exception | None = None

    def run(self) -> None:
        try:
            self._work()
        except Exception as problem:
            self.problem = problem


def _in_background(work: Callable[[], object]) -> _Job:
    job = _Job(work)
    job.start()
    return job


def _join(threads: Iterable[threading.Thread]) -> None:
    for thread in threads:
        thread.join()


def _is_soon(done: Callable[[], bool], within_s: float) -> bool:
    """Whether something comes true within this time."""
    deadline_s = time.monotonic() + within_s
    while not (there := done()) and time.monotonic() < deadline_s:
        time.sleep(_LOOK_S)
    return there
