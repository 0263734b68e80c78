"""An operator in a deployment against brute force: a plain list of replicas, one by one."""

from dataclasses import dataclass, replace
from math import inf

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.perf.deployments import Deployments, deployments, handle_of
from penstock.perf.operator import (
    mean_utilisation,
    replica_rate,
    response_time,
    throughput,
    utilisation,
    utilisation_by_replica,
)
from penstock.perf.queueing import Judged, MeasuredCurve, QueueModel, Split, m_g_1, m_m_1, measured

# Infrastructure A of Russo 2023: price equals speedup
A = [NodeType(name=f"a{i}", speedup=s, price=s) for i, s in enumerate((1.0, 0.7, 1.3, 0.9, 1.7))]


@dataclass(frozen=True)
class Case:
    """Some replicas under some load."""

    speedups: tuple[float, ...]
    counts: tuple[int, ...]
    rate: float
    service_s: float
    scv: float
    split: Split

    @property
    def replicas(self) -> list[float]:
        """The speed of every single replica."""
        return [s for s, count in zip(self.speedups, self.counts, strict=True) for _ in range(count)]

    @property
    def shares(self) -> list[float]:
        """The share of arrivals that reaches each replica."""
        speeds = self.replicas
        if self.split is Split.EVENLY:
            return [1 / len(speeds) for _ in speeds]
        return [speed / sum(speeds) for speed in speeds]

    @property
    def loads(self) -> list[float]:
        return [
            self.rate * share * self.service_s / speed
            for share, speed in zip(self.shares, self.replicas, strict=True)
        ]

    def response_times(self) -> list[float]:
        """Pollaczek-Khinchine for each replica."""
        times = []
        for share, speed in zip(self.shares, self.replicas, strict=True):
            lam, mean = self.rate * share, self.service_s / speed
            rho = lam * mean
            second_moment = (1 + self.scv) * mean**2
            times.append(mean + lam * second_moment / (2 * (1 - rho)) if rho < 1 else inf)
        return times

    def model(self, judged: Judged) -> QueueModel:
        return m_g_1(self.service_s, self.scv, split=self.split, judged=judged)

    def spaces(self) -> list[tuple[Deployments, int]]:
        """The same deployment with enumerated and with packed handles."""
        types = [NodeType(name=f"t{i}", speedup=s, price=1.0) for i, s in enumerate(self.speedups)]
        most = sum(self.counts)
        both = [deployments(types, most), deployments(types, most, enumerate_up_to=0)]
        return [(space, handle_of(space, Replicas(self.counts))) for space in both]


@st.composite
def cases(draw: st.DrawFn, *, split: Split | None = None) -> Case:
    types = draw(st.integers(1, 4))
    speedups = draw(st.lists(st.floats(0.05, 30), min_size=types, max_size=types))
    counts = draw(st.lists(st.integers(0, 3), min_size=types, max_size=types).filter(any))
    case = Case(
        speedups=tuple(speedups),
        counts=tuple(counts),
        rate=draw(st.floats(0, 3000)),
        service_s=draw(st.floats(1e-4, 0.1)),
        scv=draw(st.floats(0, 4)),
        split=draw(st.sampled_from(Split)) if split is None else split,
    )
    assume(all(abs(load - 1) > 1e-6 for load in case.loads))  # on the edge, rounding decides
    return case


@settings(deadline=None)
@given(cases())
def test_each_replica_gets_its_share_of_the_arrivals(case: Case) -> None:
    for space, handle in case.spaces():
        for share, speed in zip(case.shares, case.replicas, strict=True):
            got = replica_rate(case.model(Judged.WORST), space, handle, case.rate, speed)
            assert got == pytest.approx(case.rate * share, rel=1e-9)


@settings(deadline=None)
@given(cases())
def test_judged_by_the_worst_an_operator_is_as_slow_as_its_slowest_replica(case: Case) -> None:
    for space, handle in case.spaces():
        got = response_time(case.model(Judged.WORST), space, handle, case.rate)
        assert got == pytest.approx(max(case.response_times()), rel=1e-7)


