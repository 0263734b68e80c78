"""What runs where: how many replicas of an operator on each node type."""

from dataclasses import dataclass

from penstock.domain.errors import InputError

MOST_REPLICAS = 100_000  # of an operator: no engine runs as many, and much is worked out for each number


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


def check_max_replicas(most: int, *, of: str = "") -> None:
    """Whether an operator may be allowed that many; `of` names it."""
    named = f"{of}: max_replicas={most}" if of else f"max_replicas={most}"
    if most < 1:
        raise InputError(f"{named}; at least one replica must run")
    if most > MOST_REPLICAS:
        raise InputError(f"{named}; at most {MOST_REPLICAS:,} can run")
