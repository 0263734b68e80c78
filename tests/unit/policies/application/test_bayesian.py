"""Constrained Bayesian optimisation: its formulas against integrals, its search against random search."""

from dataclasses import dataclass
from math import cos, pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator
from scipy.integrate import quad

from penstock.compiled import Flags, Floats
from penstock.domain.errors import InputError
from penstock.policy.application.bayesian import (
    BayesianSearch,
    Measured,
    Search,
    Trial,
    below,
    best_of,
    expected_improvement,
    predicted,
    random_search,
)


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def sample(self, count: int, rng: Generator) -> Floats:
        return rng.uniform(self.low, self.high, (count, len(self.low)))

    def contains(self, points: Floats) -> Flags:
        inside: Flags = np.all((points >= np.array(self.low)) & (points <= np.array(self.high)), axis=1)
        return inside

    def features(self, points: Floats) -> Floats:
        return points


BRANIN_DOMAIN = Box((-5.0, 0.0), (10.0, 15.0))


def branin(point: Floats) -> Measured:
    """Branin's function over a disc: the best of its three minima (.397887 each) inside is (pi, 2.275)."""
    x, y = float(point[0]), float(point[1])
    value = (y - 5.1 / (4 * pi**2) * x**2 + 5 / pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * pi)) * cos(x) + 10
    return Measured(cost=value, excess=((x - 2.5) ** 2 + (y - 7.5) ** 2 - 50.0,))


def density(x: float, mean: float, sd: float) -> float:
    return float(np.exp(-(((x - mean) / sd) ** 2) / 2) / (sd * np.sqrt(2 * pi)))


@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(0.05, 4))
@settings(max_examples=50, deadline=None)
def test_expected_improvement_is_the_integral_of_the_improvement(best: float, mean: float, sd: float) -> None:
    low = min(mean - 12 * sd, best)
    integral, _ = quad(lambda x: (best - x) * density(x, mean, sd), low, best, points=[mean], limit=200)
    ours = expected_improvement(best, np.array([mean]), np.array([sd]))
    assert ours[0] == pytest.approx(integral, abs=1e-6)


def test_the_probability_of_staying_below_is_the_integral_of_the_density() -> None:
    for limit, mean, sd in ((0.0, -1.0, 0.5), (0.0, 1.0, 2.0), (1.0, 1.0, 0.1)):
        integral, _ = quad(density, mean - 12 * sd, limit, args=(mean, sd))
        assert below(limit, np.array([mean]), np.array([sd]))[0] == pytest.approx(integral, abs=1e-8)


def test_without_doubt_the_improvement_is_the_difference_or_nothing() -> None:
    ours = expected_improvement(3.0, np.array([1.0, 5.0]), np.zeros(2))
    assert ours.tolist() == pytest.approx([2.0, 0.0])


def test_the_surrogate_knows_what_it_was_told_and_doubts_what_it_was_not() -> None:
    known = np.linspace(-2, 2, 9)[:, None]
    values = [float(np.sin(x)) for x in known[:, 0]]
    mean, sd = predicted(known, values, np.array([[-1.0], [0.25], [6.0]]))
    assert mean[:2] == pytest.approx(np.sin([-1.0, 0.25]), abs=0.05)
    assert sd[2] > 5 * sd[0]


def test_a_feasible_point_is_better_than_any_infeasible_one_and_those_go_by_excess() -> None:
    dear = Measured(cost=100.0, excess=(-0.1, 0.0))
    slightly = Measured(cost=1.0, excess=(0.1, -5.0))
    badly = Measured(cost=0.5, excess=(0.1, 0.2))
    ranked = sorted([badly, dear, slightly], key=lambda measured: measured.rank)
    assert ranked == [dear, slightly, badly]


@pytest.mark.parametrize("search", [random_search, BayesianSearch()], ids=["random", "bayesian"])
def test_a_search_spends_its_budget_inside_the_domain_and_keeps_the_start(search: Search) -> None:
    start = Trial(np.array([0.0, 1.0]), branin(np.array([0.0, 1.0])))
    for budget in (0, 3, 9):
        trials = search(branin, BRANIN_DOMAIN, start, budget, np.random.default_rng(1))
        assert len(trials) == budget + 1
        assert trials[0] is start
        assert BRANIN_DOMAIN.contains(np.array([trial.point for trial in trials])).all()
        assert best_of(trials).measured.rank <= start.measured.rank


@pytest.mark.parametrize("search", [random_search, BayesianSearch()], ids=["random", "bayesian"])
def test_the_same_seed_asks_the_same_points(search: Search) -> None:
    start = Trial(np.array([0.0, 1.0]), branin(np.array([0.0, 1.0])))
    first, second = (search(branin, BRANIN_DOMAIN, start, 10, np.random.default_rng(7)) for _ in range(2))
    assert [t.point.tolist() for t in first] == [t.point.tolist() for t in second]


def test_bayesian_beats_random_search_on_constrained_branin() -> None:
    start = Trial(np.array([0.0, 1.0]), branin(np.array([0.0, 1.0])))

    def found(search: Search, seed: int) -> float:
        best = best_of(search(branin, BRANIN_DOMAIN, start, 25, np.random.default_rng(seed)))
        assert best.measured.feasible
        return best.measured.cost

    bayesian = [found(BayesianSearch(), seed) for seed in range(6)]
    at_random = [found(random_search, seed) for seed in range(6)]
    assert sum(b < r for b, r in zip(bayesian, at_random, strict=True)) >= 5
    assert float(np.median(bayesian)) < 0.397887 + 0.5


def test_from_an_infeasible_start_it_finds_the_small_feasible_part() -> None:
    # One point in 64 of the square is feasible: 25 random draws miss it two times in three.
    def corner(point: Floats) -> Measured:
        return Measured(cost=float(point.sum()), excess=(0.875 - float(point[0]), 0.875 - float(point[1])))

    square = Box((0.0, 0.0), (1.0, 1.0))
    start = Trial(np.zeros(2), corner(np.zeros(2)))
    for seed in range(4):
        trials = BayesianSearch()(corner, square, start, 25, np.random.default_rng(seed))
        assert best_of(trials).measured.feasible


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=20))
def test_the_best_is_feasible_if_any_trial_is_and_then_no_feasible_one_is_cheaper(
    answers: list[tuple[float, float, float]],
) -> None:
    trials = [Trial(np.zeros(1), Measured(cost=c, excess=(v, r))) for c, v, r in answers]
    best = best_of(trials).measured
    feasible = [c for c, v, r in answers if v <= 0 and r <= 0]
    assert best.feasible == bool(feasible)
    if feasible:
        assert best.cost == min(feasible)


def test_a_search_without_initial_points_is_refused() -> None:
    with pytest.raises(InputError, match="initial=0"):
        BayesianSearch(initial=0)
