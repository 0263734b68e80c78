"""Carries out what the reconfiguration protocol commands, and reports what came of it as events.

The protocol (`reconfigure.protocol`) is a pure state machine per chain; this is its hands. Quick
commands are carried out at once. What takes long (stopping a query, copying or repartitioning
its state) goes to a thread, one at a time per chain, and comes back as an event.
"""

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.domain.request import Migrate, Verdict
from penstock.java_errors import in_one_line
from penstock.reconfigure.method import Method
from penstock.reconfigure.protocol import change_of, coming, grows_further, outstanding, settled, step
from penstock.reconfigure.words import (
    AcquireNode,
    CancelAcquire,
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
    Granted,
    Kept,
    Left,
    Lost,
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
    StartQuery,
    State,
    Stopped,
    StopQuery,
    Stranded,
)
from penstock.runtimes.spark import checkpoints, steady
from penstock.runtimes.spark.executors import Executor
from penstock.runtimes.spark.nodes import Node, Nodes
from penstock.runtimes.spark.offsets import progress
from penstock.runtimes.spark.partitions import state_partitions
from penstock.runtimes.spark.running import RunningApp
from penstock.runtimes.spark.stream_log import StreamLog
from penstock.runtimes.spark.topology import Chain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_S = 0.5
_REST_S = 45.0  # within the protocol's own deadline for stopping


@dataclass
class _Hands:
    """One chain: where its conversation stands, and what is under way for it."""

    state: State
    tickets: dict[int, Node] = field(default_factory=dict)  # nodes asked for, not ready yet
    nodes: dict[str, Node] = field(default_factory=dict)  # by replica
    leaving: set[str] = field(default_factory=set)
    warm: set[str] = field(default_factory=set)  # replicas that have had a task, if only a trial
    tried: set[str] = field(default_factory=set)  # replicas that a trial has begun for
    sharing: int = 0  # replicas the work is cut for
    asked_s: dict[str, float] = field(default_factory=dict)  # when nodes were asked for, until they work
    ready_s: float | None = None  # what the latest replica took, from being asked for to its first tuples
    slow: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(max_workers=1, thread_name_prefix="actuator")
    )
    slow_ones: set[Command] = field(default_factory=set)  # commands that have not ended


