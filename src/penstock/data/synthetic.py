"""A made-up arrival trace with days, weeks, noise and bursts, for where no real one is at hand."""

import numpy as np

from penstock.compiled import Floats
from penstock.domain.errors import InputError
from penstock.domain.trace import SLOTS_PER_DAY, Trace

DAY_AND_WEEK = "day-and-week"


def day_and_week(*, slots: int, seed: int, mean_rate: float = 330.0) -> Trace:
    """A day with two peaks and a quiet night, quieter weekends, correlated noise and rare bursts."""
    if slots < 1:
        raise InputError(f"slots={slots}; a trace has at least one")
    if not mean_rate > 0:
        raise InputError(f"mean rate {mean_rate:g} tuples/s; it must be positive")
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
