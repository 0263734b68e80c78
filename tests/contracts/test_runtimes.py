"""The simulator keeps the contract of runtimes; and what breaks the contract is found out."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
import pytest

from penstock.control.ports import Actuator, Monitor
from penstock.control.spec import Manager
from penstock.domain.application import Operator, pipeline
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation
from penstock.domain.request import Request, ScaleIn, ScaleOut, Verdict
from penstock.perf.deployments import deployments, handle_of
from penstock.perf.downtime import PauseAndResume
from penstock.perf.queueing import m_m_1
from penstock.runtimes.sim.application import OperatorModel, SimulatedApplication
from penstock.runtimes.sim.episode import world_of
from penstock.runtimes.sim.operator import SimulatedOperator
from penstock.simulation.one_operator import operator_of
from penstock.simulation.spec import OneOperator
from penstock.testing.runtime import RuntimeContract

KINDS = (NodeType(name="slow", speedup=1.0, price=1.0), NodeType(name="fast", speedup=2.0, price=3.0))
SLOTS = 100
NOTHING = Verdict(())


class TestSimulatedApplication(RuntimeContract):
    operators = ("first", "second")
    scaled = "second"
    node_types = len(KINDS)
    pause_s = 0.0

    def start(self) -> tuple[Monitor, Actuator]:
        first = Operator(name="first", service_time_s=0.004, max_replicas=3)
        second = Operator(name="second", service_time_s=0.002, max_replicas=3)
        self.simulated = SimulatedApplication(
            application=pipeline("two", first, second),
            objective=Objective(response_time_s=0.05),
            models={
                one.name: OperatorModel(
                    queue=m_m_1(one.service_time_s), deployments=deployments(KINDS, 3), first=Replicas((0, 1))
                )
                for one in (first, second)
            },
            rates=np.full(SLOTS, 100.0),
            protocol=PauseAndResume(fixed_s=self.pause_s),
        )
        return self.simulated, self.simulated

    def advance(self) -> None:
        self.simulated.apply(NOTHING)


class TestSimulatedApplicationThatPauses(TestSimulatedApplication):
    pause_s = 100.0  # three slots and a bit

    @contextmanager
    def nothing_runs(self) -> Iterator[None]:
        target = Replicas((1, 1))
        self.simulated.apply(
            Verdict((ScaleOut(operator="second", target=target, nodes=(), score=1.0, reason=""),))
        )
        yield
        for _ in range(3):
            self.advance()


class TestSimulatedOperator(RuntimeContract):
    operators = ("op",)
    scaled = "op"
    node_types = 3

    def start(self) -> tuple[Monitor, Actuator]:
        rates = np.full(SLOTS, 100.0)
        spec = OneOperator(operator_policy=Manager("threshold-c"), infrastructure="A:3", max_replicas=5)
        op = operator_of(spec, rates, rates, 1)
        first = handle_of(op.deployments, Replicas((1, 0, 0)))
        self.simulated = SimulatedOperator("op", world_of(op), rates, first)
        return self.simulated, self.simulated

    def advance(self) -> None:
        self.simulated.apply(NOTHING)


# --- Runtimes that break it. ------------------------------------------------------------------

Seen = ApplicationObservation


def each(seen: Seen, **changes: Any) -> Seen:
    return seen._replace(operators=tuple(one._replace(**changes) for one in seen.operators))


@dataclass
class Broken(TestSimulatedApplicationThatPauses):
    """A simulated application that reports wrongly, or does not do as it is told."""

    tell: Callable[[Seen, int], Seen] = lambda seen, number: seen
    obey: Callable[[Verdict], Verdict] = lambda verdict: verdict
    told: int = 0

    def start(self) -> tuple[Monitor, Actuator]:
        super().start()
        return self, self

    def observe(self) -> Seen:
        self.told += 1
        return self.tell(self.simulated.observe(), self.told)

    def apply(self, verdict: Verdict) -> None:
        self.simulated.apply(self.obey(verdict))


def without(kind: type[Request]) -> Callable[[Verdict], Verdict]:
    return lambda verdict: Verdict(tuple(r for r in verdict.granted if not isinstance(r, kind)))


def one_more(operator: str) -> Verdict:
    more = ScaleOut(operator=operator, target=Replicas((1, 1)), nodes=(), score=1.0, reason="")
    return Verdict((more,))


OUT = "test_a_granted_scale_out_shows_up_as_more_replicas_and_meanwhile_as_under_way"
IN = "test_a_granted_scale_in_shows_up_as_fewer_replicas_and_meanwhile_as_under_way"
NAMES = "test_an_observation_names_every_operator_once_with_a_count_for_every_node_type"
TIME = "test_time_never_goes_back_and_no_operator_is_ahead_of_its_application"
UNKNOWN = "test_what_is_not_measured_is_unknown_and_no_duration_is_zero"
STALLED = "test_where_nothing_ran_nothing_of_it_is_measured"
TWICE = "test_observing_twice_without_acting_changes_nothing_that_matters"
EMPTY = "test_applying_an_empty_verdict_is_not_an_action"
LAST = "test_the_last_replica_stays"


FAULTS = [
    (
        NAMES,
        Broken(tell=lambda seen, n: seen._replace(operators=seen.operators[1:])),
        "every operator once",
    ),
    (
        NAMES,
        Broken(tell=lambda seen, n: seen._replace(operators=seen.operators * 2)),
        "every operator once",
    ),
    (NAMES, Broken(tell=lambda seen, n: each(seen, replicas=Replicas((1,)))), "assert 1 == 2"),
    (TIME, Broken(tell=lambda seen, n: each(seen._replace(at_s=1000.0 - n), at_s=0.0)), "time went back"),
    (TIME, Broken(tell=lambda seen, n: seen._replace(at_s=1000.0)), "time stands still"),
    (TIME, Broken(tell=lambda seen, n: each(seen, at_s=seen.at_s + 0.1)), "is ahead of its application"),
    (TIME, Broken(tell=lambda seen, n: each(seen, at_s=-n)), "time of operator 'first' went back"),
    (UNKNOWN, Broken(tell=lambda seen, n: each(seen, response_time_s=0.0)), "was not measured is None"),
    (UNKNOWN, Broken(tell=lambda seen, n: each(seen, arrival_rate=nan)), "what is not known is None"),
    (UNKNOWN, Broken(tell=lambda seen, n: each(seen, backlog=-1.0)), "it cannot be negative"),
    (UNKNOWN, Broken(tell=lambda seen, n: each(seen, utilisation=None, skew=1.0)), "is None"),
    (STALLED, Broken(tell=lambda seen, n: each(seen, utilisation=0.0)), "could not work, and yet"),
    (STALLED, Broken(tell=lambda seen, n: each(seen, service_time_s=0.002)), "could not work, and yet"),
    (TWICE, Broken(tell=lambda seen, n: each(seen, replicas=Replicas((1, n)))), "assert {'first'"),
    (EMPTY, Broken(obey=lambda verdict: one_more("first")), "assert {'first'"),
    (OUT, Broken(obey=without(ScaleOut)), "and no change is under way"),
    (
        OUT,
        Broken(tell=lambda seen, n: seen._replace(reconfiguring=("second",))),
        "still under way after 1",
    ),
    (
        OUT,
        Broken(obey=lambda verdict: Verdict((*verdict.granted, *one_more("first").granted))),
        "assert {",
    ),
    (IN, Broken(obey=without(ScaleIn)), "and no change is under way"),
    (LAST, Broken(obey=lambda verdict: one_more("second")), "and no change is under way"),
]


@pytest.mark.parametrize(("claim", "fault", "complaint"), FAULTS)
def test_a_runtime_that_breaks_a_claim_is_found_out_by_it(claim: str, fault: Broken, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        getattr(fault, claim)()


def test_every_claim_is_seen_to_fail() -> None:
    claims = {name for name in vars(RuntimeContract) if name.startswith("test_")}
    assert {claim for claim, _, _ in FAULTS} == claims
