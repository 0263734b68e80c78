"""The network against scikit-learn's: forward pass, gradient, SGD and Adam steps."""

from typing import Literal

import numpy as np
import pytest
from deep_cases import assert_same_weights, fitted, predicted, split, twin

from penstock.compiled import Floats
from penstock.domain.errors import InputError
from penstock.policy.rl.network import (
    Network,
    backward,
    descend,
    descend_by_adam,
    draw_weights,
    forward,
    layer_sizes,
    network,
    weights_in,
)

SHAPES = [(5, 4, 1), (7, 6, 5, 3), (60, 45, 34, 26, 7), (13, 10, 8, 6, 1)]


def random_network(sizes: tuple[int, ...], seed: int = 1, *, adam: bool = False) -> Network:
    net = network(sizes, inputs_at_once=sizes[0], adam=adam)
    rng = np.random.default_rng(seed)
    draw_weights(net, rng)
    net.weights[:] += 0.1 * rng.standard_normal(net.weights.size)  # biases too
    return net


def random_inputs(net: Network, seed: int, samples: int = 9) -> Floats:
    """One-hot, real-valued and dense ones."""
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((samples, int(net.sizes[0])))
    inputs[: samples // 3] *= rng.random((samples // 3, inputs.shape[1])) < 0.3
    inputs[samples // 3 : samples // 2] = np.eye(inputs.shape[1])[:1]
    return inputs


def run(net: Network, inputs: Floats) -> Floats:
    cells = np.flatnonzero(inputs)
    net.rows[: cells.size], net.amounts[: cells.size] = cells, inputs[cells]
    net.counts[0] = cells.size
    forward(net, net.weights)
    return net.output.copy()


def learn(net: Network, inputs: Floats, goals: Floats) -> None:
    """The gradient of half the squared error, summed over the batch."""
    for sample, goal in zip(inputs, goals, strict=True):
        net.error[:] = run(net, sample) - goal
        backward(net, net.weights)


@pytest.mark.parametrize("sizes", SHAPES)
def test_the_forward_pass_is_scikit_learns(sizes: tuple[int, ...]) -> None:
    net = random_network(sizes)
    inputs = random_inputs(net, seed=2)
    ours = np.array([run(net, sample) for sample in inputs])
    assert np.ptp(ours) > 0.01
    np.testing.assert_allclose(ours, predicted(twin(net), inputs), rtol=0, atol=1e-9)


@pytest.mark.parametrize("sizes", SHAPES)
@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_steps_of_the_optimiser_are_scikit_learns(
    sizes: tuple[int, ...], solver: Literal["sgd", "adam"]
) -> None:
    net = random_network(sizes, adam=solver == "adam")
    theirs = twin(net, step_size=0.05, solver=solver)
    for step in range(5):
        before = net.weights.copy()
        inputs = random_inputs(net, seed=10 + step)
        goals = np.random.default_rng(20 + step).standard_normal((inputs.shape[0], sizes[-1]))
        learn(net, inputs, goals)
        if solver == "sgd":
            descend(net, 0.05 / inputs.shape[0])
        else:
            descend_by_adam(net, 0.05, 1.0 / inputs.shape[0])
        assert np.abs(net.weights - before).max() > 1e-3
        assert_same_weights(net, fitted(theirs, inputs, goals))
        assert not net.gradient.any()
        assert not net.is_touched.any()


def test_the_gradient_is_that_of_finite_differences() -> None:
    net = random_network((6, 5, 4, 2))
    sample, goal = random_inputs(net, seed=3)[-1], np.array([0.3, -0.2])
    learn(net, sample[None], goal[None])
    gradient = net.gradient.copy()

    def loss() -> float:
        return 0.5 * float(np.sum((run(net, sample) - goal) ** 2))

    for index in range(net.weights.size):
        kept, h = net.weights[index], 1e-6
        net.weights[index] = kept + h
        above = loss()
        net.weights[index] = kept - h
        below = loss()
        net.weights[index] = kept
        assert gradient[index] == pytest.approx((above - below) / (2 * h), abs=1e-6)


def test_first_weights_are_xaviers_in_the_order_of_the_generator_and_biases_0() -> None:
    net, again = network((60, 45, 7), inputs_at_once=4), network((60, 45, 7), inputs_at_once=4)
    draw_weights(net, np.random.default_rng(5))
    draw_weights(again, np.random.default_rng(5))
    assert net.weights.tobytes() == again.weights.tobytes()
    draws = np.random.default_rng(5)
    matrices, biases = split(net)
    for matrix, bias in zip(matrices, biases, strict=True):
        deviation = np.sqrt(2 / sum(matrix.shape))
        np.testing.assert_allclose(matrix, deviation * draws.standard_normal(matrix.shape), rtol=1e-12)
        assert not bias.any()


def test_hidden_layers_have_three_quarters_of_their_inputs() -> None:
    assert layer_sizes(60, 3, 7) == (60, 45, 34, 26, 7)  # A:3, ten replicas, thirty levels
    assert layer_sizes(60, 1, 1) == (60, 45, 1)
    assert weights_in((60, 45, 7)) == 61 * 45 + 46 * 7


def test_a_network_that_would_not_fit_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="use another encoding"):
        network(layer_sizes(10_000, 3, 7), inputs_at_once=2)
