"""Claims, estimates, pages."""

import json
import re
from typing import Any

import pytest

from penstock.papers.claims import (
    Bound,
    Chart,
    Claim,
    Series,
    Tried,
    Verdict,
    change_of,
    less_than,
    more_than,
    no_less_than,
    no_more_than,
    number_in,
    ratio_of,
    shown_like,
)
from penstock.papers.taas_tables import Outcome, _reference_claim
from penstock.reports.claims import claims_page
from penstock.reports.html import Page
from penstock.reports.summary import estimate


def claim(printed: str, measured: float, tolerance: float | None) -> Claim:
    return Claim(
        id="x",
        source="s",
        printed=printed,
        measured=measured,
        shown=shown_like(printed, measured),
        tolerance=tolerance,
    )


@pytest.mark.parametrize(
    ("printed", "measured", "tolerance", "holds"),
    [
        ("0.0836", 0.08364, 0.0, True),
        ("0.0836", 0.08366, 0.0, False),  # rounds to .0837
        ("0.1530", 0.1560, 0.02, True),
        ("0.1530", 0.1562, 0.02, False),
        ("<0.1", 0.09, 0.0, True),
        ("<0.1", 0.11, 0.0, False),
        ("0.1530", 9.9, None, None),
    ],
)
def test_a_claim_holds_by_its_printed_digits_or_its_tolerance(
    printed: str, measured: float, tolerance: float | None, holds: bool | None
) -> None:
    assert claim(printed, measured, tolerance).holds is holds


@pytest.mark.parametrize(
    ("bound", "reached", "missed", "text"),
    [
        (less_than(0.5), 0.499, 0.5, "<0.5"),
        (no_more_than(0.5), 0.5, 0.501, "<=0.5"),
        (no_less_than(96), 96.0, 95.9, ">=96"),  # 95.9 is shown as 96, and still too few
        (more_than(0), 0.1, 0.0, ">0"),
    ],
)
def test_a_bound_is_met_on_its_side_only_and_by_nothing_unknown(
    bound: Bound, reached: float, missed: float, text: str
) -> None:
    assert bound.met_by(reached)
    assert not bound.met_by(missed)
    assert not bound.met_by(float("nan"))
    assert str(bound) == text


def effect(measured: float, *, printed: str | None = "3.18 / 6.12 = 0.520", **more: Any) -> Claim:
    return Claim(id="x/y", source="Table 1", printed=printed, measured=measured, shown=f"{measured}", **more)


def test_what_is_asked_of_ourselves_has_no_say_in_what_the_paper_prints() -> None:
    """Printed .52: .51 holds, although .5 was asked for, and .3 alone proves nothing that is not printed."""
    missed = effect(0.51, means=no_more_than(0.52), asked=less_than(0.5))
    assert (missed.verdict, missed.met) == (Verdict.HOLDS, False)
    met = effect(0.3, means=no_more_than(0.2), asked=less_than(0.5))
    assert (met.verdict, met.met) == (Verdict.DOES_NOT, True)
    ours = effect(0.3, printed=None, asked=less_than(0.5))
    assert (ours.verdict, ours.holds, ours.met) == (Verdict.NOT_PRINTED, None, True)
    shown = effect(0.3)
    assert (shown.verdict, shown.holds, shown.met) == (Verdict.NOT_CLAIMED, None, None)


@pytest.mark.parametrize(
    ("measured", "verdict", "within"),
    [
        ([1.1, 0.5, 0.4, 0.5, 0.6], "holds within", "x 1 to 3 (tried: 0 to 4)"),
        ([0.4, 0.6, 0.4, 0.6, 0.4], "holds within", "x only at 2 (tried: 0 to 4)"),  # not its far ends
        ([0.4, 0.5, 0.4, 0.5, 0.4], "holds", ""),
        ([0.4, 0.4, 0.6, 0.4, 0.4], "does not", ""),
        ([0.4, 0.4, 0.4, float("nan"), 0.4], "holds within", "x 0 to 2 (tried: 0 to 4)"),
    ],
)
def test_a_claim_holds_only_if_it_does_at_every_setting_tried(
    measured: list[float], verdict: str, within: str
) -> None:
    tried = Tried(setting="x", stated=2, measured=[*enumerate(measured)])
    claim = effect(measured[2], means=no_more_than(0.52), tried=[tried])
    assert claim.verdict == verdict
    assert (claim.within if verdict == "holds within" else "") == within
    assert claim.holds is (verdict == "holds")
    assert json.loads(json.dumps(claim.as_json(), allow_nan=False))["verdict"] == verdict


