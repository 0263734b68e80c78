"""One self-contained page: text, tables and plots, nothing fetched from elsewhere."""

from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; }
body { max-width: 1080px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .3rem; }
p { max-width: 75ch; } .note { color: #555; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .6rem 0; }
th, td { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #e4e4e4; white-space: nowrap; }
th { background: #f6f7f9; position: sticky; top: 0; } th:first-child, td:first-child { text-align: left; }
td.no { background: #fdecea; } td.yes { background: #eaf6ec; } td.part { background: #fff6da; }
td.text { white-space: normal; text-align: left; }
summary { cursor: pointer; font-size: 1.15rem; font-weight: bold; margin: 2rem 0 .3rem; }
"""


class Page:
    """A page built top to bottom."""

    def __init__(self, title: str, lead: str) -> None:
        self._title = title
        self._parts = [f"<h1>{escape(title)}</h1>", f"<p class='note'>{escape(lead)}</p>"]
        self._plots = 0

    def heading(self, text: str) -> None:
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def paragraph(self, text: str) -> None:
        self._parts.append(f"<p class='note'>{escape(text)}</p>")

    def table(
        self, header: Sequence[str], rows: Sequence[Sequence[str]], marks: Sequence[Sequence[str]] = ()
    ) -> None:
        """Rows of text; `marks` may give each cell a class: yes, no or text."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = []
        for number, row in enumerate(rows):
            classes = marks[number] if marks else [""] * len(row)
            cells = "".join(
                f"<td class='{mark}'>{escape(cell)}</td>" if mark else f"<td>{escape(cell)}</td>"
                for cell, mark in zip(row, classes, strict=True)
            )
            body.append(f"<tr>{cells}</tr>")
        self._parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>")

    def folded(
        self,
        title: str,
        header: Sequence[str],
        rows: Sequence[Sequence[str]],
        marks: Sequence[Sequence[str]] = (),
    ) -> None:
        """A table that a click on its title shows."""
        self._parts.append(f"<details><summary>{escape(title)}</summary>")
        self.table(header, rows, marks)
        self._parts.append("</details>")

    def plot(self, figure: go.Figure) -> None:
        self._plots += 1
        self._parts.append(
            figure.to_html(
                full_html=False,
                div_id=f"plot-{self._plots}",  # not plotly's random one: the same run, the same page
                include_plotlyjs=False,
                config={"displaylogo": False, "displayModeBar": False, "responsive": True},
            )
        )

    def render(self) -> str:
        script = f"<script>{get_plotlyjs()}</script>" if self._plots else ""
        return (
            f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(self._title)}</title>"
            f"<meta name='viewport' content='width=device-width, initial-scale=1'>"
            f"<style>{_STYLE}</style>{script}"
            f"</head><body>{''.join(self._parts)}</body></html>\n"
        )
