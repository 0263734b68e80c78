"""Russo 2018: the joint problem against policy iteration in plain Python, and one manager against many."""

from dataclasses import replace
from itertools import pairwise, product
from math import inf

import numpy as np
import pytest

from penstock.compiled import Floats
from penstock.domain.application import (
    Application,
    Batching,
    Operator,
    Path,
    Sink,
    Source,
    Stream,
    pipeline,
)
from penstock.domain.decision import Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective, Weights
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import ScaleOut
from penstock.perf.deployments import NOWHERE, actions_of, after, deployments, handle_of, replicas_at
from penstock.perf.joint import (
    joint_deployments,
    joint_mean_utilisation,
    joint_queues,
    joint_response_time,
    joint_response_times,
    joint_utilisation,
)
from penstock.perf.micro_batch import MicroBatches
from penstock.perf.queueing import m_d_1
from penstock.policy.application.centralised import (
    CentralisedLearner,
    CentralisedMdp,
    application_problem,
    joint_violation_costs,
)
from penstock.policy.kernel import Seen, step
from penstock.policy.knowledge import ApplicationKnowledge
from penstock.policy.operator.value_iteration import ValueIteration
from penstock.policy.rl.problem import level_rates
from penstock.runtimes.sim.joint import JointWorld, joint_trail, run_joint

GAMMA = 0.95
RNG = np.random.default_rng(1)  # never drawn from: these managers are greedy
WEIGHTS = Weights(performance=0.4, resources=0.2, reconfiguration=0.4)
CHAIN = np.array([[0.7, 0.3, 0.0], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]])
RATES = np.array([0.5, 1.5, 2.5])  # tuples/s the three levels stand for: their midpoints
SERVICE_RATES = (2.0, 3.0)
LIMIT_S = 2.0

Counts = tuple[int, ...]


def application(service_rates: tuple[float, ...] = SERVICE_RATES, most: int = 2) -> Application:
    return pipeline(
        "app",
        *(
            Operator(name=f"op{i}", service_time_s=1 / rate, service_scv=0.0, max_replicas=most)
            for i, rate in enumerate(service_rates)
        ),
    )


def test_the_busiest_operator_and_the_mean_over_all_replicas_are_two_numbers() -> None:
    """1.2 tuples/s: two replicas that take half a second are .3 busy, one that takes a third .4."""
    app = application()
    space = joint_deployments([2, 2])
    here = handle_of(space, Replicas((2, 1)))
    assert joint_utilisation(joint_queues(app), space, here, 1.2) == pytest.approx(0.4)
    assert joint_mean_utilisation(joint_queues(app), space, here, 1.2) == pytest.approx(1.0 / 3)


def manager(app: Application, limit_s: float = LIMIT_S) -> CentralisedMdp:
    objective = Objective(response_time_s=limit_s, weights=WEIGHTS)
    problem = application_problem(app, objective, levels=3, max_rate=3.0)
    return CentralisedMdp(
        application=app,
        objective=objective,
        problem=problem,
        transitions=CHAIN,
        violation_costs=joint_violation_costs(problem, joint_queues(app), RATES),
        gamma=GAMMA,
        tolerance=1e-11,
    )


def md1_time(counts: Counts, rate: float, service_rates: tuple[float, ...] = SERVICE_RATES) -> float:
    """Pollaczek-Khinchine with constant service, one operator after another."""
    total = 0.0
    for count, mu in zip(counts, service_rates, strict=True):
        busy = rate / count / mu
        total += inf if busy >= 1 else 1 / mu + busy / (2 * mu * (1 - busy))
    return total


def test_joint_actions_are_all_combinations_of_one_step_and_nothing_comes_first() -> None:
    space = joint_deployments([2, 3, 1])
    everything = set(product((1, 2), (1, 2, 3), (1,)))
    assert {replicas_at(space, row).counts for row in range(space.replicas.size)} == everything
    assert actions_of(space) == 27
    for row in range(space.replicas.size):
        here = replicas_at(space, row).counts
        assert handle_of(space, Replicas(here)) == row
        assert after(space, row, 0) == row
        reached = [after(space, row, action) for action in range(27)]
        targets = [replicas_at(space, there).counts for there in reached if there != NOWHERE]
        expected = {
            there for there in everything if max(abs(a - b) for a, b in zip(here, there, strict=True)) <= 1
        }
        assert set(targets) == expected
        assert len(targets) == len(expected), "every target is reached by one action"


