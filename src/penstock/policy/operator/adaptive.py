"""Adaptive: plans with what it has learned of the load and of the nodes. A policy of our own.

It is told what every user knows: prices, roughly how long a tuple takes and how fast nodes are. It learns

- how the load moves from one interval to the next (`rl/load_moves.py`);
- how fast each node type really is, from the utilisation measured on it, and by how much tuples wait longer
  or shorter than the model says, from measured response times (`rl/worth_having.py`);

and, when one of these has changed, plans: value iteration (`rl/stay_or_move.py`) over load levels and
deployments. Of these only few can ever be best. A change costs the same however large it is, so all that
matters of a deployment is its price and the highest load it can take within the bound. With replicas of
several types the slowest one limits what an evenly split load may be, so as many of one type alone, the
cheapest that is no slower, do as well: every deployment worth having is of one type, and has nothing cheaper
beside it that can take as much. That leaves at most 200 of 30 million (ten types, twenty replicas).

A type that was never tried counts as somewhat faster than told, so it is tried if it could pay, and known
from then on.

Where an engine works in micro-batches and changes take time, as live, what `objective` knows comes before
the plan: loads are those that replicas asked for now will meet, what a deployment can take follows from the
batches measured, and no fewer replicas run than the objective needs. How many more are kept, and for how
long, is what the plan decides.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator

from penstock.compiled import frozen_ints
from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.observation import OperatorObservation
from penstock.perf.deployments import Deployments, handle_of
from penstock.perf.micro_batch import Calibration
from penstock.policy.kernel import CompiledPolicy, InPlace, Seen, copied, with_other_nodes
from penstock.policy.operator.learned_batches import Grown, LearnedBatches, comes_within_s
from penstock.policy.operator.objective_first import ObjectiveFirst, ObjectiveMemory
from penstock.policy.parameters import Param
from penstock.policy.registry import operator_policy
from penstock.policy.rl.load_moves import LEVELS, level_of_rate, load_moves
from penstock.policy.rl.post_decision import BelievedModel
from penstock.policy.rl.problem import Problem
from penstock.policy.rl.stay_or_move import room_for
from penstock.policy.rl.worth_having import (
    AdaptiveLearner,
    Batches,
    Nodes,
    best_candidate,
    candidate_of,
    decide_at,
    plan_anew,
)

_HALVINGS, _TINY_S = 25, 1e-9
_OTHER_BATCHES = 0.1  # relative, of what a batch or a tuple takes: batches vary more than queues
_RECENT = 32  # readings of the load
_CALIBRATED = len(Calibration._fields)
_TUPLE_S, _FIXED_S = (Calibration._fields.index(name) for name in ("tuple_s", "fixed_s"))


@operator_policy("adaptive", chance=True, has_bounds=True, anticipates=True)
@dataclass(frozen=True, kw_only=True)
class Adaptive(CompiledPolicy[AdaptiveLearner]):
    """Learns how the load moves and how fast nodes are, and plans with both: the default."""

    problem: Problem
    believed: BelievedModel
    gamma: Annotated[float, Param("discount factor for later costs", at_least=0, below=1)] = 0.999
    optimism: Annotated[
        float, Param("how much faster than told a node type counts until it is tried", at_least=1)
    ] = 1.2
    memory: Annotated[
        float, Param("intervals at a load level after which the older half is forgotten", at_least=2)
    ] = 1000.0

    def initial(self) -> AdaptiveLearner:
        space, most = self.deployments, self.deployments.max_replicas
        types = len(self.node_types)
        alone = [(kind, count) for kind in range(types) for count in range(1, most + 1)]
        handles = [
            handle_of(space, Replicas(tuple(count if one == kind else 0 for one in range(types))))
            for kind, count in alone
        ]
        size = len(alone)
        told = np.array(self.believed.deployments.speedup, dtype=np.float64)
        return AdaptiveLearner(
            problem=self.problem,
            queue=self.believed.queue,
            handles=frozen_ints(handles),
            types=frozen_ints([kind for kind, _ in alone]),
            counts=frozen_ints([count for _, count in alone]),
            nodes=Nodes(self.optimism * told, np.zeros(types), np.zeros(types), np.array([1.0, 0.0, 0.0])),
            batches=Batches(
                known=np.full(_CALIBRATED + 2, np.nan),
                planned=np.full(4, np.nan),
                recent=np.zeros((_RECENT, 2)),
                readings=np.zeros(1, dtype=np.int64),
                needed=np.zeros(types, dtype=np.int64),
            ),
            load=load_moves(memory=self.memory),
            limit=np.zeros(size),
            holding=np.zeros(size),
            violating=np.zeros((size, LEVELS)),
            chosen=np.zeros(size, dtype=np.int64),
            chosen_count=np.zeros(1, dtype=np.int64),
            order=np.zeros(size, dtype=np.int64),
            values=np.zeros((size, LEVELS)),
            asked=np.array([-1, -1, 0]),
            clock=np.zeros(2, dtype=np.int64),
            interval=np.ones(1),
            largest_gain=np.ones(1),
            gamma=self.gamma,
            room=room_for(LEVELS),
        )

    def informed(self, memory: AdaptiveLearner, before: Deployments, after: Deployments) -> AdaptiveLearner:
        own = copied(memory)
        plan_anew(own)
        return with_other_nodes(own, before, after)

    def get_ready(self) -> None:
        """Compile what a live decision calls, which takes half a minute on a new machine."""
        me = self.initial()
        decide_at(me, candidate_of(me, int(me.handles[0])), 1.0, True)

    def in_place(
        self, memory: AdaptiveLearner, *, explains: bool
    ) -> AdaptiveLearner | InPlace[AdaptiveLearner]:
        return InPlace(memory, explains=explains)

    @cached_property
    def _objective(self) -> ObjectiveFirst:
        return ObjectiveFirst(
            node_types=self.node_types,
            deployments=self.deployments,
            queue=self.believed.queue,
            max_response_time_s=self.problem.max_response_time_s,
        )

    def decide(self, memory: Any, seen: OperatorObservation, rng: Generator) -> tuple[Decision, Any]:
        if isinstance(memory, InPlace):
            return super().decide(memory, seen, rng)
        if seen.batch_s is None and seen.trigger_s is None and np.isnan(memory.batches.known[0]):
            return super().decide(memory, seen, rng)
        return self._decide_in_batches(memory, seen, rng)

    def _decide_in_batches(
        self, memory: AdaptiveLearner, seen: OperatorObservation, rng: Generator
    ) -> tuple[Decision, AdaptiveLearner]:
        objective, before = self._objective, recalled(memory.batches)
        missing = objective.missing(before, seen)
        if missing:
            return Hold(f"{', '.join(missing)} not measured"), memory
        if seen.replicas.total > self.deployments.max_replicas:
            decision, _ = objective.decide(before, seen, rng)
            return decision, memory
        me = copied(memory)
        after = objective.learned(before, seen)
        keep(me.batches, after)
        rate, backlog = objective.demand(after, seen)
        if after.batches.model() is None or (rate <= 0 and me.load.width[0] == 0):
            decision, _ = objective.decide(before, seen, rng)  # no batch or no load yet to plan with
            return decision, me
        self._need(me, after, seen, rate, backlog)
        changed = self._limits_changed(me, after, seen)
        here = candidate_of(me, self._handles.of(seen.replicas))
        best, least, stay = decide_at(me, here, rate, changed)
        return self._in_sentences(me, seen, rate, backlog, (best, least, stay)), me

    def _need(
        self,
        me: AdaptiveLearner,
        known: ObjectiveMemory,
        seen: OperatorObservation,
        rate: float,
        backlog: float,
    ) -> None:
        """Note how many replicas of every type the objective needs."""
        most = self.deployments.max_replicas
        for kind, running in enumerate(seen.replicas.counts):
            # Of a type that does not run, too, as many as would do for a little more load.
            me.batches.needed[kind] = self._objective.wanted(
                known, seen, rate, backlog, here=running or most, node_type=kind
            )
        enough = [
            self._objective.enough(known, seen, rate, backlog, kind, most=most + 1) <= most
            for kind in range(len(self.node_types))
        ]
        if any(enough):  # then not of a type of which all are too few
            for kind, is_enough in enumerate(enough):
                if not is_enough:
                    me.batches.needed[kind] = most + 1

    def _limits_changed(self, me: AdaptiveLearner, known: ObjectiveMemory, seen: OperatorObservation) -> bool:
        """Work out anew what deployments can take, if batches have become others."""
        model = known.batches.model(trigger_s=seen.trigger_s or 0.0)
        if model is None:
            return False
        ready_s = comes_within_s(seen, self._objective.ready_s)
        now = np.array([model.fixed_s, model.tuple_s, model.shared_s, ready_s])
        planned = me.batches.planned
        if np.all(np.abs(now - planned) <= _OTHER_BATCHES * planned):
            return False
        planned[:] = now
        for candidate, (kind, count) in enumerate(zip(me.types, me.counts, strict=True)):
            speed = self.node_types[kind].speedup
            low, high = 0.0, float(count) * speed / max(model.tuple_s, _TINY_S)
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                most = self.deployments.max_replicas + 1  # so that all of them may be too few
                enough = self._objective.enough(known, seen, middle, 0.0, int(kind), most=most)
                low, high = (middle, high) if enough <= count else (low, middle)
            me.limit[candidate] = low
        return True

    def _in_sentences(
        self,
        me: AdaptiveLearner,
        seen: OperatorObservation,
        rate: float,
        backlog: float,
        found: tuple[int, float, float],
    ) -> Decision:
        best, least, stay = found
        now, here = seen.replicas, seen.replicas.total
        coming = sum(seen.coming or ())
        if best < 0:
            return Hold(f"at {rate:.0f} t/s: no load was seen yet")
        target = self._handles.replicas(int(me.handles[best]))
        behind = f" and {backlog:.0f} to work off" if backlog >= 1 else ""
        why = f"at {rate:.0f} t/s{behind}: {self._costs(least, stay)}"
        if target == now or (here < target.total <= here + coming and len(self.node_types) == 1):
            more = f", {coming} more on their way" if coming else ""
            return Hold(f"{here} replicas{more} fit {why}")
        return Scale(
            target=target,
            score=min(abs(target.total - here) / here, 1.0),
            reason=f"{self._in_words(now, target)} {why}",
        )

    @staticmethod
    def _costs(least: float, stay: float) -> str:
        """Plans know costs to come by their differences only."""
        if stay == np.inf:
            return "what runs is too little, or a mix"
        if stay <= least:
            return "no change is expected to pay"
        return (
            f"expected to cost {stay - least:.2f} less, all that is to come counted, than if nothing changes"
        )

    def explain(self, memory: AdaptiveLearner, seen: Seen) -> str:
        here = candidate_of(memory, seen.deployment)
        if memory.load.width[0] == 0.0:
            return f"at {seen.rate:.0f} t/s: no load was seen yet"
        _, least, stay = best_candidate(memory, here, level_of_rate(memory.load, seen.rate))
        return f"at {seen.rate:.0f} t/s: {self._costs(least, stay)}"


def recalled(batches: Batches) -> ObjectiveMemory:
    """What is known of batches and loads, from arrays."""
    *calibrated, replicas, at_s = (float(one) for one in batches.known)
    if np.isnan(calibrated[0]):
        return ObjectiveMemory(rates=_readings(batches))
    known = Calibration(*calibrated)
    known = known._replace(
        tuple_s=None if np.isnan(calibrated[_TUPLE_S]) else known.tuple_s,
        fixed_s=None if np.isnan(calibrated[_FIXED_S]) else known.fixed_s,
    )
    return ObjectiveMemory(LearnedBatches(known, Grown(int(replicas), at_s)), _readings(batches))


def _readings(batches: Batches) -> tuple[tuple[float, float], ...]:
    return tuple((float(at_s), float(rate)) for at_s, rate in batches.recent[: int(batches.readings[0])])


def keep(batches: Batches, known: ObjectiveMemory) -> None:
    """The same, into arrays; of the load the latest readings."""
    learned, grown = known.batches.known, known.batches.grown
    if learned.weight > 0:
        values = [np.nan if value is None else float(value) for value in learned]
        batches.known[:] = [*values, grown.replicas, grown.at_s]
    latest = known.rates[-_RECENT:]
    batches.recent[: len(latest)] = latest
    batches.readings[0] = len(latest)
