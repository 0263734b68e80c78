"""An elastic operator to be fed step by step, measured and reconfigured: what a control loop needs."""

from math import ceil
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.compiled import Floats, Ints
from penstock.domain.errors import InputError
from penstock.runtimes.sim.elastic import machine as parts
from penstock.runtimes.sim.elastic.costs import Costs
from penstock.runtimes.sim.elastic.events import at_frequency, run
from penstock.runtimes.sim.elastic.machine import IDLE, NEVER, RECONFIGURING, Machine, Records
from penstock.runtimes.sim.elastic.protocol import Protocol
from penstock.runtimes.sim.elastic.splitter import reconfigured

QUEUE_CAPACITY = 512
_GHZ = 1e9


class Measured(NamedTuple):
    """One step of the operator. Means over nothing are None.

    Latency runs from arrival (before the splitter) to the merger's result, waiting from arrival
    to the start of the computation; both of tuples whose result came in this step, and only of
    those that trigger one. Arrivals, keys and backlog count all tuples.
    """

    at_s: float  # its end
    arrived: int
    delivered: int
    mean_latency_s: float | None
    max_latency_s: float | None
    mean_waiting_s: float | None
    mean_interarrival_s: float | None
    std_interarrival_s: float | None
    mean_service_s: float | None
    std_service_s: float | None
    arrived_of_keys: Ints
    ticks_of_keys: Floats  # mean per result; NaN of keys without one
    busy_share: Floats  # of every replica there may be
    backlog: int  # tuples in the operator, or waiting to enter it
    keys_moving: int
    splitter_blocked_s: float  # by full queues
    out_of_order: int  # 0, unless a protocol is broken


class Intervals(NamedTuple):
    """Results by the monitoring interval they were delivered in."""

    interval_s: float
    results: Ints
    mean_latency_s: Floats  # NaN without results
    max_latency_s: Floats


class _Message(NamedTuple):
    at_s: float
    table: Ints
    protocol: Protocol


