"""`penstock trace`: make, build and describe arrival traces."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import penstock
from penstock.cli import options, screen
from penstock.cli.teaching import Teaching
from penstock.domain.errors import InputError
from penstock.files import check_can_write, write_whole

if TYPE_CHECKING:
    from penstock.domain.trace import Trace

app = typer.Typer(help="Make, build and describe arrival traces.", no_args_is_help=True)

OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace an output that differs.")]
OutOption = Annotated[Path, typer.Option("--out", help="File to write, one rate per line.")]


@app.command(cls=Teaching)
def synth(
    out: Annotated[Path, typer.Option("--out", help="File to write; a directory with --events.")],
    like: Annotated[str, typer.Option("--like", help="Kind of trace: {traces}.")] = "day-and-week",
    slots: Annotated[
        int | None, typer.Option("--slots", help="Length; a slot is a minute. Four weeks if left out.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same trace.")] = 1,
    mean_rate: Annotated[
        float | None, typer.Option("--mean-rate", help="Tuples/s on average; the kind's own if left out.")
    ] = None,
    events: Annotated[
        str | None,
        typer.Option("--events", help="Raw events instead of rates, on Spark: {events}."),
    ] = None,
    rows: Annotated[int, typer.Option("--rows", help="How many events.")] = 1_000_000,
    master: options.MasterOption = None,
    overwrite: OverwriteOption = False,
    json_output: options.JsonOption = False,
) -> None:
    """Write a synthetic trace, or raw synthetic events.

    Example: penstock trace synth --like taxi --seed 1 --slots 525533 --out taxi-synthetic.txt
    """
    if events is not None:
        _synth_events(events, rows=rows, seed=seed, slots=slots, out=out, master=master, overwrite=overwrite)
        found: dict[str, object] = {"out": str(out), "events": events, "rows": rows}
        told = f"{out}: {rows:,} {events}"
    else:
        length = options.SYNTHETIC_SLOTS if slots is None else slots
        from penstock.data.synthetic import synthetic_trace

        made = synthetic_trace(like, slots=length, seed=seed, mean_rate=mean_rate)
        _write_trace(made, out, overwrite=overwrite)
        found = {"out": str(out), "slots": made.rates.size, "mean": float(made.rates.mean())}
        told = f"{out}: {made.rates.size:,} slots, mean {made.rates.mean():.1f} tuples/s"
    if json_output:
        screen.print_json(found)
    else:
        screen.out.print(told)


def _synth_events(
    events: str, *, rows: int, seed: int, slots: int | None, out: Path, master: str | None, overwrite: bool
) -> None:
    from penstock.data.sources import is_made_by, write_lines
    from penstock.data.spark_session import spark_session
    from penstock.data.synthetic_events import EVENTS

    if events not in EVENTS:
        raise InputError(f"--events '{events}': unknown; choose one of {', '.join(EVENTS)}")
    if rows < 1 or (slots is not None and slots < 1):
        raise InputError(f"--rows {rows}, --slots {slots}: give at least one")
    made_by = f"penstock {penstock.__version__}: {rows} {events}, seed {seed}, slots {slots}\n"
    if is_made_by(out, made_by) and not overwrite:
        return  # making the same again changes nothing
    if out.exists() and not overwrite:
        raise InputError(f"{out}: exists; choose another name or --overwrite")
    with screen.err.status(f"making {rows:,} {events}"), spark_session(master) as spark:
        write_lines(EVENTS[events](spark, rows=rows, seed=seed, slots=slots), out, made_by=made_by)


@app.command(cls=Teaching)
def build(
    data: Annotated[str, typer.Argument(help="A file or directory of raw data, or a URI Spark can read.")],
    kind: Annotated[str, typer.Option("--kind", help="Kind of raw data: {raw_kinds}.")],
    out: OutOption,
    slot_s: Annotated[
        float, typer.Option("--slot-s", help="Length of a slot in (accelerated) seconds.")
    ] = 60.0,
    accelerate: Annotated[float, typer.Option("--accelerate", help="Divide time by this factor.")] = 1.0,
    amplify: Annotated[float, typer.Option("--amplify", help="How many events to make of each one.")] = 1.0,
    gap_slots: Annotated[
        int, typer.Option("--gap-slots", help="More consecutive empty slots than this are a gap, not zeros.")
    ] = 60,
    since: Annotated[str, typer.Option("--from", help="Rows dated before this day are bad.")] = "2000-01-01",
    until: Annotated[
        str, typer.Option("--until", help="Rows dated this day or later are bad.")
    ] = "2100-01-01",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed for the surrogate events.")] = 1,
    master: options.MasterOption = None,
    overwrite: OverwriteOption = False,
    json_output: options.JsonOption = False,
) -> None:
    """Count raw events per slot, on Spark. Bad rows go to OUT.quarantine with file, line and reason.

    Example: penstock trace build trips.csv --kind debs2015 --accelerate 60 --slot-s 1 --out taxi.txt
    """
    from penstock.data.build import Recipe, build_trace
    from penstock.data.raw import local_files
    from penstock.data.sources import kind_named, remove_table, write_table
    from penstock.data.spark_session import spark_errors, spark_session

    source = kind_named(kind)
    recipe = Recipe(
        slot_s=slot_s,
        gap_slots=gap_slots,
        acceleration=accelerate,
        amplification=amplify,
        seed=seed,
        since=_day("--from", since),
        until=_day("--until", until),
    )
    check_can_write(out)
    files = local_files(data, endings=source.endings)
    quarantine = out.with_name(f"{out.name}.quarantine")
    with screen.err.status(f"reading {data}"), spark_session(master) as spark, spark_errors(data):
        built = build_trace(spark, source, files, recipe, name=out.stem)
        _check_output(built.trace, out, overwrite=overwrite)
        if built.quarantine is not None:
            write_table(built.quarantine, quarantine)
        else:
            remove_table(quarantine)  # left by an earlier run, about other rows
        _write_trace(built.trace, out, overwrite=overwrite)
    found = {
        "out": str(out),
        "rows": built.rows,
        "bad": built.bad,
        "quarantine": str(quarantine) if built.bad else None,
        "start": built.start.isoformat(),
        "slots": built.trace.rates.size,
        "mean": float(built.trace.rates.mean()),
        "gaps": [{"since": begins.isoformat(), "slots": length} for begins, length in built.gaps],
    }
    if json_output:
        screen.print_json(found)
        return
    screen.out.print(
        f"{out}: {built.rows - built.bad:,} events in {built.trace.rates.size:,} slots of {slot_s:g} s from "
        f"{built.start:%Y-%m-%d %H:%M}, mean {built.trace.rates.mean():.1f} tuples/s",
        soft_wrap=True,
    )
    if built.bad:
        screen.out.print(f"{built.bad:,} bad rows: {quarantine}", soft_wrap=True)
    for begins, length in built.gaps:
        screen.out.print(f"gap of {length:,} slots from {begins:%Y-%m-%d %H:%M}, left out")


def _day(option: str, text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise InputError(f"{option} '{text}': give a day, as in 2013-01-01") from None


def _check_output(trace: "Trace", out: Path, *, overwrite: bool) -> None:
    """Writing the same again is fine; a different output is replaced only on request."""
    from penstock.data.traces import trace_text

    try:
        different = out.is_file() and out.read_text(encoding="utf-8") != trace_text(trace)
    except UnicodeDecodeError:
        different = True
    except OSError as problem:
        raise InputError(f"{out}: cannot write: {problem.strerror or problem}") from problem
    if different and not overwrite:
        raise InputError(f"{out}: exists and differs; choose another name or --overwrite")


def _write_trace(trace: "Trace", out: Path, *, overwrite: bool) -> None:
    from penstock.data.traces import trace_text

    _check_output(trace, out, overwrite=overwrite)
    write_whole(out, trace_text(trace))


@app.command(cls=Teaching)
def describe(
    trace: Annotated[Path, typer.Argument(help="Trace file, one rate per line.")],
    levels: Annotated[
        int, typer.Option("--levels", min=1, help="Rate levels for the persistence figure.")
    ] = 30,
    max_rate: Annotated[
        float | None,
        typer.Option("--max-rate", help="Top of the highest level; the preset's or the maximum if left out."),
    ] = None,
    against: Annotated[
        Path | None, typer.Option("--against", help="Another trace to compare it with, such as the real one.")
    ] = None,
    page: Annotated[Path | None, typer.Option("--page", help="Also write a page of plots (HTML).")] = None,
    json_output: options.JsonOption = False,
) -> None:
    """Print a trace's statistics (spread, percentiles, memory, bursts), beside another trace's if given.

    Example: penstock trace describe taxi-synthetic.txt --against taxi.txt --page synthetic.html
    """
    from penstock.data.statistics import TraceStatistics
    from penstock.data.statistics import describe as describe_trace
    from penstock.data.traces import read_trace

    given = [read_trace(path) for path in (trace, against) if path is not None]
    # One discretisation for both, or their persistence cannot be compared.
    top = _top_rate(given[-1], max_rate)
    described = [describe_trace(each, levels=levels, max_rate=top) for each in given]
    if page is not None:
        from penstock.reports.traces import traces_page

        write_whole(page, traces_page(list(zip(given, described, strict=True))))
    if json_output:
        beside = {"against": {"trace": given[1].name, **asdict(described[1])}} if len(given) > 1 else {}
        screen.print_json({"trace": given[0].name, **asdict(described[0]), **beside})
        return
    screen.print_table(
        ("", *(each.name for each in given)),
        [
            (name.replace("_", " "), *(_shown(getattr(each, name)) for each in described))
            for name in TraceStatistics.__dataclass_fields__
        ],
    )
    if page is not None:
        screen.out.print(f"plots: {page}")


def _top_rate(trace: "Trace", max_rate: float | None) -> float:
    from penstock.simulation.presets import workload_of_trace

    preset = workload_of_trace(trace.name)
    top = (
        max_rate
        if max_rate is not None
        else preset.max_rate
        if preset
        else max(float(trace.rates.max()), 1.0)
    )
    if not 0 < top < float("inf"):
        raise InputError(f"--max-rate {top:g}: it must be positive and finite")
    return top


def _shown(value: float | int | None) -> str:
    return "unknown" if value is None else f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
