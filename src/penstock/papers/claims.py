"""A claim: what a paper prints and where, what we measured, and whether the two agree.

What we ask of ourselves stands beside it, never in its place.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import takewhile
from math import isfinite
from typing import Any

from penstock.compiled import Floats, frozen_floats
from penstock.papers.kept_runs import KeptRuns


class Side(StrEnum):
    """Where a number has to lie."""

    BELOW = "<"
    AT_MOST = "<="
    AT_LEAST = ">="
    ABOVE = ">"


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit, and the side of it that is wanted; a number that is not known is on neither."""

    side: Side
    limit: float

    def met_by(self, measured: float) -> bool:
        match self.side:
            case Side.BELOW:
                return measured < self.limit
            case Side.AT_MOST:
                return measured <= self.limit
            case Side.AT_LEAST:
                return measured >= self.limit
            case Side.ABOVE:
                return measured > self.limit

    def __str__(self) -> str:
        return f"{self.side}{self.limit:g}"


def less_than(limit: float) -> Bound:
    return Bound(Side.BELOW, limit)


def more_than(limit: float) -> Bound:
    return Bound(Side.ABOVE, limit)


def no_more_than(limit: float) -> Bound:
    return Bound(Side.AT_MOST, limit)


def no_less_than(limit: float) -> Bound:
    return Bound(Side.AT_LEAST, limit)


class Verdict(StrEnum):
    """What became of what is printed."""

    HOLDS = "holds"
    HOLDS_WITHIN = "holds within"  # a range of what the paper leaves open, and not outside it
    DOES_NOT = "does not"
    NOT_CLAIMED = "not claimed"  # printed, and shown side by side
    NOT_PRINTED = "not printed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The same measure under other values of a setting that the paper does not give."""

    setting: str
    stated: float  # the value everything else was measured with
    measured: Sequence[tuple[float, float]]  # (value of the setting, what came out), rising

    def as_json(self) -> dict[str, Any]:
        points = [[value, one if isfinite(one) else None] for value, one in self.measured]
        return {"setting": self.setting, "stated": self.stated, "measured": points}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Something printed beside ours.

    A number is judged by `tolerance`, which is relative: 0 means that every printed digit must
    match. A sentence, an order or an effect is judged by `means`, what it says of the measured
    number. With neither, nothing is claimed: the two are only shown side by side.
    """

    id: str
    source: str  # the paper, and the place in it
    printed: str | None  # what stands there; None: nothing does
    measured: float
    shown: str  # measured, with as many digits as were printed
    tolerance: float | None = None
    means: Bound | None = None
    asked: Bound | None = None  # of ourselves; no paper prints it
    tried: Sequence[Tried] = ()
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        if self.printed is None:
            return Verdict.NOT_PRINTED
        agrees = self._agrees(self.measured, self.shown)
        if agrees is None:
            return Verdict.NOT_CLAIMED
        if not agrees:
            return Verdict.DOES_NOT
        return Verdict.HOLDS_WITHIN if self.within else Verdict.HOLDS

    @property
    def holds(self) -> bool | None:
        """Whether what is printed holds, wherever it was tried; None where nothing printed is claimed."""
        if self.verdict in (Verdict.NOT_CLAIMED, Verdict.NOT_PRINTED):
            return None
        return self.verdict is Verdict.HOLDS

    @property
    def met(self) -> bool | None:
        """Whether we do what we ask of ourselves."""
        return None if self.asked is None else self.asked.met_by(self.measured)

    @property
    def within(self) -> str:
        """The ranges of settings around the stated values beyond which it does not hold."""
        return "; ".join(text for one in self.tried if (text := self._range(one)))

    @property
    def judged(self) -> str:
        """How what is printed is compared with what was measured."""
        if self.means is not None:
            return str(self.means)
        if self.printed is None or self.tolerance is None:
            return "-"
        return "exact" if self.tolerance == 0 else f"{self.tolerance:.0%}"

    def _agrees(self, measured: float, shown: str) -> bool | None:
        if self.printed is None:
            return None
        if self.means is not None:
            return self.means.met_by(measured)
        if self.tolerance is None:
            return None
        if self.printed.startswith("<"):
            return bool(measured < float(self.printed[1:]))
        if self.tolerance == 0:
            return shown == self.printed
        expected = number_in(self.printed)
        return bool(abs(measured - expected) <= self.tolerance * abs(expected))

    def _range(self, tried: Tried) -> str:
        held = [
            (value, self._agrees(one, shown_like(self.printed or "", one))) for value, one in tried.measured
        ]
        if all(holds for _, holds in held):
            return ""
        # From the stated value outwards, until it does not hold.
        stated = [value for value, _ in held].index(tried.stated)
        down = [value for value, _ in takewhile(_holds, held[stated::-1])]
        up = [value for value, _ in takewhile(_holds, held[stated:])]
        if not down:  # not even as stated: the verdict says so
            return ""
        low, high = down[-1], up[-1]
        where = f"only at {low:g}" if low == high else f"{low:g} to {high:g}"
        return f"{tried.setting} {where} (tried: {held[0][0]:g} to {held[-1][0]:g})"

    def as_json(self) -> dict[str, Any]:
        # JSON has no infinity: an interval that could not be told ends nowhere.
        measured = self.measured if isfinite(self.measured) else None
        return {
            **asdict(self),
            "measured": measured,
            "tried": [one.as_json() for one in self.tried],
            "means": None if self.means is None else str(self.means),
            "asked": None if self.asked is None else str(self.asked),
            "holds": self.holds,
            "met": self.met,
            "verdict": self.verdict.value,
            "within": self.within,
        }


def _holds(one: tuple[float, bool | None]) -> bool:
    return one[1] is True


def number_in(printed: str) -> float:
    """The number a printed text stands for; of a ratio of two printed ones, what it comes to."""
    return float(printed.rpartition("= ")[2])


def ratio_of(over: str, under: str) -> str:
    """Two printed numbers and their ratio, so that nobody takes the ratio for printed."""
    return f"{over} / {under} = {float(over) / float(under):.3f}"


def change_of(after: str, before: str) -> str:
    """Two printed numbers and what was added."""
    return f"{after} - {before} = {float(after) - float(before):.2f}"


def shown_like(printed: str, measured: float) -> str:
    """The measured value with the digits of the printed one."""
    text = printed.rpartition("= ")[2].removeprefix("<")
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