@settings(deadline=None)
@given(cases())
def test_judged_by_the_mean_each_replica_weighs_as_many_tuples_as_it_gets(case: Case) -> None:
    # published simulator, 2.2: `avg` = rate-weighted mean
    expected = sum(share * time for share, time in zip(case.shares, case.response_times(), strict=True))
    for space, handle in case.spaces():
        got = response_time(case.model(Judged.MEAN), space, handle, case.rate)
        assert got == pytest.approx(expected, rel=1e-7)


@settings(deadline=None)
@given(cases())
def test_utilisation_is_the_busiest_replicas_or_the_mean_over_replicas(case: Case) -> None:
    for space, handle in case.spaces():
        worst = utilisation(case.model(Judged.WORST), space, handle, case.rate)
        mean = utilisation(case.model(Judged.MEAN), space, handle, case.rate)
        assert worst == pytest.approx(max(case.loads), rel=1e-9)
        assert mean == pytest.approx(sum(case.loads) / len(case.loads), rel=1e-9)


@settings(deadline=None)
@given(cases(), st.sampled_from(Judged))
def test_each_replica_and_their_mean_are_known_however_the_operator_is_judged(
    case: Case, judged: Judged
) -> None:
    for space, handle in case.spaces():
        mean = mean_utilisation(case.model(judged), space, handle, case.rate)
        assert mean == pytest.approx(sum(case.loads) / len(case.loads), rel=1e-9)
        each = utilisation_by_replica(case.model(judged), space, handle, case.rate)
        assert each == pytest.approx(case.loads, rel=1e-9)


@settings(deadline=None)
@given(case=cases(), node_type=st.integers(0, 3), count=st.integers(1, 9))
def test_the_mean_of_replicas_of_one_type_is_the_busiest_to_the_last_digit(
    case: Case, node_type: int, count: int
) -> None:
    """Or a policy that looks at one and a policy that looks at the other would part over a rounding error."""
    counts = tuple(count * (index == node_type % len(case.speedups)) for index in range(len(case.speedups)))
    alike = replace(case, counts=counts)
    for space, handle in alike.spaces():
        model = alike.model(Judged.WORST)
        worst = utilisation(model, space, handle, case.rate)
        assert mean_utilisation(model, space, handle, case.rate) == worst


@settings(deadline=None)
@given(cases())
def test_each_replica_passes_what_reaches_it_up_to_its_own_capacity(case: Case) -> None:
    expected = sum(
        min(case.rate * share, speed / case.service_s)
        for share, speed in zip(case.shares, case.replicas, strict=True)
    )
    for judged in Judged:  # how an operator is judged does not change what gets through
        for space, handle in case.spaces():
            got = throughput(case.model(judged), space, handle, case.rate)
            assert got == pytest.approx(expected, rel=1e-9)


@settings(deadline=None)
@given(cases(split=Split.BY_SPEED))
def test_split_by_speed_all_replicas_saturate_together(case: Case) -> None:
    capacity = sum(case.replicas) / case.service_s
    for space, handle in case.spaces():
        busiest = utilisation(case.model(Judged.WORST), space, handle, case.rate)
        assert busiest == pytest.approx(case.rate / capacity, rel=1e-9)
        assert busiest == pytest.approx(utilisation(case.model(Judged.MEAN), space, handle, case.rate))
        got = throughput(case.model(Judged.WORST), space, handle, case.rate)
        assert got == pytest.approx(min(case.rate, capacity), rel=1e-9)


# --- by hand -----------------------------------------------------------------------------

SLOW_AND_FAST = [
    NodeType(name="slow", speedup=1.0, price=1.0),
    NodeType(name="fast", speedup=10.0, price=5.0),
]


def test_a_slow_replica_saturates_alone_and_only_its_excess_is_lost() -> None:
    # capacities 100 and 1000; of 600 tuples/s each gets 300: 100 + 300 get through,
    # not min(600, 1100) as if the two were one server
    space = deployments(SLOW_AND_FAST, 2)
    both = handle_of(space, Replicas((1, 1)))
    evenly = m_m_1(0.01)
    assert throughput(evenly, space, both, 600.0) == pytest.approx(400.0)
    assert utilisation(evenly, space, both, 600.0) == pytest.approx(3.0)
    assert response_time(evenly, space, both, 600.0) == inf
    assert throughput(m_m_1(0.01, split=Split.BY_SPEED), space, both, 600.0) == pytest.approx(600.0)


