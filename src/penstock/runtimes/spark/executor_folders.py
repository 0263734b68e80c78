"""What executors leave on a worker, and workers in a run folder: a folder each, with what they said. One
comes with every change."""

import os
import shutil
from collections.abc import Container
from contextlib import suppress
from pathlib import Path

_KEPT = 20  # the latest, of all applications of a worker: what they said may be wanted


def remove_left_by_executors(workers: Path, *, group: int) -> None:
    """Of every worker there, folders in which no process of this group works, but for the latest."""
    lived_in, workers = _working_folders(group), workers.resolve()  # as the kernel has them
    for worker in workers.iterdir() if workers.exists() else ():
        left = [path for path in worker.glob("app-*/[0-9]*") if path not in lived_in]
        left.sort(key=lambda path: (path.parent.name, int(path.name)))
        for path in left[:-_KEPT]:
            shutil.rmtree(path, ignore_errors=True)


def remove_left_by_workers(workers: Path, logs: Path, *, there: Container[str]) -> None:
    """Folders and logs of those that are no more, but for the latest. One comes with every replica, where
    each has a worker of its own."""
    left = [path for path in (workers.iterdir() if workers.exists() else ()) if path.name not in there]
    left.sort(key=lambda path: path.stat().st_mtime)
    for path in left[:-_KEPT]:
        shutil.rmtree(path, ignore_errors=True)
        for log in logs.glob(f"{path.name}.*"):
            log.unlink(missing_ok=True)


def _working_folders(group: int) -> set[Path]:
    found = set[Path]()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it has ended
            if os.getpgid(int(name)) == group:
                found.add(Path(os.readlink(f"/proc/{name}/cwd")))
    return found
