"""Synthetic applications whose operators take a given time per tuple, and do nothing else.

For demonstrations and tests on small machines: an operator sleeps, so many replicas fit on
few cores, and how long a tuple takes is known. The time is drawn from a gamma distribution
with the operator's mean and squared coefficient of variation (0: constant, 1: exponential),
by the tuple's id: the same tuple takes the same time wherever and however often it is processed.
"""

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv

from penstock.apps.feeding.draws import uniform
from penstock.domain.application import Application, Operator
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.reconfigure.method import Method
from penstock.runtimes.spark.cluster import SPEED_VARIABLE
from penstock.runtimes.spark.topology import App, StreamOf

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]

SCHEMA = "id long, entered_s double"
_STEP_S = 0.02  # longest sleep: results leave, and a task can be stopped, that often


def paced(
    graph: Application,
    *,
    objective: Objective,
    slowdown: float = 1.0,
    seed: int = 0,
    protocol: Method = Method.LIVE,
) -> App:
    """The graph with operators that take their service times, `slowdown` times as long.

    Every stream carries all that leaves its origin: behind a diamond of three branches, every
    id arrives three times.
    """
    if not slowdown > 0:
        raise InputError(f"slowdown {slowdown}: it must be positive")
    app = App(graph.name, objective=objective)
    streams = {source.name: app.source(source.name, schema=SCHEMA) for source in graph.sources}
    for operator in graph.in_order:
        if operator.selectivity != 1:
            raise InputError(
                f"operator '{operator.name}': selectivity={operator.selectivity}; "
                "paced operators pass on every tuple"
            )
        streams[operator.name] = app.operator(
            operator.name,
            _transform(operator, slowdown, seed),
            *(streams[name] for name in graph.upstream(operator.name)),
            max_replicas=operator.max_replicas,
            protocol=protocol,
        )
    for sink in graph.sinks:
        app.sink(sink.name, _only(graph, sink.name, streams))
    return app


def service_times(ids: Ids, *, mean_s: float, scv: float, seed: int) -> Floats:
    """How long each tuple takes on a node of speed 1."""
    if scv == 0:
        return np.full(ids.size, mean_s)
    quantiles: Floats = gammaincinv(1 / scv, uniform(ids, seed))
    return quantiles * mean_s * scv


def pieces(times_s: Floats, step_s: float) -> Iterator[tuple[int, int, float]]:
    """Tuples side by side (first, how many, seconds) that take about a step, or one that takes longer."""
    steps = np.floor(np.cumsum(times_s) / step_s)
    edges = [0, *(np.flatnonzero(np.diff(steps)) + 1).tolist(), times_s.size]
    for first, last in pairwise(edges):
        if first < last:
            yield first, last - first, float(times_s[first:last].sum())


def node_speed() -> float:
    """How fast the node is that this runs on."""
    return float(os.environ.get(SPEED_VARIABLE, "1"))


def work(
    batches: "Iterator[RecordBatch]", *, mean_s: float, scv: float, seed: int
) -> "Iterator[RecordBatch]":
    """Passes tuples on, each after its time."""
    speed = node_speed()
    for batch in batches:
        ids = np.array(batch.column("id").to_pylist(), dtype=np.int64)
        times_s = service_times(ids, mean_s=mean_s, scv=scv, seed=seed) / speed
        due_s = time.perf_counter()
        for first, tuples, takes_s in pieces(times_s, _STEP_S):
            due_s += takes_s  # not from when the last sleep ended: it always oversleeps a little
            _sleep_until(due_s)
            yield batch.slice(first, tuples)


def _sleep_until(due_s: float) -> None:
    while (left_s := due_s - time.perf_counter()) > 0:
        time.sleep(min(left_s, _STEP_S))


def _transform(operator: Operator, slowdown: float, seed: int) -> "Callable[..., DataFrame]":
    own_seed = crc32(f"{seed} {operator.name}".encode())
    pace = partial(work, mean_s=operator.service_time_s * slowdown, scv=operator.service_scv, seed=own_seed)

    def transform(first: "DataFrame", *others: "DataFrame") -> "DataFrame":
        """(id long, entered_s double), ... -> (id long, entered_s double)."""
        together = first
        for other in others:
            together = together.unionAll(other)
        return together.mapInArrow(pace, SCHEMA)

    return transform


def _only(graph: Application, sink: str, streams: dict[str, StreamOf]) -> StreamOf:
    origins = graph.upstream(sink)
    if len(origins) != 1:
        raise InputError(f"sink '{sink}': {len(origins)} streams end in it; only one can")
    return streams[next(iter(origins))]
