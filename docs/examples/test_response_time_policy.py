"""The contract, subclassed for both versions of the example, and that they are one policy."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_response_time_policy import build
from penstock.simulation.catalogue import POLICIES, build_policy, operator_of
from response_time_policy import ResponseTimePolicy, simulate

from penstock.data.synthetic import day_and_week
from penstock.policy.api import OperatorPolicy
from penstock.simulation.play import run
from penstock.simulation.spec import OneOperator
from penstock.testing.operator_policy import OperatorPolicyContract

SPEC = OneOperator(policy="response-time", infrastructure="A:3")


@pytest.fixture(autouse=True)
def _in_the_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, "response-time", build)


class TestResponseTimePolicy(OperatorPolicyContract):
    """The plain one."""

    def make_policy(self) -> OperatorPolicy[Any]:
        return ResponseTimePolicy(limit_s=0.050, max_replicas=self.max_replicas)


class TestCompiledResponseTimePolicy(OperatorPolicyContract):
    """The compiled one, found by its name in the catalogue."""

    def make_policy(self) -> OperatorPolicy[Any]:
        spec = OneOperator(policy="response-time", infrastructure="A:3", max_replicas=self.max_replicas)
        rates = np.array([100.0])
        return build_policy(operator_of(spec, rates, rates, np.random.default_rng(1)))


def test_plain_and_compiled_run_the_same_slots() -> None:
    rates = day_and_week(slots=3 * 1440, seed=1).rates
    plain, _ = simulate(ResponseTimePolicy(limit_s=SPEC.slo_s, max_replicas=SPEC.max_replicas), SPEC, rates)
    compiled = run(SPEC, rates, with_history=True)
    assert compiled.history is not None
    assert [slot.cost for slot in plain] == compiled.history.cost.tolist()
    assert compiled.reconfigurations_pct == pytest.approx(100 * np.mean([s.reconfigured for s in plain]))


def test_the_page_shows_what_runs_here() -> None:
    here = Path(__file__).parent
    page = (here.parent / "add-a-policy.md").read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for path in here.glob("*.py")]
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        assert any(block in source for source in sources), f"not in any example file:\n{block}"
