"""Spares: executors of a chain that are warm and wait, so that a replica works on tuples at once.

A spare is a node like any other that nobody was given yet. Its executor tries the chain's work and is
then held by a task that waits for a file; the file appears when the spare is needed. It costs memory
and its price, and no processor time.
"""

import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.runtimes.spark.executors import Executor
from penstock.runtimes.spark.nodes import Node, Nodes
from penstock.runtimes.spark.running import RunningApp


@dataclass
class _Spare:
    node: Node
    free: Path  # appears when the executor is to be let go
    executor: str | None = None
    warm: threading.Event = field(default_factory=threading.Event)


class SpareNodes:
    """Nodes of which each chain has some to spare."""

    def __init__(self, nodes: Nodes, running: RunningApp, *, spares: int, kind: str) -> None:
        """As many `spares` per chain, of this type."""
        self._nodes, self._running, self._kind = nodes, running, kind
        self._wanted = dict.fromkeys(running.chains, spares)
        self._spares: dict[str, _Spare] = {}  # by node
        self._given: set[str] = set()  # nodes that were warm when they were acquired
        self._place = Path(tempfile.mkdtemp(dir=running.work, prefix="spares-"))

    def acquire(self, chain: str, kind: str) -> Node:
        if kind == self._kind:
            for name, spare in self._spares.items():
                if spare.node.chain == chain and spare.warm.is_set():
                    del self._spares[name]
                    self._given.add(name)
                    spare.free.touch()
                    return spare.node
        return self._nodes.acquire(chain, kind)

    def drain(self, node: Node) -> None:
        self._nodes.drain(node)

    def release(self, node: Node) -> None:
        self._nodes.release(node)

    def is_warm(self, node: Node) -> bool:
        return node.name in self._given

    def executors(self) -> Mapping[str, Executor | None]:
        found = self._nodes.executors()
        for name, spare in list(self._spares.items()):
            if name not in found:  # it died
                del self._spares[name]
                self._nodes.release(spare.node)
        for spare in self._spares.values():
            executor = found[spare.node.name]
            if spare.executor is None and executor is not None:
                spare.executor = executor.id
                threading.Thread(
                    target=self._warm_and_hold, args=(spare, dict(found)), name="spare", daemon=True
                ).start()
        return found

    def refill(self) -> None:
        """Ask for spares where some are missing; to be called once a chain's replicas are all there."""
        for chain, wanted in self._wanted.items():
            held = sum(1 for spare in self._spares.values() if spare.node.chain == chain)
            for _ in range(wanted - held):
                node = self._nodes.acquire(chain, self._kind)
                self._spares[node.name] = _Spare(node, self._place / node.name)

    @property
    def waiting(self) -> int:
        """Spares that are there, or on their way."""
        return len(self._spares)

    def _warm_and_hold(self, spare: _Spare, found: Mapping[str, Executor | None]) -> None:
        chain, mine = spare.node.chain, spare.executor
        if mine is None:
            return
        others = frozenset(one.id for one in found.values() if one is not None and one.id != mine)
        self._running.warm(chain, len(others) + 1, others)
        spare.warm.set()
        self._running.hold(chain, len(others) + 1, mine, spare.free)
