"""What is fed into an application, and how fast."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.apps.feeding.schedule import ByRates, Schedule, Shape
from penstock.data.traces import read_trace
from penstock.domain.errors import InputError
from penstock.domain.trace import Trace

SHAPES = ("step", "ramp", "sine", "constant")
MOST_DAYS = 100  # of a shape, which has a rate for every second


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A shape, a trace, or recorded tuples."""

    low: float = 40.0  # tuples/s
    high: float = 160.0
    shape: str = "step"
    seconds: float = 240.0
    times: int = 1  # that the shape comes in these seconds
    rates: Path | None = None  # a trace instead of a shape, one slot after another
    slot_s: float = 1.0
    input: Path | None = None  # recorded tuples instead of generated ones
    acceleration: float = 60.0
    amplification: int = 1
    seed: int = 1

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise InputError(f"load '{self.shape}': unknown; choose {', '.join(SHAPES[:-1])} or {SHAPES[-1]}")
        for what, value in (("low", self.low), ("high", self.high), ("seconds", self.seconds)):
            if not 0 < value < float("inf"):
                raise InputError(f"load: {what}={value}; it must be positive and finite")
        if not 1 <= self.times <= self.seconds / 3:
            raise InputError(f"load: {self.times} times in {self.seconds:g} s; give at least 3 s to each")

    def schedule(self) -> Schedule:
        return ByRates(self.trace(), slot_s=self.slot_s if self.rates is not None else 1.0)

    def trace(self) -> Trace:
        """Tuples/s, slot by slot."""
        if self.rates is not None:
            return read_trace(self.rates)
        if self.seconds > MOST_DAYS * 86_400:
            raise InputError(
                f"load: made up for {self.seconds:g} s; give at most {MOST_DAYS} days, or follow a trace"
            )
        once = self._once()
        return Trace(once.name, np.tile(once.rates, self.times))

    def _once(self) -> Trace:
        slots = Shape(max(round(self.seconds / self.times), 3))
        match self.shape:
            case "constant":
                return slots.constant(self.low)
            case "ramp":
                return slots.ramp(self.low, self.high)
            case "sine":
                return slots.sine(self.low, self.high, period=slots.slots)
            case _:
                return slots.step(self.low, self.high, begin=slots.slots // 4, end=slots.slots * 3 // 4)
