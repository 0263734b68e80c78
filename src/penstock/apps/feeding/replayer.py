"""Brings tuples into a running application as a schedule says, in a thread of its own."""

import threading
import time
from itertools import pairwise

from penstock.apps.feeding.schedule import Schedule
from penstock.apps.feeding.tuples import Tuples
from penstock.runtimes.spark.feed import Feed
from penstock.runtimes.spark.stream_log import Origins

_MOST_AT_ONCE = 10_000  # rows of one batch, when much is due at once
_GROUPS = 8  # of tuples in one batch, by when they were due


class Replayer(threading.Thread):
    """Feeds one source until all is sent, or until it is told to stop.

    It continues at the feed's position: after a restart nothing is sent twice or left out, and the
    schedule continues too, as if no time had passed. At the end it marks the stream as finished.
    """

    def __init__(self, feed: Feed, tuples: Tuples, schedule: Schedule, *, every_s: float = 0.25) -> None:
        super().__init__(name="penstock-replayer", daemon=True)
        self._feed, self._tuples, self._schedule, self._every_s = feed, tuples, schedule, every_s
        self._interrupted = threading.Event()
        self._finish_early = False
        self._began_at_s = 0.0  # when the schedule began, as the clock on the wall says
        self.failure: Exception | None = None  # why it ended, when it should not have

    @property
    def problem(self) -> str | None:
        """Why it ended, when it should not have."""
        return None if self.failure is None else str(self.failure)

    @property
    def total(self) -> int:
        """How many tuples it sends, the end marker apart."""
        there_are = self._tuples.total
        return self._schedule.total if there_are is None else min(self._schedule.total, there_are)

    def run(self) -> None:
        try:
            self._replay()
        except Exception as problem:  # a thread's errors are otherwise only printed
            self.failure = problem

    def stop(self) -> None:
        """Send nothing more; the stream stays open, to be continued later."""
        self._interrupted.set()
        self.join()

    def finish(self) -> None:
        """Send nothing more but the end of the stream."""
        self._finish_early = True
        self.stop()

    def _replay(self) -> None:
        sent = self._feed.position
        begin_s = time.monotonic() - (self._schedule.moment(sent - 1) if sent else 0.0)
        self._began_at_s = time.time() - (time.monotonic() - begin_s)
        while not self._feed.ended and not self._interrupted.is_set():
            due = min(self._schedule.due(time.monotonic() - begin_s), self.total)
            self._send_until(due)
            if self._feed.position >= self.total:
                self._end()
            else:
                self._interrupted.wait(self._every_s)
        if self._finish_early and not self._feed.ended:
            self._end()

    def _send_until(self, due: int) -> None:
        while self._feed.position < due and not self._interrupted.is_set():
            first, now = self._feed.position, time.time()
            count = min(due - first, _MOST_AT_ONCE)
            table = self._tuples.table(first, count, entered_s=now)
            self._feed.append(table, entered_at_s=now, due=self._due(first, count, now))

    def _due(self, first: int, count: int, now: float) -> Origins:
        """When tuples were due, in a few groups: a sender that is late does not make them younger."""
        groups = min(count, _GROUPS)
        edges = [first + count * group // groups for group in range(groups + 1)]
        return tuple(
            (min(self._began_at_s + self._schedule.moment((begin + end) // 2), now), end - begin)
            for begin, end in pairwise(edges)
        )

    def _end(self) -> None:
        now = time.time()
        last = self._tuples.end(self._feed.position, entered_s=now)
        self._feed.append(last, entered_at_s=now, final=True)
