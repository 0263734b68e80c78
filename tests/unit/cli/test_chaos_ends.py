"""How `penstock chaos` ends when somebody has had enough of it."""

import os
import signal
import time
from collections.abc import Callable

import pytest

from penstock.chaos.trial import Trial

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_one_that_is_told_to_end_leaves_no_process(
    how: signal.Signals, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a trial has started ends with it, as with Ctrl-C."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # not in tests that run in the background
    ended: list[str] = []

    def lived_through(trial: Trial) -> None:
        os.kill(os.getpid(), how)
        time.sleep(60)

    monkeypatch.setattr("penstock.chaos.trial.Trial._lived_through", lived_through)
    monkeypatch.setattr("penstock.chaos.trial.Faults.end", lambda faults: ended.append("all"))
    monkeypatch.setattr("penstock.java.java", lambda: "java")
    try:
        assert run("chaos", "--seed", "1", "--out", "trials") == (1, "", "penstock: interrupted\n")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert ended == ["all"]
