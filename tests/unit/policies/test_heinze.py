"""Heinze et al.: presets, one SARSA step, monotony, and what becomes of extreme utilisations."""

from dataclasses import dataclass, field
from fractions import Fraction
from math import inf

import numpy as np
import pytest
from policy_cases import at, node_types, observation, seen, space_of

from penstock.compiled import Floats
from penstock.domain.decision import Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.perf.deployments import replicas_at
from penstock.policy.kernel import step
from penstock.policy.operator.heinze import Heinze
from penstock.policy.operator.node_choice import NodeChoice

MOST = 4
FEWER, SAME, MORE = range(3)
RNG = np.random.default_rng(1)  # never drawn from: the policy is greedy
TYPES = node_types()
SPACE = space_of(TYPES, MOST)


def heinze(*, target: float = 0.75, as_published: bool = False) -> Heinze:
    return Heinze(
        node_types=TYPES,
        deployments=SPACE,
        node_choice=NodeChoice.FIRST,
        target=target,
        published_updates=as_published,
    )


def preset_by_definition(state: int, target: Fraction) -> int:
    """The action preset to 0 (reference, Heinze): more above the target, fewer below half of it."""
    utilisation = Fraction(state, 20)
    if utilisation > target:
        return MORE
    return FEWER if utilisation < target / 2 else SAME


@pytest.mark.parametrize(
    "target",
    ["0.5", "0.65", "0.7", "0.75"],
)
def test_presets_are_what_a_threshold_policy_would_do(target: str) -> None:
    q = heinze(target=float(target)).initial().q
    best = [preset_by_definition(state, Fraction(target)) for state in range(q.shape[0])]
    expected = np.ones_like(q)
    expected[np.arange(q.shape[0]), best] = 0.0
    assert q.tolist() == expected.tolist()


def test_presets_as_published_skip_the_levels_that_adding_up_twentieths_steps_over() -> None:
    # 0.05 added 11 times is 0.5499999999999999: it lands on level 10, and level 11 is never preset.
    total = 0.0
    for _ in range(11):
        total += 0.05
    assert int(total * 100 / 5) == 10
    q = heinze(as_published=True).initial().q
    assert q[11].tolist() == [0.0, 0.0, 0.0]
    assert sorted(q[12].tolist()) == [0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("utilisation", "replicas", "expected"),
    [(0.9, 2, 3), (0.5, 2, 2), (0.1, 2, 1), (0.9, MOST, MOST), (0.1, 1, 1), (12.0, 2, 3), (inf, 2, 3)],
)
def test_before_it_has_learned_it_decides_by_the_presets(
    utilisation: float, replicas: int, expected: int
) -> None:
    policy = heinze()
    decision, _ = policy.decide(policy.initial(), observation(replicas, utilisation=utilisation), RNG)
    if expected == replicas:
        assert isinstance(decision, Hold)
    else:
        assert isinstance(decision, Scale)
        assert decision.target == Replicas((expected,))


@pytest.mark.parametrize(
    ("utilisation", "state"),
    [
        (0.0, 0),
        (0.049, 0),
        (0.05, 1),
        (0.55, 11),
        (0.999, 19),
        (1.0, 20),
        (10.0, 200),
        (11.0, 200),
        (inf, 200),
    ],
)
def test_states_are_twentieths_of_utilisation_up_to_ten(utilisation: float, state: int) -> None:
    memory = heinze().initial()
    step(memory, seen(at(SPACE, 2), utilisation=utilisation), RNG)
    assert memory.last[0] == state


def test_one_update_is_a_step_of_sarsa_towards_the_distance_from_the_target() -> None:
    memory = heinze(target=0.75).initial()
    memory.q[12, SAME] = 0.5
    memory.q[10] = [0.9, 0.25, 0.8]
    step(memory, seen(at(SPACE, 2), utilisation=0.62), RNG)  # state 12: stays
    step(memory, seen(at(SPACE, 2), utilisation=0.52), RNG)  # state 10: 0.50, 0.25 off the target; stays
    assert memory.q[12, SAME] == pytest.approx(0.7 * 0.5 + 0.3 * (0.25 + 0.99 * 0.25))
    assert memory.q[12, [FEWER, MORE]].tolist() == [1.0, 1.0]
    assert memory.q[10].tolist() == [0.9, 0.25, 0.8]


