"""Which batches a micro-batch read, from what Spark itself wrote down before running it."""

import json
from pathlib import Path


def consumed(checkpoint: Path, epoch: int) -> dict[str, tuple[int, int]]:
    """Stream -> (first batch, the one after the last) of this micro-batch."""
    end = _offsets(checkpoint, epoch)
    start = _offsets(checkpoint, epoch - 1) if epoch else {}
    return {stream: (start.get(stream, 0), last) for stream, last in end.items()}


def began_s(checkpoint: Path, epoch: int) -> float:
    """When this micro-batch began."""
    return float(json.loads(_lines(checkpoint, epoch)[1])["batchTimestampMs"]) / 1000


def _offsets(checkpoint: Path, epoch: int) -> dict[str, int]:
    read = [json.loads(line) for line in _lines(checkpoint, epoch)[2:] if line.startswith("{")]
    return {str(offset["log"]): int(offset["batch"]) for offset in read}


def _lines(checkpoint: Path, epoch: int) -> list[str]:
    """A version, the batch's settings, then one offset per source."""
    return (checkpoint / "offsets" / str(epoch)).read_text(encoding="utf-8").splitlines()


def at_rest(checkpoint: Path) -> bool:
    """Whether every micro-batch that was begun has been committed."""
    begun, done = _latest(checkpoint / "offsets"), _latest(checkpoint / "commits")
    return begun == done


def _latest(directory: Path) -> int:
    return max((int(path.name) for path in directory.glob("[0-9]*") if path.name.isdecimal()), default=-1)
