"""Made-up arrival traces by name, for where no real one is at hand."""

from collections.abc import Callable, Mapping

import numpy as np

from penstock.compiled import Floats, Ints
from penstock.data.noise import autoregressive, bursts
from penstock.data.synthetic_taxi import taxi_rates
from penstock.data.synthetic_tweets import tweet_rates
from penstock.data.walks import jumps, random_walk
from penstock.domain.errors import InputError
from penstock.domain.trace import SLOTS_PER_DAY, Trace

DAY_AND_WEEK = "day-and-week"
MOST_SLOTS = 10_000_000  # 19 years, in half a gigabyte of memory
LARGEST_MEAN = 1e12  # tuples/s


def day_and_week(*, slots: int, seed: int, mean_rate: float = 330.0) -> Trace:
    """A day with two peaks and a quiet night, quieter weekends, correlated noise and rare bursts."""
    _check_slots(slots)
    if not 1 <= mean_rate <= LARGEST_MEAN:
        raise InputError(f"mean rate {mean_rate:g} tuples/s; from 1 to {LARGEST_MEAN:g}")
    shape_rng, noise_rng, burst_rng = np.random.default_rng(seed).spawn(3)
    slot = np.arange(slots)
    day, minute = np.divmod(slot, SLOTS_PER_DAY)
    angle = 2 * np.pi * np.arange(SLOTS_PER_DAY) / SLOTS_PER_DAY
    daily = 1.0 - 0.52 * np.cos(angle - 0.9) - 0.22 * np.cos(2 * angle - 2.2) + 0.05 * np.cos(3 * angle)
    weekly = np.where(day % 7 >= 5, 0.82, 1.0)
    per_day = shape_rng.normal(1.0, 0.06, slots // SLOTS_PER_DAY + 1)
    shape = daily[minute] * weekly * per_day[day]
    noisy = shape * (1.0 + autoregressive(noise_rng, slots, before=0.93, deviation=0.06))
    noisy *= 1.0 + bursts(burst_rng, slots, per_day=1 / 4, height=(0.2, 0.8), fading_slots=20)
    rates = np.maximum(noisy, 0.0)
    return Trace(DAY_AND_WEEK, np.round(rates * (mean_rate / rates.mean())))


def _check_slots(slots: int) -> None:
    if not 1 <= slots <= MOST_SLOTS:
        raise InputError(f"slots={slots}; give at least one and at most {MOST_SLOTS:,}")


def markov_levels(transitions: Floats, *, slots: int, seed: int, start: int = 0) -> Ints:
    """Levels that move by these probabilities (row: from, column: to), for as many slots."""
    if not 0 <= start < len(transitions):
        raise InputError(f"start={start}; there are {len(transitions)} levels")
    upto = np.cumsum(transitions, axis=1)
    # Rounding may leave the last sum a hair below 1, and a draw above it would fall off the end.
    upto[transitions.sum(axis=1) > 0] /= upto[transitions.sum(axis=1) > 0, -1:]
    chance = np.random.default_rng(seed).random(slots)
    levels = np.empty(slots, dtype=np.int64)
    level = start
    for slot in range(slots):
        levels[slot] = level
        if upto[level, -1] > 0:  # a level never left is never left
            level = int(np.searchsorted(upto[level], chance[slot], side="right"))
    return levels


RATES: Mapping[str, Callable[[int, int], Trace]] = {  # (slots, seed) -> trace
    DAY_AND_WEEK: lambda slots, seed: day_and_week(slots=slots, seed=seed),
    "taxi": lambda slots, seed: taxi_rates(slots=slots, seed=seed),
    "tweets": lambda slots, seed: tweet_rates(slots=slots, seed=seed),
    "random-walk": lambda slots, seed: random_walk(slots=slots, seed=seed),
    "burst": lambda slots, seed: jumps(slots=slots),
}


def synthetic_trace(like: str, *, slots: int, seed: int, mean_rate: float | None = None) -> Trace:
    """A trace of the named kind, scaled to a mean rate if one is given."""
    if like not in RATES:
        raise InputError(f"--like '{like}': unknown; choose one of {', '.join(RATES)}")
    _check_slots(slots)
    if mean_rate is not None and not 0 < mean_rate < np.inf:
        raise InputError(f"mean rate {mean_rate:g} tuples/s; it must be positive")
    made = RATES[like](slots, seed)
    if mean_rate is None:
        return made
    mean = float(made.rates.mean())
    return Trace(made.name, np.round(made.rates * (mean_rate / mean))) if mean > 0 else made
