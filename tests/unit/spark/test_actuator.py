"""What the actuator makes of the protocol's commands and of what it sees, without Spark."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fake_checkpoints import Repartitioning, new_checkpoint, partitions_of
from penstock.domain.deployment import Replicas
from penstock.domain.objective import Objective
from penstock.domain.request import ScaleIn, ScaleOut, Verdict
from penstock.reconfigure.interrupted import interrupted
from penstock.reconfigure.method import Method
from penstock.reconfigure.words import Commands, Ending, Event, Record
from penstock.runtimes.spark.actuator import SparkActuator
from penstock.runtimes.spark.executors import Executor
from penstock.runtimes.spark.nodes import Node
from penstock.runtimes.spark.stream_log import StreamLog
from penstock.runtimes.spark.topology import App, Chain

KIND = "standard"
CHAIN = "count"


def chains(method: Method) -> dict[str, Chain]:
    app = App("counts", objective=Objective(response_time_s=5))
    source = app.source("s", schema="id long")
    stateful = method is Method.PAUSE_AND_RESUME
    counted = app.operator(
        CHAIN, lambda frame: frame, source, max_replicas=4, stateful=stateful, protocol=method
    )
    app.sink("out", counted)
    return {chain.name: chain for chain in app.chains()}


@dataclass
class World:
    """An application, its nodes and the time, all of which do as they are told."""

    work: Path
    chains: dict[str, Chain]
    now_s: float = 0.0
    there: dict[str, Executor | None] = field(default_factory=dict)
    working: set[str] = field(default_factory=set)  # executors that have had tuples
    queries: set[str] = field(default_factory=lambda: {CHAIN})
    parts: int = 0
    expected: bool = False
    done: list[str] = field(default_factory=list)

    def checkpoint(self, chain: str) -> Path:
        return self.work / chain

    def log(self, stream: str) -> StreamLog:
        return StreamLog(self.work / "streams" / stream).create()

    def share_among(self, chain: str, replicas: int) -> None:
        self.parts = replicas

    def expect_replicas(self, chain: str, expected: bool) -> None:
        self.expected = expected

    def served(self, chain: str, executor: str) -> bool:
        return executor in self.working

    def warm(self, chain: str, executors: int, cold: frozenset[str]) -> None: ...

    def rest_chain(self, chain: str, *, within_s: float) -> None:
        self.queries.discard(chain)

    def start_query(self, chain: str) -> None:
        self.done.append("start")

    def repartition(self, checkpoint: str, partitions: int) -> None:
        self.done.append("repartition")

    def acquire(self, chain: str, kind: str) -> Node:
        node = Node(name=f"{chain}-{len(self.there) + 1}", chain=chain, kind=kind)
        self.there[node.name] = None
        return node

    def drain(self, node: Node) -> None: ...

    def release(self, node: Node) -> None:
        self.there.pop(node.name, None)

    def executors(self) -> dict[str, Executor | None]:
        return dict(self.there)

    def is_warm(self, node: Node) -> bool:
        return False

    def comes(self, node: str) -> None:
        self.there[node] = Executor(id=node, host="h", profile=1, busy_s=0.0, tasks=0)


@dataclass
class Started:
    world: World
    actuator: SparkActuator
    ended: list[Record]

    def grow_to(self, replicas: int) -> None:
        request = ScaleOut(operator=CHAIN, target=Replicas((replicas,)), nodes=(), score=1.0, reason="")
        self.actuator.apply(Verdict((request,)))

    def poll(self, at_s: float) -> None:
        self.world.now_s = at_s
        self.actuator.poll()

    def poll_until(self, true: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + 5
        while not true():
            assert time.monotonic() < deadline_s, "it did not happen"
            time.sleep(0.005)
            self.actuator.poll()


@pytest.fixture
def method() -> Method:
    return Method.LIVE


@pytest.fixture
def started(tmp_path: Path, method: Method, monkeypatch: pytest.MonkeyPatch) -> Iterator[Started]:
    world: Any = World(tmp_path, chains(method))
    session: Any = SimpleNamespace(_streamingCheckpointManager=world)
    monkeypatch.setattr(SparkActuator, "_now", lambda _: world.now_s)
    ended: list[Record] = []
    actuator = SparkActuator(world, session, world, [KIND], ended=ended.append)
    actuator.adopt({CHAIN: [world.acquire(CHAIN, KIND)]})
    world.comes("count-1")
    yield Started(world, actuator, ended)
    actuator.stop()


def test_what_a_replica_took_is_known_when_it_works(started: Started) -> None:
    started.grow_to(2)
    started.world.comes("count-2")
    started.poll(6.0)
    assert started.actuator.ready_s(CHAIN) is None
    assert started.world.expected
    fewer = ScaleIn(operator=CHAIN, target=Replicas((1,)), nodes=(), score=1.0, reason="")
    started.actuator.apply(Verdict((fewer,)))
    started.world.working.add("count-2")
    started.poll(8.0)
    assert started.actuator.ready_s(CHAIN) == 8.0
    assert not started.world.expected
    assert [record.outcome for record in started.ended] == [Ending.REFUSED, Ending.DONE]


def test_a_replica_that_waited_for_tuples_says_nothing_about_how_long_one_takes(started: Started) -> None:
    started.grow_to(2)
    started.world.comes("count-2")
    started.poll(6.0)
    started.poll(70.0)
    assert not started.actuator.reconfiguring
    started.world.working.add("count-2")
    started.poll(30_000.0)
    assert started.actuator.ready_s(CHAIN) is None


@pytest.mark.parametrize("method", [Method.PAUSE_AND_RESUME])
def test_a_slow_command_asked_for_again_goes_on_and_none_begins_before_it_ends(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, may_end = started.world, threading.Event()

    def copied(_: Path) -> None:
        world.done.append("copy")
        assert may_end.wait(5)
        world.done.append("copied")

    monkeypatch.setattr("penstock.runtimes.spark.checkpoints.copy", copied)
    started.grow_to(2)
    world.comes("count-2")
    started.poll_until(lambda: world.done == ["copy"])
    started.poll(world.now_s + 121)
    started.poll(world.now_s + 121)
    time.sleep(0.05)
    assert world.done == ["copy"]
    may_end.set()
    started.poll_until(lambda: "start" in world.done)
    assert world.done == ["copy", "copied", "repartition", "start"]


@pytest.mark.parametrize("method", [Method.PAUSE_AND_RESUME])
def test_what_follows_a_slow_command_that_was_given_up_waits_for_its_end(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, may_end = started.world, threading.Event()

    def copied(_: Path) -> None:
        assert may_end.wait(5)
        world.done.append("copied")

    monkeypatch.setattr("penstock.runtimes.spark.checkpoints.copy", copied)
    started.grow_to(2)
    world.comes("count-2")
    started.poll_until(lambda: not world.queries)
    started.actuator.poll()
    for _ in range(3):  # tries
        started.poll(world.now_s + 121)
    time.sleep(0.05)
    assert world.done == []
    may_end.set()
    started.poll_until(lambda: "start" in world.done)
    assert world.done == ["copied", "start"]


class Killed(BaseException):
    """The driver dies here."""


@dataclass
class Driver:
    """One life of a driver, which writes its steps down, and dies after so many."""

    world: World
    steps: list[tuple[str, Event, Commands]]
    lives_for: int
    ended: list[Record] = field(default_factory=list)

    def actuator(self) -> SparkActuator:
        world: Any = self.world
        session: Any = SimpleNamespace(_streamingCheckpointManager=world)
        return SparkActuator(
            world, session, world, [KIND], ended=self.ended.append, stepped=self._written_down
        )

    def _written_down(self, name: str, event: Event, commands: Commands) -> None:
        if self.lives_for == 0:
            raise Killed
        self.lives_for -= 1
        self.steps.append((name, event, commands))

    def changes(self, replicas: int) -> None:
        """As far as it comes."""
        actuator = self.actuator()
        try:
            actuator.adopt({CHAIN: [self.world.acquire(CHAIN, KIND)]})
            self.world.comes("count-1")
            request = ScaleOut(operator=CHAIN, target=Replicas((replicas,)), nodes=(), score=1.0, reason="")
            actuator.apply(Verdict((request,)))
            deadline_s = time.monotonic() + 5
            while not self.ended:
                assert time.monotonic() < deadline_s, "it did not happen"
                for node in self.world.there:
                    self.world.comes(node)
                    if "start" in self.world.done:
                        self.world.working.add(node)
                actuator.poll()
                time.sleep(0.002)
        finally:
            actuator.stop()


def test_a_driver_that_dies_at_any_step_of_a_change_leaves_what_the_next_goes_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, after = [], 0
    while True:
        world = World(tmp_path / str(after), chains(Method.PAUSE_AND_RESUME))
        monkeypatch.setattr(SparkActuator, "_now", lambda _: 0.0)
        checkpoint, spark = new_checkpoint(world.checkpoint(CHAIN), partitions=5), Repartitioning()
        monkeypatch.setattr(world, "repartition", spark)
        driver = Driver(world, [], lives_for=after)
        try:
            driver.changes(2)
        except Killed:
            pass
        else:
            break
        next_one = Driver(world, driver.steps, lives_for=100).actuator()
        next_one.go_on(interrupted(driver.steps))
        next_one.adopt({CHAIN: []})
        next_one.stop()
        left.append(partitions_of(checkpoint))
        assert next_one._hands[CHAIN].state.fleet.partitions == left[-1]
        after += 1
    assert [record.outcome for record in driver.ended] == [Ending.DONE]
    # granted, node ready, stopped, copied | repartitioned, runs, works: then nothing more is begun
    assert left == [5, 5, 5, 5, 2, 2, 2]
