"""A small dense network with ReLU layers, forwards, backwards and one optimiser step, without allocating.

Signals between layers are sparse: an input has a handful of cells that are not 0 (one-hot
encodings), and ReLU silences about half of the neurons. So a signal is a list of rows and
amounts, a layer adds up those rows of its weights, and the gradient touches those rows only.
Rows lie along memory and are added four at a time.

Everything is IEEE arithmetic in a fixed order, without `fastmath`: a run in the simulator and
single live decisions give the same weights to the last bit, though compiled apart.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, sqrt
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled, compiled_apart, frozen_ints
from penstock.domain.errors import InputError

LARGEST_BYTES = 256 * 2**20  # of the weights
SHRINKING = 0.75  # neurons of a hidden layer over its inputs (Russo 2023, sec. 6.2)

# Adam as in Kingma and Ba, 2015; scikit-learn and DL4J have the same defaults.
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class Network(NamedTuple):
    """Weights, and the room a pass needs."""

    sizes: Ints  # neurons per layer, inputs first
    starts: Ints  # per layer of weights: where it begins; a row per input, then the biases
    segments: Ints  # per layer of neurons: where its signal begins in `rows` and `amounts`
    weights: Floats
    gradient: Floats  # summed over a batch; all 0 between two batches
    moments: Floats  # Adam's [first, second]; empty for SGD
    updates: Ints  # [optimiser steps so far]
    rows: Ints  # sparse signals of the last pass, layer by layer
    amounts: Floats
    counts: Ints  # how many rows of each signal are not 0
    output: Floats  # of the last pass
    error: Floats  # what is to be propagated back from the output
    dense: Floats  # [this layer, the one before] x widest
    touched: Ints  # [how many, input rows with a gradient ...]
    is_touched: Ints  # per input row


def layer_sizes(inputs: int, hidden: int, outputs: int) -> tuple[int, ...]:
    """Each hidden layer has 3/4 of the neurons it gets its input from: 60-45-34-26-7."""
    sizes = [inputs]
    for _ in range(hidden):
        sizes.append(ceil(SHRINKING * sizes[-1]))
    return (*sizes, outputs)


def weights_in(sizes: Sequence[int]) -> int:
    """How many weights and biases such a network has."""
    return sum((above + 1) * below for above, below in pairwise(sizes))


def network(sizes: Sequence[int], *, inputs_at_once: int, adam: bool = False) -> Network:
    """All weights 0, to be drawn by `draw_weights`; at most `inputs_at_once` inputs are not 0."""
    size = weights_in(sizes)
    if 8 * size > LARGEST_BYTES:
        raise InputError(
            f"a network of {'-'.join(map(str, sizes))} neurons has {size:,} weights, more than "
            f"{LARGEST_BYTES // 2**20} MB; use another encoding, fewer node types or fewer replicas"
        )
    layers = [(above + 1) * below for above, below in pairwise(sizes)]
    signals = [inputs_at_once, *sizes[1:]]
    room, widest = sum(signals), max(sizes[1:])
    return Network(
        sizes=frozen_ints(sizes),
        starts=frozen_ints(np.cumsum([0, *layers])),
        segments=frozen_ints(np.cumsum([0, *signals])),
        weights=np.zeros(size),
        gradient=np.zeros(size),
        moments=np.zeros((2, size if adam else 0)),
        updates=np.zeros(1, dtype=np.int64),
        rows=np.zeros(room, dtype=np.int64),
        amounts=np.zeros(room),
        counts=np.zeros(len(sizes), dtype=np.int64),
        output=np.zeros(sizes[-1]),
        error=np.zeros(sizes[-1]),
        dense=np.zeros((2, widest)),
        touched=np.zeros(sizes[0] + 1, dtype=np.int64),
        is_touched=np.zeros(sizes[0], dtype=np.int64),
    )


@compiled_apart
def draw_weights(net: Network, rng: Generator) -> None:
    """Xavier: normal with variance 2 / (inputs + outputs) of the layer, in the order of memory; biases 0."""
    for layer in range(net.sizes.size - 1):
        above, below = net.sizes[layer], net.sizes[layer + 1]
        deviation = sqrt(2.0 / (above + below))
        start = net.starts[layer]
        for index in range(above * below):
            net.weights[start + index] = deviation * rng.standard_normal()
        for index in range(above * below, (above + 1) * below):
            net.weights[start + index] = 0.0


@compiled
def _add_rows(
    out: Floats, weights: Floats, start: int, rows: Ints, amounts: Floats, first: int, count: int
) -> None:
    """Add `count` rows of weights to `out`, each times its amount, four at a time."""
    width = out.size
    done = 0
    while done + 4 <= count:
        at = first + done
        a0, a1, a2, a3 = amounts[at], amounts[at + 1], amounts[at + 2], amounts[at + 3]
        s0 = start + rows[at] * width
        s1 = start + rows[at + 1] * width
        s2 = start + rows[at + 2] * width
        s3 = start + rows[at + 3] * width
        w0, w1 = weights[s0 : s0 + width], weights[s1 : s1 + width]
        w2, w3 = weights[s2 : s2 + width], weights[s3 : s3 + width]
        for j in range(width):
            out[j] = (((out[j] + a0 * w0[j]) + a1 * w1[j]) + a2 * w2[j]) + a3 * w3[j]
        done += 4
    while done < count:
        at = first + done
        amount = amounts[at]
        begin = start + rows[at] * width
        row = weights[begin : begin + width]
        for j in range(width):
            out[j] += amount * row[j]
        done += 1


@compiled
def forward(net: Network, weights: Floats) -> None:
    """From the input signal (`rows`, `amounts`, `counts[0]`) to `output`, by these weights of the same shape.

    A target network is the same network with other weights.
    """
    last = net.sizes.size - 2
    for layer in range(last + 1):
        above, below = net.sizes[layer], net.sizes[layer + 1]
        out = net.output if layer == last else net.dense[0, :below]
        start = net.starts[layer]
        biases = start + above * below
        bias = weights[biases : biases + below]
        for j in range(below):
            out[j] = bias[j]
        _add_rows(out, weights, start, net.rows, net.amounts, net.segments[layer], net.counts[layer])
        if layer < last:
            first = net.segments[layer + 1]
            rows = net.rows[first : first + below]
            amounts = net.amounts[first : first + below]
            active = 0
            for j in range(below):  # ReLU: what is not positive is overwritten by the next
                rows[active] = j
                amounts[active] = out[j]
                active += out[j] > 0.0
            net.counts[layer + 1] = active


@compiled_apart
def backward(net: Network, weights: Floats) -> None:
    """Add to `gradient` what `error` at the output of the last pass means for every weight."""
    last = net.sizes.size - 2
    delta = net.error
    for layer in range(last, -1, -1):
        above, below = net.sizes[layer], net.sizes[layer + 1]
        start, first, count = net.starts[layer], net.segments[layer], net.counts[layer]
        for index in range(count + 1):
            # The biases are the row after the last, and their input is always 1.
            row = net.rows[first + index] if index < count else above
            amount = net.amounts[first + index] if index < count else 1.0
            begin = start + row * below
            gradient = net.gradient[begin : begin + below]
            for j in range(below):
                gradient[j] += amount * delta[j]
            if layer == 0 and index < count and net.is_touched[row] == 0:
                net.is_touched[row] = 1
                net.touched[0] += 1
                net.touched[net.touched[0]] = row
        if layer > 0:
            before = net.dense[layer % 2, :above]
            for j in range(above):
                before[j] = 0.0
            rows = net.rows[first : first + count]
            for index in range(count):  # where ReLU let the signal through
                begin = start + rows[index] * below
                before[rows[index]] = _dot(weights[begin : begin + below], delta)
            delta = before


@compiled
def _dot(a: Floats, b: Floats) -> float:
    """In eight sums, which a processor adds up side by side; a fixed order, unlike `fastmath`'s."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    size = a.size
    whole = size - size % 8
    for j in range(0, whole, 8):
        s0 += a[j] * b[j]
        s1 += a[j + 1] * b[j + 1]
        s2 += a[j + 2] * b[j + 2]
        s3 += a[j + 3] * b[j + 3]
        s4 += a[j + 4] * b[j + 4]
        s5 += a[j + 5] * b[j + 5]
        s6 += a[j + 6] * b[j + 6]
        s7 += a[j + 7] * b[j + 7]
    for j in range(whole, size):
        s0 += a[j] * b[j]
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@compiled
def descend(net: Network, step_size: float) -> None:
    """One step of plain gradient descent along `gradient`, which is all 0 again afterwards."""
    below = net.sizes[1]
    for index in range(1, net.touched[0] + 1):
        row = net.touched[index]
        _descend(net, step_size, row * below, (row + 1) * below)
        net.is_touched[row] = 0
    net.touched[0] = 0
    _descend(net, step_size, net.sizes[0] * below, net.weights.size)
    net.updates[0] += 1


@compiled
def _descend(net: Network, step_size: float, start: int, end: int) -> None:
    weights, gradient = net.weights[start:end], net.gradient[start:end]
    for index in range(weights.size):
        weights[index] -= step_size * gradient[index]
        gradient[index] = 0.0


@compiled
def descend_by_adam(net: Network, step_size: float, scale: float) -> None:
    """One step of Adam along `scale` times `gradient`; moments decay without a gradient too, so all move."""
    net.updates[0] += 1
    t = net.updates[0]
    size = step_size * sqrt(1.0 - BETA_2**t) / (1.0 - BETA_1**t)
    first, second = net.moments[0], net.moments[1]
    weights, gradient = net.weights, net.gradient
    for index in range(weights.size):
        slope = scale * gradient[index]
        first[index] = BETA_1 * first[index] + (1.0 - BETA_1) * slope
        second[index] = BETA_2 * second[index] + (1.0 - BETA_2) * slope**2
        weights[index] -= size * first[index] / (sqrt(second[index]) + EPSILON)
        gradient[index] = 0.0
    for index in range(1, net.touched[0] + 1):
        net.is_touched[net.touched[index]] = 0
    net.touched[0] = 0
