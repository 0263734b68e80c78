"""Control of an existing streaming query on a standalone cluster: `penstock.attach(spark, query, ...)`.

The query is not touched: what can be known of it is what Spark reports of any query, and what
can be changed is how many executors its application has. It needs `spark.executor.cores` set and
dynamic allocation off, because Spark's own would undo every decision.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.control.build import build_controller
from penstock.control.journal import Header, Noted
from penstock.control.loop import Controller, ControllerMemory, tick
from penstock.control.plan import Plan
from penstock.control.ports import Unwritten
from penstock.control.safety_settings import SafetySettings
from penstock.control.spec import ControllerSpec, Manager, OperatorSpec
from penstock.domain.application import Operator, pipeline
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import Migrate, Verdict
from penstock.journal_file import JournalFile
from penstock.live.controlling import Tape
from penstock.policy.parameters import Value
from penstock.policy.registry import Level, entries, known_as
from penstock.runtimes.spark.executors import Executor, executors
from penstock.runtimes.spark.measures import skew, utilisations, waits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OPERATOR = "query"
_ANY_NODE = NodeType(name="executor", speedup=1.0, price=1.0)


class QueryMonitor:
    """Observes a query that Penstock did not build."""

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
        # Spark reports micro-batches that ended, and nothing while there is no input: then the query
        # counts as measured, with nothing to do. One that hangs in a micro-batch is not, whatever its
        # executors do: their tasks may belong to another query.
        idle = self._query.isActive and not self._query.status["isDataAvailable"]
        if done or idle:
            self._measured_s = now_s
        elif loads is not None and not any(loads):
            loads = None  # a task counts when it ends: where none did, utilisation is unknown
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
        # Asking for fewer stops none: the newest are stopped one by one.
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
        tape = Tape(self.journal or Unwritten())
        self.memory = tick(self.controller, self.memory, self.monitor, tape, self.actuator)
        if tape.last is None:
            raise RuntimeError("a round that was not written down")
        self.plans.append(tape.last.plan)
        return tape.last.plan

    def _run(self) -> None:
        while not self._stopping.wait(self.interval_s) and self.query.isActive:
            try:
                self.tick()
            except Exception as problem:  # a broken controller must not harm the query
                self.problem = str(problem)
                if self.journal is not None:
                    self.journal.append(Noted(at_s=time.time(), text=f"controller stopped: {problem}"))
                return


def attach(
    spark: "SparkSession",
    query: "StreamingQuery",
    *,
    objective: Objective,
    policy: str | type = "threshold-c",
    parameters: Mapping[str, Value] | None = None,
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
    manager = Manager(name=known_as(Level.OPERATOR, policy).name, parameters=parameters or {})
    if manager.entry(Level.OPERATOR).traits.needs_model:
        model_free = [name for name, one in entries(Level.OPERATOR).items() if not one.traits.needs_model]
        raise InputError(
            f"attach: policy '{manager.name}' needs a model of the operator; "
            f"choose one of {', '.join(model_free)}"
        )
    if not str(spark.sparkContext.master).startswith("spark://"):
        raise InputError(f"attach: master '{spark.sparkContext.master}'; a standalone cluster is needed")
    cores = int(conf.get("spark.executor.cores", "0") or 0)
    if cores < 1:
        raise InputError("attach: spark.executor.cores is not set; an executor would take all of a worker")
    # Policies that need no model do not look at the service time.
    graph = pipeline(OPERATOR, Operator(name=OPERATOR, service_time_s=1e-3, max_replicas=max_replicas))
    settings = SafetySettings(
        interval_s=interval_s, max_replicas={OPERATOR: max_replicas}, warm_up_s=interval_s
    )
    spec = ControllerSpec(
        application=graph,
        objective=objective,
        node_types=(_ANY_NODE,),
        operators=(
            OperatorSpec(
                name=OPERATOR,
                bound_s=objective.response_time_s,
                service_time_s=1e-3,
                max_replicas=max_replicas,
            ),
        ),
        operator_policy=manager,
        interval_s=interval_s,
        safety=safety(settings),
        seed=seed,
        advise=advise,
    )
    controller, memory = build_controller(spec)
    written = JournalFile(Path(journal)) if journal is not None else None
    if written is not None:
        written.append(Header(controller=spec))
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
