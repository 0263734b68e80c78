"""The controller of a live run: built from measurements, asked every interval, saved for a restart.

The round itself is `control.loop.tick`. What stands around it: measuring before there is a
controller, a swap of bounds and weights between two rounds, orders, and what is kept on disk.
"""

import json
from collections.abc import Iterable
from dataclasses import replace

from penstock.control.build import build_controller
from penstock.control.journal import Entry, Header, Noted, Remembered, Ticked, latest_header
from penstock.control.loop import Controller, ControllerMemory, tick
from penstock.control.plan import Plan
from penstock.control.ports import Actuator, Journal, Monitor
from penstock.control.safety_settings import SafetySettings
from penstock.control.saved import as_plain, of_plain, restored, saved
from penstock.control.spec import ControllerSpec, OperatorSpec, operator_specs
from penstock.control.watch import noticed
from penstock.domain.errors import InputError
from penstock.domain.objective import Weights
from penstock.domain.observation import ApplicationObservation
from penstock.domain.request import Verdict
from penstock.files import write_whole
from penstock.journal_file import read_journal
from penstock.live.background_tuning import Retuning, Tuner, TunerProcess
from penstock.live.inbox import ORDERS, obeyed, pending
from penstock.live.record import Interval
from penstock.live.settings import LiveSettings
from penstock.perf.calibration import SystemModel
from penstock.policy.application.tuned import naive
from penstock.runtimes.spark.topology import App
from penstock.training.pretrain import model_of, pretrained, specs_of
from penstock.training.retuning import Deciding, is_tuned


def compile_policy(app: App, settings: LiveSettings) -> None:
    """A policy is compiled when it is first used on a machine: better before anything else runs."""
    graph = app.chain_graph()
    small = replace(graph, operators=tuple(replace(one, max_replicas=2) for one in graph.operators))
    spec = ControllerSpec(
        application=small,
        objective=app.objective,
        node_types=settings.node_types,
        operators=operator_specs(small, app.objective)[:1],
        operator_policy=replace(
            settings.policy,
            parameters={name: v for name, v in settings.policy.parameters.items() if name != "replicas"},
        ),
        seed=settings.seed,
    )
    controller, memory = build_controller(spec)
    pretrained(spec, controller, memory, slots=1)


def response_time_of(app: App) -> float:
    """The objective, which is one for all paths."""
    if app.objective.response_time_s is None or app.objective.per_path_s:
        raise InputError(f"application '{app.name}': a live run has one response time for all paths")
    return app.objective.response_time_s


