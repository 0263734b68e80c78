"""`penstock compare --runtime spark` with Spark's own dynamic allocation, for real."""

import json
import subprocess
import sys
from pathlib import Path

_SLOW_MACHINE_S = 400


def test_sparks_own_allocation_adds_executors_and_penstock_counts_them_and_changes_nothing(
    tmp_path: Path,
) -> None:
    # Half a minute at 100 tuples/s of 20 ms: a single executor falls behind, so tasks wait.
    words = ("--policies", "dynamic-allocation", "--minutes", "0.5", "--load", "constant", "--low", "100")
    command = [sys.executable, "-m", "penstock", "compare", "--runtime", "spark", *words]
    done = subprocess.run(
        [*command, "--max-replicas", "3", "--out", "side", "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=_SLOW_MACHINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (ran,) = json.loads(done.stdout)["runs"]
    replicas = [moment["replicas"] for moment in ran["over_time"]]
    assert max(replicas) > 2, "more than one of each"
    assert max(replicas) <= 6
    assert ran["replica_changes"] >= 1
    assert ran["reconfigurations"] == 0, "none by Penstock"
    assert ran["tuples"] > 0
    assert (tmp_path / "side" / "comparison.html").exists()
