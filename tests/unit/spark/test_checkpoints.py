"""Checkpoints of queries that are down: copied, repartitioned, put back, whatever was cut short before."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fake_checkpoints import QUERY, Repartitioning, begin, commit, new_checkpoint, partitions_of
from penstock.reconfigure.words import (
    Command,
    CopyCheckpoint,
    RepartitionState,
    RestoreCheckpoint,
    StartQuery,
    StopQuery,
)
from penstock.runtimes.spark.checkpoints import (
    copy,
    go_on,
    remove_half_written,
    remove_unfinished_copies,
    repartition,
    restore,
)
from penstock.runtimes.spark.offsets import Taken
from penstock.runtimes.spark.stream_log import StreamLog


class Killed(BaseException):
    """The driver dies here."""


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return new_checkpoint(tmp_path / "count")


@pytest.fixture
def log(tmp_path: Path) -> StreamLog:
    return StreamLog(tmp_path / "streams" / "count").create()


def publish(log: StreamLog, epoch: int) -> None:
    log.publish(epoch=epoch, files=[], published_at_s=0.0, origins=(), taken=Taken(QUERY, epoch, ""))


def test_a_copy_is_put_back(checkpoint: Path, log: StreamLog) -> None:
    copy(checkpoint)
    repartition(checkpoint, 8, Repartitioning())
    assert partitions_of(checkpoint) == 8
    assert restore(checkpoint, log)
    assert partitions_of(checkpoint) == 4
    assert (checkpoint / "state" / "0.sst").read_text() == "state"


@pytest.mark.parametrize("published", [True, False])
def test_a_query_that_has_worked_since_is_not_put_back(
    checkpoint: Path, log: StreamLog, published: bool
) -> None:
    """What it published would be taken for what comes later, and that dropped; or its input is gone."""
    publish(log, 0)
    copy(checkpoint)
    repartition(checkpoint, 8, Repartitioning())
    if published:
        publish(log, 2)  # and dies before it is committed
    else:
        begin(checkpoint, 2, 8, 7)
        commit(checkpoint, 2)
    assert not restore(checkpoint, log)
    assert partitions_of(checkpoint) == 8


def test_what_was_published_before_the_copy_is_not_work_since(checkpoint: Path, log: StreamLog) -> None:
    """A driver has died between publishing a micro-batch and committing it; then its state was copied."""
    begin(checkpoint, 2, 4, 7)
    publish(log, 2)
    copy(checkpoint)
    assert restore(checkpoint, log)


def test_what_was_half_written_goes_and_nothing_else(checkpoint: Path) -> None:
    """Spark's names: a file, its checksum, and both while they are written."""
    before = set(checkpoint.rglob("*"))
    kept = checkpoint / "offsets" / ".1.crc"
    for name in (".7.6f00b5cb-0a20.tmp", "..7.6f00b5cb-0a20.tmp.crc"):
        for part in ("offsets", "commits"):
            (checkpoint / part / name).write_text("")
    kept.write_text("sum")
    remove_half_written(checkpoint)
    assert set(checkpoint.rglob("*")) == before | {kept}
    remove_half_written(checkpoint / "none")


def test_a_copy_that_was_cut_short_leaves_nothing_and_what_is_whole_stays(checkpoint: Path) -> None:
    copy(checkpoint)
    whole = set(checkpoint.parent.rglob("*"))
    for name in ("count.unfinished", "count.old", "count.copy.unfinished", "count.copy.old"):
        shutil.copytree(checkpoint, checkpoint.with_name(name))
    other = new_checkpoint(checkpoint.with_name("account.old"))  # an operator's
    remove_unfinished_copies(checkpoint)
    assert set(checkpoint.parent.rglob("*")) - {other, *other.rglob("*")} == whole
    assert other.exists()


def test_repartitioning_that_is_through_is_not_done_again(checkpoint: Path) -> None:
    spark = Repartitioning()
    assert repartition(checkpoint, 8, spark) == repartition(checkpoint, 8, spark) == len("state")
    assert spark.done == [8]


def cut(command: Command) -> Callable[[Path, StreamLog, Repartitioning], None]:
    """What a driver does of a change until it is told to stop for ever, in the middle of this command."""

    def until(checkpoint: Path, log: StreamLog, spark: Repartitioning) -> None:
        if isinstance(command, StopQuery):
            return
        if isinstance(command, CopyCheckpoint):
            shutil.copytree(checkpoint, checkpoint.with_name("count.unfinished"))
            return
        copy(checkpoint)
        spark.fails = Killed if isinstance(command, RepartitionState) else None
        repartition(checkpoint, 8, spark)
        if isinstance(command, RestoreCheckpoint):
            restore(checkpoint, log)

    return until


@pytest.mark.parametrize(
    ("command", "left"),
    [
        (StopQuery(), 4),
        (CopyCheckpoint(), 4),
        (RepartitionState(partitions=8), 8),
        (StartQuery(), 8),
        (RestoreCheckpoint(), 4),
    ],
)
def test_a_change_cut_short_anywhere_leaves_a_checkpoint_that_starts(
    checkpoint: Path, log: StreamLog, command: Command, left: int
) -> None:
    spark = Repartitioning()
    try:
        cut(command)(checkpoint, log, spark)
    except Killed:
        spark.fails = None
        begun = checkpoint / "offsets" / "1"
        assert begun.exists()  # what Spark has begun and would refuse to start on
        begun.unlink()  # it takes up the same micro-batch again
    go_on(command, checkpoint, log, spark)
    assert partitions_of(checkpoint) == left
    go_on(command, checkpoint, log, spark)  # the next driver may die as well
    assert partitions_of(checkpoint) == left


@pytest.mark.parametrize("step", range(4))
def test_putting_back_may_be_cut_short_at_every_step(
    checkpoint: Path, log: StreamLog, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy(checkpoint)
    repartition(checkpoint, 8, Repartitioning())
    steps = 0

    def dying(act: Callable[..., Any]) -> Callable[..., Any]:
        def acts(*given: Any, **options: Any) -> Any:
            nonlocal steps
            if steps == step:
                raise Killed
            steps += 1
            return act(*given, **options)

        return acts

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copytree", dying(shutil.copytree))
        patched.setattr(os, "rename", dying(os.rename))
        if step < 3:
            with pytest.raises(Killed):
                restore(checkpoint, log)
    go_on(RestoreCheckpoint(), checkpoint, log, Repartitioning())
    assert partitions_of(checkpoint) == 4
    assert (checkpoint / "state" / "0.sst").read_text() == "state"


def test_state_that_cannot_be_cut_is_put_back(checkpoint: Path, log: StreamLog) -> None:
    spark = Repartitioning()
    spark.fails = RuntimeError
    copy(checkpoint)
    said = go_on(RepartitionState(partitions=8), checkpoint, log, spark)
    assert said is not None
    assert said.startswith("its state was restored: not cut into 8 partitions")
    assert partitions_of(checkpoint) == 4
    assert not (checkpoint / "offsets" / "1").exists()
