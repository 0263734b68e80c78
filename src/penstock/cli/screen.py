"""What goes to the terminal: results on standard output, progress on standard error."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

_LONGEST = 1000  # characters of a message; the longest that says something useful has some 600

# rich is imported when something is printed: `--help` should not wait for it.
if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    out: Console
    err: Console


def __getattr__(name: str) -> "Console":
    """`out` and `err`, made when first used."""
    if name not in ("out", "err"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from rich.console import Console

    # No markup: names of files and policies are shown as they are, square brackets and all.
    console = Console(stderr=name == "err", highlight=False, markup=False)
    if name == "out" and not console.is_terminal:
        console.width = 200  # rich takes a pipe for a terminal of 80 columns, and would cut figures off
    globals()[name] = console
    return console


def _this() -> Any:
    """This module, through which its consoles are made."""
    return sys.modules[__name__]


def print_json(value: Any) -> None:
    """One JSON object and nothing else."""
    print(json_text(value))


def json_text(value: Any) -> str:
    return json.dumps(value, indent=2, allow_nan=False)


def print_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, title: str | None = None, words: bool = False
) -> None:
    """A table of figures, or of words."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD)
    for index, name in enumerate(header):
        left = words or index == 0
        table.add_column(name, justify="left" if left else "right", no_wrap=index == 0)
    for row in rows:
        table.add_row(*row)
    _this().out.print(table)


@contextmanager
def progress(what: str, total: int | None) -> Iterator["Bar"]:
    """A bar on standard error during something long."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    err = _this().err
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
        yield Bar(bars, bars.add_task(what, total=total))


@contextmanager
def busy(what: str) -> Iterator[None]:
    """A spinner on standard error during something of unknown length."""
    with _this().err.status(what):
        yield


class Bar:
    """One bar of a progress display."""

    def __init__(self, bars: "Progress", task: Any) -> None:
        self._bars, self._task = bars, task

    def of(self, total: int) -> None:
        self._bars.update(self._task, total=total)

    def say(self, what: str) -> None:
        self._bars.update(self._task, description=what)

    def advance(self) -> None:
        self.advance_by(1)

    def advance_by(self, count: int) -> None:
        self._bars.advance(self._task, count)


def complain(problem: Exception | str) -> None:
    """What went wrong, in one line."""
    print(f"penstock: {one_line(str(problem))}", file=sys.stderr)


def one_line(text: str) -> str:
    """A message that a person can read: what it quotes may be anything, and of any length."""
    joined = " ".join(text.split())
    shown = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in joined)
    if len(shown) <= _LONGEST:
        return shown
    half = _LONGEST // 2
    return f"{shown[:half]}... ({len(shown) - 2 * half:,} characters) ...{shown[-half:]}"
