"""How many executors an application has that Penstock did not build: asked for, and sent away.

Dynamic allocation is off there, so there is one number of executors that Spark keeps to, and it is set in
one place: whoever leaves is sent away without touching it, and whoever dies is replaced.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.domain.request import Migrate, Verdict
from penstock.reconfigure.method import Method
from penstock.reconfigure.words import Change, Ending, NewReplica, Record
from penstock.runtimes.spark.executors import Executor, executors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPERATOR = "query"
_ARRIVES_WITHIN_S = 120.0  # what is not there by then may never come: it is no longer asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class _UnderWay:
    since_s: float
    before: frozenset[str]  # executors that were there
    repair: bool = False  # nobody asked for it: an executor was lost


class ExecutorActuator:
    """Changes how many executors the application has. `ended` hears of every change that is over.

    Until the first change Spark keeps to its own number: one that is still starting has few of its
    executors, and that is no reason to do without the others. Only more than `most` are too many.
    """

    def __init__(
        self,
        spark: "SparkSession",
        *,
        most: int | None = None,
        ended: Callable[[Record], None] = lambda record: None,
    ) -> None:
        self.spark, self._most, self._ended = spark, most, ended
        self._wanted: int | None = None  # nothing was asked for yet
        self._under_way: _UnderWay | None = None
        self._leaving: set[str] = set()  # told to go, and not gone yet
        self.ready_s: float | None = None  # from asking for executors to having them, the last time

    def executors(self) -> dict[str, Executor]:
        """Those that are there and stay, by id."""
        there = executors(self.spark)
        self._leaving &= set(there)
        return {name: one for name, one in there.items() if name not in self._leaving}

    @property
    def changing(self) -> bool:
        """Whether executors are still to come, or to go."""
        return self._under_way is not None

    def apply(self, verdict: Verdict) -> None:
        for request in verdict.granted:
            if not isinstance(request, Migrate):
                self.resize(request.target.total)

    def resize(self, wanted: int) -> None:
        """From now on Spark keeps to this number."""
        there = self.executors()
        if wanted != len(there):
            self._under_way = _UnderWay(since_s=time.time(), before=frozenset(there))
        self._ask(wanted)
        self.poll()

    def poll(self) -> None:
        """See what has come of what was asked for; to be called now and then."""
        if self._wanted is None:
            if self._most is not None and len(self.executors()) > self._most:
                self.resize(self._most)
            return
        there, now_s = self.executors(), time.time()
        # Executors that were on their way when fewer were asked for, and those in excess now. The newest go.
        self._send_away(sorted(there, key=int)[self._wanted :])
        if self._leaving:
            self._end_idle()
            there = self.executors()
        if self._under_way is None and len(there) < self._wanted:
            self._under_way = _UnderWay(since_s=now_s, before=frozenset(there), repair=True)
        if self._under_way is None:
            return
        if len(there) == self._wanted and not self._leaving:
            self._over(self._under_way, frozenset(there), Ending.DONE)
        elif now_s - self._under_way.since_s > _ARRIVES_WITHIN_S:
            missing = self._wanted - len(there)
            trouble = (
                f"{missing} executors did not come" if missing > 0 else "some executors have not left yet"
            )
            self._over(
                self._under_way, frozenset(there), Ending.PARTLY, f"{trouble} within {_ARRIVES_WITHIN_S:g} s"
            )
            if missing > 0:
                self._ask(max(len(there), 1))

    def _over(self, change: _UnderWay, there: frozenset[str], outcome: Ending, *trouble: str) -> None:
        self._under_way, now_s = None, time.time()
        new = there - change.before
        if new and not trouble:
            self.ready_s = now_s - change.since_s
        self._ended(
            Record(
                operator=OPERATOR,
                method=Method.LIVE,
                change=Change(
                    add=(NewReplica(node_type=0),) * len(new),
                    remove=tuple(sorted(change.before - there, key=int)),
                ),
                outcome=outcome,
                granted_at_s=change.since_s,
                ended_at_s=now_s,
                node_ready_at_s=now_s if new else None,
                first_task_at_s=None,
                downtime_s=0.0,
                state_moved_bytes=None,
                repair=change.repair,
                trouble=trouble,
            )
        )

    # --- What is said to Spark. ----------------------------------------------------------------------

    def _ask(self, wanted: int) -> None:
        self._wanted = wanted
        jvm: Any = self.spark.sparkContext._jvm
        no_preferences = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(jvm.java.util.HashMap())
        self._context.requestTotalExecutors(wanted, 0, no_preferences)

    def _send_away(self, names: list[str]) -> None:
        """They finish what they run and get nothing new. The number to keep to was set before."""
        if not names:
            return
        jvm: Any = self.spark.sparkContext._jvm
        gateway: Any = self.spark.sparkContext._gateway
        nothing = getattr(jvm.scala, "Option$").__getattr__("MODULE$").apply(None)
        why = jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo("scaled in", nothing)
        pairs = gateway.new_array(jvm.scala.Tuple2, len(names))
        for index, name in enumerate(names):
            pairs[index] = jvm.scala.Tuple2(name, why)
        adjust_target, by_executor = False, False
        self._context.schedulerBackend().decommissionExecutors(pairs, adjust_target, by_executor)
        self._leaving |= set(names)

    def _end_idle(self) -> None:
        """Executors leave by themselves where decommissioning is on; elsewhere they are ended once idle."""
        if str(self.spark.sparkContext.getConf().get("spark.decommission.enabled", "false")) == "true":
            return
        jvm: Any = self.spark.sparkContext._jvm
        names = jvm.java.util.ArrayList()
        for name in self._leaving:
            names.add(name)
        adjust_target, count_failures, force = False, False, False
        self._context.schedulerBackend().killExecutors(
            jvm.org.apache.spark.api.python.PythonUtils.toSeq(names), adjust_target, count_failures, force
        )

    @property
    def _context(self) -> Any:
        return self.spark.sparkContext._jsc.sc()
