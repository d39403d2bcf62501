"""The base of all operations of a graph: errors at the caller's line, constants, values as tokens and vectors."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from operator import index
from typing import Any, Final, NoReturn, cast

import numpy as np

from tlx.diagnostics import Source, UsageError, python_call
from tlx.graph.value import Buffer, DType, GraphMemory, Operand, Operations, Value
from tlx.graph.view import View, place
from tlx.intrinsics.numpy_types import is_float, named_dtype, small_float_of, type_of
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir import values as ir
from tlx.ir.builder import new_function
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module, UnparsedText
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I1, I8, PTR, FloatType, IntType, Type, VectorType, vector_of
from tlx.lower.memory.buffers import PrivateBuffers

BOOL: Final = np.dtype(np.bool_)
FLOAT32: Final = np.dtype(np.float32)
_LARGE_SPLAT: Final = 256
"""Elements of a repeated constant that are written by a loop instead of kept in the module."""
_PACKAGE: Final = "tlx.graph"
_ELEMENT_TYPES: Final = (
    "bool, int8 to int64, uint8 to uint64, float8_e4m3fn, float8_e5m2, float16, bfloat16, float32 or float64"
)
_TAKE_SMALL_FLOATS: Final = frozenset(
    "bitcast broadcast concatenate convert dot_general dynamic_slice dynamic_update_slice expand gather index matmul "
    "output pad reshape reverse scatter slice switch take transpose where while_loop".split()
)
"""Operations that take floats of 8 bits; others take them converted."""


class _GraphBuilder(TensorBuilder):
    """A builder that knows which block defines a result.

    Attributes:
        defining_blocks: The block of each instruction with a result, by the name of the result.
    """

    def __init__(self, module: Module, function: Function) -> None:
        super().__init__(module, function)
        self.defining_blocks: dict[str, Block] = {}

    def emit(
        self,
        opcode: str,
        type_: Type,
        operands: Sequence[ir.Value],
        body: str,
        name: str = "",
        source_type: Type | None = None,
    ) -> Instruction:
        """Insert an instruction; see `Builder.emit`."""
        instruction = super().emit(opcode, type_, operands, body, name, source_type)
        if instruction.result is not None:
            self.defining_blocks[instruction.result] = self.block
        return instruction


class GraphBase:
    """Base of the graph: one function under construction."""

    def __init__(self, name: str) -> None:
        self._module = Module(Source(f"<graph {name}>", ""), [])
        self._definition = new_function(self._module, self._module.global_names.fresh(name), [], "", "")
        self._builder = _GraphBuilder(self._module, self._definition)
        self._buffers = PrivateBuffers(self._module, self._definition)
        self._sources: dict[str, Source] = {}
        self._tokens: dict[tuple[str, int, View], ir.Local] = {}
        self._vectors: dict[tuple[str, int, View, tuple[int, ...]], ir.Value] = {}
        self._hoists: dict[tuple[str, View], Value] = {}  # vectors that loops read, in memory
        self._region = self._regions = 0
        self._memories: list[GraphMemory] = []
        self._functions: set[str] = set()  # functions of TLX that the module has
        self._unfinished = ""  # an operation that failed after it had begun a loop or branches
        self._closed: set[str] = set()  # names of what ended bodies of loops and branches define

    # Arguments -------------------------------------------------------------------------------------------------

    def _fail(self, operation: str, message: str) -> NoReturn:
        """Raise an error at the line of the user's call."""
        raise UsageError(f"{_PACKAGE}: {operation}: {message}", python_call(_PACKAGE, self._sources))

    def refuse_numpy(self, name: str) -> NoReturn:
        """Refuse a function of numpy on a value, which has no elements before the graph runs.

        Raises:
            UsageError: Always.
        """
        near = f"use graph.{name}" if hasattr(self, name) else "use the methods of the graph"
        self._fail(f"numpy.{name}", f"values of a graph have no elements until it runs: {near}")

    def refuse_bool(self) -> NoReturn:
        """Refuse a value as a condition of Python, such as that of `if`, `and`, or the function `max`.

        Raises:
            UsageError: Always.
        """
        self._fail("bool", "values of a graph have no elements until it runs: use where, conditional or while_loop")

    def _dtype(self, operation: str, dtype: str | type | DType) -> DType:
        """The element type of a name such as `float32` or `bfloat16`."""
        try:
            known = named_dtype(dtype) if isinstance(dtype, str) else np.dtype(dtype)
            type_of(known)
        except (TypeError, ValueError):
            self._fail(operation, f"{dtype!r} is not an element type: use {_ELEMENT_TYPES}")
        return np.dtype(known.type)  # in native byte order

    def _shape(self, operation: str, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape whose extents are not negative."""
        try:
            extents = tuple(index(extent) for extent in shape)
        except TypeError:
            self._fail(operation, f"expected a shape such as (2, 3), got {shape!r}")
        if any(extent < 0 for extent in extents):
            self._fail(operation, f"shape {listed(extents)} has a negative extent")
        return extents

    def _axis(self, operation: str, axis: int, rank: int, name: str = "axis") -> int:
        """A dimension from 0 on; negative ones count from the end."""
        try:
            dimension = index(axis)
        except TypeError:
            self._fail(operation, f"{name} {axis!r} is not an integer")
        if not -rank <= dimension < rank:
            self._fail(operation, f"{name} {dimension} is not a dimension of a tensor of rank {rank}")
        return dimension % rank

    def _axes(self, operation: str, axes: int | Sequence[int] | None, rank: int, name: str = "axes") -> tuple[int, ...]:
        """Distinct dimensions; all of them for None."""
        if axes is None:
            return tuple(range(rank))
        one = "dimension" if name == "dimensions" else "axis"
        several = axes if isinstance(axes, Iterable) else (axes,)
        dimensions = [self._axis(operation, axis, rank, one) for axis in several]
        if len(set(dimensions)) < len(dimensions):
            self._fail(operation, f"{name} {listed(dimensions)}: a dimension is named twice")
        return tuple(dimensions)

    def _value(self, operation: str, x: Operand, dtype: DType | None = None) -> Value:
        """An operand as a value of this graph; numbers take the type of the other operand."""
        if isinstance(x, Value):
            if x.graph is not cast("Operations", self):
                self._fail(operation, f"{x!r} belongs to another graph")
            if str(x.buffer.operand) in self._closed:
                self._fail(operation, f"{x!r} belongs to a loop or a branch that has ended: return it from there")
            if operation not in _TAKE_SMALL_FLOATS and small_float_of(x.dtype) is not None:
                self._fail(operation, f"not defined for {x.dtype.name}: convert the operand first")
            return x
        if isinstance(x, np.ndarray):
            return self.constant(x)
        if isinstance(x, (bool, np.bool_)):
            dtype = dtype or BOOL
        elif not isinstance(x, (int, float, np.number)):  # pyright: ignore[reportUnnecessaryIsInstance]
            self._fail(operation, f"expected a value, an array or a number, got {x!r}")
        return self.full((), cast("float", x), dtype or np.asarray(x).dtype)

    # Constants -------------------------------------------------------------------------------------------------

    def full(self, shape: Sequence[int], number: float, dtype: str | type | DType = FLOAT32) -> Value:
        """A tensor whose elements are all one number."""
        known = self._dtype("full", dtype)
        if not is_float(known) and number != int(number):
            self._fail("full", f"{number!r} is not of type {known.name}: pass an integer, or convert the other operand")
        scalar = np.asarray(number).astype(known)
        extents = self._shape("full", shape)
        return self._make(known, View(extents, (0,) * len(extents)), Buffer(_scalar(scalar), 1))

    def constant(self, array: Any, dtype: str | type | DType | None = None) -> Value:
        """A constant tensor, which becomes a global of the module; pass large ones as `weight`."""
        data = np.asarray(array)
        if dtype is not None:
            data = data.astype(self._dtype("constant", dtype))
        known = self._dtype("constant", data.dtype)
        self._shape("constant", data.shape)
        if not data.size:
            return self._empty(data.shape, known)
        if data.size == 1 or bool((data.ravel()[:1].tobytes() * data.size) == data.tobytes()):
            return self.full(data.shape, data.ravel()[0], known)
        element = type_of(known)
        stored = I8 if element == I1 else element
        name = self._module.global_names.fresh("constant")
        numbers = ", ".join(f"{stored} {_spelled(stored, number)}" for number in _as_stored(data).ravel())
        text = f"\n@{name} = internal constant [{data.size} x {stored}] [{numbers}], align 64\n"
        self._module.items.insert(0, UnparsedText(text))
        return self._in_memory(ir.Global(PTR, name), data.shape, known)

    # Values ----------------------------------------------------------------------------------------------------

    def _empty(self, shape: Sequence[int], dtype: DType) -> Value:
        """A value without elements."""
        return self.full(shape, 0, dtype)

    def _make(self, dtype: DType, view: View, buffer: Buffer) -> Value:
        if not view.count:  # in no memory: a view of a constant
            view, buffer = View(view.shape, (0,) * len(view.shape)), Buffer(_scalar(np.zeros((), dtype)), 1)
        return Value(cast("Operations", self), dtype, view, buffer)

    def _in_memory(self, pointer: ir.Value, shape: Sequence[int], dtype: DType) -> Value:
        return self._make(dtype, View.dense(shape), Buffer(pointer, 0))

    def _of_vector(
        self, vector: ir.Value, shape: Sequence[int], dtype: DType, order: Sequence[int] | None = None
    ) -> Value:
        """The value of a flattened vector whose dimensions lie in a given order, by default row-major."""
        view = View.dense(shape, order)
        return self._make(dtype, view, Buffer(vector, view.count))

    def _with_view(self, x: Value, view: View) -> Value:
        return self._make(x.dtype, view, x.buffer)

    def _without_repeats(self, x: Value) -> Value:
        """The value with repeated dimensions reduced to extent 1."""
        return self._with_view(x, x.view.first_positions(x.view.repeated))

    def _token(self, x: Value) -> tuple[ir.Local, tuple[int, ...]]:
        """A token, and for each of its logical dimensions the number of the value's dimension.

        Repeated dimensions are left out. -1 stands for a dimension of extent 1 that the value does not have, such as
        that of a scalar.
        """
        placed = place(x.view)
        key = (x.buffer.operand.typed, x.buffer.version, x.view)
        if key not in self._tokens:
            element = type_of(x.dtype)
            if x.buffer.in_memory:
                type_ = TensorType(element, placed.shape, placed.layout, (0,) * len(placed.shape))
                is_dense = all(p in (0, extent) for p, extent in zip(placed.pitches, placed.shape, strict=True))
                pitches = None if is_dense else placed.pitches
                with self._before_overwritten(x.buffer):
                    pointer = self._builder.gep(I8 if element == I1 else element, x.buffer.operand, x.view.offset)
                    self._tokens[key] = self._builder.tensor_load(pointer, type_, pitches)
            else:
                shape, padding = placed.padded(x.buffer.count)
                type_ = TensorType(element, shape, placed.layout, padding)
                operand = x.buffer.operand
                vector = operand if isinstance(operand.type, VectorType) else _splat(operand, type_.count)
                self._tokens[key] = self._builder.typeinfo(vector, type_)
        return self._tokens[key], placed.dimensions

    @contextmanager
    def _before_overwritten(self, buffer: Buffer) -> Generator[None]:
        """Insert before the write that replaced a version of memory, or here if the version is the current one."""
        b, memory = self._builder, buffer.memory
        if memory is None or not buffer.is_overwritten:
            yield
            return
        after = memory.writes[buffer.version]
        if isinstance(after, Block):
            block, index = after, 0
        else:
            block = next(block for block in b.function.blocks if any(i is after for i in block.instructions))
            index = next(k for k, i in enumerate(block.instructions) if i is after) + 1
        with b.inserting_at(block, index):
            yield

    def _preceding(self) -> Instruction | Block:
        """The instruction right before the insertion point, or the block that the point begins."""
        b = self._builder
        return b.block.instructions[b.index - 1] if b.index else b.block

    def _token_of_all(self, x: Value) -> ir.Local:
        """A token whose logical dimensions are those of the value."""
        token, dimensions = self._token(x)
        if dimensions == tuple(range(x.rank)):
            return token
        return self._token(self._dense(x))[0]

    def _vector(self, x: Value, order: Sequence[int]) -> ir.Value:
        """The flattened vector of a value, with its dimensions in an order."""
        if not isinstance(x.buffer.operand.type, VectorType) and not x.buffer.in_memory:
            return _splat(x.buffer.operand, x.view.count)
        is_whole = x.buffer.in_memory or x.buffer.count == x.view.count
        if x.buffer.in_memory and x.view.count == 1 and x.dtype != BOOL:
            return self._loaded(x)
        if x.view.is_dense(order) and is_whole:
            if not x.buffer.in_memory:
                return x.buffer.operand
            return self._cached(x, (), self._builder.tovector)
        shape = [x.shape[d] for d in order]
        if x.view.repeated:

            def broadcast(token: ir.Local) -> ir.Value:
                dimensions = place(x.view).dimensions
                added = dimensions.count(-1)
                places = [len(order) if d < 0 else order.index(d) for d in dimensions]
                wide = (*shape, *[1] * added)
                return self._builder.broadcast(token, wide, places, self._vector_type(x))

            return self._cached(x, tuple(order), broadcast)

        def permute(token: ir.Local) -> ir.Value:
            dimensions = place(x.view).dimensions
            perm = [dimensions.index(d) for d in order] + [k for k, d in enumerate(dimensions) if d < 0]
            return self._builder.reshape_permute(token, perm, shape or [1], self._vector_type(x))

        return self._cached(x, tuple(order), permute)

    def _loaded(self, x: Value) -> ir.Value:
        """One element, by an ordinary load, so that it stays in a register."""
        b, type_ = self._builder, self._vector_type(x)
        with self._before_overwritten(x.buffer):
            return b.load(type_, b.gep(type_.element, x.buffer.operand, x.view.offset), x.dtype.itemsize)

    def _cached(self, x: Value, order: tuple[int, ...], make: Callable[[ir.Local], ir.Value]) -> ir.Value:
        key = (x.buffer.operand.typed, x.buffer.version, x.view, order)
        if key not in self._vectors:
            self._vectors[key] = make(self._token(x)[0])
        return self._vectors[key]

    def _vector_type(self, x: Value) -> VectorType:
        return vector_of(x.view.count, type_of(x.dtype))

    def _dense(self, x: Value, order: Sequence[int] | None = None) -> Value:
        """The same value without gaps and repetition, row-major by default."""
        order = tuple(range(x.rank)) if order is None else order
        if not x.view.count or (x.view.is_dense(order) and (x.buffer.in_memory or x.buffer.count == x.view.count)):
            return x
        scalar = x.buffer.operand
        if not x.buffer.in_memory and not isinstance(scalar.type, VectorType) and x.view.count > _LARGE_SPLAT:
            token = self._builder.typeinfo(_splat(scalar, 1), TensorType.dense(scalar.type, (1,)))
            vector = self._builder.broadcast(token, x.shape, [x.rank - 1], self._vector_type(x))
            return self._of_vector(vector, x.shape, x.dtype)
        return self._of_vector(self._vector(x, order), x.shape, x.dtype, order)


def listed(numbers: Sequence[int]) -> str:
    """Numbers as messages show a shape: `(2, 3)`."""
    return f"({', '.join(map(str, numbers))})"


def _splat(scalar: ir.Value, count: int) -> ir.Value:
    type_ = vector_of(count, scalar.type)
    is_zero = isinstance(scalar, ir.ConstInt) and not scalar.value
    return ir.Keyword(type_, "zeroinitializer") if is_zero else ir.Splat(type_, scalar)


def _spelled(type_: Type, number: Any) -> ir.Value:
    if isinstance(type_, FloatType):
        return ir.const_float(type_, float(number))
    assert isinstance(type_, IntType)
    return ir.ConstInt(type_, int(number))


def _scalar(number: np.ndarray[Any, Any]) -> ir.Value:
    return _spelled(type_of(number.dtype), _as_stored(number))


def _as_stored(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Floats of 8 bits as bytes, other numbers as they are."""
    return numbers if small_float_of(numbers.dtype) is None else numbers.view(np.uint8)
