"""Operators whose stages cannot all be placed and measured are refused before anything runs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.runtimes.spark.log_source import LogSource
from penstock.runtimes.spark.running import RunningApp
from penstock.runtimes.spark.topology import App

Transform = Callable[[DataFrame], DataFrame]


def app_of(transform: Transform, *, stateful: bool) -> App:
    app = App("words", objective=Objective(response_time_s=5))
    words = app.source("words", schema="word string, at timestamp")
    app.sink("out", app.operator("count", transform, words, stateful=stateful, output_mode="append"))
    return app


def once(words: DataFrame) -> DataFrame:
    return words.withWatermark("at", "1 second").dropDuplicates(["word", "at"])


def twice(words: DataFrame) -> DataFrame:
    return once(words).groupBy("at").count()


def dealt_out(words: DataFrame) -> DataFrame:
    return words.repartition(3)


@pytest.mark.parametrize(
    ("transform", "stateful", "why"),
    [
        (twice, True, "operator 'count': Spark shuffles in it more than once"),
        (dealt_out, False, r"operator 'count': it shuffles \('Exchange RoundRobin.* stateful=True"),
    ],
)
def test_an_operator_with_a_stage_that_nobody_would_see_is_refused(
    spark: SparkSession, tmp_path: Path, transform: Transform, stateful: bool, why: str
) -> None:
    spark.dataSource.register(LogSource)
    running = RunningApp(app_of(transform, stateful=stateful), spark, tmp_path)
    with pytest.raises(InputError, match=why):
        running.start_query("count")
    assert not running.queries


def test_an_operator_that_shuffles_once_is_taken(spark: SparkSession, tmp_path: Path) -> None:
    spark.dataSource.register(LogSource)
    running = RunningApp(app_of(once, stateful=True), spark, tmp_path)
    (query,) = running.plan.values()
    frames = [running._read(query.chains[0], "words")]
    assert running._in_stream(query, frames).isStreaming
