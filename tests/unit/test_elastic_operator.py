"""The elastic operator against queueing theory, a recursion of its own, and pencil and paper."""

from typing import Any

import numpy as np
import pytest

from penstock.bench.plain_elastic import delivered_s
from penstock.compiled import Floats
from penstock.domain.errors import InputError
from penstock.runtimes.sim.elastic.costs import Costs
from penstock.runtimes.sim.elastic.operator import ElasticOperator, Measured
from penstock.runtimes.sim.elastic.protocol import Protocol

FREE = Costs(
    split_s=0.0,
    merge_s=0.0,
    insert_ticks=0.0,
    message_s=0.0,
    save_s=0.0,
    acquire_s=0.0,
    dequeue_s=0.0,
    transfer_s=0.0,
)
GHZ = 1e9


def operator(keys: int = 2, replicas: int = 2, **options: Any) -> ElasticOperator:
    settings: dict[str, Any] = {
        "keys": keys,
        "replicas": replicas,
        "max_replicas": replicas,
        "frequency_ghz": 1.0,
        "table": np.arange(keys) % replicas,
        "costs": FREE,
        "tracing": True,
    }
    return ElasticOperator(**(settings | options))


def lindley(arrivals_s: Floats, service_s: Floats) -> Floats:
    done_s = np.zeros(arrivals_s.size)
    free_s = 0.0
    for index, (arrival_s, takes_s) in enumerate(zip(arrivals_s, service_s, strict=True)):
        free_s = max(free_s, arrival_s) + takes_s
        done_s[index] = free_s
    return done_s


def test_replicas_of_balanced_random_keys_wait_as_m_m_1() -> None:
    rng = np.random.default_rng(3)
    tuples, replicas, service_s, load = 1_500_000, 6, 1e-3, 0.7
    arrivals_s = np.cumsum(rng.exponential(service_s / replicas / load, tuples))
    op = operator(600, replicas, queue_capacity=4096, tracing=False)
    seen = op.advance(
        arrivals_s, rng.integers(0, 600, tuples), rng.exponential(service_s * GHZ, tuples), arrivals_s[-1]
    )
    expected_s = service_s * load / (1 - load)
    assert seen.mean_waiting_s == pytest.approx(expected_s, rel=0.03)
    assert seen.mean_latency_s == pytest.approx(expected_s + service_s, rel=0.03)
    assert seen.mean_service_s == pytest.approx(service_s, rel=0.01)
    assert seen.std_service_s == pytest.approx(service_s, rel=0.01)
    assert seen.busy_share == pytest.approx(np.full(replicas, load), rel=0.03)
    assert seen.mean_interarrival_s == pytest.approx(service_s / replicas / load, rel=0.01)
    assert seen.std_interarrival_s == pytest.approx(seen.mean_interarrival_s, rel=0.01)
    assert seen.out_of_order == 0


@pytest.mark.parametrize("capacity", [1, 3, 10_000])
def test_one_replica_works_as_lindley_says_however_long_its_queue(capacity: int) -> None:
    """A full queue moves the waiting before the splitter; with one replica nothing else changes."""
    rng = np.random.default_rng(5)
    arrivals_s, ticks = np.sort(rng.random(2000)) * 100, rng.exponential(0.05 * GHZ, 2000)
    op = operator(1, 1, queue_capacity=capacity)
    op.advance(arrivals_s, np.zeros(2000), ticks, 1000.0)
    assert op.trace["done_s"] == pytest.approx(lindley(arrivals_s, ticks / GHZ))


@pytest.mark.parametrize("capacity", [1, 4, 200])
def test_latencies_are_those_of_a_plain_python_operator(capacity: int) -> None:
    rng = np.random.default_rng(capacity)
    arrivals_s, keys = np.sort(rng.random(5000)) * 5, rng.integers(0, 40, 5000)
    ticks, table = rng.exponential(4e6, 5000), rng.integers(0, 5, 40)
    costs = Costs(split_s=5e-5, merge_s=2e-5)
    op = operator(40, 5, table=table, costs=costs, queue_capacity=capacity)
    seen = op.advance(arrivals_s, keys, ticks, 1e4)
    results_s = np.array(
        delivered_s(
            arrivals_s.tolist(),
            keys.tolist(),
            (ticks / GHZ).tolist(),
            table.tolist(),
            capacity=capacity,
            split_s=costs.split_s,
            merge_s=costs.merge_s,
        )
    )
    assert seen.mean_latency_s == pytest.approx((results_s - arrivals_s).mean(), rel=1e-9)
    assert seen.max_latency_s == pytest.approx((results_s - arrivals_s).max(), rel=1e-9)
    assert (capacity < 10) == (seen.splitter_blocked_s > 0)


def test_a_full_queue_holds_up_tuples_of_others() -> None:
    op = operator(queue_capacity=1)
    # Key 0 has one tuple in work, one in the queue, one in the splitter's hands until 10 s.
    seen = op.advance([1.0, 1.0, 1.0, 2.0], [0, 0, 0, 1], [9e9, 9e9, 9e9, 1e9], 30.0)
    done = {(int(one["key"]), int(one["sequence"])): float(one["done_s"]) for one in op.trace}
    assert done == {(0, 1): 10.0, (0, 2): 19.0, (0, 3): 28.0, (1, 1): 11.0}
    assert seen.splitter_blocked_s == pytest.approx(9.0)


