"""The model of micro-batches against a simulation of them, and against batches measured on Spark."""

import subprocess
import sys
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.domain.application import Batching
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.perf.deployments import deployments, handle_of
from penstock.perf.micro_batch import (
    Batch,
    Calibration,
    MicroBatches,
    attainable_s,
    calibrated,
    fixed_part_s,
)
from penstock.perf.operator import response_time, throughput
from penstock.perf.queueing import (
    capacity,
    corrected,
    load,
    m_g_1,
    micro_batches,
    queue_as_known,
    replica_response_time,
    waiting_time,
)


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
    # The small ones after it are nearly all fixed part, and do not count as slower.
    assert known.tuple_s == pytest.approx(0.02 + 0.03 / 80)
    slower = calibrated([*batches, *batches * 30], tuples_s=[*measured, *([0.03] * 120)]).model()
    assert slower is not None
    assert slower.tuple_s == pytest.approx(0.03)


def test_an_operator_that_takes_five_times_as_long_is_known_as_such() -> None:
    """A service that has become slow: what the tasks measure, not a fixed part that has grown."""
    usual = [Batch(40.0, 2.0, 0.3 + 0.02 * 20)] * 20
    slow = [Batch(120.0, 2.0, 0.3 + 0.1 * 60)] * 120
    known = calibrated([*usual, *slow], tuples_s=[*[0.02] * 20, *[0.1] * 120]).model()
    assert known is not None
    assert known.tuple_s == pytest.approx(0.1)
    assert known.fixed_s == pytest.approx(0.3, rel=0.1)


def test_a_batch_that_something_disturbed_may_be_quicker_but_not_slower_by_that() -> None:
    known = calibrated([Batch(80.0, 1.0, 0.3 + 1.6)], tuples_s=[0.02])
    slow, quick = Batch(80.0, 1.0, 2.4 + 1.6), Batch(80.0, 1.0, 0.1 + 1.6)
    assert known.seen(slow, kept=1, tuple_s=0.02, disturbed=True).fixed_s == pytest.approx(0.3)
    assert known.seen(slow, kept=1, tuple_s=0.02).fixed_s == pytest.approx(0.3 + 0.2 * (0.65 - 0.3))
    assert known.seen(quick, kept=1, tuple_s=0.02, disturbed=True).fixed_s == pytest.approx(0.2)


def test_while_a_backlog_is_worked_off_less_is_kept_free() -> None:
    """100 t/s of 20 ms keep 2 replicas busy: 3 at .7. With 20 t/s of backlog, 2.4 at .8 are 3 still."""
    model = MicroBatches(fixed_s=0.1, tuple_s=0.02)
    for backlog, wanted in ((0.0, 3), (200.0, 3), (600.0, 4)):
        found = model.replicas_for(100, 5.0, most=9, busiest=0.7, backlog=backlog, drain_s=10)
        assert found == wanted


@pytest.mark.parametrize(
    ("bound_s", "alone_s", "wanted"), [(2.1, 8, 2), (28, 8, 1), (28, 1000, 2), (28, 0, 1)]
)
def test_under_a_slack_bound_replicas_may_be_busier(bound_s: float, alone_s: float, wanted: int) -> None:
    """35 t/s of 20.5 ms are .72 of one, 1.6 s a tuple. Half as many again, 1.025, let its batches grow by a
    fortieth and .3 s each: 2.4 s after 8 s, 3.6 s a tuple; after 1000 s they would be beyond every bound."""
    model = MicroBatches(fixed_s=0.3, tuple_s=0.0205)
    assert model.response_time_s(35, 1) == pytest.approx(1.6, abs=0.05)
    assert model.replicas_for(35, bound_s, most=9, busiest=0.7, alone_s=alone_s) == wanted
    assert model.replicas_for(45, bound_s, most=9, busiest=0.7, alone_s=alone_s) == 2, ".92: full"


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


# --- the same formula, compiled ------------------------------------------------------------


