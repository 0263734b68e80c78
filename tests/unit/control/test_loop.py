"""One round from seeing to doing, saved in between, and decided again from the journal."""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from safety_cases import ONE_TYPE, app, controller_spec, one, only

from penstock.compiled import Floats
from penstock.control.hierarchy import Managers
from penstock.control.journal import Entry, Header, Remembered, Ticked, decoded, encoded
from penstock.control.loop import Controller, ControllerMemory, first_memory, in_place, plan, tick
from penstock.control.orders import Order, Override, Pause
from penstock.control.replay import replay
from penstock.control.safety_settings import UNGUARDED, SafetySettings
from penstock.control.saved import as_plain, of_plain, restored, saved
from penstock.control.spec import ControllerSpec, Manager
from penstock.domain.application import Operator, pipeline
from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import Request, Verdict
from penstock.perf.deployments import deployments
from penstock.perf.downtime import PauseAndResume
from penstock.perf.queueing import m_m_1
from penstock.policy.application.grant_all import GrantAll
from penstock.policy.application.token_bucket import TokenBucket
from penstock.policy.kernel import UNEXPLAINED
from penstock.policy.operator.node_choice import NodeChoice
from penstock.policy.operator.threshold import Threshold
from penstock.policy.registry import Level, entries
from penstock.runtimes.sim.application import OperatorModel, SimulatedApplication
from penstock.runtimes.sim.episode import world_of
from penstock.runtimes.sim.operator import SimulatedOperator
from penstock.simulation.one_operator import operator_of
from penstock.simulation.spec import OneOperator
from penstock.simulation.truth import first_deployment


@dataclass(frozen=True)
class OneMore:
    """Wants one replica more, always, and counts how often it was asked."""

    def initial(self) -> int:
        return 0

    def decide(self, memory: int, seen: OperatorObservation, rng: Generator) -> tuple[Decision, int]:
        more = Scale(target=seen.replicas.changed(0, 1), score=float(rng.random()), reason="always")
        return more, memory + 1


class Still:
    """A world in which nothing happens by itself; it keeps what was asked of it, in order."""

    def __init__(self) -> None:
        self.at_s, self.replicas = 0.0, 2
        self.log: list[object] = []

    def observe(self) -> ApplicationObservation:
        self.at_s += 30.0
        return app(self.at_s, one(self.at_s, self.replicas))

    def append(self, entry: Entry) -> None:
        self.log.append(entry)

    def apply(self, verdict: Verdict) -> None:
        self.log.append(verdict)
        for request in verdict.granted:
            self.replicas = getattr(request, "target", Replicas((9,))).total


def one_more(**changes: Any) -> Controller:
    managers = Managers(operators={"count": OneMore()}, application=GrantAll())
    return replace(Controller(managers=managers, node_types=ONE_TYPE, safety=UNGUARDED), **changes)


def test_what_was_decided_is_written_down_before_it_is_done() -> None:
    world, controller = Still(), one_more()
    tick(controller, first_memory(controller, seed=1), world, world, world)
    written, done = world.log
    assert isinstance(written, Ticked)
    assert isinstance(done, Verdict)
    assert written.plan.to_do == done
    assert world.replicas == 3


def test_what_cannot_be_written_down_is_not_done() -> None:
    class Full(Still):
        def append(self, entry: Entry) -> None:
            raise OSError("disk full")

    world, controller = Full(), one_more()
    with pytest.raises(OSError, match="disk full"):
        tick(controller, first_memory(controller, seed=1), world, world, world)
    assert world.replicas == 2


def test_advising_decides_the_same_writes_it_down_and_changes_nothing() -> None:
    advised, acted = Still(), Still()
    for world, advise in ((advised, True), (acted, False)):
        controller = one_more(advise=advise)
        tick(controller, first_memory(controller, seed=1), world, world, world)
    written, other = advised.log[0], acted.log[0]
    assert isinstance(written, Ticked)
    assert isinstance(other, Ticked)
    assert written.plan == other.plan._replace(advise=True)
    assert written.plan.granted
    assert advised.replicas == 2


def test_an_adviser_does_not_wait_for_changes_nobody_made() -> None:
    world, controller = Still(), one_more(advise=True, safety=only(warm_up_s=60.0))
    memory = first_memory(controller, seed=1)
    for _ in range(5):
        _, memory = tick(controller, memory, world, world, world)
    advice = [len(entry.plan.granted) for entry in world.log if isinstance(entry, Ticked)]
    assert advice == [0, 0, 1, 1, 1]


def test_planning_leaves_the_memory_it_was_given_as_it_was() -> None:
    controller = one_more()
    memory = first_memory(controller, seed=1)
    seen = app(30.0, one(30.0, 2))
    first, _ = plan(controller, memory, seen)
    again, after = plan(controller, memory, seen)
    assert first == again
    assert memory.managers.operators == {"count": 0}
    assert after.managers.operators == {"count": 1}


