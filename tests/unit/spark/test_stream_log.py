"""Streams between operators: whole batches, in order, each once, and gone when nobody needs them."""

import os
import pickle
import threading
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pyarrow
import pytest

from penstock.domain.errors import InputError
from penstock.runtimes.spark.kept_results import KeptResults
from penstock.runtimes.spark.offsets import Taken
from penstock.runtimes.spark.stream_log import LogFile, StreamLog, file_name
from penstock.runtimes.spark.taps import exit_tap


def log(tmp_path: Path, *consumers: str) -> StreamLog:
    return StreamLog(tmp_path / "stream").create(consumers)


def publish(
    stream: StreamLog, epoch: int, *, tuples: int = 3, final: bool = False, taken: Taken | None = None
) -> str:
    name = f"{epoch}.parquet"
    stream.data_file(name).write_text("rows")
    stream.publish(
        epoch=epoch,
        files=[LogFile(name=name, tuples=tuples)],
        published_at_s=100.0 + epoch,
        origins=((90.0, tuples),),
        final=final,
        taken=taken,
    )
    return name


def test_a_batch_comes_back_as_it_was_published(tmp_path: Path) -> None:
    stream = log(tmp_path)
    publish(stream, 7, final=True)
    batch = stream.batch(0)
    assert (batch.number, batch.epoch, batch.tuples, batch.final) == (0, 7, 3, True)
    assert (batch.published_at_s, batch.origins) == (107.0, ((90.0, 3),))
    assert stream.end() == 1


def test_a_sample_is_a_file_of_its_own_with_a_few_late_tuples(tmp_path: Path) -> None:
    from pyarrow import parquet

    stream = log(tmp_path)
    assert stream.sampled(tmp_path / "none", tuples=3) is None
    for epoch in range(2):
        name = publish(stream, epoch, tuples=50)
        parquet.write_table(pyarrow.table({"id": range(50 * epoch, 50 * epoch + 50)}), stream.data_file(name))
    sample = stream.sampled(tmp_path / "sample", tuples=3)
    assert sample is not None
    assert parquet.read_table(sample).column("id").to_pylist() == [50, 51, 52]
    assert stream.end() == 2


def test_a_reader_ends_before_the_batch_with_too_many_tuples_but_takes_one_at_least(tmp_path: Path) -> None:
    stream = log(tmp_path)
    for epoch in range(4):
        publish(stream, epoch, tuples=10)
    assert [stream.end_of(0, 4, tuples=most) for most in (5, 10, 19, 20, 39, 40, 99)] == [1, 1, 1, 2, 3, 4, 4]
    assert stream.end_of(2, 4, tuples=10) == 3


def test_an_epoch_written_again_after_a_crash_changes_nothing(tmp_path: Path) -> None:
    stream = log(tmp_path)
    publish(stream, 0)
    publish(stream, 1)
    again = LogFile(name="again.parquet", tuples=3)
    stream.data_file(again.name).write_text("rows")
    assert stream.publish(epoch=1, files=[again], published_at_s=200.0, origins=()) is None
    assert stream.end() == 2
    assert not stream.data_file(again.name).exists()
    assert stream.data_file("1.parquet").exists()


def test_numbers_have_no_gaps_whatever_the_writer_counts(tmp_path: Path) -> None:
    stream = log(tmp_path)
    for epoch in (3, 10, 11):
        publish(stream, epoch)
    assert [batch.number for batch in stream.batches(0, stream.end())] == [0, 1, 2]


def test_what_every_consumer_is_past_is_removed_files_and_all(tmp_path: Path) -> None:
    stream = log(tmp_path, "fast", "slow")
    for epoch in range(5):
        publish(stream, epoch)
    stream.passed("fast", 5)
    assert stream.clean() == 0  # the slow one still needs everything
    stream.passed("slow", 3)
    assert stream.clean() == 3
    assert not stream.data_file("2.parquet").exists()
    assert stream.data_file("3.parquet").exists()
    assert stream.end(3) == 5


