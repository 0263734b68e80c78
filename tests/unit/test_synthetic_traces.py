"""Made-up traces: as like the published ones as the issue asks, and the loads of De Matteis 2017."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from penstock.compiled import Floats
from penstock.data.noise import bursts, seasonal_noise
from penstock.data.statistics import TraceStatistics, autocorrelation, describe
from penstock.data.synthetic import RATES, synthetic_trace
from penstock.data.walks import jumps, random_walk
from penstock.domain.errors import InputError
from penstock.domain.trace import Trace

FIGURES = (
    "mean",
    "deviation",
    "autocorrelation_1",
    "autocorrelation_60",
    "autocorrelation_1440",
    "level_persistence",
)
# reference/published-simulator.md, "Trace statistics"; computed there by other means.
PUBLISHED = {
    "taxi": (525_533, 650.0, (329.51, 150.87, 0.985, 0.884, 0.796, 0.348)),
    "tweets": (242_960, 9000.0, (2218.04, 1439.52, 0.900, 0.559, 0.304, 0.526)),
}


def figures(found: TraceStatistics) -> list[float]:
    return [getattr(found, name) for name in FIGURES]


@pytest.mark.parametrize(("like", "tolerance"), [("taxi", 0.05), ("tweets", 0.10)])
@pytest.mark.parametrize("seed", [1, 2, 11])
def test_a_synthetic_trace_has_the_published_one_s_statistics(like: str, tolerance: float, seed: int) -> None:
    slots, max_rate, expected = PUBLISHED[like]
    made = synthetic_trace(like, slots=slots, seed=seed)
    assert figures(describe(made, levels=30, max_rate=max_rate)) == pytest.approx(expected, rel=tolerance)


def test_both_the_traces_given_to_us_and_the_made_up_ones_agree(taxi: Floats, tweets: Floats) -> None:
    for like, real, tolerance in (("taxi", taxi, 0.05), ("tweets", tweets, 0.10)):
        slots, max_rate, _ = PUBLISHED[like]
        made = describe(synthetic_trace(like, slots=slots, seed=1), levels=30, max_rate=max_rate)
        measured = describe(Trace(like, real), levels=30, max_rate=max_rate)
        assert figures(made) == pytest.approx(figures(measured), rel=tolerance)


def test_synthetic_tweets_stop_and_burst_as_real_ones_do() -> None:
    found = describe(synthetic_trace("tweets", slots=242_960, seed=1), levels=30, max_rate=9000)
    assert 0.04 < found.zeros / found.slots < 0.10  # 6.8 % of the published slots
    assert found.maximum > 2 * found.p99


def test_synthetic_taxis_are_a_poisson_process_around_a_smooth_rate() -> None:
    """Var(X' - X) = 2 mean for two Poisson counts of one intensity."""
    rates = synthetic_trace("taxi", slots=100_000, seed=3).rates
    for low, high in ((100, 200), (300, 400), (400, 500)):
        here = (rates[:-1] >= low) & (rates[:-1] < high)
        step = np.diff(rates)[here]
        assert step.var() / (2 * rates[:-1][here].mean()) == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("like", RATES)
def test_the_same_seed_gives_the_same_trace_and_a_prefix_is_a_trace_too(like: str) -> None:
    once, again = (synthetic_trace(like, slots=500, seed=7).rates for _ in range(2))
    assert once.tolist() == again.tolist()
    assert synthetic_trace(like, slots=1, seed=7).rates.size == 1
    if like != "burst":
        assert synthetic_trace(like, slots=500, seed=8).rates.tolist() != once.tolist()


def test_a_trace_can_be_scaled_to_a_mean() -> None:
    assert synthetic_trace("taxi", slots=5000, seed=1, mean_rate=50).rates.mean() == pytest.approx(
        50, rel=0.01
    )


def test_noise_remembers_the_value_before_and_the_season_before() -> None:
    """x(t) = .6 x(t - 24) + e(t) has correlation .6 a season apart, and deviation 1 by construction."""
    noise = seasonal_noise(np.random.default_rng(1), 200_000, season=24, before=0.5, season_before=0.6)
    assert noise.std() == pytest.approx(1, abs=0.02)
    assert autocorrelation(noise, 24) == pytest.approx(0.6, abs=0.01)
    assert autocorrelation(noise, 1) == pytest.approx(0.5, abs=0.01)


def test_bursts_come_as_often_as_asked() -> None:
    extra = bursts(np.random.default_rng(1), 1440 * 400, per_day=0.5, height=(1.0, 1.0), fading_slots=3)
    assert int((extra >= 1.0).sum()) == pytest.approx(200, rel=0.15)


def test_a_random_walk_stays_in_its_range_and_steps_as_far_as_asked() -> None:
    walk = random_walk(slots=100_000, seed=1, lowest=100, highest=1100, step=0.02).rates
    assert walk.min() >= 100
    assert walk.max() <= 1100
    steps = np.abs(np.diff(walk))
    inside = (walk[:-1] > 300) & (walk[:-1] < 900)
    assert steps[inside].mean() == pytest.approx(20, rel=0.02)
    assert walk.mean() == pytest.approx(600, rel=0.1)  # reflected at both ends, it visits all alike


def test_the_burst_is_that_of_seed_004() -> None:
    """Sec. 5.2.2: 3e5 tuples/s until timestamp 30, then 4e5."""
    rates = jumps(slots=180).rates
    assert rates[:30].tolist() == [3e5] * 30
    assert rates[30:].tolist() == [4e5] * 150


def test_a_burst_that_lasts_comes_again() -> None:
    rates = jumps(slots=40, before=1, after=5, at=10, lasting=5).rates
    assert [slot for slot, (a, b) in enumerate(pairwise(rates), start=1) if a != b] == [10, 15, 25, 30]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: random_walk(slots=0, seed=1), "slots=0"),
        (lambda: random_walk(slots=5, seed=1, lowest=5, highest=5), "rates from 5 to 5"),
        (lambda: jumps(slots=5, at=-1), "a burst at slot -1"),
        (lambda: synthetic_trace("storm", slots=5, seed=1), "--like 'storm': unknown"),
        (lambda: synthetic_trace("taxi", slots=5, seed=1, mean_rate=float("inf")), "mean rate inf"),
    ],
)
def test_what_cannot_be_made_is_named(make: Callable[[], Trace], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
