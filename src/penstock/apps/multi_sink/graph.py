"""Application C of Russo 2023 (Fig. 19): three sinks, paths of different length."""

from penstock.apps.shapes import graph_of, operator_at
from penstock.domain.application import Application


def multi_sink(max_replicas: int) -> Application:
    """Application C: 700 to 200 to {300, 500}, and 700 to 500 tuples/s; paths of different length."""
    operators = (
        operator_at("root", 700, 0.5, max_replicas),
        operator_at("inner", 200, 0.5, max_replicas),
        operator_at("left", 300, 0.5, max_replicas),
        operator_at("right", 500, 0.5, max_replicas),
        operator_at("short", 500, 0.5, max_replicas),
    )
    edges = (
        ("source", "root"),
        ("root", "inner"),
        ("inner", "left"),
        ("inner", "right"),
        ("root", "short"),
        ("left", "sink-left"),
        ("right", "sink-right"),
        ("short", "sink-short"),
    )
    return graph_of("multi-sink", operators, edges)
