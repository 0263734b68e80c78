"""The whole application in plain form: quotes of all symbols in, candlesticks out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from penstock.apps.algo_trader.candles import Candle, Candles
from penstock.apps.algo_trader.windows import Quotes, Settings, SymbolWindow, are_quotes

Symbols = npt.NDArray[np.object_]

_EMPTY = SymbolWindow()


@dataclass(frozen=True, slots=True, eq=False)
class Trader:
    """What algo-trader and consumer remember of all symbols."""

    settings: Settings = field(default_factory=Settings)
    windows: Mapping[str, SymbolWindow] = field(default_factory=dict)
    candles: Mapping[str, Candle] = field(default_factory=dict)

    def advanced(self, symbols: Symbols, quotes: Quotes) -> tuple["Trader", dict[str, Candles]]:
        """Take in quotes, each of the symbol at the same place; what the consumer shows, by symbol."""
        import pandas as pd

        windows, candles, shown = dict(self.windows), dict(self.candles), dict[str, Candles]()
        codes, names = pd.factorize(symbols)  # -1 for what is missing
        order = np.lexsort((quotes.number, codes))
        order = order[are_quotes(quotes)[order]]
        edges = np.searchsorted(codes[order], np.arange(len(names) + 1)).tolist()
        grouped = quotes.where(order)
        for name, (first, end) in zip(names, pairwise(edges), strict=True):
            if not name or first == end:
                continue
            window = windows.get(name, _EMPTY)
            windows[name], estimates = window.taking(grouped.where(slice(first, end)), self.settings)
            if estimates.number.size:
                candles[name], shown[name] = candles.get(name, Candle()).advanced(estimates, self.settings)
        return Trader(self.settings, windows, candles), shown
