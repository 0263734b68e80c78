"""Entries are lines and lines are entries again; a crash costs at most the line being written."""

import json
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safety_cases import app, controller_spec, one

from penstock.control.journal import (
    Entry,
    Header,
    Noted,
    Reconfigured,
    Remembered,
    Retuned,
    Stepped,
    Ticked,
    decoded,
    decoded_lines,
    encoded,
    latest_header,
)
from penstock.control.orders import Override, Pause
from penstock.control.plan import Plan
from penstock.control.safety_settings import SafetySettings, Window
from penstock.control.spec import Manager
from penstock.domain.decision import Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.objective import Weights
from penstock.domain.observation import ApplicationObservation, NodeObservation, OperatorObservation
from penstock.domain.request import Migrate, Refused, Request, ScaleIn, ScaleOut, Verdict
from penstock.journal_file import JournalFile, entries_of, read_journal
from penstock.reconfigure.method import Method
from penstock.reconfigure.words import (
    AcquireNode,
    Change,
    Ending,
    Failed,
    NewReplica,
    Record,
    StartQuery,
    StopQuery,
)

number = st.floats(allow_nan=False)
maybe = st.none() | number
moment = st.floats(allow_nan=False, allow_infinity=False)
name = st.text(min_size=1, max_size=5)
replicas = st.lists(st.integers(0, 3), min_size=1, max_size=3).filter(any).map(lambda c: Replicas(tuple(c)))
words = st.text(max_size=20)
requests: st.SearchStrategy[Request] = st.one_of(
    st.builds(ScaleOut, operator=name, target=replicas, nodes=st.just(("n",)), score=number, reason=words),
    st.builds(ScaleIn, operator=name, target=replicas, nodes=st.just(()), score=number, reason=words),
    st.builds(Migrate, operator=name, origin=name, target=name, score=number, reason=words),
)
refusals = st.builds(Refused, requests, words)
plans = st.builds(
    Plan,
    decisions=st.dictionaries(
        name,
        st.builds(Hold, words) | st.builds(Scale, target=replicas, score=number, reason=words),
        max_size=2,
    ),
    requests=st.lists(requests, max_size=2).map(tuple),
    verdict=st.builds(
        Verdict,
        granted=st.lists(requests, max_size=1).map(tuple),
        refused=st.lists(refusals, max_size=1).map(tuple),
        decisions=st.dictionaries(name, st.builds(Hold, words), max_size=1),
    ),
    vetoes=st.lists(refusals, max_size=2).map(tuple),
    granted=st.lists(requests, max_size=1).map(tuple),
    advise=st.booleans(),
)
operators = st.builds(
    OperatorObservation,
    operator=name,
    at_s=moment,
    replicas=replicas,
    arrival_rate=maybe,
    response_time_s=maybe,
    utilisation=maybe,
    response_time_p95_s=maybe,
    service_time_s=maybe,
    service_variance_s2=maybe,
    backlog=maybe,
    selectivity=maybe,
    skew=maybe,
    utilisation_by_replica=st.none() | st.lists(number, max_size=3).map(tuple),
    batch_s=maybe,
    batch_tuples=maybe,
    batch_tasks_s=maybe,
    batch_replicas=maybe,
    trigger_s=maybe,
    useful_replicas=st.none() | st.integers(1, 9),
    ready_s=maybe,
    computing=maybe,
    offered_rate=maybe,
    coming=st.none() | st.lists(st.integers(0, 3), max_size=2).map(tuple),
    held_back=maybe,
    arrival_scv=maybe,
    forecast=st.none() | st.lists(number, max_size=3).map(tuple),
    forecast_interval_s=maybe,
)
nodes = st.builds(
    NodeObservation,
    node=name,
    node_type=st.integers(0, 2),
    at_s=number,
    utilisation=maybe,
    hosted=st.just(("a",)),
    free_slots=st.integers(0, 3),
    delay_s=st.dictionaries(name, number, max_size=2),
)
seen = st.builds(
    ApplicationObservation,
    at_s=moment,
    response_time_s=maybe,
    operators=st.lists(operators, max_size=2).map(tuple),
    strictest_s=maybe,
    source_rate=maybe,
    response_time_p50_s=maybe,
    response_time_p95_s=maybe,
    response_time_p99_s=maybe,
    reconfiguring=st.just(("x",)),
    nodes=st.none() | st.dictionaries(name, nodes, max_size=2),
    hosts=st.none() | st.dictionaries(name, st.just(("n", "m")), max_size=1),
    host_loads=st.none() | st.dictionaries(name, number, max_size=2),
)
orders = st.sampled_from((Pause(until_s=5.0), Override(operator="x", target=Replicas((1, 2)))))


