"""The processes of one run, found by a mark in their environment, which every child inherits."""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARK = "PENSTOCK_MARK"
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """One of them, as the kernel has it."""

    pid: int
    parent: int
    words: tuple[str, ...]  # of its command line

    def has(self, word: str) -> bool:
        return any(word in one for one in self.words)

    @property
    def resident_bytes(self) -> int:
        """Memory that is its own, or shared: pages that several have are counted for each. 0 once it has
        ended."""
        try:
            pages = int((_PROC / str(self.pid) / "statm").read_text().split()[1])
        except (OSError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    def tell(self, what: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it has ended by itself meanwhile
            os.kill(self.pid, what)


def marked(mark: str) -> list[Process]:
    """All that live; not those that have ended and that nobody has waited for."""
    wanted = f"{MARK}={mark}".encode()
    found: list[Process] = []
    for folder in _PROC.iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(OSError):  # it has ended by now
            if wanted not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            # After the name, which may hold anything: state, parent, ...
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                found.append(Process(int(folder.name), int(parent), tuple(words)))
    return sorted(found, key=lambda one: one.pid)


@dataclass(frozen=True, slots=True)
class Cast:
    """Who is who among the processes of a run whose driver is this one."""

    driver: int
    all: tuple[Process, ...]

    @property
    def drivers(self) -> list[Process]:
        return [one for one in self.all if one.pid == self.driver]

    @property
    def masters(self) -> list[Process]:
        return self._java("deploy.master.Master")

    @property
    def workers(self) -> list[Process]:
        return self._java("deploy.worker.Worker")

    @property
    def executors(self) -> list[Process]:
        return self._java("CoarseGrainedExecutorBackend")

    @property
    def drivers_java(self) -> list[Process]:
        return self._java("deploy.SparkSubmit")

    @property
    def zygotes(self) -> list[Process]:
        return [one for one in self.all if one.has("--zygote") and one.parent == self.driver]

    @property
    def pythons(self) -> list[Process]:
        """Those that work for executors; each is a child of one that forks them, and so on up to Java."""
        above = {one.pid for one in (*self.zygotes, *self.executors)}
        forking = {one.pid for one in self.all if one.parent in above and one.has("daemon")}
        return [one for one in self.all if one.parent in forking]

    def _java(self, program: str) -> list[Process]:
        return [one for one in self.all if one.has(program) and one.has("java")]
