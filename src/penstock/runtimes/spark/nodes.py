"""Where replicas come from: a node is a place for one replica of one chain, and has one executor.

With one type of nodes, executors are asked for by resource profile, wherever the cluster has
room. Where types differ, workers are started one by one, each with the tag of one chain as a custom
resource: Spark puts that chain's executor on it, and no other.
"""

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from penstock.domain.errors import InputError
from penstock.runtimes.spark.allocation import Allocation
from penstock.runtimes.spark.cluster import ClusterError, LocalCluster, NodeKind
from penstock.runtimes.spark.executors import Executor, executors

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile
    from pyspark.sql import SparkSession

    from penstock.runtimes.spark.running import RunningApp

_UNCLAIMED_S = 5.0  # after which an executor that no node has waited for is one too many


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A place for one replica."""

    name: str
    chain: str  # whose replica it is for
    kind: str  # node type


class Nodes(Protocol):
    """Acquires and releases nodes; a cloud provider can stand behind it."""

    def acquire(self, chain: str, kind: str) -> Node:
        """A node for a replica. It is ready when its executor shows up, not before."""

    def drain(self, node: Node) -> None:
        """Ask the node to finish what runs and take nothing new."""

    def release(self, node: Node) -> None:
        """Give the node back, whatever runs on it."""

    def executors(self) -> Mapping[str, Executor | None]:
        """The executor of every node that lives, by the node's name; None for one that has none yet."""

    def is_warm(self, node: Node) -> bool:
        """Whether its executor has tried its chain's work already."""