class ElasticOperator:
    """Splitter, replicas and merger over one keyed stream.

    `slide`: one in so many tuples of a key triggers the computation (a count window), the others
    take `costs.insert_ticks`; with 1 only triggering tuples are simulated. `windows` are the
    numbers of tuples keys start with, so that they do not all trigger at once. `interval_s`
    records results by monitoring interval; `tracing` keeps every tuple's path, for tests.
    """

    def __init__(
        self,
        *,
        keys: int,
        replicas: int,
        max_replicas: int,
        frequency_ghz: float,
        table: npt.ArrayLike,
        queue_capacity: int = QUEUE_CAPACITY,
        costs: Costs | None = None,
        slide: int = 1,
        windows: npt.ArrayLike | None = None,
        interval_s: float | None = None,
        tracing: bool = False,
    ) -> None:
        for name, value in (("keys", keys), ("queue_capacity", queue_capacity), ("slide", slide)):
            if value < 1:
                raise InputError(f"{name}={value}; at least 1")
        if interval_s is not None and not 0 < interval_s < NEVER:
            raise InputError(f"interval_s={interval_s}; a monitoring interval takes some time")
        self.max_replicas = max_replicas
        self.replicas = self._checked_replicas(replicas)
        self.frequency_ghz = _checked_frequency(frequency_ghz)
        self.now_s = 0.0
        self._keys = keys
        self._tracing = tracing
        self._messages: list[_Message] = []
        self._frequencies: list[tuple[float, float]] = []
        self._waiting = (np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0))
        self._fed = 0
        self._last_arrival_s: float | None = None
        self._blocked_s = 0.0
        first_table = self._checked_table(table, replicas)
        self._machine = _machine(
            keys, max_replicas, first_table, queue_capacity, slide, costs or Costs(), interval_s
        )
        self._machine.clock[0].second_per_tick = 1 / (frequency_ghz * _GHZ)
        if windows is not None:
            self._start_with(np.asarray(windows, dtype=np.int64))

    def _start_with(self, windows: Ints) -> None:
        if windows.shape != (self._keys,) or windows.min() < 0:
            raise InputError(f"windows: one number of tuples from 0 up for each of {self._keys} keys")
        self._machine.key["sequence"] = windows
        self._machine.state["processed"][np.arange(self._keys), self.table] = windows

    @property
    def table(self) -> Ints:
        """Where the splitter sends each key."""
        return self._machine.table.copy()

    @property
    def states(self) -> tuple[Ints, Ints]:
        """Of every key where the splitter sends it: tuples processed, and a digest of them in their order."""
        here = self._machine.state[np.arange(self._keys), self._machine.table]
        return here["processed"].copy(), here["digest"].copy()

    @property
    def trace(self) -> Records:
        """Every tuple processed, in that order (key, sequence, replica, started_s, done_s)."""
        return self._machine.trace[: self._machine.clock[0].traced]

    @property
    def routed(self) -> Records:
        """Every tuple the splitter handed on, in that order (key, sequence, replica, at_s)."""
        return self._machine.routed[: self._machine.clock[0].routed]

    @property
    def intervals(self) -> Intervals:
        """All intervals that are over."""
        if self._machine.interval_s == 0:
            raise InputError("intervals were not recorded; give interval_s")
        over = self._machine.interval[: int(self.now_s / self._machine.interval_s + 1e-9)]
        results = over["results"].copy()
        mean_s = np.divide(over["latency_s"], results, out=np.full(over.size, np.nan), where=results > 0)
        return Intervals(self._machine.interval_s, results, mean_s, over["max_latency_s"].copy())

    def reconfigure(
        self,
        at_s: float,
        *,
        replicas: int | None = None,
        table: npt.ArrayLike | None = None,
        frequency_ghz: float | None = None,
        protocol: Protocol = Protocol.MP,
    ) -> None:
        """A decision of the controller that takes effect while the operator goes on.

        The frequency changes at `at_s`; the table reaches the splitter then, and it reads it as
        soon as it has let go of the tuple in its hands. Decisions come in the order of time, and
        one may come while keys of an earlier one still move.
        """
        latest_s = max([self.now_s, *(one.at_s for one in self._messages[-1:])])
        if not latest_s <= at_s < NEVER:
            raise InputError(
                f"reconfigure at {at_s} s; not before {latest_s} s, now or when the last one comes"
            )
        wanted = self.replicas if replicas is None else self._checked_replicas(replicas)
        if table is None and wanted < self.replicas:
            raise InputError(f"from {self.replicas} to {wanted} replicas: give a table without the others")
        ghz = None if frequency_ghz is None else _checked_frequency(frequency_ghz)
        if table is not None:
            self._messages.append(_Message(at_s, self._checked_table(table, wanted), protocol))
        if ghz is not None:
            self._frequencies.append((at_s, ghz))
            self._frequencies.sort()
        self.replicas = wanted

    def advance(
        self, arrivals_s: npt.ArrayLike, keys: npt.ArrayLike, ticks: npt.ArrayLike, until_s: float
    ) -> Measured:
        """Feed tuples (when, of which key, how many clock cycles of work), and let time pass."""
        fresh_s = np.asarray(arrivals_s, dtype=np.float64)
        fresh_keys = np.asarray(keys, dtype=np.int64)
        fresh_ticks = np.asarray(ticks, dtype=np.float64)
        self._check(fresh_s, fresh_keys, fresh_ticks, until_s)
        tuples = (fresh_s, fresh_keys, fresh_ticks)
        if self._waiting[0].size > 0:
            tuples = (
                np.concatenate((self._waiting[0], fresh_s)),
                np.concatenate((self._waiting[1], fresh_keys)),
                np.concatenate((self._waiting[2], fresh_ticks)),
            )
        self._fed += fresh_s.size
        self._make_room(until_s)
        taken = self._run(tuples, until_s)
        self._waiting = (tuples[0][taken:], tuples[1][taken:], tuples[2][taken:])
        began_s, self.now_s = self.now_s, until_s
        return self._measure(fresh_s, fresh_keys, until_s - began_s)

    def _run(self, tuples: tuple[Floats, Ints, Floats], until_s: float) -> int:
        taken = 0
        while True:
            stop_s = self._frequencies[0][0] if self._frequencies else NEVER
            message_s = self._messages[0].at_s if self._messages else NEVER
            here_s = min(stop_s, until_s)
            taken = run(self._machine, *tuples, taken, here_s, message_s)
            splitter = self._machine.splitter[0]
            if splitter.doing == RECONFIGURING and splitter.next_s <= here_s:
                message = self._messages.pop(0)
                self._make_room_for(message)
                reconfigured(self._machine, message.table, int(message.protocol))
            elif stop_s <= until_s:
                _, self.frequency_ghz = self._frequencies.pop(0)
                at_frequency(self._machine, self.frequency_ghz * _GHZ, stop_s)
            else:
                return taken

    def _measure(self, fresh_s: Floats, fresh_keys: Ints, lasted_s: float) -> Measured:
        m = self._machine
        totals, splitter = m.totals[0], m.splitter[0]
        busy = m.replica["activity"] != IDLE
        m.replica["busy_s"][busy] += self.now_s - m.replica["since_s"][busy]
        m.replica["since_s"] = self.now_s
        if splitter.doing == parts.BLOCKED:
            splitter.blocked_s += self.now_s - splitter.blocked_since_s
            splitter.blocked_since_s = self.now_s
        before = () if self._last_arrival_s is None else (self._last_arrival_s,)
        gaps_s = np.diff(fresh_s, prepend=before)
        if fresh_s.size > 0:
            self._last_arrival_s = float(fresh_s[-1])
        delivered = int(totals.delivered)
        mean_service_s = totals.service_s / delivered if delivered else None
        done = m.key["done"]
        seen = Measured(
            at_s=self.now_s,
            arrived=fresh_s.size,
            delivered=delivered,
            mean_latency_s=float(totals.latency_s) / delivered if delivered else None,
            max_latency_s=float(totals.max_latency_s) if delivered else None,
            mean_waiting_s=float(totals.waiting_s) / delivered if delivered else None,
            mean_interarrival_s=float(gaps_s.mean()) if gaps_s.size else None,
            std_interarrival_s=float(gaps_s.std()) if gaps_s.size else None,
            mean_service_s=None if mean_service_s is None else float(mean_service_s),
            std_service_s=None
            if mean_service_s is None
            else float(max(totals.service_squared / delivered - mean_service_s**2, 0.0)) ** 0.5,
            arrived_of_keys=np.bincount(fresh_keys, minlength=self._keys),
            ticks_of_keys=np.divide(m.key["ticks"], done, out=np.full(self._keys, np.nan), where=done > 0),
            busy_share=m.replica["busy_s"] / lasted_s,
            backlog=self._fed - int(m.clock[0].processed),
            keys_moving=int(m.clock[0].moves),
            splitter_blocked_s=float(splitter.blocked_s),
            out_of_order=int(totals.out_of_order),
        )
        m.replica["busy_s"] = 0.0
        splitter.blocked_s = 0.0
        m.key["done"] = 0
        m.key["ticks"] = 0.0
        faults = totals.out_of_order
        m.totals[:] = np.zeros_like(m.totals)
        m.totals[0].out_of_order = faults
        return seen

    def _make_room(self, until_s: float) -> None:
        """Room for every tuple in every buffer: compiled code allocates nothing."""
        m = self._machine
        inside = self._fed - int(m.clock[0].processed)
        if inside > m.kept.size:
            kept = _grown(m.kept, parts.kept_of(2 * inside), by="next", free=m.clock[0].free_kept)
            m.clock[0].free_kept = m.kept.size
            m = m._replace(kept=kept)
        if m.interval_s > 0:
            needed = ceil(until_s / m.interval_s) + 2
            if needed > m.interval.size:
                interval = parts.intervals_of(2 * needed)
                interval[: m.interval.size] = m.interval
                m = m._replace(interval=interval)
        if self._tracing and self._fed > m.trace.size:
            trace, routed = parts.trace_of(2 * self._fed), parts.routed_of(2 * self._fed)
            trace[: m.trace.size] = m.trace
            routed[: m.routed.size] = m.routed
            m = m._replace(trace=trace, routed=routed)
        self._machine = m

    def _make_room_for(self, message: _Message) -> None:
        m = self._machine
        under_way = int(m.clock[0].moves) + int((message.table != m.table).sum())
        if under_way > m.move.size:
            move = _grown(m.move, parts.moves_of(2 * under_way), by="next_out", free=m.clock[0].free_moves)
            m.clock[0].free_moves = m.move.size
            m = m._replace(move=move)
        places = m.queue.shape[1]
        if m.capacity + int(m.replica["messages"].max()) + 1 > places:
            queue = parts.queues_of(self.max_replicas, 2 * places)
            for replica in range(self.max_replicas):
                length = int(m.replica["length"][replica])
                order = (m.replica["head"][replica] + np.arange(length)) % places
                queue[replica, :length] = m.queue[replica, order]
            m.replica["head"] = 0
            m = m._replace(queue=queue)
        self._machine = m

    def _check(self, arrivals_s: Floats, keys: Ints, ticks: Floats, until_s: float) -> None:
        if not self.now_s < until_s < NEVER:
            raise InputError(f"advance to {until_s} s: it is {self.now_s} s already, or no time at all")
        if not arrivals_s.shape == keys.shape == ticks.shape or arrivals_s.ndim != 1:
            raise InputError("arrivals, keys and ticks: one of each per tuple")
        if arrivals_s.size == 0:
            return
        in_order = np.all(arrivals_s[1:] >= arrivals_s[:-1])
        if not (in_order and self.now_s <= arrivals_s[0] and arrivals_s[-1] <= until_s):
            raise InputError(f"arrivals: in the order of time, from {self.now_s} s to {until_s} s")
        if keys.min() < 0 or keys.max() >= self._keys:
            raise InputError(f"keys: from 0 to {self._keys - 1}")
        if not (ticks.min() >= 0 and ticks.max() < NEVER):
            raise InputError("ticks: numbers from 0 up")

    def _checked_replicas(self, replicas: int) -> int:
        if not 1 <= replicas <= self.max_replicas:
            raise InputError(f"replicas={replicas}; from 1 to max_replicas={self.max_replicas}")
        return replicas

    def _checked_table(self, table: npt.ArrayLike, replicas: int) -> Ints:
        checked = np.array(table, dtype=np.int64)
        if checked.shape != (self._keys,):
            raise InputError(f"table: one replica for each of {self._keys} keys, not {checked.shape}")
        if checked.min() < 0 or checked.max() >= replicas:
            raise InputError(f"table: replicas from 0 to {replicas - 1}, not {checked.max()}")
        return checked


def _checked_frequency(frequency_ghz: float) -> float:
    if not 0 < frequency_ghz < NEVER:
        raise InputError(f"frequency_ghz={frequency_ghz}; a clock has to tick")
    return frequency_ghz


def _grown(old: Records, new: Records, *, by: str, free: int) -> Records:
    """The new pool with the old one's records; what was free of those is free after the new ones."""
    new[: old.size] = old
    new[by][-1] = free
    return new


def _machine(
    keys: int,
    max_replicas: int,
    table: Ints,
    capacity: int,
    slide: int,
    costs: Costs,
    interval_s: float | None,
) -> Machine:
    fields: dict[str, Any] = parts.fresh(keys, max_replicas, capacity)
    return Machine(
        capacity=capacity,
        slide=slide,
        split_s=costs.split_s,
        merge_s=costs.merge_s,
        insert_ticks=costs.insert_ticks,
        message_s=costs.message_s,
        save_s=costs.save_s,
        acquire_s=costs.acquire_s,
        transfer_s=costs.transfer_s,
        dequeue_s=costs.dequeue_s,
        table=table,
        interval_s=interval_s or 0.0,
        **fields,
    )
