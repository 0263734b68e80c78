"""Forks Spark's Python workers on a node, with everything loaded that they would load one by one.

Spark starts it by name (`spark.python.daemon.module`). A new replica runs several Python workers
at once, and each would take most of a second for the same libraries.
"""

import gc
from importlib import import_module

DAEMON = "penstock.runtimes.spark.daemon"
_NEEDED = (
    "pyarrow.parquet",
    "pandas",
    "pyspark.sql.pandas.serializers",
    "penstock.runtimes.spark.log_source",
)


def main() -> None:
    from pyspark.daemon import manager

    for module in _NEEDED:
        import_module(module)
    gc.freeze()  # PySpark collects garbage after every task: 50 ms with these libraries, 1 without
    manager()


if __name__ == "__main__":
    main()
