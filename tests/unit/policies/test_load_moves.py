"""What is learned of a load: its levels, and what follows what."""

import numpy as np
import pytest

from penstock.policy.rl.load_moves import (
    LEVELS,
    LoadMoves,
    fill_transitions,
    forgot,
    learn_rate,
    level_of_rate,
    load_moves,
    narrow,
    share_above,
    too_high,
    too_low,
    widen,
)


def learned(rates: list[float], memory: float = 1e9) -> LoadMoves:
    me = load_moves(memory=memory)
    for rate in rates:
        while too_high(me, rate):
            widen(me)
        learn_rate(me, rate)
    return me


def transitions(me: LoadMoves) -> np.ndarray:
    probability = np.zeros((LEVELS, LEVELS))
    fill_transitions(me, probability, np.zeros(LEVELS))
    return probability


def test_levels_become_as_wide_as_the_load_needs_and_keep_what_was_counted() -> None:
    me = learned([16.0, 17.0, 16.0, 17.0])
    assert me.width[0] == 1.0
    assert (me.counts[16, 17], me.counts[17, 16]) == (2.0, 1.0)
    while too_high(me, 200.0):
        widen(me)
    assert me.width[0] == 4.0
    assert me.counts[4, 4] == me.counts.sum() == 3.0
    assert level_of_rate(me, 200.0) == 50


def test_what_follows_a_level_often_seen_is_what_followed_it() -> None:
    rng = np.random.default_rng(1)
    rates = np.where(rng.random(40_000) < 0.3, 16.5, 20.5)
    row = transitions(learned([16.0, *rates]))[16]
    assert row[16] == pytest.approx(0.3, abs=0.02)
    assert row[20] == pytest.approx(0.7, abs=0.02)
    assert row.sum() == pytest.approx(1.0, abs=1e-4)


def test_a_level_never_seen_moves_as_its_neighbours_do() -> None:
    rises = [rate for _ in range(200) for rate in (16.5, 19.5)]  # up by three levels, and back down
    row = transitions(learned([16.0, *rises]))[17]
    assert row[20] > 0.4  # 17 is next to 16, where it always rises by three


def test_before_anything_is_known_a_load_stays_near_where_it_is() -> None:
    row = transitions(load_moves(memory=10.0))[30]
    assert row.argmax() == 30
    assert row[28:33].sum() > 0.8


def test_older_moves_fade() -> None:
    me = learned([16.0] + [16.5, 20.5] * 500 + [16.5, 18.5] * 500, memory=50.0)
    row = transitions(me)[16]
    assert row[18] > 25 / (25 + 8)  # at least 25 counts are left, and what neighbours do is worth eight
    assert row[20] < 0.05


def test_a_load_that_stays_low_is_looked_at_more_closely() -> None:
    me = learned([1600.0])
    steps = 0
    while not too_low(me, 10.0):
        learn_rate(me, 10.0)
        steps += 1
        assert steps < 100_000
    assert not too_low(me, 1600.0)  # it is back
    before = me.counts.copy()
    narrow(me)
    assert me.width[0] == 50.0
    assert me.counts.sum() == pytest.approx(before[:32, :32].sum())
    assert me.counts[1, 0] == before[0, 0] / 4


def test_no_load_has_no_level() -> None:
    me = load_moves(memory=10.0)
    assert learn_rate(me, 0.0) == -1
    assert not too_high(me, 1e9)
    assert learn_rate(me, 5.0) == LEVELS // 4
    assert learn_rate(me, 0.0) == 0


def test_a_level_that_was_never_visited_could_be_anywhere_within_its_bounds() -> None:
    me = learned([16.0])
    assert share_above(me, 40, 40.25) == pytest.approx(0.75)
    assert (share_above(me, 40, 41.0), share_above(me, 40, 39.9)) == (0.0, 1.0)


def test_a_steady_load_is_known_more_closely_than_its_level() -> None:
    me = learned([16.0] + [20.4] * 200)
    assert me.low[20] == pytest.approx(20.4, abs=0.01)
    assert share_above(me, 20, 20.45) == 0.0
    assert share_above(me, 20, 20.35) == 1.0


def test_a_load_spread_evenly_over_its_level_is_above_a_limit_as_often_as_it_is() -> None:
    rates = 20.0 + np.random.default_rng(3).random(5000)
    me = learned([16.0, *rates], memory=1000.0)
    assert share_above(me, 20, 20.3) == pytest.approx(0.7, abs=0.05)


def test_a_higher_rate_is_noticed_at_once() -> None:
    me = learned([16.0] + [20.4] * 200 + [20.9])
    assert share_above(me, 20, 20.65) == pytest.approx(0.5, abs=0.02)


def test_what_is_known_within_levels_survives_wider_and_narrower_ones() -> None:
    me = learned([16.0] + [20.4] * 200)
    widen(me)
    assert (me.low[10], me.high[10]) == pytest.approx((20.4, 20.4), abs=0.01)  # 21 to 22 was never visited
    assert (me.low[11], me.high[11]) == (22.0, 24.0)
    assert (me.low[40], me.high[40]) == (80.0, 82.0)
    narrow(me)
    assert (me.low[20], me.high[20]) == pytest.approx((20.4, 20.4), abs=0.01)
    assert (me.low[21], me.high[21]) == (21.0, 22.0)


def noticed_after(rates: np.ndarray, me: LoadMoves) -> int | None:
    """Slots until it is noticed that the load moves otherwise."""
    for slot, rate in enumerate(rates, 1):
        learn_rate(me, float(rate))
        if forgot(me):
            return slot
    return None


def test_a_load_that_moves_otherwise_is_noticed_soon_and_mostly_forgotten() -> None:
    rng = np.random.default_rng(4)
    slow = 40.5 + np.abs(rng.integers(-1, 2, 20_000).cumsum() % 40 - 20)  # between 40 and 60, step by step
    me = learned([16.0, *slow])
    assert noticed_after(rng.uniform(40, 60, 200), me) in range(
        18, 60
    )  # with all of them surprising, after 18
    assert me.counts.sum(axis=1).max() <= 20.0 + 1e-9


def test_a_load_that_moves_as_ever_is_never_taken_for_another() -> None:
    rng = np.random.default_rng(5)
    rates = np.clip(32.5 + rng.normal(0, 8, 200_000), 0, 63)  # one move in twenty is larger than that share
    assert noticed_after(rates, learned([16.0, *rates[:2000]])) is None


def test_a_steady_load_surprises_nobody() -> None:
    me = learned([16.0, *([40.5] * 500)])
    assert noticed_after(np.full(500, 40.5), me) is None


def test_little_that_was_counted_cannot_surprise() -> None:
    me = learned([16.0, *([40.5] * 10)])
    assert noticed_after(np.tile([20.5, 60.5], 9), me) is None  # neither level was seen twenty times
