"""How full the hosts are, and whether operators compute or wait: read on the hosts, judged by the driver.

The exit tap of every task reads its host's counters (`here`); the monitor turns the readings of one
interval and the next into shares (`HostLoads`, `CpuUse`). The counters are Linux's and those of the whole
host: a quota that a container has on it is not seen. Where there is no /proc, nothing is known.
"""

import os
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from penstock.runtimes.spark.executors import forget_oldest

if TYPE_CHECKING:
    from pyarrow import Array

    from penstock.runtimes.spark.taps import EntryReport, TaskReport

SCHEMA = "host string, cpu_busy long, cpu_total long, python_cpu_s double"
_LEAST_TICKS = 50  # between two readings: fewer say little about how busy a host is
_PROC = Path("/proc")


class Reading(NamedTuple):
    """A host's counters at one moment, as a task reports them; None where they cannot be read."""

    host: str
    cpu_busy: int | None  # ticks of all its CPUs since it started, not idle
    cpu_total: int | None  # all ticks
    python_cpu_s: float | None  # CPU that Python workers of this executor used or queued for, so far

    def as_columns(self) -> "dict[str, Array]":
        """As one row; a column of nothing but None still has its type, or Spark would refuse it."""
        import pyarrow

        kinds = (pyarrow.string(), pyarrow.int64(), pyarrow.int64(), pyarrow.float64())
        named = zip(self._fields, self, kinds, strict=True)
        return {name: pyarrow.array([value], kind) for name, value, kind in named}


UNREAD = Reading(host="", cpu_busy=None, cpu_total=None, python_cpu_s=None)


def here() -> Reading:
    """This host now. Loopback addresses are the same on all hosts, so it is known by its name."""
    busy, total = _host_ticks()
    return Reading(socket.gethostname(), busy, total, _python_cpu_s())


def _host_ticks() -> tuple[int | None, int | None]:
    try:
        with (_PROC / "stat").open() as lines:
            return ticks_in(lines.readline())
    except (OSError, ValueError):
        return None, None


def ticks_in(line: str) -> tuple[int, int]:
    """(busy, total) of the first line of /proc/stat; time stolen by a hypervisor is not there to be used."""
    name, *numbers = line.split()
    if name != "cpu" or len(numbers) < 5:
        raise ValueError(f"not the line of all CPUs: {line!r}")
    counts = [int(number) for number in numbers[:8]]  # what comes then, guests, is in the first two already
    idle, waiting_for_disks = counts[3:5]
    return sum(counts) - idle - waiting_for_disks, sum(counts)


def _python_cpu_s() -> float | None:
    """CPU that the daemon this worker was forked by and all its workers used, or were ready to use.

    Of all, because an operator's function may run in another worker than the tap. Ready to use, because
    on a full host a worker that computes gets little CPU and would pass for one that waits for others.
    """
    daemon = str(os.getppid())
    try:
        workers = (_PROC / daemon / "task" / daemon / "children").read_text().split()
        so_far_s = _used_s(daemon, with_ended=True)
    except (OSError, ValueError):
        return None
    for worker in workers:
        with suppress(OSError, ValueError):  # it has ended meanwhile
            so_far_s += _used_s(worker, with_ended=False) + _queued_s(worker)
    return so_far_s


def _used_s(pid: str, *, with_ended: bool) -> float:
    """CPU of a process; with that of its children that have ended."""
    # The name, in brackets, may contain anything.
    fields = (_PROC / pid / "stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11 : 15 if with_ended else 13]) / os.sysconf("SC_CLK_TCK")


def _queued_s(pid: str) -> float:
    """How long a process was ready to run and others were running."""
    try:
        return int((_PROC / pid / "schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):  # a kernel that does not count it
        return 0.0


def busy_share(before: Reading, after: Reading) -> float | None:
    """Share of a host's CPU that was busy between two readings; None where they cannot tell."""
    if before.cpu_busy is None or before.cpu_total is None or after.cpu_busy is None:
        return None
    if after.cpu_total is None or after.cpu_total - before.cpu_total < _LEAST_TICKS:
        return None
    return min(max((after.cpu_busy - before.cpu_busy) / (after.cpu_total - before.cpu_total), 0.0), 1.0)


@dataclass
class HostLoads:
    """How busy the hosts are that replicas run on, from interval to interval."""

    _hosts: dict[str, Reading] = field(default_factory=dict)  # the last reading that counted
    _host_of: dict[str, str] = field(default_factory=dict)  # executor -> its host

    def over(
        self, tasks: Iterable["TaskReport"], own: Reading, executors: Iterable[str]
    ) -> dict[str, float] | None:
        """Share of its CPU busy, by host of these executors; None where nothing is known.

        By the tasks that ended in this interval, and by the driver's own reading, for replicas there.
        """
        latest = {own.host: own}
        for task in tasks:
            reading = task.at_end
            self._host_of[task.executor] = reading.host
            latest[reading.host] = max(reading, latest.get(reading.host, reading), key=_age)
        forget_oldest(self._host_of)
        ours = {self._host_of[one] for one in executors if one in self._host_of}
        shares = {host: self._share(reading) for host, reading in latest.items()}
        return {host: share for host, share in shares.items() if share is not None and host in ours} or None

    def _share(self, reading: Reading) -> float | None:
        """Since the last reading that counted; this one counts unless it came too soon after that."""
        before = self._hosts.get(reading.host)
        share = None if before is None else busy_share(before, reading)
        if share is not None or before is None or _age(reading) < _age(before):  # the host started anew
            self._hosts[reading.host] = reading
            forget_oldest(self._hosts)
        return share


def _age(reading: Reading) -> int:
    return reading.cpu_total or 0


@dataclass
class CpuUse:
    """Whether one chain computes or waits, from interval to interval."""

    _so_far_s: dict[str, float] = field(default_factory=dict)  # executor -> CPU of its Python workers

    def over(self, entries: Iterable["EntryReport"], tasks: Iterable["TaskReport"]) -> float | None:
        """Seconds of CPU used or queued for per second at work, by the tasks that ended; None if unknown.

        An executor heard of for the first time only begins to be known.
        """
        worked: dict[str, float] = {}
        read: dict[str, float] = {}
        for entry in entries:
            worked[entry.executor] = worked.get(entry.executor, 0.0) + entry.busy_s
        for task in tasks:
            worked[task.executor] = worked.get(task.executor, 0.0) + task.busy_s
            if task.at_end.python_cpu_s is not None:
                read[task.executor] = max(read.get(task.executor, 0.0), task.at_end.python_cpu_s)
        known = {one for one, cpu_s in read.items() if one in self._so_far_s and self._so_far_s[one] <= cpu_s}
        cpu_s = sum(read[one] - self._so_far_s[one] for one in known)
        busy_s = sum(worked[one] for one in known)
        self._so_far_s.update(read)
        forget_oldest(self._so_far_s)
        return cpu_s / busy_s if busy_s > 0 else None
