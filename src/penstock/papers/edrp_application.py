"""The application and the parameters of Cardellini 2017: Figure 4, Table II, and what they leave open.

Printed: service rates, state sizes, code, start-up and synchronisation times, what a replica costs, bounds.
Not printed: how many tuples operators behind the source get, and a price of the network that fits the costs
(.02 $/tps of Table II and the 9.6 $/h of Table III do not: eight replicas leave almost nothing for it). Both
are parameters here, and stated beside every result.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from penstock.compiled import Floats
from penstock.perf.queueing import QueueModel, m_m_1
from penstock.planning.problem import (
    Engine,
    Goal,
    Host,
    Network,
    Plan,
    PlannedOperator,
    PlannedStream,
    Problem,
)

SOURCE, SINK = "dataSource", "globalRank"
SERVICE_RATES = {  # tuples/s, Table II
    SOURCE: 284.0,
    "metronome": 300.0,
    "parser": 233.0,
    "filterByCoordinates": 253.0,
    "computeRouteID": 253.0,
    "countByWindow": 335.0,
    "partialRank": 2371.0,
    SINK: 3000.0,
}
STATE_BYTES = {SOURCE: 82.0, "metronome": 328.0, "countByWindow": 1376.0, "partialRank": 1536.0, SINK: 480.0}
SINGLE = (SOURCE, "metronome", SINK)  # cannot be replicated
EDGES = (
    (SOURCE, "parser"),
    (SOURCE, "metronome"),
    ("parser", "filterByCoordinates"),
    ("filterByCoordinates", "computeRouteID"),
    ("computeRouteID", "countByWindow"),
    ("metronome", "countByWindow"),
    ("countByWindow", "partialRank"),
    ("partialRank", SINK),
)
CODE_BYTES = 300e3
SPAWN_S, SYNC_S = 0.5, 0.25
STORE_DELAY_S, STORE_BYTES_S = 0.005, 100e6 / 8
SLOTS = 2.0  # replicas on a host


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """What the paper does not print."""

    link_price: float = 0.0002  # $/h of one tuple/s between two hosts: costs come near the printed ones
    # Tuples that countByWindow sends on for each it gets. partialRank can take 2371 tuples/s and has a second
    # replica at 105 tuples/s of the source in the paper: it must get about 20 times as many.
    counts: float = 20.0
    pulses: float = 0.01  # of the metronome, per tuple of the source
    ranks: float = 0.05  # that partialRank sends on


BASELINE = (0.5, 0.5, 0.0)  # weights of response time, cost and downtime (Table III)
OBJECTIVES = {
    "baseline": BASELINE,
    "balanced": (0.3, 0.3, 0.4),
    "response time": (0.6, 0.0, 0.4),
    "cost": (0.0, 0.6, 0.4),
}


def network(names: tuple[str, ...], delay_s: Floats, link_price: float, *, slots: float = SLOTS) -> Network:
    """Hosts that are all alike; two slots each, as in sec. 7.2."""
    price = np.full(delay_s.shape, link_price)
    np.fill_diagonal(price, 0.0)
    return Network(
        hosts=tuple(
            Host(
                name=name,
                capacity=slots,
                spawn_s=SPAWN_S,
                store_delay_s=STORE_DELAY_S,
                upload_bytes_s=STORE_BYTES_S,
                download_bytes_s=STORE_BYTES_S,
            )
            for name in names
        ),
        delay_s=delay_s,
        price=price,
    )


def problem(
    rate: float,
    *,
    on: Network,
    weights: tuple[float, float, float],
    replicas: int = 2,
    assumed: Assumed | None = None,
    pinned: Mapping[str, str] | None = None,
    current: Plan | None = None,
    max_response_time_s: float = 0.175,
    max_cost: float = 30.0,
    max_downtime_s: float = 7.5,
    queues: Mapping[str, QueueModel] | None = None,
    engine: Engine | None = None,
) -> Problem:
    """At this many tuples/s of the source; operators are M/M/1 queues unless others are given."""
    assumed = assumed or Assumed()
    sends = {"metronome": assumed.pulses, "countByWindow": assumed.counts, "partialRank": assumed.ranks}
    arrives: dict[str, float] = {SOURCE: rate}
    streams = []
    for origin, target in EDGES:
        streams.append(
            PlannedStream(origin=origin, target=target, rate=arrives[origin] * sends.get(origin, 1.0))
        )
        # Every operator's last incoming stream stands before its first outgoing one.
        arrives[target] = sum(stream.rate for stream in streams if stream.target == target)
    operators = tuple(
        PlannedOperator(
            name=name,
            rate=arrives[name],
            queue=m_m_1(1 / service_rate) if queues is None else queues[name],
            code_bytes=CODE_BYTES,
            state_bytes=STATE_BYTES.get(name, 0.0),
            max_replicas=1 if name in SINGLE else replicas,
            allowed=(pinned[name],) if pinned and name in pinned else None,
        )
        for name, service_rate in SERVICE_RATES.items()
    )
    response_time, cost, downtime = weights
    return Problem(
        operators=operators,
        streams=tuple(streams),
        network=on,
        goal=Goal(
            response_time=response_time,
            cost=cost,
            downtime=downtime,
            max_response_time_s=max_response_time_s,
            max_cost=max_cost,
            max_downtime_s=max_downtime_s,
        ),
        current=current,
        engine=engine or Engine(sync_s=SYNC_S),
    )
