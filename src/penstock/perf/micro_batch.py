"""Response time on a micro-batch engine, which is not a queue of single tuples.

A micro-batch of n tuples on replicas of total speed k takes a + b n / k: a fixed part, whatever is
in it (planning, committing), and a part per tuple. It takes the tuples that arrived since the one
before it began. Under a steady load of x tuples/s batches settle at T = a + b x P / k, where the
period P is the trigger's or, if that is longer, T itself: then T = a / (1 - b x / k). A tuple waits
half a period for its batch to begin and stays until it ends, so R = P / 2 + T.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import inf, isfinite
from statistics import median
from typing import NamedTuple

from penstock.compiled import compilable
from penstock.domain.errors import InputError


@compilable
def settled_batch_s(fixed_s: float, tuple_s: float, trigger_s: float, rate: float, speed: float) -> float:
    """How long batches take under a steady load; infinite where they never settle."""
    if speed <= 0:
        return inf
    busy = tuple_s * rate / speed
    at_the_trigger = fixed_s + busy * trigger_s
    if at_the_trigger <= trigger_s:
        return at_the_trigger
    return fixed_s / (1 - busy) if busy < 1 else inf


@compilable
def settled_response_s(fixed_s: float, tuple_s: float, trigger_s: float, rate: float, speed: float) -> float:
    """From a tuple's arrival to the end of its batch, on average, once batches have settled."""
    batch_s = settled_batch_s(fixed_s, tuple_s, trigger_s, rate, speed)
    return max(batch_s, trigger_s) / 2 + batch_s


