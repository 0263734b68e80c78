"""Each guard by itself: what it stops, what it lets through, and the sentence it leaves."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from math import inf, nan
from typing import Any

import pytest
from safety_cases import ONE_TYPE, Chain, app, one, only

from penstock.control.orders import Lift, Order, Override, Pause, Resume
from penstock.control.safety_settings import UNGUARDED, SafetySettings, Window
from penstock.control.watch import (
    Futile,
    HostReading,
    SafetyMemory,
    ScaleOutTrial,
    Track,
    Wanted,
    as_of,
    obey,
)
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.request import Migrate, ScaleOut


def everything_remembered() -> SafetyMemory:
    trial = ScaleOutTrial(
        at_s=900.0, before=1, after=2, rate=9.0, response_time_s=1.0, saturated=False, processed=None
    )
    track = Track(
        replicas=Replicas((2,)),
        changed_at_s=901.0,
        seen_at_s=990.0,
        watched_at_s=1_000.0,
        first_seen_s=100.0,
        wanted=(Wanted(at_s=980.0, total=3),),
        trial=trial,
        futile=Futile(since_s=950.0, rate=9.0, reason="it did not help"),
    )
    return SafetyMemory(
        tracks={"count": track},
        changes_at_s=(901.0,),
        hosts={"here": (HostReading(at_s=970.0, share=0.5),)},
    )


def test_unguarded_lets_everything_through() -> None:
    chain = Chain(UNGUARDED)
    blind: dict[str, Any] = {"arrival_rate": None, "response_time_s": None, "utilisation": None, "skew": 9.0}
    assert chain.asked(0.0, 2, 9, **blind) == 9
    assert chain.asked(1.0, 9, 1, **blind) == 1


# --- Bounds and caps. ---------------------------------------------------------------------------


def test_a_jump_beyond_the_bounds_is_cut_short_and_said_so() -> None:
    chain = Chain(only(min_replicas={"count": 2}, max_replicas={"count": 4}))
    made = chain.round(app(0.0, one(0.0, 3)), {"count": (9,)})
    assert [r.reason for r in made.vetoes] == ["9 replicas of operator 'count' asked for; 4 is the most"]
    assert made.vetoes[0].request.operator == "count"
    assert chain.asked(1.0, 3, 9) == 4
    assert chain.asked(2.0, 4, 9) == "9 replicas of operator 'count' asked for; 4 is the most"
    assert chain.asked(3.0, 4, 1) == 2
    assert chain.asked(4.0, 9, 6) == 6  # fewer is right where too many run


def test_more_replicas_than_there_are_partitions_for_are_not_added() -> None:
    chain = Chain(only())
    cut = "9 replicas of operator 'count' asked for; its work comes in partitions for 4, and more would have "
    made = chain.round(app(0.0, one(0.0, 3, useful_replicas=4)), {"count": (9,)})
    assert [r.reason for r in made.vetoes] == [f"{cut}nothing to do"]
    assert [getattr(r, "target", None) for r in made.granted] == [Replicas((4,))]
    assert chain.asked(1.0, 4, 9, useful_replicas=4) == f"{cut}nothing to do"
    assert chain.asked(2.0, 9, 6, useful_replicas=4) == 6  # fewer is right where too many run
    assert chain.asked(3.0, 3, 9, useful_replicas=None) == 9  # not known


def test_the_node_cap_counts_all_operators_and_what_this_round_adds() -> None:
    chain = Chain(only(max_nodes=6))
    seen = app(0.0, one(0.0, 2, operator="count"), one(0.0, 2, operator="rank"))
    made = chain.round(seen, {"count": (3,), "rank": (5,)})
    totals = {r.operator: r.target.total for r in made.granted if not isinstance(r, Migrate)}
    assert totals == {"count": 3, "rank": 3}
    assert [r.reason for r in made.vetoes] == ["8 nodes in all; the cap is 6"]


def test_the_node_cap_counts_replicas_on_their_way() -> None:
    seen = app(0.0, one(0.0, 2, operator="count"), one(0.0, 2, operator="rank", coming=(2,)))
    made = Chain(only(max_nodes=6)).round(seen, {"count": (3,)})
    assert [r.reason for r in made.vetoes] == ["7 nodes in all; the cap is 6"]


def test_the_cost_cap_knows_prices() -> None:
    cheap, dear = NodeType(name="c", speedup=1, price=1), NodeType(name="d", speedup=2, price=3)
    chain = Chain(only(max_cost=6.0), (cheap, dear))
    made = chain.round(app(0.0, one(0.0, 1, 1)), {"count": (1, 3)})
    assert made.granted == ()
    assert [r.reason for r in made.vetoes] == ["it would cost 10 per hour; the cap is 6"]
    made = chain.round(app(1.0, one(1.0, 1, 1)), {"count": (3, 2)})
    assert [getattr(r, "target", None) for r in made.granted] == [Replicas((3, 1))]


def test_where_costs_are_over_the_cap_already_a_cheaper_deployment_is_welcome() -> None:
    cheap, dear = NodeType(name="c", speedup=1, price=1), NodeType(name="d", speedup=2, price=3)
    chain = Chain(only(max_cost=5.0), (cheap, dear))
    made = chain.round(app(0.0, one(0.0, 0, 3)), {"count": (1, 2)})
    assert [getattr(r, "target", None) for r in made.granted] == [Replicas((1, 2))]


CHEAP, DEAR = NodeType(name="c", speedup=1, price=1), NodeType(name="d", speedup=2, price=3)


@pytest.mark.parametrize(
    ("known", "running", "wanted", "reason"),
    [
        (ONE_TYPE, (2,), (2, 1), "it names 2 node types; 1 were observed, 1 are known"),
        ((CHEAP, DEAR), (2, 1), (4,), "it names 1 node types; 2 were observed, 2 are known"),
        ((CHEAP, DEAR), (2,), (3,), "it names 1 node types; 1 were observed, 2 are known"),
        (ONE_TYPE, (2, 0), (2, 1), "it names 2 node types; 2 were observed, 1 are known"),
    ],
)
def test_a_target_for_other_node_types_than_there_are_is_refused_to_managers_and_people(
    known: tuple[NodeType, ...], running: tuple[int, ...], wanted: tuple[int, ...], reason: str
) -> None:
    chain = Chain(UNGUARDED, known)
    made = chain.round(app(0.0, one(0.0, *running)), {"count": wanted})
    assert (made.granted, [r.reason for r in made.vetoes]) == ((), [reason])
    chain.memory = obey(chain.memory, Override(operator="count", target=Replicas(wanted)))
    made = chain.round(app(30.0, one(30.0, *running)))
    assert (made.granted, [r.reason for r in made.vetoes]) == ((), [reason])


# --- Measurements. ------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["arrival_rate", "response_time_s", "utilisation"])
@pytest.mark.parametrize("value", [None, nan, -1.0])
def test_nothing_is_done_on_a_missing_metric(missing: str, value: float | None) -> None:
    chain = Chain(only(needed_metrics=("arrival_rate", "response_time_s", "utilisation")))
    assert chain.asked(0.0, 2, 3, **{missing: value}) == f"{missing} not measured"


def test_a_saturated_operator_is_measured() -> None:
    chain = Chain(only(needed_metrics=("response_time_s",)))
    assert chain.asked(0.0, 2, 3, response_time_s=inf) == 3


def test_nothing_is_done_on_old_measurements() -> None:
    chain = Chain(only(stale_after_intervals=3.0, interval_s=10.0))
    fresh, old = one(70.0, 2, operator="count"), one(60.0, 2, operator="rank")
    made = chain.round(app(100.0, fresh, old), {"count": (3,), "rank": (3,)})
    assert [r.operator for r in made.granted] == ["count"]
    assert [r.reason for r in made.vetoes] == ["the last measurement is 40 s old, more than 30 s"]


def test_an_operator_nobody_saw_is_left_alone() -> None:
    chain = Chain(UNGUARDED)
    chain.memory = obey(chain.memory, Override(operator="ghost", target=Replicas((2,))))
    assert chain.round(app(0.0, one(0.0, 2))).granted == ()


# --- After a change. ----------------------------------------------------------------------------


def test_after_a_change_measurements_are_given_time_to_mean_something() -> None:
    chain = Chain(only(warm_up_s=60.0))
    assert chain.asked(0.0, 2, 3) == "changed 0 s ago; measurements mean something after 60 s"
    assert chain.asked(60.0, 2, 3) == 3
    assert "changed 30 s ago" in str(chain.asked(90.0, 2, 3))  # on its way
    assert "changed 0 s ago" in str(chain.asked(120.0, 3, 4))  # there: time counts from here
    assert chain.asked(180.0, 3, 4) == 4


def test_who_goes_by_the_load_that_arrives_adds_replicas_without_waiting_for_the_last_to_settle() -> None:
    chain = Chain(only(warm_up_s=60.0, anticipating=True))
    # The first measurements of all are as cold for everybody.
    assert chain.asked(0.0, 2, 3) == "first seen 0 s ago; measurements mean something after 60 s"
    assert chain.asked(60.0, 2, 3) == 3
    assert chain.asked(65.0, 2, 4) == 4  # on its way
    assert chain.asked(70.0, 4, 6) == 6  # just there
    assert chain.asked(75.0, 6, 5) == 5  # the window of `hasty_scale_in` is what removing waits for
    assert "changed 5 s ago" in str(chain.round(app(80.0, one(80.0, 6)), moves=(MOVE,)).vetoes[0].reason)


def test_a_change_under_way_is_not_overtaken() -> None:
    chain = Chain(UNGUARDED)
    made = chain.round(app(0.0, one(0.0, 2), reconfiguring=("count",)), {"count": (3,)})
    assert [r.reason for r in made.vetoes] == ["the last change of operator 'count' is not finished"]


@pytest.mark.parametrize(
    ("asked", "coming", "granted"),
    [
        (5, (2,), True),
        (4, (2,), False),  # they are on their way
        (1, (2,), False),  # fewer
        (5, None, False),  # one change at a time
        (3, (0,), True),  # all have come, and are not at work yet
    ],
)
def test_an_operator_that_grows_is_asked_for_more_than_will_be_there_anyway(
    asked: int, coming: tuple[int, ...] | None, granted: bool
) -> None:
    seen = app(0.0, one(0.0, 2, coming=coming), reconfiguring=("count",))
    made = Chain(UNGUARDED).round(seen, {"count": (asked,)})
    assert bool(made.granted) is granted


CATCH_UP = only(catch_up_backlog_s=10.0, catch_up_limit_s=300.0)


def test_while_a_backlog_drains_after_a_change_nothing_is_added_or_removed() -> None:
    chain = Chain(CATCH_UP)
    assert chain.asked(0.0, 2, 2, backlog=9000.0) == 2
    assert chain.asked(30.0, 2, 4, backlog=6000.0) == (
        "catching up after a change: 6000 tuples (60 s of arrivals), 3000 tuples fewer than before"
    )
    assert "6000 tuples (60 s of arrivals) to work off" in str(chain.asked(30.0, 2, 1, backlog=6000.0))
    assert chain.asked(60.0, 2, 4, backlog=900.0) == 4  # worked off


def test_who_goes_by_the_load_that_arrives_adds_replicas_while_a_backlog_drains() -> None:
    chain = Chain(only(catch_up_backlog_s=10.0, catch_up_limit_s=300.0, anticipating=True))
    chain.asked(0.0, 2, 2, backlog=9000.0)
    assert "to work off" in str(chain.asked(30.0, 2, 1, backlog=6000.0)), "removing waits"
    assert chain.asked(60.0, 2, 4, backlog=3000.0) == 4


def test_a_backlog_that_grows_is_no_catching_up() -> None:
    chain = Chain(CATCH_UP)
    chain.asked(0.0, 2, 2, backlog=3000.0)
    assert "to work off" in str(chain.asked(30.0, 2, 1, backlog=4000.0))
    assert chain.asked(60.0, 2, 3, backlog=5000.0) == 3


def test_a_catch_up_does_not_last_for_ever() -> None:
    chain = Chain(CATCH_UP)
    chain.asked(0.0, 2, 2, backlog=9000.0)
    chain.asked(290.0, 2, 2, backlog=8900.0)
    assert chain.asked(320.0, 2, 3, backlog=8800.0) == 3


def test_while_one_operator_catches_up_no_other_gives_replicas_away() -> None:
    """Upstream of a stopped operator all is idle, downstream of it comes a surge: neither is the load."""
    chain = Chain(CATCH_UP)
    chain.round(app(0.0, one(0.0, 2, backlog=5000.0), one(0.0, 2, operator="rank")))
    seen = app(30.0, one(30.0, 2, backlog=4000.0), one(30.0, 2, operator="rank"))
    made = chain.round(seen, {"rank": (1,)})
    assert [r.reason for r in made.vetoes] == [
        "operator 'count' has 4000 tuples (40 s of arrivals) to work off"
    ]


def test_a_neighbours_backlog_holds_replicas_only_for_a_while_after_its_change() -> None:
    """An operator that is late for good would otherwise keep all others from ever scaling in."""
    chain = Chain(CATCH_UP)

    def wanted_fewer(at_s: float, count: int = 2) -> str:
        """Of both operators; `count` has a backlog that does not go away."""
        seen = app(at_s, one(at_s, count, backlog=5000.0), one(at_s, 2, operator="rank"))
        made = chain.round(seen, {"count": (count - 1,), "rank": (1,)})
        assert "count" not in {r.operator for r in made.granted}  # its own backlog counts at any age
        return "granted" if made.granted else made.vetoes[-1].reason

    late = "operator 'count' has 5000 tuples (50 s of arrivals) to work off"
    assert wanted_fewer(0.0) == late  # first seen: may have changed just before
    assert wanted_fewer(299.0) == late
    assert wanted_fewer(300.0) == "granted"
    assert wanted_fewer(330.0, count=3) == late  # changed again
    assert wanted_fewer(629.0, count=3) == late
    assert wanted_fewer(630.0, count=3) == "granted"


# --- Delayed scale-in. --------------------------------------------------------------------------

WINDOW = only(scale_in_window_s=300.0)


def test_scaling_in_waits_for_a_whole_window() -> None:
    chain = Chain(WINDOW)
    answers = [chain.asked(float(at), 4, 2) for at in range(0, 360, 60)]
    assert answers[1] == "fewer replicas wanted, but watched for 60 s only; judged over 300 s"
    assert answers[-1] == 2


def test_the_largest_number_wanted_in_the_window_wins() -> None:
    chain = Chain(WINDOW)
    for at in range(0, 300, 60):
        chain.asked(float(at), 5, 3 if at == 120 else 1)
    assert chain.asked(300.0, 5, 1) == 3  # three were wanted 180 s ago
    assert chain.asked(480.0, 5, 1) == 1  # not any more


def test_one_wish_to_stay_in_the_window_is_enough_to_stay() -> None:
    chain = Chain(WINDOW)
    for at in range(0, 300, 60):
        chain.asked(float(at), 4, 5 if at == 240 else 2)
    assert chain.asked(300.0, 4, 2) == "5 replicas were wanted within the last 300 s"


def test_time_in_which_nobody_watched_does_not_count() -> None:
    chain = Chain(only(scale_in_window_s=300.0, stale_after_intervals=3.0, interval_s=60.0))
    for at in range(0, 240, 60):
        chain.asked(float(at), 4, 2)
    assert "watched for 0 s only" in str(chain.asked(3600.0, 4, 2))


def test_scaling_out_does_not_wait() -> None:
    assert Chain(WINDOW).asked(0.0, 2, 6) == 6


# --- Not now. -----------------------------------------------------------------------------------


def test_a_pause_ends_by_itself_or_when_resumed() -> None:
    chain = Chain(UNGUARDED)
    chain.memory = obey(chain.memory, Pause(until_s=100.0))
    assert chain.asked(40.0, 2, 3) == "paused for another 60 s"
    assert chain.asked(100.0, 2, 3) == 3
    chain.memory = obey(obey(chain.memory, Pause(until_s=900.0)), Resume())
    assert chain.asked(130.0, 2, 3) == 3
    with pytest.raises(InputError, match="a pause must have an end"):
        obey(chain.memory, Pause(until_s=inf))


def test_nothing_changes_in_excluded_windows() -> None:
    night = Window(start_s=82_800.0, end_s=3_600.0, daily=True)  # 23:00 to 01:00
    sale = Window(start_s=500_000.0, end_s=600_000.0)
    chain = Chain(only(excluded=(night, sale)))
    days = 3 * 86_400.0
    assert chain.asked(days + 82_799.0, 2, 3) == 3
    assert "excluded window 82800-3600 s of every day" in str(chain.asked(days + 82_800.0, 2, 3))
    assert "excluded window" in str(chain.asked(days + 86_400.0 + 3_599.0, 2, 3))
    assert chain.asked(days + 86_400.0 + 3_600.0, 2, 3) == 3
    assert "excluded window 500000-600000 s" in str(chain.asked(550_000.0, 2, 3))


def test_a_manual_override_is_carried_out_and_sticks_until_lifted() -> None:
    chain = Chain(SafetySettings(max_replicas={"count": 5}))
    orders: tuple[Order, ...] = (Override(operator="count", target=Replicas((7,))),)
    for order in orders:
        chain.memory = obey(chain.memory, order)
    # Neither warm-up nor missing metrics hold up a person; bounds do.
    blind: dict[str, Any] = {"arrival_rate": None, "response_time_s": None, "utilisation": None}
    made = chain.round(app(0.0, one(0.0, 2, **blind)))
    assert [(r.operator, getattr(r, "target", None)) for r in made.granted] == [("count", Replicas((5,)))]
    chain.memory = obey(chain.memory, Override(operator="count", target=Replicas((3,))))
    assert chain.asked(30.0, 3, 1) == "manual override: 3 replicas until it is lifted"
    assert chain.asked(30_000.0, 3, 4) == "manual override: 3 replicas until it is lifted"
    chain.memory = obey(chain.memory, Lift(operator="count"))
    assert chain.asked(60_000.0, 3, 4) == 4


def test_an_override_waits_for_the_end_of_a_pause() -> None:
    chain = Chain(UNGUARDED)
    chain.memory = obey(chain.memory, Pause(until_s=100.0))
    chain.memory = obey(chain.memory, Override(operator="count", target=Replicas((3,))))
    assert chain.asked(0.0, 2, 2) == "paused for another 100 s"
    assert chain.asked(100.0, 2, 2) == 3


def test_changes_have_a_budget() -> None:
    chain = Chain(only(max_changes=2, changes_window_s=600.0))
    assert chain.asked(0.0, 2, 3) == 3
    assert chain.asked(300.0, 3, 4) == 4
    assert chain.asked(330.0, 4, 5) == "2 changes within the last 600 s; the budget is 2"
    assert chain.asked(600.0, 4, 5) == 5
    both = app(2000.0, *(one(2000.0, 2, operator=name) for name in ("a", "b", "c")))
    assert len(chain.round(both, {"a": (3,), "b": (3,), "c": (3,)}).granted) == 2


# --- When more does not help. -------------------------------------------------------------------


def test_a_hot_key_is_noticed_and_no_replica_added_for_it() -> None:
    chain = Chain(only(max_skew=1.75))
    assert chain.asked(0.0, 4, 5, skew=3.0, utilisation=0.9) == (
        "the busiest replica carries 3.0 times the mean load, the mean is 0.30 busy: a hot key or "
        "partition, which more replicas do not relieve"
    )
    assert chain.asked(1.0, 4, 5, skew=1.2, utilisation=0.9) == 5
    assert chain.asked(2.0, 4, 5, skew=1.8, utilisation=1.6) == 5  # the others are busy too
    assert chain.asked(3.0, 4, 3, skew=3.0, utilisation=0.9) == 3
    assert chain.asked(4.0, 4, 5, skew=None) == 5


FULL_HOST = only(full_host=0.95, interval_s=5.0)


def on_hosts(
    *loads: dict[str, float],
    computing: float | None = 0.9,
    settings: Any = FULL_HOST,
    interval_s: float = 5.0,
) -> str:
    """What is said to one more replica after these loads of the hosts, one interval after another."""
    chain, said = Chain(settings), ""
    for number, hosts in enumerate(loads, start=1):
        here = one(5.0 * number, 2, computing=computing)
        last = number == len(loads)
        made = chain.round(
            app(interval_s * number, here, host_loads=hosts), {"count": (3,)} if last else None
        )
        said = made.vetoes[0].reason if made.vetoes else "granted"
    return said


def test_on_a_full_host_no_replica_is_added() -> None:
    assert on_hosts({"node7": 0.97}, {"node7": 0.99}, {"node7": 0.98}) == (
        "host 'node7' is full (98 % of its CPU busy for 15 s): more replicas on it cannot help"
    )
    assert on_hosts(*[{"a": 0.98, "b": 0.96}] * 3) == (
        "all 2 hosts are full (the least so, 'b': 96 % of its CPU busy for 15 s): more replicas on them "
        "cannot help"
    )
    assert "host 'a' is full" in on_hosts(*[{"a": 1.0}] * 3, computing=None), "it may well compute"


def test_a_host_is_full_only_when_it_has_been_for_a_while() -> None:
    assert on_hosts({"a": 1.0}, {"a": 1.0}) == "granted"
    assert on_hosts({"a": 0.5}, {"a": 1.0}, {"a": 1.0}) == "granted"  # a Java machine that starts
    assert "is full" in on_hosts({"a": 0.5}, {"a": 1.0}, {"a": 0.9}, {"a": 1.0})


def test_a_host_that_is_seldom_heard_of_is_full_after_as_long() -> None:
    """Of one elsewhere a share is known whenever a task has ended."""
    every_second = only(full_host=0.95, interval_s=1.0)
    seldom = [{"a": 1.0} if second % 4 == 0 else {} for second in range(1, 25)]
    assert "is full" in on_hosts(*seldom, settings=every_second, interval_s=1.0)
    assert on_hosts(*seldom[:12], settings=every_second, interval_s=1.0) == "granted", "not yet"
    assert on_hosts(*seldom, *[{}] * 16, settings=every_second, interval_s=1.0) == "granted", "it is gone"


def test_where_one_host_has_room_or_is_not_known_yet_a_replica_may_come_to_it() -> None:
    assert on_hosts(*[{"a": 1.0, "b": 0.7}] * 3) == "granted"
    assert on_hosts({"a": 1.0}, {"a": 1.0}, {"a": 1.0, "b": 1.0}) == "granted"
    assert on_hosts(*[{}] * 3) == "granted"
    assert on_hosts(*[{"a": nan}] * 3) == "granted"


def test_a_host_not_heard_of_for_a_while_says_nothing_any_more() -> None:
    full: list[dict[str, float]] = [{"a": 1.0}] * 3
    assert "is full" in on_hosts(*full, {}, {})
    assert on_hosts(*full, {}, {}, {}) == "granted"
    # Nor does it stand in the way of what is known of another.
    assert "host 'a' is full" in on_hosts({"a": 1.0, "b": 0.1}, *full)


def test_an_operator_that_waits_for_others_gets_replicas_on_a_full_host_too() -> None:
    full = [{"a": 1.0}] * 3
    assert on_hosts(*full, computing=0.2) == "granted"
    assert "is full" in on_hosts(*full, computing=0.5)


SPARE_CPU = replace(FULL_HOST, spare_cpu=True)


def asked_on(
    chain: Chain,
    at_s: float,
    now: int,
    wanted: int,
    loads: dict[str, float],
    *,
    computing: float | None = 0.9,
    coming: tuple[int, ...] | None = None,
) -> tuple[int | None, str]:
    """How many replicas are granted on hosts as busy as this, and what is said."""
    here = one(at_s, now, computing=computing, coming=coming)
    made = chain.round(app(at_s, here, host_loads=loads), {"count": (wanted,)})
    granted = made.granted[0].target.total if made.granted and isinstance(made.granted[0], ScaleOut) else None
    return granted, made.vetoes[0].reason if made.vetoes else ""


def computing_on(
    *loads: float,
    computing: float | None = 0.9,
    coming: tuple[int, ...] | None = None,
    hosts: int = 1,
    settings: SafetySettings = SPARE_CPU,
) -> tuple[int | None, str]:
    """What two replicas that ask for ten are granted after intervals in which the hosts were as busy as this,
    the first of them that in which they came."""
    chain = Chain(settings)
    for number, load in enumerate(loads, start=1):
        last = number == len(loads)
        said = asked_on(
            chain,
            5.0 * number,
            2,
            10 if last else 2,
            {f"h{host}": load for host in range(hosts)},
            computing=computing,
            coming=coming if last else None,
        )
    return said


def test_of_replicas_that_compute_come_as_many_as_the_cpu_can_hold() -> None:
    """Two take a quarter of the CPU: the .7 that are left of .95 are room for 5 more."""
    assert computing_on(0.0, 0.25) == (
        7,
        "2 replicas that may compute, and the CPU 25 % busy: room for 5 more",
    )
    assert computing_on(0.0, 0.25, hosts=2)[0] == 7, "each takes an eighth of two hosts"
    assert computing_on(0.0, 0.9)[0] == 3, "one, to find out"
    assert computing_on(0.0, 0.0)[0] == 3


def test_by_their_latest_readings_and_by_the_last_where_the_cpu_gets_busier() -> None:
    assert computing_on(0.0, 0.3, 0.25, 0.2)[0] == 7, "by the mean"
    assert computing_on(0.0, 0.1, 0.1, 0.25)[0] == 7, "by the last"
    assert computing_on(0.0, 0.9, 0.25, 0.25, 0.25)[0] == 7, "by the latest three"


def test_readings_from_before_a_change_say_nothing_of_those_there_now() -> None:
    """Each takes an eighth of the host, and how busy it is with them is known an interval after they came."""
    chain = Chain(SPARE_CPU)
    unknown = "how busy the CPU is with {} replicas that may compute is not known yet: one more, to find out"
    assert asked_on(chain, 5.0, 2, 20, {"a": 0.25}) == (3, unknown.format(2))
    chain = Chain(SPARE_CPU)
    assert asked_on(chain, 5.0, 2, 2, {"a": 0.25})[0] is None
    assert asked_on(chain, 10.0, 2, 20, {"a": 0.25})[0] == 7
    assert asked_on(chain, 15.0, 7, 20, {"a": 0.25}) == (8, unknown.format(7))
    assert asked_on(chain, 20.0, 7, 20, {"a": 0.875}, coming=(1,)) == (
        None,  # the one is on its way
        "7 replicas that may compute, and the CPU 88 % busy: room for 1 more",
    )


def test_a_reading_that_came_early_is_one_since_the_change() -> None:
    """Rounds are not quite even: it began where the one before ended."""
    chain = Chain(SPARE_CPU)
    for at_s in (5.0, 9.9):
        said = asked_on(chain, at_s, 2, 2 if at_s == 5.0 else 10, {"a": 0.25})
    assert said[0] == 7


def test_where_a_host_has_no_reading_since_the_change_one_replica_comes() -> None:
    chain = Chain(SPARE_CPU)
    asked_on(chain, 5.0, 2, 2, {"a": 0.1, "b": 0.1})
    assert asked_on(chain, 10.0, 2, 10, {"a": 0.1})[0] == 3


def test_those_on_their_way_are_among_them() -> None:
    assert computing_on(0.0, 0.25, coming=(2,))[0] == 7
    assert computing_on(0.0, 0.25, coming=(5,))[0] is None


def test_those_that_wait_come_at_once() -> None:
    assert computing_on(0.0, 0.9, computing=0.2) == (10, "")
    assert computing_on(0.0, 0.9, computing=None)[0] == 3, "they may well compute"


def test_replicas_that_compute_come_at_once_where_nobody_asked_for_spare_cpu() -> None:
    """As in journals recorded before there was such a guard."""
    assert computing_on(0.0, 0.9, settings=FULL_HOST) == (10, "")
    assert computing_on(0.0, 0.9, settings=replace(SPARE_CPU, full_host=0.0)) == (10, "")


@pytest.mark.parametrize("readings", [(0.9, 0.9, 0.05), (0.9, 0.05)])
def test_one_low_reading_does_not_make_it_wait(readings: tuple[float, ...]) -> None:
    chain = Chain(FULL_HOST)
    for number, computing in enumerate((*[None] * (3 - len(readings)), *readings), start=1):
        seen = app(5.0 * number, one(5.0 * number, 2, computing=computing), host_loads={"a": 1.0})
        made = chain.round(seen, {"count": (3,)} if number == 3 else None)
    assert "is full" in made.vetoes[0].reason


def test_on_a_full_host_replicas_may_go_and_types_be_exchanged() -> None:
    slow_and_fast = (*ONE_TYPE, NodeType(name="fast", speedup=2.0, price=2.0))
    chain = Chain(FULL_HOST, slow_and_fast)
    for at_s, wanted, granted in ((5.0, None, 0), (10.0, None, 0), (15.0, (1, 1), 1), (20.0, (1, 0), 1)):
        seen = app(at_s, one(at_s, 2, 0, computing=0.9), host_loads={"a": 1.0})
        assert len(chain.round(seen, {"count": wanted} if wanted else None).granted) == granted
    assert "is full" in chain.round(app(25.0, one(25.0, 2, 0)), {"count": (2, 1)}).vetoes[0].reason


def test_zero_turns_the_guard_of_full_hosts_off() -> None:
    assert on_hosts(*[{"a": 1.0}] * 3, settings=only(interval_s=5.0)) == "granted"


FUTILE = only(ineffective_hold_s=600.0, warm_up_s=60.0, least_improvement=0.05)


def scaled_out(**before: Any) -> Chain:
    """Three replicas were made of two, and that was given time."""
    chain = Chain(FUTILE)
    chain.asked(0.0, 2, 2, **before)
    chain.asked(30.0, 2, 2, **before)
    assert chain.asked(60.0, 2, 3, **before) == 3
    return chain


def test_replicas_that_did_not_help_are_noticed_and_no_more_added() -> None:
    chain = scaled_out(response_time_s=0.090)
    chain.asked(90.0, 3, 3, response_time_s=0.091)
    assert chain.asked(150.0, 3, 4, response_time_s=0.089) == (
        "going from 2 to 3 replicas did not help: response time 90 ms before, 89 ms after, at 100 t/s; "
        "no more are added for 600 s"
    )
    assert chain.asked(300.0, 3, 2) == 2  # removing is fine
    assert "did not help" in str(chain.asked(600.0, 3, 4))
    assert chain.asked(750.0, 3, 4) == 4


def test_a_load_more_than_a_fifth_higher_ends_the_ban_on_more_replicas() -> None:
    chain = scaled_out(response_time_s=0.090, arrival_rate=100.0)
    chain.asked(90.0, 3, 3, response_time_s=0.090)
    assert "did not help" in str(chain.asked(150.0, 3, 4, response_time_s=0.090))
    assert "did not help" in str(chain.asked(180.0, 3, 4, arrival_rate=120.0))
    assert "did not help" in str(chain.asked(210.0, 3, 4, arrival_rate=80.0))
    assert chain.asked(240.0, 3, 4, arrival_rate=120.1) == 4


def test_a_scale_out_that_never_arrives_is_forgotten_and_what_comes_later_is_not_blamed() -> None:
    """The third replica comes by another hand; it was never this scale-out that did not help."""

    def third_replica_at(arrived_s: float) -> str | int:
        chain = scaled_out(response_time_s=0.090)  # commanded at 60 s
        for at_s in range(90, int(arrived_s), 30):
            chain.asked(float(at_s), 2, 2, response_time_s=0.090)
        chain.asked(arrived_s, 3, 3, response_time_s=0.090)
        return chain.asked(arrived_s + 60.0, 3, 4, response_time_s=0.090)

    assert "going from 2 to 3 replicas did not help" in str(third_replica_at(690.0))
    assert third_replica_at(720.0) == 4  # given up at 690 s, 630 s after the command


def test_a_scale_out_is_not_judged_by_what_was_measured_before_it() -> None:
    chain = scaled_out(response_time_s=0.090)  # commanded at 60 s
    for at_s in (90.0, 150.0):  # the replica is there and warm; nothing has been measured since
        chain.round(app(at_s, one(60.0, 3, response_time_s=0.090)))
    assert chain.asked(180.0, 3, 4, response_time_s=0.050) == 4  # it has helped


def test_a_scale_out_is_not_judged_by_what_was_measured_before_its_replica_came() -> None:
    chain = scaled_out(response_time_s=0.090)  # commanded at 60 s
    for at_s in (90.0, 120.0):
        chain.asked(at_s, 2, 2, response_time_s=0.090)
    for at_s in (150.0, 210.0):  # it is there from 150 s on; the last measurement is older
        chain.round(app(at_s, one(140.0, 3, response_time_s=0.090)))
    assert chain.asked(240.0, 3, 4, response_time_s=0.050) == 4  # it has helped


def test_replicas_that_helped_may_be_followed_by_more() -> None:
    chain = scaled_out(response_time_s=0.090)
    chain.asked(90.0, 3, 3, response_time_s=0.07)
    assert chain.asked(150.0, 3, 4, response_time_s=0.07) == 4


def test_no_improvement_under_more_load_proves_nothing() -> None:
    chain = scaled_out(response_time_s=0.090, arrival_rate=100.0)
    chain.asked(90.0, 3, 3, response_time_s=0.09)
    assert chain.asked(150.0, 3, 4, response_time_s=0.095, arrival_rate=130.0) == 4


def test_a_replica_added_while_the_load_rises_is_not_judged_by_a_response_time_of_less_load() -> None:
    """The load doubled just before, and the response time has yet to follow it."""

    def added_after(*rates: float) -> str | int:
        chain = Chain(FUTILE)
        times = [30.0 * number for number in range(len(rates))]
        for at_s, rate in zip(times, rates, strict=True):
            chain.asked(at_s, 2, 2, response_time_s=0.090, arrival_rate=rate)
        last = rates[-1]
        assert chain.asked(times[-1] + 30.0, 2, 3, response_time_s=0.090, arrival_rate=last) == 3
        chain.asked(times[-1] + 60.0, 3, 3, response_time_s=0.140, arrival_rate=last)
        return chain.asked(times[-1] + 120.0, 3, 4, response_time_s=0.140, arrival_rate=last)

    assert added_after(50.0, 50.0, 100.0) == 4
    assert added_after(60.0, 80.0, 100.0) == 4
    assert "did not help" in str(added_after(50.0, 100.0, 100.0, 100.0)), "that load had been there"


def test_an_overloaded_operator_that_processes_more_is_helped_though_still_late() -> None:
    late: dict[str, Any] = {"response_time_s": inf, "utilisation": 1.0, "arrival_rate": 100.0}

    def with_backlogs(*after: float) -> str | int:
        chain = Chain(FUTILE)
        for at, backlog in ((0.0, 0.0), (30.0, 1500.0)):  # 50 of 100 t/s are processed
            chain.asked(at, 2, 2, backlog=backlog, **late)
        assert chain.asked(60.0, 2, 3, backlog=3000.0, **late) == 3
        chain.asked(90.0, 3, 3, backlog=after[0], **late)
        return chain.asked(150.0, 3, 4, backlog=after[1], **late)

    assert with_backlogs(3750.0, 5250.0) == 4  # 75 of 100 t/s
    assert "did not help" in str(with_backlogs(4500.0, 7500.0))  # 50 of 100 t/s, as before


def test_where_nothing_was_measured_of_what_is_processed_the_benefit_of_the_doubt_is_given() -> None:
    chain = scaled_out(response_time_s=inf, utilisation=1.0)
    chain.asked(90.0, 3, 3, response_time_s=inf, utilisation=1.0)
    assert chain.asked(150.0, 3, 4, response_time_s=inf, utilisation=1.0) == 4


# --- Migrations. --------------------------------------------------------------------------------

MOVE = Migrate(operator="count", origin="a", target="b", score=0.5, reason="a is busy")


@dataclass(frozen=True)
class Situation:
    """Two rounds in which nothing is asked for, and what holds in the one that asks."""

    settings: SafetySettings = UNGUARDED
    order: Order | None = None
    at_s: float = 600.0
    measured_at_s: float = 600.0
    metrics: dict[str, Any] = field(default_factory=dict)
    running: int = 2
    reconfiguring: tuple[str, ...] = ()

    def asked(self, wanted: int | None = None) -> str:
        """For this many replicas, or for a migration: "granted", or why not."""
        chain = Chain(self.settings)
        for at_s in (0.0, self.at_s - 30.0):
            chain.round(app(at_s, one(at_s, self.running, **self.metrics)))
        if self.order is not None:
            chain.memory = obey(chain.memory, self.order)
        here = one(self.measured_at_s, self.running, **self.metrics)
        seen = app(self.at_s, here, reconfiguring=self.reconfiguring)
        made = chain.round(seen, {"count": (wanted,)} if wanted else None, () if wanted else (MOVE,))
        return made.vetoes[0].reason if made.vetoes else "granted"


@pytest.mark.parametrize(
    ("situation", "reason"),
    [
        (Situation(order=Pause(until_s=700.0)), "paused for another 100 s"),
        (Situation(only(excluded=(Window(start_s=500.0, end_s=700.0),))), "in the excluded window"),
        (Situation(order=Override(operator="count", target=Replicas((2,)))), "manual override: 2 replicas"),
        (Situation(reconfiguring=("count",)), "the last change of operator 'count' is not finished"),
        (
            Situation(only(stale_after_intervals=3.0, interval_s=10.0), measured_at_s=560.0),
            "the last measurement is 40 s old",
        ),
        (
            Situation(only(needed_metrics=("utilisation",)), metrics={"utilisation": None}),
            "utilisation not measured",
        ),
        (Situation(only(warm_up_s=60.0), at_s=50.0, measured_at_s=50.0), "changed 50 s ago"),
    ],
)
def test_a_migration_waits_like_any_change(situation: Situation, reason: str) -> None:
    assert reason in situation.asked()


@pytest.mark.parametrize(
    ("situation", "wanted", "reason"),
    [
        (Situation(only(catch_up_backlog_s=10.0), metrics={"backlog": 9000.0}), 1, "to work off"),
        (
            Situation(only(max_skew=1.75), metrics={"skew": 3.0, "utilisation": 0.9}),
            3,
            "a hot key or partition",
        ),
        (Situation(only(scale_in_window_s=900.0)), 1, "judged over 900 s"),
        (Situation(only(max_replicas={"count": 2})), 3, "2 is the most"),
        (Situation(only(min_replicas={"count": 2})), 1, "2 is the least"),
        (Situation(only(max_nodes=2)), 3, "3 nodes in all; the cap is 2"),
        (Situation(only(max_cost=2.0)), 3, "it would cost 3 per hour; the cap is 2"),
    ],
)
def test_a_migration_changes_no_count_so_what_limits_counts_lets_it_pass(
    situation: Situation, wanted: int, reason: str
) -> None:
    assert reason in situation.asked(wanted)
    assert situation.asked() == "granted"


def test_neither_a_backlog_that_drains_nor_a_ban_on_more_replicas_stops_a_migration() -> None:
    chain = Chain(CATCH_UP)
    chain.asked(0.0, 2, 2, backlog=9000.0)
    draining = one(30.0, 2, backlog=6000.0)
    assert "catching up" in chain.round(app(30.0, draining), {"count": (3,)}).vetoes[0].reason
    assert chain.round(app(30.0, draining), moves=(MOVE,)).granted == (MOVE,)
    chain = scaled_out(response_time_s=0.090)
    chain.asked(90.0, 3, 3, response_time_s=0.090)
    assert "did not help" in str(chain.asked(150.0, 3, 4, response_time_s=0.090))
    assert chain.round(app(180.0, one(180.0, 3)), moves=(MOVE,)).granted == (MOVE,)


def test_a_migration_is_a_change_it_is_the_only_one_of_its_operator_and_spends_the_budget() -> None:
    chain = Chain(only(max_changes=1, changes_window_s=600.0))
    both = chain.round(app(0.0, one(0.0, 2)), {"count": (3,)}, (MOVE,))
    assert [type(r) for r in both.granted] == [ScaleOut]
    assert [r.reason for r in both.vetoes] == ["operator 'count' is changed by another request of this round"]
    assert chain.round(app(600.0, one(600.0, 3)), moves=(MOVE,)).granted == (MOVE,)
    assert chain.asked(630.0, 3, 4) == "1 changes within the last 600 s; the budget is 1"
    over = chain.round(app(660.0, one(660.0, 3)), moves=(MOVE,))
    assert [r.reason for r in over.vetoes] == ["1 changes within the last 600 s; the budget is 1"]


def test_a_migration_starts_a_warm_up_and_is_not_judged_as_a_scale_out() -> None:
    chain = Chain(FUTILE)
    chain.asked(0.0, 2, 2, response_time_s=0.090)
    assert chain.round(app(60.0, one(60.0, 2, response_time_s=0.090)), moves=(MOVE,)).granted == (MOVE,)
    assert "changed 30 s ago" in str(chain.asked(90.0, 2, 3, response_time_s=0.090))
    assert chain.asked(120.0, 2, 3, response_time_s=0.090) == 3  # though no faster than before


# --- Settings. ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"interval_s": 0.0}, "interval_s=0"),
        ({"warm_up_s": -1.0}, "warm_up_s=-1"),
        ({"scale_in_window_s": nan}, "scale_in_window_s=nan"),
        ({"max_replicas": {"count": 0}}, "'count': max_replicas=0; at least one"),
        ({"min_replicas": {"c": 3}, "max_replicas": {"c": 2}}, "min_replicas=3 above max_replicas=2"),
        ({"max_cost": 0.0}, "max_cost=0"),
        ({"max_nodes": 0}, "max_nodes=0"),
        ({"max_changes": 0}, "max_changes=0"),
        ({"least_improvement": 1.0}, "least_improvement=1"),
        ({"full_host": 1.5}, "full_host=1.5; it is a share"),
        ({"full_host": nan}, "full_host=nan"),
        ({"needed_metrics": ("latency",)}, "needed metric 'latency': unknown"),
    ],
)
def test_settings_are_checked(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SafetySettings(**wrong)


def test_windows_are_checked() -> None:
    with pytest.raises(InputError, match="must end after it starts"):
        Window(start_s=5.0, end_s=5.0)
    with pytest.raises(InputError, match="not within 0 to 86400"):
        Window(start_s=5.0, end_s=90_000.0, daily=True)


# --- Over a restart. -----------------------------------------------------------------------------


def test_a_clock_that_was_set_back_before_a_restart_makes_nothing_wait_longer() -> None:
    settings = only(warm_up_s=60.0)
    before = Chain(settings)
    before.asked(9_000.0, 1, 2)  # first seen
    assert before.asked(10_000.0, 1, 2) == 2
    before.asked(10_010.0, 2, 3)  # the second replica is there
    assert before.asked(10_030.0, 2, 3) == "changed 20 s ago; measurements mean something after 60 s"
    set_back = Chain(settings)
    set_back.memory = as_of(before.memory, 6_430.0)  # an hour, and no time at all has passed
    assert set_back.asked(6_445.0, 2, 3) == "changed 35 s ago; measurements mean something after 60 s"
    assert set_back.asked(6_471.0, 2, 3) == 3
    assert as_of(before.memory, 10_031.0) is before.memory


def test_every_date_that_is_remembered_moves_with_the_clock() -> None:
    """One that is forgotten here would be in the future after the clock was set back."""
    memory = obey(everything_remembered(), Pause(until_s=1_500.0))
    moved = as_of(memory, 400.0)

    def dates(of: Any, path: str = "") -> dict[str, float]:
        if is_dataclass(of):
            return {k: v for one in fields(of) for k, v in dates(getattr(of, one.name), one.name).items()}
        if isinstance(of, Mapping):
            return {k: v for name, one in of.items() for k, v in dates(one, f"{path} {name}").items()}
        if isinstance(of, tuple):
            return {k: v for place, one in enumerate(of) for k, v in dates(one, f"{path} {place}").items()}
        return {path: of} if path.partition(" ")[0].endswith("_s") and "response" not in path else {}

    was, now = dates(memory), dates(moved)
    assert len(was) >= 8
    assert {name: at_s - was[name] for name, at_s in now.items()} == dict.fromkeys(was, -600.0)
