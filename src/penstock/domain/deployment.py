"""What runs where: how many replicas of an operator on each node type."""

from dataclasses import dataclass

from penstock.domain.errors import InputError


@dataclass(frozen=True, slots=True)
class Replicas:
    """Replicas of one operator per node type, in the order of the infrastructure's types."""

    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if min(self.counts, default=0) < 0:
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
