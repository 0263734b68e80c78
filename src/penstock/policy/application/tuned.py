"""The tuned Application Manager (Russo 2023, sec. 5): it sets what Operator Managers strive for.

It chooses each operator's response-time bound and the weights of the local objectives so
that resources cost least while violations and reconfigurations of the whole application
stay within what the user allows (eq. 13-17). Candidates are judged by an `evaluate`
function, usually a simulation of a model made from what was monitored
(`perf/calibration.py`), so all of it can run beside the application.

Bounds and weights are tuned in turns (Algorithm 4), each by a search of few evaluations
(`bayesian.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log
from typing import Annotated, Protocol, runtime_checkable

import numpy as np
from numpy.random import Generator

from penstock.compiled import Flags, Floats
from penstock.domain.application import Application
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective, Weights
from penstock.perf.latency import check_objective, naive_shares
from penstock.policy.application.bayesian import (
    BayesianSearch,
    Domain,
    Measured,
    Search,
    Trial,
)
from penstock.policy.application.grant_all import GrantAll
from penstock.policy.parameters import Param, check_parameters
from penstock.policy.registry import application_policy


@application_policy("tuned", needs_model=True, tunes=True)
@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTuning(GrantAll):
    """Grants what operators ask for, and tunes their bounds and weights by Bayesian optimisation."""

    budget: Annotated[int, Param("evaluations per tuning phase", at_least=1)] = 25
    rounds: Annotated[int, Param("most rounds of tuning bounds, then weights", at_least=1)] = 2

    def __post_init__(self) -> None:
        check_parameters(self)


@runtime_checkable
class TuningEffort(Protocol):
    """What an Application Manager that tunes may say about how; `SelfTuning` if it does not."""

    @property
    def budget(self) -> int: ...

    @property
    def rounds(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What the Application Manager tells the Operator Managers."""

    bounds_s: Mapping[str, float]  # response time each operator is to stay within
    weights: Weights  # of their local objective, not of the application's accounting


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How an application behaved, or would behave, under a configuration."""

    resource_cost: float  # mean price of all that runs
    violations: float  # fraction of intervals in which a path was late
    reconfigurations: float  # fraction of intervals in which any operator changed


def naive(application: Application, objective: Objective) -> Configuration:
    """Equal weights and shares that follow path lengths: needs no knowledge (Russo 2023, app. A)."""
    third = 1.0 / 3.0
    return Configuration(
        bounds_s=naive_shares(application, objective),
        weights=Weights(performance=third, resources=third, reconfiguration=third),
    )


_LITTLE = 1e-3  # of all intervals; keeps the logarithm of nothing finite


def judged(behaviour: Behaviour, objective: Objective) -> Measured:
    """Cost and how far each requirement is from being broken, eq. (13)-(15).

    Distances are logarithms of ratios: 1 % to 2 % of violations is as much as 10 % to
    20 %, and one configuration that always violates does not dominate the surrogate.
    """

    def excess(seen: float, allowed: float) -> float:
        return log((seen + _LITTLE) / (allowed + _LITTLE))

    return Measured(
        cost=behaviour.resource_cost,
        excess=(
            excess(behaviour.violations, objective.violations),
            excess(behaviour.reconfigurations, objective.reconfigurations),
        ),
    )


class LatencyShares:
    """Bounds as parts x of each path's limit: 0 < x < 1, about 1 along every path (sec. 5.2.3).

    A bound is its part of the tightest path through the operator, so with limits that
    differ a looser path is not used up.
    """

    def __init__(self, application: Application, objective: Objective, *, epsilon: float = 0.05) -> None:
        self.names = tuple(operator.name for operator in application.operators)
        self.limits = np.array(
            [
                min(objective.for_path(path) for path in application.paths if name in path)
                for name in self.names
            ]
        )
        on_path = np.array([[float(name in path) for name in self.names] for path in application.paths])
        count = len(self.names)
        # The set as rows of  a x <= b.
        self._a = np.vstack([on_path, -on_path, np.eye(count), -np.eye(count)])
        self._b = np.concatenate(
            [
                np.full(len(on_path), 1 + epsilon),
                np.full(len(on_path), epsilon - 1),
                np.ones(count),
                np.zeros(count),
            ]
        )
        inside = _interior(self._a, self._b)
        if inside is None:
            raise InputError(
                f"application '{application.name}': no latency shares sum to 1 +- {epsilon:g} on every path"
            )
        self._inside = inside
        # Directions that keep every path's sum, along which the set is long, and a little of all others.
        _, sizes, rows = np.linalg.svd(on_path)
        kept = rows[int((sizes > 1e-9).sum()) :]
        self._directions = np.vstack([kept, epsilon * np.eye(count)])

    def sample(self, count: int, rng: Generator) -> Floats:
        """Uniform over the set: `count` independent walks of hit-and-run steps from its inside."""
        points = np.tile(self._inside, (count, 1))
        for _ in range(_WALK):
            direction = rng.standard_normal((count, len(self._directions))) @ self._directions
            slack, speed = self._b - points @ self._a.T, direction @ self._a.T
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = slack / speed
            furthest = np.where(speed > 0, reach, np.inf).min(axis=1)
            nearest = np.where(speed < 0, reach, -np.inf).max(axis=1)
            # Slightly inside the ends: the set is open, and rounding must not leave it.
            step = nearest + (furthest - nearest) * rng.uniform(1e-6, 1 - 1e-6, count)
            points = points + step[:, None] * direction
        return points

    def contains(self, points: Floats) -> Flags:
        inside: Flags = (points @ self._a.T < self._b + 1e-12).all(axis=1)
        return inside

    def features(self, points: Floats) -> Floats:
        return points

    def point(self, bounds_s: Mapping[str, float]) -> Floats:
        parts: Floats = np.array([bounds_s[name] for name in self.names]) / self.limits
        return parts

    def bounds_s(self, point: Floats) -> dict[str, float]:
        return dict(zip(self.names, (float(bound) for bound in point * self.limits), strict=True))


_WALK = 25  # steps; longer walks have the same means and spreads to two digits


def _interior(a: Floats, b: Floats) -> Floats | None:
    """The centre of the largest ball inside a x <= b (Chebyshev); None if the set is empty."""
    from scipy.optimize import linprog  # slow to import

    norms = np.linalg.norm(a, axis=1)
    answer = linprog(
        np.append(np.zeros(a.shape[1]), -1.0), A_ub=np.column_stack([a, norms]), b_ub=b, bounds=(None, None)
    )
    if answer.status != 0 or answer.x[-1] <= 1e-9:
        return None
    centre: Floats = answer.x[:-1]
    return centre


class WeightShares:
    """Weights of performance, resources and reconfiguration: in (.05, .95), summing to 1 (sec. 5.2.4)."""

    least, most = 0.05, 0.95

    def sample(self, count: int, rng: Generator) -> Floats:
        points: Floats = self.least + (1.0 - 3 * self.least) * rng.dirichlet(np.ones(3), count)
        return points

    def contains(self, points: Floats) -> Flags:
        within = np.all((points > self.least - 1e-12) & (points < self.most + 1e-12), axis=1)
        inside: Flags = np.logical_and(within, np.abs(points.sum(axis=1) - 1.0) < 1e-9)
        return inside

    def features(self, points: Floats) -> Floats:
        """Logarithms of ratios: decisions depend on nothing else."""
        ratios: Floats = np.log(points[:, :1] / points[:, 1:])
        return ratios

    def point(self, weights: Weights) -> Floats:
        return np.array([weights.performance, weights.resources, weights.reconfiguration])

    def weights(self, point: Floats) -> Weights:
        performance, resources = float(point[0]), float(point[1])
        return Weights(
            performance=performance, resources=resources, reconfiguration=1.0 - performance - resources
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A configuration and the result of its evaluation."""

    configuration: Configuration
    measured: Measured


