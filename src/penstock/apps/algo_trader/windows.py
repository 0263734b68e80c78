"""What algo-trader computes, without Spark: a window of quotes per symbol, and estimated prices.

Quotes count in the order of their numbers, their position in the input. The window of a symbol is its
last 1,000 quotes (fewer at first), and after every 25 it is worked on: quotes within the same
millisecond become one, a polynomial is fitted to them, and the price is estimated for when the next 25
will have come, at the pace of the window. What comes out depends on the quotes and their order alone,
to the last bit, however they are divided into batches: every window is computed from its own quotes.

What is not a quote is left out, and does not count: without a symbol, with a time before 1970 or after
9999, with a price that is not a positive number, with a negative volume. So is a quote that is older
than one taken before it of the same symbol: time never goes back in a window.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from penstock.apps.algo_trader.regression import estimate_windows
from penstock.compiled import Flags, Floats, Ints
from penstock.domain.errors import InputError

WINDOW, SLIDE = 1_000, 25  # quotes; De Matteis 2017, sec. 5.1
LATEST_US = 253_402_300_799_999_999  # the end of the year 9999
MOST = 1e12  # of a price and of a volume: sums of a window stay exact enough, and finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The paper's, where it gives them: it prints no degree, and no width of a candlestick."""

    window: int = WINDOW  # quotes of a symbol
    slide: int = SLIDE  # new quotes after which its window is worked on
    resolution_us: int = 1_000  # quotes this near become one
    degree: int = 2  # of the polynomial; a window of fewer points gets one less than its points
    candle_us: int = 60_000_000

    def __post_init__(self) -> None:
        if not 1 <= self.slide <= self.window:
            raise InputError(f"window={self.window}, slide={self.slide}; give 1 <= slide <= window")
        if self.resolution_us < 1 or self.candle_us < 1:
            raise InputError(
                f"resolution_us={self.resolution_us}, candle_us={self.candle_us}; at least one microsecond"
            )
        if not 0 <= self.degree <= 10:
            raise InputError(f"degree={self.degree}; of a polynomial to extrapolate by, from 0 to 10")


class Quotes(NamedTuple):
    """Quotes in columns, of one symbol."""

    number: Ints  # position in the input
    entered_s: Floats  # when it was read, system time
    at_us: Ints  # when it was made, microseconds since 1970
    price: Floats
    volume: Floats

    def where(self, kept: Flags | Ints | slice) -> "Quotes":
        return Quotes(
            number=self.number[kept],
            entered_s=self.entered_s[kept],
            at_us=self.at_us[kept],
            price=self.price[kept],
            volume=self.volume[kept],
        )


class Estimates(NamedTuple):
    """What comes of the windows of one symbol that were worked on, in columns."""

    number: Ints  # of the quote that was the last of its window
    entered_s: Floats  # the same quote's
    at_us: Ints  # the same quote's
    open: Floats  # of the quotes that were new in the window
    high: Floats
    low: Floats
    close: Floats
    volume: Floats  # of the same quotes together
    points: Ints  # in the window: resolution intervals that have quotes
    expected_us: Ints  # when the next window is expected to be full
    expected: Floats  # the price then, by the polynomial
    error: Floats  # root of the mean square by which the polynomial misses the points

    def where(self, kept: Flags | Ints | slice) -> "Estimates":
        return Estimates(
            number=self.number[kept],
            entered_s=self.entered_s[kept],
            at_us=self.at_us[kept],
            open=self.open[kept],
            high=self.high[kept],
            low=self.low[kept],
            close=self.close[kept],
            volume=self.volume[kept],
            points=self.points[kept],
            expected_us=self.expected_us[kept],
            expected=self.expected[kept],
            error=self.error[kept],
        )


_NONE = Estimates(
    number=(_counts := np.empty(0, dtype=np.int64)),
    entered_s=(_numbers := np.empty(0)),
    at_us=_counts,
    open=_numbers,
    high=_numbers,
    low=_numbers,
    close=_numbers,
    volume=_numbers,
    points=_counts,
    expected_us=_counts,
    expected=_numbers,
    error=_numbers,
)


