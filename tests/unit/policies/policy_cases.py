"""Small operators for the tests of policies: spaces, problems, and an M/M/1 world in plain Python."""

from collections.abc import Iterable
from math import inf
from typing import Any

from numpy.random import Generator

from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Weights
from penstock.domain.observation import OperatorObservation
from penstock.perf.deployments import Deployments, deployments, handle_of, replicas_at
from penstock.policy.kernel import Seen, step
from penstock.policy.rl.problem import Problem, operator_problem

SLO_S = 0.05
IN_TIME, LATE = 0.01, 0.09  # response times on either side of it


def node_types(
    speedups: tuple[float, ...] = (1.0,), prices: tuple[float, ...] | None = None
) -> tuple[NodeType, ...]:
    """Node types that cost what they are worth, unless prices are given."""
    return tuple(
        NodeType(name=f"t{index}", speedup=speedup, price=price)
        for index, (speedup, price) in enumerate(zip(speedups, prices or speedups, strict=True))
    )


def space_of(types: tuple[NodeType, ...], max_replicas: int, *, packed: bool = False) -> Deployments:
    if packed:
        return deployments(types, max_replicas, enumerate_up_to=0)
    return deployments(types, max_replicas)


def problem_of(
    space: Deployments,
    *,
    levels: int = 3,
    max_rate: float = 300.0,
    weights: Weights | None = None,
) -> Problem:
    """Levels of 100 tuples/s each and a limit of 50 ms, unless asked otherwise."""
    return operator_problem(
        space,
        levels=levels,
        max_rate=max_rate,
        max_response_time_s=SLO_S,
        weights=weights or Weights(),
    )


def at(space: Deployments, *counts: int) -> int:
    return handle_of(space, Replicas(counts))


def seen(
    here: int,
    rate: float = 50.0,
    *,
    response_time_s: float = IN_TIME,
    utilisation: float = 0.5,
    mean_utilisation: float | None = None,
) -> Seen:
    """All replicas alike, unless a mean is given."""
    mean = utilisation if mean_utilisation is None else mean_utilisation
    return Seen(here, float(rate), float(response_time_s), float(utilisation), float(mean))


def observation(
    *counts: int,
    rate: float | None = 50.0,
    response_time_s: float | None = IN_TIME,
    utilisation: float | None = 0.5,
    by_replica: tuple[float, ...] | None = None,
) -> OperatorObservation:
    return OperatorObservation(
        operator="op",
        at_s=60.0,
        replicas=Replicas(counts),
        arrival_rate=rate,
        response_time_s=response_time_s,
        utilisation=utilisation,
        utilisation_by_replica=by_replica,
    )


def mm1_time(space: Deployments, counts: tuple[int, ...], rate: float, service_time_s: float) -> float:
    """M/M/1 on the slowest replica in use, arrivals split evenly: S / (1 - rho)."""
    slowest = min(float(s) for s, count in zip(space.speedup, counts, strict=True) if count)
    service = service_time_s / slowest
    busy = rate / sum(counts) * service
    return service / (1 - busy) if busy < 1 else inf


def mm1_seen(space: Deployments, here: int, rate: float, service_time_s: float) -> Seen:
    counts = replicas_at(space, here).counts
    slowest = min(float(s) for s, count in zip(space.speedup, counts, strict=True) if count)
    return seen(
        here,
        rate,
        response_time_s=mm1_time(space, counts, rate, service_time_s),
        utilisation=rate / sum(counts) * service_time_s / slowest,
    )


def play(
    space: Deployments,
    memory: Any,
    rates: Iterable[float],
    here: int,
    rng: Generator,
    *,
    service_time_s: float = 0.01,
) -> list[tuple[int, ...]]:
    """Obey the policy over these rates; the deployments it chose, as counts."""
    chosen = []
    for rate in rates:
        here, _ = step(memory, mm1_seen(space, here, float(rate), service_time_s), rng)
        chosen.append(replicas_at(space, here).counts)
    return chosen
