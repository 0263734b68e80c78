"""The auto-scaling problem of one operator as a Markov decision process, in arrays (Russo 2023, sec. 4.1)."""

from math import inf
from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, Ints, compiled, compiled_allocating
from penstock.domain.errors import InputError
from penstock.domain.objective import Weights
from penstock.domain.trace import SMALLEST_RATE
from penstock.perf.cost import compiled_interval_cost
from penstock.perf.deployments import NOTHING, Deployments, cost_of
from penstock.policy.kernel import Seen


class Problem(NamedTuple):
    """States are (deployment, rate level), actions as in `perf.deployments`, costs as eq. (2)."""

    deployments: Deployments
    levels: int
    quantum: float  # tuples/s per level
    max_response_time_s: float
    max_utilisation: float  # a utilisation above it is a violation too; infinite: none is
    performance: float  # weights
    resources: float
    reconfiguration: float
    cost_scale: float  # C_max


def operator_problem(
    deployments: Deployments,
    *,
    levels: int,
    max_rate: float,
    max_response_time_s: float,
    weights: Weights,
    cost_scale: float | None = None,
    max_utilisation: float = inf,
) -> Problem:
    """The problem with the paper's normalisation C_max unless another is given.

    A manager that knows no response-time limit of its own may be given a target
    utilisation instead (Russo 2018, eq. 2): `max_response_time_s=inf` and `max_utilisation`.
    """
    if levels < 1:
        raise InputError(f"levels={levels}; at least one is needed")
    if not SMALLEST_RATE <= max_rate < np.inf:
        raise InputError(f"max_rate={max_rate}; it must be finite, {SMALLEST_RATE:g} tuples/s or more")
    if not max_utilisation > 0:
        raise InputError(f"max_utilisation={max_utilisation}; it must be positive")
    types = deployments.speedup.size
    if types * deployments.bits + int(levels).bit_length() > 62:
        most = deployments.max_replicas
        raise InputError(
            f"{types} node types, {most} replicas and {levels} levels: too many states to number"
        )
    scale = deployments.max_replicas * float(deployments.price.max()) if cost_scale is None else cost_scale
    return Problem(
        deployments=deployments,
        levels=int(levels),
        quantum=max_rate / levels,
        max_response_time_s=float(max_response_time_s),
        max_utilisation=float(max_utilisation),
        performance=weights.performance,
        resources=weights.resources,
        reconfiguration=weights.reconfiguration,
        cost_scale=float(scale),
    )


def level_rates(problem: Problem) -> Floats:
    """The rate a level stands for where a model needs one: its midpoint."""
    midpoints: Floats = (np.arange(problem.levels, dtype=np.float64) + 0.5) * problem.quantum
    return midpoints


@compiled
def level_of(problem: Problem, rate: float) -> int:
    """The discretised rate; everything above the top level counts as the top level."""
    # floor(rate / quantum), not rate // quantum: they differ exactly on boundaries (65, 130, ...).
    return int(min(np.floor(rate / problem.quantum), problem.levels - 1.0))


@compiled_allocating
def levels_of(problem: Problem, rates: Floats) -> Ints:
    """Levels of many rates."""
    levels = np.empty(rates.size, dtype=np.int64)
    for slot in range(rates.size):
        levels[slot] = level_of(problem, rates[slot])
    return levels


@compiled
def known_cost(problem: Problem, action: int, target: int) -> float:
    """The part of the cost that an action's own outcome decides: reconfiguration and resources."""
    share = cost_of(problem.deployments, target) / problem.cost_scale
    return float(compiled_interval_cost(problem, 0.0, share, 0.0 if action == NOTHING else 1.0))


@compiled
def unknown_cost(problem: Problem, seen: Seen) -> float:
    """The part only the next interval reveals: whether the response time or utilisation was exceeded."""
    late = seen.response_time_s > problem.max_response_time_s or seen.utilisation > problem.max_utilisation
    return float(compiled_interval_cost(problem, 1.0 if late else 0.0, 0.0, 0.0))
