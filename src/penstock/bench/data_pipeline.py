"""The data pipeline and the sweep, measured against pandas and a process pool in the same run."""

import multiprocessing
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas

from penstock.bench.figure import Figure
from penstock.control.spec import Manager
from penstock.data.build import Recipe, build_trace
from penstock.data.sources import KINDS, write_lines
from penstock.data.spark_session import spark_session
from penstock.data.synthetic_events import trip_lines
from penstock.data.synthetic_taxi import taxi_rates
from penstock.data.synthetic_tweets import tweet_rates
from penstock.domain.trace import Trace
from penstock.simulation.presets import WORKLOADS
from penstock.simulation.spec import OneOperator
from penstock.simulation.sweep import Cell, Runner, SweptTrace, grid, read_table, sweep
from penstock.simulation.sweep_runners import in_processes, on_spark
from penstock.simulation.truth import TRAINING_SLOTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STAGES = 6
_MILLIONS = 10
_COMPARED = 5  # millions of rows
_REPEATS = 3
_POLICIES = ("threshold-c", "threshold-s", "ql", "ql-pds", "ql-pds-plus", "ql-fa")
_PLACES = ("A:3", "A:6", "A:10", "B:3", "B:6", "B:10")


def run_data_benchmarks(*, stage: Callable[[str], None]) -> Iterator[Figure]:
    """Measure everything; this makes two gigabytes of trips and removes them again."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as place:
        stage(f"making {_MILLIONS} million trips")
        with spark_session() as spark:
            write_lines(trip_lines(spark, rows=_MILLIONS * 1_000_000, seed=1), Path(place) / "trips")
        files = sorted((Path(place) / "trips").glob("part-*"))
        stage(f"{_COMPARED} million trips to a trace, pandas and Spark")
        yield from _against_pandas(files[:_COMPARED])
        stage("time and memory as rows are added")
        yield from _as_rows_are_added(files)
        stage("Tables 2-5, compiling")
        yield from _sweeps(Path(place), stage)


def _against_pandas(files: Sequence[Path]) -> Iterator[Figure]:
    """They take turns, and the best turn of each counts: others use this machine too."""
    plain, ours = [], []
    with spark_session() as spark:
        for _ in range(_REPEATS):
            began = time.perf_counter()
            slots = _pandas_trace(files)
            plain.append(time.perf_counter() - began)
            began = time.perf_counter()
            built = build_trace(spark, KINDS["debs2015"], [str(f) for f in files], Recipe(), name="trips")
            ours.append(time.perf_counter() - began)
            if (built.rows, built.trace.rates.size) != (int(slots.sum()), slots.size):
                raise AssertionError("pandas and Spark disagree")
    yield Figure(name=f"{_COMPARED} M trips to a trace, pandas", value=min(plain), unit="s")
    yield Figure(name=f"{_COMPARED} M trips to a trace, Spark", value=min(ours), unit="s")
    yield Figure(name="Spark over pandas", value=min(ours) / min(plain), unit="x", at_most=1.5)


def _pandas_trace(files: Sequence[Path]) -> pandas.Series:
    """The same job: the one column that is needed, its dates parsed, counted by the minute."""
    times = [
        pandas.read_csv(file, header=None, usecols=[3], parse_dates=[0], date_format="%Y-%m-%d %H:%M:%S")[3]
        for file in files
    ]
    return pandas.concat(times).dt.floor("min").value_counts().sort_index()


def _as_rows_are_added(files: Sequence[Path]) -> Iterator[Figure]:
    """Time in one warm session, so that starting and compiling do not count; memory in fresh ones."""
    volumes = (1, _COMPARED, _MILLIONS)
    seconds: dict[int, float] = {}
    with spark_session() as spark:
        for _ in range(_REPEATS):
            for millions in volumes:
                took = _timed_build(spark, [str(file) for file in files[:millions]])
                seconds[millions] = min(took, seconds.get(millions, took))
    gigabytes = {}
    for millions in volumes:
        # In a separate process, so that its peak memory is this run's alone.
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            gigabytes[millions] = pool.apply(_peak_of_build, ([str(file) for file in files[:millions]],))
        yield Figure(name=f"{millions} M trips", value=seconds[millions], unit="s")
        yield Figure(
            name=f"{millions} M trips, peak memory of driver and executors",
            value=gigabytes[millions],
            unit="GB",
        )
    first, half, all_rows = (seconds[millions] for millions in volumes)
    per_row = (all_rows - half) / (_MILLIONS - _COMPARED) / ((half - first) / (_COMPARED - 1))
    yield Figure(name="time per further row, 5-10 M over 1-5 M", value=per_row, unit="x", at_most=1.25)
    most = gigabytes[_MILLIONS] / gigabytes[1]
    yield Figure(name="peak memory, 10 M over 1 M", value=most, unit="x", at_most=1.25)


def _timed_build(spark: "SparkSession", files: list[str]) -> float:
    began = time.perf_counter()
    build_trace(spark, KINDS["debs2015"], files, Recipe(), name="trips")
    return time.perf_counter() - began


def _peak_of_build(files: list[str]) -> float:
    peak = _PeakMemory()
    with spark_session() as spark, peak:
        _timed_build(spark, files)
    return peak.gigabytes


class _PeakMemory:
    """The most memory that this process and its descendants, Java included, held in any sample."""

    def __init__(self) -> None:
        self._most = 0
        self._stop = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    @property
    def gigabytes(self) -> float:
        return self._most / 2**30

    def __enter__(self) -> None:
        self._watch.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._watch.join()

    def _look(self) -> None:
        while not self._stop.wait(0.1):
            self._most = max(self._most, sum(_resident(process) for process in _family(os.getpid())))


def _family(process: int) -> Iterator[int]:
    yield process
    try:
        children = [
            child
            for task in Path(f"/proc/{process}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:
        return  # it has just ended
    for child in children:
        yield from _family(int(child))


def _resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _sweeps(place: Path, stage: Callable[[str], None]) -> Iterator[Figure]:
    """The tabular part of Tables 2-5 of Russo 2023, on synthetic traces as long as the published ones."""
    workers = os.cpu_count() or 1
    cells, workloads = tables_2_to_5()
    few_slots = {digest: _shortened(workload) for digest, workload in workloads.items()}
    seed_1 = [cell for cell in cells if cell.spec.seed == 1]
    sweep(seed_1, in_processes(few_slots, workers=workers), place / "compiled")
    stage("Tables 2-5 in processes")
    plain = _timed(cells, in_processes(workloads, workers=workers), place / "processes")
    stage("Tables 2-5 on Spark")
    with spark_session() as spark:
        ours = _timed(cells, on_spark(spark, workloads), place / "spark")
    yield Figure(name=f"Tables 2-5, {len(cells)} cells, process pool", value=plain, unit="s")
    yield Figure(name=f"Tables 2-5, {len(cells)} cells, Spark", value=ours, unit="s")
    yield Figure(name="sweep on Spark over process pool", value=ours / plain, unit="x", at_most=1.3)
    same = _digits(place / "processes") == _digits(place / "spark")
    yield Figure(
        name="cells with the same digits", value=len(cells) if same else 0, unit="", at_least=len(cells)
    )


def tables_2_to_5() -> tuple[list[Cell], dict[str, SweptTrace]]:
    """24 settings, six policies, ten seeds where a policy is random."""
    made = (("taxi", taxi_rates(slots=400_001, seed=1)), ("tweets", tweet_rates(slots=242_960, seed=1)))
    cells: list[Cell] = []
    workloads: dict[str, SweptTrace] = {}
    for name, trace in made:
        workload = _workload(trace)
        settings = WORKLOADS[name]
        base = OneOperator(
            operator_policy=Manager("fixed"),
            service_rate=settings.service_rate,
            max_rate=settings.max_rate,
            as_published=True,
        )
        workloads[workload.digest] = workload
        cells += grid(
            base,
            workload,
            policies=[Manager(name=name) for name in _POLICIES],
            infrastructures=_PLACES,
            max_replicas=(10, 20),
            seeds=10,
        )
    return cells, workloads


def _workload(trace: Trace) -> SweptTrace:
    return SweptTrace(trace=trace.name, rates=trace.rates, training=trace.rates[-TRAINING_SLOTS:])


def _shortened(workload: SweptTrace) -> SweptTrace:
    return replace(workload, rates=workload.rates[:10])


def _timed(cells: Sequence[Cell], run: Runner, out: Path) -> float:
    began = time.perf_counter()
    failed = sweep(cells, run, out)
    if failed:
        raise RuntimeError(f"{len(failed)} cells failed, the first with {failed[0].error}")
    return time.perf_counter() - began


def _digits(table: Path) -> dict[str, tuple[float, ...]]:
    """What every cell measured, to the last digit, but for the time it took."""
    return {
        row["cell"]: (
            row["avg_cost"],
            row["violations_pct"],
            row["reconfigurations_pct"],
            row["resource_cost"],
        )
        for row in read_table(table).to_pylist()
    }
