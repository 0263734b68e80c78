"""How the operators of a chain become one query, without Spark."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.domain.objective import Objective
from penstock.runtimes.spark.running import RunningApp
from penstock.runtimes.spark.topology import App


@dataclass(frozen=True)
class Frame:
    """Stands for a DataFrame: remembers what was done to it."""

    done: tuple[str, ...] = ()
    schema: str = "x long"

    def mapInArrow(self, tap: object, schema: str, profile: object) -> "Frame":  # noqa: N802, as in Spark
        return Frame((*self.done, "tap"))


def doing(name: str) -> Callable[[Frame], Frame]:
    return lambda frame: Frame((*frame.done, name))


@pytest.mark.parametrize(
    ("stateful", "done"),
    [
        ("", ("parse", "keep", "count")),
        ("parse", ("tap", "parse", "keep", "count")),
        ("count", ("parse", "keep", "tap", "count")),
    ],
)
def test_the_stage_before_a_shuffle_is_bound_and_measured_wherever_it_stands_in_its_chain(
    stateful: str, done: tuple[str, ...], tmp_path: Path
) -> None:
    app = App("fused", objective=Objective(response_time_s=1))
    stream = app.source("source", schema="x long")
    for name in ("parse", "keep", "count"):
        fused = name != "parse"
        stream = app.operator(name, doing(name), stream, fused=fused, stateful=name == stateful)
    app.sink("sink", stream)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[1]"))
    running = RunningApp(app, spark, tmp_path)
    (chain,) = running.chains.values()
    frames: list[Any] = [Frame()]
    result: Any = running._transformed(chain, frames, tmp_path)
    assert result.done == done
