"""Pauses between restarts, with a clock of our own."""

from penstock.runtimes.spark.restarts import Restarts


def pause_s(restarts: Restarts, at_s: float) -> float:
    """How long something that fails at this moment is down."""
    assert restarts.failed({"query"}, at_s) == ["query"]
    said_s, later_s = restarts.due_in_s("query", at_s), at_s
    while not restarts.due(later_s):
        later_s += 0.5
        assert restarts.failed({"query"}, later_s) == [], "it is known by now"
    assert said_s == later_s - at_s
    return said_s


def test_each_pause_is_twice_the_one_before_up_to_a_minute() -> None:
    restarts, at_s, pauses = Restarts(), 1000.0, []
    for _ in range(8):
        pauses.append(pause_s(restarts, at_s))
        at_s += pauses[-1] + 2.0  # it fails again soon
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    assert restarts.failures["query"] == 8


def test_failures_are_forgotten_after_ten_minutes_of_health() -> None:
    restarts = Restarts()
    for day in range(20):
        assert pause_s(restarts, 86_400.0 * day) == 1
    assert restarts.failures["query"] == 1
    assert pause_s(restarts, 86_400.0 * 19 + 300) == 2


def test_what_somebody_else_started_meanwhile_is_not_started_again() -> None:
    restarts = Restarts()
    restarts.failed({"query"}, 0.0)
    restarts.failed(set(), 0.5)
    assert restarts.due(10.0) == []
