"""A live run from start to end: cluster, queries, feeding, deciding, acting, and what is left behind.

The run folder holds everything: `journal.jsonl`, `metrics/`, `results/`, `summary.json`,
`report.html`, and in `work/` what is needed to go on after a crash.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from penstock.control.journal import Header, Noted, Reconfigured, Remembered, Ticked, latest_header
from penstock.control.loop import plan
from penstock.control.plan import Plan
from penstock.control.ports import Journal
from penstock.control.reconfiguration import Record
from penstock.control.saved import as_plain, of_plain, restored, saved
from penstock.control.settings import SafetySettings
from penstock.control.watch import noticed
from penstock.domain.application import Application
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Weights
from penstock.domain.observation import ApplicationObservation
from penstock.domain.request import Request, ScaleIn, ScaleOut, Verdict
from penstock.experiments.application_managers import TUNED, check_manager
from penstock.experiments.controllers import (
    PolicySpec,
    build_controller,
    header_of,
    operator_specs,
)
from penstock.experiments.pretrain import model_of, pretrained, specs_of
from penstock.experiments.retuning import Deciding, is_tuned
from penstock.files import write_whole
from penstock.journal_file import JournalFile, read_journal
from penstock.live.orders import ORDERS, taken
from penstock.live.record import Interval, Summary, row, summary
from penstock.live.settings import LiveSettings
from penstock.live.tuning import Retuning, Tuner, TunerProcess
from penstock.perf.calibration import SystemModel
from penstock.policies.application.tuned import naive
from penstock.runtimes.spark.actuator import SparkActuator
from penstock.runtimes.spark.cluster import LocalCluster, Worker
from penstock.runtimes.spark.feed import Feed
from penstock.runtimes.spark.monitor import SparkMonitor
from penstock.runtimes.spark.running import RunningApp
from penstock.runtimes.spark.session import session
from penstock.runtimes.spark.topology import App

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_S = 1.0
_POLL_CHANGING_S = 0.25  # a new executor is tried out before it gets real work
_EXECUTORS_S = 180.0  # for the first executors to be there
_LARGEST_JOINT_TABLE = 1_000_000  # planned in seconds, and saved at every interval
_RESTARTS = 5  # of a query that failed, before the run gives up


class Feeder(Protocol):
    """Brings tuples into the sources in a thread of its own."""

    @property
    def problem(self) -> str | None:
        """Why it ended when it should not have."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


FeederOf = Callable[[Mapping[str, Feed]], Feeder]


class RunError(RuntimeError):
    """The run cannot go on; the message is one line for the user."""


