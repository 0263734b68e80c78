"""The tuned Application Manager: constraints, Algorithm 4, what it returns."""

from dataclasses import replace
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.apps.registry import application_entry
from penstock.domain.application import Application, Operator, Sink, Source, Stream, pipeline
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective, Weights
from penstock.policy.application.bayesian import BayesianSearch, Measured, Search, random_search
from penstock.policy.application.tuned import (
    Behaviour,
    Candidate,
    Configuration,
    LatencyShares,
    TunedManager,
    WeightShares,
    confirmed,
    judged,
    naive,
)

GRAPHS = ("pipeline", "diamond", "multi-sink")
OBJECTIVE = Objective(response_time_s=0.040)
SEARCHES: dict[str, Search] = {"random": random_search, "bayesian": BayesianSearch(initial=3, candidates=100)}


@pytest.mark.parametrize("application", GRAPHS)
@given(seed=st.integers(0, 2**32), epsilon=st.floats(0.01, 0.2))
@settings(max_examples=15, deadline=None)
def test_sampled_bounds_sum_to_about_the_limit_along_every_path(
    application: str, seed: int, epsilon: float
) -> None:
    graph = application_entry(application).graph(10)
    domain = LatencyShares(graph, OBJECTIVE, epsilon=epsilon)
    points = domain.sample(50, np.random.default_rng(seed))
    assert domain.contains(points).all()
    assert ((points > 0) & (points < 1)).all()
    for point in points:
        bounds = domain.bounds_s(point)
        for path in graph.paths:
            total = sum(bounds[name] for name in path) / 0.040
            assert 1 - epsilon - 1e-9 <= total <= 1 + epsilon + 1e-9


def test_samples_of_a_pipeline_are_spread_evenly_over_the_shares() -> None:
    # Shares that are uniform on the simplex have mean 1/3 and variance 1/18 (Dirichlet 1, 1, 1);
    # a band of 1 % around it changes little.
    domain = LatencyShares(application_entry("pipeline").graph(10), OBJECTIVE, epsilon=0.01)
    points = domain.sample(6000, np.random.default_rng(3))
    assert points.mean(axis=0) == pytest.approx([1 / 3] * 3, abs=0.015)
    assert points.var(axis=0) == pytest.approx([1 / 18] * 3, rel=0.08)


@pytest.mark.parametrize("application", GRAPHS)
def test_the_naive_start_lies_among_the_allowed_shares(application: str) -> None:
    graph = application_entry(application).graph(10)
    start = naive(graph, OBJECTIVE)
    domain = LatencyShares(graph, OBJECTIVE)
    point = domain.point(start.bounds_s)
    assert domain.contains(point[None, :]).all()
    assert domain.bounds_s(point) == pytest.approx(dict(start.bounds_s))
    assert WeightShares().contains(WeightShares().point(start.weights)[None, :]).all()


def test_points_outside_are_told_from_points_inside() -> None:
    domain = LatencyShares(application_entry("pipeline").graph(10), OBJECTIVE)
    asked = np.array([[0.3, 0.3, 0.4], [0.3, 0.3, 0.3], [0.4, 0.4, 0.3], [-0.1, 0.6, 0.5]])
    assert domain.contains(asked).tolist() == [True, False, False, False]
    weights = np.array([[0.3, 0.3, 0.4], [0.3, 0.3, 0.3], [0.02, 0.5, 0.48]])
    assert WeightShares().contains(weights).tolist() == [True, False, False]


def test_shares_no_point_can_meet_are_an_error_that_names_the_application() -> None:
    # a alone must take all of one path, and a and b together no more than that of the other
    fork = Application(
        name="fork",
        sources=(Source(name="in"),),
        operators=tuple(Operator(name=name, service_time_s=0.001) for name in ("a", "b")),
        sinks=(Sink(name="x"), Sink(name="y")),
        streams=tuple(
            Stream(origin=origin, target=target)
            for origin, target in (("in", "a"), ("a", "x"), ("a", "b"), ("b", "y"))
        ),
    )
    LatencyShares(fork, OBJECTIVE)  # within 5 % it is possible
    with pytest.raises(InputError, match="fork"):
        LatencyShares(fork, OBJECTIVE, epsilon=0.0)


