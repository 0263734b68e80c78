"""Every policy that can be named keeps the contract."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from penstock.simulation.catalogue import POLICIES, build_policy, operator_of

from penstock.policy.api import OperatorPolicy
from penstock.policy.memory import learned, with_learned
from penstock.simulation.spec import OneOperator
from penstock.testing.operator_policy import OperatorPolicyContract


@pytest.fixture(params=list(POLICIES))
def policy_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestEveryPolicy(OperatorPolicyContract):
    infrastructure = "A:3"
    as_published = False

    @pytest.fixture(autouse=True)
    def _named(self, policy_name: str) -> None:
        self.name = policy_name

    def make_policy(self) -> OperatorPolicy[Any]:
        rates = np.random.default_rng(1).uniform(0, 650, 500)
        spec = OneOperator(
            policy=self.name,
            infrastructure=self.infrastructure,
            max_replicas=self.max_replicas,
            as_published=self.as_published,
        )
        return build_policy(operator_of(spec, rates, rates, np.random.default_rng(2)))

    def test_a_policy_restored_from_what_it_learned_goes_on_as_if_never_stopped(self) -> None:
        day = self.a_day()
        policy, rng = self.make_policy(), np.random.default_rng(3)
        memory = policy.initial()
        for seen in day[:30]:
            _, memory = policy.decide(memory, seen, rng)
        again, same_rng = self.make_policy(), deepcopy(rng)
        restored = with_learned(again.initial(), learned(memory))
        for seen in day[30:]:
            expected, memory = policy.decide(memory, seen, rng)
            decision, restored = again.decide(restored, seen, same_rng)
            assert decision == expected


class TestEveryPolicyAsPublished(TestEveryPolicy):
    as_published = True


class TestEveryPolicyOnOneNodeType(TestEveryPolicy):
    infrastructure = "A:1"
    node_types = 1
