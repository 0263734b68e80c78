"""Charts with many lines or bars: no two look alike."""

import pytest

from penstock.papers.claims import Chart, Series
from penstock.reports.figures import chart_figure


def looks(groups: list[int | None], *, bars: bool) -> list[tuple[str, str]]:
    series = [Series(name=str(index), x=[0, 1], y=[1, 2], group=group) for index, group in enumerate(groups)]
    figure = chart_figure(Chart(title="", note="", x_title="", y_title="", series=series, bars=bars))
    drawn = figure.to_dict()["data"]
    if bars:
        return [(one["marker"]["color"], one["marker"]["pattern"]["shape"]) for one in drawn]
    return [(one["line"]["color"], one["line"]["dash"]) for one in drawn]


@pytest.mark.parametrize("bars", [False, True])
def test_more_than_there_are_colours_differ_by_dashes_or_hatching(bars: bool) -> None:
    assert len(set(looks([None] * 20, bars=bars))) == 20


def test_lines_of_a_group_share_a_colour_and_nothing_else() -> None:
    first, second, other = looks([0, 0, 8], bars=False)
    assert first[0] == second[0] == other[0]
    assert len({first, second, other}) == 3
