"""Spark keeps the contract of runtimes, with an application of ours and with anybody's query."""

import subprocess
import sys
from pathlib import Path

import pytest

_SLOW_MACHINE_S = 900


@pytest.mark.parametrize("claims", ["runtime_on_spark.py", "attached_on_spark.py", "spares_on_spark.py"])
def test_spark_keeps_the_contract_of_runtimes(claims: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--durations=0"]
    ran = subprocess.run(
        [*command, "--basetemp", str(tmp_path / "claims"), str(Path(__file__).with_name(claims))],
        capture_output=True,
        text=True,
        check=False,
        timeout=_SLOW_MACHINE_S,
    )
    assert ran.returncode == 0, f"{ran.stdout[-6000:]}\n{ran.stderr[-2000:]}"
