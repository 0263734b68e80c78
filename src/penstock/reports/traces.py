"""Traces side by side, for instance a synthetic one and the real one: a table of figures, and plots."""

from collections.abc import Callable, Sequence

import numpy as np
import plotly.graph_objects as go

from penstock.compiled import Floats
from penstock.data.statistics import TraceStatistics, autocorrelation
from penstock.domain.trace import SLOTS_PER_DAY, Trace
from penstock.reports.figures import COLOURS, layout
from penstock.reports.html import Page

Described = tuple[Trace, TraceStatistics]
_HOURS = 24
_WEEK = 7 * SLOTS_PER_DAY


def traces_page(traces: Sequence[Described]) -> str:
    """One trace, or the first against the second."""
    names = " and ".join(trace.name for trace, _ in traces)
    page = Page(f"Arrival rates: {names}", "Tuples per second; a slot is a minute.")
    page.table(_header(traces), [_row(traces, name) for name in _rows()])
    for title, figure in (
        ("Six hours", _few_hours),
        ("A week", _week),
        ("The mean day", _mean_day),
        ("From day to day", _daily),
        ("How often each rate occurs", _distribution),
        ("How long a rate is remembered", _memory),
    ):
        page.heading(title)
        page.plot(figure([trace for trace, _ in traces]))
    return page.render()


def _rows() -> list[str]:
    return [name for name in TraceStatistics.__dataclass_fields__ if name not in ("levels", "max_rate")]


def _header(traces: Sequence[Described]) -> list[str]:
    return ["", *(trace.name for trace, _ in traces), *(["difference"] if len(traces) > 1 else [])]


def _row(traces: Sequence[Described], name: str) -> list[str]:
    values = [getattr(statistics, name) for _, statistics in traces]
    shown = [_shown(value) for value in values]
    if len(values) > 1:
        known = values[0] is not None and values[1]
        shown.append(f"{100 * (values[0] / values[1] - 1):+.1f} %" if known else "")
    return [name.replace("_", " "), *shown]


def _shown(value: float | int | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 100 else f"{value:.4g}"


def _lines(
    traces: Sequence[Trace],
    points: Callable[[Floats], tuple[Floats, Floats]],
    *,
    x: str,
    y: str,
    height: int = 320,
) -> go.Figure:
    figure = go.Figure()
    for index, trace in enumerate(traces):
        across, up = points(trace.rates)
        line = {"color": COLOURS[index % len(COLOURS)], "width": 1.5, "dash": ("solid", "dot")[index % 2]}
        figure.add_scatter(x=across, y=up, name=trace.name, mode="lines", line=line)
    figure.update_xaxes(title=x)
    figure.update_yaxes(title=y, rangemode="tozero")
    return layout(figure, height=height)


def _middle(rates: Floats, length: int) -> Floats:
    """Slots from the middle of a trace, starting at a whole week, so that days of the week agree."""
    start = max(rates.size // 2 // _WEEK * _WEEK, 0)
    return rates[start : start + length]


def _few_hours(traces: Sequence[Trace]) -> go.Figure:
    return _lines(traces, lambda rates: _against(_middle(rates, SLOTS_PER_DAY // 4), 60), x="hours", y="rate")


def _week(traces: Sequence[Trace]) -> go.Figure:
    def points(rates: Floats) -> tuple[Floats, Floats]:
        return _against(_means(_middle(rates, _WEEK), 10), SLOTS_PER_DAY / 10)

    return _lines(traces, points, x="days", y="rate, mean of 10 slots")


def _mean_day(traces: Sequence[Trace]) -> go.Figure:
    def points(rates: Floats) -> tuple[Floats, Floats]:
        whole = rates[: rates.size // SLOTS_PER_DAY * SLOTS_PER_DAY]
        day = whole.reshape(-1, SLOTS_PER_DAY).mean(axis=0) if whole.size else rates
        return _against(_means(day, 10), SLOTS_PER_DAY / 10 / _HOURS)

    return _lines(traces, points, x="hour of the day", y="mean rate")


def _daily(traces: Sequence[Trace]) -> go.Figure:
    return _lines(traces, lambda rates: _against(_means(rates, SLOTS_PER_DAY), 1), x="day", y="mean rate")


def _distribution(traces: Sequence[Trace]) -> go.Figure:
    share = np.linspace(0, 100, 401)
    return _lines(
        traces,
        lambda rates: (share, np.percentile(rates, share)),
        x="% of slots with at most this rate",
        y="rate",
    )


def _memory(traces: Sequence[Trace]) -> go.Figure:
    lags = np.unique(np.concatenate([np.arange(1, 120), np.geomspace(120, 1500, 120).astype(int)]))

    def points(rates: Floats) -> tuple[Floats, Floats]:
        known = [(lag, found) for lag in lags.tolist() if (found := autocorrelation(rates, lag)) is not None]
        return np.array([lag for lag, _ in known], dtype=np.float64), np.array([found for _, found in known])

    figure = _lines(traces, points, x="slots later", y="autocorrelation")
    figure.update_xaxes(type="log", tickvals=[1, 5, 15, 60, 240, 720, 1440])
    return figure


def _against(values: Floats, per_unit: float) -> tuple[Floats, Floats]:
    return np.arange(values.size) / per_unit, values


def _means(values: Floats, width: int) -> Floats:
    """Means of every `width` slots; an incomplete rest is left out, unless there is nothing else."""
    whole = values[: values.size // width * width]
    means: Floats = whole.reshape(-1, width).mean(axis=1) if whole.size else values
    return means
