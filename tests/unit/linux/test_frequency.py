"""Frequencies are set in the way Linux accepts, and set back whatever happens."""

import atexit
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fake_sysfs import (
    CPUFREQ,
    Kernel,
    acpi_cpufreq,
    add_policy,
    contents,
    forbidding,
    intel_pstate,
    no_cpufreq,
)
from penstock.domain.errors import InputError
from penstock.runtimes.linux.frequency import HeldFrequency, Policies, RestoreError, policies, recover
from penstock.runtimes.linux.sysfs import Absent, Sysfs


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sys"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def seen(sysfs: Sysfs) -> Policies:
    there = policies(sysfs)
    assert not isinstance(there, Absent)
    return there


def setting(root: Path, name: str, policy: int = 0) -> str:
    return (root / CPUFREQ / f"policy{policy}" / name).read_text().strip()


def test_policies_are_read_with_a_table_and_without(root: Path, tmp_path: Path) -> None:
    with_table = seen(Sysfs(acpi_cpufreq(root))).read[1]
    assert (with_table.cpus, with_table.governor, with_table.setspeed_khz) == ((2, 3), "schedutil", None)
    assert with_table.allowed == "1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2 GHz"
    without = seen(Sysfs(intel_pstate(tmp_path / "other"))).read[0]
    assert without.allowed == "any from 0.8 to 3.5 GHz"
    assert (without.allows(1_234_567), without.allows(799_999)) == (True, False)


def test_a_machine_without_cpufreq_says_so_and_cannot_be_set(root: Path, state: Path) -> None:
    sysfs = Sysfs(no_cpufreq(root))
    there = policies(sysfs)
    assert isinstance(there, Absent)
    assert "no cpufreq policies" in there.reason
    with pytest.raises(InputError, match="cannot be set: no cpufreq"), HeldFrequency(sysfs, state):
        pass
    with pytest.raises(InputError, match="cannot be set"), HeldFrequency(Sysfs(root / "none"), state):
        pass


def test_with_userspace_the_speed_is_set_and_everything_set_back(root: Path, state: Path) -> None:
    kernel = Kernel(acpi_cpufreq(root))
    before = contents(root)
    with HeldFrequency(kernel, state) as held:
        held.set(1.5)
        for policy in range(3):
            assert setting(root, "scaling_governor", policy) == "userspace"
            assert setting(root, "scaling_setspeed", policy) == "1500000"
        held.set(1.2)
        assert setting(root, "scaling_setspeed") == "1200000"
    assert contents(root) == before
    assert not (state / "frequency.json").exists()


def test_without_userspace_both_limits_are_set_the_lower_never_above_the_upper(
    root: Path, state: Path
) -> None:
    kernel = Kernel(intel_pstate(root))  # refuses a lower limit above the upper, and the reverse
    before = contents(root)
    with HeldFrequency(kernel, state) as held:
        for ghz in (1.5, 3.5, 0.8, 2.0):
            held.set(ghz)
            limits = (setting(root, "scaling_min_freq"), setting(root, "scaling_max_freq"))
            assert limits == (f"{round(ghz * 1e6)}",) * 2
            assert setting(root, "scaling_governor") == "powersave"
    assert contents(root) == before


def test_limits_that_stand_in_the_way_of_a_speed_are_moved(root: Path, state: Path) -> None:
    add_policy(root, 0, limits=(1_400_000, 1_600_000))
    kernel = Kernel(root)
    before = contents(root)
    with HeldFrequency(kernel, state) as held:
        held.set(2.0)
        assert (setting(root, "scaling_setspeed"), setting(root, "scaling_min_freq")) == (
            "2000000",
            "1400000",
        )
        held.set(1.2)
        assert (setting(root, "scaling_setspeed"), setting(root, "scaling_max_freq")) == (
            "1200000",
            "1600000",
        )
    assert contents(root) == before


def test_a_speed_somebody_else_had_set_is_set_back(root: Path, state: Path) -> None:
    add_policy(root, 0, governor="userspace", setspeed=1_700_000)
    before = contents(root)
    with HeldFrequency(Kernel(root), state) as held:
        held.set(1.3)
        assert contents(root) != before
    assert contents(root) == before


@pytest.mark.parametrize("ghz", [1.25, 0.1, 2.1])
def test_a_frequency_outside_the_table_is_refused_and_the_allowed_ones_are_named(
    root: Path, state: Path, ghz: float
) -> None:
    kernel = Kernel(acpi_cpufreq(root))
    with HeldFrequency(kernel, state) as held, pytest.raises(InputError, match=r"1\.2, 1\.3, .* 2 GHz"):
        held.set(ghz)
    assert kernel.written == []


