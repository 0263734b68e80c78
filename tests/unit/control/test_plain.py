"""Memories of policies in plain Python, as data and back."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from penstock.control.plain_data import from_plain, packed, to_plain, unpacked
from penstock.domain.errors import InputError
from penstock.policy.application.token_bucket import Bucket, Token


class Recent(NamedTuple):
    """A memory as a named tuple."""

    rates: tuple[float, ...]
    since_s: float | None = None


@dataclass(frozen=True)
class Nested:
    """A memory of memories."""

    by_name: Mapping[str, Recent]
    bucket: Bucket | None


def there_and_back(value: Any) -> Any:
    return from_plain(json.loads(json.dumps(to_plain(value, type(value)), allow_nan=False)), type(value))


@pytest.mark.parametrize(
    "memory",
    [
        7,
        0.25,
        -inf,
        "calm",
        True,
        None,
        (),
        (1, (2.5, None), inf, "x"),
        Recent(rates=(1.0, inf), since_s=None),
        Bucket(kind=Token.HIGH, tokens=2, looked_at_s=3.0),
        Nested(by_name={"a": Recent(rates=())}, bucket=Bucket()),
    ],
)
def test_memories_come_back_as_they_were(memory: Any) -> None:
    again = there_and_back(memory)
    assert again == memory
    assert type(again) is type(memory)


@pytest.mark.parametrize(
    "array", [np.arange(6).reshape(2, 3), np.array([np.nan, np.inf]), np.zeros((0, 4)), np.array(3.5)]
)
def test_arrays_come_back_as_they_were(array: npt.NDArray[Any]) -> None:
    again = there_and_back(array)
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert again.flags.writeable
    np.testing.assert_array_equal(again, array)


@pytest.mark.parametrize("memory", [(Bucket(),), object(), [1], ({},)])
def test_what_could_not_be_read_back_is_not_written(memory: Any) -> None:
    with pytest.raises(TypeError, match="no plain form known"):
        to_plain(memory, type(memory))


@pytest.mark.parametrize("change", [{"bytes": "!"}, {"shape": [7]}, {"dtype": "colour"}, {"bytes": "AAAA"}])
def test_a_damaged_array_is_an_error(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="packed array"):
        unpacked({**packed(np.zeros(3)), **change})


def test_what_does_not_fit_says_where() -> None:
    with pytest.raises(InputError, match=r"Nested\.by_name\.a\.rates\[1\]: 'x' is not a float"):
        from_plain({"by_name": {"a": {"rates": [1.0, "x"]}}, "bucket": None}, Nested)
