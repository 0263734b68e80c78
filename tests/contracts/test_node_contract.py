"""Every node policy keeps the contract; one that breaks it is caught."""

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.random import Generator

from penstock.compiled import is_ours
from penstock.control.spec import Manager
from penstock.domain.observation import NodeObservation
from penstock.domain.request import Migrate
from penstock.policy.api import NodePolicy
from penstock.policy.knowledge import NodeKnowledge
from penstock.policy.registry import Level, entries
from penstock.testing.node_policy import NodePolicyContract

BUILT_IN = [name for name, one in entries(Level.NODE).items() if is_ours(one.policy)]


@pytest.mark.parametrize("name", BUILT_IN)
class TestEveryNodePolicy(NodePolicyContract):
    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name = name

    def make_policy(self) -> NodePolicy:
        return Manager(self.name).for_node(NodeKnowledge())


class _Reckless:
    """Sends a replica it may not have to the first node there is."""

    def propose(
        self, seen: NodeObservation, nodes: Mapping[str, NodeObservation], rng: Generator
    ) -> Migrate | None:
        target = sorted(nodes)[int(rng.random() * len(nodes))]
        return Migrate(operator="a", origin=seen.node, target=target, score=1.0, reason="why not")


@pytest.mark.parametrize(
    "claim",
    [
        lambda contract: contract.test_what_is_moved_is_there_and_goes_where_there_is_room(0.95),
        lambda contract: contract.test_a_node_that_hosts_nothing_has_nothing_to_move(),
        lambda contract: contract.test_what_was_not_measured_moves_nothing(),
    ],
)
def test_a_policy_that_breaks_the_contract_is_caught(claim: object) -> None:
    class Contract(NodePolicyContract):
        def make_policy(self) -> NodePolicy:
            return _Reckless()

    assert callable(claim)
    with pytest.raises(AssertionError):
        claim(Contract())


def test_a_policy_with_chance_of_its_own_is_caught() -> None:
    class Moody(_Reckless):
        own = np.random.default_rng(1)

        def propose(
            self, seen: NodeObservation, nodes: Mapping[str, NodeObservation], rng: Generator
        ) -> Migrate | None:
            return super().propose(seen, nodes, self.own)

    class Contract(NodePolicyContract):
        def make_policy(self) -> NodePolicy:
            return Moody()

    with pytest.raises(AssertionError):
        Contract().test_the_same_chance_makes_the_same_decision_and_nothing_is_changed()