Phase = Sequence[Candidate]  # what one search evaluated, in order


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """Where tuning started and what it tried: bounds and weights in turns."""

    start: Candidate
    phases: Sequence[Phase]

    @property
    def candidates(self) -> list[Candidate]:
        return [self.start, *(candidate for phase in self.phases for candidate in phase)]

    @property
    def best(self) -> Candidate:
        return best_candidate(self.candidates)


def best_candidate(candidates: Sequence[Candidate]) -> Candidate:
    """The cheapest feasible one, or the one closest to feasible; the earliest of equals."""
    return min(candidates, key=lambda candidate: candidate.measured.rank)


Judge = Callable[[Configuration], Measured]


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedManager:
    """Algorithm 4: bounds and weights in turns, each from the best so far.

    The answer is the best candidate evaluated, the start among them: never worse than
    the start, and feasible if any candidate was.
    """

    application: Application
    objective: Objective
    search: Search = field(default_factory=BayesianSearch)
    budget: int = 25  # evaluations per phase (N_BO)
    max_rounds: int = 3
    stop_early: bool = True  # after a round without improvement
    epsilon: float = 0.05
    fastest: float | None = None  # speedup of the fastest node, where it is known

    def __post_init__(self) -> None:
        check_objective(self.application, self.objective, fastest=self.fastest)

    def tune(self, evaluate: Judge, start: Configuration, rng: Generator) -> Tuned:
        """The complete algorithm."""
        first = Candidate(configuration=start, measured=evaluate(start))
        best, improving = first, True
        phases: list[Phase] = []
        while len(phases) < 2 * self.max_rounds and (improving or not self.stop_early):
            before = best
            for tune_one in (self.tune_bounds, self.tune_weights):
                phases.append(tune_one(evaluate, best, rng))
                best = best_candidate([best, *phases[-1]])
            improving = best is not before
        return Tuned(start=first, phases=phases)

    def tune_bounds(self, evaluate: Judge, start: Candidate, rng: Generator) -> list[Candidate]:
        """New candidates with the start's weights and other response-time bounds."""
        domain = LatencyShares(self.application, self.objective, epsilon=self.epsilon)
        return self._phase(
            evaluate,
            domain,
            start,
            domain.point(start.configuration.bounds_s),
            lambda point: Configuration(bounds_s=domain.bounds_s(point), weights=start.configuration.weights),
            rng,
        )

    def tune_weights(self, evaluate: Judge, start: Candidate, rng: Generator) -> list[Candidate]:
        """New candidates with the start's response-time bounds and other weights."""
        domain = WeightShares()
        return self._phase(
            evaluate,
            domain,
            start,
            domain.point(start.configuration.weights),
            lambda point: Configuration(bounds_s=start.configuration.bounds_s, weights=domain.weights(point)),
            rng,
        )

    def _phase(
        self,
        evaluate: Judge,
        domain: Domain,
        start: Candidate,
        point: Floats,
        configuration_at: Callable[[Floats], Configuration],
        rng: Generator,
    ) -> list[Candidate]:
        def measure(point: Floats) -> Measured:
            return evaluate(configuration_at(point))

        trials = self.search(measure, domain, Trial(point, start.measured), self.budget, rng)
        return [
            Candidate(configuration=configuration_at(trial.point), measured=trial.measured)
            for trial in trials[1:]
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The start and what was chosen, both as judged by the longer look; often the same."""

    start: Candidate
    best: Candidate

    @property
    def stays(self) -> bool:
        return self.best.configuration == self.start.configuration


def confirmed(
    start: Candidate, phases: Sequence[Phase], evaluate: Judge, *, least_gain: float = 0.05
) -> Chosen:
    """The best by a longer evaluation: of the start and all that were the best of their phase so far.

    Learners keep learning: what is cheapest over the 50,000 slots of a tuning run need not
    be over a year. The start is always evaluated, so the answer is no worse than the start over the
    longer run either; and so are the first, still scattered points of every phase. A start
    that meets the requirements is given up only for a promise of `least_gain`: the model's rates
    are not those to come (eight times the first 50,000 slots of the Taxi trace cost the naive
    configuration 5 % more than its first 400,001), and a promise of half a percent means nothing.
    """
    asked = [start]
    for phase in phases:
        best_rank = (inf, inf)
        for candidate in phase:
            if candidate.measured.rank < best_rank:
                best_rank = candidate.measured.rank
                asked.append(candidate)
    answers = [
        Candidate(configuration=one.configuration, measured=evaluate(one.configuration)) for one in asked
    ]
    first, best = answers[0], best_candidate(answers)
    enough = best.measured.cost <= (1.0 - least_gain) * first.measured.cost
    return Chosen(start=first, best=best if enough or not first.measured.feasible else first)
