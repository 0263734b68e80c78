"""What the bench of two hours makes of what it has looked at."""

import os
from pathlib import Path
from typing import Any

import pytest

from penstock.bench.endurance import Sample, _files, figures
from penstock.live.run import RunError


def samples(mb: list[float], name: str) -> list[Sample]:
    return [Sample(30.0 * number, {name: size}) for number, size in enumerate(mb)]


def test_the_last_quarter_is_held_against_the_second() -> None:
    grows = list(figures(samples([9.0, 1.0, 2.0, 3.0], "memory: driver's Java")))
    assert [(one.name, one.value, one.at_most) for one in grows] == [
        ("memory: driver's Java, at the end", 3.0, None),
        ("memory: driver's Java, last quarter over second", 3.0, 1.1),
    ]
    records = list(figures(samples([1.0, 1.0, 2.0, 3.0], "disk: records of every interval")))
    assert records[1].at_most is None  # a line for every interval: it grows
    rises = list(figures(samples([0.0, 0.0, 0.0, 5.0], "disk: temporary")))
    assert [one.ok for one in rises] == [None, False]
    still = list(figures(samples([0.0, 0.0, 0.0, 0.1], "disk: temporary")))
    assert len(still) == 1
    with pytest.raises(RunError, match="3 samples are too few"):
        list(figures(samples([1.0] * 3, "disk: all else")))


def test_folders_that_go_while_they_are_looked_at_are_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("goes", "stays"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("12345")
    look = os.scandir

    def gone(place: Any) -> Any:
        if str(place).endswith("goes"):
            raise FileNotFoundError(place)
        return look(place)

    monkeypatch.setattr(os, "scandir", gone)
    assert list(_files(tmp_path)) == [("stays/file", 5)]
