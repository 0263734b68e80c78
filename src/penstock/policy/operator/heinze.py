"""Heinze et al. (ICDEW 2014), the model-free baseline of Russo 2023: learn to hold a target utilisation.

States are utilisations in steps of 5 %, actions one replica fewer, none, one more. Values
are preset to what a threshold policy would do and refined by SARSA; monotonicity is
enforced: if adding is best at some load, removing is never best at a higher one.

The published code turns utilisations into states, and back, in floating point, and walks
over states by adding .05 to a utilisation: some states are skipped, some met twice. As
published, all of it is copied operation by operation; else states are counted.
"""

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled
from penstock.perf.deployments import replicas_of
from penstock.policy.kernel import CompiledPolicy, Seen, step_of
from penstock.policy.operator.node_choice import NodeChoice
from penstock.policy.operator.oldest_first import Fleet, acknowledge, no_fleet, resize
from penstock.policy.operator.q_learning import StepSize
from penstock.policy.parameters import Param, check_parameters
from penstock.policy.registry import operator_policy
from penstock.policy.rl.schedules import Schedule, advance

STEPS_TO_FULL = 20  # states are 5 % of utilisation apart
HIGHEST_UTILISATION = 10.0
_STATES = int(HIGHEST_UTILISATION) * STEPS_TO_FULL + 1
_FEWER, _SAME, _MORE = range(3)
_PUBLISHED_STEP = 5 / 100.0
_MARGIN = 0.1
_NEVER = -1


class HeinzeMemory(NamedTuple):
    """Q(utilisation, action) and the last choice."""

    fleet: Fleet
    node_type: int
    target: float
    gamma: float
    q: Floats
    alpha: Schedule
    last: Ints  # [state, action, deployment wanted]
    as_published: bool


@operator_policy(NodeChoice.variants("heinze", NodeChoice.CHEAPEST, NodeChoice.FASTEST))
@dataclass(frozen=True, kw_only=True)
class Heinze(CompiledPolicy[HeinzeMemory]):
    """Learns to hold a target utilisation (SARSA)."""

    node_choice: NodeChoice
    target: Annotated[float, Param("utilisation to hold", above=0, below=1)] = 0.7
    gamma: Annotated[float, Param("discount factor for later costs", at_least=0, below=1)] = 0.99
    rates: StepSize = field(default_factory=lambda: StepSize(alpha_start=0.3))
    published_updates: bool = False  # by floating point, and a step size that decays before it learns

    def __post_init__(self) -> None:
        check_parameters(self)

    def starting_type(self) -> int:
        return self.node_choice.pick(speedup=self.deployments.speedup, price=self.deployments.price)

    def initial(self) -> HeinzeMemory:
        return HeinzeMemory(
            fleet=no_fleet(self.deployments),
            node_type=self.starting_type(),
            target=self.target,
            gamma=self.gamma,
            q=self._presets(),
            alpha=self.rates.alpha(),
            last=np.array([_NEVER, _SAME, 0], dtype=np.int64),
            as_published=self.published_updates,
        )

    def _presets(self) -> Floats:
        q = np.zeros((_STATES, 3))
        if not self.published_updates:
            for state in range(_STATES):
                q[state] = self._preset(state / STEPS_TO_FULL)
            return q
        utilisation = 0.0
        while utilisation <= HIGHEST_UTILISATION:
            q[published_state(utilisation)] = self._preset(utilisation)
            utilisation += _PUBLISHED_STEP
        return q

    def _preset(self, utilisation: float) -> Floats:
        preset = np.ones(3)
        if utilisation > self.target:
            preset[_MORE] = 0.0
        elif utilisation < self.target / 2:
            preset[_FEWER] = 0.0
        else:
            preset[_SAME] = 0.0
        return preset

    def explain(self, memory: HeinzeMemory, seen: Seen) -> str:
        return f"utilisation {seen.utilisation:.2f} (target {self.target:.2f}) at {seen.rate:.0f} t/s"


@compiled
def published_state(utilisation: float) -> int:
    """Truncated after two roundings: 1.15 is state 22, not 23, and .05 added up 11 times is 10."""
    return int(utilisation * 100 / 5)


@compiled
def state_of(utilisation: float, as_published: bool) -> int:
    capped = min(utilisation, HIGHEST_UTILISATION)
    return published_state(capped) if as_published else int(np.floor(capped * STEPS_TO_FULL))


@compiled
def utilisation_of(state: int, as_published: bool) -> float:
    """The lower end of a state, which stands for it in the cost."""
    return 1.0 * state * 5 / 100.0 if as_published else state / STEPS_TO_FULL


@compiled
def greedy(q: Floats, state: int, can_shrink: bool, can_grow: bool) -> int:
    """The first possible action of least value, in the order same, fewer, more."""
    best = _SAME
    if can_shrink and q[state, _FEWER] < q[state, best]:
        best = _FEWER
    if can_grow and q[state, _MORE] < q[state, best]:
        best = _MORE
    return best


@compiled
def enforce_monotony(q: Floats, state: int, action: int, as_published: bool) -> None:
    """What is right at this load bounds what can be right at higher or lower load."""
    if as_published:
        _enforce_monotony_by_adding(q, utilisation_of(state, as_published), action)
    elif action == _MORE:
        for higher in range(state, q.shape[0]):
            q[higher, _FEWER] = q[higher, _MORE] + _MARGIN
    elif action == _FEWER:
        for lower in range(state + 1):
            q[lower, _MORE] = q[lower, _FEWER] + _MARGIN


@compiled
def _enforce_monotony_by_adding(q: Floats, utilisation: float, action: int) -> None:
    """The same over the states that adding or subtracting .05 lands on."""
    if action == _MORE:
        while utilisation <= HIGHEST_UTILISATION:
            state = published_state(utilisation)
            q[state, _FEWER] = q[state, _MORE] + _MARGIN
            utilisation += _PUBLISHED_STEP
    elif action == _FEWER:
        while utilisation >= 0:
            state = published_state(utilisation)
            q[state, _MORE] = q[state, _FEWER] + _MARGIN
            utilisation -= _PUBLISHED_STEP


@step_of(HeinzeMemory)
def heinze_step(me: HeinzeMemory, seen: Seen, rng: Generator) -> tuple[int, float]:
    here = seen.deployment
    acknowledge(me.fleet, here)
    replicas = replicas_of(me.fleet.deployments, here)
    can_shrink = replicas > 1
    can_grow = replicas < me.fleet.deployments.max_replicas
    state = state_of(seen.utilisation, me.as_published)
    action = greedy(me.q, state, can_shrink, can_grow)
    if me.last[0] != _NEVER:
        alpha = me.alpha.now[0]
        cost = abs(utilisation_of(state, me.as_published) - me.target)
        then, did = me.last[0], me.last[1] if here == me.last[2] else _SAME  # refused: nothing was done
        me.q[then, did] = (1.0 - alpha) * me.q[then, did] + alpha * (cost + me.gamma * me.q[state, action])
        advance(me.alpha)
        enforce_monotony(me.q, then, action, me.as_published)
    elif me.as_published:
        advance(me.alpha)
    gain = me.q[state, _SAME] - me.q[state, action]
    target = resize(me.fleet, here, replicas + action - _SAME, me.node_type)
    me.last[0] = state
    me.last[1] = action
    me.last[2] = target
    return target, min(max(gain, 0.0), 1.0)
