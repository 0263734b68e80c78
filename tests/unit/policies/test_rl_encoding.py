"""States as inputs, in the setting of Figure 26 of Russo 2023: two types, three replicas, three levels."""

from itertools import product

import numpy as np
import pytest
from policy_cases import at, node_types, problem_of, space_of

from penstock.domain.errors import InputError
from penstock.perf.deployments import replicas_at
from penstock.policy.rl.encoding import ENCODINGS, encode, encoding
from penstock.policy.rl.problem import Problem

TYPES = node_types((1.0, 2.0))
SPACE = space_of(TYPES, 3)
PROBLEM = problem_of(SPACE, levels=3)


def inputs(
    name: str, counts: tuple[int, ...], level: int, *, colliding: bool = False, problem: Problem = PROBLEM
) -> list[float]:
    """The whole vector."""
    how = encoding(problem, name, colliding=colliding)
    cells, amounts = np.full(how.at_once, -1), np.full(how.at_once, np.nan)
    used = encode(how, problem, at(problem.deployments, *counts), level, cells, amounts)
    assert used <= how.at_once
    assert len(set(cells[:used].tolist())) == used
    vector = np.zeros(how.inputs)
    vector[cells[:used]] = amounts[:used]
    return [float(value) for value in vector]


def test_minimal_has_a_normalised_cell_for_every_part_of_the_state() -> None:
    assert inputs("minimal", (2, 1), 1) == [2 / 3, 1 / 3, 1 / 2]
    assert inputs("minimal", (0, 3), 2) == [0.0, 1.0, 1.0]


def test_large_has_a_cell_for_every_deployment_and_every_level() -> None:
    seen = set()
    for row in range(SPACE.replicas.size):
        for level in range(3):
            vector = inputs("large", replicas_at(SPACE, row).counts, level)
            assert len(vector) == 9 + 3  # (0,1) ... (3,0): nine deployments
            assert (sum(vector[:9]), sum(vector[9:])) == (1, 1)
            assert vector[9 + level] == 1
            seen.add(tuple(vector))
    assert len(seen) == 9 * 3


def test_reduced_1_has_a_cell_for_every_count_of_every_type_and_one_for_the_level() -> None:
    assert inputs("reduced1", (2, 1), 1) == [0, 1, 0, 1, 0, 0, 1 / 2]
    assert inputs("reduced1", (3, 0), 2) == [0, 0, 1, 0, 0, 0, 1]


def test_reduced_2_has_a_cell_for_every_level_too() -> None:
    assert inputs("reduced2", (2, 1), 1) == [0, 1, 0, 1, 0, 0, 0, 1, 0]
    assert inputs("reduced2", (0, 3), 0) == [0, 0, 0, 0, 0, 1, 1, 0, 0]
    three = problem_of(space_of(node_types((1.0, 0.7, 1.3)), 10), levels=30)
    assert encoding(three, "reduced2").inputs == 60  # as in the published runs


def test_as_published_no_replicas_of_a_type_look_like_something_else() -> None:
    # Of the second type: the cell of three replicas of the first. Of the first: that of two.
    assert inputs("reduced2", (2, 0), 1, colliding=True) == [0, 1, 1, 0, 0, 0, 0, 1, 0]
    assert inputs("reduced2", (3, 0), 1, colliding=True) == [0, 0, 1, 0, 0, 0, 0, 1, 0]
    assert inputs("reduced2", (0, 1), 1, colliding=True) == inputs("reduced2", (2, 1), 1, colliding=True)


@pytest.mark.parametrize("name", ENCODINGS)
def test_without_the_collision_every_state_looks_different(name: str) -> None:
    states = product((replicas_at(SPACE, row).counts for row in range(SPACE.replicas.size)), range(3))
    vectors = [tuple(inputs(name, counts, level)) for counts, level in states]
    assert len(set(vectors)) == len(vectors)


@pytest.mark.parametrize("colliding", [False, True])
def test_one_type_one_replica_and_one_level_can_be_encoded(colliding: bool) -> None:
    one = problem_of(space_of(node_types(), 1), levels=1)
    for name in ENCODINGS:
        assert all(0 <= value <= 1 for value in inputs(name, (1,), 0, colliding=colliding, problem=one))


@pytest.mark.parametrize("name", ["minimal", "reduced1", "reduced2"])
def test_packed_deployments_look_like_enumerated_ones(name: str) -> None:
    packed = problem_of(space_of(TYPES, 3, packed=True), levels=3)
    for counts in ((1, 0), (0, 2), (2, 1)):
        assert inputs(name, counts, 2, problem=packed) == inputs(name, counts, 2)


def test_what_cannot_be_encoded_is_refused_with_a_way_out() -> None:
    packed = problem_of(space_of(TYPES, 3, packed=True), levels=3)
    with pytest.raises(InputError, match="use reduced2"):
        encoding(packed, "large")
    with pytest.raises(InputError, match="minimal, large, reduced1, reduced2"):
        encoding(PROBLEM, "huge")
