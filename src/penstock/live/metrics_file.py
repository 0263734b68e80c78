"""What a run has measured, as Parquet files: one row per interval, one file per time it ran."""

from collections.abc import Sequence
from pathlib import Path

from penstock.live.record import Interval, row


def write_metrics(out: Path, intervals: Sequence[Interval], began_s: float) -> None:
    """One more file in the run's folder of metrics."""
    import pyarrow
    from pyarrow import parquet

    target = out / "metrics"
    target.mkdir(parents=True, exist_ok=True)
    if intervals:
        table = pyarrow.Table.from_pylist([row(interval, began_s) for interval in intervals])
        parquet.write_table(table, target / f"part-{len(list(target.glob('*.parquet'))):03d}.parquet")
