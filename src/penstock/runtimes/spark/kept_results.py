"""Results that no writer takes are kept in their log, but not without end: beyond a limit, the oldest go."""

from penstock.runtimes.spark.stream_log import StreamLog


class KeptResults:
    """The consumer of a log for whom everything is kept, up to so many bytes."""

    def __init__(self, log: StreamLog, consumer: str, *, most_bytes: float) -> None:
        self._log, self._consumer, self._most = log, consumer, most_bytes
        self._oldest = self._next = max(log.needs(consumer), log.first() or 0)  # kept from, counted up to
        self._bytes = 0

    def keep(self) -> int:
        """Count what has come, and give up what is too much; returns how many tuples went."""
        last, gone = self._log.last(), 0
        if last is None:
            return 0
        for batch in self._log.batches(self._next, last.number + 1):
            self._bytes += self._log.size_of(batch)
        self._next = last.number + 1
        if self._bytes <= self._most:
            return 0
        while self._bytes > self._most and self._oldest < last.number:
            batch = self._log.batch(self._oldest)
            self._bytes -= self._log.size_of(batch)
            self._oldest, gone = self._oldest + 1, gone + batch.tuples
        self._log.passed(self._consumer, self._oldest)
        return gone