def test_too_many_joint_deployments_are_refused_with_their_number() -> None:
    with pytest.raises(InputError, match=r"12 operators .* 244,140,625 joint deployments of 531,441 actions"):
        joint_deployments([5] * 12)


def test_the_response_time_is_that_of_the_longest_path_and_rates_follow_selectivities() -> None:
    app = Application(
        name="fork",
        sources=(Source(name="source"),),
        operators=(
            Operator(name="a", service_time_s=0.5, service_scv=0.0, selectivity=0.5, max_replicas=3),
            Operator(name="slow", service_time_s=1.0, service_scv=0.0, max_replicas=3),
            Operator(name="fast", service_time_s=0.1, service_scv=0.0, max_replicas=3),
        ),
        sinks=(Sink(name="left"), Sink(name="right")),
        streams=tuple(
            Stream(origin=origin, target=target)
            for branch in (("source", "a", "slow", "left"), ("a", "fast", "right"))
            for origin, target in pairwise(branch)
        ),
    )
    space = joint_deployments([3, 3, 3])
    here = handle_of(space, Replicas((2, 1, 1)))
    # a: 1.2/2 per replica, busy .3; slow: .6, busy .6.
    expected = 0.5 + 0.3 * 0.5 / (2 * 0.7) + 1.0 + 0.6 * 1.0 / (2 * 0.4)
    assert joint_response_time(joint_queues(app), space, here, 1.2) == pytest.approx(expected)


def test_joint_response_times_are_those_of_the_queues_one_after_another() -> None:
    app = application()
    space = joint_deployments([2, 2])
    times = joint_response_times(joint_queues(app), space, RATES)
    for row in range(space.replicas.size):
        counts = replicas_at(space, row).counts
        assert times[row] == pytest.approx([md1_time(counts, rate) for rate in RATES])


def in_batches(fixed_s: float) -> Application:
    """Operators that serve 2 and 3 tuples/s: the first in micro-batches, the second one by one."""
    first, second = application().operators
    return pipeline("app", replace(first, batching=Batching(fixed_s=fixed_s, trigger_s=0.5)), second)


def test_joint_response_times_know_which_operators_work_in_micro_batches() -> None:
    space = joint_deployments([2, 2])
    times = joint_response_times(joint_queues(in_batches(0.2)), space, RATES)
    batches = MicroBatches(fixed_s=0.2, tuple_s=1 / 2.0, trigger_s=0.5)
    for row in range(space.replicas.size):
        first, second = replicas_at(space, row).counts
        expected = [
            batches.response_time_s(rate, first) + md1_time((second,), rate, (3.0,)) for rate in RATES
        ]
        assert times[row] == pytest.approx(expected)


def test_a_joint_plan_for_a_limit_that_no_replicas_can_keep_still_carries_the_load() -> None:
    """Empty batches of 2 s make 3 s, and a third for the other operator: beyond 2 s whatever runs.

    Levels stand for .4, 1.2 and 2 tuples/s; the limit becomes 1.5 (3 + 1/3) = 5 s.
    """
    known = ApplicationKnowledge(
        application=in_batches(2.0),
        objective=Objective(response_time_s=LIMIT_S, weights=WEIGHTS),
        node_types=(NodeType(name="one", speedup=1.0, price=1.0),),
        training=np.tile(RATES, 100),
        max_rate=2.4,
        interval_s=5.0,
        levels=3,
    )
    usual = CentralisedMdp.usual(known)
    assert usual["problem"].max_response_time_s == pytest.approx(1.5 * (3.0 + 1 / 3))
    late = usual["violation_costs"] > 0
    one, two = (handle_of(usual["problem"].deployments, Replicas((k, 1))) for k in (1, 2))
    assert late[one].tolist() == [False, True, True]  # 3 / .8 + .4 s; 3 / .4 + .4 s; never
    assert late[two].tolist() == [False, False, True]  # 3 / .7 + .4 s; 3 / .5 + .6 s
    measured = {
        name: OperatorObservation(
            operator=name,
            at_s=5.0,
            replicas=Replicas((1,)),
            arrival_rate=0.4,
            response_time_s=took_s,
            utilisation=0.2,
        )
        for name, took_s in (("op0", 4.0), ("op1", 0.5))
    }
    seen = CentralisedMdp(objective=known.objective, **usual)._joint(measured, 0.4)
    assert isinstance(seen, Seen)
    assert seen.response_time_s == pytest.approx(4.5), "measured times are what they are"


