"""The search against all plans there are, term by term, and against HiGHS on the paper's formulation."""

from collections.abc import Callable
from itertools import count, product
from math import inf, prod

import pytest

from penstock.bench.random_problems import random_problem
from penstock.planning.choices import deployment
from penstock.planning.milp import as_milp, solved_by_highs
from penstock.planning.problem import Plan, Problem
from penstock.planning.search import search
from penstock.planning.solve import Infeasible, Optimal, all_choices, evaluated, solve

_MOST_PLANS = 20_000


def value_of(problem: Problem, plan: Plan) -> float:
    """Of a plan that keeps all bounds; infinite for one that does not."""
    room = {host.name: host.capacity for host in problem.network.hosts}
    for operator in problem.operators:
        for host in plan[operator.name]:
            room[host] -= operator.demand
    comes_to, goal = evaluated(problem, plan), problem.goal
    kept = (
        min(room.values()) >= -1e-9
        and comes_to.response_time_s <= goal.max_response_time_s
        and comes_to.cost <= goal.max_cost
        and comes_to.downtime_s <= goal.max_downtime_s
    )
    return goal.value(*comes_to) if kept else inf


@pytest.mark.parametrize("seed", range(40))
def test_no_plan_of_all_is_better(seed: int) -> None:
    problem = random_problem(seed, operators=(2, 4), hosts=(2, 4), most=3)
    choices = all_choices(problem)
    if prod(len(one.members) for one in choices) > _MOST_PLANS:
        pytest.skip("too many plans to try all")
    names = [operator.name for operator in problem.operators]
    rows = [[deployment(problem, row) for row in one.members] for one in choices]
    best = min(
        (value_of(problem, dict(zip(names, plan, strict=True))) for plan in product(*rows)), default=inf
    )
    answer = solve(problem)
    if best == inf:
        assert isinstance(answer, Infeasible)
    else:
        assert isinstance(answer, Optimal)
        assert answer.value == pytest.approx(best, abs=1e-9)
        assert value_of(problem, answer.plan) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(1000, 1060))
def test_highs_finds_nothing_better_nor_what_is_not_there(seed: int) -> None:
    problem = random_problem(seed, operators=(3, 8), hosts=(3, 6), most=2)
    choices = all_choices(problem)
    if any(len(one.members) == 0 for one in choices):
        assert isinstance(solve(problem), Infeasible)
        return
    theirs = solved_by_highs(as_milp(problem, choices), time_limit_s=20.0)
    ours = search(problem, choices)
    if not theirs.proven:
        assert ours.value <= theirs.value + 1e-9
    elif theirs.rows is None:
        assert ours.rows is None
    else:
        assert ours.value == pytest.approx(theirs.value, abs=1e-8)


def _after(looks: int) -> Callable[[], bool]:
    left = count(looks, -1)
    return lambda: next(left) <= 0


def test_what_is_left_when_time_is_up_is_below_what_is_best() -> None:
    problem = random_problem(7, operators=(8, 8), hosts=(8, 8), most=3)
    best = solve(problem)
    assert isinstance(best, Optimal)
    choices, cut = all_choices(problem), set()
    for looks in range(30):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("penstock.planning.search._WORK", 200)
            found = search(problem, choices, enough=_after(looks))
        assert 0 < found.bound <= best.value + 1e-9 <= found.value + 2e-9
        cut.add((found.value, found.bound))
    assert len(cut) > 3  # it was left in different places


@pytest.mark.parametrize("seed", range(2000, 2020))
@pytest.mark.parametrize("work", [1, 7, 100])
def test_a_search_left_at_any_time_and_gone_on_with_finds_the_same(seed: int, work: int) -> None:
    problem = random_problem(seed, operators=(3, 6), hosts=(3, 6), most=3)
    choices = all_choices(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.planning.search._WORK", work)
        parts = search(problem, choices)
    at_once = search(problem, choices)
    assert parts.value == at_once.value
    assert parts.bound == at_once.bound
