"""What the micro-batches of a query took in tasks, by Spark's own account of its jobs and stages."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BATCH = re.compile(r"batch = (\d+)")
_A_GOOD_PART = 0.1  # of all work, that a stage does: how many tasks the others have hardly matters


class Work(NamedTuple):
    """Of some micro-batches."""

    busy_s: float  # in tasks, one after another
    tasks: int  # that can run at the same time: of the widest stage that does a good part of the work
    last_job: int  # that is counted in
    by_batch: Mapping[int, float] = MappingProxyType({})  # batch -> seconds in its tasks, where jobs say it


def work(spark: "SparkSession", run_id: str, *, after_job: int, first: int, last: int) -> Work:
    """Of these batches, from the jobs after this one. A query's jobs are one group.

    A job whose description is the user's own does not say its batch: it counts where it is found.
    """
    store, last_job, stages = _store(spark), after_job, list[tuple[float, int]]()
    by_batch: defaultdict[int, float] = defaultdict(float)
    for job in sorted(spark.sparkContext.statusTracker().getJobIdsForGroup(run_id)):
        if job <= after_job or (data := _kept(store.job, job)) is None:
            continue
        number = _batch_of(data)
        if number is not None and number > last:
            break
        last_job, ids = job, data.stageIds()
        if number is not None and number < first:
            continue
        for index in range(ids.size()):
            if (stage := _kept(store.lastStageAttempt, ids.apply(index))) is not None:
                seconds, tasks = float(stage.executorRunTime()) / 1000, int(stage.numCompleteTasks())
                stages.append((seconds, tasks))
                if number is not None:
                    by_batch[number] += seconds
    return worked(stages, last_job)._replace(by_batch=dict(by_batch))


def last_job(spark: "SparkSession", run_id: str, *, batch: int) -> int:
    """Of this batch and those before it; -1 where none is known."""
    store = _store(spark)
    for job in sorted(spark.sparkContext.statusTracker().getJobIdsForGroup(run_id), reverse=True):
        data = _kept(store.job, job)
        if data is not None and ((number := _batch_of(data)) is None or number <= batch):
            return int(job)
    return -1


def _store(spark: "SparkSession") -> Any:
    return spark.sparkContext._jsc.sc().statusStore()


def _batch_of(job: Any) -> int | None:
    said = job.description()
    number = _BATCH.search(str(said.get())) if said.isDefined() else None
    return None if number is None else int(number[1])


def _kept(read: Callable[[int], Any], number: int) -> Any:
    """None where it is gone: Spark keeps 1000 jobs and 1000 stages, so stages go before their jobs."""
    try:
        return read(number)
    except Py4JError as problem:
        if "NoSuchElementException" not in str(problem):
            raise
        return None


def worked(stages: list[tuple[float, int]], last_job: int) -> Work:
    """From (seconds in tasks, tasks) of every stage."""
    busy_s = sum(seconds for seconds, _ in stages)
    heavy = [tasks for seconds, tasks in stages if seconds >= _A_GOOD_PART * busy_s]
    return Work(busy_s, max(heavy, default=0), last_job)
