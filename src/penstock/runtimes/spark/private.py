"""What belongs to one run on the embedded cluster, and to nobody else on the machine: a secret and a folder.

Whatever has the secret may run code in the cluster. Command lines are for everyone on the machine to
read, so it is given in files of this user's alone, and from process to process. The folder is for what
would else be in the one for temporary files of all, sockets and libraries among them.
"""

import atexit
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

SECRET = "spark.authenticate.secret"
# Anybody on the machine can talk to Spark's pages: what is left to them is to look.
PAGES = {
    "spark.master.rest.enabled": "false",  # it takes applications from whoever submits them
    "spark.master.ui.decommission.allow.mode": "DENY",
    "spark.ui.killEnabled": "false",
}
# Of every task an executor would say ten lines: a gigabyte a week. That a worker has come is looked for.
_LOGGING = """rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex
logger.worker.name = org.apache.spark.deploy.worker.Worker
logger.worker.level = info
"""
_LOGGING_FILE = "log4j2.properties"
_LONGEST_TEMPORARY = (
    45  # characters: the path of a socket has 107 at most, and 43 are its name, as Spark has it
)


@dataclass(frozen=True, slots=True)
class Private:
    """Of one run."""

    folder: Path  # gone when the cluster has ended, however it did
    secret: str = field(repr=False)

    @property
    def settings(self) -> dict[str, str]:
        """Of every process of the cluster."""
        return {"spark.authenticate": "true", SECRET: self.secret, **PAGES}


def new_private() -> Private:
    return Private(temporary_folder(), secrets.token_hex(32))


def temporary_folder() -> Path:
    """A new one that nobody else can enter, with a path short enough for sockets."""
    usual = len(tempfile.gettempdir()) <= _LONGEST_TEMPORARY
    return Path(tempfile.mkdtemp(prefix="penstock-", dir=None if usual else "/tmp"))


@lru_cache(maxsize=1)
def folder_of_process() -> Path:
    """One for the driver's Java, of which a process has only one, for all its runs."""
    folder = temporary_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def java_options(folder: Path) -> tuple[str, ...]:
    """With which Java leaves nothing elsewhere: what it says of itself goes to a folder with a known name."""
    return f"-Djava.io.tmpdir={folder}", "-XX:-UsePerfData"


def write_logging(folder: Path) -> None:
    (folder / _LOGGING_FILE).write_text(_LOGGING)


def logging_option(folder: Path) -> str:
    """With which Java says what matters, and little else."""
    return f"-Dlog4j2.configurationFile={(folder / _LOGGING_FILE).as_uri()}"


def write_properties(path: Path, settings: Mapping[str, str]) -> Path:
    """For one of Spark's programs, and for this user alone to read."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.writelines(f"{key} {value}\n" for key, value in settings.items())
    return path
