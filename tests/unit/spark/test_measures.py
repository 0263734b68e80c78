"""From reports of micro-batches to what managers see."""

import numpy as np
import pytest

from penstock.runtimes.spark.measures import service, skew, utilisations, waits
from penstock.runtimes.spark.taps import TaskReport


def task(busy_s: float) -> TaskReport:
    return TaskReport(
        file="f", tuples=1, partition=0, host="h", began_s=10.0, ended_s=10.0 + busy_s, inner=()
    )


def test_response_times_are_weighted_by_tuples() -> None:
    took = waits([(10.0, ((9.0, 90), (8.0, 9), (0.0, 1)))])
    assert took.mean_s == pytest.approx((90 * 1 + 9 * 2 + 1 * 10) / 100)
    assert (took.p50_s, took.p95_s, took.p99_s) == (1.0, 2.0, 2.0)


def test_percentiles_are_those_of_the_tuples_one_by_one() -> None:
    rng = np.random.default_rng(1)
    times, counts = rng.uniform(0, 9, 40), rng.integers(1, 30, 40)
    took = waits([(0.0, tuple((-float(t), int(n)) for t, n in zip(times, counts, strict=True)))])
    each = np.repeat(times, counts)
    assert took.p95_s == pytest.approx(np.percentile(each, 95, method="inverted_cdf"))
    assert took.p50_s == pytest.approx(np.percentile(each, 50, method="inverted_cdf"))


def test_where_nothing_was_processed_nothing_is_known() -> None:
    assert waits([]).mean_s is None
    assert waits([(5.0, ((1.0, 0),))]).p99_s is None
    assert service([], one_stage=True).mean_s is None
    assert service([(0, [task(1.0)])], one_stage=True).mean_s is None
    assert utilisations({}, {"a": 3.0}, 5.0) is None
    assert skew(None) is None
    assert skew([0.0, 0.0]) is None


@pytest.mark.parametrize("one_stage", [True, False])
def test_mean_and_variance_of_service_times_are_recovered_from_tasks(one_stage: bool) -> None:
    """Tasks of n tuples with gamma service times: mean 4 ms, SCV .5."""
    rng = np.random.default_rng(2)
    mean, scv = 0.004, 0.5
    batches = []
    for _ in range(3000):
        tuples = int(rng.integers(20, 60)) * 2
        halves = [float(rng.gamma(tuples / 2 / scv, mean * scv)) for _ in range(2)]  # a sum of gammas
        batches.append((tuples, [task(half) for half in halves]))
    found = service(batches, one_stage=one_stage)
    assert found.mean_s == pytest.approx(mean, rel=0.01)
    assert found.variance_s2 == pytest.approx(scv * mean**2, rel=0.08)


def test_one_sample_has_a_mean_and_no_variance() -> None:
    alone = service([(10, [task(1.0)])], one_stage=True)
    assert alone.mean_s == pytest.approx(0.1)
    assert alone.variance_s2 is None


def test_a_replica_is_judged_only_when_it_was_there_all_the_time() -> None:
    before, now = {"a": 10.0, "gone": 1.0}, {"a": 12.5, "new": 4.0}
    assert utilisations(before, now, 5.0) == (0.5,)
    assert skew([0.9, 0.3, 0.3]) == pytest.approx(0.9 / 0.5)
