"""Where a new replica goes, and which one leaves (Cardellini 2018, sec. 5): nearer nodes are more likely."""

from collections.abc import Mapping, Sequence

from numpy.random import Generator

from penstock.domain.observation import NodeObservation


def choose_node(
    origin: str, nodes: Mapping[str, NodeObservation], rng: Generator, *, avoid: Sequence[str] = ()
) -> str | None:
    """A node with a free slot, more likely the closer it is to `origin`; None where all are full.

    The probability falls with the rank of the delay (1, 1/2, 1/3, ...): delays that are
    nearly equal, or zero for the node itself, should not decide everything.
    """
    delays = nodes[origin].delay_s
    free = [
        name
        for name, node in nodes.items()
        if node.free_slots > 0 and name not in avoid and (name == origin or name in delays)
    ]
    if not free:
        return None
    ranked = sorted(free, key=lambda name: (0.0 if name == origin else delays[name], name))
    weights = [1.0 / rank for rank in range(1, len(ranked) + 1)]
    pick = rng.random() * sum(weights)
    for name, weight in zip(ranked, weights, strict=True):
        pick -= weight
        if pick <= 0:
            return name
    return ranked[-1]


def busiest_host(hosts: Sequence[str], nodes: Mapping[str, NodeObservation]) -> str:
    """The node that a scale-in relieves: the busiest among those that run a replica.

    A node whose utilisation is not known is never preferred to one that is known.
    """
    return max(sorted(set(hosts)), key=lambda name: _known(nodes[name].utilisation))


def _known(utilisation: float | None) -> float:
    return -1.0 if utilisation is None else utilisation
