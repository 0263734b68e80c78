"""Executors that Spark's own allocation starts and ends: counted, never touched. Without Spark."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from penstock.domain.objective import Objective
from penstock.reconfigure.words import Record
from penstock.runtimes.spark import sparks_own
from penstock.runtimes.spark.actuator import SparkActuator
from penstock.runtimes.spark.executors import Executor
from penstock.runtimes.spark.sparks_own import SparksOwnNodes
from penstock.runtimes.spark.topology import App, Chain

PROFILES = {"lookup": 1, "score": 2}


def chains() -> dict[str, Chain]:
    app = App("lookups", objective=Objective(response_time_s=5))
    looked_up = app.operator("lookup", lambda frame: frame, app.source("s", schema="id long"), max_replicas=8)
    app.sink("out", app.operator("score", lambda frame: frame, looked_up, max_replicas=4))
    return {chain.name: chain for chain in app.chains()}


@dataclass
class Running:
    """Remembers into how many parts the input of every chain is cut."""

    chains: dict[str, Chain] = field(default_factory=chains)
    profiles: dict[str, str] = field(default_factory=lambda: {name: name for name in PROFILES})
    parts: dict[str, int] = field(default_factory=dict)

    def share_among(self, chain: str, replicas: int) -> None:
        self.parts[chain] = replicas

    def expect_replicas(self, chain: str, expected: bool) -> None: ...

    def served(self, chain: str, executor: str) -> bool:
        return True


@dataclass
class World:
    there: dict[str, Executor] = field(default_factory=dict)
    running: Running = field(default_factory=Running)

    def starts(self, executor: str, profile: int) -> None:
        self.there[executor] = Executor(id=executor, host="h", profile=profile, busy_s=1.0, tasks=3)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(sparks_own, "executors", lambda _: made.there)
    monkeypatch.setattr(sparks_own, "known_to_spark", lambda _, profile: PROFILES[profile])
    return made


@pytest.fixture
def nodes(world: World) -> SparksOwnNodes:
    running: Any = world.running
    session: Any = None
    return SparksOwnNodes(session, running, kind="standard")


def counts(nodes: SparksOwnNodes) -> dict[str, int]:
    found = nodes.executors()
    of = {chain: nodes.nodes(chain) for chain in PROFILES}
    assert all(found[node.name] is not None for chain in PROFILES for node in of[chain])
    return {chain: len(those) for chain, those in of.items()}


def test_a_chain_has_as_many_replicas_as_there_are_executors_of_its_profile(
    nodes: SparksOwnNodes, world: World
) -> None:
    assert counts(nodes) == {"lookup": 0, "score": 0}
    for executor, profile in (("0", 1), ("1", 2), ("2", 1), ("3", 1), ("4", 0)):  # 0: stages of nobody
        world.starts(executor, profile)
    assert counts(nodes) == {"lookup": 3, "score": 1}
    del world.there["0"], world.there["3"]
    assert counts(nodes) == {"lookup": 1, "score": 1}
    assert nodes.reconfiguring == ()


def test_the_actuator_neither_mourns_nor_replaces_an_executor_and_leaves_the_work_cut_for_all(
    nodes: SparksOwnNodes, world: World
) -> None:
    running: Any = world.running
    session: Any = None
    ended: list[Record] = []
    actuator = SparkActuator(running, session, nodes, ["standard"], ended=ended.append)
    try:
        actuator.adopt({chain: [nodes.acquire(chain, "standard")] for chain in PROFILES})
        nodes.cut_for_all()
        for executors in (1, 3, 0):
            world.there.clear()
            for executor in range(executors):
                world.starts(str(executor), PROFILES["lookup"])
            actuator.poll()
            assert actuator.reconfiguring == ()
    finally:
        actuator.stop()
    assert ended == []
    assert world.running.parts == {"lookup": 8, "score": 4}


def test_nobody_else_sends_an_executor_away(nodes: SparksOwnNodes) -> None:
    place = nodes.acquire("lookup", "standard")
    for change in (nodes.drain, nodes.release):
        with pytest.raises(RuntimeError, match="Spark's own allocation decides"):
            change(place)
