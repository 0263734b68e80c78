"""The controller of a live run: built from measurements, asked every interval, saved for a restart.

The round itself is `control.loop.tick`. What stands around it: measuring before there is a
controller, a swap of bounds and weights between two rounds, orders, and what is kept on disk.
"""

import json
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.control.build import build_controller
from penstock.control.journal import Header, Noted, Remembered, Retuned, latest_header
from penstock.control.loop import Controller, ControllerMemory, tick
from penstock.control.orders import Order, Pause
from penstock.control.plain_data import parsed_json
from penstock.control.plan import Plan
from penstock.control.ports import Actuator, Journal, Monitor
from penstock.control.saved import as_plain, of_plain, restored, saved
from penstock.control.spec import GRANT_ALL, ControllerSpec, Manager, operator_specs
from penstock.control.watch import as_of, noticed
from penstock.domain.errors import InputError
from penstock.domain.observation import ApplicationObservation
from penstock.domain.request import Verdict
from penstock.files import content_of, write_whole
from penstock.journal_file import read_journal
from penstock.live.background_tuning import MONITORED, Retuning, Tuner, TunerProcess
from penstock.live.inbox import ORDERS, obeyed, pending
from penstock.live.record import Interval
from penstock.live.settings import LiveSettings
from penstock.perf.calibration import SystemModel
from penstock.policy.application.tuned import naive
from penstock.runtimes.spark import steady
from penstock.runtimes.spark.topology import App
from penstock.training.pretrain import model_of, pretrained, specs_of
from penstock.training.retuning import Deciding, is_tuned

_LEARNED_EVERY_S = 30.0  # what policies have learned is large, and a restart may do without the latest of it
_COMPILED_REPLICAS = 2  # enough to compile with: planning for many takes long


def compile_policy(declared: ControllerSpec) -> None:
    """Compile the policy, which happens at its first use on a machine, before anything else runs."""
    graph = declared.application
    most = min(_COMPILED_REPLICAS, *(one.max_replicas for one in graph.operators))
    small = replace(graph, operators=tuple(replace(one, max_replicas=most) for one in graph.operators))
    parameters = {name: v for name, v in declared.operator_policy.parameters.items() if name != "replicas"}
    spec = replace(
        declared,
        application=small,
        operators=operator_specs(small, declared.objective)[:1],
        operator_policy=replace(declared.operator_policy, parameters=parameters),
        application_policy=Manager(GRANT_ALL),
    )
    controller, memory = build_controller(spec)
    ready = [getattr(policy, "get_ready", None) for policy in controller.managers.operators.values()]
    for get_ready in ready:
        if get_ready is not None:
            get_ready()
    if not any(ready):
        pretrained(spec, controller, memory, slots=1)


def response_time_of(app: App) -> float:
    """The one objective for all paths."""
    if app.objective.response_time_s is None or app.objective.per_path_s:
        raise InputError(f"application '{app.name}': a live run has one response time for all paths")
    return app.objective.response_time_s


