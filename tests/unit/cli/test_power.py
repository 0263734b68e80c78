"""`penstock power` as a user or a script meets it, on trees that look like /sys."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from signal import SIGKILL, SIGTERM

import pytest

from fake_sysfs import (
    CPUFREQ,
    Kernel,
    acpi_cpufreq,
    add_rapl,
    contents,
    counter_file,
    forbidding,
    intel_pstate,
    no_cpufreq,
)
from penstock.runtimes.linux import sysfs as linux_sysfs

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sys"


@pytest.fixture
def power(run: Run, root: Path, tmp_path: Path) -> Run:
    return lambda *words: run("power", "--sys", root, "--state", tmp_path / "state", *words)


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Seconds pass at once, and the cores use 40 W: 10 W where their frequency is held."""
    now_s = 100.0

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds
        file = counter_file(root, "intel-rapl:0:0")
        if file.exists():
            high = (root / CPUFREQ / "policy0/scaling_max_freq").read_text()
            watts = 10 if high == "1500000\n" else 40
            file.write_text(f"{int(file.read_text()) + round(watts * seconds * 1e6)}\n")

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: now_s)


def test_what_is_missing_is_said_in_a_line_each(power: Run, root: Path) -> None:
    no_cpufreq(root)
    status, out, err = power()
    assert (status, err) == (0, "")
    frequencies, energy = out.splitlines()
    assert frequencies.startswith("frequencies: no cpufreq policies in")
    assert energy.startswith("energy: no intel-rapl zones in")


def test_a_frequency_that_cannot_be_held_is_an_error_and_leaves_nothing(
    power: Run, root: Path, tmp_path: Path
) -> None:
    no_cpufreq(root)
    status, out, err = power("--ghz", "1.5")
    assert (status, out) == (2, "")
    assert "no cpufreq policies" in err
    assert not (tmp_path / "state").exists()


@pytest.mark.usefixtures("no_waiting")
def test_frequencies_and_watts_are_shown_and_nothing_is_changed(power: Run, root: Path) -> None:
    before = contents(add_rapl(acpi_cpufreq(root)))
    status, out, err = power("--seconds", "2")
    assert (status, err) == (0, "")
    assert "1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2 GHz" in out
    [core] = [line.split() for line in out.splitlines() if "core" in line]
    assert core == ["package-0", "core", "intel-rapl:0:0", "40.00"]
    after = contents(root)
    assert {name for name in after if after[name] != before[name]} == {
        "devices/virtual/powercap/intel-rapl/intel-rapl:0/intel-rapl:0:0/energy_uj"
    }


@pytest.mark.usefixtures("no_waiting")
def test_one_json_object(power: Run, root: Path) -> None:
    add_rapl(intel_pstate(root))
    status, out, err = power("--json")
    told = json.loads(out)
    assert (status, err) == (0, "")
    policy = told["cpufreq"]["policies"][0]
    assert (policy["cpus"], policy["governor"], policy["table_ghz"]) == ([0, 1], "powersave", [])
    assert (policy["lowest_ghz"], policy["highest_ghz"]) == (0.8, 3.5)
    assert [one["watts"] for one in told["rapl"]["domains"]] == [0.0, 40.0, 0.0]


@pytest.mark.usefixtures("no_waiting")
def test_a_frequency_is_held_and_set_back_with_watts_before_and_during(power: Run, root: Path) -> None:
    before = contents(intel_pstate(root))
    add_rapl(root)
    status, out, err = power("--ghz", "1.5", "--for", "3.5")
    assert (status, err) == (0, "")
    [core] = [line.split() for line in out.splitlines() if "core" in line]
    assert core[-2:] == ["40.00", "10.00"]
    assert "everything is as it was found" in out
    assert contents(root / CPUFREQ) == {
        name.removeprefix(f"{CPUFREQ}/"): text for name, text in before.items()
    }
    status, out, _ = power("--ghz", "1.5", "--for", "2", "--json")
    held = json.loads(out)["held"]
    assert (status, held["ghz"], held["seconds"]) == (0, 1.5, 2.0)
    assert held["cpufreq"]["policies"][0]["max_ghz"] == 1.5
    assert held["rapl"]["domains"][1]["watts"] == pytest.approx(10.0)


