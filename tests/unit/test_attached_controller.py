"""`penstock.attach` around its loop, without Spark: what it refuses, obeys, remembers and leaves behind."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest

import penstock
from penstock.control.build import build_controller
from penstock.control.journal import Noted, Ticked
from penstock.control.orders import Override
from penstock.control.replay import replay
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import Migrate, Verdict
from penstock.journal_file import read_journal
from penstock.live import attach
from penstock.live.attach import Attached, tasks_at_a_time
from penstock.live.inbox import ORDERS, give


@dataclass
class Executors:
    """Stands for the executors of an application, and for the load on them."""

    there: int = 2
    rate: float = 10.0  # tuples/s
    asked: list[int] = field(default_factory=list)
    most: int | None = None

    def begin(self, spark: Any, *, most: int | None, **_: Any) -> "Executors":
        self.most = most
        return self

    def executors(self) -> dict[str, None]:
        return dict.fromkeys(map(str, range(self.there)))

    def resize(self, wanted: int) -> None:
        self.asked.append(wanted)
        self.there = wanted

    def poll(self) -> None:
        if self.most is not None and self.there > self.most:
            self.resize(self.most)

    def apply(self, verdict: Verdict) -> None:
        for request in verdict.granted:
            assert not isinstance(request, Migrate)
            self.resize(request.target.total)


@dataclass
class Seen:
    """Stands for its monitor: an hour later every time, so that no guard waits for anything."""

    executors: Executors
    at_s: float = 1e6

    def observe(self) -> ApplicationObservation:
        self.at_s += 3600
        replicas = Replicas((self.executors.there,))
        one = OperatorObservation(
            operator="query",
            at_s=self.at_s,
            replicas=replicas,
            arrival_rate=self.executors.rate,
            response_time_s=1.0,
            utilisation=0.5,
            service_time_s=0.02,
            batch_s=0.7,
            batch_tuples=10.0,
        )
        return ApplicationObservation(
            at_s=self.at_s, response_time_s=1.0, operators=(one,), source_rate=self.executors.rate
        )

    def finished(self) -> list[tuple[float, int]]:
        return [(1.0, 10)]

    def unfinished(self) -> list[tuple[float, int]]:
        return [(7.0, 3)]


@pytest.fixture
def executors(monkeypatch: pytest.MonkeyPatch) -> Executors:
    executors = Executors()
    monkeypatch.setattr(attach, "ExecutorActuator", executors.begin)
    monkeypatch.setattr(attach, "QueryMonitor", lambda actuator, *_: Seen(actuator))
    return executors


def attached(**settings: Any) -> Attached:
    """To a query of nobody's; its thread never comes to a round of its own."""
    conf: Any = {"spark.executor.cores": "1"}
    spark: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(master="spark://h:1", appName="shop", getConf=lambda: conf)
    )
    query: Any = SimpleNamespace(name="orders", isActive=True)
    usual: dict[str, Any] = {"objective": Objective(response_time_s=5), "interval_s": 3600.0}
    return penstock.attach(spark, query, **usual | settings)


@pytest.mark.parametrize(
    ("master", "conf", "change"),
    [
        ("local[*]", {}, "start the application on a cluster"),
        ("spark://h:1", {"spark.dynamicAllocation.enabled": "true"}, "dynamicAllocation.enabled=false"),
        ("spark://h:1", {}, "start the application with spark.executor.cores=1"),
    ],
)
def test_what_cannot_be_controlled_is_refused_with_what_to_change(
    master: str, conf: Any, change: str
) -> None:
    with pytest.raises(InputError, match=change) as refused:
        tasks_at_a_time(master, conf)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("master", "conf", "tasks"),
    [
        ("spark://h:1", {"spark.executor.cores": "4"}, 4),
        ("spark://h:1", {"spark.executor.cores": "4", "spark.task.cpus": "2"}, 2),
        ("local-cluster[2,1,512]", {"spark.executor.cores": "1"}, 1),
        ("k8s://https://h:1", {}, 1),  # one core is the default there
        ("yarn", {}, 1),
    ],
)
def test_every_cluster_is_taken(master: str, conf: Any, tasks: int) -> None:
    assert tasks_at_a_time(master, conf) == tasks


