"""Adaptive: plans with what it has learned of the load and of the nodes. A policy of our own.

It is told what every user knows: prices, roughly how long a tuple takes and how fast nodes are. It learns

- how the load moves from one interval to the next (`rl/load_moves.py`);
- how fast each node type really is, from the utilisation measured on it, and by how much tuples wait longer or
  shorter than the model says, from measured response times;

and, when one of these has changed, plans: value iteration (`rl/stay_or_move.py`) over load levels and
deployments. Of these only few can ever be best. A change costs the same however large it is, so all that
matters of a deployment is its price and the highest load it can take within the bound. With replicas of
several types the slowest one limits what an evenly split load may be, so as many of one type alone, the
cheapest that is no slower, do as well: every deployment worth having is of one type, and has nothing cheaper
beside it that can take as much. That leaves at most 200 of 30 million (ten types, twenty replicas).

A type that was never tried counts as somewhat faster than told, so it is tried if it could pay, and known
from then on.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled, frozen_ints
from penstock.domain.deployment import Replicas
from penstock.perf.deployments import Deployments, handle_of
from penstock.perf.queueing import QueueModel, load, replica_response_time, waiting_time
from penstock.policy.kernel import CompiledPolicy, Seen, step_of, with_other_nodes
from penstock.policy.parameters import Param
from penstock.policy.registry import operator_policy
from penstock.policy.rl.experience import score
from penstock.policy.rl.load_moves import (
    LEVELS,
    LoadMoves,
    fill_transitions,
    learn_rate,
    level_of_rate,
    load_moves,
    narrow,
    too_high,
    too_low,
    widen,
)
from penstock.policy.rl.post_decision import BelievedModel
from penstock.policy.rl.problem import Problem
from penstock.policy.rl.stay_or_move import Room, find_possible, iterate, room_for

_GROWTH, _LONGEST = 1.2, 2000.0  # intervals between two plans: each so much longer than the last, up to this
_MOST_SWEEPS = 400  # of one plan; the next goes on from there
_TOLERANCE = 1e-5
_CHANGED = 0.02  # relative, of a speed or of waiting times: from there on plans are made anew
_LEAST_LOAD, _MOST_LOAD = 0.05, 0.98  # utilisation between which waiting tells something
_LEAST_WEIGHT = 0.1  # of the latest measurement of a speed, however many there were before
_UNTIL_PLAN, _PLANS = range(2)
_CORRECTION, _MEASURED, _PLANNED_CORRECTION = range(3)


class Nodes(NamedTuple):
    """What is known of the node types."""

    speed: Floats  # of each, as the queueing model counts it
    measured: Floats  # how often each was
    planned: Floats  # speeds the latest plan was made with
    waiting: Floats  # [measured over predicted waiting time, how often that was, as of the latest plan]


class AdaptiveLearner(NamedTuple):
    """The learned model, and the plan made with it. A candidate is a deployment of one node type."""

    problem: Problem
    queue: QueueModel
    handles: Ints  # of candidates
    types: Ints
    counts: Ints
    nodes: Nodes
    load: LoadMoves
    limit: Floats  # highest rate within the bound, by candidate
    holding: Floats  # cost of an interval
    violating: Floats  # cost of violations, by candidate and level
    chosen: Ints  # candidates that the plan is about, the cheapest first
    chosen_count: Ints  # [how many]
    order: Ints
    values: Floats  # by candidate and level
    clock: Ints  # [intervals until the next plan, plans made]
    interval: Floats  # [between two plans]
    largest_gain: Floats
    gamma: float
    room: Room


@operator_policy("adaptive", chance=True, needs_model=True, has_bounds=True, anticipates=True)
@dataclass(frozen=True, kw_only=True)
class Adaptive(CompiledPolicy[AdaptiveLearner]):
    """Learns how the load moves and how fast nodes are, and plans with both: the default."""

    problem: Problem
    believed: BelievedModel
    gamma: Annotated[float, Param("discount factor for later costs", at_least=0, below=1)] = 0.999
    optimism: Annotated[
        float, Param("how much faster than told a node type counts until it is tried", at_least=1)
    ] = 1.2
    memory: Annotated[
        float, Param("intervals at a load level after which the older half is forgotten", at_least=2)
    ] = 1000.0

    def initial(self) -> AdaptiveLearner:
        space, most = self.deployments, self.deployments.max_replicas
        types = len(self.node_types)
        alone = [(kind, count) for kind in range(types) for count in range(1, most + 1)]
        handles = [
            handle_of(space, Replicas(tuple(count if one == kind else 0 for one in range(types))))
            for kind, count in alone
        ]
        size = len(alone)
        told = np.array(self.believed.deployments.speedup, dtype=np.float64)
        return AdaptiveLearner(
            problem=self.problem,
            queue=self.believed.queue,
            handles=frozen_ints(handles),
            types=frozen_ints([kind for kind, _ in alone]),
            counts=frozen_ints([count for _, count in alone]),
            nodes=Nodes(self.optimism * told, np.zeros(types), np.zeros(types), np.array([1.0, 0.0, 0.0])),
            load=load_moves(memory=self.memory),
            limit=np.zeros(size),
            holding=np.zeros(size),
            violating=np.zeros((size, LEVELS)),
            chosen=np.zeros(size, dtype=np.int64),
            chosen_count=np.zeros(1, dtype=np.int64),
            order=np.zeros(size, dtype=np.int64),
            values=np.zeros((size, LEVELS)),
            clock=np.zeros(2, dtype=np.int64),
            interval=np.ones(1),
            largest_gain=np.ones(1),
            gamma=self.gamma,
            room=room_for(LEVELS),
        )

    def informed(self, memory: AdaptiveLearner, before: Deployments, after: Deployments) -> AdaptiveLearner:
        memory.clock[_UNTIL_PLAN] = 0
        memory.interval[0] = 1.0
        return with_other_nodes(memory, before, after)

    def explain(self, memory: AdaptiveLearner, seen: Seen) -> str:
        here = candidate_of(memory, seen.deployment)
        if memory.load.width[0] == 0.0:
            return f"at {seen.rate:.0f} t/s: no load was seen yet"
        _, least, stay = best_candidate(memory, here, level_of_rate(memory.load, seen.rate))
        per_interval = 1.0 - memory.gamma
        staying = "not planned for" if stay == np.inf else f"{stay * per_interval:.4f}"
        return f"at {seen.rate:.0f} t/s: expected cost of an interval {least * per_interval:.4f}, staying {staying}"


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
    wait = waiting_time(queue, rate, count * speed) if queue.pooled else waiting_time(queue, rate / count, speed)
    return queue.service_time_s / speed + me.nodes.waiting[_CORRECTION] * wait


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
    return faster or abs(nodes.waiting[_CORRECTION] - waits) > _CHANGED * waits


@compiled
def _speed_of_server(me: AdaptiveLearner, here: int) -> float:
    speed = me.nodes.speed[me.types[here]]
    return speed * me.counts[here] if me.queue.pooled else speed


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
        if me.limit[candidate] > most or candidate == here:
            most = max(most, me.limit[candidate])
            me.chosen[count] = candidate
            count += 1
    me.chosen_count[0] = count


@compiled
def _before(me: AdaptiveLearner, one: int, other: int) -> bool:
    if me.holding[one] != me.holding[other]:
        return me.holding[one] < me.holding[other]
    return me.limit[one] > me.limit[other]


@compiled
def plan(me: AdaptiveLearner, here: int) -> None:
    """What to do at every level of the load, from what is known now."""
    nodes, p = me.nodes, me.problem
    for kind in range(nodes.speed.size):
        nodes.planned[kind] = nodes.speed[kind]
    nodes.waiting[_PLANNED_CORRECTION] = nodes.waiting[_CORRECTION]
    for candidate in range(me.handles.size):
        me.limit[candidate] = find_limit(me, candidate)
    choose_candidates(me, here)
    for index in range(me.chosen_count[0]):
        candidate = me.chosen[index]
        for level in range(LEVELS):
            # Rates of a level are taken to be spread evenly over it.
            within = min(max(me.limit[candidate] / me.load.width[0] - level, 0.0), 1.0)
            me.violating[candidate, level] = p.performance * (1.0 - within)
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
    """The candidate to run at this level, its expected cost, and that of staying (infinite if not planned)."""
    stay = np.inf
    best, least = here, np.inf
    for index in range(me.chosen_count[0]):
        candidate = me.chosen[index]
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
    half = LEVELS // 2
    while too_high(me.load, rate):
        widen(me.load)
        for candidate in range(me.values.shape[0]):
            for level in range(LEVELS):
                me.values[candidate, level] = me.values[candidate, min(2 * level, LEVELS - 1)]
        changed = True
    while too_low(me.load):
        narrow(me.load)
        for candidate in range(me.values.shape[0]):
            for level in range(LEVELS - 1, -1, -1):
                me.values[candidate, level] = me.values[candidate, min(level // 2, half)]
        changed = True
    return changed


@step_of(AdaptiveLearner)
def adaptive_step(me: AdaptiveLearner, seen: Seen, rng: Generator) -> tuple[int, float]:
    here = candidate_of(me, seen.deployment)
    changed = here >= 0 and learn_nodes(me, here, seen)
    changed = _widened(me, seen.rate) or changed
    level = learn_rate(me.load, seen.rate)
    if level < 0:
        return seen.deployment, 0.0
    me.clock[_UNTIL_PLAN] -= 1
    if changed or me.clock[_UNTIL_PLAN] < 0:
        me.interval[0] = min(_GROWTH * me.interval[0], _LONGEST)
        me.clock[_UNTIL_PLAN] = int(me.interval[0])
        plan(me, here)
    best, least, stay = best_candidate(me, here, level)
    gained = stay - least if stay < np.inf else me.problem.performance
    return me.handles[best], score(me.largest_gain, gained, 0.0, 0.0)
