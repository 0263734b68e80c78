"""A process forked off does the work of the one who asked, in its place."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.runtimes.spark.zygote import let_fork

_SERVES = """
import os, sys
from pathlib import Path
from penstock.runtimes.spark.zygote import serve

def work():
    word = sys.stdin.readline().strip()
    print(word, os.environ["WHO"][:2], sys.argv[0], Path.cwd().name, os.getppid() == zygote, flush=True)
    if word == "fail":
        raise ValueError("as asked")

zygote = os.getpid()
serve(Path(sys.argv[1]), work)
"""
_ASKS = """
import sys
from pathlib import Path
from penstock.runtimes.spark.zygote import let_fork

sys.exit(not let_fork(Path(sys.argv[1])))
"""


@pytest.fixture
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = Path(os.path.relpath(tmp_path_factory.mktemp("z") / "z"))  # short enough for a socket
    process = subprocess.Popen([sys.executable, "-c", _SERVES, str(place)])
    try:
        while not place.exists():
            assert process.poll() is None
            time.sleep(0.01)
        yield place.resolve()
    finally:
        process.kill()
        process.wait()


def test_nobody_else_can_have_it_fork(zygote: Path) -> None:
    """Who may not write to a socket may not connect."""
    assert zygote.stat().st_mode & 0o077 == 0


def ask(place: Path, word: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", _ASKS, os.path.relpath(place, folder)],
        input=f"{word}\n",
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "WHO": "me" * 60_000},
        check=False,
        timeout=30,
    )


def test_a_fork_has_the_input_output_environment_arguments_and_folder_of_the_client(
    zygote: Path, tmp_path: Path
) -> None:
    for word in ("one", "two"):
        ran = ask(zygote, word, tmp_path)
        assert (ran.returncode, ran.stdout) == (0, f"{word} me -c {tmp_path.name} True\n"), ran.stderr


def test_what_goes_wrong_in_a_fork_is_told_to_the_client(zygote: Path, tmp_path: Path) -> None:
    ran = ask(zygote, "fail", tmp_path)
    assert "ValueError: as asked" in ran.stderr
    assert ask(zygote, "again", tmp_path).stdout.startswith("again")


def test_rubbish_at_the_socket_does_not_stop_the_zygote(zygote: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.path.relpath(zygote))
        connection.sendall((7).to_bytes(8, "big") + b"rubbish")
    assert ask(zygote, "still", tmp_path).stdout.startswith("still")


def test_without_a_zygote_one_has_to_work_oneself(tmp_path: Path) -> None:
    assert not let_fork(tmp_path / "nobody")
