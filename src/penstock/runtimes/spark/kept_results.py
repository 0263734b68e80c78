"""Results that no writer takes are kept in their log, but not without end: beyond a limit, the oldest go."""

import json
from pathlib import Path

from penstock.domain.errors import InputError
from penstock.files import write_whole
from penstock.runtimes.spark.stream_log import StreamLog


class KeptResults:
    """The consumer of a log for whom everything is kept, up to so many bytes."""

    def __init__(self, log: StreamLog, consumer: str, *, most_bytes: float) -> None:
        self._log, self._consumer, self._most = log, consumer, most_bytes
        until, self.given_up = self._told()  # tuples, since the run began
        # Kept from, counted up to.
        self._oldest = self._next = max(until, log.needs(consumer), log.first() or 0)
        self._bytes = 0
        self._count()

    def keep(self) -> None:
        """Count what has come, and give up what is too much."""
        last = self._count()
        if self._bytes <= self._most:
            return
        while self._bytes > self._most and self._oldest < last:
            batch = self._log.batch(self._oldest)
            self._bytes -= self._log.size_of(batch)
            self._oldest, self.given_up = self._oldest + 1, self.given_up + batch.tuples
        # Before they go: none is counted twice after a crash.
        write_whole(self._file, json.dumps({"until": self._oldest, "tuples": self.given_up}))
        self._log.passed(self._consumer, self._oldest)

    def _count(self) -> int:
        """The number of the last batch; -1 without one."""
        last = self._log.last()
        if last is None:
            return -1
        while self._next <= last.number:
            self._bytes += self._log.size_of(self._log.batch(self._next))
            self._next += 1
        return last.number

    @property
    def _file(self) -> Path:
        return self._log.root / "given-up.json"

    def _told(self) -> tuple[int, int]:
        """By an earlier driver: the first batch that was kept, and how many tuples were not."""
        try:
            said = json.loads(self._file.read_text(encoding="utf-8"))
            return int(said["until"]), int(said["tuples"])
        except FileNotFoundError:
            return 0, 0
        except (OSError, ValueError, LookupError, TypeError) as problem:
            raise InputError(f"{self._file}: cannot read what is no longer kept: {problem}") from problem
