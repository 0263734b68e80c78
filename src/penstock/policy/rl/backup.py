"""Bellman backups over post-decision states, for planners that know or learn the rates' transitions.

V(k', l) = sum over l' of P(l'|l) * [ c_u(k', l') + gamma * min over a of Q((k', l'), a) ],
the expectation of eq. (3) of Russo 2023 with the known costs left to the choice of action.
"""

import numpy as np

from penstock.compiled import Floats, Ints, compiled
from penstock.domain.errors import InputError
from penstock.perf.deployments import NOWHERE, actions_of, after
from penstock.policy.rl.problem import Problem, known_cost
from penstock.policy.rl.tables import LARGEST_DENSE_BYTES, ValueTable

MOST_TRANSITIONS = 2 * 10**9  # a sweep visits each; a few seconds


def need_enumeration(problem: Problem, policy: str) -> None:
    """Full backups visit every deployment: refuse when there are too many to list."""
    rows = problem.deployments.replicas.size * problem.levels
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
