"""How a load moves from one interval to the next, learned without knowing how high it will go.

Rates fall into levels of equal width. A load above the highest level makes all of them twice as wide,
and two neighbours become one; one that stays low for long makes them half as wide, each count shared out.
Within a level, rates are taken to be spread evenly between the lowest and the highest seen there lately.
How often which level followed which is counted, old counts fading as new ones come. Where little has
been counted, the load is taken to move as it did at neighbouring levels, and before anything is known
about the rest, to stay near where it is.
"""

from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, Ints, compiled

LEVELS = 64
_FIRST = LEVELS // 4  # level of the first rate ever seen
_LOW = LEVELS // 16  # a load that stays below this one is looked at more closely
_FADES = 0.9999  # per interval, of the highest rate: after 20,000 intervals an eighth is left
_NEIGHBOUR = 3.0  # levels over which what is known of one says a third of it about another
_REACH = 12  # levels, beyond which one says nothing about another
_BORROWED = 8.0  # counts that what neighbours did is worth
_GUESSED = 2.0  # counts that "near where it is" is worth
_NEGLIGIBLE = 1e-7
_KNOWN = 20.0  # counts of a level from which on its moves can surprise; so much is left after a change
_RARE = 0.05  # a move that so few were as large as is a surprise: one in ten, up or down, by chance
_LATELY = 0.02  # what one move weighs among the latest
_TOO_OFTEN = 0.3  # of them surprising: the load moves otherwise


class LoadMoves(NamedTuple):
    """Counts of what followed what, and the levels they are of."""

    width: Floats  # [tuples/s of a level; 0 before the first load]
    highest: Floats  # [rate, slowly forgotten]
    last: Ints  # [level of the latest interval, or -1]
    counts: Floats  # level x following level
    low: Floats  # by level, the lowest rate lately; where it never was, the least it could be
    high: Floats  # the highest
    surprise: Floats  # [share of latest moves that were larger than nearly all before them]
    memory: float  # counts of a level from which on the older half is forgotten


def load_moves(*, memory: float) -> LoadMoves:
    return LoadMoves(
        width=np.zeros(1),
        highest=np.zeros(1),
        last=np.full(1, -1, dtype=np.int64),
        counts=np.zeros((LEVELS, LEVELS)),
        low=np.zeros(LEVELS),
        high=np.zeros(LEVELS),
        surprise=np.zeros(1),
        memory=float(memory),
    )


@compiled
def too_high(me: LoadMoves, rate: float) -> bool:
    """Whether levels have to become wider before they can hold this rate."""
    return bool(me.width[0] > 0 and rate >= LEVELS * me.width[0])


@compiled
def widen(me: LoadMoves) -> None:
    """Two levels become one; what was counted stays."""
    half = LEVELS // 2
    me.width[0] *= 2.0
    me.last[0] = me.last[0] // 2 if me.last[0] >= 0 else -1
    for level in range(LEVELS):
        if level < half:
            left, right = 2 * level, 2 * level + 1
            # Where the load never was there is nothing to say about it.
            left = left if _visits(me, left) > 0 or _visits(me, right) == 0 else right
            right = right if _visits(me, right) > 0 or _visits(me, left) == 0 else left
            me.low[level], me.high[level] = me.low[left], me.high[right]
        else:
            _could_be_anything(me, level)
    for level in range(half):
        for following in range(half):
            me.counts[level, following] = (
                me.counts[2 * level, 2 * following]
                + me.counts[2 * level, 2 * following + 1]
                + me.counts[2 * level + 1, 2 * following]
                + me.counts[2 * level + 1, 2 * following + 1]
            )
    for level in range(LEVELS):
        for following in range(LEVELS):
            if level >= half or following >= half:
                me.counts[level, following] = 0.0


@compiled
def too_low(me: LoadMoves, rate: float) -> bool:
    """Whether the load has been so low for so long, and is, that its levels tell little apart."""
    return bool(0 < max(me.highest[0], rate) < _LOW * me.width[0])


