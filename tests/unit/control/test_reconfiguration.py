"""The two protocols step by step, as the design describes them."""

import pytest

from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.request import Migrate, ScaleIn, ScaleOut
from penstock.reconfigure.method import Method
from penstock.reconfigure.protocol import change_of, coming, grows_further, outstanding, settled, step
from penstock.reconfigure.words import (
    AcquireNode,
    CancelAcquire,
    Change,
    Command,
    Copied,
    CopyCheckpoint,
    Decommission,
    Elapsed,
    Ending,
    Event,
    Failed,
    FirstTaskSeen,
    Granted,
    Kept,
    Left,
    Limits,
    Lost,
    NewReplica,
    NodeReady,
    Proving,
    Record,
    ReleaseNode,
    Repartitioned,
    RepartitionState,
    Replica,
    Report,
    RestoreCheckpoint,
    Restored,
    Running,
    Settled,
    Setup,
    StartQuery,
    State,
    Stopped,
    StopQuery,
    Stranded,
)

A, B = Replica(name="a", node_type=0, node="n1"), Replica(name="b", node_type=0, node="n2")
NEW = Replica(name="new", node_type=0)


def found(method: Method = Method.LIVE, *replicas: Replica, **setup: object) -> State:
    built = Setup(
        operator="count",
        method=method,
        can_repartition=bool(setup.get("can_repartition", True)),
        limits=LIMITS,
    )
    return settled(built, replicas or (A, B), partitions=4)


LIMITS = Limits(retries=1)


def played(state: State, *events: Event) -> tuple[State, list[Command], list[Record]]:
    """The state at the end, the commands of the last event, and what was reported on the way."""
    latest: list[Command] = []
    records: list[Record] = []
    for event in events:
        state, commands = step(state, event)
        latest = [command for command in commands if not isinstance(command, Report)]
        records += [command.record for command in commands if isinstance(command, Report)]
    return state, latest, records


def names(state: State) -> list[str]:
    return [replica.name for replica in state.fleet.replicas]


ADD_ONE = Granted(change=Change(add=(NewReplica(node_type=0),)), at_s=10.0)


def test_a_live_addition_is_acquire_ready_first_task() -> None:
    state, commands, _ = played(found(), ADD_ONE)
    assert commands == [AcquireNode(ticket=1, node_type=0)]
    state, commands, _ = played(state, NodeReady(ticket=1, replica=NEW, at_s=25.0))
    assert commands == []
    state, commands, (record,) = played(state, FirstTaskSeen(replica="new", at_s=31.0))
    assert isinstance(state, Settled)
    assert names(state) == ["a", "b", "new"]
    assert (record.granted_at_s, record.node_ready_at_s, record.first_task_at_s) == (10.0, 25.0, 31.0)
    assert (record.outcome, record.downtime_s, record.state_moved_bytes) == (Ending.DONE, 0.0, None)


def test_a_live_removal_is_decommission_left_release() -> None:
    state, commands, _ = played(found(), Granted(change=Change(remove=("b",)), at_s=0.0))
    assert commands == [Decommission(replica="b")]
    state, commands, (record,) = played(state, Left(replica="b", at_s=4.0))
    assert commands == [ReleaseNode(replica="b")]
    assert names(state) == ["a"]
    assert record.ended_at_s == 4.0


def test_a_migration_adds_first_and_removes_only_once_the_new_one_works() -> None:
    move = Change(add=(NewReplica(node_type=1),), remove=("a",))
    state, commands, _ = played(found(), Granted(change=move, at_s=0.0))
    assert commands == [AcquireNode(ticket=1, node_type=1)]
    state, commands, _ = played(state, NodeReady(ticket=1, replica=NEW, at_s=9.0))
    assert commands == []
    state, commands, _ = played(state, FirstTaskSeen(replica="new", at_s=12.0))
    assert commands == [Decommission(replica="a")]


def test_a_migration_whose_node_never_comes_leaves_everything_as_it_was() -> None:
    move = Change(add=(NewReplica(node_type=1),), remove=("a",))
    state, commands, _ = played(found(), Granted(change=move, at_s=0.0), Elapsed(at_s=120.0))
    assert commands == [CancelAcquire(ticket=1), AcquireNode(ticket=2, node_type=1)]
    state, commands, (record,) = played(state, Elapsed(at_s=240.0))
    assert commands == [CancelAcquire(ticket=2)]
    assert state.fleet.replicas == (A, B)
    assert record.outcome is Ending.GAVE_UP
    assert record.trouble[0] == "node of type 1, try 1: not there within 120 s"


