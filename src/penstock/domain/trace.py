"""A trace: the arrival rate of every control interval."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.domain.errors import InputError

SLOTS_PER_DAY = 1440  # one slot is one minute of the source data
SMALLEST_RATE = 1e-9  # tuples/s at the top of a scale: one in thirty years; steps of less come to nothing
LARGEST_RATE = 1e15  # tuples/s no stream will ever see: beyond it a number is a slip, and sums overflow


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Tuples per second, slot by slot. Zero is a legal rate; unknown is not."""

    name: str
    rates: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.rates.ndim != 1:
            raise InputError(f"trace '{self.name}': {self.rates.ndim} dimensions; give one rate per slot")
        if self.rates.size == 0:
            raise InputError(f"trace '{self.name}': no rates in it")
        bad = np.flatnonzero(~((self.rates >= 0) & (self.rates <= LARGEST_RATE)))
        if bad.size:
            slot = int(bad[0])
            raise InputError(f"trace '{self.name}': slot {slot}: {self.rates[slot]} is not a rate")
        own = self.rates.copy()  # nobody changes a checked trace behind its back
        own.flags.writeable = False
        object.__setattr__(self, "rates", own)

    def first(self, slots: int) -> "Trace":
        return Trace(self.name, self.rates[:slots])

    def last(self, slots: int) -> "Trace":
        return Trace(self.name, self.rates[max(self.rates.size - slots, 0) :])

    def scaled_from(self, slot: int, factor: float) -> "Trace":
        """The rate multiplied from `slot` on: a workload that changes at run time."""
        rates = self.rates.copy()
        with np.errstate(over="ignore"):  # the new trace refuses what overflows
            rates[slot:] *= factor
        return Trace(self.name, rates)