def policy_iteration(
    service_rates: tuple[float, ...], most: int
) -> dict[tuple[Counts, int], dict[Counts, float]]:
    """Howard's algorithm on eq. (1), (4): Q* by state and by where to go, in plain counts."""
    deployments_ = list(product(range(1, most + 1), repeat=len(service_rates)))
    states = [(counts, level) for counts in deployments_ for level in range(3)]
    index = {state: position for position, state in enumerate(states)}

    def cost_and_row(counts: Counts, level: int, target: Counts) -> tuple[float, Floats]:
        cost = 0.2 * sum(target) / (most * len(target)) + 0.4 * (target != counts)
        row = np.zeros(len(states))
        for following in range(3):
            p = CHAIN[level, following]
            cost += p * 0.4 * (md1_time(target, RATES[following], service_rates) > LIMIT_S)
            row[index[target, following]] = p
        return cost, row

    policy = {state: state[0] for state in states}
    while True:
        rows = [cost_and_row(counts, level, policy[counts, level]) for counts, level in states]
        matrix = np.eye(len(states)) - GAMMA * np.array([row for _, row in rows])
        v = np.linalg.solve(matrix, np.array([cost for cost, _ in rows]))
        q: dict[tuple[Counts, int], dict[Counts, float]] = {}
        for counts, level in states:
            q[counts, level] = {}
            for target in deployments_:
                if max(abs(a - b) for a, b in zip(counts, target, strict=True)) <= 1:
                    cost, row = cost_and_row(counts, level, target)
                    q[counts, level][target] = float(cost + GAMMA * row @ v)
        improved = False
        for state, options in q.items():
            best = min(options, key=options.__getitem__)
            if options[best] < options[policy[state]] - 1e-12:
                policy[state], improved = best, True
        if not improved:
            return q


@pytest.mark.parametrize(("service_rates", "most"), [(SERVICE_RATES, 2), ((2.5, 1.5), 3)])
def test_joint_value_iteration_equals_policy_iteration_with_linear_solves(
    service_rates: tuple[float, ...], most: int
) -> None:
    solved = policy_iteration(service_rates, most)
    policy = manager(application(service_rates, most))
    plan = policy.initial()
    space = policy.problem.deployments
    v = plan.values.v.values.reshape(-1, 3)
    moved = set()
    for (counts, level), options in solved.items():
        for target, expected in options.items():
            known = 0.2 * sum(target) / (most * len(target)) + 0.4 * (target != counts)
            there = handle_of(space, Replicas(target))
            assert known + v[there, level] == pytest.approx(expected, abs=1e-8)
        here = handle_of(space, Replicas(counts))
        chosen, _ = step(plan, Seen(here, float(RATES[level]), 0.1, 0.1, 0.1), RNG)
        assert options[replicas_at(space, chosen).counts] == pytest.approx(min(options.values()), abs=1e-8)
        moved.add(chosen != here)
    assert moved == {False, True}, "a plan that never moves, or never rests, proves little"


def test_with_one_operator_the_centralised_problem_is_the_operators_own() -> None:
    policy = manager(application((1.2,), 4), limit_s=1.5)
    types = (NodeType(name="node", speedup=1.0, price=1.0),)
    space = deployments(types, 4)
    training = np.array([0.5, 0.5, 1.5, 2.5, 2.5, 1.5, 0.5, 1.5, 1.5, 2.5, 0.5])
    alone = ValueIteration(
        node_types=types,
        deployments=space,
        problem=policy.problem._replace(deployments=space),
        queue=m_d_1(1 / 1.2),
        training=training,
        gamma=GAMMA,
        tolerance=1e-11,
    )
    moves = np.zeros((3, 3))
    for then, now in pairwise(training.astype(int)):
        moves[then, now] += 1
    joint = CentralisedMdp(
        application=policy.application,
        objective=policy.objective,
        problem=policy.problem,
        transitions=moves / moves.sum(axis=1, keepdims=True),
        violation_costs=joint_violation_costs(
            policy.problem, joint_queues(policy.application), level_rates(policy.problem)
        ),
        gamma=GAMMA,
        tolerance=1e-11,
    )
    assert joint.violation_costs.any()
    np.testing.assert_allclose(joint.initial().values.v.values, alone.initial().values.v.values, atol=1e-9)


