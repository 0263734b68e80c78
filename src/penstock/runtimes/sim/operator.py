"""One simulated operator behind the control loop's ports: slow, but open to any policy in plain Python."""

from typing import Any

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats
from penstock.control.forecasting import ForecastingMonitor
from penstock.control.hierarchy import Managers
from penstock.control.loop import Controller, first_memory, in_place, tick
from penstock.control.ports import Monitor, Unwritten
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import Migrate, Verdict
from penstock.perf.deployments import counts_at, handle_of, replicas_at
from penstock.perf.operator import utilisation_by_replica
from penstock.policy.api import OperatorPolicy
from penstock.policy.application.grant_all import GrantAll
from penstock.policy.kernel import Seen
from penstock.runtimes.sim.episode import Foresight, Slot, Totals, Trail, World, observe, settle

_NAME = "operator"
SLOT_S = 60.0


class SimulatedOperator:
    """A Monitor and an Actuator over the slot of `episode`; each tick plays one slot of the trace."""

    def __init__(
        self,
        name: str,
        world: World,
        rates: Floats,
        first_deployment: int,
        *,
        slot_s: float = SLOT_S,
        slots_before: int = 0,  # that others have played
    ) -> None:
        self._name, self._world, self._rates, self._slot_s = name, world, rates, slot_s
        self._slots_before = slots_before
        self._slot, self._here = 0, first_deployment
        self.played: list[Slot] = []
        self.deployed: list[int] = []  # in force during each slot played

    @property
    def here(self) -> int:
        """The deployment in force."""
        return self._here

    @property
    def finished(self) -> bool:
        return self._slot == self._rates.size

    def _now(self) -> Seen:
        return observe(self._world, self._here, float(self._rates[self._slot]))

    def observe(self) -> ApplicationObservation:
        seen = self._now()
        at_s = (self._slots_before + self._slot + 1) * self._slot_s
        operator = OperatorObservation(
            operator=self._name,
            at_s=at_s,
            replicas=replicas_at(self._world.deployments, self._here),
            arrival_rate=seen.rate,
            response_time_s=seen.response_time_s,
            utilisation=seen.utilisation,
            utilisation_by_replica=utilisation_by_replica(
                self._world.queue, self._world.deployments, self._here, seen.rate
            ),
        )
        return ApplicationObservation(
            at_s=at_s,
            response_time_s=seen.response_time_s,
            operators=(operator,),
            source_rate=seen.rate,
        )

    def apply(self, verdict: Verdict) -> None:
        """End the slot with what is granted; the operator is one, so is the change."""
        target = self._here
        for request in verdict.granted:
            if not isinstance(request, Migrate):  # in a slot without nodes there is nowhere to go
                target = handle_of(self._world.deployments, request.target)
        self.played.append(settle(self._world, self._now(), target))
        self.deployed.append(self._here)
        self._here = target
        self._slot += 1


def play_by_loop(
    world: World,
    policy: OperatorPolicy[Any],
    memory: Any,
    rates: Floats,
    here: int,
    rng: Generator,
    totals: Totals,
    trail: Trail,
    *,
    slots_before: int,
    foresight: Foresight | None = None,
) -> tuple[int, Any]:
    """An episode under the loop; returns the deployment and memory at the end."""
    operator = SimulatedOperator(_NAME, world, rates, here, slots_before=slots_before)
    managers = Managers(operators={_NAME: policy}, application=GrantAll(), application_period_s=0.0)
    # The published simulator knows no safety chain; neither does this slot.
    controller = Controller(managers=managers, node_types=(), safety=None)
    state = first_memory(controller, seed=0)
    state = state._replace(
        managers=state.managers._replace(operators={_NAME: memory}),
        rngs={**state.rngs, _NAME: rng},
    )
    state = in_place(controller, state)
    monitor: Monitor = operator
    if foresight is not None:
        monitor = ForecastingMonitor(operator, lambda _: foresight(rates), SLOT_S)
    while not operator.finished:
        _, state = tick(controller, state, monitor, Unwritten(), operator)
    _account(world, operator, totals, trail)
    return operator.here, state.managers.operators[_NAME]


def _account(world: World, operator: SimulatedOperator, totals: Totals, trail: Trail) -> None:
    slots = operator.played
    totals.counts[:] += (
        len(slots),
        sum(slot.violated for slot in slots),
        sum(slot.reconfigured for slot in slots),
    )
    totals.resources[0] += sum(slot.resources for slot in slots)
    if slots:
        decided = np.array([*operator.deployed[1:], operator.here])
        totals.replicas[:] += counts_at(world.deployments, decided).sum(axis=0)
    if trail.deployment.size:
        trail.deployment[:] = operator.deployed
        trail.response_time_s[:] = [slot.response_time_s for slot in slots]
        trail.cost[:] = [slot.cost for slot in slots]
        trail.reconfigured[:] = [slot.reconfigured for slot in slots]
