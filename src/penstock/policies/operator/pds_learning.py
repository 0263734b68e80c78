"""Q-learning over post-decision states: QL+PDS and QL+PDS+ (seed 001, sec. 4.3, eq. 9-12).

What an action does is known; only what the next interval brings is learned, as one value
per post-decision state (the deployment after the action, the rate level before it
changes). QL+PDS+ also estimates the violation cost from an approximate model and learns
the error of that estimate.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled, compiled_allocating, frozen_ints
from penstock.perf.deployments import NOTHING, NOWHERE, Deployments, actions_of, after
from penstock.perf.operator import response_time
from penstock.perf.queueing import QueueModel, m_m_1
from penstock.policies.kernel import CompiledPolicy, Seen, copied, step_of
from penstock.policies.operator.q_learning import LearningRates
from penstock.policies.rl.experience import (
    UNKNOWN,
    action_carried_out,
    deployment_then,
    level_then,
    no_decision,
    remember,
    score,
)
from penstock.policies.rl.problem import Problem, known_cost, level_of, unknown_cost
from penstock.policies.rl.schedules import Schedule, advance
from penstock.policies.rl.tables import ValueTable, row_to_read, row_to_write, value_at, value_table, with_room


_NO_MODEL = m_m_1(1.0)  # stands where plain QL+PDS has no model to hold


@dataclass(frozen=True, slots=True, kw_only=True)
class BelievedModel:
    """What QL+PDS+ thinks it knows: response times and speeds, both a little wrong."""

    deployments: Deployments
    queue: QueueModel


class PdsLearner(NamedTuple):
    """V(s~), one value per post-decision state."""

    problem: Problem
    gamma: float
    v: ValueTable
    alpha: Schedule
    last: Ints
    largest_gain: Floats
    as_published: bool
    estimates: bool
    believed: Deployments
    believed_queue: QueueModel
    first_violating_level: Ints  # per enumerated deployment, by the believed model


@dataclass(frozen=True, kw_only=True)
class PdsLearning(CompiledPolicy[PdsLearner]):
    """Greedy over known costs plus the learned value of where they lead."""

    problem: Problem
    believed: BelievedModel | None = None  # given: QL+PDS+
    gamma: float = 0.99
    rates: LearningRates = field(default_factory=LearningRates)
    as_published: bool = False  # blend in V of the state before the decision, as the published code does
    expected_steps: int = 100_000

    def initial(self) -> PdsLearner:
        p = self.problem
        rows = p.deployments.replicas.size if p.deployments.enumerated else 2**62
        believed = self.believed or BelievedModel(deployments=p.deployments, queue=_NO_MODEL)
        limits = np.empty(0, dtype=np.int64)
        if self.believed is not None and p.deployments.enumerated:
            limits = first_violating_levels(p, believed.deployments, believed.queue)
        return PdsLearner(
            problem=p,
            gamma=self.gamma,
            v=value_table(keys=rows * p.levels, width=1, writes=self.expected_steps),
            alpha=self.rates.alpha(),
            last=no_decision(),
            largest_gain=np.ones(1),
            as_published=self.as_published,
            estimates=self.believed is not None,
            believed=believed.deployments,
            believed_queue=believed.queue,
            first_violating_level=frozen_ints(limits),
        )

    def prepared(self, memory: PdsLearner) -> PdsLearner:
        own = copied(memory)
        return own._replace(v=with_room(own.v))


@compiled
def expected_violation(
    problem: Problem, believed: Deployments, queue: QueueModel, deployment: int, level: int
) -> bool:
    """Whether the believed model expects a violation if the level (taken at its midpoint) stays."""
    rate = (level + 0.5) * problem.quantum
    return response_time(queue, believed, deployment, rate) > problem.max_response_time_s


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
def estimated_cost(me: PdsLearner, deployment: int, level: int) -> float:
    """The estimate of the unknown cost in a post-decision state; 0 for plain QL+PDS."""
    if not me.estimates:
        return 0.0
    if me.first_violating_level.size > 0:
        violates = level >= me.first_violating_level[deployment]
    else:
        violates = expected_violation(me.problem, me.believed, me.believed_queue, deployment, level)
    return me.problem.performance if violates else 0.0


@compiled
def action_value(me: PdsLearner, action: int, target: int, level: int) -> float:
    """Q(s, a) = c_k(s, a) [+ estimate] + V(s~), eq. (9) and (11)."""
    row = row_to_read(me.v, target * me.problem.levels + level)
    return known_cost(me.problem, action, target) + estimated_cost(me, target, level) + value_at(me.v, row, 0)


@compiled
def best_action(me: PdsLearner, here: int, level: int) -> tuple[int, float, float]:
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


@step_of(PdsLearner)
def pds_step(me: PdsLearner, seen: Seen, rng: Generator) -> tuple[int, float]:
    p = me.problem
    here = seen.deployment
    level = level_of(p, seen.rate)
    action, least, stay = best_action(me, here, level)

    carried_out = action_carried_out(me.last, here)
    if carried_out != UNKNOWN:
        then = level_then(me.last)
        row = row_to_write(me.v, here * p.levels + then)
        before = me.v.values[row, 0]
        if me.as_published:
            row_before = row_to_read(me.v, deployment_then(me.last) * p.levels + then)
            before = value_at(me.v, row_before, 0)
        alpha = me.alpha.now[0]
        surprise = unknown_cost(p, seen) - estimated_cost(me, here, then)
        me.v.values[row, 0] = (1.0 - alpha) * before + alpha * (surprise + me.gamma * least)  # eq. (10), (12)
        advance(me.alpha)
        if then == level:
            action, least, stay = best_action(me, here, level)

    target = after(p.deployments, here, action)
    remember(me.last, here, level, action, target)
    return target, score(me.largest_gain, stay, least)
