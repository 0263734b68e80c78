"""Model-based learning with full backups: Cardellini 2018, sec. 5.2.2, eq. (3)-(5) and Alg. 2."""

from itertools import pairwise, product
from math import floor

import numpy as np
import pytest
from policy_cases import (
    IN_TIME,
    LATE,
    SLO_S,
    at,
    mm1_time,
    node_types,
    play,
    problem_of,
    seen,
    space_of,
)

from penstock.compiled import Floats
from penstock.domain.errors import InputError
from penstock.perf.queueing import m_m_1
from penstock.policy.kernel import step
from penstock.policy.operator.model_based import ModelBased
from penstock.policy.operator.q_learning import LearningRates
from penstock.policy.operator.value_iteration import ValueIteration
from penstock.policy.rl import backup

LEVELS = 3
GAMMA = 0.9
HALVING = LearningRates(alpha_factor=0.5, alpha_every=1, alpha_floor=0.0)  # alpha is 1, 1/2, 1/4, ...
ALL_OF_TWO_TYPES = ((1, 0), (2, 0), (0, 1), (1, 1), (0, 2))
RNG = np.random.default_rng(1)  # never drawn from: the policy is greedy


def model_based(
    speedups: tuple[float, ...] = (1.0,),
    most: int = 3,
    *,
    as_published: bool = False,
    levels: int = LEVELS,
    rates: LearningRates = HALVING,
) -> ModelBased:
    types = node_types(speedups)
    space = space_of(types, most)
    return ModelBased(
        node_types=types,
        deployments=space,
        problem=problem_of(space, levels=levels, max_rate=100.0 * levels),
        gamma=GAMMA,
        rates=rates,
        published_updates=as_published,
    )


def test_transition_probabilities_are_counts_on_top_of_one_stay_each() -> None:
    policy = model_based()
    memory = policy.initial()
    levels = np.random.default_rng(9).integers(0, LEVELS, 200)
    for level in levels:
        step(memory, seen(at(policy.deployments, 2), 100.0 * level + 50), RNG)
    counts = np.eye(LEVELS)
    for then, now in pairwise(levels.tolist()):
        counts[then, now] += 1
    assert memory.moves.tolist() == counts.tolist()
    np.testing.assert_allclose(memory.arriving.T, counts / counts.sum(axis=1, keepdims=True))


def test_the_violation_cost_of_a_state_is_blended_by_equation_5() -> None:
    policy = model_based(most=1, levels=1)
    memory = policy.initial()
    learned = []
    for response_time_s in (LATE, LATE, LATE, IN_TIME):
        step(memory, seen(0, response_time_s=response_time_s), RNG)
        learned.append(float(memory.unknown[0, 0]))
    # The first interval follows no decision; then alpha is 1, 1/2, 1/4.
    assert learned == pytest.approx([0.0, 0.6, 0.6, 0.75 * 0.6])


def observed(policy: ModelBased, *slots: tuple[tuple[int, ...], int, float]) -> Floats:
    """Learned violation costs after these (deployment, level, response time)."""
    memory = policy.initial()
    for counts, level, response_time_s in slots:
        here = at(policy.deployments, *counts)
        memory.last[:] = [here, level, 0, here]  # as if it had decided to stay
        step(memory, seen(here, 100.0 * level + 50, response_time_s=response_time_s), RNG)
    return memory.unknown


def test_a_violation_is_expected_with_fewer_replicas_and_at_higher_load_too() -> None:
    costs = observed(model_based(), ((2,), 1, LATE))
    assert costs.tolist() == [[0.0, 0.6, 0.6], [0.0, 0.6, 0.6], [0.0, 0.0, 0.0]]


def test_a_violation_that_did_not_come_is_not_expected_with_more_replicas_or_less_load() -> None:
    costs = observed(model_based(), ((3,), 0, LATE), ((2,), 1, IN_TIME))  # alpha 1, then 1/2
    assert costs.tolist() == [[0.6, 0.6, 0.6], [0.3, 0.3, 0.6], [0.3, 0.3, 0.6]]


def test_more_replicas_are_no_better_when_the_slowest_is_slower() -> None:
    policy = model_based((1.0, 0.5), 2)
    costs = observed(policy, ((1, 0), 1, LATE))
    late = {counts: bool(costs[at(policy.deployments, *counts), 1]) for counts in ((0, 1), (1, 1), (2, 0))}
    assert late == {(0, 1): True, (1, 1): False, (2, 0): False}
    costs = observed(policy, ((1, 1), 1, LATE))
    # (0, 2) is as many and as slow; (2, 0) is faster; (1, 0) has a faster slowest, but one replica fewer.
    late = {
        counts: bool(costs[at(policy.deployments, *counts), 1]) for counts in ((0, 2), (2, 0), (1, 0), (0, 1))
    }
    assert late == {(0, 2): True, (2, 0): False, (1, 0): False, (0, 1): True}