@settings(max_examples=150, deadline=None)
@given(entry=st.builds(Ticked, seen=seen, plan=plans, orders=st.lists(orders, max_size=2).map(tuple)))
def test_a_round_written_down_reads_as_it_was(entry: Ticked) -> None:
    line = encoded(entry)
    assert "\n" not in line
    json.loads(line, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))
    assert decoded(line) == entry


RECORD = Record(
    operator="count",
    method=Method.PAUSE_AND_RESUME,
    change=Change(add=(NewReplica(node_type=1),), remove=("a",), partitions=8),
    outcome=Ending.PARTLY,
    granted_at_s=1.0,
    ended_at_s=9.5,
    node_ready_at_s=3.0,
    first_task_at_s=None,
    downtime_s=2.0,
    state_moved_bytes=None,
    trouble=("it broke",),
)
SPEC = controller_spec(
    operator_policy=Manager(name="ql-pds", parameters={"gamma": 0.5}),
    application_policy=Manager(name="tuned", parameters={"budget": 3}),
    node_policy=Manager(name="sender-initiated"),
    delays_s={"count": 0.01},
    safety=SafetySettings(
        max_replicas={"count": 4}, excluded=(Window(start_s=0.0, end_s=60.0, daily=True),), max_cost=4.0
    ),
    seed=7,
)
HEADER = Header(controller=SPEC, at_s=1.5)
RETUNED = Retuned(
    at_s=2.0,
    application=SPEC.application,
    operators=tuple(replace(one, bound_s=0.02, rates=(1.0, 2.5)) for one in SPEC.operators),
    weights=Weights(performance=0.5, resources=0.3, reconfiguration=0.2),
    source_rates=(1.0, 2.5),
    memory={"arrays": {}},
    reason="cheaper",
)
ENTRIES: tuple[Entry, ...] = (
    HEADER,
    Remembered(memory={"state": {"a": [1, None]}, "arrays": {}}),
    Stepped(
        operator="count",
        event=Failed(command=AcquireNode(ticket=3, node_type=0), reason="no quota", at_s=4.0),
        commands=(StopQuery(), AcquireNode(ticket=4, node_type=0, node="n1")),
    ),
    RETUNED,
    Reconfigured(record=RECORD),
    Noted(at_s=3.0, text="started"),
)


def test_who_decides_at_the_end_is_the_last_header_with_what_was_retuned_since() -> None:
    again = replace(RETUNED, weights=Weights(performance=0.2, resources=0.4, reconfiguration=0.4))
    other = replace(HEADER, controller=replace(SPEC, levels=5))
    retuned = replace(
        SPEC,
        application=again.application,
        operators=again.operators,
        weights=again.weights,
        source_rates=again.source_rates,
    )
    assert latest_header([]) is None
    assert latest_header([RETUNED]) is None
    assert latest_header([HEADER, RETUNED, again]) == replace(HEADER, controller=retuned)
    assert latest_header([HEADER, RETUNED, other]) == other


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: type(entry).__name__)
def test_other_entries_read_as_they_were(entry: Entry) -> None:
    assert decoded(encoded(entry)) == entry