@given(st.integers(0, 2**32))
@settings(max_examples=20)
def test_sampled_weights_sum_to_one_between_their_limits(seed: int) -> None:
    points = WeightShares().sample(50, np.random.default_rng(seed))
    assert ((points > 0.05) & (points < 0.95)).all()
    assert points.sum(axis=1) == pytest.approx(np.ones(50))
    for point in points:
        WeightShares().weights(point)  # raises if they do not sum to 1


def test_requirements_are_met_up_to_and_including_the_limit() -> None:
    at_limit = Behaviour(resource_cost=7.0, violations=0.05, reconfigurations=0.10)
    assert judged(at_limit, OBJECTIVE).feasible
    assert not judged(replace(at_limit, violations=0.0501), OBJECTIVE).feasible
    assert not judged(replace(at_limit, reconfigurations=0.1001), OBJECTIVE).feasible
    # twice as many violations as allowed, but for the tenth of a percent added to both
    assert judged(replace(at_limit, violations=0.101), OBJECTIVE).excess[0] == pytest.approx(log(2))


def a_world(configuration: Configuration) -> Measured:
    """Cheapest with the whole limit on the second operator and little weight on performance."""
    shares = configuration.bounds_s
    uneven = abs(shares["second"] / 0.040 - 0.7)
    late = 0.02 / configuration.weights.performance
    changes = 0.03 / configuration.weights.reconfiguration
    return judged(
        Behaviour(
            resource_cost=5 + 10 * uneven + 4 * configuration.weights.performance,
            violations=min(late, 1.0),
            reconfigurations=min(changes, 1.0),
        ),
        OBJECTIVE,
    )


@pytest.mark.parametrize("search", list(SEARCHES.values()), ids=list(SEARCHES))
@pytest.mark.parametrize("seed", range(3))
def test_algorithm_4_is_never_worse_than_its_start(search: Search, seed: int) -> None:
    graph = application_entry("pipeline").graph(10)
    start = naive(graph, OBJECTIVE)
    manager = TunedManager(application=graph, objective=OBJECTIVE, search=search, budget=6, max_rounds=1)
    tuned = manager.tune(a_world, start, np.random.default_rng(seed))
    assert tuned.candidates[0].configuration == start
    assert tuned.best.measured.rank <= tuned.candidates[0].measured.rank
    assert tuned.best.measured.feasible == any(c.measured.feasible for c in tuned.candidates)


def test_algorithm_4_improves_bounds_and_weights_in_turns() -> None:
    graph = application_entry("pipeline").graph(10)
    start = naive(graph, OBJECTIVE)
    assert not a_world(start).feasible  # 6 % violations
    manager = TunedManager(
        application=graph, objective=OBJECTIVE, search=SEARCHES["bayesian"], budget=12, max_rounds=2
    )
    best = manager.tune(a_world, start, np.random.default_rng(1)).best
    assert best.measured.feasible
    # least cost: the second operator at .7 of the limit, performance at .4, where 5 % are violated
    assert best.configuration.bounds_s["second"] / 0.040 == pytest.approx(0.7, abs=0.1)
    assert best.configuration.weights.performance == pytest.approx(0.4, abs=0.1)


def test_the_number_of_evaluations_is_one_and_the_budget_for_every_phase() -> None:
    graph = application_entry("pipeline").graph(10)
    asked: list[Configuration] = []

    def counted(configuration: Configuration) -> Measured:
        asked.append(configuration)
        return a_world(configuration)

    manager = TunedManager(
        application=graph,
        objective=OBJECTIVE,
        search=random_search,
        budget=7,
        max_rounds=2,
        stop_early=False,
    )
    tuned = manager.tune(counted, naive(graph, OBJECTIVE), np.random.default_rng(1))
    assert len(asked) == len(tuned.candidates) == 1 + 2 * 2 * 7
    assert [len(phase) for phase in tuned.phases] == [7, 7, 7, 7]


def test_a_phase_changes_bounds_or_weights_but_not_both() -> None:
    graph = application_entry("diamond").graph(10)
    start = Candidate(configuration=naive(graph, OBJECTIVE), measured=Measured(cost=1.0))
    manager = TunedManager(application=graph, objective=OBJECTIVE, search=random_search, budget=4)

    def free(configuration: Configuration) -> Measured:
        return Measured(cost=2.0)

    for candidate in manager.tune_bounds(free, start, np.random.default_rng(1)):
        assert candidate.configuration.weights == start.configuration.weights
        assert candidate.configuration.bounds_s != start.configuration.bounds_s
    for candidate in manager.tune_weights(free, start, np.random.default_rng(1)):
        assert candidate.configuration.weights != start.configuration.weights
        assert candidate.configuration.bounds_s == start.configuration.bounds_s


