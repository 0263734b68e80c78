"""The deployments worth having, what is known of nodes, and the plan over both: the kernel of `adaptive`.

A candidate is a deployment of one node type. Of all candidates the plan is about those that can take a higher
load than any that is as cheap, and about the one that runs.
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled
from penstock.perf.queueing import QueueModel, load, replica_response_time, waiting_time
from penstock.policy.kernel import Seen, step_of
from penstock.policy.rl.experience import score
from penstock.policy.rl.load_moves import (
    LEVELS,
    LoadMoves,
    fill_transitions,
    forgot,
    learn_rate,
    narrow,
    share_above,
    too_high,
    too_low,
    widen,
)
from penstock.policy.rl.problem import Problem
from penstock.policy.rl.stay_or_move import Room, find_possible, iterate

# Intervals between two plans: each so much longer than the last, up to this.
_GROWTH, _LONGEST = 1.2, 2000.0
_MOST_SWEEPS = 400  # of one plan; the next goes on from there
_TOLERANCE = 1e-5
_CHANGED = 0.02  # relative, of a speed or of waiting times: from there on plans are made anew
_LEAST_LOAD, _MOST_LOAD = 0.05, 0.98  # utilisation between which waiting tells something
_LEAST_WEIGHT = 0.1  # of the latest measurement of a speed, however many there were before
_REFUSALS = 3  # in a row, after which only replicas of the type that runs are asked for
_FROM, _FOR, _REFUSED = range(3)
_UNTIL_PLAN, _PLANS = range(2)
_CORRECTION, _MEASURED, _PLANNED_CORRECTION = range(3)


class Nodes(NamedTuple):
    """What is known of the node types."""

    speed: Floats  # of each, as the queueing model counts it
    measured: Floats  # how often each was
    planned: Floats  # speeds the latest plan was made with
    waiting: Floats  # [measured over predicted waiting time, how often that was, as of the latest plan]


class Batches(NamedTuple):
    """What is known of micro-batches, where there are any (NaN: not known)."""

    known: Floats  # a Calibration, and when replicas came
    planned: Floats  # [fixed part, per tuple, shared, until replicas are ready] of the latest plan
    recent: Floats  # (moment, tuples/s) of the latest readings of the load
    readings: Ints  # [how many]
    needed: Ints  # replicas by node type: no fewer, whatever the plan says


class AdaptiveLearner(NamedTuple):
    """The learned model, and the plan made with it. A candidate is a deployment of one node type."""

    problem: Problem
    queue: QueueModel
    handles: Ints  # of candidates
    types: Ints
    counts: Ints
    nodes: Nodes
    batches: Batches
    load: LoadMoves
    limit: Floats  # highest rate within the bound, by candidate
    holding: Floats  # cost of an interval
    violating: Floats  # cost of violations, by candidate and level
    chosen: Ints  # candidates that the plan is about, the cheapest first
    chosen_count: Ints  # [how many]
    order: Ints
    values: Floats  # by candidate and level
    asked: Ints  # [candidate that ran, candidate asked for, exchanges of types that nobody carried out]
    clock: Ints  # [intervals until the next plan, plans made]
    interval: Floats  # [between two plans]
    largest_gain: Floats
    gamma: float
    room: Room


def plan_anew(me: AdaptiveLearner) -> None:
    """Plan at the next interval: prices have changed."""
    plan_in(me, 0)
    me.interval[0] = 1.0
    me.asked[_REFUSED] = 0


def plan_in(me: AdaptiveLearner, intervals: int) -> None:
    """Plan after so many intervals, if nothing changes before."""
    me.clock[_UNTIL_PLAN] = intervals


@compiled
def candidate_of(me: AdaptiveLearner, handle: int) -> int:
    """The candidate that is this deployment, or -1 if replicas of several types run."""
    for candidate in range(me.handles.size):
        if me.handles[candidate] == handle:
            return candidate
    return -1


@compiled
def response_of(me: AdaptiveLearner, candidate: int, rate: float) -> float:
    """Expected response time, by the told model with the speed and the waiting that were measured."""
    speed = me.nodes.speed[me.types[candidate]]
    count = me.counts[candidate]
    queue = me.queue
    if queue.curve_rate.size > 0:
        return replica_response_time(queue, rate / count, speed)
    wait = (
        waiting_time(queue, rate, count * speed) if queue.pooled else waiting_time(queue, rate / count, speed)
    )
    return float(queue.service_time_s / speed + me.nodes.waiting[_CORRECTION] * wait)


@compiled
def learn_nodes(me: AdaptiveLearner, here: int, seen: Seen) -> bool:
    """Take over what was measured; returns whether that changes what a plan was made with."""
    nodes, queue = me.nodes, me.queue
    kind = me.types[here]
    share = seen.rate / me.counts[here]
    if seen.rate <= 0.0 or not 0.0 < seen.utilisation < np.inf:
        return False
    speed = load(queue, share, 1.0) / seen.utilisation
    nodes.measured[kind] += 1.0
    weight = max(1.0 / nodes.measured[kind], _LEAST_WEIGHT)
    nodes.speed[kind] += weight * (speed - nodes.speed[kind])
    if _LEAST_LOAD < seen.utilisation < _MOST_LOAD and seen.response_time_s < np.inf:
        wait = waiting_time(queue, seen.rate if queue.pooled else share, _speed_of_server(me, here))
        waited = seen.response_time_s - queue.service_time_s / nodes.speed[kind]
        if 0.0 < wait < np.inf and waited >= 0.0:
            nodes.waiting[_MEASURED] += 1.0
            weight = max(1.0 / nodes.waiting[_MEASURED], _LEAST_WEIGHT)
            nodes.waiting[_CORRECTION] += weight * (waited / wait - nodes.waiting[_CORRECTION])
    faster = abs(nodes.speed[kind] - nodes.planned[kind]) > _CHANGED * nodes.planned[kind]
    waits = nodes.waiting[_PLANNED_CORRECTION]
    return bool(faster or abs(nodes.waiting[_CORRECTION] - waits) > _CHANGED * waits)


@compiled
def _speed_of_server(me: AdaptiveLearner, here: int) -> float:
    speed = me.nodes.speed[me.types[here]]
    return float(speed * me.counts[here] if me.queue.pooled else speed)


@compiled
def find_limit(me: AdaptiveLearner, candidate: int) -> float:
    """The highest rate within the bound; response times grow with the rate."""
    bound_s = me.problem.max_response_time_s
    if response_of(me, candidate, 0.0) > bound_s:
        return 0.0
    low, high = 0.0, 1.0
    while response_of(me, candidate, high) <= bound_s and high < 1e15:
        low, high = high, 2.0 * high
    for _ in range(50):
        middle = (low + high) / 2.0
        if response_of(me, candidate, middle) <= bound_s:
            low = middle
        else:
            high = middle
    return low


@compiled
def _confined(me: AdaptiveLearner, here: int) -> bool:
    """Whether replicas of another type were asked for in vain: known nodes, for one, are not exchanged."""
    return bool(here >= 0 and me.asked[_REFUSED] >= _REFUSALS)


@compiled
def _alike(me: AdaptiveLearner, here: int, candidate: int) -> bool:
    return bool(me.types[candidate] == me.types[here])


@compiled
def notice_refusals(me: AdaptiveLearner, here: int) -> bool:
    """Count exchanges of types that did not come; returns whether that changes what can be asked for."""
    before = _confined(me, here)
    if here >= 0 and me.asked[_FOR] >= 0:
        if not _alike(me, here, me.asked[_FROM]):
            me.asked[_REFUSED] = 0  # one came, whoever wanted it
        elif here == me.asked[_FROM] and not _alike(me, here, me.asked[_FOR]):
            me.asked[_REFUSED] += 1
    return _confined(me, here) != before


@compiled
def choose_candidates(me: AdaptiveLearner, here: int) -> None:
    """Keep what is running, and every candidate that can take more than all that are as cheap."""
    p = me.problem
    size = me.handles.size
    for candidate in range(size):
        price = me.counts[candidate] * p.deployments.price[me.types[candidate]]
        me.holding[candidate] = p.resources * price / p.cost_scale
        me.order[candidate] = candidate
    for index in range(1, size):  # by cost; of those that cost the same, the one that can take most first
        one = me.order[index]
        place = index
        while place > 0 and _before(me, one, me.order[place - 1]):
            me.order[place] = me.order[place - 1]
            place -= 1
        me.order[place] = one
    count, most = 0, -1.0
    for index in range(size):
        candidate = me.order[index]
        if (
            me.limit[candidate] > most
            or candidate == here
            or (_confined(me, here) and _alike(me, here, candidate))
        ):
            most = max(most, me.limit[candidate])
            me.chosen[count] = candidate
            count += 1
    me.chosen_count[0] = count


@compiled
def _before(me: AdaptiveLearner, one: int, other: int) -> bool:
    if me.holding[one] != me.holding[other]:
        return bool(me.holding[one] < me.holding[other])
    return bool(me.limit[one] > me.limit[other])


@compiled
def plan(me: AdaptiveLearner, here: int) -> None:
    """What to do at every level of the load, from what is known now."""
    nodes, p = me.nodes, me.problem
    for kind in range(nodes.speed.size):
        nodes.planned[kind] = nodes.speed[kind]
    nodes.waiting[_PLANNED_CORRECTION] = nodes.waiting[_CORRECTION]
    if np.isnan(me.batches.planned[0]):  # otherwise they are known from batches
        for candidate in range(me.handles.size):
            me.limit[candidate] = find_limit(me, candidate)
    choose_candidates(me, here)
    for index in range(me.chosen_count[0]):
        candidate = me.chosen[index]
        for level in range(LEVELS):
            above = share_above(me.load, level, me.limit[candidate])
            me.violating[candidate, level] = p.performance * above
    fill_transitions(me.load, me.room.probability, me.room.outlook)
    find_possible(me.room)
    iterate(
        me.values,
        me.chosen,
        me.chosen_count[0],
        me.holding,
        me.violating,
        p.reconfiguration,
        me.gamma,
        _TOLERANCE,
        _MOST_SWEEPS,
        me.room,
    )
    me.clock[_PLANS] += 1


@compiled
def best_candidate(me: AdaptiveLearner, here: int, level: int) -> tuple[int, float, float]:
    """The candidate to run at this level, what it is expected to cost, and staying (infinite: cannot be)."""
    stay = np.inf
    best, least = here, np.inf
    for index in range(me.chosen_count[0]):
        candidate = me.chosen[index]
        needed = me.batches.needed[me.types[candidate]]
        if _confined(me, here):
            needed = min(needed, me.problem.deployments.max_replicas)  # however few all of them are
            if not _alike(me, here, candidate):
                continue
        if me.counts[candidate] < needed:
            continue
        value = me.holding[candidate] + me.values[candidate, level]
        if candidate == here:
            stay = value
        else:
            value += me.problem.reconfiguration
        if value < least:
            best, least = candidate, value
    return best, least, stay


@compiled
def _widened(me: AdaptiveLearner, rate: float) -> bool:
    """Whether levels had to be made wider or narrower; values go along."""
    changed = False
    while too_high(me.load, rate):
        widen(me.load)
        for candidate in range(me.values.shape[0]):
            for level in range(LEVELS):
                me.values[candidate, level] = me.values[candidate, min(2 * level, LEVELS - 1)]
        changed = True
    while too_low(me.load, rate):
        narrow(me.load)
        for candidate in range(me.values.shape[0]):
            for level in range(LEVELS - 1, -1, -1):
                me.values[candidate, level] = me.values[candidate, level // 2]
        changed = True
    return changed


@compiled
def decide_at(me: AdaptiveLearner, here: int, rate: float, changed: bool) -> tuple[int, float, float]:
    """Learn from this load and decide as `best_candidate` does, after a plan if it is time for one."""
    if _widened(me, rate):
        changed = True
        me.interval[0] = 1.0
    changed = notice_refusals(me, here) or changed
    level = learn_rate(me.load, rate)
    if level < 0:
        return here, 0.0, 0.0
    if forgot(me.load):
        changed = True
        me.interval[0] = 1.0
    me.clock[_UNTIL_PLAN] -= 1
    if changed or me.clock[_UNTIL_PLAN] < 0:
        if not changed:
            me.interval[0] = min(_GROWTH * me.interval[0], _LONGEST)
        me.clock[_UNTIL_PLAN] = int(me.interval[0])
        plan(me, here)
    best, least, stay = best_candidate(me, here, level)
    me.asked[_FROM] = here
    me.asked[_FOR] = best if here >= 0 else -1
    return best, least, stay


@step_of(AdaptiveLearner)
def adaptive_step(me: AdaptiveLearner, seen: Seen, rng: Generator) -> tuple[int, float]:
    here = candidate_of(me, seen.deployment)
    changed = here >= 0 and learn_nodes(me, here, seen)
    best, least, stay = decide_at(me, here, seen.rate, changed)
    if best < 0:
        return seen.deployment, 0.0
    gained = stay - least if stay < np.inf else me.problem.performance
    return me.handles[best], score(me.largest_gain, gained, 0.0, 0.0)
