"""Claims, estimates, pages."""

import re

import pytest

from penstock.papers.claims import Chart, Claim, Series, shown_like
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
        (">=96", 96.0, 0.0, True),
        (">=96", 95.9, 0.0, False),  # shown as 96, and still too few
        ("0.1530", 9.9, None, None),
    ],
)
def test_a_claim_holds_by_its_printed_digits_or_its_tolerance(
    printed: str, measured: float, tolerance: float | None, holds: bool | None
) -> None:
    assert claim(printed, measured, tolerance).holds is holds


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
    rows = [
        ("t/held", "1", "1", "exact", True, ""),
        ("t/failed", "1", "2", "exact", False, "because"),
        ("t/shown", "1", "3", "-", None, ""),
    ]
    html = claims_page("title", "lead", ["a setting"], rows, {"QL": [("t/held", 1.0, 1.0)]})
    assert "1 claims hold, 1 do not, 1 more values" in html
    assert html.index("t/failed") < html.index("t/held")


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
