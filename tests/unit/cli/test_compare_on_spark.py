"""`penstock compare --runtime spark` from the first option to the last line, with runs that are made up."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.live.ownership import Ownership
from penstock.live.record import Interval, Summary
from penstock.live.run import LiveRun, RunError

Run = Callable[..., tuple[int, str, str]]

_INTERVALS = 30
# Response times in the last intervals, and replicas of every operator.
_MADE_UP = {
    "adaptive": (2.0, 2),
    "ds2": (9.0, 1),
    "threshold-c": (2.0, 4),
    "dynamic-allocation": (9.0, 8),
    "static-mean": (9.0, 2),
    "static-peak": (2.0, 3),
}


def made_up(live: LiveRun) -> Summary:
    """As `LiveRun.run`, in no time."""
    with pytest.raises(InputError, match="in use by another run"), Ownership(live.settings.out):
        pytest.fail("another could have this folder")
    live.kept.begin(0.0)
    response_s, replicas = _MADE_UP[live.settings.label]
    for number in range(_INTERVALS):
        at_s = 5.0 * (number + 1)
        operators = tuple(
            OperatorObservation(
                operator=one.name,
                at_s=at_s,
                replicas=Replicas((replicas,)),
                arrival_rate=25.0,
                response_time_s=1.0,
                utilisation=None,
            )
            for one in live.controller.operators
        )
        seen = ApplicationObservation(
            at_s=at_s, response_time_s=response_s, operators=operators, source_rate=25.0
        )
        interval = Interval(seen=seen, reasons=(), changed=())
        live.kept.interval(interval)
        live.on_interval(interval)
    live.kept.left([(response_s, 1000)])
    return live._summary(150.0)


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LiveRun, "run", made_up)


@pytest.mark.usefixtures("without_spark")
def test_six_contenders_one_after_another_with_progress_table_sentences_and_page(
    run: Run, tmp_path: Path
) -> None:
    status, out, err = run("compare", "--runtime", "spark", "--out", "side", "--minutes", 2.5)
    assert status == 0
    order = [line.partition(": ")[2] for line in err.splitlines() if " of 6: " in line]
    assert order == [f"{name}, 2.5 minutes" for name in _MADE_UP]
    assert err.count("replicas: lookup ") == 6 * _INTERVALS
    rows = {words[0]: line for line in out.splitlines() if (words := line.split()) and words[0] in _MADE_UP}
    assert list(rows) == list(_MADE_UP)
    assert "cheapest with at most 5 % violations" in rows["adaptive"]
    assert "67 %" in rows["adaptive"]  # two of three replicas
    assert "dearer than ds2" in rows["adaptive"]
    assert "over 5 % violations" in rows["dynamic-allocation"]
    told = [line for line in out.splitlines() if line.startswith(("holds: ", "does not hold: "))]
    assert [line.startswith("holds: ") for line in told] == [True, True, True, False]
    assert "(600 against 300 replica-seconds), at no more violations (0.0 against 100.0 %)" in told[3]
    page = (tmp_path / "side" / "comparison.html").read_text()
    assert "plot-2" in page
    assert "ramp, 25 to 200 tuples/s" in page
    assert all((tmp_path / "side" / name / "report.html").exists() for name in _MADE_UP)


@pytest.mark.usefixtures("without_spark")
def test_json_is_one_object_with_everything(run: Run, tmp_path: Path) -> None:
    words = ("--policies", "adaptive,static-peak", "--out", "side", "--json")
    status, out, _ = run("compare", "--runtime", "spark", *words)
    assert status == 0
    answer = json.loads(out)
    assert answer == json.loads((tmp_path / "side" / "comparison.json").read_text())
    assert [one["policy"] for one in answer["runs"]] == ["adaptive", "static-peak"]
    assert answer["runs"][0]["of_static_peak_pct"] == pytest.approx(200 / 3)
    assert len(answer["runs"][0]["over_time"]) == _INTERVALS
    assert (answer["application"], answer["objective_s"], answer["cheapest"]) == ("lookups", 5.0, "adaptive")
    assert [one["holds"] for one in answer["findings"]] == [True, True]


def test_what_is_done_stays_when_a_later_run_fails(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(live: LiveRun) -> Summary:
        if live.settings.label == "ds2":
            raise RunError("query 'score' failed 5 times")
        return made_up(live)

    monkeypatch.setattr(LiveRun, "run", failing)
    words = ("--policies", "adaptive,ds2,static-peak", "--out", "side")
    status, out, err = run("compare", "--runtime", "spark", *words)
    assert (status, out) == (1, "")
    assert "query 'score' failed 5 times" in err
    assert (tmp_path / "side" / "adaptive" / "summary.json").exists()
    assert not (tmp_path / "side" / "comparison.html").exists()


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--load", "zigzag"), "load 'zigzag': unknown"),
        (("--interval", "0"), "interval"),
        (("--application", "top-routes"), "its service times are not known in advance"),
        (("--application", "nope"), "application 'nope': unknown"),
        (("--out", "taken"), "--out taken: not an empty folder"),
        (("--out", "taken/file"), "--out taken/file: not an empty folder"),
        (("--set", "static-peak.replicas=3"), "'static-peak' is not one of adaptive, ds2, threshold-c"),
    ],
)
def test_what_cannot_be_run_is_reported_before_anything_runs(
    run: Run, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    status, out, err = run("compare", "--runtime", "spark", *words)
    assert (status, out) == (2, "")
    assert message in err
    assert " of 6: " not in err
    assert not (tmp_path / "out").exists()
