"""The figures of a run, told interval by interval: it keeps none of them, so a run may go on for ever."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.control.safety_settings import FULL_HOST
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.live.record import Interval, Summary, host_load, response_of
from penstock.perf.histogram import Histogram
from penstock.reconfigure.words import Ending, Record

_FIRST_S = 60.0  # in which a run settles


@dataclass
class _Share:
    """Of those that could be judged, how many were so."""

    judged: int = 0
    were_so: int = 0

    def add(self, is_so: bool) -> None:
        self.judged += 1
        self.were_so += is_so

    @property
    def pct(self) -> float | None:
        return 100 * self.were_so / self.judged if self.judged else None


class Tally:
    """Adds up what was measured; one operator's replicas are compared with those of the interval before."""

    def __init__(self, *, objective_s: float, node_types: Sequence[NodeType], began_s: float) -> None:
        self._objective_s, self._node_types = objective_s, node_types
        self.began_s = began_s  # may be set until the first interval
        self.intervals = 0
        self._ended_s: float | None = None  # the latest interval
        self._late, self._late_settled, self._full = _Share(), _Share(), _Share()
        self._took = Histogram()
        self._tuples = 0
        self._replica_s = self._cost = self._downtime_s = 0.0
        self._before: tuple[Replicas, ...] = ()
        self._replica_changes = self._reconfigurations = 0

    def interval(self, interval: Interval) -> None:
        seen = interval.seen
        self._judge(interval)
        before_s = self.began_s if self._ended_s is None else self._ended_s
        length_s = max(seen.at_s - before_s, 0.0)
        self._replica_s += replicas_of(interval) * length_s
        self._cost += self._price(interval) * length_s / 3600
        replicas = tuple(one.replicas for one in seen.operators)
        if self.intervals:
            pairs = zip(self._before, replicas, strict=True)
            self._replica_changes += sum(now != before for before, now in pairs)
        self._before, self._ended_s = replicas, seen.at_s
        self.intervals += 1

    def left(self, response_times: Iterable[tuple[float, int]]) -> None:
        """(response time, tuples) of what left the application."""
        for seconds, tuples in response_times:
            self._took.add(seconds, tuples)
            self._tuples += tuples

    def record(self, record: Record) -> None:
        self._downtime_s += record.downtime_s
        if record.outcome in (Ending.DONE, Ending.PARTLY) and not record.repair:
            self._reconfigurations += 1

    def summary(
        self,
        *,
        application: str,
        policy: str,
        finished: bool,
        seconds: float,
        unfinished: Sequence[tuple[float, int]] = (),
        failures: Sequence[str] = (),
        given_up: int = 0,
    ) -> Summary:
        """So far. `unfinished` has (time, tuples) of what is still inside: at least so long did it take."""
        took = self._took.copy()
        for waited_s, tuples in unfinished:
            took.add(waited_s, tuples)
        ended_s = self.began_s if self._ended_s is None else self._ended_s
        return Summary(
            application=application,
            policy=policy,
            finished=finished,
            seconds=seconds,
            tuples=self._tuples,
            unfinished=sum(tuples for _, tuples in unfinished),
            violations_pct=self._late.pct,
            violations_after_first_minute_pct=self._late_settled.pct,
            response_time_p50_s=took.percentile(0.50),
            response_time_p95_s=took.percentile(0.95),
            response_time_p99_s=took.percentile(0.99),
            average_replicas=self._replica_s / (ended_s - self.began_s) if ended_s > self.began_s else 0.0,
            replica_seconds=self._replica_s,
            cost=self._cost,
            reconfigurations=self._reconfigurations,
            downtime_pct=100 * self._downtime_s / seconds if seconds else 0.0,
            replica_changes=self._replica_changes,
            host_full_pct=self._full.pct,
            given_up=given_up,
            failures=tuple(failures),
        )

    def _judge(self, interval: Interval) -> None:
        response_s, load = response_of(interval), host_load(interval)
        if response_s is not None:
            is_late = response_s > self._objective_s
            self._late.add(is_late)
            if interval.seen.at_s - self.began_s > _FIRST_S:
                self._late_settled.add(is_late)
        if load is not None:
            self._full.add(load >= FULL_HOST)

    def _price(self, interval: Interval) -> float:
        """Of all that is there, per hour."""
        price = interval.spares * self._node_types[0].price
        for one in interval.seen.operators:
            pairs = zip(one.replicas.counts, self._node_types, strict=True)
            price += sum(count * kind.price for count, kind in pairs)
        return price


def replicas_of(interval: Interval) -> int:
    """Of all operators, spares among them."""
    return interval.spares + sum(one.replicas.total for one in interval.seen.operators)
