"""The contract of runtimes on Spark: the embedded cluster and a paced application, one for all claims.

`test_in_own_process.py` runs it in a process of its own: a session on a cluster cannot stand
beside the tests' local one.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from getpass import getuser
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import pytest

from penstock.apps.feeding.replayer import Replayer
from penstock.apps.feeding.schedule import ByRates, Shape
from penstock.apps.paced.form import paced
from penstock.apps.paced.ids import Ids
from penstock.control.ports import Actuator, Monitor
from penstock.domain.application import Operator, pipeline
from penstock.domain.objective import Objective
from penstock.runtimes.spark.actuator import SparkActuator
from penstock.runtimes.spark.cluster import LocalCluster, NodeKind
from penstock.runtimes.spark.daemon import ZYGOTE_VARIABLE
from penstock.runtimes.spark.feed import Feed
from penstock.runtimes.spark.monitor import SparkMonitor
from penstock.runtimes.spark.nodes import nodes_for
from penstock.runtimes.spark.running import RunningApp
from penstock.runtimes.spark.session import EMBEDDED, python_variables, session
from penstock.testing.runtime import RuntimeContract

Address = IPv4Address | IPv6Address
KINDS = [NodeKind(name="slow"), NodeKind(name="fast", speedup=2.0)]
SCALED = Operator(name="scaled", service_time_s=0.010, max_replicas=2)
STEADY = Operator(name="steady", service_time_s=0.002)
RATE = 20.0
_LISTENS = "0A"
_SHARED = {Path(tempfile.gettempdir()), Path("/tmp")}  # with everybody on the machine
_STRANGER = """
import sys
from pyspark import SparkConf, SparkContext
conf = SparkConf().setMaster(sys.argv[1]).setAppName("stranger").set("spark.log.level", "INFO")
SparkContext(conf=conf.set("spark.ui.enabled", "false"))
"""
_JOINED, _REFUSED = "Connected to Spark cluster", "Failed to connect to master"
SLOW_MACHINE_S = 180.0


@dataclass(frozen=True)
class Started:
    running: RunningApp
    monitor: SparkMonitor
    actuator: SparkActuator
    before: frozenset[Path]  # what was in shared folders


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    work = tmp_path_factory.mktemp("run")
    with ExitStack() as ending:
        yield _start(work, ending, KINDS)


def _start(work: Path, ending: ExitStack, kinds: list[NodeKind]) -> Started:
    """As a live run does, with nobody who decides."""
    before = frozenset(place for folder in _SHARED for place in folder.iterdir())
    app = paced(pipeline("contract", SCALED, STEADY), objective=Objective(response_time_s=3))
    names = [kind.name for kind in kinds]
    tagged = len(kinds) > 1
    cluster = LocalCluster(work / "cluster", room=4, tagged=tagged)
    ending.enter_context(cluster)
    variables = python_variables(app.modules, app.places)
    variables[ZYGOTE_VARIABLE] = str(cluster.start_zygote(variables))
    spark = session(
        app.name,
        cluster.master_url,
        work=work,
        tagged=tagged,
        variables=variables,
        conf=EMBEDDED,
        private=cluster.private,
    )
    ending.callback(spark.stop)
    running = RunningApp(app, spark, work, run="contract" if tagged else None)
    nodes = nodes_for(cluster, spark, running, kinds)
    actuator = SparkActuator(running, spark, nodes, names)
    actuator.adopt({name: [nodes.acquire(name, names[-1])] for name in running.chains})
    running.summon(within_s=SLOW_MACHINE_S, check=cluster.check)
    ending.callback(running.stop)
    running.start()
    ending.callback(actuator.stop)
    monitor = SparkMonitor(running, actuator, names)
    schedule = ByRates(Shape(3600).constant(RATE), slot_s=1.0)
    feeder = Replayer(Feed(running.log("source")), Ids(), schedule)
    ending.callback(feeder.stop)
    feeder.start()
    return Started(running, monitor, actuator, before)


def _parent_of(stat: Path) -> int:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has ended meanwhile
        return 0


def _command_of(number: int) -> str:
    try:
        return Path(f"/proc/{number}/cmdline").read_text()
    except OSError:
        return ""


def _ours() -> list[int]:
    """All processes of the run: those this one has started, and those in the cluster's process group."""
    stats = {int(file.parent.name): file for file in Path("/proc").glob("[0-9]*/stat")}
    parents = {number: _parent_of(file) for number, file in stats.items()}
    found = {os.getpid()}
    while more := {number for number, parent in parents.items() if parent in found} - found:
        found |= more
    groups = {_group_of(number) for number in found} - {os.getpgid(0)}
    return [number for number in parents if number in found or _group_of(number) in groups]


