"""`penstock run module:app` with an application of one's own."""

from pathlib import Path

import pytest

from penstock import App, Objective
from penstock.apps.own import own_entry
from penstock.apps.registry import load_application
from penstock.domain.errors import InputError
from penstock.reconfigure.method import Method
from penstock.runtimes.spark.stream_log import LogFile, StreamLog

app = App("mine", objective=Objective(response_time_s=4))
app.sink("out", app.operator("same", lambda frame: frame, app.source("in", reader=lambda spark: spark)))
unfed = App("unfed", objective=Objective(response_time_s=4))
unfed.operator("same", lambda frame: frame, unfed.source("in", schema="v long"))
nothing = 3


def test_an_app_in_a_module_is_an_application() -> None:
    entry = load_application(f"{__name__}:app")
    assert entry.own
    assert entry.objective_s == 4
    tighter = entry.on_spark(objective=Objective(response_time_s=1), max_replicas=3, protocol=Method.LIVE)
    assert tighter.objective.response_time_s == 1
    assert app.objective.response_time_s == 4


def test_a_source_that_nothing_feeds_is_named() -> None:
    with pytest.raises(InputError, match="source 'in' has no reader"):
        own_entry("m:unfed", unfed)


def test_anything_else_in_a_module_is_no_application() -> None:
    with pytest.raises(InputError, match="has no App or AppEntry 'nothing'"):
        load_application(f"{__name__}:nothing")


def test_what_a_sink_kept_is_brought_to_the_results_without_files_of_retried_tasks(tmp_path: Path) -> None:
    work, results = tmp_path / "work", tmp_path / "results"
    log = StreamLog(work / "streams" / "same").create()
    for name in ("b", "retried", "a"):
        log.data_file(f"{name}.parquet").write_text(name)
    for epoch, name in enumerate("ba"):
        files = [LogFile(name=f"{name}.parquet", tuples=3)]
        log.publish(epoch=epoch, files=files, published_at_s=0.0, origins=())
    for _ in range(2):  # a run that was stopped went on
        said = load_application(f"{__name__}:app").results(app, work, results)
        assert said == f"6 tuples in {results / 'out'}"
        assert [file.read_text() for file in sorted((results / "out").iterdir())] == ["b", "a"]


def test_sinks_with_and_without_a_writer_each_say_where_their_results_are(tmp_path: Path) -> None:
    both = App("both", objective=Objective(response_time_s=4))
    same = both.operator("same", lambda frame: frame, both.source("in", reader=lambda spark: spark))
    both.sink("raw", same)
    both.sink("table", same, writer=lambda batch, number: None)
    StreamLog(tmp_path / "streams" / "same").create()
    said = own_entry("m:both", both).results(both, tmp_path, tmp_path / "results")
    kept, written = said.split(", ")
    assert kept == f"0 tuples in {tmp_path / 'results' / 'raw'}"
    assert written == "other results where the application's writers put them"
