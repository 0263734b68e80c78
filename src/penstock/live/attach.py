"""Control of streaming queries that run already: `penstock.attach(spark, query, ...)`.

The queries are not touched: what can be known of them is what Spark reports of any query, and what
can be changed is how many executors their application has. The controller around the loop is that of
`penstock run`: orders, memory over a restart, journal.
"""

import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from penstock.control.journal import Noted, Reconfigured
from penstock.control.safety_settings import SafetySettings
from penstock.control.spec import ControllerSpec, OperatorSpec, Policy, manager_of
from penstock.domain.application import Operator, pipeline
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.journal_file import JournalFile
from penstock.live.controlling import Controlling
from penstock.live.kept import Kept
from penstock.live.metrics_file import MetricsFolder
from penstock.live.ownership import Ownership
from penstock.live.record import Interval, Summary
from penstock.live.settings import LiveSettings
from penstock.policy.parameters import Value
from penstock.policy.registry import Level, entries
from penstock.reconfigure.words import Record
from penstock.runtimes.spark.attached_executors import OPERATOR, ExecutorActuator
from penstock.runtimes.spark.attached_query import QueryMonitor

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_ANY_NODE = NodeType(name="executor", speedup=1.0, price=1.0)
_POLL_S = 1.0
_WARM_UP_S = 15.0  # the first micro-batches of a query and of an executor are slow
_UNKNOWN_SERVICE_S = 1e-3  # policies that need no model do not look at it


