"""The simulated operator as a Gymnasium environment, over the same slot as everything else."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from penstock.compiled import Floats
from penstock.domain.errors import InputError
from penstock.perf.deployments import NOTHING, NOWHERE, after, replicas_at
from penstock.policy.rl.problem import Problem, known_cost, level_of, unknown_cost
from penstock.runtimes.sim.episode import World, observe

Observation = npt.NDArray[np.int64]


class OperatorScalingEnv(gymnasium.Env[Observation, np.int64]):
    """Scale one operator: add or remove one replica per slot, pay the cost of Russo 2023, eq. (2).

    Observations are replicas per node type and the rate level. Actions are 0 for nothing,
    then one fewer and one more of each node type; one that is not possible does nothing
    (`info["action_mask"]` says which are). The reward is minus the cost, resources charged
    for the deployment the action leads to, whatever the variant of the world. Reset with
    `options={"start": slot}` to begin elsewhere in the trace.
    """

    def __init__(self, *, world: World, problem: Problem, rates: Floats, first_deployment: int) -> None:
        self.metadata = {"render_modes": []}
        types = problem.deployments.speedup.size
        self.observation_space = spaces.MultiDiscrete(
            [problem.deployments.max_replicas + 1] * types + [problem.levels], dtype=np.int64
        )
        self._actions = 2 * types + 1
        self.action_space = spaces.Discrete(self._actions)
        self._world, self._problem, self._rates = world, problem, rates
        self._first_deployment = first_deployment
        self._slot, self._here = 0, first_deployment

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self._slot = int((options or {}).get("start", 0))
        if not 0 <= self._slot < self._rates.size - 1:
            raise InputError(f"start={self._slot}: the trace has {self._rates.size} slots")
        self._here = self._first_deployment
        return self._seen(), self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise InputError(f"action {action!r}: give an integer from 0 to {self._actions - 1}")
        if self._slot >= self._rates.size - 1:
            raise InputError("the trace is over; reset() before the next step")
        target = after(self._problem.deployments, self._here, int(action))
        done = int(action)
        if target == NOWHERE:
            target, done = self._here, NOTHING
        self._here = target
        self._slot += 1
        seen = observe(self._world, self._here, self._rates[self._slot])
        cost = known_cost(self._problem, done, target) + unknown_cost(self._problem, seen)
        over = self._slot == self._rates.size - 1
        return self._seen(), -float(cost), False, over, self._info()

    def _seen(self) -> Observation:
        counts = replicas_at(self._problem.deployments, self._here).counts
        return np.array([*counts, level_of(self._problem, self._rates[self._slot])], dtype=np.int64)

    def _info(self) -> dict[str, Any]:
        seen = observe(self._world, self._here, self._rates[self._slot])
        space = self._problem.deployments
        possible = [after(space, self._here, action) != NOWHERE for action in range(self._actions)]
        return {
            "slot": self._slot,
            "rate": float(self._rates[self._slot]),
            "response_time_s": float(seen.response_time_s),
            "utilisation": float(seen.utilisation),
            "action_mask": np.array(possible, dtype=np.int8),
        }