def test_a_node_that_comes_too_late_is_given_back() -> None:
    state, _, _ = played(found(), ADD_ONE, Elapsed(at_s=500.0))
    assert step(state, NodeReady(ticket=1, replica=NEW, at_s=501.0)) == (
        state,
        (ReleaseNode(replica="new"),),
    )


def test_of_two_nodes_asked_for_the_one_that_came_stays() -> None:
    two = Change(add=(NewReplica(node_type=0), NewReplica(node_type=0)))
    state, _, (record,) = played(
        found(),
        Granted(change=two, at_s=0.0),
        NodeReady(ticket=1, replica=NEW, at_s=5.0),
        FirstTaskSeen(replica="new", at_s=6.0),
        Failed(command=AcquireNode(ticket=2, node_type=0), reason="no quota", at_s=7.0),
        Failed(command=AcquireNode(ticket=3, node_type=0), reason="no quota", at_s=8.0),
    )
    assert names(state) == ["a", "b", "new"]
    assert record.outcome is Ending.PARTLY


def test_an_operator_without_data_is_not_waited_for() -> None:
    state, _, (record,) = played(
        found(), ADD_ONE, NodeReady(ticket=1, replica=NEW, at_s=20.0), Elapsed(at_s=80.0)
    )
    assert isinstance(state, Settled)
    assert record.outcome is Ending.DONE
    assert record.first_task_at_s is None


PAUSED = found(Method.PAUSE_AND_RESUME)
TO_EIGHT = Granted(change=Change(add=(NewReplica(node_type=0),), partitions=8), at_s=0.0)
UP_TO_STOPPED: tuple[Event, ...] = (
    TO_EIGHT,
    NodeReady(ticket=1, replica=NEW, at_s=20.0),
    Stopped(at_s=22.0),
)


def test_pause_and_resume_stops_copies_repartitions_and_starts() -> None:
    state, commands, _ = played(PAUSED, TO_EIGHT)
    assert commands == [AcquireNode(ticket=1, node_type=0)]  # nothing is stopped before all is there
    expected: list[tuple[Event, Command | None]] = [
        (NodeReady(ticket=1, replica=NEW, at_s=20.0), StopQuery()),
        (Stopped(at_s=22.0), CopyCheckpoint()),
        (Copied(at_s=23.0), RepartitionState(partitions=8)),
        (Repartitioned(at_s=28.0, state_moved_bytes=1000), StartQuery()),
        (Running(at_s=30.0), None),
    ]
    for event, command in expected:
        state, commands, _ = played(state, event)
        assert commands == ([] if command is None else [command])
    state, _, (record,) = played(state, FirstTaskSeen(replica="new", at_s=33.0))
    assert state.fleet.partitions == 8
    assert (record.downtime_s, record.state_moved_bytes) == (8.0, 1000)
    assert (record.outcome, record.first_task_at_s) == (Ending.DONE, 33.0)


def test_the_same_number_of_partitions_is_nothing_to_do_and_no_error() -> None:
    same = Change(partitions=4)
    state, commands, (record,) = played(PAUSED, Granted(change=same, at_s=1.0))
    assert (state, commands, record.outcome) == (PAUSED, [], Ending.DONE)
    with_a_replica = Change(add=(NewReplica(node_type=0),), partitions=4)
    state, commands, _ = played(
        PAUSED,
        Granted(change=with_a_replica, at_s=0.0),
        NodeReady(ticket=1, replica=NEW, at_s=20.0),
        Stopped(at_s=22.0),
    )
    assert commands == [StartQuery()]


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (found(Method.PAUSE_AND_RESUME, can_repartition=False), "its state store cannot"),
        (found(Method.LIVE), "needs the query stopped"),
        (settled(Setup(operator="map", method=Method.PAUSE_AND_RESUME), (A,)), "has no state"),
    ],
)
def test_repartitioning_is_refused_where_it_would_block_the_checkpoint(state: State, why: str) -> None:
    after, commands, (record,) = played(state, TO_EIGHT)
    assert (after, commands, record.outcome) == (state, [], Ending.REFUSED)
    assert why in record.trouble[0]


