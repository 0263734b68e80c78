"""From reports of micro-batches to what managers see."""

from pathlib import Path

import numpy as np
import pytest

from penstock.runtimes.spark.measures import (
    Busyness,
    busy_shares,
    service,
    skew,
    utilisations,
    waits,
    with_overload,
)
from penstock.runtimes.spark.taps import EntryReport, TaskReport, entries, entry_tap


def task(busy_s: float) -> TaskReport:
    return TaskReport(file="f", tuples=1, executor="h", began_s=10.0, ended_s=10.0 + busy_s)


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


def on(executor: str, busy_s: float) -> EntryReport:
    return EntryReport(executor=executor, busy_s=busy_s)


def test_a_replica_is_as_busy_as_its_load_whatever_the_batches_begin_and_end_with() -> None:
    """100 tuples/s of 4 ms on two nodes, in micro-batches of 1 and of 5 s: .2 each, by the law."""
    for period_s in (1.0, 5.0):
        share_s = 100 * period_s * 0.004 / 2
        tasks = [on(one, share_s) for _ in range(6) for one in ("a", "b")]
        found = busy_shares(["b", "a"], tasks, began_s=50.0, ended_s=50.0 + 6 * period_s)
        assert found == pytest.approx((0.2, 0.2))


def test_a_replica_without_tasks_was_idle_and_without_a_batch_before_nothing_is_known() -> None:
    assert busy_shares(["a", "b"], [on("a", 1.0), on("gone", 9.0)], began_s=0.0, ended_s=2.0) == (0.5, 0.0)
    assert busy_shares(["a"], [on("a", 1.0)], began_s=None, ended_s=2.0) is None
    assert busy_shares([], [], began_s=0.0, ended_s=2.0) is None


def test_after_a_time_without_work_replicas_are_judged_by_the_time_since() -> None:
    """300 s idle, then 4.9 of 5 s busy: .98, not 1.6 %."""
    busyness = Busyness()
    assert busyness.over(["a"], [(10.0, [on("a", 1.0)])]) is None, "nobody knows since when"
    assert busyness.idle(["a"], 310.0) == (0.0,)
    assert busyness.over(["a"], []) is None
    assert busyness.over(["a"], [(315.0, [on("a", 4.9)])]) == pytest.approx((0.98,))


def test_few_tuples_on_many_tasks_take_what_they_take() -> None:
    """Seven and three tuples of 10 ms, dealt to two tasks each."""
    odd = service([(7, [task(0.04), task(0.03)]), (3, [task(0.02), task(0.01)])], one_stage=True)
    assert odd.mean_s == pytest.approx(0.01)


def test_what_entry_taps_say_is_heard_once(tmp_path: Path) -> None:
    import pyarrow

    rows = [pyarrow.RecordBatch.from_pydict({"id": [1, 2]})]
    assert list(entry_tap(str(tmp_path))(iter(rows))) == rows
    (said,) = entries(tmp_path)
    assert said.busy_s >= 0
    assert entries(tmp_path) == ()


def test_stages_before_a_shuffle_count_as_service_time() -> None:
    alone = service([(10, [on("a", 0.5), task(1.0)])], one_stage=False)
    assert alone.mean_s == pytest.approx(0.15)


def test_one_sample_has_a_mean_and_no_variance() -> None:
    alone = service([(10, [task(1.0)])], one_stage=True)
    assert alone.mean_s == pytest.approx(0.1)
    assert alone.variance_s2 is None


def test_a_replica_is_judged_only_when_it_was_there_all_the_time() -> None:
    before, now = {"a": 10.0, "gone": 1.0}, {"a": 12.5, "new": 4.0}
    assert utilisations(before, now, 5.0) == (0.5,)
    assert skew([0.9, 0.3, 0.3]) == pytest.approx(0.9 / 0.5)


@pytest.mark.parametrize(
    ("shares", "rate", "service_s", "utilisation"),
    [
        ((0.9, 0.95), 60.0, 0.02, (0.9, 0.95)),  # .6 is needed: they work off what has waited
        ((0.9,), 200.0, 0.02, (4.0,)),
        ((1.0, 0.5), 150.0, 0.02, (2.0, 1.0)),
        ((0.0, 0.0), 200.0, 0.02, (0.0, 0.0)),  # nothing has ended yet
        ((0.9,), None, 0.02, (0.9,)),
        (None, 200.0, 0.02, None),
    ],
)
def test_utilisation_is_above_1_where_more_arrives_than_can_be_served(
    shares: tuple[float, ...] | None,
    rate: float | None,
    service_s: float,
    utilisation: tuple[float, ...] | None,
) -> None:
    assert with_overload(shares, rate, service_s) == (
        None if utilisation is None else pytest.approx(utilisation)
    )
