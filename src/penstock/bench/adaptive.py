"""The default policy: simulated slots a second between two plans, a plan, and a decision in micro-batches."""

import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.random import Generator

from penstock.bench.figure import Figure
from penstock.compiled import Floats
from penstock.control.spec import Manager
from penstock.data.synthetic import day_and_week
from penstock.domain.deployment import Replicas
from penstock.domain.observation import OperatorObservation
from penstock.policy.operator.adaptive import Adaptive
from penstock.policy.rl.worth_having import plan, plan_in
from penstock.runtimes.sim.episode import no_totals, play, single_replica, trail_of, world_of
from penstock.simulation.one_operator import operator_of
from penstock.simulation.spec import OneOperator

STAGES = 3

_SLOTS = 1_000_000
_LEARNING_SLOTS = 50_000
_REPEATS = 3
_PLANS = 20
_DECISIONS = 300
_SETTINGS = (("A:3", 10), ("A:10", 20))


def run_adaptive(*, stage: Callable[[str], None]) -> Iterator[Figure]:
    """Measure everything, one figure after another; `stage` is called with what comes next."""
    rates = day_and_week(slots=_SLOTS, seed=1).rates
    rng = np.random.default_rng(1)
    stage("between two plans")
    for infrastructure, replicas in _SETTINGS:
        yield _between_plans(infrastructure, replicas, rates, rng)
    stage("plans")
    for infrastructure, replicas in _SETTINGS:
        yield _planning(infrastructure, replicas, rates, rng)
    stage("decisions in micro-batches")
    yield _deciding(rng)


def _built(spec: OneOperator, rates: Floats) -> Adaptive:
    policy = spec.operator_policy.for_operator(operator_of(spec, rates, rates, 1))
    if not isinstance(policy, Adaptive):
        raise TypeError(f"{spec.operator_policy.name} is another policy")
    return policy


def _spec(infrastructure: str, replicas: int) -> OneOperator:
    return OneOperator(
        operator_policy=Manager("adaptive"), infrastructure=infrastructure, max_replicas=replicas
    )


def _between_plans(infrastructure: str, replicas: int, rates: Floats, rng: Generator) -> Figure:
    """After it has learned, with the next plan further away than the end."""
    spec = _spec(infrastructure, replicas)
    known = operator_of(spec, rates, rates, 1)
    policy = _built(spec, rates)
    memory, totals = policy.initial(), no_totals(len(known.node_types))
    world = world_of(known)
    here = single_replica(known, 0)
    here, memory = play(world, policy, memory, rates[:_LEARNING_SLOTS], here, rng, totals, trail_of(0))
    best = 0.0
    for _ in range(_REPEATS):
        plan_in(memory, 10 * _SLOTS)
        began = time.perf_counter()
        here, memory = play(world, policy, memory, rates, here, rng, totals, trail_of(0))
        best = max(best, rates.size / (time.perf_counter() - began))
    name = f"{infrastructure}, {replicas} replicas, between two plans"
    return Figure(name=name, value=best, unit="slots/s", at_least=1e6)


def _planning(infrastructure: str, replicas: int, rates: Floats, rng: Generator) -> Figure:
    spec = _spec(infrastructure, replicas)
    known = operator_of(spec, rates, rates, 1)
    policy = _built(spec, rates)
    memory = policy.initial()
    totals = no_totals(len(known.node_types))
    here = single_replica(known, 0)
    play(world_of(known), policy, memory, rates[:_LEARNING_SLOTS], here, rng, totals, trail_of(0))
    times = []
    for _ in range(_PLANS):
        memory.values[:] = 0.0  # from nothing, which takes longest
        began = time.perf_counter()
        plan(memory, 0)
        times.append(time.perf_counter() - began)
    name = f"{infrastructure}, {replicas} replicas, a plan from nothing (median)"
    return Figure(name=name, value=float(np.median(times)), unit="s", at_most=3.0)


def _deciding(rng: Generator) -> Figure:
    """As live: batches that take .4 s and 10 ms a tuple, a load that wanders."""
    spec = OneOperator(
        operator_policy=Manager("adaptive"), infrastructure="A:1", max_replicas=8, slo_s=5.0, service_rate=100
    )
    policy = _built(spec, np.full(10, 50.0))
    memory, times, load = policy.initial(), [], 100.0
    for second in range(_DECISIONS):
        load = float(np.clip(load * np.exp(rng.normal(0, 0.03)), 20, 300))
        seen = OperatorObservation(
            operator="operator",
            at_s=float(second),
            replicas=Replicas((4,)),
            arrival_rate=load,
            response_time_s=1.0,
            utilisation=0.5,
            service_time_s=0.01,
            batch_s=0.4 / (1 - 0.01 * load / 4),
            batch_tuples=0.4 * load / (1 - 0.01 * load / 4),
            trigger_s=0.5,
        )
        began = time.perf_counter()
        _, memory = policy.decide(memory, seen, rng)
        times.append(time.perf_counter() - began)
    return Figure(
        name="a decision in micro-batches (median)",
        value=1e3 * float(np.median(times)),
        unit="ms",
        at_most=1.0,
    )
