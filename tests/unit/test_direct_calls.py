"""Compiled functions called directly: the same numbers as through numba's front door."""

import gc

import numpy as np

from penstock.compiled import compiled_uncached
from penstock.direct_calls import OpenGenerator, generator_at, machine_code
from penstock.domain.infrastructure import NodeType
from penstock.perf.deployments import deployments
from penstock.perf.operator import response_time
from penstock.perf.queueing import m_m_1


@compiled_uncached
def draw(address: int) -> float:
    return generator_at(address).random()


def test_machine_code_does_what_its_function_does() -> None:
    space = deployments((NodeType(name="slow", speedup=1.0, price=1.0),), 3)
    queue = m_m_1(0.01)
    direct = machine_code(response_time, queue, space, 0, 0.0)
    # M/M/1 at 100 tuples/s over two replicas of 100 tuples/s each: 1 / (100 - 50) s.
    assert direct(queue, space, 1, 100.0) == response_time(queue, space, 1, 100.0)
    assert abs(direct(queue, space, 1, 100.0) - 0.02) < 1e-12


def test_an_open_generator_and_the_one_it_was_made_of_draw_from_one_stream() -> None:
    opened, reference = OpenGenerator(np.random.default_rng(7)), np.random.default_rng(7)
    expected = reference.random(6).tolist()
    drawn = [draw(opened.address), opened.rng.random(), draw(opened.address)]
    assert drawn == expected[:3]


def test_an_open_generator_outlives_the_names_it_was_known_by() -> None:
    opened = [OpenGenerator(np.random.default_rng(seed)) for seed in range(50)]
    gc.collect()
    _ = [np.random.default_rng(seed) for seed in range(500)]  # would take the room of what was freed
    assert [draw(one.address) for one in opened] == [
        np.random.default_rng(seed).random() for seed in range(50)
    ]
