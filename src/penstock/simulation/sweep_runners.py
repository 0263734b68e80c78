"""Where the cells of a sweep run: Spark's executors, or processes of this machine."""

import multiprocessing
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed

from pyspark.sql import SparkSession

from penstock.java_errors import in_one_line
from penstock.policy.registry import load_any
from penstock.simulation.sweep import Chunk, FailedCell, FinishedCell, Runner, SweptTrace, run_chunk

Results = Sequence[FinishedCell | FailedCell]


def on_spark(spark: SparkSession, workloads: Mapping[str, SweptTrace], *, own: Sequence[str] = ()) -> Runner:
    """One Spark job per chunk, as many at a time as there are cores, so that each can be saved when it ends.

    `own` policies (`module:Class`) are loaded where cells run; a module of one file is sent along.
    """
    context = spark.sparkContext
    for name in own:
        file = getattr(sys.modules.get(name.partition(":")[0]), "__file__", None)
        if "." not in name.partition(":")[0] and file is not None and not file.endswith("__init__.py"):
            context.addPyFile(file)
    policies = tuple(own)
    shared = context.broadcast(dict(workloads))

    def one(chunk: Chunk) -> Results:
        try:
            task = context.parallelize([list(chunk)], 1)
            return task.flatMap(lambda cells: run_chunk(cells, shared.value, policies)).collect()
        except Exception as problem:  # an executor lost for good: its cells failed, the others continue
            return [FailedCell(cell=cell, error=in_one_line(problem)) for cell in chunk]

    def run(chunks: Sequence[Chunk]) -> Iterator[Results]:
        pool = ThreadPoolExecutor(max_workers=context.defaultParallelism)
        try:
            yield from _as_they_end([pool.submit(one, chunk) for chunk in chunks])
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            context.cancelAllJobs()

    return run


def in_processes(workloads: Mapping[str, SweptTrace], *, workers: int, own: Sequence[str] = ()) -> Runner:
    """The simple way, without Spark: the baseline for a sweep on Spark."""

    def run(chunks: Sequence[Chunk]) -> Iterator[Results]:
        context = multiprocessing.get_context("spawn")
        known = (dict(workloads), tuple(own), list(sys.path))
        with ProcessPoolExecutor(workers, context, _remember, known) as pool:
            yield from _as_they_end([pool.submit(_with_remembered, chunk) for chunk in chunks])

    return run


def _as_they_end(running: Sequence[Future[Results]]) -> Iterator[Results]:
    for ended in as_completed(running):
        yield ended.result()


_remembered: dict[str, SweptTrace] = {}


def _remember(workloads: dict[str, SweptTrace], own: tuple[str, ...], path: list[str]) -> None:
    sys.path[:] = path  # a user's own module is found where it was found before
    for name in own:
        load_any(name)
    _remembered.update(workloads)


def _with_remembered(chunk: Chunk) -> Results:
    return run_chunk(chunk, _remembered)
