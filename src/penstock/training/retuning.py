"""Tuning beside a running application: what to tune, whether it is time again, and the swap. All pure.

Whoever runs the application (`live/tuning.py`) collects observations, has `tuned` worked out
somewhere else meanwhile, and swaps the answer in between two rounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.compiled import Floats, read_only
from penstock.control.journal import Header, Noted, Retuned, retuned_header
from penstock.control.loop import Controller, ControllerMemory
from penstock.control.plain_data import from_plain, to_plain
from penstock.control.saved import as_plain, of_plain, restored, saved
from penstock.domain.observation import ApplicationObservation
from penstock.policies.application.tuned import Chosen, Configuration, naive
from penstock.simulate.catalogue import Operator, measured_operator
from penstock.simulate.controllers import PolicySpec, build_controller
from penstock.simulate.simulation import run_graph
from penstock.simulate.spec import Spec
from penstock.training.pretrain import model_of, pretrained, specs_of
from penstock.training.tuning import BUDGET, chosen_by_simulation

SLOTS = 20_000  # of an evaluation: what was monitored, over and over, because learners need time
MOVED = 0.2  # by how much a rate or a service time must differ to be worth another tuning
STAYS = "bounds and weights stay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciding:
    """Who decides at a time, as a header and as a controller, and what he remembers."""

    header: Header
    controller: Controller
    memory: ControllerMemory


def configuration_of(header: Header) -> Configuration:
    """The bounds and weights that hold."""
    spec = from_plain(header.policies, PolicySpec)
    return Configuration(bounds_s={one.name: one.bound_s for one in spec.operators}, weights=spec.weights)


def is_tuned(header: Header) -> bool:
    """Whether anything but the naive start holds."""
    spec = from_plain(header.policies, PolicySpec)
    return configuration_of(header) != naive(spec.graph, spec.limits)


def job_of(header: Header, monitored: Sequence[ApplicationObservation]) -> Header:
    """The QoS analyser (Russo 2023, sec. 5.2.2): the current bounds and weights, on a model of what was seen.

    Raises InputError where something was not measured yet.
    """
    spec = from_plain(header.policies, PolicySpec)
    model = model_of(spec.graph, monitored, header.node_types, interval_s=header.safety_chain.interval_s)
    newest = replace(
        spec,
        operators=specs_of(model, spec.limits),
        application=model.application,
        source_rates=tuple(float(rate) for rate in model.rates),
    )
    return _with(header, newest, configuration_of(header))


def moved(before: Header, now: Header) -> str:
    """What has moved from one model to another, in words; nothing if it is about the same."""
    old, new = (from_plain(header.policies, PolicySpec) for header in (before, now))
    pairs = {"the load": (_mean(old.source_rates), _mean(new.source_rates))} | {
        f"service time of '{a.name}'": (a.service_time_s, b.service_time_s)
        for a, b in zip(old.operators, new.operators, strict=True)
    }
    for what, (was, is_now) in pairs.items():
        if abs(is_now - was) > MOVED * was:
            return f"{what} from {was:.4g} to {is_now:.4g}"
    return ""


def tuned(job: Header, *, budget: int = BUDGET) -> Retuned | Noted:
    """Algorithm 4 on the model of a job: other bounds and weights and policies trained for them, or none."""
    spec = from_plain(job.policies, PolicySpec)
    rates = np.resize(np.array(spec.source_rates), max(SLOTS, len(spec.source_rates)))
    chosen = chosen_by_simulation(
        lambda chosen, over: run_graph(
            _simulated(spec, job.seed),
            spec.graph,
            over,
            bounds_s=chosen.bounds_s,
            manager_weights=chosen.weights,
            operator_of=lambda local, its_rates, training, rng: _operator(local, job, its_rates, rng),
        ),
        configuration_of(job),
        np.random.default_rng(job.seed),
        application=spec.graph,
        objective=spec.limits,
        rates=read_only(rates),
        fastest=max(node_type.speedup for node_type in job.node_types),
        budget=budget,
    )
    if chosen.stays:
        return Noted(at_s=0.0, text=f"tuning found nothing better: {STAYS}")
    header = _with(job, spec, chosen.best.configuration)
    controller, memory = build_controller(header)
    trained = pretrained(header, controller, memory, seed=job.seed)
    return Retuned(
        at_s=0.0, policies=header.policies, memory=as_plain(saved(trained)), reason=_reason(chosen)
    )


def swapped(now: Deciding, answer: Retuned, at_s: float) -> tuple[Retuned, Deciding]:
    """Who decides from now on, and the entry that says so.

    Operator Managers start with what they learned for their new bounds and weights; what was
    learned for the old ones has another meaning. Everything else goes on: safety, chance, paces.
    """
    header = retuned_header(now.header, answer)
    controller, _ = build_controller(header)
    trained = restored(controller, of_plain(answer.memory)).managers.operators
    kept = replace(now.memory, managers=replace(now.memory.managers, operators=trained))
    entry = replace(answer, at_s=at_s, memory=as_plain(saved(kept)))
    return entry, Deciding(header=header, controller=controller, memory=kept)


def _with(header: Header, spec: PolicySpec, chosen: Configuration) -> Header:
    operators = tuple(replace(one, bound_s=chosen.bounds_s[one.name]) for one in spec.operators)
    policies = replace(spec, operators=operators, weights=chosen.weights)
    return replace(header, policies=to_plain(policies, PolicySpec))


def _simulated(spec: PolicySpec, seed: int) -> Spec:
    objective = spec.limits
    return Spec(
        policy=spec.policy,
        slo_s=objective.response_time_s or min(objective.per_path_s.values()),
        path_slo_s=tuple(objective.per_path_s.items()),
        weights=objective.weights,
        levels=spec.levels,
        gamma=spec.gamma,
        threshold=spec.threshold,
        beta=spec.beta,
        replicas=spec.replicas,
        seed=seed,
    )


def _operator(local: Spec, job: Header, rates: Floats, rng: np.random.Generator) -> Operator:
    """As `controllers.measured` makes them: levels up to what all replicas on reference nodes can take."""
    highest = replace(local, max_rate=local.max_replicas * local.service_rate)
    return measured_operator(highest, job.node_types, rates, rng)


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
