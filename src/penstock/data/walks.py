"""The synthetic loads of De Matteis 2017: a random walk, a day of trading, a rate that jumps."""

import numpy as np

from penstock.compiled import Floats
from penstock.domain.errors import InputError
from penstock.domain.trace import Trace

# Sec. 5.1: the paper prints no rates for the walk, so it stays where its
# operator does, between a tenth and all of the 4e5 quotes/s that eight replicas take (sec. 5.2.2).
LOWEST, HIGHEST = 4e4, 4e5
# Sec. 5.2.2: balanced until timestamp 30, then from 3e5 to 4e5 tuples/s at once.
JUMP_AT, BEFORE_JUMP, AFTER_JUMP = 30, 3e5, 4e5


def random_walk(
    *, slots: int, seed: int, lowest: float = LOWEST, highest: float = HIGHEST, step: float = 0.05
) -> Trace:
    """Steps of a normal size, `step` times the range on average, reflected at its ends."""
    _check(slots, lowest, highest)
    span = highest - lowest
    rng = np.random.default_rng(seed)
    steps = rng.normal(0.0, step * span * np.sqrt(np.pi / 2), slots)
    steps[0] = rng.uniform(0, span)
    # Folding the line into a zigzag is reflection: 0..span as it is, span..2 span backwards, and so on.
    folded = np.cumsum(steps) % (2 * span)
    rates: Floats = lowest + np.where(folded > span, 2 * span - folded, folded)
    return Trace("random-walk", np.round(rates))


def jumps(
    *,
    slots: int,
    before: float = BEFORE_JUMP,
    after: float = AFTER_JUMP,
    at: int = JUMP_AT,
    lasting: int | None = None,
) -> Trace:
    """One rate, and from slot `at` on another; with `lasting` it ends, and comes again after a rest."""
    _check(slots, min(before, after), max(before, after))
    if at < 0 or (lasting is not None and lasting < 1):
        raise InputError(
            f"a burst at slot {at} for {lasting} slots; slots count from 0, and it must last at least one"
        )
    slot = np.arange(slots)
    period = at + lasting if lasting is not None else max(slots, at + 1)
    rates: Floats = np.where(slot % period >= at, after, before).astype(np.float64)
    return Trace("burst", rates)


def trading_day(*, slots: int, seed: int, peak: float = HIGHEST) -> Trace:
    """A day on the market: busy after the opening and before the close, and never quiet from slot to slot.

    The smile and the spread of `synthetic_events.quote_lines`; the paper's own day (NASDAQ, 30 October 2014,
    a hundred times as fast, 235 s) is not public.
    """
    _check(slots, 0, peak)
    hour = np.arange(slots) / max(slots - 1, 1)
    smile = 0.35 + np.exp(-hour / 0.05) + 0.6 * np.exp(-(1 - hour) / 0.04)
    rng = np.random.default_rng(seed)
    # Bursts that last some slots, and chance in every slot.
    drift = np.cumsum(rng.normal(0.0, 0.06, slots))
    drift -= np.linspace(drift[0], drift[-1], slots)
    rates: Floats = smile * np.exp(drift) * rng.gamma(100.0, 0.01, slots)
    return Trace("trading-day", np.round(rates * peak / rates.max()))


def _check(slots: int, lowest: float, highest: float) -> None:
    if slots < 1:
        raise InputError(f"slots={slots}; a trace needs at least one")
    if not 0 <= lowest < highest < np.inf:
        raise InputError(f"rates from {lowest:g} to {highest:g}: give the lowest first, and no negative rate")
