"""A live run from start to end: cluster, queries, feeding, deciding, acting, and what it leaves behind.

The run folder holds everything: `journal.jsonl`, `metrics/`, `results/`, `summary.json`,
`report.html`, and in `work/` what is needed to resume after a crash.
"""

import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.control.build import check_application_policy
from penstock.control.forecasting import ForecastingMonitor, wanted
from penstock.control.journal import Noted, Reconfigured, Stepped
from penstock.control.ports import Actuator, Monitor
from penstock.control.spec import ControllerSpec
from penstock.domain.errors import InputError
from penstock.files import check_can_write
from penstock.journal_file import JournalFile, entries_of
from penstock.live.controlling import Controlling, changes_of, compile_policy, response_time_of
from penstock.live.forced import ForcedScaling
from penstock.live.kept import Kept
from penstock.live.metrics_file import MetricsFolder
from penstock.live.ownership import Ownership
from penstock.live.record import Interval, Summary, response_of
from penstock.live.settings import LiveSettings, node_type
from penstock.reconfigure.interrupted import interrupted
from penstock.reconfigure.words import Command, Commands, Event, Record, Running
from penstock.runtimes.spark import class_archive, steady
from penstock.runtimes.spark.actuator import SparkActuator
from penstock.runtimes.spark.cluster import LocalCluster, check_master
from penstock.runtimes.spark.daemon import ZYGOTE_VARIABLE
from penstock.runtimes.spark.feed import Feed, FeederOf
from penstock.runtimes.spark.monitor import SparkMonitor
from penstock.runtimes.spark.nodes import Nodes, nodes_for
from penstock.runtimes.spark.restarts import Restarts
from penstock.runtimes.spark.running import RunningApp
from penstock.runtimes.spark.session import (
    EMBEDDED,
    check_alone,
    java_has_ended,
    python_variables,
    session,
    stop,
)
from penstock.runtimes.spark.spares import SpareNodes
from penstock.runtimes.spark.sparks_own import SparksOwnNodes
from penstock.runtimes.spark.topology import App, Chain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_S = 1.0
_LEAST_POLL_S = 0.02  # the machine may be full already
_POLL_CHANGING_S = 0.1  # a new executor is tried out before it gets real work
_EXECUTORS_S = 180.0  # for the first executors to start
_LARGEST_JOINT_TABLE = 1_000_000  # planned in seconds, and saved at every interval
_GB = 1e9
_RESTARTS = 7  # of a query that failed, before the run gives up: the pauses add up to two minutes


class RunError(RuntimeError):
    """The run cannot continue; the message is one line for the user."""


