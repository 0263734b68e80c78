"""What the rest of a plan takes at the least, once some operators have their hosts.

Operators hang in a tree: each below one of those it gets tuples from. Going down the tree, two things are
remembered of the operator above: its deployment, and how much room it leaves on its own hosts. So operators
one after the other that would all like to be on one host are known to have to part, which is what a bound
without capacities, or a relaxed linear programme, does not see. Forgotten is everything else, so that what
comes out is never more than what the rest of any plan takes.

Two bounds of this kind, the first to order and to skip, the second to prune:
- `rough`: the operator below counts as on only one of its hosts, the one that serves it best;
- `least`: over all its deployments, made when first asked for and kept.
"""

from typing import NamedTuple

import numpy as np

from penstock.compiled import Flags, Floats, Ints, compiled, compiled_allocating
from penstock.planning.downtime import NOBODY

LEVELS = 3  # room for no replica more, for one, for more
TRACKED = 4  # replicas of a deployment on whose hosts room is remembered
_LITTLE = 1e-9


class Tree(NamedTuple):
    """Operators with all their deployments, one after the other in one table."""

    first: Ints  # row of an operator's first deployment, and of the last one's end
    members: Ints  # [deployment, replica] -> host
    sizes: Ints  # replicas
    demand: Floats  # by operator
    above: Ints  # by operator: the one it hangs below, or NOBODY
    child: Ints  # [operator, number] -> operator below it
    children: Ints  # how many
    rate: Floats  # by operator: tuples/s from the one above
    capacity: Floats  # by host
    unit: float  # the smallest demand of all
    delay_s: Floats
    price: Floats
    per_host: bool  # traffic counts once per pair of hosts, not per pair of replicas


class Measure(NamedTuple):
    """What is added up: some weight of delays and of money, or the longest way alone."""

    own: Floats  # by deployment
    of_delay: Floats  # by operator: of the delay from the one above
    of_traffic: float  # of a tuple/s, times its price
    longest: bool  # over the operators below: the longest, not all of them


@compiled
def delay_between(tree: Tree, a: int, b: int) -> float:
    """Eq. 3."""
    longest = 0.0
    for p in range(tree.sizes[a]):
        for q in range(tree.sizes[b]):
            longest = max(longest, tree.delay_s[tree.members[a, p], tree.members[b, q]])
    return longest


@compiled
def price_between(tree: Tree, a: int, b: int) -> float:
    """Eq. 4, of one tuple/s."""
    total, pairs = 0.0, 0
    for p in range(tree.sizes[a]):
        if tree.per_host and p > 0 and tree.members[a, p] == tree.members[a, p - 1]:
            continue
        for q in range(tree.sizes[b]):
            if tree.per_host and q > 0 and tree.members[b, q] == tree.members[b, q - 1]:
                continue
            total += tree.price[tree.members[a, p], tree.members[b, q]]
            pairs += 1
    return total / pairs


@compiled
def level_of(tree: Tree, room: float) -> int:
    return min(int(room / tree.unit + _LITTLE), LEVELS - 1)


@compiled
def room_at(tree: Tree, level: int, most: float) -> float:
    """The most there may be left where only the level is known."""
    return min((level + 1) * tree.unit - 2 * _LITTLE * tree.unit, most) if level < LEVELS - 1 else most


@compiled
def replicas_on(tree: Tree, row: int, host: int) -> int:
    count = 0
    for place in range(tree.sizes[row]):
        count += tree.members[row, place] == host
    return count


@compiled
def _to(tree: Tree, measure: Measure, row: int, below: int, host: int) -> float:
    """From a deployment to the operator below it, if that is on this host."""
    longest, traffic = 0.0, 0.0
    for place in range(tree.sizes[row]):
        longest = max(longest, tree.delay_s[tree.members[row, place], host])
        traffic += tree.price[tree.members[row, place], host]
    if tree.per_host:
        traffic = 0.0  # weighed by hosts, a mean over replicas would not be a bound
    return float(
        measure.of_delay[below] * longest + measure.of_traffic * tree.rate[below] * traffic / tree.sizes[row]
    )


@compiled
def _and(measure: Measure, so_far: float, more: float) -> float:
    """With one operator below more."""
    return max(so_far, more) if measure.longest else so_far + more


