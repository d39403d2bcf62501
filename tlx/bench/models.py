"""Whole models as workloads: each is defined once, in operations that `tlx.graph`, numpy and the peers implement.

All parameters are buffers of the function, so that every contestant works on the same inputs and weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod, sqrt
from typing import Any, Final, Protocol

import numpy as np

from tlx.intrinsics.numpy_types import Array
from tlx.tuning.workload import BF16, F32, Element, ResultCheck, Workload, WorkloadBuffer

_INPUT: Final = "x"
_OUTPUT: Final = "y"
_EPSILON: Final = 1e-5
_MASKED: Final = -1e9
_TYPES: Final = {"f32": F32, "bf16": BF16}


class Operations(Protocol):
    """What models are written in; tensors also have `+`, `*`, `@` and slices. Narrow floats are summed in float."""

    def relu(self, x: Any) -> Any:
        """The larger of x and 0."""
        ...

    def gelu(self, x: Any) -> Any:
        """GELU by tanh."""
        ...

    def softmax(self, x: Any) -> Any:
        """Softmax of the last dimension."""
        ...

    def layer_norm(self, x: Any, scale: Any, shift: Any) -> Any:
        """Normalisation of the last dimension."""
        ...

    def transpose(self, x: Any, *order: int) -> Any:
        """Dimensions in another order."""
        ...

    def reshape(self, x: Any, *shape: int) -> Any:
        """Another shape of as many elements."""
        ...

    def causal(self, scores: Any) -> Any:
        """Square matrices with the elements above the diagonal replaced by a large negative number."""
        ...


Tensors = Mapping[str, Any]


@dataclass(frozen=True)
class ModelProblem:
    """A model, for peers.

    Attributes:
        build: The result, of the operations of a library and its tensors by name.
    """

    build: Callable[[Any, Tensors], Any]


@dataclass(frozen=True)
class _Model:
    """A model of one size: parameters with their shapes, and the result's shape."""

    row: str
    size: str
    shapes: dict[str, tuple[int, ...]]
    out: tuple[int, ...]
    operations: int
    roundings: int
    build: Callable[[Any, Tensors], Any]


def _mlp(size: str, batch: int, *widths: int) -> _Model:
    """Products with bias, and ReLU between them."""
    pairs = list(pairwise(widths))
    shapes: dict[str, tuple[int, ...]] = {_INPUT: (batch, widths[0])}
    for i, pair in enumerate(pairs):
        shapes |= {f"w{i}": pair, f"b{i}": pair[1:]}

    def build(o: Operations, t: Tensors) -> Any:
        x = t[_INPUT]
        for i in range(len(pairs)):
            x = x @ t[f"w{i}"] + t[f"b{i}"]
            x = o.relu(x) if i + 1 < len(pairs) else x
        return x

    operations = 2 * batch * sum(map(prod, pairs))
    return _Model("mlp", size, shapes, (batch, widths[-1]), operations, 3 * len(pairs), build)


