"""The contract every application policy keeps. Subclass it, return your policy, run pytest.

    class TestMyManager(ApplicationPolicyContract):
        def make_policy(self) -> ApplicationPolicy[Any]:
            return MyManager(...)

It is asked about `APPLICATION`: a pipeline of two operators on one type of node.
"""

from dataclasses import replace
from math import inf, nan
from typing import Any, TypeGuard

import pytest

from penstock.domain.application import Operator, pipeline
from penstock.domain.decision import Hold
from penstock.domain.deployment import Replicas
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import Migrate, Request, ScaleIn, ScaleOut
from penstock.policy.api import ApplicationPolicy, DecidesInPlace
from penstock.testing.operator_policy import same, snapshot

MOST = 4
APPLICATION = pipeline(
    "contract",
    Operator(name="first", service_time_s=0.004, max_replicas=MOST),
    Operator(name="second", service_time_s=0.010, max_replicas=MOST),
)
_RATES = (20.0, 90.0, 250.0, 600.0, 40.0)  # from idle to more than can be served, and back


def _is_scaling(request: Request) -> TypeGuard[ScaleOut | ScaleIn]:
    return not isinstance(request, Migrate)


def _change(request: Request) -> Request:
    return replace(request, reason="")


class ApplicationPolicyContract:
    """What the hierarchy relies on, whatever the algorithm."""

    def make_policy(self) -> ApplicationPolicy[Any]:
        raise NotImplementedError

    def seen(self, rate: float, replicas: dict[str, int], at_s: float = 60.0) -> ApplicationObservation:
        operators = []
        for operator in APPLICATION.operators:
            busy = rate * operator.service_time_s / replicas[operator.name]
            time = operator.service_time_s / (1 - busy) if busy < 1 else float("inf")
            operators.append(
                OperatorObservation(
                    operator=operator.name,
                    at_s=at_s,
                    replicas=Replicas((replicas[operator.name],)),
                    arrival_rate=rate,
                    response_time_s=time,
                    utilisation=busy,
                )
            )
        total = sum(one.response_time_s or 0.0 for one in operators)
        return ApplicationObservation(
            at_s=at_s, response_time_s=total, operators=tuple(operators), source_rate=rate
        )

    def requests(self) -> list[Request]:
        return [
            ScaleOut(operator="first", target=Replicas((3,)), nodes=(), score=0.7, reason="busy"),
            ScaleIn(operator="second", target=Replicas((1,)), nodes=(), score=0.4, reason="idle"),
            Migrate(operator="first", origin="a", target="b", score=0.2, reason="crowded"),
        ]

    def test_every_request_is_answered_once_and_a_refusal_says_why(self) -> None:
        policy = self.make_policy()
        memory, replicas = policy.initial(), {"first": 2, "second": 2}
        for index, rate in enumerate(_RATES):
            asked = self.requests()
            verdict, memory = policy.grant(memory, asked, self.seen(rate, replicas, 60.0 * (index + 1)))
            refused = [one.request for one in verdict.refused]
            assert all(one.reason for one in verdict.refused)
            for request in asked:
                assert (request in verdict.granted) + (request in refused) == 1
            assert len({one.operator for one in verdict.granted}) == len(verdict.granted)

    def test_memory_is_left_as_it_was_and_the_same_question_gets_the_same_answer(self) -> None:
        policy = self.make_policy()
        memory, replicas = policy.initial(), {"first": 2, "second": 2}
        for index, rate in enumerate(_RATES):
            what = self.seen(rate, replicas, 60.0 * (index + 1))
            before = snapshot(memory)
            first, after = policy.grant(memory, self.requests(), what)
            assert same(before, snapshot(memory))
            again, after_again = policy.grant(memory, self.requests(), what)
            assert again == first
            assert same(snapshot(after), snapshot(after_again))
            memory = after

    def test_in_place_it_answers_the_same(self) -> None:
        policy = self.make_policy()
        if not isinstance(policy, DecidesInPlace):
            return
        memory, replicas = policy.initial(), {"first": 2, "second": 2}
        own = policy.in_place(policy.initial(), explains=True)
        silent = policy.in_place(policy.initial(), explains=False)
        for index, rate in enumerate(_RATES * 5):
            what = self.seen(rate, replicas, 60.0 * (index + 1))
            verdict, memory = policy.grant(memory, self.requests(), what)
            answered, own = policy.grant(own, self.requests(), what)
            unexplained, silent = policy.grant(silent, self.requests(), what)
            assert answered == verdict
            assert [_change(one) for one in unexplained.granted] == [_change(one) for one in verdict.granted]
            assert unexplained.refused == verdict.refused
            replicas |= {one.operator: one.target.total for one in verdict.granted if _is_scaling(one)}
        for given in (own, silent):
            assert same(snapshot(memory), snapshot(getattr(given, "memory", given)))

    def test_what_it_decides_itself_can_run(self) -> None:
        policy = self.make_policy()
        memory, replicas = policy.initial(), {"first": 1, "second": 1}
        for index, rate in enumerate(_RATES * 3):
            what = self.seen(rate, replicas, 60.0 * (index + 1))
            verdict, memory = policy.grant(memory, [], what)
            for request in verdict.granted:
                assert isinstance(request, ScaleOut | ScaleIn)
                assert 1 <= request.target.total <= MOST
                assert isinstance(request, ScaleIn) is (request.target.total < replicas[request.operator])
                replicas[request.operator] = request.target.total

    @pytest.mark.parametrize("rate", [None, nan, inf, -inf, -300.0])
    def test_without_a_rate_of_the_sources_a_manager_decides_nothing_of_its_own(
        self, rate: float | None
    ) -> None:
        self._decides_nothing(self.seen(300.0, {"first": 1, "second": 1})._replace(source_rate=rate))

    @pytest.mark.parametrize("value", [None, nan, -1.0])
    def test_without_sight_of_the_operators_a_manager_decides_nothing_of_its_own(
        self, value: float | None
    ) -> None:
        seen = self.seen(300.0, {"first": 1, "second": 1})
        unseen = (
            one._replace(arrival_rate=value, response_time_s=value, utilisation=value)
            for one in seen.operators
        )
        self._decides_nothing(seen._replace(operators=tuple(unseen)))

    def _decides_nothing(self, blind: ApplicationObservation) -> None:
        policy = self.make_policy()
        memory = policy.initial()
        before = snapshot(memory)
        verdict, after = policy.grant(memory, [], blind)
        assert verdict.granted == ()
        if verdict.decisions:  # it decides itself, from just these metrics
            assert all(isinstance(decision, Hold) for decision in verdict.decisions.values())
            assert same(before, snapshot(after)), "nothing is learned from what was not measured"
