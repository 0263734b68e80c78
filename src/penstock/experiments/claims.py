"""A claim: something printed in a paper, what we measured, and whether the two agree."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from penstock.compiled import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One printed number beside ours.

    `tolerance` is relative; 0 means every printed digit must be the same, and None that
    nothing is claimed: the two are only shown side by side.
    """

    id: str
    source: str
    printed: str
    measured: float
    shown: str  # measured, with as many digits as were printed
    tolerance: float | None
    note: str = ""

    @property
    def holds(self) -> bool | None:
        if self.tolerance is None:
            return None
        if self.printed.startswith("<"):
            return self.measured < float(self.printed[1:])
        if self.printed.startswith(">="):
            return self.measured >= float(self.printed[2:])
        if self.tolerance == 0:
            return self.shown == self.printed
        expected = float(self.printed)
        return abs(self.measured - expected) <= self.tolerance * abs(expected)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "holds": self.holds}


def shown_like(printed: str, measured: float) -> str:
    """The measured value with the digits of the printed one."""
    text = printed.removeprefix("<")
    decimals = len(text.partition(".")[2])
    rounded = f"{measured:.{decimals}f}"
    return f"<{text}" if printed.startswith("<") and measured < float(text) else rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """The real arrival rates the papers' results were made with."""

    taxi: Floats
    taxi_last_month: Floats
    tweets: Floats


@dataclass(frozen=True, slots=True)
class Progress:
    """How a long reproduction tells how far it is."""

    of: Callable[[int], None]  # how many steps there are
    advance: Callable[[], None]  # one of them is done
