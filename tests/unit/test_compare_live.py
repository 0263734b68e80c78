"""The runs of a comparison: who decides in each, and with how many replicas it begins."""

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.apps.feeding.load import Load
from penstock.apps.registry import application_entry
from penstock.control.spec import Manager
from penstock.domain.errors import InputError
from penstock.live.compare import prepared
from penstock.live.run import LiveRun
from penstock.live.settings import LiveSettings

LOAD = Load(shape="ramp", low=25.0, high=200.0, seconds=240.0)


def runs(*names: str, out: Path) -> dict[str, LiveRun]:
    made = prepared(
        application_entry("lookups"),
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


def test_static_replicas_carry_the_peak_or_the_mean_at_three_quarters(tmp_path: Path) -> None:
    found = runs("static-mean", "static-peak", out=tmp_path)
    # 200 tuples/s of 20 and of 4 ms are 4 and .8 busy replicas: 5.3 and 1.1 at .75.
    assert found["static-peak"].settings.replicas_of == {"lookup": 6, "score": 2}
    # 25 for half the time, 200 for a fifth, and 112.5 on the slopes: 86 tuples/s.
    assert found["static-mean"].settings.replicas_of == {"lookup": 3, "score": 1}
    assert LOAD.trace().rates.mean() == pytest.approx(86.25, rel=0.01)


def test_two_deciders_at_once_are_refused(tmp_path: Path) -> None:
    watching = runs("dynamic-allocation", out=tmp_path)["dynamic-allocation"]
    with pytest.raises(InputError, match="Spark's own allocation decides: Penstock can only advise"):
        replace(watching, controller=replace(watching.controller, advise=False))
    with pytest.raises(InputError, match="Spark's own allocation: it knows no spares"):
        replace(watching.settings, spares=1)
    with pytest.raises(InputError, match="Spark's own allocation"):
        replace(watching.settings, force_scaling=True)
