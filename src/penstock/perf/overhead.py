"""What the tasks of a micro-batch take whatever is in them, told apart from what they take per tuple."""

from collections.abc import Sequence
from itertools import combinations
from statistics import median

_APART = 0.2  # of the batches' usual size, by which another has to differ to tell anything
_LEAST = 3  # batches of another size: a single one may be odd


def overhead_s(batches: Sequence[tuple[float, float]]) -> float | None:
    """Of a batch, from (tuples, seconds in tasks) of several; None where they are too much alike.

    The line through them has the median of all slopes between two (Theil and Sen): what ran on a cold
    executor took twice as long, and counts as one batch among others.
    """
    if not batches:
        return None
    usual = median(tuples for tuples, _ in batches)
    if sum(1 for tuples, _ in batches if abs(tuples - usual) > _APART * usual) < _LEAST:
        return None
    slopes = [
        (one[1] - other[1]) / (one[0] - other[0])
        for one, other in combinations(batches, 2)
        if abs(one[0] - other[0]) > _APART * usual
    ]
    tuple_s = median(slopes)
    if tuple_s <= 0:
        return None
    return max(median(seconds - tuple_s * tuples for tuples, seconds in batches), 0.0)
