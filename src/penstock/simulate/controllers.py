"""Controllers from specifications: the same one for a run, for its replay and for training it beforehand."""

from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from penstock.compiled import Floats
from penstock.control.hierarchy import Managers
from penstock.control.journal import Header
from penstock.control.loop import Controller, ControllerMemory, first_memory
from penstock.control.plain_data import from_plain, to_plain
from penstock.control.safety_settings import SafetySettings
from penstock.domain.application import Application, pipeline
from penstock.domain.application import Operator as GraphOperator
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective, Weights
from penstock.perf.latency import naive_shares
from penstock.perf.traffic import visits
from penstock.policies.api import ApplicationPolicy
from penstock.simulate.application_managers import (
    COORDINATING,
    GRANT_ALL,
    TOKEN_BUCKET,
    Told,
    build_application_policy,
    check_application_policy_name,
    source_capacity,
    usual_bucket_s,
)
from penstock.simulate.catalogue import (
    Operator,
    Policy,
    build_policy,
    check_policy_name,
    measured_operator,
)
from penstock.simulate.spec import Spec

TRAINING_SLOTS = 3_000_000  # a second or two; fewer leave the tables of learners half empty
_PLANNING_SLOTS = 100_000  # enough to know how the load moves from one level to the next


_SOURCE_SLOTS = 100_000  # enough to know how the load moves from one level to the next


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSpec:
    """What the manager of one operator knows of it."""

    name: str
    bound_s: float  # response time it is to stay within
    service_time_s: float  # mean, on a node of speedup 1
    service_scv: float = 1.0
    max_replicas: int = 10
    max_rate: float | None = None  # tuples/s; None: what all replicas on reference nodes can take
    rates: tuple[float, ...] = ()  # tuples/s as measured, interval by interval

    def __post_init__(self) -> None:
        if self.max_rate is not None and not (isfinite(self.max_rate) and self.max_rate > 0):
            raise InputError(f"operator '{self.name}': max_rate={self.max_rate}; it must be positive")

    @property
    def highest_rate(self) -> float:
        return self.max_replicas / self.service_time_s if self.max_rate is None else self.max_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec:
    """Who decides: everything but node types, seed and safety, which a journal's header has itself."""

    operators: tuple[OperatorSpec, ...]
    policy: str = "ql-pds-plus"
    weights: Weights = field(default_factory=Weights)
    levels: int = 30
    gamma: float = 0.99
    threshold: float | None = None
    beta: float = 0.75
    replicas: int | None = None  # of policy `fixed`
    application_policy: str | None = (
        None  # None: the token bucket where its thresholds are given, or grant-all
    )
    application: Application | None = None  # as measured; None: the operators one after another
    objective: Objective | None = None  # of the application; None: the sum of the operators' bounds
    source_rates: tuple[float, ...] = ()  # tuples/s as measured, interval by interval
    token_bucket: tuple[float, float] | None = None  # response times of the application, low and high, s
    token_period_s: float = 60.0
    application_period_s: float = 0.0  # 0: every round
    operator_period_s: float = 0.0
    rest_s: float = 0.0

    def __post_init__(self) -> None:
        check_policy_name(self.policy)
        check_application_policy_name(self.manager)
        if not self.operators:
            raise InputError("controller: no operators to manage")
        known = {operator.name for operator in self.graph.operators}
        for one in self.operators:
            if one.name not in known:
                raise InputError(f"controller: application '{self.graph.name}' has no operator '{one.name}'")

    @property
    def manager(self) -> str:
        """The Application Manager's name."""
        if self.application_policy is not None:
            return self.application_policy
        return GRANT_ALL if self.token_bucket is None else TOKEN_BUCKET

    @property
    def graph(self) -> Application:
        if self.application is not None:
            return self.application
        return pipeline(
            "application",
            *(
                GraphOperator(
                    name=one.name,
                    service_time_s=one.service_time_s,
                    service_scv=one.service_scv,
                    max_replicas=one.max_replicas,
                )
                for one in self.operators
            ),
        )

    @property
    def limits(self) -> Objective:
        if self.objective is not None:
            return self.objective
        return Objective(response_time_s=sum(one.bound_s for one in self.operators))


def operator_specs(
    application: Application, objective: Objective, *, source_rates: Floats | None = None
) -> tuple[OperatorSpec, ...]:
    """What is known of every operator of a graph: its share of the response time, its part of the load."""
    shares, reached = naive_shares(application, objective), visits(application)
    rates = np.zeros(0) if source_rates is None else source_rates
    return tuple(
        OperatorSpec(
            name=operator.name,
            bound_s=shares[operator.name],
            service_time_s=operator.service_time_s,
            service_scv=operator.service_scv,
            max_replicas=operator.max_replicas,
            rates=tuple(float(rate) for rate in rates * reached[operator.name]),
        )
        for operator in application.operators
    )