def test_a_failed_repartitioning_is_run_again_with_the_same_number_then_undone_from_the_copy() -> None:
    again = Failed(command=RepartitionState(partitions=8), reason="no space", at_s=30.0)
    state, commands, _ = played(PAUSED, *UP_TO_STOPPED, Copied(at_s=23.0), again)
    assert commands == [RepartitionState(partitions=8)]
    state, commands, _ = played(state, again)
    assert commands == [RestoreCheckpoint()]
    state, commands, _ = played(state, Restored(at_s=35.0))
    assert commands == [StartQuery()]
    state, commands, _ = played(state, Running(at_s=40.0))
    assert commands == [Decommission(replica="new")]  # what was added for it goes again
    state, commands, (record,) = played(state, Left(replica="new", at_s=42.0))
    assert (names(state), state.fleet.partitions) == (["a", "b"], 4)
    assert (record.outcome, record.downtime_s, record.state_moved_bytes) == (Ending.GAVE_UP, 18.0, None)


def test_a_query_that_does_not_start_with_new_partitions_starts_with_the_old() -> None:
    failed = Failed(command=StartQuery(), reason="bad state", at_s=50.0)
    state, commands, _ = played(
        PAUSED, *UP_TO_STOPPED, Copied(at_s=23.0), Repartitioned(at_s=25.0), failed, failed
    )
    assert commands == [StopQuery()]  # it may be half started
    state, commands, _ = played(state, Stopped(at_s=51.0))
    assert commands == [RestoreCheckpoint()]


def test_a_query_that_has_worked_with_its_new_state_is_not_put_back() -> None:
    failed = Failed(command=StartQuery(), reason="late", at_s=50.0)
    back = (failed, failed, Stopped(at_s=51.0), Kept(at_s=52.0))
    state, commands, _ = played(PAUSED, *UP_TO_STOPPED, Copied(at_s=23.0), Repartitioned(at_s=25.0), *back)
    assert commands == [StartQuery()]
    state, _, (record,) = played(state, Running(at_s=55.0), FirstTaskSeen(replica="new", at_s=56.0))
    assert (names(state), state.fleet.partitions) == (["a", "b", "new"], 8)
    assert record.outcome is Ending.DONE


def test_a_query_that_never_starts_again_is_left_to_a_person_with_the_reason() -> None:
    state, _, (record,) = played(
        PAUSED,
        *UP_TO_STOPPED,
        Failed(command=CopyCheckpoint(), reason="disk full", at_s=30.0),
        Failed(command=CopyCheckpoint(), reason="disk full", at_s=31.0),
        Failed(command=StartQuery(), reason="disk full", at_s=32.0),
        Failed(command=StartQuery(), reason="disk full", at_s=33.0),
    )
    assert isinstance(state, Stranded)
    assert state.reason == "restarting, try 2: disk full"
    assert record.outcome is Ending.STRANDED
    _, _, (refused,) = played(state, ADD_ONE)
    assert refused.outcome is Ending.REFUSED


def test_a_lost_replica_is_replaced_without_being_asked() -> None:
    state, commands, _ = played(found(), Lost(replica="a", at_s=5.0))
    assert commands == [ReleaseNode(replica="a"), AcquireNode(ticket=1, node_type=0)]
    state, _, (record,) = played(
        state, NodeReady(ticket=1, replica=NEW, at_s=20.0), FirstTaskSeen(replica="new", at_s=21.0)
    )
    assert names(state) == ["b", "new"]
    assert record.repair
    assert record.trouble == ("replica 'a' was lost",)


def test_when_all_are_lost_in_the_middle_of_a_change_one_is_acquired_again() -> None:
    fast = Replica(name="fast", node_type=1)
    state, commands, (record,) = played(
        found(Method.LIVE, A, fast),
        Granted(change=Change(remove=("a",)), at_s=0.0),
        Lost(replica="fast", at_s=1.0),
        Lost(replica="a", at_s=2.0),
    )
    assert commands == [ReleaseNode(replica="a"), AcquireNode(ticket=1, node_type=0)]
    assert record.outcome is Ending.DONE
    failed = (Failed(command=AcquireNode(ticket=t, node_type=0), reason="no", at_s=3.0) for t in (1, 2))
    state, _, (record,) = played(state, *failed)
    assert isinstance(state, Stranded)
    assert state.reason == "no replica is left and none could be acquired"