@compiled_allocating
def _below(tree: Tree, measure: Measure, on: Floats, j: int, row: int, tight: Floats) -> float:
    """At the least of all operators below a deployment with all the room its own replicas leave.

    In `tight`, once for every one of its hosts, if there is only so much room.
    """
    hosts = tree.capacity.size
    to = np.empty(hosts)
    total = 0.0
    for number in range(tree.children[j]):
        c = tree.child[j, number]
        best, second, at = np.inf, np.inf, NOBODY
        for host in range(hosts):
            to[host] = _to(tree, measure, row, c, host)
            left = tree.capacity[host] - replicas_on(tree, row, host) * tree.demand[j]
            value = to[host] + on[c, host, level_of(tree, left)]
            if value < best:
                best, second, at = value, best, host
            elif value < second:
                second = value
        total = _and(measure, total, best)
        for place in range(tree.sizes[row]):
            host = tree.members[row, place]
            elsewhere = second if at == host else best
            taken = replicas_on(tree, row, host) * tree.demand[j]
            for level in range(LEVELS):
                room = room_at(tree, level, tree.capacity[host]) - taken
                value = np.inf
                if room >= 0:
                    value = min(elsewhere, to[host] + on[c, host, level_of(tree, room)])
                tight[place, level] = _and(measure, tight[place, level], value)
    return total


@compiled_allocating
def rough(tree: Tree, measure: Measure, allowed: Flags) -> Floats:
    """For every deployment: its own share and, at the least, that of all operators below it."""
    operators = tree.above.size
    found = np.full(tree.sizes.size, np.inf)
    # At the least from an operator downwards, if it is on this host, where there is so much room.
    on = np.full((operators, tree.capacity.size, LEVELS), np.inf)
    tight = np.zeros((tree.members.shape[1], LEVELS))
    for j in range(operators - 1, -1, -1):
        for row in range(tree.first[j], tree.first[j + 1]):
            if not allowed[row]:
                continue
            tight[:] = 0.0
            found[row] = measure.own[row] + _below(tree, measure, on, j, row, tight)
            for place in range(tree.sizes[row]):
                host = tree.members[row, place]
                taken = replicas_on(tree, row, host) * tree.demand[j]
                for level in range(LEVELS):
                    if room_at(tree, level, tree.capacity[host]) >= taken:
                        on[j, host, level] = min(on[j, host, level], measure.own[row] + tight[place, level])
    return found


class Least(NamedTuple):
    """What `least` needs, and what it has found so far."""

    rough: Floats
    order: Ints  # rows of every operator, by `rough`
    ends: Ints  # by operator: how many of them count, from its first row on
    known: Floats  # [row of the one above, room it leaves], by operator one after the other; nan: not yet
    known_first: Ints  # by operator: where its part of `known` begins


@compiled
def code_of(tree: Tree, row: int, room: Floats) -> int:
    """The room on the hosts of a deployment as one number."""
    code = 0
    for place in range(min(tree.sizes[row], TRACKED)):
        code = code * LEVELS + level_of(tree, room[tree.members[row, place]])
    return code


@compiled
def _left_by(tree: Tree, j: int, above: int, code: int, row: int) -> int:
    """The room that a deployment leaves below that one, as one number; NOBODY where it does not fit."""
    p = tree.above[j]
    left = 0
    for place in range(tree.sizes[row]):
        host = tree.members[row, place]
        room = tree.capacity[host] - replicas_on(tree, above, host) * tree.demand[p]
        rest = code
        for q in range(min(tree.sizes[above], TRACKED) - 1, -1, -1):
            if tree.members[above, q] == host:
                room = room_at(tree, rest % LEVELS, room)
                break
            rest //= LEVELS
        room -= replicas_on(tree, row, host) * tree.demand[j]
        if room < -_LITTLE:
            return NOBODY
        if place < TRACKED:
            left = left * LEVELS + level_of(tree, max(room, 0.0))
    return left


@compiled_allocating
def least(tree: Tree, measure: Measure, store: Least, j: int, above: int, code: int) -> float:
    """From the operator j downwards, below one with this deployment which leaves so much room."""
    most = LEVELS ** min(tree.members.shape[1], TRACKED)
    at = store.known_first[j] + (above - tree.first[tree.above[j]]) * most + code
    if not np.isnan(store.known[at]):
        return float(store.known[at])
    best = np.inf
    for number in range(tree.first[j], tree.first[j] + store.ends[j]):
        row = store.order[number]
        if store.rough[row] >= best:
            break
        way = 0.0
        if measure.of_delay[j] > 0:
            way += measure.of_delay[j] * delay_between(tree, above, row)
        if measure.of_traffic > 0:
            way += measure.of_traffic * tree.rate[j] * price_between(tree, above, row)
        if way + store.rough[row] >= best:
            continue
        left = _left_by(tree, j, above, code, row)
        if left == NOBODY:
            continue
        value, below = way + measure.own[row], 0.0
        for number_below in range(tree.children[j]):
            one = least(tree, measure, store, tree.child[j, number_below], row, left)
            below = _and(measure, below, one)
            if value + below >= best:
                break
        best = min(best, value + below)
    store.known[at] = best
    return best
