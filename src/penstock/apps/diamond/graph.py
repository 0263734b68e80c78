"""Application B of Russo 2023 (Fig. 19): three branches side by side."""

from penstock.apps.shapes import graph_of, operator_at
from penstock.domain.application import Application


def diamond(max_replicas: int) -> Application:
    """Application B: 900, then 200, 300 and 600 side by side, then 2500 tuples/s."""
    operators = (
        operator_at("split", 900, 0.5, max_replicas),
        operator_at("slow", 200, 0.01, max_replicas),
        operator_at("middle", 300, 0.9, max_replicas),
        operator_at("fast", 600, 0.5, max_replicas),
        operator_at("join", 2500, 0.5, max_replicas),
    )
    branches = ("slow", "middle", "fast")
    edges = (
        ("source", "split"),
        *(("split", branch) for branch in branches),
        *((branch, "join") for branch in branches),
        ("join", "sink"),
    )
    return graph_of("diamond", operators, edges)
