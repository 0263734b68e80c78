"""The application graph: what it refuses, the order it gives, the paths it finds."""

from itertools import pairwise
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.application import Application, Operator, Sink, Source, Stream, pipeline
from penstock.domain.errors import InputError


def operator(name: str) -> Operator:
    return Operator(name=name, service_time_s=0.01)


def graph(edges: str, *, operators: str, sources: str = "in", sinks: str = "out") -> Application:
    """graph("in->a a->out", operators="a")"""
    ends = [edge.split("->") for edge in edges.split()]
    return Application(
        name="app",
        sources=tuple(Source(name=name) for name in sources.split()),
        operators=tuple(operator(name) for name in operators.split()),
        sinks=tuple(Sink(name=name) for name in sinks.split()),
        streams=tuple(Stream(origin=origin, target=target) for origin, target in ends),
    )


def refusal(edges: str, *, operators: str, sources: str = "in", sinks: str = "out") -> str:
    with pytest.raises(InputError) as caught:
        graph(edges, operators=operators, sources=sources, sinks=sinks)
    return str(caught.value)


def names(application: Application) -> list[str]:
    return [op.name for op in application.in_order]


# --- operators ---------------------------------------------------------------------------


@pytest.mark.parametrize("service_time_s", [0.0, -0.5, nan, inf])
def test_an_operator_without_a_positive_finite_service_time_is_refused(service_time_s: float) -> None:
    with pytest.raises(InputError) as caught:
        Operator(name="rank", service_time_s=service_time_s)
    assert f"operator 'rank': service_time_s={service_time_s}" in str(caught.value)


@pytest.mark.parametrize("service_scv", [-0.1, nan, inf])
def test_an_operator_with_a_negative_or_unknown_variability_is_refused(service_scv: float) -> None:
    with pytest.raises(InputError) as caught:
        Operator(name="rank", service_time_s=0.01, service_scv=service_scv)
    assert f"operator 'rank': service_scv={service_scv}" in str(caught.value)


@pytest.mark.parametrize("selectivity", [-1.0, nan, inf])
def test_an_operator_with_a_negative_or_unknown_selectivity_is_refused(selectivity: float) -> None:
    with pytest.raises(InputError) as caught:
        Operator(name="rank", service_time_s=0.01, selectivity=selectivity)
    assert f"operator 'rank': selectivity={selectivity}" in str(caught.value)


@pytest.mark.parametrize("max_replicas", [0, -3])
def test_an_operator_that_may_run_no_replica_is_refused(max_replicas: int) -> None:
    with pytest.raises(InputError) as caught:
        Operator(name="rank", service_time_s=0.01, max_replicas=max_replicas)
    assert f"operator 'rank': max_replicas={max_replicas}; at least one replica must run" == str(caught.value)


def test_negative_state_is_refused() -> None:
    with pytest.raises(InputError, match="operator 'rank': state_bytes=-1"):
        Operator(name="rank", service_time_s=0.01, stateful=True, state_bytes=-1)


def test_state_in_a_stateless_operator_is_refused() -> None:
    with pytest.raises(InputError, match="operator 'rank': state_bytes=8 but it is not stateful"):
        Operator(name="rank", service_time_s=0.01, state_bytes=8)


def test_the_edges_of_what_is_legal_are_accepted() -> None:
    edge = Operator(name="filter", service_time_s=1e-9, service_scv=0.0, selectivity=0.0, max_replicas=1)
    assert edge.service_variance_s2 == 0.0
    assert Operator(name="join", service_time_s=0.01, stateful=True, state_bytes=0).stateful


# --- what a graph refuses ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("operators", "sources", "sinks", "twice"),
    [("a a", "in", "out", "a"), ("a", "a", "out", "a"), ("a", "in", "a", "a"), ("a", "in", "in", "in")],
)
def test_a_name_may_appear_once_among_sources_operators_and_sinks(
    operators: str, sources: str, sinks: str, twice: str
) -> None:
    assert f"application 'app': '{twice}' appears twice" == refusal(
        "", operators=operators, sources=sources, sinks=sinks
    )


