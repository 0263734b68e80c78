"""What begins where bad input ends: a cluster, a benchmark, a reproduction. None of it is entered here."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any, NoReturn
from unittest.mock import patch

import typer.main


class Accepted(BaseException):
    """The input was good after all; what it asks for would take long."""


def _accepted(*_: object, **__: object) -> NoReturn:
    raise Accepted


def _slept(seconds: float) -> None:
    """`penstock power` sleeps a second at a time while more than one is left."""
    if seconds >= 1:
        raise Accepted
    time.sleep(seconds)


def _nothing(*_: object, **__: object) -> None: ...


@contextmanager
def closed() -> Iterator[None]:
    """Within, commands go as far as they can without what takes long."""
    from penstock.cli.bench import BENCHMARKS
    from penstock.papers.reproductions import REPRODUCTIONS

    benches = {name: replace(one, load=_accepted) for name, one in BENCHMARKS.items()}
    reproductions = {name: replace(one, run=_accepted) for name, one in REPRODUCTIONS.items()}
    made: Any = cache(typer.main.get_command)  # commands made of signatures: most of the time of a short one
    with (
        patch("penstock.data.spark_session.spark_session", _accepted),
        patch("penstock.live.run.LocalCluster", _accepted),
        patch("penstock.chaos.trial.Trial.run", _accepted),
        patch("penstock.live.run.compile_policy", _nothing),
        patch("penstock.live.run.class_archive.is_made", lambda: True),
        patch("penstock.live.run.class_archive.options", lambda: ""),
        patch("penstock.cli.power.time", SimpleNamespace(monotonic=time.monotonic, sleep=_slept)),
        patch("penstock.cli.bench.BENCHMARKS", benches),
        patch("penstock.papers.reproductions.REPRODUCTIONS", reproductions),
        patch("typer.main.get_command", made),
    ):
        yield
