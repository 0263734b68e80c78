"""The congestion-index heuristic of SPL (Gedik et al., TPDS 2014), as De Matteis 2017 compares itself with.

One replica more as long as the operator is congested, unless that did not help the last time; one fewer as
long as it is not, unless it was congested there. What is remembered of a number of replicas, whether it was
congested and what it got through, is forgotten as soon as the load must have changed: when the operator is
congested where it was not, or gets through clearly more or less than it did there.
"""

from dataclasses import dataclass
from math import inf
from typing import Annotated, NamedTuple

from numpy.random import Generator

from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.infrastructure import NodeType
from penstock.domain.observation import OperatorObservation
from penstock.perf.deployments import Deployments
from penstock.policy.kernel import is_measured, unmeasured
from penstock.policy.parameters import Param, check_parameters
from penstock.policy.registry import operator_policy


class SplMemory(NamedTuple):
    """Of every number of replicas, from one on: how it went the last time; None where that is not known."""

    congested: tuple[bool | None, ...] = ()
    through: tuple[float | None, ...] = ()  # tuples/s


@operator_policy("spl")
@dataclass(frozen=True, kw_only=True)
class Spl:
    """Replicas by congestion, and by what more or fewer of them did the last time."""

    node_types: tuple[NodeType, ...]
    deployments: Deployments
    congestion: Annotated[
        float, Param("share of time the stream is held back, from which it is congested", at_least=0)
    ] = 0.1
    sensitivity: Annotated[
        float, Param("share of throughput within which two are the same", above=0, at_most=1)
    ] = 0.9

    def __post_init__(self) -> None:
        check_parameters(self)

    def initial(self) -> SplMemory:
        nothing = (None,) * self.deployments.max_replicas
        return SplMemory(nothing, nothing)

    def decide(
        self, memory: SplMemory, seen: OperatorObservation, rng: Generator
    ) -> tuple[Decision, SplMemory]:
        if missing := unmeasured(seen):
            return Hold(f"{', '.join(missing)} not measured"), memory
        now, most = seen.replicas.total, self.deployments.max_replicas
        if now > most:
            return Hold(f"{now} replicas run, more than the {most} it knows about"), memory
        congested = self._is_congested(seen)
        through = self._through(seen)
        memory = self._noted(memory, now, congested, through)
        state = "congested" if congested else "not congested"
        fewer = memory.through[now - 2] if now > 1 else None
        if congested and fewer is not None and not self._helps(fewer, through, now - 1):
            # It is held back by something else: the last replica did not help.
            return self._one_fewer(seen, f"-1: {state}, and no more than with one fewer"), memory
        if congested and now < most:
            more = memory.through[now]
            if more is None or self._helps(through, more, now):
                target = seen.replicas.changed(0, +1)
                return Scale(target=target, score=1.0, reason=f"+1: {state} at {through:.0f} t/s"), memory
        elif not congested and now > 1 and memory.congested[now - 2] is not True:
            return self._one_fewer(seen, f"-1: {state} at {through:.0f} t/s"), memory
        return Hold(f"{now} replicas: {state} at {through:.0f} t/s"), memory

    def _helps(self, before: float, after: float, replicas: int) -> bool:
        """Whether one more than so many replicas brings something of what each of them gets through."""
        return after > before + (1 - self.sensitivity) * before / replicas

    def _one_fewer(self, seen: OperatorObservation, why: str) -> Scale:
        kind = max(range(len(self.node_types)), key=lambda index: seen.replicas.counts[index])
        return Scale(target=seen.replicas.changed(kind, -1), score=1.0, reason=why)

    def _is_congested(self, seen: OperatorObservation) -> bool:
        if is_measured(seen.held_back, finite=True):
            return seen.held_back > self.congestion
        return seen.utilisation is not None and seen.utilisation >= 1.0  # nothing else tells

    @staticmethod
    def _through(seen: OperatorObservation) -> float:
        """What got through: all that came, or what an overloaded operator manages of it."""
        rate, load = seen.arrival_rate or 0.0, seen.utilisation or 0.0
        return rate / load if 1 < load < inf else rate

    def _noted(self, memory: SplMemory, now: int, congested: bool, through: float) -> SplMemory:
        then, got = memory.congested[now - 1], memory.through[now - 1]
        knows, passed = list(memory.congested), list(memory.through)
        if then is not None and got is not None:
            if (congested and not then) or through > got / self.sensitivity:  # there is more to do
                for place in range(now - 1):
                    knows[place], passed[place] = True, None
                for place in range(now, len(knows)):
                    knows[place], passed[place] = None, None
            elif (then and not congested) or through < got * self.sensitivity:  # there is less to do
                for place in range(len(knows)):
                    if place != now - 1:
                        knows[place], passed[place] = None, None
        knows[now - 1], passed[now - 1] = congested, through
        return SplMemory(tuple(knows), tuple(passed))