@settings(deadline=None)
@given(
    fixed_s=st.floats(0, 5),
    tuple_s=st.floats(1e-5, 0.5),
    trigger_s=st.one_of(st.just(0.0), st.floats(0, 5)),
    rate=st.floats(0, 2000),
    speed=st.floats(0.05, 30),
)
def test_what_kernels_are_told_is_what_python_is_told_to_the_digit(
    fixed_s: float, tuple_s: float, trigger_s: float, rate: float, speed: float
) -> None:
    plain = MicroBatches(fixed_s=fixed_s, tuple_s=tuple_s, trigger_s=trigger_s)
    queue = micro_batches(tuple_s, Batching(fixed_s=fixed_s, trigger_s=trigger_s))
    assert replica_response_time(queue, rate, speed) == plain.response_time_s(rate, speed)


@pytest.mark.parametrize(
    ("batching", "rate", "speed"),
    [
        (Batching(fixed_s=0.39), 60.0, 1.0),
        (Batching(fixed_s=0.2, trigger_s=2.0), 100.0, 2.0),
        (Batching(fixed_s=0.2, trigger_s=0.5), 100.0, 1.0),
    ],
)
def test_a_compiled_response_time_is_that_of_batches_played_one_after_the_other(
    batching: Batching, rate: float, speed: float
) -> None:
    model = MicroBatches(fixed_s=batching.fixed_s, tuple_s=0.008, trigger_s=batching.trigger_s)
    _, response_s = played(model, rate, speed)
    queue = micro_batches(0.008, batching)
    assert replica_response_time(queue, rate, speed) == pytest.approx(response_s, rel=0.02)


@settings(deadline=None)
@given(fixed_s=st.floats(0.01, 2), rho=st.floats(0, 2), speed=st.floats(0.1, 10))
def test_load_and_capacity_are_of_the_work_alone_and_a_full_replica_never_settles(
    fixed_s: float, rho: float, speed: float
) -> None:
    queue = micro_batches(0.01, Batching(fixed_s=fixed_s))
    assert capacity(queue, speed) == pytest.approx(100 * speed)
    rate = rho * 100 * speed
    assert load(queue, rate, speed) == pytest.approx(rho)
    if abs(rho - 1) > 1e-9:
        assert (replica_response_time(queue, rate, speed) == inf) == (rho > 1)


def test_a_tuple_waits_whenever_it_is_not_itself_worked_on() -> None:
    """T = .3 / (1 - .4) = .5 s, R = .75 s, of which 10 ms are its own."""
    queue = micro_batches(0.01, Batching(fixed_s=0.3))
    assert replica_response_time(queue, 40.0, 1.0) == pytest.approx(0.75)
    assert waiting_time(queue, 40.0, 1.0) == pytest.approx(0.74)
    assert waiting_time(queue, 100.0, 1.0) == inf
    quick = micro_batches(0.01, Batching(fixed_s=0.0))  # hardly a batch: nobody waits less than not at all
    assert waiting_time(quick, 40.0, 1.0) == 0.0


def test_a_measured_wait_corrects_a_queue_and_leaves_micro_batches_to_their_own_calibration() -> None:
    queue = micro_batches(0.01, Batching(fixed_s=0.3))
    assert corrected(queue, rate=40.0, measured_wait_s=3.0) == queue


def test_without_micro_batches_an_operator_is_m_g_1() -> None:
    known = queue_as_known(0.01, 0.5, None)
    assert replica_response_time(known, 50.0, 1.0) == replica_response_time(m_g_1(0.01, 0.5), 50.0, 1.0)
    assert not known.in_batches
    assert queue_as_known(0.01, 0.5, Batching(fixed_s=0.0)).in_batches


SLOW, FAST = NodeType(name="slow", speedup=1.0, price=1.0), NodeType(name="fast", speedup=4.0, price=4.0)


@pytest.mark.parametrize("counts", [(1, 0), (3, 0), (0, 2), (2, 1)])
def test_a_batch_ends_when_the_slowest_of_its_replicas_does(counts: tuple[int, int]) -> None:
    """Each has the same number of tuples: 8 ms on the slow ones, 2 ms on the fast ones."""
    space = deployments((SLOW, FAST), 3)
    here = handle_of(space, Replicas(counts))
    slowest = SLOW.speedup if counts[0] else FAST.speedup
    truth = MicroBatches(fixed_s=0.39, tuple_s=0.008, trigger_s=0.5)
    _, response_s = played(truth, 90.0, sum(counts) * slowest)
    queue = micro_batches(0.008, Batching(fixed_s=0.39, trigger_s=0.5))
    assert response_time(queue, space, here, 90.0) == pytest.approx(response_s, rel=0.02)
    assert throughput(queue, space, here, 1e9) == pytest.approx(counts[0] * 125 + counts[1] * 500)


