"""How the operators of a chain become one query, and what its micro-batches take, without Spark."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import ArrayType, LongType, StructField, StructType, TimestampType

from fake_checkpoints import QUERY, begin, commit, new_checkpoint
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.runtimes.spark.cluster import ClusterError
from penstock.runtimes.spark.log_source import Intake, LogReader, Slices, intake_in
from penstock.runtimes.spark.offsets import taken
from penstock.runtimes.spark.running import MONITOR, WRITER, RunningApp, busiest_s
from penstock.runtimes.spark.stream_log import LogFile, StreamLog
from penstock.runtimes.spark.taps import TaskReport, forget_words
from penstock.runtimes.spark.topology import App


@dataclass(frozen=True)
class Frame:
    """Stands for a DataFrame: remembers what was done to it."""

    done: tuple[str, ...] = ()
    schema: str = "x long"

    def mapInArrow(self, tap: object, schema: str, profile: object) -> "Frame":  # noqa: N802, as in Spark
        return Frame((*self.done, "tap"))


def doing(name: str) -> Callable[[Frame], Frame]:
    return lambda frame: Frame((*frame.done, name))


@pytest.mark.parametrize(
    ("stateful", "done"),
    [
        ("", ("parse", "keep", "count")),
        ("parse", ("tap", "parse", "keep", "count")),
        ("count", ("parse", "keep", "tap", "count")),
    ],
)
def test_the_stage_before_a_shuffle_is_bound_and_measured_wherever_it_stands_in_its_chain(
    stateful: str, done: tuple[str, ...], tmp_path: Path
) -> None:
    app = App("fused", objective=Objective(response_time_s=1))
    stream = app.source("source", schema="x long")
    for name in ("parse", "keep", "count"):
        fused = name != "parse"
        stream = app.operator(name, doing(name), stream, fused=fused, stateful=name == stateful)
    app.sink("sink", stream)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[1]"))
    running = RunningApp(app, spark, tmp_path)
    (chain,) = running.chains.values()
    frames: list[Any] = [Frame()]
    result: Any = running._transformed(chain, frames, tmp_path)
    assert result.done == done


def started_app(tmp_path: Path) -> RunningApp:
    app = App("two", objective=Objective(response_time_s=1))
    parsed = app.operator("parse", doing("parse"), app.source("source", schema="x long"))
    app.sink("sink", app.operator("count", doing("count"), parsed))
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[1]"))
    return RunningApp(app, spark, tmp_path)


def test_every_executor_that_shares_the_work_is_summoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, warmed = started_app(tmp_path), dict[str, int]()
    monkeypatch.setattr(running, "warm", warmed.__setitem__)
    running.share_among("parse", 3)
    running.summon(within_s=5)
    assert warmed == {"parse": 3, "count": 1}


def test_executors_on_which_nothing_works_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_python(chain: str, executors: int) -> None:
        raise RuntimeError(f"no Python for {chain}")

    running = started_app(tmp_path)
    monkeypatch.setattr(running, "warm", no_python)
    with pytest.raises(ClusterError, match=r"for 'parse' does not work: .*no Python for parse"):
        running.summon(within_s=5)


def reader(tmp_path: Path, intake: Intake) -> LogReader:
    """Of a log with four batches of ten tuples."""
    log = StreamLog(tmp_path / "stream").create()
    for epoch in range(4):
        log.publish(epoch=epoch, files=[LogFile(name="f", tuples=10)], published_at_s=0.0, origins=())
    file = tmp_path / "intake.json"
    file.write_text(json.dumps(asdict(intake)))
    return LogReader(log, consumer="me", intake=file, chunk=1000, schema=StructType())


@pytest.mark.parametrize(
    ("intake", "end"),
    [
        (Intake(), 4),
        (Intake(held=True), 1),
        (Intake(each=10, parts=2), 3),
        (Intake(each=1), 2),  # one batch at least
        (Intake(each=10**6), 4),
    ],
)
def test_a_micro_batch_takes_what_it_may(tmp_path: Path, intake: Intake, end: int) -> None:
    nothing: Any = None
    assert reader(tmp_path, intake).latestOffset({"batch": 1}, nothing)["batch"] == end


@pytest.mark.parametrize(("intake", "end"), [(Intake(), 3), (Intake(parts=2), 6), (Intake(each=10**6), 3)])
def test_however_much_waits_a_task_gets_so_much_and_no_more(tmp_path: Path, intake: Intake, end: int) -> None:
    """Batches of 20,000 tuples, and no limit was found yet, or a loose one: 50,000 fit an executor."""
    log = StreamLog(tmp_path / "stream").create()
    nothing: Any = None
    for epoch in range(9):
        log.publish(epoch=epoch, files=[LogFile(name="f", tuples=20_000)], published_at_s=0.0, origins=())
    file = tmp_path / "intake.json"
    file.write_text(json.dumps(asdict(intake)))
    one = LogReader(log, consumer="me", intake=file, chunk=1000, schema=StructType())
    assert one.latestOffset({"batch": 1}, nothing)["batch"] == end


def test_tuples_are_read_as_the_very_types_spark_wants(tmp_path: Path) -> None:
    """At any depth: times that operators have written in the session's zone, and what cannot be null."""
    import pyarrow as pa
    from pyarrow import parquet
    from pyspark.sql.pandas.types import to_arrow_schema

    zone = pa.timestamp("us", tz="Europe/Rome")
    part = pa.struct([pa.field("at", zone, nullable=False), pa.field("n", pa.int64())])
    written = pa.schema(
        [pa.field("parts", pa.list_(pa.field("element", part, nullable=False))), pa.field("at", zone, False)]
    )
    rows = [{"parts": [{"at": 1_000_000, "n": 3}], "at": 2_000_000}]
    parquet.write_table(pa.Table.from_pylist(rows, schema=written), tmp_path / "f.parquet")
    inner = StructType([StructField("at", TimestampType(), nullable=False), StructField("n", LongType())])
    schema = StructType(
        [
            StructField("at", TimestampType(), nullable=False),
            StructField("parts", ArrayType(inner, containsNull=False)),
        ]
    )
    log = StreamLog(tmp_path / "stream").create()
    one = LogReader(log, consumer="me", intake=tmp_path / "none", chunk=10, schema=schema)
    (batch,) = one.read(Slices(((str(tmp_path / "f.parquet"), 0, 1),)))
    assert batch.schema.equals(to_arrow_schema(schema, timezone="UTC"))
    (row,) = batch.to_pylist()
    assert (row["at"].timestamp(), row["parts"][0]["at"].timestamp()) == (2.0, 1.0)


