"""The four days of Cardellini 2017, sec. 7.3, as planned: trips sixty times as fast, an engine that restarts.

The paper runs it on Storm: five machines with room for eight replicas each, up to three replicas of an
operator, a plan every 60 s, response times as measured and not by a formula. Neither its curves nor its
delays are printed. Here every curve is measured, too: on a simulated queue with the service rate of Table II,
at loads up to nearly all it can do. The source takes 284 tuples/s at the most by Table II, so the days have
20 to 260 tuples/s here, where the paper has up to about 300.
"""

from collections.abc import Callable, Iterator
from math import cos, pi

import numpy as np

from penstock.compiled import Floats
from penstock.papers.edrp_application import (
    BASELINE,
    SERVICE_RATES,
    SINK,
    SOURCE,
    Assumed,
    network,
    problem,
)
from penstock.papers.edrp_hour import Minute
from penstock.perf.queueing import MeasuredCurve, QueueModel, measured
from penstock.planning.problem import Engine, Plan
from penstock.planning.solve import Evaluation, Incumbent, Optimal, evaluated, solve

DAYS, ROUND_S = 4, 60.0
ROUNDS = DAYS * 24  # an hour of the data is a minute here
LOW, HIGH = 20.0, 260.0
HOSTS = tuple(f"worker-{number}" for number in range(1, 6))
SLOTS = 8.0
PINNED = {SOURCE: HOSTS[0], SINK: HOSTS[1]}
SYNC_S = 6.0  # of a rebalance
DELAY_S = 0.001  # between two machines, on average: a local network
_WAVERS = 0.2  # by which measured delays differ from one round to the next
_CUSTOMERS = 40_000
_LOADS = (0.05, 0.2, 0.4, 0.6, 0.7, 0.8, 0.85, 0.9, 0.94, 0.97)
_SCV = 0.5  # of service times: between constant and exponential ones


def rate_at(number: int) -> float:
    """Low at night, high in the evening; days differ a little."""
    day = 2 * pi * number / 24
    busy = 0.5 - 0.4 * cos(day) - 0.1 * cos(2 * day)
    return LOW + (HIGH - LOW) * busy * (1.0, 0.9, 1.0, 0.95)[number // 24 % 4]


def curve(service_rate: float, seed: int) -> QueueModel:
    """Response time by load, measured on a queue that is played customer by customer (Lindley)."""
    rng = np.random.default_rng(seed)
    times_s = []
    for load in _LOADS:
        service_s = rng.gamma(1 / _SCV, _SCV / service_rate, _CUSTOMERS)
        between_s = rng.exponential(1 / (load * service_rate), _CUSTOMERS)
        times_s.append(float((_waits_s(service_s, between_s) + service_s).mean()))
    rising = np.maximum.accumulate(times_s)
    return measured(
        1 / service_rate,
        MeasuredCurve(
            rates=tuple(load * service_rate for load in _LOADS), times_s=tuple(float(one) for one in rising)
        ),
    )


def _waits_s(service_s: Floats, between_s: Floats) -> Floats:
    """W(n+1) = max(W(n) + S(n) - A(n), 0), all at once: how far the walk is above its lowest point so far."""
    walk = np.concatenate([[0.0], np.cumsum(service_s[:-1] - between_s[:-1])])
    waits: Floats = walk - np.minimum.accumulate(walk)
    return waits


def curves() -> dict[str, QueueModel]:
    return {name: curve(rate, seed) for seed, (name, rate) in enumerate(SERVICE_RATES.items())}


def days(
    weights: tuple[float, float, float],
    *,
    queues: dict[str, QueueModel],
    assumed: Assumed | None = None,
    seed: int = 1,
    round_done: Callable[[], None] = lambda: None,
) -> Iterator[Minute]:
    """Round by round. Where no plan keeps all bounds, what runs stays."""
    assumed = assumed or Assumed()
    rng = np.random.default_rng(seed)
    apart_s = rng.uniform(0.5, 1.5, (len(HOSTS), len(HOSTS))) * DELAY_S
    current: Plan | None = None
    for number in range(ROUNDS):
        now_s = apart_s * rng.uniform(1 - _WAVERS, 1 + _WAVERS, apart_s.shape)
        np.fill_diagonal(now_s, 0.0)
        asked = problem(
            rate_at(number),
            on=network(HOSTS, now_s, assumed.link_price, slots=SLOTS),
            weights=weights if current is not None else BASELINE,
            replicas=3,
            assumed=assumed,
            pinned=PINNED,
            current=current,
            max_response_time_s=0.150,
            max_cost=15.0,
            max_downtime_s=60.0,
            queues=queues,
            engine=Engine(sync_s=SYNC_S, restarts_all=True),
        )
        answer = solve(asked)
        round_done()
        if isinstance(answer, Optimal | Incumbent):
            plan, comes_to = answer.plan, answer.comes_to
        elif current is not None:
            plan, comes_to = current, evaluated(asked, current)
        else:
            raise AssertionError(f"the first round has no plan: {answer}")
        before = current or plan
        changed = tuple(name for name, hosts in plan.items() if before[name] != hosts)
        yield Minute(rate_at(number), plan, comes_to, changed)
        current = plan


def downtime_pct(rounds: list[Minute]) -> float:
    return 100 * sum(one.comes_to.downtime_s for one in rounds) / (len(rounds) * ROUND_S)


def inside(rounds: list[Minute], limit_s: float) -> list[Evaluation]:
    return [one.comes_to for one in rounds if one.comes_to.response_time_s <= limit_s]
