"""The model of micro-batches against a simulation of them, and against batches measured on Spark."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.errors import InputError
from penstock.perf.micro_batch import Batch, Calibration, MicroBatches, calibrated


def played(model: MicroBatches, rate: float, speed: float, *, seconds: float = 2000.0) -> tuple[float, float]:
    """Batches one after the other, tuple by tuple: mean duration and mean response time once settled."""
    arrivals = np.arange(1, int(rate * seconds)) / rate
    begins, taken = 0.0, 0
    durations, responses = [], []
    while begins < seconds:
        upto = int(np.searchsorted(arrivals, begins, side="right"))
        took = model.fixed_s + model.tuple_s * (upto - taken) / speed
        if begins > seconds / 2 and upto > taken:
            durations.append(took)
            responses.append(float(np.mean(begins + took - arrivals[taken:upto])))
        taken = upto
        begins += max(took, model.trigger_s)
    return float(np.mean(durations)), float(np.mean(responses))


@pytest.mark.parametrize(
    ("model", "rate", "speed"),
    [
        (MicroBatches(fixed_s=0.39, tuple_s=0.008), 60.0, 1.0),
        (MicroBatches(fixed_s=0.39, tuple_s=0.008), 300.0, 4.0),
        (MicroBatches(fixed_s=0.2, tuple_s=0.002, trigger_s=2.0), 100.0, 1.0),  # the trigger decides
        (MicroBatches(fixed_s=0.2, tuple_s=0.009, trigger_s=0.5), 100.0, 1.0),  # the work decides
    ],
)
def test_batches_and_response_times_are_those_of_batches_played_one_after_the_other(
    model: MicroBatches, rate: float, speed: float
) -> None:
    batch_s, response_s = played(model, rate, speed)
    assert model.batch_s(rate, speed) == pytest.approx(batch_s, rel=0.02)
    assert model.response_time_s(rate, speed) == pytest.approx(response_s, rel=0.02)


def test_what_was_measured_on_spark_is_predicted() -> None:
    """One replica at 60 tuples/s of 8 ms took .75 s a batch; four at 300 tuples/s took 1.05 s."""
    known = calibrated([Batch(tuples=60 * 0.75, speed=1, seconds=0.75)], tuples_s=[0.008]).model()
    assert known is not None
    assert known.fixed_s == pytest.approx(0.39)
    assert known.batch_s(300, 4) == pytest.approx(1.05, rel=0.1)


def test_a_load_that_fills_all_replicas_never_settles() -> None:
    model = MicroBatches(fixed_s=0.1, tuple_s=0.01)
    assert model.batch_s(200, 2) == inf
    assert model.response_time_s(200, 2) == inf
    assert model.batch_s(1, 0) == inf


@given(
    fixed_s=st.floats(0.01, 2),
    tuple_s=st.floats(0.0001, 0.05),
    trigger_s=st.floats(0, 2),
    rate=st.floats(0.1, 500),
    bound_s=st.floats(0.1, 20),
)
def test_the_fewest_replicas_within_the_bound(
    fixed_s: float, tuple_s: float, trigger_s: float, rate: float, bound_s: float
) -> None:
    model = MicroBatches(fixed_s=fixed_s, tuple_s=tuple_s, trigger_s=trigger_s)
    found = model.replicas_for(rate, bound_s, most=20)
    times = [model.response_time_s(rate, replicas) for replicas in range(1, 21)]
    assert times == sorted(times, reverse=True)  # a replica more never takes longer
    assert all(time > bound_s for time in times[: found - 1])
    near_s = 1.5 * model.response_time_s(0, 1)  # within this of the fixed part, more gain little
    assert times[found - 1] <= max(bound_s, near_s) or found == 20


def test_a_backlog_to_drain_asks_for_more() -> None:
    model = MicroBatches(fixed_s=0.2, tuple_s=0.01)
    assert model.replicas_for(150, 2.0, most=20) == 2
    assert model.replicas_for(150, 2.0, most=20, backlog=3000, drain_s=30) == 3


@given(
    fixed_s=st.floats(0.01, 2),
    tuple_s=st.floats(0.0005, 0.05),
    loads=st.lists(st.floats(1, 1000), min_size=3, max_size=30, unique=True),
)
def test_a_fit_finds_both_parts(fixed_s: float, tuple_s: float, loads: list[float]) -> None:
    if np.std(loads) < 0.3 * np.mean(loads):
        return  # all alike: not to be told apart
    known = calibrated([Batch(n, 2.0, fixed_s + tuple_s * n / 2.0) for n in loads], kept=0.9).model()
    assert known is not None
    if np.std(loads[-10:]) > 0.3 * np.mean(loads[-10:]):
        assert known.tuple_s == pytest.approx(tuple_s, rel=1e-3)
        assert known.fixed_s == pytest.approx(fixed_s, rel=1e-2, abs=1e-3)


def test_a_fit_follows_an_operator_that_has_become_slower() -> None:
    sizes = [20.0, 60.0, 100.0, 40.0] * 30
    before = [Batch(n, 1.0, 0.3 + 0.005 * n) for n in sizes]
    after = [Batch(n, 1.0, 0.3 + 0.015 * n) for n in sizes]
    known = calibrated([*before, *after], kept=0.95).model()
    assert known is not None
    assert known.tuple_s == pytest.approx(0.015, rel=0.02)


def test_a_batch_that_waited_for_a_cold_executor_moves_the_fixed_part_little() -> None:
    usual = [Batch(tuples, 1.0, 0.3 + 0.02 * tuples) for tuples in (5.0, 20.0, 10.0, 40.0)] * 5
    cold = Batch(30.0, 2.0, 12.0)
    known = calibrated([*usual, cold, *usual[:2]], tuples_s=[0.02] * 23).model()
    assert known is not None
    assert known.tuple_s == pytest.approx(0.02, rel=0.01)
    assert known.fixed_s == pytest.approx(0.3, rel=0.1)


def test_the_least_time_per_tuple_counts_for_a_task_also_begins_and_ends() -> None:
    sizes = [4.0, 80.0, 4.0, 4.0]
    measured = [0.02 + 0.03 / tuples for tuples in sizes]
    batches = [Batch(tuples, 1.0, 0.3 + 0.02 * tuples) for tuples in sizes]
    known = calibrated(batches, tuples_s=measured).model()
    assert known is not None
    assert known.tuple_s == pytest.approx(0.0204 * 1.02**2, rel=0.01)
    slower = calibrated([*batches, *batches * 30], tuples_s=[*measured, *([0.03] * 120)]).model()
    assert slower is not None
    assert slower.tuple_s == pytest.approx(0.03)


def test_before_the_first_batch_nothing_is_known() -> None:
    assert Calibration().model() is None


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="fixed_s=-1"):
        MicroBatches(fixed_s=-1, tuple_s=0.1)


def test_more_replicas_are_not_asked_for_when_a_batch_is_slow_whatever_is_in_it() -> None:
    """1.5 x 4 s is beyond 2 s with any number of replicas; two bring it to 1.5 x 5 s."""
    cold = MicroBatches(fixed_s=4.0, tuple_s=0.01)
    assert cold.replicas_for(40.0, 2.0, most=8) == 2
    assert cold.response_time_s(40.0, 2) <= 1.5 * 6.0 < cold.response_time_s(40.0, 1)
