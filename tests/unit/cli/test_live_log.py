"""What libraries have to say during a live run goes to a file, and nowhere else."""

import logging
from pathlib import Path

import pytest

from penstock.cli.live_view import _LONGEST_LOG, Heard


def said(handler: Heard, text: str) -> None:
    handler.emit(logging.LogRecord("py4j", logging.ERROR, __file__, 1, text, None, None))


def test_where_the_disk_is_full_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    handler = Heard(Path("/dev/full"))
    said(handler, "an exception on the Python side")
    handler.close()
    assert capsys.readouterr() == ("", "")


def test_the_file_does_not_grow_without_end(tmp_path: Path) -> None:
    handler = Heard(tmp_path / "python.log")
    for _ in range(50):
        said(handler, "x" * (_LONGEST_LOG // 10))
    handler.close()
    assert {path.name for path in tmp_path.iterdir()} == {"python.log", "python.log.1"}
    assert all(path.stat().st_size <= _LONGEST_LOG for path in tmp_path.iterdir())
