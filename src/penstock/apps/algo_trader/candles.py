"""What the consumer computes, without Spark: candlesticks of every symbol and minute.

A candlestick is made of the estimates that fall into its minute, each with the quotes that were new in
its window: these 25 belong to the minute of the last of them, as one. It is shown whenever an estimate
adds to it, so the last one shown of a minute is the whole of it, and nothing waits for a minute to end.
"""

from typing import NamedTuple

import numpy as np

from penstock.apps.algo_trader.windows import Estimates, Settings
from penstock.compiled import Floats, Ints, compiled


class Candles(NamedTuple):
    """Candlesticks of one symbol as they stood after each estimate, in columns."""

    number: Ints  # of the last quote
    entered_s: Floats  # the same quote's
    begin_us: Ints  # of the minute
    open: Floats
    high: Floats
    low: Floats
    close: Floats
    volume: Floats
    quotes: Ints
    expected_us: Ints  # when 25 more quotes are expected
    expected: Floats  # the price then
    error: Floats


class Candle(NamedTuple):
    """What the consumer remembers of a symbol: its candlestick as it stands."""

    begin_us: int = -1  # of none yet
    open: float = 0.0
    high: float = 0.0
    low: float = 0.0
    close: float = 0.0
    volume: float = 0.0
    quotes: int = 0

    def advanced(self, estimates: Estimates, settings: Settings) -> tuple["Candle", Candles]:
        """Add estimates, in the order of their numbers."""
        estimates = estimates.where(np.argsort(estimates.number, kind="stable"))
        count = estimates.number.size
        begin_us = np.concatenate(
            [np.array([self.begin_us]), estimates.at_us // settings.candle_us * settings.candle_us]
        )
        rows = np.empty((count + 1, 6))
        rows[0] = self[1:]
        columns = (estimates.open, estimates.high, estimates.low, estimates.close, estimates.volume)
        for place, column in enumerate(columns):
            rows[1:, place] = column
        rows[1:, 5] = settings.slide
        add_up(begin_us, rows)
        opened, high, low, close, volume, quotes = rows.T
        shown = Candles(
            number=estimates.number,
            entered_s=estimates.entered_s,
            begin_us=begin_us[1:],
            open=opened[1:],
            high=high[1:],
            low=low[1:],
            close=close[1:],
            volume=volume[1:],
            quotes=quotes[1:].astype(np.int64),
            expected_us=estimates.expected_us,
            expected=estimates.expected,
            error=estimates.error,
        )
        candle = Candle(
            begin_us=int(begin_us[-1]),
            open=float(opened[-1]),
            high=float(high[-1]),
            low=float(low[-1]),
            close=float(close[-1]),
            volume=float(volume[-1]),
            quotes=int(quotes[-1]),
        )
        return candle, shown


@compiled
def add_up(begin_us: Ints, rows: Floats) -> None:
    """To rows of (open, high, low, close, volume, quotes) add those before them of the same candlestick."""
    for place in range(1, begin_us.size):
        if begin_us[place] == begin_us[place - 1]:
            rows[place, 0] = rows[place - 1, 0]
            rows[place, 1] = max(rows[place, 1], rows[place - 1, 1])
            rows[place, 2] = min(rows[place, 2], rows[place - 1, 2])
            rows[place, 4] += rows[place - 1, 4]
            rows[place, 5] += rows[place - 1, 5]
