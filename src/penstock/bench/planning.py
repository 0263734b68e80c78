"""How planning grows with hosts, operators and replicas: time, memory and, where time is up, the gap."""

import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from penstock.bench.figure import Figure
from penstock.papers.edrp_tables import random_delays_s
from penstock.perf.queueing import m_m_1
from penstock.planning.problem import Engine, Goal, Host, Network, PlannedOperator, PlannedStream, Problem
from penstock.planning.solve import Incumbent, Optimal, solve

_LIMIT_S = 30.0
_SLACK_S = 3.0  # to notice that time is up
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
    for hosts, operators, replicas in _SIZES:
        stage(f"{hosts} hosts, {operators} operators, k = {replicas}")
        # In a separate process, so that its peak memory is this problem's alone.
        context = multiprocessing.get_context("spawn")
        with context.Pool(1) as pool:
            took = pool.apply(_planned, (hosts, operators, replicas))
        name = f"{hosts} hosts, {operators} operators, k = {replicas}"
        yield Figure(name=f"{name}: time", value=took.time_s, unit="s", at_most=_LIMIT_S + _SLACK_S)
        yield Figure(name=f"{name}: memory", value=took.memory_mb, unit="MB")
        yield Figure(name=f"{name}: gap", value=100 * took.gap, unit="%")


class _Took(NamedTuple):
    time_s: float
    memory_mb: float
    gap: float  # 1 where no plan was found


def _planned(hosts: int, operators: int, replicas: int) -> _Took:
    solve(chain(4, 3, 2))  # compiled
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    asked = chain(hosts, operators, replicas)
    began_s = time.perf_counter()
    answer = solve(asked, enough=lambda: time.perf_counter() - began_s > _LIMIT_S)
    took_s = time.perf_counter() - began_s
    memory_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    match answer:
        case Optimal():
            return _Took(took_s, memory_mb, 0.0)
        case Incumbent():
            return _Took(took_s, memory_mb, answer.gap)
        case _:
            return _Took(took_s, memory_mb, 1.0)


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