def task(executor: str, busy_s: float) -> TaskReport:
    return TaskReport(file="f", tuples=1, executor=executor, began_s=0.0, ended_s=busy_s)


def test_a_stage_takes_as_long_as_its_busiest_executor() -> None:
    assert busiest_s([task("a", 1.0), task("b", 1.5), task("a", 1.0)]) == 2.0
    assert busiest_s([]) == 0.0


@pytest.mark.parametrize(
    ("took_s", "growing", "each"),
    [
        (1.5, False, 150),  # works 1 s on 50 tuples a replica, and may for 6 / 2 s
        (1.5, True, 75),  # and for 6 / 4 s while replicas come
        (1.9, True, 90),  # .9 s besides: it may for twice that
        (5.0, False, None),  # nearly all of it besides: it tells nothing
    ],
)
def test_micro_batches_are_kept_short(tmp_path: Path, took_s: float, growing: bool, each: int | None) -> None:
    app = App("one", objective=Objective(response_time_s=6))
    app.sink("sink", app.operator("first", lambda frame: frame, app.source("source", schema="x long")))
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[1]"))
    running = RunningApp(app, spark, tmp_path)
    running.expect_replicas("first", True)
    running.expect_replicas("first", growing)
    running._limit(running.plan["first"], [[task("a", 1.0), task("b", 0.9)]], 100, took_s, gave=100)
    assert intake_in(tmp_path / "intake" / "first.json").each == each