def test_a_journal_of_an_earlier_version_reads_without_what_was_given_up_since() -> None:
    header = {**json.loads(encoded(HEADER)), "about": {"version": "0.1", "application": "top-routes"}}
    start = {"kind": "StartQuery", "partitions": 8}
    failed = {"kind": "Failed", "command": start, "reason": "bad state", "at_s": 4.0}
    stepped = {"kind": "Stepped", "operator": "count", "event": failed, "commands": [start]}
    assert decoded(json.dumps(header)) == HEADER
    assert decoded(json.dumps(stepped)) == Stepped(
        operator="count",
        event=Failed(command=StartQuery(), reason="bad state", at_s=4.0),
        commands=(StartQuery(),),
    )


# As journals have them on disk: whoever renames a class or a field here makes old journals unreadable.
RECORDED_EVENTS = (
    '{"kind":"Granted","change":{"add":[{"node_type":0,"node":null}],"remove":["a"],"partitions":8},"at_s":1.0}',
    '{"kind":"NodeReady","ticket":1,"replica":{"name":"a","node_type":0,"node":"n"},"at_s":1.0}',
    '{"kind":"FirstTaskSeen","replica":"a","at_s":1.0}',
    '{"kind":"Left","replica":"a","at_s":1.0}',
    '{"kind":"Lost","replica":"a","at_s":1.0}',
    '{"kind":"Stopped","at_s":1.0}',
    '{"kind":"Copied","at_s":1.0}',
    '{"kind":"Repartitioned","at_s":1.0,"state_moved_bytes":7}',
    '{"kind":"Restored","at_s":1.0}',
    '{"kind":"Kept","at_s":1.0}',
    '{"kind":"Running","at_s":1.0}',
    '{"kind":"Failed","command":{"kind":"StopQuery"},"reason":"r","at_s":1.0}',
    '{"kind":"Elapsed","at_s":1.0}',
)
RECORDED_COMMANDS = (
    '{"kind":"AcquireNode","ticket":1,"node_type":0,"node":null}',
    '{"kind":"CancelAcquire","ticket":1}',
    '{"kind":"Decommission","replica":"a"}',
    '{"kind":"ReleaseNode","replica":"a"}',
    '{"kind":"StopQuery"}',
    '{"kind":"CopyCheckpoint"}',
    '{"kind":"RepartitionState","partitions":8}',
    '{"kind":"RestoreCheckpoint"}',
    '{"kind":"StartQuery"}',
)


@pytest.mark.parametrize("event", RECORDED_EVENTS)
def test_what_was_recorded_of_reconfigurations_reads_and_is_written_the_same(event: str) -> None:
    line = (
        f'{{"kind":"Stepped","operator":"count","event":{event},"commands":[{",".join(RECORDED_COMMANDS)}]}}'
    )
    assert encoded(decoded(line)) == line


def test_what_was_given_up_of_one_kind_is_still_an_error_in_another() -> None:
    with pytest.raises(InputError, match="unknown field 'about'"):
        decoded('{"kind":"Noted","at_s":1,"text":"a","about":{}}')
    stepped = {"kind": "Stepped", "operator": "count", "event": {"kind": "Elapsed", "at_s": 1.0}}
    with pytest.raises(InputError, match="unknown field 'partitions'"):
        decoded(json.dumps({**stepped, "commands": [{"kind": "StopQuery", "partitions": 8}]}))