def test_a_veto_after_the_grant_lets_nobody_rest() -> None:
    managers = Managers(operators={"count": OneMore()}, application=GrantAll(), rest_s=300.0)
    controller = one_more(managers=managers)
    memory = first_memory(controller, seed=1)
    paused, memory = plan(controller, memory, app(30.0, one(30.0, 2)), (Pause(until_s=60.0),))
    assert paused.verdict.granted
    assert paused.granted == ()
    assert paused.to_do.refused == paused.vetoes
    after, memory = plan(controller, memory, app(60.0, one(60.0, 2)))
    assert after.granted
    resting, _ = plan(controller, memory, app(90.0, one(90.0, 3)))
    assert resting.decisions == {"count": Hold("resting until 300 s after the last change")}


# --- Without a safety chain. --------------------------------------------------------------------


def test_without_a_safety_chain_all_that_was_granted_is_done_and_nothing_is_tracked() -> None:
    guarded, unguarded = Still(), Still()
    for world, safety in ((guarded, SafetySettings()), (unguarded, None)):
        controller = one_more(safety=safety)
        _, memory = tick(controller, first_memory(controller, seed=1), world, world, world)
        written = world.log[0]
        assert isinstance(written, Ticked)
        assert len(written.plan.verdict.granted) == 1
        assert bool(memory.safety.tracks) is (safety is not None)
    assert (guarded.replicas, unguarded.replicas) == (2, 3)  # the first minute is warm-up


def test_an_order_to_a_controller_without_a_safety_chain_is_refused() -> None:
    controller = one_more(safety=None)
    with pytest.raises(InputError, match=r"Pause\(until_s=60.0\): orders need the safety chain"):
        plan(
            controller,
            first_memory(controller, seed=1),
            app(30.0, one(30.0, 2)),
            (Pause(until_s=60.0),),
        )


def test_a_memory_survives_a_restart_without_a_safety_chain() -> None:
    controller = one_more(safety=None)
    _, memory = plan(controller, first_memory(controller, seed=1), app(30.0, one(30.0, 2)))
    again = restored(controller, of_plain(json.loads(json.dumps(as_plain(saved(memory))))))
    first, _ = plan(controller, memory, app(60.0, one(60.0, 3)))
    second, _ = plan(controller, again, app(60.0, one(60.0, 3)))
    assert first == second
    assert again.managers == memory.managers


@pytest.mark.parametrize(
    "order",
    [Override(operator="count", target=Replicas((4,))), Pause(until_s=90.0)],
    ids=["override", "pause"],
)
def test_an_order_in_force_is_not_dropped_with_the_safety_chain(order: Order) -> None:
    guarded = one_more()
    _, memory = plan(guarded, first_memory(guarded, seed=1), app(30.0, one(30.0, 2)), (order,))
    with pytest.raises(InputError, match="orders are in force"):
        restored(one_more(safety=None), saved(memory))


def test_a_run_without_a_safety_chain_replays_from_its_journal() -> None:
    world, controller = Still(), one_more(safety=None)
    memory = first_memory(controller, seed=1)
    world.append(Header(controller=controller_spec(safety=None)))
    for _ in range(3):
        _, memory = tick(controller, memory, world, world, world)
    written = [decoded(encoded(entry)) for entry in world.log if isinstance(entry, Header | Ticked)]
    header = written[0]
    assert isinstance(header, Header)
    assert header.controller.safety is None
    answer = replay(written, lambda spec: (again := one_more(safety=spec.safety), first_memory(again, 1)))
    assert (answer.ticks, answer.difference) == (3, None)


def test_operator_managers_run_at_their_own_pace() -> None:
    managers = Managers(
        operators={"count": OneMore()}, application=GrantAll(), operator_period_s={"count": 90.0}
    )
    world, controller = Still(), one_more(managers=managers)
    memory = first_memory(controller, seed=1)
    for _ in range(7):
        _, memory = tick(controller, memory, world, world, world)
    asked = ["count" in entry.plan.decisions for entry in world.log if isinstance(entry, Ticked)]
    assert asked == [True, False, False, True, False, False, True]


# --- Saved and restored. ------------------------------------------------------------------------


def simulated(policy: str, rates: Floats) -> tuple[Controller, ControllerMemory, SimulatedOperator]:
    spec = OneOperator(operator_policy=Manager(policy), max_replicas=5, seed=3)
    known = operator_of(spec, rates, rates, seed=2)
    manager = spec.operator_policy.entry(Level.OPERATOR).build(known, spec.operator_policy.parameters)
    controller = Controller(
        managers=Managers(
            operators={"op": manager},
            application=TokenBucket(low_s=0.03, high_s=0.031, period_s=60.0, capacity=2),
        ),
        node_types=known.node_types,
        safety=only(scale_in_window_s=180.0, max_nodes=4, warm_up_s=60.0, ineffective_hold_s=600.0),
    )
    first = first_deployment(known, manager, spec.variant.first_replica)
    operator = SimulatedOperator("op", world_of(known), rates, first)
    return controller, first_memory(controller, seed=5), operator


