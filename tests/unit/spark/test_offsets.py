"""What a micro-batch read, from Spark's own notes."""

from pathlib import Path

import pytest

from penstock.domain.errors import InputError
from penstock.runtimes.spark.offsets import at_rest, began_s, consumed, progress, taken, windows_to_close


def write(checkpoint: Path, epoch: int, *offsets: str) -> None:
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    (checkpoint / "offsets" / str(epoch)).write_text(
        "\n".join(("v1", f'{{"batchTimestampMs":{1000 * epoch + 500},"conf":{{}}}}', *offsets))
    )


def test_a_micro_batch_begins_where_the_one_before_ended(tmp_path: Path) -> None:
    write(tmp_path, 0, '{"log": "a", "batch": 3}', '{"log": "b", "batch": 1}')
    write(tmp_path, 1, '{"log": "a", "batch": 7}', '{"log": "b", "batch": 1}')
    assert consumed(tmp_path, 0) == {"a": (0, 3), "b": (0, 1)}
    assert consumed(tmp_path, 1) == {"a": (3, 7), "b": (1, 1)}
    assert (began_s(tmp_path, 0), began_s(tmp_path, 1)) == (0.5, 1.5)


def test_a_query_rests_when_all_it_began_is_committed(tmp_path: Path) -> None:
    assert at_rest(tmp_path)
    write(tmp_path, 0, '{"log": "a", "batch": 3}')
    assert not at_rest(tmp_path)
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").write_text("v1\n{}")
    (tmp_path / "commits" / ".0.crc").write_text("")
    assert at_rest(tmp_path)


# As Spark 4.3 writes them; 2 is what a repartitioning to 6 adds, 3 was begun and not committed.
def checkpoint_of_spark(root: Path) -> Path:
    (root / "metadata").parent.mkdir(parents=True, exist_ok=True)
    (root / "metadata").write_text('{"id":"6fdf57da"}')
    for epoch, (partitions, upto, watermark) in enumerate(((4, 3, 0), (4, 5, 100), (6, 5, 100), (6, 9, 100))):
        (root / "offsets").mkdir(exist_ok=True)
        (root / "offsets" / str(epoch)).write_text(
            f'v1\n{{"batchWatermarkMs":{watermark},"batchTimestampMs":1795033181133,'
            f'"conf":{{"spark.sql.shuffle.partitions":"{partitions}"}}}}\n{{"log": "words", "batch": {upto}}}'
        )
    for epoch, watermark in enumerate((100, 100, 250)):
        (root / "commits").mkdir(exist_ok=True)
        (root / "commits" / str(epoch)).write_text(f'v1\n{{"nextBatchWatermarkMs":{watermark}}}')
    return root


def test_a_query_has_come_as_far_as_its_last_commit(tmp_path: Path) -> None:
    checkpoint = checkpoint_of_spark(tmp_path / "c")
    assert progress(checkpoint) == ("6fdf57da", 2, {"words": 5}, 6)
    assert taken(checkpoint, 3) == ("6fdf57da", 3, '{"log": "words", "batch": 9}')
    assert progress(tmp_path / "none") is None


@pytest.mark.parametrize("offset", ['{"logOffset":3}', '{"topic":{"0":5}}', "17"])
def test_sources_of_sparks_own_have_offsets_of_their_own(tmp_path: Path, offset: str) -> None:
    checkpoint = checkpoint_of_spark(tmp_path)
    place = checkpoint / "offsets" / "2"
    place.write_text(place.read_text().rpartition("\n")[0] + f"\n{offset}")
    known = progress(checkpoint)
    assert known is not None
    assert known.reached == {}
    assert taken(checkpoint, 2).upto == offset


def test_a_query_that_was_only_started_has_no_partitions_yet(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"a"}')
    assert progress(tmp_path) == ("a", -1, {}, None)
    assert not windows_to_close(tmp_path)


def test_windows_are_to_be_closed_when_time_has_moved_on(tmp_path: Path) -> None:
    checkpoint = checkpoint_of_spark(tmp_path)
    assert windows_to_close(checkpoint)
    (checkpoint / "commits" / "2").write_text('v1\n{"nextBatchWatermarkMs":100}')
    assert not windows_to_close(checkpoint)


@pytest.mark.parametrize("rubbish", ["", "{", "[]", '{"name": 1}'])
def test_a_checkpoint_that_cannot_be_read_is_named(tmp_path: Path, rubbish: str) -> None:
    (tmp_path / "metadata").write_text(rubbish)
    with pytest.raises(InputError, match="not a checkpoint that can be gone on with"):
        progress(tmp_path)