def test_steps_do_not_show() -> None:
    rng = np.random.default_rng(11)
    arrivals_s, keys, ticks = (
        np.sort(rng.random(3000)) * 30,
        rng.integers(0, 9, 3000),
        rng.exponential(2e7, 3000),
    )
    table = np.arange(9) % 3
    whole, stepped = (operator(9, 4, table=table, queue_capacity=4) for _ in range(2))
    for op in (whole, stepped):
        op.reconfigure(10.5, replicas=4, table=np.arange(9) % 4, frequency_ghz=0.7)
        op.reconfigure(20.25, replicas=2, table=np.arange(9) % 2, protocol=Protocol.S_BLK, frequency_ghz=1.1)
    last = whole.advance(arrivals_s, keys, ticks, 60.0)
    delivered = 0
    for end_s in range(1, 61):
        now = (arrivals_s >= end_s - 1) & (arrivals_s < end_s)
        seen = stepped.advance(arrivals_s[now], keys[now], ticks[now], float(end_s))
        delivered += seen.delivered
    assert np.array_equal(whole.trace, stepped.trace)
    assert delivered == last.delivered == 3000
    assert seen.backlog == last.backlog == 0
    assert stepped.replicas == 2


def test_half_the_frequency_doubles_what_is_left_of_the_work() -> None:
    op = operator()
    op.reconfigure(2.0, frequency_ghz=0.5)
    op.advance([0.0], [0], [4e9], 3.0)
    assert op.trace.size == 0
    op.advance([], [], [], 7.0)
    assert op.trace["done_s"].tolist() == [6.0]  # 2 s, and twice the other 2


def test_a_window_yields_one_result_a_slide() -> None:
    op = operator(2, 1, slide=5, windows=[3, 0], costs=Costs(insert_ticks=1e6))
    seen = op.advance(np.arange(20) / 20, [0] * 10 + [1] * 10, np.full(20, 5e6), 1.0)
    assert seen.delivered == 2 + 2
    assert seen.ticks_of_keys.tolist() == [5e6, 5e6]
    assert seen.mean_service_s == pytest.approx(5e-3)


def test_intervals_hold_the_results_delivered_in_them() -> None:
    op = operator(interval_s=0.5)
    op.advance([0.0, 0.1, 1.2], [0, 0, 1], [0.2e9, 0.2e9, 0.1e9], 2.0)
    intervals = op.intervals
    assert intervals.results.tolist() == [2, 0, 1, 0]
    assert intervals.mean_latency_s[[0, 2]] == pytest.approx([(0.2 + 0.3) / 2, 0.1])
    assert intervals.max_latency_s[[0, 2]] == pytest.approx([0.3, 0.1])
    assert np.isnan(intervals.mean_latency_s[1])


def test_a_step_without_results_knows_no_means() -> None:
    seen = operator().advance([], [], [], 1.0)
    unknown = (seen.mean_latency_s, seen.mean_waiting_s, seen.mean_interarrival_s, seen.mean_service_s)
    assert unknown == (None, None, None, None)
    assert isinstance(seen, Measured)
    assert seen.busy_share.tolist() == [0.0, 0.0]


def _refused(**options: Any) -> None:
    operator(**options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"keys": 0, "table": []}, "keys=0"),
        ({"replicas": 3, "max_replicas": 2}, "replicas=3"),
        ({"table": [0, 2]}, "table"),
        ({"table": [0]}, "table"),
        ({"frequency_ghz": 0.0}, "frequency_ghz=0"),
        ({"frequency_ghz": np.nan}, "frequency_ghz=nan"),
        ({"queue_capacity": 0}, "queue_capacity=0"),
        ({"slide": 0}, "slide=0"),
        ({"windows": [1]}, "windows"),
        ({"interval_s": 0.0}, "interval_s=0"),
    ],
)
def test_an_operator_that_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        _refused(**options)


@pytest.mark.parametrize(
    ("fed", "said"),
    [
        (([0.5, 0.4], [0, 0], [1.0, 1.0], 1.0), "order of time"),
        (([1.5], [0], [1.0], 1.0), "order of time"),
        (([np.nan], [0], [1.0], 1.0), "order of time"),
        (([0.5], [2], [1.0], 1.0), "keys"),
        (([0.5], [0], [-1.0], 1.0), "ticks"),
        (([0.5], [0], [np.nan], 1.0), "ticks"),
        (([0.5], [0, 1], [1.0], 1.0), "one of each"),
        (([], [], [], 0.0), "advance to"),
    ],
)
def test_a_stream_that_cannot_be_is_refused(fed: tuple[Any, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        operator().advance(*fed)


def test_decisions_that_cannot_be_are_refused() -> None:
    op = operator()
    op.advance([], [], [], 5.0)
    with pytest.raises(InputError, match="not before 5"):
        op.reconfigure(4.0, frequency_ghz=1.5)
    with pytest.raises(InputError, match="give a table"):
        op.reconfigure(6.0, replicas=1)
    with pytest.raises(InputError, match="table"):
        op.reconfigure(6.0, replicas=1, table=[0, 1])
    with pytest.raises(InputError, match="cost"):
        Costs(save_s=-1.0)
