"""An agent of its own for every operator: the decentralised elasticity problem of Russo 2018.

Alg. 1 on the operator's own state (k, level of its rate). It cannot see the application's
response time, so a violation is a utilisation above a target (eq. 2), learned by eq. (6).
The algorithm is that of `model_based` without the bounds between states, which Russo 2018
does not have.
"""

from dataclasses import dataclass

from penstock.domain.errors import InputError
from penstock.policy.kernel import CompiledPolicy, Seen
from penstock.policy.operator.model_based import SWEEPS, ModelLearner, Sweeps, model_learner
from penstock.policy.rl.backup import need_enumeration
from penstock.policy.rl.post_decision import greedy_reason
from penstock.policy.rl.problem import Problem, level_of
from penstock.policy.rl.schedules import schedule


@dataclass(frozen=True, kw_only=True)
class TargetUtilisation(CompiledPolicy[ModelLearner]):
    """Learns to keep the operator's utilisation below `problem.max_utilisation` at least cost."""

    problem: Problem
    gamma: float = 0.99
    alpha: float = 0.1
    sweeps: Sweeps = SWEEPS

    def __post_init__(self) -> None:
        need_enumeration(self.problem, "target-utilisation")
        if not self.problem.max_utilisation < float("inf"):
            raise InputError("policy 'target-utilisation': no target; give the problem a max_utilisation")

    def initial(self) -> ModelLearner:
        return model_learner(self.problem, gamma=self.gamma, alpha=schedule(self.alpha), sweeps=self.sweeps)

    def explain(self, memory: ModelLearner, seen: Seen) -> str:
        return greedy_reason(memory.values, seen.deployment, seen.rate, level_of(self.problem, seen.rate))