@dataclass
class LiveRun:
    """One application under control. `shown` hears of every interval as it ends."""

    app: App
    settings: LiveSettings
    feeder_of: FeederOf
    shown: Callable[[Interval], None] = lambda interval: None
    said: Callable[[str], None] = lambda text: None
    intervals: list[Interval] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    took: list[tuple[float, int]] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    began_s: float = field(default_factory=time.time)  # when everything was up
    _restarts: int = 0

    def __post_init__(self) -> None:
        self.node_types = tuple(
            NodeType(name=kind.name, speedup=kind.speedup, price=kind.price) for kind in self.settings.kinds
        )
        self.graph = chain_graph(self.app)
        check_manager(
            self.settings.application_policy,
            self.graph,
            self.node_types,
            where="the cluster",
            largest=_LARGEST_JOINT_TABLE,
        )
        if self.app.objective.response_time_s is None or self.app.objective.per_path_s:
            raise InputError(f"application '{self.app.name}': a live run has one response time for all paths")
        self.objective_s = self.app.objective.response_time_s
        self.work = self.settings.out / "work"

    def run(self) -> Summary:
        """Until the time is up, the input is done, or someone sets `stopping`."""
        settings = self.settings
        settings.out.mkdir(parents=True, exist_ok=True)
        kinds = {kind.name: kind for kind in settings.kinds}
        with (
            LocalCluster(work=self.work / "cluster", kinds=kinds, master=settings.master) as cluster,
            JournalFile(settings.out / "journal.jsonl") as journal,
        ):
            self.said("cluster up; waiting for executors")
            workers = {
                chain.name: [
                    cluster.acquire(chain.tag, settings.kinds[0].name)
                    for _ in range(
                        min(settings.replicas_of.get(chain.name, settings.replicas), chain.max_replicas)
                    )
                ]
                for chain in self.app.chains()
            }
            most = max(chain.max_replicas for chain in self.app.chains())
            spark = session(self.app.name, cluster.master_url, most_replicas=most, work=self.work)
            try:
                self._controlled(spark, cluster, workers, journal)
            finally:
                spark.stop()
        self._write_metrics()
        return self._summary(time.time() - self.began_s)

    def _controlled(
        self,
        spark: "SparkSession",
        cluster: LocalCluster,
        workers: Mapping[str, Sequence[Worker]],
        journal: JournalFile,
    ) -> None:
        running = RunningApp(self.app, spark, self.work, trigger_s=self.settings.trigger_s)
        names = [kind.name for kind in self.settings.kinds]

        def ended(record: Record) -> None:
            self.records.append(record)
            journal.append(Reconfigured(record=record))

        actuator = SparkActuator(running, spark, cluster, names, ended=ended)
        actuator.adopt(workers)
        running.summon(within_s=_EXECUTORS_S, check=cluster.check)
        running.start()
        monitor = SparkMonitor(running, spark, actuator, names)
        feeder = self.feeder_of({source: Feed(running.log(source)) for source in self.app.sources})
        feeder.start()
        self.said("queries running")
        brain: _Brain | None = None
        try:
            brain = _Brain(self, journal)
            self.began_s = time.time()
            deadline_s = self.began_s + 60 * self.settings.minutes if self.settings.minutes else None
            next_s = self.began_s + self.settings.interval_s
            while not self.stopping.is_set():
                time.sleep(_POLL_CHANGING_S if actuator.reconfiguring else _POLL_S)
                actuator.poll()
                self._look_after(running, journal)
                if feeder.problem is not None:
                    raise RunError(f"feeding stopped: {feeder.problem}")
                now_s = time.time()
                if now_s >= next_s:
                    next_s = max(next_s + self.settings.interval_s, now_s)
                    seen = monitor.observe()
                    self.took += monitor.finished()
                    self._interval(brain.tick(seen), actuator)
                if self.settings.until_done and running.done():
                    break
                if deadline_s is not None and now_s >= deadline_s:
                    break
            monitor.observe()
            self.took += monitor.finished()
        finally:
            if brain is not None:
                brain.stop()
            feeder.stop()
            running.stop()
            actuator.stop()

    def _interval(self, decided: "tuple[Interval, Verdict]", actuator: SparkActuator) -> None:
        interval, verdict = decided
        actuator.apply(verdict)
        self.intervals.append(interval)
        self.shown(interval)

    def _look_after(self, running: RunningApp, journal: JournalFile) -> None:
        """Start again what failed: its checkpoint knows where it was."""
        for name, why in running.failed().items():
            self._restarts += 1
            journal.append(Noted(at_s=time.time(), text=f"query '{name}' failed: {why}"))
            if self._restarts > _RESTARTS:
                raise RunError(f"query '{name}' failed {_RESTARTS} times, last: {why}")
            running.stop_chain(name)
            running.start_chain(name)

    def _write_metrics(self) -> None:
        import pyarrow
        from pyarrow import parquet

        target = self.settings.out / "metrics"
        target.mkdir(parents=True, exist_ok=True)
        if self.intervals:
            table = pyarrow.Table.from_pylist([row(interval, self.began_s) for interval in self.intervals])
            number = len(list(target.glob("*.parquet")))
            parquet.write_table(table, target / f"part-{number:03d}.parquet")

    def _summary(self, seconds: float) -> Summary:
        return summary(
            application=self.app.name,
            policy=self.settings.name,
            finished=not self.stopping.is_set(),
            objective_s=self.objective_s,
            intervals=self.intervals,
            took=self.took,
            records=self.records,
            node_types=self.node_types,
            began_s=self.began_s,
            seconds=seconds,
        )


