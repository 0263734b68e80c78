"""Global policies: priorities, conflicts, tokens."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.observation import ApplicationObservation
from penstock.domain.request import Migrate, Request, ScaleIn, ScaleOut
from penstock.policy.application.grant_all import GrantAll
from penstock.policy.application.requests import by_priority, without_conflicts
from penstock.policy.application.token_bucket import Bucket, Token, TokenBucket


def out(operator: str, score: float, node: str = "") -> ScaleOut:
    nodes = (node,) if node else ()
    return ScaleOut(operator=operator, target=Replicas((2,)), nodes=nodes, score=score, reason="busy")


def fewer(operator: str, score: float) -> ScaleIn:
    return ScaleIn(operator=operator, target=Replicas((1,)), nodes=(), score=score, reason="idle")


def move(operator: str, score: float, target: str) -> Migrate:
    return Migrate(operator=operator, origin="n0", target=target, score=score, reason="crowded")


def seen(at_s: float, response_time_s: float | None) -> ApplicationObservation:
    return ApplicationObservation(at_s=at_s, response_time_s=response_time_s, operators=())


def bucket(capacity: int = 1) -> TokenBucket:
    return TokenBucket(low_s=0.125, high_s=0.225, period_s=60.0, capacity=capacity)


def test_requests_of_a_kind_come_in_order_of_score() -> None:
    asked: list[Request] = [fewer("a", 0.9), out("b", 0.1), out("c", 0.8), move("d", 0.5, "n1")]
    assert [r.operator for r in by_priority(asked)] == ["c", "b", "d", "a"]


def test_of_two_requests_for_a_node_the_higher_score_wins_and_the_other_hears_why() -> None:
    kept, refused = without_conflicts([out("a", 0.3, "n1"), move("b", 0.7, "n1"), out("c", 0.1, "n2")])
    assert [r.operator for r in kept] == ["c", "b"]
    assert [(r.request.operator, r.reason) for r in refused] == [
        ("a", "node 'n1' goes to operator 'b' with score 0.70")
    ]


def test_an_operator_is_changed_once_at_a_time() -> None:
    kept, refused = without_conflicts([out("a", 0.3), move("a", 0.7, "n1")])
    assert [type(r) for r in kept] == [Migrate]
    assert len(refused) == 1


def test_granting_all_refuses_conflicts_only() -> None:
    verdict, _ = GrantAll().grant(
        None, [out("a", 0.2, "n1"), out("b", 0.3, "n1"), fewer("c", 1.0)], seen(30, 0.1)
    )
    assert {r.operator for r in verdict.granted} == {"b", "c"}


def test_a_slow_application_earns_one_scale_out() -> None:
    verdict, memory = bucket().grant(Bucket(), [out("a", 0.2), out("b", 0.9), fewer("c", 1.0)], seen(60, 0.3))
    assert [r.operator for r in verdict.granted] == ["b"]
    assert memory.tokens == 0
    assert len(verdict.refused) == 2


def test_a_fast_application_earns_one_scale_in() -> None:
    verdict, _ = bucket().grant(Bucket(), [out("a", 0.9), fewer("c", 0.1)], seen(60, 0.1))
    assert [r.operator for r in verdict.granted] == ["c"]


def test_between_the_thresholds_nothing_is_earned() -> None:
    verdict, memory = bucket().grant(Bucket(), [out("a", 0.9), fewer("c", 0.1)], seen(60, 0.2))
    assert verdict.granted == ()
    assert memory.tokens == 0


def test_a_token_is_earned_once_a_period() -> None:
    policy, asked = bucket(), [out("a", 0.9)]
    granted = []
    memory = policy.initial()
    for at_s in (30, 60, 90, 120, 150):
        verdict, memory = policy.grant(memory, asked, seen(at_s, 0.3))
        granted.append(len(verdict.granted))
    assert granted == [1, 0, 1, 0, 1]


def test_a_token_of_the_other_kind_empties_the_bucket() -> None:
    policy = bucket(capacity=3)
    memory = Bucket(Token.HIGH, 3, 0.0)
    _, memory = policy.grant(memory, [], seen(60, 0.05))
    assert (memory.kind, memory.tokens) == (Token.LOW, 1)


def test_a_blind_application_manager_earns_nothing_and_says_so() -> None:
    verdict, memory = bucket().grant(Bucket(), [out("a", 0.9)], seen(60, None))
    assert verdict.granted == ()
    assert "not measured" in verdict.refused[0].reason
    assert memory.looked_at_s is None


@given(st.lists(st.floats(0, 0.5), max_size=40), st.integers(1, 3))
def test_no_more_is_granted_than_was_earned(times: list[float], capacity: int) -> None:
    policy = bucket(capacity)
    memory, granted, earned = policy.initial(), 0, 0
    for index, time in enumerate(times):
        verdict, memory = policy.grant(memory, [out("a", 0.5), fewer("b", 0.5)], seen(60.0 * index, time))
        granted += len(verdict.granted)
        earned += time > 0.225 or time < 0.125
        assert memory.tokens <= capacity
    assert granted <= earned


@pytest.mark.parametrize(
    ("low_s", "high_s", "capacity", "period_s", "message"),
    [
        (0.3, 0.2, 1, 60, r"token bucket: thresholds 0\.3 s and 0\.2 s; low must be below high"),
        (0.1, 0.2, 0, 60, "TokenBucket: capacity=0: it must be at least 1"),
        (0.1, 0.2, 1, 0, "TokenBucket: period_s=0: it must be above 0"),
        (0.1, 0.2, 1, inf, "TokenBucket: period_s=inf: it must be finite and above 0"),
        (-1, 0.2, 1, 60, "TokenBucket: low_s=-1: it must be at least 0"),
    ],
)
def test_a_bucket_that_makes_no_sense_is_refused(
    low_s: float, high_s: float, capacity: int, period_s: float, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        TokenBucket(low_s=low_s, high_s=high_s, capacity=capacity, period_s=period_s)


def test_tokens_pile_up_to_the_capacity_and_grant_as_many() -> None:
    policy, memory = bucket(capacity=2), Bucket()
    for at_s in (0, 60, 120):
        _, memory = policy.grant(memory, [], seen(at_s, 0.3))
    assert memory.tokens == 2
    verdict, _ = policy.grant(memory, [out("a", 0.1), out("b", 0.2), out("c", 0.3)], seen(150, 0.3))
    assert [r.operator for r in verdict.granted] == ["c", "b"]


@pytest.mark.parametrize(("response_time_s", "granted"), [(0.3, 1), (0.05, 0)])
def test_a_migration_takes_an_h_token(response_time_s: float, granted: int) -> None:
    verdict, _ = bucket().grant(Bucket(), [move("a", 0.5, "n1")], seen(60, response_time_s))
    assert len(verdict.granted) == granted


def test_a_look_that_earns_nothing_begins_a_new_period_too() -> None:
    policy = bucket()
    _, memory = policy.grant(Bucket(), [], seen(60, 0.2))
    _, memory = policy.grant(memory, [], seen(90, 0.3))
    assert memory.tokens == 0
    _, memory = policy.grant(memory, [], seen(120, 0.3))
    assert memory.tokens == 1


def test_a_trembling_clock_costs_no_tokens() -> None:
    """Rounds every 5 s, slightly early or late; a period of 10 s still earns one in 10 s."""
    policy = TokenBucket(low_s=0.1, high_s=0.2, period_s=10.0)
    rng = np.random.default_rng(1)
    memory, granted = policy.initial(), 0
    for index in range(1000):
        at_s = 5.0 * index + rng.uniform(-0.05, 0.05)
        verdict, memory = policy.grant(memory, [out("a", 0.5)], seen(at_s, 0.3))
        granted += len(verdict.granted)
    assert granted == pytest.approx(500, abs=2)


def test_where_paths_have_limits_of_their_own_the_worst_off_earns_the_token() -> None:
    """A path of 400 ms that may take 500 is well; one of 19 ms that may take 20 is not."""
    easy = ApplicationObservation(at_s=60, response_time_s=0.4, strictest_s=0.05, operators=())
    verdict, _ = bucket().grant(Bucket(), [out("a", 0.9), fewer("c", 0.1)], easy)
    assert [r.operator for r in verdict.granted] == ["c"]
