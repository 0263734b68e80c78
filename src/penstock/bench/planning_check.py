"""The exact search against HiGHS on the paper's formulation, on random problems of all kinds."""

import os
import time
from collections.abc import Callable, Iterator

from penstock.bench.figure import Figure
from penstock.bench.random_problems import random_problem
from penstock.compiled import Ints
from penstock.planning.choices import Choices
from penstock.planning.milp import as_milp, solved_by_highs
from penstock.planning.problem import Problem
from penstock.planning.search import search
from penstock.planning.solve import all_choices, evaluated, plan_of

_WANTED = 200  # problems that HiGHS has proven an answer to
_MOST_TRIED = 400
_LIMIT_S = 60.0  # for HiGHS, on one of them
_FIRST_SEED = 10_000
_APART = 1e-9  # objectives, which are about 1
_EVERY = 25
STAGES = _WANTED // _EVERY


def run_check(*, stage: Callable[[str], None]) -> Iterator[Figure]:
    """3 to 8 operators, 3 to 8 hosts, up to three replicas, with and without a current deployment."""
    yield Figure(name="machine load before", value=os.getloadavg()[0], unit="")
    proven = feasible = tried = disagree = 0
    apart = ours_s = theirs_s = 0.0
    while proven < _WANTED and tried < _MOST_TRIED:
        asked = random_problem(_FIRST_SEED + tried, operators=(3, 8), hosts=(3, 8), most=3)
        tried += 1
        choices = all_choices(asked)
        if any(len(one.members) == 0 for one in choices):
            continue  # an operator has no deployment at all: nothing for either to find
        began_s = time.perf_counter()
        theirs = solved_by_highs(as_milp(asked, choices), time_limit_s=_LIMIT_S)
        between_s = time.perf_counter()
        ours = search(asked, choices)
        if not theirs.proven:
            disagree += ours.value > theirs.value + _APART
            continue
        theirs_s, ours_s = theirs_s + between_s - began_s, ours_s + time.perf_counter() - between_s
        proven += 1
        if (theirs.rows is None) != (ours.rows is None):
            disagree += 1
        elif theirs.rows is not None and ours.rows is not None:
            feasible += 1
            apart = max(apart, abs(_value(asked, choices, theirs.rows) - _value(asked, choices, ours.rows)))
        if proven % _EVERY == 0:
            stage(f"{proven} of {_WANTED} problems, {feasible} of them with a plan")
    yield Figure(name="problems HiGHS has proven an answer to", value=proven, unit="", at_least=_WANTED)
    yield Figure(name="of them with a plan", value=feasible, unit="")
    yield Figure(name="answers that disagree", value=disagree, unit="", at_most=0)
    yield Figure(name="largest difference of objectives", value=apart, unit="", at_most=_APART)
    yield Figure(name="HiGHS over ours, time of all", value=theirs_s / max(ours_s, 1e-9), unit="x")


def _value(asked: Problem, choices: list[Choices], rows: Ints) -> float:
    """Of the plan itself: what HiGHS adds up is off by its tolerance."""
    return asked.goal.value(*evaluated(asked, plan_of(asked, choices, rows)))
