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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Generic, TypeVar, overload

import numpy as np

from penstock.compiled import Floats
from penstock.domain.application import Application, Path
from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import Request, Verdict
from penstock.perf.deployments import Handles
from penstock.perf.joint import (
    LARGEST_JOINT_TABLE,
    JointQueues,
    check_joint_size,
    joint_deployments,
    joint_queues,
    joint_response_time,
    joint_response_times,
    reference_limit,
)
from penstock.perf.latency import check_objective
from penstock.perf.micro_batch import attainable_s
from penstock.policy.application.requests import decided_above
from penstock.policy.kernel import (
    HELD,
    UNEXPLAINED,
    InPlace,
    Seen,
    copied,
    is_measured,
    mean_utilisation,
    step,
)
from penstock.policy.knowledge import ApplicationKnowledge
from penstock.policy.operator.model_based import ModelLearner, Sweeps, model_learner
from penstock.policy.operator.value_iteration import ValuePlan, planned
from penstock.policy.parameters import Param
from penstock.policy.registry import application_policy
from penstock.policy.rl.backup import transitions
from penstock.policy.rl.post_decision import greedy_reason
from penstock.policy.rl.problem import Problem, level_of, level_rates, levels_of, operator_problem
from penstock.policy.rl.schedules import schedule

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


def _on(node_type: NodeType, application: Application) -> Application:
    """The application with service times as on these nodes."""
    return replace(
        application,
        operators=tuple(
            replace(operator, service_time_s=operator.service_time_s / node_type.speedup)
            for operator in application.operators
        ),
    )


@dataclass(frozen=True, kw_only=True)
class CentralisedManager(Generic[K]):
    """What planner and learner share: observations of all operators in, a decision for each out."""

    application: Application
    objective: Objective
    problem: Problem
    gamma: Annotated[float, Param("discount factor for later costs", at_least=0, below=1)] = 0.99

    @classmethod
    def check_before_start(
        cls,
        name: str,
        application: Application,
        node_types: tuple[NodeType, ...],
        *,
        where: str,
        delays_s: Mapping[str, float],
        largest: int = LARGEST_JOINT_TABLE,
    ) -> None:
        """Refuse, before anything is measured, what it cannot manage."""
        if len(node_types) > 1:
            raise InputError(
                f"{name}: plans for one type of node, {where} has {len(node_types)}; offer one, as in A:1, "
                "or choose another application policy"
            )
        if delays_s:
            raise InputError(
                f"{name}: does not model the constant delays of application '{application.name}'"
            )
        try:
            check_joint_size([operator.max_replicas for operator in application.operators], largest=largest)
        except InputError as problem:
            raise InputError(f"{name}: {problem}") from None

    @classmethod
    def usual(cls, known: ApplicationKnowledge) -> dict[str, Any]:
        """The application's decision process, on the only node type there is."""
        application = _on(known.node_types[0], known.application)
        problem = application_problem(
            application, known.objective, levels=known.levels, max_rate=known.max_rate
        )
        queues = joint_queues(application, known.objective)
        if any(operator.batching is not None for operator in application.operators):
            # As for single operators: nobody learns anything where every deployment is late.
            empty_s = float(joint_response_time(queues, problem.deployments, 0, 0.0))
            problem = problem._replace(max_response_time_s=attainable_s(problem.max_response_time_s, empty_s))
        return {
            "application": application,
            "problem": problem,
            "violation_costs": joint_violation_costs(problem, queues, level_rates(problem)),
        }

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
        limit = reference_limit(self.application, self.objective)
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
        joint = self._joint(seen, source_rate)
        if isinstance(joint, str):
            return dict.fromkeys(self._most, Hold(joint)), memory
        if isinstance(memory, InPlace):
            target, score = memory.step(joint, _NEVER_DRAWN_FROM)
            if target == joint.deployment and not memory.explains:
                return dict.fromkeys(self._most, HELD), memory
            why = self._reason(memory.memory, joint) if memory.explains else UNEXPLAINED
        else:
            memory = copied(memory)
            target, score = step(memory, joint, _NEVER_DRAWN_FROM)
            why = self._reason(memory, joint)
        wanted = self._handles.replicas(target).counts
        decisions: dict[str, Decision] = {}
        running = self._handles.replicas(joint.deployment).counts
        for name, old, new in zip(self._most, running, wanted, strict=True):
            if new == old:
                decisions[name] = Hold(f"{old} replicas fit {why}")
            else:
                reason = f"{new - old:+d} {why}"
                decisions[name] = Scale(target=Replicas((new,)), score=float(score), reason=reason)
        return decisions, memory

    def _joint(self, seen: Mapping[str, OperatorObservation], source_rate: float | None) -> Seen | str:
        """All operators as one, or why they cannot be."""
        missing, crowded = [], []
        counts: list[int] = []
        times_s: dict[str, float] = {}
        loads: list[float] = []
        busy = 0.0
        for name, most in self._most.items():
            one = seen.get(name)
            time_s, load = (None, None) if one is None else (one.response_time_s, one.utilisation)
            if one is None or time_s is None or load is None or not (time_s >= 0 and load >= 0):
                missing.append(name)
                continue
            count = one.replicas.total
            if count > most:
                crowded.append(name)
            counts.append(count)
            times_s[name] = time_s
            loads.append(load)
            busy += count * mean_utilisation(one, load)
        # A joint state with a hole cannot be looked up: blind in one operator is blind in all.
        if missing:
            return f"operators {', '.join(missing)} not measured"
        # The level of a rate is an index that compiled code does not check: no rate, no level.
        if not is_measured(source_rate, finite=True):
            return "source rate not measured"
        here = None if crowded else self._handles.find(tuple(counts))
        if here is None:
            return f"operators {', '.join(crowded)} run more replicas than planned for"
        longest = max([scale * sum([times_s[name] for name in path]) for path, scale in self._scales])
        return Seen(here, float(source_rate), float(longest), float(max(loads)), busy / sum(counts))

    def _reason(self, memory: K, seen: Seen) -> str:
        return greedy_reason(memory.values, seen.deployment, seen.rate, level_of(self.problem, seen.rate))


