"""Planning where every change costs the same, against value iteration over all pairs of deployments."""

import numpy as np
import pytest

from penstock.policy.rl.stay_or_move import find_possible, iterate, room_for

LEVELS, ROWS, GAMMA = 6, 5, 0.95


def over_all_pairs(
    holding: np.ndarray, violating: np.ndarray, probability: np.ndarray, change: float
) -> np.ndarray:
    """Plain value iteration, every deployment to every other."""
    values = np.zeros((ROWS, LEVELS))
    for _ in range(2000):
        to = holding[None, :, None] + change * (1 - np.eye(ROWS))[:, :, None] + values[None]
        values = (violating + GAMMA * to.min(axis=1)) @ probability.T
    return values


@pytest.mark.parametrize("seed", range(20))
def test_the_plan_is_that_of_value_iteration_over_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    probability = rng.dirichlet(np.full(LEVELS, 0.3), LEVELS)
    probability[probability < 1e-3] = 0.0
    probability /= probability.sum(axis=1, keepdims=True)
    holding, violating = np.sort(rng.random(ROWS)), np.sort(rng.random((ROWS, LEVELS)) * 3)
    change = float(rng.random())
    room = room_for(LEVELS)
    room.probability[:] = probability
    find_possible(room)
    values = np.zeros((ROWS, LEVELS))
    rows = np.arange(ROWS)
    iterate(values, rows, ROWS, holding, violating, change, GAMMA, 1e-12, 5000, room)
    expected = over_all_pairs(holding, violating, probability, change)
    assert values == pytest.approx(expected, abs=1e-8)


def test_what_is_not_asked_about_is_left_alone() -> None:
    room = room_for(LEVELS)
    room.probability[:] = np.eye(LEVELS)
    find_possible(room)
    values = np.full((ROWS, LEVELS), 7.0)
    rows = np.array([3, 1, 0, 0, 0])
    iterate(values, rows, 2, np.ones(ROWS), np.zeros((ROWS, LEVELS)), 1.0, GAMMA, 1e-9, 500, room)
    assert (values[[0, 2, 4]] == 7.0).all()
    assert (values[[1, 3]] != 7.0).any()
