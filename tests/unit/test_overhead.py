"""What tasks take whatever is in them, against batches made of a known overhead and time per tuple."""

import pytest

from penstock.perf.overhead import TaskTime, told

# As Spark reported them of a query that waits 20 ms for a tuple, in eight tasks on one executor, in batches
# of three sizes; and two on an executor that was new and cold.
_MEASURED: list[tuple[float, float]] = [
    *[(160, 3.43), (160, 3.44), (120, 2.60), (120, 2.60), (120, 2.67), (120, 2.66), (120, 2.67), (120, 2.59)],
    *[(120, 2.55), (120, 2.61), (120, 2.60), (80, 1.86), (120, 2.62), (80, 1.84), (120, 2.64), (80, 1.88)],
]
_COLD = [(40.0, 2.96), (120.0, 5.08)]


def test_the_line_of_made_batches_is_found() -> None:
    found = told([(n, 0.3 + 0.02 * n) for n in (40, 40, 60, 80, 100, 120) * 2])
    assert found is not None
    assert found == pytest.approx((0.3, 0.02))


@pytest.mark.parametrize("batches", [_MEASURED, [*_MEASURED, *_COLD]])
def test_measured_batches_tell_the_20_ms_a_tuple_waits(batches: list[tuple[float, float]]) -> None:
    found = told(batches)
    assert found is not None
    assert found.tuple_s == pytest.approx(0.020, rel=0.1)
    assert found.batch_s == pytest.approx(0.3, abs=0.1)


def test_no_batch_has_taken_less_than_what_every_batch_takes() -> None:
    found = told([(100, 1.0), (102, 0.5), (150, 1.2), (200, 1.3), (300, 1.5)] * 3)
    assert found is not None
    assert found.batch_s <= 0.5


@pytest.mark.parametrize(
    "batches",
    [
        [],
        [(100, 2.0)] * 20,  # all alike
        [(100, 2.0)] * 20 + [(40, 1.5), (160, 4.0)],  # too few of another size
        [(40, 3.0), (120, 4.0), (200, 4.6), (280, 6.2)],  # a query that has just begun, and is cold
        [(1, 0.30), (2, 0.35), (1, 0.33), (2, 0.36)] * 5,  # next to nothing in them
        [(40, 2.0)] * 8 + [(80, 1.0)] * 5,  # what takes less, the more there is, is no work on tuples
    ],
)
def test_batches_that_tell_nothing_say_so(batches: list[tuple[float, float]]) -> None:
    assert told(batches) is None


def test_what_was_told_fits_until_batches_are_otherwise() -> None:
    known = TaskTime(0.3, 0.02)
    assert known.fits([(100, 2.3)] * 20)
    assert known.fits([(100, 2.3)] * 20 + _COLD)
    assert not known.fits([(100, 4.3)] * 20)
    assert not known.fits([])
