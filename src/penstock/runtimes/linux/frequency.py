"""The processor's frequency, held for a while and set back (De Matteis 2017, sec. 4.1): cpufreq in sysfs.

CPUs that share a clock are a policy. With the governor `userspace` a policy runs at `scaling_setspeed`;
where a driver has no such governor (intel_pstate, amd-pstate), its lower and upper limits are set to the
same frequency. Only `scaling_governor`, `scaling_min_freq`, `scaling_max_freq` and `scaling_setspeed` are
written, and each is set back to what it was: at the end, after an error, after Ctrl-C, SIGTERM and SIGHUP,
and, if the process was killed, by the next one that holds a frequency or by `recover`.
"""

import atexit
import os
import re
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from penstock.domain.errors import InputError
from penstock.runtimes.linux.found import Found, Keeper
from penstock.runtimes.linux.sysfs import Absent, Sysfs, reason_of

_CPUFREQ = "devices/system/cpu/cpufreq"
_POLICY = re.compile(r"policy\d+")
_USERSPACE = "userspace"
_KHZ_PER_GHZ = 1_000_000


class RestoreError(OSError):
    """Something is not as it was found; it says what, and where that is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """CPUs that share a clock, and how it is set now."""

    name: str
    cpus: tuple[int, ...]
    driver: str | None
    governor: str
    governors: tuple[str, ...]  # those it can be given
    current_khz: int | None
    min_khz: int  # the limits in force
    max_khz: int
    lowest_khz: int  # what the hardware can do
    highest_khz: int
    table_khz: tuple[int, ...]  # increasing; empty: any from the lowest to the highest
    setspeed_khz: int | None

    def allows(self, khz: int) -> bool:
        if self.table_khz:
            return khz in self.table_khz
        return self.lowest_khz <= khz <= self.highest_khz

    @property
    def allowed(self) -> str:
        """The frequencies it can be set to, in words."""
        if self.table_khz:
            return ", ".join(in_ghz(khz) for khz in self.table_khz) + " GHz"
        return f"any from {in_ghz(self.lowest_khz)} to {in_ghz(self.highest_khz)} GHz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """All of a machine. Those that cannot be read, such as one whose CPUs are offline, are left alone."""

    read: tuple[Policy, ...]
    unread: Mapping[str, str]  # name -> why


def in_ghz(khz: int) -> str:
    return f"{khz / _KHZ_PER_GHZ:.6g}"


def policies(sysfs: Sysfs) -> Policies | Absent:
    """This machine's, as they are now."""
    try:
        names = sysfs.names(_CPUFREQ, _POLICY)
    except OSError as problem:
        return Absent(f"{sysfs.root / _CPUFREQ}: {reason_of(problem)}")
    if not names:
        return Absent(
            f"no cpufreq policies in {sysfs.root / _CPUFREQ}: a virtual machine or container, whose host "
            "decides, or no driver for this processor"
        )
    read, unread = [], {}
    for name in names:
        try:
            read.append(_policy(sysfs, name))
        except (OSError, ValueError) as problem:
            unread[name] = reason_of(problem)
    return Policies(read=tuple(read), unread=unread)


def _policy(sysfs: Sysfs, name: str) -> Policy:
    at = f"{_CPUFREQ}/{name}"
    governor = sysfs.read(f"{at}/scaling_governor")
    table = sysfs.read_if_there(f"{at}/scaling_available_frequencies") or ""
    return Policy(
        name=name,
        cpus=tuple(int(cpu) for cpu in sysfs.read(f"{at}/affected_cpus").split()),
        driver=sysfs.read_if_there(f"{at}/scaling_driver"),
        governor=governor,
        governors=tuple((sysfs.read_if_there(f"{at}/scaling_available_governors") or "").split()),
        current_khz=_number(sysfs.read_if_there(f"{at}/scaling_cur_freq")),
        min_khz=_khz(sysfs.read(f"{at}/scaling_min_freq")),
        max_khz=_khz(sysfs.read(f"{at}/scaling_max_freq")),
        lowest_khz=_khz(sysfs.read(f"{at}/cpuinfo_min_freq")),
        highest_khz=_khz(sysfs.read(f"{at}/cpuinfo_max_freq")),
        table_khz=tuple(sorted({_khz(khz) for khz in table.split()})),
        setspeed_khz=_khz(sysfs.read(f"{at}/scaling_setspeed")) if governor == _USERSPACE else None,
    )


