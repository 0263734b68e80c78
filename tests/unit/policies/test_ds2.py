"""DS2: the true rate, the tolerated band, and silence."""

import numpy as np
import pytest
from policy_cases import at, node_types, observation, seen, space_of

from penstock.domain.decision import Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.policy.kernel import step
from penstock.policy.operator.ds2 import Ds2

MOST = 10
RNG = np.random.default_rng(1)
TYPES = node_types()
SPACE = space_of(TYPES, MOST)


def ds2(*, target: float = 0.5, low: float = 0.25, high: float = 0.75) -> Ds2:
    return Ds2(node_types=TYPES, deployments=SPACE, target=target, low=low, high=high)


def test_the_true_rate_is_what_a_replica_would_process_if_it_never_waited() -> None:
    memory = ds2().initial()
    step(memory, seen(at(SPACE, 4), rate=240.0, utilisation=0.75), RNG)
    assert memory.true_rate[0] == 240 / 4 / 0.75


@pytest.mark.parametrize(
    ("replicas", "rate", "utilisation", "wanted"),
    # The true rate is 80 t/s throughout: at half utilisation a replica serves 40.
    [
        (2, 150.0, 0.9375, 4),
        (2, 160.0, 1.0, 4),
        (2, 161.0, 1.00625, 5),
        (4, 60.0, 0.1875, 2),
        (1, 4e4, 500.0, MOST),
    ],
)
def test_outside_the_band_it_jumps_to_the_replicas_that_serve_the_rate_at_the_target(
    replicas: int, rate: float, utilisation: float, wanted: int
) -> None:
    target, _ = step(ds2().initial(), seen(at(SPACE, replicas), rate, utilisation=utilisation), RNG)
    assert target == at(SPACE, wanted)


@pytest.mark.parametrize("utilisation", [0.25, 0.3, 0.75])
def test_inside_the_band_and_on_its_edges_it_holds(utilisation: float) -> None:
    target, _ = step(ds2().initial(), seen(at(SPACE, 4), 4 * 80 * utilisation, utilisation=utilisation), RNG)
    assert target == at(SPACE, 4)


@pytest.mark.parametrize(
    ("loads", "wanted"),
    # Every replica would process 100 t/s, so sum(loads) * 100 arrive; at .7 each serves 70.
    [
        ((0.9, 0.1, 0.1), 2),  # mean .37, below .4: ceil(110 / 70); the busiest alone is in the band
        ((1.3, 0.9, 0.95), 5),  # mean 1.05: ceil(315 / 70); were all as busy as the busiest, 6
        ((1.2, 0.5, 0.5), 3),  # mean .73: held, although the busiest is above 1
    ],
)
def test_true_rate_and_band_are_about_the_mean_over_replicas(loads: tuple[float, ...], wanted: int) -> None:
    """Kalavri et al.: replicas = rate / (true rate of all / replicas), here with Flink's target and band."""
    policy = ds2(target=0.7, low=0.4, high=1.0)
    seen = observation(3, rate=100 * sum(loads), utilisation=max(loads), by_replica=loads)
    decision, memory = policy.decide(policy.initial(), seen, RNG)
    assert memory.true_rate[0] == pytest.approx(100.0)
    if wanted == 3:
        assert isinstance(decision, Hold)
    else:
        assert isinstance(decision, Scale)
        assert decision.target == Replicas((wanted,))
    assert f"mean utilisation {sum(loads) / 3:.2f}" in decision.reason


def test_a_silent_interval_releases_all_but_one_and_the_true_rate_is_remembered() -> None:
    memory = ds2().initial()
    step(memory, seen(at(SPACE, 4), rate=240.0, utilisation=0.75), RNG)
    target, _ = step(memory, seen(at(SPACE, 4), rate=0.0, utilisation=0.0), RNG)
    assert target == at(SPACE, 1)
    assert memory.true_rate[0] == 80.0
    # Tuples arrive again but nothing has been busy yet: sized by what was known before.
    target, _ = step(memory, seen(at(SPACE, 1), rate=200.0, utilisation=0.0), RNG)
    assert target == at(SPACE, 5)


def test_before_anything_was_measured_silence_says_nothing() -> None:
    policy = ds2()
    decision, _ = policy.decide(policy.initial(), observation(4, rate=0.0, utilisation=0.0), RNG)
    assert isinstance(decision, Hold)


@pytest.mark.parametrize(("low", "target", "high"), [(0.5, 0.5, 0.9), (0.2, 0.9, 0.8), (0.0, 0.5, 0.9)])
def test_a_band_that_does_not_surround_the_target_is_refused(low: float, target: float, high: float) -> None:
    with pytest.raises(InputError, match="they must increase"):
        ds2(low=low, target=target, high=high)