def test_it_stops_after_a_round_without_improvement_and_keeps_the_start() -> None:
    graph = application_entry("pipeline").graph(10)
    start = naive(graph, OBJECTIVE)

    def start_is_best(configuration: Configuration) -> Measured:
        return Measured(cost=1.0 if configuration == start else 2.0, excess=(-1.0, -1.0))

    manager = TunedManager(
        application=graph, objective=OBJECTIVE, search=random_search, budget=3, max_rounds=9
    )
    tuned = manager.tune(start_is_best, start, np.random.default_rng(1))
    assert len(tuned.phases) == 2
    assert tuned.best.configuration == start


@pytest.mark.parametrize("search", list(SEARCHES.values()), ids=list(SEARCHES))
def test_tuning_twice_with_the_same_seed_gives_the_same_candidates(search: Search) -> None:
    graph = application_entry("multi-sink").graph(10)

    def some_world(configuration: Configuration) -> Measured:
        spread = float(np.var(list(configuration.bounds_s.values())))
        return Measured(cost=1e4 * spread + configuration.weights.resources, excess=(-1.0, -1.0))

    manager = TunedManager(application=graph, objective=OBJECTIVE, search=search, budget=5, max_rounds=1)
    first, second = (
        manager.tune(some_world, naive(graph, OBJECTIVE), np.random.default_rng(5)) for _ in range(2)
    )
    assert [c.configuration for c in first.candidates] == [c.configuration for c in second.candidates]


def test_confirmation_prefers_what_is_best_in_the_long_run_and_always_asks_the_start() -> None:
    app = pipeline("p", Operator(name="a", service_time_s=0.001))
    third = naive(app, OBJECTIVE).weights

    def at(bound_s: float, cost: float) -> Candidate:
        return Candidate(
            configuration=Configuration(bounds_s={"a": bound_s}, weights=third), measured=Measured(cost=cost)
        )

    start, phases = at(0.01, 9.0), [[at(0.02, 12.0), at(0.03, 7.0)], [at(0.04, 6.0), at(0.05, 8.0)]]
    asked: list[float] = []

    def in_the_long_run(configuration: Configuration) -> Measured:
        asked.append(configuration.bounds_s["a"])
        return Measured(cost={0.01: 8.0, 0.02: 9.0, 0.03: 5.0, 0.04: 11.0}[configuration.bounds_s["a"]])

    assert confirmed(start, phases, in_the_long_run).best.configuration.bounds_s == {"a": 0.03}
    assert asked == [0.01, 0.02, 0.03, 0.04]  # 0.05 never was the best of its phase
    assert confirmed(start, [[at(0.04, 1.0)]], in_the_long_run).best.configuration == start.configuration


def test_a_start_that_will_do_is_not_left_for_a_small_promise_but_one_that_will_not_is() -> None:
    app = pipeline("p", Operator(name="a", service_time_s=0.001))
    start = Candidate(configuration=naive(app, OBJECTIVE), measured=Measured(cost=10.0))
    other = Candidate(
        configuration=replace(start.configuration, bounds_s={"a": 0.03}), measured=Measured(cost=9.0)
    )

    def chosen(start_excess: float, other_cost: float) -> Candidate:
        def longer(configuration: Configuration) -> Measured:
            if configuration == start.configuration:
                return Measured(cost=10.0, excess=(start_excess,))
            return Measured(cost=other_cost, excess=(-1.0,))

        return confirmed(start, [[other]], longer).best

    assert chosen(-1.0, 9.6).configuration == start.configuration
    assert chosen(-1.0, 9.4).configuration == other.configuration
    assert chosen(+0.1, 12.0).configuration == other.configuration


def test_naive_weighs_everything_alike() -> None:
    third = 1 / 3
    weights = naive(application_entry("diamond").graph(10), OBJECTIVE).weights
    assert weights == Weights(performance=third, resources=third, reconfiguration=third)
