"""What a person may tell a running controller, and what is offered to it."""

import socket
from pathlib import Path

import pytest

from penstock.control.journal import Header
from penstock.control.orders import Lift, Order, Override, Pause, Resume
from penstock.control.spec import ControllerSpec, Manager, operator_specs
from penstock.domain.application import Operator, pipeline
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.journal_file import JournalFile
from penstock.live.inbox import ORDERS, give, obeyed, pending
from penstock.live.settings import node_kinds
from penstock.runtimes.spark.cluster import ClusterError, NodeKind, check_master

GIVEN: tuple[Order, ...] = (
    Pause(until_s=1e9),
    Override(operator="heavy+last", target=Replicas((1, 2))),
    Resume(),
    Lift(operator="heavy+last"),
)


def taken(folder: Path) -> tuple[Order, ...]:
    """As a controller does: read, write down, take away."""
    waiting = pending(folder)
    obeyed(waiting)
    return tuple(order for order in waiting.values() if order is not None)


def test_orders_are_obeyed_once_in_the_order_they_were_given(tmp_path: Path) -> None:
    for order in GIVEN:
        give(tmp_path / ORDERS, order)
    assert taken(tmp_path / ORDERS) == GIVEN
    assert taken(tmp_path / ORDERS) == ()


@pytest.mark.parametrize(
    "rubbish",
    [
        "",
        "[]",
        '{"kind": "dance", "order": {}}',
        '{"kind": "pause", "order": {"until_s": "late"}}',
        '{"kind": "pause", "order": {"until_s": 1e400}}',
    ],
)
def test_what_is_no_order_changes_nothing_and_stands_in_no_ones_way(tmp_path: Path, rubbish: str) -> None:
    (tmp_path / "0.json").write_text(rubbish)
    give(tmp_path, Resume())
    assert taken(tmp_path) == (Resume(),)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_among_the_orders_is_none(tmp_path: Path) -> None:
    (tmp_path / "x.json").mkdir()
    assert taken(tmp_path) == ()


def a_run(folder: Path) -> Path:
    """A run folder as a controller of two chains of operators and two node types leaves it."""
    graph = pipeline(
        "fused",
        Operator(name="light", service_time_s=0.01, max_replicas=2),
        Operator(name="heavy+last", service_time_s=0.01, max_replicas=3),
    )
    objective = Objective(response_time_s=2.0)
    spec = ControllerSpec(
        application=graph,
        objective=objective,
        node_types=(NodeType(name="slow", speedup=1, price=1), NodeType(name="fast", speedup=2, price=3)),
        operators=operator_specs(graph, objective),
        operator_policy=Manager(name="threshold-c"),
    )
    with JournalFile(folder / "journal.jsonl") as journal:
        journal.append(Header(controller=spec))
    return folder


def ordered(*words: str) -> None:
    from penstock.cli.app import app

    app(["order", *words], standalone_mode=False)


def test_the_command_leaves_the_order_where_the_run_finds_it(tmp_path: Path) -> None:
    run = str(a_run(tmp_path))
    ordered("override", run, "heavy", "1,2")
    ordered("lift", run, "last")
    ordered("resume", run)
    assert taken(tmp_path / "work" / ORDERS) == (GIVEN[1], GIVEN[3], GIVEN[2])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("override", "RUN", "heavy", "4,0"), "'heavy' can have 1 to 3"),
        (("override", "RUN", "heavy", "0,0"), "'heavy' can have 1 to 3"),
        (("override", "RUN", "heavy", "2"), "give one number for each node type: slow, fast"),
        (("override", "RUN", "heavy", "two,1"), "whole numbers"),
        (("override", "RUN", "havy", "1,0"), "unknown; choose one of light, heavy\\+last"),
        (("lift", "RUN", "havy"), "unknown; choose one of light, heavy\\+last"),
        (("pause", "RUN", "--minutes", "inf"), "positive and finite"),
        (("pause", "RUN/nowhere"), "No such file"),
    ],
)
def test_an_order_nobody_could_obey_is_refused(
    tmp_path: Path, words: tuple[str, ...], complaint: str
) -> None:
    run = a_run(tmp_path)
    with pytest.raises(InputError, match=complaint):
        ordered(*(word.replace("RUN", str(run)) for word in words))
    assert not (tmp_path / "work").exists()


def test_a_run_that_has_ended_takes_no_orders(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    (run / "summary.json").write_text("{}")
    with pytest.raises(InputError, match="has ended"):
        ordered("resume", str(run))


def test_node_types_are_read_from_a_command_line() -> None:
    assert node_kinds("slow:1:1, fast:2:2.5:4") == (
        NodeKind(name="slow"),
        NodeKind(name="fast", speedup=2.0, price=2.5, slots=4),
    )


@pytest.mark.parametrize(
    "text",
    ["slow", "slow:1", ":1:1", "slow:1:1:2:3", "slow:x:1", "slow:1:1:1.5", "slow:1:1:inf", "slow:inf:1",
     "slow:0:1", "slow:1:-1", "slow:1:1,slow:2:1"],
)  # fmt: skip
def test_node_types_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        node_kinds(text)


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:7077",
        "spark://",
        "spark://127.0.0.1",
        "spark://h:99999",
        "yarn://h:1",
        "spark://h:1/x",
        "local[*]",
    ],
)
@pytest.mark.parametrize("ours", [False, True])
def test_what_is_no_address_of_a_master_is_refused(url: str, ours: bool) -> None:
    with pytest.raises(InputError, match="master"):
        check_master(url, ours=ours)


@pytest.mark.parametrize("url", ["yarn", "k8s://https://h:6443"])
def test_masters_that_spark_finds_by_itself_serve_unless_workers_of_ours_must_join_them(url: str) -> None:
    check_master(url, ours=False)
    with pytest.raises(InputError, match="not a standalone master"):
        check_master(url, ours=True)


def test_a_master_that_does_not_answer_is_named() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        url = f"spark://127.0.0.1:{probe.getsockname()[1]}"
        with pytest.raises(ClusterError, match=rf"master {url}: does not answer: Connection refused"):
            check_master(url, ours=False)
