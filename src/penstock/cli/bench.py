"""`penstock bench`: speed and memory, as ratios within one run."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from penstock.cli import options, screen
from penstock.cli.ending import ending_as_with_ctrl_c
from penstock.domain.errors import InputError

if TYPE_CHECKING:
    from penstock.bench.figure import Figure

    Staged: TypeAlias = tuple[int, Callable[[Callable[[str], None]], Iterator[Figure]]]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One of the benchmarks, imported when it is run."""

    what: str
    load: "Callable[[int], Staged]"  # threads -> number of stages, and how to run them


def bench(
    what: Annotated[str, typer.Argument(help="What to measure: {benchmarks}.")] = "simulator",
    threads: options.ThreadsOption = None,
    json_output: options.JsonOption = False,
) -> int:
    """Measure speed against simple baselines: plain Python, pandas and a process pool, Spark without taps.

    Exit status 1 when a figure misses its target.
    """
    if what not in BENCHMARKS:
        raise InputError(f"bench '{what}': unknown; choose one of {', '.join(BENCHMARKS)}")
    stages, run = BENCHMARKS[what].load(options.default_threads(threads))
    with ending_as_with_ctrl_c(), screen.progress("starting", stages + 1) as bar:

        def stage(what: str) -> None:
            bar.advance()
            bar.say(what)
            if not screen.err.is_terminal:
                screen.err.print(what)

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


def _simulator(threads: int) -> "Staged":
    from penstock.bench import simulator

    return simulator.STAGES, lambda stage: simulator.run_benchmarks(threads=threads, stage=stage)


def _adaptive(threads: int) -> "Staged":
    from penstock.bench import adaptive

    return adaptive.STAGES, lambda stage: adaptive.run_adaptive(stage=stage)


def _deep(threads: int) -> "Staged":
    from penstock.bench import deep

    return deep.STAGES, lambda stage: deep.run_deep(threads=threads, stage=stage)


def _data(_: int) -> "Staged":
    from penstock.bench import data_pipeline

    return data_pipeline.STAGES, lambda stage: data_pipeline.run_data_benchmarks(stage=stage)


def _spark(_: int) -> "Staged":
    from penstock.bench import cost_of_taps

    return cost_of_taps.STAGES, lambda stage: cost_of_taps.run_spark_benchmarks(stage=stage)


def _reconfigurations(_: int) -> "Staged":
    from penstock.bench import reconfigurations

    return reconfigurations.STAGES, lambda stage: _live(reconfigurations.run_reconfigurations(stage=stage))


def _forced_changes(_: int) -> "Staged":
    from penstock.bench import forced_changes

    return forced_changes.STAGES, lambda stage: _live(forced_changes.run_forced_changes(stage=stage))


def _step(_: int) -> "Staged":
    from penstock.bench import step

    return step.STAGES, lambda stage: _live(step.run_step(stage=stage))


def _queries(_: int) -> "Staged":
    from penstock.bench import queries

    return queries.STAGES, lambda stage: _live(queries.run_queries(stage=stage))


def _nearly_full(_: int) -> "Staged":
    from penstock.bench import queries

    return queries.NEARLY_FULL_STAGES, lambda stage: _live(queries.run_nearly_full(stage=stage))


def _micro_batches(_: int) -> "Staged":
    from penstock.bench import micro_batches

    return micro_batches.STAGES, lambda stage: _live(micro_batches.run_micro_batches(stage=stage))


def _planning(_: int) -> "Staged":
    from penstock.bench import planning

    return planning.STAGES, lambda stage: planning.run_planning(stage=stage)


def _planning_check(_: int) -> "Staged":
    from penstock.bench import planning_check

    return planning_check.STAGES, lambda stage: planning_check.run_check(stage=stage)


def _forecasts(_: int) -> "Staged":
    from penstock.bench import forecasts

    return forecasts.STAGES, lambda stage: _live(forecasts.run_forecasts(stage=stage))


def _horizon(_: int) -> "Staged":
    from penstock.bench import horizon

    return horizon.STAGES, lambda stage: horizon.run_horizon(stage=stage)


def _elastic(_: int) -> "Staged":
    from penstock.bench import elastic

    return elastic.STAGES, lambda stage: elastic.run_elastic(stage=stage)


def _trader(_: int) -> "Staged":
    from penstock.bench import trader

    return trader.STAGES, lambda stage: trader.run_trader(stage=stage)


def _live(figures: "Iterator[Figure]") -> "Iterator[Figure]":
    """What can go wrong with a cluster, in one line."""
    from penstock.live.run import RunError
    from penstock.runtimes.spark.cluster import ClusterError

    try:
        yield from figures
    except (ClusterError, RunError) as problem:
        screen.complain(problem)
        raise typer.Exit(1) from problem


def _attached(_: int) -> "Staged":
    from penstock.bench import attached

    return attached.STAGES, _attached_to_a_query


def _attached_to_a_query(stage: Callable[[str], None]) -> "Iterator[Figure]":
    from penstock.bench.attached import run_attached
    from penstock.runtimes.spark.cluster import ClusterError

    try:
        yield from run_attached(stage=stage)
    except ClusterError as problem:
        screen.complain(problem)
        raise typer.Exit(1) from problem


def _endurance(_: int) -> "Staged":
    from penstock.bench import endurance

    return endurance.STAGES, lambda stage: _live(endurance.run_endurance(stage=stage))


BENCHMARKS = {
    "simulator": Benchmark("speed and memory of simulations", _simulator),
    "adaptive": Benchmark("speed of the default policy: slots, plans, decisions", _adaptive),
    "deep": Benchmark("speed and memory of deep learners", _deep),
    "mpc": Benchmark("a decision of model predictive control, by its horizon", _horizon),
    "elastic": Benchmark("tuples a second through the simulated elastic operator", _elastic),
    "data": Benchmark("the pipeline and sweeps on Spark", _data),
    "spark": Benchmark("the cost of taps", _spark),
    "reconfigurations": Benchmark("how long one replica takes to come on Spark", _reconfigurations),
    "forced-changes": Benchmark("reconfigurations at every interval, under both protocols", _forced_changes),
    "step": Benchmark("how soon the objective is kept again when the load jumps", _step),
    "forecasts": Benchmark("a load that repeats, planned with and without a forecast", _forecasts),
    "queries": Benchmark("one query for operators that follow each other, or one for each", _queries),
    "nearly-full": Benchmark("the same where operators wait and have little time to spare", _nearly_full),
    "micro-batches": Benchmark("predicted against measured response times on Spark", _micro_batches),
    "attach": Benchmark("two objectives for one query of Spark's own", _attached),
    "endurance": Benchmark("memory and disk over two hours, scaled all the time", _endurance),
    "trader": Benchmark("prices estimated from windows of quotes, and Levenberg-Marquardt", _trader),
    "planning": Benchmark("how planning grows with hosts, operators and replicas", _planning),
    "planning-check": Benchmark("plans against those of HiGHS on random problems", _planning_check),
}
