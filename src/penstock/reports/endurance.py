"""The page of `penstock bench endurance`: memory and disk of a run over its hours."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from penstock.reports.figures import COLOURS, DASHES, layout
from penstock.reports.html import Page

Samples = Sequence[tuple[float, Mapping[str, float]]]  # (seconds, megabytes by name)


def page_of(samples: Samples, minutes: float) -> str:
    page = Page(
        f"Memory and disk over {minutes:g} minutes",
        "The application paced, with a change of replicas at every interval.",
    )
    page.plot(over_time(samples))
    return page.render()


def over_time(samples: Samples) -> go.Figure:
    """Two strips over the same time: memory and disk. A name says which: `memory: ...` or `disk: ...`."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06)
    names = sorted({name for _, mb in samples for name in mb})
    for row, kind in enumerate(("memory: ", "disk: "), start=1):
        for index, name in enumerate(one for one in names if one.startswith(kind)):
            figure.add_scatter(
                x=[at_s / 60 for at_s, _ in samples],
                y=[mb.get(name) for _, mb in samples],
                name=name,
                line={
                    "color": COLOURS[index % len(COLOURS)],
                    "dash": DASHES[(index // len(COLOURS) + row - 1) % len(DASHES)],
                },
                row=row,
                col=1,
            )
        figure.update_yaxes(title=f"{kind.removesuffix(': ')} (MB)", rangemode="tozero", row=row, col=1)
    figure.update_xaxes(title="minutes since start", row=2, col=1)
    layout(figure, height=760)
    return figure
