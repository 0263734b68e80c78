"""Policies that decide by the load that arrives: which they are, and what the safety chain knows of it."""

import pytest
from safety_cases import app, controller_spec, one

from penstock.apps.paced.form import paced
from penstock.control.build import build_controller
from penstock.control.journal import Header, decoded, encoded
from penstock.control.loop import plan
from penstock.control.spec import Manager
from penstock.domain.application import Operator, pipeline
from penstock.domain.decision import Decision
from penstock.domain.objective import Objective
from penstock.live.settings import controller_for
from penstock.policy.registry import Level, entries

ANTICIPATING = [
    (level, name)
    for level in (Level.OPERATOR, Level.APPLICATION)
    for name, entry in entries(level).items()
    if entry.traits.anticipates
]


def decided(level: Level, name: str, *, response_time_s: float, utilisation: float) -> Decision:
    """At 700 tuples/s, which two replicas of 5 ms cannot serve, on an engine that works in micro-batches."""
    which = "operator_policy" if level is Level.OPERATOR else "application_policy"
    controller, memory = build_controller(controller_spec(safety=None, **{which: Manager(name=name)}))
    seen = one(30.0, 2, arrival_rate=700.0, response_time_s=response_time_s, utilisation=utilisation)
    seen = seen._replace(trigger_s=0.5)
    made, _ = plan(controller, memory, app(30.0, seen, source_rate=700.0))
    return made.decisions["count"]


def test_there_are_some_and_those_who_judge_by_what_they_see_are_not_among_them() -> None:
    names = {name for _, name in ANTICIPATING}
    assert {"objective", "drs-c", "lohrmann-c"} <= names
    assert not names & {"threshold-c", "ds2", "ql", "model-based", "heinze-c", "centralised-rl"}


@pytest.mark.parametrize(("level", "name"), ANTICIPATING)
def test_who_anticipates_decides_the_same_whatever_a_change_has_disturbed(level: Level, name: str) -> None:
    calm = decided(level, name, response_time_s=0.01, utilisation=0.1)
    stirred = decided(level, name, response_time_s=9.0, utilisation=1.5)
    assert calm == stirred


def test_a_threshold_does_not() -> None:
    calm = decided(Level.OPERATOR, "threshold-c", response_time_s=0.01, utilisation=0.1)
    stirred = decided(Level.OPERATOR, "threshold-c", response_time_s=9.0, utilisation=1.5)
    assert calm != stirred


@pytest.mark.parametrize(
    ("policy", "application_policy", "anticipating"),
    [
        ("objective", "grant-all", True),
        ("objective", "token-bucket", True),
        ("threshold-c", "grant-all", False),
        ("threshold-c", "drs-c", True),  # which decides for all
        ("objective", "centralised-rl", False),
    ],
)
def test_the_safety_chain_of_a_live_run_knows_who_decides(
    policy: str, application_policy: str, anticipating: bool
) -> None:
    graph = pipeline("one", Operator(name="count", service_time_s=0.005, max_replicas=4))
    form = paced(graph, objective=Objective(response_time_s=1))
    spec = controller_for(form, policy=policy, application_policy=application_policy)
    assert spec.safety is not None
    assert spec.safety.anticipating is anticipating
    assert spec.safety.spare_cpu, "which is off where a journal's header does not have it"
    assert decoded(encoded(Header(controller=spec))) == Header(controller=spec), "so that it replays"
