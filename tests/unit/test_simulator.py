"""The simulator: slot semantics, an independent twin in plain Python, parallel runs, changes at run time."""

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
import pytest

from penstock.bench import plain_python as plain
from penstock.bench.simulator import plain_twin
from penstock.compiled import Floats
from penstock.control.forecasting import ForecastingMonitor
from penstock.control.hierarchy import Managers
from penstock.control.journal import Entry
from penstock.control.loop import Controller, first_memory, tick
from penstock.control.ports import Monitor
from penstock.control.safety_settings import UNGUARDED
from penstock.control.spec import Manager
from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.observation import OperatorObservation
from penstock.policy.api import OperatorPolicy
from penstock.policy.application.grant_all import GrantAll
from penstock.policy.parameters import Param
from penstock.policy.registry import Level, entries, entry, load
from penstock.runtimes.sim.episode import world_of
from penstock.runtimes.sim.operator import SimulatedOperator
from penstock.simulation.one_operator import operator_of
from penstock.simulation.play import run, run_all
from penstock.simulation.presets import FirstReplica
from penstock.simulation.result import History
from penstock.simulation.spec import OneOperator, OperatorGraph, Shift, Simulation
from penstock.simulation.truth import first_deployment, foresight_of

published = partial(OneOperator, as_published=True)