@pytest.mark.parametrize("ghz", [float("nan"), float("inf"), 1e308, 0.0, -1.0])
def test_a_frequency_that_cannot_be_is_refused(root: Path, state: Path, ghz: float) -> None:
    kernel = Kernel(intel_pstate(root))
    with HeldFrequency(kernel, state) as held, pytest.raises(InputError, match="positive and finite"):
        held.set(ghz)
    assert kernel.written == []


def test_it_is_set_back_after_an_exception(root: Path, state: Path) -> None:
    kernel = Kernel(acpi_cpufreq(root))
    before = contents(root)

    def interrupted() -> None:
        with HeldFrequency(kernel, state) as held:
            held.set(1.5)
            assert contents(root) != before
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert contents(root) == before


@pytest.mark.parametrize("denied", ["scaling_governor", "scaling_setspeed"])
def test_where_the_third_is_denied_the_first_two_are_set_back_and_it_says_so(
    root: Path, state: Path, denied: str
) -> None:
    # Where the speed is denied, the governor was changed: setting that back is still allowed.
    kernel = Kernel(acpi_cpufreq(root, 4), before=forbidding(f"policy2/{denied}"))
    before = contents(root)
    with HeldFrequency(kernel, state) as held:
        with pytest.raises(
            InputError, match=f"policy2/{denied}: Permission denied; root can; policy0, .*: as before"
        ):
            held.set(1.5)
        assert contents(root) == before
        assert not (state / "frequency.json").exists()
    assert any("policy1" in path for path, _ in kernel.written)


def test_what_cannot_be_set_back_is_named_and_kept_for_the_next_start(root: Path, state: Path) -> None:
    kernel = Kernel(acpi_cpufreq(root))
    before = contents(root)

    def broken(path: str, value: str) -> None:
        if path.endswith("policy1/scaling_governor") and value == "schedutil":
            raise OSError(5, "Input/output error", path)

    with (
        pytest.raises(RestoreError, match=r"governor of policy1 \(schedutil\): Input/output error.*json"),
        HeldFrequency(Kernel(root, before=broken), state) as held,
    ):
        held.set(1.5)
    assert setting(root, "scaling_governor", 0) == setting(root, "scaling_governor", 2) == "schedutil"
    assert setting(root, "scaling_governor", 1) == "userspace"
    with HeldFrequency(kernel, state) as held:
        assert held.recovered == ("policy0", "policy1", "policy2")
        assert contents(root) == before


def test_what_was_found_is_on_disk_before_anything_is_changed(root: Path, state: Path) -> None:
    def check(path: str, value: str) -> None:
        assert (state / "frequency.json").exists()

    with HeldFrequency(Kernel(acpi_cpufreq(root), before=check), state) as held:
        assert not (state / "frequency.json").exists()
        held.set(1.5)


def test_where_what_was_found_cannot_be_kept_nothing_is_changed(root: Path, tmp_path: Path) -> None:
    kernel = Kernel(acpi_cpufreq(root))
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot keep there"), HeldFrequency(kernel, tmp_path / "file"):
        pass
    (tmp_path / "state/frequency.json").mkdir(parents=True)
    with pytest.raises(InputError, match="cannot read"), HeldFrequency(kernel, tmp_path / "state"):
        pass
    assert kernel.written == []


def test_one_process_at_a_time_holds_a_frequency(root: Path, state: Path) -> None:
    kernel = Kernel(acpi_cpufreq(root))
    with HeldFrequency(kernel, state) as held:
        held.set(1.5)
        with pytest.raises(InputError, match=f"process {os.getpid()} holds the frequency"):
            recover(kernel, state)
        with pytest.raises(InputError, match="holds the frequency"), HeldFrequency(kernel, state):
            pass
        assert setting(root, "scaling_setspeed") == "1500000"
    assert recover(kernel, state) == ()


def test_a_policy_whose_cpus_are_offline_is_left_alone(root: Path, state: Path) -> None:
    kernel = Kernel(acpi_cpufreq(root), unreadable=("policy1/affected_cpus",))
    before = contents(root)
    assert list(seen(kernel).unread) == ["policy1"]
    with HeldFrequency(kernel, state) as held:
        held.set(1.5)
        assert setting(root, "scaling_governor", 1) == "schedutil"
    assert contents(root) == before


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"pid": 1, "root": "/sys", "boot": null, "policies": {"policy0": {"governor": 3}}}',
        '{"pid": 1, "root": "/sys", "boot": null, "policies": []}',
    ],
)
def test_a_file_that_is_not_ours_is_an_error_and_stays(root: Path, state: Path, text: str) -> None:
    state.mkdir()
    (state / "frequency.json").write_text(text)
    kernel = Kernel(acpi_cpufreq(root))
    with pytest.raises(InputError, match="not what Penstock writes there"), HeldFrequency(kernel, state):
        pass
    assert (kernel.written, (state / "frequency.json").read_text()) == ([], text)


