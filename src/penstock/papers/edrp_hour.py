"""The hour of Cardellini 2017, sec. 7.2: the source's rate goes from 70 to 220 tuples/s and back.

Once a minute the problem is solved for the rate there is, and the plan is carried out. Table III has the mean
response time and cost and the total downtime of four objectives; Figure 5 has when what was changed.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from penstock.domain.errors import InputError
from penstock.papers import ansnet
from penstock.papers.edrp_application import BASELINE, SINK, SOURCE, Assumed, network, problem
from penstock.planning.problem import Plan
from penstock.planning.solve import Evaluation, Optimal, evaluated, solve

MINUTES = 60
LOW, HIGH = 70.0, 220.0
HEADROOM = 0.1  # of the load observed: it rises by up to 7 % in a minute
_DELAYS_OFF = 0.1
PINNED = {SOURCE: "New York", SINK: "Chicago"}  # the paper pins both, and does not say where


class Minute(NamedTuple):
    """One round of planning."""

    rate: float
    plan: Plan
    comes_to: Evaluation
    changed: tuple[str, ...]  # operators


def rate_at(minute: int) -> float:
    half = MINUTES / 2
    return LOW + (HIGH - LOW) * (minute / half if minute <= half else 2 - minute / half)


def hour(
    weights: tuple[float, float, float],
    *,
    assumed: Assumed | None = None,
    restricted: bool = False,
    pinned: dict[str, str] | None = None,
    minute_done: Callable[[], None] = lambda: None,
) -> Iterator[Minute]:
    """Minute by minute. It begins with the best plan of all, downtime not counted, as in the paper."""
    assumed = assumed or Assumed()
    on = network(ansnet.hosts(), ansnet.delays_s(), assumed.link_price)
    current: Plan | None = None
    for minute in range(MINUTES + 1):
        asked = problem(
            rate_at(minute),
            on=on,
            weights=weights if current is not None else BASELINE,
            assumed=assumed,
            pinned=PINNED if pinned is None else pinned,
            current=current,
        )
        answer = solve(asked, restricted=restricted and current is not None)
        minute_done()
        if not isinstance(answer, Optimal):
            raise InputError(f"minute {minute}, {rate_at(minute):g} tuples/s: {answer}")
        before = current or answer.plan
        changed = tuple(name for name, hosts in answer.plan.items() if before[name] != hosts)
        yield Minute(rate_at(minute), answer.plan, answer.comes_to, changed)
        current = answer.plan


def closed_loop(
    weights: tuple[float, float, float],
    *,
    seed: int,
    headroom: float = HEADROOM,
    minute_done: Callable[[], None] = lambda: None,
) -> Iterator[Minute]:
    """The same hour, simulated: planned on what was observed in the minute before, lived through as it is.

    Tuples arrive by chance, delays are known to a tenth. What a minute comes to is that of its plan under the
    minute's true rate and the true delays.
    """
    rng = np.random.default_rng(seed)
    assumed = Assumed()
    true_s = ansnet.delays_s()
    on = network(ansnet.hosts(), true_s, assumed.link_price)
    observed = LOW
    current: Plan | None = None
    for minute in range(MINUTES + 1):
        known_s = true_s * rng.uniform(1 - _DELAYS_OFF, 1 + _DELAYS_OFF, true_s.shape)
        asked = problem(
            (1 + headroom) * observed,
            on=network(ansnet.hosts(), known_s, assumed.link_price),
            weights=weights if current is not None else BASELINE,
            assumed=assumed,
            pinned=PINNED,
            current=current,
        )
        answer = solve(asked)
        minute_done()
        # Where no plan keeps all bounds, what runs stays.
        plan = answer.plan if isinstance(answer, Optimal) else current
        if plan is None:
            raise InputError(f"the first minute has no plan: {answer}")
        there = problem(
            rate_at(minute), on=on, weights=weights, assumed=assumed, pinned=PINNED, current=current
        )
        before = current or plan
        changed = tuple(name for name, hosts in plan.items() if before[name] != hosts)
        yield Minute(rate_at(minute), plan, evaluated(there, plan), changed)
        observed = float(rng.poisson(rate_at(minute) * 60)) / 60
        current = plan


class Row(NamedTuple):
    """Of Table III."""

    response_time_s: float  # mean
    cost: float  # mean, $/h
    downtime_s: float  # in all


def row(minutes: list[Minute]) -> Row:
    count = len(minutes)
    return Row(
        sum(one.comes_to.response_time_s for one in minutes) / count,
        sum(one.comes_to.cost for one in minutes) / count,
        sum(one.comes_to.downtime_s for one in minutes),
    )
