"""One agent per operator: the decentralised elasticity problem of Russo 2018.

Alg. 1 on the operator's own state (k, level of its rate). It cannot see the application's
response time, so a violation is a utilisation above a target (eq. 2), learned by eq. (6).
The algorithm is that of `model_based` without the bounds between states, which Russo 2018
does not have.
"""

from dataclasses import dataclass
from math import inf
from typing import Annotated

from penstock.policy.kernel import CompiledPolicy, Seen
from penstock.policy.operator.model_based import SWEEPS, ModelLearner, Sweeps, model_learner
from penstock.policy.parameters import Param, check_parameters
from penstock.policy.registry import operator_policy
from penstock.policy.rl.backup import need_enumeration
from penstock.policy.rl.post_decision import greedy_reason
from penstock.policy.rl.problem import Problem, level_of
from penstock.policy.rl.schedules import schedule


@operator_policy("target-utilisation", needs_model=True)
@dataclass(frozen=True, kw_only=True)
class TargetUtilisation(CompiledPolicy[ModelLearner]):
    """Learns to keep utilisation below a target at the lowest cost; ignores response times."""

    problem: Problem
    target: Annotated[float, Param("utilisation above which an interval is late", above=0, below=1)] = 0.7
    gamma: Annotated[float, Param("discount factor for later costs", at_least=0, below=1)] = 0.99
    alpha: Annotated[float, Param("step size", above=0, at_most=1)] = 0.1
    sweeps: Sweeps = SWEEPS

    def __post_init__(self) -> None:
        check_parameters(self)
        need_enumeration(self.problem, "target-utilisation")

    def initial(self) -> ModelLearner:
        # Eq. (2): a violation is a utilisation above the target; response times do not count.
        own = self.problem._replace(max_response_time_s=inf, max_utilisation=self.target)
        return model_learner(own, gamma=self.gamma, alpha=schedule(self.alpha), sweeps=self.sweeps)

    def explain(self, memory: ModelLearner, seen: Seen) -> str:
        return greedy_reason(memory.values, seen.deployment, seen.rate, level_of(self.problem, seen.rate))
