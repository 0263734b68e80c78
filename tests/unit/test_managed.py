"""Whole applications under Application Managers, by name."""

from contextlib import nullcontext
from functools import partial
from math import inf

import numpy as np
import pytest

from penstock.apps.registry import application_entry, applications
from penstock.compiled import Floats, is_ours
from penstock.control.spec import Manager, check_tunable
from penstock.domain.errors import InputError
from penstock.perf.joint import joint_queues
from penstock.policy.application.centralised import (
    CentralisedMdp,
    application_problem,
    joint_violation_costs,
)
from penstock.policy.application.tuned import Configuration
from penstock.policy.registry import Level, entries, entry
from penstock.policy.rl.backup import transitions
from penstock.policy.rl.problem import level_rates, levels_of
from penstock.runtimes.sim.joint import JointWorld, joint_trail, run_joint
from penstock.simulation.hosts import Hosts
from penstock.simulation.managed import _World, tuned_configuration
from penstock.simulation.one_operator import operator_of
from penstock.simulation.play import run
from penstock.simulation.spec import ManagedApplication, OneOperator, OperatorGraph
from penstock.testing.operator_policy import same, snapshot

DIAMOND = partial(
    ManagedApplication,
    operator_policy=Manager("fixed", {"replicas": 4}),
    application="diamond",
    infrastructure="A:1",
    slo_s=0.05,
)


@pytest.fixture
def walk(walk: Floats) -> Floats:
    """Its beginning: these runs are Python, a millisecond a slot."""
    return walk[:500]


def test_an_application_that_stands_still_costs_what_queueing_theory_says() -> None:
    """Four replicas of each from the second slot on, 120 tuples/s: M/G/1 along the slowest branch."""
    outcome = run(DIAMOND(application_policy=Manager("grant-all")), np.full(6, 120.0), with_history=True)
    happened = outcome.history
    assert happened is not None
    graph = application_entry("diamond").graph(10)

    def response(name: str, rate: float) -> float:
        operator = graph.operator(name)
        each, mean = rate / 4, operator.service_time_s
        return mean + each * (1 + operator.service_scv) * mean**2 / (2 * (1 - each * mean))

    branch = max(response(name, 120.0) for name in ("slow", "middle", "fast"))
    expected = response("split", 120.0) + branch + response("join", 360.0)
    assert happened.response_time_s[2:].tolist() == pytest.approx([expected] * 4)
    assert happened.replicas.tolist() == [5, 20, 20, 20, 20, 20]
    assert outcome.replicas_by_type == (105 / 6,)
    assert outcome.resource_cost == pytest.approx(105 / 6)
    assert outcome.reconfigurations_pct == pytest.approx(100 / 6)
    assert outcome.downtime_pct == pytest.approx(100 * 10 / 360)  # ten seconds of six minutes
    assert outcome.violations_pct == pytest.approx(100 / 6)  # the slot that begins with the pause
    assert outcome.avg_cost == pytest.approx(0.6 / 6 + 0.2 / 6 + 0.2 * 105 / 6 / 50)


def test_without_a_pause_a_change_is_not_late() -> None:
    outcome = run(DIAMOND(application_policy=Manager("grant-all"), pause_s=0.0), np.full(6, 120.0))
    assert (outcome.downtime_pct, outcome.violations_pct) == (0.0, 0.0)


def test_the_loop_follows_the_same_plan_as_the_compiled_simulation(walk: Floats) -> None:
    spec = ManagedApplication(
        operator_policy=Manager("fixed"),
        application="pipeline",
        application_policy=Manager("centralised"),
        infrastructure="A:1",
        max_replicas=4,
        levels=10,
    )
    ours = run(spec, walk, training=walk, with_history=True).history
    app = application_entry("pipeline").graph(4)
    problem = application_problem(app, spec.objective, levels=10, max_rate=spec.max_rate)
    queues = joint_queues(app)
    policy = CentralisedMdp(
        application=app,
        objective=spec.objective,
        problem=problem,
        transitions=transitions(levels_of(problem, walk), 10),
        violation_costs=joint_violation_costs(problem, queues, level_rates(problem)),
    )
    trail = joint_trail(walk.size)
    world = JointWorld(problem.deployments, queues, spec.slo_s)
    run_joint(world, policy.initial(), walk, 0, np.random.default_rng(1), trail)
    assert ours is not None
    assert trail.reconfigured.sum() > 2
    assert ours.replicas[1:].tolist() == trail.replicas[:-1].tolist()


