"""Quotes to feed in: generated ones, or those of a file; quote number n, for any n."""

import calendar
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from penstock.apps.algo_trader.graph import SYMBOLS
from penstock.apps.algo_trader.trading import Symbols
from penstock.apps.algo_trader.windows import LATEST_US, Quotes
from penstock.apps.feeding.draws import uniform
from penstock.apps.feeding.schedule import Schedule
from penstock.compiled import Floats, Ints
from penstock.domain.errors import InputError

if TYPE_CHECKING:
    from pyarrow import Table

_CHUNK = 100_000  # quotes generated at a time
_FIELDS = 4  # timestamp, symbol, price, volume


class QuoteFeed:
    """Quotes as a replayer takes them."""

    total: int | None = None

    def quotes(self, first: int, count: int, *, entered_s: float) -> tuple[Symbols, Quotes]:
        """So many from number `first` on, with their symbols."""
        raise NotImplementedError

    def table(self, first: int, count: int, *, entered_s: float) -> "Table":
        """-> (number long, entered_s double, symbol string, at_us long, price double, volume double)."""
        import pyarrow

        symbols, quotes = self.quotes(first, count, entered_s=entered_s)
        return pyarrow.table(
            {
                "number": quotes.number,
                "entered_s": quotes.entered_s,
                "symbol": pyarrow.array(symbols.tolist(), pyarrow.string()),
                "at_us": quotes.at_us,
                "price": quotes.price,
                "volume": quotes.volume,
            }
        )

    def end(self, number: int, *, entered_s: float) -> "Table":
        return self.table(number, 0, entered_s=entered_s)


class GeneratedQuotes(QuoteFeed):
    """Quotes that never were, without end: prices on a random walk, some symbols far more frequent.

    A symbol's share falls with its rank (Zipf). Quotes come in threes of the same instant, and half of
    those after the first are of its symbol, so that there is something to aggregate. Times follow the
    schedule by which quotes are sent, `acceleration` times as fast. Prices move by whole cents: sums of
    whole numbers are the same from wherever they are continued.
    """

    _AT_ONCE = 3
    _LOWEST, _HIGHEST = 100, 50_000  # cents; the walk is reflected there
    _STEP = 3  # cents a quote, at most
    _LOT = 100  # shares

    def __init__(
        self, schedule: Schedule, *, acceleration: float = 1.0, seed: int = 0, symbols: int = SYMBOLS
    ) -> None:
        if not acceleration > 0:
            raise InputError(f"acceleration {acceleration}: it must be positive")
        if symbols < 1:
            raise InputError(f"symbols={symbols}; give at least one")
        self._schedule, self._acceleration, self._seed = schedule, acceleration, seed
        self._names = np.array([f"S{rank:04d}" for rank in range(1, symbols + 1)], dtype=object)
        self._begin_us = 1_000_000 * calendar.timegm((2014, 10, 30, 9, 30, 0))
        self._start = np.floor(500 + 19_500 * self._drawn(np.arange(symbols), 0)).astype(np.int64)
        self._number, self._walked = 0, self._start.copy()

    def quotes(self, first: int, count: int, *, entered_s: float) -> tuple[Symbols, Quotes]:
        if first < self._number:
            self._number, self._walked = 0, self._start.copy()
        while self._number < first:
            self._walk(min(first - self._number, _CHUNK))
        number = np.arange(first, first + count)
        ranks, cents = self._walk(count)
        folded = (cents - self._LOWEST) % (2 * (span := self._HIGHEST - self._LOWEST))
        price = (self._LOWEST + np.where(folded > span, 2 * span - folded, folded)) / 100
        lots = 1 + np.floor(20 * self._drawn(number, 5) ** 4)
        symbols: Symbols = self._names[ranks]
        return symbols, Quotes(
            number, np.full(count, entered_s), self._times_us(number), price, self._LOT * lots
        )

    def _walk(self, count: int) -> tuple[Ints, Ints]:
        """The symbols of the next quotes, and where their walks are then."""
        number = np.arange(self._number, self._number + count)
        leader = number - number % self._AT_ONCE
        follows = self._drawn(number, 1) < 0.5
        drawn = self._drawn(np.where(follows, leader, number), 2)
        # P(rank) ~ 1 / rank
        ranks = np.floor(self._names.size**drawn).astype(np.int64).clip(1, self._names.size) - 1
        steps = np.floor((2 * self._STEP + 1) * self._drawn(number, 3)).astype(np.int64) - self._STEP
        order = np.argsort(ranks, kind="stable")
        upto = np.cumsum(steps[order])
        begins = np.flatnonzero(np.diff(ranks[order], prepend=-1))
        earlier = np.repeat(upto[begins] - steps[order][begins], np.diff(begins, append=count))
        cents = np.empty(count, dtype=np.int64)
        cents[order] = self._walked[ranks[order]] + upto - earlier
        np.add.at(self._walked, ranks, steps)
        self._number += count
        return ranks, cents

    def _times_us(self, number: Ints) -> Ints:
        leaders, place = np.unique(number - number % self._AT_ONCE, return_inverse=True)
        moments = np.array([self._schedule.moment(leader) for leader in leaders.tolist()], dtype=np.float64)
        passed: Ints = np.rint(1e6 * self._acceleration * moments).astype(np.int64)
        return self._begin_us + passed[place]

    def _drawn(self, ids: Ints, what: int) -> Floats:
        return uniform(ids, 8 * self._seed + what)


