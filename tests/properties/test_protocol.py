"""Whatever happens during a reconfiguration, in whatever order, no replica, query or state is lost by it."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.reconfigure.method import Method
from penstock.reconfigure.protocol import outstanding, settled, step
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
    Record,
    ReleaseNode,
    Repartitioned,
    RepartitionState,
    Replica,
    Report,
    Restating,
    RestoreCheckpoint,
    Restored,
    Running,
    Settled,
    Setup,
    Stage,
    StartQuery,
    State,
    Stopped,
    StopQuery,
    Stranded,
)

SLOW = StopQuery | CopyCheckpoint | RepartitionState | RestoreCheckpoint | StartQuery


@dataclass
class Engine:
    """What a real engine would have become of the commands; it complains about those that do harm."""

    partitions: int | None
    replicas: set[str]
    running: bool = True
    copy: int | None = None
    blocked_by: int | None = None  # the number a failed repartitioning tried
    works_first: bool = False  # before a start is called failed
    worked: bool = False  # since the copy was made
    tickets: set[int] = field(default_factory=set)
    names: int = 100
    to_answer: list[Command] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    def take(self, state: State, commands: tuple[Command, ...]) -> None:
        for command in commands:
            self._check(state, command)
            match command:
                case Report():
                    self.records.append(command.record)
                case CancelAcquire():
                    pass
                case ReleaseNode():
                    self.replicas.discard(command.replica)
                case _:
                    if not (isinstance(command, SLOW) and command in self.to_answer):  # it is at it still
                        self.to_answer.append(command)

    def next_one(self, index: int) -> Command:
        """One of those to answer. Slow ones are carried out one at a time, in the order they were given, even
        those that the protocol has given up."""
        chosen = self.to_answer[index]
        if isinstance(chosen, SLOW):
            chosen = next(command for command in self.to_answer if isinstance(command, SLOW))
        self.to_answer.remove(chosen)
        return chosen

    def _check(self, state: State, command: Command) -> None:
        alive = {replica.name for replica in state.fleet.replicas}
        match command:
            case AcquireNode():
                assert command.ticket not in self.tickets
                self.tickets.add(command.ticket)
            case Decommission():
                assert len(alive) > 1, "the last replica was sent away"
                assert command.replica in alive
            case ReleaseNode():
                assert command.replica not in alive, "the node of a running replica was given back"
            case CopyCheckpoint():
                assert not self.running
                assert self.blocked_by is None
            case RepartitionState():
                assert not self.running
                assert self.copy == self.partitions, "repartitioned without a copy"
                assert command.partitions != self.partitions
                assert self.blocked_by in {None, command.partitions}, "retried with another number"
            case RestoreCheckpoint():
                assert not self.running
                assert self.copy is not None
            case StartQuery():
                assert self.blocked_by is None, "started on a blocked checkpoint"
                assert isinstance(state, Restating)
                changed = state.stage is Stage.STARTING or state.job.kept
                new = state.job.change.partitions if changed else None
                assert self.partitions == (new or state.fleet.partitions), "started on another state"
            case StopQuery() | CancelAcquire() | Report():
                pass

    def done(self, command: Command, at_s: float) -> Event:
        """Carry a command out and say so."""
        match command:
            case AcquireNode():
                self.names += 1
                name = f"r{self.names}"
                self.replicas.add(name)
                return NodeReady(
                    ticket=command.ticket, replica=Replica(name=name, node_type=command.node_type), at_s=at_s
                )
            case Decommission():
                self.replicas.discard(command.replica)
                return Left(replica=command.replica, at_s=at_s)
            case StopQuery():
                self.running = False
                return Stopped(at_s=at_s)
            case CopyCheckpoint():
                self.copy, self.worked = self.partitions, False
                return Copied(at_s=at_s)
            case RepartitionState():
                self.partitions, self.blocked_by = command.partitions, None
                return Repartitioned(at_s=at_s, state_moved_bytes=7)
            case RestoreCheckpoint() if self.worked:
                return Kept(at_s=at_s)
            case RestoreCheckpoint():
                self.partitions, self.blocked_by = self.copy, None
                return Restored(at_s=at_s)
            case StartQuery():
                self.running = self.worked = True
                return Running(at_s=at_s)
            case CancelAcquire() | ReleaseNode() | Report():
                raise AssertionError("nothing to answer")

    def failed(self, command: Command, at_s: float) -> Event:
        if isinstance(command, RepartitionState):
            self.blocked_by = command.partitions
        if isinstance(command, StartQuery) and self.works_first:
            self.worked = True
        return Failed(command=command, reason="it broke", at_s=at_s)


def machine(
    method: Method, replicas: int = 3, partitions: int | None = 4, retries: int = 1
) -> tuple[Settled, Engine]:
    setup = Setup(operator="count", method=method, can_repartition=True, limits=Limits(retries=retries))
    fleet = tuple(Replica(name=f"r{index}", node_type=index % 2) for index in range(replicas))
    state = settled(setup, fleet, partitions=partitions)
    return state, Engine(partitions=partitions, replicas={replica.name for replica in fleet})


def calm(state: State, engine: Engine, at_s: float) -> State:
    """From here on everything works."""
    for _ in range(200):
        if isinstance(state, Settled | Stranded) and not engine.to_answer:
            return state
        at_s += 1
        event: Event = Elapsed(at_s=at_s + 1000)
        if engine.to_answer:
            event = engine.done(engine.to_answer.pop(0), at_s)
        state, commands = step(state, event)
        engine.take(state, commands)
        at_s = event.at_s
    raise AssertionError(f"it never ends: {state}")


methods = st.sampled_from(Method)


@settings(max_examples=150, deadline=None)
@given(method=methods, data=st.data())
def test_any_interleaving_ends_in_a_legal_state_with_a_replica_and_a_running_query(
    method: Method, data: st.DataObject
) -> None:
    state: State
    state, engine = machine(method, replicas=data.draw(st.integers(1, 4)))
    engine.works_first = data.draw(st.booleans())
    at_s = 0.0
    for _ in range(data.draw(st.integers(0, 40))):
        at_s += data.draw(st.sampled_from([0.5, 20.0, 400.0]))
        event = data.draw(st.sampled_from(("grant", "done", "done", "fail", "late", "lost", "task", "noise")))
        happened = _event(event, state, engine, at_s, data)
        state, commands = step(state, happened)
        engine.take(state, commands)
        names = [replica.name for replica in state.fleet.replicas]
        assert len(set(names)) == len(names)
        assert set(names) <= engine.replicas, "a replica is counted that is not there"
    end = calm(state, engine, at_s)
    if isinstance(end, Settled):
        assert end.fleet.replicas
        assert engine.running
        assert engine.partitions == end.fleet.partitions
        assert {replica.name for replica in end.fleet.replicas} == engine.replicas, "a node was forgotten"
    else:
        assert isinstance(end, Stranded)
        assert end.reason
        assert engine.records[-1].outcome in {Ending.STRANDED, Ending.REFUSED}


def _event(kind: str, state: State, engine: Engine, at_s: float, data: st.DataObject) -> Event:
    fleet = [replica.name for replica in state.fleet.replicas]
    if kind == "grant":
        return Granted(change=data.draw(changes(tuple(fleet))), at_s=at_s)
    if kind in {"done", "fail"} and engine.to_answer:
        command = engine.next_one(data.draw(st.integers(0, len(engine.to_answer) - 1)))
        # A replica that was to leave and is waited for no more was released.
        if command in outstanding(state) or isinstance(command, AcquireNode | SLOW):
            return engine.done(command, at_s) if kind == "done" else engine.failed(command, at_s)
    if kind == "lost" and fleet:
        name = data.draw(st.sampled_from(fleet))
        engine.replicas.discard(name)
        return Lost(replica=name, at_s=at_s)
    if kind == "task" and fleet:
        return FirstTaskSeen(replica=data.draw(st.sampled_from(fleet)), at_s=at_s)
    if kind == "noise":
        noise: tuple[Event, ...] = (
            Left(replica="nobody", at_s=at_s),
            Lost(replica="nobody", at_s=at_s),
            FirstTaskSeen(replica="nobody", at_s=at_s),
            Failed(command=Decommission(replica="nobody"), reason="?", at_s=at_s),
        )
        return data.draw(st.sampled_from(noise))
    return Elapsed(at_s=at_s)


def changes(fleet: tuple[str, ...]) -> st.SearchStrategy[Change]:
    new = st.builds(NewReplica, node_type=st.integers(0, 1))
    return st.builds(
        Change,
        add=st.lists(new, max_size=2).map(tuple),
        remove=(
            st.lists(st.sampled_from(fleet), unique=True, max_size=3).map(tuple) if fleet else st.just(())
        ),
        partitions=st.sampled_from((None, 4, 8)),
    )


@settings(max_examples=60, deadline=None)
@given(method=methods, data=st.data())
def test_a_change_that_meets_no_trouble_is_made(method: Method, data: st.DataObject) -> None:
    state, engine = machine(method)
    change = data.draw(changes(("r0", "r1", "r2")))
    after, commands = step(state, Granted(change=change, at_s=0.0))
    engine.take(after, commands)
    end = calm(after, engine, 0.0)
    (record,) = engine.records
    assert isinstance(end, Settled)
    if record.outcome is Ending.REFUSED:
        assert end == state
        return
    assert record.outcome is Ending.DONE
    assert record.trouble == ()
    assert len(end.fleet.replicas) == 3 + len(change.add) - len(change.remove)
    assert not {replica.name for replica in end.fleet.replicas} & set(change.remove)
    assert (record.downtime_s > 0) == (method is Method.PAUSE_AND_RESUME and record.change != Change())
    assert (record.node_ready_at_s is not None) == bool(change.add)


@settings(max_examples=100, deadline=None)
@given(method=methods, retries=st.integers(0, 2), data=st.data())
def test_failures_never_lose_the_last_good_state(method: Method, retries: int, data: st.DataObject) -> None:
    """Nothing gets lost by itself here, but one kind of command never works, and any other may fail."""
    hopeless = data.draw(
        st.sampled_from((AcquireNode, StopQuery, CopyCheckpoint, RepartitionState, StartQuery, Decommission))
    )
    before, engine = machine(method, retries=retries)
    state: State
    change = data.draw(changes(("r0", "r1", "r2")))
    state, commands = step(before, Granted(change=change, at_s=0.0))
    engine.take(state, commands)
    for at_s in range(1, 30):
        if isinstance(state, Settled | Stranded):
            break
        event: Event = Elapsed(at_s=1000.0 * at_s)
        if engine.to_answer:
            command = engine.to_answer.pop(0)
            fails = isinstance(command, hopeless) or data.draw(st.integers(0, 9)) == 0
            event = (engine.failed if fails else engine.done)(command, 1000.0 * at_s)
        state, commands = step(state, event)
        engine.take(state, commands)
    end = calm(state, engine, 1e6)  # at last everything works
    record = engine.records[-1]
    if isinstance(end, Stranded):
        assert record.outcome is Ending.STRANDED
        assert engine.copy in {None, before.fleet.partitions}, "the copy is not the last good state"
    elif record.outcome is Ending.GAVE_UP:
        assert {r.name for r in end.fleet.replicas} == {"r0", "r1", "r2"}
        assert engine.partitions == before.fleet.partitions
        assert record.trouble
    assert isinstance(end, Stranded) or engine.running


@settings(max_examples=60, deadline=None)
@given(method=methods, data=st.data())
def test_however_many_replicas_are_lost_at_once_as_many_of_each_type_come_back(
    method: Method, data: st.DataObject
) -> None:
    state: State
    state, engine = machine(method, replicas=4)
    for name in data.draw(st.lists(st.sampled_from(sorted(engine.replicas)), unique=True)):
        engine.replicas.discard(name)
        state, commands = step(state, Lost(replica=name, at_s=0.0))
        engine.take(state, commands)
    end = calm(state, engine, 0.0)
    assert sorted(replica.node_type for replica in end.fleet.replicas) == [0, 0, 1, 1]
