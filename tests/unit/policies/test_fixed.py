"""Static provisioning."""

import numpy as np
import pytest
from policy_cases import node_types, observation, space_of

from penstock.domain.decision import Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.perf.queueing import m_m_1
from penstock.policy.operator.fixed import Fixed

RNG = np.random.default_rng(1)


def fixed(*, price_of_fast: float = 2.5, replicas: int | None = None) -> Fixed:
    """10 ms a tuple, or 5 on a node of the second type; at most 50 ms at a peak of 150 tuples/s.

    By M/M/1, S / (1 - rho): two slow replicas (rho = .75) take 40 ms and cost 2, one fast replica
    takes 20 ms; one slow replica is overloaded.
    """
    types = node_types((1.0, 2.0), (1.0, price_of_fast))
    return Fixed(
        node_types=types,
        deployments=space_of(types, 4),
        queue=m_m_1(0.010),
        peak_rate=150.0,
        max_response_time_s=0.050,
        replicas=replicas,
    )


@pytest.mark.parametrize(("replicas", "target"), [(None, (2, 0)), (3, (3, 0))])
def test_it_goes_where_it_should_be_at_once_and_stays_whatever_the_load(
    replicas: int | None, target: tuple[int, int]
) -> None:
    policy = fixed(replicas=replicas)
    memory = policy.initial()
    decision, memory = policy.decide(memory, observation(1, 0), RNG)
    assert isinstance(decision, Scale)
    assert decision.target == Replicas(target)
    for utilisation in (0.0, 0.5, 7.0):
        decision, memory = policy.decide(memory, observation(*target, utilisation=utilisation), RNG)
        assert isinstance(decision, Hold)


def test_it_starts_on_the_type_it_uses() -> None:
    assert (fixed(price_of_fast=1.5).starting_type(), fixed(price_of_fast=2.5).starting_type()) == (1, 0)


@pytest.mark.parametrize("replicas", [0, 5])
def test_as_many_replicas_as_may_never_run_are_refused(replicas: int) -> None:
    with pytest.raises(InputError, match=f"policy 'fixed': replicas={replicas}; 1 to 4 may run"):
        fixed(replicas=replicas)
