"""Constrained Bayesian optimisation of few variables with few evaluations (Russo 2023, Alg. 3).

Gaussian processes with a Matérn 5/2 kernel stand for the cost and, one each, for the
constraints that only an evaluation reveals. The next point is the one of largest expected
improvement times the probability that it meets every constraint; as long as no evaluated
point does, the most probable one. Constraints known in advance are the domain's: every
candidate lies inside.

The paper adds 100 to the cost of a point that breaks a constraint. A process fitted to
costs of 10 and penalties of 100 sees a cliff and nothing else; modelled separately, each is smooth.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import erf, sqrt
from typing import Protocol

import numpy as np
from numpy.random import Generator

from penstock.compiled import Flags, Floats
from penstock.domain.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The result of evaluating a point."""

    cost: float
    excess: tuple[float, ...] = ()  # one per constraint; above 0 it is broken, at 0 just met

    @property
    def feasible(self) -> bool:
        return all(part <= 0 for part in self.excess)

    @property
    def rank(self) -> tuple[float, float]:
        """Smaller is better: feasible points by cost, then the others by how far off they are."""
        return sum(max(part, 0.0) for part in self.excess), self.cost if self.feasible else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """An evaluated point."""

    point: Floats
    measured: Measured


def best_of(trials: Sequence[Trial]) -> Trial:
    """The cheapest feasible trial, or the one closest to feasible; the earliest of equals."""
    return min(trials, key=lambda trial: trial.measured.rank)


Evaluate = Callable[[Floats], Measured]


class Domain(Protocol):
    """A convex set of points."""

    def sample(self, count: int, rng: Generator) -> Floats:
        """Points spread over the set, a row each."""
        ...

    def contains(self, points: Floats) -> Flags:
        """For each row, whether it lies in the set."""
        ...

    def features(self, points: Floats) -> Floats:
        """Points as the surrogate should see them: such that equal distances matter about equally."""
        ...


class Search(Protocol):
    """A way to spend `budget` evaluations, from a trial already known.

    Returns every trial in order, the known one first; pure given `evaluate` and `rng`.
    """

    def __call__(
        self, evaluate: Evaluate, domain: Domain, start: Trial, budget: int, rng: Generator
    ) -> list[Trial]: ...


def random_search(
    evaluate: Evaluate, domain: Domain, start: Trial, budget: int, rng: Generator
) -> list[Trial]:
    """Points drawn from the domain: what every other search must beat."""
    return [start, *(Trial(point, evaluate(point)) for point in domain.sample(budget, rng))]


@dataclass(frozen=True, slots=True, kw_only=True)
class BayesianSearch:
    """Algorithm 3 with expected improvement under unknown constraints."""

    initial: int = 5  # random points before the first model
    candidates: int = 600  # points among which the acquisition is maximised

    def __post_init__(self) -> None:
        if self.initial < 1 or self.candidates < 2:
            raise InputError(
                f"Bayesian search: initial={self.initial}, candidates={self.candidates}; "
                "at least 1 and 2 are needed"
            )

    def __call__(
        self, evaluate: Evaluate, domain: Domain, start: Trial, budget: int, rng: Generator
    ) -> list[Trial]:
        trials = random_search(evaluate, domain, start, min(self.initial, budget), rng)
        while len(trials) <= budget:
            point = self._next(trials, domain, rng)
            trials.append(Trial(point, evaluate(point)))
        return trials

    def _next(self, trials: Sequence[Trial], domain: Domain, rng: Generator) -> Floats:
        best = best_of(trials)
        points = self._candidates(best.point, domain, rng)
        evaluated = np.array([trial.point for trial in trials])
        seen = domain.features(np.vstack([evaluated, points]))
        # One length for all variables: 25 evaluations cannot tell five apart.
        seen = (seen - seen.mean(axis=0)) / (seen.std(axis=0) + 1e-12)
        known, asked = seen[: len(trials)], seen[len(trials) :]
        value = np.ones(len(points))
        for index in range(len(best.measured.excess)):
            mean, sd = predicted(known, [trial.measured.excess[index] for trial in trials], asked)
            value *= below(0.0, mean, sd)
        if best.measured.feasible:
            mean, sd = predicted(known, [trial.measured.cost for trial in trials], asked)
            value *= expected_improvement(best.measured.cost, mean, sd)
        chosen: Floats = points[int(np.argmax(value))]
        return chosen

    def _candidates(self, best: Floats, domain: Domain, rng: Generator) -> Floats:
        """Points everywhere and, the domain being convex, points at every distance around the best."""
        anywhere = domain.sample(self.candidates, rng)
        near = anywhere[: self.candidates // 2]
        step = 10.0 ** rng.uniform(-2.0, 0.0, (len(near), 1))
        around = best + step * (near - best)
        return np.vstack([anywhere, around[domain.contains(around)]])


def predicted(known: Floats, values: Sequence[float], asked: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of a Gaussian process through the known values.

    Its two parameters are the most likely of a grid: with 25 points the likelihood is
    nearly flat between neighbours, and a grid needs no restarts and gives no warnings
    (which Python cannot silence in one thread alone).
    """
    # Here, not above: it takes a second, and only tuning needs it.
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern, WhiteKernel

    # Learners' trajectories are chaotic: neighbouring points differ as if there were noise.
    kernel = Matern(nu=2.5) + WhiteKernel()
    targets = np.asarray(values, dtype=np.float64)
    draft = GaussianProcessRegressor(kernel=kernel, optimizer=None, normalize_y=True).fit(known, targets)
    likeliest = max(_PARAMETERS, key=lambda theta: draft.log_marginal_likelihood(theta, clone_kernel=False))
    process = GaussianProcessRegressor(
        kernel=kernel.clone_with_theta(likeliest), optimizer=None, normalize_y=True
    ).fit(known, targets)
    mean, sd = process.predict(asked, return_std=True)
    return mean, sd


# Natural logarithms of the kernel's length (in standard deviations of the features) and noise.
_PARAMETERS = [np.log([length, noise]) for length in (0.3, 0.7, 1.5, 3.0, 6.0) for noise in (1e-4, 1e-2, 0.1)]

_erf = np.vectorize(erf, otypes=[np.float64])


def below(limit: float, mean: Floats, sd: Floats) -> Floats:
    """Probability that a normal variable stays at or below the limit."""
    z = (limit - mean) / np.maximum(sd, 1e-12)
    probability: Floats = 0.5 * (1.0 + _erf(z / sqrt(2.0)))
    return probability


def expected_improvement(best: float, mean: Floats, sd: Floats) -> Floats:
    """E[max(best - X, 0)] for X normal: (best - m) Phi(z) + s phi(z) with z = (best - m) / s."""
    sd = np.maximum(sd, 1e-12)
    z = (best - mean) / sd
    density = np.exp(-0.5 * z * z) / sqrt(2.0 * np.pi)
    improvement: Floats = (best - mean) * below(best, mean, sd) + sd * density
    return improvement
