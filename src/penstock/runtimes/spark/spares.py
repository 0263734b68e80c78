"""Spares: executors of a chain that are warm and wait, so that a replica works on tuples at once.

A spare is a node like any other that nobody was given yet. Its executor tries the chain's work and is
then held by a task that waits for a file; the file appears when the spare is needed. It costs memory
and its price, and no processor time.

A thread looks after every spare until it is held. What is shared with the control loop, and with the
threads that release nodes, is behind one lock.
"""

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from penstock.runtimes.spark.cluster import ClusterError
from penstock.runtimes.spark.executors import Executor
from penstock.runtimes.spark.nodes import Node, Nodes
from penstock.runtimes.spark.running import RunningApp

_FOLDER = "spares-"
_LOOK_S = 0.1  # a new executor that is not held soon is given a micro-batch's work
_ENDS_S = 5.0  # for the threads of all spares


class _Phase(IntEnum):
    COMING = 0  # no executor yet
    WARMING = 1
    WARM = 2  # and held, in a moment


@dataclass
class _Spare:
    node: Node
    free: Path  # appears when the executor is to be let go
    phase: _Phase = _Phase.COMING
    executor: str | None = None
    wanted: bool = True  # as a spare: not once it is a replica's, or gone


class SpareNodes:
    """Nodes of which each chain has some to spare, or none."""

    def __init__(
        self,
        nodes: Nodes,
        running: RunningApp,
        *,
        spares: int,
        kind: str,
        allowed: Callable[[Sequence[str]], bool] = lambda kinds: True,
    ) -> None:
        """As many `spares` per chain, of this type, as far as nodes of such types are `allowed` together."""
        self._nodes, self._running, self._kind, self._number = nodes, running, kind, spares
        self._allowed = allowed
        self._held: dict[str, Node] = {}  # all there are
        self._spares: dict[str, _Spare] = {}  # by node
        self._taken: dict[str, _Spare] = {}  # by node: replicas now
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._closed = False
        for left in running.work.glob(f"{_FOLDER}*"):  # by a driver that was killed
            shutil.rmtree(left, ignore_errors=True)
        self._place = Path(tempfile.mkdtemp(dir=running.work, prefix=_FOLDER))

    def acquire(self, chain: str, kind: str) -> Node:
        """The spare that is farthest on its way, or else a node asked for now."""
        if kind == self._kind:
            spare = self._take(chain)
            if spare is not None:
                return spare.node
        # A replica is worth more than another chain's spare.
        while not self._has_room_for(kind) and self._give_one_up():
            pass
        try:
            return self._acquire(chain, kind)
        except ClusterError:
            if not self._give_one_up():
                raise
            return self._acquire(chain, kind)

    def drain(self, node: Node) -> None:
        self._nodes.drain(node)

    def release(self, node: Node) -> None:
        with self._lock:
            self._taken.pop(node.name, None)
        self._release(node)

    def is_warm(self, node: Node) -> bool:
        with self._lock:
            taken = self._taken.get(node.name)
            return taken is not None and taken.phase is _Phase.WARM

    def executors(self) -> Mapping[str, Executor | None]:
        """One that was taken while it tried its work is not there before it has."""
        found = dict(self._nodes.executors())
        with self._lock:
            dead = [spare for name, spare in self._spares.items() if name not in found]
            for spare in dead:
                self._let_go(spare)
            for name, spare in self._taken.items():
                if name in found and spare.phase is _Phase.WARMING:
                    found[name] = None
        for spare in dead:
            self._release(spare.node)
        return found

    def refill(self) -> None:
        """Ask for spares where some are missing; to be called when no replica is on its way."""
        for name, chain in self._running.chains.items():
            with self._lock:
                held = sum(1 for spare in self._spares.values() if spare.node.chain == name)
            if held >= self._number or self._closed:
                continue
            # Without a tuple there is nothing to try, and what was not tried is not warm.
            if any(self._running.log(stream).last() is None for stream in chain.inputs):
                continue
            for _ in range(self._number - held):
                if not self._has_room_for(self._kind):
                    return
                with suppress(ClusterError):  # no room for spares
                    self._await(self._acquire(name, self._kind))

    @property
    def waiting(self) -> int:
        """Spares whose executor is there and costs."""
        with self._lock:
            return sum(1 for one in self._spares.values() if one.phase is not _Phase.COMING)

    def ready(self, chain: str) -> int:
        """Spares of a chain that are warm."""
        with self._lock:
            return sum(
                1 for one in self._spares.values() if one.node.chain == chain and one.phase is _Phase.WARM
            )

    def close(self) -> None:
        """Let all go and ask for none any more; the executors end with the application."""
        self._closed = True
        with self._lock:
            for spare in list(self._spares.values()):
                self._let_go(spare)
        deadline_s = time.monotonic() + _ENDS_S
        for thread in self._threads:
            thread.join(max(deadline_s - time.monotonic(), 0.0))
        shutil.rmtree(self._place, ignore_errors=True)

    def _take(self, chain: str) -> _Spare | None:
        with self._lock:
            mine = [one for one in self._spares.values() if one.node.chain == chain]
            if not mine:
                return None
            spare = max(mine, key=lambda one: one.phase)
            self._let_go(spare)
            self._taken[spare.node.name] = spare
        if spare.executor is not None:  # a task it was given before it was held is not its first as a replica
            self._running.forget_served(chain, spare.executor)
        return spare

    def _give_one_up(self) -> bool:
        with self._lock:
            if not self._spares:
                return False
            spare = min(self._spares.values(), key=lambda one: one.phase)
            self._let_go(spare)
        self._release(spare.node)
        return True

    def _has_room_for(self, kind: str) -> bool:
        with self._lock:
            return self._allowed([*(node.kind for node in self._held.values()), kind])

    def _acquire(self, chain: str, kind: str) -> Node:
        node = self._nodes.acquire(chain, kind)
        with self._lock:
            self._held[node.name] = node
        return node

    def _release(self, node: Node) -> None:
        with self._lock:
            self._held.pop(node.name, None)
        self._nodes.release(node)

    def _let_go(self, spare: _Spare) -> None:
        """It is a spare no longer; its task ends, or is never begun. Under the lock."""
        del self._spares[spare.node.name]
        spare.wanted = False
        with suppress(OSError):  # a full disk: the replica waits for the protocol's deadline
            spare.free.touch()

    def _await(self, node: Node) -> None:
        spare = _Spare(node, self._place / f"{node.name}.free")
        thread = threading.Thread(
            target=self._look_after, args=(spare,), name=f"spare-{node.name}", daemon=True
        )
        with self._lock:
            self._spares[node.name] = spare
            self._threads = [*(one for one in self._threads if one.is_alive()), thread]
        thread.start()

    def _look_after(self, spare: _Spare) -> None:
        # Whatever Spark raises, when it stops or when an executor dies: the spare is then found dead,
        # or is less warm than it could be.
        with suppress(Exception):
            executor = self._arrived(spare)
            if executor is not None:
                self._try_out(spare, executor)
                if spare.wanted:
                    self._hold(spare, executor)

    def _arrived(self, spare: _Spare) -> Executor | None:
        """Its executor, once there is one; None if it is a spare no longer."""
        while spare.wanted:
            executor = self._nodes.executors().get(spare.node.name)
            with self._lock:
                if executor is not None and spare.wanted:
                    spare.phase, spare.executor = _Phase.WARMING, executor.id
                    return executor
            time.sleep(_LOOK_S)
        return None

    def _try_out(self, spare: _Spare, executor: Executor) -> None:
        try:
            self._running.warm(spare.node.chain, self._like(executor), frozenset((executor.id,)))
        finally:
            with self._lock:
                spare.phase = _Phase.WARM

    def _hold(self, spare: _Spare, executor: Executor) -> None:
        self._running.hold(spare.node.chain, self._like(executor), executor.id, spare.free)

    def _like(self, executor: Executor) -> int:
        """How many executors its chain has: they have its profile."""
        found = self._nodes.executors().values()
        return sum(1 for one in found if one is not None and one.profile == executor.profile)
