"""Applications in the simulator, every operator under its own manager."""

from dataclasses import replace

import numpy as np
import pytest

from penstock.apps.registry import application_entry, applications
from penstock.compiled import Floats
from penstock.control.spec import Manager
from penstock.domain.application import Operator, pipeline
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective, Weights
from penstock.perf.deployments import deployments, handle_of
from penstock.perf.latency import equal_shares
from penstock.perf.queueing import m_g_1
from penstock.policy.operator.fixed import Fixed
from penstock.runtimes.sim.episode import World
from penstock.runtimes.sim.graph import ManagedOperator, run_application
from penstock.simulation.graph import simulated_graph
from penstock.simulation.play import run
from penstock.simulation.spec import OperatorGraph

ONE_TYPE = (NodeType(name="only", speedup=1.0, price=1.0),)


def managed(operator: Operator, replicas: int) -> ManagedOperator:
    """An operator that always runs as many replicas."""
    space, queue = deployments(ONE_TYPE, 8), m_g_1(operator.service_time_s, operator.service_scv)
    policy = Fixed(
        node_types=ONE_TYPE,
        deployments=space,
        queue=queue,
        peak_rate=0.0,
        max_response_time_s=0.05,
        replicas=replicas,
    )
    return ManagedOperator(
        world=World(space, queue, 0.05, 0.6, 0.2, 0.2, 8.0, True),
        policy=policy,
        memory=policy.initial(),
        first_deployment=handle_of(space, Replicas((replicas,))),
        rng=np.random.default_rng(1),
    )


def response(operator: Operator, rate: float, replicas: int) -> float:
    each, mean = rate / replicas, operator.service_time_s
    return mean + each * (1 + operator.service_scv) * mean**2 / (2 * (1 - each * mean))


def test_response_times_add_up_along_the_pipeline_and_selectivity_thins_the_stream() -> None:
    first = Operator(name="first", service_time_s=0.004, service_scv=0.5, selectivity=0.25)
    second = Operator(name="second", service_time_s=0.01, service_scv=1.0)
    ran = run_application(
        pipeline("two", first, second),
        Objective(response_time_s=0.05),
        {"first": managed(first, 2), "second": managed(second, 1)},
        np.array([200.0, 300.0]),
    )
    expected = [response(first, rate, 2) + response(second, rate / 4, 1) for rate in (200.0, 300.0)]
    assert ran.response_time_s.tolist() == pytest.approx(expected)
    assert ran.arrival_rates["second"].tolist() == [50.0, 75.0]
    assert ran.resources.tolist() == [3.0, 3.0]


def test_a_saturated_operator_passes_on_no_more_than_it_can_process() -> None:
    slow = Operator(name="slow", service_time_s=0.01)
    fast = Operator(name="fast", service_time_s=0.001)
    ran = run_application(
        pipeline("two", slow, fast),
        Objective(response_time_s=0.05),
        {"slow": managed(slow, 2), "fast": managed(fast, 1)},
        np.array([1000.0]),
    )
    assert ran.arrival_rates["fast"].tolist() == [200.0]
    assert ran.violated.tolist() == [1]


def test_as_published_latency_ignores_upstream_saturation() -> None:
    slow = Operator(name="slow", service_time_s=0.01)
    fast = Operator(name="fast", service_time_s=0.001)
    operators = {"slow": managed(slow, 4), "fast": managed(fast, 1)}
    ran = run_application(
        pipeline("two", slow, fast),
        Objective(response_time_s=0.05),
        operators,
        np.array([350.0]),
        latency_at_source_rate=True,
    )
    assert ran.response_time_s[0] == pytest.approx(response(slow, 350.0, 4) + response(fast, 350.0, 1))


def test_a_diamond_is_as_slow_as_its_slowest_branch() -> None:
    graph = application_entry("diamond").graph(8)
    operators = {operator.name: managed(operator, 4) for operator in graph.operators}
    ran = run_application(graph, Objective(response_time_s=0.05), operators, np.array([120.0]))
    branch = max(response(graph.operator(name), 120.0, 4) for name in ("slow", "middle", "fast"))
    # Every branch receives the whole stream, so the join receives three.
    ends = response(graph.operator("split"), 120.0, 4) + response(graph.operator("join"), 360.0, 4)
    assert ran.response_time_s[0] == pytest.approx(branch + ends)


