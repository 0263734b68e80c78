"""What a run shows, and that the experiments of the paper's strategies show it."""

from math import isnan

import numpy as np
import pytest

from penstock.data.walks import trading_day
from penstock.domain.errors import InputError
from penstock.papers.mpc import difference
from penstock.papers.mpc_control import DAY, WALK, Assumed, Strategy, played, workload
from penstock.perf.saso import saso


def test_counts_and_means() -> None:
    made = saso(
        [(3, 8), (3, 8), (6, 4), (6, 4), (5, 4)],
        late=[False, True, False, True, False],
        replicas=[3, 3, 6, 6, 5],
        watts=[10, 10, 20, 20, 15],
    )
    assert (made.reconfigurations, made.violations, made.steps) == (2, 2, 5)
    assert made.amplitude == pytest.approx((5 + 1) / 2)
    assert made.replicas == pytest.approx(4.6)
    assert made.watts == 15.0


def test_replicas_and_watts_are_means_over_seconds_however_long_a_step_is() -> None:
    made = saso([(3,), (4,)], late=[False] * 8, replicas=[3] * 4 + [4] * 4, watts=[10] * 4 + [20] * 4)
    assert (made.replicas, made.watts) == (3.5, 15.0)


def test_a_run_without_a_change_has_no_amplitude() -> None:
    assert isnan(saso([(3,)] * 4, late=[False] * 4, replicas=[3] * 4, watts=[1] * 4).amplitude)


def test_a_day_on_the_market_is_busiest_at_its_ends() -> None:
    days = np.mean([trading_day(slots=235, seed=seed).rates for seed in range(40)], axis=0)
    assert days[:10].mean() > 2 * days[60:170].mean()
    assert days[-6:].mean() > 1.5 * days[60:170].mean()
    assert trading_day(slots=235, seed=3).rates.max() == 4e5
    with pytest.raises(InputError):
        trading_day(slots=0, seed=1)


@pytest.mark.parametrize("load", [WALK, DAY])
def test_the_same_seed_gives_the_same_arrivals_whatever_the_strategy(load: str) -> None:
    assert np.array_equal(workload(load, 3, Assumed()), workload(load, 3, Assumed()))
    assert not np.array_equal(workload(load, 3, Assumed()), workload(load, 4, Assumed()))


def test_a_run_follows_its_load_and_repeats_to_the_last_digit() -> None:
    strategy = Strategy("Lat-Node", qos="latency", switching=0.0)
    one, other = played(strategy, WALK, 2), played(strategy, WALK, 2)
    assert np.array_equal(one.trail.replicas, other.trail.replicas)
    assert one.saso == other.saso
    assert one.saso.violations < 0.1 * one.saso.steps


def test_throughput_without_a_price_of_changes_is_the_fewest_that_keep_up() -> None:
    """Eq. 4, 5 and 11: where a forecast is right, the whole number above rate x time."""
    assumed = Assumed(forecast="oracle")
    run = played(Strategy("Th-Node", switching=0.0), WALK, 2, assumed)
    fewest = np.ceil(workload(WALK, 2, assumed) * assumed.ticks / 2e9)
    assert np.mean(np.abs(run.trail.replicas - fewest) <= 1) > 0.95


def test_the_interval_of_a_mean_of_differences() -> None:
    """Student's: of 1, 2, 3 the mean is 2, the error 1 / sqrt(3), and t(.975, 2) = 4.303."""
    mean, lower, upper = difference([1.0, 2.0, 3.0], [0.0, 0.0, 0.0])
    assert mean == 2.0
    assert [lower, upper] == pytest.approx([2 - 4.3027 / 3**0.5, 2 + 4.3027 / 3**0.5], abs=1e-3)
