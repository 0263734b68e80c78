"""Every application policy that is registered keeps the contract."""

from typing import Any

import numpy as np
import pytest

from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.policy.api import ApplicationPolicy
from penstock.policy.knowledge import ApplicationKnowledge
from penstock.policy.registry import Level, entries, entry
from penstock.testing.application_policy import APPLICATION, ApplicationPolicyContract


@pytest.fixture(params=list(entries(Level.APPLICATION)))
def policy_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestEveryManager(ApplicationPolicyContract):
    as_published = False

    @pytest.fixture(autouse=True)
    def _named(self, policy_name: str) -> None:
        self.name = policy_name

    def make_policy(self) -> ApplicationPolicy[Any]:
        known = ApplicationKnowledge(
            application=APPLICATION,
            objective=Objective(response_time_s=0.05),
            node_types=(NodeType(name="node", speedup=1.0, price=1.0),),
            training=np.random.default_rng(1).uniform(0, 600, 500),
            max_rate=600.0,
            interval_s=60.0,
            levels=5,
            as_published=self.as_published,
        )
        policy: ApplicationPolicy[Any] = entry(Level.APPLICATION, self.name).build(known, {})
        return policy

    def test_only_one_that_decides_itself_has_decisions_of_its_own(self) -> None:
        policy = self.make_policy()
        verdict, _ = policy.grant(policy.initial(), [], self.seen(300.0, {"first": 1, "second": 1}))
        assert bool(verdict.decisions) is entry(Level.APPLICATION, self.name).traits.decides_itself


class TestEveryManagerAsPublished(TestEveryManager):
    as_published = True
