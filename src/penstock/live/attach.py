"""Control of an existing streaming query on a standalone cluster: `penstock.attach(spark, query, ...)`.

The query is not touched: what can be known of it is what Spark reports of any query, and what
can be changed is how many executors its application has. It needs `spark.executor.cores` set and
dynamic allocation off, because Spark's own would undo every decision.
"""

import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.control.build import build_controller
from penstock.control.journal import Header, Noted
from penstock.control.loop import Controller, ControllerMemory, tick
from penstock.control.plan import Plan
from penstock.control.ports import Unwritten
from penstock.control.safety_settings import SafetySettings
from penstock.control.spec import ControllerSpec, OperatorSpec, Policy, manager_of
from penstock.domain.application import Operator, pipeline
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.journal_file import JournalFile
from penstock.policy.parameters import Value
from penstock.policy.registry import Level, entries
from penstock.runtimes.spark.attached_query import OPERATOR, ExecutorActuator, QueryMonitor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_ANY_NODE = NodeType(name="executor", speedup=1.0, price=1.0)


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
        journal = self.journal or Unwritten()
        ticked, self.memory = tick(self.controller, self.memory, self.monitor, journal, self.actuator)
        self.plans.append(ticked.plan)
        return ticked.plan

    def _run(self) -> None:
        while not self._stopping.wait(self.interval_s) and self.query.isActive:
            try:
                self.tick()
            except Exception as problem:  # a broken controller must not harm the query
                self.problem = str(problem)
                with suppress(InputError, OSError):  # a full disk may be the very problem
                    if self.journal is not None:
                        self.journal.append(Noted(at_s=time.time(), text=f"controller stopped: {problem}"))
                return


def attach(
    spark: "SparkSession",
    query: "StreamingQuery",
    *,
    objective: Objective,
    policy: Policy = "objective",
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
    if objective.response_time_s is None or objective.per_path_s:
        raise InputError("attach: the objective must be one response time; a query has no paths")
    manager = manager_of(Level.OPERATOR, policy, parameters)
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
        interval_s=interval_s,
        max_replicas={OPERATOR: max_replicas},
        warm_up_s=interval_s,
        anticipating=manager.entry(Level.OPERATOR).traits.anticipates,
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
        weights=objective.weights,
        interval_s=interval_s,
        safety=safety(settings),
        seed=seed,
        advise=advise,
    )
    if spec.ignores_objective is not None:
        warnings.warn(f"attach: {spec.ignores_objective}", stacklevel=3)
    controller, memory = build_controller(spec)
    written = JournalFile(Path(journal)) if journal is not None else None
    if written is not None:
        written.append(Header(controller=spec))
    actuator = ExecutorActuator(spark)
    if not advise:
        actuator.resize(max(len(actuator.executors()), 1))
    return Attached(
        controller=controller,
        memory=memory,
        monitor=QueryMonitor(actuator, query, cores),
        actuator=actuator,
        query=query,
        interval_s=interval_s,
        journal=written,
    ).start()
