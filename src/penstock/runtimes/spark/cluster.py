"""The processes of a standalone cluster on this machine: a master, and workers, plain or with a tag."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from penstock.domain.errors import InputError
from penstock.java import command, environment
from penstock.java_errors import in_one_line
from penstock.runtimes.spark.daemon import DAEMON, ZYGOTE
from penstock.runtimes.spark.executor_folders import remove_left_by_executors, remove_left_by_workers
from penstock.runtimes.spark.private import (
    Private,
    folder_of_process,
    java_options,
    logging_option,
    new_private,
    temporary_folder,
    write_logging,
    write_properties,
)
from penstock.runtimes.spark.restarts import Restarts

LOOPBACK = "127.0.0.1"
POOL = "pool"  # tag of the worker for stages no operator owns, where all are tagged
SPEED_VARIABLE = "PENSTOCK_NODE_SPEED"
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_REGISTERED = "Successfully registered with master"
_MASTER_ANSWERS_S = 5.0
_MASTER_NAME = "master"
_SHARED = "worker"  # for all executors, or for those of stages no operator owns
_PYTHON = "python"
_ALIVE = b"alive"
# When we end, however we end, it kills the others of its process group, removes folders, and ends. The
# first folder is the cluster's; the second one is needed as long as we live, so a word says that we do.
# Who was killed, and our own Java, which ends by itself, may take their time and go on writing there.
# Where one of the group stands still when we end, the kernel tells all of it to hang up.
_WARDEN = """
import os, shutil, signal, sys, time
from contextlib import suppress
signal.signal(signal.SIGHUP, signal.SIG_IGN)
alive = sys.stdin.buffer.read()
for number in (int(name) for name in os.listdir("/proc") if name.isdigit()):
    with suppress(OSError):
        if number != os.getpid() and os.getpgid(number) == os.getpgid(0):
            os.kill(number, 9)
folders, gone, until_s = sys.argv[1:2] if alive else sys.argv[1:], 0, time.monotonic() + 60
while gone < (1 if alive else 5) and time.monotonic() < until_s:
    gone = 0 if any(map(os.path.exists, folders)) else gone + 1
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    if not alive or not gone:
        time.sleep(.2)
os.killpg(0, 9)
"""
_MB = 1024
_LONGEST_LOG = 1_000_000  # bytes
_TIDIED_EVERY_S = 60.0
_REVIVED_AT_START = 3  # times: what cannot run at all is to be told at once
_ADDRESSES = 250  # of each of two parts


class ClusterError(RuntimeError):
    """Something of the cluster did not come up, or died; the message is one line for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKind:
    """A type of node on offer: its share of a machine, how fast it is and what it costs."""

    name: str
    speedup: float = 1.0
    price: float = 1.0  # per replica and hour
    cores: int = 1
    memory_mb: int = 1024
    slots: int = 1_000  # replicas all nodes of this kind can host together
    watts: float | None = None  # of a replica; None = not known

    def __post_init__(self) -> None:
        for what, value in (("speedup", self.speedup), ("cores", self.cores), ("slots", self.slots)):
            if not value > 0:
                raise InputError(f"node type '{self.name}': {what}={value}; it must be positive")
        if self.price < 0:
            raise InputError(f"node type '{self.name}': price={self.price}; it cannot be negative")


@dataclass
class _Process:
    handle: "subprocess.Popen[bytes]"
    log: Path
    begins: int  # where its words begin in the log, behind those of an earlier life
    host: str = ""  # of a worker

    def said(self) -> str:
        return self.log.read_bytes()[self.begins :].decode(errors="replace")

    def cut_log(self) -> None:
        """To nothing, where it is long; what was in it is kept until the next time. Whoever writes there
        appends."""
        if self.log.stat().st_size > _LONGEST_LOG:
            shutil.copyfile(self.log, self.log.with_suffix(".old"))
            os.truncate(self.log, 0)
            self.begins = 0


