"""Every policy that can be named keeps the contract."""

from typing import Any

import numpy as np
import pytest

from penstock.experiments.catalogue import POLICIES, build_policy, operator_of
from penstock.experiments.spec import Spec
from penstock.policies.api import OperatorPolicy
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
        spec = Spec(
            policy=self.name,
            infrastructure=self.infrastructure,
            max_replicas=self.max_replicas,
            as_published=self.as_published,
        )
        return build_policy(operator_of(spec, rates, rates, np.random.default_rng(2)))


class TestEveryPolicyAsPublished(TestEveryPolicy):
    as_published = True


class TestEveryPolicyOnOneNodeType(TestEveryPolicy):
    infrastructure = "A:1"
    node_types = 1
