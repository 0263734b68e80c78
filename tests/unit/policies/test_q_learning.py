"""Q-learning: Russo 2023, eq. (5) and sec. 6.2; Cardellini 2018, sec. 5.2.1."""

import numpy as np
import pytest
from policy_cases import LATE, at, node_types, observation, play, problem_of, seen, space_of

from penstock.compiled import Floats
from penstock.perf.deployments import NOTHING, Deployments, adding, removing
from penstock.policy.kernel import InPlace, step
from penstock.policy.operator.q_learning import QLearner, QLearning
from penstock.policy.rl import tables
from penstock.policy.rl.experience import remember
from penstock.policy.rl.tables import row_to_read, row_to_write
from penstock.testing.operator_policy import same

LEVELS = 3
MOST = 3
ONE_TYPE = node_types()
SPACE = space_of(ONE_TYPE, MOST)
ADD, REMOVE = adding(SPACE, 0), removing(SPACE, 0)


def q_learning(
    space: Deployments = SPACE, *, gamma: float = 0.99, expected_steps: int = 100_000, levels: int = LEVELS
) -> QLearning:
    types = node_types(tuple(float(s) for s in space.speedup), tuple(float(p) for p in space.price))
    return QLearning(
        node_types=types,
        deployments=space,
        problem=problem_of(space, levels=levels),
        gamma=gamma,
        expected_steps=expected_steps,
    )


def greedy_learner(*, gamma: float = 0.5, alpha: float = 0.25) -> QLearner:
    """Halfway through learning, no longer exploring."""
    memory = q_learning(gamma=gamma).initial()
    memory.alpha.now[0] = alpha
    memory.epsilon.now[0] = -1.0
    return memory


def row(memory: QLearner, replicas: int, level: int) -> Floats:
    """Q(s, .) as [nothing, remove, add], to read and to write."""
    values: Floats = memory.q.values[row_to_read(memory.q, at(SPACE, replicas) * LEVELS + level)]
    return values


def test_one_update_is_equation_5() -> None:
    memory = greedy_learner(gamma=0.5, alpha=0.25)
    row(memory, 1, 0)[ADD] = 0.8  # Q(s, a)
    row(memory, 2, 1)[:] = [3.0, 2.0, 4.0]  # Q(s', .)
    remember(memory.last, at(SPACE, 1), 0, ADD, at(SPACE, 2))
    step(memory, seen(at(SPACE, 2), rate=150.0, response_time_s=LATE), np.random.default_rng(1))
    cost = 0.6 + 0.2 * 2 / 3 + 0.2  # late, two of three replicas, reconfigured
    assert row(memory, 1, 0)[ADD] == pytest.approx(0.75 * 0.8 + 0.25 * (cost + 0.5 * 2.0))
    assert row(memory, 1, 0)[[NOTHING, REMOVE]].tolist() == [0.0, 0.0]
    assert row(memory, 2, 1).tolist() == [3.0, 2.0, 4.0]


def test_the_outlook_counts_only_actions_that_are_possible() -> None:
    memory = greedy_learner(gamma=0.5, alpha=1.0)
    row(memory, 3, 1)[:] = [3.0, 2.0, -7.0]  # three replicas are all there may be: nothing to add
    remember(memory.last, at(SPACE, 2), 0, ADD, at(SPACE, 3))
    target, _ = step(memory, seen(at(SPACE, 3), rate=150.0), np.random.default_rng(1))
    assert row(memory, 2, 0)[ADD] == pytest.approx(0.2 * 3 / 3 + 0.2 + 0.5 * 2.0)
    assert target == at(SPACE, 2)


def test_the_choice_is_made_with_what_was_just_learned() -> None:
    memory = greedy_learner(gamma=0.0, alpha=1.0)
    row(memory, 1, 0)[ADD] = 0.5
    remember(memory.last, at(SPACE, 1), 0, NOTHING, at(SPACE, 1))
    # Doing nothing was worth 0 before this violation and 0.6 + 0.2 / 3 after it: more than adding.
    target, _ = step(memory, seen(at(SPACE, 1), response_time_s=LATE), np.random.default_rng(1))
    assert target == at(SPACE, 2)