class Controlling:
    """Decides every interval; for a policy that needs a model, it measures first."""

    def __init__(
        self, declared: ControllerSpec, settings: LiveSettings, journal: Journal, tuner: Tuner | None = None
    ) -> None:
        self._declared, self._settings, self._journal = declared, settings, journal
        # The latest tell enough of a load: where a model can never be built, there are ever more.
        self._measured: deque[ApplicationObservation] = deque(maxlen=MONITORED)
        self._first: ApplicationObservation | None = None  # of all that was measured
        self._deciding: Deciding | None = None
        self._retuning = self._made_retuning(tuner) if declared.tunes else None
        self._memory_file = settings.work / "controller.json"  # orders, safety, dates: after every round
        self._learned_file = settings.work / "learned.json"  # now and then
        self._learned_at_s: float | None = None
        self._latest: ControllerMemory | None = None  # what was kept last
        self._last_at_s: float | None = None  # nothing was seen yet
        if not declared.needs_model:
            self._build(None)
        elif self._memory_file.exists():
            self._resume()

    def round(self, monitor: Monitor, actuator: Actuator) -> Interval:
        """One interval: see, decide, write down, act; or only see and remember, until it can decide."""
        if self._deciding is None:
            return self._measure(monitor.observe())
        swapped = self._swap_if_tuned(self._deciding)
        now = self._deciding
        waiting = pending(self._settings.work / ORDERS)
        orders = tuple(_in_steady_time(order) for order in waiting.values() if order is not None)
        ticked, memory = tick(
            now.controller, now.memory, monitor, self._journal, actuator, orders, keep=self._keep
        )
        obeyed(waiting)
        self._deciding = replace(now, memory=memory)
        self._saw(ticked.seen)
        reasons = (*(("bounds and weights retuned",) if swapped else ()), *_reasons(ticked.plan))
        return Interval(seen=ticked.seen, reasons=reasons, changed=changes_of(ticked.plan.to_do))

    def stop(self) -> None:
        if self._retuning is not None:
            self._retuning.stop()
        if self._latest is not None:
            self._learned_at_s = None  # all that was learned
            with suppress(
                InputError
            ):  # a full disk: why the run ends is told already, and half a minute lost
                self._keep(self._latest)

    def _measure(self, seen: ApplicationObservation) -> Interval:
        self._saw(seen)
        self._measured.append(seen)
        self._first = self._first or seen
        why = "measuring, before the first decision" + self._try_to_build(seen)
        self._journal.append(Noted(at_s=seen.at_s, text=why))
        return Interval(seen=seen, reasons=(why,), changed=())

    def _saw(self, seen: ApplicationObservation) -> None:
        self._last_at_s = seen.at_s
        if self._retuning is not None:
            self._retuning.saw(seen)

    def _swap_if_tuned(self, now: Deciding) -> bool:
        if self._retuning is not None and self._last_at_s is not None:
            self._deciding = self._retuning.between_rounds(now, self._last_at_s)
        swapped = self._deciding is not now
        if swapped:
            self._learned_at_s = None  # what was learned under other bounds is not gone on with
        return swapped

    def _keep(self, memory: ControllerMemory) -> None:
        now = self._last_at_s  # of the round before; what is learned in this one can wait
        kept, self._latest = saved(memory), memory
        if self._learned_at_s is None or (now is not None and now - self._learned_at_s >= _LEARNED_EVERY_S):
            write_whole(self._learned_file, json.dumps({"arrays": as_plain(kept)["arrays"]}))
            self._learned_at_s = now
        write_whole(self._memory_file, json.dumps({"state": dict(kept.state)}))

    def _made_retuning(self, tuner: Tuner | None) -> Retuning:
        settings = self._settings
        return Retuning(
            tuner or TunerProcess(settings.work / "tuning", own_policies(self._declared)),
            self._journal,
            least_s=settings.measure_s,
            period_s=settings.retune_s,
            limit_s=settings.tuning_limit_s,
            trigger_s=settings.trigger_s,
        )

    def _try_to_build(self, seen: ApplicationObservation) -> str:
        """What prevents a decision, where waiting alone will not help."""
        declared = self._declared
        if self._first is None or seen.at_s - self._first.at_s < self._settings.measure_s:
            return ""
        try:
            model = model_of(
                declared.application,
                self._measured,
                declared.node_types,
                interval_s=declared.interval_s,
                trigger_s=self._settings.trigger_s,
            )
            self._build(model)
        except InputError as problem:
            return f": {problem}"  # some chain may not have finished anything yet: keep measuring
        return ""

    def _build(self, model: SystemModel | None) -> None:
        """With a model of what was measured, or for policies that need none."""
        spec = self._declared if model is None else measured(self._declared, model)
        controller, memory = build_controller(spec)
        if self._memory_file.exists():
            memory = self._remembered(controller)
        elif model is not None:
            memory = pretrained(spec, controller, memory)
            # What was measured before the first decision counts: the warm-up may already be over.
            if spec.safety is not None and self._first is not None:
                watched = noticed(spec.safety, memory.safety, (), {}, self._first)
                memory = memory._replace(safety=watched)
        self._begin(Deciding(spec=spec, controller=controller, memory=memory))

    def _resume(self) -> None:
        """Resume the controller of the interrupted run, with the safety settings given now."""
        settings, declared = self._settings, self._declared
        header = latest_header(read_journal(settings.out / "journal.jsonl", Header, Retuned))
        if header is None:
            return
        before = header.controller
        for manager, asked in (
            (before.operator_policy, declared.operator_policy),
            (before.application_policy, declared.application_policy),
        ):
            for name, value in asked.parameters.items():
                if manager.name == asked.name and manager.parameters.get(name) != value:
                    raise InputError(
                        f"{settings.out}: the run there has {manager}, not {asked}; "
                        "continue with that, or give another folder"
                    )
        for what, then, now in (
            ("policy", before.operator_policy.name, declared.operator_policy.name),
            ("application policy", before.application_policy.name, declared.application_policy.name),
            ("node types", before.node_types, declared.node_types),
            ("seed", before.seed, declared.seed),
            ("objective", before.objective, declared.objective),
            ("interval", before.interval_s, declared.interval_s),
        ):
            if then != now:
                raise InputError(
                    f"{settings.out}: the run there has {what} {then}, not {now}; "
                    "continue with that, or give another folder"
                )
        spec = replace(before, advise=declared.advise, safety=declared.safety)
        controller, _ = build_controller(spec)
        memory = self._remembered(controller)
        self._begin(Deciding(spec=spec, controller=controller, memory=memory))
        if self._retuning is not None and is_tuned(spec):
            self._retuning.resume(spec)

    def _remembered(self, controller: Controller) -> ControllerMemory:
        try:
            kept = _kept_in(self._memory_file)
            if "arrays" not in kept:  # until November 2026 both were in one file
                kept |= _kept_in(self._learned_file)
            memory = restored(controller, of_plain(kept))
            return memory._replace(safety=as_of(memory.safety, steady.now_s()))
        except InputError as problem:
            raise InputError(
                f"{self._memory_file}: cannot resume from it: {problem}; remove it to start afresh"
            ) from problem

    def _begin(self, deciding: Deciding) -> None:
        self._journal.append(Header(controller=deciding.spec))
        self._journal.append(Remembered(memory=as_plain(saved(deciding.memory))))
        self._deciding = deciding


