"""A sweep takes a user's own policy, the one of docs/add-a-policy.md."""

from pathlib import Path

import pytest

from penstock.control.spec import Manager
from penstock.data.synthetic import day_and_week
from penstock.policy.registry import Level, load
from penstock.simulation.spec import OneOperator
from penstock.simulation.sweep import SweptTrace, grid, read_table, sweep
from penstock.simulation.sweep_runners import in_processes

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def test_a_sweep_takes_a_users_own_policy_in_other_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    rates = day_and_week(slots=60, seed=1).rates
    workload = SweptTrace(trace="day", rates=rates, training=rates)
    load(Level.OPERATOR, "mine:Patient")
    cells = grid(
        OneOperator(operator_policy=Manager("fixed")),
        workload,
        policies=[
            Manager(name="mine:Patient", parameters={"patience": 3}),
            Manager(name="ds2"),
        ],
        infrastructures=["A:1"],
        max_replicas=[4],
        seeds=1,
    )
    workloads = {workload.digest: workload}
    failed = sweep(cells, in_processes(workloads, workers=1, own=["mine:Patient"]), tmp_path / "table")
    assert failed == []
    rows = {row["policy"]: row for row in read_table(tmp_path / "table").to_pylist()}
    assert rows["mine:Patient"]["parameter_patience"] == 3
    assert rows["mine:Patient"]["parameter_target"] is None
    assert rows["ds2"]["parameter_target"] == 0.7