@dataclass
class LiveRun:
    """One application under control. `on_interval` is called with every interval as it ends."""

    app: App
    controller: ControllerSpec
    settings: LiveSettings
    feeder_of: FeederOf
    on_interval: Callable[[Interval], None] = lambda interval: None
    on_status: Callable[[str], None] = lambda text: None
    on_accepted: Callable[[], None] = lambda: None  # nothing will be refused any more
    on_problem: Callable[[str], None] = lambda text: None  # the run goes on
    kept: Kept = field(init=False)
    unfinished: list[tuple[float, int]] = field(default_factory=list)  # at the end
    stopping: threading.Event = field(default_factory=threading.Event)
    failures: dict[str, tuple[int, str]] = field(default_factory=dict)  # query -> how often, and why last
    given_up: dict[str, int] = field(default_factory=dict)  # operator -> tuples of results no longer kept
    owner: Ownership = field(init=False)  # of the run folder: it is entered by whoever writes there
    number: str = field(default_factory=lambda: uuid.uuid4().hex[:8])  # among others on the same master
    _restarts: Restarts = field(default_factory=Restarts)
    _running: RunningApp | None = None

    def __post_init__(self) -> None:
        check_application_policy(
            self.controller.application_policy,
            self.controller.application,
            self.controller.node_types,
            where="the cluster",
            largest=_LARGEST_JOINT_TABLE,
        )
        self.objective_s = response_time_of(self.app)
        self._check_agreement()
        self.kept = Kept(
            objective_s=self.objective_s, node_types=self.controller.node_types, began_s=steady.now_s()
        )
        self.work = self.settings.work
        self.owner = Ownership(self.settings.out, private=self.settings.master is None)

    @property
    def began_s(self) -> float:
        """When everything was up."""
        return self.kept.began_s

    def _check_agreement(self) -> None:
        """What stands in the controller, in the settings and in the application must be the same."""
        if self.controller.node_types != tuple(node_type(kind) for kind in self.settings.kinds):
            raise InputError("live run: the controller has other node types than the settings")
        if {one.name for one in self.controller.operators} != {chain.name for chain in self.app.chains()}:
            raise InputError(f"live run: the controller is not one for application '{self.app.name}'")
        queries = self.app.queries(joined=self.settings.joined)
        together = tuple(tuple(one.name for one in query.chains) for query in queries)
        if tuple(group for group in together if len(group) > 1) != self.controller.together:
            raise InputError("live run: the controller has other operators together than the settings")
        if self.controller.node_policy is not None:
            raise InputError("live run: node policies move replicas between known nodes; Spark places them")
        if (forecast := wanted(self.settings.forecast, self.controller.operator_policy)) is not None:
            forecast.forecaster(self.controller.interval_s)  # raises where a run knows no such thing
        if self.settings.force_scaling and self.controller.advise:
            raise InputError("forced changes and advice only: choose one")
        if self.settings.spark_allocates and not self.controller.advise:
            raise InputError("Spark's own allocation decides: Penstock can only advise")

    def check(self) -> None:
        """Whether Spark can be had and the folder written to, before there is one."""
        check_alone()
        check_can_write(self.settings.out / "journal.jsonl")
        if self.settings.master is not None:
            check_master(self.settings.master, ours=len(self.settings.kinds) > 1)

    def run(self) -> Summary:
        """Until the time is up, the input is done, or someone sets `stopping`."""
        self.check()
        with self.owner:
            return self._owned()

    def _owned(self) -> Summary:
        settings = self.settings
        tagged = len(settings.kinds) > 1
        self.on_status("preparing the policy")
        compile_policy(self.controller)
        unfinished = interrupted(
            (one.operator, one.event, one.commands)
            for one in entries_of(settings.out / "journal.jsonl", Stepped)
        )
        with JournalFile(settings.out / "journal.jsonl") as journal, ExitStack() as ending:
            metrics = ending.enter_context(MetricsFolder(settings.out))
            # Before anything runs it reports what cannot be resumed; then it writes into the journal.
            control = Controlling(self.controller, settings, journal)
            ending.callback(control.stop)
            self.on_accepted()
            if settings.master is None and not class_archive.is_made():
                self.on_status("preparing Spark's classes, once on this machine")
            options = class_archive.options() if settings.master is None else ""
            ending.callback(self._close_logs)  # after the cluster: executors write to them
            room = settings.kinds[0].slots
            place = LocalCluster(self.work / "cluster", room=room, tagged=tagged, master=settings.master)
            cluster = ending.enter_context(place)
            self.on_status("cluster up; waiting for executors")
            variables = python_variables(self.app.modules, self.app.places)
            if settings.master is None:
                variables[ZYGOTE_VARIABLE] = str(cluster.start_zygote(variables))
            spark = session(
                f"{self.app.name}-{self.number}",
                cluster.master_url,
                work=self.work,
                tagged=tagged,
                speedup=settings.kinds[0].speedup,
                variables=variables,
                executor_options=options,
                most_executors=max(chain.max_replicas for chain in self.app.chains()),
                conf={**EMBEDDED, **settings.conf} if settings.master is None else settings.conf,
                private=cluster.private,
            )
            try:
                self._controlled(spark, cluster, journal, control, metrics, unfinished)
                metrics.write()
            except Exception as problem:
                if java_has_ended():
                    raise RunError(
                        f"the driver's Java has ended: {self.work / 'spark.log'} may say why; "
                        "the same command continues"
                    ) from problem
                if isinstance(problem, InputError | OSError):  # a full disk, for example
                    raise RunError(str(problem)) from problem
                raise
            finally:
                stop(spark)
        return self._summary(steady.now_s() - self.began_s)

    def _close_logs(self) -> None:
        if self._running is not None:
            self._running.close()

    def _controlled(
        self,
        spark: "SparkSession",
        cluster: LocalCluster,
        journal: JournalFile,
        control: Controlling,
        metrics: MetricsFolder,
        unfinished: Mapping[str, Command],
    ) -> None:
        """`unfinished` is what a driver that died may have left in the middle."""
        settings = self.settings
        running = self._running = RunningApp(
            self.app,
            spark,
            self.work,
            trigger_s=settings.trigger_s,
            joined=settings.joined,
            run=self.number if cluster.tagged else None,
            keep_bytes=settings.keep_gb * _GB,
        )
        names = [kind.name for kind in settings.kinds]
        own = SparksOwnNodes(spark, running, kind=names[0]) if settings.spark_allocates else None
        there: Nodes = own or nodes_for(cluster, spark, running, settings.kinds)
        nodes = SpareNodes(
            there, running, spares=settings.spares, kind=names[0], allowed=self._is_within_caps
        )

        actuator = self._in_charge(running, spark, nodes, journal, unfinished)
        self._begin(running, cluster, nodes, own, journal)
        for name in unfinished:
            journal.append(Stepped(operator=name, event=Running(at_s=steady.now_s()), commands=()))
        monitor = SparkMonitor(running, own or actuator, names)
        seeing: Monitor = self._foreseeing(monitor)
        acting: Actuator = actuator
        if self.settings.force_scaling:
            seeing = acting = ForcedScaling(monitor, actuator, journal, tuple(self.app.chains()))
        feeder = self.feeder_of(
            {name: Feed(running.log(name)) for name in self.app.sources if name not in self.app.readers}
        )
        feeder.start()
        self.on_status("queries running")

        def look_after() -> None:
            actuator.poll()
            if not actuator.reconfiguring and self._is_calm():
                nodes.refill()
            self._look_after(running, cluster, actuator, journal)
            if feeder.problem is not None:
                raise RunError(f"feeding stopped: {feeder.problem}")

        def decide() -> None:
            interval = control.round(seeing, acting)
            if isinstance(acting, ForcedScaling):
                interval = replace(interval, changed=changes_of(acting.done))
            interval = replace(interval, spares=nodes.waiting)
            self.kept.left(monitor.finished())
            self.kept.interval(interval)
            metrics.interval(interval, self.began_s)
            self.on_interval(interval)

        try:
            self._until_the_end(running, actuator, look_after, decide)
            monitor.observe()
            self.kept.left(monitor.finished())
            self.unfinished = monitor.unfinished()
        finally:
            feeder.stop()
            nodes.close()
            actuator.stop()
            running.stop()
            self.given_up = running.given_up()

    def _in_charge(
        self,
        running: RunningApp,
        spark: "SparkSession",
        nodes: Nodes,
        journal: JournalFile,
        unfinished: Mapping[str, Command],
    ) -> SparkActuator:
        """Of the first replicas, and of checkpoints that a driver that died has left in the middle."""

        def ended(record: Record) -> None:
            self.kept.record(record)
            journal.append(Reconfigured(record=record))

        def stepped(name: str, event: Event, commands: Commands) -> None:
            journal.append(Stepped(operator=name, event=event, commands=commands))

        names = [kind.name for kind in self.settings.kinds]
        actuator = SparkActuator(running, spark, nodes, names, ended=ended, stepped=stepped)
        for name, did in actuator.go_on(unfinished).items():
            text = f"'{name}' was being changed when an earlier run ended: {did}"
            journal.append(Noted(at_s=steady.now_s(), text=text))
        actuator.adopt(
            {
                name: [nodes.acquire(name, names[0]) for _ in range(self._first_replicas(chain))]
                for name, chain in running.chains.items()
            }
        )
        return actuator

    def _foreseeing(self, monitor: Monitor) -> Monitor:
        forecast = wanted(self.settings.forecast, self.controller.operator_policy)
        if forecast is None:
            return monitor
        interval_s = self.controller.interval_s
        return ForecastingMonitor(monitor, lambda _: forecast.forecaster(interval_s), interval_s)

    def _is_within_caps(self, kinds: Sequence[str]) -> bool:
        """Whether there may be nodes of these types together, spares among them."""
        safety = self.controller.safety
        if safety is None:
            return True
        price = {kind.name: kind.price for kind in self.settings.kinds}
        costs = sum(price[kind] for kind in kinds)
        return (safety.max_nodes is None or len(kinds) <= safety.max_nodes) and (
            # Rounding must not refuse what costs exactly the cap.
            safety.max_cost is None or costs <= safety.max_cost * (1 + 1e-12)
        )

    def _is_calm(self) -> bool:
        """A spare that starts takes CPU from replicas: not while they are behind."""
        response_s = response_of(self.kept.latest[-1]) if self.kept.latest else None
        return response_s is not None and response_s <= self.objective_s / 2

    @staticmethod
    def _begin(
        running: RunningApp,
        cluster: LocalCluster,
        nodes: Nodes,
        own: SparksOwnNodes | None,
        journal: JournalFile,
    ) -> None:
        def check() -> None:
            _revive(cluster, journal)
            cluster.check(revived=True)
            nodes.executors()  # not all start at once: the next ones are asked for here

        running.summon(within_s=_EXECUTORS_S, check=check)
        if own is not None:
            own.cut_for_all()
        running.start()

    def _until_the_end(
        self,
        running: RunningApp,
        actuator: SparkActuator,
        look_after: Callable[[], None],
        decide: Callable[[], None],
    ) -> None:
        """Of the time, of the input, or of somebody's patience."""
        self.kept.begin(steady.now_s())
        deadline_s = self.began_s + 60 * self.settings.minutes if self.settings.minutes else None
        next_s = self.began_s + self.controller.interval_s
        while not self.stopping.is_set():
            poll_s = _POLL_CHANGING_S if actuator.reconfiguring else _POLL_S
            time.sleep(min(poll_s, max(next_s - steady.now_s(), _LEAST_POLL_S)))
            look_after()
            now_s = steady.now_s()
            if now_s >= next_s:
                decide()
                # After a late one, the next is not right behind it: it would see next to nothing.
                next_s = max(
                    next_s + self.controller.interval_s, steady.now_s() + self.controller.interval_s / 2
                )
            if self.settings.until_done and running.done():
                break
            if deadline_s is not None and now_s >= deadline_s:
                break

    def _first_replicas(self, chain: Chain) -> int:
        settings = self.settings
        return min(settings.replicas_of.get(chain.name, settings.replicas), chain.max_replicas)

    def _look_after(
        self, running: RunningApp, cluster: LocalCluster, actuator: SparkActuator, journal: JournalFile
    ) -> None:
        """Restart what failed: its checkpoint knows where it was."""
        cluster.tidy()
        _revive(cluster, journal)
        for name, why in actuator.stranded.items():
            raise RunError(f"'{name}' cannot continue: {why}")
        changing = actuator.restating
        failed = {name: why for name, why in running.failed().items() if name not in changing}
        now_s = time.monotonic()
        new = self._restarts.failed(failed, now_s)
        for name in new:
            journal.append(Noted(at_s=steady.now_s(), text=f"query '{name}' failed: {failed[name]}"))
            self.failures[name] = self.failures.get(name, (0, ""))[0] + 1, failed[name]
        for name in new:
            if self._restarts.failures[name] > _RESTARTS:
                raise RunError(_failed_often(name, self._restarts.failures[name], failed[name]))
        for name in new:
            why, pause_s = failed[name].removesuffix("."), self._restarts.due_in_s(name, now_s)
            self.on_problem(f"query '{name}' failed: {why}; it is started again in {pause_s:.0f} s")
        for name in self._restarts.due(now_s):
            running.stop_chain(name)
            running.start_query(name)

    def _summary(self, seconds: float) -> Summary:
        return self.kept.tally.summary(
            application=self.app.name,
            policy=self.settings.label or self.controller.label,
            finished=not self.stopping.is_set(),
            seconds=seconds,
            unfinished=self.unfinished,
            failures=[_failed_often(name, count, why) for name, (count, why) in self.failures.items()],
            given_up=sum(self.given_up.values()),
        )


def _revive(cluster: LocalCluster, journal: JournalFile) -> None:
    revived = cluster.revive()
    if revived is not None:
        journal.append(Noted(at_s=steady.now_s(), text=revived))


def _failed_often(name: str, count: int, why: str) -> str:
    often = "once" if count == 1 else f"{count} times, last"
    return f"query '{name}' failed {often}: {why}"
