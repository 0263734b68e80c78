"""What a series will do next: its last value, or Holt and Winters' smoothing with trend and season.

Additive, online. Until a whole season has been seen there is none to tell from a trend, so Holt's smoothing
of level and trend works alone; after it, the season is what its values were above or below their mean, and
from then on

    level  = alpha * (x - season) + (1 - alpha) * (level + trend)
    trend  = beta * (level - level before) + (1 - beta) * trend
    season = gamma * (x - level) + (1 - gamma) * season

(Winters 1960). A forecast is never negative: it is of rates.
"""

from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple, Protocol

import numpy as np

from penstock.compiled import Floats
from penstock.domain.errors import InputError


class Forecaster(Protocol):
    """Sees one value after the other and tells the next ones."""

    def seen(self, value: float) -> "Forecaster":
        """The same forecaster, knowing one value more."""
        ...

    def ahead(self, steps: int) -> tuple[float, ...]:
        """The values of the next steps; empty as long as nothing is known."""
        ...


@dataclass(frozen=True, slots=True)
class LastValue:
    """It will stay as it is."""

    value: float | None = None

    def seen(self, value: float) -> "LastValue":
        return LastValue(checked(value))

    def ahead(self, steps: int) -> tuple[float, ...]:
        return () if self.value is None else (self.value,) * steps


class Smoothing(NamedTuple):
    """How much the newest value counts."""

    level: float = 0.5
    trend: float = 0.1
    season: float = 0.3


USUAL = Smoothing()


@dataclass(frozen=True, slots=True)
class HoltWinters:
    """Level, trend and, with a length of two steps or more, season."""

    length: int = 0  # of the season, in steps; 0: there is none
    smoothing: Smoothing = USUAL
    count: int = 0  # values seen
    level: float = 0.0
    trend: float = 0.0
    season: tuple[float, ...] = ()  # in the first one, its values; then what each step adds

    def __post_init__(self) -> None:
        if self.length == 1 or self.length < 0:
            raise InputError(f"forecast: a season of {self.length} steps; give 0 for none, or at least 2")
        for what, share in self.smoothing._asdict().items():
            if not 0 <= share <= 1:
                raise InputError(f"forecast: smoothing of the {what} {share}; it must be between 0 and 1")

    def seen(self, value: float) -> "HoltWinters":
        value = checked(value)
        alpha, beta, gamma = self.smoothing
        place = self.count % self.length if self.length else 0
        first = self.length > 0 and self.count < self.length
        season = self.season[place] if self.length and not first else 0.0
        if self.count == 0:
            level, trend = value, 0.0
        else:
            expected = self.level + self.trend
            level = alpha * (value - season) + (1 - alpha) * expected
            trend = beta * (level - self.level) + (1 - beta) * self.trend
        seasons = self.season
        if first:
            seasons = (*self.season, value)
            if self.count + 1 == self.length:
                level, trend = sum(seasons) / self.length, 0.0
                seasons = tuple(one - level for one in seasons)
        elif self.length:
            new = gamma * (value - level) + (1 - gamma) * season
            seasons = (*self.season[:place], new, *self.season[place + 1 :])
        return HoltWinters(self.length, self.smoothing, self.count + 1, level, trend, seasons)

    def ahead(self, steps: int) -> tuple[float, ...]:
        if self.count == 0:
            return ()
        there = self.length > 0 and self.count >= self.length
        return tuple(
            max(
                self.level
                + step * self.trend
                + (self.season[(self.count + step - 1) % self.length] if there else 0.0),
                0.0,
            )
            for step in range(1, steps + 1)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Oracle:
    """Knows the whole series: for studies of what forecasts are worth."""

    series: Floats
    count: int = 0

    def __post_init__(self) -> None:
        if self.series.size == 0:
            raise InputError("forecast 'oracle': an empty series")

    def seen(self, value: float) -> "Oracle":
        return Oracle(self.series, self.count + 1)

    def ahead(self, steps: int) -> tuple[float, ...]:
        # Beyond its end it stays as it was.
        places = np.minimum(np.arange(self.count, self.count + steps), self.series.size - 1)
        return tuple(float(value) for value in self.series[places])


def checked(value: float) -> float:
    if not (isfinite(value) and value >= 0):
        raise InputError(f"forecast: {value} in the series; it must be a number and not negative")
    return float(value)
