"""Where operators can run: kinds of nodes, the nodes themselves and the links between them."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

from penstock.domain.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeType:
    """A kind of node that can be acquired: how fast it is, and what a replica on it costs."""

    name: str
    speedup: float  # service rate relative to the reference node
    price: float  # of a replica per unit of time; per hour in a live run
    watts: float | None = None  # that a replica on it draws: a price of its own; None = not known

    def __post_init__(self) -> None:
        if not (isfinite(self.speedup) and self.speedup > 0):
            raise InputError(f"node type '{self.name}': speedup={self.speedup}; it must be positive")
        if not (isfinite(self.price) and self.price >= 0):
            raise InputError(f"node type '{self.name}': price={self.price}; it cannot be negative")
        if self.watts is not None and not (isfinite(self.watts) and self.watts >= 0):
            raise InputError(
                f"node type '{self.name}': watts={self.watts}; it must be finite and not negative"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One host of a node type, with room for some replicas."""

    name: str
    node_type: str
    slots: int  # replicas it can host

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise InputError(f"node '{self.name}': slots={self.slots}; it must host at least one replica")


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The network between two nodes, the same in both directions."""

    a: str
    b: str
    delay_s: float
    bandwidth_bytes_s: float | None = None  # None = not known

    def __post_init__(self) -> None:
        if self.a == self.b:
            raise InputError(f"link {self.a}-{self.b}: a link joins two different nodes")
        if not (isfinite(self.delay_s) and self.delay_s >= 0):
            raise InputError(f"link {self.a}-{self.b}: delay_s={self.delay_s}; it cannot be negative")
        if self.bandwidth_bytes_s is not None and not self.bandwidth_bytes_s > 0:
            raise InputError(
                f"link {self.a}-{self.b}: bandwidth_bytes_s={self.bandwidth_bytes_s}; it must be positive"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Infrastructure:
    """Node types on offer and, where placement matters, the nodes and links there are.

    Without nodes, as many nodes of every type as asked for can be acquired (a cloud).
    """

    name: str
    node_types: tuple[NodeType, ...]
    nodes: tuple[Node, ...] = ()
    links: tuple[Link, ...] = ()

    def __post_init__(self) -> None:
        if not self.node_types:
            raise InputError(f"infrastructure '{self.name}': no node types; at least one is needed")
        types = _unique(f"infrastructure '{self.name}': node type", (t.name for t in self.node_types))
        hosts = _unique(f"infrastructure '{self.name}': node", (n.name for n in self.nodes))
        for node in self.nodes:
            if node.node_type not in types:
                raise InputError(f"node '{node.name}': unknown node type '{node.node_type}'")
        for link in self.links:
            for end in (link.a, link.b):
                if end not in hosts:
                    raise InputError(f"link {link.a}-{link.b}: unknown node '{end}'")


def _unique(what: str, names: Iterable[str]) -> frozenset[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{what} '{name}' appears twice")
        seen.add(name)
    return frozenset(seen)
