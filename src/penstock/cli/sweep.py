"""`penstock sweep`: a grid of experiments on Spark, into one table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import options, screen
from penstock.cli import policy_options as named
from penstock.domain.errors import InputError

if TYPE_CHECKING:
    from penstock.simulation.sweep import Cell


def sweep(
    out: Annotated[
        Path, typer.Option("--out", help="Table (a directory of Parquet files) to create or add to.")
    ],
    trace: Annotated[list[Path], typer.Option("--trace", help="A trace file; repeatable.")],
    policies: named.PoliciesOption,
    settings: named.SetOption = None,
    infrastructures: Annotated[
        str,
        typer.Option("--infrastructures", "--infrastructure", help="Separated by commas, as in A:3,A:6,B:3."),
    ] = "A:3",
    max_replicas: Annotated[
        str, typer.Option("--max-replicas", help="Separated by commas, as in 10,20.")
    ] = "10",
    seeds: Annotated[
        int,
        typer.Option(
            "--seeds", min=1, max=options.MOST_SEEDS, help="Seeds per policy whose behaviour is random."
        ),
    ] = 5,
    slots: Annotated[
        int | None, typer.Option("--slots", help="Use at most this many slots of every trace.")
    ] = None,
    slo_ms: options.SloOption = 50.0,
    as_published: options.PublishedOption = False,
    preset: options.PresetOption = None,
    service_rate: options.ServiceRateOption = None,
    service_scv: options.ServiceScvOption = None,
    max_rate: options.MaxRateOption = None,
    levels: options.LevelsOption = None,
    weights: options.WeightsOption = "0.6,0.2,0.2",
    master: options.MasterOption = None,
    json_output: options.JsonOption = False,
) -> None:
    """Run every combination of policy, trace, infrastructure and seed; running it again adds what is missing.

    Example: penstock sweep --trace taxi.txt --policies ql,ql-pds --infrastructures A:3,B:3 --out table
    """
    from penstock.data.spark_session import spark_session
    from penstock.data.traces import read_trace
    from penstock.simulation.presets import PAPER, scenario
    from penstock.simulation.spec import OneOperator
    from penstock.simulation.sweep import SweptTrace, grid, unfinished
    from penstock.simulation.sweep import sweep as run_sweep
    from penstock.simulation.sweep_runners import on_spark

    managers = named.chosen(settings or (), policies=named.listed("--policies", policies)).operators
    places = named.listed("--infrastructures", infrastructures)
    sizes = named.listed("--max-replicas", max_replicas)
    for place in places:
        scenario(place, PAPER)
    cells: list[Cell] = []
    workloads: dict[str, SweptTrace] = {}
    for path in trace:
        inputs = options.gather(
            trace=path,
            slots=None if slots is None else min(slots, read_trace(path).rates.size),
            training=None,
            preset=preset,
            service_rate=service_rate,
            service_scv=service_scv,
            max_rate=max_rate,
            levels=levels,
            infrastructure=places[0],
            max_replicas=1,
            slo_ms=slo_ms,
            weights=weights,
            as_published=as_published,
        )
        workload = SweptTrace(
            trace=inputs.trace.name, rates=inputs.trace.rates, training=inputs.training.rates
        )
        workloads[workload.digest] = workload
        base = inputs.simulation(managers[0])
        if not isinstance(base, OneOperator):
            raise TypeError("a sweep simulates single operators")
        cells += grid(
            base,
            workload,
            policies=managers,
            infrastructures=places,
            max_replicas=[_whole(size) for size in sizes],
            seeds=seeds,
        )
    own = [manager.name for manager in managers if ":" in manager.name]
    left = len(unfinished(cells, out))
    failed = []
    if left:
        with screen.progress("simulating", len(cells)) as bar, spark_session(master) as spark:
            failed = run_sweep(cells, on_spark(spark, workloads, own=own), out, done=bar.advance_by)
    found = {
        "out": str(out),
        "cells": len(cells),
        "run": left - len(failed),
        "skipped": len(cells) - left,
        "failed": [
            {"cell": each.cell.name, "spec": _shown(each.cell), "error": each.error} for each in failed
        ],
    }
    if json_output:
        screen.print_json(found)
    else:
        screen.out.print(
            f"{out}: {len(cells):,} cells, {left - len(failed):,} run, {len(cells) - left:,} already there",
            soft_wrap=True,
        )
    if failed:
        for each in failed:
            screen.err.print(f"failed: {_shown(each.cell)}: {each.error}", soft_wrap=True)
        screen.err.print(
            f"penstock: {len(failed)} of {len(cells)} cells failed; run the command again to retry them"
        )
        raise typer.Exit(1)


def _shown(cell: "Cell") -> str:
    spec = cell.spec
    where = f"{spec.infrastructure}, {spec.max_replicas} replicas"
    return f"{spec.operator_policy.name} on {cell.trace}, {where}, seed {spec.seed}"


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"--max-replicas '{text}': give whole numbers of at least 1, as in 10,20")
    return int(text)