@pytest.mark.usefixtures("no_waiting")
def test_without_counters_a_frequency_is_held_all_the_same(power: Run, root: Path) -> None:
    before = contents(intel_pstate(root))
    status, out, _ = power("--ghz", "2", "--for", "1")
    assert (status, "energy: no intel-rapl zones" in out) == (0, True)
    assert contents(root) == before


def test_counters_that_may_not_be_read_are_one_line(
    power: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_rapl(acpi_cpufreq(root))
    monkeypatch.setattr(linux_sysfs, "Sysfs", lambda path: Kernel(path, unreadable=("energy_uj",)))
    status, out, _ = power()
    assert status == 0
    assert [line for line in out.splitlines() if line.startswith("energy:")] == [
        f"energy: {counter_file(root, 'intel-rapl:0')}: permission denied; only root may read it"
    ]
    told = json.loads(power("--json")[1])
    assert {one["watts"] for one in told["rapl"]["domains"]} == {None}


def test_where_it_is_denied_one_line_says_so_and_all_is_as_before(
    power: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(acpi_cpufreq(root))
    denied = forbidding("policy2/scaling_governor")
    monkeypatch.setattr(linux_sysfs, "Sysfs", lambda path: Kernel(path, before=denied))
    status, out, err = power("--ghz", "1.5", "--for", "1")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "Permission denied" in err
    assert contents(root) == before


def _holding(root: Path, state: Path) -> "subprocess.Popen[bytes]":
    """Another process that holds 1.5 GHz for a minute."""
    words = ("power", "--sys", root, "--state", state, "--ghz", "1.5", "--for", "60", "--seconds", ".1")
    process = subprocess.Popen([sys.executable, "-m", "penstock", *map(str, words)])
    end_s = time.monotonic() + 30
    last = root / CPUFREQ / "policy2/scaling_min_freq"
    while last.read_text() != "1500000\n":
        assert time.monotonic() < end_s
        time.sleep(0.05)
    return process


def test_after_a_kill_9_it_is_said_and_restored(power: Run, root: Path, tmp_path: Path) -> None:
    before = contents(intel_pstate(root))
    process = _holding(root, tmp_path / "state")
    assert power("--restore")[0] == 2  # it still holds it
    process.send_signal(SIGKILL)
    process.wait(30)
    assert contents(root) != before
    status, _, err = power()
    assert (status, f"process {process.pid} holds" in err, "--restore" in err) == (0, True, True)
    status, out, _ = power("--restore", "--json")
    assert (status, json.loads(out)) == (0, {"restored": ["policy0", "policy1", "policy2"]})
    assert contents(root) == before
    assert power("--restore")[:2] == (0, "there is nothing to restore\n")


def test_after_a_sigterm_it_is_set_back(root: Path, tmp_path: Path) -> None:
    before = contents(intel_pstate(root))
    process = _holding(root, tmp_path / "state")
    process.send_signal(SIGTERM)
    assert process.wait(30) == 128 + SIGTERM
    assert contents(root) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--ghz", "1.25"), "1.2, 1.3"),
        (("--ghz", "nan"), "positive and finite"),
        (("--ghz", "-1"), "positive and finite"),
        (("--for", "3"), "Give --ghz"),
        (("--ghz", "1.5", "--for", "inf"), "--for inf"),
        (("--ghz", "1.5", "--for", "0"), "--for 0"),
        (("--seconds", "nan"), "--seconds nan"),
        (("--restore", "--ghz", "1.5"), "give one of them"),
        (("--sys", "/nowhere"), "no such directory"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(power: Run, root: Path, words: tuple[str, ...], said: str) -> None:
    before = contents(acpi_cpufreq(root))
    status, out, err = power(*words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert contents(root) == before