@pytest.mark.parametrize(
    ("edges", "stream", "unknown"),
    [("in->a a->b a->out", "a->b", "b"), ("in->a x->a a->out", "x->a", "x")],
)
def test_a_stream_with_an_unknown_end_is_refused_by_name(edges: str, stream: str, unknown: str) -> None:
    assert f"application 'app': stream {stream} names unknown '{unknown}'" == refusal(edges, operators="a")


def test_an_application_without_operators_is_refused() -> None:
    assert refusal("in->out", operators="") == "application 'app': no operators"


def test_a_source_takes_no_stream() -> None:
    message = refusal("in->a a->in a->out", operators="a")
    assert message == "application 'app': source 'in' has an incoming stream"


def test_a_sink_gives_no_stream() -> None:
    message = refusal("in->a a->out out->a", operators="a")
    assert message == "application 'app': sink 'out' has an outgoing stream"


@pytest.mark.parametrize(
    ("edges", "operators", "around"),
    [
        ("in->a a->a a->out", "a", "a -> a"),
        ("in->a a->b b->a b->out", "a b", "a -> b -> a"),
        # d comes after the cycle, a before it: neither is part of it
        ("in->a a->b b->c c->b c->d d->out", "a b c d", "b -> c -> b"),
        ("in->c c->b b->a a->c a->out", "a b c", "a -> c -> b -> a"),
        ("in->z z->out a->b b->a", "z a b", "a -> b -> a"),  # nobody reaches it, it is one all the same
    ],
)
def test_a_cycle_is_refused_and_its_operators_are_named(edges: str, operators: str, around: str) -> None:
    assert refusal(edges, operators=operators) == f"application 'app': a cycle through {around}"


@pytest.mark.parametrize("edges", ["in->a a->out b->out", "in->a a->out b->a"])
def test_an_operator_no_source_reaches_is_refused(edges: str) -> None:
    message = refusal(edges, operators="a b")
    assert message == "application 'app': operator 'b' is not reachable from a source"


@pytest.mark.parametrize("edges", ["in->a a->out in->b", "in->a a->out a->b"])
def test_an_operator_that_reaches_no_sink_is_refused(edges: str) -> None:
    assert refusal(edges, operators="a b") == "application 'app': operator 'b' reaches no sink"


def test_an_application_without_sources_or_sinks_is_refused() -> None:
    assert "operator 'a' is not reachable from a source" in refusal("a->out", operators="a", sources="")
    assert "operator 'a' reaches no sink" in refusal("in->a", operators="a", sinks="")


# --- order, neighbours, paths ------------------------------------------------------------


def test_operators_come_after_everything_upstream_whatever_the_order_given() -> None:
    diamond = "in->split split->left split->right left->join right->join join->out"
    order = names(graph(diamond, operators="join right left split"))
    assert order[0] == "split"
    assert order[-1] == "join"
    assert sorted(order[1:3]) == ["left", "right"]


def test_a_shortcut_does_not_pull_an_operator_before_its_other_upstream() -> None:
    # c is fed by the source and by b: reachable in one hop, ready only after b
    assert names(graph("in->c in->a a->b b->c c->out", operators="c b a")) == ["a", "b", "c"]


def test_neighbours_are_the_ends_of_the_streams() -> None:
    app = graph("in->a in->b a->c b->c c->out", operators="a b c")
    assert app.downstream("in") == ("a", "b")
    assert app.upstream("c") == ("a", "b")
    assert app.upstream("in") == ()
    assert app.downstream("out") == ()


def test_an_operator_is_found_by_name_and_a_missing_one_is_named() -> None:
    app = graph("in->a a->out", operators="a")
    assert app.operator("a") is app.operators[0]
    for missing in ("b", "in", "out"):  # a source or a sink is not an operator
        with pytest.raises(InputError, match=f"application 'app': no operator '{missing}'"):
            app.operator(missing)


