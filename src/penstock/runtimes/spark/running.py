"""An application at work: its chains as streaming queries, and what each micro-batch reported.

Only this module starts and stops queries. What it measures goes to `Measurements`, which
the monitor reads.
"""

import json
import shutil
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from penstock.domain.errors import InputError
from penstock.files import write_whole
from penstock.java_errors import in_one_line
from penstock.runtimes.spark.checkpoints import remove_half_written, remove_unfinished_copies
from penstock.runtimes.spark.cluster import ClusterError
from penstock.runtimes.spark.executors import forget_oldest
from penstock.runtimes.spark.kept_results import KeptResults
from penstock.runtimes.spark.log_source import FORMAT, MOST_TUPLES, Intake, intake_in, schema_of
from penstock.runtimes.spark.offsets import (
    at_rest,
    began_s,
    consumed,
    progress,
    taken,
    windows_to_close,
)
from penstock.runtimes.spark.partitions import state_partitions
from penstock.runtimes.spark.session import profile
from penstock.runtimes.spark.stages import plan_of, unseen_stage
from penstock.runtimes.spark.stream_log import Batch, LogFile, Origins, StreamLog
from penstock.runtimes.spark.taps import (
    REPORT_SCHEMA,
    EntryReport,
    TaskReport,
    entries,
    entry_tap,
    exit_tap,
    forget_words,
    held_until,
    inner_tap,
    inner_tasks,
    report_of,
)
from penstock.runtimes.spark.topology import App, Chain, Query
from penstock.runtimes.spark.warming import Sample, WarmUp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MONITOR = "monitor"
WRITER = "writer"
SINK = ".sink"  # it keeps everything, so it is never past anything; no operator has such a name
_TRIAL, _STREAMS = "trial-", "streams"
_GROUPS = 4  # of tuples that came between two micro-batches of a source
_TRIED = 10  # tuples for an executor that has never had any
_OF_OBJECTIVE = 0.5  # of the response time: what a micro-batch may work on tuples
_WHILE_GROWING = 0.25  # of it, while replicas come: they have no part in one that has begun
_OF_FIXED = 2.0  # times what it takes besides: so much is worth it in any case
_CLOSING_S, _CLOSING_TRIGGERS = 5.0, 3.0  # to wait for a micro-batch that may not come
_SWEPT_EVERY, _SWEPT_BEHIND = 1000, 100  # micro-batches; the latest may still be written
_ROUNDED_S = 1.0  # Spark's times of micro-batches
_ANOTHER = 0.2  # share by which a limit has to differ to be written down


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """One micro-batch, as it was for one chain.

    Chains that share a query share its micro-batches: when they began and ended, and what had waited.
    """

    chain: str
    epoch: int
    began_s: float
    ended_s: float
    tuples_in: int  # that came to the chain
    tuples_out: int  # that left it
    waited: tuple[tuple[float, int], ...]  # (moment tuples were published to it, how many)
    reached: Mapping[str, int]  # stream -> the first batch not taken yet
    tasks: tuple[TaskReport, ...]  # of the last stage
    entries: tuple[EntryReport, ...]  # of stages before a shuffle
    finished: Origins  # tuples processed here, by when they entered; none where that was done before a crash


@dataclass
class Measurements:
    """What happened, in the order it did; written by the queries' threads, read by the monitor."""

    _reports: list[BatchReport] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, report: BatchReport) -> None:
        with self._lock:
            self._reports.append(report)

    def take(self) -> list[BatchReport]:
        """Everything since the last call."""
        with self._lock:
            taken, self._reports = self._reports, []
        return taken


class _TakenIn(NamedTuple):
    """A micro-batch of a source."""

    began_s: float
    ended_s: float


class _Quiet(NamedTuple):
    """A micro-batch after which nothing has come."""

    epoch: int
    since_s: float


