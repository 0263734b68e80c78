"""Downtime, the buffer at the source, and the managers' rounds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest

from penstock.control.hierarchy import EXCHANGE, Managers, decide, first_memory
from penstock.control.loop import Controller, plan
from penstock.control.loop import first_memory as controller_memory
from penstock.control.plan import Plan
from penstock.control.safety_settings import UNGUARDED
from penstock.domain.application import Application, Operator, Sink, Source, Stream, pipeline
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import Infrastructure, Link, Node, NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation
from penstock.domain.request import Migrate, Request, ScaleIn, ScaleOut, Verdict
from penstock.perf.deployments import deployments
from penstock.perf.downtime import PauseAndResume, state_moved
from penstock.perf.queueing import m_m_1
from penstock.policy.application.drs import DrsManager
from penstock.policy.application.grant_all import GrantAll
from penstock.policy.application.token_bucket import TokenBucket
from penstock.policy.node.migrate import SenderInitiated
from penstock.policy.operator.node_choice import NodeChoice
from penstock.policy.operator.threshold import Threshold
from penstock.runtimes.sim.ahead import buffered
from penstock.runtimes.sim.application import ColdStart, OperatorModel, SimulatedApplication

WORKER = NodeType(name="worker", speedup=1.0, price=1.0)
SPACE = deployments((WORKER,), 4)
FIRST = Operator(name="first", service_time_s=0.004, stateful=True, state_bytes=300_000_000, max_replicas=4)
SECOND = Operator(name="second", service_time_s=0.002, max_replicas=4)
TWO = pipeline("two", FIRST, SECOND)


def simulated(rates: list[float], *, fixed_s: float = 10.0, **changes: object) -> SimulatedApplication:
    models = {
        operator.name: OperatorModel(
            queue=m_m_1(operator.service_time_s), deployments=SPACE, first=Replicas((2,))
        )
        for operator in TWO.operators
    }
    plain = SimulatedApplication(
        application=TWO,
        objective=Objective(response_time_s=0.05),
        models=models,
        rates=np.array(rates),
        protocol=PauseAndResume(fixed_s=fixed_s),
    )
    for name, value in changes.items():
        setattr(plain, name, value)
    return plain


def to(operator: str, replicas: int, *nodes: str) -> ScaleOut:
    return ScaleOut(operator=operator, target=Replicas((replicas,)), nodes=nodes, score=1.0, reason="test")


def test_without_a_change_the_response_time_is_the_sum_of_the_queues() -> None:
    app = simulated([100.0])
    seen = app.observe()
    expected = sum(s / (1 - 50 * s) for s in (0.004, 0.002))
    assert seen.response_time_s == pytest.approx(expected)
    assert [o.arrival_rate for o in seen.operators] == [100.0, 100.0]


def test_what_arrives_during_a_pause_waits_and_is_let_in_afterwards() -> None:
    app = simulated([100.0, 100.0, 100.0])
    app.observe()
    app.apply(Verdict((to("second", 3),)))
    # Ten seconds of pause, 1000 tuples, drained at .98 x 500/s (two replicas of 4 ms) less 100/s.
    drain_s = 1000 / (0.98 * 500 - 100)
    wait = (1000 * 10 / 2 + 1000 * drain_s / 2) / (100 * 30)
    inside = 100 * 30 / 20
    queues = 0.004 / (1 - inside / 2 * 0.004) + 0.002 / (1 - inside / 3 * 0.002)
    assert app.observe().response_time_s == pytest.approx(wait + queues)
    app.apply(Verdict(()))
    assert app.played[1].downtime_s == 10.0
    assert app.played[1].violated
    assert app.played[1].waiting == 0.0
    assert app.observe().response_time_s == pytest.approx(0.004 / 0.8 + 0.002 / (1 - 100 / 3 * 0.002))


def test_an_overloaded_application_keeps_a_backlog_and_works_it_off() -> None:
    app = simulated([600.0, 100.0, 100.0])
    waiting = []
    for _ in range(3):
        app.observe()
        app.apply(Verdict(()))
        waiting.append(app.played[-1].waiting)
    excess = (600 - 0.98 * 500) * 30
    assert waiting == pytest.approx([excess, 0.0, 0.0])


@pytest.mark.parametrize(
    ("rate", "waiting", "pause"),
    [(8000.0, 50_000.0, 6.0), (8000.0, 0.0, 6.0), (20_000.0, 0.0, 0.0), (100.0, 200_000.0, 0.0)],
)
def test_the_buffer_lets_tuples_in_one_after_another(rate: float, waiting: float, pause: float) -> None:
    """Tuple by tuple: each is let in 1/capacity after the one before it, none before the pause is over."""
    slot, capacity = 30.0, 14_000.0
    arrivals = np.concatenate([np.zeros(int(waiting)), (np.arange(int(rate * slot)) + 0.5) / rate])
    gaps = np.arange(arrivals.size) / capacity
    # r_i = max(a_i, pause, r_(i-1) + 1/capacity), unrolled.
    let_in = np.maximum.accumulate(np.maximum(arrivals, pause) - gaps) + gaps
    wait, left = buffered(rate=rate, waiting=waiting, pause_s=pause, slot_s=slot, capacity=capacity)
    assert wait == pytest.approx((let_in - arrivals)[int(waiting) :].mean(), rel=0.01)
    assert left == pytest.approx((let_in >= slot).sum(), rel=0.01, abs=1)


def test_a_pause_longer_than_a_slot_goes_on_in_the_next_and_nothing_is_measured_meanwhile() -> None:
    app = simulated([100.0] * 4, fixed_s=70.0)
    app.observe()
    app.apply(Verdict((to("second", 3),)))
    paused = app.observe()
    assert [(o.arrival_rate, o.response_time_s, o.utilisation) for o in paused.operators] == [(None,) * 3] * 2
    drain = 0.98 * 500
    # What arrives in the first of three slots waits 70 s less its own time, then behind earlier arrivals.
    assert paused.response_time_s == pytest.approx(70 - 15 + 100 * 15 / drain, abs=0.01)
    for _ in range(3):
        app.observe()
        app.apply(Verdict(()))
    assert [slot.downtime_s for slot in app.played] == [0.0, 30.0, 30.0, 10.0]


def test_a_cold_engine_serves_slower_so_less_reaches_the_operators_until_it_is_warm() -> None:
    app = simulated([300.0, 300.0], cold_start=ColdStart(seconds=30.0, factor=4.0))
    cold = app.observe()
    inside = (
        0.98 * 2 / (4 * 0.004)
    )  # two replicas of the first, four times as slow: less than the 300 that come
    assert [o.arrival_rate for o in cold.operators] == pytest.approx([inside, inside])
    expected = [4 * s / (1 - inside / 2 * 4 * s) for s in (0.004, 0.002)]
    assert [o.response_time_s for o in cold.operators] == pytest.approx(expected)
    assert [o.utilisation for o in cold.operators] == pytest.approx([0.98, 0.49])
    app.apply(Verdict(()))
    assert app.played[0].waiting == pytest.approx((300 - inside) * 30)
    # Warm again: two replicas of 4 ms work off the backlog within the slot, besides what arrives.
    assert app.observe().operators[0].arrival_rate == pytest.approx(300 + (300 - inside))


@pytest.mark.parametrize(
    ("before", "after", "share"), [(1, 2, 1 / 2), (2, 1, 1 / 2), (2, 3, 1 / 3), (3, 3, 1 / 3)]
)
def test_evenly_spread_state_moves_no_more_than_it_must(before: int, after: int, share: float) -> None:
    assert state_moved(FIRST, before, after) == pytest.approx(share * 300_000_000)


def test_downtime_grows_with_the_state_that_moves() -> None:
    protocol = PauseAndResume(fixed_s=5.0, state_bandwidth_bytes_s=100e6)
    assert protocol.seconds({}) == 0.0
    assert protocol.seconds({SECOND: (1, 2)}) == 5.0
    assert protocol.seconds({FIRST: (1, 2), SECOND: (1, 2)}) == pytest.approx(5.0 + 1.5)


def threshold() -> Threshold:
    return Threshold(node_types=(WORKER,), deployments=SPACE, node_choice=NodeChoice.FIRST)


def test_managers_see_their_own_operator_and_the_application_manager_decides() -> None:
    managers = Managers(
        operators={"first": threshold(), "second": threshold()},
        application=TokenBucket(low_s=0.001, high_s=0.002, period_s=60.0, capacity=1),
    )
    app = simulated([400.0])
    rngs = {name: np.random.default_rng(1) for name in ("first", "second")}
    outcome, _ = decide(managers, first_memory(managers), app.observe(), rngs)
    # Loads .8 and .4: the first asks for more, the second for fewer (its one replica would be at .8: no).
    assert [(type(r), r.operator) for r in outcome.requests] == [(ScaleOut, "first")]
    assert outcome.verdict.granted == outcome.requests


def test_the_application_manager_runs_at_its_own_pace_and_local_managers_rest_after_a_change() -> None:
    managers = Managers(
        operators={"first": threshold()}, application=GrantAll(), application_period_s=60.0, rest_s=45.0
    )
    app = simulated([450.0] * 6, fixed_s=0.0)
    memory, granted, reasons = first_memory(managers), [], []
    while not app.finished:
        outcome, memory = decide(managers, memory, app.observe(), {"first": np.random.default_rng(1)})
        granted.append(len(outcome.verdict.granted))
        reasons.append(outcome.decisions["first"].reason)
        app.apply(outcome.verdict)
    assert granted[0] == 1
    assert granted[1] == 0
    assert "resting" in reasons[1]


def test_between_its_rounds_the_application_manager_grants_nothing() -> None:
    managers = Managers(operators={"first": threshold()}, application=GrantAll(), application_period_s=60.0)
    app = simulated([450.0, 900.0, 900.0], fixed_s=0.0)
    memory, granted = first_memory(managers), []
    while not app.finished:
        outcome, memory = decide(managers, memory, app.observe(), {"first": np.random.default_rng(1)})
        granted.append([r.reason for r in outcome.verdict.refused] or len(outcome.verdict.granted))
        app.apply(outcome.verdict)
    assert granted == [1, ["the Application Manager runs later"], 1]


def test_a_path_is_judged_by_its_own_limit_and_constant_delays_count() -> None:
    """Two paths behind `root`: the long one may take long, the short one must be quick."""
    root = Operator(name="root", service_time_s=0.001, selectivity=0.5, max_replicas=4)
    quick = Operator(name="quick", service_time_s=0.001, max_replicas=4)
    slow = Operator(name="slow", service_time_s=0.010, max_replicas=4)
    fork = Application(
        name="fork",
        sources=(Source(name="in"),),
        operators=(root, quick, slow),
        sinks=(Sink(name="out"),),
        streams=tuple(
            Stream(origin=a, target=b)
            for a, b in (
                ("in", "root"),
                ("root", "quick"),
                ("root", "slow"),
                ("quick", "out"),
                ("slow", "out"),
            )
        ),
    )

    def judged(quick_s: float, slow_s: float, rate: float = 100.0) -> SimulatedApplication:
        app = SimulatedApplication(
            application=fork,
            objective=Objective(
                response_time_s=1.0, per_path_s={("root", "quick"): quick_s, ("root", "slow"): slow_s}
            ),
            models={
                o.name: OperatorModel(
                    queue=m_m_1(o.service_time_s),
                    deployments=SPACE,
                    first=Replicas((1,)),
                    delay_s=0.004 if o.name == "quick" else 0.0,
                )
                for o in fork.operators
            },
            rates=np.array([rate]),
            protocol=PauseAndResume(fixed_s=0.0),
        )
        app.observe()
        app.apply(Verdict(()))
        return app

    first, fast, late = 0.001 / 0.9, 0.001 / 0.95 + 0.004, 0.010 / 0.5  # half of the 100 t/s go on
    assert judged(1, 1).played[0].response_time_s == pytest.approx(first + late)
    assert not judged(first + fast + 1e-6, 0.5).played[0].violated
    assert judged(first + fast - 1e-6, 0.5).played[0].violated
    again = judged(0.01, 0.5)
    again.rates, again._index = np.array([100.0]), 0
    seen = again.observe()
    assert seen.strictest_s == pytest.approx(max(first + fast, (first + late) * 0.01 / 0.5))
    # What `slow` can take, 100 t/s, is 200 at the source.
    assert judged(1, 1, rate=300.0).played[0].waiting == pytest.approx((300 - 0.98 * 200) * 30)


def test_a_refused_request_leaves_the_replicas_as_they_were() -> None:
    managers = Managers(
        operators={"first": threshold()}, application=TokenBucket(low_s=0.5, high_s=5.0, period_s=60.0)
    )
    app = simulated([450.0] * 3)
    memory = first_memory(managers)
    while not app.finished:
        outcome, memory = decide(managers, memory, app.observe(), {"first": np.random.default_rng(1)})
        assert "no H token" in outcome.verdict.refused[0].reason
        app.apply(outcome.verdict)
    assert {slot.replicas for slot in app.played} == {4}


def two_nodes() -> Infrastructure:
    return Infrastructure(
        name="two",
        node_types=(WORKER,),
        nodes=(Node(name="a", node_type="worker", slots=3), Node(name="b", node_type="worker", slots=2)),
        links=(Link(a="a", b="b", delay_s=0.010),),
    )


def placed(application: Application) -> SimulatedApplication:
    models = {
        o.name: OperatorModel(queue=m_m_1(o.service_time_s), deployments=SPACE, first=Replicas((2,)))
        for o in application.operators
    }
    return SimulatedApplication(
        application=application,
        objective=Objective(response_time_s=0.05),
        models=models,
        rates=np.array([100.0, 100.0, 100.0]),
        protocol=PauseAndResume(fixed_s=0.0),
        infrastructure=two_nodes(),
        hosts={"first": ["a", "a"], "second": ["a", "b"]},
    )


def test_replicas_on_other_nodes_add_the_mean_network_delay() -> None:
    app = placed(TWO)
    queues = 0.004 / 0.8 + 0.002 / 0.9
    assert app.observe().response_time_s == pytest.approx(queues + 0.010 / 2)
    app.apply(Verdict((Migrate(operator="second", origin="b", target="a", score=1.0, reason="test"),)))
    assert app.hosts["second"] == ["a", "a"]
    assert app.observe().response_time_s == pytest.approx(queues)


def test_nodes_are_as_busy_as_their_replicas() -> None:
    nodes = placed(TWO).observe_nodes()
    assert nodes["a"].utilisation == pytest.approx((0.2 + 0.2 + 0.1) / 3)
    assert nodes["b"].utilisation == pytest.approx(0.1 / 2)
    assert (nodes["a"].free_slots, nodes["b"].free_slots) == (0, 1)
    assert nodes["a"].delay_s == {"b": 0.010}


def test_a_new_replica_goes_to_a_node_with_room_and_a_scale_in_names_the_busiest() -> None:
    managers = Managers(operators={"first": threshold()}, application=GrantAll())
    app = placed(TWO)
    app.rates = np.array([400.0, 10.0])
    rngs = {"first": np.random.default_rng(1)}
    memory = first_memory(managers)
    outcome, memory = decide(
        managers, memory, app.observe(), rngs, nodes=app.observe_nodes(), hosts=_hosts(app)
    )
    assert isinstance(outcome.verdict.granted[0], ScaleOut)
    assert outcome.verdict.granted[0].nodes == ("b",)
    app.apply(outcome.verdict)
    assert sorted(app.hosts["first"]) == ["a", "a", "b"]
    outcome, _ = decide(managers, memory, app.observe(), rngs, nodes=app.observe_nodes(), hosts=_hosts(app))
    assert isinstance(outcome.verdict.granted[0], ScaleIn)
    assert outcome.verdict.granted[0].nodes == ("a",)


def _hosts(app: SimulatedApplication) -> dict[str, tuple[str, ...]]:
    return {name: tuple(nodes) for name, nodes in app.hosts.items()}


def test_where_no_node_has_room_the_request_is_refused_with_the_reason() -> None:
    managers = Managers(operators={"first": threshold()}, application=GrantAll())
    app = placed(TWO)
    app.rates = np.array([400.0])
    app.hosts["second"] += ["b"]
    outcome, _ = decide(
        managers,
        first_memory(managers),
        app.observe(),
        {"first": np.random.default_rng(1)},
        nodes=app.observe_nodes(),
        hosts=_hosts(app),
    )
    assert outcome.verdict.granted == ()
    assert outcome.verdict.refused[0].reason == "no node has a free slot"


def drs() -> DrsManager:
    return DrsManager(
        application=TWO,
        objective=Objective(response_time_s=0.05),
        node_types=(WORKER,),
        node_choice=NodeChoice.FIRST,
    )


def test_what_the_application_manager_decides_itself_is_placed_too() -> None:
    managers = Managers(operators={}, application=drs())
    app = placed(TWO)
    app.rates = np.array([600.0, 10.0])  # asks for three replicas of the first; b has one slot left
    rngs = {name: np.random.default_rng(1) for name in ("first", "second")}
    memory = first_memory(managers)
    outcome, memory = decide(
        managers, memory, app.observe(), rngs, nodes=app.observe_nodes(), hosts=_hosts(app)
    )
    assert [(r.operator, r.nodes) for r in outcome.verdict.granted if isinstance(r, ScaleOut)] == [
        ("first", ("b",))
    ]
    app.apply(outcome.verdict)
    outcome, _ = decide(managers, memory, app.observe(), rngs, nodes=app.observe_nodes(), hosts=_hosts(app))
    app.apply(outcome.verdict)
    assert {name: len(nodes) for name, nodes in app.hosts.items()} == {"first": 1, "second": 1}


class OneMoreOfEach:
    """An Application Manager that decides itself and leaves the nodes open."""

    def initial(self) -> None:
        return None

    def grant(
        self, memory: None, requests: Sequence[Request], seen: ApplicationObservation
    ) -> tuple[Verdict, None]:
        return Verdict((to("first", 3), to("second", 3))), None


def test_two_decisions_do_not_share_the_last_free_slot() -> None:
    managers = Managers(operators={}, application=OneMoreOfEach())
    app = placed(TWO)  # b has one slot left
    rngs = {name: np.random.default_rng(1) for name in ("first", "second")}
    outcome, _ = decide(
        managers, first_memory(managers), app.observe(), rngs, nodes=app.observe_nodes(), hosts=_hosts(app)
    )
    assert [(r.operator, r.nodes) for r in outcome.verdict.granted if isinstance(r, ScaleOut)] == [
        ("first", ("b",))
    ]
    assert [(refused.request.operator, refused.reason) for refused in outcome.verdict.refused] == [
        ("second", "no node has a free slot")
    ]


def test_a_jump_takes_no_more_slots_than_there_are() -> None:
    managers = Managers(operators={}, application=drs())
    app = placed(TWO)
    app.rates = np.array([950.0])  # four of the first, two more than run; b has one slot left
    rngs = {name: np.random.default_rng(1) for name in ("first", "second")}
    outcome, _ = decide(
        managers, first_memory(managers), app.observe(), rngs, nodes=app.observe_nodes(), hosts=_hosts(app)
    )
    assert "first" in {refused.request.operator for refused in outcome.verdict.refused}


def test_an_application_whose_objective_no_node_can_meet_is_not_simulated() -> None:
    with pytest.raises(InputError, match="path first-second takes 6 ms"):
        SimulatedApplication(
            application=TWO,
            objective=Objective(response_time_s=0.005),
            models=placed(TWO).models,
            rates=np.array([1.0]),
            protocol=PauseAndResume(fixed_s=0.0),
        )


SLOW, FAST = NodeType(name="slow", speedup=1.0, price=1.0), NodeType(name="fast", speedup=2.0, price=2.5)


def two_types(rates: Sequence[float]) -> SimulatedApplication:
    """Two nodes of each of two types; everything starts on slow ones."""
    nodes = [Node(name=f"{t.name}-{i}", node_type=t.name, slots=3) for t in (SLOW, FAST) for i in (1, 2)]
    space = deployments((SLOW, FAST), 4)
    return SimulatedApplication(
        application=TWO,
        objective=Objective(response_time_s=0.05),
        models={
            o.name: OperatorModel(queue=m_m_1(o.service_time_s), deployments=space, first=Replicas((1, 0)))
            for o in TWO.operators
        },
        rates=np.array(rates),
        protocol=PauseAndResume(fixed_s=0.0),
        infrastructure=Infrastructure(
            name="types",
            node_types=(SLOW, FAST),
            nodes=tuple(nodes),
            links=tuple(Link(a=a.name, b=b.name, delay_s=0.001) for a, b in combinations(nodes, 2)),
        ),
    )


def test_every_replica_is_as_busy_as_its_node_is_slow() -> None:
    """75 tuples/s and 4 ms of service on speedup 1: a third each on one slow and two fast nodes."""
    app = two_types([75.0])
    first = replace(app.models["first"], first=Replicas((1, 2)))
    app = replace(app, models={**app.models, "first": first}, hosts={})
    mixed, alone = app.observe().operators
    assert mixed.utilisation_by_replica == pytest.approx((0.1, 0.05, 0.05))
    assert mixed.utilisation == pytest.approx(0.1)
    assert alone.utilisation_by_replica == (alone.utilisation,)


def by_type(app: SimulatedApplication) -> dict[str, tuple[int, ...]]:
    return {
        name: tuple(sum(host.startswith(kind) for host in hosts) for kind in ("slow", "fast"))
        for name, hosts in app.hosts.items()
    }


@pytest.mark.parametrize("seed", range(4))
def test_hosts_and_deployments_agree_whatever_scales_and_migrates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    app = two_types(rng.uniform(20, 900, 150).tolist())
    space = deployments((SLOW, FAST), 4)
    operators = {
        name: Threshold(node_types=(SLOW, FAST), deployments=space, node_choice=choice)
        for name, choice in (("first", NodeChoice.FASTEST), ("second", NodeChoice.CHEAPEST))
    }
    assert app.infrastructure is not None
    nodes = {node.name: SenderInitiated(target_utilisation=0.3) for node in app.infrastructure.nodes}
    managers = Managers(operators=operators, application=GrantAll(), nodes=nodes)
    rngs = dict(zip([*operators, *nodes], rng.spawn(6), strict=True))
    memory = first_memory(managers)
    while not app.finished:
        seen = app.observe()
        outcome, memory = decide(managers, memory, seen, rngs, nodes=seen.nodes, hosts=seen.hosts)
        app.apply(outcome.verdict)
        assert by_type(app) == {name: replicas.counts for name, replicas in app.replicas.items()}
    assert sum(slot.migrations for slot in app.played) > 0


@dataclass(frozen=True)
class Wants:
    """An Application Manager that wants these replicas of the first operator."""

    target: Replicas

    def initial(self) -> None:
        return None

    def grant(
        self, memory: None, requests: Sequence[Request], seen: ApplicationObservation
    ) -> tuple[Verdict, None]:
        wanted = ScaleOut(operator="first", target=self.target, nodes=(), score=1.0, reason="test")
        return Verdict((wanted,)), None


def planned(app: SimulatedApplication, target: tuple[int, int], seed: int = 1) -> Plan:
    managers = Managers(operators={}, application=Wants(Replicas(target)))
    controller = Controller(managers=managers, node_types=(SLOW, FAST), safety=UNGUARDED)
    made, _ = plan(controller, controller_memory(controller, seed), app.observe())
    return made


@pytest.mark.parametrize("seed", range(6))
def test_a_controller_without_operator_managers_places_a_replica_on_a_node_of_its_type(seed: int) -> None:
    (granted,) = planned(two_types([100.0]), (1, 1), seed).granted
    assert isinstance(granted, ScaleOut)
    assert [name.partition("-")[0] for name in granted.nodes] == ["fast"]


def test_an_exchange_of_node_types_is_refused_where_nodes_are_known() -> None:
    made = planned(two_types([100.0]), (0, 1))
    assert made.granted == ()
    assert [refused.reason for refused in made.verdict.refused] == [EXCHANGE]


def test_a_network_with_a_link_missing_or_a_pinned_operator_is_refused() -> None:
    app = placed(TWO)
    with pytest.raises(InputError, match="nodes 'a' and 'b': no link"):
        replace(app, infrastructure=replace(two_nodes(), links=()))
    pinned = pipeline("pinned", replace(FIRST, pinned_to="b"), SECOND)
    with pytest.raises(InputError, match="operator 'first': pinned to 'b'"):
        placed(pinned)


@pytest.mark.parametrize(("seconds", "factor"), [(60.0, 0.0), (-1.0, 2.0), (60.0, float("nan"))])
def test_a_cold_start_that_makes_no_sense_is_refused(seconds: float, factor: float) -> None:
    with pytest.raises(InputError, match="cold start"):
        ColdStart(seconds=seconds, factor=factor)
