"""The executors Spark has now, and how busy each has been."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

V = TypeVar("V")
_MOST_KNOWN = 1_000  # executors; far fewer are there at the same time


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """One executor that answers."""

    id: str
    host: str
    profile: int  # the number of its resource profile
    busy_s: float  # in tasks that ended, since it started
    tasks: int  # that ended


def forget_oldest(known: dict[str, V], most: int = _MOST_KNOWN) -> None:
    """Of what is known by executor, or by host: they come and go for as long as a run lasts."""
    for name in list(known)[:-most]:
        del known[name]


def executors(spark: "SparkSession") -> dict[str, Executor]:
    """Executors that are set up and have not left, by id."""
    context: Any = spark.sparkContext._jsc.sc()
    listed: Any = context.statusStore().executorList(True)
    found: dict[str, Executor] = {}
    for index in range(listed.size()):
        one = listed.apply(index)
        if str(one.id()) != "driver" and one.isActive() and _is_set_up(context, str(one.id())):
            found[str(one.id())] = Executor(
                id=str(one.id()),
                host=str(one.hostPort()).rpartition(":")[0],
                profile=int(one.resourceProfileId()),
                busy_s=float(one.totalDuration()) / 1000,
                tasks=int(one.completedTasks()),
            )
    return found


def _is_set_up(context: Any, executor: str) -> bool:
    """One that is listed may still be starting, for a second on a busy machine, and take no tasks.

    Spark calls those alive that take tasks; one that is asked to leave takes none any more.
    """
    scheduler = context.taskScheduler()
    leaving = scheduler.getExecutorDecommissionState(executor).isDefined()
    return bool(leaving or scheduler.isExecutorAlive(executor))
