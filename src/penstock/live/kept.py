"""What is kept in memory of a run: as much after weeks as after hours.

Its figures are of all of it; its course is thinned out; of what was decided and changed there is the latest.
All of it is in the run folder, in `metrics/` and in the journal.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from penstock.domain.infrastructure import NodeType
from penstock.live.record import Interval, response_of
from penstock.live.tally import Tally, replicas_of
from penstock.live.thinned import Line, Thinned
from penstock.reconfigure.words import Record

LATEST_INTERVALS = 5_000  # one after the other, at a few kilobytes each: seven hours at five seconds
LATEST_CHANGES = 500
COURSE = 2_000  # points of a line in a plot


class Kept:
    """Told of every interval, of what left the application, and of every reconfiguration."""

    def __init__(self, *, objective_s: float, node_types: Sequence[NodeType], began_s: float) -> None:
        self.tally = Tally(objective_s=objective_s, node_types=node_types, began_s=began_s)
        self.course = Thinned[Interval](COURSE, _lines_of)
        self.latest: deque[Interval] = deque(maxlen=LATEST_INTERVALS)
        self.changing: deque[Interval] = deque(maxlen=LATEST_CHANGES)  # those in which something was started
        self.records: deque[Record] = deque(maxlen=LATEST_CHANGES)
        self.all_changing = self.all_records = 0  # how many there were

    @property
    def began_s(self) -> float:
        return self.tally.began_s

    @property
    def has_all(self) -> bool:
        """Whether the latest intervals are all there were."""
        return self.tally.intervals == len(self.latest)

    def begin(self, at_s: float) -> None:
        """From this moment on intervals are counted; before the first one."""
        self.tally.began_s = at_s

    def interval(self, interval: Interval) -> None:
        self.tally.interval(interval)
        self.course.add(interval)
        self.latest.append(interval)
        if interval.changed:
            self.changing.append(interval)
            self.all_changing += 1

    def left(self, response_times: Iterable[tuple[float, int]]) -> None:
        """(response time, tuples) of what left the application."""
        self.tally.left(response_times)

    def record(self, record: Record) -> None:
        self.tally.record(record)
        self.records.append(record)
        self.all_records += 1


def _lines_of(interval: Interval) -> tuple[Line, ...]:
    """What is drawn of an interval."""
    seen = interval.seen
    return (
        seen.source_rate,
        seen.response_time_s,
        seen.response_time_p95_s,
        response_of(interval),
        replicas_of(interval),
        *(one.replicas.total for one in seen.operators),
        *(one.backlog for one in seen.operators),
    )
