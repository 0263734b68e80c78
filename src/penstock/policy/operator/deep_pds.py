"""Deep Q-learning over post-decision states: DQL+PDS and DQL+PDS+ (Russo 2023, sec. 4.3.1, eq. 9-12).

A network is given a post-decision state and answers with its value; what actions do and cost
is known, as in `q_learning_pds`. DQL+PDS+ learns the error of an approximate model's estimate.
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled, compiled_apart
from penstock.perf.deployments import NOTHING, NOWHERE, actions_of, after
from penstock.policy.kernel import CompiledPolicy, Seen, step_of
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
    level_then,
    no_decision,
    remember,
    score,
)
from penstock.policy.rl.network import backward
from penstock.policy.rl.post_decision import BelievedModel, Estimate, estimate_by, expected_cost
from penstock.policy.rl.problem import Problem, known_cost, level_of, unknown_cost
from penstock.policy.rl.replay import FOLLOWING, LEVEL, draw, first_with, store


class DeepPdsLearner(NamedTuple):
    """V(s~) as a network with one output."""

    v: Approximator
    estimate: Estimate
    gamma: float
    last: Ints
    largest_gain: Floats
    expected: Floats  # [of the best action, of staying], at the last decision


@operator_policy(
    {"dql-pds": {"believed": None}, "dql-pds-plus": {}},
    chance=True,
    needs_model=True,
    has_bounds=True,
    published=PUBLISHED,
)
@dataclass(frozen=True, kw_only=True)
class DeepPds(CompiledPolicy[DeepPdsLearner]):
    """Deep Q-learning with post-decision states; `dql-pds-plus` also uses an approximate model."""

    training_slots: ClassVar[int | None] = TRAINING_SLOTS

    problem: Problem
    believed: BelievedModel | None = None  # given: DQL+PDS+
    gamma: Annotated[float, Param("discount factor for later costs", at_least=0, below=1)] = 0.99
    deep: DeepSettings = field(default_factory=DeepSettings)

    def initial(self) -> DeepPdsLearner:
        return DeepPdsLearner(
            v=self.deep.approximator(self.problem, 1),
            estimate=estimate_by(self.problem, self.believed),
            gamma=self.gamma,
            last=no_decision(),
            largest_gain=np.ones(1),
            expected=np.zeros(2),
        )

    def explain(self, memory: DeepPdsLearner, seen: Seen) -> str:
        least, stay = memory.expected
        return f"expected cost {least:.4g}, staying {stay:.4g}, at {seen.rate:.0f} t/s"


@compiled
def action_value(me: DeepPdsLearner, weights: Floats, action: int, target: int, level: int) -> float:
    """Q(s, a), eq. (9) and (11)."""
    p = me.v.problem
    evaluate(me.v, weights, target, level)
    value = known_cost(p, action, target) + expected_cost(p, me.estimate, target, level) + me.v.net.output[0]
    return float(value)


@compiled_apart
def best_action(me: DeepPdsLearner, weights: Floats, here: int, level: int) -> tuple[int, float, float]:
    """The first possible action of least value, that value, and the value of doing nothing."""
    space = me.v.problem.deployments
    best, least, stay = NOTHING, np.inf, np.inf
    for action in range(actions_of(space)):
        target = after(space, here, action)
        if target != NOWHERE:
            value = action_value(me, weights, action, target, level)
            if action == NOTHING:
                stay = value
            if value < least:
                best, least = action, value
    return best, least, stay


@compiled
def outlook(me: DeepPdsLearner, deployment: int, level: int) -> float:
    """What the best action in a state is worth, by the network that looks ahead."""
    v = me.v
    if v.double:  # one network picks, the other says
        pick, _, _ = best_action(me, v.net.weights, deployment, level)
        return action_value(me, v.target, pick, after(v.problem.deployments, deployment, pick), level)
    ahead = v.target if v.sync_every > 0 else v.net.weights
    _, least, _ = best_action(me, ahead, deployment, level)
    return least


@compiled_apart
def fit(me: DeepPdsLearner, rng: Generator) -> None:
    """One optimiser step towards c_u [- estimate] + gamma min Q(s', .) on a batch, eq. (10) and (12).

    Batches are full of equal states, because an operator hardly moves: each is run through the
    network once, and its actions are compared once.
    """
    v = me.v
    kept, net, keys, goals = v.replay, v.net, v.keys, v.goals
    levels = v.problem.levels
    draw(kept, rng)
    for index in range(keys.size):
        place = kept.batch[index]
        here, following = kept.deployment[place], kept.transition[place, FOLLOWING]
        keys[index] = here * levels + following
        same = first_with(keys, index)
        goals[index] = goals[same] if same < index else outlook(me, here, following)
    for index in range(keys.size):
        place = kept.batch[index]
        goals[index] = kept.cost[place] + me.gamma * goals[index]
        keys[index] = kept.deployment[place] * levels + kept.transition[place, LEVEL]
    for index in range(keys.size):
        if first_with(keys, index) < index:
            continue
        place = kept.batch[index]
        evaluate(v, net.weights, kept.deployment[place], kept.transition[place, LEVEL])
        net.error[0] = 0.0
        for like in range(index, keys.size):
            if keys[like] == keys[index]:
                net.error[0] += v.error_scale * (net.output[0] - goals[like])
        backward(net, net.weights)
    descend_once(v)


@step_of(DeepPdsLearner)
def deep_pds_step(me: DeepPdsLearner, seen: Seen, rng: Generator) -> tuple[int, float]:
    v = me.v
    p = v.problem
    here = seen.deployment
    level = level_of(p, seen.rate)
    begin(v, rng)
    carried_out = action_carried_out(me.last, here)
    if carried_out != UNKNOWN:
        then = level_then(me.last)
        surprise = unknown_cost(p, seen) - expected_cost(p, me.estimate, here, then)
        store(v.replay, here, then, carried_out, level, surprise)
        if is_due(v):
            fit(me, rng)
    action, least, stay = best_action(me, v.net.weights, here, level)
    me.expected[0] = least
    me.expected[1] = stay
    target = after(p.deployments, here, action)
    remember(me.last, here, level, action, target)
    return target, score(me.largest_gain, stay, least, least)
