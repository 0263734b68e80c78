"""The runs of a comparison: who decides in each, and with how many replicas it begins."""

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.apps.feeding.load import Load
from penstock.apps.registry import application_entry
from penstock.control.spec import Manager
from penstock.domain.application import Operator, pipeline
from penstock.domain.errors import InputError
from penstock.live.compare import prepared, static_replicas
from penstock.live.run import LiveRun
from penstock.live.settings import LiveSettings

LOAD = Load(shape="ramp", low=25.0, high=200.0, seconds=240.0)


def runs(*names: str, out: Path, application: str = "lookups") -> dict[str, LiveRun]:
    made = prepared(
        application_entry(application),
        [Manager(name=name) for name in names],
        LOAD,
        base=LiveSettings(out=out, minutes=4.0),
        slo_s=None,
        max_replicas=8,
    )
    return {live.settings.label: live for live in made}


def test_policies_decide_and_beside_static_replicas_and_spark_penstock_only_watches(tmp_path: Path) -> None:
    found = runs("objective", "ds2", "dynamic-allocation", "static-mean", "static-peak", out=tmp_path)
    assert [live.controller.advise for live in found.values()] == [False, False, True, True, True]
    assert found["ds2"].controller.operator_policy.name == "ds2"
    assert [name for name, live in found.items() if live.settings.spark_allocates] == ["dynamic-allocation"]
    assert {live.objective_s for live in found.values()} == {5.0}
    assert len({live.settings.out for live in found.values()}) == 5
    assert not any(live.settings.out.exists() for live in found.values())


@pytest.mark.parametrize(("application", "joined"), [("top-routes", True), ("paced", False)])
def test_operators_share_queries_as_in_a_run_of_the_application(
    tmp_path: Path, application: str, joined: bool
) -> None:
    found = runs("objective", "dynamic-allocation", out=tmp_path, application=application)
    assert {live.settings.joined for live in found.values()} == {joined}
    assert {bool(live.controller.together) for live in found.values()} == {joined}


def test_static_replicas_carry_a_load_at_three_quarters() -> None:
    graph = pipeline(
        "p",
        Operator(name="lookup", service_time_s=0.020, max_replicas=8),
        Operator(name="score", service_time_s=0.004, max_replicas=8),
        Operator(name="slow", service_time_s=1.0, max_replicas=8),
        Operator(name="quick", service_time_s=1e-6, max_replicas=8),
    )
    # 200 tuples/s of 20 and of 4 ms are 4 and .8 busy replicas: 5.3 and 1.1 at .75.
    assert static_replicas(graph, 200.0) == {"lookup": 6, "score": 2, "slow": 8, "quick": 1}


def test_static_replicas_are_for_what_reaches_an_operator() -> None:
    passes_a_tenth = Operator(name="filter", service_time_s=0.001, selectivity=0.1)
    behind = Operator(name="behind", service_time_s=0.030, max_replicas=10)
    assert static_replicas(pipeline("p", passes_a_tenth, behind), 100.0) == {"filter": 1, "behind": 1}


def test_static_runs_have_the_replicas_of_the_peak_and_of_the_mean(tmp_path: Path) -> None:
    found = runs("static-mean", "static-peak", out=tmp_path)
    graph = application_entry("lookups").checked_live_graph(8)
    assert found["static-peak"].settings.replicas_of == static_replicas(graph, 200.0)
    # 25 for half the time, 200 for a fifth, and 112.5 on average on the slopes.
    mean = 0.5 * 25 + 0.2 * 200 + 0.3 * 112.5
    assert found["static-mean"].settings.replicas_of == static_replicas(graph, mean)
    assert static_replicas(graph, mean) != static_replicas(graph, 200.0)


def test_two_deciders_at_once_are_refused(tmp_path: Path) -> None:
    watching = runs("dynamic-allocation", out=tmp_path)["dynamic-allocation"]
    with pytest.raises(InputError, match="Spark's own allocation decides: Penstock can only advise"):
        replace(watching, controller=replace(watching.controller, advise=False))
    with pytest.raises(InputError, match="Spark's own allocation: it knows no spares"):
        replace(watching.settings, spares=1)
    with pytest.raises(InputError, match="Spark's own allocation"):
        replace(watching.settings, force_scaling=True)


@pytest.mark.parametrize(
    ("key", "complaint"),
    [
        ("spark.dynamicAllocation.enabled", "Penstock needs it as it is"),
        ("spark.executor.cores", "Penstock needs it as it is"),
        ("sql.shuffle.partitions", "begin with 'spark.'"),
    ],
)
def test_settings_of_spark_that_control_depends_on_are_refused(
    tmp_path: Path, key: str, complaint: str
) -> None:
    assert LiveSettings(out=tmp_path, conf={"spark.jars.packages": "a:b:1"}).conf
    with pytest.raises(InputError, match=complaint):
        LiveSettings(out=tmp_path, conf={key: "1"})
