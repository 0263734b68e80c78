"""What the tasks of a micro-batch take whatever is in them, told apart from what they take per tuple."""

from collections.abc import Sequence
from itertools import combinations
from statistics import median
from typing import NamedTuple

_APART = 0.2  # of the batches' usual size, by which another has to differ to tell anything
_LEAST, _LEAST_APART = 10, 3  # batches in all, and of another size: a few may be odd, or cold
_NOTICED = 0.2  # of what batches take: work on tuples, less of which is lost in noise
_FITS = 0.25  # of what batches take: how far they may be from a line, as a rule


class TaskTime(NamedTuple):
    """Of a micro-batch, in all its tasks together: those that run at the same time share it."""

    batch_s: float  # whatever is in it
    tuple_s: float

    def of(self, tuples: float) -> float:
        return self.batch_s + self.tuple_s * tuples

    def fits(self, batches: Sequence[tuple[float, float]]) -> bool:
        """Whether these still are as it says."""
        off = [abs(self.of(tuples) - seconds) / seconds for tuples, seconds in batches if seconds > 0]
        return bool(off) and median(off) <= _FITS


def told(batches: Sequence[tuple[float, float]]) -> TaskTime | None:
    """From (tuples, seconds in tasks) of several; None where they are too few or too much alike.

    The line through them has the median of all slopes between two (Theil and Sen): what ran on a cold
    executor took twice as long, and counts as one batch among others.
    """
    if len(batches) < _LEAST:
        return None
    usual = median(tuples for tuples, _ in batches)
    if sum(1 for tuples, _ in batches if abs(tuples - usual) > _APART * usual) < _LEAST_APART:
        return None
    tuple_s = median(
        (one[1] - other[1]) / (one[0] - other[0])
        for one, other in combinations(batches, 2)
        if abs(one[0] - other[0]) > _APART * usual
    )
    if tuple_s * usual < _NOTICED * median(seconds for _, seconds in batches):
        return None
    batch_s = median(seconds - tuple_s * tuples for tuples, seconds in batches)
    # No batch has taken less than what every batch takes.
    least_s = min(seconds for _, seconds in batches)
    return TaskTime(min(max(batch_s, 0.0), least_s), tuple_s)
