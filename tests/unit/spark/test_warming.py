"""The first executors of all: waited for, let go together, and complained about. Without Spark."""

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.runtimes.spark import warming
from penstock.runtimes.spark.warming import WarmUp


@dataclass
class Tasks:
    """Executors that come one after another and are held; or a job that fails."""

    place: Path
    come: tuple[str, ...] = ()
    problem: str = ""
    let_go_at: list[int] = field(default_factory=list)  # how many had come

    def parallelize(self, numbers: range, parts: int) -> "Tasks":
        return self

    def withResources(self, profile: object) -> "Tasks":  # noqa: N802, as in Spark
        return self

    def foreachPartition(self, task: Callable[[object], None]) -> None:  # noqa: N802
        if self.problem:
            raise RuntimeError(self.problem)
        for number, executor in enumerate(self.come):
            time.sleep(0.05)
            if (self.place / "go").exists():
                self.let_go_at.append(number)
                return
            (self.place / f"{executor}.started").touch()
        while not (self.place / "go").exists():
            time.sleep(0.005)
        self.let_go_at.append(len(self.come))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "trial"
    made.mkdir()
    return made


def warm_up(tasks: Tasks, executors: int, cold: frozenset[str] | None = None) -> None:
    def no_tuples(_: Path) -> Any:
        raise LookupError("stream 's' is empty")

    session = SimpleNamespace(conf=SimpleNamespace(set=lambda *_: None))
    spark: Any = SimpleNamespace(sparkContext=tasks, newSession=lambda: session)
    some: Any = object()
    WarmUp(
        spark=spark,
        chain=some,
        profile=some,
        executors=executors,
        cold=cold,
        place=tasks.place,
        samples=no_tuples,
        worked=set,
        one_by_one=threading.Lock(),
    ).run()


def test_the_first_executors_are_let_go_when_all_have_come_even_if_there_is_nothing_to_try(
    place: Path,
) -> None:
    tasks = Tasks(place, come=("0", "1", "2"))
    warm_up(tasks, executors=3)
    assert tasks.let_go_at == [3]


def test_where_there_is_no_room_for_all_those_that_came_have_to_do(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warming, "_NEXT_S", 0.2)
    tasks = Tasks(place, come=("0", "1"))
    warm_up(tasks, executors=3)
    assert tasks.let_go_at == [2]


@pytest.mark.parametrize("first", [True, False])
def test_what_keeps_the_first_executors_from_working_is_raised_and_of_later_ones_is_not(
    first: bool, place: Path
) -> None:
    tasks = Tasks(place, problem="no module named penstock")
    with pytest.raises(RuntimeError, match=tasks.problem) if first else nullcontext():
        warm_up(tasks, executors=2, cold=None if first else frozenset("1"))
