"""Application Managers by name: the same ones for the simulator, for a live run and for its replay."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.compiled import Floats
from penstock.domain.application import Application
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.perf.joint import LARGEST_JOINT_TABLE, check_joint_size, joint_queues
from penstock.perf.latency import check_objective
from penstock.perf.traffic import visits
from penstock.policy.api import ApplicationPolicy
from penstock.policy.application.centralised import (
    CentralisedLearner,
    CentralisedMdp,
    application_problem,
    joint_violation_costs,
)
from penstock.policy.application.drs import DrsManager
from penstock.policy.application.grant_all import GrantAll
from penstock.policy.application.lohrmann import LohrmannManager
from penstock.policy.application.sizing import SizingManager, check_sizable
from penstock.policy.application.token_bucket import TokenBucket
from penstock.policy.operator.model_based import Sweeps
from penstock.policy.operator.node_choice import NodeChoice
from penstock.policy.rl.backup import transitions
from penstock.policy.rl.problem import level_rates, levels_of
from penstock.simulation.catalogue import WITHOUT_BOUNDS

GRANT_ALL, TOKEN_BUCKET, TUNED = "grant-all", "token-bucket", "tuned"
CENTRALISED = ("centralised", "centralised-rl-plus", "centralised-rl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What an Application Manager is built from: an application as it is known, and where it runs."""

    application: Application  # service times on a node of speedup 1
    objective: Objective
    node_types: tuple[NodeType, ...]
    training: Floats  # rates of the source, for who plans with their transitions
    max_rate: float  # of the source, at the top of the highest level
    levels: int = 30
    gamma: float = 0.99
    bucket_s: tuple[float, float]  # response times below and above which the token bucket opens
    bucket_period_s: float
    delays_s: Mapping[str, float] = field(default_factory=dict)  # that neither load nor nodes change
    as_published: bool = False

    @property
    def queueing_objective(self) -> Objective:
        # Delays count before they are taken off: what they leave may be less than nothing.
        fastest = max(node_type.speedup for node_type in self.node_types)
        check_objective(self.application, self.objective, fastest=fastest, delays_s=self.delays_s)
        return queueing_objective(self.application, self.objective, self.delays_s)


def queueing_objective(
    application: Application, objective: Objective, delays_s: Mapping[str, float]
) -> Objective:
    """What constant delays leave of every path's limit."""
    if not delays_s:
        return objective
    left = {
        path: objective.for_path(path) - sum(delays_s.get(name, 0.0) for name in path)
        for path in application.paths
    }
    return replace(objective, per_path_s=left)


def usual_bucket_s(application: Application, objective: Objective) -> tuple[float, float]:
    """Thresholds as in Cardellini 2018: half and nine tenths of the objective."""
    limit_s = min(objective.for_path(path) for path in application.paths)
    return limit_s / 2, 0.9 * limit_s


def source_capacity(application: Application, node_types: tuple[NodeType, ...]) -> float:
    """Tuples/s of every source that the narrowest operator can take, all replicas on the fastest nodes."""
    fastest = max(node_type.speedup for node_type in node_types)
    reached = visits(application)
    return min(
        operator.max_replicas * fastest / (operator.service_time_s * reached[operator.name])
        for operator in application.operators
        if reached[operator.name] > 0
    )


def _grant_all(told: Told) -> ApplicationPolicy[Any]:
    return GrantAll()


def _token_bucket(told: Told) -> ApplicationPolicy[Any]:
    low_s, high_s = told.bucket_s
    return TokenBucket(low_s=low_s, high_s=high_s, period_s=told.bucket_period_s)


def _centralised(kind: str) -> Callable[[Told], ApplicationPolicy[Any]]:
    def build(told: Told) -> ApplicationPolicy[Any]:
        check_manager(kind, told.application, told.node_types, delays_s=told.delays_s)
        application, objective = _on(told.node_types[0], told.application), told.objective
        problem = application_problem(application, objective, levels=told.levels, max_rate=told.max_rate)
        costs = joint_violation_costs(problem, joint_queues(application, objective), level_rates(problem))
        if kind == "centralised":
            return CentralisedMdp(
                application=application,
                objective=objective,
                problem=problem,
                gamma=told.gamma,
                transitions=transitions(levels_of(problem, told.training), told.levels),
                violation_costs=costs,
            )
        return CentralisedLearner(
            application=application,
            objective=objective,
            problem=problem,
            gamma=told.gamma,
            violation_costs=costs if kind.endswith("plus") else None,
            sweeps=Sweeps(longest_interval=10),
        )

    return build


