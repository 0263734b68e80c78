"""What tasks take whatever is in them, against batches made of a known overhead and time per tuple."""

import pytest

from penstock.perf.overhead import overhead_s

# As Spark reported them of a query that waits 20 ms for a tuple, in eight tasks: first on one executor, with
# batches of three sizes, then two batches on an executor that was new and cold.
_MEASURED = [
    *[(160, 3.43), (160, 3.44), (120, 2.60), (120, 2.60), (120, 2.67), (120, 2.66), (120, 2.67), (120, 2.59)],
    *[(120, 2.55), (120, 2.61), (120, 2.60), (80, 1.86), (120, 2.62), (80, 1.84), (120, 2.64), (80, 1.88)],
]
_COLD = [(40, 2.96), (120, 5.08)]


def test_the_overhead_of_made_batches_is_found() -> None:
    assert overhead_s([(n, 0.3 + 0.02 * n) for n in (40, 40, 60, 80, 100, 120)]) == pytest.approx(0.3)


def test_measured_batches_leave_the_20_ms_a_tuple_waits() -> None:
    per_batch_s = overhead_s(_MEASURED)
    assert per_batch_s is not None
    left = [(busy_s - per_batch_s) / n for n, busy_s in _MEASURED]
    assert sum(left) / len(left) == pytest.approx(0.020, rel=0.05)


def test_cold_executors_hardly_move_it() -> None:
    assert overhead_s([*_MEASURED, *_COLD]) == pytest.approx(overhead_s(_MEASURED), abs=0.1)


@pytest.mark.parametrize(
    "batches",
    [
        [],
        [(100, 2.0)] * 20,  # all alike
        [(100, 2.0)] * 20 + [(40, 1.5), (160, 4.0)],  # too few of another size
        [(40, 2.0)] * 5 + [(80, 1.0)] * 5,  # what takes less, the more there is, is no work on tuples
    ],
)
def test_batches_that_tell_nothing_say_so(batches: list[tuple[float, float]]) -> None:
    assert overhead_s(batches) is None
