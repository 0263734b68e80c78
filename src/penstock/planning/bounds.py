"""What the rest of a plan takes at the least, once some operators have their hosts.

Operators hang in a tree: each below one of those it gets tuples from. Going down the tree, three things are
remembered: the deployment of the operator above, how much room it leaves on its own hosts, and which hosts
near them are full. So operators one after the other that would all like to be on one host, or to go to and
fro between two, are known to have to part, which is what a bound without capacities, or a relaxed linear
programme, does not see. Forgotten is everything else, so that what comes out is never more than what the rest
of any plan takes.

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
NEAR = 5  # hosts near a replica of which it is remembered that they are full
BITS = 62  # hosts that a set written as one number can hold; of others nothing is remembered
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
    delay_s: Floats  # [deployment, host]: of the replica farthest from it
    price: Floats  # [deployment, host]: of one tuple/s to it, the mean over replicas
    per_host: bool  # traffic counts once per pair of hosts, not per pair of replicas


class Measure(NamedTuple):
    """What is added up: some weight of delays and of money, or the longest way alone."""

    own: Floats  # by deployment
    of_delay: Floats  # by operator: of the delay from the one above
    of_traffic: float  # of a tuple/s, times its price
    longest: bool  # over the operators below: the longest, not all of them


@compiled_allocating
def to_hosts(
    members: Ints, sizes: Ints, delay_s: Floats, price: Floats, per_host: bool
) -> tuple[Floats, Floats]:
    """From every deployment to every host: the longest delay, and the mean price."""
    rows, hosts = len(members), len(delay_s)
    longest_s, mean = np.zeros((rows, hosts)), np.zeros((rows, hosts))
    for row in range(rows):
        counted = 0
        for place in range(sizes[row]):
            origin = members[row, place]
            if place > 0 and origin == members[row, place - 1] and per_host:
                continue
            counted += 1
            for host in range(hosts):
                longest_s[row, host] = max(longest_s[row, host], delay_s[origin, host])
                mean[row, host] += price[origin, host]
        mean[row] /= counted
    return longest_s, mean


@compiled
def delay_between(tree: Tree, a: int, b: int) -> float:
    """Eq. 3."""
    longest = 0.0
    for place in range(tree.sizes[b]):
        longest = max(longest, tree.delay_s[a, tree.members[b, place]])
    return longest


@compiled
def price_between(tree: Tree, a: int, b: int) -> float:
    """Eq. 4, of one tuple/s."""
    total, counted = 0.0, 0
    for place in range(tree.sizes[b]):
        if tree.per_host and place > 0 and tree.members[b, place] == tree.members[b, place - 1]:
            continue
        total += tree.price[a, tree.members[b, place]]
        counted += 1
    return total / counted


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
    # If this is its cheapest host, the mean price over all of them is no less, nor is the longest delay.
    traffic = measure.of_traffic * tree.rate[below] * tree.price[row, host]
    return float(measure.of_delay[below] * tree.delay_s[row, host] + traffic)


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
            left = max(tree.capacity[host] - replicas_on(tree, row, host) * tree.demand[j], 0.0)
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
                if room >= -_LITTLE * tree.unit:
                    value = min(elsewhere, to[host] + on[c, host, level_of(tree, max(room, 0.0))])
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
                    if room_at(tree, level, tree.capacity[host]) >= taken - _LITTLE * tree.unit:
                        on[j, host, level] = min(on[j, host, level], measure.own[row] + tight[place, level])
    return found


@compiled
def _from(tree: Tree, delay_s: Floats, price: Floats, host: int, row: int) -> tuple[float, float]:
    """From one host to a deployment: the longest delay and the mean price."""
    longest_s, total, counted = 0.0, 0.0, 0
    for place in range(tree.sizes[row]):
        target = tree.members[row, place]
        if tree.per_host and place > 0 and target == tree.members[row, place - 1]:
            continue
        longest_s = max(longest_s, delay_s[host, target])
        total += price[host, target]
        counted += 1
    return longest_s, total / counted


@compiled_allocating
def _aside(tree: Tree, found: Floats) -> Floats:
    """By operator: at the least, of all that hang where it hangs, but not below it."""
    operators = tree.above.size
    lowest, aside = np.full(operators, np.inf), np.zeros(operators)
    for j in range(operators):
        for row in range(tree.first[j], tree.first[j + 1]):
            lowest[j] = min(lowest[j], found[row])
    for j in range(operators):
        for other in range(operators):
            if other != j and tree.above[other] == tree.above[j]:
                aside[j] += lowest[other]
    return aside


@compiled_allocating
def whole(tree: Tree, measure: Measure, found: Floats, delay_s: Floats, price: Floats) -> Floats:
    """For every deployment: at the least, of a whole plan with it.

    `found` is what `rough` found; as there, the operator above counts as on only one of its hosts. Only for
    measures that are added up.
    """
    hosts = len(delay_s)
    aside = _aside(tree, found)
    total = np.full(found.size, np.inf)
    on = np.full((tree.above.size, hosts), np.inf)  # down to an operator, if it is on this host
    for j in range(tree.above.size):
        p = tree.above[j]
        for row in range(tree.first[j], tree.first[j + 1]):
            if found[row] == np.inf:
                continue
            before = 0.0 if p == NOBODY else np.inf
            for host in range(hosts if p != NOBODY else 0):
                if on[p, host] >= before:
                    continue
                way_s, each = _from(tree, delay_s, price, host, row)
                way = measure.of_delay[j] * way_s + measure.of_traffic * tree.rate[j] * each
                before = min(before, on[p, host] + way)
            before += aside[j]
            total[row] = before + found[row]
            for place in range(tree.sizes[row]):
                host = tree.members[row, place]
                on[j, host] = min(on[j, host], before + measure.own[row])
    return total


class Least(NamedTuple):
    """What `least` needs, and what it has found so far."""

    rough: Floats
    order: Ints  # rows of every operator, by `rough`
    ends: Ints  # by operator: how many of them count, from its first row on
    near: Ints  # by deployment: the set of hosts of which it is remembered that they are full
    # What was found last, by a number made of what was asked: where two have the same, the later one stays.
    asked: (
        Ints  # [number, 0]: operator, row above and its room as one number; [number, 1]: hosts that are full
    )
    known: Floats
    work: Ints  # one number: deployments that may still be looked at before someone asks for the time


UNKNOWN = -1.0  # of a bound: not found before work was up; asked again, it goes on with what it has kept


@compiled
def code_of(tree: Tree, row: int, room: Floats) -> int:
    """The room on the hosts of a deployment as one number."""
    code = 0
    for place in range(min(tree.sizes[row], TRACKED)):
        code = code * LEVELS + level_of(tree, room[tree.members[row, place]])
    return code


@compiled
def full_hosts(tree: Tree, room: Floats) -> int:
    """Hosts without room for any operator, as a set written as one number."""
    full = 0
    for host in range(min(room.size, BITS)):
        if room[host] < tree.unit * (1 - _LITTLE):
            full |= 1 << host
    return full


@compiled
def _filled_by(tree: Tree, row: int, code: int) -> int:
    """Those hosts of a deployment that it leaves no room on."""
    full = 0
    for place in range(min(tree.sizes[row], TRACKED) - 1, -1, -1):
        if code % LEVELS == 0 and tree.members[row, place] < BITS:
            full |= 1 << tree.members[row, place]
        code //= LEVELS
    return full


@compiled
def _left_by(tree: Tree, j: int, above: int, code: int, full: int, row: int) -> int:
    """The room that a deployment leaves below that one, as one number; NOBODY where it does not fit."""
    p = tree.above[j]
    left = 0
    for place in range(tree.sizes[row]):
        host = tree.members[row, place]
        if host < BITS and (full >> host) & 1:
            return NOBODY
        room = tree.capacity[host] - replicas_on(tree, above, host) * tree.demand[p]
        rest = code
        for q in range(min(tree.sizes[above], TRACKED) - 1, -1, -1):
            if tree.members[above, q] == host:
                room = room_at(tree, rest % LEVELS, room)
                break
            rest //= LEVELS
        room -= replicas_on(tree, row, host) * tree.demand[j]
        if room < -_LITTLE * tree.unit:
            return NOBODY
        if place < TRACKED:
            left = left * LEVELS + level_of(tree, max(room, 0.0))
    return left


@compiled
def _way(tree: Tree, measure: Measure, j: int, above: int, row: int) -> float:
    """From the deployment above to one of the operator j."""
    way = 0.0
    if measure.of_delay[j] > 0:
        way += measure.of_delay[j] * delay_between(tree, above, row)
    if measure.of_traffic > 0:
        way += measure.of_traffic * tree.rate[j] * price_between(tree, above, row)
    return way


@compiled
def _number(asked: int, full: int, numbers: int) -> int:
    """Where it is kept: numbers are a power of two, and the upper bits of a product depend on all of both."""
    mixed = (asked * 0x9E3779B97F4A7C1 + full) * 0x5851F42D4C957F2D
    return (mixed >> 24) & (numbers - 1)


@compiled_allocating
def least(tree: Tree, measure: Measure, store: Least, j: int, above: int, code: int, full: int) -> float:
    """From the operator j downwards, below one with this deployment which leaves so much room.

    What is full may be any hosts, and those of the deployment above need not be among them. UNKNOWN when work
    was up.
    """
    asked = (above * LEVELS**TRACKED + code) * tree.above.size + j
    full &= store.near[above]
    at = _number(asked, full, store.known.size)
    if store.asked[at, 0] == asked and store.asked[at, 1] == full:
        return float(store.known[at])
    best = np.inf
    full_below = full | _filled_by(tree, above, code)
    for number in range(tree.first[j], tree.first[j] + store.ends[j]):
        row = store.order[number]
        if store.rough[row] >= best:
            break
        if store.work[0] <= 0:
            return UNKNOWN
        store.work[0] -= 1
        way = _way(tree, measure, j, above, row)
        if way + store.rough[row] >= best:
            continue
        left = _left_by(tree, j, above, code, full, row)
        if left == NOBODY:
            continue
        value, below = way + measure.own[row], 0.0
        for number_below in range(tree.children[j]):
            one = least(tree, measure, store, tree.child[j, number_below], row, left, full_below)
            if one == UNKNOWN:
                return UNKNOWN
            below = _and(measure, below, one)
            if value + below >= best:
                break
        best = min(best, value + below)
    store.asked[at, 0], store.asked[at, 1], store.known[at] = asked, full, best
    return best
