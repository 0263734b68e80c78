"""Computing nodes for simulated applications: a number of every type, with room and distances."""

from dataclasses import dataclass
from itertools import combinations
from math import inf

import numpy as np

from penstock.domain.errors import InputError
from penstock.domain.infrastructure import Infrastructure, Link, Node, NodeType


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """How many nodes there are of every type, how many replicas each can host, how far apart they are."""

    per_type: int
    slots: int
    delay_s: float  # one way, mean over all pairs

    def __post_init__(self) -> None:
        if self.per_type < 1 or self.slots < 1:
            raise InputError(
                f"hosts {self.per_type}:{self.slots}: give at least one node with room for a replica"
            )
        if not 0 <= self.delay_s < inf:
            raise InputError(
                f"hosts: a delay of {1000 * self.delay_s:g} ms; it must be finite and not negative"
            )


def hosts_of(text: str) -> Hosts:
    """`4:8:5`: four nodes of every type, eight replicas each, 5 ms apart on average."""
    try:
        per_type, slots, delay_ms = text.split(":")
        numbers = int(per_type), int(slots), float(delay_ms)
    except ValueError:
        raise InputError(f"hosts '{text}': give NODES:SLOTS:MS, as in 4:8:5") from None
    return Hosts(per_type=numbers[0], slots=numbers[1], delay_s=numbers[2] / 1000)


def network(hosts: Hosts, node_types: tuple[NodeType, ...], seed: int) -> Infrastructure:
    """The nodes scattered over a square, delays in proportion to distances."""
    nodes = tuple(
        Node(name=f"{node_type.name}-{index + 1}", node_type=node_type.name, slots=hosts.slots)
        for node_type in node_types
        for index in range(hosts.per_type)
    )
    places = np.random.default_rng(seed).uniform(size=(len(nodes), 2))
    pairs = list(combinations(range(len(nodes)), 2))
    apart = [float(np.linalg.norm(places[a] - places[b])) for a, b in pairs]
    links = tuple(
        Link(a=nodes[a].name, b=nodes[b].name, delay_s=hosts.delay_s * distance / float(np.mean(apart)))
        for (a, b), distance in zip(pairs, apart, strict=True)
    )
    return Infrastructure(name="hosts", node_types=node_types, nodes=nodes, links=links)
