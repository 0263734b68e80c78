"""The experiments of De Matteis 2017: runs that can be compared, intervals that mean what they say."""

import numpy as np
import pytest

from penstock.papers.mpc import compared, difference, strategies
from penstock.papers.mpc_control import DAY, MOST, WALK, Assumed, Strategy, played, workload
from penstock.papers.mpc_rates import GHZ, KEYS, SLIDE, WINDOW, highest_rate, work_off


def test_strategies_meet_the_same_tuples() -> None:
    node, power = (played(Strategy("x", power=power), WALK, 1) for power in (False, True))
    assert np.array_equal(node.trail.rate, power.trail.rate)
    assert not np.array_equal(node.trail.ghz, power.trail.ghz)
    assert node.trail.replicas.max() <= MOST


def test_a_run_is_the_same_again_and_another_with_another_seed() -> None:
    chosen = compared()["Th-Node, 4 s"]
    first, again, other = (played(chosen, DAY, seed) for seed in (1, 1, 2))
    assert first.saso == again.saso
    assert np.array_equal(first.trail.replicas, again.trail.replicas)
    assert not np.array_equal(first.trail.rate, other.trail.rate)


def test_the_static_peak_uses_the_printed_watts() -> None:
    assert float(Assumed().power.watts(MOST, GHZ)) == pytest.approx(68.25)


def test_no_horizon_stands_for_no_switching_cost() -> None:
    assert strategies("latency", True)[0].switching == 0
    assert [one.horizon for one in strategies("latency", True).values()] == [1, 1, 2, 3]


def test_one_run_says_nothing_with_confidence() -> None:
    _, lower, upper = difference([1.0], [5.0])
    assert (lower, upper) == (-np.inf, np.inf)


def test_runs_without_a_value_are_left_out() -> None:
    assert difference([1.0, np.nan, 2.0], [3.0, 1.0, 5.0]) == difference([1.0, 2.0], [3.0, 5.0])


def test_loads_stay_within_what_is_assumed() -> None:
    for name in (WALK, DAY):
        rates = workload(name, 3, Assumed()) * SLIDE
        assert rates.min() > 0
        assert rates.max() <= 6.1e5  # the day's highest (sec. 5.1: 60,000 quotes/s, throttled)


def test_a_saturated_operator_does_what_its_replicas_can() -> None:
    ticks = Assumed().ticks
    for replicas in (1, 8):
        can = replicas * GHZ * 1e9 / ticks * SLIDE
        assert highest_rate(replicas, ticks) == pytest.approx(can, rel=0.05)


def test_windows_of_the_timed_kernel_are_fitted() -> None:
    rng = np.random.default_rng(4)
    room = WINDOW + SLIDE
    interval = np.repeat(np.arange(room)[None], 2, axis=0)
    price = np.full((2, room), 100.0)
    length = np.array([WINDOW, WINDOW])
    prices = 100 + rng.normal(0, 1, SLIDE)
    count, expected, error = np.empty(1, np.int64), np.empty(1), np.empty(1)
    keys = np.ones(SLIDE, np.int64)
    work_off(interval, price, length, keys, prices, np.empty((4, WINDOW)), count, expected, error)
    assert length.tolist() == [WINDOW, WINDOW + SLIDE]
    assert np.array_equal(price[1, WINDOW:], prices)
    window = interval[1, SLIDE:], price[1, SLIDE:]
    intervals = np.unique(window[0])
    means = [window[1][window[0] == one].mean() for one in intervals]
    fitted = np.polynomial.Polynomial.fit(intervals, means, 2)
    assert int(count[0]) == intervals.size
    assert expected[0] == pytest.approx(fitted(interval[1, -1] + SLIDE // 2))
    assert KEYS == 2836
