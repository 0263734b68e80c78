"""algo-trader on Spark: the graph of De Matteis 2017, Fig. 6, in two queries.

    quotes > algo-trader      a window of quotes per symbol
           > consumer         a candlestick per symbol

Both read whole batches in order, and put what is in one into the order of the input by its number, so
that the results are those of the plain form (`trading.py`): to the last bit where machines are alike.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.apps.algo_trader.candles import Candle, Candles
from penstock.apps.algo_trader.graph import CONSUMER, NAME
from penstock.apps.algo_trader.windows import SLIDE, Estimates, Quotes, Settings, SymbolWindow
from penstock.domain.objective import Objective
from penstock.files import write_whole
from penstock.reconfigure.method import Method
from penstock.runtimes.spark.stream_log import StreamLog
from penstock.runtimes.spark.topology import App

if TYPE_CHECKING:
    from pandas import DataFrame as Frame
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

SOURCE = "quotes"
SOURCE_SCHEMA = (
    "number long, entered_s double, symbol string, at_us long, price double, volume double"  # volume: shares
)
RESULTS = CONSUMER

_PRICES = "open double, high double, low double, close double, volume double"
_ESTIMATES = (
    f"symbol string, number long, entered_s double, at_us long, {_PRICES}, points long, expected_us long, "
    "expected double, error double"
)
_CANDLES = (
    f"symbol string, number long, entered_s double, begin_us long, {_PRICES}, quotes long, expected_us long, "
    "expected double, error double"
)
_WINDOW_STATE = "latest_us long, waiting int, at_us binary, price binary, volume binary"
_CANDLE_STATE = f"begin_us long, {_PRICES}, quotes long"
HEADER = "symbol,begin,open,high,low,close,volume,quotes,expected_at,expected"


def algo_trader(
    *,
    objective: Objective | None = None,
    max_replicas: int = 3,
    protocol: Method = Method.LIVE,
    settings: Settings | None = None,
) -> App:
    """The application; every symbol is a key of both operators."""
    chosen = settings or Settings()

    # Functions of this module, so that Python workers load it before their first task; a partial is of none.
    def trader(quotes: "DataFrame") -> "DataFrame":
        return estimated(quotes, settings=chosen)

    def consumer(estimates: "DataFrame") -> "DataFrame":
        return in_candles(estimates, settings=chosen)

    app = App(NAME, objective=objective or Objective(response_time_s=10))
    stream = app.source(SOURCE, schema=SOURCE_SCHEMA)
    for name, transform in ((NAME, trader), (CONSUMER, consumer)):
        stream = app.operator(
            name, transform, stream, max_replicas=max_replicas, stateful=True, protocol=protocol
        )
    app.sink("candles", stream)
    return app


def get_ready() -> None:
    """Load the compiled functions: .35 s of CPU that Python workers share if it is done before they fork."""
    count = SLIDE
    quotes = Quotes(
        number=np.arange(count),
        entered_s=np.zeros(count),
        at_us=np.arange(count),
        price=np.ones(count),
        volume=np.ones(count),
    )
    _, estimates = SymbolWindow().advanced(quotes, Settings())
    Candle().advanced(estimates, Settings())


def estimated(quotes: "DataFrame", *, settings: Settings) -> "DataFrame":
    """quotes(number, entered_s, symbol, at_us, price, volume) -> estimates(symbol, columns of `Estimates`).

    What is missing becomes what is no quote either.
    """
    return (
        quotes.selectExpr(
            "coalesce(number, 0L) AS number",
            "coalesce(entered_s, 0D) AS entered_s",
            "coalesce(symbol, '') AS symbol",
            "coalesce(at_us, -1L) AS at_us",
            "coalesce(price, -1D) AS price",
            "coalesce(volume, -1D) AS volume",
        )
        .where("symbol != ''")
        .groupBy("symbol")
        .applyInPandasWithState(
            partial(_estimate, settings=settings), _ESTIMATES, _WINDOW_STATE, "append", "NoTimeout"
        )
    )


def in_candles(estimates: "DataFrame", *, settings: Settings) -> "DataFrame":
    """estimates(symbol, columns of `Estimates`) -> candles(symbol, columns of `Candles`)."""
    return estimates.groupBy("symbol").applyInPandasWithState(
        partial(_draw, settings=settings), _CANDLES, _CANDLE_STATE, "append", "NoTimeout"
    )


def _estimate(
    key: tuple[str], frames: "Iterator[Frame]", state: "GroupState", *, settings: Settings
) -> "Iterator[Frame]":
    window = SymbolWindow.from_bytes(*state.get) if state.exists else SymbolWindow()
    window, estimates = window.advanced(Quotes(*_columns(frames, Quotes._fields)), settings)
    state.update(
        (
            window.latest_us,
            window.waiting,
            *(column.tobytes() for column in (window.at_us, window.price, window.volume)),
        )
    )
    yield from _framed(key[0], estimates)


def _draw(
    key: tuple[str], frames: "Iterator[Frame]", state: "GroupState", *, settings: Settings
) -> "Iterator[Frame]":
    candle = Candle(*state.get) if state.exists else Candle()
    candle, shown = candle.advanced(Estimates(*_columns(frames, Estimates._fields)), settings)
    state.update(tuple(candle))
    yield from _framed(key[0], shown)


def _columns(frames: "Iterator[Frame]", names: tuple[str, ...]) -> "Iterator[Any]":
    parts = list(frames)
    return (np.concatenate([part[name].to_numpy() for part in parts]) for name in names)


def _framed(symbol: str, rows: Estimates | Candles) -> "Iterator[Frame]":
    import pandas as pd

    if rows.number.size:
        yield pd.DataFrame({"symbol": [symbol] * rows.number.size, **rows._asdict()})


class Shown(NamedTuple):
    """A candlestick as it stood when nothing was added to it any more."""

    symbol: str
    begin_us: int
    number: int
    open: float
    high: float
    low: float
    close: float
    volume: float
    quotes: int
    expected_us: int
    expected: float


def whole_candles(results: StreamLog) -> list[Shown]:
    """The last of every symbol and minute, by minute."""
    from pyarrow import parquet

    last: dict[tuple[int, str], Shown] = {}
    for batch in results.all():
        for file in batch.files:
            rows = parquet.read_table(results.data_file(file.name), columns=list(Shown._fields)).to_pylist()
            for row in rows:
                candle = Shown(**row)
                place = candle.begin_us, candle.symbol
                if place not in last or candle.number > last[place].number:
                    last[place] = candle
    return [last[place] for place in sorted(last)]


def export(results: StreamLog, path: Path) -> int:
    """Write `candles.csv`, whole or not at all; returns how many candlesticks."""
    candles = whole_candles(results)
    lines = [
        f"{one.symbol},{_date(one.begin_us)},{one.open:g},{one.high:g},{one.low:g},{one.close:g},"
        f"{one.volume:.0f},{one.quotes},{_date(one.expected_us)},{one.expected:.4f}"
        for one in candles
    ]
    write_whole(path, "".join(f"{line}\n" for line in (HEADER, *lines)))
    return len(candles)


def _date(microseconds: int) -> str:
    seconds, rest = divmod(microseconds, 1_000_000)
    whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{whole}.{rest // 1000:03d}"
