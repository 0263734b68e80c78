"""Whatever is set, refused, broken or killed on the way, the machine ends as it was found."""

import os
from collections.abc import Callable
from contextlib import suppress
from errno import EACCES, EINVAL, EIO
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from fake_sysfs import TABLE, Kernel, add_policy, contents
from penstock.domain.errors import InputError
from penstock.runtimes.linux.frequency import HeldFrequency, RestoreError

GOVERNORS = ("schedutil", "performance", "userspace")


AddPolicy = Callable[[Path, int], Path]


class _Killed(BaseException):
    """The process ends here, and nothing of it runs any more."""


@st.composite
def policies(draw: st.DrawFn) -> AddPolicy:
    """Of any kind, with limits anywhere."""
    low, high = sorted(draw(st.tuples(st.sampled_from(TABLE), st.sampled_from(TABLE))))
    governors = draw(st.sampled_from((GOVERNORS, GOVERNORS[:2])))
    governor = draw(st.sampled_from(governors))
    speed = draw(st.sampled_from([khz for khz in TABLE if low <= khz <= high]))
    return partial(
        add_policy,
        limits=(low, high),
        governors=governors,
        governor=governor,
        setspeed=speed if governor == "userspace" else None,
        table=draw(st.sampled_from((TABLE, ()))),
    )


wanted = st.lists(st.sampled_from((1.2, 1.3, 1.5, 1.8, 2.0, 1.25, 9.0)), min_size=1, max_size=5)
# Which writes fail, counted over the whole run, those that set back included.
failing = st.dictionaries(st.integers(0, 30), st.sampled_from((EACCES, EINVAL, EIO)), max_size=4)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(policies(), min_size=1, max_size=3), wanted, failing, st.one_of(st.none(), st.integers(0, 30))
)
def test_in_the_end_everything_is_as_it_was(
    machine: list[AddPolicy], ghz: list[float], failing: dict[int, int], killed_at: int | None
) -> None:
    with TemporaryDirectory() as directory:
        root, state = Path(directory) / "sys", Path(directory) / "state"
        for number, add in enumerate(machine):
            add(root, number)
        before = contents(root)
        writes = 0

        def trouble(path: str, value: str) -> None:
            nonlocal writes
            count, writes = writes, writes + 1
            if count == killed_at:
                raise _Killed
            if count in failing:
                raise OSError(failing[count], os.strerror(failing[count]), path)

        said = _run(HeldFrequency(Kernel(root, before=trouble), state), ghz)
        if said is None:  # it ended well, and nothing is left to do
            assert contents(root) == before
            assert not (state / "frequency.json").exists()
        with HeldFrequency(Kernel(root), state) as after:
            assert contents(root) == before
            assert (after.recovered == ()) == (said is None)


def _run(held: HeldFrequency, ghz: list[float]) -> BaseException | None:
    """What it ended with, where it could not restore."""
    try:
        held.__enter__()  # no `with`: nothing of a process that was killed unwinds
        for one in ghz:
            with suppress(InputError, RestoreError):
                held.set(one)
        held.__exit__(None, None, None)
    except RestoreError as problem:
        return problem
    except _Killed as end:
        held._release()  # as the system does for a process that is gone
        return end
    return None
