"""What docs/add-a-policy.md says about both policies, and the contract for each."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import mine
import mine_compiled
import numpy as np
import pytest

import penstock
from penstock import OperatorPolicy
from penstock.testing.operator_policy import OperatorPolicyContract

HERE = Path(__file__).parent


class TestPatient(OperatorPolicyContract):
    def make_policy(self) -> OperatorPolicy[Any]:
        return mine.Patient(max_response_time_s=0.050, max_replicas=self.max_replicas)


class TestCompiledPatient(OperatorPolicyContract):
    def make_policy(self) -> OperatorPolicy[Any]:
        types = tuple(
            penstock.NodeType(name=f"t{index}", speedup=1.0 + index, price=1.0 + index)
            for index in range(self.node_types)
        )
        return mine_compiled.Patient(
            node_types=types,
            deployments=penstock.deployments(types, self.max_replicas),
            max_response_time_s=0.050,
        )


def test_both_decide_the_same_slot_for_slot() -> None:
    rates = 300 + 200 * np.sin(np.arange(2_000) / 100)
    plain = penstock.simulate(rates, mine.Patient, parameters={"patience": 5}, with_history=True)
    compiled = penstock.simulate(rates, mine_compiled.Patient, parameters={"patience": 5}, with_history=True)
    assert plain.history is not None
    assert compiled.history is not None
    assert plain.history.replicas.tolist() == compiled.history.replicas.tolist()
    assert plain.avg_cost == pytest.approx(compiled.avg_cost, rel=1e-12)
    assert plain.reconfigurations_pct > 0


def penstock_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command, in a folder that has `mine.py` and nothing of Penstock."""
    program = "import sys; sys.path.remove(''); from penstock.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *words], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(HERE / "mine.py", tmp_path / "mine.py")
    return tmp_path


def test_the_command_line_takes_it_from_another_folder(folder: Path) -> None:
    words = ("simulate", "--policy", "mine:Patient", "--slots", "500", "--json")
    usual = penstock_in(folder, *words)
    hasty = penstock_in(folder, *words, "--set", "patience=1")
    assert usual.returncode == hasty.returncode == 0, usual.stderr + hasty.stderr
    found = json.loads(hasty.stdout)
    assert (found["policy"], found["parameters"]) == ("mine:Patient", {"patience": 1})
    assert found["reconfigurations_pct"] > json.loads(usual.stdout)["reconfigurations_pct"]


def test_compare_takes_it_beside_the_built_in_ones(folder: Path) -> None:
    words = "compare --policies mine:Patient,threshold-c --set patience=5 --slots 300 --json"
    done = penstock_in(folder, *words.split())
    assert done.returncode == 0, done.stderr
    assert {one["policy"] for one in json.loads(done.stdout)["policies"]} == {"mine:Patient", "threshold-c"}


def test_a_wrong_parameter_is_one_line_with_the_nearest_one(folder: Path) -> None:
    done = penstock_in(folder, "simulate", "--policy", "mine:Patient", "--set", "patince=5")
    assert done.returncode == 2
    assert done.stderr == (
        "penstock: policy 'mine:Patient': no parameter 'patince'; did you mean 'patience'?\n"
    )


def test_it_manages_the_operators_of_an_application_under_a_token_bucket(folder: Path) -> None:
    words = (
        "simulate --application pipeline --application-policy token-bucket --policy mine:Patient "
        "--slots 60 --slo-ms 300 --json"
    )
    done = penstock_in(folder, *words.split())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["policy"] == "mine:Patient"
