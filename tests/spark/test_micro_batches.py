"""The model of micro-batches, calibrated at one load, against what Spark takes at another."""

import pytest

from penstock.bench.micro_batches import Times, predicted, run_at

pytestmark = pytest.mark.spark

_REPLICAS, _LOW, _HIGH = 2, 20.0, 60.0  # tuples/s of the 100 that two can take
# Means of some fifteen micro-batches, on machines that do other things as well. M/G/1 is wrong by 90 %.
_LARGEST_ERROR_PCT = 30.0


def test_what_was_measured_at_a_low_load_predicts_the_response_time_at_three_times_that() -> None:
    low, high = run_at(_REPLICAS, (_LOW, _HIGH), Times(warm_s=15.0, settling_s=6.0, judged_s=9.0))
    found = predicted(low, high)
    print(found)
    assert high.rate == pytest.approx(_HIGH, rel=0.1)
    assert abs(found.error_pct) <= _LARGEST_ERROR_PCT, str(found)
    assert found.queue_s < 0.5 * found.measured_s, "a queue of single tuples knows no batches"