def _on(node_type: NodeType, application: Application) -> Application:
    """The application with service times as on these nodes, the only ones there are."""
    return replace(
        application,
        operators=tuple(
            replace(operator, service_time_s=operator.service_time_s / node_type.speedup)
            for operator in application.operators
        ),
    )


def _sizing(manager: type[SizingManager], choice: NodeChoice) -> Callable[[Told], ApplicationPolicy[Any]]:
    def build(told: Told) -> ApplicationPolicy[Any]:
        # Of the whole objective: the manager knows only what delays leave of it.
        check_sizable(
            told.application,
            told.objective,
            told.node_types,
            choice,
            as_published=told.as_published,
            delays_s=told.delays_s,
        )
        return manager(
            application=told.application,
            objective=told.queueing_objective,
            node_types=told.node_types,
            node_choice=choice,
            as_published=told.as_published,
        )

    return build


APPLICATION_POLICIES: Mapping[str, Callable[[Told], ApplicationPolicy[Any]]] = {
    GRANT_ALL: _grant_all,
    TOKEN_BUCKET: _token_bucket,
    TUNED: _grant_all,  # it sets what operators strive for; what they then ask for, they get
    **{name: _centralised(name) for name in CENTRALISED},
    **{f"drs-{choice.value}": _sizing(DrsManager, choice) for choice in NodeChoice},
    **{f"lohrmann-{choice.value}": _sizing(LohrmannManager, choice) for choice in NodeChoice},
}
COORDINATING = (GRANT_ALL, TOKEN_BUCKET, TUNED)  # operators have managers of their own below them
MODEL_FREE = (GRANT_ALL, TOKEN_BUCKET)  # they need to know nothing of the operators


def build_application_policy(name: str, told: Told) -> ApplicationPolicy[Any]:
    check_application_policy_name(name)
    return APPLICATION_POLICIES[name](told)


def who_decides(policy: str, application_policy: str) -> str:
    """A short name for both levels, or for the one that decides."""
    if application_policy in COORDINATING:
        return f"{policy} + {application_policy}"
    return f"{application_policy} (application)"


def check_application_policy_name(name: str) -> None:
    if name not in APPLICATION_POLICIES:
        near = difflib.get_close_matches(name, APPLICATION_POLICIES, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"choose one of {', '.join(APPLICATION_POLICIES)}"
        raise InputError(f"application policy '{name}': unknown; {hint}")


def check_tunable(policy: str, application_policy: str | None, *, replicas: int | None) -> None:
    """`tuned` needs something to set: bounds or weights by which the operators' policy decides.

    `fixed` has a bound only where it works out itself how many `replicas` the peak needs.
    """
    if application_policy != TUNED:
        return
    if policy in WITHOUT_BOUNDS or (policy == "fixed" and replicas is not None):
        raise InputError(
            f"policy '{policy}': it has no bounds or weights for the application policy 'tuned' to set; "
            "try ql-pds-plus or model-based"
        )


def check_manager(
    name: str,
    application: Application,
    node_types: tuple[NodeType, ...],
    *,
    where: str = "the infrastructure",
    delays_s: Mapping[str, float] | None = None,
    largest: int = LARGEST_JOINT_TABLE,
) -> None:
    """What can be said against a manager before anything is measured."""
    check_application_policy_name(name)
    if name not in CENTRALISED:
        return
    if len(node_types) > 1:
        raise InputError(
            f"{name}: plans for one type of node, {where} has {len(node_types)}; offer one, as in A:1, "
            "or choose another application policy"
        )
    if delays_s:
        raise InputError(f"{name}: does not model the constant delays of application '{application.name}'")
    try:
        check_joint_size([operator.max_replicas for operator in application.operators], largest=largest)
    except InputError as problem:
        raise InputError(f"{name}: {problem}") from None
