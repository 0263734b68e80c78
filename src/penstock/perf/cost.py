"""What an interval costs: the weighted sum of Russo 2023, eq. (2), written once."""

from typing import Any

from penstock.compiled import compiled


def interval_cost(weights: Any, late: Any, share: Any, changed: Any) -> Any:
    """Violation, resources (as a share of the most there may be) and reconfiguration, weighted.

    `weights` is whatever has the three of them: `Weights`, a decision problem, a simulated world;
    the rest are numbers, or arrays with one for each interval.
    """
    return weights.performance * late + weights.resources * share + weights.reconfiguration * changed


compiled_interval_cost = compiled(interval_cost)
