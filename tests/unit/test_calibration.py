"""The QoS analyser recovers what generated the measurements."""

from dataclasses import replace

import numpy as np
import pytest

from penstock.apps.registry import application_entry
from penstock.domain.application import Batching
from penstock.domain.errors import InputError
from penstock.papers.am_tuning import monitored
from penstock.perf.calibration import ServiceSample, system_model
from penstock.perf.micro_batch import Batch
from penstock.perf.traffic import visits


def sample(operator: str, times_s: list[float], speedup: float = 1.0) -> ServiceSample:
    return ServiceSample(
        operator=operator,
        tuples=len(times_s),
        mean_s=float(np.mean(times_s)),
        variance_s2=float(np.var(times_s)),
        speedup=speedup,
    )


def test_moments_of_parts_are_the_moments_of_the_whole() -> None:
    graph = application_entry("pipeline").graph(10)
    times = np.random.default_rng(1).gamma(2.0, 0.001, 90)
    parts = [times[:10].tolist(), times[10:50].tolist(), times[50:].tolist()]
    samples = [sample(name, part) for name in ("first", "second", "third") for part in parts]
    model = system_model(graph, samples, [1.0])
    for operator in model.application.operators:
        assert operator.service_time_s == pytest.approx(times.mean())
        assert operator.service_variance_s2 == pytest.approx(times.var())


def test_a_faster_node_is_taken_back_to_speed_one() -> None:
    graph = application_entry("pipeline").graph(10)
    slow = [0.002, 0.004, 0.009]
    samples = [sample(name, slow) for name in ("first", "second")]
    samples.append(sample("third", [time / 2 for time in slow], speedup=2.0))
    operators = system_model(graph, samples, [1.0]).application.operators
    assert operators[2].service_time_s == pytest.approx(operators[0].service_time_s)
    assert operators[2].service_scv == pytest.approx(operators[0].service_scv)


def test_the_true_application_is_recovered_from_ten_thousand_tuples_each() -> None:
    graph = application_entry("diamond").graph(7)
    model = system_model(graph, monitored(graph, np.random.default_rng(2)), [1.0]).application
    for measured, true in zip(model.operators, graph.operators, strict=True):
        # four standard errors of the mean; the SCV's own error is larger
        assert measured.service_time_s == pytest.approx(
            true.service_time_s, rel=4 * np.sqrt(true.service_scv / 10_000)
        )
        assert measured.service_scv == pytest.approx(true.service_scv, rel=0.2)
        assert measured.max_replicas == 7
    assert model.paths == graph.paths


def test_an_unmeasured_interval_is_as_busy_as_the_one_before_never_idle() -> None:
    graph = application_entry("pipeline").graph(10)
    samples = [sample(name, [0.001, 0.002]) for name in ("first", "second", "third")]
    model = system_model(graph, samples, [None, 5.0, None, None, 0.0, None, 7.0])
    assert model.rates.tolist() == [5.0, 5.0, 5.0, 5.0, 0.0, 0.0, 7.0]


def test_what_was_never_measured_is_an_error_that_names_it() -> None:
    graph = application_entry("pipeline").graph(10)
    samples = [sample(name, [0.001, 0.002]) for name in ("first", "second", "third")]
    with pytest.raises(InputError, match="'third'"):
        system_model(graph, samples[:2], [1.0])
    with pytest.raises(InputError, match="'fourth'"):
        system_model(graph, [*samples, sample("fourth", [0.1])], [1.0])
    with pytest.raises(InputError, match="no arrival rate"):
        system_model(graph, samples, [None, None])


@pytest.mark.parametrize(
    ("tuples", "mean_s", "variance_s2", "speedup"),
    [
        (0, 0.1, 0.1, 1.0),
        (1, 0.0, 0.1, 1.0),
        (1, float("nan"), 0.1, 1.0),
        (1, 0.1, -1.0, 1.0),
        (1, 0.1, 0.1, 0.0),
    ],
)
def test_impossible_measurements_are_refused(
    tuples: int, mean_s: float, variance_s2: float, speedup: float
) -> None:
    with pytest.raises(InputError, match="'op'"):
        ServiceSample(operator="op", tuples=tuples, mean_s=mean_s, variance_s2=variance_s2, speedup=speedup)