def test_a_tie_goes_to_the_first_action() -> None:
    memory = greedy_learner()
    target, _ = step(memory, seen(at(SPACE, 2)), np.random.default_rng(1))
    assert target == at(SPACE, 2)
    row(memory, 2, 1)[NOTHING] = 1.0
    target, _ = step(memory, seen(at(SPACE, 2), rate=150.0), np.random.default_rng(1))
    assert target == at(SPACE, 1)  # removing comes before adding


def test_a_refused_request_is_learned_as_doing_nothing() -> None:
    memory = greedy_learner(gamma=0.0, alpha=1.0)
    remember(memory.last, at(SPACE, 1), 0, ADD, at(SPACE, 2))
    step(memory, seen(at(SPACE, 1), response_time_s=LATE), np.random.default_rng(1))
    assert row(memory, 1, 0)[NOTHING] == pytest.approx(0.6 + 0.2 * 1 / 3)  # no reconfiguration was paid
    assert row(memory, 1, 0)[ADD] == 0.0


def test_nothing_is_learned_from_a_change_made_by_someone_else() -> None:
    memory = greedy_learner()
    remember(memory.last, at(SPACE, 1), 0, ADD, at(SPACE, 2))
    step(memory, seen(at(SPACE, 3), response_time_s=LATE), np.random.default_rng(1))
    assert not memory.q.values.any()
    assert (memory.alpha.now[0], memory.alpha.steps[0]) == (0.25, 0)


def test_one_draw_decides_whether_to_explore_and_only_then_another_picks_any_possible_action() -> None:
    memory = q_learning().initial()
    row(memory, 1, 0)[:] = [1.0, 0.0, 0.5]
    row(memory, 3, 0)[:] = [1.0, 0.5, 0.0]
    row(memory, 2, 0)[:] = [0.0, 1.0, 1.0]
    rng, twin = np.random.default_rng(8), np.random.default_rng(8)
    possible = {1: [1, 2], 2: [2, 1, 3], 3: [3, 2]}  # in the order nothing, remove, add
    greedy = {1: 2, 2: 2, 3: 2}
    explored = 0
    for slot in range(300):
        memory.last[0] = -1  # no learning: the values stay as set
        memory.epsilon.now[0] = 0.4
        replicas = 1 + slot % 3
        target, _ = step(memory, seen(at(SPACE, replicas)), rng)
        explores = twin.random() <= 0.4
        explored += explores
        choices = possible[replicas]
        expected = choices[int(twin.random() * len(choices))] if explores else greedy[replicas]
        assert target == at(SPACE, expected)
    assert rng.bit_generator.state == twin.bit_generator.state
    assert 0 < explored < 300


