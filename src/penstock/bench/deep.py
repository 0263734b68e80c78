"""Deep learners: simulated slots a second, seeds side by side, a live decision, and memory beside tables."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from penstock.bench.figure import Figure
from penstock.compiled import Floats
from penstock.control.spec import Manager
from penstock.data.synthetic import day_and_week
from penstock.domain.deployment import Replicas
from penstock.domain.observation import OperatorObservation
from penstock.policy.kernel import CompiledPolicy
from penstock.policy.memory import learned
from penstock.simulation.one_operator import operator_of
from penstock.simulation.play import run, run_all
from penstock.simulation.spec import OneOperator

STAGES = 4

_SLOTS = 400_001
_TIMED_SLOTS = 60_000
_REPEATS = 3
_DECISIONS = 500
_DEEP = ("dql", "dql-pds", "dql-pds-plus")


def run_deep(*, threads: int, stage: Callable[[str], None]) -> Iterator[Figure]:
    """Measure everything, one figure after another; `stage` is called with what comes next."""
    rates = day_and_week(slots=_SLOTS, seed=1).rates
    stage("one thread, three and ten node types")
    yield from _speed(rates[:_TIMED_SLOTS])
    stage("ten seeds on one and on several threads")
    yield _parallel(rates[:_TIMED_SLOTS], threads)
    stage("live decisions")
    yield from _decisions(rates[:_TIMED_SLOTS])
    stage("memory, against tables")
    yield from _memory(rates)


def _spec(policy: str, types: int, seed: int = 1) -> OneOperator:
    return OneOperator(
        operator_policy=Manager(policy), infrastructure=f"A:{types}", seed=seed, as_published=True
    )


def _speed(rates: Floats) -> Iterator[Figure]:
    for types, least in ((3, 30_000), (10, 10_000)):
        for policy in _DEEP:
            rate = max(run(_spec(policy, types), rates).slots_per_s for _ in range(_REPEATS))
            yield Figure(name=f"{policy}, A:{types}, 10 replicas", value=rate, unit="slots/s", at_least=least)


def _parallel(rates: Floats, threads: int) -> Figure:
    jobs = [(_spec("dql", 3, seed), rates, None) for seed in range(1, 11)]

    def seconds(workers: int) -> float:
        began = time.perf_counter()
        run_all(jobs, threads=workers)
        return time.perf_counter() - began

    # In turns, and the best of each: a neighbour's burst of work should not fall on one side only.
    pairs = [(seconds(1), seconds(threads)) for _ in range(_REPEATS)]
    ratio = min(alone for alone, _ in pairs) / min(together for _, together in pairs)
    return Figure(name=f"dql, ten seeds, {threads} threads over one", value=ratio, unit="x", at_least=1.5)


def _decisions(rates: Floats) -> Iterator[Figure]:
    for types in (3, 10):
        for policy in _DEEP:
            built = _built(_spec(policy, types), rates)
            memory, rng, times = built.initial(), np.random.default_rng(1), []
            replicas = Replicas((3,) + (0,) * (types - 1))
            for slot in range(_DECISIONS):
                seen = OperatorObservation(
                    operator="operator",
                    at_s=60.0 * slot,
                    replicas=replicas,
                    arrival_rate=float(rates[slot]),
                    response_time_s=0.02,
                    utilisation=0.5,
                )
                began = time.perf_counter()
                _, memory = built.decide(memory, seen, rng)
                times.append(time.perf_counter() - began)
            yield Figure(
                name=f"{policy}, A:{types}, a live decision (median)",
                value=1e3 * float(np.median(times)),
                unit="ms",
                at_most=1.0,
            )


def _memory(rates: Floats) -> Iterator[Figure]:
    """What is remembered, experiences and room for a pass included, over the table of the same algorithm."""
    for deep, tabular in (("dql", "ql"), ("dql-pds", "ql-pds")):
        for types in (3, 6, 10):
            ratio = _bytes(_spec(deep, types), rates) / _bytes(_spec(tabular, types), rates)
            yield Figure(
                name=f"memory of {deep} over {tabular}, A:{types}, 10 replicas",
                value=ratio,
                unit="x",
                at_most=1.0 if types >= 6 else None,
            )


def _bytes(spec: OneOperator, rates: Floats) -> int:
    return sum(array.nbytes for array in learned(_built(spec, rates).initial()).values())


def _built(spec: OneOperator, rates: Floats) -> CompiledPolicy[Any]:
    policy = spec.operator_policy.for_operator(operator_of(spec, rates, rates, spec.seed))
    if not isinstance(policy, CompiledPolicy):
        raise TypeError(f"{spec.operator_policy.name} is not compiled")
    return policy
