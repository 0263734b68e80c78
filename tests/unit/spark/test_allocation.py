"""What is asked of Spark's scheduler while there is no master to hear it."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError

from penstock.runtimes.spark import allocation
from penstock.runtimes.spark.allocation import Allocation


class Backend:
    """Of Spark's scheduler; without a master it raises."""

    def __init__(self) -> None:
        self.master = True
        self.asked: list[dict[int, int]] = []
        self.sent_away = 0

    def _heard(self) -> None:
        if not self.master:
            raise Py4JError("no master")

    def requestTotalExecutors(self, wanted: dict[int, int], *_: Any) -> None:  # noqa: N802, as in Spark
        self._heard()
        self.asked.append(dict(wanted))

    def decommissionExecutors(self, *_: Any) -> None:  # noqa: N802, as in Spark
        self._heard()
        self.sent_away += 1


@pytest.fixture
def backend() -> Backend:
    return Backend()


@pytest.fixture
def asking(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> Allocation:
    monkeypatch.setattr(Allocation, "_scala", lambda _, entries: entries)
    java = MagicMock()
    java.sc.return_value.schedulerBackend.return_value = backend
    spark: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(_jsc=java, _jvm=MagicMock(), _gateway=MagicMock())
    )
    return Allocation(spark)


def test_what_was_asked_of_no_master_is_asked_of_the_next(backend: Backend, asking: Allocation) -> None:
    asking.ask(1, 2)
    backend.master = False
    asking.ask(1, 3)
    asking.remind()
    assert backend.asked == [{0: 0, 1: 2}]
    backend.master = True
    asking.remind()
    asking.remind()
    assert backend.asked == [{0: 0, 1: 2}, {0: 0, 1: 3}]


def test_an_executor_that_was_to_go_is_sent_away_when_there_is_a_master_again(
    backend: Backend, asking: Allocation
) -> None:
    asking.ask(1, 2)
    backend.master = False
    asking.send_away("7", 1)
    asking.remind()
    backend.master = True
    asking.remind()
    asking.remind()
    assert backend.sent_away == 1
    assert backend.asked[-1] == {0: 0, 1: 1}


def test_and_so_is_one_that_was_to_be_killed(
    backend: Backend, asking: Allocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[str] = []

    def kill(executors: list[str], _: object) -> None:
        backend._heard()
        killed.extend(executors)

    monkeypatch.setattr(allocation, "kill", kill)
    backend.master = False
    asking.kill("7")
    asking.remind()
    backend.master = True
    asking.remind()
    asking.remind()
    assert killed == ["7"]


def test_all_is_asked_again_now_and_then(
    backend: Backend, asking: Allocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking.ask(1, 2)
    asking.remind()
    assert len(backend.asked) == 1
    monkeypatch.setattr(allocation, "_REMINDED_S", -1.0)
    asking.remind()
    assert backend.asked == [{0: 0, 1: 2}] * 2
