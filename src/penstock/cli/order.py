"""`penstock order`: orders from a person to a running controller."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import screen
from penstock.domain.errors import InputError

if TYPE_CHECKING:
    from penstock.control.journal import Header
    from penstock.control.orders import Order

app = typer.Typer(
    no_args_is_help=True,
    help="Tell a running controller what to do: it obeys at its next interval and records the order.",
)
RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="Folder of the run (--out of `penstock run`).")
]


@app.command()
def pause(
    run: RunArgument,
    minutes: Annotated[float, typer.Option("--minutes", help="How long to change nothing.")] = 10.0,
) -> None:
    """Leave replicas as they are for a while."""
    from penstock.control.orders import Pause

    if not 0 < minutes < float("inf"):
        raise InputError(f"--minutes {minutes}: a pause must be positive and finite")
    _header(run)
    _give(run, Pause(until_s=time.time() + 60 * minutes), f"paused for {minutes:g} minutes")


@app.command()
def resume(run: RunArgument) -> None:
    """End a pause early."""
    from penstock.control.orders import Resume

    _header(run)
    _give(run, Resume(), "resumed")


@app.command()
def override(
    run: RunArgument,
    operator: Annotated[str, typer.Argument(help="The operator; those fused with it change too.")],
    replicas: Annotated[str, typer.Argument(help="How many; one number per node type, separated by commas.")],
) -> None:
    """Run exactly this many replicas of an operator, whatever the policies say, until lifted.

    Example: penstock order override out/run heavy 3
    """
    from penstock.control.orders import Override
    from penstock.domain.deployment import Replicas

    header = _header(run)
    try:
        counts = tuple(int(word) for word in replicas.split(","))
    except ValueError as problem:
        raise InputError(f"replicas '{replicas}': give whole numbers") from problem
    kinds = [kind.name for kind in header.controller.node_types]
    if len(counts) != len(kinds):
        raise InputError(f"replicas '{replicas}': give one number for each node type: {', '.join(kinds)}")
    chain = _chain(header, operator)
    most = _limits(header)[chain]
    if min(counts) < 0 or not 1 <= sum(counts) <= most:
        raise InputError(f"replicas '{replicas}': '{operator}' can have 1 to {most}")
    _give(run, Override(operator=chain, target=Replicas(counts)), f"{chain}: {replicas} from now on")


@app.command()
def lift(run: RunArgument, operator: Annotated[str, typer.Argument(help="The operator.")]) -> None:
    """Let an operator's policy decide for it again."""
    from penstock.control.orders import Lift

    chain = _chain(_header(run), operator)
    _give(run, Lift(operator=chain), f"{chain}: decided by its policy again")


def _give(run: Path, order: "Order", said: str) -> None:
    from penstock.live.inbox import ORDERS, give

    give(run / "work" / ORDERS, order)
    screen.out.print(f"{said}; it takes effect at the next interval")


def _header(run: Path) -> "Header":
    """How the controller running there was built."""
    from penstock.control.journal import Header
    from penstock.journal_file import read_journal

    if (run / "summary.json").exists():
        raise InputError(f"{run}: that run has ended")
    found = read_journal(run / "journal.jsonl", Header)
    headers = [entry for entry in found if isinstance(entry, Header)]
    if not headers:
        raise InputError(f"{run}: its controller is still measuring; try again in a while")
    return headers[-1]


def _limits(header: "Header") -> Mapping[str, int]:
    """How many replicas every chain may have."""
    return {one.name: one.max_replicas for one in header.controller.operators}


def _chain(header: "Header", operator: str) -> str:
    """The chain an operator belongs to; chains are named after their operators."""
    chains = _limits(header)
    for chain in chains:
        if operator in (chain, *chain.split("+")):
            return chain
    raise InputError(f"operator '{operator}': unknown; choose one of {', '.join(chains)}")
