"""What belongs to a run alone, and that nobody else on the machine can read or enter."""

import tempfile
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from pyspark.sql import SparkSession

from penstock.data.spark_session import spark_session
from penstock.domain.errors import InputError
from penstock.live.settings import LiveSettings
from penstock.runtimes.spark.cluster import LocalCluster
from penstock.runtimes.spark.private import SECRET, new_private, temporary_folder, write_properties

_LONGEST_SOCKET = 107
_SPARKS_SOCKET = ".12dc2dd1-336c-4bba-8830-843c5aa9f467.sock"


def test_every_run_has_a_secret_and_a_folder_of_its_own() -> None:
    one, other = new_private(), new_private()
    try:
        assert one.secret != other.secret
        assert len(one.secret) >= 32
        assert one.secret not in repr(one)
        assert one.folder != other.folder
        assert one.folder.stat().st_mode & 0o077 == 0
    finally:
        one.folder.rmdir()
        other.folder.rmdir()


def test_sockets_have_room_in_the_folder_however_long_the_usual_place_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 60)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    folder = temporary_folder()
    try:
        assert len(str(folder / _SPARKS_SOCKET)) <= _LONGEST_SOCKET
    finally:
        folder.rmdir()


def test_a_secret_in_a_file_is_for_us_alone_and_never_goes_where_a_link_points(tmp_path: Path) -> None:
    victim, place = tmp_path / "victim", tmp_path / "worker.conf"
    victim.write_text("mine")
    place.symlink_to(victim)
    write_properties(place, {SECRET: "s3cret", "spark.ui.killEnabled": "false"})
    assert victim.read_text() == "mine"
    assert place.read_text() == f"{SECRET} s3cret\nspark.ui.killEnabled false\n"
    assert place.stat().st_mode & 0o077 == 0


def test_nothing_that_a_worker_executes_or_reads_lies_in_the_run_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else may have made it, and written there."""
    words: list[tuple[str, ...]] = []
    cluster = LocalCluster(tmp_path, port=1)
    cluster._folder = tmp_path / "private"
    cluster._folder.mkdir()
    monkeypatch.setattr(cluster, "_launch", lambda _, command, *__, **___: words.append(command))
    monkeypatch.setattr("penstock.runtimes.spark.cluster.command", lambda program: ("java", program))
    stranger = tmp_path / "workers" / "op_a-1" / "discover.sh"
    stranger.parent.mkdir(parents=True)
    stranger.write_text("#!/bin/sh\nsteal\n")
    cluster.start_worker("op_a-1", cores=1, memory_mb=512, tag="op_a")
    ((*_, option, properties, master),) = words
    assert (option, master) == ("--properties-file", "spark://127.0.0.1:1")
    assert Path(properties).parent == cluster._folder
    said = dict(line.split(" ", 1) for line in Path(properties).read_text().splitlines())
    script = Path(said["spark.worker.resource.op_a.discoveryScript"])
    assert script.parent == cluster._folder
    assert '"name": "op_a"' in script.read_text()


def test_what_java_says_goes_where_nobody_else_can_put_a_link(monkeypatch: pytest.MonkeyPatch) -> None:
    logs: list[Path] = []

    def started(master: str, memory: str, log: Path) -> MagicMock:
        logs.append(log)
        assert log.parent.stat().st_mode & 0o077 == 0
        return MagicMock()

    monkeypatch.setattr("penstock.data.spark_session.java", lambda: None)
    monkeypatch.setattr("penstock.data.spark_session._start", started)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    for _ in range(2):
        with spark_session():
            pass
    assert len(set(logs)) == 2
    assert not any(log.parent.exists() for log in logs)


@pytest.mark.parametrize("key", ["spark.authenticate", "spark.authenticate.secret", "spark.ui.killEnabled"])
def test_what_keeps_others_out_of_the_embedded_cluster_cannot_be_set(tmp_path: Path, key: str) -> None:
    with pytest.raises(InputError, match=rf"setting '{key}': it keeps others out .*; leave it out"):
        LiveSettings(out=tmp_path, conf={key: "x"})
    LiveSettings(out=tmp_path, conf={key: "x"}, master="spark://theirs:7077")
