"""Where the cells of a sweep run: Spark's executors, or processes of this machine."""

import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed

from pyspark.sql import SparkSession

from penstock.java_errors import in_one_line
from penstock.simulate.sweep import Chunk, FailedCell, FinishedCell, Runner, SweptTrace, run_chunk

Results = Sequence[FinishedCell | FailedCell]


def on_spark(spark: SparkSession, workloads: Mapping[str, SweptTrace]) -> Runner:
    """A Spark job per chunk, as many at a time as there are cores, so that each can be kept when it ends."""
    context = spark.sparkContext
    shared = context.broadcast(dict(workloads))

    def one(chunk: Chunk) -> Results:
        try:
            task = context.parallelize([list(chunk)], 1)
            return task.flatMap(lambda cells: run_chunk(cells, shared.value)).collect()
        except Exception as problem:  # an executor lost for good: its cells failed, the others go on
            return [FailedCell(cell=cell, error=in_one_line(problem)) for cell in chunk]

    def run(chunks: Sequence[Chunk]) -> Iterator[Results]:
        pool = ThreadPoolExecutor(max_workers=context.defaultParallelism)
        try:
            yield from _as_they_end([pool.submit(one, chunk) for chunk in chunks])
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            context.cancelAllJobs()

    return run


def in_processes(workloads: Mapping[str, SweptTrace], *, workers: int) -> Runner:
    """The plain way, without Spark: what a sweep on Spark is measured against."""

    def run(chunks: Sequence[Chunk]) -> Iterator[Results]:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, context, _remember, (dict(workloads),)) as pool:
            yield from _as_they_end([pool.submit(_with_remembered, chunk) for chunk in chunks])

    return run


def _as_they_end(running: Sequence[Future[Results]]) -> Iterator[Results]:
    for ended in as_completed(running):
        yield ended.result()


_remembered: dict[str, SweptTrace] = {}


def _remember(workloads: dict[str, SweptTrace]) -> None:
    _remembered.update(workloads)


def _with_remembered(chunk: Chunk) -> Results:
    return run_chunk(chunk, _remembered)