def test_what_was_found_under_another_root_or_before_a_reboot_is_not_written(
    root: Path, state: Path, tmp_path: Path
) -> None:
    _killed("held.set(1.5)", intel_pstate(root), state)
    other = Kernel(intel_pstate(tmp_path / "other"))
    with pytest.raises(InputError, match="use another directory"):
        recover(other, state)
    file = state / "frequency.json"
    text = file.read_text()
    boot = next(line for line in text.splitlines() if '"boot"' in line)
    file.write_text(text.replace(boot, '"boot": "an earlier one",'))
    kernel = Kernel(root)
    assert recover(kernel, state) == ()
    assert (kernel.written, file.exists()) == ([], False)


_PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from penstock.runtimes.linux.frequency import HeldFrequency
from penstock.runtimes.linux.sysfs import Sysfs
held = HeldFrequency(Sysfs(Path(sys.argv[1])), Path(sys.argv[2]))
"""


def _ended(program: str, root: Path, state: Path) -> int:
    words = [sys.executable, "-c", _PROGRAM + program, str(root), str(state)]
    return subprocess.run(words, check=False, timeout=60).returncode


def _killed(work: str, root: Path, state: Path) -> None:
    """Another process does this while it holds a frequency, and is killed before it can set it back."""
    status = _ended(f"with held:\n    {work}\n    os.kill(os.getpid(), signal.SIGKILL)", root, state)
    assert status == -signal.SIGKILL


def test_after_a_kill_9_the_next_start_restores(root: Path, state: Path) -> None:
    before = contents(intel_pstate(root))
    _killed("held.set(1.5)", root, state)
    assert setting(root, "scaling_max_freq") == "1500000"
    with HeldFrequency(Kernel(root), state) as held:
        assert held.recovered == ("policy0", "policy1", "policy2")
        assert contents(root) == before
    assert contents(root) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_it_is_set_back_after_a_signal(root: Path, state: Path, number: signal.Signals) -> None:
    before = contents(intel_pstate(root))
    program = (
        # As on a terminal: in the background, or under nohup, they are ignored.
        f"signal.signal({int(signal.SIGINT)}, signal.default_int_handler)\n"
        f"signal.signal({int(signal.SIGHUP)}, signal.SIG_DFL)\n"
        f"with held:\n    held.set(1.5)\n    os.kill(os.getpid(), {int(number)})\n    time.sleep(30)"
    )
    words = [sys.executable, "-c", _PROGRAM + program, str(root), str(state)]
    status = subprocess.run(words, check=False, timeout=60, stderr=subprocess.DEVNULL).returncode
    assert status == (-signal.SIGINT if number == signal.SIGINT else 128 + number)
    assert contents(root) == before


def test_a_process_that_forgets_to_leave_sets_it_back_at_its_end(root: Path, state: Path) -> None:
    before = contents(intel_pstate(root))
    assert _ended("held.__enter__()\nheld.set(1.5)", root, state) == 0
    assert contents(root) == before


def test_signals_are_as_before_afterwards(root: Path, state: Path) -> None:
    def own(number: int, frame: object) -> None:
        pass

    earlier = signal.signal(signal.SIGHUP, own)
    try:
        with HeldFrequency(Kernel(acpi_cpufreq(root)), state):
            assert signal.getsignal(signal.SIGHUP) is own
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) is own
    finally:
        signal.signal(signal.SIGHUP, earlier)


def test_restoring_that_is_interrupted_goes_on_at_the_end_of_the_process(
    root: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(acpi_cpufreq(root))
    at_exit: list[object] = []
    monkeypatch.setattr(atexit, "register", at_exit.append)
    interruptions = [KeyboardInterrupt()]

    def interrupting(path: str, value: str) -> None:
        if value == "schedutil" and interruptions:
            raise interruptions.pop()

    with pytest.raises(KeyboardInterrupt), HeldFrequency(Kernel(root, before=interrupting), state) as held:
        held.set(1.5)
    assert contents(root) != before
    [go_on] = at_exit
    assert callable(go_on)
    go_on()
    assert contents(root) == before
    held.__exit__(None, None, None)
