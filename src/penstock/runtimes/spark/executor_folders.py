"""What executors leave on a worker: a folder each, with its output. One comes with every change."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

_KEPT = 20  # the latest, of all applications of a worker: what they said may be wanted


def remove_left_by_executors(workers: Path, *, group: int) -> None:
    """Of every worker there, folders in which no process of this group works, but for the latest."""
    lived_in = _working_folders(group)
    for worker in workers.iterdir() if workers.exists() else ():
        left = [path for path in worker.glob("app-*/[0-9]*") if path not in lived_in]
        left.sort(key=lambda path: (path.parent.name, int(path.name)))
        for path in left[:-_KEPT]:
            shutil.rmtree(path, ignore_errors=True)


def _working_folders(group: int) -> set[Path]:
    found = set[Path]()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it has ended
            if os.getpgid(int(name)) == group:
                found.add(Path(os.readlink(f"/proc/{name}/cwd")))
    return found
