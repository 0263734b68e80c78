"""Problems at the edge: what a plan costs where nothing takes time, hosts exactly full, why there is none."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from penstock.domain.errors import InputError
from penstock.perf.queueing import m_m_1
from penstock.planning.problem import Engine, Goal, Host, Network, PlannedOperator, PlannedStream, Problem
from penstock.planning.solve import Infeasible, Optimal, evaluated, solve


def problem(
    *,
    rate: float = 50.0,
    demand: float = 1.0,
    capacity: float = 2.0,
    replicas: int = 2,
    hosts: int = 2,
    goal: Goal | None = None,
    engine: Engine | None = None,
    current: dict[str, tuple[str, ...]] | None = None,
) -> Problem:
    """Two operators, each with 10 ms of work a tuple, one after the other."""
    apart = np.full((hosts, hosts), 0.01)
    np.fill_diagonal(apart, 0.0)
    return Problem(
        operators=tuple(
            PlannedOperator(name=name, rate=rate, queue=m_m_1(0.01), demand=demand, max_replicas=replicas)
            for name in ("one", "two")
        ),
        streams=(PlannedStream(origin="one", target="two", rate=rate),),
        network=Network(
            hosts=tuple(Host(name=f"h{one}", capacity=capacity, spawn_s=0.5) for one in range(hosts)),
            delay_s=apart,
            price=np.zeros((hosts, hosts)),
        ),
        goal=goal or goal_of(),
        engine=engine or Engine(),
        current=current,
    )


def goal_of(response_s: float = 1.0, cost: float = 10.0, downtime_s: float = 10.0) -> Goal:
    return Goal(
        response_time=0.4,
        cost=0.3,
        downtime=0.3,
        max_response_time_s=response_s,
        max_cost=cost,
        max_downtime_s=downtime_s,
    )


def test_an_engine_that_restarts_restarts_even_if_synchronising_takes_no_time() -> None:
    """Eq. 33: from {h0} to {h0, h0} there is no pair of hosts, but everything restarts: spawn_s."""
    now: dict[str, tuple[str, ...]] = {"one": ("h0",), "two": ("h0",)}
    asked = problem(rate=120.0, engine=Engine(restarts_all=True), current=now, capacity=4.0)
    after = evaluated(asked, {"one": ("h0", "h0"), "two": ("h0", "h0")})
    assert after.downtime_s == pytest.approx(0.5)
    assert evaluated(asked, now).downtime_s == 0.0


@pytest.mark.parametrize(
    ("capacity", "demand", "replicas"),
    [(0.3, 0.1, 3), (0.6, 0.2, 3), (0.7, 0.1, 7), (2.1, 0.7, 3), (3, 1, 3)],
)
def test_replicas_that_fill_a_host_exactly_fit(capacity: float, demand: float, replicas: int) -> None:
    """3 x .1 is .30000000000000004."""
    asked = problem(
        rate=95.0 * replicas, demand=demand, capacity=capacity, replicas=replicas, goal=goal_of(cost=100.0)
    )
    answer = solve(asked)
    assert isinstance(answer, Optimal)
    assert {name: set(hosts) for name, hosts in answer.plan.items()}.keys() == {"one", "two"}
    assert all(len(hosts) == replicas for hosts in answer.plan.values())


def test_bounds_far_away_make_the_best_plan_no_worse() -> None:
    """The objective is then a millionth, and so must be what counts as equal."""
    near, far = problem(rate=60.0), problem(rate=60.0, goal=goal_of(1e6, 1e7, 1e7))
    one, other = solve(near), solve(far)
    assert isinstance(one, Optimal)
    assert isinstance(other, Optimal)
    assert other.plan == one.plan


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (problem(rate=1500.0), "operator 'one' is overloaded by 1500 tuples/s"),
        (problem(capacity=0.5), "no host it may run on has room"),
        (problem(capacity=1.0, hosts=1), "the hosts have no room for all operators at once"),
        (problem(goal=goal_of(response_s=0.0301)), "response time is at least 0.03667 s"),
        (problem(goal=goal_of(response_s=0.005)), "operator 'one' takes at least 0.01333 s"),
        (problem(goal=goal_of(cost=1.5)), "cost is at least 2"),
        (problem(goal=goal_of(response_s=0.038, cost=3.5)), "every bound can be kept by itself"),
    ],
)
def test_the_bound_that_stands_in_the_way_is_named(asked: Problem, said: str) -> None:
    """Two replicas each, 10 ms / (1 - .25) = 13.3 ms, and 10 ms between hosts: they fill both."""
    answer = solve(asked)
    assert isinstance(answer, Infeasible)
    assert said in answer.why


def test_costs_of_millions_are_no_lack_of_room() -> None:
    dear = problem(goal=goal_of(cost=1e6))
    costly = replace(
        dear, network=replace(dear.network, hosts=tuple(replace(h, price=2e6) for h in dear.network.hosts))
    )
    answer = solve(costly)
    assert isinstance(answer, Infeasible)
    assert "costs at least 2e+06" in answer.why


def test_no_time_to_find_the_reason_is_said_as_such() -> None:
    looks = count()
    answer = solve(problem(goal=goal_of(response_s=0.038, cost=3.5)), enough=lambda: next(looks) > 1)
    assert not isinstance(answer, Optimal)
    if isinstance(answer, Infeasible):
        assert "room" not in answer.why
        assert "inf" not in answer.why


def test_numbers_that_would_overflow_together_are_refused_one_by_one() -> None:
    """1e300 tuples/s at a price of 1e300 each cost nothing that can be written down."""
    with pytest.raises(
        InputError, match=r"operator 'one': rate=1e\+300; it must not be negative, and at most 1e\+50"
    ):
        problem(rate=1e300)
    with pytest.raises(
        InputError, match=r"bounds: max_cost=1e-320; it must be positive, from 1e-50 to 1e\+50"
    ):
        goal_of(cost=1e-320)
    with pytest.raises(InputError, match="upload_bytes_s=1e-320; it must be positive, at least 1e-50"):
        Host(name="slow", capacity=1.0, upload_bytes_s=1e-320)
    apart = np.array([[0.0, 1e300], [1e300, 0.0]])
    with pytest.raises(InputError, match=r"network: price has values .* above 1e\+50"):
        replace(problem().network, price=apart)


def test_an_overloaded_plan_has_an_endless_response_time() -> None:
    assert evaluated(problem(rate=300.0), {"one": ("h0",), "two": ("h1",)}).response_time_s == np.inf


def test_too_many_deployments_are_refused_before_they_are_listed() -> None:
    with pytest.raises(InputError, match=r"operator 'one'.*too many to search"):
        solve(problem(replicas=40, hosts=15, capacity=50.0))


def test_one_step_from_more_replicas_than_there_may_be_is_nowhere() -> None:
    crowded = problem(replicas=2, capacity=9.0, current={"one": ("h0",) * 5, "two": ("h1",)})
    answer = solve(crowded, restricted=True)
    assert isinstance(answer, Infeasible)
    assert "no deployment one step from what runs" in answer.why