def test_the_last_batch_stays_so_that_numbering_goes_on(tmp_path: Path) -> None:
    stream = log(tmp_path, "reader")
    publish(stream, 0)
    stream.passed("reader", 1)
    stream.clean()
    publish(stream, 1)
    assert stream.batch(1).epoch == 1


def test_results_nobody_reads_stay(tmp_path: Path) -> None:
    stream = log(tmp_path)
    for epoch in range(3):
        publish(stream, epoch)
    assert stream.clean() == 0


def test_a_consumer_keeps_its_place_when_the_application_starts_again(tmp_path: Path) -> None:
    stream = log(tmp_path, "reader")
    stream.passed("reader", 4)
    assert log(tmp_path, "reader").needs("reader") == 4


def test_a_batch_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    stream = log(tmp_path)
    publish(stream, 0)
    (tmp_path / "stream" / "batches" / "000000000.json").write_text("{half")
    with pytest.raises(InputError, match=r"000000000\.json: cannot read batch 0"):
        stream.batch(0)


def test_an_epoch_is_known_by_the_query_and_the_offsets_it_came_from(tmp_path: Path) -> None:
    stream, mine = log(tmp_path), Taken("a", 4, '{"batch": 9}')
    publish(stream, 4, taken=mine)
    assert stream.has(4, mine)
    assert not stream.has(5, Taken("a", 5, '{"batch": 12}'))


@pytest.mark.parametrize(
    "stale",
    [
        Taken("b", 0, '{"batch": 1}'),  # another query: its checkpoint was deleted, and it begins afresh
        Taken("a", 3, '{"batch": 8}'),  # the checkpoint of some time ago
        Taken("a", 4, '{"batch": 10}'),  # and one that has gone on from there otherwise
    ],
)
def test_what_comes_from_a_stale_checkpoint_is_an_error_and_never_dropped(
    tmp_path: Path, stale: Taken
) -> None:
    stream = log(tmp_path)
    publish(stream, 4, taken=Taken("a", 4, '{"batch": 9}'))
    with pytest.raises(InputError, match=r"micro-batch \d comes from a checkpoint that is older"):
        publish(stream, stale.epoch, taken=stale)
    assert stream.end() == 1


def test_a_log_of_an_earlier_version_is_gone_on_with(tmp_path: Path) -> None:
    stream = log(tmp_path)
    publish(stream, 4)
    assert stream.has(4, Taken("a", 4, "x"))
    publish(stream, 5, taken=Taken("a", 5, "y"))
    assert stream.batch(1).query == "a"


def test_the_end_of_a_long_log_is_found_without_listing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = log(tmp_path)
    publish(stream, 0)

    def listed(path: Path, pattern: str) -> None:
        raise AssertionError(f"{path} was listed")

    monkeypatch.setattr(Path, "glob", listed)
    for epoch in range(1, 50):
        publish(stream, epoch)
    last = stream.last()
    assert last is not None
    assert last.epoch == 49


def test_the_end_is_found_where_much_came_and_went_since_it_was_looked_for(tmp_path: Path) -> None:
    writer = log(tmp_path, "reader")
    publish(writer, 0)
    reader = StreamLog(writer.root)
    assert reader.last() == writer.last()
    for epoch in range(1, 9):
        publish(writer, epoch)
    writer.passed("reader", 9)
    writer.clean()
    assert reader.last() == writer.last() == writer.batch(8)


