"""When tuples are due, as pure functions of the time since the start; and load shapes for demonstrations."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from penstock.domain.errors import InputError
from penstock.domain.trace import Trace

Floats = npt.NDArray[np.float64]


class Schedule(Protocol):
    """How many tuples are due by when."""

    @property
    def total(self) -> int:
        """How many are ever due."""

    def due(self, elapsed_s: float) -> int:
        """Tuples due by then; never fewer than before."""

    def moment(self, position: int) -> float:
        """When this tuple, counted from 0, is due; the end of the schedule for those that never are."""


class ByRates:
    """Follows a trace: its rate in every slot, evenly spread."""

    def __init__(self, trace: Trace, *, slot_s: float) -> None:
        if not slot_s > 0:
            raise InputError(f"slot of {slot_s} s: it must be positive")
        self._edges = np.arange(trace.rates.size + 1) * slot_s
        self._sent = np.concatenate([[0.0], np.cumsum(trace.rates * slot_s)])

    @property
    def total(self) -> int:
        return _whole(self._sent[-1])

    def due(self, elapsed_s: float) -> int:
        return _whole(float(np.interp(elapsed_s, self._edges, self._sent)))

    def moment(self, position: int) -> float:
        if position >= self.total:
            return float(self._edges[-1])
        slot = int(np.searchsorted(self._sent, position + 1, side="left")) - 1
        slot = min(max(slot, 0), self._edges.size - 2)  # the last of its sum may be rounded away
        rate = (self._sent[slot + 1] - self._sent[slot]) / (self._edges[slot + 1] - self._edges[slot])
        return float(min(self._edges[slot] + (position + 1 - self._sent[slot]) / rate, self._edges[slot + 1]))


class ByTimes:
    """Follows recorded times: the seconds between tuples, divided by the acceleration."""

    def __init__(self, times_s: Floats, *, acceleration: float = 1.0) -> None:
        if not acceleration > 0:
            raise InputError(f"acceleration {acceleration}: it must be positive")
        self._moments = (times_s - times_s[:1]) / acceleration

    @property
    def total(self) -> int:
        return int(self._moments.size)

    def due(self, elapsed_s: float) -> int:
        return int(np.searchsorted(self._moments, elapsed_s, side="right"))

    def moment(self, position: int) -> float:
        return float(self._moments[min(position, self.total - 1)]) if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Shape:
    """A load over a number of slots."""

    slots: int

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise InputError(f"a load of {self.slots} slots; there must be at least one")

    def constant(self, rate: float) -> Trace:
        return Trace("constant", np.full(self.slots, float(rate)))

    def step(self, low: float, high: float, *, begin: int, end: int) -> Trace:
        """`high` from slot `begin`, back to `low` from slot `end` on."""
        if not 0 <= begin <= end <= self.slots:
            raise InputError(f"step from slot {begin} to {end}: not within {self.slots} slots")
        rates = np.full(self.slots, float(low))
        rates[begin:end] = high
        return Trace("step", rates)

    def ramp(self, low: float, high: float) -> Trace:
        """`low` for a fifth, rising for 15 %, `high` for a fifth, falling as long, and `low` again."""
        marks = self.slots * np.array([0.0, 0.2, 0.35, 0.55, 0.7, 1.0])
        rates = np.interp(np.arange(self.slots), marks, [low, low, high, high, low, low])
        return Trace("ramp", rates)

    def sine(self, low: float, high: float, *, period: float) -> Trace:
        """Between `low` and `high`, from low to low in `period` slots."""
        if not period > 0:
            raise InputError(f"sine with a period of {period} slots: it must be positive")
        wave = (1 - np.cos(2 * np.pi * np.arange(self.slots) / period)) / 2
        return Trace("sine", low + (high - low) * wave)


def _whole(tuples: float) -> int:
    """Whole tuples in a sum of rates, which may miss its last by rounding."""
    return int(np.floor(tuples + 1e-6))
