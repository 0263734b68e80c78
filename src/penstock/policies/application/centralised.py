"""One manager for all operators: the centralised elasticity problem of Russo 2018, planned or learned.

States are (k_1, ..., k_N, level of the application's rate), actions all combinations of one
more, one fewer and nothing, costs as eq. (1). On joint deployments (`perf.joint`) this is the
decision process of a single operator with a larger table, so the steps are those of value
iteration and of model-based learning:

- `CentralisedMdp`: transitions and response times known, value iteration (eq. 4).
- `CentralisedLearner`: Alg. 1. Transitions learned (eq. 5); violation costs known ("RL+")
  or learned state by state (eq. 6).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar, overload

import numpy as np

from penstock.compiled import Floats
from penstock.domain.application import Application, Path
from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import Request, Verdict
from penstock.perf.deployments import Handles
from penstock.perf.joint import JointQueues, joint_deployments, joint_response_times, reference_limit
from penstock.perf.latency import check_objective
from penstock.policies.application.requests import decided_above
from penstock.policies.kernel import UNEXPLAINED, InPlace, Seen, copied, is_measured, step
from penstock.policies.operator.model_based import SWEEPS, ModelLearner, Sweeps, model_learner
from penstock.policies.operator.value_iteration import ValuePlan, planned
from penstock.policies.rl.post_decision import greedy_reason
from penstock.policies.rl.problem import Problem, level_of, operator_problem
from penstock.policies.rl.schedules import schedule

K = TypeVar("K", ValuePlan, ModelLearner)

_NEVER_DRAWN_FROM = np.random.default_rng(0)  # planner and learner are greedy


def application_problem(
    application: Application, objective: Objective, *, levels: int, max_rate: float
) -> Problem:
    """Eq. (1): resources over N * K_max, reconfiguration if any operator changes, a limit for every path.

    Times that are compared with the problem's limit count as `joint_queues` with the same
    objective makes them: in multiples of each path's own.
    """
    check_objective(application, objective, fastest=1.0)
    return operator_problem(
        joint_deployments([operator.max_replicas for operator in application.operators]),
        levels=levels,
        max_rate=max_rate,
        max_response_time_s=reference_limit(application, objective),
        weights=objective.weights,
    )


def joint_violation_costs(problem: Problem, queues: JointQueues, level_rates: Floats) -> Floats:
    """w_SLA where the end-to-end response time exceeds the limit, per (joint deployment, level)."""
    late = joint_response_times(queues, problem.deployments, level_rates) > problem.max_response_time_s
    costs: Floats = np.where(late, problem.performance, 0.0)
    return costs


@dataclass(frozen=True, kw_only=True)
class CentralisedManager(Generic[K]):
    """What planner and learner share: all operators' observations in, a decision for each out."""

    application: Application
    objective: Objective
    problem: Problem
    gamma: float = 0.99

    def initial(self) -> K:
        raise NotImplementedError

    def in_place(self, memory: K, *, explains: bool) -> InPlace[K]:
        """The memory for a loop that never goes back to it."""
        return InPlace(memory, explains=explains)

    @cached_property
    def _handles(self) -> Handles:
        return Handles(self.problem.deployments)

    @cached_property
    def _most(self) -> dict[str, int]:
        """Replicas that every operator may run."""
        return {operator.name: operator.max_replicas for operator in self.application.operators}

    @cached_property
    def _scales(self) -> tuple[tuple[Path, float], ...]:
        """What makes times on every path comparable: multiples of each path's own limit."""
        limit = self.problem.max_response_time_s
        return tuple((path, limit / self.objective.for_path(path)) for path in self.application.paths)

    @overload
    def grant(
        self, memory: K, requests: Sequence[Request], seen: ApplicationObservation
    ) -> tuple[Verdict, K]: ...

    @overload
    def grant(
        self, memory: InPlace[K], requests: Sequence[Request], seen: ApplicationObservation
    ) -> tuple[Verdict, InPlace[K]]: ...

    def grant(
        self, memory: K | InPlace[K], requests: Sequence[Request], seen: ApplicationObservation
    ) -> tuple[Verdict, K | InPlace[K]]:
        """Its own decisions for all operators; what they ask for themselves is refused."""
        operators = {one.operator: one for one in seen.operators}
        decisions, memory = self.decide(memory, operators, seen.source_rate)
        return decided_above(decisions, operators, requests), memory

    @overload
    def decide(
        self, memory: K, seen: Mapping[str, OperatorObservation], source_rate: float | None
    ) -> tuple[dict[str, Decision], K]: ...

    @overload
    def decide(
        self, memory: InPlace[K], seen: Mapping[str, OperatorObservation], source_rate: float | None
    ) -> tuple[dict[str, Decision], InPlace[K]]: ...

    def decide(
        self, memory: K | InPlace[K], seen: Mapping[str, OperatorObservation], source_rate: float | None
    ) -> tuple[dict[str, Decision], K | InPlace[K]]:
        """One decision for every operator, from what all of them and the sources report."""
        missing = [
            name
            for name in self._most
            if (one := seen.get(name)) is None
            or not is_measured(one.response_time_s)
            or not is_measured(one.utilisation)
        ]
        # The level of a rate is an index that compiled code does not check: no rate, no level.
        if missing or not is_measured(source_rate, finite=True):
            # A joint state with a hole is no state: blind in one operator is blind in all.
            what = f"operators {', '.join(missing)} not measured" if missing else "source rate not measured"
            return dict.fromkeys(self._most, Hold(what)), memory
        running = {name: seen[name].replicas.total for name in self._most}
        crowded = [name for name, most in self._most.items() if running[name] > most]
        if crowded:
            what = f"operators {', '.join(crowded)} run more replicas than planned for"
            return dict.fromkeys(self._most, Hold(what)), memory
        joint = Seen(
            self._handles.of(Replicas(tuple(running.values()))),
            float(source_rate),
            max(
                [scale * sum([seen[n].response_time_s or 0.0 for n in path]) for path, scale in self._scales]
            ),
            max([float(seen[name].utilisation or 0.0) for name in self._most]),
        )
        if isinstance(memory, InPlace):
            target, score = memory.step(joint, _NEVER_DRAWN_FROM)
            why = self._reason(memory.memory, joint) if memory.explains else UNEXPLAINED
        else:
            memory = copied(memory)
            target, score = step(memory, joint, _NEVER_DRAWN_FROM)
            why = self._reason(memory, joint)
        wanted = self._handles.replicas(target).counts
        decisions: dict[str, Decision] = {}
        for (name, old), new in zip(running.items(), wanted, strict=True):
            if new == old:
                decisions[name] = Hold(f"{old} replicas fit {why}")
            else:
                reason = f"{new - old:+d} {why}"
                decisions[name] = Scale(target=Replicas((new,)), score=float(score), reason=reason)
        return decisions, memory

    def _reason(self, memory: K, seen: Seen) -> str:
        return greedy_reason(memory.values, seen.deployment, seen.rate, level_of(self.problem, seen.rate))


@dataclass(frozen=True, kw_only=True)
class CentralisedMdp(CentralisedManager[ValuePlan]):
    """Plans once over the joint space with everything known, then follows the plan."""

    transitions: Floats  # P(l'|l)
    violation_costs: Floats  # per (joint deployment, level)
    tolerance: float = 1e-4  # largest change of any value in the last sweep

    def initial(self) -> ValuePlan:
        return planned(
            self.problem, self.transitions, self.violation_costs, gamma=self.gamma, tolerance=self.tolerance
        )


@dataclass(frozen=True, kw_only=True)
class CentralisedLearner(CentralisedManager[ModelLearner]):
    """Alg. 1 over the joint space; it starts by believing that nothing violates, unless it is told."""

    violation_costs: Floats | None = None  # the known response-time model; None: learn them by eq. (6)
    alpha: float = 0.1
    sweeps: Sweeps = SWEEPS

    def initial(self) -> ModelLearner:
        return model_learner(
            self.problem,
            gamma=self.gamma,
            alpha=schedule(self.alpha),
            sweeps=self.sweeps,
            known_costs=self.violation_costs,
        )
