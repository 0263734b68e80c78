"""Applications as their authors write them: checked before anything starts."""

from pathlib import Path
from typing import Any

import pytest

from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.reconfigure.method import Method
from penstock.runtimes.spark.topology import App, StreamOf


def same(frame: Any) -> Any:
    return frame


def app() -> App:
    return App("demo", objective=Objective(response_time_s=3))


def test_fused_operators_share_a_query_and_the_others_have_their_own() -> None:
    made = app()
    lines = made.source("lines", schema="line string")
    parsed = made.operator("parse", same, lines, max_replicas=3)
    kept = made.operator("keep", same, parsed, max_replicas=2, fused=True)
    counted = made.operator("count", same, kept, max_replicas=3, stateful=True, output_mode="update")
    made.sink("out", counted)
    first, second = made.chains()
    assert (first.name, first.inputs, first.output, first.max_replicas) == (
        "parse+keep",
        ("lines",),
        "keep",
        2,
    )
    assert (second.name, second.stateful, second.output_mode) == ("count", True, "update")
    assert first.tag != second.tag
    assert made.readers_of("keep") == ("count",)
    assert made.readers_of("count") == ()


def test_a_chain_pauses_when_one_of_its_operators_must() -> None:
    made = app()
    first = made.operator("a", same, made.source("s", schema="x long"))
    made.sink("out", made.operator("b", same, first, fused=True, protocol=Method.PAUSE_AND_RESUME))
    assert [chain.protocol for chain in made.chains()] == [Method.PAUSE_AND_RESUME]


def test_a_diamond_runs_in_order_and_every_branch_reads_the_same_stream() -> None:
    made = app()
    split = made.operator("split", same, made.source("s", schema="x long"))
    branches = [made.operator(name, same, split) for name in ("left", "right")]
    made.sink("out", made.operator("join", same, *branches))
    assert [chain.name for chain in made.chains()] == ["split", "left", "right", "join"]
    assert made.readers_of("split") == ("left", "right")


def test_mistakes_are_named_before_anything_starts() -> None:
    made = app()
    source = made.source("s", schema="x long")
    with pytest.raises(InputError, match="'s' appears twice"):
        made.source("s", schema="x long")
    with pytest.raises(InputError, match="operator 'a': no input"):
        made.operator("a", same)
    with pytest.raises(InputError, match="operator 'a': max_replicas=0"):
        made.operator("a", same, source, max_replicas=0)
    with pytest.raises(InputError, match="operator 'a': its input 'elsewhere'"):
        made.operator("a", same, StreamOf("elsewhere"))
    with pytest.raises(InputError, match="output_mode='complete'"):
        made.operator("a", same, source, output_mode="complete")
    with pytest.raises(InputError, match="names are letters"):
        made.operator("a b", same, source)
    with pytest.raises(InputError, match="sink 'out': 's' is not an operator"):
        made.sink("out", source)
    made.operator("a", same, source)
    with pytest.raises(InputError, match="operator 'a' reaches no sink"):
        made.chains()


def test_what_cannot_be_fused_is_refused() -> None:
    made = app()
    source = made.source("s", schema="x long")
    first = made.operator("a", same, source, stateful=True)
    made.sink("kept", first)
    made.sink("out", made.operator("b", same, first, fused=True))
    with pytest.raises(InputError, match="'a' also feeds a sink"):
        made.chains()
    alone = app()
    alone.sink("out", alone.operator("b", same, alone.source("s", schema="x long"), fused=True))
    with pytest.raises(InputError, match="only a single operator's stream"):
        alone.chains()


def test_a_source_has_a_schema_or_a_reader() -> None:
    made = App("a", objective=Objective(response_time_s=1))
    with pytest.raises(InputError, match="source 's': give it a schema or a reader, and not both"):
        made.source("s")
    with pytest.raises(InputError, match="source 's': give it a schema or a reader, and not both"):
        made.source("s", schema="v long", reader=lambda spark: spark)
    made.source("s", reader=lambda spark: spark)
    assert "s" in made.readers


def test_executors_find_operators_where_their_module_is() -> None:
    made = App("a", objective=Objective(response_time_s=1))
    made.operator("o", here, made.source("s", schema="v long"))
    folder = Path(__file__).resolve()
    assert made.places == (str(folder.parents[len(__name__.split(".")) - 1]),)


def here(frame: object) -> object:
    return frame


def three(**of_last: Any) -> App:
    made = App("three", objective=Objective(response_time_s=1))
    first = made.operator("first", here, made.source("s", schema="v long"), max_replicas=2)
    count = made.operator("count", here, first, max_replicas=2, stateful=True)
    made.sink("end", made.operator("last", here, count, **of_last))
    return made


def names(made: App, *, joined: bool = True) -> list[list[str]]:
    return [[chain.name for chain in query.chains] for query in made.queries(joined=joined)]


def test_chains_one_after_the_other_share_a_query() -> None:
    assert names(three()) == [["first", "count", "last"]]
    assert names(three(), joined=False) == [["first"], ["count"], ["last"]]
    (query,) = three().queries(joined=True)
    assert query.in_stream == 2
    assert (query.inputs, query.output) == (("s",), "last")


def test_what_cannot_share_a_query_has_its_own() -> None:
    assert names(three(stateful=True)) == [["first", "count"], ["last"]]  # one state in a query
    assert names(three(protocol=Method.PAUSE_AND_RESUME)) == [["first", "count"], ["last"]]
    watched = three()
    watched.sink("kept", StreamOf("first"))
    assert names(watched) == [["first"], ["count", "last"]]
    forked = three()
    forked.sink("too", forked.operator("other", here, StreamOf("count")))
    assert names(forked) == [["first", "count"], ["last"], ["other"]]
