"""Changes forced at every interval, whatever the policies say: a trial of the actuator.

It stands between the loop and the runtime, as both monitor and actuator.
"""

from penstock.control.journal import Noted
from penstock.control.ports import Actuator, Journal, Monitor
from penstock.domain.deployment import Replicas
from penstock.domain.observation import ApplicationObservation
from penstock.domain.request import Request, ScaleIn, ScaleOut, Verdict
from penstock.runtimes.spark.topology import Chain


class ForcedScaling:
    """One chain after another up and down again."""

    def __init__(
        self, monitor: Monitor, actuator: Actuator, journal: Journal, chains: tuple[Chain, ...]
    ) -> None:
        self._monitor, self._actuator, self._journal = monitor, actuator, journal
        self._chains = chains
        self._count = 0
        self._seen: ApplicationObservation | None = None
        self.done = Verdict(())  # of the last round, in place of what was planned

    def observe(self) -> ApplicationObservation:
        self._seen = self._monitor.observe()
        return self._seen

    def apply(self, verdict: Verdict) -> None:
        if self._seen is None:
            return
        forced = self.done = self._forced(self._seen)
        for request in forced.granted:
            text = f"forced: {type(request).__name__} of {request.operator}"
            self._journal.append(Noted(at_s=self._seen.at_s, text=text))
        self._actuator.apply(forced)

    def _forced(self, seen: ApplicationObservation) -> Verdict:
        self._count += 1
        chain = self._chains[self._count % len(self._chains)]
        one = next(o for o in seen.operators if o.operator == chain.name)
        if chain.name in seen.reconfiguring or chain.max_replicas == 1:
            return Verdict(())
        up = one.replicas.total < chain.max_replicas
        counts = list(one.replicas.counts)
        index = 0 if up else next(i for i, count in enumerate(counts) if count)
        counts[index] += 1 if up else -1
        kind = ScaleOut if up else ScaleIn
        request: Request = kind(
            operator=chain.name, target=Replicas(tuple(counts)), nodes=(), score=1.0, reason="forced"
        )
        return Verdict((request,))
