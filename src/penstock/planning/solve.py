"""From a problem to its answer: the best plan, the best there was time for, or why there is none."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from penstock.compiled import Ints
from penstock.planning.choices import Choices, choices_of, deployment
from penstock.planning.downtime import NOBODY
from penstock.planning.problem import Goal, Plan, Problem
from penstock.planning.restricted import neighbours
from penstock.planning.search import search

_FAR = 1e12  # a bound that nothing reaches
_NO_TIME = "no plan keeps all bounds; there was no time to find out which of them stand in the way"


class Evaluation(NamedTuple):
    """What a plan comes to."""

    response_time_s: float
    cost: float
    downtime_s: float


@dataclass(frozen=True, slots=True)
class Optimal:
    """No plan is better, by more than a billionth of the objective."""

    plan: Plan
    value: float
    comes_to: Evaluation


@dataclass(frozen=True, slots=True)
class Incumbent:
    """The best found before time was up; none is below the bound."""

    plan: Plan
    value: float
    comes_to: Evaluation
    bound: float

    @property
    def gap(self) -> float:
        """How much better another plan might be, as a share of this one's objective."""
        return (self.value - self.bound) / self.value if self.value > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Infeasible:
    """No plan keeps all bounds; which of them, or what else, stands in the way."""

    why: str


@dataclass(frozen=True, slots=True)
class TimedOut:
    """Neither a plan nor a proof that there is none was found in time."""

    bound: float


Answer: TypeAlias = Optimal | Incumbent | Infeasible | TimedOut


def solve(
    problem: Problem, *, restricted: bool = False, enough: Callable[[], bool] = lambda: False
) -> Answer:
    """The best plan; of the restricted problem where asked for. `enough` is asked now and then."""
    choices = all_choices(problem, restricted=restricted)
    for operator, one in zip(problem.operators, choices, strict=True):
        if len(one.members) == 0:
            return Infeasible(_alone(problem, operator.name, restricted=restricted))
    found = search(problem, choices, known=_now(problem, choices), enough=enough)
    if found.rows is None:
        if found.bound < np.inf:
            return TimedOut(found.bound)
        return Infeasible(_which(problem, restricted=restricted, enough=enough))
    plan = plan_of(problem, choices, found.rows)
    comes_to = evaluated(problem, plan)
    if found.bound >= found.value:
        return Optimal(plan, found.value, comes_to)
    return Incumbent(plan, found.value, comes_to, found.bound)


def all_choices(problem: Problem, *, restricted: bool = False) -> list[Choices]:
    return [
        choices_of(problem, operator, neighbours(problem, operator) if restricted else None)
        for operator in problem.operators
    ]


def plan_of(problem: Problem, choices: list[Choices], rows: Ints) -> Plan:
    return {
        operator.name: deployment(problem, one.members[row])
        for operator, one, row in zip(problem.operators, choices, rows, strict=True)
    }


def evaluated(problem: Problem, plan: Plan) -> Evaluation:
    """Response time, cost and downtime of a plan, term by term (eq. 1 to 11)."""
    index, network = problem.network.index, problem.network
    at = {name: [index[host] for host in problem.in_order(hosts)] for name, hosts in plan.items()}
    own = {
        operator.name: choices_of(problem, operator, [tuple(at[operator.name])], bounded=False)
        for operator in problem.operators
    }
    ends = dict.fromkeys(at, 0.0)
    cost = sum(float(one.cost[0]) for one in own.values())
    for operator in problem.operators:
        for stream in problem.streams:
            if stream.target != operator.name:
                continue
            above, here = at[stream.origin], at[operator.name]
            if problem.readings.traffic_per_host:
                above, here = sorted(set(above)), sorted(set(here))
            between = np.ix_(above, here)
            delay_s = float(network.delay_s[between].max())
            ends[operator.name] = max(ends[operator.name], ends[stream.origin] + delay_s)
            cost += stream.rate * float(network.price[between].mean())
        ends[operator.name] += float(own[operator.name].latency_s[0])
    return Evaluation(max(ends.values()), cost, max(float(one.downtime_s[0]) for one in own.values()))