class SparkActuator:
    """Adds, removes and moves replicas of a running application."""

    def __init__(
        self,
        running: RunningApp,
        spark: "SparkSession",
        nodes: Nodes,
        node_types: Sequence[str],
        *,
        ended: Callable[[Record], None] = lambda record: None,
        stepped: Callable[[str, Event, Commands], None] = lambda name, event, commands: None,
    ) -> None:
        """`stepped` hears of every step of a change before anything is done about it."""
        self._running, self._spark, self._nodes = running, spark, nodes
        self._kinds, self._ended, self._stepped = list(node_types), ended, stepped
        self._events: queue.Queue[tuple[str, Event]] = queue.Queue()
        self._tried: queue.Queue[tuple[str, set[str]]] = queue.Queue()  # chain, replicas that had a trial
        self._releasing = ThreadPoolExecutor(
            max_workers=max(len(running.chains), 1), thread_name_prefix="releasing"
        )
        self._hands: dict[str, _Hands] = {}

    def adopt(self, nodes: Mapping[str, Sequence[Node]]) -> None:
        """Take charge of the replicas an application starts with."""
        for name, chain in self._running.chains.items():
            replicas = tuple(self._replica(node) for node in nodes[name])
            partitions = self._partitions(name, chain) if chain.stateful else None
            # Every session of ours keeps state with RocksDB, the provider that can.
            setup = Setup(operator=name, method=chain.protocol, can_repartition=chain.stateful)
            self._hands[name] = _Hands(
                state=settled(setup, replicas, partitions=partitions),
                nodes={node.name: node for node in nodes[name]},
                warm={node.name for node in nodes[name]},
            )
            self._share(name, self._hands[name])

    def go_on(self, interrupted: Mapping[str, Command]) -> dict[str, str]:
        """Before `adopt`, and before the queries start: finish what an earlier driver had begun with their
        checkpoints, and say what was done."""
        done: dict[str, str] = {}
        for name, command in interrupted.items():
            if name in self._running.chains:
                checkpoint, log = self._running.checkpoint(name), self._output(name)
                with ThreadPoolExecutor(max_workers=1, thread_name_prefix="going-on") as threads:
                    work = threads.submit(checkpoints.go_on, command, checkpoint, log, self._repartition)
                    while not wait([work], timeout=_LOOK_S).done:
                        self._nodes.executors()  # Spark needs one for what no operator owns
                if (did := work.result()) is not None:
                    done[name] = did
        return done

    def _partitions(self, name: str, chain: Chain) -> int:
        """Of its state, as a change may have left it; before its first micro-batch, as it will have."""
        known = progress(self._running.checkpoint(name))
        in_checkpoint = None if known is None else known.partitions
        return state_partitions(chain.max_replicas) if in_checkpoint is None else in_checkpoint

    def apply(self, verdict: Verdict) -> None:
        for request in verdict.granted:
            hands = self._hands[request.operator]
            fleet = hands.state.fleet
            # A query that stops anyway gets as many state partitions as it will have replicas.
            pausing = fleet.setup.method is Method.PAUSE_AND_RESUME and fleet.partitions is not None
            partitions = request.target.total if pausing and not isinstance(request, Migrate) else None
            waited_for = [Replica(name="", node_type=kind) for kind in coming(hands.state)]
            change = change_of(request, (*fleet.replicas, *waited_for), partitions=partitions)
            self._happened(request.operator, Granted(change=change, at_s=self._now()))

    @property
    def reconfiguring(self) -> tuple[str, ...]:
        return tuple(
            name for name, hands in self._hands.items() if not isinstance(hands.state, Settled | Stranded)
        )

    def coming(self, chain: str) -> tuple[int, ...] | None:
        """Replicas of each type that were asked for and are not there yet, while more may be asked for."""
        state = self._hands[chain].state
        if not isinstance(state, Settled) and not grows_further(state):
            return None
        kinds = coming(state)
        return tuple(kinds.count(kind) for kind in range(len(self._kinds)))

    @property
    def restating(self) -> tuple[str, ...]:
        """Chains whose query is being stopped, changed and started: nobody else may touch it."""
        return tuple(name for name, hands in self._hands.items() if isinstance(hands.state, Restating))

    @property
    def stranded(self) -> dict[str, str]:
        """Chains for which nothing more can be tried, and why."""
        return {
            name: hands.state.reason
            for name, hands in self._hands.items()
            if isinstance(hands.state, Stranded)
        }

    def nodes(self, chain: str) -> tuple[Node, ...]:
        """Where the chain's replicas run, one each; a node not ready yet is not among them."""
        hands = self._hands[chain]
        return tuple(hands.nodes[replica.name] for replica in hands.state.fleet.replicas)

    def ready_s(self, chain: str) -> float | None:
        """How long the chain's latest replicas took to come and work; None before the first."""
        return self._hands[chain].ready_s

    def executors(self) -> Mapping[str, Executor | None]:
        """The executors of nodes that live, by node."""
        return self._nodes.executors()

    def poll(self) -> None:
        """Look what has happened since; to be called every second or so."""
        while not self._events.empty():
            name, event = self._events.get()
            self._happened(name, event)
        while not self._tried.empty():
            name, replicas = self._tried.get()
            self._hands[name].warm |= replicas & self._hands[name].nodes.keys()
        there = self._nodes.executors()
        for name, hands in self._hands.items():
            for event in self._noticed(hands, there):
                self._happened(name, event)
            self._happened(name, Elapsed(at_s=self._now()))
            self._share(name, hands)
            self._running.expect_replicas(name, not isinstance(hands.state, Settled | Stranded))

    def stop(self) -> None:
        for threads in (*(hands.slow for hands in self._hands.values()), self._releasing):
            threads.shutdown(wait=True, cancel_futures=True)

    def _noticed(self, hands: _Hands, there: Mapping[str, Executor | None]) -> list[Event]:
        now = self._now()
        events: list[Event] = []
        for ticket, node in list(hands.tickets.items()):
            if node.name not in there:
                command = self._waiting_for(hands, ticket)
                if command is not None:
                    events.append(Failed(command=command, reason=f"{node.name} died", at_s=now))
            elif there[node.name] is not None:
                del hands.tickets[ticket]
                hands.nodes[node.name] = node
                if self._nodes.is_warm(node):
                    hands.warm.add(node.name)
                    hands.asked_s.pop(node.name, None)  # a spare: the next one will take longer
                events.append(NodeReady(ticket=ticket, replica=self._replica(node), at_s=now))
        self._try_out(hands, there)
        for replica, node in list(hands.nodes.items()):
            executor = there.get(node.name)
            if replica in hands.leaving and executor is None:
                events.append(Left(replica=replica, at_s=now))
            elif replica not in hands.leaving and node.name not in there:
                events.append(Lost(replica=replica, at_s=now))
            elif executor is not None and self._running.served(self._name_of(hands), executor.id):
                hands.warm.add(replica)
                if replica in hands.asked_s:
                    hands.ready_s = now - hands.asked_s.pop(replica)
                events.append(FirstTaskSeen(replica=replica, at_s=now))
        return events

    def _waiting_for(self, hands: _Hands, ticket: int) -> Command | None:
        for command in outstanding(hands.state):
            if isinstance(command, AcquireNode) and command.ticket == ticket:
                return command
        return None

    def _happened(self, name: str, event: Event) -> None:
        hands = self._hands[name]
        before = hands.state
        after, commands = step(before, event)
        if commands or after != before:
            self._stepped(name, event, commands)
        hands.state = after
        for command in commands:
            self._do(name, hands, command)

    def _share(self, name: str, hands: _Hands) -> None:
        """Cut the work for the replicas that are warm: a cold one would keep all others waiting."""
        warm = sum(1 for replica in hands.state.fleet.replicas if replica.name in hands.warm)
        if warm and warm != hands.sharing:
            hands.sharing = warm
            self._running.share_among(name, warm)

    @staticmethod
    def _name_of(hands: _Hands) -> str:
        return hands.state.fleet.setup.operator

    def _do(self, name: str, hands: _Hands, command: Command) -> None:
        match command:
            case AcquireNode():
                self._acquire(name, hands, command)
            case CancelAcquire():
                self._give_back(hands.tickets.pop(command.ticket, None))
            case Decommission():
                hands.leaving.add(command.replica)
                self._nodes.drain(hands.nodes[command.replica])
            case ReleaseNode():
                for known in (hands.leaving, hands.warm, hands.tried):
                    known.discard(command.replica)
                hands.asked_s.pop(command.replica, None)
                self._give_back(hands.nodes.pop(command.replica, None))
            case Report():
                if command.record.outcome is not Ending.REFUSED:
                    hands.asked_s.clear()  # without a task so far: from now on it may only wait for tuples
                self._ended(command.record)
            case StopQuery() | CopyCheckpoint() | RepartitionState() | RestoreCheckpoint() | StartQuery():
                # Past its deadline it is asked for again, and may be at it still.
                if command not in hands.slow_ones:
                    hands.slow_ones.add(command)
                    hands.slow.submit(self._slowly, name, command)

    def _acquire(self, name: str, hands: _Hands, command: AcquireNode) -> None:
        if command.ticket in hands.tickets:
            return
        try:
            node = self._nodes.acquire(name, self._kinds[command.node_type])
            hands.tickets[command.ticket] = node
            hands.asked_s[node.name] = self._now()
        except Exception as problem:  # whatever a provider raises, the protocol decides what to do about it
            self._events.put((name, Failed(command=command, reason=str(problem), at_s=self._now())))

    def _try_out(self, hands: _Hands, there: Mapping[str, Executor | None]) -> None:
        """What has come since the last look, all at once. Beside everything else: a trial that hangs keeps
        nobody from stopping."""
        new = hands.nodes.keys() - hands.warm - hands.tried - hands.leaving
        if not new:
            return
        hands.tried |= new
        name, executors = self._name_of(hands), len(hands.nodes)
        cold = frozenset(found.id for one in new if (found := there.get(one)) is not None)

        def tried() -> None:
            with suppress(Exception):  # a replica that was not tried out has a slow first task, no more
                self._running.warm(name, executors, cold)
            self._tried.put((name, new))

        threading.Thread(target=tried, name=f"trial-{name}", daemon=True).start()

    def _give_back(self, node: Node | None) -> None:
        if node is not None:
            self._releasing.submit(self._nodes.release, node)

    def _slowly(self, name: str, command: Command) -> None:
        try:
            event = self._carried_out(name, command)
        except Exception as problem:
            event = Failed(command=command, reason=in_one_line(problem), at_s=self._now())
        self._hands[name].slow_ones.discard(command)  # before anybody hears of it and asks for it again
        self._events.put((name, event))

    def _carried_out(self, name: str, command: Command) -> Event:
        checkpoint = self._running.checkpoint(name)
        match command:
            case StopQuery():
                self._running.rest_chain(name, within_s=_REST_S)
                return Stopped(at_s=self._now())
            case CopyCheckpoint():
                checkpoints.copy(checkpoint)
                return Copied(at_s=self._now())
            case RepartitionState():
                moved = checkpoints.repartition(checkpoint, command.partitions, self._repartition)
                return Repartitioned(at_s=self._now(), state_moved_bytes=moved)
            case RestoreCheckpoint():
                restored = checkpoints.restore(checkpoint, self._output(name))
                return Restored(at_s=self._now()) if restored else Kept(at_s=self._now())
            case StartQuery():
                if name in self._running.queries:
                    self._running.let_go(name)
                else:
                    self._running.start_query(name)
                return Running(at_s=self._now())
            case _:
                raise TypeError(f"{command}: not a slow command")

    def _repartition(self, checkpoint: str, partitions: int) -> None:
        manager: Any = self._spark._streamingCheckpointManager
        manager.repartition(checkpoint, partitions)

    def _output(self, name: str) -> StreamLog:
        return self._running.log(self._running.chains[name].output)

    def _replica(self, node: Node) -> Replica:
        return Replica(name=node.name, node_type=self._kinds.index(node.kind))

    def _now(self) -> float:
        return steady.now_s()