def test_the_last_replica_is_never_sent_away() -> None:
    _, commands, (record,) = played(found(), Granted(change=Change(remove=("a", "b")), at_s=0.0))
    assert commands == []
    assert record.trouble == ("it removes all 2 replicas; at least one must run",)
    # Of three, two are to go; while the first goes, the one that was to stay is lost.
    three = found(Method.LIVE, A, B, NEW)
    state, commands, (record,) = played(
        three,
        Granted(change=Change(remove=("a", "b")), at_s=0.0),
        Lost(replica="new", at_s=1.0),
        Left(replica="a", at_s=2.0),
    )
    assert commands == [ReleaseNode(replica="a")]
    assert names(state) == ["b"]
    assert record.outcome is Ending.GAVE_UP


def test_a_replica_that_was_asked_to_go_and_is_the_last_by_now_is_not_asked_again() -> None:
    state, commands, (record,) = played(
        found(),
        Granted(change=Change(remove=("b",)), at_s=0.0),
        Lost(replica="a", at_s=1.0),
        Elapsed(at_s=60.0),
    )
    assert commands == []
    assert names(state) == ["b"]
    assert record.outcome is Ending.GAVE_UP
    # It goes nevertheless: then it is replaced.
    _, commands, _ = played(state, Left(replica="b", at_s=70.0))
    assert commands == [ReleaseNode(replica="b"), AcquireNode(ticket=1, node_type=0)]


def test_a_replica_that_does_not_go_is_asked_again_and_then_released() -> None:
    state, commands, _ = played(found(), Granted(change=Change(remove=("b",)), at_s=0.0), Elapsed(at_s=60.0))
    assert commands == [Decommission(replica="b")]
    state, commands, (record,) = played(state, Elapsed(at_s=120.0))
    assert commands == [ReleaseNode(replica="b")]
    assert names(state) == ["a"]
    assert len(record.trouble) == 3


def test_a_repair_replaces_all_that_are_lost_while_it_lasts() -> None:
    """A machine takes all its replicas with it."""
    fast = Replica(name="fast", node_type=1)
    state, commands, _ = played(found(Method.LIVE, A, B, fast), Lost(replica="a", at_s=1.0))
    assert commands == [ReleaseNode(replica="a"), AcquireNode(ticket=1, node_type=0)]
    state, commands, _ = played(state, Lost(replica="fast", at_s=1.0))
    assert commands == [ReleaseNode(replica="fast"), AcquireNode(ticket=2, node_type=1)]
    state, _, _ = played(
        state,
        NodeReady(ticket=1, replica=NEW, at_s=5.0),
        NodeReady(ticket=2, replica=Replica(name="new fast", node_type=1), at_s=6.0),
        FirstTaskSeen(replica="new", at_s=7.0),
    )
    assert isinstance(state, Proving)
    state, commands, _ = played(state, Lost(replica="new", at_s=8.0))  # it had worked
    assert commands == [ReleaseNode(replica="new"), AcquireNode(ticket=3, node_type=0)]
    state, _, (record,) = played(
        state,
        NodeReady(ticket=3, replica=Replica(name="newer", node_type=0), at_s=9.0),
        FirstTaskSeen(replica="new fast", at_s=9.0),
        FirstTaskSeen(replica="newer", at_s=9.0),
    )
    assert names(state) == ["b", "new fast", "newer"]
    assert (record.outcome, record.repair) == (Ending.DONE, True)
    assert [one.node_type for one in record.change.add] == [0, 1, 0]


def test_a_repair_does_not_replace_for_ever_what_never_works() -> None:
    state, commands, (record,) = played(
        found(),
        Lost(replica="a", at_s=1.0),
        NodeReady(ticket=1, replica=NEW, at_s=5.0),
        Lost(replica="new", at_s=6.0),
    )
    assert commands == [ReleaseNode(replica="new")]
    assert names(state) == ["b"]
    assert record.outcome is Ending.GAVE_UP