@pytest.mark.parametrize("policy", [name for name in entries(Level.APPLICATION) if name != "tuned"])
@pytest.mark.parametrize("application", list(applications()))
def test_every_application_runs_under_every_manager_or_says_why_not(
    application: str, policy: str, walk: Floats
) -> None:
    spec = ManagedApplication(
        operator_policy=Manager("threshold-c"),
        application=application,
        application_policy=Manager(policy),
        infrastructure="A:1",
        max_replicas=2,
        slo_s=0.25,
        levels=5,
    )
    if application == "top-routes" and policy.startswith("centralised"):
        with pytest.raises(InputError, match="constant delays of application 'top-routes'"):
            run(spec, walk[:30])
        return
    outcome = run(spec, walk[:30], with_history=True)
    assert outcome.slots == 30
    assert outcome.history is not None
    late = outcome.history.response_time_s > spec.slo_s
    assert outcome.violations_pct == pytest.approx(100 * late.mean())
    assert outcome.history.replicas.min() >= 1
    weights = spec.weights
    most = sum(one.max_replicas for one in application_entry(application).graph(2).operators)
    assert outcome.avg_cost == pytest.approx(
        weights.performance * late.mean()
        + weights.resources * outcome.history.resources.mean() / most  # A:1 has nodes of price 1
        + weights.reconfiguration * outcome.reconfigurations_pct / 100
    )


@pytest.mark.parametrize("manager", ["drs", "lohrmann"])
def test_of_several_types_a_sizing_manager_uses_its_own_only(manager: str, walk: Floats) -> None:
    used = {}
    for choice in "cs0":
        spec = ManagedApplication(
            operator_policy=Manager("fixed"),
            application="diamond",
            application_policy=Manager(f"{manager}-{choice}"),
            infrastructure="A:3",  # speedups 1, .7 and 1.3
        )
        outcome = run(spec, walk[:60])
        used[choice] = [index for index, mean in enumerate(outcome.replicas_by_type) if mean > 0]
    assert used == {"c": [1], "s": [2], "0": [0]}


def test_the_bucket_refuses_what_granting_all_grants(walk: Floats) -> None:
    pipeline = partial(
        ManagedApplication,
        operator_policy=Manager("threshold-c", {"threshold": 0.3}),
        application="pipeline",
        infrastructure="A:1",
    )
    changed = {
        policy: run(pipeline(application_policy=Manager(policy)), walk).reconfigurations_pct
        for policy in ("grant-all", "token-bucket")
    }
    assert changed["token-bucket"] < changed["grant-all"]


def test_a_centralised_manager_wants_one_type_of_node() -> None:
    spec = ManagedApplication(
        operator_policy=Manager("fixed"),
        application="pipeline",
        application_policy=Manager("centralised"),
        infrastructure="A:3",
    )
    with pytest.raises(InputError, match="infrastructure 'A:3' has 3"):
        run(spec, np.full(5, 100.0))


BUILT_IN = [name for name, one in entries(Level.OPERATOR).items() if is_ours(one.policy)]


@pytest.mark.parametrize("policy", BUILT_IN)
def test_a_policy_can_be_tuned_if_the_objective_changes_how_it_is_built(policy: str) -> None:
    """`tuned` sets what operators strive for; a policy built the same for any objective ignores it."""
    memories, bounds = [], []
    for slo_s in (0.02, 0.06):
        spec = OneOperator(
            operator_policy=Manager(policy), infrastructure="A:1", slo_s=slo_s, max_replicas=4, levels=10
        )
        rates = np.linspace(10.0, 500.0, 50)
        built = entry(Level.OPERATOR, policy).build(operator_of(spec, rates, rates, 1), {})
        memories.append(snapshot(built.initial()))
        bounds.append(getattr(built, "max_response_time_s", None))
    unaffected = same(*memories) and bounds[0] == bounds[1]
    with nullcontext() if not unaffected else pytest.raises(InputError, match="no bounds or weights"):
        check_tunable(Manager(name=policy), Manager(name="tuned"))


def test_static_provisioning_with_as_many_replicas_as_given_has_nothing_to_tune() -> None:
    with pytest.raises(InputError, match="policy 'fixed': it has no bounds or weights"):
        DIAMOND(application_policy=Manager("tuned"))


def tuned_for(spec: ManagedApplication, rates: Floats, training: Floats) -> Configuration:
    application = application_entry(spec.application)
    world = _World(
        spec=spec, entry=application, application=application.graph(10), rates=rates, training=training
    )
    return tuned_configuration(world)