def test_one_saturated_replica_makes_the_mean_infinite_as_well() -> None:
    space = deployments(SLOW_AND_FAST, 2)
    both = handle_of(space, Replicas((1, 1)))
    assert response_time(m_m_1(0.01, judged=Judged.MEAN), space, both, 600.0) == inf


def test_mixing_in_a_slow_node_is_never_useful_when_judged_by_the_worst() -> None:
    # published simulator, 2.2, says so of an even split: one fast alone is busy 6 %, together the slow 30 %
    space = deployments(SLOW_AND_FAST, 2)
    fast = response_time(m_m_1(0.01), space, handle_of(space, Replicas((0, 1))), 60.0)
    both = response_time(m_m_1(0.01), space, handle_of(space, Replicas((1, 1))), 60.0)
    assert fast == pytest.approx(1 / (1000 - 60))
    assert both == pytest.approx(1 / (100 - 30))


def test_types_that_are_not_in_use_do_not_matter() -> None:
    space = deployments(A, 4)
    alone = deployments(A[2:3], 4)
    model = m_g_1(1 / 180, 0.5, judged=Judged.WORST)
    for function in (response_time, utilisation, throughput):
        got = function(model, space, handle_of(space, Replicas((0, 0, 3, 0, 0))), 500.0)
        assert got == pytest.approx(function(model, alone, handle_of(alone, Replicas((3,))), 500.0))


def test_at_rest_an_operator_takes_the_service_time_of_its_slowest_replica() -> None:
    space = deployments(A, 4)
    handle = handle_of(space, Replicas((1, 1, 0, 0, 1)))
    assert response_time(m_m_1(0.01), space, handle, 0.0) == pytest.approx(0.01 / 0.7)
    mean = response_time(m_m_1(0.01, judged=Judged.MEAN), space, handle, 0.0)
    assert mean == pytest.approx((0.01 + 0.01 / 0.7 + 0.01 / 1.7) / 3)
    # by speed a replica of speed s gets s/sum of the tuples and takes S/s: 3 S / (1 + .7 + 1.7)
    by_speed = m_m_1(0.01, split=Split.BY_SPEED, judged=Judged.MEAN)
    assert response_time(by_speed, space, handle, 0.0) == pytest.approx(0.03 / 3.4)
    assert utilisation(m_m_1(0.01), space, handle, 0.0) == 0.0
    assert throughput(m_m_1(0.01), space, handle, 0.0) == 0.0


@settings(deadline=None)
@given(cases())
def test_a_measured_curve_is_read_for_each_replica(case: Case) -> None:
    # times that grow with the rate, as of any queue
    rates, times = (1.0, 50.0, 200.0), (0.01, 0.02, 0.4)

    def one(share: float, speed: float) -> float:
        equivalent = case.rate * share / speed
        return float(np.interp(equivalent, rates, times, right=inf)) / speed

    each = [one(share, speed) for share, speed in zip(case.shares, case.replicas, strict=True)]
    pairs = zip(case.shares, case.replicas, strict=True)
    assume(all(abs(case.rate * share / speed / rates[-1] - 1) > 1e-9 for share, speed in pairs))
    curve = MeasuredCurve(rates=rates, times_s=times)
    for space, handle in case.spaces():
        worst = measured(case.service_s, curve, split=case.split, judged=Judged.WORST)
        mean = measured(case.service_s, curve, split=case.split, judged=Judged.MEAN)
        assert response_time(worst, space, handle, case.rate) == pytest.approx(max(each), rel=1e-7)
        expected = sum(share * time for share, time in zip(case.shares, each, strict=True))
        assert response_time(mean, space, handle, case.rate) == pytest.approx(expected, rel=1e-7)
