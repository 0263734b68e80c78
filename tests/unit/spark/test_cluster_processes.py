"""What a cluster makes of processes that end, without Spark."""

import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from penstock.runtimes.spark import cluster
from penstock.runtimes.spark.cluster import ClusterError, LocalCluster, _Process


def ended(log: Path) -> _Process:
    log.write_text("out of memory")
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return _Process(process, log, 0)


@pytest.mark.parametrize(("name", "comes_again"), [("master", True), ("worker", True), ("count-1", False)])
def test_what_is_started_again_may_end_some_times_while_a_run_starts(
    tmp_path: Path, name: str, comes_again: bool
) -> None:
    place = LocalCluster(tmp_path)
    place._processes[name] = ended(tmp_path / "log")
    with pytest.raises(ClusterError, match=f"{name} ended: out of memory"):
        place.check()
    if comes_again:
        place.check(revived=True)
        place._restarts.failures[name] = 4
    with pytest.raises(ClusterError, match=f"{name} ended: out of memory"):
        place.check(revived=True)


def test_no_two_workers_have_one_address_however_many_came_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one for all is as old as the run."""
    monkeypatch.setattr(cluster, "_ADDRESSES", 3)
    place = LocalCluster(tmp_path)
    first = next(place._addresses)
    place._processes["worker"] = _Process(
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE),
        tmp_path / "log",
        0,
        host=first,
    )
    try:
        given = [place._free_address() for _ in range(16)]
    finally:
        place._processes["worker"].handle.communicate(b"\n")
    assert given[:8] == given[8:]
    assert len({first, *given}) == 9
    assert list(islice(place._addresses, 9)).count(first) == 1
