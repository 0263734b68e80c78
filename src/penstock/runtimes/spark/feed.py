"""Appending to a source: tuples, and when they entered."""

import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

from penstock.files import put_on_disk
from penstock.runtimes.spark.stream_log import LogFile, Origins, StreamLog

if TYPE_CHECKING:
    from pyarrow import Table


class Feeder(Protocol):
    """Brings tuples into the sources in a thread of its own."""

    @property
    def problem(self) -> str | None:
        """Why it ended when it should not have."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


FeederOf: TypeAlias = "Callable[[Mapping[str, Feed]], Feeder]"


class Feed:
    """Writes a source's log. `position` counts the tuples brought in so far, across restarts."""

    def __init__(self, log: StreamLog) -> None:
        self._log = log
        log.sweep()
        last = log.last()
        self.position = 0 if last is None else last.epoch
        self.ended = last is not None and last.final

    def append(
        self, table: "Table", *, entered_at_s: float, due: Origins | None = None, final: bool = False
    ) -> None:
        """Bring tuples in; nothing follows a final one.

        `due` says how many were due when, where that was before they entered: their response times
        count from then.
        """
        from pyarrow import parquet

        files = []
        if table.num_rows:
            name = f"{uuid.uuid4().hex}.parquet"
            parquet.write_table(table, self._log.data_file(name))
            put_on_disk(self._log.data_file(name))
            files.append(LogFile(name=name, tuples=table.num_rows))
        # An empty end still has to be told from the batch before it.
        self.position += max(table.num_rows, 1)
        self._log.publish(
            epoch=self.position,
            files=files,
            published_at_s=entered_at_s,
            origins=((entered_at_s, table.num_rows),) if due is None else due,
            final=final,
        )
        self.ended = final
