"""Simulating one operator, whose speeds and prices may change during the run."""

import time

import numpy as np

from penstock.compiled import Floats, Ints
from penstock.control.spec import OperatorSpec
from penstock.perf.cost import interval_cost
from penstock.perf.deployments import Deployments, counts_at, with_types
from penstock.policy.kernel import CompiledPolicy, is_compiled
from penstock.policy.knowledge import OperatorKnowledge
from penstock.runtimes.sim.episode import Trail, decided, no_totals, part_of, play, trail_of, world_of
from penstock.simulation.result import History, SimulationResult
from penstock.simulation.spec import OneOperator
from penstock.simulation.truth import Truth, first_deployment, foresight_of

_NAME = "operator"


def operator_of(spec: OneOperator, rates: Floats, training: Floats, seed: int) -> OperatorKnowledge:
    """The operator a specification describes; `seed` draws the errors in its policy's model."""
    model_rng, _ = np.random.default_rng(seed).spawn(2)
    truth = Truth(setting=spec, rates=rates, training=training, rngs={_NAME: model_rng})
    return truth.of_operator(
        OperatorSpec(
            name=_NAME,
            bound_s=spec.slo_s,
            service_time_s=1.0 / spec.service_rate,
            service_scv=spec.service_scv,
            max_replicas=spec.max_replicas,
        )
    )


def run_operator(
    spec: OneOperator, rates: Floats, training: Floats, *, with_history: bool = False
) -> SimulationResult:
    """Simulate one operator under its policy."""
    _, policy_rng = np.random.default_rng(spec.seed).spawn(2)
    known = operator_of(spec, rates, training, spec.seed)
    policy = spec.operator_policy.for_operator(known)
    memory = policy.initial()
    here = first_deployment(known, policy, spec.variant.first_replica)
    totals = no_totals(len(known.node_types))
    trail = trail_of(rates.size if with_history else 0)
    stages = _stages(spec, known)
    ends = [slot for slot, _ in stages[1:]] + [rates.size]
    charge_before = spec.variant.charge_before
    if is_compiled(memory):  # compile before timing
        world = world_of(known, charge_before=charge_before)
        play(world, policy, memory, rates[:0], here, policy_rng, totals, trail)
    seconds = 0.0
    latest = known.deployments
    for (start, space), end in zip(stages, ends, strict=True):
        if space is not latest and isinstance(policy, CompiledPolicy):
            memory = policy.informed(memory, latest, space)
        latest = space
        world = world_of(known, space, charge_before=charge_before)
        part = part_of(trail, start, end)
        began = time.perf_counter()
        here, memory = play(
            world,
            policy,
            memory,
            rates[start:end],
            here,
            policy_rng,
            totals,
            part,
            slots_before=start,
            foresight=foresight_of(spec),
        )
        seconds += time.perf_counter() - began
    slots, violations, reconfigurations = (int(count) for count in totals.counts)
    resource_cost = float(totals.resources[0]) / slots
    charged = trail.deployment if charge_before else decided(trail, here)
    return SimulationResult(
        spec=spec,
        slots=slots,
        avg_cost=interval_cost(
            spec.weights, violations / slots, resource_cost / known.cost_scale, reconfigurations / slots
        ),
        violations_pct=100 * violations / slots,
        reconfigurations_pct=100 * reconfigurations / slots,
        resource_cost=resource_cost,
        replicas_by_type=tuple(float(total) / slots for total in totals.replicas),
        seconds=seconds,
        history=_history(stages, ends, trail, charged) if with_history else None,
    )


def _stages(spec: OneOperator, known: OperatorKnowledge) -> list[tuple[int, Deployments]]:
    """Which speeds and prices apply, and from which slot."""
    shifts = sorted((s for s in (spec.price_shift, spec.speed_shift) if s), key=lambda s: s.slot)
    stages = [(0, known.deployments)]
    others = np.arange(len(known.node_types)) < len(known.node_types) - 1
    for shift in shifts:
        latest = stages[-1][1]
        factor = np.where(others, shift.factor, 1.0)
        stages.append(
            (
                shift.slot,
                with_types(
                    latest,
                    speedup=latest.speedup * (factor if shift is spec.speed_shift else 1.0),
                    price=latest.price * (factor if shift is spec.price_shift else 1.0),
                ),
            )
        )
    return stages


def _history(stages: list[tuple[int, Deployments]], ends: list[int], trail: Trail, charged: Ints) -> History:
    replicas, resources = np.empty(trail.cost.size), np.empty(trail.cost.size)
    for (start, space), end in zip(stages, ends, strict=True):
        replicas[start:end] = counts_at(space, trail.deployment[start:end]).sum(axis=1)
        resources[start:end] = counts_at(space, charged[start:end]) @ space.price
    return History(
        cost=trail.cost, response_time_s=trail.response_time_s, replicas=replicas, resources=resources
    )
