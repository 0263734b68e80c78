"""Printed beside measured, as a page."""

from collections import Counter
from collections.abc import Mapping, Sequence

from penstock.papers.claims import Chart, Claim, Verdict
from penstock.reports.figures import chart_figure, printed_against_measured
from penstock.reports.html import Page

COLUMNS = "Printed is what the paper prints at the place named, and nothing else; of a number made of two \
printed ones both are shown. Judged by says how the two are compared: to the last digit, within a tolerance \
(ours), or by what a sentence or an order says of the measured number. Asked is what we ask of ourselves; \
no paper prints it, and it has no say in the verdict."
_MARKS = {
    Verdict.HOLDS: "yes",
    Verdict.HOLDS_WITHIN: "part",
    Verdict.DOES_NOT: "no",
    Verdict.NOT_CLAIMED: "",
    Verdict.NOT_PRINTED: "",
}
_MET = {True: "yes", False: "no", None: ""}


def summed_up(claims: Sequence[Claim]) -> str:
    """How many of each verdict; what is asked of ourselves by itself."""
    found = Counter(claim.verdict for claim in claims)
    met = Counter(claim.met for claim in claims)
    return (
        f"{found[Verdict.HOLDS]} claims hold, {found[Verdict.HOLDS_WITHIN]} hold within a range only, "
        f"{found[Verdict.DOES_NOT]} do not; {found[Verdict.NOT_CLAIMED]} printed values are shown side by "
        f"side; of what we ask of ourselves {met[True]} are met, {met[False]} missed"
    )


def claims_page(
    title: str,
    lead: str,
    settings: Sequence[str],
    claims: Sequence[Claim],
    costs: Mapping[str, Sequence[tuple[str, float, float]]],
    charts: Sequence[Chart] = (),
) -> str:
    """Every claim with its verdict; those that differ first."""
    page = Page(title, lead)
    page.paragraph(f"{summed_up(claims)}.")
    page.paragraph(COLUMNS)
    if costs:
        page.plot(printed_against_measured(costs))
    for chart in charts:
        page.heading(chart.title)
        page.paragraph(chart.note)
        page.plot(chart_figure(chart))
    for heading, some in (
        ("Where we differ", [one for one in claims if one.verdict is Verdict.DOES_NOT]),
        ("What holds within a range only", [one for one in claims if one.verdict is Verdict.HOLDS_WITHIN]),
        ("What we asked of ourselves and missed", [one for one in claims if one.met is False]),
    ):
        if some:
            page.heading(heading)
            _table(page, some)
    page.heading("Settings behind the printed numbers")
    for setting in settings:
        page.paragraph(setting)
    for group in dict.fromkeys(_group(claim) for claim in claims):
        page.heading(group)
        _table(page, [claim for claim in claims if _group(claim) == group])
    return page.render()


def _group(claim: Claim) -> str:
    return claim.id.partition("/")[0]


def _table(page: Page, claims: Sequence[Claim]) -> None:
    page.table(
        ("claim", "source", "printed", "measured", "judged by", "verdict", "asked (ours)", "met", "note"),
        [
            (
                one.id,
                one.source,
                one.printed or "-",
                one.shown,
                one.judged,
                f"{one.verdict}: {one.within}" if one.verdict is Verdict.HOLDS_WITHIN else one.verdict,
                str(one.asked or "-"),
                _MET[one.met] or "-",
                one.note,
            )
            for one in claims
        ],
        [
            ("text", "text", "text", "", "", f"text {_MARKS[one.verdict]}".strip(), "", _MET[one.met], "text")
            for one in claims
        ],
    )