def _number(text: str | None) -> int | None:
    """Some drivers say <unknown>."""
    return _khz(text) if text is not None and text.isdecimal() else None


def _khz(text: str) -> int:
    """A frequency as the kernel has it, in 32 bits."""
    khz = int(text)
    if not 0 <= khz < 2**32:
        raise ValueError(f"'{text[:40]}' is not a frequency in kHz")
    return khz


class HeldFrequency:
    """Holds all CPUs at a frequency within a `with`, and sets back what it found when that ends.

    What was found is in `directory` before anything is changed. Only one process at a time can hold a
    frequency with the same directory; it first restores what one that was killed left behind.
    """

    def __init__(self, sysfs: Sysfs, directory: Path) -> None:
        self._sysfs, self._keeper = sysfs, Keeper(directory, sysfs.root)
        self._found: Mapping[str, Found] = {}  # empty: nothing is changed
        self._signals: list[signal.Signals] = []
        self._pid = os.getpid()
        self.recovered: tuple[str, ...] = ()  # policies that another process had left changed

    def __enter__(self) -> Self:
        self._look()  # where nothing can be set, nothing is written either
        self._keeper.lock()
        try:
            self.recovered = _recover(self._sysfs, self._keeper)
            self._pid = os.getpid()
            atexit.register(self._at_exit)
            self._listen()
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A second Ctrl-C may end this half-way: then `_at_exit` is still there to go on with it.
        try:
            self.restore()
        except RestoreError:
            self._release()
            raise
        self._release()

    def check(self, ghz: float) -> tuple[Policy, ...]:
        """Refuse a frequency that a policy does not have; all policies as they are now."""
        khz, seen = khz_of(ghz), self._look()
        for policy in seen:
            if not policy.allows(khz):
                raise InputError(f"{ghz:g} GHz: {policy.name} can be set to {policy.allowed}")
        return seen

    def set(self, ghz: float) -> None:
        """Run all CPUs at this frequency; where one cannot be set, all are as they were found again."""
        khz, seen = khz_of(ghz), self.check(ghz)
        if not self._found:
            self._found = {policy.name: _found(policy) for policy in seen}
            self._keeper.save(self._found)
        try:
            for policy in seen:
                if policy.name in self._found:  # a CPU that came online since has nothing to go back to
                    _set(self._sysfs, policy, self._found[policy.name], khz)
        except OSError as problem:
            why = f"{problem.filename}: {reason_of(problem)}"
            try:
                self.restore()
            except RestoreError as left:
                raise RestoreError(f"{why}; then {left}") from problem
            names = ", ".join(policy.name for policy in seen)
            hint = "; root can" if isinstance(problem, PermissionError) else ""
            raise InputError(f"cannot set {ghz:g} GHz: {why}{hint}; {names}: as before") from problem

    def restore(self) -> None:
        """Set back what was found; nothing is done where nothing was changed."""
        if self._found and os.getpid() == self._pid:  # a forked child leaves it to its parent
            _put_back(self._sysfs, self._keeper, self._found)
            self._found = {}

    def _look(self) -> tuple[Policy, ...]:
        seen = policies(self._sysfs)
        if isinstance(seen, Absent):
            raise InputError(f"frequencies cannot be set: {seen.reason}")
        if not seen.read:
            name, why = next(iter(seen.unread.items()))
            raise InputError(f"frequencies cannot be set: {name}: {why}")
        return seen.read

    def _listen(self) -> None:
        """These would end the process without a chance to restore; where they are handled, they are left."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _unwind)
                self._signals.append(number)

    def _release(self) -> None:
        for number in self._signals:
            if signal.getsignal(number) is _unwind:
                signal.signal(number, signal.SIG_DFL)
        self._signals.clear()
        atexit.unregister(self._at_exit)
        self._keeper.unlock()

    def _at_exit(self) -> None:
        try:
            self.restore()
        except RestoreError as problem:
            print(f"penstock: {problem}", file=sys.stderr)


def _unwind(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # as a shell reports it


def recover(sysfs: Sysfs, directory: Path) -> tuple[str, ...]:
    """Restore what a process that was killed left changed; the names of the policies."""
    keeper = Keeper(directory, sysfs.root)
    if not keeper.path.exists():
        return ()
    keeper.lock()
    try:
        return _recover(sysfs, keeper)
    finally:
        keeper.unlock()


def _recover(sysfs: Sysfs, keeper: Keeper) -> tuple[str, ...]:
    left = keeper.left_behind()
    if left:
        _put_back(sysfs, keeper, left)
    return tuple(left)


def khz_of(ghz: float) -> int:
    if not (isfinite(ghz * _KHZ_PER_GHZ) and ghz > 0):
        raise InputError(f"frequency {ghz:g} GHz; it must be positive and finite")
    return round(ghz * _KHZ_PER_GHZ)


def _found(policy: Policy) -> Found:
    return Found(
        governor=policy.governor,
        min_khz=policy.min_khz,
        max_khz=policy.max_khz,
        setspeed_khz=policy.setspeed_khz,
    )


def _set(sysfs: Sysfs, policy: Policy, found: Found, khz: int) -> None:
    at = f"{_CPUFREQ}/{policy.name}"
    if _USERSPACE not in policy.governors:
        _limit(sysfs, at, khz, khz)
        return
    _limit(sysfs, at, min(found.min_khz, khz), max(found.max_khz, khz))  # or the kernel would cut it off
    _write(sysfs, f"{at}/scaling_governor", _USERSPACE)
    sysfs.write(f"{at}/scaling_setspeed", str(khz))


def _limit(sysfs: Sysfs, at: str, low_khz: int, high_khz: int) -> None:
    """Both limits, in the order in which the lower is never above the upper: the kernel refuses that."""
    low, high = (f"{at}/scaling_min_freq", str(low_khz)), (f"{at}/scaling_max_freq", str(high_khz))
    upper_first = high_khz >= int(sysfs.read(low[0]))
    for path, value in (high, low) if upper_first else (low, high):
        _write(sysfs, path, value)


def _write(sysfs: Sysfs, path: str, value: str) -> None:
    """Unless it is so already."""
    if sysfs.read(path) != value:
        sysfs.write(path, value)


def _put_back(sysfs: Sysfs, keeper: Keeper, found: Mapping[str, Found]) -> None:
    """As much as possible; what was found is forgotten only when all of it is as it was."""
    failures = [failure for name, one in found.items() for failure in _put_back_one(sysfs, name, one)]
    if failures:
        raise RestoreError(f"not restored: {'; '.join(failures)}; what was found is in {keeper.path}")
    keeper.forget()


def _put_back_one(sysfs: Sysfs, name: str, found: Found) -> list[str]:
    at = f"{_CPUFREQ}/{name}"
    failures = []
    try:
        _limit(sysfs, at, found.min_khz, found.max_khz)
    except (OSError, ValueError) as problem:
        limits = f"{in_ghz(found.min_khz)} to {in_ghz(found.max_khz)} GHz"
        failures.append(f"limits of {name} ({limits}): {reason_of(problem)}")
    try:
        _write(sysfs, f"{at}/scaling_governor", found.governor)
        if found.setspeed_khz is not None:
            sysfs.write(f"{at}/scaling_setspeed", str(found.setspeed_khz))
    except OSError as problem:
        failures.append(f"governor of {name} ({found.governor}): {reason_of(problem)}")
    return failures