def limited(tmp_path: Path) -> RunningApp:
    app = App("one", objective=Objective(response_time_s=5))
    app.sink("sink", app.operator("first", lambda frame: frame, app.source("source", schema="x long")))
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[1]"))
    return RunningApp(app, spark, tmp_path)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_limit_that_a_hiccup_left_is_loosened_until_it_is_no_hindrance(
    tmp_path: Path, restarted: bool
) -> None:
    """20 ms a tuple, .15 s besides, batches of 5 tuples in the log, and 10 tuples come every half second."""
    running, intake = limited(tmp_path), tmp_path / "intake" / "first.json"
    running._limit(running.plan["first"], [[task("a", 20.0)]], 10, 20.15, gave=10)
    assert intake_in(intake).each == 1
    if restarted:
        running = limited(tmp_path)
    log, took = running.log("source"), []
    for epoch in range(100):
        log.publish(epoch=epoch, files=[LogFile(name="f", tuples=5)], published_at_s=0.0, origins=())
    for _ in range(8):
        tuples = 5 * log.end_of(0, 100, tuples=intake_in(intake).each or 10**6)
        running._limit(
            running.plan["first"], [[task("a", 0.02 * tuples)]], tuples, 0.15 + 0.02 * tuples, gave=0
        )
        took.append(tuples)
    assert took == [5, 5, 5, 5, 15, 125, 125, 125]  # half the objective is 125 tuples: no more than that


def test_few_tuples_set_no_limit_and_do_not_lift_one_that_leaves_them_room(tmp_path: Path) -> None:
    running, intake = limited(tmp_path), tmp_path / "intake" / "first.json"
    running._limit(running.plan["first"], [[task("a", 2.0)]], 100, 2.15, gave=100)
    known = intake_in(intake).each
    assert known == 125
    for _ in range(5):
        running._limit(running.plan["first"], [[task("a", 0.1)]], 5, 0.25, gave=5)
    assert intake_in(intake).each == known


@pytest.mark.parametrize("busy_s", [0.01, 1.0])  # so little that it tells nothing of the time, and enough
def test_an_operator_that_makes_many_of_one_takes_fewer(tmp_path: Path, busy_s: float) -> None:
    """What it gives in one micro-batch is for one task of the next operator: 50,000."""
    running, intake = limited(tmp_path), tmp_path / "intake" / "first.json"
    running._limit(running.plan["first"], [[task("a", busy_s)]], 10_000, busy_s + 0.15, gave=1_000_000)
    assert intake_in(intake).each == 500
    running._limit(running.plan["first"], [[task("a", 0.005)]], 500, 0.155, gave=5_000)
    assert intake_in(intake).each == 1_000  # loosened
    running._limit(running.plan["first"], [[task("a", 0.01)]], 1, 0.16, gave=1_000_000)
    assert intake_in(intake).each == 1  # it goes on whatever comes of it


@pytest.mark.parametrize("beside", ["reader", "writer"])
def test_what_a_sink_keeps_stays_whoever_else_is_past_it(tmp_path: Path, beside: str) -> None:
    app = App("kept", objective=Objective(response_time_s=5))
    parsed = app.operator("parse", lambda frame: frame, app.source("source", schema="x long"))
    app.sink("raw", parsed)
    if beside == "reader":
        counted = app.operator("count", lambda frame: frame, parsed)
        app.sink("counts", counted, writer=lambda batch, number: None)
    else:
        app.sink("elsewhere", parsed, writer=lambda batch, number: None)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[1]"))
    log = RunningApp(app, spark, tmp_path).log("parse")
    for epoch in range(3):
        log.publish(epoch=epoch, files=[LogFile(name="f", tuples=5)], published_at_s=0.0, origins=())
    for consumer in (MONITOR, "count") if beside == "reader" else (WRITER,):
        log.passed(consumer, 3)
    assert log.clean() == 0
    assert len(log.batches(0, log.end())) == 3


def test_what_an_earlier_version_wrote_is_read(tmp_path: Path) -> None:
    file = tmp_path / "first.json"
    file.write_text('{"parts": 3, "each": null, "held": false, "trial": false}')
    assert intake_in(file) == Intake(parts=3)


def counting(tmp_path: Path) -> RunningApp:
    app = App("one", objective=Objective(response_time_s=5))
    app.sink("sink", app.operator("count", lambda frame: frame, app.source("source", schema="x long")))
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[1]"))
    return RunningApp(app, spark, tmp_path)


