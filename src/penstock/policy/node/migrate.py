"""Sender-initiated migration (Cardellini 2018, sec. 6): a node over its target asks one replica to leave."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from numpy.random import Generator

from penstock.domain.observation import NodeObservation
from penstock.domain.request import Migrate
from penstock.policy.node.place import choose_node
from penstock.policy.parameters import Param, check_parameters
from penstock.policy.registry import node_policy


@node_policy("sender-initiated")
@dataclass(frozen=True, slots=True, kw_only=True)
class SenderInitiated:
    """Moves a random replica to a near node of the same type that is not overloaded itself.

    On another node type it would be another deployment, which is for its Operator Manager to choose.
    """

    target_utilisation: Annotated[
        float, Param("U_mig, the utilisation above which a replica is sent away", above=0, below=1)
    ] = 0.8

    def __post_init__(self) -> None:
        check_parameters(self)

    def propose(
        self, seen: NodeObservation, nodes: Mapping[str, NodeObservation], rng: Generator
    ) -> Migrate | None:
        if seen.utilisation is None or seen.utilisation <= self.target_utilisation or not seen.hosted:
            return None
        unfit = [
            name
            for name, node in nodes.items()
            if node.utilisation is None
            or node.utilisation > self.target_utilisation
            or node.node_type != seen.node_type
        ]
        operator = seen.hosted[int(rng.random() * len(seen.hosted))]
        target = choose_node(seen.node, nodes, rng, avoid=unfit)  # the sender is one of them
        if target is None:
            return None
        excess = (seen.utilisation - self.target_utilisation) / (1 - self.target_utilisation)
        return Migrate(
            operator=operator,
            origin=seen.node,
            target=target,
            score=min(excess, 1.0),
            reason=f"node '{seen.node}' at {seen.utilisation:.2f}, target {self.target_utilisation:.2f}",
        )