class Pages:
    """A journal kept in memory."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def append(self, entry: Entry) -> None:
        self.entries.append(entry)


def controller_of(policy: OperatorPolicy[Any], node_types: tuple[NodeType, ...]) -> Controller:
    managers = Managers(operators={"op": policy}, application=GrantAll())
    return Controller(managers=managers, node_types=node_types, safety=UNGUARDED)


@pytest.mark.parametrize("infrastructure", ["A:1", "A:3", "B-old:3", "linear:4"])
@pytest.mark.parametrize("policy", ["threshold-c", "threshold-s", "ql", "ql-pds", "ql-pds-plus"])
def test_the_kernel_and_plain_python_take_the_same_decisions(
    policy: str, infrastructure: str, walk: Floats
) -> None:
    spec = published(operator_policy=Manager(policy), infrastructure=infrastructure, max_replicas=6, seed=4)
    setting, twin, first = plain_twin(spec, walk)
    expected = plain.simulate(setting, twin, walk.tolist(), first)
    outcome = run(spec, walk)
    assert round(outcome.violations_pct * walk.size / 100) == expected.violations
    assert round(outcome.reconfigurations_pct * walk.size / 100) == expected.reconfigurations
    assert outcome.resource_cost * walk.size == pytest.approx(expected.resources, rel=1e-12)


@pytest.mark.parametrize("policy", ["ql-pds", "ql-pds-plus"])
def test_the_equations_update_is_the_plain_one_too(policy: str, walk: Floats) -> None:
    spec = published(operator_policy=Manager(policy), max_replicas=6, published_updates=False)
    setting, twin, first = plain_twin(spec, walk)
    expected = plain.simulate(setting, twin, walk.tolist(), first)
    assert round(run(spec, walk).reconfigurations_pct * walk.size / 100) == expected.reconfigurations


# As published all, and by the mean over replicas of different nodes those that look at it.
BATCHES = [
    *(published(operator_policy=Manager(policy), max_replicas=6) for policy in entries(Level.OPERATOR)),
    *(
        OneOperator(operator_policy=Manager(policy), max_replicas=6, first_replica=FirstReplica.CHEAPEST)
        for policy in ("threshold-s", "threshold-0", "ds2")
    ),
]


@pytest.mark.parametrize("spec", BATCHES, ids=lambda spec: f"{spec.operator_policy.name} {spec.as_published}")
def test_live_decisions_are_those_of_the_batch(spec: OneOperator, walk: Floats) -> None:
    """The control loop, one observation at a time, against the compiled episode."""
    rates = walk[:300]
    batch = run(spec, rates, training=rates, with_history=True)
    _, policy_rng = np.random.default_rng(spec.seed).spawn(2)
    op = operator_of(spec, rates, rates, spec.seed)
    manager = entry(Level.OPERATOR, spec.operator_policy.name).build(op, {})
    world = world_of(op, charge_before=spec.variant.charge_before)
    first = first_deployment(op, manager, spec.variant.first_replica)
    simulated = SimulatedOperator("op", world, rates, first)
    journal = Pages()
    controller = controller_of(manager, op.node_types)
    memory = first_memory(controller, seed=1)._replace(rngs={"op": policy_rng})
    foresight = foresight_of(spec)
    monitor: Monitor = simulated
    if foresight is not None:
        monitor = ForecastingMonitor(simulated, lambda _: foresight(rates), 60.0)
    while not simulated.finished:
        _, memory = tick(controller, memory, monitor, journal, simulated)
    assert batch.history is not None
    assert [slot.cost for slot in simulated.played] == batch.history.cost.tolist()
    assert len(journal.entries) == rates.size


def test_a_policy_in_plain_python_runs_in_the_same_simulator(walk: Floats) -> None:
    class OneMoreWhenLate:
        def initial(self) -> int:
            return 0

        def decide(
            self, memory: int, seen: OperatorObservation, rng: np.random.Generator
        ) -> tuple[Decision, int]:
            if seen.response_time_s is None or seen.response_time_s <= 0.05 or seen.replicas.total == 6:
                return Hold("in time"), memory
            return Scale(target=seen.replicas.changed(0, 1), score=1.0, reason="late"), memory + 1

    op = operator_of(published(operator_policy=Manager("fixed"), max_replicas=6), walk, walk, 1)
    simulated = SimulatedOperator("op", world_of(op, charge_before=True), walk[:200], 0)
    controller = controller_of(OneMoreWhenLate(), op.node_types)
    memory = first_memory(controller, seed=1)
    while not simulated.finished:
        _, memory = tick(controller, memory, simulated, Pages(), simulated)
    assert sum(slot.reconfigured for slot in simulated.played) == memory.managers.operators["op"] > 0


@dataclass(frozen=True, kw_only=True)
class PlainThreshold:
    """Cardellini 2018, sec. 5.1, for one node type; entered nowhere."""

    max_replicas: int
    threshold: Annotated[float, Param("utilisation at which it scales out", above=0, below=1)] = 0.7

    def initial(self) -> None:
        return None

    def decide(
        self, memory: None, seen: OperatorObservation, rng: np.random.Generator
    ) -> tuple[Decision, None]:
        total, busy = seen.replicas.total, seen.utilisation
        if busy is None:
            return Hold("utilisation not measured"), None
        if busy > self.threshold and total < self.max_replicas:
            return Scale(target=seen.replicas.changed(0, +1), score=1.0, reason="busy"), None
        if total > 1 and busy <= self.threshold and busy * total / (total - 1) < 0.75 * self.threshold:
            return Scale(target=seen.replicas.changed(0, -1), score=1.0, reason="idle"), None
        return Hold("neither"), None


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize(
    "compiled",
    [
        OneOperator(operator_policy=Manager("threshold-0"), infrastructure="A:1"),
        OperatorGraph(operator_policy=Manager("threshold-0"), infrastructure="A:1", application="diamond"),
    ],
    ids=["operator", "diamond"],
)
def test_a_policy_in_plain_python_has_the_figures_of_its_compiled_twin(
    compiled: Simulation, as_published: bool, walk: Floats
) -> None:
    plain = Manager(load(Level.OPERATOR, f"{__name__}:PlainThreshold").name, {"threshold": 0.6})
    known = replace(compiled.operator_policy, parameters=plain.parameters)
    compiled = replace(compiled, as_published=as_published, operator_policy=known)
    theirs = run(compiled, walk[:400], with_history=True)
    ours = run(replace(compiled, operator_policy=plain), walk[:400], with_history=True)
    assert theirs.reconfigurations_pct > 0
    for figure in fields(ours):
        if figure.name not in ("spec", "seconds", "history"):
            assert getattr(ours, figure.name) == getattr(theirs, figure.name), figure.name
    for column in fields(History):
        assert getattr(ours.history, column.name).tolist() == getattr(theirs.history, column.name).tolist()


def test_a_policy_in_plain_python_remembers_across_a_shift_of_prices() -> None:
    heard.clear()
    name = load(Level.OPERATOR, f"{__name__}:Attentive").name
    run(OneOperator(operator_policy=Manager(name), price_shift=Shift(slot=2, factor=3)), np.full(5, 100.0))
    remembered, times, draws = zip(*heard, strict=True)
    assert remembered == (0, 1, 2, 3, 4)
    assert times == (60.0, 120.0, 180.0, 240.0, 300.0)
    assert len(set(draws)) == 5


heard: list[tuple[int, float, float]] = []


class Attentive:
    """Counts its decisions, and tells the test what it was given for each."""

    def initial(self) -> int:
        return 0

    def decide(
        self, memory: int, seen: OperatorObservation, rng: np.random.Generator
    ) -> tuple[Decision, int]:
        heard.append((memory, seen.at_s, rng.random()))
        return Hold("listening"), memory + 1


def test_a_slot_is_judged_by_the_deployment_in_force_and_charged_as_asked() -> None:
    """Two slots by hand: one replica at 170 t/s is over 50 ms, the second replica is added at once."""
    rates = np.array([170.0, 170.0])
    mean, busy = 1 / 180, 170 / 180
    late = mean + 170 * 1.5 * mean**2 / (2 * (1 - busy))
    assert late > 0.05
    spec = OneOperator(
        operator_policy=Manager("threshold-0"), infrastructure="A:1", first_replica=FirstReplica.FIRST
    )
    before = run(replace(spec, as_published=True), rates, with_history=True)
    assert (before.violations_pct, before.reconfigurations_pct) == (50.0, 50.0)
    assert before.resource_cost == (1 + 2) / 2  # charged before the decision
    after = run(spec, rates)
    assert after.resource_cost == (2 + 2) / 2  # charged after it
    assert before.history is not None
    # C_max as published: 10 replicas x the largest speedup of all ten types (2.0).
    assert before.history.cost.tolist() == pytest.approx([0.6 + 0.2 * 1 / 20 + 0.2, 0.2 * 2 / 20])
    assert before.history.response_time_s[0] == pytest.approx(late)


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize(
    "spec",
    [
        OneOperator(operator_policy=Manager("ql-pds"), infrastructure="A:2"),
        OperatorGraph(operator_policy=Manager("ql-pds"), infrastructure="A:2", application="pipeline"),
    ],
    ids=["operator", "pipeline"],
)
def test_a_history_adds_up_to_the_outcome(spec: Simulation, as_published: bool, walk: Floats) -> None:
    spec = replace(spec, as_published=as_published)
    outcome = run(spec, walk, with_history=True)
    happened = outcome.history
    assert happened is not None
    assert happened.resources.mean() == pytest.approx(outcome.resource_cost)
    assert happened.cost.mean() == pytest.approx(outcome.avg_cost)
    # In force during a slot is what was decided in the one before: the means differ by the ends only.
    assert happened.replicas.mean() == pytest.approx(outcome.mean_replicas, abs=30 / walk.size)


def test_the_paper_normalises_by_the_types_on_offer() -> None:
    rates = np.full(10, 10.0)
    still = OneOperator(operator_policy=Manager("fixed", {"replicas": 1}), infrastructure="A:3")
    cheapest = run(still, rates)
    assert cheapest.avg_cost == pytest.approx(0.2 * 0.7 / (10 * 1.3))


def test_results_do_not_depend_on_the_number_of_threads(walk: Floats) -> None:
    jobs = [
        (OneOperator(operator_policy=Manager(policy), seed=seed), walk, None)
        for policy in ("ql", "ql-fa")
        for seed in range(4)
    ]

    def costs(threads: int) -> list[float]:
        return [outcome.avg_cost for outcome in run_all(jobs, threads=threads)]

    assert costs(1) == costs(4)


def test_another_seed_is_another_run_and_the_same_seed_the_same(walk: Floats) -> None:
    def cost(seed: int) -> float:
        return run(OneOperator(operator_policy=Manager("ql"), seed=seed), walk).avg_cost

    assert cost(1) == cost(1) != cost(2)


def test_prices_that_rise_are_paid_and_known_to_learners() -> None:
    rates = np.full(400, 60.0)
    calm = run(published(operator_policy=Manager("ql-pds")), rates, with_history=True)
    shocked = run(
        published(operator_policy=Manager("ql-pds"), price_shift=Shift(slot=200, factor=100)),
        rates,
        with_history=True,
    )
    assert calm.history is not None
    assert shocked.history is not None
    assert calm.history.cost[:200].tolist() == shocked.history.cost[:200].tolist()
    # Only the last type keeps its price; a learner that knows prices moves to it within a few slots.
    assert shocked.replicas_by_type[2] > calm.replicas_by_type[2]
    assert shocked.history.resources[-1] == pytest.approx(1.3 * shocked.history.replicas[-1])


def test_a_plan_made_off_line_does_not_hear_of_new_prices(walk: Floats) -> None:
    calm = run(published(operator_policy=Manager("vi")), walk, with_history=True)
    shocked = run(
        published(operator_policy=Manager("vi"), price_shift=Shift(slot=2000, factor=100)),
        walk,
        with_history=True,
    )
    assert calm.history is not None
    assert shocked.history is not None
    assert calm.history.replicas.tolist() == shocked.history.replicas.tolist()
    assert shocked.resource_cost > calm.resource_cost


def test_ten_node_types_with_twenty_replicas_run_on_hashed_tables(walk: Floats) -> None:
    for policy in ("ql", "ql-pds", "ql-pds-plus", "threshold-c", "ql-fa"):
        outcome = run(
            OneOperator(operator_policy=Manager(policy), infrastructure="A:10", max_replicas=20), walk
        )
        assert outcome.slots == walk.size
        assert 0 < outcome.avg_cost < 1


@pytest.mark.parametrize("rates", [[1.0, np.nan], [-1.0], [], [[1.0, 2.0]]])
def test_what_is_no_trace_is_refused_in_python_too(rates: list[float]) -> None:
    with pytest.raises(InputError, match="trace 'rates'"):
        run(OneOperator(operator_policy=Manager("threshold-c")), np.array(rates))


def summed(setting: plain.Setting, *, node_type: int, high: float, low: float) -> plain.Policy:
    """Cardellini 2018, sec. 5.1, on a list of replicas: one above U adds, sum / (n - 1) < c U removes."""

    def decide(counts: plain.Counts, rate: float, response: float) -> plain.Counts:
        speeds = [s for s, count in zip(setting.speedups, counts, strict=True) for _ in range(count)]
        loads = [rate / len(speeds) * setting.service_time_s / speed for speed in speeds]
        delta = 0
        if max(loads) > high:
            delta = 1 if len(loads) < setting.max_replicas else 0
        elif len(loads) > 1 and sum(loads) / (len(loads) - 1) < low:
            delta = -1
        return tuple(n + delta if index == node_type else n for index, n in enumerate(counts))

    return decide


@pytest.mark.parametrize(
    ("policy", "node_type"), [("threshold-c", 1), ("threshold-s", 2), ("threshold-0", 0)]
)
def test_with_mixed_node_types_the_threshold_scales_in_by_the_sum_over_replicas(
    policy: str, node_type: int, walk: Floats
) -> None:
    """Speedups 1, .7 and 1.3; the first replica is of type 0 and stays."""
    spec = OneOperator(operator_policy=Manager(policy), max_replicas=6, first_replica=FirstReplica.FIRST)
    setting, worst, first = plain_twin(spec, walk)
    twin = summed(setting, node_type=node_type, high=0.7, low=0.75 * 0.7)
    expected = plain.simulate(setting, twin, walk.tolist(), first)
    outcome = run(spec, walk)
    assert round(outcome.reconfigurations_pct * walk.size / 100) == expected.reconfigurations
    assert round(outcome.violations_pct * walk.size / 100) == expected.violations
    by_the_worst = plain.simulate(setting, worst, walk.tolist(), first)
    assert (by_the_worst == expected) == (node_type == 0)  # or the test would show nothing
