"""A policy of one's own in plain Python: scale on response time. See docs/add-a-policy.md."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from penstock.simulation.catalogue import operator_of

from penstock.compiled import Floats
from penstock.control.hierarchy import Managers
from penstock.control.journal import Entry, Ticked
from penstock.control.loop import Controller, first_memory, tick
from penstock.control.safety_settings import UNGUARDED
from penstock.data.synthetic import day_and_week
from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.observation import OperatorObservation
from penstock.perf.deployments import handle_of
from penstock.policy.api import OperatorPolicy
from penstock.policy.application.grant_all import GrantAll
from penstock.runtimes.sim.episode import Slot
from penstock.runtimes.sim.operator import SimulatedOperator
from penstock.simulation.play import world_of
from penstock.simulation.spec import OneOperator


@dataclass(frozen=True, kw_only=True)
class ResponseTimePolicy:
    """Adds a replica near the limit; removes one when fewer have been enough for a while."""

    limit_s: float
    max_replicas: int
    node_type: int = 0
    patience: int = 10  # calm intervals before a replica goes

    def initial(self) -> int:
        return 0  # calm intervals in a row

    def decide(self, memory: int, seen: OperatorObservation, rng: Generator) -> tuple[Decision, int]:
        if seen.arrival_rate is None or seen.response_time_s is None or seen.utilisation is None:
            return Hold("rate, response time or utilisation not measured"), memory
        total, own = seen.replicas.total, seen.replicas.counts[self.node_type]
        nearness = seen.response_time_s / self.limit_s
        why = f"{nearness:.2f} of the response time allowed at {seen.arrival_rate:.0f} t/s"
        if nearness > 0.8 and total < self.max_replicas:
            more = seen.replicas.changed(self.node_type, +1)
            return Scale(target=more, score=min(nearness - 0.8, 1.0), reason=f"+1: {why}"), 0
        # The load the others would carry, not today's: 2 replicas at 0.69 are 1 at 1.38.
        survivors = seen.utilisation * total / (total - 1) if total > 1 and own > 0 else 1.0
        calm = memory + 1 if survivors < 0.8 else 0
        if calm < self.patience:
            return Hold(f"{total} replicas: {why}"), calm
        fewer = seen.replicas.changed(self.node_type, -1)
        return Scale(target=fewer, score=max(0.8 - survivors, 0.0), reason=f"-1: {why}"), 0


class Reasons:
    """A journal that keeps why the operator was changed, and when."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def append(self, entry: Entry) -> None:
        if isinstance(entry, Ticked):
            for request in entry.plan.granted:
                self.lines.append(f"{entry.seen.at_s:.0f} s: {request.operator}: {request.reason}")


def simulate(policy: OperatorPolicy[Any], spec: OneOperator, rates: Floats) -> tuple[list[Slot], list[str]]:
    """The slots of a run that starts with one replica of the first type, and the reasons given."""
    rng = np.random.default_rng(spec.seed)
    setting = operator_of(spec, rates, rates, rng)
    world = world_of(setting, setting.deployments)
    first = Replicas((1,) + (0,) * (len(setting.node_types) - 1))
    operator = SimulatedOperator("op", world, rates, handle_of(setting.deployments, first))
    journal = Reasons()
    managers = Managers(operators={"op": policy}, application=GrantAll())
    # Unguarded, as the published simulator is: on a real engine the safety chain has a say.
    controller = Controller(managers=managers, node_types=setting.node_types, safety=UNGUARDED)
    memory = first_memory(controller, spec.seed)
    while not operator.finished:
        memory = tick(controller, memory, operator, journal, operator)
    return operator.played, journal.lines


def main() -> None:
    """Four synthetic weeks on infrastructure A:3, the setting `penstock compare` has by default."""
    spec = OneOperator(policy="response-time", infrastructure="A:3")
    policy = ResponseTimePolicy(limit_s=spec.slo_s, max_replicas=spec.max_replicas)
    slots, reasons = simulate(policy, spec, day_and_week(slots=28 * 1440, seed=1).rates)
    print(f"average cost      {np.mean([slot.cost for slot in slots]):.4f}")
    print(f"violations        {100 * np.mean([slot.violated for slot in slots]):.2f} %")
    print(f"reconfigurations  {100 * np.mean([slot.reconfigured for slot in slots]):.2f} %")
    print(f"resources         {np.mean([slot.resources for slot in slots]):.2f}")
    print(f"first change      {reasons[0]}")


if __name__ == "__main__":
    main()
