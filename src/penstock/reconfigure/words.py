"""What is said while an operator is reconfigured: events, commands, and where the conversation stands.

In words of no engine: a query is whatever runs an operator and can be stopped and started, and
its checkpoint what it needs to continue where it was. The names of events and commands are those
of the journal.
"""

from dataclasses import dataclass, field, replace
from enum import Enum
from math import isfinite
from typing import TypeAlias

from penstock.domain.errors import InputError
from penstock.reconfigure.method import Method


class Ending(Enum):
    """How a reconfiguration ended."""

    DONE = "done"
    PARTLY = "partly"  # some of the new replicas never came; those that did stay
    GAVE_UP = "gave up"  # back in the last good state
    REFUSED = "refused"  # nothing was begun
    STRANDED = "stranded"  # the query is down and does not start; a person has to look


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long to wait for what, in seconds, and how often to try again."""

    acquire_s: float = 120.0
    first_task_s: float = 60.0
    leave_s: float = 60.0
    stop_s: float = 60.0
    copy_s: float = 120.0
    repartition_s: float = 300.0
    start_s: float = 120.0
    retries: int = 2

    def __post_init__(self) -> None:
        for name in ("acquire_s", "first_task_s", "leave_s", "stop_s", "copy_s", "repartition_s", "start_s"):
            seconds = getattr(self, name)
            if not (isfinite(seconds) and seconds > 0):
                raise InputError(f"protocol limits: {name}={seconds}; it must be positive")
        if self.retries < 0:
            raise InputError(f"protocol limits: retries={self.retries}; it cannot be negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One replica that runs."""

    name: str
    node_type: int
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewReplica:
    """One to be added, on a named node where placement matters."""

    node_type: int
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is to become different, in one go."""

    add: tuple[NewReplica, ...] = ()
    remove: tuple[str, ...] = ()  # names of replicas
    partitions: int | None = None  # of the state; None leaves them as they are

    def __post_init__(self) -> None:
        if self.partitions is not None and self.partitions < 1:
            raise InputError(f"change: partitions={self.partitions}; state needs at least one")
        if len(set(self.remove)) < len(self.remove):
            raise InputError(f"change: {', '.join(self.remove)}: a replica is removed twice")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How one operator may be reconfigured."""

    operator: str
    method: Method = Method.LIVE
    can_repartition: bool = False  # whether its state can be cut into another number of partitions
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A reconfiguration that ended, for the journal and for `perf.downtime`."""

    operator: str
    method: Method
    change: Change
    outcome: Ending
    granted_at_s: float
    ended_at_s: float
    node_ready_at_s: float | None  # the last of the new nodes; None without any
    first_task_at_s: float | None  # on the last of the new replicas to get one
    downtime_s: float  # 0 where the query was never stopped
    state_moved_bytes: int | None  # None = not known
    repair: bool = False  # nobody asked for it: a replica was lost
    trouble: tuple[str, ...] = ()  # what went wrong on the way


# --- Events: what happened, and when. -------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """The controller wants this change."""

    change: Change
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReady:
    """The node asked for under this ticket is there, with its replica."""

    ticket: int
    replica: Replica
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTaskSeen:
    """A new replica finished its first task."""

    replica: str
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A replica is gone, as asked."""

    replica: str
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A replica is gone, and nobody asked."""

    replica: str
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The query has stopped."""

    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """There is a copy of the checkpoint."""

    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Repartitioned:
    """The state has as many partitions as asked for."""

    at_s: float
    state_moved_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The checkpoint is its copy again."""

    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The checkpoint is not put back, for the query has worked with it: what it took in and gave since would
    be lost, or come twice."""

    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The query runs again."""

    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A command could not be carried out."""

    command: "Command"
    reason: str
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Elapsed:
    """It is now this late; nothing else happened."""

    at_s: float


Event: TypeAlias = (
    Granted
    | NodeReady
    | FirstTaskSeen
    | Left
    | Lost
    | Stopped
    | Copied
    | Repartitioned
    | Restored
    | Kept
    | Running
    | Failed
    | Elapsed
)

