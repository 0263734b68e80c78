"""A run folder has one owner at a time, and whoever is killed owns nothing."""

import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from errno import ENOLCK
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from penstock import App
from penstock.control.journal import Header
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.journal_file import JournalFile
from penstock.live import run as run_module
from penstock.live.ownership import Ownership
from penstock.live.record import Summary
from penstock.live.run import LiveRun
from penstock.live.settings import LiveSettings, controller_for
from penstock.runtimes.spark import class_archive
from penstock.runtimes.spark.cluster import ClusterError

Run = Callable[..., tuple[int, str, str]]

_OWNS = """
import sys, time
from pathlib import Path
from penstock.live import run as run_module
from penstock.live.ownership import Ownership
with Ownership(Path(sys.argv[1])):
    print("mine", flush=True)
    time.sleep(600)
"""


def owner_of(folder: Path) -> "subprocess.Popen[str]":
    """Another process that owns it."""
    owner = subprocess.Popen([sys.executable, "-c", _OWNS, str(folder)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "mine\n"
    return owner


def held(folder: Path) -> str:
    """What a second one is told."""
    with pytest.raises(InputError) as refused, Ownership(folder):
        pytest.fail("two owners")
    assert "\n" not in str(refused.value)
    return str(refused.value)


def everything(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def live_run(out: Path) -> LiveRun:
    app = App("one", objective=Objective(response_time_s=6))
    app.sink("sink", app.operator("first", lambda frame: frame, app.source("source", schema="x long")))
    return LiveRun(app, controller_for(app), LiveSettings(out=out), lambda feeds: pytest.fail("it feeds"))


def test_a_second_owner_is_told_who_the_first_is_and_a_killed_one_blocks_nobody(tmp_path: Path) -> None:
    owner = owner_of(tmp_path)
    with owner:
        try:
            before = everything(tmp_path)
            told = held(tmp_path)
            assert told.startswith(f"{tmp_path}: ")
            assert f"process {owner.pid} on {socket.gethostname()} since 20" in told
            assert "give another folder" in told
            assert everything(tmp_path) == before
        finally:
            os.kill(owner.pid, signal.SIGKILL)
    with Ownership(tmp_path):
        assert f"process {os.getpid()} " in held(tmp_path)
    with Ownership(tmp_path):  # ended, and it goes on
        pass


def test_who_owns_it_may_enter_again_and_owns_it_until_the_last_is_left(tmp_path: Path) -> None:
    mine = Ownership(tmp_path)
    with mine:
        with mine:
            pass
        held(tmp_path)
    with Ownership(tmp_path):
        pass


def test_what_stands_in_the_file_may_be_anything(tmp_path: Path) -> None:
    with Ownership(tmp_path) as mine:
        for words in ("", "[1, 2]", "\x00\xff", '{"pid": "x\\ny"}'):
            mine.place.write_text(words)
            assert re.search("in use by another run", held(tmp_path))


def test_where_there_are_no_locks_nobody_is_kept_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any) -> None:
        raise OSError(ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unknown)
    with Ownership(tmp_path), Ownership(tmp_path):
        pass


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file: cannot write: ") as refused, Ownership(tmp_path / "file"):
        pass
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("place", ["work/owner.json", "work/streams/words/data", "results/it.csv"])
def test_a_link_in_a_folder_from_somebody_else_leads_nowhere(tmp_path: Path, place: str) -> None:
    elsewhere, link = tmp_path / "elsewhere", tmp_path / "run" / place
    elsewhere.write_text("mine")
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    assert f"{link}: a link; a run folder holds none" in held(tmp_path / "run")
    assert elsewhere.read_text() == "mine"
    (tmp_path / "usual").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "usual")  # the folder itself is where a user wants it
    with Ownership(tmp_path / "link"):
        assert (tmp_path / "usual" / "work").exists()


def test_who_comes_second_is_told_so_whatever_the_first_is_doing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders come and go while they are looked at; a link that the first has there is its affair."""
    look = os.scandir

    def gone(place: Any) -> Any:
        if str(place).endswith("goes"):
            raise FileNotFoundError(place)
        return look(place)

    (tmp_path / "work" / "goes").mkdir(parents=True)
    monkeypatch.setattr(os, "scandir", gone)
    with Ownership(tmp_path):
        (tmp_path / "work" / "link").symlink_to(tmp_path)
        assert "in use by another run" in held(tmp_path)


def test_what_a_killed_owner_was_writing_goes_and_what_others_write_stays(tmp_path: Path) -> None:
    """Orders are given by who does not own the folder, perhaps just now."""
    streams, orders = (tmp_path / "work" / place for place in ("streams", "orders"))
    for folder in (streams, orders):
        folder.mkdir(parents=True)
        (folder / ".000000017.json.e520fcc4dd7b115c").write_text('{"number": 17')
        (folder / ".17.json").write_text("somebody's")
    (streams / "000000016.json").write_text("{}")
    with Ownership(tmp_path):
        assert {path.name for path in streams.iterdir()} == {"000000016.json", ".17.json"}
        assert len(list(orders.iterdir())) == 2


def test_what_is_needed_to_resume_is_for_nobody_else_to_read(tmp_path: Path) -> None:
    with Ownership(tmp_path / "run"):
        assert (tmp_path / "run" / "work").stat().st_mode & 0o077 == 0
    with Ownership(tmp_path / "shared", private=False):  # workers of a cluster elsewhere may be others
        usual = tmp_path / "usual"
        usual.mkdir()
        assert (tmp_path / "shared" / "work").stat().st_mode == usual.stat().st_mode


def test_a_live_run_on_the_folder_of_another_changes_nothing_there(tmp_path: Path) -> None:
    with Ownership(tmp_path):
        before = everything(tmp_path)
        with pytest.raises(InputError, match=f"in use by another run: process {os.getpid()} "):
            live_run(tmp_path).run()
        assert everything(tmp_path) == before


def test_two_runs_on_one_master_have_names_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []

    def begins(name: str, *_: Any, **__: Any) -> None:
        names.append(name)
        raise ClusterError("enough")

    monkeypatch.setattr(run_module, "compile_policy", lambda controller: None)
    monkeypatch.setattr(run_module, "LocalCluster", MagicMock())
    monkeypatch.setattr(class_archive, "is_made", lambda: True)
    monkeypatch.setattr(class_archive, "options", lambda: "")
    monkeypatch.setattr(run_module, "session", begins)
    for _ in range(2):
        with pytest.raises(ClusterError, match="enough"):
            live_run(tmp_path).run()
    assert len(set(names)) == 2
    assert all(re.fullmatch("one-[0-9a-f]{8}", name) for name in names)


def test_a_second_command_on_the_same_folder_is_refused_until_the_first_has_left_its_report(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second: list[tuple[int, str, str]] = []

    def ended(live: LiveRun) -> Summary:
        if second:
            raise AssertionError("two at once")
        second.append((0, "", "it was let in"))
        (tmp_path / "same" / "summary.json").write_text('{"finished": false}')
        before = everything(tmp_path / "same")
        second[0] = run("run", "paced", "--out", "same")
        assert everything(tmp_path / "same") == before
        raise InputError("enough")

    monkeypatch.setattr(LiveRun, "run", ended)
    run("run", "paced", "--out", "same")
    ((status, out, err),) = second
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert f"same: in use by another run: process {os.getpid()} on {socket.gethostname()} since " in err


def test_orders_and_replay_need_not_own_the_folder(run: Run, tmp_path: Path) -> None:
    live = live_run(tmp_path / "run")
    with Ownership(tmp_path / "run"):
        with JournalFile(tmp_path / "run" / "journal.jsonl") as journal:
            journal.append(Header(controller=live.controller))
        assert run("order", "pause", "run")[0] == 0
        status, said, _ = run("replay", "run", "--json")
        assert (status, json.loads(said)["ticks"]) == (0, 0)