def attainable_s(bound_s: float, empty_s: float) -> float:
    """The bound; where empty batches alone are near it or beyond it, half as much again as their time.

    More replicas do nothing about the fixed part of a batch: what is asked of them is what they can do.
    """
    return max(bound_s, _NEAR * empty_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatches:
    """What an operator's micro-batches take."""

    fixed_s: float  # a
    tuple_s: float  # b, on a replica of speed 1
    shared_s: float = 0.0  # of a batch, whatever is in it, but shared by the replicas: what tasks take
    trigger_s: float = 0.0  # a batch begins this long after the one before it, at the earliest

    def __post_init__(self) -> None:
        for name in ("fixed_s", "tuple_s", "shared_s", "trigger_s"):
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                raise InputError(f"micro-batches: {name}={value}; it must be finite and not negative")

    def batch_s(self, rate: float, speed: float) -> float:
        """How long batches take under a steady load; infinite where they never settle."""
        return settled_batch_s(self.empty_s(speed), self.tuple_s, self.trigger_s, rate, speed)

    def response_time_s(self, rate: float, speed: float) -> float:
        """From a tuple's arrival to the end of its batch, on average."""
        return settled_response_s(self.empty_s(speed), self.tuple_s, self.trigger_s, rate, speed)

    def empty_s(self, speed: float) -> float:
        """What a batch takes whatever is in it."""
        return self.fixed_s + (self.shared_s / speed if speed > 0 else 0.0)

    def replicas_for(
        self,
        rate: float,
        bound_s: float,
        *,
        most: int,
        speed: float = 1.0,
        busiest: float = 1.0,
        alone_s: float = inf,
        backlog: float = 0.0,
        drain_s: float = inf,
    ) -> int:
        """The fewest replicas of this speed within the bound, at work for the share `busiest` of their
        time at the most; `most` where not even they are.

        They may be busier where the bound gives them time: where a load that is higher by as much as is kept
        free otherwise, and lasts for `alone_s`, until more of them can be at work, does not break it. A
        backlog that is to be gone after `drain_s` comes on top of the load, but while it lasts less has to be
        kept free. A bound that no number of replicas can keep is that of `attainable_s`.
        """
        load = rate + (backlog / drain_s if backlog > 0 else 0.0)
        within_s = attainable_s(bound_s, self.response_time_s(0.0, most * speed))
        for replicas in range(1, most + 1):
            total = replicas * speed
            calm = self.response_time_s(rate, total) <= within_s and (
                self.tuple_s * rate <= busiest * total
                or self._withstands(rate, rate / busiest, total, alone_s, within_s)
            )
            if calm and (backlog <= 0 or self.tuple_s * load <= max(busiest, DRAINING) * total):
                return replicas
        return most

    def _withstands(self, before: float, rate: float, speed: float, lasts_s: float, within_s: float) -> bool:
        """Whether batches under a higher load than before, one after the other, stay within the bound."""
        if self.tuple_s * before > _FULL * speed:
            return False
        batch_s, past_s = self.batch_s(before, speed), 0.0
        while past_s < lasts_s:
            period_s = max(batch_s, self.trigger_s)
            past_s += period_s
            last_s, batch_s = batch_s, self.empty_s(speed) + self.tuple_s * rate * period_s / speed
            if max(batch_s, self.trigger_s) / 2 + batch_s > within_s:
                return False
            if batch_s <= last_s:  # it has settled
                return True
        return True


class Batch(NamedTuple):
    """One micro-batch, or the mean of some, as measured."""

    tuples: float
    speed: float  # of all replicas that shared the work
    seconds: float


class Calibration(NamedTuple):
    """What the batches seen so far have told, each counting less with every later one.

    Where the time per tuple is measured inside the tasks, it is known but for what a task takes to begin
    and end, which weighs the less, the more tuples it has: so the least of what was measured is b. What
    else a batch took is a; a batch that waited for a cold executor takes far longer, and moves it little.
    Elsewhere, a and b are the line through (tuples per speed, seconds).
    """

    weight: float = 0.0
    work: float = 0.0  # tuples per unit of speed
    seconds: float = 0.0
    work2: float = 0.0
    work_seconds: float = 0.0
    tuple_s: float | None = None
    fixed_s: float | None = None
    shared_s: float = 0.0

    def seen(
        self,
        batch: Batch,
        *,
        kept: float,
        tuple_s: float | None = None,
        shared_s: float | None = None,
        disturbed: bool = False,
    ) -> "Calibration":
        """With one batch more; of what was known before, the share `kept` still counts.

        `tuple_s` is the time per tuple as measured in this batch's tasks, on a replica of speed 1, and
        `shared_s` what they take whatever is in them: where that is known, the time per tuple is without it,
        and taken as it is. A batch that something `disturbed`, such as a replica that starts beside it, may
        have taken longer for that.
        """
        work = batch.tuples / batch.speed
        least_s, fixed_s = self.tuple_s, self.fixed_s
        tasks_s = self.shared_s if tuple_s is None else shared_s or 0.0
        if tuple_s is not None and (shared_s is not None or self.shared_s > 0):
            least_s = tuple_s  # or known no longer: with what tasks take, it begins anew
        elif tuple_s is not None:
            # A batch that is nearly all fixed part says little of how long its few tuples take.
            tells = tuple_s * work > _TELLS * max(batch.seconds - tuple_s * work, 0.0)
            least_s = tuple_s if least_s is None else min(tuple_s, least_s * (_SLOWER if tells else 1.0))
        if least_s is not None:
            sample_s = max(batch.seconds - least_s * work - tasks_s / batch.speed, 0.0)
            if not (disturbed and fixed_s is not None and sample_s > fixed_s):
                fixed_s = _moved(fixed_s, sample_s)
        return Calibration(
            kept * self.weight + 1.0,
            kept * self.work + work,
            kept * self.seconds + batch.seconds,
            kept * self.work2 + work * work,
            kept * self.work_seconds + work * batch.seconds,
            least_s,
            fixed_s,
            tasks_s,
        )

    def model(self, *, trigger_s: float = 0.0) -> MicroBatches | None:
        """What is known by now; None before the first batch.

        Batches that are all alike do not tell a fixed part from a part per tuple: where no task measured
        it, all counts as per tuple, which asks for more replicas rather than for fewer.
        """
        if self.tuple_s is not None and self.fixed_s is not None:
            return MicroBatches(
                fixed_s=self.fixed_s, tuple_s=self.tuple_s, shared_s=self.shared_s, trigger_s=trigger_s
            )
        if self.weight == 0:
            return None
        work, seconds = self.work / self.weight, self.seconds / self.weight
        spread = self.work2 / self.weight - work * work
        most = seconds / work if work > 0 else 0.0
        slope = most
        if spread > (_TOLD_APART * work) ** 2:
            slope = (self.work_seconds / self.weight - work * seconds) / spread
        slope = min(max(slope, 0.0), most)
        return MicroBatches(fixed_s=seconds - slope * work, tuple_s=slope, trigger_s=trigger_s)


_FULL = 0.9  # share of the replicas' time, from which the least error of the model is too much
DRAINING = 0.8  # share of the replicas' time, while a backlog is worked off: the fixed parts take the rest
_NEAR = 1.5  # times the fixed part: what is left to gain costs many replicas
_TOLD_APART = 0.2  # standard deviation of the batches' work over its mean, from which a slope means something
_TELLS = 0.5  # of the fixed part: work on tuples from which a batch tells how long one takes
_SLOWER = 1.02  # how much longer a tuple may take than the least known, per batch
_DOWN, _UP = 0.5, 0.2  # how far the fixed part follows a batch that took less, and one that took more


def _moved(known_s: float | None, sample_s: float) -> float:
    if known_s is None:
        return sample_s
    if sample_s < known_s:
        return known_s + _DOWN * (sample_s - known_s)
    return known_s + _UP * (min(sample_s, 2 * known_s + _TINY_S) - known_s)


_TINY_S = 0.05  # so that what was once nothing can grow


def fixed_part_s(batches: Sequence[Batch], tuple_s: float) -> float:
    """What these batches took besides so much per tuple, as a rule: the median.

    Of batches that are all known already. `Calibration` follows them one by one and begins with the
    first, which is a cold one: 1.2 s where those after it have .1 s, and six intervals later .14 s.
    """
    if not batches:
        raise InputError("micro-batches: none were measured")
    return median(max(one.seconds - tuple_s * one.tuples / one.speed, 0.0) for one in batches)


def calibrated(
    batches: Iterable[Batch], *, kept: float = 0.98, tuples_s: Iterable[float | None] | None = None
) -> Calibration:
    """What these batches tell, the latest most; with the times per tuple measured in each."""
    known = Calibration()
    for batch, tuple_s in zip(batches, repeat(None) if tuples_s is None else tuples_s, strict=False):
        known = known.seen(batch, kept=kept, tuple_s=tuple_s)
    return known
