"""The contract every node policy keeps. Subclass it, return your policy, run pytest.

    class TestMyPolicy(NodePolicyContract):
        def make_policy(self) -> NodePolicy:
            return MyPolicy(...)

It is asked about three nodes of one type and one of another, with replicas of two operators.
"""

from collections.abc import Mapping
from copy import deepcopy

import numpy as np
import pytest

from penstock.domain.observation import NodeObservation
from penstock.domain.request import Migrate
from penstock.policy.api import NodePolicy

_LOADS = (0.0, 0.3, 0.95, 3.0)  # from idle to overloaded
_SEEDS = range(20)


class NodePolicyContract:
    """What the hierarchy relies on, whatever the policy."""

    def make_policy(self) -> NodePolicy:
        raise NotImplementedError

    @pytest.mark.parametrize("load", _LOADS)
    def test_what_is_moved_is_there_and_goes_where_there_is_room(self, load: float) -> None:
        nodes = self.nodes(load)
        for seed in _SEEDS:
            asked = self._asked(nodes, seed)
            if asked is None:
                continue
            assert asked.operator in nodes["here"].hosted
            assert asked.origin == "here"
            assert asked.target != "here"
            assert nodes[asked.target].free_slots > 0, f"'{asked.target}' has no room"
            assert nodes[asked.target].node_type == nodes["here"].node_type, (
                "another type is another deployment"
            )
            assert 0 <= asked.score <= 1
            assert asked.reason

    def test_a_node_that_hosts_nothing_has_nothing_to_move(self) -> None:
        nodes = self.nodes(0.95)
        nodes["here"] = nodes["here"]._replace(hosted=())
        assert all(self._asked(nodes, seed) is None for seed in _SEEDS)

    def test_what_was_not_measured_moves_nothing(self) -> None:
        nodes = self.nodes(0.95)
        nodes["here"] = nodes["here"]._replace(utilisation=None)
        assert all(self._asked(nodes, seed) is None for seed in _SEEDS)

    def test_the_same_chance_makes_the_same_decision_and_nothing_is_changed(self) -> None:
        nodes = self.nodes(0.95)
        before = deepcopy(nodes)
        policy = self.make_policy()
        for seed in _SEEDS:
            first = policy.propose(nodes["here"], nodes, np.random.default_rng(seed))
            assert policy.propose(nodes["here"], nodes, np.random.default_rng(seed)) == first
        assert nodes == before

    def nodes(self, load: float) -> dict[str, NodeObservation]:
        """A node at this load, an idle one, a full one and an idle one of another type."""
        delays = {"idle": 0.001, "full": 0.002, "other": 0.001, "here": 0.001}
        return {
            name: NodeObservation(
                node=name,
                node_type=int(name == "other"),
                at_s=60.0,
                utilisation=load if name == "here" else 0.1,
                hosted=("a", "b") if name in ("here", "full") else (),
                free_slots=0 if name == "full" else 2,
                delay_s={other: delay for other, delay in delays.items() if other != name},
            )
            for name in ("here", "idle", "full", "other")
        }

    def _asked(self, nodes: Mapping[str, NodeObservation], seed: int) -> Migrate | None:
        return self.make_policy().propose(nodes["here"], nodes, np.random.default_rng(seed))
