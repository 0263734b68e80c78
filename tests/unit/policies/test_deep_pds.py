"""Deep Q-learning over post-decision states: eq. (9)-(12) of Russo 2023, a fit against scikit-learn."""

import numpy as np
import pytest
from deep_cases import assert_same_weights, fitted, predicted, twin
from policy_cases import (
    IN_TIME,
    LATE,
    at,
    mm1_time,
    node_types,
    observation,
    play,
    problem_of,
    seen,
    space_of,
)
from test_deep_q import inputs_of

from penstock.compiled import Floats
from penstock.perf.deployments import NOTHING, NOWHERE, Deployments, actions_of, adding, after, replicas_at
from penstock.perf.queueing import m_m_1
from penstock.policy.kernel import step
from penstock.policy.operator.deep_pds import DeepPds, DeepPdsLearner, fit
from penstock.policy.rl.deep_learning import DeepSettings, begin
from penstock.policy.rl.experience import remember
from penstock.policy.rl.post_decision import BelievedModel
from penstock.policy.rl.replay import FOLLOWING, LEVEL, store

GAMMA = 0.9
LEVELS = 3
BELIEVED_S = 0.012
TWO_TYPES = node_types((1.0, 0.5))
SPACE = space_of(TWO_TYPES, 3)


def deep_pds(
    space: Deployments = SPACE, *, plus: bool = False, settings: DeepSettings | None = None
) -> DeepPds:
    types = node_types(tuple(float(s) for s in space.speedup), tuple(float(p) for p in space.price))
    return DeepPds(
        node_types=types,
        deployments=space,
        problem=problem_of(space, levels=LEVELS),
        believed=BelievedModel(deployments=space, queue=m_m_1(BELIEVED_S)) if plus else None,
        gamma=GAMMA,
        deep=settings or DeepSettings(batch=16, capacity=50),
    )


def estimate(policy: DeepPds, deployment: int, level: int) -> float:
    """What the believed model expects at the middle of the level."""
    if policy.believed is None:
        return 0.0
    counts = replicas_at(policy.deployments, deployment).counts
    late = mm1_time(policy.deployments, counts, 100.0 * level + 50.0, BELIEVED_S) > 0.05
    return 0.6 if late else 0.0


def action_values(
    policy: DeepPds, memory: DeepPdsLearner, weights: Floats, here: int, level: int
) -> list[float]:
    """Q(s, a) for every action, eq. (9) and (11), with scikit-learn's V; infinite where impossible."""
    space = policy.deployments
    values = []
    for action in range(actions_of(space)):
        target = after(space, here, action)
        if target == NOWHERE:
            values.append(np.inf)
            continue
        counts = replicas_at(space, target).counts
        price = sum(count * float(p) for count, p in zip(counts, space.price, strict=True))
        known = 0.2 * price / 3.0 + (0.0 if action == NOTHING else 0.2)
        v = predicted(twin(memory.v.net, weights), inputs_of(memory.v, [target], [level]))[0, 0]
        values.append(known + estimate(policy, target, level) + float(v))
    return values


def experienced(policy: DeepPds) -> DeepPdsLearner:
    memory, rng = policy.initial(), np.random.default_rng(3)
    begin(memory.v, rng)
    memory.v.target[:] = memory.v.net.weights[: memory.v.target.size] * 1.3
    for _ in range(40):
        level, following = (int(level) for level in rng.integers(LEVELS, size=2))
        here = int(rng.integers(policy.deployments.replicas.size))
        store(memory.v.replay, here, level, NOTHING, following, float(rng.random()))
    return memory


@pytest.mark.parametrize("plus", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        DeepSettings(batch=16, capacity=50),
        DeepSettings(batch=16, capacity=50, loss="mean-squares", colliding=True),
        DeepSettings(batch=16, capacity=50, sync_every=100),
        DeepSettings(batch=16, capacity=50, sync_every=100, double=True),
    ],
)
def test_a_fit_is_one_step_of_scikit_learn_towards_equations_10_and_12(
    plus: bool, settings: DeepSettings
) -> None:
    policy = deep_pds(plus=plus, settings=settings)
    memory = experienced(policy)
    before = memory.v.net.weights.copy()
    fit(memory, np.random.default_rng(4))
    kept = memory.v.replay
    goals, here, levels = [], [], []
    for place in kept.batch:
        where, following = int(kept.deployment[place]), int(kept.transition[place, FOLLOWING])
        here.append(where)
        levels.append(int(kept.transition[place, LEVEL]))
        ahead = memory.v.target if settings.sync_every else before
        worth = action_values(policy, memory, ahead, where, following)
        picking = action_values(policy, memory, before, where, following) if settings.double else worth
        goals.append(float(kept.cost[place]) + GAMMA * worth[int(np.argmin(picking))])
    assert len(set(zip(here, levels, strict=True))) < 16, "some states are meant to be equal"
    inputs = inputs_of(memory.v, here, levels)
    regressor = twin(memory.v.net, before)
    answers = predicted(regressor, inputs)
    scale = 2.0 if settings.loss == "mean-squares" else 1.0
    labels = answers - scale * (answers - np.array(goals)[:, None])
    assert np.abs(memory.v.net.weights - before).max() > 1e-4
    assert_same_weights(memory.v.net, fitted(regressor, inputs, labels))


