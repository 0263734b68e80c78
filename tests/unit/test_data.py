"""Trace files, statistics and made-up traces."""

from pathlib import Path

import numpy as np
import pytest

from penstock.compiled import Floats
from penstock.data.statistics import autocorrelation, describe
from penstock.data.synthetic import day_and_week
from penstock.data.traces import read_trace, write_trace
from penstock.domain.errors import InputError
from penstock.domain.trace import SLOTS_PER_DAY, Trace


def test_a_trace_survives_being_written_and_read(tmp_path: Path) -> None:
    trace = Trace("t", np.array([0.0, 12.0, 0.25, 1e6]))
    write_trace(trace, tmp_path / "t.txt")
    assert read_trace(tmp_path / "t.txt").rates.tolist() == trace.rates.tolist()


def test_a_trace_may_come_from_another_system(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes(b"\xef\xbb\xbf10\r\n20.5 \r\n")
    assert read_trace(tmp_path / "t.txt").rates.tolist() == [10.0, 20.5]


def test_statistics_are_those_known_of_the_real_traces(taxi: Floats, tweets: Floats) -> None:
    """Figures of reference/published-simulator.md, computed there by other means."""
    about_taxi = describe(Trace("taxi", taxi), levels=30, max_rate=650)
    assert about_taxi.slots == 525533
    assert about_taxi.mean == pytest.approx(329.51, abs=0.005)
    assert about_taxi.deviation == pytest.approx(150.87, abs=0.005)
    assert (about_taxi.p5, about_taxi.median, about_taxi.p95, about_taxi.p99) == (59, 364, 546, 593)
    assert (about_taxi.p999, about_taxi.maximum, about_taxi.largest_step) == (636, 1029, 354)
    assert about_taxi.autocorrelation_1 == pytest.approx(0.985, abs=0.0006)
    assert about_taxi.autocorrelation_60 == pytest.approx(0.884, abs=0.0006)
    assert about_taxi.autocorrelation_1440 == pytest.approx(0.796, abs=0.0006)
    about_tweets = describe(Trace("tweets", tweets), levels=30, max_rate=9000)
    assert (about_tweets.slots, about_tweets.zeros) == (242960, 16522)
    assert about_tweets.largest_step == 11909
    assert about_tweets.level_persistence == pytest.approx(0.526, abs=0.0006)
    assert about_tweets.autocorrelation_1440 == pytest.approx(0.304, abs=0.0006)


def test_autocorrelation_of_a_wave_is_its_cosine() -> None:
    wave = np.sin(2 * np.pi * np.arange(100_000) / 100)
    assert autocorrelation(wave, 25) == pytest.approx(0.0, abs=1e-3)
    assert autocorrelation(wave, 50) == pytest.approx(-1.0, abs=1e-3)


def test_what_a_trace_cannot_tell_is_unknown_not_zero() -> None:
    short = describe(Trace("t", np.array([5.0])), levels=30, max_rate=10)
    assert short.autocorrelation_1 is None
    assert short.level_persistence is None
    assert autocorrelation(np.full(100, 3.0), 1) is None


def test_a_made_up_trace_has_days_weeks_and_memory() -> None:
    made = day_and_week(slots=56 * SLOTS_PER_DAY, seed=3)
    about = describe(made, levels=30, max_rate=650)
    assert about.mean == pytest.approx(330, rel=0.01)
    assert about.autocorrelation_1 is not None
    assert about.autocorrelation_1 > 0.95
    assert about.autocorrelation_1440 is not None
    assert about.autocorrelation_1440 > 0.7
    days = made.rates.reshape(-1, SLOTS_PER_DAY).sum(axis=1).reshape(-1, 7)
    assert days[:, 5:].mean() < 0.9 * days[:, :5].mean()


@pytest.mark.parametrize(("slots", "mean_rate"), [(0, 330.0), (10, 0.0), (10, -1.0)])
def test_a_trace_that_cannot_be_made_up_is_refused(slots: int, mean_rate: float) -> None:
    with pytest.raises(InputError):
        day_and_week(slots=slots, seed=1, mean_rate=mean_rate)
