"""How `penstock run` ends, with runs that are made up."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.domain.deployment import Replicas
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.live.record import Interval, Summary
from penstock.live.run import LiveRun
from penstock.reports.live_run import in_a_row
from penstock.runtimes.spark.stream_log import StreamLog

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def ctrl_c_is_heard() -> Iterator[None]:
    """It is not in tests that a shell has started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def with_signals(*numbers: int, response_s: float = 1.0) -> Callable[[LiveRun], Summary]:
    """As `LiveRun.run`: an interval, and then these signals."""

    def run(live: LiveRun) -> Summary:
        live.kept.begin(0.0)
        for sink in live.app.sinks.values():
            StreamLog(live.work / "streams" / sink).create()
        operators = tuple(
            OperatorObservation(
                operator=one.name,
                at_s=5.0,
                replicas=Replicas((1,)),
                arrival_rate=25.0,
                response_time_s=1.0,
                utilisation=None,
            )
            for one in live.controller.operators
        )
        seen = ApplicationObservation(
            at_s=5.0, response_time_s=response_s, operators=operators, source_rate=25.0
        )
        live.kept.interval(Interval(seen=seen, reasons=("steady",), changed=()))
        live.on_interval(live.kept.latest[-1])
        for number in numbers:
            os.kill(os.getpid(), number)
        return live._summary(5.0)

    return run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_ends_with_summary_and_report_and_can_go_on(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    before = signal.getsignal(number)
    monkeypatch.setattr(LiveRun, "run", with_signals(number))
    assert run("run", "paced", "--out", "stopped")[0] == 0
    assert signal.getsignal(number) is before
    assert (tmp_path / "stopped" / "report.html").exists()
    assert not json.loads((tmp_path / "stopped" / "summary.json").read_text())["finished"]

    def goes_on(live: LiveRun) -> Summary:
        live.on_accepted()  # as it does when nothing will be refused any more
        assert not (tmp_path / "stopped" / "summary.json").exists(), "it takes orders again"
        return with_signals()(live)

    monkeypatch.setattr(LiveRun, "run", goes_on)
    assert run("run", "paced", "--out", "stopped")[0] == 0
    status, _, err = run("run", "paced", "--out", "stopped")
    assert status == 2
    assert "it holds a finished run" in err


def test_a_second_ctrl_c_ends_it_at_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LiveRun, "run", with_signals(signal.SIGINT, signal.SIGINT))
    status, _, err = run("run", "paced", "--out", "stopped")
    assert status == 1
    assert err.splitlines()[-1] == "penstock: interrupted"
    assert not (tmp_path / "stopped" / "summary.json").exists()


def test_ctrl_c_ends_a_whole_comparison(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LiveRun, "run", with_signals(signal.SIGINT))
    status, _, err = run("compare", "--runtime", "spark", "--out", "side")
    assert (status, err.splitlines()[-1]) == (1, "penstock: interrupted")


@pytest.mark.parametrize(("response_s", "first"), [(60.0, True), (1.0, False)])
def test_a_run_that_missed_its_objective_says_so_first_and_its_page_ends_with_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, response_s: float, first: bool
) -> None:
    monkeypatch.setattr(LiveRun, "run", with_signals(response_s=response_s))
    _, out, _ = run("run", "paced", "--out", "ended")
    lines = [line for line in out.splitlines() if line.strip()]
    verdict = lines[0 if first else -1]
    assert verdict.startswith("Missed its objective" if first else "Kept 100 %")
    page = (tmp_path / "ended" / "report.html").read_text()
    assert page.count(f"<p class='note'>{verdict}</p>") == 2
    assert page.rstrip().endswith(f"<p class='note'>{verdict}</p></body></html>")
    assert "<summary>Every decision, and why</summary>" in page


def test_decisions_for_the_same_reasons_are_one_line() -> None:
    said = ["steady", "steady", "steady", "late", "steady", ""]
    rows = [{"at_s": 5.0 * number, "reasons": reasons} for number, reasons in enumerate(said, 1)]
    assert in_a_row(rows) == [("5 to 15", "steady"), ("20", "late"), ("25", "steady"), ("30", "-")]
