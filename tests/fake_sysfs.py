"""Trees like /sys, and a kernel that refuses in them what Linux refuses."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from errno import EACCES, EINVAL
from pathlib import Path

from penstock.runtimes.linux.sysfs import Sysfs

CPUFREQ = "devices/system/cpu/cpufreq"
TABLE = tuple(range(1_200_000, 2_000_001, 100_000))
SETTINGS = ("scaling_governor", "scaling_min_freq", "scaling_max_freq", "scaling_setspeed")


def add_policy(
    root: Path,
    number: int,
    *,
    driver: str = "acpi-cpufreq",
    governors: tuple[str, ...] = ("schedutil", "performance", "userspace"),
    governor: str = "schedutil",
    limits: tuple[int, int] = (TABLE[0], TABLE[-1]),
    hardware: tuple[int, int] = (TABLE[0], TABLE[-1]),
    table: tuple[int, ...] = TABLE,
    setspeed: int | None = None,
) -> Path:
    """One policy with the files that Linux shows for it."""
    policy = root / CPUFREQ / f"policy{number}"
    policy.mkdir(parents=True)
    files: dict[str, object] = {
        "affected_cpus": f"{2 * number} {2 * number + 1}",
        "scaling_driver": driver,
        "scaling_governor": governor,
        "scaling_available_governors": " ".join(governors),
        "scaling_cur_freq": limits[1],
        "scaling_min_freq": limits[0],
        "scaling_max_freq": limits[1],
        "cpuinfo_min_freq": hardware[0],
        "cpuinfo_max_freq": hardware[1],
        "scaling_setspeed": "<unsupported>" if setspeed is None else setspeed,
    }
    if table:
        files["scaling_available_frequencies"] = " ".join(str(khz) for khz in reversed(table)) + " "
    for name, value in files.items():
        (policy / name).write_text(f"{value}\n")
    return policy


def acpi_cpufreq(root: Path, policies: int = 3) -> Path:
    for number in range(policies):
        add_policy(root, number)
    return root


def intel_pstate(root: Path, policies: int = 3) -> Path:
    """No table, no `userspace`."""
    for number in range(policies):
        add_policy(
            root,
            number,
            driver="intel_pstate",
            governors=("performance", "powersave"),
            governor="powersave",
            limits=(800_000, 3_500_000),
            hardware=(800_000, 3_500_000),
            table=(),
        )
    return root


def no_cpufreq(root: Path) -> Path:
    """As in a virtual machine: the directory is there, and empty."""
    (root / CPUFREQ).mkdir(parents=True)
    return root


def add_rapl(root: Path, *, range_uj: int = 262_143_328_850, start_uj: int = 1_000_000) -> Path:
    """A package with cores and memory, where Linux has them: the class is links to the devices."""
    devices = root / "devices/virtual/powercap/intel-rapl"
    classes = root / "class/powercap"
    classes.mkdir(parents=True)
    (devices / "intel-rapl:0").mkdir(parents=True)
    (classes / "intel-rapl").symlink_to("../../devices/virtual/powercap/intel-rapl")
    for zone, name in (("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "core"), ("intel-rapl:0:1", "dram")):
        at = "intel-rapl:0" if zone == "intel-rapl:0" else f"intel-rapl:0/{zone}"
        (devices / at).mkdir(exist_ok=True)
        (classes / zone).symlink_to(f"../../devices/virtual/powercap/intel-rapl/{at}")
        for file, value in (("name", name), ("max_energy_range_uj", range_uj), ("energy_uj", start_uj)):
            (devices / at / file).write_text(f"{value}\n")
    return root


def counter_file(root: Path, zone: str) -> Path:
    return root / "class/powercap" / zone / "energy_uj"


def contents(root: Path) -> dict[str, str]:
    """Everything in a tree but the frequencies of the moment, which nobody sets."""
    files = (path for path in root.rglob("*") if path.is_file() and path.name != "scaling_cur_freq")
    return {str(path.relative_to(root)): path.read_text() for path in files}


def _nothing(path: str, value: str) -> None:
    pass


@dataclass(frozen=True)
class Kernel(Sysfs):
    """Takes what is written as cpufreq does.

    `before` is called before each write and may raise; `unreadable` may not be read by this user.
    """

    before: Callable[[str, str], None] = _nothing
    unreadable: tuple[str, ...] = ()
    written: list[tuple[str, str]] = field(default_factory=list)

    def read(self, path: str) -> str:
        if path.endswith(self.unreadable):
            raise PermissionError(EACCES, os.strerror(EACCES), str(self.root / path))
        return Sysfs.read(self, path)

    def write(self, path: str, value: str) -> None:
        self.before(path, value)
        policy, _, name = path.rpartition("/")
        self._check(policy, name, value)
        Sysfs.write(self, path, value)
        self.written.append((path, value))
        self._follow(policy)

    def _check(self, policy: str, name: str, value: str) -> None:
        low, high = (int(self.read(f"{policy}/scaling_{end}_freq")) for end in ("min", "max"))
        refused = {
            "scaling_min_freq": lambda: int(value) > high,
            "scaling_max_freq": lambda: int(value) < low,
            "scaling_governor": lambda: (
                value not in self.read(f"{policy}/scaling_available_governors").split()
            ),
            "scaling_setspeed": lambda: self.read(f"{policy}/scaling_governor") != "userspace",
        }
        if refused[name]():
            raise OSError(EINVAL, os.strerror(EINVAL), str(self.root / policy / name))

    def _follow(self, policy: str) -> None:
        """The speed is one of `userspace`, within the limits."""
        speed = self.root / policy / "scaling_setspeed"
        low, high = (int(self.read(f"{policy}/scaling_{end}_freq")) for end in ("min", "max"))
        if self.read(f"{policy}/scaling_governor") != "userspace":
            speed.write_text("<unsupported>\n")
            return
        shown = speed.read_text().strip()
        now = high if shown == "<unsupported>" else int(shown)
        speed.write_text(f"{min(max(now, low), high)}\n")


def forbidding(*endings: str) -> Callable[[str, str], None]:
    """Writes that are denied, by how their paths end."""

    def before(path: str, value: str) -> None:
        if path.endswith(endings):
            raise PermissionError(EACCES, os.strerror(EACCES), path)

    return before