def decisions_of(world: Still) -> list[tuple[Decision, tuple[Request, ...]]]:
    return [(e.plan.decisions["op"], e.plan.granted) for e in world.log if isinstance(e, Ticked)]


@pytest.mark.parametrize("policy", entries(Level.OPERATOR))
def test_a_restored_controller_decides_as_if_it_had_never_stopped(policy: str, walk: Floats) -> None:
    rates = walk[:200]
    controller, memory, operator = simulated(policy, rates)
    whole, parts = Still(), Still()
    while not operator.finished:
        _, memory = tick(controller, memory, operator, whole, operator)

    controller, memory, operator = simulated(policy, rates)
    for slot in range(rates.size):
        if slot == 90:
            text = json.dumps(as_plain(saved(memory)), allow_nan=False)
            controller, _, _ = simulated(policy, rates)
            memory = restored(controller, of_plain(json.loads(text)))
        _, memory = tick(controller, memory, operator, parts, operator)
    assert decisions_of(parts) == decisions_of(whole)


def test_a_memory_of_another_controller_is_refused_by_name() -> None:
    rates = np.full(10, 100.0)
    kept = saved(simulated("ql", rates)[1])
    with pytest.raises(InputError, match="operator 'op': saved memory"):
        restored(simulated("ql-pds", rates)[0], kept)
    with pytest.raises(InputError, match="operator 'count': nothing was saved for it"):
        restored(one_more(), kept)
    with pytest.raises(InputError, match="schema None"):
        restored(one_more(), replace(kept, state={}))


def test_overrides_and_pauses_survive_a_restart() -> None:
    controller = one_more()
    orders = (Override(operator="count", target=Replicas((4,))), Pause(until_s=60.0))
    _, memory = plan(controller, first_memory(controller, seed=1), app(30.0, one(30.0, 2)), orders)
    again = restored(controller, saved(memory))
    assert again.safety == memory.safety
    made, _ = plan(controller, again, app(60.0, one(60.0, 2)))
    assert [getattr(request, "target", None) for request in made.granted] == [Replicas((4,))]


# --- In place. ----------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", list(entries(Level.OPERATOR)))
def test_a_loop_that_never_goes_back_plans_the_same_in_place(policy: str, walk: Floats) -> None:
    rates = walk[:200]
    pure, own = Still(), Still()
    controller, memory, operator = simulated(policy, rates)
    while not operator.finished:
        _, memory = tick(controller, memory, operator, pure, operator)
    controller, given, operator = simulated(policy, rates)
    given = in_place(controller, given, explains=True)
    while not operator.finished:
        _, given = tick(controller, given, operator, own, operator)
    assert own.log == pure.log
    # What it has learned can be saved, and gone on with where nothing is written over.
    kept, after = as_plain(saved(memory)), restored(controller, saved(given))
    assert as_plain(saved(given)) == kept
    assert as_plain(saved(after)) == kept
    assert not after.in_place


def test_in_place_reasons_are_left_out_and_nothing_else(walk: Floats) -> None:
    rates = walk[:100]
    pure, silent = Still(), Still()
    controller, memory, operator = simulated("ql-pds-plus", rates)
    while not operator.finished:
        _, memory = tick(controller, memory, operator, pure, operator)
    controller, memory, operator = simulated("ql-pds-plus", rates)
    memory = in_place(controller, memory)
    while not operator.finished:
        _, memory = tick(controller, memory, operator, silent, operator)
    told, untold = decisions_of(pure), decisions_of(silent)
    assert {decision.reason for decision, _ in untold} == {UNEXPLAINED}
    assert [replace(decision, reason="") for decision, _ in told] == [
        replace(decision, reason="") for decision, _ in untold
    ]
    assert [[r.operator for r in granted] for _, granted in told] == [
        [r.operator for r in granted] for _, granted in untold
    ]


def test_a_policy_in_plain_python_runs_in_place_as_it_is() -> None:
    controller = one_more()
    memory = in_place(controller, first_memory(controller, seed=1))
    seen = app(30.0, one(30.0, 2))
    pure, _ = plan(controller, first_memory(controller, seed=1), seen)
    first, memory = plan(controller, memory, seen)
    again, memory = plan(controller, memory, seen)
    assert first == pure
    assert again != first  # the generator has moved on
    assert memory.managers.operators == {"count": 2}


# --- Replay. ------------------------------------------------------------------------------------


