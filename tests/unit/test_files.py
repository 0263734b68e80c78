"""Writing files whole or not at all."""

import os
import stat
import threading
from pathlib import Path

import pytest

from penstock.domain.errors import InputError
from penstock.files import check_can_write, copy_to_disk, write_whole


def test_a_reader_meets_the_old_file_until_the_new_one_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    met: list[str] = []
    rename = os.replace

    def watched(source: Path, destination: Path) -> None:
        met.append(target.read_text())  # the new text is written by now, elsewhere
        rename(source, destination)

    monkeypatch.setattr("os.replace", watched)
    write_whole(target, "new")
    assert met == ["old"]
    assert target.read_text() == "new"


def test_what_comes_piece_by_piece_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    write_whole(target, (f"{number}\n" for number in range(3)))
    assert target.read_text() == "0\n1\n2\n"
    with pytest.raises(ZeroDivisionError):
        write_whole(target, (f"{1 // number}" for number in (1, 0)))
    assert target.read_text() == "0\n1\n2\n"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_copy_of_a_folder_has_gone_to_disk_file_by_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin, copy = tmp_path / "origin", tmp_path / "copy"
    (origin / "inner").mkdir(parents=True)
    (origin / "inner" / "file").write_text("state")
    waited = set[str]()
    monkeypatch.setattr("os.fsync", lambda file: waited.add(os.readlink(f"/proc/self/fd/{file}")))
    copy_to_disk(origin, copy)
    assert (copy / "inner" / "file").read_text() == "state"
    assert waited == {str(copy), str(copy / "inner"), str(copy / "inner" / "file")}


def test_a_failed_write_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputError, match=r"out\.txt: cannot write: No space left on device"):
        write_whole(target, "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_a_link_stays_a_link_and_what_it_points_to_changes(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    link = tmp_path / "link.txt"
    link.symlink_to("real.txt")
    write_whole(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "through the pipe")
    reader.join(timeout=10)
    assert heard == ["through the pipe"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_permissions_are_those_of_the_file_replaced_or_of_any_new_one(tmp_path: Path) -> None:
    private, new, plain = tmp_path / "private", tmp_path / "new", tmp_path / "plain"
    private.write_text("old")
    private.chmod(0o600)
    write_whole(private, "new")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    plain.write_text("as anyone would")
    write_whole(new, "as anyone would")
    assert new.stat().st_mode == plain.stat().st_mode


def test_directories_on_the_way_are_made(tmp_path: Path) -> None:
    check_can_write(tmp_path / "a" / "b" / "c.txt")
    assert list(tmp_path.iterdir()) == []  # asking changes nothing
    write_whole(tmp_path / "a" / "b" / "c.txt", "deep")
    assert (tmp_path / "a" / "b" / "c.txt").read_text() == "deep"


def test_what_cannot_be_written_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "below"):
        with pytest.raises(InputError, match="cannot write"):
            check_can_write(path)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(InputError, match="Permission denied"):
        check_can_write(tmp_path / "x")
