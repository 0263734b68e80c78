"""Bounds and weights chosen by simulation, beforehand or beside a run: the tuned Application Manager.

Algorithm 4 (`policy/application/tuned.py`) over the monitored rates, then a longer look at
the best over the same rates several times in a row.
"""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats
from penstock.domain.application import Application
from penstock.domain.objective import Objective
from penstock.policy.application.bayesian import Measured
from penstock.policy.application.tuned import (
    Behaviour,
    Chosen,
    Configuration,
    TunedManager,
    confirmed,
    judged,
)
from penstock.simulation.play import SimulationResult

REPLAYS = 8  # of the monitored rates, to confirm a choice
ROUNDS = 2
BUDGET = 25  # evaluations per phase

Play = Callable[
    [Configuration, Floats], SimulationResult
]  # the application under a configuration, over these rates


def chosen_by_simulation(
    play: Play,
    start: Configuration,
    rng: Generator,
    *,
    application: Application,
    objective: Objective,
    rates: Floats,
    fastest: float,
    changes_are_late: bool = False,
    budget: int = BUDGET,
) -> Chosen:
    """The cheapest configuration found that keeps to the objective; the start unless one is better.

    `changes_are_late`: a reconfiguration by itself makes its interval late.
    """

    def evaluate(chosen: Configuration, over: Floats) -> Measured:
        outcome = play(chosen, over)
        reconfigurations = outcome.reconfigurations_pct / 100
        late = outcome.violations_pct / 100 + (reconfigurations if changes_are_late else 0.0)
        behaviour = Behaviour(
            resource_cost=outcome.resource_cost,
            violations=min(late, 1.0),
            reconfigurations=reconfigurations,
        )
        return judged(behaviour, objective)

    manager = TunedManager(
        application=application, objective=objective, budget=budget, max_rounds=ROUNDS, fastest=fastest
    )
    tuned = manager.tune(lambda chosen: evaluate(chosen, rates), start, rng)
    longer = np.tile(rates, REPLAYS)
    return confirmed(tuned.start, tuned.phases, lambda chosen: evaluate(chosen, longer))