def test_python_predicts_without_waiting_for_numba() -> None:
    program = (
        "import sys; from penstock.perf.micro_batch import MicroBatches; "
        "print(MicroBatches(fixed_s=.3, tuple_s=.01).response_time_s(40, 1), 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    response_s, loaded = done.stdout.split()
    assert float(response_s) == pytest.approx(0.75)
    assert loaded == "False"


def test_a_bound_that_no_replicas_can_keep_is_half_as_much_again_as_an_empty_batch() -> None:
    """An empty batch of .4 s: R = .6 s, and .9 s is half as much again; 2 s every 3 s: R = 3.5 s."""
    quick, slow = MicroBatches(fixed_s=0.4, tuple_s=1), MicroBatches(fixed_s=2, tuple_s=1, trigger_s=3)
    assert attainable_s(2.0, quick.response_time_s(0, 1)) == 2.0
    assert attainable_s(0.5, quick.response_time_s(0, 1)) == pytest.approx(0.9)
    assert attainable_s(0.7, quick.response_time_s(0, 1)) == pytest.approx(0.9)
    assert attainable_s(2.0, slow.response_time_s(0, 1)) == pytest.approx(5.25)


@pytest.mark.parametrize("fixed_s", [-0.1, inf, float("nan")])
def test_a_fixed_part_that_cannot_be_is_refused(fixed_s: float) -> None:
    with pytest.raises(InputError, match="micro-batches: fixed_s"):
        Batching(fixed_s=fixed_s)
    with pytest.raises(InputError, match="micro-batches: trigger_s"):
        Batching(fixed_s=0.1, trigger_s=fixed_s)


def test_the_fixed_part_of_many_batches_is_that_of_most_of_them() -> None:
    cold = [Batch(40, 2, 9.0 + 0.02 * 20), Batch(10, 1, 3.0 + 0.2)]
    usual = [
        Batch(tuples, speed, 0.1 + 0.02 * tuples / speed) for tuples, speed in ((10, 1), (70, 2), (9, 3))
    ]
    assert fixed_part_s([*cold, *usual], 0.02) == pytest.approx(0.1)
    assert fixed_part_s([Batch(10, 1, 0.1)], 0.02) == 0.0, "faster than its tuples: no fixed part, not less"
    with pytest.raises(InputError, match="none were measured"):
        fixed_part_s([], 0.02)


def test_what_tasks_take_is_shared_by_replicas_and_asks_for_them() -> None:
    """200 tasks of 30 ms a batch: T(k) = (.3 + 6 / k) / (1 - .2 / k), 1.5 T is 11.8, 5.5 and 3.7 s."""
    known = Calibration()
    for replicas in (1, 2, 1, 2):
        seconds = (0.3 + 6.0 / replicas) / (1 - 0.2 / replicas)
        batch = Batch(40 * seconds, replicas, seconds)
        known = known.seen(batch, kept=0.9, tuple_s=0.005, shared_s=6.0)
    model = known.model()
    assert model is not None
    assert (model.fixed_s, model.tuple_s, model.shared_s) == pytest.approx((0.3, 0.005, 6.0))
    assert model.response_time_s(40.0, 1.0) == pytest.approx(1.5 * 6.3 / 0.8)
    assert model.replicas_for(40.0, 4.0, most=8) == 3


def test_what_tasks_take_can_become_known_and_unknown() -> None:
    batch = Batch(100.0, 1.0, 2.8)
    known = Calibration().seen(batch, kept=0.9, tuple_s=0.023)
    told = known.seen(batch, kept=0.9, tuple_s=0.02, shared_s=0.3).model()
    assert told is not None
    assert (told.tuple_s, told.shared_s) == (0.02, 0.3)
    again = (
        known.seen(batch, kept=0.9, tuple_s=0.02, shared_s=0.3).seen(batch, kept=0.9, tuple_s=0.023).model()
    )
    assert again is not None
    assert (again.tuple_s, again.shared_s) == (0.023, 0.0)