@pytest.mark.parametrize("plus", [False, True])
def test_the_choice_is_greedy_by_equations_9_and_11(plus: bool) -> None:
    policy = deep_pds(plus=plus)
    memory, rng = policy.initial(), np.random.default_rng(1)
    begin(memory.v, rng)
    memory.v.net.weights[:] *= 2.0  # first values are too small beside the cost of a change
    chosen = set()
    for row in range(SPACE.replicas.size):
        for level in range(LEVELS):
            memory.last[0] = -1
            target, _ = step(memory, seen(row, 100.0 * level + 50.0), rng)
            values = action_values(policy, memory, memory.v.net.weights, row, level)
            best = int(np.argmin(values))
            assert target == after(SPACE, row, best)
            assert memory.expected.tolist() == pytest.approx([values[best], values[NOTHING]])
            chosen.add(best)
    assert len(chosen) > 1


@pytest.mark.parametrize(
    ("plus", "response_time_s", "learned"),
    [(False, LATE, 0.6), (False, IN_TIME, 0.0), (True, LATE, 0.0), (True, IN_TIME, -0.6)],
)
def test_only_the_unknown_cost_is_stored_less_what_was_expected(
    plus: bool, response_time_s: float, learned: float
) -> None:
    # One replica at 150 t/s is expected to be late: 12 ms a tuple.
    memory = deep_pds(plus=plus).initial()
    remember(memory.last, at(SPACE, 1, 0), 1, NOTHING, at(SPACE, 1, 0))
    step(memory, seen(at(SPACE, 1, 0), 250.0, response_time_s=response_time_s), np.random.default_rng(1))
    kept = memory.v.replay
    assert (kept.deployment[0], kept.transition[0, LEVEL], kept.transition[0, FOLLOWING]) == (
        at(SPACE, 1, 0),
        1,
        2,
    )
    assert kept.cost[0] == pytest.approx(learned)


def test_a_refused_request_is_learned_where_the_operator_stayed_and_a_strangers_change_not_at_all() -> None:
    memory = deep_pds().initial()
    remember(memory.last, at(SPACE, 1, 0), 1, adding(SPACE, 0), at(SPACE, 2, 0))
    step(memory, seen(at(SPACE, 1, 0)), np.random.default_rng(1))
    assert memory.v.replay.deployment[0] == at(SPACE, 1, 0)
    remember(memory.last, at(SPACE, 1, 0), 1, NOTHING, at(SPACE, 1, 0))
    step(memory, seen(at(SPACE, 0, 3)), np.random.default_rng(1))
    assert memory.v.replay.stored[0] == 1


RATES = np.abs(np.random.default_rng(5).normal(150, 80, 600))


def test_the_same_seed_gives_the_same_weights_to_the_bit_and_another_seed_others() -> None:
    def weights(seed: int) -> bytes:
        memory = deep_pds().initial()
        play(SPACE, memory, RATES, at(SPACE, 1, 0), np.random.default_rng(seed))
        assert memory.v.net.updates[0] > 100
        return memory.v.net.weights.tobytes()

    assert weights(1) == weights(1)
    assert weights(1) != weights(2)


@pytest.mark.parametrize("plus", [False, True])
def test_packed_deployments_give_the_trajectory_of_enumerated_ones(plus: bool) -> None:
    trajectories = []
    for packed in (False, True):
        space = space_of(TWO_TYPES, 3, packed=packed)
        memory = deep_pds(space, plus=plus).initial()
        trajectories.append(play(space, memory, RATES, at(space, 1, 0), np.random.default_rng(3)))
    assert trajectories[0] == trajectories[1]


def test_a_decision_says_what_it_expects() -> None:
    policy = deep_pds()
    decision, _ = policy.decide(policy.initial(), observation(1, 0), np.random.default_rng(1))
    assert "expected cost" in decision.reason
