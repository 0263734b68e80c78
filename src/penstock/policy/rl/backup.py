"""Bellman backups over post-decision states, for planners that know or learn the rates' transitions.

V(k', l) = sum over l' of P(l'|l) * [ c_u(k', l') + gamma * min over a of Q((k', l'), a) ],
the expectation of eq. (3) of Russo 2023 with the known costs left to the choice of action.
"""

import numpy as np

from penstock.compiled import Floats, Ints, compiled
from penstock.domain.errors import InputError
from penstock.perf.deployments import NOTHING, NOWHERE, Deployments, actions_of, after
from penstock.policy.rl.problem import Problem, known_cost
from penstock.policy.rl.tables import LARGEST_DENSE_BYTES, ValueTable

MOST_TRANSITIONS = 2 * 10**9  # a sweep visits each; a few seconds


def need_enumeration(problem: Problem, policy: str, *, values_per_state: int = 1) -> None:
    """Full backups visit every deployment: refuse when there are too many to list."""
    rows = problem.deployments.replicas.size * problem.levels * values_per_state
    too_many = 8 * rows > LARGEST_DENSE_BYTES or rows * problem.levels > MOST_TRANSITIONS
    if not problem.deployments.enumerated or too_many:
        types, most = problem.deployments.speedup.size, problem.deployments.max_replicas
        raise InputError(
            f"policy '{policy}': {types} node types, {most} replicas and {problem.levels} levels have "
            "too many states to plan over; use fewer of them, or a learning policy"
        )


def transitions(levels: Ints, count: int) -> Floats:
    """P(l'|l) as observed; the row of a level never left is all zero."""
    seen = np.zeros((count, count))
    np.add.at(seen, (levels[:-1], levels[1:]), 1.0)
    leaving = seen.sum(axis=1, keepdims=True)
    probability: Floats = np.divide(seen, leaving, out=np.zeros_like(seen), where=leaving > 0)
    return probability


@compiled
def sweep(
    problem: Problem, v: ValueTable, arriving: Floats, unknown: Floats, gamma: float, scratch: Floats
) -> float:
    """Back up every post-decision state once, in place; returns the largest change.

    `arriving` is P transposed (next level x level), so that the inner loop runs along memory.
    """
    space = problem.deployments
    levels = problem.levels
    values = v.values.reshape((space.replicas.size, levels))
    outlook = scratch[0]
    expected = scratch[1]
    largest = 0.0
    for deployment in range(space.replicas.size):
        for level in range(levels):
            outlook[level] = np.inf
            expected[level] = 0.0
        for action in range(actions_of(space)):
            target = after(space, deployment, action)
            if target != NOWHERE:
                known = known_cost(problem, action, target)
                for level in range(levels):
                    outlook[level] = min(outlook[level], known + values[target, level])
        for following in range(levels):
            worth = unknown[deployment, following] + gamma * outlook[following]
            for level in range(levels):
                expected[level] += arriving[following, level] * worth
        for level in range(levels):
            largest = max(largest, abs(expected[level] - values[deployment, level]))
            values[deployment, level] = expected[level]
    return largest


@compiled
def sweep_actions(
    problem: Problem, q: ValueTable, arriving: Floats, unknown: Floats, gamma: float, least: Floats
) -> None:
    """Back up Q(s, a) of every state once, in place and in the order of states, as the published code does.

    Every state is backed up with what the states before it have just become, while a sweep over
    post-decision states sees one deployment at a time. `least` is room for min over a of Q(s, a).
    """
    space = problem.deployments
    levels = problem.levels
    for deployment in range(space.replicas.size):
        for level in range(levels):
            least[deployment, level] = least_possible(space, q, deployment, deployment * levels + level)
    for deployment in range(space.replicas.size):
        for level in range(levels):
            row = deployment * levels + level
            for action in range(actions_of(space)):
                target = after(space, deployment, action)
                if target != NOWHERE:
                    value = known_cost(problem, action, target)
                    for following in range(levels):
                        value += arriving[following, level] * (
                            unknown[target, following] + gamma * least[target, following]
                        )
                    q.values[row, action] = value
            least[deployment, level] = least_possible(space, q, deployment, row)


@compiled
def least_possible(space: Deployments, q: ValueTable, deployment: int, row: int) -> float:
    """The least of the values of a state's possible actions."""
    least = q.values[row, NOTHING]
    for action in range(1, actions_of(space)):
        if after(space, deployment, action) != NOWHERE:
            least = min(least, q.values[row, action])
    return float(least)
