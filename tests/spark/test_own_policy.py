"""docs/add-a-policy.md on Spark: a user's own policy, from another folder, live."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "mine.py"


def penstock(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The installed command, in a folder that has `mine.py` and nothing of Penstock."""
    program = "import sys; sys.path.remove(''); from penstock.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_a_run_takes_it_and_only_who_asks_for_it_replays_it(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path / "mine.py")
    words = (
        "run paced --policy mine:Patient --set patience=3 --low 30 --high 60 --minutes .25 --out run --json"
    )
    ran = penstock(tmp_path, *words.split())
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["policy"] == "mine:Patient"
    header = json.loads((tmp_path / "run" / "journal.jsonl").read_text().splitlines()[0])
    assert header["controller"]["operator_policy"] == {"name": "mine:Patient", "parameters": {"patience": 3}}
    again = penstock(tmp_path, "replay", "run", "--policy", "mine:Patient", "--json")
    assert again.returncode == 0, again.stdout + again.stderr
    assert json.loads(again.stdout)["ticks"] > 0
    refused = penstock(tmp_path, "replay", "run")
    assert refused.returncode == 2
    assert "policy 'mine:Patient': not loaded; code is imported only where you ask for it" in refused.stderr
