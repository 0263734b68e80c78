"""The page of a live run: load, response time against the objective, replicas, backlog, and decisions."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from penstock.live.fixed_replicas import Fixed
from penstock.live.kept import Kept
from penstock.live.record import Summary, row
from penstock.reports.figures import COLOURS
from penstock.reports.html import Page
from penstock.reports.live_summary import FIXED_HEADER, Ran, beside, cells, latest, verdict

Row = Mapping[str, Any]  # of one interval, as live.record makes it


def page_of(live: Ran, summary: Summary, name: str, fixed: Mapping[str, Fixed]) -> str:
    """The report of a run."""
    kept, said = live.kept, verdict(summary, live.objective_s, fixed)
    page = Page(
        f"{name} under {summary.policy}",
        f"On Spark, {summary.seconds:.0f} s; response time at most {live.objective_s:g} s.",
    )
    page.paragraph(said)
    if kept.tally.intervals:
        page.heading("Load, response time and replicas")
        if kept.course.is_thinned:
            page.paragraph(
                f"{len(kept.course):,} of {kept.course.seen:,} intervals: those in which a line is highest "
                "or lowest for a while, and some between. All are in the folder metrics."
            )
        page.plot(over_time([row(one, kept.began_s) for one in kept.course], live.objective_s))
    page.heading("In figures")
    page.table(("", ""), cells(summary))
    if fixed:
        page.heading("Beside a fixed number of replicas")
        page.paragraph(_beside_note(fixed))
        page.table(FIXED_HEADER, beside(summary, fixed))
    _reconfigurations(page, kept)
    _decisions(page, kept)
    page.paragraph(said)
    return page.render()


def _beside_note(fixed: Mapping[str, Fixed]) -> str:
    part_s = max((one.part_s for one in fixed.values() if one.part_s is not None), default=None)
    time = "from beginning to end" if part_s is None else f"over {latest(part_s)} of this run"
    return (
        f"What the replicas that the peak of this load needs, or its mean, would have done {time}: not "
        "measured, but worked out with the times that the micro-batches of this run took."
        + ("" if part_s is None else " Peak and mean are of that time; the first line is of the whole run.")
    )


def _reconfigurations(page: Page, kept: Kept) -> None:
    def moment(at_s: float | None) -> str:
        return "-" if at_s is None else f"{at_s - kept.began_s:.1f}"

    page.heading("Reconfigurations")
    if not kept.records:
        page.paragraph("None.")
        return
    _say_what_is_missing(page, kept.all_records - len(kept.records))
    header = ("operator", "granted (s)", "node ready", "first task", "ended", "downtime (s)", "outcome")
    page.table(
        header,
        [
            (
                record.operator,
                moment(record.granted_at_s),
                moment(record.node_ready_at_s),
                moment(record.first_task_at_s),
                moment(record.ended_at_s),
                f"{record.downtime_s:.1f}",
                record.outcome.value,
            )
            for record in kept.records
        ],
    )


def _decisions(page: Page, kept: Kept) -> None:
    decided = [row(one, kept.began_s) for one in kept.changing]
    if decided:
        page.heading("Decisions that changed something")
        _say_what_is_missing(page, kept.all_changing - len(decided))
        lines = [(f"{one['at_s']:.0f}", str(one["changed"])) for one in decided]
        page.table(("at (s)", "what and why"), lines, [("", "text") for _ in lines])
    if kept.latest:
        every = in_a_row([row(one, kept.began_s) for one in kept.latest])
        what = "Every decision" if kept.has_all else f"The latest {len(kept.latest):,} decisions"
        page.folded(f"{what}, and why", ("at (s)", "reasons"), every, [("", "text") for _ in every])


def _say_what_is_missing(page: Page, before: int) -> None:
    if before:
        page.paragraph(f"The latest; {before:,} more before them are in the journal.")


def in_a_row(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Reasons of all decisions; intervals one after the other that had the same are one line."""
    lines: list[tuple[str, str]] = []
    for reasons, group in groupby(rows, key=lambda row: str(row["reasons"])):
        first, *later = [f"{row['at_s']:.0f}" for row in group]
        lines.append((f"{first} to {later[-1]}" if later else first, reasons or "-"))
    return lines


def over_time(rows: Sequence[Row], objective_s: float) -> go.Figure:
    """Four strips over the same time: tuples/s, seconds, replicas, and tuples that wait."""
    figure = make_subplots(rows=4, cols=1, shared_xaxes=True, vertical_spacing=0.06)
    at = [row["at_s"] for row in rows]
    figure.add_scatter(
        x=at, y=[row["source_rate"] for row in rows], name="load", line={"color": COLOURS[6]}, row=1, col=1
    )
    for name, dash in (("response_time_s", "solid"), ("response_time_p95_s", "dot")):
        figure.add_scatter(
            x=at,
            y=[row[name] for row in rows],
            name={"response_time_s": "response, mean", "response_time_p95_s": "response, p95"}[name],
            mode="lines+markers",  # an interval between two without a sample is still visible
            line={"color": COLOURS[0], "dash": dash},
            marker={"size": 4},
            row=2,
            col=1,
        )
    figure.add_scatter(
        x=[at[0], at[-1]],
        y=[objective_s, objective_s],
        name="objective",
        line={"color": COLOURS[1], "dash": "dash"},
        row=2,
        col=1,
    )
    chains = [key.removesuffix(".replicas") for key in rows[0] if key.endswith(".replicas")]
    for index, chain in enumerate(chains):
        colour = COLOURS[(index + 2) % len(COLOURS)]
        figure.add_scatter(
            x=at,
            y=[row[f"{chain}.replicas"] for row in rows],
            name=chain,
            legendgroup=chain,
            line={"color": colour, "shape": "hv"},
            row=3,
            col=1,
        )
        figure.add_scatter(
            x=at,
            y=[row[f"{chain}.backlog"] for row in rows],
            name=chain,
            legendgroup=chain,
            showlegend=False,
            line={"color": colour},
            row=4,
            col=1,
        )
    figure.update_yaxes(title="tuples/s", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title="response time (s)", rangemode="tozero", row=2, col=1)
    figure.update_yaxes(title="replicas", rangemode="tozero", dtick=1, row=3, col=1)
    figure.update_yaxes(title="tuples waiting", rangemode="tozero", row=4, col=1)
    figure.update_xaxes(title="seconds since start", row=4, col=1)
    figure.update_layout(
        template="plotly_white",
        height=900,
        margin={"l": 70, "r": 20, "t": 40, "b": 50},
        font={"family": "system-ui, sans-serif", "size": 13},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        hovermode="x unified",
    )
    return figure