class RunningApp:
    """Starts an application's queries and keeps them going."""

    def __init__(
        self,
        app: App,
        spark: "SparkSession",
        work: Path,
        *,
        trigger_s: float = 0.2,
        joined: bool = False,
        run: str | None = None,
        keep_bytes: float = inf,
    ) -> None:
        """A micro-batch every `trigger_s` at most. `joined` says that chains share queries where they can.
        `run` names this one among others on the same master, where workers carry tags. Of every sink without
        a writer no more than `keep_bytes` are kept: beyond that, the oldest results go."""
        self.app, self.spark, self.work, self.trigger_s = app, spark, work, trigger_s
        self.plan = {query.name: query for query in app.queries(joined=joined)}
        self.chains = {chain.name: chain for query in self.plan.values() for chain in query.chains}
        self.query_of = {chain.name: query for query in self.plan.values() for chain in query.chains}
        self._check_plan()
        self.tags = {name: f"{chain.tag}_{run}" for name, chain in self.chains.items()} if run else {}
        self.measurements = Measurements()
        self.queries: dict[str, StreamingQuery] = {}
        self._logs: dict[str, StreamLog] = {}
        self._intake_lock, self._clean_lock = threading.Lock(), threading.Lock()
        self._trials = {name: threading.Lock() for name in self.chains}
        self._schemas: dict[str, str] = dict(app.sources)
        # A local[n] master has no workers to choose among.
        placed = not str(spark.sparkContext.master).startswith("local")
        memory = spark.conf.get("spark.executor.memory") if placed else None
        self.profiles = {
            name: None if memory is None else profile(self.tags.get(name), memory=memory)
            for name in self.chains
        }
        for stream in (*app.sources, *(query.output for query in self.plan.values())):
            readers = app.readers_of(stream)
            # The monitor counts what is published, so nothing goes before it has seen it.
            consumers = [*readers, MONITOR] if readers else []
            consumers += [WRITER] if stream in app.writers else []
            consumers += [SINK] if stream in app.kept.values() else []
            self.log(stream).create(consumers)
        self._kept = {
            stream: KeptResults(self.log(stream), SINK, most_bytes=keep_bytes)
            for stream in set(app.kept.values())
        }
        for name in self.chains:
            self._entry(name).mkdir(parents=True, exist_ok=True)
            self._inner(name).mkdir(parents=True, exist_ok=True)
        self._samples.mkdir(parents=True, exist_ok=True)
        for left in work.glob(f"{_TRIAL}*"):  # by a driver that was killed
            shutil.rmtree(left, ignore_errors=True)
        for name in self.plan:
            remove_unfinished_copies(self.checkpoint(name))
        self._served: dict[str, dict[str, None]] = {name: {} for name in self.chains}  # executors
        self._parts: dict[str, int] = {}  # of chains that are worked on batch by batch
        self._objective_s = min(app.objective.for_path(path) for path in app.graph().paths)
        self._growing: set[str] = set()  # chains with replicas that have not worked yet
        self._quiet: dict[str, _Quiet] = {}
        self._since_s, self._ended_s = time.monotonic(), dict[str, float]()  # queries' latest micro-batches
        self._took_in: dict[str, _TakenIn] = {}  # the latest of every source that Spark reads itself

    def log(self, stream: str) -> StreamLog:
        return self._logs.setdefault(stream, StreamLog(self.work / _STREAMS / stream))

    def checkpoint(self, chain: str) -> Path:
        return self.work / "checkpoints" / chain

    def share_among(self, chain: str, replicas: int) -> None:
        """From the next micro-batch on, the chain's input is cut into as many parts as it has replicas."""
        self._parts[chain] = replicas
        if chain == self.query_of[chain].chains[0].name:
            self._change_intake(chain, lambda intake: replace(intake, parts=replicas))

    def expect_replicas(self, chain: str, expected: bool) -> None:
        """Whether some are on their way, or have come and not worked yet."""
        (self._growing.add if expected else self._growing.discard)(chain)

    def summon(self, within_s: float, check: Callable[[], None] = lambda: None) -> None:
        """Give every chain's executors a first task, as many as share its work: Spark starts none before
        there is one for it, and one whose Python is not started would keep the others waiting.

        `check` is called all the while, and raises when there is no point in waiting any longer.
        """
        problems: dict[str, str] = {}

        def warmed(name: str) -> None:
            try:
                self.warm(name, self._parts.get(name, 1))
            except Exception as problem:  # whatever Spark raises: reported below, in the thread that waits
                problems[name] = in_one_line(problem)

        threads = {name: threading.Thread(target=warmed, args=(name,), daemon=True) for name in self.chains}
        for thread in threads.values():
            thread.start()
        deadline_s = time.monotonic() + within_s
        for name, thread in threads.items():
            while thread.is_alive():
                check()
                if time.monotonic() > deadline_s:
                    raise ClusterError(
                        f"no executor for '{name}' within {within_s:g} s; see the workers' logs"
                    )
                thread.join(0.5)
            if name in problems:
                raise ClusterError(f"the executor for '{name}' does not work: {problems[name]}")

    def warm(self, name: str, executors: int, cold: frozenset[str] | None = None) -> None:
        """Start Python on the cold ones among a chain's executors (or on all), and let them try its work."""
        chain = self.chains[name]
        WarmUp(
            spark=self.spark,
            chain=chain,
            profile=self.profiles[name],
            executors=executors,
            cold=cold,
            place=Path(tempfile.mkdtemp(dir=self.work, prefix=_TRIAL)),
            samples=lambda place: {stream: self._sampled(stream, place) for stream in chain.inputs},
            worked=lambda: set(self._served[name]),
            one_by_one=self._trials[name],
        ).run()

    def hold(self, name: str, executors: int, executor: str, free: Path) -> None:
        """Keep one executor of a chain from all work until this file appears."""
        profile = self.profiles[name]
        held = free.with_suffix(".held")
        while profile is not None and not (held.exists() or free.exists()):
            tasks = self.spark.sparkContext.parallelize(range(executors), executors).withResources(profile)
            tasks.foreachPartition(held_until(executor, str(free), str(held)))

    def close(self) -> None:
        """Once Spark and its executors have ended: what they have not published by now will not be."""
        for log in self._logs.values():
            with suppress(OSError, InputError):  # the next start sweeps as well
                log.close()

    def given_up(self) -> dict[str, int]:
        """By operator, tuples of results that went since the run began, because more than enough was kept."""
        return {stream: kept.given_up for stream, kept in self._kept.items()}

    def served(self, chain: str, executor: str) -> bool:
        """Whether an executor has processed tuples for this chain."""
        return executor in self._served[chain]

    def forget_served(self, chain: str, executor: str) -> None:
        """From now on, only what it processes later counts."""
        self._served[chain].pop(executor, None)

    def start(self) -> None:
        for name in (*self.app.readers, *self.plan):
            self.start_query(name)

    def start_query(self, name: str) -> None:
        """Of chains, or of a source that Spark reads itself."""
        query = self.plan.get(name)
        if query is None:
            self._prepare(name, inputs=(), output=name)
            self._start_source(name)
        else:
            self._prepare(name, inputs=query.inputs, output=query.output)
            self._start_chains(query)

    def _prepare(self, name: str, *, inputs: Sequence[str], output: str) -> None:
        self._check_continues(name, inputs, output)
        remove_half_written(self.checkpoint(name))
        self.log(output).sweep()  # nobody writes to it now

    def _check_continues(self, name: str, inputs: Sequence[str], output: str) -> None:
        """A query and the logs around it have to be of one run, or tuples are lost or come twice."""
        checkpoint, known = self.checkpoint(name), progress(self.checkpoint(name))
        afresh = f"put back what is missing, or remove {self.work} to start afresh"
        before = self.log(output).last()
        if known is None:
            chain = name if name in self.app.readers else self.plan[name].chains[0].name
            if before is not None or any(self.log(stream).needs(chain) for stream in inputs):
                raise InputError(f"query '{name}': it has worked before, but {checkpoint} is gone; {afresh}")
            return
        if before is not None and before.query not in (None, known.query):
            raise InputError(
                f"query '{name}': {checkpoint} is not the one that {self.log(output).root} was written with; "
                f"{afresh}"
            )
        if before is not None and before.epoch > known.epoch + 1:
            raise InputError(
                f"query '{name}': {checkpoint} is at micro-batch {known.epoch}, older than what it has "
                f"published: {before.epoch} is in {self.log(output).root}; {afresh}"
            )
        for stream in inputs:
            last, first = self.log(stream).last(), self.log(stream).first()
            reached = known.reached.get(stream, 0)
            if first is not None and reached < first:
                raise InputError(
                    f"query '{name}': {checkpoint} is older than stream '{stream}': it goes on with batch "
                    f"{reached}, and those before {first} were read and are gone; {afresh}"
                )
            if reached > (0 if last is None else last.number + 1):
                raise InputError(
                    f"query '{name}': it has taken more of stream '{stream}' than there is in "
                    f"{self.log(stream).root}; {afresh}"
                )

    def _start_source(self, name: str) -> None:
        """What Spark reads goes into the source's log, from which it is dealt to any number of replicas."""
        try:
            frame = self.app.readers[name](self.spark)
            self._schemas[name] = frame.schema.json()
        except Exception as problem:  # whatever a user's function raises
            raise InputError(f"source '{name}': its reader failed: {in_one_line(problem)}") from problem
        checkpoint = self.checkpoint(name)
        self.queries[name] = (
            frame.mapInArrow(exit_tap(str(self.log(name).root / "data")), REPORT_SCHEMA)
            .writeStream.queryName(name)
            .foreachBatch(lambda batch, epoch: self._take_in(name, batch, epoch))
            .option("checkpointLocation", str(checkpoint))
            .trigger(processingTime=f"{self.trigger_s} seconds")
            .start()
        )

    def _take_in(self, source: str, batch: "DataFrame", epoch: int) -> None:
        """Tuples came evenly from the time the batch before began until this one did."""
        tasks = [report_of(row) for row in batch.collect()]
        files = [LogFile(name=task.file, tuples=task.tuples) for task in tasks if task.tuples]
        began, before = began_s(self.checkpoint(source), epoch), self._took_in.get(source)
        # After a trigger without data, nothing has been waiting for longer than that.
        idle = before is None or began - before.ended_s > 2 * self.trigger_s
        since_s = began - self.trigger_s if before is None or idle else before.began_s
        log, mine = self.log(source), taken(self.checkpoint(source), epoch)
        if not files:
            log.has(epoch, mine)  # raises where it is not the micro-batch that was published
        else:
            origins = evenly(sum(file.tuples for file in files), since_s, began)
            log.publish(epoch=epoch, files=files, published_at_s=time.time(), origins=origins, taken=mine)
        self._took_in[source] = _TakenIn(began, time.time())

    def _start_chains(self, query: Query) -> None:
        first = query.chains[0]
        # As a driver that was killed may have left it.
        self._change_intake(first.name, lambda intake: replace(intake, held=False))
        for chain in query.chains:  # words of a batch that was cut short
            forget_words(self._entry(chain.name))
            forget_words(self._inner(chain.name))
        frames = [self._read(first, stream) for stream in first.inputs]
        result = self._in_stream(query, frames)
        # A query takes the number of its state's partitions from here when it first starts.
        most = next((chain.max_replicas for chain in query.chains if chain.stateful), first.max_replicas)
        self.spark.conf.set("spark.sql.shuffle.partitions", str(state_partitions(most)))
        self.queries[query.name] = (
            result.writeStream.queryName(query.name)
            .outputMode(query.output_mode)
            .foreachBatch(lambda batch, epoch: self._process(query, batch, epoch))
            .option("checkpointLocation", str(self.checkpoint(query.name)))
            .trigger(processingTime=f"{self.trigger_s} seconds")
            .start()
        )

    def _in_stream(self, query: Query, frames: "list[DataFrame]") -> "DataFrame":
        """The chains up to the one with state, and the schemas of what all of them give."""
        streamed, later = query.chains[: query.in_stream], query.chains[query.in_stream :]
        for chain in streamed:
            if chain is not streamed[0] and not chain.operators[0].stateful:
                frames = [frame.repartition(chain.max_replicas) for frame in frames]
            shuffled = chain is not streamed[0] and chain.operators[0].stateful
            result = self._transformed(chain, frames, self._entry(chain.name), shuffled=shuffled)
            self._schemas[chain.output] = result.schema.json()
            frames = [self._ended(query, chain, result)]
            _check_stages(chain, frames[0])
        for chain in later:
            (stream,) = chain.inputs
            empty = self.spark.createDataFrame([], schema_of(self._schemas[stream]))
            result = self._transformed(chain, [empty], self._entry(chain.name))
            self._schemas[chain.output] = result.schema.json()
            _check_stages(chain, self._ended(query, chain, result))
        (ended,) = frames
        return ended

    def _ended(self, query: Query, chain: Chain, result: "DataFrame") -> "DataFrame":
        """Bound to the chain's executors by the tap at its end: that of the query, or one before the next."""
        where = self.profiles[chain.name]
        if chain is query.chains[-1]:
            tap = exit_tap(str(self.log(query.output).root / "data"))
            return result.mapInArrow(tap, REPORT_SCHEMA, profile=where)
        tap = inner_tap(str(self._inner(chain.name)), str(self._sample(chain.output)))
        return result.mapInArrow(tap, result.schema, profile=where)

    def rest_chain(self, name: str, *, within_s: float) -> None:
        """Stop a query between two batches."""
        if name in self.queries:
            self._change_intake(name, lambda intake: replace(intake, held=True))
            try:
                self._wait_for_rest(name, time.monotonic() + within_s)
            except TimeoutError:
                self.let_go(name)
                raise
            self.stop_chain(name)

    def let_go(self, name: str) -> None:
        """End the hold of a query that was to come to rest."""
        self._change_intake(name, lambda intake: replace(intake, held=False))

    def stop_chain(self, name: str) -> None:
        """Stop a query at once; a batch that is under way is done again at the next start."""
        query = self.queries.pop(name, None)
        if query is not None:
            query.stop()

    def stop(self) -> None:
        for name in list(self.queries):
            self.stop_chain(name)

    def failed(self) -> dict[str, str]:
        """Queries that ended by themselves, and why."""
        return {
            name: in_one_line(query.exception() or "it ended by itself")
            for name, query in list(self.queries.items())  # actuator threads stop and start others meanwhile
            if not query.isActive
        }

    def done(self) -> bool:
        """Whether a finite input has been read, processed and published to the very end: by all queries,
        and no window is left to be closed by a micro-batch without data."""
        return all(self._is_done(query) for query in self.plan.values())

    def _is_done(self, query: Query) -> bool:
        running = self.queries.get(query.name)
        if running is None or not running.isActive:  # to be started again: it may have more to do
            self._quiet.pop(query.name, None)
            return False
        checkpoint, last = self.checkpoint(query.name), self.log(query.output).last()
        known = progress(checkpoint)
        if last is None or not last.final or known is None or not at_rest(checkpoint):
            return False
        if not all(self._ends(stream, known.reached.get(stream, 0)) for stream in query.inputs):
            return False
        if not windows_to_close(checkpoint):
            return True
        # One that keeps no windows has none to close, and Spark runs nothing more.
        quiet = self._quiet.get(query.name)
        if quiet is None or quiet.epoch != known.epoch:
            quiet = self._quiet[query.name] = _Quiet(known.epoch, time.monotonic())
        return time.monotonic() - quiet.since_s > _CLOSING_S + _CLOSING_TRIGGERS * self.trigger_s

    def _sampled(self, stream: str, place: Path) -> Sample:
        """A few tuples of a stream, from inside a query or from its log."""
        sample: Path | None = self._sample(stream)
        if not self._sample(stream).exists():
            log = self.log(stream)
            sample = log.sampled(place / f"{stream}.parquet", tuples=_TRIED) if log.root.exists() else None
        if sample is None:
            raise LookupError(f"stream '{stream}' is empty")
        return sample, self._schemas[stream]

    @property
    def _samples(self) -> Path:
        return self.work / "samples"

    def _sample(self, stream: str) -> Path:
        return self._samples / f"{stream}.parquet"

    def _inner(self, chain: str) -> Path:
        return self.work / "inner" / chain

    def _check_plan(self) -> None:
        """What was begun in one way cannot be continued in another: checkpoints and logs are others."""
        file, now = self.work / "queries.json", sorted(self.plan)
        if not file.exists():
            write_whole(file, json.dumps(now))
            return
        try:
            then = list(map(str, json.loads(file.read_text(encoding="utf-8"))))
        except (OSError, ValueError, TypeError) as problem:
            raise InputError(f"{file}: cannot read the queries of the run: {problem}") from problem
        if then != now:
            raise InputError(
                f"{self.work.parent}: the run there has the queries {', '.join(then)}, "
                f"not {', '.join(now)}; continue with those, or give another folder"
            )

    def _entry(self, chain: str) -> Path:
        return self.work / "entries" / chain

    def _intake(self, chain: str) -> Path:
        return self.work / "intake" / f"{chain}.json"

    def _change_intake(self, chain: str, changed: Callable[[Intake], Intake]) -> None:
        with self._intake_lock:  # parts are changed by the control loop, holds by the actuator's threads
            intake = changed(intake_in(self._intake(chain)))
            write_whole(self._intake(chain), json.dumps(asdict(intake)))

    def _wait_for_rest(self, name: str, deadline_s: float) -> None:
        """Until every micro-batch that was begun is committed; a batch cut short blocks its state."""
        query = self.queries[name]
        while query.isActive and not (at_rest(self.checkpoint(name)) and not query.status["isTriggerActive"]):
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"query '{name}' is still in the middle of a batch")
            time.sleep(0.1)

    def _read(self, chain: Chain, stream: str) -> "DataFrame":
        return self._frame(
            self.spark, self.log(stream), chain, self._schemas[stream], self._intake(chain.name)
        )

    @staticmethod
    def _frame(spark: "SparkSession", log: StreamLog, chain: Chain, schema: str, intake: Path) -> "DataFrame":
        return (
            spark.readStream.format(FORMAT)
            .option("path", str(log.root))
            .option("consumer", chain.name)
            .option("schema", schema)
            .option("intake", str(intake))
            .load()
        )

    def _transformed(
        self, chain: Chain, frames: "list[DataFrame]", words: Path, *, shuffled: bool = False
    ) -> "DataFrame":
        """`shuffled` says that the stage before its first operator belongs to the chain before it."""
        for operator in chain.operators:
            if operator.stateful and not (shuffled and operator is chain.operators[0]):
                # It shuffles: the stage before needs a tap of its own to run in the right place.
                tap, where = entry_tap(str(words)), self.profiles[chain.name]
                frames = [frame.mapInArrow(tap, frame.schema, profile=where) for frame in frames]
            frames = [operator.transform(*frames)]
        (result,) = frames
        return result

    def _process(self, query: Query, batch: "DataFrame", epoch: int) -> None:
        for chain in query.chains[query.in_stream :]:
            dealt = batch.repartition(self._parts.get(chain.name, 1))
            result = self._transformed(chain, [dealt], self._entry(chain.name))
            batch = self._ended(query, chain, result)
        last = tuple(report_of(row) for row in batch.collect())
        tasks = {chain.name: inner_tasks(self._inner(chain.name)) for chain in query.chains[:-1]}
        self._publish(query, {**tasks, query.chains[-1].name: last}, epoch)

    def _publish(self, query: Query, tasks: Mapping[str, tuple[TaskReport, ...]], epoch: int) -> None:
        ranges = consumed(self.checkpoint(query.name), epoch)
        inputs = [
            batch for stream, (start, end) in ranges.items() for batch in self.log(stream).batches(start, end)
        ]
        log = self.log(query.output)
        files = [
            LogFile(name=task.file, tuples=task.tuples)
            for task in tasks[query.chains[-1].name]
            if task.tuples
        ]
        reached = {stream: end for stream, (_, end) in ranges.items()}
        final = all(self._ends(stream, reached.get(stream, 0)) for stream in query.inputs)
        now = time.time()
        origins = _merged(inputs)
        published = None
        mine = taken(self.checkpoint(query.name), epoch)
        # Whatever came of it: one that is not the micro-batch that was published must not pass for it.
        is_known = log.has(epoch, mine)
        if files and query.output in self.app.writers and not is_known:
            self._write(query.output, files, epoch)
        if files or final:
            published = log.publish(
                epoch=epoch, files=files, published_at_s=now, origins=origins, final=final, taken=mine
            )
            if published is None:
                origins = ()
        tuples_in = sum(one.tuples for one in inputs)
        began, stages = self._began_s(query, epoch, now), []
        for chain in query.chains:
            before, ended = entries(self._entry(chain.name)), tasks[chain.name]
            by = {one.executor for one in before} | {one.executor for one in ended}
            self._served[chain.name].update(dict.fromkeys(by))
            forget_oldest(self._served[chain.name])
            stages += [stage for stage in (before, ended) if stage]
            tuples_out = sum(task.tuples for task in ended)
            self.measurements.add(
                BatchReport(
                    chain=chain.name,
                    epoch=epoch,
                    began_s=began,
                    ended_s=now,
                    tuples_in=tuples_in,
                    tuples_out=tuples_out,
                    waited=tuple((one.published_at_s, one.tuples) for one in inputs),
                    reached=reached,
                    tasks=ended,
                    entries=before,
                    finished=origins if chain is query.chains[-1] else (),
                )
            )
            tuples_in = tuples_out
        self._limit(query, stages, sum(one.tuples for one in inputs), now - began, gave=tuples_in)
        if published is not None and query.output in self.app.writers:
            log.passed(WRITER, published.number + 1)
        if epoch and epoch % _SWEPT_EVERY == 0:
            log.sweep(upto=epoch - _SWEPT_BEHIND)
        with self._clean_lock:  # several chains may read the same stream
            if query.output in self._kept:
                self._kept[query.output].keep()
            for stream in (*query.inputs, query.output):
                self.log(stream).clean()

    def _began_s(self, query: Query, epoch: int, now_s: float) -> float:
        """As Spark says, unless a clock was set meanwhile: not before the micro-batch before it had ended."""
        ended_s = time.monotonic()
        longest_s = ended_s - self._ended_s.get(query.name, self._since_s)
        self._ended_s[query.name] = ended_s
        said_s = began_s(self.checkpoint(query.name), epoch)
        return said_s if 0 <= now_s - said_s <= longest_s + _ROUNDED_S else now_s - longest_s

    def _limit(
        self,
        query: Query,
        stages: Sequence[Sequence[EntryReport | TaskReport]],
        tuples: int,
        took_s: float,
        *,
        gave: int,
    ) -> None:
        """How much the next micro-batches take at most, from how long this one worked, and how much it gave.

        Where much has to be worked off, one with all of it would keep everything behind it waiting, and
        replicas that come; many with little of it each would spend their time on beginning and ending.
        What a micro-batch gives comes to whoever is next all at once.
        """
        work_s = sum(busiest_s(stage) for stage in stages)
        fixed_s = max(took_s - work_s, 0.0)
        if not tuples or not work_s:
            return
        growing = any(chain.name in self._growing for chain in query.chains)
        share = _WHILE_GROWING if growing else _OF_OBJECTIVE
        most_s = max(share * self._objective_s, _OF_FIXED * fixed_s)
        first = query.chains[0].name
        shared = len({one.executor for one in stages[0]})
        each = max(round(tuples / shared * most_s / work_s), 1)
        known = intake_in(self._intake(first)).each  # also what an earlier driver left
        if work_s < fixed_s:
            # Too little to set a limit, but maybe one is the reason: after a hiccup it can be a single tuple,
            # and then no micro-batch would ever have enough to tell. So it is loosened, step by step.
            each = MOST_TUPLES if known is None else max(min(each, 2 * known), known)
        each = min(each, max(MOST_TUPLES * tuples // max(gave, tuples), 1))
        if abs(each - (known or MOST_TUPLES)) > _ANOTHER * (known or MOST_TUPLES):
            self._change_intake(first, lambda intake: replace(intake, each=each))

    def _write(self, stream: str, files: Sequence[LogFile], epoch: int) -> None:
        paths = [str(self.log(stream).data_file(file.name)) for file in files]
        results = self.spark.read.schema(schema_of(self._schemas[stream])).parquet(*paths)
        for writer in self.app.writers[stream]:
            writer(results, epoch)

    def _ends(self, stream: str, reached: int) -> bool:
        """Whether a finite stream has been read to its end."""
        last = self.log(stream).last()
        return last is not None and last.final and reached > last.number


def _check_stages(chain: Chain, ended: "DataFrame") -> None:
    """Every stage has to be one that runs on the chain's executors and is measured."""
    unseen = unseen_stage(plan_of(ended))
    if unseen is None:
        return
    if not chain.stateful:
        raise InputError(
            f"operator '{chain.name}': it shuffles ('{_short(unseen)}') and is not declared to; "
            "give it stateful=True, or leave the shuffle out"
        )
    raise InputError(
        f"operator '{chain.name}': Spark shuffles in it more than once ('{_short(unseen)}'), and what is in "
        "between can be neither placed nor measured; make it one operator for every shuffle"
    )


def _short(node: str) -> str:
    return textwrap.shorten(node, 80, placeholder=" ...")


def busiest_s(stage: Sequence[EntryReport | TaskReport]) -> float:
    """How long the executor worked that had most of a stage."""
    busy: dict[str, float] = {}
    for one in stage:
        busy[one.executor] = busy.get(one.executor, 0.0) + one.busy_s
    return max(busy.values(), default=0.0)


def evenly(tuples: int, first_s: float, last_s: float) -> Origins:
    """Tuples that came over this time, in a few groups."""
    groups = min(tuples, _GROUPS)
    edges = [tuples * group // groups for group in range(groups + 1)]
    step_s = (last_s - first_s) / groups
    return tuple(
        (first_s + (group + 0.5) * step_s, end - begin) for group, (begin, end) in enumerate(pairwise(edges))
    )


def _merged(batches: list[Batch]) -> Origins:
    together: dict[float, int] = {}
    for batch in batches:
        for entered_s, tuples in batch.origins:
            together[entered_s] = together.get(entered_s, 0) + tuples
    return tuple(sorted(together.items()))
