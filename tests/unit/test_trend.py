"""Where a load stands and how fast it rises, told from chance."""

import numpy as np
import pytest

from penstock.perf.trend import Trend, trend


def every(interval_s: float, *rates: float) -> list[tuple[float, float]]:
    return [(interval_s * place, rate) for place, rate in enumerate(rates)]


def test_a_steady_rise_has_its_slope_and_stands_where_it_is_at_the_end_of_the_last_interval() -> None:
    """Rates are means: a load that is 170 at the end of its last interval was 160 in the middle of it."""
    found = trend(every(5.0, 100.0, 120.0, 140.0, 160.0))
    assert found == pytest.approx((170.0, 4.0))


def test_a_fall_is_a_negative_rise_and_no_load_is_below_none() -> None:
    assert trend(every(2.0, 160.0, 120.0, 80.0, 40.0, 0.0)) == pytest.approx((0.0, -20.0))


@pytest.mark.parametrize(
    "rates",
    [
        (30.0, 30.0, 30.0, 150.0),
        (30.0, 30.0, 150.0, 150.0),
        (25.0, 25.0, 25.0, 25.0, 76.0, 125.0),  # in the middle of an interval
    ],
)
def test_after_a_jump_the_load_is_the_latest_and_where_it_goes_is_not_known(rates: tuple[float, ...]) -> None:
    assert trend(every(2.0, *rates)) == Trend(rates[-1])


@pytest.mark.parametrize("rates", [(10.0,), (100.0, 90.0), (1.0, 9.0)])
def test_two_readings_make_no_trend(rates: tuple[float, ...]) -> None:
    assert trend(every(2.0, *rates)) == Trend(rates[-1])


def test_readings_of_one_moment_make_no_trend() -> None:
    assert trend([(5.0, 1.0), (5.0, 9.0), (5.0, 20.0)]) == Trend(20.0)


def test_a_load_that_varies_by_chance_alone_is_its_mean_and_hardly_ever_rises() -> None:
    chance = np.random.default_rng(2)
    rates = chance.poisson(40 * 2.0, 4000) / 2.0
    found = [trend(every(2.0, *rates[at : at + 6])) for at in range(3990)]
    assert sum(one.rise != 0 for one in found) < 3990 * 0.02
    # The mean of six readings varies by a sixth of the variance of one, a jump now and then aside.
    assert np.std([one.rate for one in found]) < 1.3 * np.sqrt(40 / 2.0 / 6)