def generated(slots: int) -> Floats:
    rng, level, levels = np.random.default_rng(5), 0, []
    for _ in range(slots):
        levels.append(level)
        level = int(rng.choice(3, p=CHAIN[level]))
    return RATES[levels]


def late_slots(policy: CentralisedMdp | CentralisedLearner, rates: Floats) -> tuple[Floats, list[int]]:
    trail = joint_trail(rates.size)
    world = JointWorld(
        policy.problem.deployments, joint_queues(policy.application), policy.problem.max_response_time_s
    )
    run_joint(world, policy.initial(), rates, 0, RNG, trail)
    cost = 0.4 * trail.violated + 0.4 * trail.reconfigured + 0.2 * trail.replicas / 4
    return cost, trail.reconfigured.tolist()


@pytest.mark.parametrize("told", [True, False])
def test_a_learner_comes_to_cost_what_the_plan_costs(told: bool) -> None:
    planner = manager(application())
    learner = CentralisedLearner(
        application=planner.application,
        objective=planner.objective,
        problem=planner.problem,
        violation_costs=planner.violation_costs if told else None,
        gamma=GAMMA,
    )
    rates = generated(20_000)
    planned, _ = late_slots(planner, rates)
    learned, _ = late_slots(learner, rates)
    assert learned[10_000:].mean() == pytest.approx(planned[10_000:].mean(), rel=0.02)


def test_being_told_violation_costs_is_never_unlearned() -> None:
    planner = manager(application())
    memory = CentralisedLearner(
        application=planner.application,
        objective=planner.objective,
        problem=planner.problem,
        violation_costs=planner.violation_costs,
    ).initial()
    for _ in range(5):
        step(memory, Seen(0, 2.5, 0.001, 0.1, 0.1), RNG)  # in time where a violation was foretold
    assert memory.unknown.tolist() == planner.violation_costs.tolist()


def test_a_slot_in_which_two_operators_change_is_one_reconfiguration() -> None:
    planner = manager(application())
    space = planner.problem.deployments
    both = handle_of(space, Replicas((2, 2)))
    target, _ = step(planner.initial(), Seen(0, 2.5, inf, 1.25, 1.25), RNG)
    assert target == both, "one replica of each cannot keep up at the top level"
    _, reconfigured = late_slots(planner, np.array([2.5, 2.5, 2.5]))
    assert reconfigured == [1, 0, 0]


def seen(name: str, count: int, time_s: float | None = 0.4) -> OperatorObservation:
    return OperatorObservation(
        operator=name,
        at_s=60.0,
        replicas=Replicas((count,)),
        arrival_rate=2.5,
        response_time_s=time_s,
        utilisation=0.9,
    )


def test_a_live_decision_is_the_simulated_one_and_names_every_operator() -> None:
    planner = manager(application())
    decisions, _ = planner.decide(planner.initial(), {"op0": seen("op0", 1), "op1": seen("op1", 1)}, 2.5)
    assert [type(decision) for decision in decisions.values()] == [Scale, Scale]
    assert [d.target.counts for d in decisions.values() if isinstance(d, Scale)] == [(2,), (2,)]


def test_one_operator_nobody_can_see_holds_them_all() -> None:
    planner = manager(application())
    memory = planner.initial()
    blind = {"op0": seen("op0", 1), "op1": seen("op1", 1, None)}
    assert planner.decide(memory, blind, 2.5) == (
        {name: Hold("operators op1 not measured") for name in ("op0", "op1")},
        memory,
    )
    both = {"op0": seen("op0", 1), "op1": seen("op1", 1)}
    decisions, _ = planner.decide(memory, both, None)
    assert set(decisions.values()) == {Hold("source rate not measured")}


def test_an_objective_below_the_service_times_is_refused_with_their_sum() -> None:
    with pytest.raises(InputError, match=r"path op0-op1 takes 833\.3 ms .* objective of 650 ms"):
        manager(application(), limit_s=0.65)


