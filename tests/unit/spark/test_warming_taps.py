"""How new executors are kept from real work until they have tried theirs, without Spark."""

import threading
import time
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from penstock.runtimes.spark.daemon import EXECUTOR_VARIABLE
from penstock.runtimes.spark.log_source import LogReader, Slices, struct_of
from penstock.runtimes.spark.stream_log import StreamLog
from penstock.runtimes.spark.taps import STARTED, TRIED, let_go, marked, python_started, trial_tap, tried_tap

COLD = frozenset({"7"})


def in_background(work: "threading.Thread") -> "threading.Thread":
    work.start()
    return work


def test_a_cold_executor_is_kept_until_it_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EXECUTOR_VARIABLE, "7")
    task = in_background(threading.Thread(target=python_started(COLD, str(tmp_path), 0.0), args=([],)))
    task.join(0.2)
    assert task.is_alive()
    assert marked(tmp_path, STARTED) == {"7"}
    let_go(tmp_path)
    task.join(5)
    assert not task.is_alive()


def test_a_warm_one_leaves_it_the_tasks_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(EXECUTOR_VARIABLE, "1")
    began_s = time.monotonic()
    python_started(COLD, str(tmp_path), 0.2)([])
    assert time.monotonic() - began_s >= 0.2
    assert marked(tmp_path, STARTED) == set()
    (tmp_path / f"7{STARTED}").touch()
    began_s = time.monotonic()
    python_started(COLD, str(tmp_path), 60.0)([])
    assert time.monotonic() - began_s < 5


def test_a_trial_is_for_the_cold_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow
    from pyarrow import parquet

    rows = pyarrow.table({"x": [1, 2]})
    parquet.write_table(rows, tmp_path / "sample")
    schema = StructType([StructField("x", LongType())])
    trial = trial_tap(str(tmp_path / "sample"), schema, COLD, str(tmp_path))
    monkeypatch.setenv(EXECUTOR_VARIABLE, "1")
    assert list(trial(iter(rows.to_batches()))) == []
    monkeypatch.setenv(EXECUTOR_VARIABLE, "7")
    tried = list(tried_tap(str(tmp_path))(trial(iter(rows.to_batches()))))
    assert tried[0].to_pylist()[0]["tuples"] == 2
    assert marked(tmp_path, TRIED) == {"7"}


def test_a_trial_gets_its_tuples_as_they_are_read_from_the_stream(tmp_path: Path) -> None:
    """Whoever feeds a stream may write its columns in another order, narrower or encoded, and others too."""
    import pyarrow as pa
    from pyarrow import parquet
    from pyspark.sql.pandas.types import to_arrow_schema

    written = pa.schema(
        [
            pa.field("name", pa.dictionary(pa.int32(), pa.string())),
            pa.field("other", pa.int64()),
            pa.field("second", pa.int32(), nullable=False),
            pa.field("first", pa.int32()),
        ]
    )
    row = {"name": "a", "other": 9, "second": 2, "first": 1}
    file = tmp_path / "sample"
    parquet.write_table(pa.Table.from_pylist([row], schema=written), file)
    schema = StructType(
        [
            StructField("first", LongType()),
            StructField("second", LongType()),
            StructField("name", StringType()),
        ]
    )
    any_one = pa.RecordBatch.from_pydict({"id": [0]})
    (tried,) = trial_tap(str(file), struct_of(schema.json()), None, str(tmp_path))(iter([any_one]))
    log = StreamLog(tmp_path / "stream")
    reader = LogReader(log, consumer="me", intake=tmp_path / "none", chunk=10, schema=schema)
    (read,) = reader.read(Slices(((str(file), 0, 1),)))
    assert tried.schema.equals(read.schema)
    assert tried.schema.equals(to_arrow_schema(schema, timezone="UTC"))
    assert list(tried.to_pylist()[0].items()) == [("first", 1), ("second", 2), ("name", "a")]
    assert read.to_pylist() == tried.to_pylist()


def test_a_folder_that_is_gone_keeps_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EXECUTOR_VARIABLE, "7")
    python_started(COLD, str(tmp_path / "gone"), 60.0)([])
