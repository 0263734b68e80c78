"""Paced operators: times by tuple, with the moments asked for."""

import time

import numpy as np
import pyarrow
import pytest

from penstock.apps.feeding.draws import uniform
from penstock.apps.paced.form import SCHEMA, node_speed, paced, pieces, service_times, work
from penstock.apps.registry import application_entry
from penstock.apps.top_routes.graph import top_routes_graph
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.runtimes.spark.cluster import SPEED_VARIABLE

_MANY = np.arange(200_000)
_OBJECTIVE = Objective(response_time_s=1)


@pytest.mark.parametrize("scv", [0.0, 0.1, 0.5, 1.0, 4.0])
def test_service_times_have_the_mean_and_variation_asked_for(scv: float) -> None:
    times = service_times(_MANY, mean_s=0.01, scv=scv, seed=3)
    assert times.mean() == pytest.approx(0.01, rel=0.02)
    assert times.var() / times.mean() ** 2 == pytest.approx(scv, rel=0.05, abs=1e-12)
    assert (times >= 0).all()


def test_with_variation_one_they_are_exponential() -> None:
    times = service_times(_MANY, mean_s=2.0, scv=1.0, seed=0)
    for at in (0.5, 2.0, 6.0):
        assert (times > at).mean() == pytest.approx(np.exp(-at / 2.0), abs=0.005)


def test_a_tuple_takes_the_same_time_in_any_company() -> None:
    together = service_times(np.arange(100), mean_s=1.0, scv=0.7, seed=5)
    alone = [service_times(np.array([one]), mean_s=1.0, scv=0.7, seed=5)[0] for one in range(100)]
    assert together.tolist() == alone
    assert not np.array_equal(together, service_times(np.arange(100), mean_s=1.0, scv=0.7, seed=6))


def test_neighbouring_ids_and_seeds_are_unrelated() -> None:
    for other in (uniform(_MANY + 1, 0), uniform(_MANY, 1)):
        assert abs(np.corrcoef(uniform(_MANY, 0), other)[0, 1]) < 0.01


def test_pieces_hold_every_tuple_once_and_all_of_the_time() -> None:
    times = service_times(np.arange(500), mean_s=0.004, scv=2.0, seed=1)
    cut = list(pieces(times, 0.02))
    assert [first for first, _, _ in cut] == np.cumsum([0, *(tuples for _, tuples, _ in cut[:-1])]).tolist()
    assert sum(tuples for _, tuples, _ in cut) == 500
    assert sum(takes for _, _, takes in cut) == pytest.approx(times.sum())
    assert all(takes <= 0.04 or tuples == 1 or takes <= 0.02 + times.max() for _, tuples, takes in cut)
    assert list(pieces(np.array([]), 0.02)) == []


@pytest.mark.parametrize(("speed", "takes_s"), [("1", 0.2), ("4", 0.05)])
def test_work_passes_all_tuples_on_after_their_time(
    monkeypatch: pytest.MonkeyPatch, speed: str, takes_s: float
) -> None:
    monkeypatch.setenv(SPEED_VARIABLE, speed)
    slept: list[float] = []
    now = [100.0]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    batch = pyarrow.RecordBatch.from_pydict({"id": list(range(100)), "entered_s": [0.0] * 100})
    out = list(work(iter([batch]), mean_s=0.002, scv=0.0, seed=0))
    assert [row["id"] for piece in out for row in piece.to_pylist()] == list(range(100))
    assert sum(slept) == pytest.approx(takes_s)
    assert max(slept) <= 0.02 + 1e-9


def test_a_node_that_says_nothing_has_speed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SPEED_VARIABLE, raising=False)
    assert node_speed() == 1.0


@pytest.mark.parametrize("name", ["pipeline", "diamond", "multi-sink"])
def test_the_application_has_the_shape_of_its_graph(name: str) -> None:
    graph = application_entry(name).graph(3)
    app = paced(graph, objective=_OBJECTIVE)
    assert app.sources == {"source": SCHEMA}
    assert {(stream.origin, stream.target) for stream in app.graph().streams} == {
        (stream.origin, stream.target) for stream in graph.streams
    }


def test_what_cannot_be_paced_is_named() -> None:
    with pytest.raises(InputError, match=r"filterByCoordinates.*selectivity"):
        paced(top_routes_graph(), objective=_OBJECTIVE)
    with pytest.raises(InputError, match="slowdown 0"):
        paced(application_entry("pipeline").graph(1), objective=_OBJECTIVE, slowdown=0)