def fork() -> Application:
    """One operator in front, one behind it on the way to each of two sinks."""
    operators = tuple(
        Operator(name=name, service_time_s=1 / rate, service_scv=0.0, max_replicas=3)
        for name, rate in (("front", 3.0), ("left", 2.0), ("right", 2.5))
    )
    edges = ("in", "front"), ("front", "left"), ("front", "right"), ("left", "a"), ("right", "b")
    return Application(
        name="fork",
        sources=(Source(name="in"),),
        operators=operators,
        sinks=(Sink(name="a"), Sink(name="b")),
        streams=tuple(Stream(origin=origin, target=target) for origin, target in edges),
    )


@pytest.mark.parametrize("for_all", [2.0, None])
def test_every_path_is_judged_by_its_own_limit(for_all: float | None) -> None:
    app = fork()
    limits: dict[Path, float] = {("front", "left"): 1.4, ("front", "right"): 0.9}
    objective = Objective(response_time_s=for_all, weights=WEIGHTS, per_path_s=limits)
    problem = application_problem(app, objective, levels=3, max_rate=3.0)
    costs = joint_violation_costs(problem, joint_queues(app, objective), RATES)
    late = dict.fromkeys(limits.values(), 0)
    for row in range(problem.deployments.replicas.size):
        front, left, right = replicas_at(problem.deployments, row).counts
        for level, rate in enumerate(RATES):
            slow_left = md1_time((front, left), rate, (3.0, 2.0)) > 1.4
            slow_right = md1_time((front, right), rate, (3.0, 2.5)) > 0.9
            late[1.4] += slow_left and not slow_right
            late[0.9] += slow_right and not slow_left
            assert costs[row, level] == (0.4 if slow_left or slow_right else 0.0)
    assert min(late.values()) > 0, "each limit decides somewhere"


def test_a_manager_that_measures_counts_each_path_against_its_own_limit() -> None:
    app = fork()
    limits: dict[Path, float] = {("front", "left"): 2.0, ("front", "right"): 1.0}
    objective = Objective(response_time_s=None, weights=WEIGHTS, per_path_s=limits)
    learner = CentralisedLearner(
        application=app,
        objective=objective,
        problem=application_problem(app, objective, levels=3, max_rate=3.0),
    )
    memory = learner.initial()
    in_time = {"front": seen("front", 1, 0.4), "left": seen("left", 1, 1.5), "right": seen("right", 1, 0.5)}
    _, memory = learner.decide(memory, in_time, 0.5)
    _, memory = learner.decide(memory, in_time, 0.5)
    assert not memory.unknown.any(), "1.9 s of 2 s and 0.9 s of 1 s"
    _, memory = learner.decide(memory, in_time | {"right": seen("right", 1, 0.7)}, 0.5)
    assert memory.unknown.any(), "1.1 s of 1 s"


def test_a_path_without_a_limit_is_named() -> None:
    objective = Objective(response_time_s=None, weights=WEIGHTS, per_path_s={("front", "left"): 2.0})
    with pytest.raises(InputError, match="path front-right has none"):
        application_problem(fork(), objective, levels=3, max_rate=3.0)


def test_as_an_application_manager_it_grants_its_own_changes_and_refuses_what_operators_ask() -> None:
    planner = manager(application())
    asked = ScaleOut(operator="op0", target=Replicas((2,)), nodes=(), score=1.0, reason="busy")
    what = ApplicationObservation(
        at_s=60.0, response_time_s=0.8, operators=(seen("op0", 1), seen("op1", 1)), source_rate=2.5
    )
    verdict, _ = planner.grant(planner.initial(), [asked], what)
    assert {(request.operator, type(request)) for request in verdict.granted} == {
        ("op0", ScaleOut),
        ("op1", ScaleOut),
    }
    assert [(refused.request, refused.reason) for refused in verdict.refused] == [
        (asked, "the Application Manager decides for all operators")
    ]


def test_more_replicas_than_were_planned_for_are_left_alone() -> None:
    planner = manager(application())
    decisions, _ = planner.decide(planner.initial(), {"op0": seen("op0", 3), "op1": seen("op1", 1)}, 2.5)
    assert set(decisions.values()) == {Hold("operators op0 run more replicas than planned for")}
