"""One simulated operator behind the control loop's ports: slow, but open to any policy in plain Python."""

from penstock.compiled import Floats
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import Migrate, Verdict
from penstock.perf.deployments import handle_of, replicas_at
from penstock.perf.operator import utilisation_by_replica
from penstock.policies.kernel import Seen
from penstock.runtimes.sim.episode import Slot, World, observe, settle


class SimulatedOperator:
    """A Monitor and an Actuator over the slot of `episode`; each tick plays one slot of the trace."""

    def __init__(
        self, name: str, world: World, rates: Floats, first_deployment: int, *, slot_s: float = 60.0
    ) -> None:
        self._name, self._world, self._rates, self._slot_s = name, world, rates, slot_s
        self._slot, self._here = 0, first_deployment
        self.played: list[Slot] = []

    @property
    def finished(self) -> bool:
        return self._slot == self._rates.size

    def _now(self) -> Seen:
        return observe(self._world, self._here, float(self._rates[self._slot]))

    def observe(self) -> ApplicationObservation:
        seen = self._now()
        at_s = (self._slot + 1) * self._slot_s
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
        self._here = target
        self._slot += 1