def test_a_diamond_has_one_path_per_branch() -> None:
    app = graph("in->s s->l s->r l->j r->j j->out", operators="s l r j")
    assert set(app.paths) == {("s", "l", "j"), ("s", "r", "j")}
    assert len(app.paths) == 2


def test_two_sources_and_two_sinks_have_a_path_for_every_pair_that_is_connected() -> None:
    app = graph("i1->a i2->b a->c b->c a->o1 c->o1 c->o2", operators="a b c", sources="i1 i2", sinks="o1 o2")
    # a->c is counted once towards o1 and once towards o2, and so is b->c
    assert sorted(app.paths) == sorted([("a",), ("a", "c"), ("a", "c"), ("b", "c"), ("b", "c")])


def test_a_stream_straight_from_source_to_sink_is_no_path_of_operators() -> None:
    assert graph("in->a a->out in->out", operators="a").paths == (("a",),)


def test_a_pipeline_is_one_path_from_source_to_sink() -> None:
    a, b, c = operator("a"), operator("b"), operator("c")
    app = pipeline("etl", a, b, c)
    assert app.name == "etl"
    assert app.in_order == (a, b, c)
    assert app.paths == (("a", "b", "c"),)
    assert [(s.origin, s.target) for s in app.streams] == [
        ("source", "a"),
        ("a", "b"),
        ("b", "c"),
        ("c", "sink"),
    ]


def test_a_pipeline_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="application 'etl': no operators"):
        pipeline("etl")


@pytest.mark.parametrize("taken", ["source", "sink"])
def test_a_pipeline_operator_cannot_be_called_like_its_ends(taken: str) -> None:
    with pytest.raises(InputError, match=f"application 'etl': '{taken}' appears twice"):
        pipeline("etl", operator(taken))


@st.composite
def layered_graphs(draw: st.DrawFn) -> tuple[Application, np.ndarray]:
    """A random DAG and its adjacency matrix (vertex 0 the source, the last the sink)."""
    inner = draw(st.integers(1, 6))
    size = inner + 2
    adjacency = np.zeros((size, size), dtype=np.int64)
    for origin in range(size - 1):
        for target in range(origin + 1, size):
            adjacency[origin, target] = draw(st.booleans())
    for vertex in range(1, size - 1):  # every operator is fed, and fed onward
        if not adjacency[:vertex, vertex].any():
            adjacency[0, vertex] = 1
        if not adjacency[vertex, vertex + 1 :].any():
            adjacency[vertex, size - 1] = 1
    label = ["in", *(f"op{i}" for i in range(inner)), "out"]
    given_order = draw(st.permutations(range(inner)))
    edges = " ".join(f"{label[a]}->{label[b]}" for a, b in np.argwhere(adjacency))
    return graph(edges, operators=" ".join(f"op{i}" for i in given_order)), adjacency


@given(layered_graphs())
def test_any_dag_is_ordered_upstream_first(drawn: tuple[Application, np.ndarray]) -> None:
    app, _ = drawn
    position = {name: at for at, name in enumerate(names(app))}
    assert sorted(position) == sorted(op.name for op in app.operators)
    inner = [s for s in app.streams if s.origin in position and s.target in position]
    assert all(position[s.origin] < position[s.target] for s in inner)


@given(layered_graphs())
def test_any_dag_has_as_many_paths_as_powers_of_its_adjacency_matrix_count(
    drawn: tuple[Application, np.ndarray],
) -> None:
    app, adjacency = drawn
    # entry (source, sink) of A^k counts the walks of k streams; one stream is a path of no operator
    power = adjacency
    walks = 0
    for _ in range(2, len(adjacency)):
        power = power @ adjacency
        walks += int(power[0, -1])
    assert len(app.paths) == len(set(app.paths)) == walks
    streams = {(s.origin, s.target) for s in app.streams}
    for path in app.paths:
        chain = ("in", *path, "out")
        assert streams.issuperset(pairwise(chain))
