"""Every application policy keeps the contract."""

from typing import Any

import numpy as np

from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.perf.joint import joint_queues
from penstock.policy.api import ApplicationPolicy
from penstock.policy.application.centralised import (
    CentralisedLearner,
    CentralisedMdp,
    application_problem,
    joint_violation_costs,
)
from penstock.policy.application.drs import DrsManager
from penstock.policy.application.grant_all import GrantAll
from penstock.policy.application.lohrmann import LohrmannManager
from penstock.policy.application.token_bucket import TokenBucket
from penstock.policy.operator.node_choice import NodeChoice
from penstock.policy.rl.problem import level_rates
from penstock.testing.application_policy import APPLICATION, ApplicationPolicyContract

OBJECTIVE = Objective(response_time_s=0.05)
PROBLEM = application_problem(APPLICATION, OBJECTIVE, levels=5, max_rate=600.0)
ONE_TYPE = (NodeType(name="node", speedup=1.0, price=1.0),)


class TestGrantAll(ApplicationPolicyContract):
    def make_policy(self) -> ApplicationPolicy[Any]:
        return GrantAll()


class TestTokenBucket(ApplicationPolicyContract):
    def make_policy(self) -> ApplicationPolicy[Any]:
        return TokenBucket(low_s=0.025, high_s=0.045, capacity=2)


class TestCentralisedMdp(ApplicationPolicyContract):
    def make_policy(self) -> ApplicationPolicy[Any]:
        return CentralisedMdp(
            application=APPLICATION,
            objective=OBJECTIVE,
            problem=PROBLEM,
            transitions=np.full((5, 5), 0.2),
            violation_costs=joint_violation_costs(PROBLEM, joint_queues(APPLICATION), level_rates(PROBLEM)),
        )


class TestCentralisedLearner(ApplicationPolicyContract):
    def make_policy(self) -> ApplicationPolicy[Any]:
        return CentralisedLearner(application=APPLICATION, objective=OBJECTIVE, problem=PROBLEM)


class TestDrs(ApplicationPolicyContract):
    as_published = False

    def make_policy(self) -> ApplicationPolicy[Any]:
        return DrsManager(
            application=APPLICATION,
            objective=OBJECTIVE,
            node_types=ONE_TYPE,
            node_choice=NodeChoice.FIRST,
            as_published=self.as_published,
        )


class TestDrsAsPublished(TestDrs):
    as_published = True


class TestLohrmann(ApplicationPolicyContract):
    as_published = False

    def make_policy(self) -> ApplicationPolicy[Any]:
        return LohrmannManager(
            application=APPLICATION,
            objective=OBJECTIVE,
            node_types=ONE_TYPE,
            node_choice=NodeChoice.FIRST,
            as_published=self.as_published,
        )


class TestLohrmannAsPublished(TestLohrmann):
    as_published = True
