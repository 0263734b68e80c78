"""Windows with a watermark, of an application of a user's own, whose input has an end."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

_TUPLES, _LATE_S, _WINDOW_S, _KEYS = 240, 5, 10, 3  # two tuples a second of their own time

MODULE = f"""
from pyspark.sql import functions as F
from penstock import App
from penstock.apps.entry import AppEntry
from penstock.apps.feeding.replayer import Replayer
from penstock.domain.application import Operator, pipeline


class Ticks:
    total = None

    def table(self, first, count, *, entered_s):
        import pyarrow as pa
        numbers = range(first, first + count)
        at = pa.array([number * 500_000 for number in numbers], pa.timestamp("us", tz="UTC"))
        return pa.table({{"number": pa.array(numbers, pa.int64()), "at": at}})

    def end(self, number, *, entered_s):
        return self.table(number, 0, entered_s=entered_s)


def counted(frame):
    late = frame.withWatermark("at", "{_LATE_S} seconds").withColumn("key", F.col("number") % {_KEYS})
    counts = late.groupBy(F.window("at", "{_WINDOW_S} seconds"), "key").count()
    return counts.select(F.col("window.start").cast("long").alias("start"), "key", "count")


def on_spark(*, objective, max_replicas, protocol):
    app = App("windows", objective=objective)
    ticks = app.source("ticks", schema="number long, at timestamp")
    how = {{"max_replicas": max_replicas, "protocol": protocol}}
    counts = app.operator("count", counted, ticks, stateful=True, **how)
    app.sink("counts", counts)
    return app


def feeder(load):
    schedule = load.schedule()
    return lambda feeds: Replayer(feeds["ticks"], Ticks(), schedule)


entry = AppEntry(
    name="windows",
    title="counts in windows",
    graph=lambda most: pipeline("windows", Operator(name="count", service_time_s=.001, max_replicas=most)),
    on_spark=on_spark,
    feeder=feeder,
    results=lambda app, work, results: app.name,
)
"""


def test_windows_that_close_after_the_last_data_are_in_the_results(tmp_path: Path) -> None:
    """By the watermark that the last data set: all that end by then, and no other."""
    from pyarrow import parquet

    from penstock.runtimes.spark.stream_log import StreamLog

    (tmp_path / "windows.py").write_text(MODULE)
    (tmp_path / "rates.txt").write_text("40\n" * (_TUPLES // 40))
    # So long that the micro-batch without data would come after the end, were it not waited for.
    words = [
        "run",
        "windows:entry",
        "--rates",
        "rates.txt",
        "--until-done",
        "--trigger",
        "12",
        "--out",
        "run",
    ]
    ran = subprocess.run(
        [sys.executable, "-m", "penstock", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    log = StreamLog(tmp_path / "run" / "work" / "streams" / "count")
    files = [log.data_file(file.name) for batch in log.all() for file in batch.files]
    rows = [row for file in files for row in parquet.read_table(file).to_pylist()]
    closed_s = (_TUPLES - 1) * 0.5 - _LATE_S
    expected = Counter(
        (number // 2 // _WINDOW_S * _WINDOW_S, number % _KEYS)
        for number in range(_TUPLES)
        if number // 2 // _WINDOW_S * _WINDOW_S + _WINDOW_S <= closed_s
    )
    assert {(row["start"], row["key"]): row["count"] for row in rows} == expected
    assert len(rows) == len(expected)
