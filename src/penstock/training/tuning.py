"""Bounds and weights chosen by simulation, before or beside a run: the tuned Application Manager.

Algorithm 4 (`policy/application/tuned.py`) over the monitored rates, then a longer look at
the best over the same rates several times in a row.
"""

from collections.abc import Callable
from dataclasses import replace

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
    SelfTuning,
    TunedManager,
    TuningEffort,
    confirmed,
    judged,
)

REPLAYS = 8  # of the monitored rates, to confirm a choice

Play = Callable[[Configuration, Floats], Behaviour]  # the application under a configuration, over these rates


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
    settings: TuningEffort | None = None,
) -> Chosen:
    """The cheapest configuration found that keeps to the objective; the start unless one is better.

    `changes_are_late`: a reconfiguration by itself makes its interval late.
    """

    def evaluate(chosen: Configuration, over: Floats) -> Measured:
        behaviour = play(chosen, over)
        late = behaviour.violations + (behaviour.reconfigurations if changes_are_late else 0.0)
        return judged(replace(behaviour, violations=min(late, 1.0)), objective)

    how = settings or SelfTuning()
    manager = TunedManager(
        application=application,
        objective=objective,
        budget=how.budget,
        max_rounds=how.rounds,
        fastest=fastest,
    )
    tuned = manager.tune(lambda chosen: evaluate(chosen, rates), start, rng)
    longer = np.tile(rates, REPLAYS)
    return confirmed(tuned.start, tuned.phases, lambda chosen: evaluate(chosen, longer))
