"""Every Application Manager through the one loop that also runs live: built from a header, decided again."""

import json
from dataclasses import replace

import pytest

from penstock.control.build import build_controller
from penstock.control.journal import Entry, Header, Remembered, Ticked, decoded, encoded
from penstock.control.loop import plan
from penstock.control.plain_data import to_plain
from penstock.control.replay import replay
from penstock.control.safety_settings import UNGUARDED, SafetySettings
from penstock.control.saved import as_plain, of_plain, restored, saved
from penstock.control.spec import ControllerSpec, Manager, OperatorSpec, operator_specs
from penstock.domain.application import Application, Operator, pipeline
from penstock.domain.decision import Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.policy.registry import Level, entries
from penstock.training.pretrain import pretrained

ONE = (NodeType(name="standard", speedup=1.0, price=1.0),)
GRAPH = pipeline(
    "two",
    Operator(name="first", service_time_s=0.004, service_scv=1.0, max_replicas=3),
    Operator(name="second", service_time_s=0.008, service_scv=1.0, max_replicas=4),
)
LIMIT = Objective(response_time_s=0.05)


def spec_of(
    manager: str,
    graph: Application = GRAPH,
    objective: Objective = LIMIT,
    *,
    node_types: tuple[NodeType, ...] = ONE,
    safety: SafetySettings = UNGUARDED,
) -> ControllerSpec:
    return ControllerSpec(
        application=graph,
        objective=objective,
        node_types=node_types,
        operators=operator_specs(graph, objective),
        operator_policy=Manager(name="threshold-c"),
        application_policy=Manager(name=manager),
        levels=6,
        source_rates=(80.0, 90.0, 100.0, 95.0),
        safety=safety,
        seed=3,
    )


def seen(at_s: float, rate: float | None, first: int, second: int) -> ApplicationObservation:
    """Two M/M/1 queues per replica, as they would be measured."""

    def one(name: str, service_s: float, replicas: int) -> OperatorObservation:
        busy = None if rate is None else rate * service_s / replicas
        return OperatorObservation(
            operator=name,
            at_s=at_s,
            replicas=Replicas((replicas,)),
            arrival_rate=rate,
            response_time_s=None if busy is None else service_s / max(1 - busy, 0.01),
            utilisation=busy,
        )

    operators = (one("first", 0.004, first), one("second", 0.008, second))
    times = [o.response_time_s for o in operators if o.response_time_s is not None]
    return ApplicationObservation(
        at_s=at_s, response_time_s=sum(times) or None, operators=operators, source_rate=rate
    )


def run(made: ControllerSpec, rates: tuple[float | None, ...]) -> list[Entry]:
    """A small world whose replicas are what was granted; every entry as a line and back."""
    controller, memory = build_controller(made)
    running = {"first": 1, "second": 1}
    written: list[Entry] = [Header(controller=made), Remembered(memory=as_plain(saved(memory)))]
    for index, rate in enumerate(rates):
        now = seen(30.0 * (index + 1), rate, running["first"], running["second"])
        # As after a restart in every round: what is not in the saved memory does not count.
        memory = restored(controller, of_plain(as_plain(saved(memory))))
        decided, memory = plan(controller, memory, now)
        written.append(Ticked(seen=now, plan=decided))
        for request in decided.to_do.granted:
            running[request.operator] = getattr(request, "target", Replicas((1,))).total
    return [decoded(encoded(entry)) for entry in written]


RATES = (80.0, 120.0, None, 260.0, 300.0, 300.0, 120.0, 60.0, 60.0, 20.0)


@pytest.mark.parametrize("manager", entries(Level.APPLICATION))
def test_what_any_application_manager_decided_is_decided_again_from_the_journal(manager: str) -> None:
    written = run(spec_of(manager), RATES)
    answer = replay(written, build_controller)
    assert (answer.ticks, answer.difference) == (len(RATES), None)
    changes = [entry for entry in written if isinstance(entry, Ticked) and entry.plan.granted]
    assert changes, "a run without a change shows nothing"


@pytest.mark.parametrize(
    "manager", [name for name, one in entries(Level.APPLICATION).items() if one.traits.decides_itself]
)
def test_one_that_decides_for_all_says_of_every_operator_why(manager: str) -> None:
    for entry in run(spec_of(manager), RATES):
        if isinstance(entry, Ticked):
            assert set(entry.plan.decisions) == {"first", "second"}
            assert entry.plan.verdict.decisions == {}, "once in a plan is enough"
            scaled = {n for n, d in entry.plan.decisions.items() if isinstance(d, Scale)}
            assert scaled == {request.operator for request in entry.plan.verdict.granted}
            if entry.seen.source_rate is None:
                assert all("not measured" in d.reason for d in entry.plan.decisions.values())


