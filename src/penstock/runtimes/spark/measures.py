"""From what micro-batches reported to what the managers see; pure, so it is tested without Spark."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.runtimes.spark.stream_log import Origins
from penstock.runtimes.spark.taps import EntryReport, TaskReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How long tuples took, weighted by how many; None where there were none."""

    mean_s: float | None
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None


def waits(ended: Iterable[tuple[float, Origins]]) -> Waits:
    """Response times of tuples: of every (moment results were there, tuples by the moment they came)."""
    took = sorted((end - begin, tuples) for end, began in ended for begin, tuples in began if tuples)
    total = sum(tuples for _, tuples in took)
    if not total:
        return Waits(mean_s=None, p50_s=None, p95_s=None, p99_s=None)
    return Waits(
        mean_s=sum(seconds * tuples for seconds, tuples in took) / total,
        p50_s=_percentile(took, 0.50 * total),
        p95_s=_percentile(took, 0.95 * total),
        p99_s=_percentile(took, 0.99 * total),
    )


def _percentile(took: Sequence[tuple[float, int]], rank: float) -> float:
    passed = 0
    for seconds, tuples in took:
        passed += tuples
        if passed >= rank:
            return seconds
    return took[-1][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Service time per tuple that came in: mean, and variance where there is enough to tell."""

    mean_s: float | None
    variance_s2: float | None


Task = TaskReport | EntryReport


def service(batches: Iterable[tuple[int, Sequence[Task]]], *, one_stage: bool) -> Service:
    """From (tuples in, tasks) of every micro-batch.

    A task that served n tuples in d seconds is one sample of a mean of n service times, so the
    variance of one is about n (d/n - mean)^2. Where a shuffle stands before the last stage, nobody
    knows which task served how many tuples: then every micro-batch is one sample.
    """
    samples: list[tuple[float, float]] = []
    for tuples, tasks in batches:
        if not tuples or not tasks:
            continue
        if one_stage:
            # Tuples are dealt evenly to as many tasks as there are.
            samples += [(tuples / len(tasks), task.busy_s) for task in tasks]
        else:
            samples.append((tuples, sum(task.busy_s for task in tasks)))
    served = sum(tuples for tuples, _ in samples)
    if not served:
        return Service(mean_s=None, variance_s2=None)
    mean = sum(seconds for _, seconds in samples) / served
    if len(samples) < 2:
        return Service(mean_s=mean, variance_s2=None)
    spread = sum(tuples * (seconds / tuples - mean) ** 2 for tuples, seconds in samples)
    return Service(mean_s=mean, variance_s2=spread / (len(samples) - 1))


def utilisations(
    before: Mapping[str, float], now: Mapping[str, float], interval_s: float
) -> tuple[float, ...] | None:
    """Share of the interval each executor was in tasks; None where none was there all the time.

    `before` and `now` are seconds busy since the start, by executor. A task counts when it ends, so
    a long one may count more than the interval.
    """
    there = [one for one in now if one in before]
    if not there or not interval_s > 0:
        return None
    return tuple(max(now[one] - before[one], 0.0) / interval_s for one in sorted(there))


def busy_shares(
    executors: Sequence[str], tasks: Iterable[Task], *, began_s: float | None, ended_s: float
) -> tuple[float, ...] | None:
    """Share of the time each replica was at work on tuples; None where there was no time.

    The time is that of whole micro-batches, from the end of the last one before to the end of
    the last of these, so that no task is cut in two. What Spark does to begin and end a task is
    not work on tuples: it does not grow with the load.
    """
    if not executors or began_s is None or not ended_s > began_s:
        return None
    busy = dict.fromkeys(sorted(executors), 0.0)
    for task in tasks:
        if task.executor in busy:
            busy[task.executor] += task.busy_s
    return tuple(seconds / (ended_s - began_s) for seconds in busy.values())


def with_overload(
    shares: tuple[float, ...] | None, rate: float | None, service_s: float | None
) -> tuple[float, ...] | None:
    """Nobody is busy for more than all of the time: where more arrives than replicas can serve, their
    utilisation is as much above 1, on average, as the arrivals need. So policies tell how far it is."""
    if not shares or rate is None or service_s is None:
        return shares
    needed, mean = rate * service_s / len(shares), sum(shares) / len(shares)
    if needed <= 1 or not 0 < mean < needed:
        return shares
    return tuple(share * needed / mean for share in shares)


@dataclass
class Busyness:
    """How busy the replicas of one chain are, from interval to interval."""

    _since_s: float | None = None  # the end of the last micro-batch, or of a time without work

    def over(
        self, executors: Sequence[str], batches: Sequence[tuple[float, Sequence[Task]]]
    ) -> tuple[float, ...] | None:
        """By (end, tasks) of the micro-batches that ended in this interval."""
        if not batches:
            return None
        began_s, self._since_s = self._since_s, batches[-1][0]
        tasks = [task for _, of_batch in batches for task in of_batch]
        return busy_shares(executors, tasks, began_s=began_s, ended_s=self._since_s)

    def idle(self, executors: Sequence[str], now_s: float) -> tuple[float, ...] | None:
        """When there was nothing to do until now."""
        self._since_s = now_s
        return (0.0,) * len(executors) if executors else None


def skew(loads: Sequence[float] | None) -> float | None:
    """The busiest over the mean; 1 when all are alike."""
    if not loads:
        return None
    mean = sum(loads) / len(loads)
    return max(loads) / mean if mean > 0 else None


def total_of(values: Iterable[float | None]) -> float | None:
    """Unknown as soon as one of them is."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def mean_of(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
