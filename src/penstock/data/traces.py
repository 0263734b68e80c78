"""Trace files: plain text, one arrival rate in tuples per second per line, one line per slot."""

from math import isfinite
from pathlib import Path

import numpy as np

from penstock.domain.errors import InputError
from penstock.domain.trace import LARGEST_RATE, Trace
from penstock.files import content_of, write_whole


def read_trace(path: Path) -> Trace:
    """The trace in a file, or an error that names file, line and value."""
    try:
        text = content_of(path).decode("utf-8-sig")  # a byte-order mark is not part of a number
    except UnicodeDecodeError as problem:
        raise InputError(f"{path}: not a text file; a trace has one number per line") from problem
    except OSError as problem:
        raise InputError(f"{path}: cannot read: {problem.strerror or problem}") from problem
    lines = text.splitlines()
    if not lines:
        raise InputError(f"{path}: empty; a trace has one number per line")
    try:
        rates = np.array(lines, dtype=np.float64)
        # Python reads 1_000 and digits of other scripts; in a trace they are slips.
        usable = "_" not in text and text.isascii() and bool(((rates >= 0) & (rates <= LARGEST_RATE)).all())
    except ValueError:
        usable = False
    if not usable:
        raise InputError(_first_bad_line(path, lines))
    return Trace(path.stem, rates)


def _first_bad_line(path: Path, lines: list[str]) -> str:
    for number, line in enumerate(lines, start=1):
        shown = line.strip()[:40]
        try:
            rate = float(line.replace("_", "?") if line.isascii() else "?")
        except ValueError:
            return f"{path}: line {number}: '{shown}' is not a number"
        if not isfinite(rate):
            return f"{path}: line {number}: '{shown}' is not a finite rate"
        if rate < 0:
            return f"{path}: line {number}: {shown} is negative; rates are tuples per second"
        if rate > LARGEST_RATE:
            return f"{path}: line {number}: {shown} is above {LARGEST_RATE:g} tuples per second"
    return f"{path}: not a trace"


def write_trace(trace: Trace, path: Path) -> None:
    """Write the whole trace, or nothing."""
    write_whole(path, trace_text(trace))


def trace_text(trace: Trace) -> str:
    """A line per slot."""
    return "".join(f"{rate!r}\n" if rate % 1 else f"{rate:.0f}\n" for rate in trace.rates.tolist())
