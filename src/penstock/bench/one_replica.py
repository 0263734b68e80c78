"""Replicas one at a time: one comes, works on tuples, goes again; the next is asked for when all is calm."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.bench.light_load import SCALED, Place
from penstock.domain.deployment import Replicas
from penstock.domain.request import ScaleIn, ScaleOut, Verdict
from penstock.reconfigure.words import Ending, Record
from penstock.runtimes.spark.actuator import SparkActuator
from penstock.runtimes.spark.cluster import ClusterError, NodeKind
from penstock.runtimes.spark.nodes import nodes_for
from penstock.runtimes.spark.spares import SpareNodes

_KIND = NodeKind(name="standard")
_CALM_S = 2.0
_POLL_S = 0.1
_ENDS_S = 120.0  # a change
_WARM_S = 60.0  # a spare


class OneReplica:
    """The application's chains have one replica each; one of them gets a second."""

    def __init__(self, place: Place, *, spares: int = 0) -> None:
        self._place = place
        self._nodes = SpareNodes(
            nodes_for(place.cluster, place.spark, place.running, [_KIND]),
            place.running,
            spares=spares,
            kind=_KIND.name,
        )
        self._spares = spares
        self._ended: list[Record] = []
        self._actuator = SparkActuator(
            place.running, place.spark, self._nodes, [_KIND.name], ended=self._ended.append
        )
        self._actuator.adopt({name: [self._nodes.acquire(name, _KIND.name)] for name in place.running.chains})

    @contextmanager
    def at_work(self) -> Iterator[None]:
        with self._place.at_work():
            try:
                yield
            finally:
                self._nodes.close()
                self._actuator.stop()

    def added(self) -> Record:
        """Calm, a replica more, calm, and without it again; what is told of is the coming."""
        self._rest(_WARM_S, lambda: self._nodes.ready(SCALED) >= self._spares)
        record = self._changed(2)
        self._rest()
        self._changed(1)
        return record

    def _changed(self, replicas: int) -> Record:
        kind = ScaleOut if replicas > 1 else ScaleIn
        request = kind(
            operator=SCALED, target=Replicas((replicas,)), nodes=(), score=1.0, reason="a benchmark"
        )
        self._ended.clear()
        self._actuator.apply(Verdict((request,)))
        self._until(_ENDS_S, lambda: bool(self._ended), f"change to {replicas} replicas")
        return self._ended[0]

    def _rest(self, within_s: float = 0.0, until: Callable[[], bool] = lambda: True) -> None:
        """A few seconds of calm, spares and all."""
        self._until(within_s + _CALM_S, lambda: self._calm() and until(), "calm")
        calm_s = time.monotonic() + _CALM_S
        self._until(_CALM_S + _WARM_S, lambda: time.monotonic() >= calm_s, "rest")

    def _calm(self) -> bool:
        if self._actuator.reconfiguring:
            return False
        self._nodes.refill()
        return True

    def _until(self, within_s: float, true: Callable[[], bool], what: str) -> None:
        deadline_s = time.monotonic() + within_s
        while not true():
            if time.monotonic() > deadline_s:
                raise ClusterError(f"{what} of '{SCALED}': not within {within_s:g} s")
            self._place.check()
            time.sleep(_POLL_S)
            self._actuator.poll()


def is_good(record: Record) -> bool:
    return record.outcome is Ending.DONE and not record.repair and bool(record.change.add)
