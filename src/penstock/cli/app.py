"""All commands, and how their errors reach the user: one line, and an exit status that says what kind."""

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

import penstock
from penstock.cli import (
    bench,
    chaos,
    compare,
    listing,
    order,
    plan,
    power,
    replay,
    reproduce,
    run,
    screen,
    simulate,
    sweep,
    trace,
)
from penstock.cli.teaching import Teaching
from penstock.domain.errors import InputError

app = typer.Typer(
    name="penstock",
    help="Keeps stream-processing applications inside their response-time objective at the lowest cost.",
    no_args_is_help=True,
    add_completion=False,
    add_help_option=False,  # typer's own loads pydantic whenever it is not given
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: drawing it with rich takes as long as everything else
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run", cls=Teaching)(run.run)
app.command("simulate", cls=Teaching)(simulate.simulate)
app.command("compare", cls=Teaching)(compare.compare)
app.command("plan", cls=Teaching)(plan.plan)
app.command("reproduce", cls=Teaching)(reproduce.reproduce)
app.command("sweep", cls=Teaching)(sweep.sweep)
app.command("replay", cls=Teaching)(replay.replay)
app.command("bench", cls=Teaching)(bench.bench)
app.command("chaos", cls=Teaching)(chaos.chaos)
app.command("power", cls=Teaching)(power.power)
app.command("policies", cls=Teaching)(listing.policies)
app.add_typer(order.app, name="order")
app.add_typer(trace.app, name="trace")

_INTERRUPTED = 130  # what typer makes of Ctrl-C


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(penstock.__version__)
        raise typer.Exit


def _help(context: typer.Context, wanted: bool) -> None:
    if wanted:
        typer.echo(context.get_help())
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    help_: Annotated[
        bool,
        typer.Option("--help", "-h", callback=_help, is_eager=True, help="Show this message and exit."),
    ] = False,
) -> None:
    """Keeps stream-processing applications inside their response-time objective at the lowest cost."""


def main() -> None:
    """Exit status 0 on success, 2 on a usage or input error, 1 on a failed run."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # names of files are any bytes, and are shown somehow
            stream.reconfigure(errors="backslashreplace")
    try:
        status = app(standalone_mode=False)
    except InputError as problem:
        sys.exit(_complain(str(problem), 2))
    except typer.TyperException as problem:
        message = _usage_error(problem)
        if message.startswith("Usage:"):  # no command was given: the help is the whole answer
            print(message, file=sys.stderr)
            sys.exit(2)
        sys.exit(_complain(message, 2))
    except (typer.Abort, KeyboardInterrupt):
        status = _INTERRUPTED
    except OSError as problem:  # standard output on a full disk, for example
        where = "" if problem.filename is None else f"{problem.filename}: "
        sys.exit(_complain(f"cannot continue: {where}{problem.strerror or problem}", 1))
    except MemoryError:
        sys.exit(_complain("out of memory; try fewer node types, replicas or threads", 1))
    if status == _INTERRUPTED:
        status = _complain("interrupted", 1)
    sys.exit(status if isinstance(status, int) else 0)


def _usage_error(problem: typer.TyperException) -> str:
    message = problem.format_message().rstrip(".")
    errors = getattr(problem.__cause__, "errors", None)  # of pydantic, which typer checks types with
    return message if errors is None else f"{message}; given '{errors()[0]['input']}'"


def _complain(message: str, status: int) -> int:
    if message:  # none when no command was given: the help has been printed
        screen.complain(message)
    return status
