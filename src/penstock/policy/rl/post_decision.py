"""Values of post-decision states and the greedy choice over them (Russo 2023, sec. 4.3).

A post-decision state is the deployment after an action with the rate level before it
changes. Learned (QL+PDS), planned (value iteration) or both (model-based), the values
are used the same way: Q(s, a) = known cost [+ estimate of the unknown] + V(s~).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.compiled import Ints, compiled, compiled_allocating, frozen_ints
from penstock.perf.deployments import NOTHING, NOWHERE, Deployments, actions_of, after
from penstock.perf.operator import response_time, utilisation
from penstock.perf.queueing import QueueModel, m_m_1
from penstock.policy.rl.problem import Problem, known_cost
from penstock.policy.rl.tables import ValueTable, row_to_read, value_at, value_table

_NO_MODEL = m_m_1(1.0)  # a placeholder where no model is believed


@dataclass(frozen=True, slots=True, kw_only=True)
class BelievedModel:
    """What a policy thinks it knows of response times and speeds, right or not."""

    deployments: Deployments
    queue: QueueModel


class Estimate(NamedTuple):
    """The violation cost that a believed model expects; 0 where none is believed."""

    is_made: bool
    believed: Deployments
    believed_queue: QueueModel
    first_violating_level: Ints  # per enumerated deployment, by the believed model


class PostDecision(NamedTuple):
    """V(s~) and, where a model is believed, its estimate of the violation cost."""

    problem: Problem
    v: ValueTable
    estimate: Estimate


def estimate_by(problem: Problem, believed: BelievedModel | None) -> Estimate:
    model = believed or BelievedModel(deployments=problem.deployments, queue=_NO_MODEL)
    limits = np.empty(0, dtype=np.int64)
    if believed is not None and problem.deployments.enumerated:
        limits = first_violating_levels(problem, model.deployments, model.queue)
    return Estimate(
        is_made=believed is not None,
        believed=model.deployments,
        believed_queue=model.queue,
        first_violating_level=frozen_ints(limits),
    )


def post_decision(problem: Problem, *, writes: int, believed: BelievedModel | None = None) -> PostDecision:
    """All values 0; at most `writes` of them will be written where the table must be hashed."""
    enumerated = problem.deployments.enumerated
    keys = problem.deployments.replicas.size * problem.levels if enumerated else 2**62
    return PostDecision(
        problem=problem,
        v=value_table(keys=keys, width=1, writes=writes),
        estimate=estimate_by(problem, believed),
    )


@compiled
def expected_violation(
    problem: Problem, believed: Deployments, queue: QueueModel, deployment: int, level: int
) -> bool:
    """Whether the believed model expects a violation if the level (taken at its midpoint) stays."""
    rate = (level + 0.5) * problem.quantum
    late = response_time(queue, believed, deployment, rate) > problem.max_response_time_s
    return late or utilisation(queue, believed, deployment, rate) > problem.max_utilisation


@compiled_allocating
def first_violating_levels(problem: Problem, believed: Deployments, queue: QueueModel) -> Ints:
    """The lowest level at which each deployment is expected to violate: response time grows with the rate."""
    limits = np.empty(believed.replicas.size, dtype=np.int64)
    for deployment in range(limits.size):
        level = 0
        while level < problem.levels and not expected_violation(problem, believed, queue, deployment, level):
            level += 1
        limits[deployment] = level
    return limits


@compiled
def expected_cost(problem: Problem, estimate: Estimate, deployment: int, level: int) -> float:
    """The estimate of the unknown cost in a post-decision state."""
    if not estimate.is_made:
        return 0.0
    if estimate.first_violating_level.size > 0:
        violates = level >= estimate.first_violating_level[deployment]
    else:
        violates = expected_violation(problem, estimate.believed, estimate.believed_queue, deployment, level)
    return problem.performance if violates else 0.0


@compiled
def estimated_cost(me: PostDecision, deployment: int, level: int) -> float:
    return expected_cost(me.problem, me.estimate, deployment, level)


@compiled
def action_value(me: PostDecision, action: int, target: int, level: int) -> float:
    """Q(s, a), eq. (9) and (11)."""
    row = row_to_read(me.v, target * me.problem.levels + level)
    return known_cost(me.problem, action, target) + estimated_cost(me, target, level) + value_at(me.v, row, 0)


@compiled
def best_action(me: PostDecision, here: int, level: int) -> tuple[int, float, float]:
    """The first possible action of least value, that value, and the value of doing nothing."""
    space = me.problem.deployments
    stay = action_value(me, NOTHING, here, level)
    best, least = NOTHING, stay
    for action in range(1, actions_of(space)):
        target = after(space, here, action)
        if target != NOWHERE:
            value = action_value(me, action, target, level)
            if value < least:
                best, least = action, value
    return best, least, stay


def greedy_reason(me: PostDecision, here: int, rate: float, level: int) -> str:
    """Why the best action is the best, in numbers."""
    _, least, stay = best_action(me, here, level)
    return values_in_words(least, stay, rate, level)


def values_in_words(least: float, stay: float, rate: float, level: int) -> str:
    return f"expected cost {least:.4g}, staying {stay:.4g}, at {rate:.0f} t/s (level {level})"
