"""The programme over a horizon against the paper's tree, explored without and with its rule."""

from itertools import product

import numpy as np
import pytest

from penstock.compiled import Floats
from penstock.domain.errors import InputError
from penstock.planning.evolution_tree import explore
from penstock.planning.horizon import best_move

PAPERS = (12, 9)  # replicas and frequencies


def by_hand(costs: Floats, shape: tuple[int, ...], here: int, switching: float) -> tuple[int, float]:
    """Every sequence, in plain Python."""
    points = list(product(*(range(size) for size in shape)))
    best = (here, np.inf)
    for sequence in product(range(len(points)), repeat=len(costs)):
        total, before = 0.0, here
        for step, place in enumerate(sequence):
            apart = sum((a - b) ** 2 for a, b in zip(points[before], points[place], strict=True))
            total, before = total + costs[step, place] + switching * apart, place
        if total < best[1]:
            best = (sequence[0], total)
    return best


@pytest.mark.parametrize("seed", range(30))
def test_the_tree_and_the_programme_find_what_trying_all_by_hand_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = ((3, 2), (5,), (2, 2, 2))[seed % 3]
    costs = rng.uniform(0, 5, (int(rng.integers(1, 4)), int(np.prod(shape))))
    here, switching = int(rng.integers(costs.shape[1])), float(rng.choice([0.0, 0.4, 3.0]))
    place, value = by_hand(costs, shape, here, switching)
    tree = explore(costs, shape, here, switching, prune=False)
    assert tree.place == place
    assert tree.value == pytest.approx(value)
    assert tree.states == sum(costs.shape[1] ** depth for depth in range(1, len(costs) + 1))
    move = best_move(costs, shape, here, switching)
    assert move.place == place
    assert move.value == pytest.approx(value)


def test_first_move_and_value_are_those_of_an_exhaustive_search_a_thousand_times() -> None:
    rng = np.random.default_rng(1)
    for number in range(1000):
        steps = 1 + number % 3
        costs = rng.uniform(0, 10, (steps, 108))
        costs[rng.random(costs.shape) < 0.1] = np.inf  # overloaded
        here, switching = int(rng.integers(108)), float(rng.uniform(0, 2))
        tree = explore(costs, PAPERS, here, switching, prune=False)
        move = best_move(costs, PAPERS, here, switching)
        assert move.place == tree.place
        assert move.value == pytest.approx(tree.value, rel=1e-12)
        pruned = explore(costs, PAPERS, here, switching, prune=True)
        assert (pruned.place, pruned.value) == (tree.place, tree.value)
        assert pruned.states <= tree.states


def test_of_equals_it_stays() -> None:
    assert best_move(np.zeros((3, 108)), PAPERS, 40, 0.4) == (40, 0.0)
    assert best_move(np.zeros((3, 108)), PAPERS, 40, 0.0) == (40, 0.0)


def test_where_nothing_is_possible_it_stays_and_says_so() -> None:
    assert best_move(np.full((2, 108), np.inf), PAPERS, 7, 0.4) == (7, np.inf)


@pytest.mark.parametrize(
    ("costs", "here", "switching", "said"),
    [
        (np.zeros((0, 108)), 0, 0.4, "at least one step"),
        (np.zeros((2, 107)), 0, 0.4, "107 costs for a grid of 108"),
        (np.zeros((2, 108)), 108, 0.4, "not one of 108"),
        (np.full((2, 108), np.nan), 0, 0.4, "not a number"),
        (np.zeros((2, 108)), 0, -1.0, "not negative"),
        (np.zeros((2, 108)), 0, np.inf, "finite"),
    ],
)
def test_what_is_wrong_is_said(costs: Floats, here: int, switching: float, said: str) -> None:
    with pytest.raises(InputError, match=said):
        best_move(costs, PAPERS, here, switching)
