"""What can be simulated is one of a closed set, and each kind has the fields that apply to it."""

from typing import Any

import numpy as np
import pytest

from penstock.control.spec import Manager
from penstock.domain.errors import InputError
from penstock.simulation.hosts import Hosts
from penstock.simulation.play import run
from penstock.simulation.spec import ManagedApplication, OneOperator, OperatorGraph, Shift, Simulation

PIPELINE = {"operator_policy": Manager("threshold-c"), "application": "pipeline"}
MANAGED = {**PIPELINE, "application_policy": Manager("grant-all")}
SHIFT, HOSTS = Shift(slot=1, factor=2), Hosts(per_type=4, slots=8, delay_s=0.005)


@pytest.mark.parametrize(
    ("kind", "given", "foreign"),
    [
        (OneOperator, {"operator_policy": Manager("fixed"), "application": "pipeline"}, "application"),
        (
            OneOperator,
            {"operator_policy": Manager("fixed"), "application_policy": Manager("drs-c")},
            "application_policy",
        ),
        (OneOperator, {"operator_policy": Manager("fixed"), "path_slo_s": ((("a",), 0.05),)}, "path_slo_s"),
        (OneOperator, {"operator_policy": Manager("fixed"), "hosts": HOSTS}, "hosts"),
        (OneOperator, {"operator_policy": Manager("fixed"), "threshold": 0.5}, "threshold"),
        (OperatorGraph, {**PIPELINE, "application_policy": Manager("grant-all")}, "application_policy"),
        (OperatorGraph, {**PIPELINE, "price_shift": SHIFT}, "price_shift"),
        (OperatorGraph, {**PIPELINE, "service_rate": 100.0}, "service_rate"),
        (OperatorGraph, {**PIPELINE, "pause_s": 1.0}, "pause_s"),
        (ManagedApplication, {**MANAGED, "speed_shift": SHIFT}, "speed_shift"),
        (ManagedApplication, {**MANAGED, "service_scv": 1.0}, "service_scv"),
    ],
)
def test_a_field_that_does_not_apply_is_not_there(
    kind: type[Simulation], given: dict[str, Any], foreign: str
) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{foreign}'"):
        kind(**given)


@pytest.mark.parametrize(
    ("kind", "given", "missing"),
    [
        (OperatorGraph, {"operator_policy": Manager("fixed")}, "application"),
        (
            ManagedApplication,
            {"operator_policy": Manager("fixed"), "application_policy": Manager("drs-c")},
            "application",
        ),
        (ManagedApplication, PIPELINE, "application_policy"),
    ],
)
def test_an_application_is_not_simulated_without_its_name_or_its_manager(
    kind: type[Simulation], given: dict[str, Any], missing: str
) -> None:
    with pytest.raises(TypeError, match=f"missing .*'{missing}'"):
        kind(**given)


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (
            OperatorGraph,
            {"operator_policy": Manager("fixed"), "application": "top-routes"},
            "only under an application policy",
        ),
        (
            OperatorGraph,
            {"operator_policy": Manager("fixed"), "application": "pipelin"},
            "did you mean 'pipeline'",
        ),
        (
            ManagedApplication,
            {**MANAGED, "node_policy": Manager(name="sender-initiated")},
            "no nodes to move replicas between; give hosts",
        ),
        (
            ManagedApplication,
            {**MANAGED, "hosts": HOSTS, "node_policy": Manager(name="sender")},
            "node policy 'sender': unknown",
        ),
        (
            ManagedApplication,
            {
                **MANAGED,
                "hosts": HOSTS,
                "node_policy": Manager(name="sender-initiated", parameters={"target_utilisation": 1.0}),
            },
            "target_utilisation=1: it must be above 0 and below 1",
        ),
        (ManagedApplication, {**MANAGED, "application_policy": Manager("tuned")}, "no bounds or weights"),
        (OneOperator, {"operator_policy": Manager("threshold-c", {"treshold": 0.5})}, "'threshold'"),
        (OneOperator, {"operator_policy": Manager("ql", {"gamma": 1.0})}, "gamma=1: it must be .*below 1"),
        (OneOperator, {"operator_policy": Manager("no-such-policy")}, "policy 'no-such-policy': unknown"),
    ],
)
def test_what_cannot_be_simulated_is_said_before_anything_runs(
    kind: type[Simulation], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        kind(**given)


def test_a_parameter_may_be_a_number_of_numpys() -> None:
    values: dict[str, Any] = {"replicas": np.int64(2)}
    spec = OneOperator(operator_policy=Manager("fixed", values), infrastructure="A:1")
    assert run(spec, np.full(3, 10.0)).replicas_by_type == (2.0,)
    OneOperator(operator_policy=Manager("threshold-c", {"threshold": np.float64(0.5)}))
    with pytest.raises(InputError, match=r"replicas=.*2\.5.*: a whole number is expected"):
        OneOperator(operator_policy=Manager("fixed", {"replicas": np.float64(2.5)}))


@pytest.mark.parametrize(
    ("given", "depends"),
    [
        ({"operator_policy": Manager("threshold-c"), "application_policy": Manager("grant-all")}, False),
        ({"operator_policy": Manager("ql"), "application_policy": Manager("grant-all")}, True),
        (
            {"operator_policy": Manager("ql"), "application_policy": Manager("drs-c")},
            False,
        ),  # operators have no say
        ({"operator_policy": Manager("vi"), "application_policy": Manager("tuned")}, True),
        (
            {
                "operator_policy": Manager("threshold-c"),
                "application_policy": Manager("drs-c"),
                "hosts": HOSTS,
            },
            True,
        ),
    ],
)
def test_a_managed_application_depends_on_the_seed_where_somebody_draws(
    given: dict[str, Any], depends: bool
) -> None:
    assert ManagedApplication(application="pipeline", **given).depends_on_seed is depends
