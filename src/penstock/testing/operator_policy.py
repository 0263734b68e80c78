"""The contract every operator policy keeps. Subclass it, return your policy, run pytest.

    class TestMyPolicy(OperatorPolicyContract):
        def make_policy(self) -> OperatorPolicy[Any]:
            return MyPolicy(...)

Give `node_types` and `max_replicas` where they differ from the defaults here.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

from penstock.domain.decision import Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.observation import OperatorObservation
from penstock.policy.api import DecidesInPlace, OperatorPolicy

_METRICS = ("arrival_rate", "response_time_s", "utilisation")


def same(a: Any, b: Any) -> bool:
    """Whether two memories hold the same values, arrays included."""
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, Mapping):
        return isinstance(b, Mapping) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def snapshot(memory: Any) -> Any:
    """A memory as it is now, whatever happens to its arrays later."""
    if isinstance(memory, np.ndarray):
        return memory.copy()
    if isinstance(memory, Mapping):
        return {key: snapshot(value) for key, value in memory.items()}
    if isinstance(memory, tuple):
        return tuple(map(snapshot, memory))
    return memory


class OperatorPolicyContract:
    """What the control loop relies on, whatever the algorithm."""

    node_types: int = 3
    max_replicas: int = 5

    def make_policy(self) -> OperatorPolicy[Any]:
        raise NotImplementedError

    def seen(self, **changes: Any) -> OperatorObservation:
        """An ordinary interval; change what the test is about."""
        plain = OperatorObservation(
            operator="op",
            at_s=60.0,
            replicas=Replicas((1,) + (0,) * (self.node_types - 1)),
            arrival_rate=100.0,
            response_time_s=0.012,
            utilisation=0.55,
        )
        return plain._replace(**changes)

    def a_day(self) -> list[OperatorObservation]:
        """Loads from none to saturation, as a policy that is never obeyed would see them."""
        rng = np.random.default_rng(7)
        loads = np.concatenate([[0.0], rng.uniform(0, 2, 60), [0.0, 5.0, 0.0]])
        return [
            self.seen(
                at_s=60.0 * (slot + 1),
                arrival_rate=180 * load,
                utilisation=load,
                response_time_s=0.006 / (1 - load) if load < 1 else inf,
            )
            for slot, load in enumerate(loads)
        ]

    @pytest.mark.parametrize("metric", _METRICS)
    def test_a_blind_policy_holds_and_remembers_what_it_knew(self, metric: str) -> None:
        policy = self.make_policy()
        memory = policy.initial()
        decision, after = policy.decide(memory, self.seen(**{metric: None}), np.random.default_rng(1))
        assert isinstance(decision, Hold)
        assert "not measured" in decision.reason
        assert same(memory, after)

    def test_the_same_past_gives_the_same_decisions(self) -> None:
        def decisions() -> list[Any]:
            policy, rng = self.make_policy(), np.random.default_rng(3)
            memory, made = policy.initial(), []
            for seen in self.a_day():
                decision, memory = policy.decide(memory, seen, rng)
                made.append(decision)
            return made

        assert decisions() == decisions()

    def test_deciding_leaves_the_given_memory_as_it_was(self) -> None:
        policy, rng = self.make_policy(), np.random.default_rng(3)
        memory = policy.initial()
        for seen in self.a_day()[:20]:
            before = snapshot(memory)
            _, after = policy.decide(memory, seen, rng)
            assert same(memory, before), "decide changed the memory it was given"
            memory = after

    def test_in_place_it_decides_the_same_and_remembers_the_same(self) -> None:
        policy = self.make_policy()
        if not isinstance(policy, DecidesInPlace):
            return
        rng, own_rng, silent_rng = (np.random.default_rng(3) for _ in range(3))
        memory = policy.initial()
        own = policy.in_place(policy.initial(), explains=True)
        silent = policy.in_place(policy.initial(), explains=False)
        replicas = self.seen().replicas
        for seen in (seen._replace(replicas=replicas) for seen in self.a_day()):
            decision, memory = policy.decide(memory, seen, rng)
            decided, own = policy.decide(own, seen, own_rng)
            unexplained, silent = policy.decide(silent, seen, silent_rng)
            assert decided == decision
            assert replace(unexplained, reason=decision.reason) == decision
            if isinstance(decision, Scale):
                replicas = decision.target
        for given in (own, silent):
            assert same(memory, getattr(given, "memory", given)), "in place it remembers something else"

    def test_every_target_can_run_and_differs_from_what_runs(self) -> None:
        policy, rng = self.make_policy(), np.random.default_rng(5)
        memory = policy.initial()
        replicas = self.seen().replicas
        for seen in self.a_day():
            decision, memory = policy.decide(memory, seen._replace(replicas=replicas), rng)
            if isinstance(decision, Scale):
                assert len(decision.target.counts) == self.node_types
                assert 1 <= decision.target.total <= self.max_replicas
                assert decision.target != replicas, "scaling to what already runs is a Hold"
                replicas = decision.target

    def test_every_decision_says_why_and_every_request_has_a_score(self) -> None:
        policy, rng = self.make_policy(), np.random.default_rng(5)
        memory = policy.initial()
        for seen in self.a_day():
            decision, memory = policy.decide(memory, seen, rng)
            assert decision.reason
            if isinstance(decision, Scale):
                assert 0 <= decision.score <= 1

    def test_a_request_that_is_never_granted_does_no_harm(self) -> None:
        policy, rng = self.make_policy(), np.random.default_rng(5)
        memory = policy.initial()
        for seen in self.a_day() * 3:
            decision, memory = policy.decide(memory, seen, rng)
            if isinstance(decision, Scale):
                assert decision.target.total <= self.max_replicas
