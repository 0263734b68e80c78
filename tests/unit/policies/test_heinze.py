"""Heinze et al.: presets, one SARSA step, monotony, and what becomes of extreme utilisations."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from policy_cases import at, node_types, observation, seen, space_of

from penstock.domain.decision import Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
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
    # 0.05 added 8 times is 0.39999999999999997: it lands on level 7, and level 8 is never preset.
    total = 0.0
    for _ in range(8):
        total += 0.05
    assert int(total * 20) == 7
    q = heinze(as_published=True).initial().q
    assert q[8].tolist() == [0.0, 0.0, 0.0]
    assert sorted(q[9].tolist()) == [0.0, 1.0, 1.0]


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
