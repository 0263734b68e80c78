"""Which executor belongs to which node, without Spark."""

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from penstock.domain.errors import InputError
from penstock.runtimes.spark import nodes
from penstock.runtimes.spark.cluster import ClusterError, NodeKind
from penstock.runtimes.spark.executors import Executor
from penstock.runtimes.spark.nodes import ProfileNodes

PROFILES = {"parse": 1, "count": 2}


@dataclass
class Spark:
    """Starts and ends executors when told so, and remembers what it was asked for."""

    there: dict[str, Executor] = field(default_factory=dict)
    wanted: dict[int, int] = field(default_factory=dict)
    sent_away: list[str] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)

    def add(self, profile: str) -> int:
        return PROFILES[profile]

    def ask(self, profile: int, executors: int) -> None:
        self.wanted[profile] = executors

    def send_away(self, executor: str, profile: int) -> None:
        self.sent_away.append(executor)

    def kill(self, executor: str) -> None:
        self.killed.append(executor)

    def serve_default(self) -> None: ...

    def remind(self) -> None: ...

    def starts(self, executor: str, profile: int) -> None:
        self.there[executor] = Executor(id=executor, host="h", profile=profile, busy_s=0.0, tasks=0)


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    made = Spark()
    monkeypatch.setattr(nodes, "executors", lambda _: made.there)
    return made


@pytest.fixture
def supply(spark: Spark) -> ProfileNodes:
    session: Any = None
    allocation: Any = spark
    profiles: Any = {name: name for name in PROFILES}
    return ProfileNodes(session, allocation, profiles, NodeKind(name="standard", slots=3))


def ids(supply: ProfileNodes) -> dict[str, str | None]:
    return {name: None if found is None else found.id for name, found in supply.executors().items()}


def test_a_node_gets_the_first_executor_of_its_profile_that_nobody_has(
    supply: ProfileNodes, spark: Spark
) -> None:
    supply.acquire("parse", "standard")
    supply.acquire("count", "standard")
    supply.acquire("parse", "standard")
    assert spark.wanted == {1: 2, 2: 1}
    assert ids(supply) == {"parse-1": None, "count-2": None, "parse-3": None}
    spark.starts("10", 1)
    spark.starts("9", 1)
    assert ids(supply) == {"parse-1": "9", "count-2": None, "parse-3": "10"}
    spark.starts("11", 1)  # one too many belongs to nobody, for now
    spark.starts("12", 2)
    assert ids(supply) == {"parse-1": "9", "count-2": "12", "parse-3": "10"}


def test_a_node_whose_executor_died_is_gone_and_the_replacement_serves_the_repair(
    supply: ProfileNodes, spark: Spark
) -> None:
    lost = supply.acquire("parse", "standard")
    spark.starts("1", 1)
    assert ids(supply) == {"parse-1": "1"}
    del spark.there["1"]
    assert ids(supply) == {}
    spark.starts("2", 1)  # Spark replaces it by itself
    assert ids(supply) == {}
    supply.acquire("parse", "standard")
    assert spark.wanted == {1: 1}  # the lost one is released by another thread, maybe later
    supply.release(lost)
    assert spark.wanted == {1: 1}
    assert spark.killed == []
    assert ids(supply) == {"parse-2": "2"}


