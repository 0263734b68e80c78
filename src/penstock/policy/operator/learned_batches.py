"""What an operator's micro-batches take, learned from its observations as they end."""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.observation import OperatorObservation
from penstock.perf.micro_batch import Batch, Calibration, MicroBatches
from penstock.policy.kernel import is_measured

KEPT = 0.9  # share of what is known that an interval later still counts


class Grown(NamedTuple):
    """When replicas last came, or were on their way."""

    replicas: int = 0
    at_s: float = -inf


class LearnedBatches(NamedTuple):
    """What the batches so far have told."""

    known: Calibration = Calibration()
    grown: Grown = Grown()

    def model(self, *, trigger_s: float = 0.0) -> MicroBatches | None:
        """None as long as no batch has ended."""
        return self.known.model(trigger_s=trigger_s)

    def seen(
        self,
        one: OperatorObservation,
        node_types: Sequence[NodeType],
        *,
        ready_s: float,
        kept: float = KEPT,
    ) -> "LearnedBatches":
        """With one interval more; `ready_s` is how long a replica takes where that was not measured."""
        if not (is_measured(one.batch_s, finite=True) and is_measured(one.batch_tuples, finite=True)):
            return self
        each = speed_of(one.replicas, node_types) / one.replicas.total
        shared = one.batch_replicas if is_measured(one.batch_replicas, finite=True) else 0.0
        batch = Batch(one.batch_tuples, each * (shared or one.replicas.total), one.batch_s)
        tuple_s = shared_s = None
        if is_measured(one.service_time_s, finite=True):
            tuple_s = one.service_time_s * each  # on a replica of speed 1
        if is_measured(one.batch_tasks_s, finite=True):
            shared_s = one.batch_tasks_s * each
        grown = self.grown
        if sum(one.coming or ()) or one.replicas.total > grown.replicas:
            grown = Grown(one.replicas.total, one.at_s)
        grown = grown._replace(replicas=one.replicas.total)
        disturbed = one.at_s - grown.at_s <= comes_within_s(one, ready_s)
        known = self.known.seen(batch, kept=kept, tuple_s=tuple_s, shared_s=shared_s, disturbed=disturbed)
        return LearnedBatches(known, grown)


def comes_within_s(one: OperatorObservation, ready_s: float) -> float:
    """From asking for a replica to its first tuples: as measured lately, else as given."""
    return one.ready_s if is_measured(one.ready_s, finite=True) else ready_s


def speed_of(replicas: Replicas, node_types: Sequence[NodeType]) -> float:
    pairs = zip(replicas.counts, node_types, strict=True)
    return sum(count * one.speedup for count, one in pairs)