class RecordedQuotes(QuoteFeed):
    """Quotes of a file; a line that is none is sent as well, for algo-trader to leave out."""

    def __init__(self, lines: Sequence[str]) -> None:
        import pandas as pd

        fields = [found if len(found := line.split(",")) == _FIELDS else [""] * _FIELDS for line in lines]
        times, symbols, prices, volumes = zip(*fields, strict=True) if fields else ((), (), (), ())
        at = pd.to_datetime(pd.Series(times, dtype=object), errors="coerce", format="ISO8601", utc=True)
        at_us = at.to_numpy(dtype="datetime64[us]").astype(np.int64)  # what is no time becomes the least
        self._symbols: Symbols = np.array(symbols, dtype=object)
        self._at_us: Ints = np.where((at_us >= 0) & (at_us <= LATEST_US), at_us, -1)
        self._price, self._volume = (
            pd.to_numeric(pd.Series(column, dtype=object), errors="coerce").to_numpy(dtype=np.float64)
            for column in (prices, volumes)
        )
        self.total: int | None = len(lines)

    @classmethod
    def read(cls, path: Path) -> "RecordedQuotes":
        """The quotes of a file, which is sorted by time; it is held in memory."""
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as problem:
            raise InputError(f"{path}: cannot read: {problem.strerror or problem}") from problem
        quotes = cls(lines)
        back = np.flatnonzero(np.diff(quotes.times_s) < 0)
        if back.size:
            raise InputError(
                f"{path}: line {back[0] + 2}: earlier than the line above; "
                "sort the file by time, its first field"
            )
        return quotes

    @property
    def times_s(self) -> Floats:
        """When quotes were made; a line that is none has the time of the line before."""
        known = np.flatnonzero(self._at_us >= 0)
        if not known.size:
            return np.zeros(self._at_us.size)
        places = np.maximum(np.searchsorted(known, np.arange(self._at_us.size), side="right") - 1, 0)
        times: Floats = self._at_us[known[places]] / 1e6
        return times

    def quotes(self, first: int, count: int, *, entered_s: float) -> tuple[Symbols, Quotes]:
        part = slice(first, first + count)
        number = np.arange(first, min(first + count, len(self._symbols)))
        return self._symbols[part], Quotes(
            number,
            np.full(number.size, entered_s),
            self._at_us[part],
            self._price[part],
            self._volume[part],
        )