def test_files_are_on_disk_before_their_batch_is_and_the_batch_before_it_is_called_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, done = log(tmp_path), list[str]()
    fsync, replace = os.fsync, os.replace

    def synced(file: int) -> None:
        done.append(Path(os.readlink(f"/proc/self/fd/{file}")).name)
        fsync(file)

    def replaced(origin: Path, target: Path) -> None:
        done.append("renamed")
        replace(origin, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    publish(stream, 0)
    names, manifest, renamed, listed = done
    assert (names, renamed, listed) == ("data", "renamed", "batches")
    assert manifest.startswith(".000000000.json")


def test_what_a_task_has_written_is_on_disk_before_anybody_hears_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    synced = list[str]()
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.readlink(f"/proc/self/fd/{file}")))
    tuples = pyarrow.RecordBatch.from_pydict({"id": [1, 2]})
    (report,) = exit_tap(str(tmp_path))(iter([tuples]))
    assert synced == [str(tmp_path / report.to_pylist()[0]["file"])]


def written(stream: StreamLog, epoch: int | None) -> str:
    """By a task of this micro-batch, that may have failed."""
    name = file_name(epoch)
    stream.data_file(name).write_text("rows")
    return name


def names(stream: StreamLog) -> set[str]:
    return {path.name for path in (stream.root / "data").iterdir()}


def test_files_of_failed_tasks_are_swept_and_no_others(tmp_path: Path) -> None:
    stream = log(tmp_path)
    named = publish(stream, 0)
    written(stream, None)  # as an earlier version names them
    written(stream, 0)
    assert stream.sweep() == 2  # before anybody writes
    assert names(stream) == {named}
    for epoch in (1, 2, 3):
        kept = written(stream, epoch)
        written(stream, epoch)
        file = LogFile(name=kept, tuples=1)
        stream.publish(epoch=epoch, files=[file], published_at_s=0.0, origins=())
    under_way, unknown = written(stream, 4), written(stream, None)
    assert stream.sweep(upto=2) == 2  # of micro-batches that are over for a while
    assert len(names(stream)) == 4 + 1 + 2
    assert {under_way, unknown} < names(stream)
    assert stream.sweep(upto=3) == 1
    stream.close()
    assert names(stream) == {file.name for batch in stream.all() for file in batch.files}


def test_a_sweep_does_not_take_what_was_published_since_for_left_when_older_batches_are_gone(
    tmp_path: Path,
) -> None:
    stream = log(tmp_path, "one")
    for epoch in range(3):
        publish(stream, epoch)
    stream.sweep()
    for epoch in range(3, 9):
        file = LogFile(name=written(stream, epoch), tuples=1)
        stream.publish(epoch=epoch, files=[file], published_at_s=0.0, origins=())
    stream.passed("one", 6)
    stream.clean()
    assert stream.sweep(upto=8) == 0
    assert len(names(stream)) == 3


