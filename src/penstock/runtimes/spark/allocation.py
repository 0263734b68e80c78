"""How many executors every resource profile has: asked for, and sent away, through Spark's own scheduler.

The calls are those that Spark's dynamic allocation makes itself, so they serve whatever master it
serves. Profiles need dynamic allocation to be on; its own manager is stopped, and from then on nobody
asks for executors but this.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.resource import ResourceProfile
    from pyspark.sql import SparkSession

_REMINDED_S = 20.0
DEFAULT_PROFILE = 0  # of stages that no operator owns


def known_to_spark(spark: "SparkSession", profile: "ResourceProfile") -> int:
    """Make a profile known to Spark; returns its number."""
    java: Any = profile._java_resource_profile
    if java is None:
        raise ValueError("a resource profile built without a Spark context")
    context: Any = spark.sparkContext._jsc.sc()
    context.resourceProfileManager().addResourceProfile(java)
    return int(java.id())


class Allocation:
    """Spark keeps to the numbers asked for here: an executor that dies is replaced."""

    def __init__(self, spark: "SparkSession") -> None:
        self._session, self._spark = spark, spark.sparkContext
        self._context: Any = self._spark._jsc.sc()
        self._jvm: Any = self._spark._jvm
        self._gateway: Any = self._spark._gateway
        self._wanted: dict[int, int] = {DEFAULT_PROFILE: 0}
        self._asked_s = time.monotonic()
        self._leaving: set[str] = set()  # executors that were to be sent away while there was no master
        self._dying: set[str] = set()  # and to be killed
        self._lock = threading.Lock()
        manager = self._context.executorAllocationManager()
        if manager.isDefined():
            manager.get().stop()

    def add(self, profile: "ResourceProfile") -> int:
        """Make a profile known to Spark; returns its number."""
        number = known_to_spark(self._session, profile)
        self._wanted.setdefault(number, 0)
        return number

    def ask(self, profile: int, executors: int) -> None:
        """From now on Spark keeps this number of executors of the profile; more come, none is sent away."""
        with self._lock:
            self._wanted[profile] = executors
            self._ask()

    def remind(self) -> None:
        """Ask again what no master heard, and now and then for all that is wanted: one that was gone may have
        forgotten."""
        with self._lock:
            leaving, dying = list(self._leaving), list(self._dying)
            for executor in leaving:
                self._send_away(executor)
            for executor in dying:
                self._kill(executor)
            if leaving or time.monotonic() - self._asked_s > _REMINDED_S:
                self._ask()

    def _ask(self) -> None:
        none = self._scala({})
        self._asked_s = time.monotonic()
        try:
            self._context.schedulerBackend().requestTotalExecutors(
                self._scala(self._wanted),
                self._scala(dict.fromkeys(self._wanted, 0)),
                self._scala(dict.fromkeys(self._wanted, none)),
            )
        except Py4JError:  # there is no master just now
            self._asked_s = -inf

    def send_away(self, executor: str, profile: int) -> None:
        """It finishes what it runs, takes nothing new, and is not replaced."""
        with self._lock:
            self._wanted[profile] = max(self._wanted[profile] - 1, 0)
            self._send_away(executor)

    def _send_away(self, executor: str) -> None:
        nothing = getattr(self._jvm.scala, "Option$").__getattr__("MODULE$").apply(None)
        why = self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo("scaled in", nothing)
        pairs = self._gateway.new_array(self._jvm.scala.Tuple2, 1)
        pairs[0] = self._jvm.scala.Tuple2(executor, why)
        self._leaving.discard(executor)
        try:
            self._context.schedulerBackend().decommissionExecutors(pairs, True, False)
        except Py4JError:  # the master is told first that there will be fewer, and is not there just now
            self._leaving.add(executor)

    def kill(self, executor: str) -> None:
        """Whatever runs on it."""
        with self._lock:
            self._kill(executor)

    def _kill(self, executor: str) -> None:
        self._dying.discard(executor)
        try:
            kill([executor], self._spark)
        except Py4JError:
            self._dying.add(executor)

    def serve_default(self) -> None:
        """Have an executor where a stage waits that no operator owns, as when state is repartitioned."""
        if self._wanted[DEFAULT_PROFILE]:
            return
        stages: Any = self._context.statusStore().activeStages()
        if any(
            int(stages.apply(index).resourceProfileId()) == DEFAULT_PROFILE for index in range(stages.size())
        ):
            self.ask(DEFAULT_PROFILE, 1)

    def _scala(self, entries: Mapping[int, Any]) -> Any:
        java = self._jvm.java.util.HashMap()
        for key, value in entries.items():
            java.put(key, value)
        immutable: Any = getattr(self._jvm.scala.collection.immutable, "HashMap$").__getattr__("MODULE$")
        return getattr(immutable, "from")(self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(java))


def kill(executors: Sequence[str], context: "SparkContext") -> None:
    """Whatever runs on them; Spark replaces them as long as it wants that many.

    The context's own method refuses while dynamic allocation is on, even with its manager stopped.
    """
    java: Any = context
    names: Any = java._jvm.org.apache.spark.api.python.PythonUtils.toSeq(list(executors))
    java._jsc.sc().schedulerBackend().killExecutors(names, False, False, True)