REMOVE_B = Granted(change=Change(remove=("b",)), at_s=10.0)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((ADD_ONE,), REMOVE_B),
        ((REMOVE_B,), ADD_ONE),
        ((Lost(replica="b", at_s=9.0),), ADD_ONE),  # a repair is not asked for, and told apart
    ],
)
def test_one_change_at_a_time(first: tuple[Event, ...], second: Event) -> None:
    busy, _, _ = played(found(), *first)
    state, commands, (record,) = played(busy, second)
    assert (state, commands) == (busy, [])
    assert record.trouble == ("another change is under way",)


def test_a_change_that_stops_the_query_takes_nothing_on() -> None:
    busy, _, _ = played(PAUSED, ADD_ONE)
    assert not grows_further(busy)
    assert played(busy, ADD_ONE)[0] == busy


@pytest.mark.parametrize("come", [False, True])
def test_an_operator_that_grows_can_be_asked_to_grow_further(come: bool) -> None:
    """Before its node has come, and after."""
    ready = NodeReady(ticket=1, replica=NEW, at_s=25.0)
    state, _, _ = played(found(), ADD_ONE, *((ready,) if come else ()))
    assert (grows_further(state), coming(state)) == (True, () if come else (0,))
    more = Granted(change=Change(add=(NewReplica(node_type=1),)), at_s=26.0)
    state, commands, records = played(state, more)
    assert (commands, records) == ([AcquireNode(ticket=2, node_type=1)], [])
    assert coming(state) == ((1,) if come else (0, 1))
    late = Replica(name="late", node_type=1, node="n7")
    events = (*(() if come else (ready,)), NodeReady(ticket=2, replica=late, at_s=30.0))
    state, _, _ = played(state, *events, FirstTaskSeen(replica="late", at_s=33.0))
    assert isinstance(state, Proving)
    state, _, (record,) = played(state, FirstTaskSeen(replica="new", at_s=34.0))
    assert names(state) == ["a", "b", "new", "late"]
    assert record.change.add == (NewReplica(node_type=0), NewReplica(node_type=1))
    assert (record.granted_at_s, record.first_task_at_s, record.outcome) == (10.0, 34.0, Ending.DONE)


def test_after_a_crash_the_recorded_events_lead_to_the_same_state_and_its_commands_are_given_again() -> None:
    events = (*UP_TO_STOPPED, Copied(at_s=23.0))
    state, commands, _ = played(PAUSED, *events)
    resumed, _, _ = played(PAUSED, *events)
    assert resumed == state
    assert list(outstanding(resumed)) == commands == [RepartitionState(partitions=8)]


def test_a_request_names_what_to_add_and_whom_to_remove() -> None:
    fleet = (A, B, Replica(name="fast", node_type=1, node="n9"))
    out = ScaleOut(operator="count", target=Replicas((3, 2)), nodes=("n3", "n8"), score=1.0, reason="")
    assert change_of(out, fleet).add == (
        NewReplica(node_type=0, node="n3"),
        NewReplica(node_type=1, node="n8"),
    )
    newest = ScaleIn(operator="count", target=Replicas((1, 1)), nodes=(), score=1.0, reason="")
    assert change_of(newest, fleet) == Change(remove=("b",))
    named = ScaleIn(operator="count", target=Replicas((1, 1)), nodes=("n1",), score=1.0, reason="")
    assert change_of(named, fleet) == Change(remove=("a",))
    exchange = ScaleOut(operator="count", target=Replicas((1, 2)), nodes=(), score=1.0, reason="")
    assert change_of(exchange, fleet) == Change(add=(NewReplica(node_type=1),), remove=("b",))
    move = Migrate(operator="count", origin="n2", target="n7", score=1.0, reason="")
    assert change_of(move, fleet, node_types={"n7": 1}) == Change(
        add=(NewReplica(node_type=1, node="n7"),), remove=("b",)
    )
    with pytest.raises(InputError, match="no replica runs on node 'n5'"):
        change_of(Migrate(operator="count", origin="n5", target="n7", score=1.0, reason=""), fleet)


def test_limits_and_changes_are_checked() -> None:
    with pytest.raises(InputError, match="acquire_s=0"):
        Limits(acquire_s=0)
    with pytest.raises(InputError, match="retries=-1"):
        Limits(retries=-1)
    with pytest.raises(InputError, match="partitions=0"):
        Change(partitions=0)
    with pytest.raises(InputError, match="removed twice"):
        Change(remove=("a", "a"))
