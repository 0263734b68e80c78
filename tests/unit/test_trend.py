"""A rise of the load, told from chance."""

import numpy as np
import pytest

from penstock.perf.trend import rise


def test_a_steady_rise_has_its_slope() -> None:
    readings = [(5.0 * i, 100.0 + 20.0 * i) for i in range(4)]
    assert rise(readings) == pytest.approx(4.0)


def test_the_beginning_of_a_rise_counts_in_full() -> None:
    """A line through all four would say 4.1 tuples/s per second."""
    assert rise([(0.0, 30.0), (5.0, 30.0), (10.0, 45.0), (15.0, 90.0)]) == pytest.approx(9.0)


def test_a_jump_is_no_rise() -> None:
    assert rise([(0.0, 30.0), (5.0, 30.0), (10.0, 30.0), (15.0, 150.0)]) == 0.0
    assert rise([(0.0, 30.0), (5.0, 30.0), (10.0, 150.0), (15.0, 150.0)]) == 0.0


@pytest.mark.parametrize(
    "readings", [[], [(0.0, 10.0)], [(0.0, 100.0), (5.0, 90.0)], [(5.0, 1.0), (5.0, 9.0)]]
)
def test_no_rise_is_none(readings: list[tuple[float, float]]) -> None:
    assert rise(readings) == 0.0


def test_arrivals_that_vary_by_chance_alone_hardly_ever_rise() -> None:
    chance = np.random.default_rng(2)
    rates = chance.poisson(40 * 5.0, 4000) / 5.0
    found = sum(rise([(5.0 * i, rates[at + i]) for i in range(4)]) > 0 for at in range(3990))
    assert found < 3990 * 0.02
