"""Deep Q-learning: a fit against scikit-learn step by step, and what the tabular learner does too."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from deep_cases import assert_same_weights, fitted, predicted, twin
from policy_cases import LATE, at, node_types, observation, play, problem_of, seen, space_of

from penstock.compiled import Floats
from penstock.domain.errors import InputError
from penstock.perf.deployments import NOTHING, NOWHERE, Deployments, actions_of, adding, after
from penstock.policy.kernel import step
from penstock.policy.operator.deep_q import DeepQ, DeepQLearner, fit
from penstock.policy.operator.q_learning import Exploration
from penstock.policy.rl.deep_learning import Approximator, DeepSettings, begin
from penstock.policy.rl.encoding import encode
from penstock.policy.rl.experience import remember
from penstock.policy.rl.replay import ACTION, FOLLOWING, LEVEL, store

GAMMA = 0.9
LEVELS = 3
TWO_TYPES = node_types((1.0, 0.5))
SPACE = space_of(TWO_TYPES, 3)


def deep_q(
    space: Deployments = SPACE,
    *,
    masked: bool = True,
    settings: DeepSettings | None = None,
    epsilon: float = 0.0,
) -> DeepQ:
    types = node_types(tuple(float(s) for s in space.speedup), tuple(float(p) for p in space.price))
    return DeepQ(
        node_types=types,
        deployments=space,
        problem=problem_of(space, levels=LEVELS),
        gamma=GAMMA,
        masked=masked,
        exploration=Exploration(epsilon_start=epsilon, epsilon_floor=0.0),
        deep=settings or DeepSettings(batch=16, capacity=50),
    )


def inputs_of(me: Approximator, deployments: list[int], levels: list[int]) -> Floats:
    """Whole input vectors, one row per state."""
    rows = np.zeros((len(deployments), me.encoding.inputs))
    cells, amounts = np.zeros(me.encoding.at_once, dtype=np.int64), np.zeros(me.encoding.at_once)
    for row, deployment, level in zip(rows, deployments, levels, strict=True):
        used = encode(me.encoding, me.problem, deployment, level, cells, amounts)
        row[cells[:used]] = amounts[:used]
    return rows


def experienced(policy: DeepQ, seed: int = 3, experiences: int = 40) -> DeepQLearner:
    """With first weights and random experiences, many of them in equal states."""
    memory, rng = policy.initial(), np.random.default_rng(seed)
    begin(memory.q, rng)
    memory.q.target[:] = memory.q.net.weights[: memory.q.target.size] * 1.3
    space = policy.deployments
    while memory.q.replay.stored[0] < experiences:
        here, action = int(rng.integers(space.replicas.size)), int(rng.integers(actions_of(space)))
        if after(space, here, action) != NOWHERE:
            level, following = (int(level) for level in rng.integers(LEVELS, size=2))
            store(memory.q.replay, here, level, action, following, float(rng.random()))
    return memory


def goals_by_scikit_learn(policy: DeepQ, memory: DeepQLearner, before: Floats) -> tuple[Floats, Floats]:
    """Inputs and labels of the batch that was drawn: Alg. 2, line 8, and the other outputs as they are."""
    q, kept, space = memory.q, memory.q.replay, policy.deployments
    places = [int(place) for place in kept.batch]
    then = [int(kept.deployment[place]) for place in places]
    actions = [int(kept.transition[place, ACTION]) for place in places]
    reached = [after(space, here, action) for here, action in zip(then, actions, strict=True)]
    following = [int(kept.transition[place, FOLLOWING]) for place in places]
    online = twin(q.net, before)
    ahead = twin(q.net, q.target) if policy.deep.sync_every else online
    next_states = inputs_of(q, reached, following)
    inputs = inputs_of(q, then, [int(kept.transition[place, LEVEL]) for place in places])
    picking = predicted(online if policy.deep.double else ahead, next_states)
    worth = predicted(ahead, next_states)
    labels = predicted(online, inputs)
    for index, place in enumerate(places):
        options = [
            action
            for action in range(actions_of(space))
            if not policy.masked or after(space, reached[index], action) != NOWHERE
        ]
        pick = min(options, key=lambda action: picking[index, action])
        goal = kept.cost[place] + GAMMA * worth[index, pick]
        error = labels[index, actions[index]] - goal
        scale = 1.0 if policy.deep.loss == "half-squares" else 2.0 / actions_of(space)
        labels[index, actions[index]] -= scale * error
    return inputs, labels


@pytest.mark.parametrize(
    ("masked", "changes"),
    [
        (True, {}),
        (False, {}),
        (False, {"loss": "mean-squares", "colliding": True}),
        (True, {"sync_every": 100}),
        (True, {"sync_every": 100, "double": True}),
        (True, {"hidden": 1, "encoding": "large"}),
        (True, {"hidden": 2, "encoding": "minimal", "optimiser": "adam", "alpha": 0.01}),
    ],
)
def test_a_fit_is_one_step_of_scikit_learn_towards_the_targets_of_algorithm_2(
    masked: bool, changes: dict[str, Any]
) -> None:
    policy = deep_q(masked=masked, settings=replace(DeepSettings(batch=16, capacity=50), **changes))
    memory = experienced(policy)
    before = memory.q.net.weights.copy()
    fit(memory, np.random.default_rng(4))
    assert len({int(memory.q.keys[index]) for index in range(16)}) < 16, "some states are meant to be equal"
    inputs, labels = goals_by_scikit_learn(policy, memory, before)
    solver: Literal["sgd", "adam"] = "adam" if policy.deep.optimiser == "adam" else "sgd"
    regressor = twin(memory.q.net, before, step_size=policy.deep.alpha, solver=solver)
    assert np.abs(memory.q.net.weights - before).max() > 1e-4
    assert_same_weights(memory.q.net, fitted(regressor, inputs, labels))


def test_experiences_are_what_was_done_what_it_cost_and_what_followed() -> None:
    memory = deep_q().initial()
    add = adding(SPACE, 0)
    remember(memory.last, at(SPACE, 1, 0), 1, add, at(SPACE, 2, 0))
    step(memory, seen(at(SPACE, 2, 0), 250.0, response_time_s=LATE), np.random.default_rng(1))
    kept = memory.q.replay
    assert kept.stored[0] == 1
    assert (kept.deployment[0], *kept.transition[0]) == (at(SPACE, 1, 0), 1, add, 2)
    assert kept.cost[0] == pytest.approx(0.6 + 0.2 * 2 / 3 + 0.2)


def test_a_refused_request_is_doing_nothing_and_someone_elses_change_is_no_experience() -> None:
    memory = deep_q().initial()
    remember(memory.last, at(SPACE, 1, 0), 1, adding(SPACE, 0), at(SPACE, 2, 0))
    step(memory, seen(at(SPACE, 1, 0)), np.random.default_rng(1))
    assert memory.q.replay.transition[0, ACTION] == NOTHING
    assert memory.q.replay.cost[0] == pytest.approx(0.2 / 3)
    remember(memory.last, at(SPACE, 1, 0), 1, NOTHING, at(SPACE, 1, 0))
    step(memory, seen(at(SPACE, 0, 3)), np.random.default_rng(1))
    assert memory.q.replay.stored[0] == 1


def test_it_fits_after_every_fifth_experience_once_a_batch_is_there() -> None:
    memory, rng, here = (
        deep_q(settings=DeepSettings(batch=12, capacity=50)).initial(),
        np.random.default_rng(1),
        0,
    )
    updates = []
    for _ in range(31):
        here, _ = step(memory, seen(here), rng)
        updates.append(int(memory.q.net.updates[0]))
    # The first decision has no experience yet, so slot n (from 0) stores the n-th.
    fits = [slot for slot in range(1, 31) if updates[slot] > updates[slot - 1]]
    assert fits == [15, 20, 25, 30]


def test_a_target_network_follows_after_every_so_many_fits() -> None:
    settings = DeepSettings(batch=1, capacity=50, fit_every=1, sync_every=3)
    memory, rng, here = deep_q(settings=settings).initial(), np.random.default_rng(1), 0
    for slot in range(1, 30):
        here, _ = step(memory, seen(here), rng)
        assert np.array_equal(memory.q.target, memory.q.net.weights) is ((slot - 1) % 3 == 0)


def test_the_choice_is_the_first_possible_action_of_least_value_and_so_is_its_reason() -> None:
    policy = deep_q()
    memory = policy.initial()
    rng = np.random.default_rng(1)
    begin(memory.q, rng)
    for row in range(SPACE.replicas.size):
        memory.last[0] = -1
        for level in range(LEVELS):
            values = predicted(twin(memory.q.net), inputs_of(memory.q, [row], [level]))[0]
            possible = [a for a in range(actions_of(SPACE)) if after(SPACE, row, a) != NOWHERE]
            best = min(possible, key=lambda action: values[action])
            memory.last[0] = -1
            target, _ = step(memory, seen(row, 100.0 * level + 50.0), rng)
            assert target == after(SPACE, row, best)
            assert memory.expected.tolist() == pytest.approx([values[best], values[NOTHING]])
    decision, _ = policy.decide(memory, observation(1, 0), rng)
    assert "expected cost" in decision.reason


def test_it_explores_as_often_as_the_tabular_learner() -> None:
    policy = deep_q(epsilon=1.0)
    memory, rng = policy.initial(), np.random.default_rng(1)
    here = at(SPACE, 2, 0)
    targets = set()
    for _ in range(200):
        memory.epsilon.now[0] = 1.0
        memory.last[0] = -1
        target, _ = step(memory, seen(here), rng)
        targets.add(target)
    assert targets == {after(SPACE, here, a) for a in range(actions_of(SPACE))} - {NOWHERE}
    fresh = deep_q(epsilon=1.0).initial()
    step(fresh, seen(here), rng)
    assert fresh.epsilon.now[0] == pytest.approx(0.95)


RATES = np.abs(np.random.default_rng(5).normal(150, 80, 600))


def test_the_same_seed_gives_the_same_weights_to_the_bit_and_another_seed_others() -> None:
    def weights(seed: int) -> bytes:
        memory = deep_q(epsilon=1.0).initial()
        play(SPACE, memory, RATES, at(SPACE, 1, 0), np.random.default_rng(seed))
        assert memory.q.net.updates[0] > 100
        return memory.q.net.weights.tobytes()

    assert weights(1) == weights(1)
    assert weights(1) != weights(2)


def test_packed_deployments_give_the_trajectory_of_enumerated_ones() -> None:
    trajectories = []
    for packed in (False, True):
        space = space_of(TWO_TYPES, 3, packed=packed)
        memory = deep_q(space, epsilon=1.0).initial()
        trajectories.append(play(space, memory, RATES, at(space, 1, 0), np.random.default_rng(3)))
    assert trajectories[0] == trajectories[1]
    assert len(set(trajectories[0])) == SPACE.replicas.size


def test_what_was_learned_keeps_a_calm_operator_where_it_is_cheapest() -> None:
    """One replica of the first type serves 50 of its 100 t/s in 20 ms, so nothing beats staying there."""
    space = space_of(node_types(), 3)
    memory = deep_q(space, epsilon=1.0, settings=DeepSettings(capacity=1000)).initial()
    chosen = play(space, memory, np.full(4000, 50.0), at(space, 3), np.random.default_rng(4))
    assert chosen[-1000:].count((1,)) > 950


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"optimiser": "sdg"}, "optimiser=sdg: unknown; choose one of sgd, adam"),
        ({"encoding": "huge"}, "encoding=huge"),
        ({"loss": "absolute"}, "loss=absolute"),
        ({"batch": 64, "capacity": 32}, "batch=64: more than capacity=32"),
        ({"double": True}, "set sync_every"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(DeepSettings(), **changes)
