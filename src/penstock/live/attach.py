"""An existing streaming query on a standalone cluster under control: `penstock.attach(spark, query, ...)`.

The query is not touched: what can be known of it is what Spark reports of any query, and what
can be changed is how many executors its application has. It needs `spark.executor.cores` set and
dynamic allocation off, because Spark's own would undo every decision.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.control.journal import Noted, Ticked
from penstock.control.loop import Controller, ControllerMemory, plan
from penstock.control.plan import Plan
from penstock.control.safety_settings import SafetySettings
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import Migrate, Verdict
from penstock.journal_file import JournalFile
from penstock.live.settings import MODEL_FREE
from penstock.runtimes.spark.executors import Executor, executors
from penstock.runtimes.spark.measures import skew, utilisations, waits
from penstock.simulate.controllers import OperatorSpec, PolicySpec, build_controller, header_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OPERATOR = "query"
_ANY_NODE = NodeType(name="executor", speedup=1.0, price=1.0)


class QueryMonitor:
    """Sees a query Penstock did not build."""

    def __init__(self, spark: "SparkSession", query: "StreamingQuery", cores: int) -> None:
        self._spark, self._query, self._cores = spark, query, cores
        self._last_batch = -1
        self._last_s = self._measured_s = time.time()
        self._busy: dict[str, float] = {}

    def observe(self) -> ApplicationObservation:
        now_s = time.time()
        interval_s, self._last_s = now_s - self._last_s, now_s
        there = by_id(self._spark)
        loads = utilisations(
            self._busy, {one.id: one.busy_s / self._cores for one in there.values()}, interval_s
        )
        self._busy = {one.id: one.busy_s / self._cores for one in there.values()}
        done = [p for p in self._query.recentProgress if p["batchId"] > self._last_batch]
        if done:
            self._last_batch = int(done[-1]["batchId"])
        # Spark reports micro-batches that ended, and nothing while there is no input: then the query is
        # measured, too, and has nothing to do. One that hangs in a micro-batch is not, whatever its
        # executors do: their tasks may be somebody else's.
        idle = self._query.isActive and not self._query.status["isDataAvailable"]
        if done or idle:
            self._measured_s = now_s
        elif loads is not None and not any(loads):
            loads = None  # a task counts when it ends: where none did, nobody knows how busy it was
        rows = sum(int(p["numInputRows"]) for p in done)
        # A tuple waits half a trigger on average before its micro-batch begins, then as long as that takes.
        took = waits(
            (float(p["durationMs"]["triggerExecution"]) / 1000 * 1.5, ((0.0, int(p["numInputRows"])),))
            for p in done
        )
        operator = OperatorObservation(
            operator=OPERATOR,
            at_s=self._measured_s,
            replicas=Replicas((max(len(there), 1),)),
            arrival_rate=rows / interval_s if done and interval_s > 0 else None,
            response_time_s=took.mean_s,
            utilisation=max(loads) if loads else None,
            response_time_p95_s=took.p95_s,
            skew=skew(loads),
            utilisation_by_replica=loads,
        )
        return ApplicationObservation(
            at_s=now_s, response_time_s=took.mean_s, operators=(operator,), source_rate=operator.arrival_rate
        )


def by_id(spark: "SparkSession") -> dict[str, Executor]:
    return {one.id: one for one in executors(spark, several_per_host=True).values()}


class ExecutorActuator:
    """Changes how many executors the application has."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark

    def apply(self, verdict: Verdict) -> None:
        for request in verdict.granted:
            if not isinstance(request, Migrate):
                self.resize(request.target.total)

    def resize(self, wanted: int) -> None:
        context: Any = self._spark.sparkContext._jsc.sc()
        jvm: Any = self._spark.sparkContext._jvm
        no_preferences = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(jvm.java.util.HashMap())
        context.requestTotalExecutors(wanted, 0, no_preferences)
        # Asking for fewer ends none: the newest are ended one by one.
        for executor in sorted(by_id(self._spark), key=int)[wanted:]:
            context.killExecutor(executor)


@dataclass
class Attached:
    """A controller at work in a thread of its own."""

    controller: Controller
    memory: ControllerMemory
    monitor: QueryMonitor
    actuator: ExecutorActuator
    query: "StreamingQuery"
    interval_s: float
    journal: JournalFile | None
    plans: list[Plan] = field(default_factory=list)
    problem: str | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> "Attached":
        self._thread = threading.Thread(target=self._run, name="penstock-attached", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Leave the query as it is now."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        if self.journal is not None:
            self.journal.close()

    def tick(self) -> Plan:
        """One round; the thread does this every interval."""
        seen = self.monitor.observe()
        made, self.memory = plan(self.controller, self.memory, seen)
        if self.journal is not None:
            self.journal.append(Ticked(seen=seen, plan=made))  # before acting
        self.actuator.apply(made.to_do)
        self.plans.append(made)
        return made

    def _run(self) -> None:
        while not self._stopping.wait(self.interval_s) and self.query.isActive:
            try:
                self.tick()
            except Exception as problem:  # the query must not suffer from a controller that does not work
                self.problem = str(problem)
                if self.journal is not None:
                    self.journal.append(Noted(at_s=time.time(), text=f"controller stopped: {problem}"))
                return


def attach(
    spark: "SparkSession",
    query: "StreamingQuery",
    *,
    objective: Objective,
    policy: str = "threshold-c",
    max_replicas: int = 10,
    interval_s: float = 10.0,
    advise: bool = False,
    journal: Path | str | None = None,
    seed: int = 1,
    safety: Callable[[SafetySettings], SafetySettings] = lambda settings: settings,
) -> Attached:
    """Put a running query under control; `advise=True` decides and explains, and changes nothing."""
    conf = spark.sparkContext.getConf()
    if conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        raise InputError("attach: spark.dynamicAllocation.enabled is true; it would undo every decision")
    if objective.response_time_s is None:
        raise InputError("attach: the objective has no response time")
    if policy not in MODEL_FREE:
        raise InputError(
            f"attach: policy '{policy}' needs a model of the operator; choose one of "
            f"{', '.join(sorted(MODEL_FREE))}"
        )
    if not str(spark.sparkContext.master).startswith("spark://"):
        raise InputError(f"attach: master '{spark.sparkContext.master}'; a standalone cluster is needed")
    cores = int(conf.get("spark.executor.cores", "0") or 0)
    if cores < 1:
        raise InputError("attach: spark.executor.cores is not set; an executor would take all of a worker")
    header = header_of(
        PolicySpec(
            operators=(
                OperatorSpec(
                    name=OPERATOR,
                    bound_s=objective.response_time_s,
                    service_time_s=1e-3,  # not used by policies that need no model
                    max_replicas=max_replicas,
                ),
            ),
            policy=policy,
        ),
        node_types=(_ANY_NODE,),
        seed=seed,
        safety=safety(
            SafetySettings(interval_s=interval_s, max_replicas={OPERATOR: max_replicas}, warm_up_s=interval_s)
        ),
        advise=advise,
    )
    controller, memory = build_controller(header)
    written = JournalFile(Path(journal)) if journal is not None else None
    if written is not None:
        written.append(header)
    actuator = ExecutorActuator(spark)
    if not advise:
        actuator.resize(max(len(by_id(spark)), 1))  # from now on Spark keeps to this number
    return Attached(
        controller=controller,
        memory=memory,
        monitor=QueryMonitor(spark, query, cores),
        actuator=actuator,
        query=query,
        interval_s=interval_s,
        journal=written,
    ).start()