def header_of(
    policies: PolicySpec,
    *,
    node_types: tuple[NodeType, ...],
    seed: int,
    safety: SafetySettings | None,
    advise: bool = False,
    at_s: float | None = None,
) -> Header:
    """The first line of a journal."""
    return Header(
        policies=to_plain(policies, PolicySpec),
        seed=seed,
        node_types=node_types,
        safety=safety,
        advise=advise,
        at_s=at_s,
    )


def build_controller(header: Header) -> tuple[Controller, ControllerMemory]:
    """The controller a journal's header describes, with nothing learned yet."""
    spec = from_plain(header.policies, PolicySpec)
    *rngs, source_rng = np.random.default_rng(header.seed).spawn(len(spec.operators) + 1)
    operators: dict[str, Policy] = {
        one.name: build_policy(measured(spec, one, header.node_types, rng))
        for one, rng in zip(spec.operators, rngs, strict=True)
        if spec.manager in COORDINATING
    }
    controller = Controller(
        managers=Managers(
            operators=operators,
            application=_application_policy(spec, header.node_types, source_rng),
            application_period_s=spec.application_period_s,
            operator_period_s=dict.fromkeys(operators, spec.operator_period_s),
            rest_s=spec.rest_s,
        ),
        node_types=header.node_types,
        safety=header.safety,
        advise=header.advise,
    )
    return controller, first_memory(controller, header.seed)


def _application_policy(
    spec: PolicySpec, node_types: tuple[NodeType, ...], rng: np.random.Generator
) -> ApplicationPolicy[Any]:
    graph, objective = spec.graph, spec.limits
    max_rate = max((source_capacity(graph, node_types), *spec.source_rates))
    told = Told(
        application=graph,
        objective=objective,
        node_types=node_types,
        training=likely_source_rates(spec, max_rate, _SOURCE_SLOTS, rng),
        max_rate=max_rate,
        levels=spec.levels,
        gamma=spec.gamma,
        bucket_s=spec.token_bucket or usual_bucket_s(graph, objective),
        bucket_period_s=spec.token_period_s,
    )
    return build_application_policy(spec.manager, told)


def likely_source_rates(spec: PolicySpec, max_rate: float, slots: int, rng: np.random.Generator) -> Floats:
    """A walk like an operator's, over all that the application can take."""
    source = OperatorSpec(
        name="source", bound_s=1.0, service_time_s=1.0, max_rate=max_rate, rates=spec.source_rates
    )
    return likely_rates(source, slots, rng)


def measured(
    spec: PolicySpec, one: OperatorSpec, node_types: tuple[NodeType, ...], rng: np.random.Generator
) -> Operator:
    """One operator as the catalogue of policies takes it, driven by loads like those measured."""
    local = Spec(
        policy=spec.policy,
        max_replicas=one.max_replicas,
        slo_s=one.bound_s,
        weights=spec.weights,
        service_rate=1.0 / one.service_time_s,
        service_scv=one.service_scv,
        levels=spec.levels,
        max_rate=one.highest_rate,
        gamma=spec.gamma,
        threshold=spec.threshold,
        beta=spec.beta,
        replicas=spec.replicas,
    )
    return measured_operator(local, node_types, likely_rates(one, _PLANNING_SLOTS, rng), rng)


def likely_rates(one: OperatorSpec, slots: int, rng: np.random.Generator, *, jumps: float = 0.0) -> Floats:
    """Loads an operator may meet: a walk over all it can take, as restless as what was measured.

    A few minutes tell how much the load varies from one interval to the next, not where it
    goes later: a learner must have seen every level before it is asked about it. In a share
    `jumps` of the slots the load steps to any other, into states that a gentle walk never meets.
    """
    rates = np.array(one.rates)
    restless = float(np.std(np.diff(rates))) if rates.size > 2 else 0.0
    top = max(one.highest_rate, float(rates.max()) if rates.size else 0.0)
    steps = rng.normal(0.0, max(restless, 0.02 * top), slots)
    steps[0] += float(rates[0]) if rates.size else top / 2
    jumping = rng.random(slots) < jumps
    steps[jumping] += rng.uniform(0.0, 2 * top, int(jumping.sum()))
    walked: Floats = np.abs((np.cumsum(steps) + top) % (2 * top) - top)  # thrown back at both ends
    return walked
