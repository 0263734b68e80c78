"""The same slot and three of the policies in plain Python, written from the papers to be read.

It shares no code with the compiled simulator. `penstock bench` measures the kernels
against it, and the tests hold the two to the same decisions.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import floor, inf

from numpy.random import Generator

Counts = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One operator: node types, objective, discretisation."""

    speedups: tuple[float, ...]
    prices: tuple[float, ...]
    max_replicas: int
    service_time_s: float
    service_scv: float
    slo_s: float
    performance: float
    resources: float
    reconfiguration: float
    cost_scale: float
    levels: int
    max_rate: float
    gamma: float = 0.99

    def utilisation(self, counts: Counts, rate: float) -> float:
        each = rate / sum(counts)
        return max(each * (self.service_time_s / s) for s, n in zip(self.speedups, counts, strict=True) if n)

    def response_time(self, counts: Counts, rate: float) -> float:
        each = rate / sum(counts)
        worst = 0.0
        for speedup, count in zip(self.speedups, counts, strict=True):
            if count:
                mean = self.service_time_s / speedup
                busy = each * mean
                if busy >= 1:
                    return inf
                second_moment = (1 + self.service_scv) * mean**2
                worst = max(worst, mean + each * second_moment / (2 * (1 - busy)))
        return worst

    def price(self, counts: Counts) -> float:
        return sum(n * p for n, p in zip(counts, self.prices, strict=True))

    def level(self, rate: float) -> int:
        return min(floor(rate / (self.max_rate / self.levels)), self.levels - 1)

    def choices(self, counts: Counts) -> list[tuple[int, Counts]]:
        """Possible actions and where they lead: nothing, fewer of each type, more of each type."""
        total, types = sum(counts), len(counts)
        possible = [(0, counts)]
        for delta, first in ((-1, 1), (1, 1 + types)):
            for index in range(types):
                if 1 <= total + delta <= self.max_replicas and counts[index] + delta >= 0:
                    changed = (*counts[:index], counts[index] + delta, *counts[index + 1 :])
                    possible.append((first + index, changed))
        return possible


Policy = Callable[[Counts, float, float], Counts]  # (deployment, rate, response time) -> deployment


@dataclass(frozen=True)
class Sums:
    violations: int
    reconfigurations: int
    resources: float


def simulate(setting: Setting, policy: Policy, rates: Iterable[float], counts: Counts) -> Sums:
    """Run a policy, charging each slot for the deployment in force before the decision."""
    violations = reconfigurations = 0
    resources = 0.0
    for rate in rates:
        response = setting.response_time(counts, rate)
        violations += response > setting.slo_s
        resources += setting.price(counts)
        target = policy(counts, rate, response)
        reconfigurations += target != counts
        counts = target
    return Sums(violations, reconfigurations, resources)


def threshold(setting: Setting, *, node_type: int, high: float, low: float) -> Policy:
    def decide(counts: Counts, rate: float, response: float) -> Counts:
        total = sum(counts)
        busy = setting.utilisation(counts, rate)
        delta = 0
        if busy > high:
            delta = 1 if total < setting.max_replicas else 0
        elif total > 1 and busy * total / (total - 1) < low:
            delta = -1
        return tuple(n + delta if index == node_type else n for index, n in enumerate(counts))

    return decide


class _Learner:
    """What both learners share: the step size and the last decision."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.alpha = 1.0
        self.learned = 0
        self.last: tuple[Counts, int, int] | None = None  # deployment, level, action

    def decay(self) -> None:
        self.learned += 1
        if self.learned % 10 == 0:
            self.alpha = max(self.alpha * 0.98, 0.1)

    def known_cost(self, action: int, target: Counts) -> float:
        s = self.setting
        return (s.reconfiguration if action else 0.0) + s.resources * (s.price(target) / s.cost_scale)

    def unknown_cost(self, response: float) -> float:
        return self.setting.performance if response > self.setting.slo_s else 0.0


class QLearning(_Learner):
    """Russo 2023, Alg. 1."""

    def __init__(self, setting: Setting, rng: Generator) -> None:
        super().__init__(setting)
        self.rng = rng
        self.epsilon = 1.0
        self.q: dict[tuple[Counts, int, int], float] = defaultdict(float)

    def __call__(self, counts: Counts, rate: float, response: float) -> Counts:
        level = self.setting.level(rate)
        choices = self.setting.choices(counts)
        if self.last is not None:
            least = min(self.q[counts, level, action] for action, _ in choices)
            cost = self.known_cost(self.last[2], counts) + self.unknown_cost(response)
            self.q[self.last] = (1 - self.alpha) * self.q[self.last] + self.alpha * (
                cost + self.setting.gamma * least
            )
            self.decay()
        if self.rng.random() <= self.epsilon:
            action, target = choices[int(self.rng.random() * len(choices))]
        else:
            action, target = min(choices, key=lambda choice: self.q[counts, level, choice[0]])
        self.epsilon = max(self.epsilon * 0.95, 0.01)
        self.last = (counts, level, action)
        return target


class PdsLearning(_Learner):
    """Russo 2023, eq. (9) and (10), or (11) and (12) where violations are estimated."""

    def __init__(
        self,
        setting: Setting,
        *,
        as_published: bool,
        expects_violation: Callable[[Counts, int], bool] | None = None,
    ) -> None:
        super().__init__(setting)
        self.as_published = as_published
        self.expects_violation = expects_violation
        self.v: dict[tuple[Counts, int], float] = defaultdict(float)

    def estimate(self, counts: Counts, level: int) -> float:
        if self.expects_violation is None:
            return 0.0
        return self.setting.performance if self.expects_violation(counts, level) else 0.0

    def value(self, action: int, target: Counts, level: int) -> float:
        return self.known_cost(action, target) + self.estimate(target, level) + self.v[target, level]

    def __call__(self, counts: Counts, rate: float, response: float) -> Counts:
        level = self.setting.level(rate)
        choices = self.setting.choices(counts)
        if self.last is not None:
            before, then, _ = self.last
            least = min(self.value(action, target, level) for action, target in choices)
            old = self.v[(before if self.as_published else counts), then]
            surprise = self.unknown_cost(response) - self.estimate(counts, then)
            self.v[counts, then] = (1 - self.alpha) * old + self.alpha * (
                surprise + self.setting.gamma * least
            )
            self.decay()
        action, target = min(choices, key=lambda choice: self.value(choice[0], choice[1], level))
        self.last = (counts, level, action)
        return target
