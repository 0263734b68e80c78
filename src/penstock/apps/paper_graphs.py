"""The three application graphs of Russo 2023, Fig. 19: a pipeline, a diamond and one with two sinks."""

from collections.abc import Callable

from penstock.domain.application import Application, Operator, Sink, Source, Stream, pipeline
from penstock.domain.errors import InputError


def _operator(name: str, rate: float, scv: float, max_replicas: int) -> Operator:
    return Operator(name=name, service_time_s=1 / rate, service_scv=scv, max_replicas=max_replicas)


def _graph(name: str, operators: tuple[Operator, ...], edges: tuple[tuple[str, str], ...]) -> Application:
    sinks = sorted({target for _, target in edges if target.startswith("sink")})
    return Application(
        name=name,
        sources=(Source(name="source"),),
        operators=operators,
        sinks=tuple(Sink(name=sink) for sink in sinks),
        streams=tuple(Stream(origin=origin, target=target) for origin, target in edges),
    )


def paper_pipeline(max_replicas: int) -> Application:
    """Application A: 1000, 300 and 300 tuples/s, SCV .5, 1 and .1."""
    return pipeline(
        "pipeline",
        _operator("first", 1000, 0.5, max_replicas),
        _operator("second", 300, 1.0, max_replicas),
        _operator("third", 300, 0.1, max_replicas),
    )


def paper_diamond(max_replicas: int) -> Application:
    """Application B: 900, then 200, 300 and 600 side by side, then 2500 tuples/s."""
    operators = (
        _operator("split", 900, 0.5, max_replicas),
        _operator("slow", 200, 0.01, max_replicas),
        _operator("middle", 300, 0.9, max_replicas),
        _operator("fast", 600, 0.5, max_replicas),
        _operator("join", 2500, 0.5, max_replicas),
    )
    branches = ("slow", "middle", "fast")
    edges = (
        ("source", "split"),
        *(("split", branch) for branch in branches),
        *((branch, "join") for branch in branches),
        ("join", "sink"),
    )
    return _graph("diamond", operators, edges)


def paper_multi_sink(max_replicas: int) -> Application:
    """Application C: 700 to 200 to {300, 500}, and 700 to 500 tuples/s; paths of different length."""
    operators = (
        _operator("root", 700, 0.5, max_replicas),
        _operator("inner", 200, 0.5, max_replicas),
        _operator("left", 300, 0.5, max_replicas),
        _operator("right", 500, 0.5, max_replicas),
        _operator("short", 500, 0.5, max_replicas),
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
    return _graph("multi-sink", operators, edges)


GRAPHS: dict[str, Callable[[int], Application]] = {
    "pipeline": paper_pipeline,
    "diamond": paper_diamond,
    "multi-sink": paper_multi_sink,
}


def graph_named(name: str, max_replicas: int) -> Application:
    if name not in GRAPHS:
        raise InputError(f"application '{name}': unknown; choose one of {', '.join(GRAPHS)}")
    return GRAPHS[name](max_replicas)
