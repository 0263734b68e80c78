"""How fast a load rises, told from how much it varies by chance.

Tuples that arrive independently of each other vary by the square root of their number, so the rates of
two intervals of d seconds differ by chance by sqrt((x + y) / d). A rise counts from three times that on,
and if it goes on for two intervals: a jump, or the burst of an operator that works off a backlog, is none.
"""

from collections.abc import Sequence
from math import sqrt

_BY_CHANCE = 3.0  # standard deviations
_LEAST_SHARE = 0.05  # of the load: real arrivals are never quite independent of each other

Reading = tuple[float, float]  # (moment, tuples/s over the interval that ends then)


def rise(readings: Sequence[Reading]) -> float:
    """Tuples/s per second, from the earlier reading that shows the steepest rise; 0 where none does."""
    if len(readings) < 3:
        return 0.0
    (_, first), (before_s, second), (now_s, now) = readings[-3:]
    interval_s = now_s - before_s
    if not (interval_s > 0 and first < second < now):
        return 0.0
    slopes = [
        (now - then) / (now_s - then_s)
        for then_s, then in readings[:-1]
        if now - then > _chance(now, then, interval_s)
    ]
    return max(slopes, default=0.0)


def _chance(now: float, then: float, interval_s: float) -> float:
    return max(_BY_CHANCE * sqrt((now + then) / interval_s), _LEAST_SHARE * now)
