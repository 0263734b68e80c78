"""`penstock replay`: make the decisions of a journal again."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import options, policy_options, screen
from penstock.domain.errors import InputError


def replay(
    journal: Annotated[Path, typer.Argument(help="Journal of a run: journal.jsonl, or the folder it is in.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", help="A policy of your own that the journal names, as module:Class; repeatable."
        ),
    ] = None,
    json_output: options.JsonOption = False,
) -> None:
    """Make a journal's decisions again and report the first difference; exit status 1 if there is one."""
    from penstock.control.build import build_controller
    from penstock.control.replay import replay as decide_again
    from penstock.journal_file import read_journal
    from penstock.policy.registry import load_any

    for name in policy or ():
        policy_options.look_here()
        load_any(name)
    path = journal / "journal.jsonl" if journal.is_dir() else journal
    try:
        answer = decide_again(read_journal(path), build_controller)
    except InputError as problem:
        named = str(problem) if str(path) in str(problem) else f"{path}: {problem}"
        raise InputError(named) from problem
    difference = answer.difference
    if json_output:
        screen.print_json(
            {"ticks": answer.ticks, "difference": None if difference is None else asdict(difference)}
        )
    elif difference is None:
        screen.out.print(f"{path}: {answer.ticks} rounds decided again, no difference")
    else:
        screen.out.print(f"{path}: {difference}", markup=False)
    if difference is not None:
        raise typer.Exit(1)
