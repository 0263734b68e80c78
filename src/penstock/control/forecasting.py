"""A monitor whose observations also say what is expected: any policy can use a forecast.

Forecasts are part of what is observed, so a journal holds them and a replay needs no forecaster.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

from penstock.compiled import Floats
from penstock.control.ports import Monitor
from penstock.control.spec import Manager
from penstock.domain.errors import InputError
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.perf.forecast import Forecaster, HoltWinters, LastValue, Oracle
from penstock.policy.kernel import is_measured
from penstock.policy.registry import Level

STEPS = 12  # that are told
NONE, LAST, HOLT_WINTERS, ORACLE = "none", "last", "holt-winters", "oracle"
_KINDS = (NONE, LAST, HOLT_WINTERS, ORACLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What is asked for: a kind of forecaster and, if loads repeat, after how long."""

    kind: str = HOLT_WINTERS
    season_s: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise InputError(f"forecast '{self.kind}': choose one of {', '.join(_KINDS)}")
        if self.season_s is not None:
            if self.kind != HOLT_WINTERS:
                raise InputError(f"forecast '{self.kind}' knows no season; holt-winters does")
            if not (isfinite(self.season_s) and self.season_s > 0):
                raise InputError(f"forecast: a season of {self.season_s:g} s; it must be positive")

    def forecaster(self, interval_s: float, series: Floats | None = None) -> Forecaster:
        """One that sees a value per interval; `series` are all of them, where they are known."""
        if self.kind == ORACLE:
            if series is None:
                raise InputError("forecast 'oracle' knows the trace: only a simulation has one")
            return Oracle(series)
        if self.kind == LAST:
            return LastValue()
        if self.season_s is None:
            return HoltWinters()
        if self.season_s < 2 * interval_s:
            raise InputError(
                f"forecast: a season of {self.season_s:g} s is less than two intervals of {interval_s:g} s"
            )
        return HoltWinters(length=round(self.season_s / interval_s))


def wanted(asked: Forecast | None, operator_policy: Manager) -> Forecast | None:
    """What was asked for, by a policy that plans ahead; Holt and Winters' if nothing was."""
    if not operator_policy.entry(Level.OPERATOR).traits.plans_ahead:
        return None
    asked = asked or Forecast()
    return None if asked.kind == NONE else asked


def forecast_of(text: str) -> Forecast:
    """As the command line gives it: a kind or, with a season of so many seconds, `holt-winters:86400`."""
    kind, colon, season = text.partition(":")
    if not colon:
        return Forecast(kind=kind)
    try:
        return Forecast(kind=kind, season_s=float(season))
    except ValueError as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"forecast '{text}': the season is a number of seconds") from None


class ForecastingMonitor:
    """Observes through another monitor, and adds what the load of every operator is expected to be."""

    def __init__(self, monitor: Monitor, of_operator: Callable[[str], Forecaster], interval_s: float) -> None:
        self._monitor, self._of_operator, self._interval_s = monitor, of_operator, interval_s
        self._known: dict[str, Forecaster] = {}
        self._began_s: float | None = None
        self._until: dict[str, int] = {}  # operator -> the latest interval it knows of

    def observe(self) -> ApplicationObservation:
        seen = self._monitor.observe()
        if self._began_s is None:
            self._began_s = seen.at_s
        # From the first observation on, so that no round lies on the border of two intervals. What arrives
        # is known until now, even where an operator's own time stands still.
        interval = round((seen.at_s - self._began_s) / self._interval_s)
        return seen._replace(operators=tuple(self._with_forecast(one, interval) for one in seen.operators))

    def _with_forecast(self, one: OperatorObservation, interval: int) -> OperatorObservation:
        known = self._known.get(one.operator) or self._of_operator(one.operator)
        last = self._until.setdefault(one.operator, interval - 1)
        rate = next((r for r in (one.offered_rate, one.arrival_rate) if is_measured(r, finite=True)), None)
        if rate is not None and interval > last:
            for _ in range(interval - last - 1):  # nothing was measured: it went as expected, for all we know
                known = known.seen((known.ahead(1) or (rate,))[0])
            known = known.seen(rate)
            self._until[one.operator] = interval
        self._known[one.operator] = known
        unknown = max(interval - self._until[one.operator], 0)
        ahead = known.ahead(unknown + STEPS)[unknown:]
        return one._replace(forecast=ahead, forecast_interval_s=self._interval_s) if ahead else one
