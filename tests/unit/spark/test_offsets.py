"""What a micro-batch read, from Spark's own notes."""

from pathlib import Path

from penstock.runtimes.spark.offsets import at_rest, began_s, consumed


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
