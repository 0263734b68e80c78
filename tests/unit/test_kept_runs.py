"""A reproduction that was interrupted goes on with what it has measured."""

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from penstock.control.spec import Manager
from penstock.domain.errors import InputError
from penstock.papers import kept_runs
from penstock.papers.kept_runs import KeptRuns
from penstock.simulation.play import Job
from penstock.simulation.result import SimulationResult
from penstock.simulation.spec import OneOperator

RATES = np.linspace(100, 400, 60)


class Kept(NamedTuple):
    cost: float
    pair: tuple[float, ...]


class Measure:
    """Counts how often something was run."""

    def __init__(self) -> None:
        self.runs = 0

    def of(self, result: SimulationResult) -> Kept:
        self.runs += 1
        return Kept(result.avg_cost, (result.violations_pct, result.resource_cost))


def jobs(*seeds: int, rates: np.ndarray = RATES) -> list[Job]:
    policy = Manager("ql")
    return [(OneOperator(operator_policy=policy, seed=seed), rates, None) for seed in seeds]


def measured(path: Path | None, listed: list[Job], *, named: str = "") -> tuple[int, list[Kept], int]:
    """Runs made, what was measured, steps of progress."""
    measure, steps = Measure(), []
    found = KeptRuns(path).measured(
        listed, Kept, measure.of, threads=2, named=named, done=lambda: steps.append(1)
    )
    return measure.runs, found, len(steps)


def test_only_what_is_missing_is_run_and_everything_comes_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "new" / "x.runs.jsonl"
    alone = measured(None, jobs(1, 2, 3))[1]
    assert measured(path, jobs(3, 1))[0] == 2
    assert measured(path, jobs(1, 2, 3)) == (1, alone, 3)
    assert measured(path, jobs(1, 2, 3)) == (0, alone, 3)


def test_another_load_another_measure_or_a_training_is_another_run(tmp_path: Path) -> None:
    path = tmp_path / "x.runs.jsonl"
    measured(path, jobs(1))
    assert measured(path, jobs(1, rates=RATES + 1))[0] == 1
    assert measured(path, jobs(1), named="at slot 10")[0] == 1
    ((spec, rates, _),) = jobs(1)
    assert measured(path, [(spec, rates, RATES)])[0] == 1
    assert measured(path, jobs(1))[0] == 0


def test_a_line_cut_off_costs_one_run_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x.runs.jsonl"
    expected = measured(path, jobs(1, 2, 3))[1]
    path.write_bytes(path.read_bytes()[:-7])
    assert measured(path, jobs(1, 2, 3)) == (1, expected, 3)
    assert measured(path, jobs(1, 2, 3)) == (0, expected, 3)


def test_runs_of_other_sources_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.runs.jsonl"
    measured(path, jobs(1))
    monkeypatch.setattr(kept_runs, "_sources", lambda: "others")
    assert measured(path, jobs(1))[0] == 1
    assert measured(path, jobs(1))[0] == 0


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.runs.jsonl"
    path.write_text("my notes\n")
    with pytest.raises(InputError, match="holds something else"):
        KeptRuns(path)
    assert path.read_text() == "my notes\n"


def test_what_is_made_once_is_not_made_again_under_the_same_name(tmp_path: Path) -> None:
    made: list[str] = []

    def make(name: str) -> Kept:
        made.append(name)
        return Kept(1.5, (2.0, float("inf")))

    for _ in range(2):
        kept = KeptRuns(tmp_path / "x.runs.jsonl")
        found = [kept.once(name, Kept, partial(make, name)) for name in ("a", "b")]
        assert found == [Kept(1.5, (2.0, float("inf")))] * 2
    assert made == ["a", "b"]
    assert kept.used == 2