def recorded(rates: Floats, *, restart_at: int) -> list[Entry]:
    """A run of Q-learning, with a pause and a restart in it, as read back from its lines."""
    controller, memory, operator = simulated("ql", rates)
    header = Header(
        controller=controller_spec(seed=5, node_types=controller.node_types, safety=controller.safety)
    )
    world = Still()
    world.append(header)
    for slot in range(rates.size):
        if slot == restart_at:
            world.append(header)
            world.append(Remembered(memory=as_plain(saved(memory))))
        orders = (Pause(until_s=60.0 * slot + 300.0),) if slot == 30 else ()
        _, memory = tick(controller, memory, operator, world, operator, orders)
    written = [entry for entry in world.log if isinstance(entry, Header | Remembered | Ticked)]
    return [decoded(encoded(entry)) for entry in written]


def test_a_journal_replays_to_the_same_decisions(walk: Floats) -> None:
    rates = walk[:150]
    written = recorded(rates, restart_at=80)
    answer = replay(written, lambda spec: simulated("ql", rates)[:2])
    assert (answer.ticks, answer.difference) == (150, None)
    assert any(isinstance(e, Ticked) and e.plan.vetoes for e in written)


def test_a_replay_names_the_first_difference(walk: Floats) -> None:
    rates = walk[:60]
    written = recorded(rates, restart_at=20)
    other = replay(written, lambda spec: simulated("ql-pds", rates)[:2])
    assert other.difference is not None
    assert other.difference.tick == other.ticks
    assert "decision of operator 'op'" in str(other.difference)

    written = recorded(rates, restart_at=20)
    vetoed = next(i for i, e in enumerate(written) if isinstance(e, Ticked) and e.plan.vetoes)
    forged = written[vetoed]
    assert isinstance(forged, Ticked)
    written[vetoed] = forged._replace(plan=forged.plan._replace(vetoes=()))
    answer = replay(written, lambda spec: simulated("ql", rates)[:2]).difference
    assert answer is not None
    assert (answer.part, answer.at_s, answer.recorded) == ("vetoes", forged.seen.at_s, "0 of them")


def test_a_run_that_was_restarted_a_thousand_times_is_built_once_where_it_decides(walk: Floats) -> None:
    rates, built = walk[:5], list[ControllerSpec]()

    def build(spec: ControllerSpec) -> tuple[Controller, ControllerMemory]:
        built.append(spec)
        return simulated("ql", rates)[:2]

    header, *others = recorded(rates, restart_at=99)
    answer = replay([*[header] * 1000, *others], build)
    assert (answer.ticks, answer.difference, len(built)) == (5, None, 1)


def test_a_journal_without_a_header_cannot_be_replayed(walk: Floats) -> None:
    with pytest.raises(InputError, match="does not begin with a header"):
        replay(recorded(walk[:5], restart_at=99)[1:], lambda spec: simulated("ql", walk[:5])[:2])


# --- A whole application. -----------------------------------------------------------------------


def played(safety: SafetySettings) -> tuple[SimulatedApplication, list[Ticked]]:
    """A pipeline of two under threshold policies, a load that jumps up and down every four minutes."""
    first = Operator(name="first", service_time_s=0.004, max_replicas=4)
    second = Operator(name="second", service_time_s=0.002, max_replicas=4)
    space = deployments(ONE_TYPE, 4)
    world = SimulatedApplication(
        application=pipeline("two", first, second),
        objective=Objective(response_time_s=0.05),
        models={
            operator.name: OperatorModel(
                queue=m_m_1(operator.service_time_s), deployments=space, first=Replicas((2,))
            )
            for operator in (first, second)
        },
        rates=np.tile(np.repeat([300.0, 100.0], 8), 6),
        protocol=PauseAndResume(fixed_s=5.0),
    )
    policy = Threshold(node_types=ONE_TYPE, deployments=space, node_choice=NodeChoice.FIRST)
    managers = Managers(operators={"first": policy, "second": policy}, application=GrantAll())
    controller = Controller(managers=managers, node_types=ONE_TYPE, safety=safety)
    memory, pages = first_memory(controller, seed=1), Still()
    while not world.finished:
        _, memory = tick(controller, memory, world, pages, world)
    return world, [entry for entry in pages.log if isinstance(entry, Ticked)]


def test_the_same_loop_runs_a_simulated_application_and_safety_stops_its_flapping() -> None:
    flapping, _ = played(UNGUARDED)
    calm, rounds = played(SafetySettings())
    changes = [sum(slot.reconfigured for slot in world.played) for world in (flapping, calm)]
    assert changes[1] <= changes[0] / 2
    assert len(rounds) == len(calm.played)
    late = [sum(slot.violated for slot in world.played) for world in (flapping, calm)]
    assert late[1] <= late[0]
    assert any("replicas were wanted within" in veto.reason for entry in rounds for veto in entry.plan.vetoes)
