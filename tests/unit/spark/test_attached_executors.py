"""Executors of an application that Penstock did not build: one number Spark keeps to, and nothing forced."""

from dataclasses import dataclass, field
from typing import Any
from unittest.mock import MagicMock

import pytest

from penstock.domain.deployment import Replicas
from penstock.domain.request import ScaleIn, Verdict
from penstock.reconfigure.words import Ending, Record
from penstock.runtimes.spark import attached_executors
from penstock.runtimes.spark.attached_executors import ExecutorActuator
from penstock.runtimes.spark.executors import Executor


@dataclass
class Spark:
    """Stands for an application: who is there, and what Spark was told."""

    there: set[str] = field(default_factory=set)
    targets: list[int] = field(default_factory=list)
    decommissioned: list[str] = field(default_factory=list)
    killed: list[tuple[Any, ...]] = field(default_factory=list)
    now_s: float = 1000.0
    decommissions: str = "false"

    def __post_init__(self) -> None:
        context = MagicMock()
        context.getConf().get.side_effect = lambda key, default: self.decommissions
        context._gateway.new_array.side_effect = lambda kind, length: [None] * length
        context._jvm.scala.Tuple2.side_effect = lambda name, why: name
        scala = context._jsc.sc()
        scala.requestTotalExecutors.side_effect = lambda wanted, *_: self.targets.append(wanted)
        backend = scala.schedulerBackend()
        backend.decommissionExecutors.side_effect = self._decommission
        backend.killExecutors.side_effect = lambda names, *flags: self.killed.append(flags)
        self.session: Any = MagicMock(sparkContext=context)

    def _decommission(self, names: list[str], adjust_target: bool, by_executor: bool) -> None:
        assert not adjust_target, "the target was set already: it must not drop twice"
        self.decommissioned += names

    def time(self) -> float:
        return self.now_s

    def listed(self, session: Any) -> dict[str, Executor]:
        return {name: Executor(id=name, host="h", profile=0, busy_s=0, tasks=0) for name in self.there}


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    spark = Spark(there={"0", "1", "2"})
    monkeypatch.setattr(attached_executors, "time", spark)
    monkeypatch.setattr(attached_executors, "executors", spark.listed)
    return spark


@pytest.fixture
def records() -> list[Record]:
    return []


@pytest.fixture
def actuator(spark: Spark, records: list[Record]) -> ExecutorActuator:
    return ExecutorActuator(spark.session, ended=records.append)


def test_fewer_are_one_lower_target_and_the_newest_told_to_go(
    spark: Spark, actuator: ExecutorActuator, records: list[Record]
) -> None:
    spark.there |= {"10"}
    fewer = ScaleIn(operator="query", target=Replicas((2,)), nodes=(), score=1.0, reason="idle")
    actuator.apply(Verdict((fewer,)))
    assert spark.targets == [2]
    assert spark.decommissioned == ["2", "10"]
    assert set(actuator.executors()) == {"0", "1"}  # though the others still finish what they run
    assert actuator.changing
    spark.there = {"0", "1"}
    actuator.poll()
    assert not actuator.changing
    assert spark.targets == [2], "it must not drop twice"
    (record,) = records
    assert (record.change.remove, record.outcome) == (("2", "10"), Ending.DONE)


def test_without_decommissioning_they_are_ended_once_idle_and_never_by_force(
    spark: Spark, actuator: ExecutorActuator
) -> None:
    actuator.resize(2)
    actuator.poll()
    assert spark.killed == [(False, False, False)] * 2  # neither the target nor failures; not by force
    assert spark.decommissioned == ["2"], "once is enough"


def test_with_decommissioning_they_leave_by_themselves(spark: Spark, actuator: ExecutorActuator) -> None:
    spark.decommissions = "true"
    actuator.resize(2)
    assert spark.decommissioned == ["2"]
    assert spark.killed == []


def test_an_executor_that_dies_is_waited_for_and_the_target_stays(
    spark: Spark, actuator: ExecutorActuator, records: list[Record]
) -> None:
    actuator.resize(3)
    assert not actuator.changing
    spark.there = {"0", "1"}
    actuator.poll()
    assert actuator.changing
    spark.now_s += 4
    spark.there = {"0", "1", "3"}
    actuator.poll()
    assert not actuator.changing
    assert spark.targets == [3]
    assert [(one.repair, len(one.change.add)) for one in records] == [(True, 1)]


def test_those_asked_for_are_under_way_until_they_are_there(
    spark: Spark, actuator: ExecutorActuator, records: list[Record]
) -> None:
    actuator.resize(5)
    spark.now_s += 6
    spark.there |= {"3"}
    actuator.poll()
    assert actuator.changing
    spark.now_s += 2
    spark.there |= {"4"}
    actuator.poll()
    assert not actuator.changing
    assert actuator.ready_s == 8
    assert [(one.granted_at_s, one.node_ready_at_s, len(one.change.add)) for one in records] == [
        (1000, 1008, 2)
    ]


def test_what_has_not_come_in_time_is_no_longer_asked_for(
    spark: Spark, actuator: ExecutorActuator, records: list[Record]
) -> None:
    actuator.resize(5)
    spark.there |= {"3"}
    spark.now_s += 121
    actuator.poll()
    assert not actuator.changing
    assert spark.targets == [5, 4]
    (record,) = records
    assert (record.outcome, record.trouble) == (
        Ending.PARTLY,
        ("1 executors did not come within 120 s",),
    )


def test_late_comers_beyond_the_number_are_sent_away(spark: Spark, actuator: ExecutorActuator) -> None:
    actuator.resize(3)
    spark.there |= {"3"}  # it was on its way before
    actuator.poll()
    assert spark.decommissioned == ["3"]
    assert set(actuator.executors()) == {"0", "1", "2"}
    assert spark.targets == [3]


def test_before_anything_was_asked_for_nothing_is_done(spark: Spark, actuator: ExecutorActuator) -> None:
    actuator.poll()
    assert (spark.targets, spark.decommissioned, spark.killed) == ([], [], [])
    assert not actuator.changing


def test_the_first_executors_of_an_application_do_not_keep_the_others_away(
    spark: Spark, records: list[Record]
) -> None:
    spark.there = {"0"}
    actuator = ExecutorActuator(spark.session, most=3, ended=records.append)
    for there in ({"0"}, {"0", "1", "2"}, {"0", "2"}, {"0", "2", "3"}):  # one dies and is replaced
        spark.there = there
        actuator.poll()
    assert (spark.targets, spark.decommissioned, records) == ([], [], [])
    spark.there |= {"4"}
    actuator.poll()
    assert (spark.targets, spark.decommissioned) == ([3], ["4"])
    assert actuator.changing
    spark.there -= {"4"}
    actuator.poll()
    assert [one.outcome for one in records] == [Ending.DONE]
