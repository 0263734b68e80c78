"""scikit-learn's MLPRegressor with the weights of one of our networks, for the tests of deep learners."""

from typing import Literal

import numpy as np
from sklearn.neural_network import MLPRegressor

from penstock.compiled import Floats
from penstock.policy.rl.network import Network


def split(net: Network, weights: Floats | None = None) -> tuple[list[Floats], list[Floats]]:
    """Matrices and biases per layer, as scikit-learn keeps them."""
    flat = net.weights if weights is None else weights
    matrices, biases = [], []
    for layer, (above, below) in enumerate(zip(net.sizes[:-1], net.sizes[1:], strict=True)):
        rows = flat[net.starts[layer] : net.starts[layer + 1]].reshape(above + 1, below)
        matrices.append(rows[:-1].copy())
        biases.append(rows[-1].copy())
    return matrices, biases


def twin(
    net: Network,
    weights: Floats | None = None,
    *,
    step_size: float = 0.1,
    solver: Literal["sgd", "adam"] = "sgd",
) -> MLPRegressor:
    """A regressor with these weights and an optimiser that has not made a step yet."""
    regressor = MLPRegressor(
        hidden_layer_sizes=tuple(int(size) for size in net.sizes[1:-1]),
        solver=solver,
        alpha=0.0,
        learning_rate="constant",
        learning_rate_init=step_size,
        momentum=0.0,
        nesterovs_momentum=False,
        batch_size=10_000,
        shuffle=False,
    )
    inputs, outputs = int(net.sizes[0]), int(net.sizes[-1])
    with np.errstate(all="ignore"):
        _fit(regressor, np.zeros((2, inputs)), np.zeros((2, outputs)))  # makes its arrays
    regressor.coefs_, regressor.intercepts_ = split(net, weights)
    del regressor.__dict__["_optimizer"]
    return regressor


def _fit(regressor: MLPRegressor, inputs: Floats, goals: Floats) -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that a batch is larger than the data
        regressor.partial_fit(inputs, goals[:, 0] if goals.shape[1] == 1 else goals)


def predicted(regressor: MLPRegressor, inputs: Floats) -> Floats:
    return regressor.predict(inputs).reshape(inputs.shape[0], -1)


def fitted(regressor: MLPRegressor, inputs: Floats, goals: Floats) -> tuple[list[Floats], list[Floats]]:
    """Its weights after one optimiser step on the whole batch."""
    _fit(regressor, inputs, goals)
    return regressor.coefs_, regressor.intercepts_


def assert_same_weights(
    net: Network, expected: tuple[list[Floats], list[Floats]], weights: Floats | None = None
) -> None:
    for ours, theirs in zip(split(net, weights), expected, strict=True):
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(mine, other, rtol=0, atol=1e-9)