@application_policy("centralised", needs_model=True, decides_itself=True, anticipates=True)
@dataclass(frozen=True, kw_only=True)
class CentralisedMdp(CentralisedManager[ValuePlan]):
    """One decision process for all operators, solved with everything known."""

    transitions: Floats  # P(l'|l)
    violation_costs: Floats  # per (joint deployment, level)
    tolerance: Annotated[float, Param("planning ends when no value changes by more than this", above=0)] = (
        1e-4
    )

    @classmethod
    def usual(cls, known: ApplicationKnowledge) -> dict[str, Any]:
        filled = super().usual(known)
        moves = transitions(levels_of(filled["problem"], known.training), known.levels)
        return {**filled, "transitions": moves}

    def initial(self) -> ValuePlan:
        return planned(
            self.problem, self.transitions, self.violation_costs, gamma=self.gamma, tolerance=self.tolerance
        )


# A sweep over the joint space is expensive: one every ten slots costs a tenth of one at every step.
OFTEN = Sweeps(longest_interval=10)


@application_policy(
    {"centralised-rl-plus": {}, "centralised-rl": {"violation_costs": None}},
    needs_model=True,
    decides_itself=True,
)
@dataclass(frozen=True, kw_only=True)
class CentralisedLearner(CentralisedManager[ModelLearner]):
    """One decision process for all operators, learned; `-plus` is given the response-time model."""

    violation_costs: Floats | None = None  # the known response-time model; None: learn them by eq. (6)
    alpha: Annotated[float, Param("step size", above=0, at_most=1)] = 0.1
    sweeps: Sweeps = OFTEN

    def initial(self) -> ModelLearner:
        return model_learner(
            self.problem,
            gamma=self.gamma,
            alpha=schedule(self.alpha),
            sweeps=self.sweeps,
            known_costs=self.violation_costs,
        )
