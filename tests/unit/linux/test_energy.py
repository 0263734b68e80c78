"""Energy counters: joules and watts where they can be read, and reasons where they cannot."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_sysfs import Kernel, add_rapl, counter_file, no_cpufreq
from penstock.runtimes.linux.energy import Domain, Meter, Unread, counter, domains, microjoules
from penstock.runtimes.linux.sysfs import Absent, Sysfs

CORE = Domain(zone="intel-rapl:0:0", name="core", within="package-0", range_uj=1000)


def found(sysfs: Sysfs) -> tuple[Domain, ...]:
    there = domains(sysfs)
    assert not isinstance(there, Absent)
    return there


def clock(*moments: float) -> Iterator[float]:
    return iter(moments)


def test_domains_are_named_with_what_they_are_in(tmp_path: Path) -> None:
    there = found(Sysfs(add_rapl(tmp_path)))
    assert [one.label for one in there] == ["package-0", "package-0 core", "package-0 dram"]
    assert {one.range_uj for one in there} == {262_143_328_850}


def test_a_machine_without_counters_says_so(tmp_path: Path) -> None:
    there = domains(Sysfs(no_cpufreq(tmp_path)))
    assert isinstance(there, Absent)
    assert "no intel-rapl zones" in there.reason


def test_watts_are_joules_over_seconds(tmp_path: Path) -> None:
    sysfs = Sysfs(add_rapl(tmp_path, start_uj=5_000_000))
    now = clock(10.0, 12.0)
    meter = Meter(sysfs, found(sysfs), clock=lambda: next(now))
    counter_file(tmp_path, "intel-rapl:0:0").write_text("141500000\n")
    meter.read()
    package, core, _ = meter.used()
    assert (core.joules, core.seconds, core.watts) == (136.5, 2.0, 68.25)
    assert (package.joules, package.watts) == (0.0, 0.0)  # measured: it did not move


def test_a_counter_that_starts_again_is_added_up_turn_by_turn(tmp_path: Path) -> None:
    sysfs = Sysfs(add_rapl(tmp_path, range_uj=1_000_000, start_uj=900_000))
    meter = Meter(sysfs, found(sysfs))
    for value in (200_000, 950_000, 100_000):  # 0.3 J, 0.75 J, 0.15 J: two turns
        counter_file(tmp_path, "intel-rapl:0").write_text(f"{value}\n")
        meter.read()
    assert meter.used()[0].joules == pytest.approx(1.2)


@pytest.mark.parametrize(
    ("before", "after", "used"), [(10, 10, 0), (10, 250, 240), (990, 5, 15), (1000, 0, 0), (1, 0, 999)]
)
def test_energy_between_two_readings(before: int, after: int, used: int) -> None:
    assert microjoules(CORE, before, after) == used


def test_a_turn_of_unknown_length_is_unknown_energy() -> None:
    unknown = Domain(zone="intel-rapl:0", name="package-0", within=None, range_uj=None)
    assert microjoules(unknown, 5, 9) == 4
    assert isinstance(microjoules(unknown, 9, 5), Unread)
    assert isinstance(microjoules(CORE, 2000, 5), Unread)  # beyond its range: one of the two is wrong


def test_what_may_not_be_read_is_unknown_and_never_zero(tmp_path: Path) -> None:
    sysfs = Kernel(add_rapl(tmp_path), unreadable=("energy_uj",))
    meter = Meter(sysfs, found(sysfs))
    meter.read()
    assert not meter.counts
    for used in meter.used():
        assert (used.joules, used.watts) == (None, None)
        assert "only root may read it" in (used.why_not or "")


def test_one_reading_that_fails_leaves_the_total_unknown(tmp_path: Path) -> None:
    sysfs = Sysfs(add_rapl(tmp_path))
    meter = Meter(sysfs, found(sysfs))
    file = counter_file(tmp_path, "intel-rapl:0")
    file.write_text("rubbish\n")
    meter.read()
    file.write_text("2000000\n")
    meter.read()
    package, core, _ = meter.used()
    assert package.watts is None
    assert "'rubbish' is not a count" in (package.why_not or "")
    assert core.joules == 0.0
    file.unlink()
    assert isinstance(counter(sysfs, package.domain), Unread)