def test_an_executor_found_by_another_thread_meanwhile_is_not_lost(
    supply: ProfileNodes, spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    supply.acquire("parse", "standard")
    other = threading.Thread(target=supply.executors)

    def looked_for(_: object) -> dict[str, Executor]:
        before = dict(spark.there)
        if not before:
            spark.starts("1", 1)
            other.start()
            other.join(0.2)  # it may get as far as it can
        return before

    monkeypatch.setattr(nodes, "executors", looked_for)
    assert ids(supply) == {"parse-1": None}
    other.join()
    assert ids(supply) == {"parse-1": "1"}


def test_an_executor_that_is_listed_again_was_not_lost(supply: ProfileNodes, spark: Spark) -> None:
    supply.acquire("parse", "standard")
    spark.starts("1", 1)
    supply.executors()
    listed = spark.there.pop("1")
    assert ids(supply) == {}
    spark.there["1"] = listed
    assert ids(supply) == {"parse-1": "1"}
    supply.acquire("parse", "standard")
    assert spark.wanted == {1: 2}


def test_an_executor_that_no_node_waits_for_is_killed_once(
    supply: ProfileNodes, spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    stays, given_up = supply.acquire("parse", "standard"), supply.acquire("parse", "standard")
    spark.starts("1", 1)
    spark.starts("2", 0)  # for stages of nobody
    supply.executors()
    supply.release(given_up)
    spark.starts("3", 1)  # was on its way
    supply.executors()
    assert spark.killed == [], "a node may ask for it in a moment"
    monkeypatch.setattr(nodes, "_UNCLAIMED_S", 0.0)
    supply.executors()
    supply.executors()
    assert spark.killed == ["3"]
    supply.acquire("parse", "standard")
    assert ids(supply) == {stays.name: "1", "parse-3": None}, "it is on its way out"


def test_the_replacement_of_a_lost_executor_is_killed_only_when_its_node_is_released(
    supply: ProfileNodes, spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "_UNCLAIMED_S", 0.0)
    lost = supply.acquire("parse", "standard")
    spark.starts("1", 1)
    supply.executors()
    del spark.there["1"]
    spark.starts("2", 1)
    supply.executors()
    assert spark.killed == [], "a repair may ask for it"
    supply.release(lost)
    supply.executors()
    assert spark.killed == ["2"]


def test_a_released_executor_is_given_to_nobody_while_it_ends(supply: ProfileNodes, spark: Spark) -> None:
    released = supply.acquire("parse", "standard")
    spark.starts("1", 1)
    supply.executors()
    supply.acquire("parse", "standard")
    supply.release(released)
    assert spark.killed == ["1"]
    assert ids(supply) == {"parse-2": None}


def test_a_node_on_its_way_out_is_wanted_no_more_and_has_its_executor_until_that_left(
    supply: ProfileNodes, spark: Spark
) -> None:
    stays, leaves = supply.acquire("parse", "standard"), supply.acquire("parse", "standard")
    spark.starts("1", 1)
    spark.starts("2", 1)
    assert ids(supply) == {"parse-1": "1", "parse-2": "2"}
    supply.drain(leaves)
    supply.drain(leaves)
    assert spark.sent_away == ["2"]
    assert ids(supply) == {"parse-1": "1", "parse-2": "2"}
    supply.acquire("parse", "standard")
    assert spark.wanted == {1: 2}
    del spark.there["2"]
    supply.release(leaves)
    assert spark.killed == []
    supply.release(stays)
    assert spark.killed == ["1"]  # whatever ran on it
    assert spark.wanted == {1: 1}


def test_there_is_no_room_for_more_than_the_slots_and_no_other_type(supply: ProfileNodes) -> None:
    for _ in range(3):
        supply.acquire("parse", "standard")
    with pytest.raises(ClusterError, match="all 3 slots are taken"):
        supply.acquire("count", "standard")
    with pytest.raises(InputError, match="node type 'huge': unknown; choose one of standard"):
        supply.acquire("count", "huge")


def test_so_many_executors_start_at_once_and_the_others_follow(spark: Spark) -> None:
    session: Any = None
    allocation: Any = spark
    profiles: Any = {name: name for name in PROFILES}
    supply = ProfileNodes(session, allocation, profiles, NodeKind(name="standard"), at_once=2)
    for chain in ("parse", "parse", "parse", "parse", "count"):
        supply.acquire(chain, "standard")
    assert spark.wanted == {1: 2, 2: 1}, "the first of a chain does not wait"
    for executor, profile in (("1", 1), ("2", 1), ("3", 2)):
        spark.starts(executor, profile)
    supply.executors()
    assert spark.wanted[1] == 4
    supply.acquire("parse", "standard")
    assert spark.wanted[1] == 4, "two are still to come"
    del spark.there["2"]  # died: Spark replaces it by itself, and that is no start of ours
    spark.starts("4", 1)
    supply.executors()
    assert [one.asked for one in supply._held.values()] == [True] * 6
