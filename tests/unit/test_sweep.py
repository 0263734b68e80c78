"""Sweeps without an engine: which cells there are, what the table holds, what is left to do."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.control.spec import Manager
from penstock.domain.errors import InputError
from penstock.simulation.play import run
from penstock.simulation.spec import OneOperator
from penstock.simulation.sweep import (
    CHUNK,
    Cell,
    Chunk,
    FailedCell,
    FinishedCell,
    Runner,
    SweptTrace,
    grid,
    read_table,
    run_chunk,
    sweep,
    unfinished,
)

RATES = np.abs(np.random.default_rng(5).normal(300, 100, 400)).round()
WORKLOAD = SweptTrace(trace="small", rates=RATES, training=RATES)
CELLS = grid(
    OneOperator(policy="fixed"),
    WORKLOAD,
    policies=(Manager(name="threshold-c"), Manager(name="ql")),
    infrastructures=("A:3", "B:3"),
    max_replicas=(5, 10),
    seeds=4,
)


def one_by_one(chunks: Sequence[Chunk]) -> Iterator[list[FinishedCell | FailedCell]]:
    for chunk in chunks:
        yield run_chunk(chunk, {WORKLOAD.digest: WORKLOAD})


def stops_after(chunks_run: int) -> Runner:
    def run(chunks: Sequence[Chunk]) -> Iterator[list[FinishedCell | FailedCell]]:
        for number, results in enumerate(one_by_one(chunks)):
            if number == chunks_run:
                raise KeyboardInterrupt
            yield results

    return run


def test_a_grid_has_every_combination_and_one_seed_where_nothing_is_left_to_chance() -> None:
    assert len(CELLS) == 2 * 2 * (1 + 4)
    assert len({cell.name for cell in CELLS}) == len(CELLS)


def test_a_cell_s_name_changes_with_its_specification_and_its_trace() -> None:
    cell = CELLS[0]
    other = SweptTrace(trace="small", rates=RATES + 1, training=RATES)
    assert Cell(spec=cell.spec, trace="renamed", workload=cell.workload).name == cell.name
    assert Cell(spec=cell.spec, trace="small", workload=other.digest).name != cell.name
    eager = replace(cell.spec, parameters={"beta": 0.5})
    assert Cell(spec=eager, trace="small", workload=cell.workload).name not in {each.name for each in CELLS}


def test_the_table_holds_the_numbers_and_the_whole_specification(tmp_path: Path) -> None:
    assert sweep(CELLS, one_by_one, tmp_path / "table") == []
    rows = {row["cell"]: row for row in read_table(tmp_path / "table").to_pylist()}
    assert rows.keys() == {cell.name for cell in CELLS}
    for cell in CELLS:
        row, alone = rows[cell.name], run(cell.spec, RATES, training=RATES)
        assert row["avg_cost"] == alone.avg_cost
        assert row["violations_pct"] == alone.violations_pct
        assert row["replicas_by_type"] == list(alone.replicas_by_type)
        spec = json.loads(row["spec"])
        assert (spec["policy"], spec["infrastructure"], spec["max_replicas"], spec["seed"]) == (
            cell.spec.policy,
            cell.spec.infrastructure,
            cell.spec.max_replicas,
            cell.spec.seed,
        )
        assert spec["weights"] == {"performance": 0.6, "resources": 0.2, "reconfiguration": 0.2}


def test_an_interrupted_sweep_started_again_does_only_the_rest(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        sweep(CELLS, stops_after(1), tmp_path / "table")
    left = unfinished(CELLS, tmp_path / "table")
    assert len(left) == len(CELLS) - CHUNK
    ran: list[str] = []

    def watched(chunks: Sequence[Chunk]) -> Iterator[list[FinishedCell | FailedCell]]:
        ran.extend(cell.name for chunk in chunks for cell in chunk)
        yield from one_by_one(chunks)

    progress: list[int] = []
    assert sweep(CELLS, watched, tmp_path / "table", done=progress.append) == []
    assert ran == [cell.name for cell in left]
    assert (progress[0], sum(progress)) == (CHUNK, len(CELLS))
    assert unfinished(CELLS, tmp_path / "table") == []


def test_a_failed_cell_is_told_with_its_error_and_tried_again_next_time(tmp_path: Path) -> None:
    eleven_of_ten = OneOperator(policy="fixed", parameters={"replicas": 11})  # known when it is built
    broken = Cell(spec=eleven_of_ten, trace="small", workload=WORKLOAD.digest)
    for _ in range(2):
        failed = sweep([broken, *CELLS], one_by_one, tmp_path / "table")
        assert [each.cell.name for each in failed] == [broken.name]
        assert "policy 'fixed': replicas=11" in failed[0].error
    assert read_table(tmp_path / "table").num_rows == len(CELLS)


def test_a_directory_that_holds_something_else_is_not_added_to(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds no sweep"):
        sweep(CELLS, one_by_one, tmp_path)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "part.parquet").write_text("not parquet")
    with pytest.raises(InputError, match="not a sweep's table"):
        sweep(CELLS, one_by_one, tmp_path / "broken")
    with pytest.raises(InputError, match="not a directory"):
        sweep(CELLS, one_by_one, tmp_path / "notes.txt")
