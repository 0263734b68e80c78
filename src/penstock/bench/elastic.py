"""How many tuples a second the simulated elastic operator takes: one event is one tuple all the way.

That is splitter, queue, replica and merger; the measurement after each step is part of the time,
drawing the tuples is not.
"""

import os
import time
from collections.abc import Callable, Iterator

import numpy as np

from penstock.bench.figure import Figure
from penstock.bench.plain_elastic import delivered_s
from penstock.runtimes.sim.elastic.costs import Costs
from penstock.runtimes.sim.elastic.operator import QUEUE_CAPACITY, ElasticOperator
from penstock.runtimes.sim.elastic.protocol import Protocol

STAGES = 3
_KEYS = 2836  # De Matteis 2017
_RATE = 16_000  # tuples that trigger, of 4e5 a second
_STEPS, _PLAIN_STEPS = 60, 4
_REPEATS = 5
_LEAST = 5e6


def run_elastic(*, stage: Callable[[str], None]) -> Iterator[Figure]:
    """Steady, while keys move all the time, and against plain Python."""
    yield Figure(name="machine load before", value=os.getloadavg()[0], unit="")
    stage("steady, 6 and 12 replicas")
    for replicas in (6, 12):
        rate = max(events_per_s(replicas=replicas) for _ in range(_REPEATS))
        name = f"{replicas} replicas, {_KEYS:,} keys, steps of 1 s"
        yield Figure(name=name, value=rate / 1e6, unit="M tuple events/s", at_least=_LEAST / 1e6)
    stage("all keys move in every step")
    for protocol in Protocol:
        moving = max(events_per_s(replicas=12, protocol=protocol) for _ in range(_REPEATS))
        name = f"12 replicas, keys move by {protocol.name} every second"
        yield Figure(name=name, value=moving / 1e6, unit="M tuple events/s")
    stage("plain Python")
    plain = max(plain_events_per_s() for _ in range(_REPEATS))
    yield Figure(name="plain Python, 12 replicas, no measuring", value=plain / 1e3, unit="k tuple events/s")
    yield Figure(name="12 replicas, compiled over plain", value=rate / plain, unit="x")


def events_per_s(*, replicas: int, protocol: Protocol | None = None, steps: int = _STEPS) -> float:
    """A stream at random that keeps replicas .8 busy; with a protocol, every second key by key elsewhere."""
    rng = np.random.default_rng(1)
    table = np.arange(_KEYS) % replicas
    operator = ElasticOperator(keys=_KEYS, replicas=replicas, max_replicas=12, frequency_ghz=2.0, table=table)
    took_s = 0.0
    for step in range(steps):
        arrivals_s = step + np.sort(rng.random(_RATE))
        keys = rng.integers(0, _KEYS, _RATE)
        ticks = rng.exponential(0.8 * replicas / _RATE * 2e9, _RATE)
        began_s = time.perf_counter()
        if protocol is not None:
            operator.reconfigure(float(step), table=(table + step) % replicas, protocol=protocol)
        operator.advance(arrivals_s, keys, ticks, step + 1.0)
        took_s += time.perf_counter() - began_s
    return steps * _RATE / took_s


def plain_events_per_s() -> float:
    """The steady stream through a plain-Python operator that measures nothing."""
    rng = np.random.default_rng(1)
    tuples = _PLAIN_STEPS * _RATE
    arrivals_s = np.sort(rng.random(tuples)) * _PLAIN_STEPS
    keys = rng.integers(0, _KEYS, tuples)
    service_s = rng.exponential(0.8 * 12 / _RATE, tuples)
    table = (np.arange(_KEYS) % 12).tolist()
    given = (arrivals_s.tolist(), keys.tolist(), service_s.tolist(), table)
    began_s = time.perf_counter()
    delivered_s(*given, capacity=QUEUE_CAPACITY, split_s=Costs().split_s, merge_s=Costs().merge_s)
    return tuples / (time.perf_counter() - began_s)
