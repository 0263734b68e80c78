"""Every operator policy that is registered keeps the contract."""

import json
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from penstock.control.plain_data import from_plain, to_plain
from penstock.control.spec import Manager
from penstock.domain.decision import Decision
from penstock.policy.api import OperatorPolicy
from penstock.policy.kernel import is_compiled
from penstock.policy.memory import learned, with_learned
from penstock.policy.registry import Level, entries, entry
from penstock.simulation.one_operator import operator_of
from penstock.simulation.spec import OneOperator
from penstock.testing.operator_policy import OperatorPolicyContract


@pytest.fixture(params=list(entries(Level.OPERATOR)))
def policy_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def kept(memory: Any, fresh: Any) -> Any:
    """As a controller saves and restores it: arrays of a compiled policy, plain data of any other."""
    if is_compiled(memory):
        return with_learned(fresh, learned(memory))
    return from_plain(json.loads(json.dumps(to_plain(memory, type(memory)))), type(fresh))


class TestEveryPolicy(OperatorPolicyContract):
    infrastructure = "A:3"
    as_published = False

    @pytest.fixture(autouse=True)
    def _named(self, policy_name: str) -> None:
        self.name = policy_name

    def make_policy(self) -> OperatorPolicy[Any]:
        rates = np.random.default_rng(1).uniform(0, 650, 500)
        spec = OneOperator(
            operator_policy=Manager(self.name),
            infrastructure=self.infrastructure,
            max_replicas=self.max_replicas,
            as_published=self.as_published,
        )
        policy: OperatorPolicy[Any] = entry(Level.OPERATOR, self.name).build(
            operator_of(spec, rates, rates, seed=2), {}
        )
        return policy

    def test_a_policy_restored_from_what_it_learned_goes_on_as_if_never_stopped(self) -> None:
        day = self.a_day()
        policy, rng = self.make_policy(), np.random.default_rng(3)
        memory = policy.initial()
        for seen in day[:30]:
            _, memory = policy.decide(memory, seen, rng)
        again, same_rng = self.make_policy(), deepcopy(rng)
        restored = kept(memory, again.initial())
        for seen in day[30:]:
            expected, memory = policy.decide(memory, seen, rng)
            decision, restored = again.decide(restored, seen, same_rng)
            assert decision == expected

    def test_only_a_policy_without_the_trait_decides_the_same_whatever_the_seed(self) -> None:
        if entry(Level.OPERATOR, self.name).traits.chance:
            return  # may differ; that it does is not promised for every load

        def decisions(seed: int) -> list[Decision]:
            policy, rng = self.make_policy(), np.random.default_rng(seed)
            memory, made = policy.initial(), []
            for seen in self.a_day():
                decision, memory = policy.decide(memory, seen, rng)
                made.append(decision)
            return made

        assert decisions(1) == decisions(2)


class TestEveryPolicyAsPublished(TestEveryPolicy):
    as_published = True


class TestEveryPolicyOnOneNodeType(TestEveryPolicy):
    infrastructure = "A:1"
    node_types = 1
