"""What the micro-batches of a query took in tasks, by Spark's own account of its jobs and stages."""

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BATCH = re.compile(r"batch = (\d+)")
_A_GOOD_PART = 0.1  # of all work, that a stage does: how many tasks the others have hardly matters


class Work(NamedTuple):
    """Of some micro-batches."""

    busy_s: float  # in tasks, one after another
    tasks: int  # that can run at the same time: of the widest stage that does a good part of the work
    last_job: int  # that is counted in


def work(spark: "SparkSession", run_id: str, *, after_job: int, batch: int) -> Work:
    """Of the jobs after this one, up to and including those of this batch. A query's jobs are one group."""
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    last, stages = after_job, list[tuple[float, int]]()
    for job in sorted(spark.sparkContext.statusTracker().getJobIdsForGroup(run_id)):
        if job <= after_job:
            continue
        data = store.job(job)
        said = data.description()
        number = _BATCH.search(str(said.get())) if said.isDefined() else None
        if number is not None and int(number[1]) > batch:
            break
        last, ids = job, data.stageIds()
        for index in range(ids.size()):
            stage = store.lastStageAttempt(ids.apply(index))
            stages.append((float(stage.executorRunTime()) / 1000, int(stage.numCompleteTasks())))
    return worked(stages, last)


def worked(stages: list[tuple[float, int]], last_job: int) -> Work:
    """From (seconds in tasks, tasks) of every stage."""
    busy_s = sum(seconds for seconds, _ in stages)
    heavy = [tasks for seconds, tasks in stages if seconds >= _A_GOOD_PART * busy_s]
    return Work(busy_s, max(heavy, default=0), last_job)
