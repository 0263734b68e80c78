"""Small observations and requests for the tests of the safety chain and of the loop."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.control.safety import Admitted, admit
from penstock.control.safety_settings import UNGUARDED, SafetySettings
from penstock.control.spec import ControllerSpec, Manager, operator_specs
from penstock.control.watch import SafetyMemory, carried_out
from penstock.domain.application import Operator, pipeline
from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import Migrate, Request, request_of

WORKER = NodeType(name="worker", speedup=1.0, price=1.0)
ONE_TYPE = (WORKER,)


def one(at_s: float, *counts: int, operator: str = "count", **metrics: Any) -> OperatorObservation:
    """An operator at ease, unless told otherwise."""
    at_ease = {"arrival_rate": 100.0, "response_time_s": 0.02, "utilisation": 0.5}
    return OperatorObservation(operator=operator, at_s=at_s, replicas=Replicas(counts), **at_ease | metrics)


def app(at_s: float, *operators: OperatorObservation, **more: Any) -> ApplicationObservation:
    return ApplicationObservation(at_s=at_s, response_time_s=0.02, operators=operators, **more)


def only(**guards: Any) -> SafetySettings:
    """No guard but these."""
    return replace(UNGUARDED, **guards)


def controller_spec(**others: Any) -> ControllerSpec:
    """A controller of one operator, as a journal's header describes it."""
    graph = pipeline("one", Operator(name="count", service_time_s=0.005, max_replicas=4))
    objective = Objective(response_time_s=0.05)
    usual = ControllerSpec(
        application=graph,
        objective=objective,
        node_types=ONE_TYPE,
        operators=operator_specs(graph, objective),
        operator_policy=Manager(name="threshold-c"),
    )
    return replace(usual, **others)


class Chain:
    """The safety chain over time: each round one decision per operator, everything granted."""

    def __init__(self, settings: SafetySettings, node_types: tuple[NodeType, ...] = ONE_TYPE) -> None:
        self.settings, self.node_types = settings, node_types
        self.memory = SafetyMemory()

    def round(
        self,
        seen: ApplicationObservation,
        wanted: Mapping[str, tuple[int, ...]] | None = None,
        moves: Sequence[Migrate] = (),
    ) -> Admitted:
        """What is admitted when operators want these counts, nothing where not named, and nodes moves."""
        decisions: dict[str, Decision] = {}
        granted: list[Request] = []
        for operator in seen.operators:
            counts = (wanted or {}).get(operator.operator)
            if counts is None or Replicas(counts) == operator.replicas:
                decisions[operator.operator] = Hold("fits")
                continue
            scale = Scale(target=Replicas(counts), score=0.5, reason="wanted")
            decisions[operator.operator] = scale
            granted.append(request_of(operator.operator, operator.replicas, scale))
        granted += moves
        admitted, self.memory = admit(self.settings, self.node_types, self.memory, granted, decisions, seen)
        self.memory = carried_out(self.memory, admitted.granted, seen)
        return admitted

    def asked(self, at_s: float, now: int, wanted: int, **metrics: Any) -> str | int:
        """One operator of one node type: the replicas admitted, or why not."""
        made = self.round(app(at_s, one(at_s, now, **metrics)), {"count": (wanted,)})
        if made.granted:
            (request,) = made.granted
            assert not isinstance(request, Migrate)
            return request.target.total
        return made.vetoes[0].reason if made.vetoes else now
