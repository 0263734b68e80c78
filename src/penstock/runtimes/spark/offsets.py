"""What a query has taken and how far it has come, from what Spark itself writes into its checkpoint."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from penstock.domain.errors import InputError

_PARTITIONS = "spark.sql.shuffle.partitions"


class Taken(NamedTuple):
    """A micro-batch, told from all others: the same again after a crash, and only then."""

    query: str  # Spark's name for it, the same however often it is started from this checkpoint
    epoch: int
    upto: str  # offsets where it ends


class Progress(NamedTuple):
    """How far a query has come."""

    query: str
    epoch: int  # of the last micro-batch that was committed; -1 before the first
    reached: Mapping[str, int]  # stream -> the first batch not taken yet
    partitions: int | None  # of its state; None before the first micro-batch


def taken(checkpoint: Path, epoch: int) -> Taken:
    return Taken(_query(checkpoint), epoch, "\n".join(_lines(checkpoint, epoch)[2:]))


def progress(checkpoint: Path) -> Progress | None:
    """None where no query was ever started."""
    if not (checkpoint / "metadata").exists():
        return None
    epoch = _latest(checkpoint / "commits")
    if epoch < 0:
        return Progress(_query(checkpoint), epoch, {}, None)
    try:
        partitions = json.loads(_lines(checkpoint, epoch)[1])["conf"].get(_PARTITIONS)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as problem:
        raise _unreadable(checkpoint, problem) from problem
    return Progress(
        _query(checkpoint),
        epoch,
        _offsets(checkpoint, epoch),
        None if partitions is None else int(partitions),
    )


def windows_to_close(checkpoint: Path) -> bool:
    """Whether time has moved on with the last micro-batch: Spark then runs one without data, which closes
    what has come to its end (where the operator keeps anything that can)."""
    epoch = _latest(checkpoint / "commits")
    if epoch < 0:
        return False
    before = json.loads(_lines(checkpoint, epoch)[1])["batchWatermarkMs"]
    lines = (checkpoint / "commits" / str(epoch)).read_text(encoding="utf-8").splitlines()
    return int(json.loads(lines[1]).get("nextBatchWatermarkMs", 0)) > int(before)


def _query(checkpoint: Path) -> str:
    try:
        return str(json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))["id"])
    except (OSError, ValueError, LookupError, TypeError) as problem:
        raise _unreadable(checkpoint, problem) from problem


def _unreadable(checkpoint: Path, problem: Exception) -> InputError:
    return InputError(f"{checkpoint}: not a checkpoint that can be gone on with: {problem}")


def consumed(checkpoint: Path, epoch: int) -> dict[str, tuple[int, int]]:
    """Stream -> (first batch, the one after the last) of this micro-batch."""
    end = _offsets(checkpoint, epoch)
    start = _offsets(checkpoint, epoch - 1) if epoch else {}
    return {stream: (start.get(stream, 0), last) for stream, last in end.items()}


def began_s(checkpoint: Path, epoch: int) -> float:
    """When this micro-batch began."""
    return float(json.loads(_lines(checkpoint, epoch)[1])["batchTimestampMs"]) / 1000


def _offsets(checkpoint: Path, epoch: int) -> dict[str, int]:
    """Of our own streams: what other sources write is theirs."""
    read = [json.loads(line) for line in _lines(checkpoint, epoch)[2:] if line.startswith("{")]
    return {str(offset["log"]): int(offset["batch"]) for offset in read if offset.keys() == {"log", "batch"}}


def _lines(checkpoint: Path, epoch: int) -> list[str]:
    """A version, the batch's settings, then one offset per source."""
    return (checkpoint / "offsets" / str(epoch)).read_text(encoding="utf-8").splitlines()


def begun(checkpoint: Path) -> int:
    """The latest micro-batch that was begun; -1 before the first."""
    return _latest(checkpoint / "offsets")


def at_rest(checkpoint: Path) -> bool:
    """Whether every micro-batch that was begun has been committed."""
    return begun(checkpoint) == _latest(checkpoint / "commits")


def _latest(directory: Path) -> int:
    return max((int(path.name) for path in directory.glob("[0-9]*") if path.name.isdecimal()), default=-1)