def having_counted(tmp_path: Path) -> RunningApp:
    """Its query took two batches of the source and published one."""
    running = counting(tmp_path)
    for epoch in range(2):
        running.log("source").publish(epoch=epoch, files=[], published_at_s=0.0, origins=())
    checkpoint = new_checkpoint(running.checkpoint("count"))
    begin(checkpoint, 1, 4, 2, stream="source")
    commit(checkpoint, 1)
    running.log("count").publish(
        epoch=1, files=[], published_at_s=0.0, origins=(), taken=taken(checkpoint, 1)
    )
    running.log("source").passed("count", 2)
    return running


def test_a_query_is_not_started_beside_logs_that_are_not_its_own(tmp_path: Path) -> None:
    """What came of it would be dropped, or counted twice."""
    running = having_counted(tmp_path)
    running._check_continues("count", ("source",), "count")
    metadata = running.checkpoint("count") / "metadata"
    metadata.write_text('{"id": "another"}')
    with pytest.raises(InputError, match=r"query 'count': .* is not the one that .*/count was written with"):
        running._check_continues("count", ("source",), "count")
    metadata.write_text(json.dumps({"id": QUERY}))
    shutil.rmtree(running.log("source").root / "batches")
    with pytest.raises(InputError, match="has taken more of stream 'source' than there is"):
        counting(tmp_path)._check_continues("count", ("source",), "count")


@pytest.mark.parametrize("published", [True, False])
def test_a_query_whose_checkpoint_is_gone_is_not_started_as_if_it_were_new(
    tmp_path: Path, published: bool
) -> None:
    running = having_counted(tmp_path)
    shutil.rmtree(running.checkpoint("count"))
    if not published:  # it has taken tuples, and nothing came of them
        shutil.rmtree(running.log("count").root / "batches")
    with pytest.raises(InputError, match=r"it has worked before, but .*/checkpoints/count is gone; put back"):
        counting(tmp_path)._check_continues("count", ("source",), "count")


def test_an_end_waits_for_windows_that_a_micro_batch_without_data_closes(tmp_path: Path) -> None:
    running = having_counted(tmp_path)
    log, checkpoint = running.log("source"), running.checkpoint("count")
    assert not running.done()
    log.publish(epoch=2, files=[], published_at_s=0.0, origins=(), final=True)
    begin(checkpoint, 2, 4, 3, stream="source")

    def ends(epoch: int) -> None:
        running.log("count").publish(
            epoch=epoch, files=[], published_at_s=0.0, origins=(), final=True, taken=taken(checkpoint, epoch)
        )

    query: Any = SimpleNamespace(isActive=True)
    running.queries["count"] = query
    ends(2)
    assert not running.done()  # published, and not committed
    commit(checkpoint, 2, watermark=1000)
    assert not running.done()  # time has moved on
    begin(checkpoint, 3, 4, 3, stream="source", watermark=1000)
    ends(3)
    commit(checkpoint, 3, watermark=1000)
    query.isActive = False
    assert not running.done()  # it failed, and is to be started again
    query.isActive = True
    assert running.done()


