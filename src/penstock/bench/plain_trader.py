"""algo-trader in plain Python, quote by quote, written to be read.

It shares no code with the application. `penstock bench trader` measures the compiled windows against
it, and the tests hold the two to the same candlesticks.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby
from math import isfinite
from typing import NamedTuple

import numpy as np


class PlainQuote(NamedTuple):
    symbol: str | None
    at_us: int
    price: float
    volume: float


class PlainCandle(NamedTuple):
    symbol: str
    quote: int  # position of the last quote
    begin_us: int
    open: float
    high: float
    low: float
    close: float
    volume: float
    quotes: int
    expected_us: int
    expected: float


def plain_candles(
    quotes: Iterable[PlainQuote],
    *,
    window: int = 1_000,
    slide: int = 25,
    resolution_us: int = 1_000,
    degree: int = 2,
    candle_us: int = 60_000_000,
) -> list[PlainCandle]:
    """Every candlestick whenever something is added to it, in the order of the quotes."""
    seen: dict[str, list[PlainQuote]] = defaultdict(list)
    latest: dict[str, PlainCandle] = {}
    shown = []
    for number, quote in enumerate(quotes):
        symbol = quote.symbol
        if not symbol or not isfinite(quote.price) or quote.price <= 0:
            continue
        if not isfinite(quote.volume) or quote.volume < 0 or quote.at_us < 0:
            continue
        history = seen[symbol]
        if history and quote.at_us < history[-1].at_us:
            continue
        history.append(quote)
        if len(history) % slide:
            continue
        last = history[-window:]
        new = history[-slide:]
        expected_us = quote.at_us + round(slide * ((quote.at_us - last[0].at_us) / max(len(last) - 1, 1)))
        candle = PlainCandle(
            symbol=symbol,
            quote=number,
            begin_us=quote.at_us - quote.at_us % candle_us,
            open=new[0].price,
            high=max(one.price for one in new),
            low=min(one.price for one in new),
            close=new[-1].price,
            volume=sum(one.volume for one in new),
            quotes=slide,
            expected_us=expected_us,
            expected=_extrapolated(last, expected_us, resolution_us, degree),
        )
        before = latest.get(symbol)
        if before is not None and before.begin_us == candle.begin_us:
            candle = candle._replace(
                open=before.open,
                high=max(before.high, candle.high),
                low=min(before.low, candle.low),
                volume=before.volume + candle.volume,
                quotes=before.quotes + slide,
            )
        latest[symbol] = candle
        shown.append(candle)
    return shown


def aggregated(quotes: Iterable[PlainQuote], resolution_us: int) -> list[tuple[int, float]]:
    """(resolution interval, mean price) of quotes in order."""
    means = []
    for interval, together in groupby(quotes, key=lambda quote: quote.at_us // resolution_us):
        prices = [quote.price for quote in together]
        means.append((interval, sum(prices) / len(prices)))
    return means


def _extrapolated(quotes: list[PlainQuote], at_us: int, resolution_us: int, degree: int) -> float:
    points = aggregated(quotes, resolution_us)
    first, last = points[0][0], points[-1][0]
    span = max(last - first, 1)
    times = [(interval - first) / span for interval, _ in points]
    prices = [price for _, price in points]
    coefficients = np.polyfit(times, prices, min(degree, len(points) - 1))
    return float(np.polyval(coefficients, (at_us // resolution_us - first) / span))