def test_numbers_made_of_printed_ones_show_them() -> None:
    assert ratio_of("3.18", "6.12") == "3.18 / 6.12 = 0.520"
    assert number_in(ratio_of("3.18", "6.12")) == pytest.approx(0.52)
    assert change_of("3.62", "7.48") == "3.62 - 7.48 = -3.86"
    assert effect(0.55, tolerance=0.1).verdict is Verdict.HOLDS  # within a tenth of .52
    assert effect(0.6, tolerance=0.1).verdict is Verdict.DOES_NOT


def test_what_the_published_code_gives_is_not_called_printed() -> None:
    """Value iteration, .0329: the paper has a figure there."""
    claims = _reference_claim("A:1/VI", ".0329", "a note")
    (near,) = claims([Outcome(0.03294, 0, 0, 0)])
    assert (near.printed, near.verdict, near.met) == (None, Verdict.NOT_PRINTED, True)
    assert near.note == ".0329 against .0329; a note"
    (off,) = claims([Outcome(0.03296, 0, 0, 0)])
    assert (off.met, off.note) == (False, ".0330 against .0329; a note")


def test_an_estimate_is_the_mean_and_students_interval() -> None:
    # Five values with mean 3 and standard deviation sqrt(2.5): t(4) = 2.776.
    five = estimate([1, 2, 3, 4, 5])
    assert five.mean == 3
    assert five.half_width == pytest.approx(2.776 * 2.5**0.5 / 5**0.5)
    assert estimate([7.0]).half_width is None


def test_a_page_shows_what_it_is_given_as_text() -> None:
    page = Page("<title>", "lead")
    page.table(("a",), [("<script>alert(1)</script>",)])
    html = page.render()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)" in html


def test_claims_that_differ_come_first_on_their_page() -> None:
    def row(name: str, shown: str, tolerance: float | None) -> Claim:
        return Claim(id=name, source="s", printed="1", measured=1.0, shown=shown, tolerance=tolerance)

    rows = [
        row("t/held", "1", 0.0),
        row("t/failed", "2", 0.0),
        row("t/shown", "3", None),
        effect(0.6, printed=None, asked=less_than(0.5), note="missed by us"),
        effect(
            0.4,
            means=less_than(0.5),
            tried=[Tried(setting="fluctuation", stated=0, measured=[(0, 0.4), (1, 0.6)])],
        ),
    ]
    html = claims_page("title", "lead", ["a setting"], rows, {"QL": [("t/held", 1.0, 1.0)]})
    assert "1 claims hold, 1 hold within a range only, 1 do not; 1 printed values are shown" in html
    assert "of what we ask of ourselves 0 are met, 1 missed" in html
    assert html.index("t/failed") < html.index("t/held")
    assert "holds within: fluctuation only at 0 (tried: 0 to 1)" in html
    asked = "<td class='text'>-</td><td>0.6</td><td>-</td><td class='text'>not printed</td><td>&lt;0.5</td>"
    assert asked in html, "what is asked of ourselves stands in a column of its own, and nothing is printed"


def test_a_page_of_claims_draws_the_charts_it_is_given() -> None:
    lines = Chart(
        title="Cost by size",
        note="Two lines of one colour.",
        x_title="operators",
        y_title="cost",
        series=[
            Series(name="tuned & found", x=[1, 2], y=[3.25, None], group=0),
            Series(name="at random", x=[1, 2], y=[4.0, 5.5], group=0),
        ],
        whole_x=True,
        marked_y=(0.163, "printed here"),
    )
    bars = Chart(
        title="Bars",
        note="",
        x_title="",
        y_title="cost",
        series=[Series(name="naive", x=["a"], y=[7.5])],
        bars=True,
    )
    html = claims_page("title", "lead", [], [], {}, [lines, bars]).partition("<body>")[2]
    assert html.index("Cost by size") < html.index("Bars")
    assert '"name":"naive","x":["a"],"y":[7.5],"type":"bar"' in html
    dashes = re.findall(r'"line":\{"color":"#0072B2","dash":"(\w+)","width":2\}', html)
    assert dashes == ["solid", "dash"], "two lines of a group share a colour"
    assert "printed here" in html
    assert "Two lines of one colour." in html