def test_scaling_in_waits_for_the_window_also_where_the_application_manager_decides() -> None:
    """It held three replicas until a moment ago; the window remembers what it wanted, not only changes."""
    careful = replace(UNGUARDED, scale_in_window_s=300.0)
    # M/M/c needs 300 x 8 ms = 2.4, so three replicas at least, and one for 20 tuples/s.
    written = run(spec_of("drs-c", safety=careful), (300.0,) * 12 + (20.0,) * 12)
    totals = [entry.seen.operators[1].replicas.total for entry in written if isinstance(entry, Ticked)]
    assert min(totals[2:12]) >= 3
    fewer = next(index for index in range(12, 24) if totals[index] < totals[11])
    # More were wanted for the last time at 360 s; 300 s later is index 21, and it shows in the round after.
    assert fewer == 22


def test_drs_sizes_by_the_graph_in_the_header() -> None:
    """Twice as many tuples reach the second operator as the first: 150 x 2 x 8 ms = 2.4 keep three busy."""
    first, second = GRAPH.operators
    doubling = pipeline("two", replace(first, selectivity=2.0), second)
    for graph, least in ((GRAPH, 2), (doubling, 3)):
        controller, memory = build_controller(spec_of("drs-c", graph))
        decided, _ = plan(controller, memory, seen(30.0, 150.0, 1, 1))
        wanted = decided.decisions["second"]
        assert isinstance(wanted, Scale)
        assert wanted.target.total >= least
        if least == 2:
            assert wanted.target.total < 4


def test_a_centralised_manager_plans_for_the_speed_of_its_nodes() -> None:
    """At 200 tuples/s the second operator is overloaded by 1.6 on a slow node and busy at .4 on fast ones."""
    slow, fast = (
        spec_of("centralised", node_types=(NodeType(name="standard", speedup=speedup, price=1.0),))
        for speedup in (1.0, 4.0)
    )
    wanted = []
    for made in (slow, fast):
        controller, memory = build_controller(made)
        wanted.append(plan(controller, memory, seen(30.0, 200.0, 1, 1))[0].decisions["second"])
    assert isinstance(wanted[0], Scale)
    assert isinstance(wanted[1], Hold)


def test_a_centralised_learner_is_trained_beforehand_to_know_what_violates() -> None:
    """Untrained it believes that nothing does, and leaves an application overloaded by 1.6 as it is."""
    made = spec_of("centralised-rl")
    controller, memory = build_controller(made)
    overloaded = seen(30.0, 200.0, 1, 1)
    untrained, _ = plan(controller, memory, overloaded)
    assert isinstance(untrained.decisions["second"], Hold)
    ready = pretrained(made, controller, memory)
    trained, _ = plan(controller, ready, overloaded)
    assert isinstance(trained.decisions["second"], Scale)
    assert plan(controller, memory, overloaded)[0] == untrained, "the memory it was given stays as it was"


def test_a_journal_from_before_there_were_names_still_builds_its_token_bucket() -> None:
    operators = to_plain(operator_specs(GRAPH, LIMIT), tuple[OperatorSpec, ...])
    for bucket, expected in ((None, None), ([0.01, 0.03], 0.03)):
        first_line = {
            "kind": "Header",
            "schema": 1,
            "policies": {"operators": operators, "policy": "threshold-c", "token_bucket": bucket},
            "seed": 3,
            "node_types": to_plain(ONE, tuple[NodeType, ...]),
            "safety": to_plain(UNGUARDED, SafetySettings),
        }
        made = decoded(json.dumps(first_line))
        assert isinstance(made, Header)
        controller, _ = build_controller(made.controller)
        assert getattr(controller.managers.application, "high_s", None) == expected


def test_limits_of_single_paths_are_in_the_header_too() -> None:
    tight = Objective(response_time_s=0.05, per_path_s={("first", "second"): 0.04})
    again = decoded(encoded(Header(controller=spec_of("lohrmann-c", objective=tight))))
    assert isinstance(again, Header)
    controller, _ = build_controller(again.controller)
    assert getattr(controller.managers.application, "objective", None) == tight


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'drs-c'"):
        build_controller(spec_of("drs-cc"))
    with pytest.raises(InputError, match="application 'two' has no operator 'third'"):
        replace(spec_of("drs-c"), operators=(replace(spec_of("drs-c").operators[0], name="third"),))
    with pytest.raises(InputError, match="centralised: plans for one type of node"):
        build_controller(spec_of("centralised", node_types=(*ONE, *ONE)))
