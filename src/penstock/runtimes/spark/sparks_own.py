"""Executors as Spark's own dynamic allocation decides: Penstock counts them and changes nothing.

Its manager asks for executors of a profile when tasks have waited for a second, twice as many each second
that they go on waiting, and sends one away when it has had no task for a minute. For tasks to wait there
must be more of them than executors, so every chain's input is cut into as many parts as it may have
replicas, from beginning to end.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.runtimes.spark.allocation import known_to_spark
from penstock.runtimes.spark.executors import Executor, executors
from penstock.runtimes.spark.nodes import Node, known_profile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.runtimes.spark.running import RunningApp


class SparksOwnNodes:
    """The actuator holds a place for every chain and no more; the monitor sees the executors there are."""

    def __init__(self, spark: "SparkSession", running: "RunningApp", *, kind: str) -> None:
        self._spark, self._running, self._kind = spark, running, kind
        self._profiles = {
            known_to_spark(spark, known_profile(running.profiles, chain)): chain for chain in running.chains
        }
        self._places: dict[str, Node] = {}
        self._there: dict[str, tuple[Node, ...]] = {}

    def cut_for_all(self) -> None:
        """The input of every chain into as many parts as it may have replicas."""
        for name, chain in self._running.chains.items():
            self._running.share_among(name, chain.max_replicas)

    def acquire(self, chain: str, kind: str) -> Node:
        """A place in name only, which never has an executor and is never lost."""
        place = Node(name=chain, chain=chain, kind=kind)
        self._places[place.name] = place
        return place

    def drain(self, node: Node) -> None:
        raise RuntimeError(f"{node.name}: Spark's own allocation decides who leaves")

    def release(self, node: Node) -> None:
        raise RuntimeError(f"{node.name}: Spark's own allocation decides who leaves")

    def is_warm(self, node: Node) -> bool:
        return False

    def executors(self) -> Mapping[str, Executor | None]:
        """Those of chains, under names of their own; and the places, which have none."""
        found: dict[str, Executor | None] = dict.fromkeys(self._places)
        there: dict[str, list[Node]] = {}
        for one in executors(self._spark).values():
            chain = self._profiles.get(one.profile)
            if chain is not None:
                node = Node(name=f"{chain}-executor-{one.id}", chain=chain, kind=self._kind)
                there.setdefault(chain, []).append(node)
                found[node.name] = one
        self._there = {chain: tuple(nodes) for chain, nodes in there.items()}
        return found

    def nodes(self, chain: str) -> tuple[Node, ...]:
        """Of the executors found last."""
        return self._there.get(chain, ())

    @property
    def reconfiguring(self) -> tuple[str, ...]:
        """Nothing that Penstock began."""
        return ()

    def ready_s(self, chain: str) -> float | None:
        return None

    def coming(self, chain: str) -> tuple[int, ...] | None:
        return None
