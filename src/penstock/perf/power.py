"""Power of the cores by replicas and frequency: De Matteis 2017, eq. 9,  P = C_eff * n * f * V(f)^2.

Dynamic power of the cores only, as the paper measures it with RAPL's core counters (sec. 5.3.2); the rest
of a socket is another 25-30 W whatever the operator does. The paper wants it proportional, no more.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

import numpy as np
import numpy.typing as npt

from penstock.compiled import Floats
from penstock.domain.errors import InputError

_KHZ_PER_GHZ = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerTable:
    """The frequencies a processor can run at, the voltage at each, and its effective capacitance.

    Nothing is interpolated: a processor has no frequency that is not in its table.
    """

    ghz: tuple[float, ...]
    volts: tuple[float, ...]
    capacitance_nf: float  # C_eff of one core: nF x GHz x V^2 = W
    extra_cores: int = 0  # busy whatever the number of replicas: splitter, merger and controller are 3

    def __post_init__(self) -> None:
        if len(self.ghz) != len(self.volts) or not self.ghz:
            raise InputError(
                f"power table: {len(self.ghz)} frequencies and {len(self.volts)} voltages; give at least one "
                "frequency and one voltage for each"
            )
        for what, values in (("frequencies", self.ghz), ("voltages", self.volts)):
            if not all(isfinite(value) and value > 0 for value in values):
                raise InputError(f"power table: {what} {values} must be positive and finite")
        if not all(a < b for a, b in pairwise(_khz(self.ghz))):
            raise InputError(f"power table: frequencies {self.ghz} must increase")
        if not all(a <= b for a, b in pairwise(self.volts)):
            raise InputError(f"power table: voltages {self.volts} must not decrease")
        if not (isfinite(self.capacitance_nf) and self.capacitance_nf > 0):
            raise InputError(
                f"power table: capacitance {self.capacitance_nf} nF; it must be positive and finite"
            )
        if self.extra_cores < 0:
            raise InputError(f"power table: extra_cores={self.extra_cores}; it must not be negative")

    def watts(self, replicas: npt.ArrayLike, ghz: npt.ArrayLike) -> Floats:
        """Power of so many replicas, one core each, at these frequencies; arrays are broadcast."""
        count = np.asarray(replicas, dtype=np.float64)
        strange = ~(np.isfinite(count) & (count >= 0))
        if np.any(strange):
            raise InputError(
                f"power: {count[strange].flat[0]:g} replicas; they must be finite and not negative"
            )
        row = self.rows(ghz)
        per_core = self.capacitance_nf * np.array(self.ghz) * np.array(self.volts) ** 2
        return np.asarray((count + self.extra_cores) * per_core[row], dtype=np.float64)

    def rows(self, ghz: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Where these frequencies stand in the table; to the kHz, since 1.2 + .3 is not quite 1.5."""
        wanted = np.asarray(ghz, dtype=np.float64)
        table = _khz(self.ghz)
        row = np.searchsorted(table, _khz(wanted)).clip(max=table.size - 1)
        strange = ~(table[row] == _khz(wanted))  # NaN is equal to nothing
        if np.any(strange):
            allowed = ", ".join(f"{one:g}" for one in self.ghz)
            raise InputError(f"frequency {wanted[strange].flat[0]:g} GHz is not in the table: {allowed}")
        return np.asarray(row, dtype=np.int64)


def calibrated(
    ghz: tuple[float, ...],
    volts: tuple[float, ...],
    *,
    replicas: int,
    at_ghz: float,
    watts: float,
    extra_cores: int = 0,
) -> PowerTable:
    """A table whose capacitance makes so many replicas at this frequency use so many watts."""
    unit = PowerTable(ghz=ghz, volts=volts, capacitance_nf=1.0, extra_cores=extra_cores)
    of_unit = float(unit.watts(replicas, at_ghz))
    if not (isfinite(watts) and watts > 0 and of_unit > 0):
        raise InputError(f"power table: cannot be calibrated by {watts} W of {replicas} replicas")
    return PowerTable(ghz=ghz, volts=volts, capacitance_nf=watts / of_unit, extra_cores=extra_cores)


def sandy_bridge(
    *, volts_at_lowest: float = 0.8, volts_at_highest: float = 1.0, extra_cores: int = 0
) -> PowerTable:
    """The paper's processor: 1.2 to 2.0 GHz in steps of .1, and 68.25 W for 12 replicas at 2.0 (sec. 5.3.2).

    The paper prints no voltages. Assumed: they rise linearly with the frequency, from .8 V at 1.2 GHz to
    1.0 V at 2.0 GHz. As the capacitance is calibrated, only the ratio of the two matters. `extra_cores=3`
    has splitter, merger and controller on cores of their own within the 68.25 W, which the paper leaves
    open as well.
    """
    steps = 8
    rise = (volts_at_highest - volts_at_lowest) / steps
    return calibrated(
        tuple((12 + step) / 10 for step in range(steps + 1)),
        (*(volts_at_lowest + step * rise for step in range(steps)), volts_at_highest),
        replicas=12,
        at_ghz=2.0,
        watts=68.25,
        extra_cores=extra_cores,
    )


def _khz(ghz: npt.ArrayLike) -> Floats:
    return np.asarray(np.rint(np.asarray(ghz, dtype=np.float64) * _KHZ_PER_GHZ), dtype=np.float64)
