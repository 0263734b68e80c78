"""Sweeps on Spark: the same numbers as without Spark, whatever runs in parallel."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from penstock.control.spec import Manager
from penstock.simulation.spec import OneOperator
from penstock.simulation.sweep import Cell, FailedCell, FinishedCell, SweptTrace, grid, run_chunk
from penstock.simulation.sweep_runners import in_processes, on_spark

Run = Callable[..., tuple[int, str, str]]
RATES = np.abs(np.random.default_rng(5).normal(300, 100, 2000)).round()
WORKLOAD = SweptTrace(trace="small", rates=RATES, training=RATES)
CELLS = grid(
    OneOperator(operator_policy=Manager("fixed"), as_published=True),
    WORKLOAD,
    policies=tuple(Manager(name=name) for name in ("threshold-c", "ql", "ql-pds")),
    infrastructures=("A:3",),
    max_replicas=(10,),
    seeds=4,
)


def measured(results: list[FinishedCell | FailedCell]) -> dict[str, tuple[float, ...]]:
    found = {}
    for result in results:
        assert isinstance(result, FinishedCell), result
        found[result.cell.name] = (result.avg_cost, result.violations_pct, *result.replicas_by_type)
    return found


def test_spark_processes_and_one_after_another_agree_to_the_last_digit(spark: SparkSession) -> None:
    workloads = {WORKLOAD.digest: WORKLOAD}
    alone = measured(run_chunk(CELLS, workloads))
    for run in (on_spark(spark, workloads), in_processes(workloads, workers=2)):
        for size in (1, 4):
            chunks = [CELLS[start : start + size] for start in range(0, len(CELLS), size)]
            assert measured([result for chunk in run(chunks) for result in chunk]) == alone


def test_a_cell_that_fails_on_spark_does_not_take_its_neighbours_along(spark: SparkSession) -> None:
    too_many = OneOperator(operator_policy=Manager("fixed", {"replicas": 11}), max_replicas=10)
    broken = Cell(spec=too_many, trace="small", workload=WORKLOAD.digest)
    run = on_spark(spark, {WORKLOAD.digest: WORKLOAD})
    results = [result for chunk in run([[CELLS[0], broken, CELLS[1]]]) for result in chunk]
    assert [type(result) for result in results] == [FinishedCell, FailedCell, FinishedCell]


def test_the_command_does_the_rest_when_started_again(spark: SparkSession, run: Run, tmp_path: Path) -> None:
    (tmp_path / "taxi-small.txt").write_text("".join(f"{rate:.0f}\n" for rate in RATES))
    words = ("sweep", "--trace", "taxi-small.txt", "--infrastructures", "A:3,B:3", "--out", "table", "--json")
    status, out, err = run(*words, "--policies", "threshold-c")
    assert (status, err.strip()) == (0, "")
    assert json.loads(out) == {"out": "table", "cells": 2, "run": 2, "skipped": 0, "failed": []}
    _, out, _ = run(*words, "--policies", "threshold-c,threshold-s")
    assert json.loads(out) == {"out": "table", "cells": 4, "run": 2, "skipped": 2, "failed": []}