class _Brain:
    """Decides; before a policy that needs a model can, it measures."""

    def __init__(self, live: LiveRun, journal: Journal, tuner: Tuner | None = None) -> None:
        self._live, self._journal = live, journal
        self._measured: list[ApplicationObservation] = []
        self._built: Deciding | None = None
        self._retuning = self._tuned(tuner) if live.settings.application_policy == TUNED else None
        self._memory_file = live.settings.out / "work" / "controller.json"
        self._count = 0
        if not live.settings.needs_model:
            self._build(None)
        elif self._memory_file.exists():
            self._resume()

    def tick(self, seen: ApplicationObservation) -> tuple[Interval, Verdict]:
        if self._retuning is not None:
            self._retuning.saw(seen)
        if self._built is None:
            self._measured.append(seen)
            why = "measuring, before the first decision" + self._try_to_build(seen)
            self._journal.append(Noted(at_s=seen.at_s, text=why))
            return Interval(seen=seen, reasons=(why,), changed=()), Verdict(())
        retuned: tuple[str, ...] = ()
        if self._retuning is not None:
            before, self._built = self._built, self._retuning.between_rounds(self._built, seen.at_s)
            retuned = ("bounds and weights retuned",) if self._built is not before else ()
        orders = taken(self._live.work / ORDERS)
        made, memory = plan(self._built.controller, self._built.memory, seen, orders)
        self._journal.append(Ticked(seen=seen, orders=orders, plan=made))
        self._built = replace(self._built, memory=memory)
        write_whole(self._memory_file, json.dumps(as_plain(saved(memory))))
        verdict = self._forced(seen) if self._live.settings.chaos else made.to_do
        return Interval(seen=seen, reasons=(*retuned, *_reasons(made)), changed=_changes(verdict)), verdict

    def _forced(self, seen: ApplicationObservation) -> Verdict:
        """One chain after another up and down again, whatever the policy wants."""
        requests: list[Request] = []
        self._count += 1
        chains = list(self._live.app.chains())
        chain = chains[self._count % len(chains)]
        one = next(o for o in seen.operators if o.operator == chain.name)
        if chain.name not in seen.reconfiguring and chain.max_replicas > 1:
            up = one.replicas.total < chain.max_replicas
            counts = list(one.replicas.counts)
            index = 0 if up else next(i for i, count in enumerate(counts) if count)
            counts[index] += 1 if up else -1
            kind = ScaleOut if up else ScaleIn
            requests.append(
                kind(
                    operator=chain.name, target=Replicas(tuple(counts)), nodes=(), score=1.0, reason="forced"
                )
            )
        return Verdict(tuple(requests))

    def stop(self) -> None:
        if self._retuning is not None:
            self._retuning.stop()

    def _tuned(self, tuner: Tuner | None) -> Retuning:
        settings = self._live.settings
        return Retuning(
            tuner or TunerProcess(self._live.work / "tuning"),
            self._journal,
            least_s=settings.measure_s,
            period_s=settings.retune_s,
            limit_s=settings.tuning_limit_s,
        )

    def _try_to_build(self, seen: ApplicationObservation) -> str:
        """What stands in the way, where that is more than time."""
        settings = self._live.settings
        if seen.at_s - self._measured[0].at_s < settings.measure_s:
            return ""
        try:
            model = model_of(
                self._live.graph, self._measured, self._live.node_types, interval_s=settings.interval_s
            )
            self._build(model)
        except InputError as problem:
            return f": {problem}"  # some chain has not finished anything yet, say: go on measuring
        return ""

    def _build(self, model: SystemModel | None) -> None:
        """With a model of what was measured, or for those that need none."""
        header = self._header(model)
        controller, memory = build_controller(header)
        if self._memory_file.exists():
            memory = restored(controller, of_plain(json.loads(self._memory_file.read_text())))
        elif model is not None:
            memory = pretrained(header, controller, memory)
            # What was measured before the first decision counts: the warm-up may be over already.
            watched = noticed(header.safety, memory.safety, (), {}, self._measured[0])
            memory = replace(memory, safety=watched)
        self._begin(Deciding(header=header, controller=controller, memory=memory))

    def _resume(self) -> None:
        """Go on with the controller of the run that was interrupted."""
        header = latest_header(read_journal(self._live.settings.out / "journal.jsonl"))
        if header is not None:
            controller, _ = build_controller(header)
            memory = restored(controller, of_plain(json.loads(self._memory_file.read_text())))
            self._begin(Deciding(header=header, controller=controller, memory=memory))
            if self._retuning is not None and is_tuned(header):
                self._retuning.resume(header)

    def _begin(self, deciding: Deciding) -> None:
        self._journal.append(deciding.header)
        self._journal.append(Remembered(memory=as_plain(saved(deciding.memory))))
        self._built = deciding

    def _header(self, model: SystemModel | None) -> Header:
        settings, objective = self._live.settings, self._live.app.objective
        graph = self._live.graph if model is None else model.application
        operators = operator_specs(graph, objective) if model is None else specs_of(model, objective)
        # Until it is tuned, the tuned manager's start: naive shares, as for all, and equal weights.
        tuned = settings.application_policy == TUNED
        policies = PolicySpec(
            operators=operators,
            policy=settings.policy,
            weights=naive(graph, objective).weights if tuned else Weights(),
            application_policy=settings.application_policy,
            application=graph,
            objective=objective,
            source_rates=() if model is None else tuple(float(rate) for rate in model.rates),
            threshold=settings.threshold,
            replicas=settings.replicas if settings.policy == "fixed" else None,
            token_bucket=(
                settings.bucket_low * self._live.objective_s,
                settings.bucket_high * self._live.objective_s,
            ),
            token_period_s=2 * settings.interval_s,
        )
        safety = SafetySettings(
            interval_s=settings.interval_s,
            warm_up_s=settings.warm_up_s,
            scale_in_window_s=settings.scale_in_window_s,
            max_replicas={o.name: o.max_replicas for o in operators},
            max_cost=settings.max_cost,
            max_nodes=settings.max_nodes,
        )
        return header_of(
            policies,
            node_types=self._live.node_types,
            seed=settings.seed,
            safety=safety,
            advise=settings.advise,
        )