def _kept_in(path: Path) -> dict[str, Any]:
    """What a file of this controller says."""
    try:
        said = parsed_json(content_of(path))
    except OSError as problem:
        raise InputError(f"{path.name}: {problem.strerror or problem}") from problem
    if not isinstance(said, dict):
        raise InputError(f"{path.name}: it must be a JSON object")
    return said


def measured(declared: ControllerSpec, model: SystemModel) -> ControllerSpec:
    """The controller that was asked for, with operators and load as they were measured."""
    weights = naive(model.application, declared.objective).weights if declared.tunes else declared.weights
    return replace(
        declared,
        application=model.application,
        operators=specs_of(model, declared.objective, declared.together),
        weights=weights,
        source_rates=tuple(float(rate) for rate in model.rates),
    )


def own_policies(spec: ControllerSpec) -> tuple[str, ...]:
    """Policies from outside Penstock that another process has to load by name."""
    return tuple(one.name for one in (spec.operator_policy, spec.application_policy) if ":" in one.name)


def changes_of(verdict: Verdict) -> tuple[str, ...]:
    return tuple(f"{one.operator}: {one.reason}" for one in verdict.granted)


def _in_steady_time(order: Order) -> Order:
    """A person's pause ends by the clock on the wall, which may have been set since the run began."""
    ahead_s = steady.now_s() - time.time()
    if isinstance(order, Pause) and abs(ahead_s) > 1:
        return Pause(until_s=order.until_s + ahead_s)
    return order


def _reasons(made: Plan) -> tuple[str, ...]:
    held = [f"{name}: {decision.reason}" for name, decision in made.decisions.items()]
    refused = [f"{r.request.operator}: refused, {r.reason}" for r in (*made.verdict.refused, *made.vetoes)]
    return (*held, *refused)