def test_what_is_being_published_is_not_swept_and_nothing_is_published_after_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has ended, and a callback of it in the driver is still at it, on a slow disk."""
    stream, begun = log(tmp_path), threading.Event()
    fsync = os.fsync

    def slow(file: int) -> None:
        begun.set()
        time.sleep(0.2)
        fsync(file)

    monkeypatch.setattr(os, "fsync", slow)
    publishing = threading.Thread(target=publish, args=(stream, 0))
    publishing.start()
    begun.wait()
    stream.close()
    publishing.join()
    assert stream.data_file(stream.batch(0).files[0].name).exists()
    with pytest.raises(InputError, match="the run has ended"):
        publish(stream, 1)


def test_what_stands_behind_a_gap_is_an_error_and_not_removed(tmp_path: Path) -> None:
    stream = log(tmp_path)
    for epoch in range(10):
        publish(stream, epoch)
    (stream.root / "batches" / "000000004.json").unlink()
    with pytest.raises(InputError, match="batch 4 is missing, and there are later ones"):
        publish(StreamLog(stream.root), 10)
    files = set((stream.root / "data").iterdir())
    for upto in (inf, 100):
        with pytest.raises(InputError, match="batch 4 is missing, and there are later ones"):
            StreamLog(stream.root).sweep(upto)
    assert len(list((stream.root / "batches").iterdir())) == 9
    assert set((stream.root / "data").iterdir()) == files
    assert len(files) >= 10


def test_what_is_no_longer_kept_goes_from_the_results_and_what_is_others_stays(tmp_path: Path) -> None:
    stream, results = log(tmp_path, "sink"), tmp_path / "results"
    for epoch in range(3):
        publish(stream, epoch)
    assert stream.export(results) == 9
    (results / "mine.txt").write_text("a note")
    (results / ".000000000-cut-short").write_text("ro")
    stream.passed("sink", 2)
    stream.clean()
    assert stream.export(results) == 3
    assert {path.name for path in results.iterdir()} == {"000000002-2.parquet", "mine.txt"}


def test_results_are_kept_to_a_limit_and_the_oldest_go(tmp_path: Path) -> None:
    stream = log(tmp_path, "sink")
    publish(stream, 0)
    most = 2.5 * stream.size_of(stream.batch(0))  # of batches that are all alike
    kept = KeptResults(stream, "sink", most_bytes=most)
    for epoch in (1, 2):
        publish(stream, epoch)
    kept.keep()
    assert kept.given_up == 3
    stream.clean()
    assert [batch.epoch for batch in stream.all()] == [1, 2]
    again = KeptResults(StreamLog(stream.root), "sink", most_bytes=most)  # by the next driver
    publish(stream, 3)
    again.keep()
    assert again.given_up == 6  # since the run began
    stream.clean()
    assert [batch.epoch for batch in stream.all()] == [2, 3]


def test_what_was_counted_as_given_up_before_a_crash_is_not_counted_again(tmp_path: Path) -> None:
    stream = log(tmp_path, "sink")
    for epoch in range(3):
        publish(stream, epoch)
    kept = KeptResults(stream, "sink", most_bytes=1)
    kept.keep()
    stream.passed("sink", 0)  # as if the driver had died before it said so
    again = KeptResults(StreamLog(stream.root), "sink", most_bytes=1)
    again.keep()
    assert again.given_up == kept.given_up == 6
    publish(stream, 3)
    again.keep()
    assert (again.given_up, stream.needs("sink")) == (9, 3)


def test_the_latest_results_stay_however_large_they_are(tmp_path: Path) -> None:
    stream = log(tmp_path, "sink")
    kept = KeptResults(stream, "sink", most_bytes=1)
    kept.keep()
    assert kept.given_up == 0
    publish(stream, 0)
    publish(stream, 1)
    kept.keep()
    assert kept.given_up == 3
    stream.clean()
    assert [batch.epoch for batch in stream.all()] == [1]


def test_cleaning_a_log_that_holds_much_does_not_list_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = log(tmp_path, "one")
    for epoch in range(20):
        publish(stream, epoch)
    stream.passed("one", 3)
    assert stream.clean() == 3
    monkeypatch.setattr(stream, "first", lambda: pytest.fail("listed"))
    stream.passed("one", 7)
    assert stream.clean() == 4
    assert stream.clean() == 0


def test_a_log_goes_to_other_processes_as_spark_sends_its_readers(tmp_path: Path) -> None:
    stream = log(tmp_path)
    publish(stream, 0)
    there: StreamLog = pickle.loads(pickle.dumps(stream))
    assert there.last() == stream.last()
    publish(there, 1)
    assert stream.end() == 2


def test_a_task_takes_as_long_as_it_does_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is set meanwhile would make it shorter than nothing, or last for ever."""

    def set_meanwhile() -> Iterator[pyarrow.RecordBatch]:
        yield pyarrow.RecordBatch.from_pydict({"x": [1]})
        before = time.time()
        monkeypatch.setattr(time, "time", lambda: before - 3600.0)

    (report,) = exit_tap(str(tmp_path))(set_meanwhile())
    (row,) = report.to_pylist()
    assert 0 <= row["ended_s"] - row["began_s"] < 60
