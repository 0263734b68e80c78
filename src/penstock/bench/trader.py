"""How fast algo-trader estimates prices, against plain Python and against Levenberg-Marquardt."""

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from penstock.apps.algo_trader.quote_feed import GeneratedQuotes
from penstock.apps.algo_trader.trading import Symbols, Trader
from penstock.apps.algo_trader.windows import Quotes, Settings, SymbolWindow
from penstock.apps.feeding.schedule import ByRates, Shape
from penstock.bench.figure import Figure
from penstock.bench.plain_trader import PlainQuote, aggregated, plain_candles
from penstock.compiled import Floats

STAGES = 3
_QUOTES, _PLAIN_QUOTES, _BATCH, _FITS = 400_000, 20_000, 10_000, 200
_RATE = 4_000  # quotes/s of all symbols
_SYMBOL_RATE = 400  # of one: its quotes share few milliseconds, so windows have many points
_REPEATS = 3


def run_trader(*, stage: Callable[[str], None]) -> Iterator[Figure]:
    """Figures are of one thread."""
    stage("one symbol: compiled, and plain Python")
    _, quotes = _generated(_QUOTES, _SYMBOL_RATE, symbols=1)
    SymbolWindow().advanced(quotes.where(slice(0, 1_000)), Settings())  # compiled
    compiled = max(
        _rate(_QUOTES, lambda: SymbolWindow().advanced(quotes, Settings())) for _ in range(_REPEATS)
    )
    rows = [
        PlainQuote("S0001", int(at_us), float(price), float(volume))
        for at_us, price, volume in zip(quotes.at_us, quotes.price, quotes.volume, strict=True)
    ]
    few = rows[:_PLAIN_QUOTES]
    plain = max(_rate(len(few), lambda: plain_candles(few)) for _ in range(_REPEATS))
    yield Figure(name="one symbol", value=compiled / 1e6, unit="M quotes/s")
    yield Figure(name="one symbol in plain Python", value=plain / 1e3, unit="k quotes/s")
    yield Figure(name="one symbol, compiled over plain", value=compiled / plain, unit="x", at_least=30)
    stage("2,836 symbols, in one batch and in many")
    names, quotes = _generated(_QUOTES, _RATE)
    for batch in (_QUOTES, _BATCH):
        several = max(_rate(_QUOTES, partial(_fed, names, quotes, batch)) for _ in range(_REPEATS))
        name = f"2,836 symbols, {batch:,} quotes at a time"
        yield Figure(name=name, value=several / 1e6, unit="M quotes/s")
    stage("a window: least squares, and Levenberg-Marquardt")
    windows = [rows[first : first + 1_000] for first in range(0, _FITS * 25, 25)]
    points = [aggregated(window, 1_000) for window in windows]
    iterated = max(_rate(_FITS, lambda: _levenberg_marquardt(points)) for _ in range(_REPEATS))
    yield Figure(name="a window by Levenberg-Marquardt (MINPACK)", value=1e6 / iterated, unit="us")
    yield Figure(name="a window, aggregated and fitted, compiled", value=25e6 / compiled, unit="us")
    yield Figure(name="Levenberg-Marquardt over compiled", value=compiled / 25 / iterated, unit="x")


def _generated(count: int, rate: float, **symbols: int) -> tuple[Symbols, Quotes]:
    schedule = ByRates(Shape(count // int(rate)).constant(rate), slot_s=1)
    return GeneratedQuotes(schedule, seed=1, **symbols).quotes(0, count, entered_s=0.0)


def _rate(count: int, work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return count / (time.perf_counter() - began)


def _fed(symbols: Symbols, quotes: Quotes, batch: int) -> None:
    trader = Trader()
    for first in range(0, symbols.size, batch):
        part = slice(first, first + batch)
        trader, _ = trader.advanced(symbols[part], quotes.where(part))


def _levenberg_marquardt(windows: list[list[tuple[int, float]]]) -> None:
    """As the paper does it, from coefficients of zero."""
    from scipy.optimize import least_squares

    for points in windows:
        interval, price = np.array(points).T
        moments = 2 * (interval - interval[0]) / (interval[-1] - interval[0]) - 1
        powers = np.stack([np.ones_like(moments), moments, moments**2], axis=1)
        least_squares(partial(_missed, powers, price), np.zeros(3), jac=partial(_slopes, powers), method="lm")


def _missed(powers: Floats, price: Floats, weights: Floats) -> Floats:
    return powers @ weights - price


def _slopes(powers: Floats, _: Floats) -> Floats:
    return powers
