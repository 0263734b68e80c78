"""The executors Spark has now, and how busy each has been."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """One executor that answers."""

    id: str
    host: str
    profile: int  # the number of its resource profile
    busy_s: float  # in tasks that ended, since it started
    tasks: int  # that ended


def executors(spark: "SparkSession") -> dict[str, Executor]:
    """Executors that are there and not on their way out, by id."""
    store: Any = spark.sparkContext._jsc.sc().statusStore()
    listed: Any = store.executorList(True)
    found: dict[str, Executor] = {}
    for index in range(listed.size()):
        one = listed.apply(index)
        if str(one.id()) != "driver" and one.isActive():
            found[str(one.id())] = Executor(
                id=str(one.id()),
                host=str(one.hostPort()).rpartition(":")[0],
                profile=int(one.resourceProfileId()),
                busy_s=float(one.totalDuration()) / 1000,
                tasks=int(one.completedTasks()),
            )
    return found
