"""Q-learning on tile-coded features: one semi-gradient step by hand."""

import numpy as np
import pytest
from policy_cases import LATE, at, node_types, problem_of, seen, space_of

from penstock.perf.deployments import NOTHING, adding, removing
from penstock.policy.kernel import step
from penstock.policy.operator.linear_q import LinearQ, LinearQLearner
from penstock.policy.rl.experience import remember
from penstock.policy.rl.tile_coding import active, estimate, nudge

TYPES = node_types()
SPACE = space_of(TYPES, 3)
ADD, REMOVE = adding(SPACE, 0), removing(SPACE, 0)
GAMMA, ALPHA = 0.5, 0.1
LEVELS = 30  # far enough apart for two states to share no tile


def greedy_learner() -> LinearQLearner:
    memory = LinearQ(
        node_types=TYPES,
        deployments=SPACE,
        problem=problem_of(SPACE, levels=LEVELS, max_rate=3000.0),
        gamma=GAMMA,
        alpha=ALPHA,
    ).initial()
    memory.epsilon.now[0] = -1.0
    return memory


def test_every_active_weight_moves_by_alpha_times_the_error() -> None:
    memory = greedy_learner()
    me = memory.tiles
    then, now = 0, 29
    # What the state after adding was thought to be worth, and what the best action is worth now.
    nudge(me, NOTHING, at(SPACE, 2), then, 0.1)
    nudge(me, NOTHING, at(SPACE, 2), now, 0.5)
    nudge(me, NOTHING, at(SPACE, 1), now, 0.4)
    me.biases[:] = [0.05, 0.02]
    thought = 3 * 0.1 + 0.05  # two grids, one stripe, and the bias of adding
    options = [estimate(me, NOTHING, at(SPACE, 2), now), estimate(me, REMOVE, at(SPACE, 1), now)]
    best = min(*options, estimate(me, ADD, at(SPACE, 3), now))
    remember(memory.last, at(SPACE, 1), then, ADD, at(SPACE, 2))
    x, y, shifted_y, z, stripe = active(me, at(SPACE, 2), then)
    step(memory, seen(at(SPACE, 2), 2950.0, response_time_s=LATE), np.random.default_rng(1))
    cost = 0.6 + 0.2 * 2 / 3 + 0.2
    moved = ALPHA * (cost + GAMMA * best - thought)
    assert me.grid[x, y, z] == pytest.approx(0.1 + moved)
    assert me.shifted_grid[x, shifted_y, z] == pytest.approx(0.1 + moved)
    assert me.stripes[stripe] == pytest.approx(0.1 + moved)
    assert me.biases.tolist() == pytest.approx([0.05 + moved, 0.02])


def test_the_choice_is_the_first_of_least_value() -> None:
    memory = greedy_learner()
    target, _ = step(memory, seen(at(SPACE, 2)), np.random.default_rng(1))
    assert target == at(SPACE, 2)
    nudge(memory.tiles, NOTHING, at(SPACE, 2), 1, 1.0)
    memory.last[0] = -1
    target, _ = step(memory, seen(at(SPACE, 2), rate=150.0), np.random.default_rng(1))
    assert target == at(SPACE, 1)  # removing comes before adding


def test_a_refused_request_moves_the_weights_of_staying() -> None:
    memory = greedy_learner()
    remember(memory.last, at(SPACE, 1), 0, ADD, at(SPACE, 2))
    step(memory, seen(at(SPACE, 1), response_time_s=LATE), np.random.default_rng(1))
    assert memory.tiles.biases.tolist() == [0.0, 0.0]
    assert estimate(memory.tiles, NOTHING, at(SPACE, 1), 0) == pytest.approx(3 * ALPHA * (0.6 + 0.2 / 3))


def test_nothing_is_learned_from_a_change_made_by_someone_else() -> None:
    memory = greedy_learner()
    remember(memory.last, at(SPACE, 1), 0, ADD, at(SPACE, 2))
    step(memory, seen(at(SPACE, 3), response_time_s=LATE), np.random.default_rng(1))
    assert not any(
        part.any() for part in (memory.tiles.grid, memory.tiles.shifted_grid, memory.tiles.stripes)
    )


def test_the_score_is_the_gain_of_the_action_taken_even_when_exploring() -> None:
    # Cardellini 2018, sec. 5.2: score(a) = [Q(s, 0) - Q(s, a)] / max{1, ...}; here removing gains, adding
    # loses.
    memory = greedy_learner()
    me = memory.tiles
    nudge(me, NOTHING, at(SPACE, 1), 0, -0.2)
    nudge(me, NOTHING, at(SPACE, 3), 0, +0.2)
    stay, remove, add = (
        estimate(me, action, at(SPACE, replicas), 0)
        for action, replicas in ((NOTHING, 2), (REMOVE, 1), (ADD, 3))
    )
    assert remove < stay < add
    scores = {}
    rng = np.random.default_rng(1)
    for _ in range(30):
        memory.last[0] = -1
        memory.epsilon.now[0] = 1.0
        target, score = step(memory, seen(at(SPACE, 2)), rng)
        scores[target] = score
    assert scores == pytest.approx({at(SPACE, 1): stay - remove, at(SPACE, 2): 0.0, at(SPACE, 3): 0.0})
