"""Claims on Spark that start a session on a cluster: it cannot stand beside the tests' local one."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.runtimes.spark.cluster import ClusterError
from penstock.runtimes.spark.session import session

_SLOW_MACHINE_S = 900
_HERE = Path(__file__).parent
_CLAIMS = sorted(set(_HERE.glob("*_on_spark.py")) - set(_HERE.glob("test_*")))


@pytest.mark.parametrize("claims", _CLAIMS, ids=lambda file: file.stem)
def test_claims_on_spark_hold(claims: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--durations=0", "-rsP"]
    ran = subprocess.run(
        [*command, "--basetemp", str(tmp_path / "claims"), str(claims)],
        capture_output=True,
        text=True,
        check=False,
        timeout=_SLOW_MACHINE_S,
    )
    print(ran.stdout)  # what was measured: `pytest -rP` shows it
    assert ran.returncode == 0, f"{ran.stdout[-6000:]}\n{ran.stderr[-2000:]}"
    if " passed" not in ran.stdout.splitlines()[-1]:
        pytest.skip(next(line for line in ran.stdout.splitlines() if line.startswith("SKIPPED")))


def test_a_second_session_in_one_process_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"has a Spark session already, on 'local\[2\]'"):
        session("second", "spark://127.0.0.1:1", work=tmp_path)
    assert spark.range(3).count() == 3