@pytest.mark.parametrize("application", [name for name, one in applications().items() if not one.delays_s])
def test_every_graph_runs_under_every_kind_of_manager(application: str, walk: Floats) -> None:
    for policy in ("threshold-c", "ql-pds-plus"):
        outcome = run(
            OperatorGraph(operator_policy=Manager(policy), application=application), walk, with_history=True
        )
        assert outcome.slots == walk.size
        assert outcome.history is not None
        assert outcome.history.cost.mean() == pytest.approx(outcome.avg_cost)


def test_bounds_and_weights_left_out_are_equal_shares_and_the_specifications(walk: Floats) -> None:
    spec = OperatorGraph(operator_policy=Manager("ql-pds-plus"), application="multi-sink")
    graph = application_entry("multi-sink").graph(spec.max_replicas)
    shares = equal_shares(graph, Objective(response_time_s=spec.slo_s))
    usual = run(spec, walk)
    given = simulated_graph(spec, graph, walk, walk, bounds_s=shares, manager_weights=spec.weights)
    assert replace(given, seconds=usual.seconds) == usual


def test_managers_strive_for_their_own_bounds_and_weights(walk: Floats) -> None:
    spec = OperatorGraph(operator_policy=Manager("vi"), application="pipeline", infrastructure="A:1")
    graph = application_entry("pipeline").graph(spec.max_replicas)
    lazy = Weights(performance=0.05, resources=0.05, reconfiguration=0.90)
    usual = run(spec, walk)
    still = simulated_graph(spec, graph, walk, walk, manager_weights=lazy)
    assert still.reconfigurations_pct < usual.reconfigurations_pct / 4
    # accounted with the specification's weights, not with the managers'
    price = still.resource_cost / (3 * spec.max_replicas)
    expected = 0.6 * still.violations_pct + 0.2 * still.reconfigurations_pct
    assert still.avg_cost == pytest.approx(expected / 100 + 0.2 * price)
    tight = simulated_graph(
        spec, graph, walk, walk, bounds_s={"first": 0.003, "second": 0.006, "third": 0.005}
    )
    assert tight.resource_cost > usual.resource_cost


def test_a_missing_bound_is_an_error_that_names_the_operator(walk: Floats) -> None:
    spec = OperatorGraph(operator_policy=Manager("ql-pds-plus"), application="pipeline")
    with pytest.raises(InputError, match="'third'"):
        simulated_graph(
            spec,
            application_entry("pipeline").graph(10),
            walk,
            walk,
            bounds_s={"first": 0.01, "second": 0.01},
        )


def test_as_published_every_operator_of_an_application_is_timed_at_the_sources_rate() -> None:
    """The diamond's join receives three copies of the stream; the published simulator ignores that."""
    rates = np.full(3, 120.0)
    spec = OperatorGraph(
        operator_policy=Manager("fixed", {"replicas": 4}),
        application="diamond",
        infrastructure="A:1",
        slo_s=1.0,
    )
    ours = run(spec, rates, with_history=True).history
    published = run(replace(spec, as_published=True), rates, with_history=True).history
    assert ours is not None
    assert published is not None
    join = application_entry("diamond").graph(10).operator("join")
    expected = response(join, 360.0, 4) - response(join, 120.0, 4)
    assert ours.response_time_s[-1] - published.response_time_s[-1] == pytest.approx(expected)


def test_the_replicas_of_all_operators_are_counted_once() -> None:
    """Five operators: one replica each in the first slot, four each from then on."""
    spec = OperatorGraph(
        operator_policy=Manager("fixed", {"replicas": 4}),
        application="diamond",
        infrastructure="A:1",
        slo_s=1.0,
    )
    outcome = run(spec, np.full(4, 50.0), with_history=True)
    assert outcome.history is not None
    assert outcome.history.replicas.tolist() == [5, 20, 20, 20]
    assert outcome.replicas_by_type == (20.0,)  # after each decision
    assert outcome.mean_replicas == 20.0
    assert outcome.history.resources.tolist() == [20, 20, 20, 20]  # paid for as decided


def test_an_objective_the_fastest_node_cannot_meet_is_refused(walk: Floats) -> None:
    spec = OperatorGraph(
        operator_policy=Manager("threshold-c"), application="pipeline", slo_s=0.0058, infrastructure="A:3"
    )
    with pytest.raises(InputError, match=r"path first-second-third takes 5\.897 ms .*speedup 1\.3"):
        run(spec, walk)
