"""The one door to numba: typed decorators, and a cache that never serves stale machine code.

numba notices when the file of a cached function changes, but not when a function it
calls from another file does. Our episode loop calls policies from many files, so the
cache lives in a directory named after the content of every compiled source file.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from numba.extending import overload

__all__ = [
    "Flags",
    "Floats",
    "Ints",
    "compiled",
    "compiled_allocating",
    "compiled_uncached",
    "frozen_floats",
    "frozen_ints",
    "is_ours",
    "overload",
    "read_only",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

F = TypeVar("F", bound=Callable[..., object])

_KEPT_CACHES = 4


def _sources_digest() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        source = path.read_bytes()
        if b"penstock.compiled" in source or path == Path(__file__):
            digest.update(source)
    return digest.hexdigest()[:16]


def _cache_directory() -> Path:
    home = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    root = Path(home).expanduser() / "penstock"
    directory = root / f"kernels-{_sources_digest()}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError:
        # A read-only home: compile once per process rather than fail.
        return Path(tempfile.mkdtemp(prefix="penstock-kernels-"))
    directory.touch()
    for stale in sorted(root.glob("kernels-*"), key=_last_used, reverse=True)[_KEPT_CACHES:]:
        shutil.rmtree(stale, ignore_errors=True)
    return directory


def _last_used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0  # another process has just removed it


numba.config.CACHE_DIR = str(_cache_directory())


def compiled(function: F) -> F:
    """Compile a function that allocates nothing, to be inlined wherever it is called.

    Counting references to the arrays inside our NamedTuples costs far more than the
    arithmetic (Q-learning over post-decision states: 0.1 M slots/s with counting, 16-20 M
    without), and a function that allocates nothing has nothing to count.
    """
    return cast(F, numba.njit(cache=True, nogil=True, forceinline=True, _nrt=False)(function))


def is_ours(thing: Callable[..., object]) -> bool:
    """Whether a function or class is part of this package, so that the cache knows its source."""
    return thing.__module__.partition(".")[0] == "penstock"


def compiled_uncached(function: F) -> F:
    """The same, for functions and classes from outside this package.

    The cache is named after our sources only, so it would serve theirs stale; and it names
    the classes it was compiled for, so one that a later process cannot import would make
    the whole cache unreadable to it.
    """
    return cast(F, numba.njit(nogil=True, forceinline=True, _nrt=False)(function))


def compiled_allocating(function: F) -> F:
    """Compile a function that makes arrays; for set-up, not for the inside of a loop."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))


def frozen_floats(values: npt.ArrayLike) -> Floats:
    """A read-only float array: what a policy is told, as opposed to what it remembers."""
    array = np.array(values, dtype=np.float64, order="C")
    array.flags.writeable = False
    return array


def read_only(values: Floats) -> Floats:
    """The same array, seen through a view that cannot be written: one kind of argument, one compilation."""
    view = np.ascontiguousarray(values, dtype=np.float64).view()
    view.flags.writeable = False
    return view


def frozen_ints(values: npt.ArrayLike) -> Ints:
    """A read-only integer array."""
    array = np.array(values, dtype=np.int64, order="C")
    array.flags.writeable = False
    return array
