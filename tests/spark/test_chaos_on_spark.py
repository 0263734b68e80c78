"""A few trials of `penstock chaos`, as a user runs them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("seed", "happens"),
    [
        (1, ("kill the driver's Java", "a clock that jumps", "kill a Python worker", "kill an executor")),
        (5, ("kill the driver", "stop the master", "kill what Python workers", "a slow disk")),
    ],
)
def test_what_is_done_to_a_run_changes_no_result(seed: int, happens: tuple[str, ...], tmp_path: Path) -> None:
    words = ["chaos", "--seed", str(seed), "--json", "--out", str(tmp_path / "trials")]
    ran = subprocess.run(
        [sys.executable, "-m", "penstock", *words], capture_output=True, text=True, timeout=900, check=False
    )
    assert ran.stdout, ran.stderr
    (trial,) = json.loads(ran.stdout)["trials"]
    assert trial["problems"] == []
    assert ran.returncode == 0
    happened = " ".join(trial["happened"])
    # One that is due near the end may find that all is done.
    assert sum(what in happened for what in happens) >= len(happens) - 1, trial
    assert trial["starts"] == 2  # the driver, or its Java, was killed
    assert not list((tmp_path / "trials").iterdir())
