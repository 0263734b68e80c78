"""Our formulas against Ciw, a discrete-event simulator that knows nothing of them.

Each claim rests on independent replications: a warm-up is cut off, every tuple that
arrives in the measured window is followed to its completion, and the mean of each
replication is one sample of a Student-t interval (99 %). Seeds are fixed, so a run
repeats; on another version of Ciw one interval in a hundred misses by right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from statistics import fmean, stdev

import ciw
import pytest

from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.perf.deployments import deployments, handle_of
from penstock.perf.operator import response_time
from penstock.perf.queueing import (
    Judged,
    QueueModel,
    g_g_1,
    m_d_1,
    m_g_1,
    m_m_1,
    replica_response_time,
    waiting_time,
)

REPLICATIONS = 20
T_995_19 = 2.8609  # Student t, 19 degrees of freedom, two-sided 99 %
SERVICE_S = 1 / 180  # the published operator, mu = 180/s
WARM_UP = 400  # arrivals; the slowest queue here forgets its start in about 75
COOL_DOWN_S = 300 * SERVICE_S  # lets the last measured tuples finish


def tuples_measured(kind: str, rho: float) -> int:
    """Per replication; more where times vary more and are more correlated, for intervals of like width."""
    if rho < 0.8:
        return 1500
    return 7000 if kind == "exponential" else 4000


@dataclass(frozen=True)
class Interval:
    """A 99 % confidence interval of a mean."""

    mean: float
    half: float

    def __contains__(self, value: float) -> bool:
        return abs(value - self.mean) <= self.half


def interval(samples: Sequence[float]) -> Interval:
    assert len(samples) == REPLICATIONS
    return Interval(fmean(samples), T_995_19 * stdev(samples) / sqrt(REPLICATIONS))


def service(kind: str) -> object:
    """A service time distribution of mean SERVICE_S; an Erlang is a gamma of whole shape."""
    match kind:
        case "exponential":
            return ciw.dists.Exponential(1 / SERVICE_S)
        case "constant":
            return ciw.dists.Deterministic(SERVICE_S)
        case "gamma, SCV .5":
            return ciw.dists.Gamma(shape=2.0, scale=SERVICE_S / 2)
    raise AssertionError(kind)


def records(network: object, *, seed: int, rate: float, tuples: int) -> list[tuple[int, float, float]]:
    """(node, waiting, response) of everything that arrives in the measured window."""
    begin = WARM_UP / rate
    end = begin + tuples / rate
    ciw.seed(seed)
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(end + COOL_DOWN_S)
    return [
        (int(r.node), float(r.waiting_time), float(r.exit_date - r.arrival_date))
        for r in simulation.get_all_records()
        if begin <= r.arrival_date < end
    ]


@cache
def simulated_response(kind: str, rho: float) -> Interval:
    rate = rho / SERVICE_S
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate)],
        service_distributions=[service(kind)],
        number_of_servers=[1],
    )
    runs = (
        records(network, seed=s, rate=rate, tuples=tuples_measured(kind, rho)) for s in range(REPLICATIONS)
    )
    return interval([fmean(response for _, _, response in run) for run in runs])


MODELS: dict[str, QueueModel] = {
    "exponential": m_m_1(SERVICE_S),
    "constant": m_d_1(SERVICE_S),
    "gamma, SCV .5": m_g_1(SERVICE_S, 0.5),
}


@pytest.mark.parametrize("rho", [0.5, 0.8])
@pytest.mark.parametrize("kind", MODELS)
def test_the_mean_response_time_is_what_an_independent_simulation_measures(kind: str, rho: float) -> None:
    measured = simulated_response(kind, rho)
    assert replica_response_time(MODELS[kind], rho / SERVICE_S, 1.0) in measured
    assert measured.half < 0.12 * measured.mean  # the interval is narrow enough to mean something


@pytest.mark.parametrize(
    ("kind", "other"),
    [(kind, other) for kind in MODELS for other in MODELS if kind != other],
)
def test_the_simulation_tells_the_service_distributions_apart(kind: str, other: str) -> None:
    # M/D/1, M/G/1 and M/M/1 take 3, 4 and 5 service times at rho = .8: the wrong formula must miss
    measured = simulated_response(kind, 0.8)
    assert replica_response_time(MODELS[other], 0.8 / SERVICE_S, 1.0) not in measured


def test_two_unequal_replicas_behind_an_even_split_are_two_queues_of_half_the_rate() -> None:
    """A splitter of no delay sends each tuple to one of two servers at random."""
    slow, fast = 1.0, 1.7
    rate = 2 * 0.7 / SERVICE_S  # the slow replica is busy 70 % of the time
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate), None, None],
        service_distributions=[
            ciw.dists.Deterministic(0.0),
            ciw.dists.Exponential(slow / SERVICE_S),
            ciw.dists.Exponential(fast / SERVICE_S),
        ],
        number_of_servers=[float("inf"), 1, 1],
        routing=[[0.0, 0.5, 0.5], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
    )
    of_slow, of_fast, of_all = [], [], []
    for seed in range(REPLICATIONS):
        run = records(network, seed=1000 + seed, rate=rate, tuples=4000)
        of_slow.append(fmean(response for node, _, response in run if node == 2))
        of_fast.append(fmean(response for node, _, response in run if node == 3))
        of_all.append(fmean(response for node, _, response in run if node > 1))

    types = [NodeType(name=f"x{speed}", speedup=speed, price=speed) for speed in (slow, fast)]
    space = deployments(types, 4)
    both = handle_of(space, Replicas((1, 1)))
    worst = response_time(m_m_1(SERVICE_S), space, both, rate)
    mean = response_time(m_m_1(SERVICE_S, judged=Judged.MEAN), space, both, rate)
    assert worst in interval(of_slow)
    assert mean in interval(of_all)
    assert replica_response_time(m_m_1(SERVICE_S), rate / 2, fast) in interval(of_fast)
    # and the three are far enough apart for that to mean something
    assert worst not in interval(of_all)
    assert mean not in interval(of_slow)
    assert mean not in interval(of_fast)


def test_kingman_is_at_most_15_percent_over_the_simulated_wait_of_an_erlang_queue() -> None:
    # Kingman's formula is an approximation and no interval need contain it. For arrivals more
    # regular than Poisson it errs upwards: the exact wait of this queue is 1.8653 service times
    # (test_queueing.py, roots of Lindley's equation), Kingman says 2, which is 7 % more.
    phases, rho = 2, 0.8
    rate = rho / SERVICE_S
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Gamma(phases, 1 / (rate * phases))],
        service_distributions=[ciw.dists.Gamma(phases, SERVICE_S / phases)],
        number_of_servers=[1],
    )
    runs = (records(network, seed=2000 + s, rate=rate, tuples=5000) for s in range(REPLICATIONS))
    measured = interval([fmean(waiting for _, waiting, _ in run) for run in runs])
    kingman = waiting_time(g_g_1(SERVICE_S, 1 / phases, 1 / phases), rate, 1.0)
    assert measured.half < 0.10 * measured.mean
    assert measured.mean - measured.half < kingman < 1.15 * measured.mean