def test_a_policy_that_needs_a_model_is_refused(executors: Executors) -> None:
    with pytest.raises(InputError, match="policy 'vi' needs a model"):
        attached(policy="vi")
    assert executors.asked == []


@pytest.mark.parametrize("there", [0, 1, 2])
def test_an_application_that_is_still_starting_is_not_cut_to_what_it_has(
    executors: Executors, there: int
) -> None:
    executors.there = there
    attached().stop()
    assert executors.asked == []


def test_the_most_are_kept_from_the_start_and_said_so(executors: Executors, tmp_path: Path) -> None:
    executors.there = 5
    with pytest.warns(UserWarning, match="5 executors were there, and 3 are the most allowed"):
        attached(max_replicas=3, out=tmp_path).stop()
    assert executors.asked == [3]
    notes = [one.text for one in read_journal(tmp_path / "journal.jsonl") if isinstance(one, Noted)]
    assert notes == ["5 executors were there, and 3 are the most allowed: 2 are sent away"]


def test_advice_changes_nothing(executors: Executors) -> None:
    one = attached(advise=True)
    assert executors.most is None
    executors.rate = 300.0
    last = [one.tick() for _ in range(3)][-1]
    one.stop()
    assert " at 300 t/s and " in last.reasons[0]
    assert last.changed == ()
    assert executors.asked == []


def test_a_load_that_rises_gets_executors_and_all_of_it_is_written_down(
    executors: Executors, tmp_path: Path
) -> None:
    one = attached(out=tmp_path)
    one.tick()
    executors.rate = 150.0
    one.tick()
    one.tick()
    one.stop()
    one.stop()  # twice does no harm
    assert executors.there > 3
    told = json.loads((tmp_path / "summary.json").read_text())
    assert (told["application"], told["tuples"], told["unfinished"]) == ("orders", 30, 3)
    assert "orders under adaptive" in (tmp_path / "report.html").read_text()
    assert len(list((tmp_path / "metrics").glob("*.parquet"))) == 1
    rounds = [entry for entry in read_journal(tmp_path / "journal.jsonl") if isinstance(entry, Ticked)]
    assert len(rounds) == 3


def test_orders_are_obeyed_and_remembered_over_a_restart(executors: Executors, tmp_path: Path) -> None:
    first = attached(out=tmp_path)
    first.tick()
    give(tmp_path / "work" / ORDERS, Override(operator="query", target=Replicas((4,))))
    first.tick()
    assert executors.there == 4
    first.stop()
    executors.there = 1  # a new application
    again = attached(out=tmp_path)
    assert not (tmp_path / "summary.json").exists()  # it goes on: orders are welcome
    again.tick()
    assert executors.there == 4
    again.stop()
    assert len(list((tmp_path / "metrics").glob("*.parquet"))) == 2
    replayed = replay(read_journal(tmp_path / "journal.jsonl"), build_controller)
    assert (replayed.ticks, replayed.difference) == (3, None)


def test_a_folder_has_one_controller_at_a_time(executors: Executors, tmp_path: Path) -> None:
    first = attached(out=tmp_path / "run")
    first.tick()
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(
        InputError, match=rf"run: in use by another run: process {os.getpid()} on \S+ since 20"
    ):
        attached(out=tmp_path / "run")
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before
    first.stop()
    attached(out=tmp_path / "run").stop()


def test_a_controller_that_was_refused_leaves_the_folder_to_the_next(
    executors: Executors, tmp_path: Path
) -> None:
    attached(out=tmp_path).stop()
    (tmp_path / "work" / "controller.json").write_text("rubbish")
    with pytest.raises(InputError, match="cannot resume from it"):
        attached(out=tmp_path)
    (tmp_path / "work" / "controller.json").unlink()
    attached(out=tmp_path).stop()


def test_without_a_folder_nothing_is_left(executors: Executors, tmp_path: Path) -> None:
    one = attached(journal=tmp_path / "journal.jsonl")
    one.tick()
    assert isinstance(one.out, TemporaryDirectory)
    folder = Path(one.out.name)
    assert folder.is_dir()
    one.stop()
    assert not folder.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["journal.jsonl"]