def test_a_slower_node_among_more_replicas_is_not_cleared_by_a_fast_one_that_did_well() -> None:
    policy = model_based((1.0, 0.5), 2)
    costs = observed(policy, ((2, 0), 1, LATE), ((1, 0), 1, IN_TIME))  # alpha 1, then 1/2
    learned = {counts: float(costs[at(policy.deployments, *counts), 1]) for counts in ALL_OF_TWO_TYPES}
    assert learned == {(1, 0): 0.3, (2, 0): 0.3, (0, 1): 0.6, (1, 1): 0.6, (0, 2): 0.6}


def test_as_published_a_violation_bounds_other_levels_of_its_own_deployment_only() -> None:
    costs = observed(model_based(as_published=True), ((2,), 1, LATE))
    assert costs.tolist() == [[0.0, 0.0, 0.0], [0.0, 0.6, 0.6], [0.0, 0.0, 0.0]]


def test_as_published_what_did_not_happen_bounds_lower_levels_of_its_own_deployment_only() -> None:
    costs = observed(model_based(as_published=True), ((2,), 0, LATE), ((2,), 1, IN_TIME))  # alpha 1, then 1/2
    assert costs.tolist() == [[0.0, 0.0, 0.0], [0.3, 0.3, 0.6], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("response_time_s", "known", "then"),
    [
        (LATE, 0.0, 2),  # more than was known: up to the highest level
        (IN_TIME, 0.6, 0),  # less: down to the lowest
        (IN_TIME, 0.0, 1),  # as was known
    ],
)
def test_as_published_spreading_a_changed_cost_loses_the_level(
    response_time_s: float, known: float, then: int
) -> None:
    policy = model_based(as_published=True)
    memory = policy.initial()
    memory.unknown[:] = known
    here = at(policy.deployments, 2)
    memory.last[:] = [here, 1, 0, here]
    # Whatever the level, the action taken is the best of the one it goes on with.
    q = memory.values.v.values
    memory.clock[:] = [1000, 1000]  # no sweep now
    q[here * LEVELS + then, 1:] = [-1.0, 0.0]
    target, _ = step(memory, seen(here, 150.0, response_time_s=response_time_s), RNG)
    assert memory.last[1] == then
    assert target == at(policy.deployments, 1)
    assert memory.moves[1, 1] == 2.0  # what it counts is the level that was
    step(memory, seen(target, 150.0), RNG)
    assert memory.moves[then, 1] == (3.0 if then == 1 else 1.0)  # next time it counts from the other


def test_as_published_values_of_actions_are_backed_up_in_the_order_of_states() -> None:
    """One level that stays, one or two replicas: Q(k, a) = known + c_u(k') + gamma min Q(k')."""
    policy = model_based(most=2, levels=1, as_published=True)
    memory = policy.initial()
    memory.last[:] = [0, 0, 0, 0]  # as if it had decided to stay
    target, _ = step(memory, seen(0, response_time_s=LATE), RNG)
    stay, remove, add = range(3)
    q = memory.values.v.values
    # With one replica first, all values being 0.
    assert q[0, [stay, add]].tolist() == pytest.approx([0.1 + 0.6, 0.2 + 0.2])
    # Then with two: removing leads to what has just been found for one.
    assert q[1, [stay, remove]].tolist() == pytest.approx([0.2, 0.2 + 0.1 + 0.6 + GAMMA * 0.4])
    assert target == at(policy.deployments, 2)


