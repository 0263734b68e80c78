"""A state as the input of a network: which cells are not 0, and what is in them (Russo 2023, appendix B.3).

| Encoding | Replicas k | Level |
|---|---|---|
| `minimal` | a cell a type: k_i / K_max | one cell: level over the highest |
| `large` | one-hot over all deployments | one-hot |
| `reduced1` | one-hot of k_i among 1..K_max, type by type | one cell: level over the highest |
| `reduced2` | the same | one-hot |

No replicas of a type (k_i = 0) set no cell. In the published code they set the one before the
first of their type: the last cell of the type before (k_(i-1) = K_max looks the same), and
cell 1, that of k_0 = 2, for the first type (`colliding`).
"""

from typing import NamedTuple

from penstock.compiled import Floats, Ints, compiled
from penstock.domain.errors import InputError
from penstock.perf.deployments import count_of
from penstock.policy.rl.problem import Problem

ENCODINGS = ("minimal", "large", "reduced1", "reduced2")
_MINIMAL, _LARGE, _REDUCED_1, _REDUCED_2 = range(4)
_CELL_OF_NO_FIRST_TYPE = 1  # what DL4J 0.9.1 makes of column -1


class Encoding(NamedTuple):
    """How states become inputs."""

    kind: int
    colliding: bool
    inputs: int
    at_once: int  # most cells that are not 0


def encoding(problem: Problem, name: str, *, colliding: bool = False) -> Encoding:
    if name not in ENCODINGS:
        raise InputError(f"encoding={name}: unknown; choose one of {', '.join(ENCODINGS)}")
    space = problem.deployments
    types, most = space.speedup.size, space.max_replicas
    kind = ENCODINGS.index(name)
    if kind == _LARGE and not space.enumerated:
        raise InputError(
            f"encoding=large: {types} node types and {most} replicas have too many deployments for a cell "
            "each; use reduced2"
        )
    replicas = {_MINIMAL: types, _LARGE: space.replicas.size}.get(kind, types * most)
    levels = problem.levels if kind in (_LARGE, _REDUCED_2) else 1
    return Encoding(
        kind=kind,
        colliding=colliding,
        inputs=replicas + levels,
        at_once=2 if kind == _LARGE else types + 1,
    )


@compiled
def encode(me: Encoding, problem: Problem, deployment: int, level: int, cells: Ints, amounts: Floats) -> int:
    """Write the cells that are not 0 and their amounts, from the start of both arrays; returns how many."""
    space = problem.deployments
    types, most = space.speedup.size, space.max_replicas
    used = 0
    if me.kind == _LARGE:
        cells[0], amounts[0] = deployment, 1.0
        used = 1
    elif me.kind == _MINIMAL:
        for node_type in range(types):
            cells[used] = node_type
            amounts[used] = count_of(space, deployment, node_type) / most
            used += 1
    else:
        for node_type in range(types):
            count = count_of(space, deployment, node_type)
            if count > 0 or me.colliding:
                cell = node_type * most + count - 1
                if cell < 0:
                    cell = _CELL_OF_NO_FIRST_TYPE
                if used == 0 or not _is_among(cells, used, cell):
                    cells[used], amounts[used] = cell, 1.0
                    used += 1
    if me.kind in (_LARGE, _REDUCED_2):
        cell, amount = me.inputs - problem.levels + level, 1.0
    else:
        cell, amount = me.inputs - 1, level / max(problem.levels - 1, 1)
    if me.colliding and _is_among(cells, used, cell):  # with one type and one replica, cell 1 is a level's
        return used
    cells[used], amounts[used] = cell, amount
    return used + 1


@compiled
def _is_among(cells: Ints, used: int, cell: int) -> bool:
    found = False
    for index in range(used):
        found = found or cells[index] == cell
    return found
