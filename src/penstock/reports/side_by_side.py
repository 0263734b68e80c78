"""Runs on Spark under one load, side by side: as a table and as a page."""

from collections.abc import Mapping

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from penstock.live.judging import MOST_LATE_PCT
from penstock.live.side_by_side import OUR_POLICY, OURS, Comparison, Contender
from penstock.reports.figures import COLOURS, layout
from penstock.reports.html import Page

HEADER = (
    "contender",
    "violations",
    "p50",
    "p95",
    "replica-seconds",
    "of static peak",
    "changes",
    "remarks",
)
NOTE = (
    "Violations: share of the intervals after the first minute whose mean response time was over the "
    "objective. Replica-seconds: executors that were there, over the whole run. Changes: how often the "
    "replicas of an operator differed from the interval before."
)
_MARKED_LATE, _TEXT = HEADER.index("violations"), HEADER.index("remarks")


def cells(comparison: Comparison, one: Contender) -> tuple[str, ...]:
    summary, share = one.summary, comparison.of_peak_pct(one)
    return (
        one.name,
        "-" if one.late_pct is None else f"{one.late_pct:.1f} %",
        *(
            "-" if seconds is None else f"{seconds:.2f} s"
            for seconds in (summary.response_time_p50_s, summary.response_time_p95_s)
        ),
        f"{summary.replica_seconds:.0f}",
        "-" if share is None else f"{share:.0f} %",
        str(summary.replica_changes),
        "; ".join(comparison.remarks(one)),
    )


def side_by_side_page(comparison: Comparison, *, title: str, setting: str) -> str:
    page = Page(title, setting)
    page.table(
        HEADER,
        [cells(comparison, one) for one in comparison.contenders],
        [_marks(one) for one in comparison.contenders],
    )
    page.paragraph(NOTE)
    findings = comparison.findings()
    if findings:
        page.heading(f"Does {OUR_POLICY} do what it should?")
        for finding in findings:
            page.paragraph(f"{finding.told[0].upper()}{finding.told[1:]}.")
    page.heading("Cost against violations")
    page.paragraph(f"Down and left is better; below the dotted line, at most {MOST_LATE_PCT:g} % are late.")
    page.plot(cost_against_violations(comparison))
    page.heading("Load, response time and replicas over time")
    page.paragraph(
        "Response times on a logarithmic axis. A click on a name hides it, a double click all others."
    )
    page.plot(over_time(comparison))
    return page.render()


def cost_against_violations(comparison: Comparison) -> go.Figure:
    """A point per contender; one whose violations were not measured has none."""
    shown = {one.name: (one.summary.replica_seconds, one.late_pct) for one in comparison.contenders}
    points = {name: (cost, late) for name, (cost, late) in shown.items() if late is not None}
    widest = 1.25 * max((cost for cost, _ in points.values()), default=1.0)
    highest = 1.15 * max((8.0, *(late for _, late in points.values())))
    placed = {name: (cost / widest, late / highest) for name, (cost, late) in points.items()}
    figure = go.Figure()
    for name, (colour, symbol) in _looks(comparison).items():
        if name not in points:
            continue
        figure.add_scatter(
            x=[points[name][0]],
            y=[points[name][1]],
            mode="markers+text",
            name=name,
            text=[f"  {name}  "],
            textposition=_label_side(placed, name),
            textfont={"color": colour},
            marker={"color": colour, "symbol": symbol, "size": 13, "line": {"color": "white", "width": 1}},
            hovertemplate=f"{name}<br>%{{x:.0f}} replica-seconds<br>late %{{y:.1f}} %<extra></extra>",
            cliponaxis=False,
        )
    figure.add_hline(y=MOST_LATE_PCT, line={"color": "#888888", "dash": "dot", "width": 1.5})
    figure.update_xaxes(title="replica-seconds", range=[0, widest])
    figure.update_yaxes(title="late intervals, %", range=[-0.05 * highest, highest])
    return layout(figure, height=440).update_layout(hovermode="closest", showlegend=False)


def over_time(comparison: Comparison) -> go.Figure:
    """Three strips over the same time: the load, response times, replicas of all operators together."""
    figure = make_subplots(
        rows=3, cols=1, shared_xaxes=True, vertical_spacing=0.05, row_heights=[0.18, 0.45, 0.37]
    )
    loads = max((one.moments for one in comparison.contenders), key=len, default=())
    figure.add_scatter(
        x=[moment.at_s for moment in loads],
        y=[moment.rate for moment in loads],
        name="load",
        showlegend=False,
        line={"color": "#888888", "width": 2},
        row=1,
        col=1,
    )
    looks = _looks(comparison)
    for one in comparison.contenders:
        colour, symbol = looks[one.name]
        at = [moment.at_s for moment in one.moments]
        width = 3 if one.name == OURS else 1.5
        figure.add_scatter(
            x=at,
            y=[moment.response_time_s for moment in one.moments],
            name=one.name,
            legendgroup=one.name,
            mode="lines+markers",  # an interval between two without a sample is still visible
            line={"color": colour, "width": width},
            marker={"size": 5, "symbol": symbol},
            row=2,
            col=1,
        )
        figure.add_scatter(
            x=at,
            y=[moment.replicas for moment in one.moments],
            name=one.name,
            legendgroup=one.name,
            showlegend=False,
            line={"color": colour, "width": width, "shape": "hv"},
            row=3,
            col=1,
        )
    # Not a line with a note: plotly takes the note's height on a logarithmic axis for an exponent.
    figure.add_scatter(
        x=[0, max((moment.at_s for moment in loads), default=1.0)],
        y=[comparison.objective_s] * 2,
        name=f"at most {comparison.objective_s:g} s",
        mode="lines",
        line={"color": "#000000", "dash": "dash", "width": 1.5},
        row=2,
        col=1,
    )
    figure.update_yaxes(title="tuples/s", rangemode="tozero", nticks=4, row=1, col=1)
    figure.update_yaxes(
        title="response time (s)",
        type="log",
        tickvals=(0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200),
        row=2,
        col=1,
    )
    figure.update_yaxes(title="replicas, all operators", rangemode="tozero", row=3, col=1)
    figure.update_xaxes(title="seconds since start", row=3, col=1)
    return layout(figure, height=860)


def _label_side(points: Mapping[str, tuple[float, float]], name: str) -> str:
    """Away from the nearest other point, whose label would cover it."""
    x, y = points[name]
    nearest = min(
        (point for other, point in points.items() if other != name),
        key=lambda point: (point[0] - x) ** 2 + (point[1] - y) ** 2,
        default=(0.0, 0.0),
    )
    return "middle left" if nearest[0] > x else "middle right"


def _looks(comparison: Comparison) -> dict[str, tuple[str, int]]:
    """A colour for each by name, and another symbol once the colours repeat."""
    return {
        one.name: (COLOURS[index % len(COLOURS)], index // len(COLOURS))
        for index, one in enumerate(comparison.contenders)
    }


def _marks(one: Contender) -> list[str]:
    marks = [""] * len(HEADER)
    marks[_TEXT] = "text"
    if one.keeps is not None:
        marks[_MARKED_LATE] = "yes" if one.keeps else "no"
    return marks
