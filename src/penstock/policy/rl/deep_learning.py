"""What deep learners share: a network, its experiences, and when and how it is fitted to a batch of them.

(Russo 2023, Alg. 2 and sec. 6.2.) What is learned, and towards what, is the policy's.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled, compiled_apart
from penstock.domain.errors import InputError
from penstock.policy.parameters import Param, Values
from penstock.policy.rl.encoding import ENCODINGS, Encoding, encode, encoding
from penstock.policy.rl.network import (
    Network,
    descend,
    descend_by_adam,
    draw_weights,
    forward,
    layer_sizes,
    network,
)
from penstock.policy.rl.problem import Problem
from penstock.policy.rl.replay import Replay, remembered, replay

OPTIMISERS = ("sgd", "adam")
LOSSES = ("half-squares", "mean-squares")
TRAINING_SLOTS = 100_000  # before the first live decision; a few seconds
PUBLISHED: Values = {"loss": "mean-squares", "colliding": True}  # of the code behind the paper's tables


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepSettings:
    """The network and how it learns; the paper's values, and what it leaves out or tried besides."""

    hidden: Annotated[
        int, Param("hidden layers, each with 3/4 of its inputs as neurons", at_least=1, at_most=3)
    ] = 3
    encoding: Annotated[str, Param("states as inputs: minimal, large, reduced1 or reduced2")] = "reduced2"
    colliding: Annotated[
        bool, Param("no replicas of a type share a cell with another state, as in the published code")
    ] = False
    optimiser: Annotated[str, Param("sgd or adam")] = "sgd"
    alpha: Annotated[float, Param("step size", above=0, at_most=1)] = 0.1
    loss: Annotated[
        str, Param("half-squares (gradient: the error) or mean-squares (twice that, over all outputs)")
    ] = "half-squares"
    fit_every: Annotated[int, Param("experiences between two fits", at_least=1)] = 5
    batch: Annotated[int, Param("experiences drawn for a fit", at_least=1, at_most=10_000)] = 32
    capacity: Annotated[
        int, Param("experiences kept, first in first out", at_least=1, at_most=10_000_000)
    ] = 10_000
    sync_every: Annotated[
        int, Param("fits between copies of the weights to a target network; 0: there is none", at_least=0)
    ] = 0
    double: Annotated[
        bool, Param("the network picks the next action, the target network says what it is worth")
    ] = False

    def __post_init__(self) -> None:
        for name, value, known in (
            ("encoding", self.encoding, ENCODINGS),
            ("optimiser", self.optimiser, OPTIMISERS),
            ("loss", self.loss, LOSSES),
        ):
            if value not in known:
                raise InputError(f"{name}={value}: unknown; choose one of {', '.join(known)}")
        if self.batch > self.capacity:
            raise InputError(f"batch={self.batch}: more than capacity={self.capacity} experiences")
        if self.double and self.sync_every == 0:
            raise InputError("double=True needs a target network: set sync_every to 1 or more")

    def approximator(self, problem: Problem, outputs: int) -> "Approximator":
        """The network, with experiences to come."""
        coded = encoding(problem, self.encoding, colliding=self.colliding)
        net = network(
            layer_sizes(coded.inputs, self.hidden, outputs),
            inputs_at_once=coded.at_once,
            adam=self.optimiser == "adam",
        )
        return Approximator(
            problem=problem,
            encoding=coded,
            net=net,
            target=np.zeros(net.weights.size if self.sync_every else 0),
            replay=replay(capacity=self.capacity, batch=self.batch),
            is_drawn=np.zeros(1, dtype=np.int64),
            keys=np.zeros(self.batch, dtype=np.int64),
            goals=np.zeros(self.batch),
            step_size=self.alpha,
            adam=self.optimiser == "adam",
            error_scale=1.0 if self.loss == "half-squares" else 2.0 / outputs,
            fit_every=self.fit_every,
            sync_every=self.sync_every,
            double=self.double,
        )


class Approximator(NamedTuple):
    """A value function as a network, and the experiences it is fitted to."""

    problem: Problem
    encoding: Encoding
    net: Network
    target: Floats  # weights of the target network; empty: there is none
    replay: Replay
    is_drawn: Ints  # [whether the first weights were]
    keys: Ints  # of the batch drawn last: states, to find those that are equal
    goals: Floats  # of the batch drawn last: what the network should have said
    step_size: float
    adam: bool
    error_scale: float  # the loss's gradient over the error
    fit_every: int
    sync_every: int
    double: bool


@compiled
def begin(me: Approximator, rng: Generator) -> None:
    """Draw the first weights, once."""
    if me.is_drawn[0] == 0:
        draw_weights(me.net, rng)
        me.is_drawn[0] = 1
        _sync(me)


@compiled
def evaluate(me: Approximator, weights: Floats, deployment: int, level: int) -> None:
    """Run a state through the network; the answer is in `net.output`."""
    net = me.net
    net.counts[0] = encode(me.encoding, me.problem, deployment, level, net.rows, net.amounts)
    forward(net, weights)


@compiled
def is_due(me: Approximator) -> bool:
    """Whether the experience just stored completes another few, and a batch can be drawn."""
    return me.replay.stored[0] % me.fit_every == 0 and remembered(me.replay) >= me.replay.batch.size


@compiled_apart
def descend_once(me: Approximator) -> None:
    """Move the weights by the mean gradient of a batch."""
    step_size = me.step_size
    if me.adam:
        descend_by_adam(me.net, step_size, 1.0 / me.replay.batch.size)
    else:
        descend(me.net, step_size / me.replay.batch.size)
    if me.sync_every > 0 and me.net.updates[0] % me.sync_every == 0:
        _sync(me)


@compiled
def _sync(me: Approximator) -> None:
    # In a loop: assigning one array to another may allocate.
    for index in range(me.target.size):
        me.target[index] = me.net.weights[index]
