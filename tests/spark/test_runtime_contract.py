"""Spark keeps the contract of runtimes."""

import subprocess
import sys
from pathlib import Path

_CLAIMS = Path(__file__).with_name("runtime_on_spark.py")
_SLOW_MACHINE_S = 900


def test_spark_keeps_the_contract_of_runtimes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--durations=0"]
    ran = subprocess.run(
        [*command, "--basetemp", str(tmp_path / "claims"), str(_CLAIMS)],
        capture_output=True,
        text=True,
        check=False,
        timeout=_SLOW_MACHINE_S,
    )
    assert ran.returncode == 0, f"{ran.stdout[-6000:]}\n{ran.stderr[-2000:]}"