def test_what_was_not_measured_stays_unknown_and_saturation_stays_infinite() -> None:
    entry = Ticked(
        seen=app(1.0, one(1.0, 2, response_time_s=inf, arrival_rate=None)),
        plan=Plan(decisions={}, requests=(), verdict=Verdict(()), vetoes=(), granted=()),
    )
    operator = json.loads(encoded(entry))["seen"]["operators"][0]
    assert (operator["response_time_s"], operator["arrival_rate"]) == ("inf", None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ("[]", "it must be a JSON object"),
        ('{"kind":"Dream"}', "entry of kind 'Dream'; known kinds: Header"),
        ('{"kind":"Noted","at_s":1}', "field 'text' is missing"),
        ('{"kind":"Noted","at_s":1,"text":"a","tone":"b"}', "unknown field 'tone'"),
        ('{"kind":"Noted","at_s":true,"text":"a"}', "Noted.at_s: True is not a float"),
        ('{"kind":"Noted","at_s":1,"text":null}', "Noted.text: None is not a str"),
        ('{"kind":"Header","schema":1}', "field 'policies' is missing"),
        ('{"kind":"Retuned","policies":{}}', "field 'operators' is missing"),
        ('{"kind":"Header","schema":99}', "schema 99; this version reads schemas 1 and 2"),
    ],
)
def test_a_line_that_is_no_entry_says_what_is_wrong(line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        decoded(line)


@pytest.mark.parametrize("never", [nan, inf, -inf])
def test_a_round_that_was_seen_at_no_time_is_no_entry(never: float) -> None:
    nothing = Plan(decisions={}, requests=(), verdict=Verdict(()), vetoes=(), granted=())
    for seen, who in ((app(never, one(1.0, 1)), "the application"), (app(1.0, one(never, 1)), "'count'")):
        with pytest.raises(InputError, match=f"{who} seen at {never} s; a time must be finite"):
            decoded(encoded(Ticked(seen=seen, plan=nothing)))


def test_a_torn_last_line_is_left_out_and_any_other_bad_line_named() -> None:
    good, torn = encoded(ENTRIES[-1]), encoded(ENTRIES[0])[:40]
    assert list(decoded_lines([f"{good}\n", torn])) == [ENTRIES[-1]]
    with pytest.raises(InputError, match="line 2: not JSON"):
        list(decoded_lines([f"{good}\n", f"{torn}\n", f"{good}\n"]))
    with pytest.raises(InputError, match="line 1: not JSON"):
        list(decoded_lines([f"{torn}\n"]))


def test_a_journal_file_goes_on_after_a_crash_in_the_middle_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "run" / "journal.jsonl"
    with JournalFile(path) as journal:
        for entry in ENTRIES:
            journal.append(entry)
    whole = path.read_bytes()
    for cut in (len(whole), len(whole) - 1, len(whole) - 20):
        path.write_bytes(whole[:cut])
        kept = list(ENTRIES) if cut >= len(whole) - 1 else list(ENTRIES[:-1])
        assert read_journal(path) == kept
    with JournalFile(path) as journal:
        journal.append(Noted(at_s=4.0, text="resumed"))
    assert read_journal(path) == [*ENTRIES[:-1], Noted(at_s=4.0, text="resumed")]


def test_a_journal_that_cannot_be_written_says_so_and_keeps_what_it_had(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write"):
        JournalFile(tmp_path)
    with pytest.raises(InputError, match="No such file"):
        read_journal(tmp_path / "nowhere.jsonl")
    full = JournalFile(Path("/dev/full"))
    with pytest.raises(OSError, match="journal /dev/full: cannot write: No space left"):
        full.append(ENTRIES[-1])
    full.close()


def test_of_a_long_journal_only_what_is_asked_for_is_decoded(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with JournalFile(path) as journal:
        for entry in ENTRIES:
            journal.append(entry)
    kinds = (Header, Noted)
    assert read_journal(path, *kinds) == [one for one in ENTRIES if isinstance(one, kinds)]
    assert entries_of(path, Noted) == [one for one in ENTRIES if isinstance(one, Noted)]
    assert entries_of(tmp_path / "nowhere.jsonl", Noted) == []
    lines = path.read_text()
    path.write_text('{"kind":"Ticked","of":"another time"}\n' + lines)
    assert len(read_journal(path, *kinds)) == sum(isinstance(one, kinds) for one in ENTRIES)
    path.write_text('{"kind":"Noted","of":"another time"}\n' + lines)
    with pytest.raises(InputError, match="line 1"):
        read_journal(path, *kinds)
