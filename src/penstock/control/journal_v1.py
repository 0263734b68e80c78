"""Journals of schema 1, read as today's: their headers described the controller in other fields."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.control.plain_data import from_plain, to_plain
from penstock.control.safety_settings import SafetySettings
from penstock.control.spec import GRANT_ALL, ControllerSpec, Manager, OperatorSpec
from penstock.domain.application import Application, Operator, pipeline
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective, Weights
from penstock.policy.parameters import Value
from penstock.policy.registry import Level, entry

_BUCKET = "token-bucket"


def upgraded(data: dict[str, Any]) -> dict[str, Any]:
    """An entry of schema 1 as one of today's; any other as it is."""
    if data.get("kind") == "Header" and data.get("schema") == 1:
        return _header(data)
    if data.get("kind") == "Retuned" and "policies" in data:
        return _retuned(data)
    return data


@dataclass(frozen=True, slots=True, kw_only=True)
class _Policies:
    """Who decided, in the words of schema 1."""

    operators: tuple[OperatorSpec, ...]
    policy: str = "ql-pds-plus"
    weights: Weights = field(default_factory=Weights)
    levels: int = 30
    gamma: float = 0.99
    threshold: float | None = None
    beta: float = 0.75
    replicas: int | None = None
    application_policy: str | None = None  # None: the token bucket where it has thresholds, or grant-all
    application: Application | None = None  # None: the operators one after another
    objective: Objective | None = None  # None: the sum of the operators' bounds
    source_rates: tuple[float, ...] = ()
    token_bucket: tuple[float, float] | None = None
    token_period_s: float = 60.0
    application_period_s: float = 0.0
    operator_period_s: float = 0.0
    rest_s: float = 0.0

    @property
    def graph(self) -> Application:
        if self.application is not None:
            return self.application
        return pipeline(
            "application",
            *(
                Operator(
                    name=one.name,
                    service_time_s=one.service_time_s,
                    service_scv=one.service_scv,
                    max_replicas=one.max_replicas,
                )
                for one in self.operators
            ),
        )

    @property
    def operator_policy(self) -> Manager:
        known = entry(Level.OPERATOR, self.policy).parameters
        said = {
            "gamma": self.gamma,
            "threshold": self.threshold,
            "beta": self.beta,
            "replicas": self.replicas,
        }
        parameters: dict[str, Value] = {
            name: value
            for name, value in said.items()
            if value is not None and name in known and value != known[name].default
        }
        if "worst_replica" in known:  # which is how these policies decided then
            parameters["worst_replica"] = True
        return Manager(name=self.policy, parameters=parameters)

    @property
    def manager(self) -> Manager:
        name = self.application_policy or (GRANT_ALL if self.token_bucket is None else _BUCKET)
        parameters: dict[str, Value] = {}
        if name == _BUCKET:
            parameters["period_s"] = self.token_period_s
            if self.token_bucket is not None:
                parameters["low_s"], parameters["high_s"] = self.token_bucket
        else:
            gamma = entry(Level.APPLICATION, name).parameters.get("gamma")
            if gamma is not None and self.gamma != gamma.default:
                parameters["gamma"] = self.gamma
        return Manager(name=name, parameters=parameters)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    """The first line of a journal, in the words of schema 1."""

    policies: _Policies
    seed: int
    node_types: tuple[NodeType, ...]
    safety: SafetySettings
    advise: bool = False
    at_s: float | None = None
    schema: int = 1
    about: Mapping[str, Any] = field(default_factory=dict)  # for people


def _header(data: Mapping[str, Any]) -> dict[str, Any]:
    before = from_plain({name: value for name, value in data.items() if name != "kind"}, _Header)
    policies, safety = before.policies, before.safety
    bounds = sum(one.bound_s for one in policies.operators)
    controller = ControllerSpec(
        application=policies.graph,
        objective=policies.objective or Objective(response_time_s=bounds),
        node_types=before.node_types,
        operators=policies.operators,
        operator_policy=policies.operator_policy,
        application_policy=policies.manager,
        weights=policies.weights,
        levels=policies.levels,
        source_rates=policies.source_rates,
        interval_s=safety.interval_s,
        application_period_s=policies.application_period_s,
        operator_period_s=policies.operator_period_s,
        rest_s=policies.rest_s,
        safety=safety,
        seed=before.seed,
        advise=before.advise,
    )
    return {
        "kind": "Header",
        "controller": to_plain(controller, ControllerSpec),
        "at_s": before.at_s,
        "schema": 2,
    }


def _retuned(data: Mapping[str, Any]) -> dict[str, Any]:
    policies = from_plain(data["policies"], _Policies)
    kept = {name: value for name, value in data.items() if name != "policies"}
    return {
        **kept,
        "application": to_plain(policies.graph, Application),
        "operators": to_plain(policies.operators, tuple[OperatorSpec, ...]),
        "weights": to_plain(policies.weights, Weights),
        "source_rates": list(policies.source_rates),
    }
