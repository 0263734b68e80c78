"""What is done to the checkpoint of a query that is down, so that a crash at any moment can be mended.

    <name>             the checkpoint
    <name>.copy        whole, or not there: as it was before its state was repartitioned

Each of these may be done again after it was cut short, and ends as if it had been done once.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from penstock.files import copy_to_disk, put_on_disk
from penstock.reconfigure.words import Command, RepartitionState, RestoreCheckpoint
from penstock.runtimes.spark.offsets import at_rest, begun, progress
from penstock.runtimes.spark.stream_log import StreamLog

Repartition = Callable[[str, int], object]  # Spark's: (checkpoint, partitions)


def remove_half_written(checkpoint: Path) -> None:
    """What a driver that was killed was just writing: Spark starts no query beside such a file where it has
    not begun its first micro-batch."""
    for part in ("offsets", "commits"):
        for left in (checkpoint / part).glob(".*.tmp*"):
            left.unlink()


def remove_unfinished_copies(checkpoint: Path) -> None:
    """What it would have been copied from is whole."""
    for of in (checkpoint, _copy_of(checkpoint)):
        for left in _beside(of):
            shutil.rmtree(left, ignore_errors=True)


def copy(checkpoint: Path) -> None:
    """Beside it, in place of an earlier copy."""
    _put(checkpoint, _copy_of(checkpoint))


def repartition(checkpoint: Path, partitions: int, by: Repartition) -> int:
    """Spark takes the same number again after a failure, and no other; after success it refuses it.

    Returns the bytes of the state.
    """
    now = progress(checkpoint)
    if now is None or now.partitions != partitions or not at_rest(checkpoint):
        by(str(checkpoint), partitions)
    return sum(file.stat().st_size for file in (checkpoint / "state").rglob("*") if file.is_file())


def restore(checkpoint: Path, log: StreamLog) -> bool:
    """Put the copy in its place; False where the query has worked since, and goes on from where it is.

    What it took in since may be gone from its inputs, and what came of it was published: from the copy it
    would be lost, or come twice.
    """
    if _worked_since_copied(checkpoint, log):
        return False
    _put(_copy_of(checkpoint), checkpoint)
    return True


def go_on(command: Command | None, checkpoint: Path, log: StreamLog, by: Repartition) -> str | None:
    """Finish what a crash has interrupted, so that the query can be started; says what was done.

    Before a repartitioning nothing of the checkpoint was touched, and after one it is whole.
    """
    if isinstance(command, RepartitionState):
        try:
            repartition(checkpoint, command.partitions, by)
        except Exception as problem:  # whatever Spark raises: the copy is what is left
            done = "was restored" if restore(checkpoint, log) else "stays as it is"
            return f"its state {done}: not cut into {command.partitions} partitions, {problem}"
        return f"its state has {command.partitions} partitions"
    if isinstance(command, RestoreCheckpoint):
        return "its state was restored" if restore(checkpoint, log) else "it goes on with its new state"
    return None


def _worked_since_copied(checkpoint: Path, log: StreamLog) -> bool:
    now, then = progress(checkpoint), progress(_copy_of(checkpoint))
    if now is None or then is None:  # half restored
        return False
    last = log.last()
    # What was under way when it was copied may have been published before.
    published = last is not None and last.query == now.query and last.epoch > begun(_copy_of(checkpoint))
    return published or now.reached != then.reached


def _copy_of(checkpoint: Path) -> Path:
    return checkpoint.with_name(f"{checkpoint.name}.copy")


def _beside(target: Path) -> tuple[Path, Path]:
    """What is to come in its place, and what was there."""
    return target.with_name(f"{target.name}.unfinished"), target.with_name(f"{target.name}.old")


def _put(origin: Path, target: Path) -> None:
    """A copy of one folder in the place of another; cut short, `origin` is as it was."""
    unfinished, old = _beside(target)
    for left in (unfinished, old):
        shutil.rmtree(left, ignore_errors=True)
    copy_to_disk(origin, unfinished)
    if target.exists():
        os.rename(target, old)
    os.rename(unfinished, target)
    put_on_disk(target.parent)
    shutil.rmtree(old, ignore_errors=True)
