"""`penstock run` on the embedded cluster: right results, whatever is scaled or killed meanwhile."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.apps.feeding.schedule import ByRates, Shape
from penstock.apps.top_routes.trip_lines import GeneratedTrips
from penstock.cli import main
from penstock.control.journal import Header, Noted, Reconfigured, Stepped
from penstock.journal_file import entries_of, read_journal
from penstock.reconfigure.words import Ending, Repartitioned
from penstock.runtimes.spark.cluster import LocalCluster
from query1_checker import problems

pytestmark = pytest.mark.spark

_SECONDS = 38  # of feeding; as many minutes of trips at x60, so that trips leave the window of 30
_SLOW_MACHINE_S = 400


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    schedule = ByRates(Shape(_SECONDS).constant(40), slot_s=1.0)
    made = GeneratedTrips(schedule, acceleration=60, seed=3)
    path = tmp_path_factory.mktemp("trips") / "trips.csv"
    path.write_text("".join(f"{made.line(number)}\n" for number in range(schedule.total)))
    return path


def started(
    trips: Path, out: Path, *words: str, by: tuple[str, ...] = ("-m", "penstock")
) -> "subprocess.Popen[bytes]":
    """A run as a user starts it, in the folder above its own, which it names relative to that."""
    command = [sys.executable, *by, "run", "top-routes", "--input", str(trips), "--until-done"]
    log = out.parent / "log.txt"
    with log.open("ab") as output:
        return subprocess.Popen(
            [*command, "--out", out.name, *words],
            stdout=output,
            stderr=output,
            process_group=0,
            cwd=out.parent,
        )


def wait_until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _SLOW_MACHINE_S
    while not true():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.5)


def published(out: Path, stream: str) -> int:
    return len(list((out / "work" / "streams" / stream / "batches").glob("*.json")))


def java_processes(marker: str, *which: str) -> list[int]:
    found = subprocess.run(["pgrep", *which, "-f", marker], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def right(trips: Path, out: Path) -> None:
    lines = trips.read_text().splitlines()
    rows = (out / "results" / "top-routes.csv").read_text().splitlines()
    assert len(rows) > 20
    assert problems(lines, rows) == []


def test_scaling_at_every_interval_and_a_killed_executor_master_and_worker_change_no_result(
    trips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    run = started(trips, out, "--apart", "--force-scaling", "--max-replicas", "2", "--interval", "3")
    try:
        wait_until(lambda: published(out, "computeRouteID") > 0 or run.poll() is not None, "a first batch")
        (worker,) = java_processes(f"deploy.worker.Worker .*{out}")
        (master,) = java_processes("deploy.master.Master", "-P", str(run.pid))
        executors = java_processes(f"CoarseGrainedExecutorBackend .*{_app_of(out)}")
        os.kill(executors[1], signal.SIGKILL)
        os.kill(master, signal.SIGKILL)
        wait_until(lambda: published(out, "globalRank") > 0 or run.poll() is not None, "a first result")
        os.kill(worker, signal.SIGKILL)  # and with it, all executors
        assert run.wait(timeout=_SLOW_MACHINE_S) == 0, (tmp_path / "log.txt").read_text()[-3000:]
    finally:
        os.killpg(run.pid, signal.SIGKILL) if run.poll() is None else None
    right(trips, out)
    said = [entry.text for entry in entries_of(out / "journal.jsonl", Noted)]
    for what in ("the master", "the worker"):
        assert any(text.startswith(f"{what} ended and was started again") for text in said), said
    summary = json.loads((out / "summary.json").read_text())
    assert summary["reconfigurations"] >= 1
    assert summary["tuples"] == len(trips.read_text().splitlines()) + 1  # and the end marker
    assert "plot-1" in (out / "report.html").read_text()
    monkeypatch.setattr("sys.argv", ["penstock", "replay", str(out)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code, capsys.readouterr().out


# A run that kills itself so many seconds after it has written down this event, or command, of a change.
_DYING_AT = """
import os, signal, sys, threading
from penstock.cli import main
from penstock.control.journal import Stepped
from penstock.journal_file import JournalFile
word, after_s = sys.argv.pop(1), float(sys.argv.pop(1))
append = JournalFile.append
def dying(self, entry):
    append(self, entry)
    if isinstance(entry, Stepped) and word in {type(one).__name__ for one in (entry.event, *entry.commands)}:
        if not after_s:
            os.kill(os.getpid(), signal.SIGKILL)
        threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGKILL)).start()
