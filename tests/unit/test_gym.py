"""The Gymnasium environment."""

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from penstock.compiled import Floats
from penstock.control.spec import Manager
from penstock.domain.errors import InputError
from penstock.runtimes.sim.episode import world_of
from penstock.runtimes.sim.gym import OperatorScalingEnv
from penstock.simulation.one_operator import operator_of
from penstock.simulation.spec import OneOperator


def make(rates: Floats) -> OperatorScalingEnv:
    op = operator_of(OneOperator(operator_policy=Manager("fixed"), max_replicas=4), rates, rates, 1)
    return OperatorScalingEnv(world=world_of(op), problem=op.problem, rates=rates, first_deployment=0)


def test_it_passes_gymnasiums_own_check(walk: Floats) -> None:
    check_env(make(walk), skip_render_check=True)


def test_the_reward_is_minus_the_cost_of_the_paper(walk: Floats) -> None:
    """Adding a replica of the dearest type at low load: reconfiguration and resources, no violation."""
    env = make(np.full(5, 10.0))
    seen, info = env.reset()
    added_third_type = np.int64(6)
    assert info["action_mask"][6]
    after, reward, terminated, truncated, _ = env.step(added_third_type)
    # deployment 0 is one replica of the third type (speedup 1.3); C_max = 4 x 1.3
    assert seen.tolist()[:3] == [0, 0, 1]
    assert after.tolist()[:3] == [0, 0, 2]
    assert reward == pytest.approx(-(0.2 + 0.2 * 2 * 1.3 / (4 * 1.3)))
    assert not terminated
    assert not truncated


def test_an_impossible_action_does_nothing() -> None:
    env = make(np.full(5, 10.0))
    seen, info = env.reset()
    assert not info["action_mask"][1]
    after, reward, *_ = env.step(np.int64(1))
    assert after.tolist() == seen.tolist()
    assert reward == pytest.approx(-0.2 * 1.3 / (4 * 1.3))


def test_an_episode_ends_with_the_trace() -> None:
    env = make(np.full(5, 10.0))
    env.reset()
    ends = [env.step(np.int64(0))[3] for _ in range(4)]
    assert ends == [False, False, False, True]


def test_a_start_outside_the_trace_is_refused() -> None:
    with pytest.raises(ValueError, match="start=9"):
        make(np.full(5, 10.0)).reset(options={"start": 9})


@pytest.mark.parametrize("action", [-1, 99])
def test_an_action_that_does_not_exist_is_refused(walk: Floats, action: int) -> None:
    env = make(walk)
    env.reset(seed=1)
    with pytest.raises(InputError, match=f"action .*{action}"):
        env.step(np.int64(action))


def test_after_the_end_there_is_no_step() -> None:
    env = make(np.array([10.0, 20.0]))
    env.reset(seed=1)
    env.step(np.int64(0))
    with pytest.raises(InputError, match="reset"):
        env.step(np.int64(0))