class Published:
    """The published model-based policy as the notes describe it, in plain Python, one node type."""

    def __init__(self, *, most: int, levels: int, quantum: float) -> None:
        self.most, self.levels, self.quantum = most, levels, quantum
        states = list(product(range(1, most + 1), range(levels)))
        self.q = {(state, change): 0.0 for state in states for change in self.changes(state[0])}
        self.cost = dict.fromkeys(states, 0.0)
        self.counts = [[float(a == b) for b in range(levels)] for a in range(levels)]
        self.alpha, self.learned, self.steps, self.wait, self.interval = 1.0, 0, 0, 0, 1.0
        self.last: tuple[int, int] | None = None

    def changes(self, replicas: int) -> list[int]:
        return [0, *([-1] if replicas > 1 else []), *([1] if replicas < self.most else [])]

    def least(self, state: tuple[int, int]) -> float:
        return min(self.q[state, change] for change in self.changes(state[0]))

    def decide(self, replicas: int, rate: float, late: bool) -> int:
        level = min(floor(rate / self.quantum), self.levels - 1)
        if self.last is not None:
            self.counts[self.last[1]][level] += 1
            level = self.learn(replicas, level, 0.6 if late else 0.0)
            if self.due():
                self.sweep()
        change = min(self.changes(replicas), key=lambda one: self.q[(replicas, level), one])
        self.last = (replicas, level)
        return replicas + change

    def learn(self, replicas: int, level: int, cost: float) -> int:
        before = self.cost[replicas, level]
        now = self.cost[replicas, level] = (1.0 - self.alpha) * before + self.alpha * cost
        self.learned += 1
        if self.learned % 10 == 0:
            self.alpha = max(self.alpha * 0.98, 0.1)
        spread = range(0)
        if now != before:
            spread = range(level + 1, self.levels) if now > before else range(level - 1, -1, -1)
        for other in spread:
            bound = max if now > before else min
            self.cost[replicas, other] = bound(self.cost[replicas, other], now)
            level = other  # the slip: the loop changes the current state
        return level

    def due(self) -> bool:
        self.steps += 1
        if self.steps <= 25:
            return True
        self.wait -= 1
        if self.wait > 0:
            return False
        self.interval = min(1.02 * self.interval, 50_000.0)
        self.wait = int(self.interval)
        return True

    def sweep(self) -> None:
        for (replicas, level), change in self.q:
            then = replicas + change
            value = 0.2 * then / self.most + (0.2 if change else 0.0)
            row = self.counts[level]
            for following in range(self.levels):
                value += (
                    row[following]
                    / sum(row)
                    * (self.cost[then, following] + GAMMA * self.least((then, following)))
                )
            self.q[(replicas, level), change] = value


def test_as_published_it_decides_as_the_description_of_the_published_code(walk: Floats) -> None:
    rates = LearningRates()
    policy = model_based(most=5, levels=8, as_published=True, rates=rates)
    plain = Published(most=5, levels=8, quantum=100.0)
    memory, here, replicas, slips = policy.initial(), at(policy.deployments, 1), 1, 0
    for rate in walk:
        response_time_s = mm1_time(policy.deployments, (replicas,), float(rate), 1 / 180)
        here, _ = step(memory, seen(here, float(rate), response_time_s=response_time_s), RNG)
        replicas = plain.decide(replicas, float(rate), response_time_s > SLO_S)
        assert here == at(policy.deployments, replicas)
        assert plain.last is not None
        slips += plain.last[1] != min(int(rate // 100), 7)
    assert slips > 10


def test_one_observation_is_backed_up_at_once() -> None:
    """Alg. 2 by hand: one level that stays, one or two replicas, so V(k) = c_u(k) + gamma min Q."""
    policy = model_based(most=2, levels=1)
    memory = policy.initial()
    for _ in range(2):
        target, _ = step(memory, seen(0, response_time_s=LATE), RNG)
    # In place: V(1) first, with V(2) still 0 and V(1) itself 0; then V(2) with the new V(1).
    first = 0.6 + GAMMA * min(0.1, 0.2 + 0.2)
    second = 0.0 + GAMMA * min(0.2, 0.2 + 0.1 + first)
    assert memory.values.v.values[:, 0].tolist() == pytest.approx([first, second])
    # Staying is worth 0.1 + 0.69, adding 0.2 + 0.2 + 0.18.
    assert target == at(policy.deployments, 2)


def test_on_rates_of_a_markov_chain_it_comes_to_decide_as_value_iteration_does() -> None:
    chain = np.array([[0.9, 0.1, 0.0], [0.05, 0.9, 0.05], [0.0, 0.2, 0.8]])
    rng, level, levels = np.random.default_rng(6), 0, []
    for _ in range(4500):
        levels.append(level)
        level = int(rng.choice(LEVELS, p=chain[level]))
    rates = 100.0 * np.array(levels) + 50
    learning, fresh = rates[:4000], rates[4000:]
    policy = model_based(most=4, rates=LearningRates())
    space = policy.deployments
    planner = ValueIteration(
        node_types=policy.node_types,
        deployments=space,
        problem=policy.problem,
        queue=m_m_1(0.01),
        training=learning,
        gamma=GAMMA,
    )
    memory = policy.initial()
    play(space, memory, learning, at(space, 1), RNG)
    learned = play(space, memory, fresh, at(space, 2), RNG)
    planned = play(space, planner.initial(), fresh, at(space, 2), RNG)
    assert learned == planned
    assert len(set(planned)) > 1


def test_too_many_deployments_to_list_are_refused_by_name() -> None:
    types = node_types((1.0, 2.0))
    space = space_of(types, 3, packed=True)
    with pytest.raises(
        InputError, match=r"policy 'model-based': 2 node types, 3 replicas and 3 levels have too many states"
    ):
        ModelBased(node_types=types, deployments=space, problem=problem_of(space))


def test_as_published_a_value_for_every_action_takes_room_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "LARGEST_DENSE_BYTES", 8 * 3 * LEVELS)  # a value for each of nine states
    model_based()
    with pytest.raises(InputError, match="too many states to plan over"):
        model_based(as_published=True)