@dataclass
class Attached:
    """A controller at work in a thread of its own."""

    name: str  # of the query, or of the application
    controller: ControllerSpec
    control: Controlling
    monitor: QueryMonitor
    actuator: ExecutorActuator
    queries: "Sequence[StreamingQuery]"
    journal: JournalFile
    owner: Ownership  # of the run's folder
    out: "Path | TemporaryDirectory[str]"  # the run's folder; a temporary one where nobody wants to have it
    ended: "Callable[[Attached, Path], None]"  # writes the report there
    kept: Kept
    metrics: MetricsFolder | None  # None where nobody wants to have them
    problem: str | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def objective_s(self) -> float:
        return self.controller.operators[0].bound_s

    def start(self) -> "Attached":
        self._thread = threading.Thread(target=self._run, name="penstock-attached", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Leave the queries and their executors as they are now, and write the report; twice does no harm."""
        self._stopping.set()
        if self._thread is None:
            return
        self._thread.join()
        self._thread = None
        self.control.stop()
        self.journal.close()
        try:
            if isinstance(self.out, Path):
                self._write_metrics()
                self.ended(self, self.out)
        finally:
            self.owner.leave()
            if isinstance(self.out, TemporaryDirectory):
                self.out.cleanup()

    def summary(self) -> Summary:
        """The run in a few figures, so far."""
        return self.kept.tally.summary(
            application=self.name,
            policy=self.controller.label,
            finished=self.problem is None,
            seconds=time.time() - self.kept.began_s,
            unfinished=self.monitor.unfinished(),
        )

    def tick(self) -> Interval:
        """One round; the thread does this every interval."""
        interval = self.control.round(self.monitor, self.actuator)
        self.kept.left(self.monitor.finished())
        self.kept.interval(interval)
        if self.metrics is not None:
            self.metrics.interval(interval, self.kept.began_s)
        return interval

    def _run(self) -> None:
        self._rounds()
        with suppress(InputError):  # whoever calls `stop` is told
            self._write_metrics()  # maybe nobody calls it: the queries have ended

    def _write_metrics(self) -> None:
        if self.metrics is not None:
            self.metrics.write()

    def _rounds(self) -> None:
        next_s = time.monotonic() + self.controller.interval_s
        while not self._stopping.wait(_POLL_S) and any(query.isActive for query in self.queries):
            try:
                self.actuator.poll()
                if time.monotonic() >= next_s:
                    next_s = max(next_s + self.controller.interval_s, time.monotonic())
                    self.tick()
            except Exception as problem:  # a broken controller must not harm the queries
                self.problem = str(problem)
                with suppress(InputError, OSError):  # a full disk may be the very problem
                    self.journal.append(Noted(at_s=time.time(), text=f"controller stopped: {problem}"))
                return


def attach(
    spark: "SparkSession",
    query: "StreamingQuery | Sequence[StreamingQuery]",
    *,
    objective: Objective,
    policy: Policy = "adaptive",
    parameters: Mapping[str, Value] | None = None,
    max_replicas: int = 10,
    interval_s: float = 10.0,
    advise: bool = False,
    out: Path | str | None = None,
    journal: Path | str | None = None,
    seed: int = 1,
    safety: Callable[[SafetySettings], SafetySettings] = lambda settings: settings,
    ended: Callable[[Attached, Path], None] = lambda attached, out: None,
) -> Attached:
    """Put running queries under control; `advise=True` decides and explains, and changes nothing."""
    queries = list(query) if isinstance(query, Sequence) else [query]
    if not queries:
        raise InputError("attach: no queries")
    slots = tasks_at_a_time(str(spark.sparkContext.master), spark.sparkContext.getConf())
    spec = _controller(
        objective,
        manager_policy=policy,
        parameters=parameters,
        max_replicas=max_replicas,
        interval_s=interval_s,
        advise=advise,
        seed=seed,
        safety=safety,
    )
    if spec.ignores_objective is not None:
        warnings.warn(f"attach: {spec.ignores_objective}", stacklevel=3)
    place = TemporaryDirectory(prefix="penstock-attached-") if out is None else Path(out)
    folder = place if isinstance(place, Path) else Path(place.name)
    kept = Kept(objective_s=spec.operators[0].bound_s, node_types=spec.node_types, began_s=time.time())

    def changed(record: Record) -> None:
        kept.record(record)
        written.append(Reconfigured(record=record))

    with ExitStack() as undone:  # where it does not come to an `Attached`
        owner = undone.enter_context(Ownership(folder))
        (folder / "summary.json").unlink(missing_ok=True)  # of the time before a restart: now it goes on
        written = undone.enter_context(
            JournalFile(folder / "journal.jsonl" if journal is None else Path(journal))
        )
        metrics = None if out is None else MetricsFolder(folder)
        control = Controlling(spec, LiveSettings(out=folder), written)
        actuator = ExecutorActuator(spark, most=None if advise else max_replicas, ended=changed)
        _warn_of_too_many(len(actuator.executors()), max_replicas, written, advise=advise)
        actuator.poll()
        undone.pop_all()
    name = queries[0].name or "query" if len(queries) == 1 else str(spark.sparkContext.appName)
    return Attached(
        name=name,
        controller=spec,
        control=control,
        monitor=QueryMonitor(actuator, queries, slots),
        actuator=actuator,
        queries=queries,
        journal=written,
        owner=owner,
        out=place,
        ended=ended,
        kept=kept,
        metrics=metrics,
    ).start()


def tasks_at_a_time(master: str, conf: "SparkConf") -> int:
    """Of one executor; what cannot be controlled is refused, with what to change."""
    if master.startswith("local") and not master.startswith("local-cluster"):
        raise InputError(
            f"attach: master '{master}' has no executors to add or send away; "
            "start the application on a cluster: spark://HOST:PORT, yarn or k8s://..."
        )
    if str(conf.get("spark.dynamicAllocation.enabled", "false")).lower() == "true":
        raise InputError(
            "attach: Spark's dynamic allocation would undo every decision; "
            "start the application with spark.dynamicAllocation.enabled=false"
        )
    # Elsewhere an executor has one core if nothing is said.
    unset = "0" if master.startswith("spark://") else "1"
    cores = int(conf.get("spark.executor.cores", unset) or unset)
    if cores < 1:
        raise InputError(
            "attach: spark.executor.cores is not set, so an executor takes all of a worker; "
            "start the application with spark.executor.cores=1 or more"
        )
    return max(cores // int(conf.get("spark.task.cpus", "1") or 1), 1)


def _controller(
    objective: Objective,
    *,
    manager_policy: Policy,
    parameters: Mapping[str, Value] | None,
    max_replicas: int,
    interval_s: float,
    advise: bool,
    seed: int,
    safety: Callable[[SafetySettings], SafetySettings],
) -> ControllerSpec:
    if objective.response_time_s is None or objective.per_path_s:
        raise InputError("attach: the objective must be one response time; a query has no paths")
    manager = manager_of(Level.OPERATOR, manager_policy, parameters)
    if manager.entry(Level.OPERATOR).traits.needs_model:
        model_free = [name for name, one in entries(Level.OPERATOR).items() if not one.traits.needs_model]
        raise InputError(
            f"attach: policy '{manager.name}' needs a model of the operator; "
            f"choose one of {', '.join(model_free)}"
        )
    operator = Operator(name=OPERATOR, service_time_s=_UNKNOWN_SERVICE_S, max_replicas=max_replicas)
    settings = SafetySettings(
        interval_s=interval_s,
        max_replicas={OPERATOR: max_replicas},
        warm_up_s=max(interval_s, _WARM_UP_S),
        anticipating=manager.entry(Level.OPERATOR).traits.anticipates,
    )
    return ControllerSpec(
        application=pipeline(OPERATOR, operator),
        objective=objective,
        node_types=(_ANY_NODE,),
        operators=(
            OperatorSpec(
                name=OPERATOR,
                bound_s=objective.response_time_s,
                service_time_s=_UNKNOWN_SERVICE_S,
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


def _warn_of_too_many(there: int, most: int, journal: JournalFile, *, advise: bool) -> None:
    """At the beginning; those that come later and go again are changes in the journal."""
    if there > most:
        what = "more than the advice will ever be" if advise else f"{there - most} are sent away"
        text = f"{there} executors were there, and {most} are the most allowed: {what}"
        journal.append(Noted(at_s=time.time(), text=text))
        warnings.warn(f"attach: {text}", stacklevel=4)
