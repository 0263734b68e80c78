"""DRS: M/M/c sojourn times against Erlang's C formula as a sum, and the fewest servers."""

from math import factorial, inf

import numpy as np
import pytest
from policy_cases import at, node_types, observation, seen, space_of

from penstock.domain.decision import Scale
from penstock.domain.deployment import Replicas
from penstock.policy.kernel import step
from penstock.policy.operator.drs import Drs, servers_needed, sojourn_time
from penstock.policy.operator.node_choice import NodeChoice

MOST = 10
RNG = np.random.default_rng(1)


def erlang_c_sojourn(rate: float, service_time_s: float, servers: int) -> float:
    """W = S + C(c, a) S / (c - a), with C as in any textbook: a sum of a^k / k!."""
    offered = rate * service_time_s
    if offered >= servers:
        return inf
    waiting_term = offered**servers / factorial(servers) * servers / (servers - offered)
    waits = waiting_term / (sum(offered**k / factorial(k) for k in range(servers)) + waiting_term)
    return service_time_s + waits * service_time_s / (servers - offered)


@pytest.mark.parametrize("servers", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("load", [0.01, 0.5, 0.9, 0.999])
def test_the_sojourn_time_is_erlangs(servers: int, load: float) -> None:
    rate = load * servers / 0.02
    assert sojourn_time(rate, 0.02, servers) == pytest.approx(erlang_c_sojourn(rate, 0.02, servers), rel=1e-9)


def test_one_server_is_m_m_1_and_a_saturated_one_never_ends() -> None:
    assert sojourn_time(150.0, 1 / 180, 1) == pytest.approx(1 / (180 - 150))
    assert sojourn_time(180.0, 1 / 180, 1) == inf
    assert sojourn_time(0.0, 1 / 180, 3) == pytest.approx(1 / 180)


def test_when_no_number_of_servers_will_do_all_are_asked_for() -> None:
    assert servers_needed(10.0, 0.06, 0.05, MOST) == MOST  # service alone takes longer
    assert servers_needed(1e6, 0.01, 0.05, MOST) == MOST


@pytest.mark.parametrize("as_published", [False, True])
def test_a_load_beyond_the_integers_asks_for_all_there_are(as_published: bool) -> None:
    policy = drs(NodeChoice.FIRST, as_published=as_published)
    decision, _ = policy.decide(policy.initial(), observation(1, 0, 0, rate=1e300), RNG)
    assert isinstance(decision, Scale)
    assert decision.target.total == MOST


def drs(choice: NodeChoice, *, as_published: bool = False) -> Drs:
    types = node_types((1.0, 0.5, 2.0))
    return Drs(
        node_types=types,
        deployments=space_of(types, MOST),
        node_choice=choice,
        service_time_s=1 / 100,
        max_response_time_s=0.05,
        as_published=as_published,
    )


@pytest.mark.parametrize(
    ("choice", "node_type", "speed"),
    [(NodeChoice.FIRST, 0, 1.0), (NodeChoice.CHEAPEST, 1, 0.5), (NodeChoice.FASTEST, 2, 2.0)],
)
def test_it_jumps_to_the_fewest_nodes_of_its_type_at_their_speed(
    choice: NodeChoice, node_type: int, speed: float
) -> None:
    policy = drs(choice)
    one = Replicas(tuple(int(index == node_type) for index in range(3)))
    decision, _ = policy.decide(policy.initial(), observation(*one.counts, rate=290.0), RNG)
    fewest = next(c for c in range(1, MOST + 1) if erlang_c_sojourn(290.0, 0.01 / speed, c) <= 0.05)
    assert isinstance(decision, Scale)
    assert decision.target == one.changed(node_type, fewest - 1)


def test_the_limit_asks_for_more_than_stability_does() -> None:
    # 98 t/s on one server of 100 t/s is stable, but takes 1 / (100 - 98) = 0.5 s.
    policy = drs(NodeChoice.FIRST)
    target, _ = step(policy.initial(), seen(at(policy.deployments, 1, 0, 0), 98.0), RNG)
    assert target == at(policy.deployments, 2, 0, 0)


@pytest.mark.parametrize(("rate", "wanted"), [(98.0, 1), (100.0, 2), (299.0, 3)])
def test_as_published_it_stops_at_stability_and_takes_every_node_for_a_reference_node(
    rate: float, wanted: int
) -> None:
    policy = drs(NodeChoice.CHEAPEST, as_published=True)
    target, _ = step(policy.initial(), seen(at(policy.deployments, 0, 9, 0), rate), RNG)
    assert target == at(policy.deployments, 0, wanted, 0)  # floor(rate * S) + 1, S at speedup 1


def test_fewer_replicas_are_reached_by_releasing_the_oldest() -> None:
    policy = drs(NodeChoice.FIRST)
    space = policy.deployments
    memory = policy.initial()
    here, _ = step(memory, seen(at(space, 0, 1, 0), 290.0), RNG)
    assert here == at(space, 3, 1, 0)
    here, _ = step(memory, seen(here, 150.0), RNG)
    assert here == at(space, 2, 0, 0)
