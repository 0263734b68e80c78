"""Deep Q-learning with experience replay (Russo 2023, Alg. 2 and sec. 4.2.2).

A network is given a state and answers with the value of every action.
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled, compiled_apart
from penstock.perf.deployments import NOTHING, NOWHERE, actions_of, after
from penstock.policy.kernel import CompiledPolicy, Seen, step_of
from penstock.policy.operator.q_learning import Exploration
from penstock.policy.parameters import Param
from penstock.policy.registry import operator_policy
from penstock.policy.rl.deep_learning import (
    PUBLISHED,
    TRAINING_SLOTS,
    Approximator,
    DeepSettings,
    begin,
    descend_once,
    evaluate,
    is_due,
)
from penstock.policy.rl.experience import (
    UNKNOWN,
    action_carried_out,
    deployment_then,
    level_then,
    no_decision,
    random_action,
    remember,
    score,
)
from penstock.policy.rl.network import backward
from penstock.policy.rl.problem import Problem, known_cost, level_of, unknown_cost
from penstock.policy.rl.replay import ACTION, FOLLOWING, LEVEL, draw, first_with, store
from penstock.policy.rl.schedules import Schedule, advance


class DeepQLearner(NamedTuple):
    """Q(s, .) as a network with one output per action."""

    q: Approximator
    gamma: float
    masked: bool
    epsilon: Schedule
    last: Ints
    largest_gain: Floats
    expected: Floats  # [of the best action, of staying], at the last decision


@operator_policy(
    "dql", chance=True, needs_model=True, has_bounds=True, published={**PUBLISHED, "masked": False}
)
@dataclass(frozen=True, kw_only=True)
class DeepQ(CompiledPolicy[DeepQLearner]):
    """Deep Q-learning: a network learns the value of every action, from experience replayed."""

    training_slots: ClassVar[int | None] = TRAINING_SLOTS

    problem: Problem
    gamma: Annotated[float, Param("discount factor for later costs", at_least=0, below=1)] = 0.99
    masked: Annotated[
        bool, Param("what comes next counts possible actions only; the published code counts all")
    ] = True
    exploration: Exploration = field(default_factory=Exploration)
    deep: DeepSettings = field(default_factory=DeepSettings)

    def initial(self) -> DeepQLearner:
        return DeepQLearner(
            q=self.deep.approximator(self.problem, 2 * self.problem.deployments.speedup.size + 1),
            gamma=self.gamma,
            masked=self.masked,
            epsilon=self.exploration.epsilon(),
            last=no_decision(),
            largest_gain=np.ones(1),
            expected=np.zeros(2),
        )

    def explain(self, memory: DeepQLearner, seen: Seen) -> str:
        least, stay = memory.expected
        return f"expected cost {least:.4g}, staying {stay:.4g}, at {seen.rate:.0f} t/s"


@compiled
def best_action(values: Floats, me: Approximator, here: int, masked: bool) -> int:
    """The first action of least value among those possible here, or among all."""
    space = me.problem.deployments
    best = NOTHING
    for action in range(1, actions_of(space)):
        if values[action] < values[best] and (not masked or after(space, here, action) != NOWHERE):
            best = action
    return best


@compiled
def outlook(me: DeepQLearner, deployment: int, level: int) -> float:
    """What the best action in a state is worth, by the network that looks ahead."""
    q = me.q
    if q.double:  # one network picks, the other says: a lucky error is not taken for a bargain
        evaluate(q, q.net.weights, deployment, level)
        pick = best_action(q.net.output, q, deployment, me.masked)
        evaluate(q, q.target, deployment, level)
        return float(q.net.output[pick])
    evaluate(q, q.target if q.sync_every > 0 else q.net.weights, deployment, level)
    return float(q.net.output[best_action(q.net.output, q, deployment, me.masked)])


@compiled_apart
def fit(me: DeepQLearner, rng: Generator) -> None:
    """One optimiser step towards c + gamma min Q(s', .) on a batch (Alg. 2, lines 7-9).

    Batches are full of equal states, because an operator hardly moves: each is run through the
    network once.
    """
    q = me.q
    kept, net, keys, goals = q.replay, q.net, q.keys, q.goals
    levels = q.problem.levels
    draw(kept, rng)
    for index in range(keys.size):
        place = kept.batch[index]
        reached = after(q.problem.deployments, kept.deployment[place], kept.transition[place, ACTION])
        following = kept.transition[place, FOLLOWING]
        keys[index] = reached * levels + following
        same = first_with(keys, index)
        goals[index] = goals[same] if same < index else outlook(me, reached, following)
    for index in range(keys.size):
        place = kept.batch[index]
        goals[index] = kept.cost[place] + me.gamma * goals[index]
        keys[index] = kept.deployment[place] * levels + kept.transition[place, LEVEL]
    for index in range(keys.size):
        if first_with(keys, index) < index:
            continue
        place = kept.batch[index]
        evaluate(q, net.weights, kept.deployment[place], kept.transition[place, LEVEL])
        for action in range(net.error.size):
            net.error[action] = 0.0  # what was not done teaches nothing
        for like in range(index, keys.size):
            if keys[like] == keys[index]:
                done = kept.transition[kept.batch[like], ACTION]
                net.error[done] += q.error_scale * (net.output[done] - goals[like])
        backward(net, net.weights)
    descend_once(q)


@step_of(DeepQLearner)
def deep_q_step(me: DeepQLearner, seen: Seen, rng: Generator) -> tuple[int, float]:
    q = me.q
    p = q.problem
    here = seen.deployment
    level = level_of(p, seen.rate)
    begin(q, rng)
    carried_out = action_carried_out(me.last, here)
    if carried_out != UNKNOWN:
        cost = known_cost(p, carried_out, here) + unknown_cost(p, seen)
        store(q.replay, deployment_then(me.last), level_then(me.last), carried_out, level, cost)
        if is_due(q):
            fit(me, rng)
    evaluate(q, q.net.weights, here, level)
    values = q.net.output
    action = best_action(values, q, here, True)
    me.expected[0] = values[action]
    me.expected[1] = values[NOTHING]
    if rng.random() <= me.epsilon.now[0]:
        action = random_action(p.deployments, here, rng)
    advance(me.epsilon)
    target = after(p.deployments, here, action)
    remember(me.last, here, level, action, target)
    return target, score(me.largest_gain, me.expected[1], me.expected[0], values[action])