def test_step_size_and_exploration_decay_as_the_paper_says_down_to_the_floors() -> None:
    memory = q_learning().initial()
    rng = np.random.default_rng(2)
    here = at(SPACE, 1)
    for t in range(1, 1300):  # the t-th decision uses these, Russo 2023 sec. 6.2
        assert memory.epsilon.now[0] == pytest.approx(max(0.95 ** (t - 1), 0.01))
        # Learning starts with the second decision.
        assert memory.alpha.now[0] == pytest.approx(max(0.98 ** (max(t - 2, 0) // 10), 0.1))
        here, _ = step(memory, seen(here), rng)
    assert (memory.epsilon.now[0], memory.alpha.now[0]) == (0.01, 0.1)


def test_the_score_is_the_expected_gain_over_the_largest_so_far() -> None:
    # Cardellini 2018, sec. 5.2: [Q(s, 0) - Q(s, a)] / max{1, all such gains up to now}
    memory = greedy_learner()
    row(memory, 1, 0)[:] = [0.7, 0.0, 0.2]
    row(memory, 1, 1)[:] = [5.0, 0.0, 1.0]
    scores = []
    for rate in (50.0, 150.0, 50.0):
        memory.last[0] = -1
        scores.append(step(memory, seen(at(SPACE, 1), rate=rate), np.random.default_rng(1))[1])
    assert scores == pytest.approx([0.5 / 1, 4.0 / 4, 0.5 / 4])


THREE_TYPES = node_types((1.0, 0.5, 1.5))  # prices a float holds exactly: costs add up alike in any order
RATES = np.abs(np.random.default_rng(5).normal(150, 80, 1500))


def test_hashed_tables_give_the_trajectory_of_dense_ones_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    space = space_of(THREE_TYPES, 4)
    policy = q_learning(space, expected_steps=RATES.size)
    dense = policy.initial()
    monkeypatch.setattr(tables, "LARGEST_DENSE_BYTES", 0)
    hashed = policy.initial()
    assert dense.q.keys.size == 0 < hashed.q.keys.size
    first = at(space, 1, 0, 0)
    by_dense = play(space, dense, RATES, first, np.random.default_rng(3))
    by_hash = play(space, hashed, RATES, first, np.random.default_rng(3))
    assert by_dense == by_hash
    assert len(set(by_dense)) == space.replicas.size, "the walk is meant to visit every deployment"
    for key in range(space.replicas.size * LEVELS):
        kept = row_to_read(hashed.q, key)
        expected = dense.q.values[key]
        assert (hashed.q.values[kept] if kept >= 0 else np.zeros_like(expected)).tolist() == expected.tolist()


def test_packed_deployments_give_the_trajectory_of_enumerated_ones() -> None:
    trajectories = []
    for packed in (False, True):
        space = space_of(THREE_TYPES, 4, packed=packed)
        memory = q_learning(space, expected_steps=RATES.size).initial()
        trajectories.append(play(space, memory, RATES, at(space, 1, 0, 0), np.random.default_rng(3)))
    assert trajectories[0] == trajectories[1]


def test_a_live_learner_makes_room_before_its_hashed_table_fills_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LARGEST_DENSE_BYTES", 0)
    policy = q_learning(expected_steps=1)
    memory = policy.initial()
    size = memory.q.keys.size
    keys = range(1000, 1000 + size // 2 + 1)  # one more than half
    for key in keys:
        memory.q.values[row_to_write(memory.q, key), NOTHING] = key
    ready = policy.prepared(memory)
    assert (memory.q.keys.size, ready.q.keys.size) == (size, 2 * size)
    for key in keys:
        assert ready.q.values[row_to_read(ready.q, key), NOTHING] == key


def test_in_place_a_hashed_table_grows_and_the_decisions_stay_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tables, "LARGEST_DENSE_BYTES", 0)
    policy = q_learning(expected_steps=1, levels=900)  # more than half of a table of 1024
    memory, own = policy.initial(), policy.in_place(policy.initial(), explains=False)
    assert isinstance(own, InPlace)
    size = memory.q.keys.size
    rng, own_rng = np.random.default_rng(1), np.random.default_rng(1)
    for rate in np.random.default_rng(2).uniform(0, 300, 2 * size):
        what = observation(1, rate=float(rate))
        decision, memory = policy.decide(memory, what, rng)
        decided, own = policy.decide(own, what, own_rng)
        assert type(decided) is type(decision)
        assert getattr(decided, "target", None) == getattr(decision, "target", None)
    assert memory.q.keys.size > size
    assert same(memory, own.memory)


def test_what_was_learned_keeps_a_calm_operator_where_it_is_cheapest() -> None:
    """One replica serves 50 of its 100 t/s in 1 / (100 - 50) = 20 ms, so the optimum is to stay at one."""
    memory = q_learning(gamma=0.9).initial()
    chosen = play(SPACE, memory, np.full(4000, 50.0), at(SPACE, 3), np.random.default_rng(4))
    assert chosen[-1000:].count((1,)) > 950
