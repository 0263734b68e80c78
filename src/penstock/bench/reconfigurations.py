"""How long one replica takes to come: alone, from a spare, and beside Spark's own dynamic allocation."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from penstock.bench.dynamic_allocation import executor_times
from penstock.bench.figure import Figure
from penstock.bench.light_load import place
from penstock.bench.one_replica import OneReplica, is_good
from penstock.planning.spark_engine import EXECUTOR, FIRST_TASK
from penstock.reconfigure.words import Record

TIMES = 10  # of each
STAGES = 3 * (TIMES + 1)
_EXECUTOR_S, _FIRST_TASK_S = 6.0, 10.0
_SPARE_S = 2.0
_OF_SPARKS_OWN = 1.2


def run_reconfigurations(*, stage: Callable[[str], None], times: int = TIMES) -> Iterator[Figure]:
    """Three clusters one after another, the same application at work on each."""
    yield Figure(name="machine load before", value=os.getloadavg()[0], unit="")
    alone = _ours(stage, times, 0)
    spare = _ours(stage, times, 1)
    theirs = _sparks_own(stage, times)
    yield from figures(alone, spare, theirs, times)


def _ours(stage: Callable[[str], None], times: int, spares: int) -> list[Record]:
    what = "with a spare" if spares else "a replica alone"
    stage(f"{what}: starting")
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as work, place(Path(work)) as where:
        one = OneReplica(where, spares=spares)
        records = []
        with one.at_work():
            for number in range(times):
                stage(f"{what}: {number + 1} of {times}")
                records.append(one.added())
        return records


def _sparks_own(stage: Callable[[str], None], times: int) -> list[float]:
    what = "Spark's dynamic allocation"
    stage(f"{what}: starting")
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as work,
        place(Path(work)) as where,
        where.at_work(),
    ):
        took = []
        for number, seconds in enumerate(executor_times(where, times)):
            stage(f"{what}: {number + 1} of {times}")
            took.append(seconds)
        return took


def figures(
    alone: Sequence[Record], spare: Sequence[Record], theirs: Sequence[float], times: int
) -> Iterator[Figure]:
    """Medians against what is wanted, and the longest."""
    executors = _since_granted(alone, lambda one: one.node_ready_at_s)
    tasks = _since_granted(alone, lambda one: one.first_task_at_s)
    from_spares = _since_granted(spare, lambda one: one.first_task_at_s)
    yield from _taken(EXECUTOR, executors, times, at_most=_EXECUTOR_S)
    yield from _taken(FIRST_TASK, tasks, times, at_most=_FIRST_TASK_S)
    yield from _taken("with a spare: grant to first task on tuples", from_spares, times, at_most=_SPARE_S)
    yield from _taken("Spark's dynamic allocation: asked to executor", theirs, times)
    if executors and theirs:
        yield Figure(
            name="an executor of ours over one of Spark's dynamic allocation",
            value=median(executors) / median(theirs),
            unit="x",
            at_most=_OF_SPARKS_OWN,
        )


def _since_granted(records: Sequence[Record], when: Callable[[Record], float | None]) -> list[float]:
    return [at_s - one.granted_at_s for one in records if is_good(one) and (at_s := when(one)) is not None]


def _taken(
    what: str, seconds: Sequence[float], times: int, *, at_most: float | None = None
) -> Iterator[Figure]:
    """One that did not come is missing in the median, and said to be."""
    if len(seconds) < times:
        yield Figure(name=f"{what}: measured", value=len(seconds), unit="", at_least=times)
    if seconds:
        name = f"{what}, median of {len(seconds)}"
        yield Figure(name=name, value=median(seconds), unit="s", at_most=at_most)
        yield Figure(name=f"{what}, longest", value=max(seconds), unit="s")
