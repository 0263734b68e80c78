"""How long a pause-and-resume reconfiguration stops the application."""

from dataclasses import dataclass

from penstock.domain.application import Operator
from penstock.domain.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseAndResume:
    """Stop, move state, restart: a fixed part, and the state that has to travel."""

    fixed_s: float
    state_bandwidth_bytes_s: float = 100e6

    def __post_init__(self) -> None:
        if not self.fixed_s >= 0 or not self.state_bandwidth_bytes_s > 0:
            raise InputError(
                f"pause of {self.fixed_s} s at {self.state_bandwidth_bytes_s} bytes/s: not possible"
            )

    def seconds(self, changed: dict[Operator, tuple[int, int]]) -> float:
        """Downtime of changing these operators, from how many replicas to how many, all at once."""
        if not changed:
            return 0.0
        return self.fixed_s + sum(
            state_moved(operator, before, after) / self.state_bandwidth_bytes_s
            for operator, (before, after) in changed.items()
        )


def state_moved(operator: Operator, before: int, after: int) -> float:
    """Bytes of state that change replica when evenly spread state is spread evenly anew.

    Growing from n to m replicas moves (m-n)/m of it to the new ones; shrinking the other way
    moves as much back. The same number of replicas is a migration: one replica's share.
    """
    if before == after:
        return operator.state_bytes / after
    return operator.state_bytes * abs(after - before) / max(before, after)
