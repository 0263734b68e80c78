"""Tuning beside a running application: what to tune, whether it is due, and the swap. All pure.

`live/background_tuning.py`, beside the run, collects observations, has `tuned` computed in another
process, and swaps the answer in between two rounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.compiled import Floats, read_only
from penstock.control.build import FromMeasurements, build_controller, measured_operator
from penstock.control.journal import Noted, Retuned, retuned_spec
from penstock.control.loop import Controller, ControllerMemory
from penstock.control.saved import as_plain, of_plain, restored, saved
from penstock.control.spec import ControllerSpec, OperatorSpec
from penstock.domain.observation import ApplicationObservation
from penstock.policy.application.tuned import Behaviour, Chosen, Configuration, TuningEffort, naive
from penstock.policy.knowledge import ApplicationKnowledge, OperatorKnowledge
from penstock.runtimes.sim.graph import managed_operators, run_application
from penstock.training.pretrain import model_of, pretrained, specs_of
from penstock.training.tuning import chosen_by_simulation

SLOTS = 20_000  # of an evaluation: what was monitored, repeated, because learners need time
MOVED = 0.2  # by how much a rate or a service time must differ to be worth another tuning
STAYS = "bounds and weights stay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciding:
    """Who decides now, as a specification and as a controller, and what it remembers."""

    spec: ControllerSpec
    controller: Controller
    memory: ControllerMemory


def configuration_of(spec: ControllerSpec) -> Configuration:
    """The bounds and weights in force."""
    return Configuration(bounds_s={one.name: one.bound_s for one in spec.operators}, weights=spec.weights)


def is_tuned(spec: ControllerSpec) -> bool:
    """Whether bounds and weights differ from the naive ones it started with."""
    return configuration_of(spec) != naive(spec.application, spec.objective)


def job_of(
    spec: ControllerSpec, monitored: Sequence[ApplicationObservation], *, trigger_s: float = 0.0
) -> ControllerSpec:
    """The QoS analyser (Russo 2023, sec. 5.2.2): the current bounds and weights, on a model of what was seen.

    Raises InputError where something was not measured yet.
    """
    model = model_of(
        spec.application, monitored, spec.node_types, interval_s=spec.interval_s, trigger_s=trigger_s
    )
    newest = replace(
        spec,
        operators=specs_of(model, spec.objective),
        application=model.application,
        source_rates=tuple(float(rate) for rate in model.rates),
    )
    return _with(newest, configuration_of(spec))


def moved(before: ControllerSpec, now: ControllerSpec) -> str:
    """What has moved from one model to another, in words; nothing if it is about the same."""
    pairs = {"the load": (_mean(before.source_rates), _mean(now.source_rates))}
    for a, b in zip(before.operators, now.operators, strict=True):
        pairs[f"service time of '{a.name}'"] = a.service_time_s, b.service_time_s
        if a.batching is not None and b.batching is not None:
            pairs[f"fixed part of micro-batches of '{a.name}'"] = a.batching.fixed_s, b.batching.fixed_s
    for what, (was, is_now) in pairs.items():
        if abs(is_now - was) > MOVED * was:
            return f"{what} from {was:.4g} to {is_now:.4g}"
    return ""


def tuned(job: ControllerSpec) -> Retuned | Noted:
    """Algorithm 4 on the model of a job: better bounds and weights and policies trained for them, or none."""
    rates = np.resize(np.array(job.source_rates), max(SLOTS, len(job.source_rates)))
    chosen = chosen_by_simulation(
        lambda chosen, over: _behaviour(_with(job, chosen), read_only(over)),
        configuration_of(job),
        np.random.default_rng(job.seed),
        application=job.application,
        objective=job.objective,
        rates=read_only(rates),
        fastest=max(node_type.speedup for node_type in job.node_types),
        settings=_settings(job),
    )
    if chosen.stays:
        return Noted(at_s=0.0, text=f"tuning found nothing better: {STAYS}")
    best = _with(job, chosen.best.configuration)
    controller, memory = build_controller(best)
    trained = pretrained(best, controller, memory, seed=job.seed)
    return Retuned(
        at_s=0.0,
        application=best.application,
        operators=best.operators,
        weights=best.weights,
        source_rates=best.source_rates,
        memory=as_plain(saved(trained)),
        reason=_reason(chosen),
    )


def swapped(now: Deciding, answer: Retuned, at_s: float) -> tuple[Retuned, Deciding]:
    """Who decides from now on, and the journal entry that says so.

    Operator Managers start with what they learned for their new bounds and weights; what was
    learned for the old ones no longer applies. Everything else continues: safety, random generators, periods.
    """
    spec = retuned_spec(now.spec, answer)
    controller, _ = build_controller(spec)
    trained = restored(controller, of_plain(answer.memory)).managers.operators
    kept = now.memory._replace(managers=now.memory.managers._replace(operators=trained))
    entry = replace(answer, at_s=at_s, memory=as_plain(saved(kept)))
    return entry, Deciding(spec=spec, controller=controller, memory=kept)


@dataclass(frozen=True, slots=True, eq=False)
class _Monitored:
    """What managers are given in a simulation of what was monitored: just that."""

    spec: ControllerSpec
    rates: Floats

    def of_operator(self, one: OperatorSpec) -> OperatorKnowledge:
        # Levels up to what all replicas on reference nodes can take, as live managers have them.
        return measured_operator(self.spec, replace(one, max_rate=None), self.rates)

    def of_application(self) -> ApplicationKnowledge:
        raise TypeError("a tuning simulates Operator Managers only")


def _behaviour(spec: ControllerSpec, rates: Floats) -> Behaviour:
    seeds = np.random.default_rng(spec.seed).spawn(2 * len(spec.operators))
    rngs = {one.name: rng for one, rng in zip(spec.operators, seeds[1::2], strict=True)}
    managed = managed_operators(spec, _Monitored(spec, rates), rngs)
    ran = run_application(spec.application, spec.objective, managed, rates)
    return Behaviour(
        resource_cost=float(ran.resources.mean()),
        violations=float(ran.violated.mean()),
        reconfigurations=float(ran.reconfigured.mean()),
    )


def _settings(spec: ControllerSpec) -> TuningEffort | None:
    """The parameters of the Application Manager, if it tunes."""
    built = spec.application_policy.for_application(FromMeasurements(spec).of_application())
    return built if isinstance(built, TuningEffort) else None


def _with(spec: ControllerSpec, chosen: Configuration) -> ControllerSpec:
    operators = tuple(replace(one, bound_s=chosen.bounds_s[one.name]) for one in spec.operators)
    return replace(spec, operators=operators, weights=chosen.weights)


def _mean(rates: Sequence[float]) -> float:
    return sum(rates) / len(rates) if rates else 0.0


def _reason(chosen: Chosen) -> str:
    before, after = chosen.start.measured, chosen.best.measured
    new = chosen.best.configuration
    bounds = ", ".join(f"{name} {1000 * bound:.3g} ms" for name, bound in new.bounds_s.items())
    weights = new.weights
    kept = "kept" if after.feasible else "broken, as before"
    return (
        f"resources {before.cost:.3g} to {after.cost:.3g} in simulation, requirements {kept}; "
        f"bounds {bounds}; "
        f"weights {weights.performance:.2f}, {weights.resources:.2f}, {weights.reconfiguration:.2f}"
    )
