"""What Application Managers that size every operator by queueing theory share.

They know the graph, the service times and the speeds, see the rate of the sources, and use
one type of node. What runs on another is exchanged for it; as published it stays, and what an
operator runs too many of goes oldest first, as with the policies of a single operator.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from penstock.direct_calls import machine_code
from penstock.domain.application import Application
from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import Request, Verdict
from penstock.perf.deployments import Handles, deployments
from penstock.perf.latency import check_objective, without_delays
from penstock.perf.traffic import visits
from penstock.policy.application.requests import decided_above
from penstock.policy.kernel import copied, is_measured
from penstock.policy.operator.node_choice import NodeChoice
from penstock.policy.operator.oldest_first import Fleet, no_fleet, resized

Fleets = Mapping[str, Fleet]  # by operator: its replicas, oldest first


class FleetsInPlace(dict[str, Fleet]):
    """Fleets of a loop that never goes back: they are written into."""

    def __init__(self, fleets: Fleets) -> None:
        super().__init__({name: copied(fleet) for name, fleet in fleets.items()})
        self.resized = machine_code(resized, next(iter(self.values())), 0, 0, 0)


class Station(NamedTuple):
    """One operator as queueing theory sees it."""

    name: str
    rate: float  # tuples/s that reach it
    service_time_s: float  # on the chosen type of node
    service_scv: float
    most: int  # replicas
    running: int
    utilisation: float  # of its busiest replica


def check_sizable(
    application: Application,
    objective: Objective,
    node_types: Sequence[NodeType],
    node_choice: NodeChoice,
    *,
    as_published: bool = False,
    delays_s: Mapping[str, float] | None = None,
) -> None:
    """The objective can be met, on the one type of node that is used.

    As published, its speed is ignored: only what no node can meet is refused.
    """
    fastest = max(node_type.speedup for node_type in node_types)
    check_objective(application, objective, fastest=fastest, delays_s=delays_s)
    if not as_published:
        used = node_types[_chosen(node_types, node_choice)]
        node = f"node type '{used.name}', the only one used"
        check_objective(application, objective, fastest=used.speedup, node=node, delays_s=delays_s)


def _chosen(node_types: Sequence[NodeType], choice: NodeChoice) -> int:
    return choice.pick(
        speedup=np.array([node_type.speedup for node_type in node_types]),
        price=np.array([node_type.price for node_type in node_types]),
    )


@dataclass(frozen=True, kw_only=True)
class SizingManager:
    """All operators' replicas in one jump, from the rate just seen."""

    application: Application
    objective: Objective
    node_types: tuple[NodeType, ...]
    node_choice: NodeChoice
    delays_s: Mapping[str, float] = field(default_factory=dict)  # constant, whatever load and nodes
    # The published simulator's procedure, which treats every node as one of speedup 1.
    as_published: bool = False

    def __post_init__(self) -> None:
        check_sizable(
            self.application,
            self.objective,
            self.node_types,
            self.node_choice,
            as_published=self.as_published,
            delays_s=self.delays_s,
        )

    @property
    def queueing_objective(self) -> Objective:
        """What constant delays leave for queueing and service."""
        return without_delays(self.application, self.objective, self.delays_s)

    def sizes(self, stations: Mapping[str, Station], source_rate: float) -> dict[str, int]:
        """Replicas of every operator."""
        raise NotImplementedError

    @cached_property
    def chosen_type(self) -> int:
        return _chosen(self.node_types, self.node_choice)

    @cached_property
    def _handles(self) -> dict[str, Handles]:
        return {
            operator.name: Handles(deployments(self.node_types, operator.max_replicas))
            for operator in self.application.operators
        }

    @cached_property
    def _visits(self) -> dict[str, float]:
        return visits(self.application)

    def initial(self) -> Fleets:
        return {
            operator.name: no_fleet(deployments(self.node_types, operator.max_replicas))
            for operator in self.application.operators
        }

    def in_place(self, memory: Fleets, *, explains: bool) -> FleetsInPlace:
        return FleetsInPlace(memory)

    def grant(
        self, memory: Fleets, requests: Sequence[Request], seen: ApplicationObservation
    ) -> tuple[Verdict, Fleets]:
        operators = {one.operator: one for one in seen.operators}
        blind = self._blind(operators, seen.source_rate)
        if blind or seen.source_rate is None:
            return decided_above({name: Hold(blind) for name in operators}, operators, requests), memory
        stations = self._stations(operators, seen.source_rate)
        wanted = self.sizes(stations, seen.source_rate)
        resize, fleets = resized, memory
        if isinstance(memory, FleetsInPlace):
            resize = memory.resized
        else:
            fleets = {name: copied(fleet) for name, fleet in memory.items()}
        decisions: dict[str, Decision] = {}
        for name, fleet in fleets.items():
            handles, now = self._handles[name], operators[name].replicas
            oldest_gone = resize(fleet, handles.of(now), wanted[name], self.chosen_type)
            target = self._target(name, now, wanted[name], handles.replicas(oldest_gone))
            why = f"{wanted[name]} replicas for {stations[name].rate:.0f} t/s"
            if target == operators[name].replicas:
                decisions[name] = Hold(why)
            else:
                decisions[name] = Scale(target=target, score=1.0, reason=why)
        return decided_above(decisions, operators, requests), fleets

    def _target(self, name: str, now: Replicas, wanted: int, resized: Replicas) -> Replicas:
        """This many of the chosen type; a run may start with others, which would be slower than assumed."""
        chosen = self.chosen_type
        if now.counts[chosen] == now.total or self.as_published:
            return resized
        count = max(1, min(wanted, self.application.operator(name).max_replicas))
        return Replicas(tuple(count if index == chosen else 0 for index in range(len(self.node_types))))

    def _blind(self, seen: Mapping[str, OperatorObservation], source_rate: float | None) -> str:
        """Why nothing can be decided; None if something can."""
        if not is_measured(source_rate, finite=True):
            return "source rate not measured"
        for operator in self.application.operators:
            one = seen.get(operator.name)
            if one is None or not is_measured(one.utilisation):
                return f"operator '{operator.name}' not measured"
            if one.replicas.total > operator.max_replicas:
                return f"operator '{operator.name}' runs more than its {operator.max_replicas} replicas"
        return ""

    def _stations(self, seen: Mapping[str, OperatorObservation], source_rate: float) -> dict[str, Station]:
        # Rates by the traffic equations, not as measured: behind an operator that cannot keep up, less
        # arrives than has to be provided for.
        reaching = self._visits
        speed = 1.0 if self.as_published else self.node_types[self.chosen_type].speedup
        return {
            operator.name: Station(
                name=operator.name,
                rate=source_rate * reaching[operator.name],
                service_time_s=operator.service_time_s / speed,
                service_scv=operator.service_scv,
                most=operator.max_replicas,
                running=seen[operator.name].replicas.total,
                utilisation=float(seen[operator.name].utilisation or 0.0),
            )
            for operator in self.application.operators
        }
