"""How long commands take to start, as multiples of an empty Python program measured in the same run."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from penstock.bench.figure import Figure

_ROUNDS = 5
_EMPTY = ("-c", "pass")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    name: str
    arguments: tuple[str, ...]  # of the Python interpreter
    at_most: float  # times an empty program


# An empty Python program takes a sixtieth of a second where these limits were set (Python 3.11, two
# shared cores, nothing else running). So 18 times as long stands for .3 s, 60 times for one second,
# and 3 times for an import nobody notices.
_STARTS = (
    _Start(name="import penstock", arguments=("-c", "import penstock"), at_most=3),
    _Start(name="penstock --help", arguments=("-m", "penstock", "--help"), at_most=18),
    _Start(name="penstock simulate --help", arguments=("-m", "penstock", "simulate", "--help"), at_most=18),
    _Start(
        name="penstock simulate, ql-pds, 400,001 slots",
        arguments=("-m", "penstock", "simulate", "--policy", "ql-pds", "--slots", "400001", "--json"),
        at_most=60,
    ),
)


def wall_seconds(arguments: Sequence[str]) -> float:
    """How long somebody waits for a Python program, from its start to its end."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL, timeout=600
    )
    return time.perf_counter() - began


def startup_figures(
    seconds_of: Callable[[Sequence[str]], float] = wall_seconds, *, rounds: int = _ROUNDS
) -> Iterator[Figure]:
    """The best of several rounds, after one that leaves bytecode and machine code on disk."""
    programs = [_EMPTY, *(start.arguments for start in _STARTS)]
    taken = [[seconds_of(program) for program in programs] for _ in range(rounds + 1)][1:]
    empty, *others = (min(of_one) for of_one in zip(*taken, strict=True))
    yield Figure(name="an empty Python program", value=1000 * empty, unit="ms")
    for start, seconds in zip(_STARTS, others, strict=True):
        yield Figure(
            name=f"{start.name}, over an empty program",
            value=seconds / empty,
            unit="x",
            at_most=start.at_most,
        )
