"""Spares without Spark: who gets which node, and what becomes of those nobody needs."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.apps.paced.form import paced
from penstock.domain.application import Operator, pipeline
from penstock.domain.objective import Objective
from penstock.live.run import LiveRun
from penstock.live.settings import LiveSettings, controller_for
from penstock.runtimes.spark.cluster import ClusterError, NodeKind
from penstock.runtimes.spark.executors import Executor
from penstock.runtimes.spark.nodes import Node
from penstock.runtimes.spark.spares import SpareNodes

KIND = "standard"
PROFILES = {"parse": 1, "count": 2}


@dataclass
class Supply:
    """Nodes whose executors come and die when told so."""

    slots: int = 100
    there: dict[str, Executor | None] = field(default_factory=dict)
    released: list[str] = field(default_factory=list)
    started: int = 0

    def acquire(self, chain: str, kind: str) -> Node:
        if len(self.there) >= self.slots:
            raise ClusterError("all slots are taken")
        self.started += 1
        node = Node(name=f"{chain}-{self.started}", chain=chain, kind=kind)
        self.there[node.name] = None
        return node

    def drain(self, node: Node) -> None: ...

    def release(self, node: Node) -> None:
        self.released.append(node.name)
        self.there.pop(node.name, None)

    def executors(self) -> dict[str, Executor | None]:
        return dict(self.there)

    def is_warm(self, node: Node) -> bool:
        return False

    def comes(self, name: str) -> None:
        chain, _, number = name.partition("-")
        self.there[name] = Executor(id=number, host="h", profile=PROFILES[chain], busy_s=0.0, tasks=0)

    def dies(self, name: str) -> None:
        del self.there[name]


@dataclass
class Running:
    """Warms when allowed to, and holds until the file is there."""

    work: Path
    may_warm: threading.Event = field(default_factory=threading.Event)
    warmed: list[tuple[str, int, frozenset[str]]] = field(default_factory=list)
    holding: list[str] = field(default_factory=list)  # executors
    forgotten: list[str] = field(default_factory=list)
    empty: set[str] = field(default_factory=set)  # streams without a tuple
    broken: bool = False

    @property
    def chains(self) -> dict[str, Any]:
        return {name: SimpleNamespace(name=name, inputs=(f"to-{name}",)) for name in PROFILES}

    def log(self, stream: str) -> Any:
        return SimpleNamespace(last=lambda: None if stream in self.empty else "a batch")

    def warm(self, name: str, executors: int, cold: frozenset[str]) -> None:
        self.warmed.append((name, executors, cold))
        assert self.may_warm.wait(10)
        if self.broken:
            raise RuntimeError("the executor died")

    def hold(self, name: str, executors: int, executor: str, free: Path) -> None:
        self.holding.append(executor)
        while not free.exists():
            time.sleep(0.005)
        self.holding.remove(executor)

    def forget_served(self, chain: str, executor: str) -> None:
        self.forgotten.append(executor)


def until(true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 5
    while not true():
        assert time.monotonic() < deadline_s, "it did not happen"
        time.sleep(0.005)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.runtimes.spark.spares._LOOK_S", 0.005)
    monkeypatch.setattr("penstock.runtimes.spark.spares._ENDS_S", 0.2)


@pytest.fixture
def supply() -> Supply:
    return Supply()


@pytest.fixture
def running(tmp_path: Path) -> Running:
    made = Running(tmp_path)
    made.may_warm.set()
    return made


def spares_of(supply: Supply, running: Running, number: int = 1) -> SpareNodes:
    app: Any = running
    return SpareNodes(supply, app, spares=number, kind=KIND)


@pytest.fixture
def spares(supply: Supply, running: Running) -> Iterator[SpareNodes]:
    made = spares_of(supply, running)
    yield made
    running.may_warm.set()
    made.close()


def held(spares: SpareNodes, supply: Supply, running: Running) -> None:
    """A spare of `parse`, parse-1, that is warm and held; one of `count` is on its way."""
    spares.refill()
    supply.comes("parse-1")
    until(lambda: running.holding == ["1"])


def test_a_spare_that_is_warm_becomes_a_replica_at_once_and_another_takes_its_place(
    spares: SpareNodes, supply: Supply, running: Running
) -> None:
    held(spares, supply, running)
    assert (spares.waiting, spares.ready("parse"), spares.ready("count")) == (1, 1, 0)
    node = spares.acquire("parse", KIND)
    assert node.name == "parse-1"
    assert spares.is_warm(node)
    found = spares.executors()["parse-1"]
    assert found is not None
    assert running.forgotten == ["1"]  # what it did before it was held is no task of the replica
    until(lambda: not running.holding)
    assert (spares.waiting, spares.ready("parse")) == (0, 0)
    spares.refill()
    assert set(supply.there) == {"parse-1", "count-2", "parse-3"}
    spares.refill()
    assert supply.started == 3


def test_a_spare_is_tried_out_beside_the_executors_of_its_own_chain(
    spares: SpareNodes, supply: Supply, running: Running
) -> None:
    for name in ("count-90", "parse-91"):
        supply.comes(name)
    held(spares, supply, running)
    ((chain, executors, cold),) = running.warmed
    assert (chain, executors, len(cold)) == ("parse", 2, 1)
    assert "91" not in cold


def test_a_spare_on_its_way_serves_as_the_replica_and_is_tried_out_as_one(
    spares: SpareNodes, supply: Supply, running: Running
) -> None:
    spares.refill()
    node = spares.acquire("parse", KIND)
    assert node.name == "parse-1"
    assert supply.started == 2  # the other one is for `count`
    supply.comes("parse-1")
    assert spares.executors()["parse-1"] is not None
    assert not spares.is_warm(node)
    until(lambda: not any(thread.name == "spare-parse-1" for thread in threading.enumerate()))
    assert not running.warmed  # by whoever has it now


def test_a_spare_taken_while_it_tries_its_work_is_there_when_it_has(
    spares: SpareNodes, supply: Supply, running: Running
) -> None:
    running.may_warm.clear()
    spares.refill()
    supply.comes("parse-1")
    until(lambda: bool(running.warmed))
    node = spares.acquire("parse", KIND)
    assert node.name == "parse-1"
    assert spares.executors()["parse-1"] is None
    assert not spares.is_warm(node)
    running.may_warm.set()
    until(lambda: spares.executors()["parse-1"] is not None)
    assert spares.is_warm(node)
    assert not running.holding


def test_of_several_spares_the_one_farthest_on_its_way_is_taken(supply: Supply, running: Running) -> None:
    spares = spares_of(supply, running, 2)
    spares.refill()
    supply.comes("parse-2")
    until(lambda: running.holding == ["2"])
    assert spares.acquire("parse", KIND).name == "parse-2"
    assert spares.acquire("parse", KIND).name == "parse-1"
    assert spares.acquire("parse", KIND).name == "parse-5"  # none is left
    spares.close()


def test_a_spare_that_dies_is_given_back_and_replaced(
    spares: SpareNodes, supply: Supply, running: Running
) -> None:
    held(spares, supply, running)
    supply.dies("parse-1")
    spares.executors()
    until(lambda: not running.holding)  # nobody looks for an executor that is gone
    assert supply.released == ["parse-1"]
    spares.refill()
    assert set(supply.there) == {"count-2", "parse-3"}
    assert spares.acquire("parse", KIND).name == "parse-3"


def test_a_spare_that_could_not_try_its_work_is_held_no_less(
    spares: SpareNodes, supply: Supply, running: Running
) -> None:
    running.broken = True
    spares.refill()
    supply.comes("parse-1")
    until(lambda: spares.ready("parse") == 1)
    node = spares.acquire("parse", KIND)
    assert spares.executors()["parse-1"] is not None
    assert node.name == "parse-1"


def test_where_there_is_no_room_there_are_no_spares(supply: Supply, running: Running) -> None:
    supply.slots = 1
    spares = spares_of(supply, running)
    spares.refill()
    assert set(supply.there) == {"parse-1"}
    spares.close()


def test_a_replica_takes_the_room_of_another_chains_spare(supply: Supply, running: Running) -> None:
    supply.slots = 2
    spares = spares_of(supply, running)
    held(spares, supply, running)
    assert spares.acquire("count", KIND).name == "count-2"
    assert spares.acquire("count", KIND).name == "count-3"
    assert supply.released == ["parse-1"]
    with pytest.raises(ClusterError, match="all slots are taken"):
        spares.acquire("count", KIND)
    spares.close()


def test_spares_and_replicas_together_stay_within_what_is_allowed(supply: Supply, running: Running) -> None:
    app: Any = running
    spares = SpareNodes(supply, app, spares=1, kind=KIND, allowed=lambda kinds: len(kinds) <= 3)
    replica = spares.acquire("parse", KIND)
    spares.acquire("count", KIND)
    spares.refill()
    assert set(supply.there) == {"parse-1", "count-2", "parse-3"}, "no room for another spare"
    assert spares.acquire("count", KIND).name == "count-4"
    assert set(supply.there) == {"parse-1", "count-2", "count-4"}, "the replica takes its place"
    spares.acquire("count", KIND)  # more replicas are the safety chain's business
    spares.refill()
    assert supply.started == 5
    spares.release(replica)
    spares.release(Node(name="count-2", chain="count", kind=KIND))
    spares.refill()
    assert supply.started == 6
    spares.close()


def test_the_caps_of_a_run_hold_for_its_spares_too(tmp_path: Path) -> None:
    app = paced(
        pipeline("caps", Operator(name="parse", service_time_s=0.01)), objective=Objective(response_time_s=1)
    )
    kinds = (NodeKind(name="slow", price=0.1), NodeKind(name="fast", price=0.25))

    def allowed(*names: str, **caps: Any) -> bool:
        controller = controller_for(app, kinds=kinds, **caps)
        settings = LiveSettings(out=tmp_path, kinds=kinds)
        live = LiveRun(app, controller, settings, feeder_of=lambda feeds: pytest.fail("nobody feeds here"))
        return live._is_within_caps(names)

    assert allowed("slow", "slow", "fast")
    assert allowed("slow", "slow", "slow", max_nodes=3, max_cost=0.3)  # which is less than their sum
    assert not allowed("slow", "slow", "slow", "slow", max_nodes=3)
    assert not allowed("slow", "fast", max_cost=0.3)


def test_there_is_no_spare_before_there_are_tuples_to_try(
    spares: SpareNodes, supply: Supply, running: Running
) -> None:
    running.empty.add("to-count")
    spares.refill()
    assert set(supply.there) == {"parse-1"}
    running.empty.clear()
    spares.refill()
    assert set(supply.there) == {"parse-1", "count-2"}


def test_a_node_that_was_a_spare_is_forgotten_when_it_is_released(
    spares: SpareNodes, supply: Supply, running: Running
) -> None:
    held(spares, supply, running)
    node = spares.acquire("parse", KIND)
    spares.release(node)
    assert not spares.is_warm(node)
    assert supply.released == ["parse-1"]


def test_at_the_end_all_are_let_go_and_no_file_is_left(supply: Supply, running: Running) -> None:
    left = running.work / "spares-of-a-driver-that-was-killed"
    left.mkdir()
    spares = spares_of(supply, running)
    assert not left.exists()
    held(spares, supply, running)
    (place,) = running.work.glob("spares-*")
    spares.close()
    until(lambda: not running.holding)
    assert not place.exists()
    spares.refill()
    assert supply.started == 2


def test_a_trial_that_hangs_does_not_keep_the_application_from_stopping(
    supply: Supply, running: Running
) -> None:
    running.may_warm.clear()
    spares = spares_of(supply, running)
    spares.refill()
    supply.comes("parse-1")
    until(lambda: bool(running.warmed))
    began_s = time.monotonic()
    spares.close()
    assert time.monotonic() - began_s < 2
    running.may_warm.set()
    time.sleep(0.05)
    assert not running.holding