class Tape:
    """A journal that also keeps the last round, to be shown."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.last: Ticked | None = None

    def append(self, entry: Entry) -> None:
        self._journal.append(entry)
        if isinstance(entry, Ticked):
            self.last = entry


class Controlling:
    """Decides every interval; before a policy that needs a model can, it measures."""

    def __init__(
        self, app: App, settings: LiveSettings, journal: Journal, tuner: Tuner | None = None
    ) -> None:
        self._app, self._settings, self._tape = app, settings, Tape(journal)
        self._graph = app.chain_graph()
        self._measured: list[ApplicationObservation] = []
        self._deciding: Deciding | None = None
        self._retuning = self._made_retuning(tuner) if settings.tunes else None
        self._memory_file = settings.work / "controller.json"
        self._last_at_s: float | None = None  # nothing was seen yet
        if not settings.needs_model:
            self._build(None)
        elif self._memory_file.exists():
            self._resume()

    def round(self, monitor: Monitor, actuator: Actuator) -> Interval:
        """One interval: see, decide, write down, act; or see and remember, while nobody can decide yet."""
        if self._deciding is None:
            return self._measure(monitor.observe())
        swapped = self._swap_if_tuned(self._deciding)
        now = self._deciding
        waiting = pending(self._settings.work / ORDERS)
        orders = tuple(order for order in waiting.values() if order is not None)
        memory = tick(now.controller, now.memory, monitor, self._tape, actuator, orders, keep=self._keep)
        obeyed(waiting)
        self._deciding = replace(now, memory=memory)
        ticked = self._tape.last
        if ticked is None:
            raise RuntimeError("a round that was not written down")
        self._saw(ticked.seen)
        reasons = (*(("bounds and weights retuned",) if swapped else ()), *_reasons(ticked.plan))
        return Interval(seen=ticked.seen, reasons=reasons, changed=changes_of(ticked.plan.to_do))

    def stop(self) -> None:
        if self._retuning is not None:
            self._retuning.stop()

    def _measure(self, seen: ApplicationObservation) -> Interval:
        self._saw(seen)
        self._measured.append(seen)
        why = "measuring, before the first decision" + self._try_to_build(seen)
        self._tape.append(Noted(at_s=seen.at_s, text=why))
        return Interval(seen=seen, reasons=(why,), changed=())

    def _saw(self, seen: ApplicationObservation) -> None:
        self._last_at_s = seen.at_s
        if self._retuning is not None:
            self._retuning.saw(seen)

    def _swap_if_tuned(self, now: Deciding) -> bool:
        if self._retuning is not None and self._last_at_s is not None:
            self._deciding = self._retuning.between_rounds(now, self._last_at_s)
        return self._deciding is not now

    def _keep(self, memory: ControllerMemory) -> None:
        write_whole(self._memory_file, json.dumps(as_plain(saved(memory))))

    def _made_retuning(self, tuner: Tuner | None) -> Retuning:
        settings = self._settings
        return Retuning(
            tuner or TunerProcess(settings.work / "tuning", own_policies(settings)),
            self._tape,
            least_s=settings.measure_s,
            period_s=settings.retune_s,
            limit_s=settings.tuning_limit_s,
        )

    def _try_to_build(self, seen: ApplicationObservation) -> str:
        """What stands in the way, where that is more than time."""
        settings = self._settings
        if seen.at_s - self._measured[0].at_s < settings.measure_s:
            return ""
        try:
            model = model_of(self._graph, self._measured, settings.node_types, interval_s=settings.interval_s)
            self._build(model)
        except InputError as problem:
            return f": {problem}"  # some chain has not finished anything yet, say: go on measuring
        return ""

    def _build(self, model: SystemModel | None) -> None:
        """With a model of what was measured, or for policies that need none."""
        spec = self._spec(model)
        controller, memory = build_controller(spec)
        if self._memory_file.exists():
            memory = self._remembered(controller)
        elif model is not None:
            memory = pretrained(spec, controller, memory)
            # What was measured before the first decision counts: the warm-up may be over already.
            watched = noticed(self._safety(spec.operators), memory.safety, (), {}, self._measured[0])
            memory = memory._replace(safety=watched)
        self._begin(Deciding(spec=spec, controller=controller, memory=memory))

    def _resume(self) -> None:
        """Go on with the controller of the run that was interrupted, as careful as we are told now."""
        settings = self._settings
        header = latest_header(read_journal(settings.out / "journal.jsonl"))
        if header is None:
            return
        before = header.controller
        for manager, asked in (
            (before.operator_policy, settings.operator_policy),
            (before.application_policy, settings.application_policy),
        ):
            for name, value in asked.parameters.items():
                if manager.name == asked.name and manager.parameters.get(name) != value:
                    raise InputError(
                        f"{settings.out}: the run there has {manager}, not {asked}; "
                        "go on with that, or give another folder"
                    )
        for what, then, now in (
            ("policy", before.operator_policy.name, settings.operator_policy.name),
            ("application policy", before.application_policy.name, settings.application_policy.name),
            ("node types", before.node_types, settings.node_types),
            ("seed", before.seed, settings.seed),
        ):
            if then != now:
                raise InputError(
                    f"{settings.out}: the run there has {what} {then}, not {now}; "
                    "go on with that, or give another folder"
                )
        spec = replace(before, advise=settings.advise, safety=self._safety(before.operators))
        controller, _ = build_controller(spec)
        memory = self._remembered(controller)
        self._begin(Deciding(spec=spec, controller=controller, memory=memory))
        if self._retuning is not None and is_tuned(spec):
            self._retuning.resume(spec)

    def _remembered(self, controller: Controller) -> ControllerMemory:
        try:
            return restored(controller, of_plain(json.loads(self._memory_file.read_text())))
        except (OSError, ValueError, KeyError, TypeError, InputError) as problem:
            raise InputError(
                f"{self._memory_file}: cannot go on with it: {problem}; remove it to begin anew"
            ) from problem

    def _begin(self, deciding: Deciding) -> None:
        self._tape.append(Header(controller=deciding.spec))
        self._tape.append(Remembered(memory=as_plain(saved(deciding.memory))))
        self._deciding = deciding

    def _safety(self, operators: Iterable[OperatorSpec]) -> SafetySettings:
        settings = self._settings
        return SafetySettings(
            interval_s=settings.interval_s,
            warm_up_s=settings.warm_up_s,
            scale_in_window_s=settings.scale_in_window_s,
            max_replicas={one.name: one.max_replicas for one in operators},
            max_cost=settings.max_cost,
            max_nodes=settings.max_nodes,
        )

    def _spec(self, model: SystemModel | None) -> ControllerSpec:
        settings, objective = self._settings, self._app.objective
        response_time_of(self._app)
        graph = self._graph if model is None else model.application
        operators = operator_specs(graph, objective) if model is None else specs_of(model, objective)
        return ControllerSpec(
            application=graph,
            objective=objective,
            node_types=settings.node_types,
            operators=operators,
            operator_policy=settings.operator_policy,
            application_policy=settings.application_policy,
            # A manager that tunes starts with naive shares, as all do, and equal weights.
            weights=naive(graph, objective).weights if settings.tunes else Weights(),
            source_rates=() if model is None else tuple(float(rate) for rate in model.rates),
            interval_s=settings.interval_s,
            safety=self._safety(operators),
            seed=settings.seed,
            advise=settings.advise,
        )


def own_policies(settings: LiveSettings) -> tuple[str, ...]:
    """Policies that are not part of Penstock and that another process has to load by name."""
    return tuple(name for name in (settings.policy.name, settings.application_policy.name) if ":" in name)


def changes_of(verdict: Verdict) -> tuple[str, ...]:
    return tuple(f"{one.operator}: {one.reason}" for one in verdict.granted)


def _reasons(made: Plan) -> tuple[str, ...]:
    held = [f"{name}: {decision.reason}" for name, decision in made.decisions.items()]
    refused = [f"{r.request.operator}: refused, {r.reason}" for r in (*made.verdict.refused, *made.vetoes)]
    return (*held, *refused)
