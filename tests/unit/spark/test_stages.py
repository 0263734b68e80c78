"""Stages as Spark 4.3 explains them: which of them nobody would see."""

import pytest

from penstock.runtimes.spark.stages import unseen_stage

TAP = "MapInArrow penstock_tap(timestamp#0, value#1L)#13, [timestamp#14, value#15L], false"

ONE_SHUFFLE = f"""== Physical Plan ==
{TAP}
+- *(4) HashAggregate(keys=[value#15L], functions=[count(1)])
   +- StateStoreSave [value#15L], state info [ checkpoint = <unknown>], 2
      +- Exchange hashpartitioning(value#15L, 4), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=80]
         +- *(1) HashAggregate(keys=[value#15L], functions=[partial_count(1)])
            +- {TAP}
               +- StreamingRelation rate, [timestamp#0, value#1L]
"""
TWO_SHUFFLES = f"""== Physical Plan ==
{TAP}
+- *(7) HashAggregate(keys=[window#39-T10000ms], functions=[count(1)])
   +- Exchange hashpartitioning(window#39-T10000ms, 4), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=242]
      +- *(4) HashAggregate(keys=[window#39-T10000ms], functions=[partial_count(1)])
         +- Exchange hashpartitioning(window#39-T10000ms, value#34L, 4), [plan_id=229]
            +- {TAP}
               +- StreamingRelation rate, [timestamp#0, value#1L]
"""
JOIN = f"""== Physical Plan ==
{TAP}
+- StreamingSymmetricHashJoin [value#59L], [w#65L], Inner
   :- Exchange hashpartitioning(value#59L, 4), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=360]
   :  +- *(2) Filter isnotnull(timestamp#58-T10000ms)
   :     +- {TAP}
   :        +- StreamingRelation rate, [timestamp#0, value#1L]
   +- Exchange hashpartitioning(w#65L, 4), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=370]
      +- *(4) Project [timestamp#63-T10000ms AS t2#66-T10000ms, w#65L]
         +- {TAP}
            +- StreamingRelation rate, [timestamp#60, value#61L]
"""
STATIC_JOIN = f"""== Physical Plan ==
{TAP}
+- *(2) BroadcastHashJoin [value#79L], [value#81L], Inner, BuildRight, false, false
   :- *(2) Filter isnotnull(value#79L)
   :  +- StreamingRelation rate, [timestamp#0, value#1L]
   +- BroadcastExchange HashedRelationBroadcastMode(List(input[0, bigint, false]),false), [plan_id=497]
      +- *(1) Range (0, 10, step=1, splits=1)
"""
NOT_DECLARED = f"""== Physical Plan ==
{TAP}
+- Exchange RoundRobinPartitioning(3), REPARTITION_BY_NUM, [plan_id=548]
   +- StreamingRelation rate, [timestamp#0, value#1L]
"""
IN_PANDAS = f"""== Physical Plan ==
{TAP}
+- !FlatMapGroupsInPandasWithState upd(timestamp#109, value#110L)#111, [value#110L], [value#112L]
   +- *(1) Sort [value#110L ASC NULLS FIRST], false, 0
      +- Exchange hashpartitioning(value#110L, 4), REQUIRED_BY_STATEFUL_OPERATOR, [plan_id=571]
         +- {TAP}
            +- StreamingRelation rate, [timestamp#0, value#1L]
"""


@pytest.mark.parametrize("plan", [ONE_SHUFFLE, JOIN, STATIC_JOIN, IN_PANDAS])
def test_stages_with_taps_are_seen(plan: str) -> None:
    assert unseen_stage(plan) is None


@pytest.mark.parametrize(
    ("plan", "head"),
    [
        (TWO_SHUFFLES, "Exchange hashpartitioning(window#39-T10000ms, 4)"),
        (NOT_DECLARED, "Exchange RoundRobinPartitioning(3)"),
        (JOIN.replace(f"+- {TAP}", "+- Project", 1), "Exchange hashpartitioning(value#59L, 4)"),
    ],
)
def test_a_stage_without_a_tap_is_found(plan: str, head: str) -> None:
    found = unseen_stage(plan)
    assert found is not None
    assert found.startswith(head)


def test_a_users_own_function_is_no_tap() -> None:
    theirs = TWO_SHUFFLES.replace("+- *(4) HashAggregate", "+- MapInArrow tap(x#1)#2, [x#3], false  ")
    assert unseen_stage(theirs) is not None
