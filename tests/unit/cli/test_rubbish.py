"""Bad input from fixed seeds; `make rubbish` tries a hundred thousand."""

import pytest

from rubbish.gates import closed
from rubbish.judge import tried

EACH = 50
SEEDS = range(0, 300, EACH)


@pytest.mark.parametrize("first", SEEDS)
def test_bad_input_is_one_line_and_leaves_nothing_half_written(first: int) -> None:
    failed = []
    with closed():
        for seed in range(first, first + EACH):
            faults = tried(seed).faults
            if faults:
                failed.append(f"seed {seed}: {faults[0]}; again: cd tests && python -m rubbish --seed {seed}")
    assert not failed, "\n".join(failed)
