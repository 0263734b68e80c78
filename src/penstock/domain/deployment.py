"""What runs where: how many replicas of an operator on each node type."""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.domain.errors import InputError


@dataclass(frozen=True, slots=True)
class Replicas:
    """Replicas of one operator per node type, in the order of the infrastructure's types."""

    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(count < 0 for count in self.counts):
            raise InputError(f"replicas {self.counts}: a count cannot be negative")
        if sum(self.counts) < 1:
            raise InputError(f"replicas {self.counts}: at least one replica must run")

    @property
    def total(self) -> int:
        return sum(self.counts)

    def changed(self, node_type: int, delta: int) -> "Replicas":
        counts = list(self.counts)
        counts[node_type] += delta
        return Replicas(tuple(counts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where the replicas of one operator sit, one node name per replica."""

    operator: str
    nodes: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.nodes:
            raise InputError(f"operator '{self.operator}': no replicas placed; at least one must run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A whole application: replicas per type for every operator."""

    replicas: Mapping[str, Replicas]

    def of(self, operator: str) -> Replicas:
        if operator not in self.replicas:
            raise InputError(f"deployment: operator '{operator}' is not deployed")
        return self.replicas[operator]
