"""Sources that Spark reads itself: when their tuples came."""

import pytest

from penstock.runtimes.spark.running import evenly


@pytest.mark.parametrize("tuples", [1, 3, 4, 1001])
def test_every_tuple_came_at_some_time_between(tuples: int) -> None:
    groups = evenly(tuples, 10.0, 14.0)
    assert sum(count for _, count in groups) == tuples
    assert all(10.0 < at_s < 14.0 and count > 0 for at_s, count in groups)
    assert sum(at_s * count for at_s, count in groups) / tuples == pytest.approx(12.0, abs=0.5)
