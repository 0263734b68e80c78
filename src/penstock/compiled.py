"""The one door to numba: typed decorators, and a cache that never serves stale machine code.

Loading numba takes longer than most commands, so nothing here imports it: a decorated
function becomes numba's when it is first called, or when compiled code that calls it is
compiled.

numba notices when the file of a cached function changes, but not when a function it
calls from another file does. Our episode loop calls policies from many files, so the
cache lives in a directory named after the content of every compiled source file.
"""

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import update_wrapper, wraps
from importlib import import_module
from pathlib import Path
from threading import Event, RLock, get_ident
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

__all__ = [
    "Flags",
    "Floats",
    "Ints",
    "compilable",
    "compiled",
    "compiled_allocating",
    "compiled_apart",
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
_IMPORTED_AT_NS = time.time_ns()

_OVERLOADS: list[tuple[Callable[..., object], Callable[..., object]]] = []
_LOADED = Event()  # numba knows the cache directory and all overloads
_ONE_THREAD = RLock()  # several may call their first compiled function at once


def _load_numba() -> None:
    with _ONE_THREAD:
        if _LOADED.is_set():
            return
        import numba

        # numba imports scipy.linalg (a fifth of a second) only to know whether np.convolve and
        # np.correlate may use its BLAS; without it they loop. What else needs it asks again.
        with _hidden("scipy.linalg"), suppress(ModuleNotFoundError):
            import_module("numba.np.arraymath")
        numba.config.CACHE_DIR = str(_cache_directory(numba.__version__))
        for function, implementation in _OVERLOADS:
            _tell_numba(function, implementation)
        _LOADED.set()


@contextmanager
def _hidden(package: str) -> Iterator[None]:
    """To this thread, a package that is not installed; one that is already loaded stays."""
    here = get_ident()

    class Finder:
        def find_spec(self, name: str, *_: object) -> None:
            if name == package and get_ident() == here:
                raise ModuleNotFoundError(f"{name}: not needed now", name=name)

    finder = Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def _tell_numba(function: Callable[..., object], implementation: Callable[..., object]) -> None:
    from numba.extending import overload as overload_now

    overload_now(function)(implementation)


def overload(function: Callable[..., object]) -> Callable[[F], F]:
    """numba's `overload`: what compiled code calls in place of a plain Python function."""

    def register(implementation: F) -> F:
        with _ONE_THREAD:
            _OVERLOADS.append((function, implementation))
            if _LOADED.is_set():
                _tell_numba(function, implementation)
        return implementation

    return register


class _Compiled:
    """A function that is compiled when it is first needed; compiled code takes it for numba's own."""

    def __init__(self, function: Callable[..., Any], **options: bool) -> None:
        update_wrapper(self, function)
        self._function = function
        self._options = options
        self._dispatcher: Callable[..., Any] | None = None

    @property
    def dispatcher(self) -> Callable[..., Any]:
        """What numba made of the function."""
        if self._dispatcher is None:
            _load_numba()
            import numba

            with _ONE_THREAD:
                if self._dispatcher is None:
                    self._dispatcher = numba.njit(**self._options)(self._function)
        return self._dispatcher

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.dispatcher(*arguments, **named)

    @property
    def _numba_type_(self) -> object:  # numba asks for it where compiled code mentions this object
        import numba

        return numba.typeof(self.dispatcher)

    def __reduce__(self) -> str | tuple[object, ...]:
        """By name, as functions are pickled; what has no name elsewhere, as numba pickles it: by value."""
        module, name = self._function.__module__, self._function.__qualname__
        if module != "__main__" and getattr(sys.modules.get(module), name, None) is self:
            return name
        return _from_dispatcher, (self.dispatcher,)


def _from_dispatcher(dispatcher: Any) -> _Compiled:
    made = _Compiled(dispatcher.py_func)
    made._dispatcher = dispatcher
    return made


def _sources_digest(numba_version: str) -> str | None:
    """A name for the sources on disk; None when they may be others than those this process imported."""
    digest = hashlib.sha256(numba_version.encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        source = path.read_bytes()
        if b"penstock.compiled" in source or path == Path(__file__):
            digest.update(source)
            if path.stat().st_mtime_ns > _IMPORTED_AT_NS:
                return None
    return digest.hexdigest()[:16]


def _cache_directory(numba_version: str) -> Path:
    home = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    root = Path(home).expanduser() / "penstock"
    sources = _sources_digest(numba_version)
    if sources is None:
        return _for_this_process()
    directory = root / f"kernels-{sources}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError:
        # A read-only home: compile once per process rather than fail.
        return _for_this_process()
    directory.touch()
    for stale in sorted(root.glob("kernels-*"), key=_last_used, reverse=True)[_KEPT_CACHES:]:
        shutil.rmtree(stale, ignore_errors=True)
    return directory


def _for_this_process() -> Path:
    return Path(tempfile.mkdtemp(prefix="penstock-kernels-"))


def _last_used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0  # another process has just removed it


def compiled(function: F) -> F:
    """Compile a function that allocates nothing, to be inlined wherever it is called.

    Counting references to the arrays inside our NamedTuples costs far more than the
    arithmetic (Q-learning over post-decision states: 0.1 M slots/s with counting, 16-20 M
    without), and a function that allocates nothing has nothing to count.
    """
    return cast(F, _Compiled(function, cache=True, nogil=True, forceinline=True, _nrt=False))


def compiled_apart(function: F) -> F:
    """The same for a large function called from several places: compiled once, not inlined in each.

    A call then copies the NamedTuples it is given, some 50 ns: nothing beside what such a function does.
    """
    return cast(F, _Compiled(function, cache=True, nogil=True, _nrt=False))


def compilable(function: F) -> F:
    """A function that compiled code calls compiled, and Python as it is, without waiting for numba.

    For a formula that both need and Python rarely: it is written once, and costs nothing to import.
    """

    @wraps(function)
    def itself(*_: object, **__: object) -> Callable[..., object]:
        return function

    overload(function)(itself)
    return function


def is_ours(thing: Callable[..., object]) -> bool:
    """Whether a function or class is part of this package, so that the cache knows its source."""
    return thing.__module__.partition(".")[0] == "penstock"


def compiled_uncached(function: F) -> F:
    """The same, for functions and classes from outside this package.

    The cache is named after our sources only, so it would serve theirs stale; and it names
    the classes it was compiled for, so one that a later process cannot import would make
    the whole cache unreadable to it.
    """
    return cast(F, _Compiled(function, nogil=True, forceinline=True, _nrt=False))


def compiled_allocating(function: F) -> F:
    """Compile a function that makes arrays; for set-up, not for the inside of a loop."""
    return cast(F, _Compiled(function, cache=True, nogil=True))


def frozen_floats(values: npt.ArrayLike) -> Floats:
    """A read-only float array: what a policy is given, as opposed to what it remembers."""
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
