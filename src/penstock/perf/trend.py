"""Where a load stands and how fast it rises, told from how much it varies by chance.

Tuples that arrive independently of each other vary by the square root of their number, so the rate of
an interval of d seconds varies by sqrt(x / d). Over a few readings, a line tells whether the load moves:
its slope counts from three standard errors on, and if most steps from one reading to the next go that
way; if only one or two do, the load has jumped, and where it will go from there is not known.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from statistics import fmean, median
from typing import NamedTuple

_BY_CHANCE = 3.0  # standard deviations
_STEADY = 0.5  # of the slope: the median step of a load that moves, not jumps
_LEAST_SHARE = 0.05  # of the load: real arrivals are never quite independent of each other

Reading = tuple[float, float]  # (moment, tuples/s over the interval that ends then)


class Trend(NamedTuple):
    """A load at the end of the latest reading."""

    rate: float  # tuples/s
    rise: float = 0.0  # tuples/s per second; negative where it falls


def trend(readings: Sequence[Reading]) -> Trend:
    """From the latest readings, in the order of time; at least one."""
    now_s, latest = readings[-1]
    if len(readings) < 3:
        return Trend(latest)
    times, rates = [at_s for at_s, _ in readings], [rate for _, rate in readings]
    interval_s = (times[-1] - times[0]) / (len(times) - 1)
    middle_s, mean = fmean(times), fmean(rates)
    spread = sum((at_s - middle_s) ** 2 for at_s in times)
    if not (interval_s > 0 and spread > 0):
        return Trend(latest)
    chance = max(sqrt(mean / interval_s), _LEAST_SHARE * mean)  # of one reading
    slope = sum((at_s - middle_s) * rate for at_s, rate in readings) / spread
    if abs(slope) > _BY_CHANCE * chance / sqrt(spread):
        step = median((later - rate) / interval_s for rate, later in pairwise(rates))
        # A line through a jump is steep, but most of its steps go nowhere.
        if step / slope < _STEADY:
            return Trend(latest)
        # A rate is the mean of its interval, so the line is at its end half an interval on.
        return Trend(max(mean + slope * (now_s + interval_s / 2 - middle_s), 0.0), slope)
    before = fmean(rates[:-1])
    jumped = abs(latest - before) > _BY_CHANCE * chance * sqrt(1 + 1 / (len(rates) - 1))
    return Trend(latest if jumped else mean)
