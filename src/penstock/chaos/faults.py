"""What is done to a run while it goes on: signals to its processes, its disk, its clock, its orders."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from penstock.chaos.scenario import Fault, Kind, jump_s
from penstock.control.orders import Lift, Order, Override, Pause, Resume
from penstock.domain.deployment import Replicas
from penstock.files import write_whole
from penstock.live.inbox import ORDERS, give
from penstock.runtimes.spark.processes import Cast, Process, marked

_SLOW_S = 0.5  # that a disk takes to have something on it
_DISK = "64m"
_ORDERS = 5  # at once
_OPERATORS = ("read", "post", "audit", "read+post")  # that orders are about; not all of them are there

_WHO: Mapping[Kind, Callable[[Cast], list[Process]]] = {
    Kind.KILL_EXECUTOR: lambda cast: cast.executors,
    Kind.STOP_EXECUTOR: lambda cast: cast.executors,
    Kind.KILL_PYTHON: lambda cast: cast.pythons,
    Kind.STOP_PYTHON: lambda cast: cast.pythons,
    Kind.KILL_ZYGOTE: lambda cast: cast.zygotes,
    Kind.KILL_WORKER: lambda cast: cast.workers,
    Kind.STOP_WORKER: lambda cast: cast.workers,
    Kind.KILL_MASTER: lambda cast: cast.masters,
    Kind.STOP_MASTER: lambda cast: cast.masters,
    Kind.KILL_DRIVERS_JAVA: lambda cast: cast.drivers_java,
    Kind.KILL_DRIVER: lambda cast: cast.drivers,
    Kind.STOP_DRIVER: lambda cast: cast.drivers,
    Kind.END_DRIVER: lambda cast: cast.drivers,
}
_STOPPED = (Kind.STOP_EXECUTOR, Kind.STOP_PYTHON, Kind.STOP_WORKER, Kind.STOP_MASTER, Kind.STOP_DRIVER)


class Faults:
    """Of one run, found by its mark; `influence` is the file its clocks and disks are told by."""

    def __init__(self, out: Path, *, mark: str, influence: Path) -> None:
        self._out, self._mark, self._influence = out, mark, influence
        self._ballast = out / "ballast"
        self._ends: list[tuple[float, Callable[[], None]]] = []  # when a fault that lasts is over
        self._has_disk = False  # of its own
        self._jump_s = self._fsync_s = 0.0

    @property
    def is_full(self) -> bool:
        """Whether the disk is, now."""
        return self._ballast.exists()

    def carry_out(self, fault: Fault, driver: int) -> str | None:
        """What was done; None if there was nothing to do it to."""
        what, lasting = fault.kind.value, f"{fault.kind.value} ({fault.lasts_s:.1f} s)"
        match fault.kind:
            case Kind.FULL_DISK:
                return lasting if self._has_disk and self._fill(fault.lasts_s) else None
            case Kind.SLOW_DISK:
                self._influence_by(fsync_s=_SLOW_S)
                self._after(fault.lasts_s, lambda: self._influence_by(fsync_s=-_SLOW_S))
                return lasting
            case Kind.CLOCK | Kind.CLOCK_FOR_GOOD:
                by_s = jump_s(fault)
                self._influence_by(jump_s=by_s)
                if fault.kind is Kind.CLOCK_FOR_GOOD:
                    return f"{what} ({by_s:+.0f} s)"
                self._after(fault.lasts_s, lambda: self._influence_by(jump_s=-by_s))
                return f"{what} ({by_s:+.0f} s, for {fault.lasts_s:.1f} s)"
            case Kind.ORDERS:
                return self._order(fault)
            case _:
                return self._signal(fault, driver)

    def over_now(self) -> None:
        """End what has lasted long enough."""
        now_s = time.monotonic()
        due = [over for until_s, over in self._ends if until_s <= now_s]
        self._ends = [one for one in self._ends if one[0] > now_s]
        for over in due:
            over()

    def over(self) -> None:
        """End all that lasts."""
        for _, over in self._ends:
            over()
        self._ends = []

    def end(self) -> None:
        self.over()
        self.unmount()

    def _after(self, seconds: float, over: Callable[[], None]) -> None:
        self._ends.append((time.monotonic() + seconds, over))

    def _influence_by(self, *, jump_s: float = 0.0, fsync_s: float = 0.0) -> None:
        """Added to what there is: several may last at the same time."""
        self._jump_s, self._fsync_s = self._jump_s + jump_s, self._fsync_s + fsync_s
        write_whole(self._influence, json.dumps({"jump_s": self._jump_s, "fsync_s": self._fsync_s}))

    def _signal(self, fault: Fault, driver: int) -> str | None:
        those = _WHO[fault.kind](Cast(driver, tuple(marked(self._mark))))
        if not those:
            return None
        one = those[int(fault.draw * len(those))]
        if fault.kind in _STOPPED:
            one.tell(signal.SIGSTOP)
            self._after(fault.lasts_s, lambda: one.tell(signal.SIGCONT))
            return f"{fault.kind.value} ({fault.lasts_s:.1f} s)"
        one.tell(signal.SIGTERM if fault.kind is Kind.END_DRIVER else signal.SIGKILL)
        return fault.kind.value

    def _order(self, fault: Fault) -> str | None:
        """What somebody may say who does not know what is going on."""
        if not (self._out / "work").is_dir():
            return None
        rng = np.random.default_rng(int(fault.draw * 2**32))
        orders = [_drawn(rng) for _ in range(_ORDERS)]
        for order in orders:
            with suppress(OSError):  # a full disk
                give(self._out / "work" / ORDERS, order)
        return ", ".join(type(order).__name__.lower() for order in orders)

    # --- a disk of its own

    def mount(self) -> bool:
        """Only who may mount can fill a disk that is nobody else's."""
        self._out.mkdir(exist_ok=True)
        words = ["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "tmpfs", str(self._out)]
        self._has_disk = subprocess.run(words, capture_output=True, check=False).returncode == 0
        return self._has_disk

    def unmount(self) -> None:
        if self._out.is_mount():
            subprocess.run(["umount", "--lazy", str(self._out)], check=False, capture_output=True)

    def _fill(self, seconds: float) -> bool:
        with self._ballast.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(1 << 16))
        self._after(seconds, lambda: self._ballast.unlink(missing_ok=True))
        return True


def _drawn(rng: np.random.Generator) -> Order:
    operator = _OPERATORS[int(rng.integers(len(_OPERATORS)))]
    return (
        Pause(until_s=time.time() + float(rng.uniform(0, 5))),
        Resume(),
        Override(operator=operator, target=Replicas((int(rng.integers(1, 4)),))),
        Lift(operator=operator),
    )[int(rng.integers(4))]
