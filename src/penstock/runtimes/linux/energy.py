"""Energy that the processor counts itself: RAPL (Running Average Power Limit), as Linux shows it.

A zone (intel-rapl:0) is a package; zones in it (intel-rapl:0:0) are its cores, its memory and so on. AMD's
processors appear under the same names. A counter starts again at 0 after `max_energy_range_uj`, on many
machines once in an hour of load: read more often than that, or a whole turn is missed.
What cannot be read is unknown, never 0. Since Linux 5.10 only root may read the counters.
"""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.runtimes.linux.sysfs import Absent, Sysfs, reason_of

_POWERCAP = "class/powercap"
_ZONE = re.compile(r"intel-rapl(-mmio)?(:\d+)+")
_UJ_PER_J = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A part of the machine whose energy is counted."""

    zone: str  # intel-rapl:0:0
    name: str  # package-0, core, uncore, dram, psys
    within: str | None  # the name of the zone around it
    range_uj: int | None  # after which the counter starts again; None: not known

    @property
    def label(self) -> str:
        return self.name if self.within is None else f"{self.within} {self.name}"


@dataclass(frozen=True, slots=True)
class Unread:
    """A counter that could not be read."""

    reason: str


Counter = int | Unread  # microjoules since some moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Energy that a domain used over some time."""

    domain: Domain
    seconds: float
    joules: float | None
    why_not: str | None  # why the energy is not known

    @property
    def watts(self) -> float | None:
        """Mean power."""
        return None if self.joules is None or self.seconds <= 0 else self.joules / self.seconds


def domains(sysfs: Sysfs) -> tuple[Domain, ...] | Absent:
    """What this machine counts the energy of."""
    try:
        zones = sysfs.names(_POWERCAP, _ZONE)
    except OSError as problem:
        return Absent(f"{sysfs.root / _POWERCAP}: {reason_of(problem)}")
    if not zones:
        return Absent(
            f"no intel-rapl zones in {sysfs.root / _POWERCAP}: a virtual machine or container, another kind "
            "of processor, or the module intel_rapl_msr is not loaded"
        )
    return tuple(_domain(sysfs, zone) for zone in zones)


def _domain(sysfs: Sysfs, zone: str) -> Domain:
    around = zone.rpartition(":")[0]
    return Domain(
        zone=zone,
        name=sysfs.read_if_there(f"{_POWERCAP}/{zone}/name") or zone,
        within=sysfs.read_if_there(f"{_POWERCAP}/{around}/name") if ":" in around else None,
        range_uj=_count(sysfs.read_if_there(f"{_POWERCAP}/{zone}/max_energy_range_uj")),
    )


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and text.isascii() and len(text) <= 20 else None


def counter(sysfs: Sysfs, domain: Domain) -> Counter:
    """The counter of a domain now."""
    path = f"{_POWERCAP}/{domain.zone}/energy_uj"
    try:
        text = sysfs.read(path)
    except PermissionError:
        return Unread(f"{sysfs.root / path}: permission denied; only root may read it")
    except OSError as problem:
        return Unread(f"{sysfs.root / path}: {reason_of(problem)}")
    count = _count(text)
    return Unread(f"{sysfs.root / path}: '{text}' is not a count") if count is None else count


def microjoules(domain: Domain, before: Counter, after: Counter) -> Counter:
    """Energy used between two readings that are less than one turn of the counter apart."""
    if isinstance(before, Unread):
        return before
    if isinstance(after, Unread):
        return after
    if after >= before:
        return after - before
    if domain.range_uj is None or before > domain.range_uj:
        return Unread(f"{domain.zone}: the counter started again, and after how much is not known")
    return after + domain.range_uj - before


class Meter:
    """Adds up the energy of some domains, reading by reading."""

    def __init__(
        self, sysfs: Sysfs, domains: Sequence[Domain], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._sysfs, self._domains, self._clock = sysfs, tuple(domains), clock
        self._began_s = self._now_s = clock()
        self._last = [counter(sysfs, one) for one in self._domains]
        self._so_far: list[Counter] = [0 if isinstance(one, int) else one for one in self._last]

    @property
    def counts(self) -> bool:
        """Whether there is any counter that can be read."""
        return any(isinstance(one, int) for one in self._so_far)

    def read(self) -> None:
        """Add what was used since the last reading; where one fails, the total is not known any more."""
        self._now_s = self._clock()
        for index, domain in enumerate(self._domains):
            now, so_far = counter(self._sysfs, domain), self._so_far[index]
            used = microjoules(domain, self._last[index], now)
            if isinstance(so_far, int):
                self._so_far[index] = so_far + used if isinstance(used, int) else used
            self._last[index] = now

    def used(self) -> tuple[Used, ...]:
        """Up to the last reading."""
        return tuple(
            Used(
                domain=domain,
                seconds=self._now_s - self._began_s,
                joules=so_far / _UJ_PER_J if isinstance(so_far, int) else None,
                why_not=so_far.reason if isinstance(so_far, Unread) else None,
            )
            for domain, so_far in zip(self._domains, self._so_far, strict=True)
        )