def _group_of(number: int) -> int:
    try:
        return os.getpgid(number)
    except OSError:
        return 0


def _open_files(number: int) -> list[str]:
    """Files and sockets that a process has open, or mapped."""
    found: list[str] = []
    for place in (Path(f"/proc/{number}/fd"), Path(f"/proc/{number}/map_files")):
        with suppress(OSError):  # it has ended meanwhile
            for name in os.listdir(place):
                with suppress(OSError):
                    found.append(os.readlink(place / name))
    return found


def _sockets_of(numbers: list[int]) -> set[str]:
    """Their inodes."""
    files = {file for number in numbers for file in _open_files(number) if file.startswith("socket:[")}
    return {file.removeprefix("socket:[").removesuffix("]") for file in files}


def _listening(numbers: list[int]) -> set[Address]:
    """On which these processes do; an IPv4 address is one, however it is written."""
    inodes, found = _sockets_of(numbers), set[Address]()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == _LISTENS and inode in inodes:
                # Words of four bytes, each in the order of this machine.
                words = bytes.fromhex(local.partition(":")[0])
                address = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
                one = ip_address(address)
                found.add(one if isinstance(one, IPv4Address) else one.ipv4_mapped or one)
    return found


class TestSpark(RuntimeContract):
    operators = ("scaled", "steady")
    scaled = "scaled"
    node_types = len(KINDS)
    changes_within = int(SLOW_MACHINE_S / 2)

    @pytest.fixture(autouse=True)
    def _shared(self, started: Started) -> None:
        self.spark = started

    def start(self) -> tuple[Monitor, Actuator]:
        return self.spark.monitor, self.spark.actuator

    def advance(self) -> None:
        for _ in range(4):
            time.sleep(0.5)
            self.spark.actuator.poll()

    @contextmanager
    def nothing_runs(self) -> Iterator[None]:
        running = self.spark.running
        running.rest_chain(self.scaled, within_s=SLOW_MACHINE_S)
        rested_s, deadline = time.time(), time.monotonic() + SLOW_MACHINE_S
        while (last := running.log("source").last()) is None or last.published_at_s < rested_s:
            assert time.monotonic() < deadline, "no input came"
            time.sleep(0.1)
        try:
            yield
        finally:
            running.start_query(self.scaled)

    def test_an_operator_that_cannot_work_keeps_the_time_it_was_last_measured(self) -> None:
        with self.nothing_runs():
            before = self._one(self.spark.monitor.observe())
            self.advance()
            seen = self.spark.monitor.observe()
        assert self._one(seen).at_s == before.at_s
        assert seen.at_s - before.at_s >= 2
        waited_s = self._one(seen).response_time_s
        assert waited_s is not None
        assert waited_s >= 2

    def test_the_python_of_executors_is_forked_from_the_zygote(self) -> None:
        parents = {int(file.parent.name): _parent_of(file) for file in Path("/proc").glob("[0-9]*/stat")}
        zygotes = {
            number
            for number in parents
            if parents[number] == os.getpid()
            and "--zygote" in _command_of(number)  # others may run here as well
        }
        daemons = [number for number, parent in parents.items() if parent in zygotes]
        assert len(daemons) >= len(self.operators)
        # Else a key would belong to one partition in a fork, and to another in a worker of Spark's own.
        wanted = self.spark.running.spark.sparkContext.environment["PYTHONHASHSEED"]
        for zygote in zygotes:
            assert f"PYTHONHASHSEED={wanted}" in Path(f"/proc/{zygote}/environ").read_text().split("\0")

    def test_every_port_is_on_loopback(self) -> None:
        with socket.create_server(("127.9.9.9", 0)):
            found = _listening(_ours())
        assert {ip_address("127.9.9.9"), ip_address("127.0.0.1")} <= found
        assert [one for one in found if not one.is_loopback] == []

    def test_what_stands_in_shared_folders_is_for_us_alone(self) -> None:
        ours = _ours()
        inodes = _sockets_of(ours)
        sockets = {
            words[7]
            for line in Path("/proc/net/unix").read_text().splitlines()[1:]
            if len(words := line.split()) > 7 and words[6] in inodes
        }
        files = {file for number in ours for file in _open_files(number) if not file.endswith("(deleted)")}
        used = {
            place / Path(file).relative_to(place).parts[0]
            for file in files | sockets
            for place in _SHARED
            if Path(file) != place and Path(file).is_relative_to(place)
        }
        new = {place for place in used - self.spark.before if place.exists()}
        assert new
        assert {place for place in new if place.stat().st_mode & 0o077} == set()
        assert {place.name.partition("-")[0] for place in new} == {"penstock"}
        told = [folder / f"hsperfdata_{getuser()}" / str(pid) for folder in _SHARED for pid in ours]
        assert [file for file in told if file.exists()] == []

    def test_all_know_the_secret_of_the_run_and_nobody_reads_it_on_a_command_line(self) -> None:
        context = self.spark.running.spark.sparkContext
        secret = context.getConf().get("spark.authenticate.secret")
        assert secret is not None
        assert len(secret) >= 32
        commands = {number: _command_of(number) for number in _ours()}
        assert sum("CoarseGrainedExecutorBackend" in one for one in commands.values()) >= len(self.operators)
        assert [one for one in commands.values() if secret in one] == []
        assert [file for file in self.spark.running.work.rglob("*.conf") if secret in file.read_text()] == []

    def test_a_driver_without_the_secret_is_refused(self) -> None:
        master = str(self.spark.running.spark.sparkContext.master)
        stranger = subprocess.Popen(
            [sys.executable, "-c", _STRANGER, master],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
        with stranger:
            try:
                assert stranger.stderr is not None
                heard = next((line for line in stranger.stderr if _JOINED in line or _REFUSED in line), "")
            finally:
                stranger.kill()
        assert _REFUSED in heard

    def test_who_calls_back_into_python_without_the_token_is_not_answered(self) -> None:
        from pyspark import SparkContext

        gateway = SparkContext._gateway
        assert gateway is not None
        callable_from_java = next(iter(gateway.gateway_property.pool.dict))
        port = gateway.get_callback_server().port
        with socket.create_connection(("127.0.0.1", port), timeout=10) as stranger:
            stranger.sendall(f"c\n{callable_from_java}\ntoString\ne\n".encode())
            with suppress(ConnectionResetError):
                assert stranger.recv(1000) == b""

    def test_how_full_the_host_is_and_that_a_paced_operator_waits_is_seen(self) -> None:
        """One that computes uses as much CPU as it works, always; one that waits may, while it starts."""
        deadline = time.monotonic() + SLOW_MACHINE_S
        computing = 1.0
        while computing >= 0.5 and time.monotonic() < deadline:
            # So that the work on tuples outweighs what every task takes to begin and end.
            with self.nothing_runs():
                for _ in range(3):
                    self.advance()
                self.spark.monitor.observe()
            seen = self.spark.monitor.observe()
            while seen.host_loads is None or self._one(seen).computing is None:
                assert time.monotonic() < deadline, "not seen"
                self.advance()
                seen = self.spark.monitor.observe()
            assert list(seen.host_loads) == [socket.gethostname()]
            assert 0 < seen.host_loads[socket.gethostname()] <= 1
            computing = self._one(seen).computing or 0.0
        assert computing < 0.5  # it sleeps 10 ms a tuple
