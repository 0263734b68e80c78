"""A cluster whose workers are acquired and released one by one, each for one operator.

A node that hosts replicas of an operator is a standalone worker that carries the operator's
tag as a custom resource: Spark puts that operator's executor on it, and no other. So the
supply of tagged workers decides how many replicas run, and of which node type.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from penstock.domain.errors import InputError
from penstock.java import command, environment
from penstock.java_errors import in_one_line

LOOPBACK = "127.0.0.1"
POOL = "pool"  # tag of the worker for stages no operator owns
SPEED_VARIABLE = "PENSTOCK_NODE_SPEED"
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_REGISTERED = "Successfully registered with master"
_MASTER_ANSWERS_S = 5.0


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

    def __post_init__(self) -> None:
        for what, value in (("speedup", self.speedup), ("cores", self.cores), ("slots", self.slots)):
            if not value > 0:
                raise InputError(f"node type '{self.name}': {what}={value}; it must be positive")
        if self.price < 0:
            raise InputError(f"node type '{self.name}': price={self.price}; it cannot be negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One acquired node: a worker process for one operator."""

    name: str
    tag: str  # operator it hosts a replica of
    kind: str  # node type
    host: str


class Nodes(Protocol):
    """Acquires and releases nodes; a cloud provider can stand behind it."""

    @property
    def master_url(self) -> str: ...

    def acquire(self, tag: str, kind: str) -> Worker:
        """Start a node for an operator. It is ready when its executor shows up, not before."""

    def drain(self, worker: Worker) -> None:
        """Ask the node to finish what runs and take nothing new."""

    def release(self, worker: Worker) -> None:
        """Give the node back, whatever runs on it."""

    def workers(self) -> tuple[Worker, ...]:
        """Nodes held now, without those that died."""


@dataclass
class _Process:
    worker: Worker | None
    handle: "subprocess.Popen[bytes]"
    log: Path
    begins: int  # where its words begin in the log, behind those of an earlier life

    def said(self) -> str:
        return self.log.read_bytes()[self.begins :].decode(errors="replace")


