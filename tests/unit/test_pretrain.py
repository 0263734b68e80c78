"""From a few minutes of measurements to a policy that starts well."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from penstock.control.build import build_controller, likely_rates, measured_operator
from penstock.control.hierarchy import ManagersMemory
from penstock.control.journal import Header, decoded, encoded
from penstock.control.loop import plan
from penstock.control.safety_settings import UNGUARDED
from penstock.control.saved import restored, saved
from penstock.control.spec import ControllerSpec, Manager, OperatorSpec
from penstock.data.synthetic import day_and_week
from penstock.domain.application import Batching, Operator, pipeline
from penstock.domain.decision import Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.perf.deployments import handle_of
from penstock.perf.micro_batch import MicroBatches
from penstock.policy.kernel import CompiledPolicy, copied
from penstock.policy.memory import learned
from penstock.policy.operator.deep_pds import DeepPds, DeepPdsLearner
from penstock.policy.operator.value_iteration import ValueIteration, violation_costs
from penstock.policy.rl.experience import NEVER
from penstock.policy.rl.problem import level_rates
from penstock.runtimes.sim.episode import no_totals, run, single_replica, starting_type, trail_of, world_of
from penstock.training.pretrain import model_of, pretrained, specs_of

SLOW, FAST = NodeType(name="slow", speedup=1.0, price=1.0), NodeType(name="fast", speedup=2.0, price=2.0)
TYPES = (SLOW, FAST)
# The truth: 5 ms a tuple, as variable as half an exponential. Nobody knows it but the tests.
MEAN_S, SCV, SLO_S = 0.005, 0.5, 0.04
GRAPH = pipeline("one", Operator(name="count", service_time_s=1.0, max_replicas=6))
OBJECTIVE = Objective(response_time_s=SLO_S)


def minutes(seed: int, count: int = 5) -> list[ApplicationObservation]:
    """What a monitor sees in a few intervals: service times of real tuples, drawn one by one."""
    rng = np.random.default_rng(seed)
    seen = []
    for index in range(count):
        rate = float(rng.uniform(250, 350))
        times = rng.gamma(1 / SCV, MEAN_S * SCV, round(rate * 30)) / SLOW.speedup
        operator = OperatorObservation(
            operator="count",
            at_s=30.0 * (index + 1),
            replicas=Replicas((3, 0)),
            arrival_rate=rate,
            response_time_s=0.02,
            utilisation=0.5,
            service_time_s=float(times.mean()),
            service_variance_s2=float(times.var()),
        )
        seen.append(
            ApplicationObservation(
                at_s=operator.at_s, response_time_s=0.02, operators=(operator,), source_rate=rate
            )
        )
    return seen


def spec_of(policy: str, *operators: OperatorSpec, **others: Any) -> ControllerSpec:
    """A controller of operators as they were measured; nothing guards what it decides."""
    return ControllerSpec(
        **{
            "application": GRAPH,
            "objective": OBJECTIVE,
            "node_types": TYPES,
            "operators": operators,
            "operator_policy": Manager(name=policy),
            "safety": UNGUARDED,
            **others,
        }
    )


def measured(policy: str, seed: int) -> ControllerSpec:
    model = model_of(GRAPH, minutes(seed), TYPES, interval_s=30.0)
    return spec_of(policy, *specs_of(model, OBJECTIVE), seed=seed)


def test_minutes_of_measurements_make_the_model() -> None:
    model = model_of(GRAPH, minutes(1), TYPES, interval_s=30.0)
    (operator,) = model.application.operators
    assert operator.service_time_s == pytest.approx(MEAN_S, rel=0.02)
    assert operator.service_scv == pytest.approx(SCV, rel=0.05)
    assert model.rates.size == 5


def test_service_times_on_faster_nodes_are_as_on_the_reference_node() -> None:
    twice = [
        seen._replace(operators=tuple(one._replace(replicas=Replicas((0, 2))) for one in seen.operators))
        for seen in minutes(1)
    ]
    (operator,) = model_of(GRAPH, twice, TYPES, interval_s=30.0).application.operators
    assert operator.service_time_s == pytest.approx(2 * MEAN_S, rel=0.02)


def test_intervals_without_service_times_are_left_out_and_none_at_all_is_an_error() -> None:
    blind = [
        seen._replace(operators=tuple(one._replace(service_time_s=None) for one in seen.operators))
        for seen in minutes(1)
    ]
    (operator,) = model_of(GRAPH, [*blind, *minutes(2)], TYPES, interval_s=30.0).application.operators
    assert operator.service_time_s == pytest.approx(MEAN_S, rel=0.02)
    with pytest.raises(InputError, match="no service time was measured"):
        model_of(GRAPH, blind, TYPES, interval_s=30.0)


def first_hours_cost(made: ControllerSpec, managers: ManagersMemory, seed: int) -> float:
    """Mean cost of the first six hours, a minute a slot, in a world whose service times are the true ones."""
    true = OperatorSpec(name="count", bound_s=SLO_S, service_time_s=MEAN_S, service_scv=SCV, max_replicas=6)
    controller, _ = build_controller(made)
    policy = controller.managers.operators["count"]
    assert isinstance(policy, CompiledPolicy)
    rates = day_and_week(slots=360, seed=100 + seed, mean_rate=400.0).rates
    known = measured_operator(made, true, rates)
    trail = trail_of(rates.size)
    memory = copied(managers.operators["count"])
    world = world_of(known, policy.deployments)
    here = single_replica(known, starting_type(known, policy))
    run(world, memory, rates, here, np.random.default_rng(seed), no_totals(2), trail)
    return float(trail.cost.mean())


@pytest.mark.parametrize("policy", ["ql", "ql-pds", "model-based"])
def test_a_pretrained_learner_starts_better_than_an_untrained_one(policy: str) -> None:
    untrained, trained = [], []
    for seed in range(5):
        made = measured(policy, seed)
        controller, memory = build_controller(made)
        untrained.append(first_hours_cost(made, memory.managers, seed))
        ready = pretrained(made, controller, memory, seed=seed)
        trained.append(first_hours_cost(made, ready.managers, seed))
    assert np.mean(trained) < 0.85 * np.mean(untrained)
    assert sum(better < worse for better, worse in zip(trained, untrained, strict=True)) >= 4


def wants(made: ControllerSpec, *, train: bool) -> dict[tuple[int, int], int]:
    """Replicas wanted, by replicas there and load, on one type of node."""
    controller, memory = build_controller(made)
    if train:
        memory = pretrained(made, controller, memory)
    found = {}
    for count in range(1, 5):
        for rate in range(25, 800, 50):
            seen = minutes(1, count=1)[0]
            one = seen.operators[0]._replace(replicas=Replicas((count,)), arrival_rate=float(rate))
            decision = plan(controller, memory, seen._replace(operators=(one,)))[0].decisions["count"]
            found[count, rate] = decision.target.total if isinstance(decision, Scale) else count
    return found


def on_slow_nodes(policy: str) -> ControllerSpec:
    """An operator of up to four replicas of 200 tuples/s each, whose load moved little while measured."""
    one = OperatorSpec(
        name="count",
        bound_s=SLO_S,
        service_time_s=MEAN_S,
        service_scv=SCV,
        max_replicas=4,
        rates=(300.0, 310.0),
    )
    return spec_of(policy, one, node_types=(SLOW,))


def test_after_training_a_learner_wants_what_the_optimal_policy_of_its_model_wants() -> None:
    optimal = wants(on_slow_nodes("vi"), train=False)
    learned_wants = wants(on_slow_nodes("model-based"), train=True)
    assert np.mean([learned_wants[state] == wanted for state, wanted in optimal.items()]) > 0.95


def test_training_prepares_for_loads_that_jump() -> None:
    """One replica, and suddenly two to three times what it can take: no gentle walk leads there."""
    wanted = wants(on_slow_nodes("ql-pds"), train=True)
    assert [wanted[1, rate] for rate in range(425, 650, 50)] == [2] * 5


def test_training_leaves_the_untrained_memory_as_it_was_and_is_the_same_for_the_same_seed() -> None:
    made = measured("ql", 1)
    controller, memory = build_controller(made)
    before = learned(memory.managers.operators["count"])
    first, again = (pretrained(made, controller, memory, slots=2000, seed=4) for _ in range(2))
    after = learned(first.managers.operators["count"])
    assert all(np.array_equal(before[n], a) for n, a in learned(memory.managers.operators["count"]).items())
    assert all(np.array_equal(after[n], a) for n, a in learned(again.managers.operators["count"]).items())
    assert not np.array_equal(before["q.values"], after["q.values"])
    assert np.array_equal(before["last"], after["last"]), (
        "the first live interval is not a consequence of training"
    )


def test_a_pretrained_controller_is_saved_restored_and_decides_the_same() -> None:
    header = decoded(encoded(Header(controller=measured("ql-pds-plus", 2))))
    assert isinstance(header, Header)
    made = header.controller
    controller, memory = build_controller(made)
    ready = pretrained(made, controller, memory, slots=5000)
    seen = minutes(3)[0]
    other, _ = build_controller(made)
    assert plan(other, restored(other, saved(ready)), seen)[0] == plan(controller, ready, seen)[0]


@pytest.mark.parametrize("slots", [0, 10**9])
def test_training_slots_are_checked(slots: int) -> None:
    made = measured("ql", 1)
    controller, memory = build_controller(made)
    with pytest.raises(InputError, match="training slots"):
        pretrained(made, controller, memory, slots=slots)


def test_likely_loads_cover_all_an_operator_can_take() -> None:
    one = OperatorSpec(name="count", bound_s=1.0, service_time_s=0.005, max_replicas=6, rates=(300.0, 310.0))
    rates = likely_rates(one, 50_000, np.random.default_rng(1))
    assert rates.min() >= 0.0
    shares = np.histogram(rates, bins=10, range=(0.0, 1200.0))[0] / rates.size
    assert shares.min() > 0.05
    assert shares.sum() == pytest.approx(1.0)


def test_specifications_are_checked() -> None:
    one = OperatorSpec(name="count", bound_s=1.0, service_time_s=0.005)
    with pytest.raises(InputError, match="did you mean 'ql-pds'"):
        build_controller(spec_of("ql-pdx", one))
    with pytest.raises(InputError, match="no operators"):
        spec_of("ql-pds")
    with pytest.raises(InputError, match="max_rate=0"):
        OperatorSpec(name="count", bound_s=1.0, service_time_s=0.005, max_rate=0.0)


def test_a_header_describes_the_application_manager_and_the_paces() -> None:
    one = OperatorSpec(name="count", bound_s=0.04, service_time_s=0.005)
    bucket = Manager(name="token-bucket", parameters={"low_s": 0.01, "high_s": 0.03})
    made = spec_of(
        "threshold-c", one, application_policy=bucket, operator_period_s=30.0, rest_s=60.0, advise=True
    )
    header = decoded(encoded(Header(controller=made)))
    assert isinstance(header, Header)
    controller, _ = build_controller(header.controller)
    assert controller.advise
    assert controller.managers.operator_period_s == {"count": 30.0}
    assert controller.managers.rest_s == 60.0
    assert getattr(controller.managers.application, "high_s", None) == 0.03


def in_batches(seen: ApplicationObservation, fixed_s: float) -> ApplicationObservation:
    """The same interval on an engine of micro-batches, on three replicas."""

    def one(seen: OperatorObservation) -> OperatorObservation:
        batch_s = MicroBatches(fixed_s=fixed_s, tuple_s=MEAN_S).batch_s(seen.arrival_rate or 0.0, 3)
        return seen._replace(batch_s=batch_s, batch_tuples=(seen.arrival_rate or 0.0) * batch_s)

    return seen._replace(operators=tuple(one(operator) for operator in seen.operators))


def test_micro_batches_that_were_seen_are_in_the_model_and_in_what_managers_are_given() -> None:
    seen = [in_batches(whole, 0.3) for whole in minutes(1)]
    model = model_of(GRAPH, seen, TYPES, interval_s=30.0, trigger_s=0.2)
    (operator,) = model.application.operators
    assert operator.service_time_s == pytest.approx(MEAN_S, rel=0.02)
    assert operator.batching is not None
    # A batch of some 160 tuples on three replicas works for .27 s: 2 % of them are 5 ms.
    assert operator.batching.fixed_s == pytest.approx(0.3, abs=0.006)
    assert operator.batching.trigger_s == 0.2
    (one,) = specs_of(model, OBJECTIVE)
    assert one.batching == operator.batching
    queue = measured_operator(spec_of("vi", one), one, model.rates).queue
    assert queue.in_batches
    assert (queue.batch_fixed_s, queue.trigger_s) == (operator.batching.fixed_s, 0.2)


def test_what_was_seen_without_micro_batches_is_known_as_before() -> None:
    (operator,) = model_of(GRAPH, minutes(1), TYPES, interval_s=30.0, trigger_s=0.5).application.operators
    assert operator.batching is None
    silent = [
        seen._replace(operators=tuple(one._replace(batch_s=0.1, batch_tuples=0.0) for one in seen.operators))
        for seen in minutes(1)
    ]
    (operator,) = model_of(GRAPH, silent, TYPES, interval_s=30.0).application.operators
    assert operator.batching is None, "an empty batch tells nothing of what tuples take"


def batched_on_slow_nodes(policy: str, batching: Batching | None, bound_s: float = 2.0) -> ControllerSpec:
    made = on_slow_nodes(policy)
    (one,) = made.operators
    return replace(made, operators=(replace(one, batching=batching, bound_s=bound_s),))


def test_a_planner_counts_as_late_what_the_model_of_micro_batches_says_is_late() -> None:
    made = batched_on_slow_nodes("vi", Batching(fixed_s=0.3, trigger_s=0.5))
    controller, _ = build_controller(made)
    policy = controller.managers.operators["count"]
    assert isinstance(policy, ValueIteration)
    costs = violation_costs(policy.problem, policy.queue)
    model = MicroBatches(fixed_s=0.3, tuple_s=MEAN_S, trigger_s=0.5)
    for replicas in range(1, 5):
        here = handle_of(policy.deployments, Replicas((replicas,)))
        late = [model.response_time_s(rate, replicas) > 2.0 for rate in level_rates(policy.problem)]
        assert (costs[here] > 0).tolist() == late


def test_who_knows_of_micro_batches_wants_a_second_replica_before_one_is_full() -> None:
    """.9 / (1 - rho) <= 2 s up to rho = .55, 110 tuples/s of 200; a queue waits so long above .998 only."""
    batched = wants(batched_on_slow_nodes("vi", Batching(fixed_s=0.6)), train=False)
    assert [batched[1, rate] for rate in (75, 125)] == [1, 2]
    queued = wants(batched_on_slow_nodes("vi", None), train=False)
    assert [queued[1, rate] for rate in (75, 125)] == [1, 1]


def test_after_training_a_learner_wants_what_the_optimal_policy_wants_of_micro_batches() -> None:
    batching = Batching(fixed_s=0.3, trigger_s=0.5)
    optimal = wants(batched_on_slow_nodes("vi", batching), train=False)
    learned_wants = wants(batched_on_slow_nodes("model-based", batching), train=True)
    assert np.mean([learned_wants[state] == wanted for state, wanted in optimal.items()]) > 0.95


def test_a_bound_that_no_replicas_can_keep_does_not_make_them_give_up() -> None:
    """Empty batches of 2 s take 3 s, so 2 s cannot be kept; 3 / (1 - rho) <= 4.5 s asks for rho <= 1/3."""
    wanted = wants(batched_on_slow_nodes("vi", Batching(fixed_s=2.0)), train=False)
    assert wanted[1, 25] == 1
    assert wanted[2, 225] == 3


def test_a_specification_written_before_there_were_micro_batches_is_read_and_one_with_them_comes_back() -> (
    None
):
    made = batched_on_slow_nodes("vi", Batching(fixed_s=0.3, trigger_s=0.5))
    line = encoded(Header(controller=made))
    assert decoded(line) == Header(controller=made)
    before = json.loads(line)
    for one in (*before["controller"]["operators"], *before["controller"]["application"]["operators"]):
        del one["batching"]
    header = decoded(json.dumps(before))
    assert header == Header(controller=batched_on_slow_nodes("vi", None))


def test_a_slow_learner_is_trained_on_as_many_slots_as_it_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeepPds, "training_slots", 400)
    spec = measured("dql-pds", 1)
    controller, memory = build_controller(spec)
    trained = pretrained(spec, controller, memory, slots=3_000).managers.operators["count"]
    assert isinstance(trained, DeepPdsLearner)
    assert trained.v.replay.stored[0] == 399  # the first slot has nothing before it
    assert trained.last[0] == NEVER, "live intervals do not follow from simulated ones"
