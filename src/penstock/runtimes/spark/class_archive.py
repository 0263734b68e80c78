"""An archive of the classes that executors load, made once per machine: half the time to start one.

Java calls it class-data sharing. An executor that has run a query of every sort we have writes down,
as it exits, all classes it has loaded; the executors after it map that file instead of reading,
checking and linking ten thousand classes. A file that does not fit (another Java, another Spark) is
ignored by Java, and has another name to begin with.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.java import java, spark_home

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.pandas._typing import DataFrameLike as Frame
    from pyspark.sql.streaming.state import GroupState

_MADE_WITHIN_S = 180.0
_WRITTEN_WITHIN_S = 60.0


def is_made() -> bool:
    """Whether there is one for this Java and this Spark."""
    return _file().exists()


def options() -> str:
    """Java's options for executors that use it; it is made if it is missing.

    None where that did not work: it costs seconds, nothing else.
    """
    file = _made()
    return "" if file is None else f"-XX:SharedArchiveFile={file} -Xshare:auto"


def _made() -> Path | None:
    file = _file()
    if file.exists():
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="penstock-classes-") as place:
        written = file.with_name(f"{file.name}.{os.getpid()}")
        command = [sys.executable, "-m", "penstock.runtimes.spark.class_archive", place, str(written)]
        try:
            subprocess.run(command, capture_output=True, timeout=_MADE_WITHIN_S, check=True)
            written.replace(file)
        except (OSError, subprocess.SubprocessError):
            written.unlink(missing_ok=True)
            return None
    return file


def _file() -> Path:
    """Named after all that it depends on."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    jars = sorted((one.name, one.stat().st_mtime_ns) for one in (spark_home() / "jars").glob("*.jar"))
    told = repr((str(java().resolve()), java().stat().st_mtime_ns, str(spark_home()), jars))
    return home / "penstock" / "classes" / f"{hashlib.sha256(told.encode()).hexdigest()[:16]}.jsa"


def _count(key: tuple[int], frames: "Iterator[Frame]", state: "GroupState") -> "Iterator[Frame]":
    import pandas as pd

    seen = sum(frame.shape[0] for frame in frames) + (state.get[0] if state.exists else 0)
    state.update((seen,))
    yield pd.DataFrame({"k": [key[0]], "n": [seen]})


def _collect(batch: "DataFrame", _: int) -> None:
    batch.collect()


def _write(work: Path, file: Path) -> None:
    """A cluster with one executor that writes its archive when it is sent away."""
    from penstock.runtimes.spark.allocation import Allocation
    from penstock.runtimes.spark.cluster import LocalCluster
    from penstock.runtimes.spark.executors import executors
    from penstock.runtimes.spark.session import profile, session

    with LocalCluster(work / "cluster") as cluster:
        spark = session(
            "classes",
            cluster.master_url,
            work=work,
            executor_options=f"-XX:ArchiveClassesAtExit={file}",
            private=cluster.private,
        )
        allocation, of_chain = Allocation(spark), profile()
        number = allocation.add(of_chain)
        allocation.ask(number, 1)
        _run_a_query(spark, work, of_chain)
        (executor,) = executors(spark)
        allocation.send_away(executor, number)
        deadline_s = time.monotonic() + _WRITTEN_WITHIN_S
        size = -1
        while not file.exists() or file.stat().st_size != size:  # until it grows no more
            if time.monotonic() > deadline_s:
                raise TimeoutError("the executor wrote no archive")
            size = file.stat().st_size if file.exists() else -1
            time.sleep(1)
        spark.stop()


def _run_a_query(spark: "SparkSession", work: Path, of_chain: "ResourceProfile") -> None:
    """With everything an operator's stages have: a source in Python, taps, a shuffle, state."""
    import pyarrow

    from penstock.runtimes.spark.feed import Feed
    from penstock.runtimes.spark.log_source import FORMAT
    from penstock.runtimes.spark.stream_log import StreamLog
    from penstock.runtimes.spark.taps import REPORT_SCHEMA, entry_tap, exit_tap

    for place in ("words", "results"):
        (work / place).mkdir(parents=True)
    log = StreamLog(work / "log").create()
    Feed(log).append(pyarrow.table({"k": list(range(20))}), entered_at_s=time.time())
    frame = (
        spark.readStream.format(FORMAT)
        .options(path=str(log.root), consumer="classes", schema="k long", intake=str(work / "intake.json"))
        .load()
    )
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    entered = frame.mapInArrow(entry_tap(str(work / "words")), "k long", profile=of_chain)
    counted = (
        entered.selectExpr("k % 4 AS k")
        .groupBy("k")
        .applyInPandasWithState(_count, "k long, n long", "n long", "append", "NoTimeout")
    )
    query = (
        counted.mapInArrow(exit_tap(str(work / "results")), REPORT_SCHEMA, profile=of_chain)
        .writeStream.foreachBatch(_collect)
        .option("checkpointLocation", str(work / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    _write(Path(sys.argv[1]), Path(sys.argv[2]))
