"""Recurrent layers: LSTM, GRU, RNN.

The products of the input with its weights do not depend on the state: they are one product for all steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tlx.frontends.onnx.loops import fold
from tlx.frontends.onnx.model import OnnxNode
from tlx.frontends.onnx.operators.activations import exponential, softplus, softsign
from tlx.frontends.onnx.operators.products import product
from tlx.frontends.onnx.operators.quantization import quantized_product
from tlx.frontends.onnx.table import operator
from tlx.frontends.onnx.tensors import Tensor, Tensors

Activation = Callable[[Tensor], Tensor]
_GATES: Final = {"LSTM": 4, "GRU": 3, "RNN": 1}
_DEFAULTS: Final = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
_NUMBERS: Final[dict[str, tuple[float, float | None]]] = {
    "hardsigmoid": (0.2, 0.5),
    "leakyrelu": (0.01, None),
    "thresholdedrelu": (1.0, None),
    "elu": (1.0, None),
    "affine": (1.0, 0.0),
    "scaledtanh": (1.0, 1.0),
}
"""Alpha and beta of the activations that have them, if the node does not give them."""
_DIRECTIONS: Final = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True, slots=True)
class _QuantizedWeights:
    """Weights in 8 bits, transposed, with scale and zero point."""

    weights: Tensor
    scale: Tensor
    zero: Tensor


@dataclass(frozen=True, slots=True)
class _Cell:
    """One direction of a layer.

    Attributes:
        node: The node.
        kind: LSTM, GRU or RNN.
        size: Elements of the state.
        weights: Of the input, transposed: `(inputs, gates * hidden)`.
        recurrent: Of the state, transposed: `(hidden, gates * hidden)`; quantized both or none.
        bias: Of the input's products, `(gates * hidden)`; None if there is none.
        recurrent_bias: Of the state's products.
        peepholes: Weights of the LSTM's cell in its gates; None if there are none.
        activations: The functions.
    """

    node: OnnxNode
    kind: str
    size: int
    weights: Tensor | _QuantizedWeights
    recurrent: Tensor | _QuantizedWeights
    bias: Tensor | None
    recurrent_bias: Tensor | None
    peepholes: Tensor | None
    activations: list[Activation]


@operator("LSTM", "GRU", "RNN")
def recurrent(
    t: Tensors,
    node: OnnxNode,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    hidden: Tensor | None = None,
    cell: Tensor | None = None,
    peepholes: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """A layer of cells that carry a state, in one or both directions.

    Args:
        t: The tensors.
        node: The node.
        x: `(steps, batch, inputs)`; with `layout=1` the batch comes first, and in the results too.
        w: `(directions, gates * hidden, inputs)`.
        r: `(directions, gates * hidden, hidden)`.
        b: `(directions, 2 * gates * hidden)`.
        lengths: Steps of each sample, `(batch)`.
        hidden: `(directions, batch, hidden)`.
        cell: The LSTM's cell, of the same shape.
        peepholes: `(directions, 3 * hidden)`.

    Returns:
        The states of all steps, `(steps, directions, batch, hidden)`, and the last ones.
    """
    return _layer(t, node, x, (w, r, b, peepholes), (hidden, cell), lengths, node.operator)


@operator("com.microsoft.DynamicQuantizeLSTM")
def quantized_lstm(
    t: Tensors,
    node: OnnxNode,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    hidden: Tensor | None = None,
    cell: Tensor | None = None,
    peepholes: Tensor | None = None,
    *quantization: Tensor,
) -> tuple[Tensor, ...]:
    """An LSTM of onnxruntime whose weights, transposed, are quantized, and whose products are of 8-bit integers."""
    if len(quantization) != 4:
        raise node.error("needs scales and zero points of its weights")
    layers = [
        [_QuantizedWeights(*(t.reshape(t.part(v, 0, d, d + 1), v.shape[1:]) for v in every)) for d in range(w.shape[0])]
        for every in ((w, *quantization[:2]), (r, *quantization[2:]))
    ]
    whole = (t.transpose(w, (0, 2, 1)), t.transpose(r, (0, 2, 1)), b, peepholes)
    return _layer(t, node, x, whole, (hidden, cell), lengths, "LSTM", layers)


def _layer(
    t: Tensors,
    node: OnnxNode,
    x: Tensor,
    weights: tuple[Tensor, Tensor, Tensor | None, Tensor | None],
    initial: tuple[Tensor | None, Tensor | None],
    lengths: Tensor | None,
    kind: str,
    quantized: Sequence[Sequence[_QuantizedWeights]] = (),
) -> tuple[Tensor, ...]:
    (w, r, *_), (hidden, cell) = weights, initial
    batch_first = node.integer("layout", 0) == 1
    if batch_first:
        x = t.transpose(x, (1, 0, 2))
        hidden, cell = (None if s is None else t.transpose(s, (1, 0, 2)) for s in (hidden, cell))
    directions = _DIRECTIONS.get(node.text("direction", "forward"))
    gates, size = _GATES[kind], r.shape[-1]
    if directions is None:
        raise node.error(f"direction {node.text('direction')!r} is not one of {', '.join(_DIRECTIONS)}")
    fits = len(x.shape) == 3 and w.shape == (len(directions), gates * size, x.shape[2])
    if not fits or r.shape != (len(directions), gates * size, size):
        t.fail(f"weights {w.shape} and {r.shape} do not fit an input {x.shape} in {len(directions)} directions")
    if not math.prod(x.shape):
        t.fail(f"an input of shape {x.shape} has no elements")
    if isinstance(lengths, np.ndarray) and (lengths == x.shape[0]).all():
        lengths = None
    outputs: list[list[Tensor]] = []
    for d, backward in enumerate(directions):
        made = _cell(t, node, d, weights, kind)
        if quantized:
            made = replace(made, weights=quantized[0][d], recurrent=quantized[1][d])
        states = [_initial(t, s, d, x, size) for s in ((hidden, cell) if kind == "LSTM" else (hidden,))]
        outputs.append(_direction(t, made, x, states, lengths, backward=backward))
    results = [
        t.concatenate([t.expand(o[k], 1 if k == 0 else 0) for o in outputs], 1 if k == 0 else 0)
        for k in range(len(outputs[0]))
    ]
    if batch_first:
        results = [t.transpose(v, (2, 0, 1, 3) if k == 0 else (1, 0, 2)) for k, v in enumerate(results)]
    return tuple(results)


def _initial(t: Tensors, state: Tensor | None, direction: int, x: Tensor, size: int) -> Tensor:
    shape = (x.shape[1], size)
    if state is None:
        return np.broadcast_to(np.zeros((), x.dtype), shape)
    return t.reshape(t.part(state, 0, direction, direction + 1), shape)


def _cell(t: Tensors, node: OnnxNode, d: int, weights: Sequence[Tensor | None], kind: str) -> _Cell:
    """The weights of a direction."""
    w, r, b, p = (None if v is None else t.reshape(t.part(v, 0, d, d + 1), v.shape[1:]) for v in weights)
    assert w is not None
    assert r is not None
    half = w.shape[0]
    if b is not None and b.shape != (2 * half,):
        t.fail(f"the bias {b.shape} must be ({2 * half})")
    return _Cell(
        node,
        kind,
        half // _GATES[kind],
        t.transpose(w, (1, 0)),
        t.transpose(r, (1, 0)),
        None if b is None else t.part(b, 0, 0, half),
        None if b is None else t.part(b, 0, half, 2 * half),
        p,
        _activations(t, node, d, kind),
    )


def _activations(t: Tensors, node: OnnxNode, direction: int, kind: str) -> list[Activation]:
    """The functions of a direction, clipped."""
    names, default = node.get("activations"), _DEFAULTS[kind]
    count = len(default)
    alphas, betas = list(node.numbers("activation_alpha") or []), list(node.numbers("activation_beta") or [])
    # The numbers are those of the functions of both directions, in order.
    every = [_activation(t, node, str(name), alphas, betas) for name in names or default * (direction + 1)]
    functions = every[direction * count : (direction + 1) * count]
    if len(functions) != count:
        raise node.error(f"needs {count} activations for each direction")
    clip = node.number("clip", 0.0)
    if not clip:
        return functions
    # The cell's function, an LSTM's third one, is of what the others have made: it is not clipped.
    return [f if k == 2 else lambda x, f=f: f(t.minimum(t.maximum(x, -clip), clip)) for k, f in enumerate(functions)]


def _activation(t: Tensors, node: OnnxNode, name: str, alphas: list[float], betas: list[float]) -> Activation:
    """A function by its name; some take the next numbers."""
    folded = name.lower()
    if folded in ("sigmoid", "tanh", "relu"):
        return lambda x: t.unary(folded, x)
    if folded in ("softplus", "softsign"):
        function = softplus if folded == "softplus" else softsign
        return lambda x: function(t, node, x)
    if folded not in _NUMBERS:
        supported = "Sigmoid, Tanh, Relu, Softplus, Softsign, HardSigmoid, LeakyRelu, ThresholdedRelu, Elu, Affine"
        raise node.error(f"activation {name!r} is not supported: {supported} and ScaledTanh are")
    first, second = _NUMBERS[folded]
    alpha = alphas.pop(0) if alphas else first
    beta = 0.0 if second is None else betas.pop(0) if betas else second
    if folded == "hardsigmoid":
        return lambda x: t.minimum(t.maximum(t.add(t.multiply(x, alpha), beta), 0), 1)
    if folded == "leakyrelu":
        return lambda x: t.where(t.compare("lt", x, 0), t.multiply(x, alpha), x)
    if folded == "thresholdedrelu":
        return lambda x: t.where(t.compare("gt", x, alpha), x, 0)
    if folded == "elu":
        return lambda x: exponential(t, x, alpha, 1.0)
    if folded == "affine":
        return lambda x: t.add(t.multiply(x, alpha), beta)
    return lambda x: t.multiply(t.unary("tanh", t.multiply(x, beta)), alpha)


def _direction(
    t: Tensors, cell: _Cell, x: Tensor, states: list[Tensor], lengths: Tensor | None, *, backward: bool
) -> list[Tensor]:
    """All states, and the last of each."""
    steps, batch, _ = x.shape
    projected = _multiply_weights(t, t.reshape(x, (steps * batch, x.shape[2])), cell.weights)
    joint = cell.bias if cell.kind == "GRU" else _sum(t, cell.bias, cell.recurrent_bias)
    projected = t.reshape(
        projected if joint is None else t.add(projected, joint), (steps, batch, _GATES[cell.kind] * cell.size)
    )

    def step(_: Tensor, state: Sequence[Tensor], row: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        after = _STEPS[cell.kind](t, cell, row[0], list(state))
        if lengths is None:
            return after, [after[0]]
        inside = t.expand(t.compare("lt", t.convert(row[1], lengths.dtype), lengths), 1)
        following = [t.where(inside, new, old) for new, old in zip(after, state, strict=True)]
        return following, [t.where(inside, after[0], t.multiply(after[0], 0))]

    numbers: Tensor = np.arange(steps)
    sequences = [projected, numbers] if lengths is not None else [projected]
    shape = (batch, cell.size)
    last, rows = fold(t, step, states, sequences, steps, backward=[backward] * len(sequences), rows=[(shape, x.dtype)])
    if not backward:
        return [rows[0], *last]
    ends = [steps - 1, 0, 0], [-1, *shape], [-1, 1, 1]
    return [t.slice(rows[0], *ends), *last]


def _sum(t: Tensors, x: Tensor | None, y: Tensor | None) -> Tensor | None:
    return None if x is None or y is None else t.add(x, y)


def _multiply_weights(t: Tensors, x: Tensor, w: Tensor | _QuantizedWeights) -> Tensor:
    """The product with weights, quantized or not."""
    return quantized_product(t, x, w.weights, w.scale, w.zero) if isinstance(w, _QuantizedWeights) else product(t, x, w)


def _lstm(t: Tensors, cell: _Cell, x: Tensor, state: list[Tensor]) -> list[Tensor]:
    """`i, o, f = f(...)`, `c = f c + i g(...)`, `h = o h(c)`."""
    hidden, memory = state
    size = hidden.shape[-1]
    gates = t.add(x, _multiply_weights(t, hidden, cell.recurrent))
    i, o, f, c = (t.part(gates, 1, k * size, (k + 1) * size) for k in range(4))
    first, second, third = cell.activations
    if cell.peepholes is not None:
        p = [t.part(cell.peepholes, 0, k * size, (k + 1) * size) for k in range(3)]
        i, f = t.add(i, t.multiply(p[0], memory)), t.add(f, t.multiply(p[2], memory))
    entry = first(i)
    forget = first(f) if not cell.node.integer("input_forget", 0) else t.subtract(1, entry)
    memory = t.add(t.multiply(forget, memory), t.multiply(entry, second(c)))
    if cell.peepholes is not None:
        o = t.add(o, t.multiply(t.part(cell.peepholes, 0, size, 2 * size), memory))
    return [t.multiply(first(o), third(memory)), memory]


def _gru(t: Tensors, cell: _Cell, x: Tensor, state: list[Tensor]) -> list[Tensor]:
    """`z, r = f(...)`, `n = g(... + r * ...)`, `h = (1 - z) n + z h`."""
    hidden = state[0]
    size = hidden.shape[-1]
    first, second = cell.activations
    before = cell.node.integer("linear_before_reset", 0)
    recurrent_bias = cell.recurrent_bias

    def piece(v: Tensor, start: int, stop: int) -> Tensor:
        return t.part(v, len(v.shape) - 1, start * size, stop * size)

    recurrent = cell.recurrent
    assert not isinstance(recurrent, _QuantizedWeights)
    gates = t.add(piece(x, 0, 2), product(t, hidden, piece(recurrent, 0, 2)))
    if recurrent_bias is not None:
        gates = t.add(gates, piece(recurrent_bias, 0, 2))
    z, r = first(piece(gates, 0, 1)), first(piece(gates, 1, 2))
    inner = product(t, hidden if before else t.multiply(r, hidden), piece(recurrent, 2, 3))
    if recurrent_bias is not None:
        inner = t.add(inner, piece(recurrent_bias, 2, 3))
    new = second(t.add(piece(x, 2, 3), t.multiply(r, inner) if before else inner))
    return [t.add(t.multiply(t.subtract(1, z), new), t.multiply(z, hidden))]


def _rnn(t: Tensors, cell: _Cell, x: Tensor, state: list[Tensor]) -> list[Tensor]:
    """`h = f(...)`."""
    return [cell.activations[0](t.add(x, _multiply_weights(t, state[0], cell.recurrent)))]


_STEPS: Final = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}