def test_a_query_that_is_down_does_not_count_as_quiet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may still have a micro-batch without data to do, however long it was down."""
    now_s = 100.0
    monkeypatch.setattr("penstock.runtimes.spark.running.time", SimpleNamespace(monotonic=lambda: now_s))
    running = having_counted(tmp_path)
    checkpoint = running.checkpoint("count")
    running.log("source").publish(epoch=2, files=[], published_at_s=0.0, origins=(), final=True)
    begin(checkpoint, 2, 4, 3, stream="source")
    last = taken(checkpoint, 2)
    running.log("count").publish(epoch=2, files=[], published_at_s=0.0, origins=(), final=True, taken=last)
    commit(checkpoint, 2, watermark=1000)
    query: Any = SimpleNamespace(isActive=False)
    running.queries["count"] = query
    for at_s in (100.0, 200.0):
        now_s = at_s
        assert not running.done()
    query.isActive = True
    assert not running.done()
    now_s = 300.0
    assert running.done()  # nothing more came of it


def test_a_query_is_not_started_from_a_checkpoint_older_than_what_it_has_published(tmp_path: Path) -> None:
    running = having_counted(tmp_path)
    checkpoint = running.checkpoint("count")
    shutil.copytree(checkpoint, tmp_path / "older")
    for epoch in (2, 3, 4):
        running.log("source").publish(epoch=epoch, files=[], published_at_s=0.0, origins=())
        begin(checkpoint, epoch, 4, epoch + 1, stream="source")
        commit(checkpoint, epoch)
        mine = taken(checkpoint, epoch)
        running.log("count").publish(epoch=epoch, files=[], published_at_s=0.0, origins=(), taken=mine)
        running.log("source").passed("count", epoch + 1)
    running._check_continues("count", ("source",), "count")
    shutil.rmtree(checkpoint)
    shutil.move(tmp_path / "older", checkpoint)
    with pytest.raises(InputError, match="at micro-batch 1, older than what it has published: 4 is in"):
        running._check_continues("count", ("source",), "count")


def test_a_query_is_not_started_from_a_checkpoint_older_than_its_input(tmp_path: Path) -> None:
    """Also one that gave no results since, and one whose input goes while it is being started."""
    running = having_counted(tmp_path)
    for epoch in (2, 3, 4):
        running.log("source").publish(epoch=epoch, files=[], published_at_s=0.0, origins=())
    for consumer in ("count", MONITOR):
        running.log("source").passed(consumer, 4)
    running.log("source").clean()
    with pytest.raises(InputError, match=r"goes on with batch 2, and those before 4 were read and are gone"):
        running._check_continues("count", ("source",), "count")
    nothing: Any = None
    source = LogReader(
        running.log("source"), consumer="count", intake=tmp_path / "none", chunk=1, schema=StructType()
    )
    with pytest.raises(InputError, match="batch 2 is gone"):
        source.latestOffset({"batch": 2}, nothing)


def test_a_driver_that_was_killed_while_it_wrote_its_first_offset_is_no_hindrance(tmp_path: Path) -> None:
    """Spark starts no query beside it: 'should be empty on batch 0'."""
    running = limited(tmp_path)
    offsets = running.checkpoint("first") / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.6f00b5cb.tmp").write_text("")
    running._prepare("first", inputs=("source",), output="first")
    assert not list(offsets.iterdir())


@pytest.mark.parametrize("gives", [0, 5])
def test_what_is_not_the_micro_batch_that_was_published_does_not_pass_for_it(
    tmp_path: Path, gives: int
) -> None:
    """Also where nothing comes of it: what is left of its input would be published a second time."""
    running = having_counted(tmp_path)
    checkpoint = running.checkpoint("count")
    for epoch in (2, 3):
        running.log("source").publish(epoch=epoch, files=[], published_at_s=0.0, origins=())
    begin(checkpoint, 2, 4, 4, stream="source")
    running.log("count").publish(
        epoch=2, files=[], published_at_s=0.0, origins=(), taken=taken(checkpoint, 2)
    )
    begin(checkpoint, 2, 4, 3, stream="source")  # as a restart with a smaller intake begins it afresh
    report = TaskReport(file="f", tuples=gives, executor="1", began_s=0.0, ended_s=1.0)
    with pytest.raises(InputError, match="older"):
        running._publish(running.plan["count"], {"count": (report,)}, 2)


def test_words_that_a_power_cut_has_emptied_are_no_hindrance(tmp_path: Path) -> None:
    for name in ("x.json", "half", "whole.json"):
        (tmp_path / name).write_text('{"executor": "1", "busy_s": 1.0}' if name == "whole.json" else "")
    forget_words(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("said_s", "took_s", "next_took_s"),
    [
        (95.0, 5.0, 1.0),
        (99.99, 0.01, 0.01),
        (500.0, 20.0, 1.0),  # set back while it worked: it took no longer than the time since the one before
        (-1500.0, 20.0, 1.0),  # set forward
    ],
)
def test_a_clock_that_is_set_makes_no_micro_batch_longer_than_there_was_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said_s: float, took_s: float, next_took_s: float
) -> None:
    steady_s = 1000.0
    clock = SimpleNamespace(monotonic=lambda: steady_s, time=lambda: 100.0)
    monkeypatch.setattr("penstock.runtimes.spark.running.time", clock)
    running = limited(tmp_path)
    monkeypatch.setattr("penstock.runtimes.spark.running.began_s", lambda *_: said_s)
    steady_s = 1020.0
    assert 100.0 - running._began_s(running.plan["first"], 0, 100.0) == pytest.approx(took_s)
    steady_s = 1021.0
    assert 100.0 - running._began_s(running.plan["first"], 1, 100.0) == pytest.approx(next_took_s)
