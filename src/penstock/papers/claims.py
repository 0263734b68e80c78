"""A claim: something printed in a paper, what we measured, and whether the two agree."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any

from penstock.compiled import Floats, frozen_floats
from penstock.papers.kept_runs import KeptRuns


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One printed number beside ours.

    `tolerance` is relative; 0 means that every printed digit must match, and None that
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
            return bool(self.measured < float(self.printed[1:]))
        if self.printed.startswith(">="):
            return bool(self.measured >= float(self.printed[2:]))
        if self.tolerance == 0:
            return self.shown == self.printed
        expected = float(self.printed)
        return bool(abs(self.measured - expected) <= self.tolerance * abs(expected))

    def as_json(self) -> dict[str, Any]:
        # JSON has no infinity: an interval that could not be told ends nowhere.
        measured = self.measured if isfinite(self.measured) else None
        return {**asdict(self), "measured": measured, "holds": self.holds}


def shown_like(printed: str, measured: float) -> str:
    """The measured value with the digits of the printed one."""
    text = printed.removeprefix("<")
    decimals = len(text.partition(".")[2])
    rounded = f"{measured:.{decimals}f}"
    return f"<{text}" if printed.startswith("<") and measured < float(text) else rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line, or one colour of bars."""

    name: str
    x: Sequence[float | str]
    y: Sequence[float | None]  # None leaves a gap
    group: int | None = None  # lines of one group share a colour; the second is dashed


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure of a paper as measured here: numbers to draw, not a drawing."""

    title: str
    note: str
    x_title: str
    y_title: str
    series: Sequence[Series]
    bars: bool = False
    log_y: bool = False
    whole_x: bool = False  # x counts something
    marked_y: tuple[float, str] | None = None  # a value that deserves a line, and what it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a reproduction found."""

    claims: Sequence[Claim]
    charts: Sequence[Chart] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """The real arrival rates the papers' results were made with."""

    taxi: Floats
    taxi_last_month: Floats
    tweets: Floats


def no_traces() -> Traces:
    """For reproductions that need none."""
    return Traces(taxi=frozen_floats([]), taxi_last_month=frozen_floats([]), tweets=frozen_floats([]))


@dataclass(frozen=True, slots=True)
class Progress:
    """How a long reproduction reports its progress."""

    of: Callable[[int], None]  # how many steps there are
    advance: Callable[[], None]  # one of them is done
    kept: KeptRuns = field(default_factory=KeptRuns)  # what an earlier, interrupted one has done
