"""Adaptive: what it learns, what it plans, and what it never does."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import policy_cases
import pytest
from test_objective_first import TRUTH, seen

from penstock.compiled import Floats
from penstock.control.spec import Manager
from penstock.data.synthetic import synthetic_trace
from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Weights
from penstock.domain.observation import OperatorObservation
from penstock.perf.deployments import deployments, replicas_at
from penstock.perf.queueing import m_m_1
from penstock.policy.kernel import step
from penstock.policy.memory import learned, with_learned
from penstock.policy.operator.adaptive import Adaptive
from penstock.policy.operator.objective_first import ObjectiveFirst
from penstock.policy.registry import Level, entry
from penstock.policy.rl.post_decision import BelievedModel
from penstock.policy.rl.problem import operator_problem
from penstock.policy.rl.worth_having import AdaptiveLearner
from penstock.runtimes.sim.episode import no_totals, play, trail_of, world_of
from penstock.simulation.one_operator import operator_of, run_operator
from penstock.simulation.spec import OneOperator, Shift

RNG = np.random.default_rng(1)


def spec(policy: str = "adaptive", **changes: Any) -> OneOperator:
    return replace(OneOperator(operator_policy=Manager(policy), infrastructure="A:3", seed=3), **changes)


def taxi(slots: int, seed: int = 5) -> Floats:
    return synthetic_trace("taxi", slots=slots, seed=seed).rates


def played(one: OneOperator, rates: Floats) -> tuple[Adaptive, AdaptiveLearner]:
    known = operator_of(one, rates, rates, one.seed)
    policy: Adaptive = entry(Level.OPERATOR, "adaptive").build(known, {})
    memory = policy.initial()
    play(world_of(known), policy, memory, rates, 0, RNG, no_totals(len(known.node_types)), trail_of(0))
    return policy, memory


def test_it_learns_how_fast_nodes_are_and_how_long_tuples_wait_though_it_was_told_otherwise() -> None:
    """The world: M/G/1 with a squared coefficient of variation of .5; it is told M/M/1, and wrong speeds."""
    policy, memory = played(spec(), taxi(5000))
    true_speed = np.array([kind.speedup for kind in policy.node_types])
    tried = memory.nodes.measured > 0
    assert tried.any()
    counted = (
        memory.nodes.speed * (1 / 180) / memory.queue.service_time_s
    )  # on a node of the true service time
    assert counted[tried] == pytest.approx(true_speed[tried], rel=1e-9)
    assert memory.nodes.waiting[0] == pytest.approx((1 + 0.5) / 2, rel=1e-6)


def test_of_every_deployment_of_one_type_it_knows_the_highest_load_within_the_bound() -> None:
    """Pollaczek and Khinchine: S + (1 + c2)/2 S rho / (1 - rho) = bound, solved for the rate."""
    policy, memory = played(spec(), taxi(5000))
    tried = memory.nodes.measured > 0
    for candidate, (kind, count) in enumerate(zip(memory.types, memory.counts, strict=True)):
        if not tried[kind]:
            continue
        service_s = 1 / 180 / policy.node_types[kind].speedup
        odds = (0.05 - service_s) / (0.75 * service_s)  # rho / (1 - rho)
        assert memory.limit[candidate] == pytest.approx(count * odds / (1 + odds) / service_s, rel=0.03)


@pytest.mark.parametrize("infrastructure", ["A:3", "B:3"])
@pytest.mark.parametrize("like", ["taxi", "random-walk"])
def test_it_costs_no_more_than_value_iteration_that_knows_everything(infrastructure: str, like: str) -> None:
    """`vi` knows the speeds, the queue and how this load moves, but changes by one replica at a time."""
    rates = synthetic_trace(like, slots=40_000, seed=11).rates
    costs = {}
    for policy in ("adaptive", "vi"):
        made = run_operator(spec(policy, infrastructure=infrastructure), rates, rates, with_history=True)
        assert made.history is not None
        costs[policy] = made.history.cost[20_000:].mean()
    assert costs["adaptive"] <= 1.02 * costs["vi"]


def test_after_prices_have_changed_it_plans_anew_at_once() -> None:
    rates = taxi(30_000)
    made = run_operator(spec(price_shift=Shift(slot=20_000, factor=100.0)), rates, rates, with_history=True)
    assert made.history is not None
    resources = made.history.resources
    # Only the last type has kept its price; anything else would cost a hundred times as much.
    assert resources[20_002:].max() < 20 * 1.3
    assert made.history.cost[20_002:].mean() < 1.2 * made.history.cost[10_000:20_000].mean() * 1.3


def test_the_sentence_says_what_staying_and_moving_would_cost() -> None:
    rates = taxi(3000)
    policy, memory = played(spec(), rates)
    one_replica = Replicas((1, 0, 0))
    overloaded = OperatorObservation(
        operator="o",
        at_s=60.0,
        replicas=one_replica,
        arrival_rate=500.0,
        response_time_s=np.inf,
        utilisation=500 / 180,
    )
    decision, _ = policy.decide(memory, overloaded, RNG)
    assert isinstance(decision, Scale)
    said = re.search(
        r"at 500 t/s: expected to cost ([\d.]+) less, .* than if nothing changes", decision.reason
    )
    assert said is not None, decision.reason
    # A slot of one overloaded replica costs .6 more, a change .2, and the load stays high for long.
    assert float(said[1]) > 0.4


# In micro-batches


def in_batches(
    rates: list[float], replicas: int = 1, **measured: Any
) -> tuple[list[Decision], AdaptiveLearner]:
    policy = live()
    memory: Any = policy.initial()
    decisions = []
    for second, rate in enumerate(rates):
        decision, memory = policy.decide(memory, seen(rate, replicas, at_s=float(second), **measured), RNG)
        decisions.append(decision)
        if isinstance(decision, Scale):
            replicas = decision.target.total
    return decisions, memory


def live() -> Adaptive:
    one = spec(infrastructure="A:1", max_replicas=12, slo_s=5.0, service_rate=100.0)
    made: Adaptive = entry(Level.OPERATOR, "adaptive").build(
        operator_of(one, np.full(10, 50.0), np.full(10, 50.0), 1), {}
    )
    return made


def test_in_batches_it_runs_no_fewer_replicas_than_the_objective_needs() -> None:
    rng = np.random.default_rng(4)
    policy, memory = live(), live().initial()
    objective = ObjectiveFirst(
        node_types=policy.node_types,
        deployments=policy.deployments,
        queue=policy.believed.queue,
        max_response_time_s=5.0,
    )
    needed, replicas = objective.initial(), 1
    rate = 100.0
    for second in range(300):
        rate = float(np.clip(rate * np.exp(rng.normal(0, 0.1)), 20, 900))
        observed = seen(rate, replicas, at_s=float(second))
        wanted, needed = objective.decide(needed, observed, RNG)
        decision, memory = policy.decide(memory, observed, RNG)
        target = decision.target.total if isinstance(decision, Scale) else replicas
        assert target >= (wanted.target.total if isinstance(wanted, Scale) else replicas)
        replicas = target


def test_a_replica_is_kept_where_it_would_soon_be_needed_again() -> None:
    """A load that falls for two seconds in every ten: giving replicas back each time is never worth it."""
    wave = [300.0] * 8 + [150.0] * 2
    decisions, _ = in_batches(wave * 60, replicas=4)
    late = decisions[300:]
    assert sum(isinstance(one, Scale) for one in late) == 0
    calm, _ = in_batches(wave * 20 + [40.0] * 300, replicas=4)
    assert any(isinstance(one, Scale) and one.target.total < 4 for one in calm[-290:])


def test_replicas_on_their_way_are_not_asked_for_again() -> None:
    decisions, _ = in_batches([40.0] * 5 + [300.0] * 20, coming=(11,))
    assert all(isinstance(one, Hold) for one in decisions)


def test_what_it_remembers_can_be_saved_and_goes_on() -> None:
    rates = list(np.linspace(40, 400, 60))
    _, memory = in_batches(rates, replicas=3)
    policy = live()
    again = with_learned(policy.initial(), learned(memory))
    one, _ = policy.decide(memory, seen(420.0, 3, at_s=60.0), RNG)
    other, _ = policy.decide(again, seen(420.0, 3, at_s=60.0), RNG)
    assert one == other
    assert TRUTH.tuple_s == pytest.approx(memory.batches.planned[1], rel=0.1)


def test_what_was_learned_with_other_replicas_is_refused_not_read_beyond_its_end() -> None:
    _, memory = in_batches([50.0] * 10)
    fewer = spec(infrastructure="A:1", max_replicas=4, slo_s=5.0, service_rate=100.0)
    rates = np.full(10, 50.0)
    other: Adaptive = entry(Level.OPERATOR, "adaptive").build(operator_of(fewer, rates, rates, 1), {})
    with pytest.raises(InputError, match="other node types, replicas or levels"):
        with_learned(other.initial(), learned(memory))


def test_a_backlog_is_worked_off_before_any_load_was_seen() -> None:
    decisions, _ = in_batches([0.0] * 3, offered_rate=0.0, backlog=100_000.0, batch_s=1.0, batch_tuples=60.0)
    assert any(isinstance(one, Scale) and one.target.total == 12 for one in decisions)


def test_all_replicas_of_a_slow_type_are_not_enough_for_any_load() -> None:
    """Four slow ones can work on 400 tuples/s if they do nothing else; a fifth of their time is kept free."""
    types = (NodeType(name="slow", speedup=1.0, price=1.0), NodeType(name="fast", speedup=4.0, price=8.0))
    space = deployments(types, 4)
    queue = m_m_1(0.01)
    policy = Adaptive(
        node_types=types,
        deployments=space,
        problem=operator_problem(space, levels=3, max_rate=1e3, max_response_time_s=5.0, weights=Weights()),
        believed=BelievedModel(deployments=space, queue=queue),
    )
    memory: Any = policy.initial()
    decision: Decision = Hold("")
    for second in range(2):
        observed = seen(395.0, 4, at_s=float(second))._replace(replicas=Replicas((4, 0)))
        decision, memory = policy.decide(memory, observed, RNG)
    assert memory.limit[3] == pytest.approx(0.8 * 400, rel=0.02)
    assert isinstance(decision, Scale)
    assert decision.target.counts[1] >= 1


def test_new_prices_leave_the_memory_they_are_told_of_alone() -> None:
    policy, memory = played(spec(), taxi(2000))
    before = learned(memory)
    policy.informed(memory, policy.deployments, policy.deployments)
    after = learned(memory)
    assert all(np.array_equal(before[name], after[name], equal_nan=True) for name in before)


def test_where_nodes_are_not_exchanged_it_asks_for_more_of_those_that_run() -> None:
    """One replica of the first type runs, and whoever carries decisions out refuses every other type."""
    one = spec()
    rates = np.full(100, 400.0)
    known = operator_of(one, rates, rates, 3)
    policy: Adaptive = entry(Level.OPERATOR, "adaptive").build(known, {})
    memory = policy.initial()
    here = Replicas((1, 0, 0))
    for _ in range(30):
        handle = policy_cases.at(known.deployments, *here.counts)
        target, _ = step(memory, policy_cases.mm1_seen(known.deployments, handle, 400.0, 1 / 180), RNG)
        wanted = replicas_at(known.deployments, target)
        if wanted.counts[1:] == (0, 0):
            here = wanted
    assert here.counts[0] >= 3  # 400 tuples/s at 180 each


def test_without_a_load_measured_it_holds() -> None:
    policy = live()
    decision, memory = policy.decide(
        policy.initial(), seen(50.0, 2, arrival_rate=None, offered_rate=None), RNG
    )
    assert isinstance(decision, Hold)
    assert "not measured" in decision.reason
    assert memory.clock[1] == 0
