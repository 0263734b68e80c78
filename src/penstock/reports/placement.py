"""A plan as a picture: hosts as far apart as their delays, operators on them, streams between them."""

from collections import Counter
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from penstock.compiled import Floats
from penstock.files import write_whole
from penstock.planning.problem import Plan, Problem
from penstock.planning.solve import Incumbent, Optimal
from penstock.reports.figures import COLOURS, layout
from penstock.reports.html import Page

_HEIGHT = 560
_WIDEST = 6.0  # pixels: the stream with most tuples


def positions(delay_s: Floats) -> Floats:
    """Two coordinates for every host, whose distances come as near to the delays as two can."""
    both_ways = (delay_s + delay_s.T) / 2
    count = len(both_ways)
    centring = np.eye(count) - 1 / count
    products = -centring @ (both_ways**2) @ centring / 2
    values, vectors = np.linalg.eigh(products)
    kept = np.argsort(values)[::-1][:2]
    found = vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0.0))
    return np.pad(found, ((0, 0), (0, 2 - found.shape[1])))


def placement(problem: Problem, plan: Plan) -> go.Figure:
    at = positions(problem.network.delay_s)
    index = problem.network.index
    figure = go.Figure()
    most = max((stream.rate for stream in problem.streams), default=1.0) or 1.0
    for stream in problem.streams:
        pairs = Counter(
            (index[a], index[b]) for a in plan[stream.origin] for b in plan[stream.target] if a != b
        )
        replicas = len(plan[stream.origin]) * len(plan[stream.target])
        for (a, b), count in pairs.items():
            rate = stream.rate * count / replicas
            figure.add_scatter(
                x=[at[a, 0], at[b, 0]],
                y=[at[a, 1], at[b, 1]],
                mode="lines",
                line={"color": COLOURS[5], "width": max(_WIDEST * rate / most, 1.0)},
                hoverinfo="skip",
                showlegend=False,
            )
    hosted: dict[str, list[str]] = {host.name: [] for host in problem.network.hosts}
    for name, hosts in plan.items():
        for host, replicas in Counter(hosts).items():
            hosted[host].append(name if replicas == 1 else f"{name} x{replicas}")
    for used, colour, size in ((True, COLOURS[0], 20), (False, "#BBBBBB", 10)):
        names = [name for name, there in hosted.items() if bool(there) == used]
        rows = [index[name] for name in names]
        figure.add_scatter(
            x=at[rows, 0],
            y=at[rows, 1],
            mode="markers+text",
            marker={"color": colour, "size": size},
            text=[f"<b>{name}</b><br>{'<br>'.join(hosted[name])}" if used else name for name in names],
            textposition="top center",
            name="hosts with replicas" if used else "hosts without",
            hoverinfo="text",
        )
    figure.update_xaxes(title="s (hosts are as far apart as their delays, as nearly as a plane can show it)")
    figure.update_yaxes(scaleanchor="x")
    figure = layout(figure, height=_HEIGHT)
    figure.update_layout(hovermode="closest")
    return figure


def write_page(problem: Problem, answer: Optimal | Incumbent, to: Path) -> None:
    proof = "no plan is better" if isinstance(answer, Optimal) else f"gap {100 * answer.gap:.2g} %"
    page = Page("Plan", f"Objective {answer.value:.6f}: {proof}.")
    page.plot(placement(problem, answer.plan))
    page.table(
        ("operator", "replicas", "on"),
        [(name, str(len(hosts)), ", ".join(hosts)) for name, hosts in answer.plan.items()],
    )
    write_whole(to, page.render())
