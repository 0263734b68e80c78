"""What the last stage of an operator writes, and what it reports."""

from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from penstock.runtimes.spark.taps import TaskReport, by_task, exit_tap

_COUNTS = (4, 3, 3, 9, 1)


def reported(folder: Path, most: int | None) -> list[TaskReport]:
    """By a task that is given batches of so many tuples."""
    began = iter(range(sum(_COUNTS)))
    batches = [
        pyarrow.RecordBatch.from_pydict({"id": [next(began) for _ in range(count)]}) for count in _COUNTS
    ]
    rows = [row for batch in exit_tap(str(folder), most)(iter(batches)) for row in batch.to_pylist()]
    names = ("file", "tuples", "executor", "began_s", "ended_s")
    return [TaskReport(**{name: row[name] for name in names}) for row in rows]


@pytest.mark.parametrize(
    ("most", "files"), [(None, [20]), (6, [4, 6, 9, 1]), (7, [7, 3, 9, 1]), (1, [4, 3, 3, 9, 1]), (20, [20])]
)
def test_no_file_has_more_than_so_many_tuples_or_one_batch_of_sparks(
    tmp_path: Path, most: int | None, files: list[int]
) -> None:
    reports = reported(tmp_path, most)
    assert [one.tuples for one in reports] == files
    tables = [parquet.read_table(tmp_path / one.file) for one in reports]
    assert [table.num_rows for table in tables] == files
    assert [one["id"] for table in tables for one in table.to_pylist()] == list(range(20))
    assert {path.name for path in tmp_path.iterdir()} == {one.file for one in reports}


def test_a_task_that_wrote_several_files_is_one_task(tmp_path: Path) -> None:
    """Else it would seem to have worked as often as it has files."""
    reports = reported(tmp_path, 6)
    (task,) = by_task(reports)
    assert (task.tuples, task.began_s, task.ended_s) == (20, reports[0].began_s, reports[-1].ended_s)
    other = TaskReport(file="other", tuples=1, executor="other", began_s=task.began_s, ended_s=task.ended_s)
    assert by_task([*reports, other]) == (task, other)
