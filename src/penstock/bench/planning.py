"""How planning grows with hosts, operators and replicas: time, memory and, where time is up, the gap."""

import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from penstock.bench.figure import Figure
from penstock.papers.edrp_tables import random_delays_s
from penstock.perf.queueing import m_m_1
from penstock.planning.problem import Engine, Goal, Host, Network, PlannedOperator, PlannedStream, Problem
from penstock.planning.solve import Answer, Incumbent, Optimal, solve

_LIMIT_S = 30.0
_SIZES = (
    *((hosts, 8, 2) for hosts in (8, 16, 32, 64, 100)),
    *((16, operators, 2) for operators in (4, 12, 16, 20)),
    *((16, 8, replicas) for replicas in (1, 3, 4)),
    (100, 20, 2),
)
STAGES = len(_SIZES)


def run_planning(*, stage: Callable[[str], None]) -> Iterator[Figure]:
    """Sizes that grow one after the other from the usual one, and the largest of all."""
    yield Figure(name="machine load before", value=os.getloadavg()[0], unit="")
    solve(chain(4, 3, 2))  # compiled
    for hosts, operators, replicas in _SIZES:
        stage(f"{hosts} hosts, {operators} operators, {replicas} replicas")
        name = f"{hosts} hosts, {operators} operators, k = {replicas}"
        asked = chain(hosts, operators, replicas)
        tracemalloc.start()
        answer, took_s = _timed(asked)
        memory_mb = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        yield Figure(name=f"{name}: time", value=took_s, unit="s")
        yield Figure(name=f"{name}: memory", value=memory_mb, unit="MB")
        if isinstance(answer, Optimal):
            yield Figure(name=f"{name}: gap", value=0.0, unit="%")
        elif isinstance(answer, Incumbent):
            yield Figure(name=f"{name}: gap", value=100 * answer.gap, unit="%")
        else:
            yield Figure(name=f"{name}: no plan found, gap", value=100.0, unit="%")


def _timed(asked: Problem) -> tuple[Answer, float]:
    began_s = time.perf_counter()
    answer = solve(asked, enough=lambda: time.perf_counter() - began_s > _LIMIT_S)
    return answer, time.perf_counter() - began_s


def chain(hosts: int, operators: int, replicas: int, *, seed: int = 1) -> Problem:
    """Operators one after the other, with another way past the second, on hosts that differ."""
    rng = np.random.default_rng([seed, hosts, operators])
    price = np.full((hosts, hosts), 0.001)
    np.fill_diagonal(price, 0.0)
    names = [f"operator {number}" for number in range(operators)]
    streams = [PlannedStream(origin=a, target=b, rate=100.0) for a, b in pairwise(names)]
    if operators > 3:
        streams.append(PlannedStream(origin=names[0], target=names[2], rate=100.0))
    return Problem(
        operators=tuple(
            PlannedOperator(
                name=name,
                rate=100.0,
                queue=m_m_1(1 / float(rng.uniform(120, 400))),
                max_replicas=replicas,
                code_bytes=3e5,
                state_bytes=1e6,
            )
            for name in names
        ),
        streams=tuple(streams),
        network=Network(
            hosts=tuple(
                Host(
                    name=f"host {number}",
                    capacity=2.0,
                    speedup=float(rng.choice([1.0, 1.5])),
                    price=float(rng.choice([1.0, 1.6])),
                )
                for number in range(hosts)
            ),
            delay_s=random_delays_s(hosts, seed),
            price=price,
        ),
        goal=Goal(
            response_time=0.5,
            cost=0.5,
            downtime=0.0,
            max_response_time_s=10.0,
            max_cost=1e3,
            max_downtime_s=60.0,
        ),
        engine=Engine(sync_s=0.25),
    )
