"""Planning problems of all kinds, from a seed: hosts, links, operators and demands that differ, any graph."""

import numpy as np

from penstock.perf.queueing import m_m_1
from penstock.planning.problem import (
    Engine,
    Goal,
    Host,
    Network,
    PlannedOperator,
    PlannedStream,
    Problem,
    Readings,
)


def random_problem(seed: int, *, operators: tuple[int, int], hosts: tuple[int, int], most: int) -> Problem:
    rng = np.random.default_rng(seed)
    count, nodes = int(rng.integers(*operators, endpoint=True)), int(rng.integers(*hosts, endpoint=True))
    there = tuple(
        Host(
            name=f"h{number}",
            capacity=float(rng.choice([1.0, 2.0, 2.5, 3.0])),
            speedup=float(rng.choice([1.0, 1.0, 1.5])),
            price=float(rng.choice([1.0, 1.0, 2.0])),
            spawn_s=0.5,
            store_delay_s=float(rng.choice([0.0, 0.005])),
            upload_bytes_s=12.5e6,
            download_bytes_s=12.5e6,
            local_bytes_s=1e8,
        )
        for number in range(nodes)
    )
    delay_s = rng.uniform(0.005, 0.06, (nodes, nodes))  # not the same in both directions
    price = rng.uniform(0, 0.01, (nodes, nodes))
    for matrix in (delay_s, price):
        np.fill_diagonal(matrix, 0.0)
    made = tuple(
        PlannedOperator(
            name=f"o{number}",
            rate=100.0,
            queue=m_m_1(1 / float(rng.uniform(80, 400))),
            demand=float(rng.choice([0.5, 1.0, 1.0, 1.5])),
            code_bytes=3e5,
            state_bytes=float(rng.choice([0.0, 1e6])),
            max_replicas=int(rng.integers(1, most, endpoint=True)),
            allowed=None if rng.random() < 0.8 else (f"h{int(rng.integers(nodes))}",),
        )
        for number in range(count)
    )
    streams = [
        PlannedStream(origin=f"o{origin}", target=f"o{target}", rate=float(rng.choice([50.0, 100.0])))
        for target in range(1, count)
        for origin in sorted({int(one) for one in rng.integers(0, target, int(rng.integers(1, 3)))})
    ]
    weights = rng.dirichlet([1.0, 1.0, 1.0])
    current = None
    if rng.random() < 0.6:
        names = [host.name for host in there]
        current = {
            one.name: tuple(sorted(rng.choice(names, int(rng.integers(1, 3))).tolist())) for one in made
        }
    return Problem(
        operators=made,
        streams=tuple(streams),
        network=Network(hosts=there, delay_s=delay_s, price=price),
        goal=Goal(
            response_time=float(weights[0]),
            cost=float(weights[1]),
            downtime=float(1 - weights[0] - weights[1]),
            max_response_time_s=float(rng.choice([0.1, 0.3, 10.0])),
            max_cost=float(rng.choice([8.0, 30.0])),
            max_downtime_s=float(rng.choice([0.6, 7.5])),
        ),
        current=current,
        engine=Engine(sync_s=0.25, restarts_all=bool(rng.random() < 0.4)),
        readings=Readings(
            speed_in_queue=bool(rng.random() < 0.3),
            traffic_per_host=bool(rng.random() < 0.3),
            round_trip_for_nothing=bool(rng.random() < 0.7),
        ),
    )
