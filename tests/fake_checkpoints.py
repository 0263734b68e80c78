"""A query's checkpoint as Spark 4.3 writes it, as far as Penstock reads it, and its repartitioning."""

import json
from pathlib import Path

from penstock.runtimes.spark.offsets import progress

QUERY = "6fdf57da"


class Repartitioning:
    """As Spark does it: a micro-batch more, blocked until it is through, never the same twice."""

    def __init__(self) -> None:
        self.fails: type[BaseException] | None = None
        self.done: list[int] = []

    def __call__(self, checkpoint: str, partitions: int) -> None:
        place = Path(checkpoint)
        known = progress(place)
        assert known is not None
        assert known.partitions != partitions, "the same number again"
        begin(place, known.epoch + 1, partitions, known.reached["words"])
        if self.fails is not None:
            raise self.fails("in the middle of it")
        commit(place, known.epoch + 1)
        self.done.append(partitions)


def begin(
    checkpoint: Path, epoch: int, partitions: int, upto: int, *, stream: str = "words", watermark: int = 0
) -> None:
    conf = {"spark.sql.shuffle.partitions": str(partitions)}
    batch = {"batchWatermarkMs": watermark, "batchTimestampMs": 0, "conf": conf}
    offset = {"log": stream, "batch": upto}
    (checkpoint / "offsets" / str(epoch)).write_text(f"v1\n{json.dumps(batch)}\n{json.dumps(offset)}")


def commit(checkpoint: Path, epoch: int, *, watermark: int = 0) -> None:
    (checkpoint / "commits" / str(epoch)).write_text(f'v1\n{{"nextBatchWatermarkMs":{watermark}}}')


def new_checkpoint(place: Path, partitions: int = 4) -> Path:
    """Of a query that has read five batches of `words`."""
    for part in ("offsets", "commits", "state"):
        (place / part).mkdir(parents=True)
    (place / "metadata").write_text(json.dumps({"id": QUERY}))
    (place / "state" / "0.sst").write_text("state")
    begin(place, 0, partitions, 5)
    commit(place, 0)
    return place


def partitions_of(checkpoint: Path) -> int | None:
    known = progress(checkpoint)
    return None if known is None else known.partitions
