"""Compiled functions become numba's late, wherever and however often they are first asked for."""

import copy
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.compiled import _hidden, compiled_uncached, overload
from penstock.perf.operator import response_time


def printed_by(program: str, caches: Path) -> list[str]:
    """The words a program prints, run by an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "NUMBA_CACHE_DIR": str(caches)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


# M/M/1 with a service time of .02 s and 25 tuples/s: W = .02 s, and R = W + .02 s = .04 s.
MANY_THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from penstock.perf.queueing import m_m_1, replica_response_time, waiting_time

sys.setswitchinterval(1e-6)
together = Barrier(8)


def first_call(function):
    together.wait()
    made = function.dispatcher
    return function(m_m_1(0.02), 25.0, 1.0), made


with ThreadPoolExecutor(8) as pool:  # the first function calls the second
    answers = list(pool.map(first_call, [replica_response_time, waiting_time] * 4))
print(*{seconds for seconds, _ in answers[::2]}, *{seconds for seconds, _ in answers[1::2]})
print(len({made for _, made in answers}))
"""


def test_first_calls_from_many_threads_at_once_share_one_compilation(tmp_path: Path) -> None:
    response, wait, functions = printed_by(MANY_THREADS, tmp_path)
    assert float(response) == pytest.approx(0.04)
    assert float(wait) == pytest.approx(0.02)
    assert functions == "2"


def test_a_compiled_function_is_pickled_and_copied_by_name() -> None:
    assert pickle.loads(pickle.dumps(response_time)) is response_time
    assert copy.deepcopy(response_time) is response_time


def test_a_compiled_function_of_a_script_reaches_another_process_with_what_it_calls(tmp_path: Path) -> None:
    shipped = tmp_path / "shipped"
    printed_by(
        f"""
from pathlib import Path
from pyspark import cloudpickle
from penstock.compiled import compiled_uncached

@compiled_uncached
def doubled(x):
    return 2 * x

@compiled_uncached
def doubled_twice(x):
    return doubled(doubled(x))

Path({str(shipped)!r}).write_bytes(cloudpickle.dumps(doubled_twice))
""",
        tmp_path,
    )
    load = f"import pickle; print(pickle.load(open({str(shipped)!r}, 'rb'))(3.0))"
    assert printed_by(load, tmp_path) == ["12.0"]


def test_an_overload_counts_though_numba_was_loaded_before_it() -> None:
    @compiled_uncached
    def one() -> float:
        return 1.0

    one()  # numba is loaded by now

    def answer() -> float:
        return 0.0

    @overload(answer)
    def compiled_answer() -> object:
        return lambda: 42.0

    @compiled_uncached
    def asked() -> float:
        return answer()

    assert asked() == 42.0
    assert answer() == 0.0


def test_a_name_and_a_description_stay_those_of_the_function() -> None:
    @compiled_uncached
    def halved(x: float) -> float:
        """Half of it."""
        return x / 2

    assert (halved.__name__, halved.__doc__) == ("halved", "Half of it.")
    assert halved(x=3.0) == 1.5


LINEAR_ALGEBRA = """
import sys
import numpy as np
from penstock.compiled import compiled_uncached
from numba import njit

@compiled_uncached
def one():
    return 1

one()
print("scipy.linalg" in sys.modules)

@njit
def inner(a, b):
    return np.dot(a, b)

@njit
def convolved(a, b):
    return np.convolve(a, b)

a, b = np.array([2.0, 1.0]), np.array([1.0, 3.0])
print(inner(a, b), *convolved(a, b), "scipy.linalg" in sys.modules)
"""


def test_linear_algebra_compiles_though_numba_was_loaded_without_scipys(tmp_path: Path) -> None:
    loaded_first, *numbers, loaded_at_last = printed_by(LINEAR_ALGEBRA, tmp_path)
    assert (loaded_first, loaded_at_last) == ("False", "True")
    assert [float(number) for number in numbers] == pytest.approx([5, 2, 7, 3])


def test_a_package_is_hidden_from_one_thread_and_for_a_while_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("hidden_once", "seen_elsewhere"):
        (tmp_path / f"{name}.py").write_text("")
    before = list(sys.meta_path)
    with _hidden("hidden_once"), pytest.raises(ModuleNotFoundError):
        __import__("hidden_once")
    with _hidden("seen_elsewhere"), ThreadPoolExecutor(1) as other:
        assert other.submit(__import__, "seen_elsewhere").result().__name__ == "seen_elsewhere"
    assert __import__("hidden_once").__name__ == "hidden_once"
    assert sys.meta_path == before
