"""Response time on a micro-batch engine, which is not a queue of single tuples.

A micro-batch of n tuples on replicas of total speed k takes a + b n / k: a fixed part, whatever is
in it (planning, committing), and a part per tuple. It takes the tuples that arrived since the one
before it began. Under a steady load of x tuples/s batches settle at T = a + b x P / k, where the
period P is the trigger's or, if that is longer, T itself: then T = a / (1 - b x / k). A tuple waits
half a period for its batch to begin and stays until it ends, so R = P / 2 + T.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isfinite
from typing import NamedTuple

from penstock.domain.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatches:
    """What an operator's micro-batches take."""

    fixed_s: float  # a
    tuple_s: float  # b, on a replica of speed 1
    trigger_s: float = 0.0  # a batch begins this long after the one before it, at the earliest

    def __post_init__(self) -> None:
        for name in ("fixed_s", "tuple_s", "trigger_s"):
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                raise InputError(f"micro-batches: {name}={value}; it must be finite and not negative")

    def batch_s(self, rate: float, speed: float) -> float:
        """How long batches take under a steady load; infinite where they never settle."""
        if speed <= 0:
            return inf
        busy = self.tuple_s * rate / speed
        at_the_trigger = self.fixed_s + busy * self.trigger_s
        if at_the_trigger <= self.trigger_s:
            return at_the_trigger
        return self.fixed_s / (1 - busy) if busy < 1 else inf

    def response_time_s(self, rate: float, speed: float) -> float:
        """From a tuple's arrival to the end of its batch, on average."""
        batch_s = self.batch_s(rate, speed)
        return max(batch_s, self.trigger_s) / 2 + batch_s

    def replicas_for(
        self,
        rate: float,
        bound_s: float,
        *,
        most: int,
        speed: float = 1.0,
        backlog: float = 0.0,
        drain_s: float = inf,
    ) -> int:
        """The fewest replicas of this speed within the bound; `most` where no number of them is.

        A backlog that is to be gone after `drain_s` comes on top of the load.
        """
        load = rate + (backlog / drain_s if backlog > 0 else 0.0)
        for replicas in range(1, most + 1):
            if self.response_time_s(load, replicas * speed) <= bound_s:
                return replicas
        return most


class Batch(NamedTuple):
    """One micro-batch, or the mean of some, as measured."""

    tuples: float
    speed: float  # of all replicas that shared the work
    seconds: float


class Calibration(NamedTuple):
    """Sums over the batches seen, each counting less with every later one."""

    weight: float = 0.0
    work: float = 0.0  # tuples per unit of speed
    seconds: float = 0.0
    work2: float = 0.0
    work_seconds: float = 0.0

    def seen(self, batch: Batch, *, kept: float) -> "Calibration":
        """With one batch more; of what was known before, the share `kept` still counts."""
        work = batch.tuples / batch.speed
        return Calibration(
            kept * self.weight + 1.0,
            kept * self.work + work,
            kept * self.seconds + batch.seconds,
            kept * self.work2 + work * work,
            kept * self.work_seconds + work * batch.seconds,
        )

    def model(self, *, trigger_s: float = 0.0, tuple_s: float | None = None) -> MicroBatches | None:
        """The line through what was seen; None before the first batch.

        Batches that are all alike do not tell a fixed part from a part per tuple: then `tuple_s`
        decides, the time per tuple measured inside the tasks, and without it all counts as per tuple,
        which asks for more replicas rather than for fewer.
        """
        if self.weight == 0:
            return None
        work, seconds = self.work / self.weight, self.seconds / self.weight
        spread = self.work2 / self.weight - work * work
        if spread > (_TOLD_APART * work) ** 2:
            slope = (self.work_seconds / self.weight - work * seconds) / spread
        elif tuple_s is not None:
            slope = tuple_s
        else:
            slope = seconds / work if work > 0 else 0.0
        slope = min(max(slope, 0.0), seconds / work if work > 0 else 0.0)
        return MicroBatches(fixed_s=seconds - slope * work, tuple_s=slope, trigger_s=trigger_s)


_TOLD_APART = 0.2  # standard deviation of the batches' work over its mean, from which a slope means something


def calibrated(batches: Iterable[Batch], *, kept: float = 0.98) -> Calibration:
    """What these batches tell, the latest most."""
    known = Calibration()
    for batch in batches:
        known = known.seen(batch, kept=kept)
    return known
