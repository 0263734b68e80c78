"""Static provisioning."""

import numpy as np
from policy_cases import node_types, observation, space_of

from penstock.domain.decision import Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.policy.operator.fixed import Fixed

TYPES = node_types((1.0, 2.0))
SPACE = space_of(TYPES, 4)
RNG = np.random.default_rng(1)


def fixed(*counts: int) -> Fixed:
    return Fixed(node_types=TYPES, deployments=SPACE, replicas=Replicas(counts))


def test_it_goes_where_it_should_be_at_once_and_stays_whatever_the_load() -> None:
    policy = fixed(1, 3)
    memory = policy.initial()
    decision, memory = policy.decide(memory, observation(1, 0), RNG)
    assert isinstance(decision, Scale)
    assert decision.target == Replicas((1, 3))
    for utilisation in (0.0, 0.5, 7.0):
        decision, memory = policy.decide(memory, observation(1, 3, utilisation=utilisation), RNG)
        assert isinstance(decision, Hold)


def test_it_starts_on_the_type_it_has_most_of() -> None:
    assert (fixed(1, 3).starting_type(), fixed(2, 1).starting_type()) == (1, 0)