@pytest.mark.parametrize(
    ("ran_next", "credited"),
    [(3, MORE), (2, SAME), (4, SAME)],  # granted; refused; somebody else's change
)
def test_an_action_is_credited_only_where_it_was_carried_out(ran_next: int, credited: int) -> None:
    memory = heinze(target=0.75).initial()
    memory.q[18] = [0.9, 0.8, 0.2]
    memory.q[12] = [0.9, 0.25, 0.8]
    wanted, _ = step(memory, seen(at(SPACE, 2), utilisation=0.9), RNG)  # state 18: one more
    assert wanted == at(SPACE, 3)
    step(memory, seen(at(SPACE, ran_next), utilisation=0.62), RNG)  # state 12: 0.60, 0.15 off the target
    expected = [0.9, 0.8, 0.2]
    expected[credited] = 0.7 * expected[credited] + 0.3 * (0.15 + 0.99 * 0.25)
    assert memory.q[18].tolist() == pytest.approx(expected)


def test_adding_now_makes_removing_worse_at_every_load_from_the_last_one_up() -> None:
    memory = heinze().initial()
    rng = np.random.default_rng(3)
    memory.q[:] = rng.uniform(0, 1, memory.q.shape)
    memory.q[15, MORE] = -1.0
    before = memory.q.copy()
    step(memory, seen(at(SPACE, 2), utilisation=0.6), RNG)  # state 12
    step(memory, seen(at(SPACE, 2), utilisation=0.75), RNG)  # adds
    assert memory.last.tolist()[:2] == [15, MORE]
    np.testing.assert_allclose(memory.q[12:, FEWER], memory.q[12:, MORE] + 0.1)
    assert memory.q[:12].tolist() == before[:12].tolist()


def test_removing_now_makes_adding_worse_at_every_load_from_the_last_one_down() -> None:
    memory = heinze().initial()
    rng = np.random.default_rng(3)
    memory.q[:] = rng.uniform(0, 1, memory.q.shape)
    memory.q[4, FEWER] = -1.0
    before = memory.q.copy()
    step(memory, seen(at(SPACE, 2), utilisation=0.6), RNG)  # state 12
    step(memory, seen(at(SPACE, 2), utilisation=0.2), RNG)  # removes
    assert memory.last.tolist()[:2] == [4, FEWER]
    np.testing.assert_allclose(memory.q[:13, MORE], memory.q[:13, FEWER] + 0.1)
    assert memory.q[13:].tolist() == before[13:].tolist()


@pytest.mark.parametrize(
    ("utilisation", "state", "as_published"),
    [
        (0.7, 14, 14),
        (0.55, 11, 11),
        (1.15, 23, 22),  # 114.99999999999999 / 5
        (2.05, 41, 40),
        (inf, 200, 200),
    ],
)
def test_as_published_a_state_is_a_hundredfold_over_five_truncated(
    utilisation: float, state: int, as_published: int
) -> None:
    for published, expected in ((False, state), (True, as_published)):
        memory = heinze(as_published=published).initial()
        step(memory, seen(at(SPACE, 2), utilisation=utilisation), RNG)
        assert memory.last[0] == expected


def test_as_published_adding_leaves_out_the_states_that_the_loop_steps_over() -> None:
    memory = heinze(as_published=True).initial()
    rng = np.random.default_rng(3)
    memory.q[:] = rng.uniform(0, 1, memory.q.shape)
    memory.q[15, MORE] = -1.0
    before = memory.q.copy()
    step(memory, seen(at(SPACE, 2), utilisation=0.3), RNG)  # state 6
    step(memory, seen(at(SPACE, 2), utilisation=0.75), RNG)  # adds
    visited = states_from(0.3, up=True)
    assert set(range(6, 201)) - visited  # some are skipped
    skipped = sorted(set(range(201)) - visited)
    assert memory.q[skipped].tolist() == before[skipped].tolist()
    np.testing.assert_allclose(memory.q[sorted(visited), FEWER], memory.q[sorted(visited), MORE] + 0.1)


def states_from(utilisation: float, *, up: bool) -> set[int]:
    """Where the published loop comes by: u += .05 while u <= 10, or u -= .05 while u >= 0."""
    states = set()
    while 0 <= utilisation <= 10:
        states.add(int(utilisation * 100 / 5))
        utilisation += 0.05 if up else -0.05
    return states


