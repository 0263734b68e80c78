"""Where replicas go, which leave, and how far nodes are apart."""

from collections import Counter

import numpy as np
import pytest

from penstock.domain.errors import InputError
from penstock.domain.observation import NodeObservation
from penstock.domain.request import Migrate
from penstock.perf.vivaldi import Coordinate, distance, observed, unknown_place
from penstock.policy.node.migrate import SenderInitiated
from penstock.policy.node.place import busiest_host, choose_node
from penstock.runtimes.sim.round_trips import RoundTrips


def node(
    name: str,
    *,
    load: float | None = 0.5,
    free: int = 1,
    delays: dict[str, float] | None = None,
    hosted: tuple[str, ...] = ("op",),
    node_type: int = 0,
) -> NodeObservation:
    return NodeObservation(
        node=name,
        node_type=node_type,
        at_s=30.0,
        utilisation=load,
        hosted=hosted,
        free_slots=free,
        delay_s=delays or {},
    )


DELAYS = {"near": 0.001, "far": 0.050}


def cluster(**changes: NodeObservation) -> dict[str, NodeObservation]:
    return {"home": node("home", delays=DELAYS), "near": node("near"), "far": node("far"), **changes}


def test_the_closer_the_node_the_likelier_it_is_chosen() -> None:
    rng = np.random.default_rng(1)
    chosen = Counter(choose_node("home", cluster(), rng) for _ in range(3000))
    # Ranks 1, 2, 3 have probabilities 6/11, 3/11, 2/11.
    for name, probability in (("home", 6 / 11), ("near", 3 / 11), ("far", 2 / 11)):
        assert chosen[name] / 3000 == pytest.approx(probability, abs=0.03)


def test_full_nodes_and_nodes_to_avoid_are_never_chosen() -> None:
    rng = np.random.default_rng(1)
    nodes = cluster(home=node("home", free=0, delays=DELAYS))
    assert {choose_node("home", nodes, rng, avoid=("far",)) for _ in range(50)} == {"near"}
    assert choose_node("home", {"home": nodes["home"]}, rng) is None


def test_a_scale_in_relieves_the_busiest_node_and_an_unknown_load_is_not_a_high_one() -> None:
    nodes = {"a": node("a", load=0.4), "b": node("b", load=0.9), "c": node("c", load=None)}
    assert busiest_host(["a", "b", "c"], nodes) == "b"
    assert busiest_host(["a", "c"], nodes) == "a"


def test_an_overloaded_node_asks_one_replica_to_leave_with_the_papers_score() -> None:
    hot = node("home", load=0.9, delays=DELAYS)
    nodes = cluster(home=hot, near=node("near", load=0.95))
    request = SenderInitiated(target_utilisation=0.8).propose(hot, nodes, np.random.default_rng(1))
    assert request is not None
    assert (request.origin, request.target, request.operator) == ("home", "far", "op")
    assert request.score == pytest.approx((0.9 - 0.8) / (1 - 0.8))


@pytest.mark.parametrize("load", [None, 0.5, 0.8])
def test_a_node_that_is_not_overloaded_or_blind_asks_for_nothing(load: float | None) -> None:
    calm = node("home", load=load, delays=DELAYS)
    assert SenderInitiated().propose(calm, cluster(home=calm), np.random.default_rng(1)) is None


def asked(hot: NodeObservation, **others: NodeObservation) -> list[Migrate | None]:
    nodes = {"home": hot, **others}
    rng = np.random.default_rng(1)
    return [SenderInitiated(target_utilisation=0.8).propose(hot, nodes, rng) for _ in range(50)]


def test_a_replica_never_migrates_to_its_own_a_blind_or_an_unknown_node_or_one_of_another_type() -> None:
    hot = node("home", load=0.9, free=3, delays={"fit": 0.02, "blind": 0.001, "fast": 0.001})
    others = {
        "fit": node("fit"),
        "blind": node("blind", load=None),
        "fast": node("fast", node_type=1),
        "unknown": node("unknown"),  # nobody knows how far it is
    }
    assert {request.target for request in asked(hot, **others) if request} == {"fit"}
    assert asked(hot, **{name: one for name, one in others.items() if name != "fit"}) == [None] * 50


def test_any_replica_of_an_overloaded_node_may_leave_and_the_score_is_at_most_one() -> None:
    hot = node("home", load=1.5, delays={"fit": 0.02}, hosted=("a", "b"))
    requests = [request for request in asked(hot, fit=node("fit")) if request]
    assert {request.operator for request in requests} == {"a", "b"}
    assert {request.score for request in requests} == {1.0}


def test_a_node_of_unknown_distance_is_never_chosen() -> None:
    nodes = cluster(stranger=node("stranger"))
    rng = np.random.default_rng(1)
    assert "stranger" not in {choose_node("home", nodes, rng) for _ in range(100)}


def test_delays_estimated_from_round_trips_are_near_the_true_ones() -> None:
    places = np.random.default_rng(3).uniform(0, 0.02, (6, 2))
    names = [f"n{index}" for index in range(6)]
    true = {
        a: {b: float(np.linalg.norm(places[i] - places[j])) for j, b in enumerate(names) if a != b}
        for i, a in enumerate(names)
    }
    trips = RoundTrips(true, np.random.default_rng(1), jitter=0.05)
    for _ in range(300):
        trips.measure()
    errors = [abs(trips.from_node(a)[b] / true[a][b] - 1) for a in names for b in true[a]]
    assert np.median(errors) < 0.1
    # A link that gets slower is noticed.
    slower = {a: {b: delay * 3 for b, delay in row.items()} for a, row in true.items()}
    trips.relink(slower)
    for _ in range(300):
        trips.measure()
    assert np.median([trips.from_node(a)[b] / true[a][b] for a in names for b in true[a]]) == pytest.approx(
        3, rel=0.15
    )


def test_vivaldi_finds_the_delays_of_a_network_it_can_embed() -> None:
    """Nodes on a plane, round trips their distances: coordinates converge to them."""
    rng = np.random.default_rng(2)
    places = rng.uniform(0, 0.1, (8, 2))
    true = np.linalg.norm(places[:, None] - places[None, :], axis=2)
    nodes = [unknown_place() for _ in range(8)]
    for _ in range(400):
        for mine in range(8):
            other = int(rng.integers(7))
            other += other >= mine
            nodes[mine] = observed(nodes[mine], nodes[other], float(true[mine, other]), rng)
    errors = [abs(distance(nodes[a], nodes[b]) - true[a, b]) / true[a, b] for a in range(8) for b in range(a)]
    assert np.median(errors) < 0.05
    assert max(node.error for node in nodes) < 0.2


def test_a_node_sure_of_its_place_moves_less() -> None:
    rng = np.random.default_rng(1)
    other, origin = Coordinate((1.0, 0.0, 0.0), error=0.5), (0.0, 0.0, 0.0)
    unsure = observed(Coordinate(origin, error=1.0), other, 3.0, rng)
    sure = observed(Coordinate(origin, error=0.05), other, 3.0, rng)
    assert np.linalg.norm(sure.position) < np.linalg.norm(unsure.position)
    assert unsure.position[0] < 0  # pushed away: the measured trip is longer than estimated


@pytest.mark.parametrize("round_trip", [0.0, -1.0, float("nan"), float("inf")])
def test_a_round_trip_that_is_no_time_is_refused(round_trip: float) -> None:
    with pytest.raises(InputError, match="round trip"):
        observed(unknown_place(), unknown_place(), round_trip, np.random.default_rng(1))