def are_quotes(quotes: Quotes) -> Flags:
    """Which of these can be traded on; comparing what is not a number gives false."""
    fine: Flags = (
        (quotes.price > 0)
        & (quotes.price <= MOST)
        & (quotes.volume >= 0)
        & (quotes.volume <= MOST)
        & (quotes.at_us >= 0)
        & (quotes.at_us <= LATEST_US)
    )
    return fine


def in_order(quotes: Quotes) -> Quotes:
    """Those that can be traded on, by their numbers."""
    quotes = quotes.where(np.argsort(quotes.number, kind="stable"))
    return quotes.where(are_quotes(quotes))


@dataclass(frozen=True, slots=True, eq=False)
class SymbolWindow:
    """What algo-trader remembers of a symbol: the quotes that belong to windows still to come."""

    latest_us: int = -1
    waiting: int = 0  # how many of the quotes have come since the last window was worked on
    at_us: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    price: Floats = field(default_factory=lambda: np.empty(0))
    volume: Floats = field(default_factory=lambda: np.empty(0))

    def advanced(self, arrived: Quotes, settings: Settings) -> tuple["SymbolWindow", Estimates]:
        """Take in quotes of this symbol, of any order and quality; the windows now full, estimated."""
        return self.taking(in_order(arrived), settings)

    def taking(self, quotes: Quotes, settings: Settings) -> tuple["SymbolWindow", Estimates]:
        """The same for quotes as `in_order` gives them; those from the past are left out."""
        latest = np.maximum.accumulate(np.concatenate([np.array([self.latest_us]), quotes.at_us]))
        in_time = quotes.at_us >= latest[:-1]
        new = quotes if in_time.all() else quotes.where(in_time)
        due, waiting = divmod(self.waiting + new.number.size, settings.slide)
        before = self.at_us.size
        at_us = np.concatenate([self.at_us, new.at_us])
        price = np.concatenate([self.price, new.price])
        volume = np.concatenate([self.volume, new.volume])
        ends = before - self.waiting + settings.slide * np.arange(1, due + 1)
        triggers = new.where(ends - 1 - before)
        estimates = _estimates(triggers, at_us, price, volume, ends, settings) if due else _NONE
        over = max(at_us.size - (settings.window - settings.slide + waiting), 0)
        # Copies where something is cut off, else all that came would be kept.
        kept = [column[over:].copy() if over else column for column in (at_us, price, volume)]
        return SymbolWindow(int(latest[-1]), waiting, *kept), estimates

    @classmethod
    def from_bytes(cls, latest_us: int, waiting: int, *columns: bytes) -> "SymbolWindow":
        """With columns as `tobytes()` gave them."""
        at_us, price, volume = columns
        return cls(latest_us, waiting, np.frombuffer(at_us, np.int64), *map(np.frombuffer, (price, volume)))


def _estimates(
    triggers: Quotes, at_us: Ints, price: Floats, volume: Floats, ends: Ints, settings: Settings
) -> Estimates:
    """Of windows that end before `ends`, each `slide` after the one before it."""
    windows, slide = ends.size, settings.slide
    new = slice(ends[0] - slide, ends[-1])
    prices = price[new].reshape(windows, slide)
    begins = np.maximum(ends - settings.window, 0)
    # The pace of the window: the time from its first quote to its last, over the steps between them.
    pace_us = (triggers.at_us - at_us[begins]) / np.maximum(ends - begins - 1, 1)
    expected_us = triggers.at_us + np.rint(slide * pace_us).astype(np.int64)
    points, expected, error = np.empty(windows, dtype=np.int64), np.empty(windows), np.empty(windows)
    estimate_windows(
        at_us // settings.resolution_us,
        price,
        ends,
        expected_us // settings.resolution_us,
        settings.window,
        settings.degree,
        np.empty((4, settings.window)),
        points,
        expected,
        error,
    )
    return Estimates(
        number=triggers.number,
        entered_s=triggers.entered_s,
        at_us=triggers.at_us,
        open=prices[:, 0],
        high=prices.max(axis=1),
        low=prices.min(axis=1),
        close=prices[:, -1],
        volume=volume[new].reshape(windows, slide).sum(axis=1),
        points=points,
        expected_us=expected_us,
        expected=expected,
        error=error,
    )
