"""Forecasters against theory and against the recurrences written down a second time."""

from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.forecasting import Forecast, ForecastingMonitor, forecast_of
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.perf.forecast import Forecaster, HoltWinters, LastValue, Oracle, Smoothing

SEASON = [0.0, 30.0, 80.0, 20.0]


def after(forecaster: Forecaster, series: list[float]) -> Forecaster:
    for value in series:
        forecaster = forecaster.seen(value)
    return forecaster


def test_the_last_value_stays() -> None:
    assert after(LastValue(), [3.0, 5.0]).ahead(3) == (5.0, 5.0, 5.0)


def test_a_line_is_continued() -> None:
    """Level and trend of a line are fixed points of the recurrences."""
    line = [10.0 + 2.0 * step for step in range(400)]
    assert after(HoltWinters(), line).ahead(3) == pytest.approx((810.0, 812.0, 814.0), rel=1e-6)


def test_what_repeats_is_known_from_the_second_time_on() -> None:
    seen = after(HoltWinters(length=4), [100 + one for one in SEASON])
    assert seen.ahead(8) == pytest.approx([100 + one for one in SEASON * 2])
    again = after(seen, [100 + one for one in SEASON * 3])
    assert again.ahead(6) == pytest.approx([100 + one for one in [*SEASON, *SEASON[:2]]])


def test_without_its_season_it_is_late_where_with_it_it_is_not() -> None:
    series = [100 + one for one in SEASON * 20]
    plain, seasonal = HoltWinters(), HoltWinters(length=4)
    errors = np.zeros(2)
    for step, value in enumerate(series):
        if step > 8:
            errors += np.abs([plain.ahead(1)[0] - value, seasonal.ahead(1)[0] - value])
        plain, seasonal = plain.seen(value), seasonal.seen(value)
    assert errors[1] < 1e-6 < 10 < errors[0]


@given(
    st.lists(st.floats(0, 1e4), min_size=9, max_size=40),
    st.tuples(*[st.floats(0.05, 0.95)] * 3),
    st.integers(2, 4),
)
def test_the_recurrences_written_down_again_give_the_same(
    series: list[float], shares: tuple[float, float, float], length: int
) -> None:
    alpha, beta, gamma = shares
    level, trend = float(np.mean(series[:length])), 0.0
    season = [value - level for value in series[:length]]
    for step in range(length, len(series)):
        value, before = series[step], level
        level = alpha * (value - season[step - length]) + (1 - alpha) * (level + trend)
        trend = beta * (level - before) + (1 - beta) * trend
        season.append(gamma * (value - level) + (1 - gamma) * season[step - length])
    expected = [
        max(level + (step + 1) * trend + season[len(series) - length + step % length], 0.0)
        for step in range(6)
    ]
    made = after(HoltWinters(length=length, smoothing=Smoothing(*shares)), series)
    assert made.ahead(6) == pytest.approx(expected, rel=1e-9, abs=1e-6)


def test_an_oracle_knows() -> None:
    series = np.arange(5.0)
    assert after(Oracle(series), [0.0, 1.0]).ahead(4) == (2.0, 3.0, 4.0, 4.0)


@pytest.mark.parametrize("value", [nan, float("inf"), -1.0])
@pytest.mark.parametrize("forecaster", [LastValue(), HoltWinters(), HoltWinters(length=3)])
def test_rubbish_in_a_series_is_refused(forecaster: Forecaster, value: float) -> None:
    with pytest.raises(InputError, match="must be a number and not negative"):
        forecaster.seen(value)


@pytest.mark.parametrize("forecaster", [LastValue(), HoltWinters(), HoltWinters(length=3)])
def test_nothing_seen_is_nothing_told(forecaster: Forecaster) -> None:
    assert forecaster.ahead(3) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("holt", "choose one of"),
        ("last:60", "knows no season"),
        ("holt-winters:day", "number of seconds"),
        ("holt-winters:-3", "must be positive"),
        ("holt-winters:nan", "must be positive"),
    ],
)
def test_a_forecast_that_cannot_be_is_named(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        forecast_of(text)


def test_a_season_shorter_than_two_intervals_is_none() -> None:
    with pytest.raises(InputError, match="less than two intervals"):
        Forecast(season_s=90.0).forecaster(60.0)
    with pytest.raises(InputError, match="only a simulation"):
        Forecast(kind="oracle").forecaster(60.0)
    with pytest.raises(InputError, match="give 0 for none"):
        HoltWinters(length=1)


class Told:
    """A monitor that says what it is told to."""

    def __init__(self, rates: list[tuple[float, float | None]]) -> None:
        self._rates = iter(rates)

    def observe(self) -> ApplicationObservation:
        at_s, rate = next(self._rates)
        one = OperatorObservation(
            operator="op",
            at_s=at_s,
            replicas=Replicas((1,)),
            arrival_rate=rate,
            response_time_s=None,
            utilisation=None,
        )
        return ApplicationObservation(at_s=at_s, response_time_s=None, operators=(one,))


def test_observations_say_what_is_expected_and_gaps_do_not_move_the_season() -> None:
    rates: list[tuple[float, float | None]] = [
        (10.0 * (step + 1), 100 + SEASON[step % 4] if step not in (9, 10) else None) for step in range(12)
    ]
    monitor = ForecastingMonitor(Told(rates), lambda _: HoltWinters(length=4), 10.0)
    made = [monitor.observe().operators[0].forecast for _ in rates]
    assert made[3] is not None
    assert made[3][:4] == pytest.approx([100.0, 130.0, 180.0, 120.0])
    assert made[11] is not None
    assert made[11][:4] == pytest.approx([100.0, 130.0, 180.0, 120.0])


@pytest.mark.parametrize("began_s", [0.0, 2.5, 1.7e9 + 2.49])
def test_rounds_that_are_not_on_time_are_all_heard(began_s: float) -> None:
    """Wherever an interval begins, and however late each round of it is."""
    rng = np.random.default_rng(2)
    times_s = began_s + 5.0 * np.arange(60) + rng.normal(0, 0.02, 60)
    heard: list[float] = []

    class Listening:
        def seen(self, value: float) -> "Listening":
            heard.append(value)
            return self

        def ahead(self, steps: int) -> tuple[float, ...]:
            return (-1.0,) * steps  # would be heard, were an interval made up

    rounds: list[tuple[float, float | None]] = [(float(at_s), float(n)) for n, at_s in enumerate(times_s)]
    monitor = ForecastingMonitor(Told(rounds), lambda _: Listening(), 5.0)
    for _ in times_s:
        monitor.observe()
    assert heard == list(range(60))


def test_an_interval_not_measured_moves_the_forecast_on() -> None:
    told = ForecastingMonitor(
        Told([(0.0, None), (60.0, 20.0), (120.0, None), (180.0, 40.0)]),
        lambda _: Oracle(np.array([10.0, 20.0, 30.0, 40.0, 50.0, 60.0])),
        60.0,
    )
    first = [(told.observe().operators[0].forecast or (None,))[0] for _ in range(4)]
    assert first == [20.0, 30.0, 40.0, 50.0]


def test_an_oracle_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="empty"):
        Oracle(np.array([]))


def test_nothing_measured_is_nothing_expected() -> None:
    monitor = ForecastingMonitor(Told([(1.0, None), (2.0, 5.0)]), lambda _: LastValue(), 1.0)
    assert monitor.observe().operators[0].forecast is None
    assert monitor.observe().operators[0].forecast == (5.0,) * 12