def nodes_for(
    cluster: LocalCluster, spark: "SparkSession", running: "RunningApp", kinds: Sequence[NodeKind]
) -> Nodes:
    """For an application on a cluster that offers these types of nodes."""
    allocation = Allocation(spark)
    chains = running.chains.values()
    if len(kinds) == 1:
        # On one machine, executors that all start at once are all late; one takes a core and a half.
        at_once = max((os.cpu_count() or 1) // 2, 1) if cluster.master is None else None
        return ProfileNodes(spark, allocation, running.profiles, kinds[0], at_once=at_once)
    for chain in chains:  # there are as many as there are workers for them
        allocation.ask(allocation.add(known_profile(running.profiles, chain.name)), chain.max_replicas)
    allocation.ask(0, 1)
    return TaggedNodes(spark, cluster, running.tags, kinds, allocation)


class ProfileNodes:
    """Executors by profile, on whatever workers there are."""

    def __init__(
        self,
        spark: "SparkSession",
        allocation: Allocation,
        profiles: Mapping[str, "ResourceProfile | None"],
        kind: NodeKind,
        *,
        at_once: int | None = None,
    ) -> None:
        """At most so many start `at_once`, until their executor is there."""
        self._spark, self._allocation, self._kind, self._at_once = spark, allocation, kind, at_once
        self._profiles = {chain: allocation.add(known_profile(profiles, chain)) for chain in profiles}
        self._held: dict[str, _Held] = {}  # in the order they were asked for
        self._started = 0
        self._unclaimed_s: dict[str, float] = {}  # since when nobody has these executors
        self._killed: set[str] = set()  # executors that are listed for a moment more
        self._lock = threading.Lock()  # nodes are released by other threads

    def acquire(self, chain: str, kind: str) -> Node:
        with self._lock:
            _check_room(kind, (self._kind,), (one.node for one in self._held.values()))
            self._started += 1
            node = Node(name=f"{chain}-{self._started}", chain=chain, kind=kind)
            self._held[node.name] = _Held(node)
            self._start_some()
        return node

    def drain(self, node: Node) -> None:
        with self._lock:
            held = self._held.get(node.name)
            if held is not None and held.executor is not None and not held.leaving:
                held.leaving = True
                self._allocation.send_away(held.executor, self._profiles[node.chain])

    def release(self, node: Node) -> None:
        with self._lock:
            held = self._held.pop(node.name, None)
            self._ask(node.chain)
            if held is not None and held.executor in executors(self._spark):
                self._kill(held.executor)

    def executors(self) -> Mapping[str, Executor | None]:
        self._allocation.serve_default()
        self._allocation.remind()
        with self._lock:
            # Looked for here: what was found before another thread had the lock lacks what that one gave out.
            there = executors(self._spark)
            self._killed &= there.keys()
            taken = {one.executor for one in self._held.values()} | self._killed
            free = sorted((one for one in there.values() if one.id not in taken), key=lambda one: int(one.id))
            found: dict[str, Executor | None] = {}
            for name, held in self._held.items():
                if held.executor is None:
                    profile = self._profiles[held.node.chain]
                    arrived = next((one for one in free if one.profile == profile), None)
                    if arrived is not None:
                        free.remove(arrived)
                        held.executor = arrived.id
                held.lost = held.executor is not None and held.executor not in there
                if not held.lost:
                    found[name] = None if held.executor is None else there[held.executor]
            self._start_some()
            self._kill_unclaimed(free)
            return found

    def is_warm(self, node: Node) -> bool:
        return False

    def _start_some(self) -> None:
        """As many as may start now, in the order they were acquired; the first of a chain need not wait."""
        asked = [one for one in self._held.values() if one.asked and not one.lost]
        for held in self._held.values():
            starting = sum(1 for one in asked if one.executor is None)
            first = all(one.node.chain != held.node.chain for one in asked)
            if not held.asked and (first or self._at_once is None or starting < self._at_once):
                held.asked = True
                asked.append(held)
                self._ask(held.node.chain)

    def _kill_unclaimed(self, free: Sequence[Executor]) -> None:
        """Those that came for a node given back meanwhile, or in place of one that died and is not replaced:
        they would take tasks, and cost, and be counted by nobody. A repair may still ask for the latter."""
        now_s = time.monotonic()
        self._unclaimed_s = {one.id: self._unclaimed_s.get(one.id, now_s) for one in free}
        for chain, profile in self._profiles.items():
            lost = sum(1 for one in self._held.values() if one.lost and one.node.chain == chain)
            for one in [one for one in free if one.profile == profile][lost:]:
                if now_s - self._unclaimed_s[one.id] >= _UNCLAIMED_S:
                    self._kill(one.id)

    def _kill(self, executor: str) -> None:
        self._allocation.kill(executor)
        self._killed.add(executor)

    def _ask(self, chain: str) -> None:
        """Spark replaces one that died by itself, before anybody asks. So a node asked for in its place adds
        none, even while the lost one is still to be released: an executor too many would never leave."""
        mine = [one for one in self._held.values() if one.node.chain == chain and one.asked]
        wanted = sum(1 for one in mine if not (one.leaving or one.lost))
        self._allocation.ask(self._profiles[chain], wanted)


@dataclass
class _Held:
    node: Node
    asked: bool = False  # Spark for its executor
    executor: str | None = None
    leaving: bool = False
    lost: bool = False  # its executor was there, and is no more


@dataclass
class TaggedNodes:
    """A worker of its own for every replica, on this machine."""

    spark: "SparkSession"
    cluster: LocalCluster
    tags: Mapping[str, str]  # of the chains
    kinds: Sequence[NodeKind]
    allocation: Allocation
    _held: dict[str, Node] = field(default_factory=dict)
    _started: int = 0

    def acquire(self, chain: str, kind: str) -> Node:
        alive = self.cluster.workers()
        offered = _check_room(kind, self.kinds, (self._held[name] for name in alive if name in self._held))
        self._started += 1
        node = Node(name=f"{self.tags[chain]}-{self._started}", chain=chain, kind=kind)
        self.cluster.start_worker(
            node.name,
            cores=offered.cores,
            memory_mb=offered.memory_mb,
            tag=self.tags[chain],
            speedup=offered.speedup,
        )
        self._held[node.name] = node
        return node

    def drain(self, node: Node) -> None:
        self.cluster.decommission(node.name)

    def release(self, node: Node) -> None:
        self.cluster.stop_worker(node.name)
        self._held.pop(node.name, None)

    def executors(self) -> Mapping[str, Executor | None]:
        self.allocation.remind()
        by_host = {one.host: one for one in executors(self.spark).values()}
        return {
            name: by_host.get(host)
            for name, host in self.cluster.workers().items()
            if name in list(self._held)  # nodes are released by other threads
        }

    def is_warm(self, node: Node) -> bool:
        return False


def _check_room(kind: str, offered: Sequence[NodeKind], held: Iterable[Node]) -> NodeKind:
    found = next((one for one in offered if one.name == kind), None)
    if found is None:
        raise InputError(
            f"node type '{kind}': unknown; choose one of {', '.join(one.name for one in offered)}"
        )
    if sum(1 for node in held if node.kind == kind) >= found.slots:
        raise ClusterError(f"node type '{kind}': all {found.slots} slots are taken")
    return found


def known_profile(profiles: Mapping[str, "ResourceProfile | None"], chain: str) -> "ResourceProfile":
    profile = profiles[chain]
    if profile is None:
        raise InputError("a local master has no executors to choose among; give the address of a cluster")
    return profile
