"""`penstock chaos`: runs with known results under faults that nobody chose."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import options, screen
from penstock.cli.ending import ending_as_with_ctrl_c
from penstock.domain.errors import InputError

if TYPE_CHECKING:
    from penstock.chaos.scenario import Kind
    from penstock.chaos.trial import Outcome

_MOST = 1_000_000  # a year of them


def chaos(
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, max=_MOST, help="How many trials, each with its seed.")
    ] = 10,
    first: Annotated[int, typer.Option("--first", min=0, help="Seed of the first one.")] = 1,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="This trial alone, for instance one that failed.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="WORDS", help="Faults that have these words only; may be repeated."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the runs; those that went well are removed.")
    ] = Path("out/chaos"),
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folders of all of them.")] = False,
    json_output: options.JsonOption = False,
) -> None:
    """Run a small application under forced scaling, and break things while it runs: kill and stop executors,
    workers, Python, master and driver; fill or slow the disk; move the clock; give orders; start a second
    controller. What happens when is drawn from a seed.

    A trial is right when every result is there, once and as it has to be, the journal replays, and no process
    or file is left. Exit status 1 if one is not; its folder stays, and --seed runs it again.

    Example: penstock chaos --seeds 100
    """
    from penstock.chaos.scenario import scenario
    from penstock.chaos.trial import Trial
    from penstock.java import java

    kinds = _kinds(only or [])
    java()
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out}: not a folder")
    chosen = [seed] if seed is not None else list(range(first, first + seeds))
    outcomes: list[Outcome] = []
    with ending_as_with_ctrl_c(), screen.progress("chaos", len(chosen)) as bar:
        for number in chosen:
            bar.say(f"seed {number}")
            folder = out.absolute() / f"seed-{number}"
            try:
                outcome = Trial(scenario(number, kinds), folder, bar.say).run()
            except OSError as problem:
                raise InputError(f"--out {out}: {problem.strerror or problem}") from problem
            outcomes.append(outcome)
            if outcome.right and not keep:
                shutil.rmtree(folder)
            screen.err.print(_line(outcome), soft_wrap=True)
            bar.advance()
    _tell(outcomes, out, json_output=json_output)
    if not all(outcome.right for outcome in outcomes):
        raise typer.Exit(1)


def _kinds(only: list[str]) -> "tuple[Kind, ...]":
    from penstock.chaos.scenario import Kind

    found = tuple(kind for kind in Kind if not only or any(words in kind.value for words in only))
    if not found:
        raise InputError(f"--only '{' '.join(only)}': no fault has these words; there are: {', '.join(Kind)}")
    return found


def _line(outcome: "Outcome") -> str:
    said = "right" if outcome.right else f"WRONG: {'; '.join(outcome.problems)}"
    happened = "; ".join(outcome.happened) or "nothing happened"
    if outcome.left_out:
        happened += f"; not: {', '.join(outcome.left_out)}"
    scenario = outcome.scenario
    return (
        f"seed {scenario.seed}: {said} ({scenario.described}; {happened}; "
        f"started {'once' if outcome.starts == 1 else f'{outcome.starts} times'}, "
        f"{outcome.changes} changes of replicas, {outcome.seconds:.0f} s)"
    )


def _tell(outcomes: "list[Outcome]", out: Path, *, json_output: bool) -> None:
    wrong = [outcome for outcome in outcomes if not outcome.right]
    if json_output:
        screen.print_json(
            {
                "wrong": len(wrong),
                "trials": [
                    {
                        "seed": one.scenario.seed,
                        "right": one.right,
                        "problems": one.problems,
                        "run": one.scenario.described,
                        "happened": one.happened,
                        "left_out": one.left_out,
                        "starts": one.starts,
                        "changes": one.changes,
                        "seconds": round(one.seconds, 1),
                    }
                    for one in outcomes
                ],
            }
        )
        return
    faults = sum(len(one.happened) for one in outcomes)
    not_had = sum(len(one.left_out) for one in outcomes)
    seconds = sum(one.seconds for one in outcomes)
    screen.out.print(
        f"{len(outcomes)} trials, {faults} faults ({not_had} more could not be had), "
        f"{sum(one.changes for one in outcomes)} changes of replicas, {len(wrong)} wrong, "
        f"in {seconds / 60:.0f} minutes",
        soft_wrap=True,
    )
    for one in wrong:
        number = one.scenario.seed
        screen.out.print(
            f"again: penstock chaos --seed {number}; its folder: {out / f'seed-{number}'}", soft_wrap=True
        )