@dataclass
class LocalCluster:
    """A standalone master and workers on loopback, and the end of them all.

    With `master`, the URL of one that runs already, there is no master of our own, and no worker
    but tagged ones. `tagged` says that every executor gets a worker that carries its tag; else one
    worker has room for all. Only who has its secret takes part in one that is `guarded`.
    Every process belongs to one process group with a warden in it that reads a pipe from us:
    when we end, however we end, the pipe closes and the warden kills the group.
    """

    work: Path
    room: int = 1_000  # executors on the worker for all
    tagged: bool = False
    port: int = 0  # of a master of our own; 0: any that is free
    master: str | None = None
    start_timeout_s: float = 60.0
    guarded: bool = True  # where the master is our own
    _processes: dict[str, _Process] = field(default_factory=dict)
    _warden: "subprocess.Popen[bytes] | None" = None
    _web_port: int = 0
    _addresses: Iterator[str] = field(default_factory=lambda: cycle(map(_address, range(_ADDRESSES**2))))
    _private: Private | None = None
    _folder: Path = Path()
    _zygote_variables: Mapping[str, str] = field(default_factory=dict)
    _restarts: Restarts = field(default_factory=Restarts)
    _tidied_s: float = field(default_factory=time.monotonic)

    def start(self) -> "LocalCluster":
        """Start what there is to start before any replica; wait until it answers."""
        if self._warden is not None:
            raise ClusterError("the cluster has already been started")
        self.work.mkdir(parents=True, exist_ok=True)
        command(_MASTER)  # names a missing Java before anything runs
        if self.master is None:
            self.port, self._web_port = _free_port(self.port), _free_port(0)
        self._private = new_private() if self.guarded and self.master is None else None
        self._folder = temporary_folder() if self._private is None else self._private.folder
        write_logging(self._folder)
        self._warden = subprocess.Popen(
            [sys.executable, "-c", _WARDEN, str(self._folder), str(folder_of_process())],
            stdin=subprocess.PIPE,
            process_group=0,
        )
        try:
            if self.master is None:
                self._start_master()
                self._wait("the master", lambda: self.state() is not None)
            if self.tagged or self.master is None:
                self._start_shared()
                shared = self._processes[_SHARED]
                self._wait("the worker", lambda: _REGISTERED in shared.said())
        except BaseException:
            self.stop()
            raise
        return self

    def __enter__(self) -> "LocalCluster":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def private(self) -> Private | None:
        """What a driver needs to take part; None where everybody may."""
        return self._private

    @property
    def _known(self) -> dict[str, str]:
        return {} if self._private is None else self._private.settings

    def _java(self, words: tuple[str, ...]) -> tuple[str, ...]:
        java, *others = words
        return (java, *java_options(self._folder), logging_option(self._folder), *others)

    @property
    def master_url(self) -> str:
        return self.master or f"spark://{LOOPBACK}:{self.port}"

    def state(self) -> dict[str, Any] | None:
        """What our own master says of itself, or None while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self._web_port}/json/", timeout=5) as answer:
                said: dict[str, Any] = json.load(answer)
                return said
        except (OSError, ValueError):
            return None

    def start_worker(
        self, name: str, *, cores: int, memory_mb: int, tag: str = "", speedup: float = 1.0
    ) -> None:
        """Start a worker; one with a tag takes one executor that asks for this tag, and no other."""
        # Every worker has an address of its own, by which its executor is recognised.
        host = self._free_address()
        home = self.work / "workers" / name
        home.mkdir(parents=True, exist_ok=True)
        options = (
            *("--host", host, "--port", "0", "--webui-port", "0"),
            *("--cores", str(cores), "--memory", f"{memory_mb}m"),
            *("--work-dir", str(home), "--properties-file", str(self._worker_properties(name, tag))),
        )
        self._launch(
            name,
            (*self._java(command(_WORKER)), *options, self.master_url),
            {"SPARK_LOCAL_IP": host, SPEED_VARIABLE: str(speedup)},
            host=host,
        )

    def _free_address(self) -> str:
        taken = set(self.workers().values())
        return next(address for address in self._addresses if address not in taken)

    def start_zygote(self, variables: Mapping[str, str]) -> Path:
        """Start a process that executors' Python is forked from, in this environment; where it will listen.

        Executors that come before it listens, or while it is gone, load everything themselves.
        """
        place = self._folder / _PYTHON
        place.unlink(missing_ok=True)
        self._zygote_variables = dict(variables)
        as_spark_has_it = {
            "OMP_NUM_THREADS": "1",  # for an executor with one core
            "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),  # the same hashes in all workers
        }
        words = (sys.executable, "-P", "-m", DAEMON, ZYGOTE, str(place))
        self._launch(_PYTHON, words, {**variables, **as_spark_has_it})
        return place

    def decommission(self, name: str) -> None:
        """Have a worker and its executor finish what runs, and leave."""
        self._signal(name, signal.SIGPWR)  # Spark's workers take it so

    def stop_worker(self, name: str) -> None:
        self._signal(name, signal.SIGTERM)
        process = self._processes.pop(name, None)
        if process is not None:
            _end(process.handle)
            for file in (self._properties_of(name), self._discovery_of(name)):
                file.unlink(missing_ok=True)

    def workers(self) -> dict[str, str]:
        """Workers that live, and where."""
        return {
            name: process.host
            for name, process in list(self._processes.items())  # workers are stopped by other threads
            if process.host and process.handle.poll() is None
        }

    def revive(self) -> str | None:
        """Start the master, the worker for all, and the zygote, again when they died, after a pause, and say
        so. Without its master an application goes on with the executors it has, and gets no others."""
        lives: Mapping[str, tuple[str, Callable[[], object]]] = {
            _MASTER_NAME: ("the master", self._start_master),
            _SHARED: ("the worker", self._start_shared),
            _PYTHON: ("the zygote of executors' Python", lambda: self.start_zygote(self._zygote_variables)),
        }
        ended = {name: words for name in lives if (words := self._last_words(name)) is not None}
        now_s, said = time.monotonic(), list[str]()
        self._restarts.failed(ended, now_s)
        for name in self._restarts.due(now_s):
            what, start = lives[name]
            start()
            said.append(f"{what} ended and was started again: {ended[name]}")
        return "; ".join(said) or None

    def _last_words(self, name: str) -> str | None:
        """None while it lives, or where there is none."""
        process = self._processes.get(name)
        return None if process is None or process.handle.poll() is None else in_one_line(process.said())

    def tidy(self) -> None:
        """Once a minute: what ended executors have left goes, but for the latest; long logs are cut. What
        cannot be done now, since others remove there as well or the disk is full, has time."""
        now_s = time.monotonic()
        if self._warden is None or now_s - self._tidied_s < _TIDIED_EVERY_S:
            return
        self._tidied_s = now_s
        workers = self.work / "workers"
        with suppress(OSError):
            remove_left_by_workers(workers, self.work / "logs", there=list(self._processes))
            remove_left_by_executors(workers, group=self._warden.pid)
        for process in list(self._processes.values()):  # workers are stopped by other threads
            with suppress(OSError):
                process.cut_log()

    def check(self, *, revived: bool = False) -> None:
        """Raise when a process ended that nobody ended; executors do without the zygote. Those that `revived`
        says are started again may end some times."""
        for name, process in list(self._processes.items()):
            ended = name != _PYTHON and process.handle.poll() is not None
            comes_again = revived and name in (_MASTER_NAME, _SHARED)
            if ended and not (comes_again and self._restarts.failures.get(name, 0) <= _REVIVED_AT_START):
                raise ClusterError(f"{name} ended: {in_one_line(process.said())}; see {process.log}")

    def stop(self) -> None:
        """End every process; calling it twice does no harm."""
        for process in self._processes.values():
            process.handle.terminate()
        for process in self._processes.values():
            _end(process.handle)
        self._processes.clear()
        if self._warden is not None and self._warden.stdin is not None:
            with suppress(BrokenPipeError):  # somebody has killed it
                self._warden.stdin.write(_ALIVE)
                self._warden.stdin.close()  # whatever is left in the group, executors for instance, ends now
            self._warden.wait()
            self._warden = None

    def _worker_properties(self, name: str, tag: str) -> Path:
        """One executor of this operator, and of no other, fits on the worker; any on one without a tag.

        Not in the run folder, where somebody else may have written before: it names what is executed.
        """
        settings = {
            **self._known,
            "spark.decommission.enabled": "true",
            "spark.worker.cleanup.enabled": "true",
            "spark.local.dir": str(self._folder),
            "spark.executor.logs.rolling.strategy": "size",
            "spark.executor.logs.rolling.maxSize": str(_LONGEST_LOG),
            "spark.executor.logs.rolling.maxRetainedFiles": "2",
        }
        if tag:
            discovery = self._discovery_of(name)
            discovery.write_text(f"""#!/bin/sh\necho '{{"name": "{tag}", "addresses": ["0"]}}'\n""")
            discovery.chmod(0o700)
            settings[f"spark.worker.resource.{tag}.amount"] = "1"
            settings[f"spark.worker.resource.{tag}.discoveryScript"] = str(discovery)
        return write_properties(self._properties_of(name), settings)

    def _properties_of(self, name: str) -> Path:
        return self._folder / f"{name}.conf"

    def _discovery_of(self, name: str) -> Path:
        return self._folder / f"{name}.sh"

    def _start_master(self) -> None:
        """It keeps what it knows of applications and workers where one that is started again finds it."""
        known = self._folder / "recovery"
        known.mkdir(exist_ok=True)
        settings = {
            **self._known,
            "spark.deploy.recoveryMode": "FILESYSTEM",
            "spark.deploy.recoveryDirectory": str(known),
        }
        where = ("--host", LOOPBACK, "--port", str(self.port), "--webui-port", str(self._web_port))
        told = ("--properties-file", str(write_properties(self._folder / "master.conf", settings)))
        words = (*self._java(command(_MASTER)), *where, *told)
        self._launch(_MASTER_NAME, words, {"SPARK_LOCAL_IP": LOOPBACK})

    def _start_shared(self) -> None:
        """What a worker offers is what it says; the machine under it is that of all."""
        if self.tagged:
            self.start_worker(_SHARED, cores=1, memory_mb=_MB, tag=POOL)
        else:
            self.start_worker(_SHARED, cores=self.room + 1, memory_mb=(self.room + 1) * _MB)

    def _launch(
        self, name: str, words: tuple[str, ...], variables: Mapping[str, str], *, host: str = ""
    ) -> None:
        if self._warden is None:
            raise ClusterError("the cluster is not running")
        log = self.work / "logs" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            begins = output.tell()
            handle = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment(**variables),
                process_group=self._warden.pid,
            )
        self._processes[name] = _Process(handle, log, begins, host)

    def _wait(self, what: str, ready: Any) -> None:
        deadline = time.monotonic() + self.start_timeout_s
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"{what} did not start within {self.start_timeout_s:g} s; see {self.work / 'logs'}"
                )
            time.sleep(0.2)

    def _signal(self, name: str, number: signal.Signals) -> None:
        process = self._processes.get(name)
        if process is not None and process.handle.poll() is None:
            os.kill(process.handle.pid, number)


