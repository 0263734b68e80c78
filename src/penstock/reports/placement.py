"""A plan as a picture: hosts as far apart as their delays, operators on them, streams between them."""

from collections import Counter
from itertools import combinations
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
_LABELLED, _PLAIN = 0.2, 0.06  # of the width: room for a host and what runs on it, and for a name
_ROUNDS = 500


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


def spread(at: Floats, needs: Floats) -> Floats:
    """The same places, but no two nearer to each other than both need on average: names must be legible."""
    found = at.copy()
    for _ in range(_ROUNDS):
        moved = False
        for a, b in combinations(range(len(found)), 2):
            apart = found[b] - found[a]
            distance = float(np.hypot(*apart))
            missing = (needs[a] + needs[b]) / 2 - distance
            if missing <= 0:
                continue
            direction = apart / distance if distance > 0 else np.array([0.0, 1.0])
            found[a] -= direction * missing / 2
            found[b] += direction * missing / 2
            moved = True
        if not moved:
            break
    return found


def placement(problem: Problem, plan: Plan) -> go.Figure:
    index = problem.network.index
    used_hosts = {index[host] for hosts in plan.values() for host in hosts}
    at = positions(problem.network.delay_s)
    width = float(np.ptp(at, axis=0).max()) or 1.0
    needs = [_LABELLED * width if host in used_hosts else _PLAIN * width for host in range(len(at))]
    at = spread(at, np.array(needs))
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
    figure.update_xaxes(
        title="hosts are as far apart as their delays, as nearly as a plane and legible names allow",
        showticklabels=False,
    )
    figure.update_yaxes(scaleanchor="x", showticklabels=False)
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
