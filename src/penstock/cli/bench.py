"""`penstock bench`: speed and memory, as ratios within one run."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import options, screen
from penstock.domain.errors import InputError

if TYPE_CHECKING:
    from penstock.bench.figure import Figure


def bench(
    what: Annotated[
        str,
        typer.Argument(
            help="simulator, data (the pipeline and sweeps on Spark), spark (the cost of taps) or "
            "reconfigurations (how long they take)."
        ),
    ] = "simulator",
    threads: options.ThreadsOption = None,
    json_output: options.JsonOption = False,
) -> int:
    """Measure speed against the plain way: plain Python, pandas and a process pool, Spark without taps.

    Exit status 1 when a figure misses what is wanted of it.
    """
    stages, run = _benchmark(what, options.default_threads(threads))
    with screen.progress("starting", stages + 1) as bar:

        def stage(what: str) -> None:
            bar.advance()
            bar.say(what)

        figures = list(run(stage))
    missed = any(figure.ok is False for figure in figures)
    if json_output:
        screen.print_json({"figures": [{**asdict(figure), "ok": figure.ok} for figure in figures]})
        return int(missed)
    screen.print_table(
        ("benchmark", "measured", "wanted", "ok"),
        [
            (
                figure.name,
                f"{figure.value:,.3g} {figure.unit}",
                f">= {figure.at_least:g}"
                if figure.at_least is not None
                else f"<= {figure.at_most:g}"
                if figure.at_most is not None
                else "",
                {True: "yes", False: "NO", None: ""}[figure.ok],
            )
            for figure in figures
        ],
    )
    return int(missed)


def _benchmark(what: str, threads: int) -> "tuple[int, Callable[[Callable[[str], None]], Iterator[Figure]]]":
    if what == "simulator":
        from penstock.bench import simulator

        return simulator.STAGES, lambda stage: simulator.run_benchmarks(threads=threads, stage=stage)
    if what == "data":
        from penstock.bench import data_pipeline as bench_data

        return bench_data.STAGES, lambda stage: bench_data.run_data_benchmarks(stage=stage)
    if what == "spark":
        from penstock.bench import cost_of_taps

        return cost_of_taps.STAGES, lambda stage: cost_of_taps.run_spark_benchmarks(stage=stage)
    if what == "reconfigurations":
        from penstock.bench import reconfigurations as live

        return live.STAGES, _reconfigurations
    raise InputError(f"bench '{what}': unknown; choose simulator, data, spark or reconfigurations")


def _reconfigurations(stage: Callable[[str], None]) -> "Iterator[Figure]":
    from penstock.bench.reconfigurations import run_reconfigurations
    from penstock.live.run import RunError
    from penstock.runtimes.spark.cluster import ClusterError

    try:
        yield from run_reconfigurations(stage=stage)
    except (ClusterError, RunError) as problem:
        screen.complain(problem)
        raise typer.Exit(1) from problem