def _transformer(row: str, size: str, count: int, s: int, d: int, heads: int, *, is_causal: bool = False) -> _Model:
    """Blocks with normalisation first: attention, and a layer of four times the width with GELU."""
    shapes: dict[str, tuple[int, ...]] = {_INPUT: (s, d)}
    for i in range(count):
        own = {"g1": (d,), "h1": (d,), "qkv": (d, 3 * d), "c1": (3 * d,), "p": (d, d), "c2": (d,), "g2": (d,)}
        own |= {"h2": (d,), "up": (d, 4 * d), "c3": (4 * d,), "down": (4 * d, d), "c4": (d,)}
        shapes |= {f"{name}.{i}": shape for name, shape in own.items()}

    def block(o: Operations, x: Any, t: Callable[[str], Any]) -> Any:
        qkv = o.layer_norm(x, t("g1"), t("h1")) @ t("qkv") + t("c1")
        split = o.reshape(qkv, s, 3, heads, d // heads)
        q, k, v = (o.transpose(split[:, part], 1, 0, 2) for part in range(3))
        scores = (q @ o.transpose(k, 0, 2, 1)) * (d // heads) ** -0.5
        mixed = o.softmax(o.causal(scores) if is_causal else scores) @ v
        x = x + (o.reshape(o.transpose(mixed, 1, 0, 2), s, d) @ t("p") + t("c2"))
        return x + (o.gelu(o.layer_norm(x, t("g2"), t("h2")) @ t("up") + t("c3")) @ t("down") + t("c4"))

    def build(o: Operations, t: Tensors) -> Any:
        x = t[_INPUT]
        for i in range(count):
            x = block(o, x, lambda name, i=i: t[f"{name}.{i}"])
        return x

    operations = count * (24 * s * d * d + 4 * s * s * d)
    return _Model(row, size, shapes, (s, d), operations, 20 * count, build)


def _models() -> Iterator[_Model]:
    yield _mlp("small", 4, 24, 16, 10)
    yield _mlp("64x784-512-256-10", 64, 784, 512, 256, 10)
    yield _mlp("256x1024-4096-4096-1024", 256, 1024, 4096, 4096, 1024)
    yield _transformer("block", "small", 1, 8, 32, 2)
    yield _transformer("block", "S=128", 1, 128, 768, 12)
    yield _transformer("block", "S=512", 1, 512, 768, 12)
    yield _transformer("blocks", "small", 2, 8, 32, 2)
    for s in (1, 16, 128, 512):
        yield _transformer("blocks", f"S={s}", 12, s, 768, 12)
    yield _transformer("gpt", "small", 2, 8, 32, 2, is_causal=True)
    yield _transformer("gpt", "S=64", 2, 64, 768, 12, is_causal=True)


def model_workloads() -> Iterator[Workload]:
    """All models: every size in float and bfloat."""
    for model in _models():
        for types, element in _TYPES.items():
            yield _workload(model, types, element)


def _workload(model: _Model, types: str, element: Element) -> Workload:
    buffers = (
        *(WorkloadBuffer(name, element, shape, scale=_scale(shape, name)) for name, shape in model.shapes.items()),
        WorkloadBuffer(_OUTPUT, element, model.out, output=True),
    )

    def expected(arrays: dict[str, Array]) -> ResultCheck:
        tensors = {b.name: b.element.widen(arrays[b.name]) for b in buffers if not b.output}
        longest = max(prod(shape[:-1]) for shape in model.shapes.values())
        unit = 2.0**-element.precision + 2.0**-24 * sqrt(longest)
        return RowCheck(model.build(NumpyOperations(), tensors), 4 * sqrt(model.roundings) * unit)

    return Workload(
        row=model.row,
        types=types,
        size=model.size,
        buffers=buffers,
        text=lambda: _text(model, element),
        expected=expected,
        operations=model.operations,
        traffic=sum(buffer.bytes for buffer in buffers),
        peak=(element, element, F32),
        problem=ModelProblem(model.build),
        function=model.row,
    )


def _scale(shape: tuple[int, ...], name: str) -> float:
    """The largest element: sums of a matrix's products then have the size of their terms."""
    return 1.0 if name == _INPUT or len(shape) < 2 else sqrt(3 / shape[0])


def _text(model: _Model, element: Element) -> str:
    from tlx.graph import Graph

    graph = Graph(model.row)
    dtype = "float32" if element is F32 else "bfloat16"
    tensors = {name: graph.parameter(name, shape, dtype) for name, shape in model.shapes.items()}
    graph.output(model.build(GraphOperations(graph), tensors), _OUTPUT)
    return graph.text()


@dataclass(frozen=True)
class RowCheck:
    """Compares the rows of an output: the norm of a row's error is relative to that of the largest row.

    Attributes:
        values: The expected elements, in float64.
        bound: Largest relative error.
    """

    values: Array
    bound: float

    def mistakes(self, element: Element, got: Array) -> str:
        """Describe the worst row; empty if all are right."""
        errors = np.linalg.norm(element.widen(got) - self.values, axis=-1)
        errors = errors / np.linalg.norm(self.values, axis=-1).max()
        wrong = np.flatnonzero(~(errors <= self.bound))
        if not wrong.size:
            return ""
        worst = int(wrong[0])
        return f"row {worst} is off by {errors[worst]:.2g} of its norm, above {self.bound:.2g}; {wrong.size} rows are"


class NumpyOperations:
    """The operations in numpy, in float64: what is expected."""

    def relu(self, x: Array) -> Array:
        """The larger of x and 0."""
        return np.maximum(x, 0)

    def gelu(self, x: Array) -> Array:
        """GELU by tanh."""
        return x / 2 * (1 + np.tanh(sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    def softmax(self, x: Array) -> Array:
        """Softmax of the last dimension."""
        powers = np.exp(x - x.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)

    def layer_norm(self, x: Array, scale: Array, shift: Array) -> Array:
        """Normalisation of the last dimension."""
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + _EPSILON) * scale + shift

    def transpose(self, x: Array, *order: int) -> Array:
        """Dimensions in another order."""
        return x.transpose(order)

    def reshape(self, x: Array, *shape: int) -> Array:
        """Another shape of as many elements."""
        return x.reshape(shape)

    def causal(self, scores: Array) -> Array:
        """Elements above the diagonal replaced."""
        return np.where(np.tri(scores.shape[-1], dtype=bool), scores, _MASKED)


class GraphOperations:
    """The operations of `tlx.graph`."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self.relu, self.gelu, self.softmax = graph.relu, graph.gelu, graph.softmax

    def layer_norm(self, x: Any, scale: Any, shift: Any) -> Any:
        """Normalisation of the last dimension."""
        return self._graph.layer_norm(x, scale, shift, epsilon=_EPSILON)

    def transpose(self, x: Any, *order: int) -> Any:
        """Dimensions in another order."""
        return x.transpose(*order)

    def reshape(self, x: Any, *shape: int) -> Any:
        """Another shape of as many elements."""
        return self._graph.reshape(x, shape)

    def causal(self, scores: Any) -> Any:
        """Elements above the diagonal replaced."""
        g, s = self._graph, scores.shape[-1]
        return g.where(g.iota((s, s), 1) <= g.iota((s, s), 0), scores, _MASKED)


class JaxOperations:
    """The operations of `jax.numpy`, for tensors of the given module."""

    def __init__(self, jax: Any) -> None:
        self._jax, self._np = jax, jax.numpy
        self.relu, self.gelu = jax.nn.relu, jax.nn.gelu

    def softmax(self, x: Any) -> Any:
        """Softmax of the last dimension."""
        return self._jax.nn.softmax(x.astype("float32"), axis=-1).astype(x.dtype)

    def layer_norm(self, x: Any, scale: Any, shift: Any) -> Any:
        """Normalisation of the last dimension."""
        wide = x.astype("float32")
        centred = wide - wide.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        return (centred * self._jax.lax.rsqrt(variance + _EPSILON) * scale + shift).astype(x.dtype)

    def transpose(self, x: Any, *order: int) -> Any:
        """Dimensions in another order."""
        return x.transpose(order)

    def reshape(self, x: Any, *shape: int) -> Any:
        """Another shape of as many elements."""
        return x.reshape(shape)

    def causal(self, scores: Any) -> Any:
        """Elements above the diagonal replaced."""
        mask = self._np.tri(scores.shape[-1], dtype=bool)
        return self._np.where(mask, scores, self._np.asarray(_MASKED, scores.dtype))


class TorchOperations:
    """The operations of PyTorch."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.relu = torch.relu

    def gelu(self, x: Any) -> Any:
        """GELU by tanh."""
        return self._torch.nn.functional.gelu(x, approximate="tanh")

    def softmax(self, x: Any) -> Any:
        """Softmax of the last dimension."""
        return self._torch.softmax(x, -1)

    def layer_norm(self, x: Any, scale: Any, shift: Any) -> Any:
        """Normalisation of the last dimension."""
        return self._torch.nn.functional.layer_norm(x, x.shape[-1:], scale, shift, _EPSILON)

    def transpose(self, x: Any, *order: int) -> Any:
        """Dimensions in another order."""
        return x.permute(*order)

    def reshape(self, x: Any, *shape: int) -> Any:
        """Another shape of as many elements."""
        return x.reshape(shape)

    def causal(self, scores: Any) -> Any:
        """Elements above the diagonal replaced."""
        above = self._torch.ones(scores.shape[-2:], dtype=self._torch.bool).triu(1)
        return scores.masked_fill(above, _MASKED)
