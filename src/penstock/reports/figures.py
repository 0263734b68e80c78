"""The plots of a comparison: cost, replicas, and the trade-off between them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from penstock.compiled import Floats
from penstock.domain.trace import SLOTS_PER_DAY
from penstock.papers.claims import Chart

# Okabe and Ito's palette without its yellow: colour-blind readers can distinguish it, also on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")
DASHES = ("solid", "dash", "dot")
_PATTERNS = ("", "/", ".")
_POINTS = 1200
_DAYS_SHOWN = 7
_MANY_DECADES = 3  # with fewer, a logarithmic axis is labelled at 2 and 5 as well
_MARKED_POINTS = 12  # lines with no more points than this show them
_COST_TICKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One policy's run, slot by slot, and the seeds it stands for."""

    policy: str
    cost: Floats
    replicas: Floats
    seeds_resource_cost: tuple[float, ...]
    seeds_violations_pct: tuple[float, ...]


def _style(index: int) -> tuple[str, str]:
    return COLOURS[index % len(COLOURS)], DASHES[index // len(COLOURS) % len(DASHES)]


def layout(figure: go.Figure, *, height: int) -> go.Figure:
    figure.update_layout(
        template="plotly_white",
        height=height,
        margin={"l": 70, "r": 20, "t": 30, "b": 50},
        font={"family": "system-ui, sans-serif", "size": 13},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        hovermode="x unified",
    )
    return figure


def cumulative_cost(runs: Sequence[Run]) -> go.Figure:
    """Average cost of all slots so far: how fast each policy learns (Russo 2023, Fig. 23)."""
    figure = go.Figure()
    for index, run in enumerate(runs):
        slots = run.cost.size
        # Evenly spread over a logarithmic axis: the first hour shows as well as the last week.
        at = np.unique(np.geomspace(1, slots, min(slots, _POINTS)).astype(int))
        average = np.cumsum(run.cost)[at - 1] / at
        colour, dash = _style(index)
        figure.add_scatter(x=at, y=average, name=run.policy, line={"color": colour, "dash": dash, "width": 2})
    moments = {1: "1 minute", 10: "10 minutes", 60: "1 hour", 600: "10 hours", SLOTS_PER_DAY: "1 day"}
    moments |= {
        7 * SLOTS_PER_DAY: "1 week",
        28 * SLOTS_PER_DAY: "4 weeks",
        182 * SLOTS_PER_DAY: "half a year",
    }
    figure.update_xaxes(
        title="since start", type="log", tickvals=list(moments), ticktext=list(moments.values())
    )
    figure.update_yaxes(title="average cost per slot so far", type="log", tickvals=_COST_TICKS)
    return layout(figure, height=430)


def replicas_over_time(runs: Sequence[Run], rates: Floats) -> go.Figure:
    """The last week: the arrival rate, and below it a strip per policy with the replicas it ran."""
    shown = min(rates.size, _DAYS_SHOWN * SLOTS_PER_DAY)
    step = max(shown // _POINTS, 1)
    slots = np.arange(rates.size - shown, rates.size, step)
    days = slots / SLOTS_PER_DAY
    strips = 1 + len(runs)
    figure = make_subplots(
        rows=strips,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.3 / strips,
        subplot_titles=("arrival rate, tuples/s", *(run.policy for run in runs)),
    )
    figure.update_annotations(x=0, xanchor="left", font={"size": 12})
    figure.add_scatter(x=days, y=rates[slots], line={"color": "#888888", "width": 1.5}, row=1, col=1)
    figure.update_yaxes(rangemode="tozero", nticks=3, row=1, col=1)
    most = max(float(run.replicas[slots].max()) for run in runs)
    for index, run in enumerate(runs):
        row = index + 2
        figure.add_scatter(
            x=days,
            y=run.replicas[slots],
            line={"color": _style(index)[0], "width": 1.3, "shape": "hv"},
            fill="tozeroy",
            row=row,
            col=1,
        )
        figure.update_yaxes(range=[0, most * 1.05], nticks=3, row=row, col=1)
    figure.update_xaxes(title="days since start", row=strips, col=1)
    figure = layout(figure, height=80 + 95 * strips)
    return figure.update_layout(showlegend=False, hovermode="x")


def pareto(runs: Sequence[Run]) -> go.Figure:
    """Cost of resources against violations, every seed a point: down and left is better."""
    figure = go.Figure()
    for index, run in enumerate(runs):
        colour, _ = _style(index)
        figure.add_scatter(
            x=run.seeds_resource_cost,
            y=run.seeds_violations_pct,
            mode="markers",
            name=run.policy,
            marker={
                "color": colour,
                "size": 11,
                "symbol": index // len(COLOURS),
                "line": {"color": "white", "width": 1},
            },
            hovertemplate=f"{run.policy}<br>resources %{{x:.2f}}<br>violations %{{y:.2f}} %<extra></extra>",
        )
    best = _frontier(runs)
    figure.add_scatter(
        x=[x for x, _ in best],
        y=[y for _, y in best],
        mode="lines",
        name="best trade-offs",
        line={"color": "#888888", "dash": "dot", "width": 1.5},
        hoverinfo="skip",
    )
    figure.update_xaxes(title="mean cost of resources per slot", rangemode="tozero")
    figure.update_yaxes(title="slots over the response-time objective, %", rangemode="tozero")
    return layout(figure, height=480).update_layout(hovermode="closest")


def _frontier(runs: Sequence[Run]) -> list[tuple[float, float]]:
    """Policies (means over seeds) that no other beats in both."""
    means = sorted(
        (float(np.mean(run.seeds_resource_cost)), float(np.mean(run.seeds_violations_pct))) for run in runs
    )
    best: list[tuple[float, float]] = []
    for resources, violations in means:
        if not best or violations < best[-1][1]:
            best.append((resources, violations))
    return best


def printed_against_measured(groups: Mapping[str, Sequence[tuple[str, float, float]]]) -> go.Figure:
    """Named points (printed, measured) per group on logarithmic axes; agreement is the diagonal."""
    figure = go.Figure()
    everything = [value for points in groups.values() for _, *pair in points for value in pair]
    ends = [min(everything) / 1.3, max(everything) * 1.3]
    figure.add_scatter(
        x=ends, y=ends, mode="lines", name="equal", line={"color": "#888888", "dash": "dot"}, hoverinfo="skip"
    )
    for index, (group, points) in enumerate(groups.items()):
        figure.add_scatter(
            x=[printed for _, printed, _ in points],
            y=[measured for _, _, measured in points],
            text=[name for name, _, _ in points],
            mode="markers",
            name=group,
            marker={"color": _style(index)[0], "size": 9, "line": {"color": "white", "width": 1}},
            hovertemplate="%{text}<br>printed %{x}<br>measured %{y:.4f}<extra></extra>",
        )
    # A narrow range would hold at most one of the round values: leave it to the library.
    ticks = _COST_TICKS if ends[1] > 5 * ends[0] else None
    figure.update_xaxes(title="average cost, printed", type="log", tickvals=ticks)
    figure.update_yaxes(title="average cost, measured", type="log", tickvals=ticks)
    return layout(figure, height=520).update_layout(hovermode="closest")


def _decades(chart: Chart) -> float:
    above_zero = [value for series in chart.series for value in series.y if value is not None and value > 0]
    return math.log10(max(above_zero) / min(above_zero)) if above_zero else 0.0


def chart_figure(chart: Chart) -> go.Figure:
    """A chart of a reproduction: lines with their points, or bars side by side."""
    figure = go.Figure()
    used: list[int] = []  # groups of the series so far
    for index, series in enumerate(chart.series):
        group = index if series.group is None else series.group
        colour = COLOURS[group % len(COLOURS)]
        again = sum(before % len(COLOURS) == group % len(COLOURS) for before in used)
        used.append(group)
        if chart.bars:
            marker = {"color": colour, "pattern": {"shape": _PATTERNS[again % len(_PATTERNS)]}}
            figure.add_bar(x=list(series.x), y=list(series.y), name=series.name, marker=marker)
            continue
        dash = DASHES[again % len(DASHES)]
        figure.add_scatter(
            x=list(series.x),
            y=list(series.y),
            name=series.name,
            mode="lines+markers" if len(series.x) <= _MARKED_POINTS else "lines",
            line={"color": colour, "dash": dash, "width": 2},
        )
    if chart.marked_y is not None:
        value, what = chart.marked_y
        figure.add_hline(y=value, line={"color": "#888888", "dash": "dot"}, annotation_text=what)
    figure.update_xaxes(title=chart.x_title)
    if chart.whole_x:
        figure.update_xaxes(dtick=1)
    figure.update_yaxes(title=chart.y_title)
    if chart.log_y:
        figure.update_yaxes(type="log", dtick=1 if _decades(chart) > _MANY_DECADES else "D2")
    else:
        figure.update_yaxes(rangemode="tozero")
    return layout(figure, height=420)
