"""Replicas one at a time: one comes, works on tuples, goes again; the next is asked for when all is calm."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.bench.attached import process_of
from penstock.bench.light_load import Place
from penstock.domain.deployment import Replicas
from penstock.domain.request import ScaleIn, ScaleOut, Verdict
from penstock.reconfigure.words import Ending, Record
from penstock.runtimes.spark.actuator import SparkActuator
from penstock.runtimes.spark.cluster import ClusterError, NodeKind
from penstock.runtimes.spark.monitor import SparkMonitor
from penstock.runtimes.spark.nodes import nodes_for
from penstock.runtimes.spark.spares import SpareNodes

_KIND = NodeKind(name="standard")
_CALM_S = 2.0
_POLL_S = 0.1
_IDLE_POLL_S = 1.0  # as in a run in which nothing changes
_ENDS_S = 120.0  # a change
_REPLACED_S = 60.0  # a killed executor
_WARM_S = 60.0  # a spare


class OneReplica:
    """The application's chains have one replica each; one of them gets a second."""

    def __init__(self, place: Place, *, spares: int = 0, on_poll: Callable[[], None] = lambda: None) -> None:
        """`on_poll` is called whenever it is looked what has happened."""
        self._place, self._scaled = place, place.steady.scaled
        self._nodes = SpareNodes(
            nodes_for(place.cluster, place.spark, place.running, [_KIND]),
            place.running,
            spares=spares,
            kind=_KIND.name,
        )
        self._spares, self._on_poll = spares, on_poll
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
        self._rest(_WARM_S, lambda: self._nodes.ready(self._scaled) >= self._spares)
        record = self._changed(2)
        self._rest()
        self._changed(1)
        return record

    def monitor(self) -> SparkMonitor:
        return SparkMonitor(self._place.running, self._actuator, [_KIND.name])

    def idle(self, seconds: float) -> None:
        """Nothing changes for so long."""
        until_s = time.monotonic() + seconds
        self._until(seconds + _WARM_S, lambda: time.monotonic() >= until_s, "time", poll_s=_IDLE_POLL_S)

    def killed(self) -> float:
        """Kill the executor of the only replica; seconds until there is another."""
        victim = self._executor()
        if victim is None:
            raise ClusterError(f"'{self._scaled}' has no executor")
        os.kill(process_of(self._place.spark.sparkContext.applicationId, victim), signal.SIGKILL)
        began_s = time.monotonic()
        self._until(_REPLACED_S, lambda: self._executor() not in (None, victim), "another executor")
        return time.monotonic() - began_s

    def _executor(self) -> str | None:
        there = self._nodes.executors()
        found = [there.get(node.name) for node in self._actuator.nodes(self._scaled)]
        return next((one.id for one in found if one is not None), None)

    def _changed(self, replicas: int) -> Record:
        kind = ScaleOut if replicas > 1 else ScaleIn
        request = kind(
            operator=self._scaled, target=Replicas((replicas,)), nodes=(), score=1.0, reason="a benchmark"
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

    def _until(
        self, within_s: float, true: Callable[[], bool], what: str, *, poll_s: float = _POLL_S
    ) -> None:
        deadline_s = time.monotonic() + within_s
        while not true():
            if time.monotonic() > deadline_s:
                raise ClusterError(f"{what} of '{self._scaled}': not within {within_s:g} s")
            self._place.check()
            time.sleep(poll_s)
            self._actuator.poll()
            self._on_poll()


def is_good(record: Record) -> bool:
    return record.outcome is Ending.DONE and not record.repair and bool(record.change.add)
