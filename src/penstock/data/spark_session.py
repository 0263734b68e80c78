"""Getting a Spark session, and input errors out of what it cannot do."""

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.domain.errors import InputError
from penstock.java import java, standard_error_in
from penstock.java_errors import in_one_line


@contextmanager
def spark_session(
    master: str | None = None, *, cores: int | None = None, memory: str = "2g"
) -> Iterator[SparkSession]:
    """A session on local cores, all by default, or on the cluster `master` names; stopped at the end.

    Where one is running already, in a notebook for instance, it is used and left running.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    java()  # names a missing one
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL + 1)  # it logs what it raises
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers with our packages, not the system's
    if master is None:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # A folder of its own: in the one that all share, somebody else may have put a link under a known name.
    with tempfile.TemporaryDirectory(prefix="penstock-spark-", ignore_cleanup_errors=True) as place:
        session = _start(master or f"local[{cores or '*'}]", memory, Path(place) / "spark.log")
        try:
            yield session
        finally:
            session.stop()


def _start(master: str, memory: str, log: Path) -> SparkSession:
    builder = (
        SparkSession.builder.master(master)
        .appName("penstock")
        .config("spark.driver.memory", memory)
        .config("spark.driver.extraJavaOptions", "-Xss4m")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
    )
    try:
        # Java's remarks, two hundred lines for one bad path, go to a file while the session lasts;
        # what matters comes back as an exception.
        with standard_error_in(log):
            return builder.getOrCreate()
    except Exception as problem:
        raise InputError(f"--master '{master}': Spark did not start: {in_one_line(problem)}") from problem


@contextmanager
def spark_errors(what: str) -> Iterator[None]:
    """What Spark cannot do with the input, as one line about it."""
    try:
        yield
    except (PySparkException, Py4JError) as problem:
        raise InputError(f"{what}: {in_one_line(problem)}") from problem
