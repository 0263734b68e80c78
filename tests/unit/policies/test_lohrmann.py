"""Lohrmann et al.: Kingman's waiting time and the fewest replicas that keep it in the budget."""

from math import inf

import numpy as np
import pytest
from policy_cases import at, node_types, seen, space_of

from penstock.policy.kernel import step
from penstock.policy.operator.lohrmann import Lohrmann, replicas_for_wait
from penstock.policy.operator.node_choice import NodeChoice

MOST = 10
RNG = np.random.default_rng(1)


def kingman(rate: float, service_time_s: float, variability: float, replicas: int) -> float:
    """Waiting time of one of p queues that share the rate: rho / (1 - rho) (ca2 + cs2) / 2 S."""
    busy = rate / replicas * service_time_s
    return busy / (1 - busy) * variability * service_time_s if busy < 1 else inf


def lohrmann(choice: NodeChoice = NodeChoice.FIRST, *, as_published: bool = False) -> Lohrmann:
    types = node_types((1.0, 0.5, 2.0))
    return Lohrmann(
        node_types=types,
        deployments=space_of(types, MOST),
        node_choice=choice,
        service_time_s=0.01,
        service_scv=0.5,
        max_response_time_s=0.05,
        as_published=as_published,
    )


@pytest.mark.parametrize("rate", [0.0, 1.0, 60.0, 85.0, 90.0, 201.0, 395.0, 700.0])
@pytest.mark.parametrize("wait_s", [0.001, 0.01, 0.04])
def test_the_closed_form_is_the_fewest_by_trying_all(rate: float, wait_s: float) -> None:
    fits = [p for p in range(1, 101) if kingman(rate, 0.01, 0.75, p) <= wait_s]
    assert replicas_for_wait(rate, 0.01, 0.75, wait_s, 100) == fits[0]


def test_without_variability_the_queue_must_still_be_stable() -> None:
    assert replicas_for_wait(200.0, 0.01, 0.0, 0.04, MOST) == 3  # two would be busy all the time


def test_when_service_alone_uses_up_the_limit_all_replicas_are_asked_for() -> None:
    assert replicas_for_wait(1.0, 0.01, 0.75, 0.0, MOST) == MOST
    assert replicas_for_wait(1e6, 0.01, 0.75, 0.04, MOST) == MOST


@pytest.mark.parametrize(
    ("choice", "node_type", "speed"),
    [(NodeChoice.FIRST, 0, 1.0), (NodeChoice.CHEAPEST, 1, 0.5), (NodeChoice.FASTEST, 2, 2.0)],
)
def test_the_budget_is_what_the_limit_leaves_after_service_on_its_own_type(
    choice: NodeChoice, node_type: int, speed: float
) -> None:
    policy = lohrmann(choice)
    service = 0.01 / speed
    fits = [p for p in range(1, MOST + 1) if service + kingman(180.0, service, 0.75, p) <= 0.05]
    target, _ = step(policy.initial(), seen(at(policy.deployments, 0, 1, 0), 180.0), RNG)
    counts = [0, 1, 0]
    counts[node_type] += fits[0] - 1
    assert target == at(policy.deployments, *counts)


def test_as_published_only_waiting_counts_and_every_node_is_a_reference_node() -> None:
    policy = lohrmann(NodeChoice.CHEAPEST, as_published=True)
    space = policy.deployments
    # At 87 t/s one reference node waits 0.87 / 0.13 * 0.75 * 10 ms = 50.19 ms, at 86 t/s 46.07 ms.
    one, _ = step(policy.initial(), seen(at(space, 0, 1, 0), 86.0), RNG)
    two, _ = step(policy.initial(), seen(at(space, 0, 1, 0), 87.0), RNG)
    assert (one, two) == (at(space, 0, 1, 0), at(space, 0, 2, 0))


def test_by_the_method_itself_those_10_ms_of_service_count_too() -> None:
    policy = lohrmann()
    space = policy.deployments
    # Budget 40 ms: 84 t/s wait 39.4 ms, 85 t/s wait 42.5 ms.
    one, _ = step(policy.initial(), seen(at(space, 1, 0, 0), 84.0), RNG)
    two, _ = step(policy.initial(), seen(at(space, 1, 0, 0), 85.0), RNG)
    assert (one, two) == (at(space, 1, 0, 0), at(space, 2, 0, 0))


@pytest.mark.parametrize(("utilisation", "wanted"), [(1.0, 4), (1.6, 7), (9.0, MOST)])
def test_as_published_a_measured_bottleneck_at_least_doubles(utilisation: float, wanted: int) -> None:
    policy = lohrmann(as_published=True)
    target, _ = step(
        policy.initial(), seen(at(policy.deployments, 2, 0, 0), 150.0, utilisation=utilisation), RNG
    )
    assert target == at(policy.deployments, wanted, 0, 0)  # ceil(min(Kmax, max(2p, 2pu)))
