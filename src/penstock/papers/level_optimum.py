"""The optimum of whoever knows how the load moves, but not which way it will move next.

Value iteration over levels of the load and the deployments worth having, with the transitions and the share
of violations that the trace itself has. What `vi` is for a few node types, for any number of them; and it may
change any number of replicas at a time, which `vi` may not.
"""

import numpy as np

from penstock.compiled import Floats, Ints, compiled_allocating
from penstock.papers.hindsight import worth_having
from penstock.policy.knowledge import OperatorKnowledge
from penstock.policy.rl.stay_or_move import find_possible, iterate, room_for

LEVELS = 100
_GAMMA, _TOLERANCE, _MOST_SWEEPS = 0.999, 1e-6, 10_000


def planned_costs(known: OperatorKnowledge, rates: Floats) -> Floats:
    """What each slot costs under the best plan for this trace's levels."""
    worth, weights = worth_having(known), known.weights
    size = worth.limits.size
    levels = np.minimum((rates * (LEVELS / rates.max())).astype(np.int64), LEVELS - 1)
    room = room_for(LEVELS)
    np.add.at(room.probability, (levels[:-1], levels[1:]), 1.0)
    room.probability[levels[-1], levels[-1]] += 1.0  # so that something follows the last one
    left = room.probability.sum(axis=1, keepdims=True)
    np.divide(room.probability, np.maximum(left, 1.0), out=room.probability)
    find_possible(room)
    slots_at = np.bincount(levels, minlength=LEVELS)
    too_much = np.array(
        [np.bincount(levels, weights=rates > limit, minlength=LEVELS) for limit in worth.limits]
    )
    violating = weights.performance * too_much / np.maximum(slots_at, 1)
    values = np.zeros((size, LEVELS))
    iterate(
        values,
        np.arange(size),
        size,
        worth.holding,
        violating,
        weights.reconfiguration,
        _GAMMA,
        _TOLERANCE,
        _MOST_SWEEPS,
        room,
    )
    planned = worth.holding[:, None] + values
    return _played(
        levels, rates, worth.holding, worth.limits, planned, weights.performance, weights.reconfiguration
    )


@compiled_allocating
def _played(
    levels: Ints,
    rates: Floats,
    holding: Floats,
    limits: Floats,
    planned: Floats,
    violation: float,
    change: float,
) -> Floats:
    costs = np.empty(rates.size)
    at = int(np.argmin(planned[:, levels[0]]))
    for slot in range(rates.size):
        cost = 0.0
        if slot > 0:
            level = levels[slot - 1]
            best = int(np.argmin(planned[:, level]))
            if planned[best, level] + change < planned[at, level]:
                at = best
                cost = change
        costs[slot] = cost + holding[at] + (violation if rates[slot] > limits[at] else 0.0)
    return costs
