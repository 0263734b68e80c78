"""A made-up arrival trace with days, weeks, noise and bursts, for where no real one is at hand."""

import numpy as np

from penstock.compiled import Floats, Ints
from penstock.domain.errors import InputError
from penstock.domain.trace import SLOTS_PER_DAY, Trace

DAY_AND_WEEK = "day-and-week"
MOST_SLOTS = 100_000_000  # 190 years
LARGEST_MEAN = 1e12  # tuples/s


def day_and_week(*, slots: int, seed: int, mean_rate: float = 330.0) -> Trace:
    """A day with two peaks and a quiet night, quieter weekends, correlated noise and rare bursts."""
    if not 1 <= slots <= MOST_SLOTS:
        raise InputError(f"slots={slots}; a trace has at least one, and at most {MOST_SLOTS:,} are made up")
    if not 1 <= mean_rate <= LARGEST_MEAN:
        raise InputError(f"mean rate {mean_rate:g} tuples/s; from 1 to {LARGEST_MEAN:g}")
    shape_rng, noise_rng, burst_rng = np.random.default_rng(seed).spawn(3)
    slot = np.arange(slots)
    day = 2 * np.pi * (slot % SLOTS_PER_DAY) / SLOTS_PER_DAY
    weekday = (slot // SLOTS_PER_DAY) % 7
    daily = 1.0 - 0.52 * np.cos(day - 0.9) - 0.22 * np.cos(2 * day - 2.2) + 0.05 * np.cos(3 * day)
    weekly = np.where(weekday >= 5, 0.82, 1.0)
    per_day = shape_rng.normal(1.0, 0.06, slots // SLOTS_PER_DAY + 1)[slot // SLOTS_PER_DAY]
    shape = daily * weekly * per_day
    noisy = shape * (1.0 + _autoregressive(noise_rng, slots, persistence=0.93, deviation=0.06))
    noisy *= 1.0 + _bursts(burst_rng, slots)
    rates = np.maximum(noisy, 0.0)
    return Trace(DAY_AND_WEEK, np.round(rates * (mean_rate / rates.mean())))


def _autoregressive(rng: np.random.Generator, slots: int, *, persistence: float, deviation: float) -> Floats:
    shocks = rng.normal(0.0, deviation * np.sqrt(1 - persistence**2), slots)
    noise = np.empty(slots)
    level = 0.0
    for index, shock in enumerate(shocks):
        level = persistence * level + shock
        noise[index] = level
    return noise


def _bursts(rng: np.random.Generator, slots: int) -> Floats:
    """About one sudden rise every four days, dying away within the hour."""
    extra = np.zeros(slots)
    for start in np.flatnonzero(rng.random(slots) < 1 / (4 * SLOTS_PER_DAY)):
        fading = rng.uniform(0.2, 0.8) * np.exp(-np.arange(min(120, slots - int(start))) / 20)
        extra[start : start + fading.size] += fading
    return extra


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