@dataclass
class LocalCluster:
    """A standalone master and tagged workers on loopback, and the end of them all.

    With `master`, the URL of one that runs on this machine already, the workers join that one.
    Every process belongs to one process group with a warden in it that reads a pipe from us:
    when we end, however we end, the pipe closes and the warden kills the group.
    """

    work: Path
    kinds: Mapping[str, NodeKind]
    port: int = 0  # of a master of our own; 0: any that is free
    master: str | None = None
    start_timeout_s: float = 60.0
    _processes: dict[str, _Process] = field(default_factory=dict)
    _warden: "subprocess.Popen[bytes] | None" = None
    _web_port: int = 0
    _started: int = 0

    def start(self) -> "LocalCluster":
        """Start the master, unless there is one, and the pool's worker; wait until both answer."""
        if self._warden is not None:
            raise ClusterError("the cluster has already been started")
        self.work.mkdir(parents=True, exist_ok=True)
        master = command(_MASTER)  # names a missing Java before anything runs
        if self.master is not None:
            check_master(self.master)
        else:
            self.port, self._web_port = _free_port(self.port), _free_port(0)
        self._warden = subprocess.Popen(
            [sys.executable, "-c", "import os, sys; sys.stdin.buffer.read(); os.killpg(0, 9)"],
            stdin=subprocess.PIPE,
            process_group=0,
        )
        try:
            if self.master is None:
                where = ("--host", LOOPBACK, "--port", str(self.port), "--webui-port", str(self._web_port))
                self._launch("master", None, (*master, *where), {"SPARK_LOCAL_IP": LOOPBACK})
                self._wait("the master", lambda: self.state() is not None)
            pool = self._processes[self.acquire(POOL, "").name]
            self._wait("the pool's worker", lambda: _REGISTERED in pool.said())
        except BaseException:
            self.stop()
            raise
        return self

    def __enter__(self) -> "LocalCluster":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

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

    def acquire(self, tag: str, kind: str) -> Worker:
        offered = NodeKind(name=POOL, memory_mb=1024) if tag == POOL else self._kind(kind)
        held = sum(1 for worker in self.workers() if worker.kind == kind)
        if tag != POOL and held >= offered.slots:
            raise ClusterError(f"node type '{kind}': all {offered.slots} slots are taken")
        self._started += 1
        number = self._started
        worker = Worker(
            name=f"{tag or 'worker'}-{number}",
            tag=tag,
            kind=kind,
            # Every worker has an address of its own, by which its executor is recognised.
            host=f"127.0.{1 + number // 250}.{1 + number % 250}",
        )
        home = self.work / "workers" / worker.name
        home.mkdir(parents=True, exist_ok=True)
        options = (
            *("--host", worker.host, "--port", "0", "--webui-port", "0"),
            *("--cores", str(offered.cores), "--memory", f"{offered.memory_mb}m"),
            *("--work-dir", str(home), "--properties-file", str(_worker_properties(home, tag))),
        )
        self._launch(
            worker.name,
            worker,
            (*command(_WORKER), *options, self.master_url),
            {"SPARK_LOCAL_IP": worker.host, SPEED_VARIABLE: str(offered.speedup)},
        )
        return worker

    def drain(self, worker: Worker) -> None:
        self._signal(worker, signal.SIGPWR)  # Spark's workers take it as: decommission

    def release(self, worker: Worker) -> None:
        self._signal(worker, signal.SIGTERM)
        process = self._processes.pop(worker.name, None)
        if process is not None:
            _end(process.handle)

    def workers(self) -> tuple[Worker, ...]:
        return tuple(
            process.worker
            for process in list(self._processes.values())  # nodes are released by other threads
            if process.worker is not None and process.worker.tag != POOL and process.handle.poll() is None
        )

    def check(self) -> None:
        """Raise when a process ended that nobody ended."""
        for name, process in list(self._processes.items()):
            if process.handle.poll() is not None:
                raise ClusterError(f"{name} ended: {in_one_line(process.said())}; see {process.log}")

    def stop(self) -> None:
        """End every process; calling it twice does no harm."""
        for process in self._processes.values():
            process.handle.terminate()
        for process in self._processes.values():
            _end(process.handle)
        self._processes.clear()
        if self._warden is not None and self._warden.stdin is not None:
            self._warden.stdin.close()  # whatever is left in the group, executors for instance, ends now
            self._warden.wait()
            self._warden = None

    def _kind(self, name: str) -> NodeKind:
        if name not in self.kinds:
            raise InputError(f"node type '{name}': unknown; choose one of {', '.join(self.kinds)}")
        return self.kinds[name]

    def _launch(
        self, name: str, worker: Worker | None, words: tuple[str, ...], variables: Mapping[str, str]
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
        self._processes[name] = _Process(worker, handle, log, begins)

    def _wait(self, what: str, ready: Any) -> None:
        deadline = time.monotonic() + self.start_timeout_s
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"{what} did not start within {self.start_timeout_s:g} s; see {self.work / 'logs'}"
                )
            time.sleep(0.2)

    def _signal(self, worker: Worker, number: signal.Signals) -> None:
        process = self._processes.get(worker.name)
        if process is not None and process.handle.poll() is None:
            os.kill(process.handle.pid, number)


def check_master(url: str) -> None:
    """Whether a master answers there, and workers of this machine can join it."""
    parts = urlsplit(url)
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
    if there != here and not there.startswith("127."):
        raise InputError(
            f"master '{url}': it runs on another machine, which cannot reach workers on loopback; "
            "penstock.attach controls a query there"
        )


def _free_port(wanted: int) -> int:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, wanted))
        except OSError as problem:
            raise InputError(f"port {wanted} on {LOOPBACK}: {problem.strerror}; choose another") from problem
        return int(probe.getsockname()[1])


def _worker_properties(home: Path, tag: str) -> Path:
    """One executor of this operator, and of no other, fits on the worker; any on one without a tag."""
    properties = home / "worker.conf"
    always = "spark.decommission.enabled true\nspark.worker.cleanup.enabled true\n"
    if not tag:
        properties.write_text(always)
        return properties
    discovery = home / "discover.sh"
    discovery.write_text(f"""#!/bin/sh\necho '{{"name": "{tag}", "addresses": ["0"]}}'\n""")
    discovery.chmod(0o755)
    properties.write_text(
        f"spark.worker.resource.{tag}.amount 1\n"
        f"spark.worker.resource.{tag}.discoveryScript {discovery}\n" + always
    )
    return properties


def _end(handle: "subprocess.Popen[bytes]") -> None:
    try:
        handle.wait(timeout=10)
    except subprocess.TimeoutExpired:
        handle.kill()
        handle.wait()