@compiled
def narrow(me: LoadMoves) -> None:
    """Levels half as wide: of what was counted, every quarter is as likely as the others."""
    me.width[0] /= 2.0
    me.last[0] = -1
    for level in range(LEVELS - 1, -1, -1):
        low, high = me.low[level // 2], me.high[level // 2]
        _could_be_anything(me, level)
        if low < me.high[level] and high >= me.low[level]:
            me.low[level] = max(me.low[level], low)
            me.high[level] = min(me.high[level], high)
    for level in range(LEVELS - 1, -1, -1):  # from above: what is overwritten is not needed any more
        for following in range(LEVELS - 1, -1, -1):
            me.counts[level, following] = me.counts[level // 2, following // 2] / 4.0


@compiled
def learn_rate(me: LoadMoves, rate: float) -> int:
    """The level of this interval, counted as what followed the one before; -1 before the first load."""
    me.highest[0] = max(rate, _FADES * me.highest[0])
    if me.width[0] == 0.0:
        if rate <= 0.0:
            return -1
        me.width[0] = rate / _FIRST
        for each in range(LEVELS):
            _could_be_anything(me, each)
    level = level_of_rate(me, rate)
    share = 1.0 / (_visits(me, level) + 2.0)
    me.low[level] = min(rate, me.low[level] + share * (rate - me.low[level]))
    me.high[level] = max(rate, me.high[level] + share * (rate - me.high[level]))
    before = me.last[0]
    if before >= 0:
        _be_surprised(me, before, level)
        me.counts[before, level] += 1.0
        if _visits(me, before) > me.memory:
            for following in range(LEVELS):
                me.counts[before, following] *= 0.5
    me.last[0] = level
    return level


@compiled
def _be_surprised(me: LoadMoves, before: int, level: int) -> None:
    """By a move that hardly any before it was as large as, where enough of them are known."""
    visits, as_large = _visits(me, before), 0.0
    if visits < _KNOWN:
        return
    for following in range(LEVELS):
        if (level >= before and following >= level) or (level <= before and following <= level):
            as_large += me.counts[before, following]
    me.surprise[0] += _LATELY * ((1.0 if as_large < _RARE * visits else 0.0) - me.surprise[0])


@compiled
def forgot(me: LoadMoves) -> bool:
    """Whether the load moves otherwise than it used to, so that most of what was counted is forgotten."""
    if me.surprise[0] <= _TOO_OFTEN:
        return False
    me.surprise[0] = 0.0
    for level in range(LEVELS):
        visits = _visits(me, level)
        if visits > _KNOWN:
            for following in range(LEVELS):
                me.counts[level, following] *= _KNOWN / visits
    return True


@compiled
def _visits(me: LoadMoves, level: int) -> float:
    total = 0.0
    for following in range(LEVELS):
        total += me.counts[level, following]
    return total


@compiled
def _could_be_anything(me: LoadMoves, level: int) -> None:
    me.low[level] = level * me.width[0]
    me.high[level] = (level + 1) * me.width[0]


@compiled
def share_above(me: LoadMoves, level: int, limit: float) -> float:
    """How much of the time at this level the load is above a limit."""
    low, high = me.low[level], me.high[level]
    if limit >= high:
        return 0.0
    return float((high - limit) / (high - low)) if limit > low else 1.0


@compiled
def level_of_rate(me: LoadMoves, rate: float) -> int:
    return int(min(rate / me.width[0], LEVELS - 1.0))


@compiled
def fill_transitions(me: LoadMoves, probability: Floats, borrowed: Floats) -> None:
    """Probabilities of the following level, a row for each; `borrowed` is room for one of them."""
    for level in range(LEVELS):
        total = 0.0
        for following in range(LEVELS):
            near = _GUESSED / 3.0 * 0.5 ** abs(following - level)
            borrowed[following] = near
            total += near
        for other in range(max(level - _REACH, 0), min(level + _REACH + 1, LEVELS)):
            if other == level:
                continue
            weight = np.exp(-abs(other - level) / _NEIGHBOUR)
            for following in range(LEVELS):
                count = me.counts[other, following]
                if count > 0.0:
                    place = min(max(following + level - other, 0), LEVELS - 1)
                    borrowed[place] += weight * count
                    total += weight * count
        counted = 0.0
        for following in range(LEVELS):
            counted += me.counts[level, following]
        for following in range(LEVELS):
            guess = _BORROWED * borrowed[following] / total
            share = (me.counts[level, following] + guess) / (counted + _BORROWED)
            probability[level, following] = share if share > _NEGLIGIBLE else 0.0