@dataclass
class Published:
    """The published code's Heinze as the notes describe it, one node type, in plain Python."""

    target: float
    most: int
    alpha: float = 0.3
    slots: int = 0
    last: tuple[int, int] | None = None
    q: dict[tuple[int, int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        u = 0.0
        while u <= 10:
            best = MORE if u > self.target else FEWER if u < self.target / 2 else SAME
            for action in (FEWER, SAME, MORE):
                self.q[int(u * 100 / 5), action] = 0.0 if action == best else 1.0
            u += 5 / 100.0

    def at(self, state: int, action: int) -> float:
        return self.q.get((state, action), 0.0)

    def decide(self, replicas: int, utilisation: float) -> int:
        state = int(min(utilisation, 10.0) * 100 / 5)
        valid = [SAME, *([FEWER] if replicas > 1 else []), *([MORE] if replicas < self.most else [])]
        action = min(valid, key=lambda one: self.at(state, one))  # the first of the least
        if self.last is not None:
            then, did = self.last
            cost = abs(1.0 * state * 5 / 100.0 - self.target)
            self.q[then, did] = (1.0 - self.alpha) * self.at(then, did) + self.alpha * (
                cost + 0.99 * self.at(state, action)
            )
            u = 1.0 * then * 5 / 100.0
            if action == MORE:
                while u <= 10:
                    level = int(u * 100 / 5)
                    self.q[level, FEWER] = self.at(level, MORE) + 0.1
                    u += 0.05
            elif action == FEWER:
                while u >= 0:
                    level = int(u * 100 / 5)
                    self.q[level, MORE] = self.at(level, FEWER) + 0.1
                    u -= 0.05
        self.slots += 1
        if self.slots % 10 == 0:
            self.alpha = max(self.alpha * 0.98, 0.1)
        self.last = (state, action)
        return replicas + action - SAME


@pytest.mark.parametrize("target", [0.5, 0.7])
def test_as_published_it_decides_as_the_description_of_the_published_code(
    target: float, walk: Floats
) -> None:
    policy, plain = heinze(target=target, as_published=True), Published(target, MOST)
    memory, replicas, plain_replicas = policy.initial(), 1, 1
    for rate in walk:
        busy = float(rate) / 180.0 / replicas
        here, _ = step(memory, seen(at(SPACE, replicas), utilisation=busy), RNG)
        plain_replicas = plain.decide(plain_replicas, busy)
        replicas = replicas_at(SPACE, here).total
        assert replicas == plain_replicas
    assert [[plain.at(state, action) for action in range(3)] for state in range(201)] == memory.q.tolist()


def test_as_published_the_step_size_decays_from_the_first_slot_on() -> None:
    memory = heinze(as_published=True).initial()
    for slots in range(40):
        assert memory.alpha.now[0] == pytest.approx(0.3 * 0.98 ** (slots // 10))
        step(memory, seen(at(SPACE, 2), utilisation=0.6), RNG)


def test_the_step_size_starts_at_three_tenths_and_decays_to_one() -> None:
    memory = heinze().initial()
    assert memory.alpha.now[0] == 0.3
    for learned in range(800):
        assert memory.alpha.now[0] == pytest.approx(max(0.3 * 0.98 ** (max(learned - 1, 0) // 10), 0.1))
        step(memory, seen(at(SPACE, 2), utilisation=0.6), RNG)


def test_more_replicas_are_of_its_own_type_and_the_oldest_goes_first() -> None:
    types = node_types((1.0, 2.0))
    space = space_of(types, MOST)
    policy = Heinze(node_types=types, deployments=space, node_choice=NodeChoice.FASTEST, target=0.75)
    memory = policy.initial()
    here, _ = step(memory, seen(at(space, 1, 0), utilisation=0.9), RNG)
    assert here == at(space, 1, 1)
    here, _ = step(memory, seen(here, utilisation=0.1), RNG)
    assert here == at(space, 0, 1)


@pytest.mark.parametrize("target", [0.0, 1.0])
def test_a_target_that_is_no_utilisation_is_refused(target: float) -> None:
    with pytest.raises(InputError, match=f"target={target:g}: it must be above 0 and below 1"):
        heinze(target=target)
