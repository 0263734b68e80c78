"""EDRP solved exactly: depth first along the streams, with the bounds of `bounds.py`.

Operators get their deployments in order. The bound of a partial plan is what its operators and the streams
between them take, and `least` of every operator below them. It weighs delays by a share per path: the
longest of all paths takes at least as long as any mean of them, so every choice of shares gives a bound.
Tried are those of the paths that were longest in the best plans found so far.

Few replicas are tried before many, short downtimes before long ones, so that a good plan is known early.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from penstock.compiled import Flags, Floats, Ints, compiled, compiled_allocating
from penstock.planning.bounds import (
    BITS,
    NEAR,
    UNKNOWN,
    Least,
    Measure,
    Tree,
    code_of,
    delay_between,
    full_hosts,
    least,
    price_between,
    replicas_on,
    rough,
    to_hosts,
    whole,
)
from penstock.planning.choices import Choices
from penstock.planning.downtime import NOBODY
from penstock.planning.problem import Problem

_GAP = 1e-9  # of the objective: what a plan may be better by and is not looked for
_LITTLE = 1e-9


class Graph(NamedTuple):
    """Streams into every operator."""

    origin: Ints  # [operator, number] -> operator
    rate: Floats  # [operator, number]
    streams: Ints  # how many, by operator


class Weights(NamedTuple):
    """Of a second, of a unit of money and of a second of downtime in the objective, and their bounds."""

    second: float
    money: float
    down: float
    most_s: float
    most_money: float


class Rows(NamedTuple):
    latency_s: Floats
    cost: Floats
    downtime_s: Floats


class State(NamedTuple):
    """A search that can be left and gone on with: what was chosen, and what is still to be tried."""

    chosen: Ints  # by depth
    room: Floats  # by host
    arrives_s: Floats  # by operator: the longest way to its end
    weighed: Floats  # by depth: of the operators down to it
    money: Floats
    down_s: Floats
    tried: Ints  # by depth: how many candidates
    found: Ints  # by depth: how many there are
    opening: Ints  # by depth: where the search for candidates goes on; NOBODY: all are found
    candidate: Ints  # [depth, number] -> row
    bound: Floats  # [depth, number]
    depth: Ints  # one number
    best: Floats  # objective, response time, money, downtime
    plan: Ints


@compiled
def _limit(state: State) -> float:
    """What is no less is not looked for."""
    return float(state.best[0] * (1 - _GAP))


class Bound(NamedTuple):
    """A measure and its bounds."""

    measure: Measure
    store: Least


@compiled_allocating
def _rest(tree: Tree, bound: Bound, state: State, depth: int) -> float:
    """At the least, of all operators after this one that have their hosts, those below them included."""
    total = 0.0
    full = full_hosts(tree, state.room)
    for j in range(depth + 1, tree.above.size):
        p = tree.above[j]
        if p == NOBODY:
            row = bound.store.order[tree.first[j]] if bound.store.ends[j] > 0 else NOBODY
            one = bound.store.rough[row] if row != NOBODY else np.inf
        elif p <= depth:
            above = state.chosen[p]
            code = code_of(tree, above, state.room)
            one = least(tree, bound.measure, bound.store, j, above, code, full)
            if one == UNKNOWN:
                return UNKNOWN
        else:
            continue
        total += one
        if total == np.inf:
            break
    return total


@compiled
def _rough_rest(tree: Tree, bound: Bound, depth: int) -> float:
    """The same, whatever has been chosen."""
    total = 0.0
    for j in range(depth + 1, tree.above.size):
        if tree.above[j] <= depth and bound.store.ends[j] > 0:
            total += bound.store.rough[bound.store.order[tree.first[j]]]
    return total


@compiled_allocating
def _longest_s(tree: Tree, bound: Bound, state: State, depth: int) -> float:
    """At the least, the longest way to any sink."""
    longest = 0.0
    for j in range(depth + 1):
        longest = max(longest, state.arrives_s[j])
    # Not remembered by this bound. With a 0 in its place `least`, which calls itself, is compiled for another
    # kind of argument, and what numba then loads from its cache crashes.
    full = full_hosts(tree, state.room)
    for j in range(depth + 1, tree.above.size):
        p = tree.above[j]
        if p == NOBODY:
            row = bound.store.order[tree.first[j]] if bound.store.ends[j] > 0 else NOBODY
            one = bound.store.rough[row] if row != NOBODY else np.inf
        elif p <= depth:
            above = state.chosen[p]
            code = code_of(tree, above, state.room)
            below = least(tree, bound.measure, bound.store, j, above, code, full)
            if below == UNKNOWN:
                return UNKNOWN
            one = state.arrives_s[p] + below
        else:
            continue
        longest = max(longest, one)
    return longest


@compiled
def _place(tree: Tree, state: State, depth: int, row: int, sign: float) -> None:
    """Take the room of a deployment, or give it back."""
    for place in range(tree.sizes[row]):
        state.room[tree.members[row, place]] -= sign * tree.demand[depth]


@compiled
def _fits(tree: Tree, state: State, depth: int, row: int) -> bool:
    for place in range(tree.sizes[row]):
        host = tree.members[row, place]
        if replicas_on(tree, row, host) * tree.demand[depth] > state.room[host] + _LITTLE * tree.unit:
            return False
    return True


@compiled
def _added(
    tree: Tree, graph: Graph, rows: Rows, weights: Weights, shares: Floats, state: State, depth: int, row: int
) -> tuple[float, float, float]:
    """What a deployment of the next operator adds: weighed, in money, and when its tuples are done."""
    arrives_s, money, weighed = 0.0, rows.cost[row], 0.0
    for number in range(graph.streams[depth]):
        origin = graph.origin[depth, number]
        delay_s = delay_between(tree, state.chosen[origin], row)
        arrives_s = max(arrives_s, state.arrives_s[origin] + delay_s)
        money += graph.rate[depth, number] * price_between(tree, state.chosen[origin], row)
        weighed += weights.second * shares[depth, number] * delay_s
    weighed += weights.second * shares[depth, shares.shape[1] - 1] * rows.latency_s[row]
    return weighed + weights.money * money, money, arrives_s + rows.latency_s[row]


@compiled_allocating
def _completed(
    tree: Tree,
    weights: Weights,
    combined: Bound,
    way: Bound,
    money: Bound,
    state: State,
    depth: int,
    value: float,
    spent: float,
    down_s: float,
) -> tuple[float, bool]:
    """At the least, of a plan that goes on from here; infinite where it breaks a bound. Is it known?"""
    limit = _limit(state)
    rest = _rest(tree, combined, state, depth)
    if rest == UNKNOWN or value + rest >= limit:
        return np.inf, rest != UNKNOWN
    longest_s = _longest_s(tree, way, state, depth)
    if longest_s == UNKNOWN or longest_s > weights.most_s:
        return np.inf, longest_s != UNKNOWN
    # Money has few good bounds where prices are alike, and they take long: a rough one will do where a plan
    # that breaks the bound on cost is no better than the best one known.
    if weights.money * weights.most_money < limit:
        still = _rest(tree, money, state, depth)
    else:
        still = _rough_rest(tree, money, depth)
    if still == UNKNOWN or spent + still > weights.most_money:
        return np.inf, still != UNKNOWN
    apart = weights.second * longest_s + weights.money * (spent + still) + weights.down * down_s
    return max(value + rest, apart), True


@compiled_allocating
def _open(
    tree: Tree,
    graph: Graph,
    rows: Rows,
    weights: Weights,
    shares: Floats,
    combined: Bound,
    way: Bound,
    money: Bound,
    state: State,
    depth: int,
    down_s: float,
) -> None:
    """Write down what the next operator may do, best first; so far as work allows."""
    before = 0.0 if depth == 0 else state.weighed[depth - 1]
    spent = 0.0 if depth == 0 else state.money[depth - 1]
    down_before = down_s if depth == 0 else max(state.down_s[depth - 1], down_s)
    limit = _limit(state)
    count = state.found[depth]
    for number in range(state.opening[depth], tree.first[depth] + combined.store.ends[depth]):
        state.opening[depth], state.found[depth] = number, count
        combined.store.work[0] -= 1
        row = combined.store.order[number]
        if before + combined.store.rough[row] + weights.down * down_before >= limit:
            break
        down = max(down_before, rows.downtime_s[row])
        if not _fits(tree, state, depth, row):
            continue
        weighed, cost, arrives_s = _added(tree, graph, rows, weights, shares, state, depth, row)
        value = before + weighed + weights.down * down
        if value >= limit or arrives_s > weights.most_s or spent + cost > weights.most_money:
            continue
        if value + combined.store.rough[row] - combined.measure.own[row] >= limit:
            continue
        state.chosen[depth], state.arrives_s[depth] = row, arrives_s
        _place(tree, state, depth, row, 1.0)
        value, known = _completed(
            tree, weights, combined, way, money, state, depth, value, spent + cost, down
        )
        _place(tree, state, depth, row, -1.0)
        if not known:
            return
        if value < limit:
            state.candidate[depth, count], state.bound[depth, count] = row, value
            count += 1
    ranks = np.argsort(state.bound[depth, :count])
    state.candidate[depth, :count] = state.candidate[depth, :count][ranks]
    state.bound[depth, :count] = state.bound[depth, :count][ranks]
    state.found[depth], state.tried[depth], state.opening[depth] = count, 0, NOBODY


@compiled_allocating
def go_on(
    tree: Tree,
    graph: Graph,
    rows: Rows,
    weights: Weights,
    shares: Floats,
    combined: Bound,
    way: Bound,
    money: Bound,
    state: State,
    down_s: float,
) -> bool:
    """Search until work is up; whether it has come to its end."""
    operators, work = tree.above.size, combined.store.work
    while work[0] > 0:
        work[0] -= 1
        depth = state.depth[0]
        if state.opening[depth] != NOBODY:
            _open(tree, graph, rows, weights, shares, combined, way, money, state, depth, down_s)
            if state.opening[depth] != NOBODY:
                return False
        number = state.tried[depth]
        if number > 0:  # give back the room of the one tried before
            _place(tree, state, depth, state.candidate[depth, number - 1], -1.0)
        if number >= state.found[depth] or state.bound[depth, number] >= _limit(state):
            state.depth[0] = depth - 1
            if depth == 0:
                return True
            continue
        state.tried[depth] = number + 1
        row = state.candidate[depth, number]
        weighed, cost, arrives_s = _added(tree, graph, rows, weights, shares, state, depth, row)
        state.chosen[depth], state.arrives_s[depth] = row, arrives_s
        _place(tree, state, depth, row, 1.0)
        state.weighed[depth] = weighed + (state.weighed[depth - 1] if depth > 0 else 0.0)
        state.money[depth] = cost + (state.money[depth - 1] if depth > 0 else 0.0)
        state.down_s[depth] = max(rows.downtime_s[row], state.down_s[depth - 1] if depth > 0 else 0.0)
        if depth + 1 < operators:
            state.depth[0] = depth + 1
            state.opening[depth + 1], state.found[depth + 1] = tree.first[depth + 1], 0
            continue
        longest_s = state.arrives_s.max()
        value = (
            weights.second * longest_s
            + weights.money * state.money[depth]
            + weights.down * state.down_s[depth]
        )
        if value < state.best[0] and longest_s <= weights.most_s:
            state.best[0], state.best[1] = value, longest_s
            state.best[2], state.best[3] = state.money[depth], state.down_s[depth]
            state.plan[:] = state.chosen
    return False


@compiled
def open_bound(state: State, lowest: float) -> float:
    """At the least, of all that has not been tried yet; `lowest` is what no plan at all is below."""
    bound = np.inf
    for depth in range(state.depth[0] + 1):
        if state.opening[depth] != NOBODY:  # not all are known: at the least what was chosen above takes
            bound = min(bound, lowest if depth == 0 else state.bound[depth - 1, state.tried[depth - 1] - 1])
        elif state.tried[depth] < state.found[depth]:
            bound = min(bound, state.bound[depth, state.tried[depth]])
    return bound


def _progress(state: State) -> tuple[int, ...]:
    """Where the search is: the same again if nothing at all was found out."""
    depth = int(state.depth[0])
    return (depth, int(state.opening[depth]), *(int(number) for number in state.tried[:depth]))


class Found(NamedTuple):
    """The best plan, and what no plan is below."""

    rows: Ints | None  # of each operator's choices
    value: float
    bound: float


_WORK = 1_000_000  # deployments looked at between two questions whether it is enough: less than a second
_LEVELS_OF_DOWNTIME = 4
_KEPT, _MOST_KEPT = 8, 1 << 21  # bounds: for every deployment, and in all


def search(
    problem: Problem,
    choices: Sequence[Choices],
    *,
    known: Sequence[int] | None = None,
    enough: Callable[[], bool] = lambda: False,
) -> Found:
    """The best of all plans made of these choices; `known` is one to begin with."""
    if any(len(one.members) == 0 for one in choices):
        return Found(None, np.inf, np.inf)
    return _Search(problem, choices, enough).run(known)


def _late(problem: Problem) -> list[int]:
    """Operators in the order in which they get their hosts: each as late as those it sends to allow.

    What an operator aside from the longest path does is bound by little but the ones it sends to. Chosen
    early, every host of it would have all the rest searched again.
    """
    index = {operator.name: number for number, operator in enumerate(problem.operators)}
    behind = [0] * len(index)  # streams from a source
    waits = [0] * len(index)  # streams to operators that are not in the order yet
    from_: list[list[int]] = [[] for _ in index]
    for target in range(len(index)):
        for stream in problem.streams:
            if index[stream.target] == target:
                origin = index[stream.origin]
                behind[target] = max(behind[target], behind[origin] + 1)
                waits[origin] += 1
                from_[target].append(origin)
    backwards: list[int] = []
    ready = {number for number in index.values() if waits[number] == 0}
    while ready:
        # Of several that could be last, the one nearest to a source: the others are on longer paths.
        last = min(ready, key=lambda number: (behind[number], -number))
        ready.remove(last)
        backwards.append(last)
        for origin in from_[last]:
            waits[origin] -= 1
            if waits[origin] == 0:
                ready.add(origin)
    return backwards[::-1]


class _Search:
    def __init__(self, problem: Problem, choices: Sequence[Choices], enough: Callable[[], bool]) -> None:
        self.problem, self.enough = problem, enough
        self.order = _late(problem)
        operators = [problem.operators[number] for number in self.order]
        choices = [choices[number] for number in self.order]
        index = {operator.name: number for number, operator in enumerate(operators)}
        count = len(operators)
        into: list[list[tuple[int, float]]] = [[] for _ in operators]
        for stream in problem.streams:
            into[index[stream.target]].append((index[stream.origin], stream.rate))
        widest = max(1, *(len(streams) for streams in into))
        self.graph = Graph(
            origin=np.full((count, widest), NOBODY, np.int64),
            rate=np.zeros((count, widest)),
            streams=np.array([len(streams) for streams in into], np.int64),
        )
        for j, streams in enumerate(into):
            for number, (origin, rate) in enumerate(streams):
                self.graph.origin[j, number], self.graph.rate[j, number] = origin, rate
        most = max(one.members.shape[1] for one in choices)
        sizes = [len(one.members) for one in choices]
        self.first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        members = np.full((int(self.first[-1]), most), NOBODY, np.int64)
        for j, one in enumerate(choices):
            members[self.first[j] : self.first[j + 1], : one.members.shape[1]] = one.members
        self.members = members
        self.rows = Rows(
            np.concatenate([one.latency_s for one in choices]),
            np.concatenate([one.cost for one in choices]),
            np.concatenate([one.downtime_s for one in choices]),
        )
        self.demand = np.array([operator.demand for operator in operators])
        goal = problem.goal
        self.weights = Weights(
            second=goal.response_time / goal.max_response_time_s,
            money=goal.cost / goal.max_cost,
            down=goal.downtime / goal.max_downtime_s,
            most_s=goal.max_response_time_s * (1 + 1e-12),
            most_money=goal.max_cost * (1 + 1e-12),
        )
        self.sizes = (members != NOBODY).sum(axis=1)
        self.links = (
            np.ascontiguousarray(problem.network.delay_s, float),
            np.ascontiguousarray(problem.network.price, float),
        )
        self.delay_s, self.price = to_hosts(
            members, self.sizes, *self.links, problem.readings.traffic_per_host
        )
        self.near = self._near()
        self.nowhere = np.zeros_like(self.near)
        self.work, self.at_once = np.zeros(1, np.int64), _WORK

    def _tree(self, shares: Floats) -> Tree:
        """Every operator below the one from which most of the weighed paths come to it."""
        count = len(self.problem.operators)
        above = np.full(count, NOBODY, np.int64)
        rate = np.zeros(count)
        for j in range(count):
            streams = int(self.graph.streams[j])
            if streams:
                number = int(np.argmax(shares[j, :streams]))
                above[j], rate[j] = self.graph.origin[j, number], self.graph.rate[j, number]
        children = [[c for c in range(count) if above[c] == j] for j in range(count)]
        child = np.full((count, max(1, *(len(one) for one in children))), NOBODY, np.int64)
        for j, below in enumerate(children):
            child[j, : len(below)] = below
        network = self.problem.network
        return Tree(
            first=self.first,
            members=self.members,
            sizes=self.sizes,
            demand=self.demand,
            above=above,
            child=child,
            children=np.array([len(below) for below in children], np.int64),
            rate=rate,
            capacity=np.array([host.capacity for host in network.hosts]),
            unit=float(self.demand.min()),
            delay_s=self.delay_s,
            price=self.price,
            per_host=self.problem.readings.traffic_per_host,
        )

    def _near(self) -> Ints:
        """Of every deployment, the hosts that its tuples would like best to go to, as a set in one number."""
        network = self.problem.network
        rate = max((stream.rate for stream in self.problem.streams), default=0.0)
        apart = self.weights.second * network.delay_s + self.weights.money * rate * network.price
        nearest = np.argsort(apart, axis=1, kind="stable")[:, : NEAR + 1]
        bits = np.where(nearest < BITS, np.int64(1) << np.minimum(nearest, BITS), 0)
        by_host = np.bitwise_or.reduce(bits, axis=1)
        there = self.members != NOBODY
        near: Ints = np.bitwise_or.reduce(np.where(there, by_host[self.members], 0), axis=1)
        return near

    def _shares(self, paths: Sequence[Sequence[int]]) -> Floats:
        """Of every stream, and of every operator (last column), in the mean of these paths."""
        count, widest = self.graph.origin.shape
        shares = np.zeros((count, widest + 1))
        for path in paths:
            for before, j in zip([NOBODY, *path], path, strict=False):
                shares[j, widest] += 1 / len(paths)
                for number in range(int(self.graph.streams[j])):
                    if self.graph.origin[j, number] == before:
                        shares[j, number] += 1 / len(paths)
        return shares

    def _critical(self, plan: Ints, tree: Tree) -> list[int]:
        """The longest way through a plan, as operators."""
        count = len(plan)
        ends, via = np.zeros(count), np.full(count, NOBODY)
        for j in range(count):
            for number in range(int(self.graph.streams[j])):
                origin = int(self.graph.origin[j, number])
                at_s = ends[origin] + delay_between(tree, int(plan[origin]), int(plan[j]))
                if via[j] == NOBODY or at_s > ends[j]:
                    ends[j], via[j] = at_s, origin
            ends[j] += self.rows.latency_s[plan[j]]
        path = [int(np.argmax(ends))]
        while via[path[0]] != NOBODY:
            path.insert(0, int(via[path[0]]))
        return path

    def _longest_path(self) -> list[int]:
        """By the number of operators: before any plan is known."""
        count = len(self.graph.streams)
        length, via = np.ones(count), np.full(count, NOBODY)
        for j in range(count):
            for number in range(int(self.graph.streams[j])):
                origin = int(self.graph.origin[j, number])
                if length[origin] + 1 > length[j]:
                    length[j], via[j] = length[origin] + 1, origin
        path = [int(np.argmax(length))]
        while via[path[0]] != NOBODY:
            path.insert(0, int(via[path[0]]))
        return path

    def run(self, known: Sequence[int] | None) -> Found:
        best, plan = np.full(4, np.inf), np.zeros(len(self.demand), np.int64)
        paths = [self._longest_path()]
        tree = self._tree(self._shares(paths))
        sizes = tree.sizes
        if known is not None:
            plan[:] = self.first[:-1] + np.array(known)[self.order]
            best[:] = self._value(tree, plan)
            if (path := self._critical(plan, tree)) not in paths:
                paths.append(path)
        bound, ranges, most = np.inf, self._downtimes(), int(sizes.max())
        for replicas in range(1, most + 1):
            for low_s, high_s in ranges:
                allowed = (sizes <= replicas) & (self.rows.downtime_s <= high_s)
                if not np.logical_or.reduceat(allowed, self.first[:-1]).all():
                    continue  # an operator has none of these
                left = self._within(paths, allowed, low_s, best, plan)
                if replicas == most:
                    bound = min(bound, left)
                if best[0] < np.inf and (path := self._critical(plan, tree)) not in paths:
                    paths.append(path)
                last = replicas == most and high_s == ranges[-1][1]
                if not last and self.enough():
                    # Whatever was searched with fewer replicas says nothing about those with more.
                    after_s = ranges[0][0] if replicas < most else high_s
                    return self._found(best, plan, min(bound, self._lowest(paths, after_s)))
        return self._found(best, plan, bound)

    def _lowest(self, paths: Sequence[Sequence[int]], down_s: float) -> float:
        """What no plan that interrupts for so long is below."""
        everything = np.ones(len(self.members), bool)
        rest = self._rough(self._highest(paths, everything), everything)
        return self.weights.down * down_s + rest

    def _downtimes(self) -> list[tuple[float, float]]:
        """Ranges, short ones first; within one, plans differ little in how long they interrupt."""
        values = np.unique(self.rows.downtime_s)
        if self.weights.down == 0 or values.size == 1:
            return [(0.0, float(values[-1]))]
        gaps = np.sort(np.argsort(np.diff(values))[::-1][: _LEVELS_OF_DOWNTIME - 1])
        edges = [0, *(gaps + 1), values.size]
        return [(float(values[first]), float(values[last - 1])) for first, last in pairwise(edges)]

    def _value(self, tree: Tree, plan: Ints) -> Floats:
        """Objective, response time, money and downtime of a whole plan."""
        count = len(plan)
        ends, money = np.zeros(count), float(self.rows.cost[plan].sum())
        for j in range(count):
            for number in range(int(self.graph.streams[j])):
                origin = int(self.graph.origin[j, number])
                ends[j] = max(ends[j], ends[origin] + delay_between(tree, int(plan[origin]), int(plan[j])))
                money += self.graph.rate[j, number] * price_between(tree, int(plan[origin]), int(plan[j]))
            ends[j] += self.rows.latency_s[plan[j]]
        longest_s, down_s = float(ends.max()), float(self.rows.downtime_s[plan].max())
        weights = self.weights
        value = weights.second * longest_s + weights.money * money + weights.down * down_s
        return np.array([value, longest_s, money, down_s])

    def _measure(self, shares: Floats, tree: Tree) -> Measure:
        """The objective without downtime, with these shares of paths for the longest of them."""
        widest = shares.shape[1] - 1
        second, money = self.weights.second, self.weights.money
        of_delay = np.zeros(len(self.demand))
        own = np.empty(len(self.members))
        for j in range(len(self.demand)):
            rows = slice(self.first[j], self.first[j + 1])
            own[rows] = second * shares[j, widest] * self.rows.latency_s[rows] + money * self.rows.cost[rows]
            for number in range(int(self.graph.streams[j])):
                if self.graph.origin[j, number] == tree.above[j]:
                    of_delay[j] = second * shares[j, number]
        return Measure(own, of_delay, money, False)

    def _highest(self, paths: Sequence[Sequence[int]], allowed: Flags) -> Floats:
        """Of each path alone and of all together, the shares with which the bound of all plans is highest.

        The longest path of the best plan need not be a good one: one with an operator on it that could be
        anywhere is as long as the others just because nothing is lost by it.
        """
        if len(paths) == 1:
            return self._shares(paths)
        best, highest = self._shares(paths), -np.inf
        for some in (paths, *([path] for path in paths)):
            shares = self._shares(some)
            if (bound := self._rough(shares, allowed)) > highest:
                best, highest = shares, bound
        return best

    def _rough(self, shares: Floats, allowed: Flags) -> float:
        """At the least, of all operators, without downtime."""
        tree = self._tree(shares)
        return self._sum_of_roots(tree, rough(tree, self._measure(shares, tree), allowed))

    def _sum_of_roots(self, tree: Tree, values: Floats) -> float:
        roots = np.flatnonzero(tree.above == NOBODY)
        return sum(float(values[self.first[j] : self.first[j + 1]].min()) for j in roots)

    def _within(
        self, paths: Sequence[Sequence[int]], allowed: Flags, low_s: float, best: Floats, plan: Ints
    ) -> float:
        """Search among these; what is better is written to `best` and `plan`. The bound that is left."""
        shares = self._highest(paths, allowed)
        tree = self._tree(shares)
        measure = self._measure(shares, tree)
        count = len(self.demand)
        limit = best[0] - self.weights.down * low_s
        if limit < np.inf:
            # What is part of no plan that is better is left out from now on, which makes all bounds better.
            values = rough(tree, measure, allowed)
            allowed = whole(tree, measure, values, *self.links) <= limit
        combined = self._bound(tree, measure, allowed, limit, self.near)
        if (combined.store.ends == 0).any():  # an operator for which nothing of these would do
            return float(best[0])
        lowest = self.weights.down * low_s + self._sum_of_roots(tree, combined.store.rough)
        if self.enough():
            return min(lowest, float(best[0]))
        way = self._bound(
            tree,
            Measure(self.rows.latency_s, np.ones(count), 0.0, True),
            allowed,
            self.weights.most_s,
            self.nowhere,
        )
        spent = self._bound(
            tree,
            Measure(self.rows.cost, np.zeros(count), 1.0, False),
            allowed,
            self.weights.most_money,
            self.nowhere,
        )
        most = int(max(combined.store.ends.max(), 1))
        state = State(
            chosen=np.zeros(count, np.int64),
            room=tree.capacity.copy(),
            arrives_s=np.zeros(count),
            weighed=np.zeros(count),
            money=np.zeros(count),
            down_s=np.zeros(count),
            tried=np.zeros(count, np.int64),
            found=np.zeros(count, np.int64),
            opening=np.zeros(count, np.int64),
            candidate=np.zeros((count, most), np.int64),
            bound=np.zeros((count, most)),
            depth=np.array([0]),
            best=best,
            plan=plan,
        )
        while True:
            before = _progress(state)
            self.work[0] = self.at_once
            done = go_on(
                tree,
                self.graph,
                self.rows,
                self.weights,
                shares,
                combined,
                way,
                spent,
                state,
                low_s,
            )
            if done:
                return float(best[0])
            if self.enough():
                return min(float(open_bound(state, lowest)), float(best[0]))
            if before == _progress(state):
                self.at_once += self.at_once // 8  # perhaps too little to find a single bound

    def _bound(self, tree: Tree, measure: Measure, allowed: Flags, limit: float, near: Ints) -> Bound:
        values = rough(tree, measure, allowed)
        count = len(self.demand)
        order = np.concatenate(
            [
                self.first[j] + np.argsort(values[self.first[j] : self.first[j + 1]], kind="stable")
                for j in range(count)
            ]
        )
        counts = (values <= limit) & (values < np.inf)
        ends = np.add.reduceat(counts, self.first[:-1], dtype=np.int64)
        numbers = min(1 << int(_KEPT * len(values)).bit_length(), _MOST_KEPT)
        return Bound(
            measure,
            Least(
                values,
                order,
                ends,
                near,
                np.full((numbers, 2), NOBODY, np.int64),
                np.empty(numbers),
                self.work,
            ),
        )

    def _found(self, best: Floats, plan: Ints, bound: float) -> Found:
        if best[0] == np.inf:
            return Found(None, np.inf, bound)
        rows = np.empty_like(plan)
        rows[self.order] = plan - self.first[:-1]
        return Found(rows, float(best[0]), min(bound, float(best[0])))