# --- Commands: what to do. All may be given twice and must do no harm then. -------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AcquireNode:
    """Start a node with a replica of this operator. -> NodeReady with the same ticket."""

    ticket: int
    node_type: int
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelAcquire:
    """Forget about this ticket: it took too long."""

    ticket: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decommission:
    """Let a replica finish its tasks and go. -> Left"""

    replica: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseNode:
    """Give back the node of a replica that is gone, or not wanted any more."""

    replica: str


@dataclass(frozen=True, slots=True)
class StopQuery:
    """Stop the query where it can continue later. -> Stopped"""


@dataclass(frozen=True, slots=True)
class CopyCheckpoint:
    """Copy the checkpoint of the stopped query. -> Copied"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepartitionState:
    """Change the number of state partitions of the stopped query. -> Repartitioned"""

    partitions: int


@dataclass(frozen=True, slots=True)
class RestoreCheckpoint:
    """Put the copy in the place of the checkpoint, as often as it takes. -> Restored, or Kept"""


@dataclass(frozen=True, slots=True)
class StartQuery:
    """Start the query, or leave it running. -> Running"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Nothing to do: write down how a reconfiguration ended."""

    record: Record


Command: TypeAlias = (
    AcquireNode
    | CancelAcquire
    | Decommission
    | ReleaseNode
    | StopQuery
    | CopyCheckpoint
    | RepartitionState
    | RestoreCheckpoint
    | StartQuery
    | Report
)
Commands: TypeAlias = tuple[Command, ...]

# --- States. ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What runs of an operator."""

    setup: Setup
    replicas: tuple[Replica, ...]
    partitions: int | None = None  # of its state; None = it has none
    next_ticket: int = 1
    last_gone: int = 0  # node type of the replica that went last: what to replace when none is left

    def without(self, name: str) -> "Fleet":
        gone = [replica.node_type for replica in self.replicas if replica.name == name]
        kept = tuple(replica for replica in self.replicas if replica.name != name)
        return replace(self, replicas=kept, last_gone=gone[-1] if gone else self.last_gone)

    def has(self, name: str) -> bool:
        return any(replica.name == name for replica in self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A change under way and what is known of it so far."""

    change: Change
    granted_at_s: float
    repair: bool = False
    added: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()  # of those, without a task so far
    failed_adds: int = 0
    node_ready_at_s: float | None = None
    first_task_at_s: float | None = None
    stopped_at_s: float | None = None
    running_at_s: float | None = None
    state_moved_bytes: int | None = None
    kept: bool = False  # on the way back: the checkpoint as it was changed
    gave_up: bool = False
    trouble: tuple[str, ...] = ()

    def noting(self, what: str) -> "Job":
        return replace(self, trouble=(*self.trouble, what))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Nothing is under way."""

    fleet: Fleet


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A node asked for."""

    ticket: int
    wanted: NewReplica
    attempt: int
    deadline_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Growing:
    """Waiting for nodes."""

    fleet: Fleet
    job: Job
    pending: tuple[Pending, ...]


class Stage(Enum):
    """Where pause-and-resume stands."""

    STOPPING = "stopping"
    COPYING = "copying"
    REPARTITIONING = "repartitioning"
    STARTING = "starting"
    # The way back:
    HALTING = "halting"  # it would not start as it is now; make sure that it does not
    RESTORING = "restoring"
    RESTARTING = "restarting"  # as it was


@dataclass(frozen=True, slots=True, kw_only=True)
class Restating:
    """The query is down, or about to be."""

    fleet: Fleet
    job: Job
    stage: Stage
    attempt: int
    deadline_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Proving:
    """Waiting for first tasks on the new replicas."""

    fleet: Fleet
    job: Job
    deadline_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrinking:
    """Waiting for a replica to leave; others may follow."""

    fleet: Fleet
    job: Job
    leaving: str
    then: tuple[str, ...]
    attempt: int
    deadline_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranded:
    """Nothing more can be tried: no replica or no query runs, and the reason is known."""

    fleet: Fleet
    reason: str


State: TypeAlias = Settled | Growing | Restating | Proving | Shrinking | Stranded
