"""Nothing is read or written outside the tree, and nothing in it is written but four files."""

import re
from pathlib import Path

import pytest

from fake_sysfs import CPUFREQ, SETTINGS, acpi_cpufreq, contents
from penstock.runtimes.linux.sysfs import Sysfs

ANY = re.compile(r".*")


def test_a_link_out_of_the_tree_is_not_followed(tmp_path: Path) -> None:
    root = acpi_cpufreq(tmp_path / "sys")
    secret = tmp_path / "secret"
    secret.write_text("mine\n")
    governor = root / CPUFREQ / "policy0/scaling_governor"
    governor.unlink()
    governor.symlink_to(secret)
    sysfs = Sysfs(root)
    with pytest.raises(OSError, match="leads out of"):
        sysfs.read(f"{CPUFREQ}/policy0/scaling_governor")
    with pytest.raises(OSError, match="leads out of"):
        sysfs.write(f"{CPUFREQ}/policy0/scaling_governor", "userspace")
    with pytest.raises(OSError, match="leads out of"):
        sysfs.read("../secret")
    with pytest.raises(OSError, match="leads out of"):
        sysfs.names("..", ANY)
    assert secret.read_text() == "mine\n"


@pytest.mark.parametrize(
    "path",
    [
        f"{CPUFREQ}/policy0/cpuinfo_max_freq",
        f"{CPUFREQ}/policy0/scaling_driver",
        f"{CPUFREQ}/policy0/link",
        "class/other",
    ],
)
def test_other_files_are_not_written_whatever_they_are_called(tmp_path: Path, path: str) -> None:
    root = acpi_cpufreq(tmp_path / "sys")
    (root / "class").mkdir()
    (root / "class/other").write_text("1\n")
    (root / CPUFREQ / "policy0/link").symlink_to("scaling_driver")
    before = contents(root)
    with pytest.raises(PermissionError, match="not a file that Penstock writes"):
        Sysfs(root).write(path, "2")
    assert contents(root) == before


def test_a_link_called_like_a_setting_does_not_lead_to_another_file(tmp_path: Path) -> None:
    root = acpi_cpufreq(tmp_path / "sys")
    setspeed = root / CPUFREQ / "policy0/scaling_setspeed"
    setspeed.unlink()
    setspeed.symlink_to("cpuinfo_max_freq")
    with pytest.raises(PermissionError, match="not a file that Penstock writes"):
        Sysfs(root).write(f"{CPUFREQ}/policy0/scaling_setspeed", "1")


def test_no_file_is_made(tmp_path: Path) -> None:
    root = acpi_cpufreq(tmp_path / "sys")
    for name in SETTINGS:
        with pytest.raises(FileNotFoundError):
            Sysfs(root).write(f"{CPUFREQ}/policy9/{name}", "1")


def test_names_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    acpi_cpufreq(tmp_path, 11)
    names = Sysfs(tmp_path).names(CPUFREQ, ANY)
    assert names == tuple(f"policy{number}" for number in range(11))
    assert Sysfs(tmp_path).names("class/none", ANY) == ()
