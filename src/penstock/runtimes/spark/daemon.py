"""Forks Spark's Python workers on a node, with everything loaded that they would load one by one.

Spark starts it by name (`spark.python.daemon.module`). A new replica runs several Python workers
at once, and each would take most of a second for the same libraries. Where a zygote runs, the daemon
itself is a fork of it.
"""

import gc
import os
import random
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from penstock.runtimes.spark.zygote import let_fork, serve

DAEMON = "penstock.runtimes.spark.daemon"
EXECUTOR_VARIABLE = "PENSTOCK_EXECUTOR"
MODULES_VARIABLE = "PENSTOCK_MODULES"  # of the application's operators, separated by spaces
GET_READY = "get_ready"  # a function of theirs that loads what they would load at their first task
ZYGOTE_VARIABLE = "PENSTOCK_ZYGOTE"  # where one listens
ZYGOTE = "--zygote"  # be one, and listen at the place named next
_DRIVER = "driver"  # on a local master
_NEEDED = (
    "pyarrow.parquet",
    "pandas",
    "pyspark.sql.pandas.serializers",
    "pyspark.worker",
    "penstock.runtimes.spark.log_source",
)


def main() -> None:
    if sys.argv[1:2] == [ZYGOTE]:
        _load()
        serve(Path(sys.argv[2]), _manage_anew)
    os.environ[EXECUTOR_VARIABLE] = os.environ.get("SPARK_EXECUTOR_ID") or _id_in(_parent_command())
    zygote = os.environ.get(ZYGOTE_VARIABLE)
    if zygote is None or not let_fork(Path(zygote)):
        _prefer_installed_pyspark()
        _load()
        _manage()


def _load() -> None:
    for module in _NEEDED:
        import_module(module)
    for module in os.environ.get(MODULES_VARIABLE, "").split():
        with suppress(Exception):  # whatever it raises, it raises again where it is needed
            loaded = import_module(module)
            if callable(get_ready := getattr(loaded, GET_READY, None)):
                get_ready()
    gc.freeze()  # PySpark collects garbage after every task: 50 ms with these libraries, 1 without


def _manage() -> None:
    from pyspark.daemon import manager

    manager()


def _manage_anew() -> None:
    """In a fork: else every replica would draw the same random numbers."""
    random.seed()
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed()
    _manage()


def _prefer_installed_pyspark() -> None:
    """Spark puts a zip with the sources of PySpark first, and Python compiles them at every start."""
    zipped = [place for place in sys.path if place.endswith("pyspark.zip")]
    installed = any((Path(place) / "pyspark" / "daemon.py").exists() for place in sys.path)
    if installed:
        sys.path[:] = [place for place in sys.path if place not in zipped]


def executor_id() -> str:
    """The executor whose tasks this process works for."""
    return os.environ.get(EXECUTOR_VARIABLE, _DRIVER)


def _id_in(command: list[str]) -> str:
    """From the command line of the executor."""
    flag = "--executor-id"
    return command[command.index(flag) + 1] if flag in command[:-1] else _DRIVER


def _parent_command() -> list[str]:
    try:
        return Path(f"/proc/{os.getppid()}/cmdline").read_text().split("\0")
    except OSError:
        return []


if __name__ == "__main__":
    main()