def _address(number: int) -> str:
    return f"127.0.{1 + number // _ADDRESSES}.{2 + number % _ADDRESSES}"


def check_master(url: str, *, ours: bool) -> None:
    """Whether a master answers there; workers of `ours` have to be able to join it."""
    parts = urlsplit(url)
    if url.startswith("local"):
        raise InputError(f"master '{url}': it has no executors; leave it out, or give spark://HOST:PORT")
    if not ours and (url == "yarn" or parts.scheme == "k8s"):
        return  # Spark knows how to find them
    try:
        host, port = parts.hostname, parts.port
    except ValueError as problem:
        raise InputError(f"master '{url}': {problem}") from problem
    if parts.scheme != "spark" or not host or port is None or parts.path:
        raise InputError(f"master '{url}': not a standalone master; give one like spark://127.0.0.1:7077")
    try:
        with socket.create_connection((host, port), timeout=_MASTER_ANSWERS_S) as connection:
            there, here = connection.getpeername()[0], connection.getsockname()[0]
    except OSError as problem:
        raise ClusterError(f"master {url}: does not answer: {problem.strerror or problem}") from problem
    if ours and there != here and not there.startswith("127."):
        raise InputError(
            f"master '{url}': it runs on another machine, which cannot reach workers on loopback; "
            "with one type of nodes, it serves with workers of its own"
        )


def is_loopback(url: str) -> bool:
    """Whether a master listens on loopback, so that the driver can as well."""
    host = urlsplit(url).hostname or ""
    return host == "localhost" or host.startswith("127.")


def _free_port(wanted: int) -> int:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, wanted))
        except OSError as problem:
            raise InputError(f"port {wanted} on {LOOPBACK}: {problem.strerror}; choose another") from problem
        return int(probe.getsockname()[1])


def _end(handle: "subprocess.Popen[bytes]") -> None:
    try:
        handle.wait(timeout=10)
    except subprocess.TimeoutExpired:
        handle.kill()
        handle.wait()