def _now(problem: Problem, choices: list[Choices]) -> list[int] | None:
    """What runs now as a plan to begin with, where it keeps all bounds and has room."""
    if problem.current is None:
        return None
    used = np.zeros(len(problem.network.hosts))
    rows = []
    for operator, one in zip(problem.operators, choices, strict=True):
        now = problem.in_order(problem.current[operator.name])
        hosts = [problem.network.index[host] for host in now]
        free = one.members.shape[1] - len(hosts)
        if free < 0:
            return None
        same = np.flatnonzero((one.members == [*hosts, *[NOBODY] * free]).all(axis=1))
        if same.size == 0:
            return None
        rows.append(int(same[0]))
        for host in hosts:
            used[host] += operator.demand
    if (used > np.array([host.capacity for host in problem.network.hosts]) * (1 + 1e-9)).any():
        return None
    comes_to, goal = evaluated(problem, problem.current), problem.goal
    if comes_to.response_time_s > goal.max_response_time_s or comes_to.cost > goal.max_cost:
        return None
    return rows


def _alone(problem: Problem, name: str, *, restricted: bool) -> str:
    """Why an operator has no deployment at all."""
    operator = next(one for one in problem.operators if one.name == name)
    near = neighbours(problem, operator) if restricted else None
    one = choices_of(problem, operator, near, bounded=False)
    if near == []:
        return f"operator '{name}': no deployment one step from what runs is allowed"
    if len(one.members) == 0:
        return f"operator '{name}': no host it may run on has room for a replica ({operator.demand:g} needed)"
    goal, rate = problem.goal, f"{operator.rate:g} tuples/s"
    least_s, least_cost, least_down_s = one.latency_s.min(), one.cost.min(), one.downtime_s.min()
    if least_s == np.inf:
        said = f"is overloaded by {rate} with all replicas it may have"
    elif least_s > goal.max_response_time_s:
        said = f"takes at least {least_s:.4g} s at {rate}; the bound is {goal.max_response_time_s:g} s"
    elif least_cost > goal.max_cost:
        said = f"costs at least {least_cost:.4g}; the bound is {goal.max_cost:g}"
    elif least_down_s > goal.max_downtime_s:
        said = f"is down for at least {least_down_s:.4g} s; the bound is {goal.max_downtime_s:g} s"
    else:
        said = "has no deployment that keeps all bounds by itself"
    return f"operator '{name}' {said}"


def _which(problem: Problem, *, restricted: bool, enough: Callable[[], bool]) -> str:
    """Which bound stands in the way: each is put to the test alone."""

    def least(**weights: float) -> float:
        """Of one of the three, whatever the others; not a number when time was up."""
        zero = {"response_time": 0.0, "cost": 0.0, "downtime": 0.0}
        alone = Goal(**{**zero, **weights}, max_response_time_s=_FAR, max_cost=_FAR, max_downtime_s=_FAR)
        free = replace(problem, goal=alone)
        found = search(free, all_choices(free, restricted=restricted), enough=enough)
        if found.rows is None:
            return np.inf if found.bound == np.inf else np.nan
        return found.bound * _FAR

    goal = problem.goal
    response_s = least(response_time=1.0)
    if response_s == np.inf:
        return "the hosts have no room for all operators at once"
    cost, down_s = least(cost=1.0), least(downtime=1.0)
    said = []
    if response_s > goal.max_response_time_s:
        said.append(
            f"response time is at least {response_s:.4g} s; its bound is {goal.max_response_time_s:g} s"
        )
    if cost > goal.max_cost:
        said.append(f"cost is at least {cost:.4g}; its bound is {goal.max_cost:g}")
    if down_s > goal.max_downtime_s:
        said.append(f"downtime is at least {down_s:.4g} s; its bound is {goal.max_downtime_s:g} s")
    if not said and np.isnan([response_s, cost, down_s]).any():
        return _NO_TIME
    return "; ".join(said) or "every bound can be kept by itself, but not all of them together"
