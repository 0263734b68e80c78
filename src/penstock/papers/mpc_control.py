"""The experiments of De Matteis 2017, sec. 5.3 and 5.4: an elastic operator under a policy, tuple by tuple.

A control step is a second. The operator (splitter, replicas, merger, 2,836 keys) is simulated for it, what
its manager would measure is measured, and the decision, with a table that balances the keys over the
replicas, takes effect while tuples flow. Only tuples that trigger a computation are simulated, one in 25.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from penstock.compiled import Floats, Ints
from penstock.data.walks import random_walk, trading_day
from penstock.domain.decision import Scale
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.observation import OperatorObservation
from penstock.perf.deployments import Deployments, deployments
from penstock.perf.elastic import computation_s, utilisations
from penstock.perf.forecast import Forecaster, HoltWinters, LastValue, Oracle
from penstock.perf.power import PowerTable, sandy_bridge
from penstock.perf.queueing import g_g_1
from penstock.perf.routing import Rebalancer, balanced
from penstock.perf.saso import Saso, saso
from penstock.policy.api import OperatorPolicy
from penstock.policy.operator.mpc import ModelPredictive
from penstock.policy.operator.rule_based import RuleBased
from penstock.policy.operator.spl import Spl
from penstock.runtimes.sim.elastic.operator import ElasticOperator, Measured

KEYS, SLIDE = 2836, 25
MOST = 12  # replicas
FASTEST_GHZ = 2.0
WALK, DAY = "random walk", "trading day"
STEPS = {WALK: 180, DAY: 235}
STEP_S = 1.0
KEEPS_UP = 0.95  # theta_th: results over triggering tuples, below which a step is late


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """What the paper does not print, with a value that its other figures allow."""

    busy: float = 0.9  # share of eight replicas at 2 GHz under 4e5 quotes/s, which they sustain (sec. 5.2.2)
    work_cv: float = 0.5  # of the work of a tuple
    keys_cv: float = 0.3  # of the mean work of keys
    threshold_s: dict[str, float] = field(default_factory=lambda: {WALK: 1.5e-3, DAY: 7e-3})  # theta_lat
    volts_at_lowest: float = 0.8
    forecast: str = "holt-winters"
    # None: what costs least for the first second's load, were changes free. A short horizon may never leave
    # the place where it starts.
    first_replicas: int | None = None
    walk_step: float = 0.05  # of the range, from one second to the next
    # What beta is the price of in eq. 14: a watt, by its text, or what a core at full speed uses (5.7 W).
    # Per watt, resources cost up to 34, a latency at its threshold 11: sec. 5.3 says quality weighs more.
    per_watt: bool = False

    @property
    def ticks(self) -> float:
        """Mean work of a triggering tuple."""
        return self.busy * 8 / (4e5 / SLIDE) * FASTEST_GHZ * 1e9

    def beta(self, *, power: bool) -> float:
        """Of a core at full speed, which is what the policy counts in."""
        return BETA * float(self.power.watts(1, FASTEST_GHZ)) if power and self.per_watt else BETA

    @property
    def power(self) -> PowerTable:
        return sandy_bridge(volts_at_lowest=self.volts_at_lowest)


class Strategy(NamedTuple):
    """A row of Table 6, with its switching cost and horizon; or a policy of Table 7."""

    name: str
    qos: str = "throughput"
    power: bool = False
    switching: float = 0.4
    horizon: int = 1
    kind: str = "mpc"  # or rule-based, spl
    every: int = 1  # seconds of a control step
    high: float = 0.9  # of rule-based

    @property
    def label(self) -> str:
        return f"{self.name} {'NoSw' if self.switching == 0 else f'Sw h={self.horizon}'}"


ALPHA = {  # Table 6
    ("throughput", False): {WALK: 200.0, DAY: 200.0},
    ("throughput", True): {WALK: 200.0, DAY: 300.0},
    ("latency", False): {WALK: 2.0, DAY: 3.0},
    ("latency", True): {WALK: 2.0, DAY: 4.0},
}
BETA, GAMMA = 0.5, 0.4
NAMES = {
    ("throughput", False): "Th-Node",
    ("throughput", True): "Th-Power",
    ("latency", False): "Lat-Node",
    ("latency", True): "Lat-Power",
}


class Trail(NamedTuple):
    """A run step by step."""

    rate: Floats  # triggering tuples/s
    replicas: Floats
    ghz: Floats
    ratio: Floats  # results over triggering tuples
    latency_s: Floats


class Outcome(NamedTuple):
    saso: Saso
    trail: Trail


def workload(name: str, seed: int, assumed: Assumed) -> Floats:
    """Triggering tuples/s, second by second."""
    steps = STEPS[name]
    if name == WALK:
        return random_walk(slots=steps, seed=seed, step=assumed.walk_step).rates / SLIDE
    return trading_day(slots=steps, seed=seed).rates / SLIDE


def played(strategy: Strategy, name: str, seed: int, assumed: Assumed | None = None) -> Outcome:
    """One run: the same arrivals for every strategy with this seed."""
    return _Run(strategy, name, seed, assumed or Assumed()).run()


class _Run:
    def __init__(self, strategy: Strategy, name: str, seed: int, assumed: Assumed) -> None:
        self.strategy, self.name, self.assumed = strategy, name, assumed
        self.rates = workload(name, seed, assumed)
        self.rng = np.random.default_rng([seed, 7])
        shares = 1.0 / np.arange(1, KEYS + 1) ** 0.5
        self.shares = self.rng.permutation(shares / shares.sum())
        spread = assumed.keys_cv
        self.work = self.rng.gamma(1 / spread**2, spread**2, KEYS) * assumed.ticks
        self.rebalancer = Rebalancer()

    @cached_property
    def node_types(self) -> tuple[NodeType, ...]:
        """A frequency each, the fastest first: a core at full speed is what others are counted in."""
        power = self.assumed.power
        ghz = power.ghz[::-1] if self.strategy.power else (FASTEST_GHZ,)
        return tuple(
            NodeType(
                name=f"{one:g} GHz", speedup=one / FASTEST_GHZ, price=1.0, watts=float(power.watts(1, one))
            )
            for one in ghz
        )

    def policy(self, strategy: Strategy) -> OperatorPolicy[Any]:
        space: Deployments = deployments(self.node_types, MOST)
        if strategy.kind == "rule-based":
            return RuleBased(node_types=self.node_types, deployments=space, high=strategy.high, low=0.8)
        if strategy.kind == "spl":
            return Spl(node_types=self.node_types, deployments=space)
        served_s = self.assumed.ticks / (FASTEST_GHZ * 1e9)
        return ModelPredictive(
            node_types=self.node_types,
            deployments=space,
            queue=g_g_1(served_s, 1.0, self.assumed.work_cv**2),
            service_time_s=served_s,
            service_scv=self.assumed.work_cv**2,
            max_response_time_s=self.assumed.threshold_s[self.name],
            qos=strategy.qos,
            resources="power" if strategy.power else "price",
            horizon=strategy.horizon,
            alpha=ALPHA[strategy.qos, strategy.power][self.name],
            beta=self.assumed.beta(power=strategy.power),
            gamma=strategy.switching,
            # Backlogs are not in the paper's model: its queues are short, and push back.
            drain_s=1e9,
        )

    def forecaster(self) -> Forecaster:
        every = self.strategy.every
        if self.assumed.forecast == "oracle":
            means = self.rates[: len(self.rates) // every * every].reshape(-1, every).mean(axis=1)
            return Oracle(means)
        return LastValue() if self.assumed.forecast == "last" else HoltWinters()

    def run(self) -> Outcome:
        policy = self.policy(self.strategy)
        memory = policy.initial()
        forecaster = self.forecaster()
        count, kind = self._first()
        table = balanced(self.shares * self.work, count)
        operator = ElasticOperator(
            keys=KEYS, replicas=count, max_replicas=MOST, frequency_ghz=self._ghz(kind), table=table
        )
        steps: list[tuple[float, float, Measured]] = []
        every = self.strategy.every
        window: list[Measured] = []
        places: list[tuple[float, ...]] = []
        for step, rate in enumerate(self.rates):
            measured = self._second(operator, step, float(rate))
            ghz = self._ghz(kind)
            steps.append((count, ghz, measured))
            window.append(measured)
            if len(window) < every:
                continue
            places.append((count, len(self.node_types) - 1 - kind))
            seen = self._seen(window, operator.table, step, count, kind)
            window = []
            assert seen.arrival_rate is not None
            forecaster = forecaster.seen(seen.arrival_rate)
            seen = seen._replace(forecast=forecaster.ahead(max(self.strategy.horizon, 1)))
            decision, memory = policy.decide(memory, seen, self.rng)
            before = count
            if isinstance(decision, Scale):
                kind = int(np.argmax(decision.target.counts))
                count = decision.target.total
            loads = measured.arrived_of_keys * self.work / max(measured.arrived, 1)
            another = self.rebalancer.table(operator.table, loads, replicas=count, before=before)
            operator.reconfigure(
                operator.now_s, replicas=count, table=operator.table if another is None else another,
                frequency_ghz=self._ghz(kind),
            )  # fmt: skip
        return Outcome(self._saso(steps, places), self._trail(steps))

    def _first(self) -> tuple[int, int]:
        """Replicas and type to start with."""
        if self.assumed.first_replicas is not None:
            return self.assumed.first_replicas, 0
        of = self.strategy._replace(kind="mpc", switching=0.0, horizon=1)
        served_s = self.assumed.ticks / (FASTEST_GHZ * 1e9)
        seen = OperatorObservation(
            operator="algo-trader",
            at_s=0.0,
            replicas=Replicas((MOST, *[0] * (len(self.node_types) - 1))),
            arrival_rate=float(self.rates[0]),
            response_time_s=served_s,
            utilisation=float(self.rates[0]) * served_s / MOST,
        )
        policy = self.policy(of)
        decision, _ = policy.decide(policy.initial(), seen, self.rng)
        target = decision.target if isinstance(decision, Scale) else seen.replicas
        return target.total, int(np.argmax(target.counts))

    def _second(self, operator: ElasticOperator, step: int, rate: float) -> Measured:
        number = int(self.rng.poisson(rate * STEP_S))
        arrivals_s = step * STEP_S + np.sort(self.rng.uniform(0.0, STEP_S, number))
        keys = np.searchsorted(np.cumsum(self.shares), self.rng.uniform(size=number)).clip(max=KEYS - 1)
        spread = self.assumed.work_cv
        ticks = self.work[keys] * self.rng.gamma(1 / spread**2, spread**2, number)
        return operator.advance(arrivals_s, keys, ticks, (step + 1) * STEP_S)

    def _ghz(self, kind: int) -> float:
        return round(self.node_types[kind].speedup * FASTEST_GHZ, 6)

    def _seen(
        self, window: list[Measured], table: Ints, step: int, count: int, kind: int
    ) -> OperatorObservation:
        """What the manager measures over a control step."""
        last, seconds = window[-1], len(window) * STEP_S
        arrived = sum(one.arrived for one in window)

        def mean(values: list[float | None]) -> float | None:
            known = [
                (value, one.delivered) for value, one in zip(values, window, strict=True) if value is not None
            ]
            total = sum(weight for _, weight in known)
            return sum(value * weight for value, weight in known) / total if total else None

        latency_s = mean([one.mean_latency_s for one in window])
        service_s = mean([one.mean_service_s for one in window])
        scv = None
        if last.mean_interarrival_s and last.std_interarrival_s is not None:
            scv = (last.std_interarrival_s / last.mean_interarrival_s) ** 2
        # rho of sec. 3.2, by keys: above one where a replica cannot keep up.
        of_keys = sum((one.arrived_of_keys for one in window), np.zeros(KEYS, np.int64))
        times_s = computation_s(self.work, self._ghz(kind))
        loads = utilisations(table, of_keys / max(arrived, 1), times_s, arrived / seconds, count)
        return OperatorObservation(
            operator="algo-trader",
            at_s=(step + 1) * STEP_S,
            replicas=Replicas(tuple(count if one == kind else 0 for one in range(len(self.node_types)))),
            arrival_rate=arrived / seconds,
            response_time_s=latency_s if latency_s is not None else np.inf,
            utilisation=float(loads.max()),
            utilisation_by_replica=tuple(loads.tolist()),
            service_time_s=service_s,
            service_variance_s2=None if last.std_service_s is None else last.std_service_s**2,
            arrival_scv=scv,
            held_back=sum(one.splitter_blocked_s for one in window) / seconds,
        )

    def _late(self, one: Measured) -> bool:
        if self.strategy.qos == "latency":
            limit_s = self.assumed.threshold_s[self.name]
            return one.mean_latency_s is None or one.mean_latency_s > limit_s
        return one.delivered < KEEPS_UP * one.arrived

    def _saso(self, steps: list[tuple[float, float, Measured]], places: list[tuple[float, ...]]) -> Saso:
        power = self.assumed.power
        return saso(
            places,
            late=[self._late(one) for _, _, one in steps],
            replicas=[count for count, _, _ in steps],
            watts=[float(power.watts(count, ghz)) for count, ghz, _ in steps],
        )

    @staticmethod
    def _trail(steps: list[tuple[float, float, Measured]]) -> Trail:
        return Trail(
            rate=np.array([one.arrived for _, _, one in steps], float),
            replicas=np.array([count for count, _, _ in steps], float),
            ghz=np.array([ghz for _, ghz, _ in steps], float),
            ratio=np.array([one.delivered / max(one.arrived, 1) for _, _, one in steps]),
            latency_s=np.array([one.mean_latency_s or np.nan for _, _, one in steps]),
        )
