"""`penstock trace`: make and describe arrival traces."""

from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import options, screen
from penstock.data.statistics import describe as describe_trace
from penstock.data.synthetic import DAY_AND_WEEK, day_and_week
from penstock.data.traces import read_trace, write_trace
from penstock.domain.errors import InputError
from penstock.experiments.presets import workload_of_trace

app = typer.Typer(help="Make and describe arrival traces.", no_args_is_help=True)


@app.command()
def synth(
    out: Annotated[Path, typer.Option("--out", help="File to write, one rate per line.")],
    like: Annotated[str, typer.Option("--like", help=f"Kind of trace: {DAY_AND_WEEK}.")] = DAY_AND_WEEK,
    slots: Annotated[
        int, typer.Option("--slots", help="Length; a slot is a minute.")
    ] = options.SYNTHETIC_SLOTS,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same trace.")] = 1,
    mean_rate: Annotated[float, typer.Option("--mean-rate", help="Tuples/s on average.")] = 330.0,
    json_output: options.JsonOption = False,
) -> None:
    """Write a synthetic trace with daily and weekly patterns, noise and bursts."""
    if like != DAY_AND_WEEK:
        raise InputError(f"--like '{like}': unknown; choose {DAY_AND_WEEK}")
    made = day_and_week(slots=slots, seed=seed, mean_rate=mean_rate)
    write_trace(made, out)
    if json_output:
        screen.print_json({"out": str(out), "slots": made.rates.size, "mean": float(made.rates.mean())})
    else:
        screen.out.print(f"{out}: {made.rates.size:,} slots, mean {made.rates.mean():.1f} tuples/s")


@app.command()
def describe(
    trace: Annotated[Path, typer.Argument(help="Trace file, one rate per line.")],
    levels: Annotated[
        int, typer.Option("--levels", min=1, help="Rate levels for the persistence figure.")
    ] = 30,
    max_rate: Annotated[
        float | None,
        typer.Option("--max-rate", help="Top of the highest level; the preset's, else the maximum."),
    ] = None,
    json_output: options.JsonOption = False,
) -> None:
    """Print a trace's statistics: spread, percentiles, memory, bursts."""
    given = read_trace(trace)
    preset = workload_of_trace(given.name)
    top = (
        max_rate
        if max_rate is not None
        else preset.max_rate
        if preset
        else max(float(given.rates.max()), 1.0)
    )
    if not 0 < top < inf:
        raise InputError(f"--max-rate {top:g}: it must be positive and finite")
    statistics = asdict(describe_trace(given, levels=levels, max_rate=top))
    if json_output:
        screen.print_json({"trace": given.name, **statistics})
        return
    screen.print_table(
        ("", given.name),
        [
            (
                name.replace("_", " "),
                "unknown" if value is None else f"{value:,.4g}" if isinstance(value, float) else f"{value:,}",
            )
            for name, value in statistics.items()
        ],
    )
