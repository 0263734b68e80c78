"""What a cluster leaves on disk while it runs: no more after weeks than after hours."""

import os
import subprocess
import sys
from pathlib import Path

from penstock.runtimes.spark.cluster import _LONGEST_LOG, _Process
from penstock.runtimes.spark.executor_folders import (
    _KEPT,
    remove_left_by_executors,
    remove_left_by_workers,
)


def executor_folder(workers: Path, number: int, application: str = "app-1-0000") -> Path:
    folder = workers / "worker" / application / str(number)
    folder.mkdir(parents=True)
    (folder / "stderr").write_text("said")
    return folder


def test_folders_of_executors_that_ended_go_but_for_the_latest_and_those_that_work_stay(
    tmp_path: Path,
) -> None:
    folders = [executor_folder(tmp_path, number) for number in range(_KEPT + 5)]
    earlier = executor_folder(tmp_path, 9, "app-0-0000")  # of the run before, in the same place
    words = [sys.executable, "-c", "print('up', flush=True); input()"]
    lives = subprocess.Popen(
        words, cwd=folders[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    )
    try:
        assert lives.stdout is not None
        lives.stdout.readline()
        remove_left_by_executors(tmp_path / "worker" / "..", group=lives.pid)  # as a user may give it
    finally:
        lives.communicate(b"\n")
    assert not earlier.exists()
    assert [number for number, path in enumerate(folders) if not path.exists()] == [0, 2, 3, 4]
    remove_left_by_executors(tmp_path, group=lives.pid)
    assert not folders[1].exists()
    remove_left_by_executors(tmp_path / "none", group=lives.pid)


def test_folders_and_logs_of_workers_that_are_no_more_go_but_for_the_latest(tmp_path: Path) -> None:
    workers, logs = tmp_path / "workers", tmp_path / "logs"
    logs.mkdir()
    for number in range(_KEPT + 4):
        folder = workers / f"count-{number}"
        folder.mkdir(parents=True)
        os.utime(folder, (number, number))
        (logs / f"{folder.name}.log").write_text("said")
        (logs / f"{folder.name}.old").write_text("said before")
    (logs / "master.log").write_text("said")
    remove_left_by_workers(workers, logs, there=["count-0", "count-1"])
    left = {0, 1, *range(4, _KEPT + 4)}
    assert {path.name for path in workers.iterdir()} == {f"count-{number}" for number in left}
    assert {path.stem for path in logs.iterdir()} == {f"count-{number}" for number in left} | {"master"}
    remove_left_by_workers(tmp_path / "none", logs, there=[])


def test_a_long_log_is_cut_while_it_is_written_and_its_words_are_kept_once(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    with log.open("ab", buffering=0) as output:
        output.write(b"an earlier life\n")
        process = _Process(subprocess.Popen([sys.executable, "-c", ""]), log, output.tell())
        process.cut_log()
        output.write(b"begins\n")
        assert process.said() == "begins\n"
        output.write(b"x" * _LONGEST_LOG)
        process.cut_log()
        assert (process.said(), os.path.getsize(log)) == ("", 0)
        assert log.with_suffix(".old").read_bytes().endswith(b"x")
        output.write(b"goes on\n")
        assert process.said() == "goes on\n"
    process.handle.wait()
