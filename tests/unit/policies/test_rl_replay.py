"""Experience replay: first in, first out; batches without replacement, every experience as likely."""

import numpy as np
import pytest

from penstock.policy.rl.replay import Replay, draw, first_with, remembered, replay, store


def filled(experiences: int, *, capacity: int = 8, batch: int = 4) -> Replay:
    memory = replay(capacity=capacity, batch=batch)
    for number in range(experiences):
        store(memory, 100 + number, number, number % 3, number + 1, number / 2)
    return memory


def test_the_oldest_experience_goes_first() -> None:
    memory = filled(11)
    assert remembered(memory) == 8
    kept = sorted(
        (int(where), *(int(part) for part in what), float(cost))
        for where, what, cost in zip(memory.deployment, memory.transition, memory.cost, strict=True)
    )
    assert kept == [(100 + n, n, n % 3, n + 1, n / 2) for n in range(3, 11)]


@pytest.mark.parametrize(("experiences", "there"), [(4, 4), (6, 6), (8, 8), (20, 8)])
def test_a_batch_has_no_experience_twice_and_none_that_is_not_there(experiences: int, there: int) -> None:
    memory, rng = filled(experiences), np.random.default_rng(1)
    for _ in range(200):
        draw(memory, rng)
        assert len(set(memory.batch.tolist())) == 4
        assert 0 <= min(memory.batch) <= max(memory.batch) < there


def test_every_set_of_experiences_is_as_likely_as_any_other() -> None:
    memory, rng = filled(5, batch=2), np.random.default_rng(2)
    draws = 20_000
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(draws):
        draw(memory, rng)
        one = tuple(sorted(int(place) for place in memory.batch))
        counts[one] = counts.get(one, 0) + 1
    assert len(counts) == 10
    deviation = np.sqrt(draws * 0.1 * 0.9)
    assert all(abs(count - draws / 10) < 4.5 * deviation for count in counts.values())


def test_equal_keys_are_found_at_the_first_of_them() -> None:
    keys = np.array([7, 3, 7, 7, 3])
    assert [first_with(keys, index) for index in range(5)] == [0, 1, 0, 0, 1]
