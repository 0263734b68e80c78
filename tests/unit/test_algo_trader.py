"""algo-trader without Spark: the fit, the windows, the candlesticks, and what is fed in."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scipy.optimize import curve_fit, least_squares

from penstock.apps.algo_trader.candles import Candles
from penstock.apps.algo_trader.query import HEADER, algo_trader, export
from penstock.apps.algo_trader.quote_feed import GeneratedQuotes, RecordedQuotes
from penstock.apps.algo_trader.regression import estimate_windows
from penstock.apps.algo_trader.trading import Symbols, Trader
from penstock.apps.algo_trader.windows import Quotes, Settings, SymbolWindow
from penstock.apps.entry import AppEntry
from penstock.apps.feeding.load import Load
from penstock.apps.feeding.schedule import ByRates, ByTimes, Shape
from penstock.apps.registry import application_entry
from penstock.bench.plain_trader import PlainQuote, aggregated, plain_candles
from penstock.compiled import Floats, Ints
from penstock.domain.errors import InputError
from penstock.runtimes.spark.stream_log import LogFile, StreamLog

_SMALL = Settings(window=12, slide=5, resolution_us=1_000, degree=2, candle_us=20_000)
_AT = 1_414_661_400_000_000


def columns(quotes: Sequence[PlainQuote], first: int = 0) -> tuple[Symbols, Quotes]:
    return np.array([one.symbol for one in quotes], dtype=object), Quotes(
        number=np.arange(first, first + len(quotes)),
        entered_s=np.zeros(len(quotes)),
        at_us=np.array([one.at_us for one in quotes], dtype=np.int64),
        price=np.array([one.price for one in quotes], dtype=np.float64),
        volume=np.array([one.volume for one in quotes], dtype=np.float64),
    )


def rows(shown: dict[str, Candles]) -> list[tuple[object, ...]]:
    """Every candlestick shown, in the order of quotes."""
    listed = [
        (int(number), symbol, *(column[place].item() for column in candles[2:]))
        for symbol, candles in shown.items()
        for place, number in enumerate(candles.number)
    ]
    return sorted(listed, key=lambda row: str(row[0]).zfill(9))


def fed(quotes: Sequence[PlainQuote], cuts: Sequence[int], chosen: Settings) -> list[tuple[object, ...]]:
    """All candlesticks when quotes come in batches that begin at these places."""
    trader, shown = Trader(chosen), []
    edges = [0, *sorted(cuts), len(quotes)]
    for first, end in pairwise(edges):
        trader, new = trader.advanced(*columns(quotes[first:end], first))
        shown += rows(new)
    return shown


def generated(count: int, *, rate: float = 40.0, symbols: int = 3, seed: int = 5) -> list[PlainQuote]:
    schedule = ByRates(Shape(int(count // rate) + 1).constant(rate), slot_s=1)
    feed = GeneratedQuotes(schedule, seed=seed, symbols=symbols)
    names, quotes = feed.quotes(0, count, entered_s=0.0)
    return [
        PlainQuote(*one)
        for one in zip(
            names.tolist(), quotes.at_us.tolist(), quotes.price.tolist(), quotes.volume.tolist(), strict=True
        )
    ]


def assert_as_plain(quotes: Sequence[PlainQuote], chosen: Settings) -> int:
    """Holds the application to plain Python; returns how many candlesticks there were."""
    ours = fed(quotes, [], chosen)
    plain = plain_candles(
        quotes,
        window=chosen.window,
        slide=chosen.slide,
        resolution_us=chosen.resolution_us,
        degree=chosen.degree,
        candle_us=chosen.candle_us,
    )
    assert [row[:9] for row in ours] == [
        (c.quote, c.symbol, c.begin_us, c.open, c.high, c.low, c.close, c.volume, c.quotes) for c in plain
    ]
    assert [row[9] for row in ours] == [candle.expected_us for candle in plain]
    assert [row[10] for row in ours] == pytest.approx([candle.expected for candle in plain], rel=1e-7)
    return len(plain)


def estimated(interval: Ints, price: Floats, target: int, degree: int) -> tuple[int, float, float]:
    """One window: its points, the price in the interval `target`, the error."""
    points, estimates, errors = np.empty(1, dtype=np.int64), np.empty(1), np.empty(1)
    estimate_windows(
        interval,
        price,
        np.array([interval.size]),
        np.array([target]),
        interval.size,
        degree,
        np.empty((4, interval.size)),
        points,
        estimates,
        errors,
    )
    return int(points[0]), float(estimates[0]), float(errors[0])


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_the_fit_is_that_of_numpy_and_of_levenberg_marquardt(degree: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    interval = 1_414_661_400_000 + np.cumsum(rng.integers(1, 50, 400))
    price = 100 + np.cumsum(rng.normal(0, 0.05, 400))
    time = 2 * (interval - interval[0]) / (interval[-1] - interval[0]) - 1
    powers = np.stack([time**power for power in range(degree + 1)], axis=1)
    target = int(interval[-1] + rng.integers(0, 400))
    then = 2 * (target - interval[0]) / (interval[-1] - interval[0]) - 1
    points, ours, error = estimated(interval, price, target, degree)
    assert points == 400

    polynomial = np.polyfit(time, price, degree)
    assert ours == pytest.approx(np.polyval(polynomial, then), rel=1e-10)
    missed = price - np.polyval(polynomial, time)
    assert error == pytest.approx(np.sqrt(np.mean(missed**2)), rel=1e-9)

    lm = least_squares(lambda weights: powers @ weights - price, np.zeros(degree + 1), method="lm").x
    assert ours == pytest.approx(lm @ then ** np.arange(degree + 1), rel=1e-6)

    def curve(at: Floats, *weights: float) -> Floats:
        value: Floats = np.stack([at**power for power in range(degree + 1)], axis=1) @ np.array(weights)
        return value

    fitted, _ = curve_fit(curve, time, price, np.ones(degree + 1), method="lm")
    assert ours == pytest.approx(curve(np.array([then]), *fitted)[0], rel=1e-6)


@given(
    weights=st.lists(st.floats(-5, 5), min_size=1, max_size=4),
    steps=st.lists(st.integers(1, 1_000), min_size=4, max_size=60),
    ahead=st.integers(0, 100),
)
def test_a_polynomial_is_found_again(weights: list[float], steps: list[int], ahead: int) -> None:
    interval = np.cumsum(np.array(steps))
    span = int(interval[-1] - interval[0])
    target = int(interval[-1]) + ahead * span // 100
    curve = np.polynomial.Polynomial(weights)
    _, ours, error = estimated(interval, curve((interval - interval[0]) / span), target, len(weights) - 1)
    assert ours == pytest.approx(curve((target - interval[0]) / span), abs=1e-7)
    assert error < 1e-9


def test_quotes_of_one_interval_are_one_point_and_few_points_a_lower_degree() -> None:
    assert estimated(np.array([7, 7, 7]), np.array([1.0, 2.0, 6.0]), 9, 2) == (1, 3.0, 0.0)
    points, ours, error = estimated(np.array([7, 7, 8]), np.array([1.0, 2.0, 2.5]), 10, 2)
    assert points == 2
    assert ours == pytest.approx(4.5)
    assert error == pytest.approx(0)


def test_a_quote_years_after_the_others_makes_no_estimate_absurd() -> None:
    rng = np.random.default_rng(1)
    interval = np.append(np.arange(50), 10**12)
    price = np.append(rng.normal(100, 1, 50), 120.0)
    _, ours, _ = estimated(interval, price, 15 * 10**11, 2)
    assert ours == pytest.approx(130, abs=1)  # along a line from the others to it: more is not known


@pytest.mark.parametrize("chosen", [Settings(), _SMALL, replace(_SMALL, slide=1), replace(_SMALL, slide=12)])
def test_candlesticks_are_those_of_plain_python(chosen: Settings) -> None:
    assert assert_as_plain(generated(4_000), chosen) > 100


def test_a_window_is_full_after_a_thousand_quotes_and_worked_on_after_every_25() -> None:
    count = 2_000
    prices = np.arange(count, dtype=np.float64) + 1
    at_us = _AT + 1_000 * np.arange(count)
    quotes = Quotes(np.arange(count), np.zeros(count), at_us, prices, np.ones(count))
    window, estimates = SymbolWindow().advanced(quotes, Settings())
    assert estimates.number.tolist() == list(range(24, count, 25))
    assert estimates.points.tolist() == [min(end + 1, 1_000) for end in range(24, count, 25)]
    # One quote a millisecond, each a dollar dearer: the next 25 end 25 dollars higher.
    assert estimates.expected[40:].tolist() == pytest.approx((prices[estimates.number[40:]] + 25).tolist())
    assert estimates.volume.tolist() == [25.0] * 80
    assert (window.at_us.size, window.waiting) == (975, 0)


def rough(seed: int, count: int, rubbish: float) -> list[PlainQuote]:
    """Quotes of three symbols; this share of them is rubbish, or from the past."""
    rng = np.random.default_rng(seed)
    at_us = _AT + np.cumsum(rng.integers(0, 1_500, count))
    wrong = rng.random(count) < rubbish
    how = rng.integers(4, size=count)
    return [
        PlainQuote(
            symbol=("", None)[one % 2] if bad and kind == 0 else ("A", "A", "B")[one % 3],
            at_us=(-1, int(now) - 5_000, int(now) - 1)[one % 3] if bad and kind == 1 else int(now),
            price=(np.nan, np.inf, -1.0, 0.0)[one % 4] if bad and kind == 2 else 100 + one % 97 / 10,
            volume=(np.nan, -1.0)[one % 2] if bad and kind == 3 else float(one % 50),
        )
        for now, bad, kind, one in zip(at_us, wrong, how, rng.integers(10**6, size=count), strict=True)
    ]


_ROUGH = st.builds(rough, st.integers(0, 10**6), st.integers(0, 200), st.sampled_from([0.0, 0.1, 0.5]))


@given(
    quotes=_ROUGH,
    cuts=st.lists(st.integers(0, 200), max_size=12),
    slide=st.sampled_from([1, 3, 5, 12]),
)
@settings(deadline=None)
def test_any_batches_of_any_quotes_give_the_same_to_the_last_bit(
    quotes: list[PlainQuote], cuts: list[int], slide: int
) -> None:
    chosen = replace(_SMALL, slide=slide)
    assert fed(quotes, [min(cut, len(quotes)) for cut in cuts], chosen) == fed(quotes, [], chosen)


@given(quotes=_ROUGH)
@settings(deadline=None)
def test_rubbish_and_quotes_from_the_past_are_left_out_as_in_plain_python(quotes: list[PlainQuote]) -> None:
    assert_as_plain(quotes, replace(_SMALL, slide=3, degree=1))


def test_rubbish_changes_nothing_and_does_not_count() -> None:
    good = generated(600)
    rubbish = [
        PlainQuote("S0001", good[300].at_us, price, 100.0) for price in (np.nan, np.inf, -np.inf, -5.0, 0.0)
    ]
    rubbish += [PlainQuote("S0001", good[300].at_us, 50.0, volume) for volume in (np.nan, -1.0)]
    rubbish += [PlainQuote(symbol, good[300].at_us, 50.0, 100.0) for symbol in ("", None)]
    rubbish += [PlainQuote("S0001", at_us, 50.0, 100.0) for at_us in (-1, 0, good[0].at_us - 1, 2**62)]
    with_rubbish = [*good[:300], *rubbish, *good[300:]]
    assert [row[1:] for row in fed(with_rubbish, [], Settings())] == [
        row[1:] for row in fed(good, [], Settings())
    ]


def test_quotes_of_a_batch_count_in_the_order_of_their_numbers() -> None:
    symbols, quotes = columns(generated(600))
    mixed = np.random.default_rng(3).permutation(600)
    _, shown = Trader().advanced(symbols[mixed], quotes.where(mixed))
    _, straight = Trader().advanced(symbols, quotes)
    assert rows(shown) == rows(straight)


def test_a_window_is_the_same_when_it_is_packed_and_unpacked() -> None:
    _, quotes = columns(generated(3_000, symbols=1))
    before, _ = SymbolWindow().advanced(quotes.where(slice(0, 1_510)), Settings())
    packed = [column.tobytes() for column in (before.at_us, before.price, before.volume)]
    unpacked = SymbolWindow.from_bytes(before.latest_us, before.waiting, *packed)
    rest = quotes.where(slice(1_510, None))
    for one, other in zip(
        before.advanced(rest, Settings())[1], unpacked.advanced(rest, Settings())[1], strict=True
    ):
        assert one.tolist() == other.tolist()


def test_plain_python_aggregates_by_the_millisecond() -> None:
    quotes = [PlainQuote("A", at_us, price, 1.0) for at_us, price in ((1_000, 1), (1_999, 2), (2_000, 7))]
    assert aggregated(quotes, 1_000) == [(1, 1.5), (2, 7.0)]


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: Settings(slide=0),
        lambda: Settings(window=10, slide=11),
        lambda: Settings(degree=-1),
        lambda: Settings(resolution_us=0),
        lambda: Settings(candle_us=0),
        lambda: GeneratedQuotes(ByTimes(np.array([])), acceleration=0),
        lambda: GeneratedQuotes(ByTimes(np.array([])), symbols=0),
    ],
)
def test_impossible_settings_are_refused(mistake: object) -> None:
    assert callable(mistake)
    with pytest.raises(InputError):
        mistake()


def test_a_generated_quote_is_the_same_whoever_asks_and_from_wherever() -> None:
    schedule = ByRates(Shape(100).constant(50), slot_s=1)
    one, other = (GeneratedQuotes(schedule, seed=2, symbols=20) for _ in range(2))
    whole = one.table(0, 5_000, entered_s=1.0).to_pylist()
    pieces = [(4_990, 10), (0, 1), (1, 0), (1, 2_499), (2_500, 2_490)]  # begins at the end
    parts = {first: other.table(first, count, entered_s=1.0).to_pylist() for first, count in pieces}
    assert [row for first in sorted(parts) for row in parts[first]] == whole
    assert GeneratedQuotes(schedule, seed=3, symbols=20).table(0, 50, entered_s=1.0).to_pylist() != whole[:50]
    assert one.end(5_000, entered_s=1.0).num_rows == 0


def test_generated_quotes_walk_in_time_and_some_symbols_are_far_more_frequent() -> None:
    feed = GeneratedQuotes(ByRates(Shape(100).constant(500), slot_s=1), acceleration=60, seed=4)
    symbols, quotes = feed.quotes(0, 50_000, entered_s=0.0)
    assert np.diff(quotes.at_us).min() == 0
    assert quotes.at_us[-1] - quotes.at_us[0] == pytest.approx(60e6 * 100, rel=0.01)
    names, counts = np.unique(symbols.astype(str), return_counts=True)
    assert len(names) > 1_000
    assert counts.max() > 20 * np.median(counts)
    assert names[counts.argmax()] == "S0001"
    own = quotes.price[symbols == "S0001"]
    assert np.abs(np.diff(own)).max() == pytest.approx(0.03)
    assert abs(np.corrcoef(np.diff(own)[1:], np.diff(own)[:-1])[0, 1]) < 0.05
    together = np.diff(quotes.at_us[symbols == "S0001"]) == 0
    assert 0.1 < together.mean() < 0.9
    assert quotes.price.min() >= 1


def test_prices_stay_between_a_dollar_and_five_hundred_however_long_the_walk() -> None:
    feed = GeneratedQuotes(ByTimes(np.zeros(10)), symbols=1, seed=1)
    price = np.concatenate(
        [feed.quotes(first, 10, entered_s=0.0)[1].price for first in range(0, 10**7, 10**6)]
    )
    assert price.min() >= 1
    assert price.max() <= 500


_FILE = """timestamp,symbol,price,volume
2014-10-30 09:30:00.001,AAPL,106.5,100
2014-10-30T09:30:00.0025,MSFT,46.25,200
no quote
2014-10-30 09:30:00.003,AAPL,many,100
2014-10-30 09:30:00.003,,1.5,100
yesterday,AAPL,106.5,100
2014-10-30 09:30:01,AAPL,107,300
"""


def test_a_file_is_replayed_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "quotes.csv").write_text(_FILE)
    feed = RecordedQuotes.read(tmp_path / "quotes.csv")
    assert feed.total == 8
    symbols, quotes = feed.quotes(0, 8, entered_s=2.0)
    assert quotes.number.tolist() == list(range(8))
    assert (quotes.at_us - _AT).tolist()[1:3] == [1_000, 2_500]
    trader, _ = Trader().advanced(symbols, quotes)
    kept = {name: window.price.tolist() for name, window in trader.windows.items()}
    assert kept == {"AAPL": [106.5, 107.0], "MSFT": [46.25]}
    assert (feed.times_s - _AT / 1e6).tolist() == pytest.approx(
        [0.001, 0.001, 0.0025, 0.0025, 0.003, 0.003, 0.003, 1.0], abs=1e-6
    )
    assert feed.table(6, 10, entered_s=2.0).num_rows == 2


def test_a_file_that_is_not_sorted_is_refused_with_its_line(tmp_path: Path) -> None:
    lines = _FILE.splitlines()
    (tmp_path / "quotes.csv").write_text("\n".join([*lines[:4], lines[1]]))
    with pytest.raises(InputError, match=r"quotes\.csv: line 5: earlier.*sort the file"):
        RecordedQuotes.read(tmp_path / "quotes.csv")


@pytest.mark.parametrize("text", ["", "no quote\n"])
def test_a_file_without_quotes_is_replayed_too(tmp_path: Path, text: str) -> None:
    (tmp_path / "quotes.csv").write_text(text)
    feed = RecordedQuotes.read(tmp_path / "quotes.csv")
    _, shown = Trader().advanced(*feed.quotes(0, 5, entered_s=0.0))
    assert (shown, feed.times_s.tolist()) == ({}, [0.0] * len(text.splitlines()))


def test_of_every_candlestick_the_last_is_written(tmp_path: Path) -> None:
    log = StreamLog(tmp_path / "log").create()
    minute = 60_000_000
    table = pyarrow.table(
        {
            "symbol": ["B", "A", "A", "A"],
            "number": [90, 70, 99, 130],
            "begin_us": [_AT, _AT, _AT, _AT + minute],
            "open": [5.0, 1.0, 1.0, 2.5],
            "high": [6.0, 2.0, 3.0, 3.0],
            "low": [4.0, 1.0, 0.5, 2.0],
            "close": [5.5, 2.0, 2.5, 3.0],
            "volume": [100.0, 100.0, 1_234_567_800.0, 300.0],
            "quotes": [25, 25, 50, 25],
            "expected_us": [_AT + 1_500, _AT, _AT + minute, _AT + minute],
            "expected": [5.25, 2.0, 2.125, 3.0],
            "error": [0.1] * 4,
        }
    )
    for epoch, part in enumerate((table.slice(2, 2), table.slice(0, 2)), 1):
        parquet.write_table(part, log.data_file(f"{epoch}.parquet"))
        log.publish(
            epoch=epoch,
            files=[LogFile(name=f"{epoch}.parquet", tuples=2)],
            published_at_s=9.0,
            origins=((7.5, 2),),
        )
    assert export(log, tmp_path / "candles.csv") == 3
    assert (tmp_path / "candles.csv").read_text().splitlines() == [
        HEADER,
        "A,2014-10-30 09:30:00.000,1,3,0.5,2.5,1234567800,50,2014-10-30 09:31:00.000,2.1250",
        "B,2014-10-30 09:30:00.000,5,6,4,5.5,100,25,2014-10-30 09:30:00.001,5.2500",
        "A,2014-10-30 09:31:00.000,2.5,3,2,3,300,25,2014-10-30 09:31:00.000,3.0000",
    ]


@pytest.fixture
def entry() -> AppEntry:
    return application_entry("algo-trader")


def test_two_operators_with_state_run_in_two_queries(entry: AppEntry) -> None:
    app = algo_trader(max_replicas=2)
    for joined in (False, True):
        assert [query.name for query in app.queries(joined=joined)] == ["algo-trader", "consumer"]
    assert [chain.max_replicas for chain in app.chains()] == [2, 2]
    assert app.modules == ("penstock.apps.algo_trader.query",)  # what Python workers load in advance
    assert [operator.name for operator in entry.graph(4).operators] == ["algo-trader", "consumer"]


def test_there_are_no_surrogates_of_quotes(entry: AppEntry) -> None:
    with pytest.raises(InputError, match="--amplification 3: application 'algo-trader'"):
        entry.feeder(Load(amplification=3))
