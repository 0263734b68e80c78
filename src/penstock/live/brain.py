"""The controller of a live run: built from measurements, asked every interval, saved for a restart."""

import json
from collections.abc import Iterable
from dataclasses import replace

from penstock.control.journal import Header, Noted, Remembered, Ticked, latest_header
from penstock.control.loop import Controller, ControllerMemory, plan
from penstock.control.plain_data import from_plain
from penstock.control.plan import Plan
from penstock.control.ports import Journal
from penstock.control.safety_settings import SafetySettings
from penstock.control.saved import as_plain, of_plain, restored, saved
from penstock.control.watch import noticed
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.objective import Weights
from penstock.domain.observation import ApplicationObservation
from penstock.domain.request import Request, ScaleIn, ScaleOut, Verdict
from penstock.files import write_whole
from penstock.journal_file import read_journal
from penstock.live.inbox import ORDERS, obeyed, pending
from penstock.live.record import Interval
from penstock.live.settings import LiveSettings
from penstock.live.tuning import Retuning, Tuner, TunerProcess
from penstock.perf.calibration import SystemModel
from penstock.policies.application.tuned import naive
from penstock.runtimes.spark.topology import App
from penstock.simulate.application_managers import TUNED
from penstock.simulate.controllers import (
    OperatorSpec,
    PolicySpec,
    build_controller,
    header_of,
    operator_specs,
)
from penstock.training.pretrain import model_of, pretrained, specs_of
from penstock.training.retuning import Deciding, is_tuned


def compile_policy(settings: LiveSettings) -> None:
    """A policy is compiled when it is first used on a machine: better before anything else runs."""
    one = OperatorSpec(name="any", bound_s=1.0, service_time_s=0.01, max_replicas=2)
    header = header_of(
        PolicySpec(operators=(one,), policy=settings.policy),
        node_types=settings.node_types,
        seed=settings.seed,
        safety=SafetySettings(),
    )
    controller, memory = build_controller(header)
    pretrained(header, controller, memory, slots=1)


def response_time_of(app: App) -> float:
    """The objective, which is one for all paths."""
    if app.objective.response_time_s is None or app.objective.per_path_s:
        raise InputError(f"application '{app.name}': a live run has one response time for all paths")
    return app.objective.response_time_s


class Brain:
    """Decides; before a policy that needs a model can, it measures."""

    def __init__(
        self, app: App, settings: LiveSettings, journal: Journal, tuner: Tuner | None = None
    ) -> None:
        self._app, self._settings, self._journal = app, settings, journal
        self._graph = app.chain_graph()
        self._measured: list[ApplicationObservation] = []
        self._built: Deciding | None = None
        self._retuning = self._tuned(tuner) if settings.application_policy == TUNED else None
        self._memory_file = settings.work / "controller.json"
        self._count = 0
        if not settings.needs_model:
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
        waiting = pending(self._settings.work / ORDERS)
        orders = tuple(order for order in waiting.values() if order is not None)
        made, memory = plan(self._built.controller, self._built.memory, seen, orders)
        self._journal.append(Ticked(seen=seen, orders=orders, plan=made))
        obeyed(waiting)
        self._built = replace(self._built, memory=memory)
        write_whole(self._memory_file, json.dumps(as_plain(saved(memory))))
        verdict = made.to_do
        if self._settings.chaos:
            verdict = self._forced(seen)
            for request in verdict.granted:
                text = f"forced: {type(request).__name__} of {request.operator}"
                self._journal.append(Noted(at_s=seen.at_s, text=text))
        return Interval(seen=seen, reasons=(*retuned, *_reasons(made)), changed=_changes(verdict)), verdict

    def _forced(self, seen: ApplicationObservation) -> Verdict:
        """One chain after another up and down again, whatever the policy wants."""
        requests: list[Request] = []
        self._count += 1
        chains = list(self._app.chains())
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
        settings = self._settings
        return Retuning(
            tuner or TunerProcess(self._settings.work / "tuning"),
            self._journal,
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
            model = model_of(
                self._graph, self._measured, self._settings.node_types, interval_s=settings.interval_s
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
            memory = self._remembered(controller)
        elif model is not None:
            memory = pretrained(header, controller, memory)
            # What was measured before the first decision counts: the warm-up may be over already.
            watched = noticed(header.safety_chain, memory.safety, (), {}, self._measured[0])
            memory = replace(memory, safety=watched)
        self._begin(Deciding(header=header, controller=controller, memory=memory))

    def _resume(self) -> None:
        """Go on with the controller of the run that was interrupted, as careful as we are told now."""
        settings = self._settings
        header = latest_header(read_journal(settings.out / "journal.jsonl"))
        if header is not None:
            before = from_plain(header.policies, PolicySpec)
            for what, then, now in (
                ("policy", before.policy, settings.policy),
                ("application policy", before.manager, settings.application_policy),
                ("node types", header.node_types, settings.node_types),
                ("seed", header.seed, settings.seed),
            ):
                if then != now:
                    raise InputError(
                        f"{settings.out}: the run there has {what} {then}, not {now}; "
                        "go on with that, or give another folder"
                    )
            header = replace(header, advise=settings.advise, safety=self._safety(before.operators))
            controller, _ = build_controller(header)
            memory = self._remembered(controller)
            self._begin(Deciding(header=header, controller=controller, memory=memory))
            if self._retuning is not None and is_tuned(header):
                self._retuning.resume(header)

    def _remembered(self, controller: Controller) -> ControllerMemory:
        try:
            return restored(controller, of_plain(json.loads(self._memory_file.read_text())))
        except (OSError, ValueError, KeyError, TypeError, InputError) as problem:
            raise InputError(
                f"{self._memory_file}: cannot go on with it: {problem}; remove it to begin anew"
            ) from problem

    def _begin(self, deciding: Deciding) -> None:
        self._journal.append(deciding.header)
        self._journal.append(Remembered(memory=as_plain(saved(deciding.memory))))
        self._built = deciding

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

    def _header(self, model: SystemModel | None) -> Header:
        settings, objective = self._settings, self._app.objective
        within_s = response_time_of(self._app)
        graph = self._graph if model is None else model.application
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
            token_bucket=(settings.bucket_low * within_s, settings.bucket_high * within_s),
            token_period_s=2 * settings.interval_s,
        )
        return header_of(
            policies,
            node_types=self._settings.node_types,
            seed=settings.seed,
            safety=self._safety(operators),
            advise=settings.advise,
        )


def _reasons(made: Plan) -> tuple[str, ...]:
    held = [f"{name}: {decision.reason}" for name, decision in made.decisions.items()]
    refused = [f"{r.request.operator}: refused, {r.reason}" for r in (*made.verdict.refused, *made.vetoes)]
    return (*held, *refused)


def _changes(verdict: Verdict) -> tuple[str, ...]:
    return tuple(f"{request.operator}: {request.reason}" for request in verdict.granted)
