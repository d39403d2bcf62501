"""Operations on tensors that are known while a model is translated, and on values of the graph.

A model computes with shapes: it takes the shape of a tensor apart, multiplies extents, and reshapes by the result. All
of that is known here, since shapes are. So an operand is a numpy array if it is known, and a value of the graph if not;
an operation on arrays alone is done by numpy, any other one becomes an operation of the graph. A tensor without
elements is always an array: graphs have no such values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final, NoReturn, TypeAlias, cast

import numpy as np

from tlx.diagnostics import TlxError
from tlx.graph import Graph, Value
from tlx.intrinsics.numpy_types import bfloat_dtype, is_float, small_float_of

Array = np.ndarray[Any, np.dtype[Any]]
Tensor: TypeAlias = "Array | Value"
Operand: TypeAlias = "Tensor | float"

BFLOAT16: Final = "bfloat16"
LARGEST: Final = 1 << 31
"""Elements of a tensor, at most."""
MOST_DIMENSIONS: Final = 32
_ALWAYS_FOLDED: Final = 1 << 16  # elements of a result that numpy computes even if the operands have fewer
_SMALL: Final = 64  # elements of a constant that becomes a global instead of a weight
_SHARED_BYTES: Final = 1 << 16  # size of constants that are compared with others


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


_BINARY: Final[dict[str, Callable[..., Any]]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": np.power,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_RELATIONS: Final[dict[str, Callable[..., Any]]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNARY: Final[dict[str, Callable[..., Any]]] = {
    **{name: getattr(np, name) for name in "exp exp2 log log2 log10 sin cos tanh sqrt floor ceil sign invert".split()},
    "round": np.rint,
    "truncate": np.trunc,
    "negative": np.negative,
    "abs": np.abs,
    "is_finite": np.isfinite,
    "relu": partial(np.maximum, 0),
    "rsqrt": _rsqrt,
    "sigmoid": _sigmoid,
}
_REDUCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "sum": np.sum,
    "product": np.prod,
    "max": np.max,
    "min": np.min,
    "all": np.all,
    "any": np.any,
}


@dataclass(frozen=True, slots=True)
class TensorSequence:
    """A sequence of tensors; operators other than those of sequences do not take it."""

    items: tuple[Tensor, ...]


class Tensors:
    """The operations; names and meaning are those of `tlx.graph`.

    Attributes:
        graph: The graph that is built.
        precision: Element type in which products and convolutions of float32 read their operands.
        in_region: Whether the graph is at a loop or a branch, whose operations may run any number of times.
    """

    def __init__(self, graph: Graph, precision: str = "float32") -> None:
        self.graph = graph
        self.precision = precision
        self.in_region = False
        self._generators = 0
        self._names: dict[int, tuple[Array, str]] = {}
        self._packed: dict[int, Array] = {}
        self._values: dict[object, tuple[Array, Value]] = {}
        self._rounded: dict[int, tuple[Tensor, Tensor]] = {}
        self._joined: dict[int, tuple[Tensor, Sequence[Tensor], int]] = {}

    # Operands --------------------------------------------------------------------------------------------------

    def name(self, array: Array, name: str, *, is_packed: bool = False) -> Array:
        """The array, which will have this name if it becomes a weight."""
        self._names[id(array)] = (array, name)
        if is_packed:
            self._packed[id(array)] = array
        return array

    def is_packed(self, x: Tensor) -> bool:
        """Whether a constant has fewer bits in the file than here."""
        return id(x) in self._packed

    def value(self, x: Operand | TensorSequence, dtype: np.dtype[Any] | None = None) -> Value:
        """A tensor as a value of the graph: a known one becomes a constant or a weight, once."""
        if isinstance(x, Value):
            return x
        if isinstance(x, TensorSequence):
            return self.fail("a sequence cannot be carried by a loop, or chosen by a condition, that the inputs decide")
        array = np.asarray(x, dtype) if not isinstance(x, np.ndarray) else x
        if not (array.size and any(array.strides)):
            return self.graph.full(array.shape, array.flat[0] if array.size else 0, array.dtype)
        content = array.nbytes <= _SHARED_BYTES
        key = (array.dtype.str, array.shape, array.tobytes()) if content else id(array)
        if key not in self._values:
            name = self._names[id(array)][1] if id(array) in self._names else "constant"
            small = array.size <= _SMALL
            made = self.graph.constant(array) if small else self.graph.weight(name, array)
            self._values[key] = (array, made)
        return self._values[key][1]

    def required_constant(self, x: Tensor, what: str) -> Array:
        """A tensor that must be known when the model is translated."""
        if isinstance(x, Value):
            return self.fail(
                f"{what} depends on the inputs: it must be a constant, or follow from shapes; pass constants={{...}} "
                "for inputs that decide it"
            )
        return x

    def integers(self, x: Tensor | None, what: str) -> list[int] | None:
        """The integers of a list that must be known; None if it is left out."""
        if x is None:
            return None
        array = self.required_constant(x, what)
        if array.dtype.kind not in "iu" or array.ndim > 1:
            self.fail(f"{what} must be a list of integers, not {array.dtype.name} of shape {array.shape}")
        return [int(n) for n in array.reshape(-1)]

    def scalar(self, x: Tensor, what: str) -> Any:
        """The only element of a tensor that must be known."""
        array = self.required_constant(x, what)
        if array.size != 1:
            self.fail(f"{what} must be a scalar, not of shape {array.shape}")
        return array.reshape(-1)[0].item()

    def fail(self, message: str) -> NoReturn:
        """Raise an error, which becomes one at the node that is translated."""
        raise TlxError(message)

    def rounded(self, x: Tensor) -> Tensor:
        """An operand of a product or a convolution in the requested precision."""
        if x.dtype != np.float32 or self.precision != BFLOAT16:
            return x
        if id(x) not in self._rounded:
            self._rounded[id(x)] = (x, self._as_bfloat(x))
        result = self._rounded[id(x)][1]
        if isinstance(result, np.ndarray) and id(x) in self._names:
            self.name(result, self._names[id(x)][1])
        return result

    def _as_bfloat(self, x: Tensor) -> Tensor:
        """A float32 tensor in bfloat16; of a concatenation, the parts, so that what computes them stores bfloat16."""
        if id(x) in self._joined:
            _, parts, axis = self._joined[id(x)]
            return self.concatenate([self.rounded(part) for part in parts], axis)
        return self.convert(x, bfloat_dtype("float32"))

    @contextmanager
    def region(self) -> Generator[None]:
        """A part of the graph that may not run, so that its values are not available after it."""
        saved, was_in_region, self.in_region = self._rounded.copy(), self.in_region, True
        yield
        self._rounded, self.in_region = saved, was_in_region

    def random_generator(self, seed: float) -> np.random.Generator:
        """A generator of random numbers for a node: different for each node, the same in every translation."""
        self._generators += 1
        return np.random.default_rng(np.array([seed, self._generators], np.float32).view(np.uint32))

    def axis(self, axis: int, rank: int) -> int:
        """A dimension from 0 on; negative ones count from the end."""
        if not -rank <= axis < rank:
            self.fail(f"axis {axis} is not a dimension of a tensor of rank {rank}")
        return axis % rank

    def axes(self, axes: Sequence[int], rank: int) -> list[int]:
        """Distinct dimensions."""
        found = [self.axis(axis, rank) for axis in axes]
        if len(set(found)) < len(found):
            self.fail(f"axes {list(axes)} name a dimension twice")
        return found

    # Elementwise -----------------------------------------------------------------------------------------------

    def binary(self, name: str, x: Operand, y: Operand) -> Tensor:
        """`Graph.binary`."""
        a, b = self._pair(x, y)
        if isinstance(a, Value) or isinstance(b, Value) or not self._folds(a, b):
            return self._elementwise(partial(self.graph.binary, name), (a, b))
        with np.errstate(all="ignore"):
            if name == "divide":
                return np.asarray(_divide(a, b), a.dtype)
            if name == "remainder":
                return np.asarray(np.fmod(a, b), a.dtype)
            if name in ("shift_left", "shift_right"):
                shift = np.left_shift if name == "shift_left" else np.right_shift
                return np.asarray(shift(a, b), a.dtype)
            return np.asarray(_BINARY[name](a, b), a.dtype)

    def add(self, x: Operand, y: Operand) -> Tensor:
        """`x + y`."""
        return self.binary("add", x, y)

    def subtract(self, x: Operand, y: Operand) -> Tensor:
        """`x - y`."""
        return self.binary("subtract", x, y)

    def multiply(self, x: Operand, y: Operand) -> Tensor:
        """`x * y`."""
        return self.binary("multiply", x, y)

    def divide(self, x: Operand, y: Operand) -> Tensor:
        """`x / y`; integers truncate."""
        return self.binary("divide", x, y)

    def maximum(self, x: Operand, y: Operand) -> Tensor:
        """The greater element of each pair."""
        return self.binary("maximum", x, y)

    def minimum(self, x: Operand, y: Operand) -> Tensor:
        """The lesser element of each pair."""
        return self.binary("minimum", x, y)

    def compare(self, relation: str, x: Operand, y: Operand) -> Tensor:
        """`Graph.compare`."""
        a, b = self._pair(x, y)
        if isinstance(a, Value) or isinstance(b, Value) or not self._folds(a, b):
            return self._elementwise(partial(self.graph.compare, relation), (a, b), np.dtype(np.bool_))
        return np.asarray(_RELATIONS[relation](a, b))

    def where(self, condition: Tensor, x: Operand, y: Operand) -> Tensor:
        """`x` where a tensor of booleans holds, `y` elsewhere."""
        a, b = self._pair(x, y)
        if isinstance(condition, np.ndarray) and condition.size == 1 and condition.ndim == 0:
            chosen, other = (a, b) if condition else (b, a)
            return self.broadcast(chosen, np.broadcast_shapes(chosen.shape, other.shape))
        if all(isinstance(v, np.ndarray) for v in (condition, a, b)) and self._folds(condition, a, b):
            return np.where(cast("Array", condition), cast("Array", a), cast("Array", b))
        return self._elementwise(self.graph.where, (condition, a, b), a.dtype)

    def unary(self, name: str, x: Tensor) -> Tensor:
        """`Graph.unary`."""
        if isinstance(x, Value):
            return self.graph.unary(name, x)
        with np.errstate(all="ignore"):
            result = np.asarray(_UNARY[name](x))
        return result if name == "is_finite" else result.astype(x.dtype)

    def widened(self, x: Tensor) -> Tensor:
        """Floats of 8 and 16 bits as float32, so that a result is rounded once."""
        return self.convert(x, np.float32) if is_float(x.dtype) and x.dtype.itemsize < 4 else x

    def convert(self, x: Tensor, dtype: Any, *, saturates: bool = False) -> Tensor:
        """The elements in another type; see `Graph.convert`.

        Args:
            x: The elements.
            dtype: The type.
            saturates: Whether numbers beyond the largest 8-bit float become that one.
        """
        to = np.dtype(dtype)
        if x.dtype == to:
            return x
        small = small_float_of(to)
        if small is not None and saturates:
            wide = x if is_float(x.dtype) and small_float_of(x.dtype) is None else self.convert(x, np.float32)
            largest = small.largest_number
            x = self.minimum(self.maximum(wide, -largest), largest)
        if isinstance(x, Value):
            return self.graph.convert(x, to)
        with np.errstate(all="ignore"):
            if is_float(x.dtype) and to.kind in "iu":
                limits = np.iinfo(to)
                wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
                inside = (wide >= float(limits.min)) & (wide < float(limits.max) + 1)
                ends = np.where(wide < 0, limits.min, limits.max).astype(to)
                return np.where(inside, np.where(inside, wide, 0).astype(to), ends)
            return x.astype(to)

    def _pair(self, x: Operand, y: Operand) -> tuple[Tensor, Tensor]:
        """Two operands; numbers take the type of the other one."""
        if isinstance(x, (Value, np.ndarray)):
            return x, y if isinstance(y, (Value, np.ndarray)) else np.asarray(y, x.dtype)
        if isinstance(y, (Value, np.ndarray)):
            return np.asarray(x, y.dtype), y
        return np.asarray(x), np.asarray(y)

    def _elementwise(
        self, emit: Callable[..., Value], operands: Sequence[Tensor], dtype: np.dtype[Any] | None = None
    ) -> Tensor:
        """An operation of the graph, or an array without elements."""
        shape = self.common_shape(*operands)
        if not math.prod(shape):
            return np.empty(shape, dtype or operands[0].dtype)
        return emit(*(self.value(x) for x in operands))

    def common_shape(self, *operands: Tensor) -> tuple[int, ...]:
        """The shape that operands broadcast to."""
        shapes = [x.shape for x in operands]
        try:
            shape = np.broadcast_shapes(*shapes)
        except ValueError:
            texts = " and ".join(map(str, dict.fromkeys(shapes)))
            return self.fail(
                f"shapes {texts} do not broadcast: from the last dimension backwards, extents must be equal or 1"
            )
        return self.checked(shape)

    def checked(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that a tensor can have."""
        self.check_rank(len(shape))
        if any(extent < 0 for extent in shape) or math.prod(shape) > LARGEST:
            self.fail(f"a tensor of shape {tuple(shape)} is too large: at most 2^31 elements")
        return tuple(shape)

    def check_rank(self, rank: int) -> None:
        """Fail if a tensor has too many dimensions."""
        if rank > MOST_DIMENSIONS:
            self.fail(f"a tensor of {rank} dimensions has too many: at most {MOST_DIMENSIONS}")

    def _folds(self, *operands: Tensor) -> bool:
        """Whether numpy computes a result: it is small, or not larger than its operands."""
        size = math.prod(self.common_shape(*operands))
        return size <= max(_ALWAYS_FOLDED, *(_stored(x) for x in operands if isinstance(x, np.ndarray)))

    # Shapes ----------------------------------------------------------------------------------------------------

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """The same elements in row-major order."""
        if math.prod(self.checked(shape)) != math.prod(x.shape):
            self.fail(
                f"shape {tuple(shape)} has {math.prod(shape)} elements, and {tuple(x.shape)} has {math.prod(x.shape)}"
            )
        if tuple(shape) == x.shape:
            return x
        return x.reshape(shape) if isinstance(x, np.ndarray) else self.graph.reshape(x, shape)

    def transpose(self, x: Tensor, order: Sequence[int]) -> Tensor:
        """Dimension `k` of the result is `order[k]`."""
        if sorted(order) != list(range(len(x.shape))):
            self.fail(f"permutation {list(order)} must name each of {len(x.shape)} dimensions once")
        if list(order) == list(range(len(x.shape))):
            return x
        return x.transpose(order) if isinstance(x, np.ndarray) else self.graph.transpose(x, order)

    def broadcast(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Repeat a tensor along dimensions of extent 1 and further ones."""
        extents = self.checked(shape)
        if extents == x.shape:
            return x
        if isinstance(x, np.ndarray):
            return np.broadcast_to(x, extents)
        return self.graph.broadcast(x, extents) if math.prod(extents) else np.empty(extents, x.dtype)

    def slice(self, x: Tensor, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int]) -> Tensor:
        """Python's slices in each dimension; steps may be negative, with -1 as the stop before the first element."""
        if isinstance(x, np.ndarray):
            every = zip(starts, stops, steps, strict=True)
            return x[tuple(slice(a, None if b < 0 else b, s) for a, b, s in every)]
        shape = tuple(len(range(a, b, s)) for a, b, s in zip(starts, stops, steps, strict=True))
        if not math.prod(shape):
            return np.empty(shape, x.dtype)
        backward = [d for d, step in enumerate(steps) if step < 0]
        bounds = [
            (a, b, s) if s > 0 else (a + (n - 1) * s, a + 1, -s)
            for a, b, s, n in zip(starts, stops, steps, shape, strict=True)
        ]
        if all(bound == (0, extent, 1) for bound, extent in zip(bounds, x.shape, strict=True)):
            result = x
        else:
            result = self.graph.slice(x, *zip(*bounds, strict=True))
        return self.graph.reverse(result, backward) if backward else result

    def part(self, x: Tensor, axis: int, start: int, stop: int) -> Tensor:
        """Positions `start` to `stop` (exclusive) of one dimension."""
        starts, stops = [0] * len(x.shape), list(x.shape)
        starts[axis], stops[axis] = start, stop
        return self.slice(x, starts, stops, [1] * len(x.shape))

    def pad(
        self,
        x: Tensor,
        low: Sequence[int],
        high: Sequence[int],
        number: float = 0,
        interior: Sequence[int] | None = None,
    ) -> Tensor:
        """Elements of one value before, after and between those of each dimension; negative numbers crop."""
        shape = tuple(
            a + e + b + (max(e - 1, 0) * i)
            for a, e, b, i in zip(low, x.shape, high, interior or [0] * len(low), strict=True)
        )
        self.checked(shape)
        if not any((*low, *high, *(interior or ()))):
            return x
        if not math.prod(shape):
            return np.empty(shape, x.dtype)
        if not math.prod(x.shape):
            return np.broadcast_to(np.asarray(number, x.dtype), shape)
        if isinstance(x, np.ndarray) and not interior and min(*low, *high) >= 0 and math.prod(shape) <= _ALWAYS_FOLDED:
            return np.pad(x, list(zip(low, high, strict=True)), constant_values=number)
        return self.graph.pad(self.value(x), low, high, interior, number)

    def concatenate(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        """Tensors one after the other along a dimension."""
        first = parts[0]
        for part in parts:
            if len(part.shape) != len(first.shape) or any(
                d != axis and a != b for d, (a, b) in enumerate(zip(part.shape, first.shape, strict=True))
            ):
                self.fail(f"shapes {first.shape} and {part.shape} differ in another dimension than {axis}")
        filled = [part for part in parts if math.prod(part.shape)] or [first]
        if len(filled) == 1:
            return filled[0]
        if all(isinstance(part, np.ndarray) for part in filled):
            return np.concatenate(cast("list[Array]", filled), axis)
        result = self.graph.concatenate([self.value(part) for part in filled], axis)
        self._joined[id(result)] = (result, filled, axis)
        return result

    def expand(self, x: Tensor, *axes: int) -> Tensor:
        """New dimensions of extent 1 at some places of the result."""
        rank = len(x.shape) + len(axes)
        places = self.axes(axes, rank)
        rest = iter(x.shape)
        return self.reshape(x, [1 if d in places else next(rest) for d in range(rank)])

    def reduce(self, name: str, x: Tensor, axes: Sequence[int], *, keep: bool = False) -> Tensor:
        """`Graph.reduce`."""
        if isinstance(x, Value):
            return self.graph.reduce(name, x, list(axes), keep=keep) if axes else x
        if not x.size and name in ("max", "min"):
            self.fail(f"the {name} of a tensor of shape {x.shape} is not defined")
        if not is_float(x.dtype) or x.size <= _ALWAYS_FOLDED:
            return np.asarray(_REDUCTIONS[name](x, axis=tuple(axes), keepdims=keep)).astype(x.dtype)
        return self.graph.reduce(name, self.value(x), list(axes), keep=keep)

    def take(self, x: Tensor, indices: Tensor, axis: int) -> Tensor:
        """Slices of a tensor along a dimension, by indices from the start."""
        if isinstance(indices, np.ndarray):
            return self._take_at_constants(x, indices, axis)
        shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
        return self.graph.take(self.value(x), indices, axis) if math.prod(shape) else np.empty(shape, x.dtype)

    def _take_at_constants(self, x: Tensor, indices: Array, axis: int) -> Tensor:
        """Slices at known positions: numpy's, one slice, or a slice with steps where the positions are regular."""
        if indices.size and not (indices.min() >= 0 and indices.max() < x.shape[axis]):
            self.fail(f"index {int(indices.max())} is outside of dimension {axis}, extent {x.shape[axis]}")
        shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
        if not math.prod(self.checked(shape)):
            return np.empty(shape, x.dtype)
        if isinstance(x, np.ndarray) and (math.prod(shape) <= max(_ALWAYS_FOLDED, x.size)):
            return np.asarray(np.take(x, indices, axis))
        places = [int(n) for n in indices.reshape(-1)]
        steps = {b - a for a, b in pairwise(places)} or {1}
        if len(steps) == 1 and (step := steps.pop()) != 0:
            starts, stops, strides = [0] * len(x.shape), list(x.shape), [1] * len(x.shape)
            starts[axis], stops[axis], strides[axis] = places[0], places[-1] + (1 if step > 0 else -1), step
            return self.reshape(self.slice(self.value(x), starts, stops, strides), shape)
        return self.graph.take(self.value(x), self.value(indices), axis)


def _stored(x: Array) -> int:
    """Elements that an array has in memory; repeated ones count once."""
    return math.prod(extent for extent, stride in zip(x.shape, x.strides, strict=True) if stride)


def _divide(a: Array, b: Array) -> Array:
    """Division of arrays; integers truncate."""
    if is_float(a.dtype):
        return a / b
    if not b.all():
        message = "division of integers by zero"
        raise TlxError(message)
    quotient = np.abs(a) // np.abs(b)
    return np.where((a < 0) != (b < 0), -quotient, quotient) if a.dtype.kind == "i" else quotient
