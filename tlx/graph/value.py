"""Values of a graph: shape, element type, and Python's operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, TypeAlias, cast

import numpy as np

from tlx.graph.view import View
from tlx.intrinsics.numpy_types import small_float_of
from tlx.ir.types import bits_of
from tlx.ir.values import ConstFloat, ConstInt, as_signed

if TYPE_CHECKING:
    from tlx.ir import values as ir
    from tlx.ir.instructions import Block, Instruction

DType: TypeAlias = np.dtype[Any]
Operand: TypeAlias = "Value | np.ndarray[Any, Any] | np.number[Any] | np.bool_ | float"
Index: TypeAlias = "int | slice | Any | None"


@dataclass(eq=False, slots=True)
class GraphMemory:
    """Memory that the graph writes; each write makes a new version of it.

    Attributes:
        region: The loop body in which it may be written; 0 is the function.
        writes: For each version but the last, what comes right before the write that ended it: an instruction, or
            the block that the write begins.
    """

    region: int
    writes: list[Instruction | Block] = field(default_factory=list["Instruction | Block"])


@dataclass(frozen=True, slots=True)
class Buffer:
    """Where the elements of a value are.

    Attributes:
        operand: A pointer, a flattened vector, or a scalar constant that is every element.
        count: Elements of the vector; 0 for a pointer, 1 for a scalar.
        memory: What the pointer points to, if the graph writes it.
        version: The version of the memory that holds the value.
    """

    operand: ir.Value
    count: int
    memory: GraphMemory | None = None
    version: int = 0

    @property
    def is_overwritten(self) -> bool:
        """Whether the memory has a later version."""
        return self.memory is not None and self.version < len(self.memory.writes)

    @property
    def in_memory(self) -> bool:
        """Whether the operand is a pointer."""
        return self.count == 0


class Operations(Protocol):
    """The methods of a graph that its values call."""

    def binary(self, name: str, x: Operand, y: Operand) -> Value:
        """`Graph.binary`."""
        ...

    def unary(self, name: str, x: Operand) -> Value:
        """`Graph.unary`."""
        ...

    def compare(self, relation: str, x: Operand, y: Operand) -> Value:
        """`Graph.compare`."""
        ...

    def matmul(self, x: Operand, y: Operand) -> Value:
        """`Graph.matmul`."""
        ...

    def modulo(self, x: Operand, y: Operand) -> Value:
        """`Graph.modulo`."""
        ...

    def transpose(self, x: Operand, dimensions: Sequence[int] | None = None) -> Value:
        """`Graph.transpose`."""
        ...

    def reshape(self, x: Operand, shape: Sequence[int]) -> Value:
        """`Graph.reshape`."""
        ...

    def index(self, x: Operand, key: tuple[Index, ...]) -> Value:
        """`Graph.index`."""
        ...

    def convert(self, x: Operand, dtype: str | type | DType) -> Value:
        """`Graph.convert`."""
        ...

    def refuse_numpy(self, name: str) -> NoReturn:
        """`Graph.refuse_numpy`."""
        ...

    def refuse_bool(self) -> NoReturn:
        """`Graph.refuse_bool`."""
        ...


_UFUNCS: Final = {
    "true_divide": "divide",
    "divide": "divide",
    "fmod": "remainder",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "left_shift": "shift_left",
    "right_shift": "shift_right",
    "absolute": "abs",
    "fabs": "abs",
    "rint": "round",
    "trunc": "truncate",
    "isfinite": "is_finite",
    **{n: n for n in "add subtract multiply maximum minimum power negative sign invert".split()},
    **{n: n for n in "exp exp2 log log2 log10 sin cos tanh sqrt floor ceil".split()},
}
"""Functions of numpy on each element, and what they are called in `Graph.unary` and `Graph.binary`."""
_COMPARISONS: Final = {
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
}


def _operator(name: str) -> Callable[[Value, Operand], Value]:
    def operate(self: Value, other: Operand) -> Value:
        return self.graph.binary(name, self, other)

    return operate


def _reflected(name: str) -> Callable[[Value, Operand], Value]:
    def operate(self: Value, other: Operand) -> Value:
        return self.graph.binary(name, other, self)

    return operate


def _relation(name: str) -> Callable[[Value, Operand], Value]:
    def operate(self: Value, other: Operand) -> Value:
        return self.graph.compare(name, self, other)

    return operate


def _numbers(numbers: tuple[int | Sequence[int], ...]) -> Sequence[int]:
    """Numbers that a method takes one by one, or as one sequence."""
    if len(numbers) == 1 and isinstance(numbers[0], Sequence):
        return numbers[0]
    return cast("tuple[int, ...]", numbers)


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor of a graph.

    Attributes:
        graph: The graph it belongs to.
        dtype: Element type, as numpy has it; bfloat is that of ml_dtypes.
        view: Which elements of the buffer it consists of.
        buffer: Where they are.
    """

    graph: Operations
    dtype: DType
    view: View
    buffer: Buffer

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Value:
        """Functions of numpy on each element, such as `numpy.exp`, and operators of arrays: `array + value`."""
        name = function.__name__
        if method != "__call__" or options:
            self.graph.refuse_numpy(name)
        match inputs:
            case (x, y) if name in _COMPARISONS:
                return self.graph.compare(_COMPARISONS[name], x, y)
            case (x, y) if name in _UFUNCS:
                return self.graph.binary(_UFUNCS[name], x, y)
            case (x, y) if name == "matmul":
                return self.graph.matmul(x, y)
            case (x, y) if name == "remainder":
                return self.graph.modulo(x, y)
            case (x,) if name in _UFUNCS:
                return self.graph.unary(_UFUNCS[name], x)
            case _:
                return self.graph.refuse_numpy(name)

    def __array_function__(self, function: Any, _types: Any, _arguments: Any, _named: Any) -> NoReturn:
        """Other functions of numpy, which need elements."""
        self.graph.refuse_numpy(function.__name__)

    def __array__(self, *_arguments: Any, **_named: Any) -> NoReturn:
        """The elements, which do not exist before the graph runs."""
        self.graph.refuse_numpy("asarray")

    if not TYPE_CHECKING:  # for a type checker, a value has the attributes below and no others

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error that names the graph's method for an attribute that only arrays have, such as `sum`."""
            near = f": use graph.{name}" if not name.startswith("_") and hasattr(type(self.graph), name) else ""
            raise AttributeError(f"values of a graph have no attribute '{name}'{near}", name=name, obj=self)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent of each dimension; () for a scalar."""
        return self.view.shape

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.view.shape)

    @property
    def T(self) -> Value:  # noqa: N802 (as in numpy)
        """The dimensions in reverse order."""
        return self.graph.transpose(self)

    def reshape(self, *shape: int | Sequence[int]) -> Value:
        """The same elements in row-major order; one extent may be -1. As in numpy, the shape may be one tuple."""
        return self.graph.reshape(self, _numbers(shape))

    def transpose(self, *dimensions: int | Sequence[int]) -> Value:
        """Dimension `k` of the result is `dimensions[k]`; they may be one tuple."""
        return self.graph.transpose(self, _numbers(dimensions) or None)

    def astype(self, dtype: str | type | DType) -> Value:
        """The elements converted to another type."""
        return self.graph.convert(self, dtype)

    def __getitem__(self, key: Index | tuple[Index, ...]) -> Value:
        return self.graph.index(self, cast("tuple[Index, ...]", key) if isinstance(key, tuple) else (key,))

    def __matmul__(self, other: Operand) -> Value:
        return self.graph.matmul(self, other)

    def __rmatmul__(self, other: Operand) -> Value:
        return self.graph.matmul(other, self)

    def __mod__(self, other: Operand) -> Value:
        return self.graph.modulo(self, other)

    def __rmod__(self, other: Operand) -> Value:
        return self.graph.modulo(other, self)

    def __iter__(self) -> Iterator[Value]:
        """The parts along the first dimension, as of an array; a scalar has none."""
        if not self.shape:
            raise TypeError("a scalar of a graph has no first dimension to iterate over")
        return map(self.__getitem__, range(self.shape[0]))

    def __bool__(self) -> NoReturn:  # noqa: PLE0304 (it raises)
        """Refuse to be a condition in Python, which would need the elements."""
        self.graph.refuse_bool()

    def __neg__(self) -> Value:
        return self.graph.unary("negative", self)

    def __abs__(self) -> Value:
        return self.graph.unary("abs", self)

    def __invert__(self) -> Value:
        return self.graph.unary("invert", self)

    __add__, __radd__ = _operator("add"), _reflected("add")
    __sub__, __rsub__ = _operator("subtract"), _reflected("subtract")
    __mul__, __rmul__ = _operator("multiply"), _reflected("multiply")
    __truediv__, __rtruediv__ = _operator("divide"), _reflected("divide")
    __pow__, __rpow__ = _operator("power"), _reflected("power")
    __and__, __rand__ = _operator("and"), _reflected("and")
    __or__, __ror__ = _operator("or"), _reflected("or")
    __xor__, __rxor__ = _operator("xor"), _reflected("xor")
    __lshift__, __rshift__ = _operator("shift_left"), _operator("shift_right")
    __lt__, __le__ = _relation("lt"), _relation("le")
    __gt__, __ge__ = _relation("gt"), _relation("ge")
    __eq__, __ne__ = _relation("eq"), _relation("ne")  # pyright: ignore[reportAssignmentType]
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Value({self.dtype.name}[{', '.join(map(str, self.shape))}])"


def splat_value(value: Value) -> float | None:
    """The number that all elements of a value are equal to; None if it is not known."""
    operand = value.buffer.operand
    if value.buffer.count != 1 or small_float_of(value.dtype) is not None:
        return None
    if isinstance(operand, ConstInt):
        # A bitcast may have changed the sign.
        return operand.unsigned if value.dtype.kind in "bu" else as_signed(operand.value, bits_of(operand.type))
    return operand.value if isinstance(operand, ConstFloat) else None
