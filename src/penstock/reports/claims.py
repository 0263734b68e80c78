"""Printed beside measured, as a page."""

from collections.abc import Mapping, Sequence

from penstock.papers.claims import Chart
from penstock.reports.figures import chart_figure, printed_against_measured
from penstock.reports.html import Page

Row = tuple[str, str, str, str, bool | None, str]  # id, printed, measured, tolerance, holds, note


def claims_page(
    title: str,
    lead: str,
    settings: Sequence[str],
    rows: Sequence[Row],
    costs: Mapping[str, Sequence[tuple[str, float, float]]],
    charts: Sequence[Chart] = (),
) -> str:
    """Every claim with its verdict; those that differ first."""
    page = Page(title, lead)
    held = sum(1 for row in rows if row[4] is True)
    failed = [row for row in rows if row[4] is False]
    shown = sum(1 for row in rows if row[4] is None)
    page.paragraph(f"{held} claims hold, {len(failed)} do not, {shown} more values are shown side by side.")
    if costs:
        page.plot(printed_against_measured(costs))
    for chart in charts:
        page.heading(chart.title)
        page.paragraph(chart.note)
        page.plot(chart_figure(chart))
    if failed:
        page.heading("Where we differ")
        _table(page, failed)
    page.heading("Settings behind the printed numbers")
    for setting in settings:
        page.paragraph(setting)
    for group in dict.fromkeys(row[0].partition("/")[0] for row in rows):
        page.heading(group)
        _table(page, [row for row in rows if row[0].partition("/")[0] == group])
    return page.render()


def _table(page: Page, rows: Sequence[Row]) -> None:
    verdict = {True: "yes", False: "no", None: ""}
    page.table(
        ("claim", "printed", "measured", "tolerance", "holds", "note"),
        [
            (name, printed, measured, tolerance, verdict[holds] or "-", note)
            for name, printed, measured, tolerance, holds, note in rows
        ],
        [("text", "", "", "", verdict[row[4]], "text") for row in rows],
    )