def test_what_an_operator_passes_on_is_measured_by_the_tuple_and_left_as_it_was_where_nobody_looked() -> None:
    """30 tuples made 60 and 10 made none: 1.5 a tuple."""
    graph = application_entry("pipeline").graph(10)
    parts = [sample("first", [0.001] * 30), sample("first", [0.001] * 10), sample("first", [0.001] * 100)]
    measured = [replace(part, selectivity=share) for part, share in zip(parts, (2.0, 0.0, None), strict=True)]
    others = [sample(name, [0.001, 0.002]) for name in ("second", "third")]
    model = system_model(graph, [*measured, *others], [1.0]).application
    assert [operator.selectivity for operator in model.operators] == [1.5, 1.0, 1.0]
    assert visits(model) == {"first": 1.0, "second": 1.5, "third": 1.5}


def test_means_of_many_tuples_tell_the_variance_of_one_where_nothing_else_does() -> None:
    """A mean of n exponential times of 2 ms has a variance of 4 / n ms2: 400 of them give the 4 back."""
    graph = application_entry("pipeline").graph(10)
    rng = np.random.default_rng(5)
    sizes = rng.integers(20, 200, 400)
    means = [float(rng.exponential(0.002, size).mean()) for size in sizes]
    unknown = [
        ServiceSample(operator=name, tuples=int(size), mean_s=mean, variance_s2=None)
        for name in ("first", "second", "third")
        for size, mean in zip(sizes, means, strict=True)
    ]
    for operator in system_model(graph, unknown, [1.0]).application.operators:
        # A variance from 400 samples is known to sqrt(2 / 400) = 7 %: three times that.
        assert operator.service_scv == pytest.approx(1.0, rel=0.21)
    with pytest.raises(InputError, match="operator 'first': the variance of service times"):
        system_model(graph, unknown[:1] + unknown[400:], [1.0])


def test_a_variance_that_was_measured_goes_before_one_from_means() -> None:
    graph = application_entry("pipeline").graph(10)
    known = [sample(name, [0.001, 0.003]) for name in ("first", "second", "third")]
    blind = [replace(one, tuples=1000, variance_s2=None) for one in known]
    for operator in system_model(graph, [*known, *blind], [1.0]).application.operators:
        assert operator.service_time_s == pytest.approx(0.002)
        assert operator.service_variance_s2 == pytest.approx(1e-6)


def batched(operator: str, *, tuples: int, replicas: int, fixed_s: float) -> ServiceSample:
    """Tuples of 2 ms, give or take one, in micro-batches on replicas of speed 1."""
    one = sample(operator, [0.001, 0.003] * (tuples // 2))
    return replace(one, batch=Batch(tuples, replicas, fixed_s + 0.002 * tuples / replicas))


def test_what_micro_batches_take_besides_their_tuples_is_their_fixed_part() -> None:
    graph = application_entry("pipeline").graph(10)
    first = [batched("first", tuples=n, replicas=k, fixed_s=0.3) for n, k in ((20, 1), (400, 2), (90, 3))]
    second = [sample("second", [0.001, 0.003])] * 3
    third = [batched("third", tuples=100, replicas=1, fixed_s=0.0)]
    model = system_model(graph, [*first, *second, *third], [1.0], trigger_s=0.5).application
    assert [one.service_time_s for one in model.operators] == pytest.approx([0.002] * 3)
    batching = [one.batching for one in model.operators]
    assert batching[0] is not None
    assert batching[0].fixed_s == pytest.approx(0.3)
    assert batching[0].trigger_s == 0.5
    assert batching[1] is None, "nobody saw micro-batches there"
    assert batching[2] == Batching(fixed_s=0.0, trigger_s=0.5), "batches of nothing but work"
