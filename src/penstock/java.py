"""Java and Spark's own programs: what to start them with, and a clear word when that is not possible."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from penstock.domain.errors import InputError
from penstock.java_errors import in_one_line

OLDEST_JAVA = 17
_NO_TRACES = "-XX:-UsePerfData"  # in a folder with a known name, among those for temporary files


def spark_home() -> Path:
    """The Spark that came with pyspark."""
    import pyspark

    return Path(pyspark.__file__).parent


@lru_cache(maxsize=1)
def java() -> Path:
    """A Java that Spark can run on, or an error that says what to install."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    advice = "install one (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    if found is None or not Path(found).exists():
        raise InputError(f"no Java {OLDEST_JAVA} or newer{f' in JAVA_HOME={home}' if home else ''}; {advice}")
    said = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version.group(1)) < OLDEST_JAVA:
        known = version.group(1) if version else "an unknown version"
        raise InputError(f"{found} is Java {known}; Spark needs {OLDEST_JAVA} or newer; {advice}")
    return Path(found)


@lru_cache(maxsize=8)
def command(program: str) -> tuple[str, ...]:
    """The Java command line of one of Spark's programs, as Spark's own launcher puts it together."""
    jars = spark_home() / "jars" / "*"
    asked = subprocess.run(
        [str(java()), _NO_TRACES, "-cp", str(jars), "org.apache.spark.launcher.Main", program],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    # NUL-separated; an empty first line tells Windows from the rest.
    words = tuple(word for word in asked.stdout.replace("\n", "").split("\0") if word)
    if asked.returncode or not words:
        raise InputError(f"Spark's launcher does not start with {java()}: {in_one_line(asked.stderr)}")
    return words


@contextmanager
def standard_error_in(path: Path) -> Iterator[None]:
    """A Java process that starts here says its remarks into this file; what matters comes as an exception."""
    sys.stderr.flush()
    kept = os.dup(2)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(log, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(log)


def environment(**extra: str) -> dict[str, str]:
    """What Spark's programs, and the Python workers they start, need to find."""
    return {
        **os.environ,
        "SPARK_HOME": str(spark_home()),
        "SPARK_SCALA_VERSION": _scala_version(),
        "PYSPARK_PYTHON": sys.executable,
        # Masters and workers do little: a small heap and a quick start.
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_LAUNCHER_OPTS": os.environ.get("SPARK_LAUNCHER_OPTS", _NO_TRACES),
        **extra,
    }


@lru_cache(maxsize=1)
def _scala_version() -> str:
    """Spark's launcher wants to be told which Scala its own jars are for."""
    core = next((spark_home() / "jars").glob("spark-core_*.jar"), None)
    if core is None:
        raise InputError(f"{spark_home()}: no Spark in it; install pyspark")
    return core.name.removeprefix("spark-core_").partition("-")[0]
