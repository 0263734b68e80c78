"""Half a year of tweets per minute, made up: the published Tweets trace's statistics, none of its slots.

The published trace was gathered by collectors that fetch for some minutes, pause and fetch
again, out of step with each other, and were changed several times on the way: in most weeks
its spectrum is a line at 15.1 minutes, one at about 22.6, and little else. So it is made
up: a steady stream and two pulse trains, with a height each for every week, days between
that were slower, a trickle while all pause, and a burst now and then.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints
from penstock.data.noise import autoregressive, bursts, interpolated
from penstock.domain.trace import SLOTS_PER_DAY, Trace

_PERIODS = (15.09, 22.6)  # slots
_DRIFTS = (0.012, 0.05)  # of a period, from one to the next: the first clock is a good one
_FETCHING = (0.62, 0.30)  # share of its period in which a collector fetches


@dataclass(frozen=True, slots=True)
class Era:
    """Weeks in which the collectors were left alone. Heights in tweets per minute."""

    weeks: int
    steady: float
    pulses: tuple[float, float]  # of the two collectors
    slow: float  # deviation of the slow noise, relative
    day: float  # swing of the day, relative


ERAS = (
    Era(1, 640, (0, 0), 0.35, 0.10),
    Era(3, 150, (0, 2550), 0.10, 0.05),
    Era(8, 0, (1900, 2200), 0.28, 0.06),
    Era(2, 1650, (150, 2300), 0.08, 0.08),
    Era(2, 60, (2100, 2000), 0.12, 0.08),
    Era(8, 2760, (1050, 0), 0.14, 0.10),
)
TRICKLE = 0.1  # tweets per minute while all pause


def tweet_rates(*, slots: int, seed: int) -> Trace:
    """Tweets per minute, read as tuples per second; after half a year the eras come round again."""
    slow_rng, phase_rng, fine_rng, burst_rng, count_rng = np.random.default_rng(seed).spawn(5)
    era = _era_of_slot(slots)
    slow = _within_weeks(
        interpolated(autoregressive(slow_rng, slots // 180 + 2, before=0.8), slots, width=180)
    )
    day = -np.cos(2 * np.pi * (np.arange(slots) / SLOTS_PER_DAY - 0.1))
    level = np.maximum(1 + _of(era, "slow") * slow + _of(era, "day") * day, 0.05)
    rate = _of(era, "steady")
    heights = np.array([e.pulses for e in ERAS])[era]
    for index, (period, share, drift) in enumerate(zip(_PERIODS, _FETCHING, _DRIFTS, strict=True)):
        rate = rate + heights[:, index] * _pulses(phase_rng, slots, period=period, share=share, drift=drift)
    fine = 0.035 * autoregressive(fine_rng, slots, before=0.3)
    rate = rate * level * (1 + fine)
    rate *= 1 + bursts(burst_rng, slots, per_day=1 / 12, height=(0.3, 2.0), fading_slots=4)
    counts: Floats = count_rng.poisson(np.maximum(rate, 0) + TRICKLE).astype(np.float64)
    return Trace("tweets-synthetic", counts)


def _era_of_slot(slots: int) -> Ints:
    weeks = np.repeat(np.arange(len(ERAS)), [era.weeks for era in ERAS])
    of_slot: Ints = weeks[np.arange(slots) // (7 * SLOTS_PER_DAY) % weeks.size]
    return of_slot


def _within_weeks(noise: Floats) -> Floats:
    """Less its mean of every week: how busy a week is, the eras say."""
    starts = np.arange(0, noise.size, 7 * SLOTS_PER_DAY)
    lengths = np.diff(np.append(starts, noise.size))
    level: Floats = noise - np.repeat(np.add.reduceat(noise, starts) / lengths, lengths)
    return level


def _of(era: Ints, name: str) -> Floats:
    values: Floats = np.array([getattr(e, name) for e in ERAS], dtype=np.float64)[era]
    return values


def _pulses(rng: Generator, slots: int, *, period: float, share: float, drift: float) -> Floats:
    """1 while a collector fetches, 0 while it pauses, in between for the minute in which it changes."""
    steps = np.cumsum(rng.normal(1.0, drift, int(slots / period * 1.5) + 10)) * period
    steps += rng.uniform(0, period)
    phase = np.interp(np.arange(slots), np.concatenate(([0.0], steps)), np.arange(steps.size + 1.0)) % 1.0
    from_middle = np.abs(phase - 0.5) * period
    covered: Floats = np.clip(share * period / 2 - from_middle + 0.5, 0.0, 1.0)
    return covered
