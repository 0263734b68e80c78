"""The least any sequence of deployments could have cost, knowing every rate in advance.

No policy can do better: it is a bound to measure them by, not something to reach. An evenly split load is
limited by the slowest replica, so deployments of one node type are all that can be part of it.
"""

from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, compiled_allocating
from penstock.domain.deployment import Replicas
from penstock.perf.deployments import counts_at, handle_of
from penstock.perf.operator import response_time
from penstock.policy.knowledge import OperatorKnowledge


class Worth(NamedTuple):
    """Deployments that can take more than any that is as cheap."""

    holding: Floats  # cost of a slot
    limits: Floats  # tuples/s within the bound


def least_costs(known: OperatorKnowledge, rates: Floats) -> Floats:
    """What each slot costs in the cheapest sequence; it may begin anywhere."""
    worth, weights = worth_having(known), known.weights
    return _cheapest(rates, worth.holding, worth.limits, weights.performance, weights.reconfiguration)


def worth_having(known: OperatorKnowledge) -> Worth:
    """All that can be part of a cheapest sequence."""
    space = known.deployments
    types = len(known.node_types)
    handles = np.array(
        [
            handle_of(space, Replicas(tuple(count if one == kind else 0 for one in range(types))))
            for kind in range(types)
            for count in range(1, space.max_replicas + 1)
        ]
    )
    costs = counts_at(space, handles) @ space.price
    limits = np.array([_limit(known, int(handle)) for handle in handles])
    order = np.lexsort((-limits, costs))
    worth = [at for place, at in enumerate(order) if limits[at] > limits[order[:place]].max(initial=-1.0)]
    return Worth(known.weights.resources * costs[worth] / known.cost_scale, limits[worth])


def _limit(known: OperatorKnowledge, handle: int) -> float:
    """The highest rate within the bound, by bisection."""
    low, high = 0.0, 1e9
    for _ in range(100):
        middle = (low + high) / 2
        fits = response_time(known.queue, known.deployments, handle, middle) <= known.max_response_time_s
        low, high = (middle, high) if fits else (low, middle)
    return low


@compiled_allocating
def _cheapest(rates: Floats, holding: Floats, limits: Floats, violation: float, change: float) -> Floats:
    slots, size = rates.size, holding.size
    came_from = np.empty((slots, size), dtype=np.int16)
    total = np.zeros(size)
    for slot in range(slots):
        best = int(np.argmin(total))
        moving = total[best] + change
        for one in range(size):
            came_from[slot, one] = one
            if moving < total[one]:
                total[one] = moving
                came_from[slot, one] = best
            total[one] += holding[one] + (violation if rates[slot] > limits[one] else 0.0)
    costs = np.empty(slots)
    at = int(np.argmin(total))
    for slot in range(slots - 1, -1, -1):
        costs[slot] = holding[at] + (violation if rates[slot] > limits[at] else 0.0)
        before = came_from[slot, at]
        if before != at:
            costs[slot] += change
        at = int(before)
    return costs
