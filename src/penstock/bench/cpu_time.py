"""CPU time of a process and of all that it started, and they started, directly or not; from /proc."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class _Process(NamedTuple):
    pid: int
    started: int  # ticks since the host did: a number may be given to another process later


@dataclass
class CpuMeter:
    """Adds up from look to look what every process used itself.

    What a process used between the last look and its end is lost, and all of one that came and went
    between two looks. The kernel counts ended children for their parents, but not for those that do not
    wait for them, as the daemon of Spark's Python workers; so that counter is left alone.
    """

    root: int
    proc: Path = Path("/proc")
    _latest: dict[_Process, int] | None = None
    _ticks: int = field(default=0)

    def look(self) -> float:
        """Seconds of CPU used since the first look."""
        now = self._tree()
        if self._latest is not None:
            self._ticks += sum(ticks - self._latest.get(process, 0) for process, ticks in now.items())
        self._latest = now
        return self._ticks / os.sysconf("SC_CLK_TCK")

    def _tree(self) -> dict[_Process, int]:
        parents: dict[int, int] = {}
        used: dict[int, tuple[_Process, int]] = {}
        for pid, fields in self._listed():
            parents[pid] = int(fields[1])
            used[pid] = _Process(pid, int(fields[19])), int(fields[11]) + int(fields[12])
        return dict(used[pid] for pid in used if self.root in _line_of(pid, parents))

    def _listed(self) -> Iterator[tuple[int, list[str]]]:
        for path in self.proc.glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended
                # The name, in brackets, may contain anything.
                yield int(path.parent.name), path.read_text().rpartition(")")[2].split()


def _line_of(pid: int, parents: dict[int, int]) -> Iterator[int]:
    """A process, its parent, and so on."""
    seen = pid
    while seen in parents:
        yield seen
        seen = parents[seen]
