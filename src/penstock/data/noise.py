"""What synthetic traces are made of: noise with a memory, bursts, and values between given ones."""

from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats
from penstock.domain.trace import SLOTS_PER_DAY


def autoregressive(rng: Generator, count: int, *, before: float, deviation: float = 1.0) -> Floats:
    """Noise that keeps the share `before` of itself from one value to the next; it starts from 0."""
    shocks = rng.normal(0.0, deviation * np.sqrt(1 - before**2), count)
    return np.fromiter(_fading_sums(shocks, before), dtype=np.float64, count=count)


def _fading_sums(shocks: Floats, before: float) -> Iterator[float]:
    level = 0.0
    for shock in shocks.tolist():  # plain floats round the same and take a third of the time
        level = before * level + shock
        yield level


def seasonal_noise(rng: Generator, count: int, *, season: int, before: float, season_before: float) -> Floats:
    """Noise of deviation 1: x(t) = season_before x(t - season) + e(t); e(t) = before e(t - 1) + chance."""
    warm_up = 20 * season  # by then the start is forgotten: 0.67 to the 20th is 0.0003
    noise = autoregressive(rng, warm_up + count, before=before)
    for index in range(season, noise.size):
        noise[index] += season_before * noise[index - season]
    # x adds up e(t), e(t - season), ...; what is left of e after a season makes the sum a little larger.
    left = season_before * before**season
    noise *= np.sqrt((1 - season_before**2) * (1 - left) / (1 + left))
    return noise[warm_up:]


def bursts(
    rng: Generator, slots: int, *, per_day: float, height: tuple[float, float], fading_slots: float
) -> Floats:
    """Sudden rises by a share of the rate, each dying away; 0 almost everywhere."""
    extra = np.zeros(slots)
    for start in np.flatnonzero(rng.random(slots) < per_day / SLOTS_PER_DAY):
        length = min(int(6 * fading_slots), slots - int(start))
        extra[start : start + length] += rng.uniform(*height) * np.exp(-np.arange(length) / fading_slots)
    return extra


def interpolated(values: Floats, slots: int, *, width: int) -> Floats:
    """A value per slot on straight lines between values that each stand in the middle of `width` slots."""
    middles = (np.arange(values.size) + 0.5) * width - 0.5
    line: Floats = np.interp(np.arange(slots), middles, values)
    return line
