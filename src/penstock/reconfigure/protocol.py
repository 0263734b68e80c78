"""The reconfiguration of one operator as a conversation: events in, commands out, nothing done here.

    step(state, event) -> (state, commands)

Whoever carries the commands out (a runtime's actuator) reports what came of each as the next
event; failures and the passing of time (`Elapsed`) are events too, and every event says when
it happened. A change goes through these phases, those it does not need left out:

    Growing     new nodes are acquired, all at once; of a live change that only adds, more may follow
    Restating   pause-and-resume only: stop, copy the checkpoint, repartition the state, start
    Proving     the new replicas get their first tasks
    Shrinking   replicas leave, one after another, their nodes are released

So a migration is an addition and then a removal, and nothing is stopped before all it needs
is there. What keeps failing is given up, and the way back ends in the last good state.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from penstock.domain.errors import InputError
from penstock.domain.request import Migrate, Request, ScaleIn, ScaleOut
from penstock.reconfigure.method import Method
from penstock.reconfigure.words import (
    AcquireNode,
    CancelAcquire,
    Change,
    Command,
    Commands,
    Copied,
    CopyCheckpoint,
    Decommission,
    Elapsed,
    Ending,
    Event,
    Failed,
    FirstTaskSeen,
    Fleet,
    Granted,
    Growing,
    Job,
    Kept,
    Left,
    Lost,
    NewReplica,
    NodeReady,
    Pending,
    Proving,
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
    Shrinking,
    Stage,
    StartQuery,
    State,
    Stopped,
    StopQuery,
    Stranded,
)

Step: TypeAlias = tuple[State, Commands]


def settled(
    setup: Setup, replicas: tuple[Replica, ...], *, partitions: int | None = None, next_ticket: int = 1
) -> Settled:
    """An operator as it was found, nothing under way."""
    return Settled(
        fleet=Fleet(setup=setup, replicas=replicas, partitions=partitions, next_ticket=next_ticket)
    )


def change_of(
    request: Request,
    replicas: Sequence[Replica],
    *,
    partitions: int | None = None,
    node_types: Mapping[str, int] | None = None,
) -> Change:
    """What a granted request means for the replicas that run: on the nodes it names, else the newest go.

    `node_types` gives the type of each node, where a replica may migrate to a node of another type.
    """
    if isinstance(request, Migrate):
        leaving = _on_node(replicas, request.origin, request)
        target_type = (node_types or {}).get(request.target, leaving.node_type)
        added = NewReplica(node_type=target_type, node=request.target)
        return Change(add=(added,), remove=(leaving.name,), partitions=partitions)
    add: list[NewReplica] = []
    remove: list[str] = []
    nodes = list(request.nodes)
    for node_type, wanted in enumerate(request.target.counts):
        running = [replica for replica in replicas if replica.node_type == node_type]
        for _ in range(wanted - len(running)):
            node = nodes.pop(0) if nodes and isinstance(request, ScaleOut) else None
            add.append(NewReplica(node_type=node_type, node=node))
        named = nodes if isinstance(request, ScaleIn) else []
        # Those on the nodes named come last, and of the others the newest.
        running.sort(key=lambda replica: replica.node in named)
        remove += [replica.name for replica in running[wanted:]]
    return Change(add=tuple(add), remove=tuple(remove), partitions=partitions)


def _on_node(replicas: Sequence[Replica], node: str, request: Migrate) -> Replica:
    for replica in replicas:
        if replica.node == node:
            return replica
    raise InputError(f"operator '{request.operator}': no replica runs on node '{node}'")


def step(state: State, event: Event) -> Step:
    """What one event changes, and what to do about it. An event that fits nothing changes nothing."""
    match state, event:
        case Settled(), Granted():
            return _begin(state, event)
        case Growing() | Proving(), Granted() if grows_further(state) and _only_adds(event.change):
            return _grow_further(state, event)
        case _, Granted():
            why = state.reason if isinstance(state, Stranded) else "another change is under way"
            return state, (_refused(state.fleet, event, why),)
        case Settled(), Lost() | Left() if state.fleet.has(event.replica):
            return _repair(state.fleet, event)
        case Shrinking(), Lost() | Left() if event.replica == state.leaving:
            return _gone(state, event)
        case _, Lost() | Left() if state.fleet.has(event.replica):
            return _lost(state, event)
        case Growing(), NodeReady() if any(p.ticket == event.ticket for p in state.pending):
            return _ready(state, event)
        case _, NodeReady() if not state.fleet.has(event.replica.name):
            return state, (ReleaseNode(replica=event.replica.name),)  # came too late: nobody waits for it
        case ((Growing() | Restating() | Proving() | Shrinking()), FirstTaskSeen()):
            return _proven(state, event)
        case Growing(), Failed() | Elapsed():
            return _acquire_again(state, event)
        case Restating(), _:
            return _restated(state, event)
        case Proving(), Elapsed() if event.at_s >= state.deadline_s:
            return _shrink(state.fleet, state.job, state.job.change.remove, event.at_s)
        case Shrinking(), Failed() | Elapsed():
            return _leave_again(state, event)
        case _:
            return state, ()


def grows_further(state: State) -> bool:
    """Whether more replicas may be asked for before the last change is done: it is live, and only adds."""
    if not isinstance(state, Growing | Proving):
        return False
    live = state.fleet.setup.method is Method.LIVE
    return live and _only_adds(state.job.change) and not state.job.repair


def coming(state: State) -> tuple[int, ...]:
    """Node types of the replicas that are waited for."""
    return tuple(one.wanted.node_type for one in state.pending) if isinstance(state, Growing) else ()


def outstanding(state: State) -> Commands:
    """The commands a state waits for: to be given again by whoever resumes after a crash."""
    match state:
        case Growing():
            return tuple(_acquire(pending) for pending in state.pending)
        case Restating():
            return (_stage_command(state),)
        case Shrinking():
            return (Decommission(replica=state.leaving),)
        case Settled() | Proving() | Stranded():
            return ()


# --- Beginning and ending. --------------------------------------------------------------------


def _begin(state: Settled, event: Granted) -> Step:
    fleet, change = state.fleet, event.change
    why_not = _impossible(fleet, change)
    if why_not is not None:
        return state, (_refused(fleet, event, why_not),)
    if change.partitions == fleet.partitions:
        # Engines may raise on the same number; for us there is nothing to repartition.
        change = replace(change, partitions=None)
    job = Job(change=change, granted_at_s=event.at_s)
    if change == Change():
        return _finish(fleet, job, event.at_s)
    return _grow(fleet, job, event.at_s)


def _impossible(fleet: Fleet, change: Change) -> str | None:
    missing = [name for name in change.remove if not fleet.has(name)]
    if missing:
        return f"replica '{missing[0]}' does not run"
    if len(fleet.replicas) + len(change.add) - len(change.remove) < 1:
        return f"it removes all {len(fleet.replicas)} replicas; at least one must run"
    if change.partitions is None or change.partitions == fleet.partitions:
        return None
    to_n = f"repartitioning the state to {change.partitions}"
    if fleet.partitions is None:
        return f"{to_n}: the operator has no state"
    if fleet.setup.method is Method.LIVE:
        return f"{to_n} needs the query stopped; the operator is reconfigured live"
    if not fleet.setup.can_repartition:
        return f"{to_n}: its state store cannot; trying would block the checkpoint"
    return None


def _refused(fleet: Fleet, event: Granted, why: str) -> Report:
    job = Job(change=event.change, granted_at_s=event.at_s, trouble=(why,))
    return Report(record=_record(fleet, job, event.at_s, Ending.REFUSED))


def _record(fleet: Fleet, job: Job, at_s: float, outcome: Ending) -> Record:
    down_until = at_s if job.running_at_s is None else job.running_at_s
    return Record(
        operator=fleet.setup.operator,
        method=fleet.setup.method,
        change=job.change,
        outcome=outcome,
        granted_at_s=job.granted_at_s,
        ended_at_s=at_s,
        node_ready_at_s=job.node_ready_at_s,
        first_task_at_s=job.first_task_at_s,
        downtime_s=0.0 if job.stopped_at_s is None else max(down_until - job.stopped_at_s, 0.0),
        state_moved_bytes=job.state_moved_bytes,
        repair=job.repair,
        trouble=job.trouble,
    )


def _finish(fleet: Fleet, job: Job, at_s: float) -> Step:
    if not fleet.replicas and job.repair:
        return _strand(fleet, job.noting("no replica is left and none could be acquired"), at_s)
    if job.gave_up:
        outcome = Ending.GAVE_UP
    elif job.failed_adds:
        outcome = Ending.PARTLY if job.added else Ending.GAVE_UP
    else:
        outcome = Ending.DONE
    report = Report(record=_record(fleet, job, at_s, outcome))
    if fleet.replicas:
        return Settled(fleet=fleet), (report,)
    # All were lost while it lasted.
    one = NewReplica(node_type=fleet.last_gone)
    state, commands = _grow(fleet, Job(change=Change(add=(one,)), granted_at_s=at_s, repair=True), at_s)
    return state, (report, *commands)


def _strand(fleet: Fleet, job: Job, at_s: float) -> Step:
    report = Report(record=_record(fleet, job, at_s, Ending.STRANDED))
    return Stranded(fleet=fleet, reason=job.trouble[-1]), (report,)


def _repair(fleet: Fleet, event: Lost | Left) -> Step:
    """Back to the last good state: the same kind of node in place of the one that is gone."""
    gone = next(replica for replica in fleet.replicas if replica.name == event.replica)
    job = Job(
        change=Change(add=(NewReplica(node_type=gone.node_type),)),
        granted_at_s=event.at_s,
        repair=True,
        trouble=(f"replica '{gone.name}' was lost",),
    )
    state, commands = _grow(fleet.without(gone.name), job, event.at_s)
    return state, (ReleaseNode(replica=gone.name), *commands)


def _lost(state: State, event: Lost | Left) -> Step:
    """A replica is lost in the middle of something: remember it, release what is left of its node.

    A repair replaces it too: a machine takes all its replicas with it. One that a repair brought and that
    never worked has failed instead, or there would be no end to it.
    """
    fleet = state.fleet.without(event.replica)
    released = (ReleaseNode(replica=event.replica),)
    if isinstance(state, Settled | Stranded):
        return replace(state, fleet=fleet), released
    job = state.job.noting(f"replica '{event.replica}' was lost")
    if job.repair and isinstance(state, Growing | Proving) and event.replica not in job.unproven:
        job = replace(job, added=tuple(name for name in job.added if name != event.replica))
        again = Change(add=(NewReplica(node_type=fleet.last_gone),))
        more = Granted(change=again, at_s=event.at_s)
        after, commands = _grow_further(replace(state, fleet=fleet, job=job), more)
        return after, (*released, *commands)
    if event.replica in job.added:
        job = replace(
            job,
            added=tuple(name for name in job.added if name != event.replica),
            unproven=tuple(name for name in job.unproven if name != event.replica),
            failed_adds=job.failed_adds + 1,
        )
    if isinstance(state, Proving):
        after, commands = _prove(fleet, job, event.at_s, state.deadline_s)
        return after, (*released, *commands)
    return replace(state, fleet=fleet, job=job), released


# --- Growing. ---------------------------------------------------------------------------------


def _acquire(pending: Pending) -> AcquireNode:
    return AcquireNode(ticket=pending.ticket, node_type=pending.wanted.node_type, node=pending.wanted.node)


def _grow(fleet: Fleet, job: Job, at_s: float) -> Step:
    fleet, pending = _asked(fleet, job.change.add, at_s)
    return _grown(Growing(fleet=fleet, job=job, pending=pending), at_s, tuple(map(_acquire, pending)))


def _grow_further(state: Growing | Proving, event: Granted) -> Step:
    fleet, more = _asked(state.fleet, event.change.add, event.at_s)
    change = replace(state.job.change, add=(*state.job.change.add, *event.change.add))
    waited_for = state.pending if isinstance(state, Growing) else ()
    after = Growing(fleet=fleet, job=replace(state.job, change=change), pending=(*waited_for, *more))
    return _grown(after, event.at_s, tuple(map(_acquire, more)))


def _asked(fleet: Fleet, new: Sequence[NewReplica], at_s: float) -> tuple[Fleet, tuple[Pending, ...]]:
    pending = tuple(
        Pending(
            ticket=fleet.next_ticket + index,
            wanted=wanted,
            attempt=1,
            deadline_s=at_s + fleet.setup.limits.acquire_s,
        )
        for index, wanted in enumerate(new)
    )
    return replace(fleet, next_ticket=fleet.next_ticket + len(pending)), pending


def _only_adds(change: Change) -> bool:
    return not change.remove and change.partitions is None


def _ready(state: Growing, event: NodeReady) -> Step:
    name = event.replica.name
    if state.fleet.has(name):
        return state, ()
    job = replace(
        state.job,
        added=(*state.job.added, name),
        unproven=(*state.job.unproven, name),
        node_ready_at_s=event.at_s,
    )
    fleet = replace(state.fleet, replicas=(*state.fleet.replicas, event.replica))
    left = tuple(pending for pending in state.pending if pending.ticket != event.ticket)
    return _grown(Growing(fleet=fleet, job=job, pending=left), event.at_s, ())


def _acquire_again(state: Growing, event: Failed | Elapsed) -> Step:
    """Every node that failed or is overdue is asked for anew, under a new ticket, or given up."""
    fleet, job, commands = state.fleet, state.job, []
    still: list[Pending] = []
    for pending in state.pending:
        if isinstance(event, Failed):
            hit, why = event.command == _acquire(pending), event.reason
        else:
            hit = event.at_s >= pending.deadline_s
            why = f"not there within {fleet.setup.limits.acquire_s:g} s"
        if not hit:
            still.append(pending)
            continue
        job = job.noting(f"node of type {pending.wanted.node_type}, try {pending.attempt}: {why}")
        commands.append(CancelAcquire(ticket=pending.ticket))
        if pending.attempt > fleet.setup.limits.retries:
            job = replace(job, failed_adds=job.failed_adds + 1)
            continue
        still.append(
            Pending(
                ticket=fleet.next_ticket,
                wanted=pending.wanted,
                attempt=pending.attempt + 1,
                deadline_s=event.at_s + fleet.setup.limits.acquire_s,
            )
        )
        fleet = replace(fleet, next_ticket=fleet.next_ticket + 1)
    asked = tuple(_acquire(pending) for pending in still if pending not in state.pending)
    after = Growing(fleet=fleet, job=job, pending=tuple(still))
    return _grown(after, event.at_s, (*commands, *asked))


def _grown(state: Growing, at_s: float, commands: Commands) -> Step:
    """On to the next phase once no node is waited for any more."""
    if state.pending:
        return state, commands
    fleet, job = state.fleet, state.job
    if job.failed_adds and not _only_adds(job.change):
        after, more = _undo(fleet, job, at_s)
    elif fleet.setup.method is Method.PAUSE_AND_RESUME and not job.repair and not job.failed_adds:
        after, more = _enter(fleet, job, Stage.STOPPING, at_s)
    else:
        # A replica that came stays, even where others did not: each of them is a good state.
        after, more = _prove(fleet, job, at_s, at_s + fleet.setup.limits.first_task_s)
    return after, (*commands, *more)


def _undo(fleet: Fleet, job: Job, at_s: float) -> Step:
    """Give up: what was added goes again, what was to be removed stays."""
    return _shrink(fleet, replace(job, gave_up=True), job.added, at_s)


# --- Restating: stop, copy, repartition, start. -------------------------------------------------


def _enter(fleet: Fleet, job: Job, stage: Stage, at_s: float, attempt: int = 1) -> Step:
    limits = fleet.setup.limits
    wait_s = {
        Stage.STOPPING: limits.stop_s,
        Stage.COPYING: limits.copy_s,
        Stage.REPARTITIONING: limits.repartition_s,
        Stage.STARTING: limits.start_s,
        Stage.HALTING: limits.stop_s,
        Stage.RESTORING: limits.copy_s,
        Stage.RESTARTING: limits.start_s,
    }[stage]
    state = Restating(fleet=fleet, job=job, stage=stage, attempt=attempt, deadline_s=at_s + wait_s)
    return state, (_stage_command(state),)


def _stage_command(state: Restating) -> Command:
    match state.stage:
        case Stage.STOPPING | Stage.HALTING:
            return StopQuery()
        case Stage.COPYING:
            return CopyCheckpoint()
        case Stage.REPARTITIONING:
            return RepartitionState(partitions=_wanted_partitions(state.job))
        case Stage.RESTORING:
            return RestoreCheckpoint()
        case Stage.STARTING | Stage.RESTARTING:
            return StartQuery()


def _wanted_partitions(job: Job) -> int:
    if job.change.partitions is None:
        raise AssertionError("repartitioning without a number of partitions")
    return job.change.partitions


def _restated(state: Restating, event: Event) -> Step:
    fleet, job, at_s = state.fleet, state.job, event.at_s
    match state.stage, event:
        case Stage.STOPPING, Stopped():
            job = replace(job, stopped_at_s=at_s)
            follows = Stage.STARTING if job.change.partitions is None else Stage.COPYING
            return _enter(fleet, job, follows, at_s)
        case Stage.COPYING, Copied():
            return _enter(fleet, job, Stage.REPARTITIONING, at_s)
        case Stage.REPARTITIONING, Repartitioned():
            moved = replace(job, state_moved_bytes=event.state_moved_bytes)
            return _enter(fleet, moved, Stage.STARTING, at_s)
        case (Stage.STARTING, Running()) | (Stage.RESTARTING, Running()) if _is_changed(state):
            if job.change.partitions is not None:
                fleet = replace(fleet, partitions=job.change.partitions)
            job = replace(job, running_at_s=at_s)
            return _prove(fleet, job, at_s, at_s + fleet.setup.limits.first_task_s)
        case Stage.HALTING, Stopped():
            return _enter(fleet, job, Stage.RESTORING, at_s)
        case Stage.RESTORING, Restored():
            return _enter(fleet, job, Stage.RESTARTING, at_s)
        case Stage.RESTORING, Kept():
            return _enter(fleet, replace(job, kept=True), Stage.RESTARTING, at_s)
        case Stage.RESTARTING, Running():
            return _undo(fleet, replace(job, running_at_s=at_s, state_moved_bytes=None), at_s)
        case _, Failed() if event.command == _stage_command(state):
            return _stage_failed(state, event.reason, at_s)
        case _, Elapsed() if at_s >= state.deadline_s:
            return _stage_failed(state, "not done in time", at_s)
        case _:
            return state, ()


def _is_changed(state: Restating) -> bool:
    """Whether what starts has the state that was asked for."""
    return state.stage is Stage.STARTING or state.job.kept


def _stage_failed(state: Restating, reason: str, at_s: float) -> Step:
    fleet, stage = state.fleet, state.stage
    job = state.job.noting(f"{stage.value}, try {state.attempt}: {reason}")
    if state.attempt <= fleet.setup.limits.retries:
        # The same command: a failed repartitioning must be run again with the same number.
        return _enter(fleet, job, stage, at_s, state.attempt + 1)
    match stage:
        case Stage.STOPPING | Stage.COPYING:  # nothing was changed; make sure that it runs
            return _enter(fleet, job, Stage.RESTARTING, at_s)
        case Stage.REPARTITIONING:
            return _enter(fleet, job, Stage.RESTORING, at_s)
        case Stage.STARTING if job.change.partitions is not None:
            return _enter(fleet, job, Stage.HALTING, at_s)
        case Stage.STARTING | Stage.HALTING | Stage.RESTORING | Stage.RESTARTING:
            return _strand(fleet, job, at_s)


# --- Proving. ---------------------------------------------------------------------------------


def _prove(fleet: Fleet, job: Job, at_s: float, deadline_s: float) -> Step:
    if job.unproven:
        return Proving(fleet=fleet, job=job, deadline_s=deadline_s), ()
    return _shrink(fleet, job, job.change.remove, at_s)


def _proven(state: Growing | Restating | Proving | Shrinking, event: FirstTaskSeen) -> Step:
    if event.replica not in state.job.unproven:
        return state, ()
    job = replace(
        state.job,
        unproven=tuple(name for name in state.job.unproven if name != event.replica),
        first_task_at_s=event.at_s,
    )
    if isinstance(state, Proving):
        return _prove(state.fleet, job, event.at_s, state.deadline_s)
    return replace(state, job=job), ()


# --- Shrinking. -------------------------------------------------------------------------------


def _shrink(fleet: Fleet, job: Job, names: tuple[str, ...], at_s: float) -> Step:
    """The next replica to leave, as long as another one stays."""
    running = tuple(name for name in names if fleet.has(name))
    if not running:
        return _finish(fleet, job, at_s)
    if len(fleet.replicas) == 1:
        job = replace(job.noting(f"replica '{running[0]}' is the last one; it stays"), gave_up=True)
        return _finish(fleet, job, at_s)
    if job.failed_adds and not job.gave_up:
        # One that was to take over is gone: those it was to replace stay.
        return _undo(fleet, job, at_s)
    state = Shrinking(
        fleet=fleet,
        job=job,
        leaving=running[0],
        then=running[1:],
        attempt=1,
        deadline_s=at_s + fleet.setup.limits.leave_s,
    )
    return state, (Decommission(replica=state.leaving),)


def _gone(state: Shrinking, event: Lost | Left) -> Step:
    after, commands = _shrink(state.fleet.without(state.leaving), state.job, state.then, event.at_s)
    return after, (ReleaseNode(replica=state.leaving), *commands)


def _leave_again(state: Shrinking, event: Failed | Elapsed) -> Step:
    limits = state.fleet.setup.limits
    if isinstance(event, Failed):
        hit, why = event.command == Decommission(replica=state.leaving), event.reason
    else:
        hit, why = event.at_s >= state.deadline_s, f"still there after {limits.leave_s:g} s"
    if not hit:
        return state, ()
    job = state.job.noting(f"replica '{state.leaving}' leaving, try {state.attempt}: {why}")
    if len(state.fleet.replicas) == 1:  # the others were lost meanwhile
        return _shrink(state.fleet, job, (state.leaving, *state.then), event.at_s)
    if state.attempt <= limits.retries:
        again = replace(state, job=job, attempt=state.attempt + 1, deadline_s=event.at_s + limits.leave_s)
        return again, outstanding(again)
    # It was asked often enough and its tasks run again elsewhere: a node that never goes costs for ever.
    job = job.noting(f"replica '{state.leaving}' released without waiting any longer")
    after, commands = _shrink(state.fleet.without(state.leaving), job, state.then, event.at_s)
    return after, (ReleaseNode(replica=state.leaving), *commands)