def test_the_tuned_manager_keeps_bounds_within_every_path(walk: Floats) -> None:
    spec = ManagedApplication(
        operator_policy=Manager("vi"),
        application="multi-sink",
        application_policy=Manager("tuned"),
        infrastructure="A:1",
        levels=10,
    )
    chosen = tuned_for(spec, walk, walk)
    for path in application_entry("multi-sink").graph(10).paths:
        assert sum(chosen.bounds_s[name] for name in path) <= 1.05 * spec.slo_s + 1e-12


def test_the_tuned_manager_shares_out_what_constant_delays_leave(walk: Floats) -> None:
    """top-routes: 40 of 250 ms pass in globalRank whatever is done, and its bound holds them on top."""
    spec = ManagedApplication(
        operator_policy=Manager("drs-c"),
        application="top-routes",
        infrastructure="A:1",
        slo_s=0.25,
        application_policy=Manager("tuned"),
    )
    chosen = tuned_for(spec, walk[:30], walk)
    assert chosen.bounds_s["globalRank"] > 0.040
    for path in application_entry("top-routes").graph(10).paths:
        assert sum(chosen.bounds_s[name] for name in path) <= 1.05 * 0.210 + 0.040 + 1e-12


@pytest.mark.parametrize("policy", ["drs-c", "lohrmann-s", "tuned", "token-bucket"])
def test_delays_longer_than_the_objective_are_told_with_the_path_they_are_on(policy: str) -> None:
    """top-routes: 40 ms of delay and 6.5 ms of service, 5 on nodes of speedup 1.3."""
    spec = ManagedApplication(
        operator_policy=Manager("ql-pds"),
        application="top-routes",
        application_policy=Manager(policy),
        infrastructure="A:3",
        slo_s=0.020,
    )
    with pytest.raises(InputError, match=r"globalRank takes 45 ms .* objective of 20 ms"):
        run(spec, np.full(5, 100.0))


@pytest.mark.parametrize("manager", ["drs", "lohrmann"])
def test_a_sizing_manager_counts_delays_and_its_own_nodes_against_the_whole_objective(manager: str) -> None:
    top_routes = partial(
        ManagedApplication,
        operator_policy=Manager("fixed"),
        application="top-routes",
        infrastructure="A:3",
        slo_s=0.046,
    )
    with pytest.raises(InputError, match=r"takes 49\.2\d* ms .* type 'a2', .* objective of 46 ms"):
        run(top_routes(application_policy=Manager(f"{manager}-c")), np.full(5, 100.0))
    assert run(top_routes(application_policy=Manager(f"{manager}-s")), np.full(5, 100.0)).slots == 5


@pytest.mark.parametrize(("pause_s", "message"), [(-1.0, "pause of -1 s"), (inf, "pause of inf s")])
def test_a_pause_that_makes_no_sense_is_refused(pause_s: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DIAMOND(application_policy=Manager("drs-c"), pause_s=pause_s)


def test_an_unknown_application_policy_is_named_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'token-bucket'"):
        DIAMOND(application_policy=Manager("token-bukket"))


def test_names_say_who_decides() -> None:
    assert OperatorGraph(operator_policy=Manager("fixed"), application="diamond").label == "fixed"
    assert DIAMOND(application_policy=Manager("token-bucket")).label == "fixed + token-bucket"
    assert DIAMOND(application_policy=Manager("drs-c")).label == "drs-c (application)"


def test_where_the_application_manager_decides_replicas_are_placed_without_the_chance_of_operators(
    walk: Floats, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = ManagedApplication(
        operator_policy=Manager("threshold-c"),
        application="pipeline",
        application_policy=Manager("lohrmann-c"),
        infrastructure="A:1",
        hosts=Hosts(per_type=8, slots=4, delay_s=0.005),
    )

    def response_times() -> Floats:
        happened = run(spec, walk[:60], with_history=True).history
        assert happened is not None
        return happened.response_time_s

    usual = response_times()
    monkeypatch.setattr(_World, "decision_rngs", {})
    assert np.array_equal(response_times(), usual)


def test_a_path_with_a_tighter_limit_is_late_more_often(walk: Floats) -> None:
    multi_sink = partial(
        OperatorGraph, operator_policy=Manager("threshold-c"), application="multi-sink", infrastructure="A:1"
    )
    managed = partial(
        ManagedApplication,
        operator_policy=Manager("threshold-c"),
        application="multi-sink",
        application_policy=Manager("grant-all"),
        infrastructure="A:1",
    )
    tight = ((("root", "short"), 0.006),)
    for spec in (multi_sink, managed):
        assert run(spec(path_slo_s=tight), walk).violations_pct > run(spec(), walk).violations_pct
