"""Percentiles over more values than can be kept: a histogram with logarithmic buckets."""

from math import floor, log

_WIDTH = 1.01
_LEAST_S, _MOST_S = 1e-4, 1e7
_LOWEST, _HIGHEST = floor(log(_LEAST_S) / log(_WIDTH)), floor(log(_MOST_S) / log(_WIDTH))
MOST_BUCKETS = _HIGHEST - _LOWEST + 1


class Histogram:
    """How long tuples took, in at most 2,546 buckets, however many there were.

    A bucket is 1 % wide, and a percentile is the mean of what is in the bucket that it falls into. So it is
    less than 1 % off the exact one, and exact where all in that bucket are the same. Below .1 ms all is one
    bucket (less than .1 ms off), and so is all that took longer than 115 days.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, tuple[int, float]] = {}  # -> (tuples, seconds of all of them)

    def __len__(self) -> int:
        return len(self._buckets)

    def add(self, seconds: float, tuples: int) -> None:
        if not tuples:
            return
        bucket = _bucket(seconds)
        before, before_s = self._buckets.get(bucket, (0, 0.0))
        self._buckets[bucket] = before + tuples, before_s + seconds * tuples

    def copy(self) -> "Histogram":
        copied = Histogram()
        copied._buckets = dict(self._buckets)
        return copied

    def percentile(self, share: float) -> float | None:
        """The least time within which this share of the tuples was done; None without any."""
        buckets = sorted(self._buckets.items())
        rank, passed, mean_s = share * sum(tuples for _, (tuples, _) in buckets), 0, None
        for _, (tuples, seconds) in buckets:
            passed, mean_s = passed + tuples, seconds / tuples
            if passed >= rank:
                break
        return mean_s


def _bucket(seconds: float) -> int:
    if seconds <= _LEAST_S:
        return _LOWEST
    return floor(log(min(seconds, _MOST_S)) / log(_WIDTH))