JournalFile.append = dying
main()
"""
_BEGUN_S = 0.7  # Spark has begun to repartition, and waits for an executor to do it on
_ALL_STEPS = "PENSTOCK_ALL_STEPS"  # set: half an hour
_STEPS = (
    *("Granted", "NodeReady", "StopQuery", "Stopped", "CopyCheckpoint", "RepartitionState", "Repartitioned"),
    *("Running", "FirstTaskSeen", "Decommission", "Left"),
)
_DEATHS = [("RepartitionState", _BEGUN_S), *((step, 0.0) for step in _STEPS if _ALL_STEPS in os.environ)]


@pytest.mark.parametrize(("step", "after_s"), _DEATHS)
def test_pausing_to_move_state_on_a_cluster_of_ones_own_and_dying_in_the_middle_changes_no_result(
    trips: Path, tmp_path: Path, step: str, after_s: float
) -> None:
    out = tmp_path / "run"
    with LocalCluster(tmp_path / "mine", guarded=False) as mine:
        # Up to three replicas the state has six partitions, so that the first change has to move it.
        forced = ("--force-scaling", "--protocol", "pause-and-resume", "--max-replicas", "3")
        words = [*forced, "--interval", "3", "--master", mine.master_url]
        run, again = started(trips, out, *words, by=("-c", _DYING_AT, step, str(after_s))), None
        try:
            assert run.wait(timeout=_SLOW_MACHINE_S) == -signal.SIGKILL, (tmp_path / "log.txt").read_text()
            # The state may have been cut for two: the next change, to three, has to move it again.
            again = started(trips, out, *words, "--replicas", "2")
            assert again.wait(timeout=_SLOW_MACHINE_S) == 0, (tmp_path / "log.txt").read_text()[-3000:]
        finally:
            for process in (run, again):
                if process is not None and process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        assert mine.state() is not None, "a master somebody else started goes on"
    right(trips, out)
    entries = read_journal(out / "journal.jsonl")
    second = max(place for place, entry in enumerate(entries) if isinstance(entry, Header))
    events = [entry.event for entry in entries[second:] if isinstance(entry, Stepped)]
    assert any(isinstance(event, Repartitioned) and event.state_moved_bytes for event in events), events
    # On a slow machine, the input may be at its end before the change is.
    records = [entry.record for entry in entries if isinstance(entry, Reconfigured)]
    moved = [record for record in records if record.state_moved_bytes and record.outcome is Ending.DONE]
    assert all(record.downtime_s > 0 for record in moved)
    if step == "RepartitionState":
        (said,) = [
            entry.text for entry in entries if isinstance(entry, Noted) and "being changed" in entry.text
        ]
        assert "its state has" in said


def test_a_killed_driver_of_chains_that_share_a_query_goes_on_where_it_was(
    trips: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    run, again = started(trips, out, "--joined"), None
    try:
        wait_until(lambda: published(out, "globalRank") > 1 or run.poll() is not None, "first results")
        run.kill()
        run.wait()
        wait_until(lambda: not java_processes(str(out)), "no process left")
        fed = published(out, "trips")
        assert not (out / "summary.json").exists()
        again = started(trips, out, "--joined")
        assert again.wait(timeout=_SLOW_MACHINE_S) == 0, (tmp_path / "log.txt").read_text()[-3000:]
    finally:
        for process in (run, again):
            if process is not None and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert fed
    right(trips, out)


_DYING = """
import sys
from penstock.cli import main
from penstock.runtimes.spark.cluster import LocalCluster
start_worker = LocalCluster.start_worker
def dying(self, name, **offered):
    start_worker(self, name, **offered)
    self._processes[name].handle.kill()
LocalCluster.start_worker = dying
sys.argv = ["penstock", "run", "paced", "--minutes", "1", "--out", sys.argv[1]]
main()
"""


def test_a_worker_that_never_comes_up_ends_the_run_in_one_line(tmp_path: Path) -> None:
    words = [sys.executable, "-c", _DYING, str(tmp_path / "run")]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=_SLOW_MACHINE_S, check=False)
    assert ended.returncode == 1
    # Where there is no terminal, what it does is said in plain lines before.
    *_, last = ended.stderr.splitlines()
    assert last.startswith("penstock: worker ended: ")
    assert "Traceback" not in ended.stderr
    wait_until(lambda: not java_processes(str(tmp_path / "run")), "no process left")


def _app_of(out: Path) -> str:
    """The name Spark gave the run, which its executors carry."""
    (home,) = (out / "work" / "cluster" / "workers" / "worker").glob("app-*")
    return home.name