def chain_graph(app: App) -> Application:
    """The graph of what is scaled: fused operators as the one chain they are."""
    from penstock.domain.application import Operator, Sink, Source, Stream

    chains = app.chains()
    gives = {chain.output: chain.name for chain in chains} | {source: source for source in app.sources}
    unknown_s = 1e-3  # measured later
    return Application(
        name=app.name,
        sources=tuple(Source(name=name) for name in app.sources),
        operators=tuple(
            Operator(
                name=chain.name,
                service_time_s=unknown_s,
                stateful=chain.stateful,
                max_replicas=chain.max_replicas,
            )
            for chain in chains
        ),
        sinks=tuple(Sink(name=name) for name in app.sinks),
        streams=(
            *(Stream(origin=gives[origin], target=chain.name) for chain in chains for origin in chain.inputs),
            *(Stream(origin=gives[origin], target=sink) for sink, origin in app.sinks.items()),
        ),
    )


def _reasons(made: Plan) -> tuple[str, ...]:
    held = [f"{name}: {decision.reason}" for name, decision in made.decisions.items()]
    refused = [f"{r.request.operator}: refused, {r.reason}" for r in (*made.verdict.refused, *made.vetoes)]
    return (*held, *refused)


def _changes(verdict: Verdict) -> tuple[str, ...]:
    return tuple(f"{request.operator}: {request.reason}" for request in verdict.granted)
