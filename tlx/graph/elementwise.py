"""Elementwise operations, with broadcasting as in numpy; conversions; selection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tlx.graph.core import BOOL, GraphBase, listed
from tlx.graph.value import DType, Operand, Value, splat_value
from tlx.graph.view import View
from tlx.intrinsics.numpy_types import is_float, small_float_of, type_of
from tlx.intrinsics.small_floats import FROM_SMALL, NEAREST, TO_SMALL, SmallFloat
from tlx.ir import values as ir
from tlx.ir.types import I1, METADATA, bits_of, vector_of
from tlx.ir.values import as_signed, compare_integers, fold_integers
from tlx.lower.operations import FULL_ACCURACY, Accuracy, ElementwiseOp

_FLOAT_BINARY: Final = {
    "add": "fadd",
    "subtract": "fsub",
    "multiply": "fmul",
    "divide": "fdiv",
    "remainder": "frem",
    "maximum": "llvm.maximum",
    "minimum": "llvm.minimum",
    "power": "llvm.pow",
}
_INTEGER_BINARY: Final = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "and": "and",
    "or": "or",
    "xor": "xor",
}
_BOOL_BINARY: Final = {
    "and": "and",
    "or": "or",
    "xor": "xor",
    "maximum": "or",
    "minimum": "and",
}
_SIGNED_BINARY: Final = {"maximum": "max", "minimum": "min"}
_CHOOSES_FIRST: Final = {"llvm.umin": "ult", "llvm.umax": "ugt", "llvm.smin": "slt", "llvm.smax": "sgt"}
"""The comparison by which a minimum or maximum is its first operand."""
_DIVISIONS: Final = {"divide": "div", "remainder": "rem"}
_SHIFTS: Final = ("shift_left", "shift_right")
BINARY: Final = tuple(dict.fromkeys((*_FLOAT_BINARY, *_INTEGER_BINARY, *_SHIFTS)))
"""The operations of `Graph.binary`."""

_LONG_CONSTANT: Final = 4096
_EXACT: Final = (np.dtype(np.float32), np.dtype(np.float64))
"""Floats to which numpy rounds integers once."""
_FUNCTIONS: Final = tuple("exp exp2 log log2 log10 sin cos tanh sigmoid sqrt floor ceil".split())
_ROUNDED: Final = {"round": "llvm.roundeven", "truncate": "llvm.trunc"}
UNARY: Final = (*_FUNCTIONS, *_ROUNDED, "negative", "abs", "relu", "rsqrt", "sign", "invert", "is_finite")
"""The operations of `Graph.unary`."""

RELATIONS: Final = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
"""The relations of `Graph.compare`, and how LLVM calls them for floats."""


class ElementwiseMethods(GraphBase):
    """Operations that compute each element from the elements at the same place."""

    def binary(self, name: str, x: Operand, y: Operand) -> Value:
        """Apply one of the operations `BINARY` to two tensors of one element type; shapes broadcast as in numpy.

        Integers wrap. Integer division truncates, so a remainder has the sign of `x`; `x / 0` has all bits set and the
        remainder is `x`, as in XLA. Shifts by the width or more give 0, or the sign for `shift_right` of signed
        integers. `maximum` and `minimum` of NaN are NaN.
        """
        if name not in BINARY:
            self._fail("binary", f"{name!r} is not one of {', '.join(BINARY)}")
        a, b = self._common_type(name, x, y)
        if a.dtype.kind in "iu" and name in _SHIFTS:
            return self._shift(name, a, b)
        if a.dtype.kind in "iu" and name in _DIVISIONS:
            return self._divide(name, f"{'u' if a.dtype.kind == 'u' else 's'}{_DIVISIONS[name]}", a, b)
        return self._elementwise(name, self._operation(name, a.dtype), [a, b], a.dtype)

    def add(self, x: Operand, y: Operand) -> Value:
        """`x + y`."""
        return self.binary("add", x, y)

    def subtract(self, x: Operand, y: Operand) -> Value:
        """`x - y`."""
        return self.binary("subtract", x, y)

    def multiply(self, x: Operand, y: Operand) -> Value:
        """`x * y`."""
        return self.binary("multiply", x, y)

    def divide(self, x: Operand, y: Operand) -> Value:
        """`x / y`; integers truncate."""
        return self.binary("divide", x, y)

    def modulo(self, x: Operand, y: Operand) -> Value:
        """`x % y`: the remainder with the sign of `y`, as in Python; `binary("remainder", x, y)` has that of `x`.

        A remainder of 0 has that sign, too.
        """
        a, b = self._common_type("modulo", x, y)
        remainder = self.binary("remainder", a, b)
        if a.dtype.kind == "u":
            return remainder
        is_negative = self.compare("lt", b, 0)
        differs = self.binary("xor", self.compare("lt", remainder, 0), is_negative)
        zero = self.where(is_negative, self.full((), -0.0, b.dtype), 0) if is_float(b.dtype) else 0
        return self.where(self.equal(remainder, 0), zero, self.where(differs, remainder + b, remainder))

    def multiply_add(self, x: Operand, y: Operand, z: Operand) -> Value:
        """`x * y + z` of floats, rounded once on machines that support it."""
        a, b = self._common_type("multiply_add", x, y)
        _, c = self._common_type("multiply_add", a, z)
        if not is_float(a.dtype):
            self._fail("multiply_add", f"the operands have type {a.dtype.name}, not a float: convert them first")
        return self._elementwise("multiply_add", _operation("llvm.fmuladd"), [a, b, c], a.dtype)

    def maximum(self, x: Operand, y: Operand) -> Value:
        """The greater element of each pair."""
        return self.binary("maximum", x, y)

    def minimum(self, x: Operand, y: Operand) -> Value:
        """The lesser element of each pair."""
        return self.binary("minimum", x, y)

    def compare(self, relation: str, x: Operand, y: Operand) -> Value:
        """Booleans: `eq`, `ne`, `lt`, `le`, `gt` or `ge` of two tensors; only `ne` holds for NaNs."""
        if relation not in RELATIONS:
            self._fail("compare", f"{relation!r} is not one of {', '.join(RELATIONS)}")
        a, b = self._common_type("compare", x, y)
        if is_float(a.dtype):
            operation = ElementwiseOp("fcmp", (), RELATIONS[relation])
        else:
            sign = "" if relation in ("eq", "ne") else "s" if a.dtype.kind == "i" else "u"
            operation = ElementwiseOp("icmp", (), sign + relation)
        return self._elementwise("compare", operation, [a, b], BOOL)

    def equal(self, x: Operand, y: Operand) -> Value:
        """`x == y`."""
        return self.compare("eq", x, y)

    def not_equal(self, x: Operand, y: Operand) -> Value:
        """`x != y`."""
        return self.compare("ne", x, y)

    def where(self, condition: Operand, x: Operand, y: Operand) -> Value:
        """`x` where a tensor of booleans holds, `y` elsewhere."""
        chosen = self._value("where", condition)
        if chosen.dtype != BOOL:
            self._fail("where", f"the condition has type {chosen.dtype.name}, not bool: compare it with 0 first")
        a, b = self._common_type("where", x, y)
        holds = splat_value(chosen)
        if holds is not None:
            shape = self._common_shape("where", [chosen, a, b])
            return self._broadcast_last(a if holds else b, shape)
        return self._elementwise("where", ElementwiseOp("select"), [chosen, a, b], a.dtype)

    def clamp(self, low: Operand, x: Operand, high: Operand) -> Value:
        """`x`, but not below `low` and not above `high`."""
        value = self._value("clamp", x)
        return self.minimum(self.maximum(value, low), high)

    def unary(self, name: str, x: Operand) -> Value:
        """Apply one of the functions `UNARY` to each element."""
        if name not in UNARY:
            self._fail("unary", f"{name!r} is not one of {', '.join(UNARY)}")
        value = self._value(name, x)
        if name in ("negative", "invert", "sign"):
            return self._signs(name, value)
        if name in ("abs", "relu"):
            return self._magnitude(name, value)
        if not is_float(value.dtype):
            self._fail(name, f"the operand has type {value.dtype.name}, not a float: convert it first")
        if name == "rsqrt":
            return self.divide(1, self._function("sqrt", value))
        if name == "is_finite":
            return self.compare("lt", self._function("fabs", value), float("inf"))
        if name in _ROUNDED:
            return self._elementwise(name, _operation(_ROUNDED[name]), [value], value.dtype)
        return self._function(name, value)

    def exp(self, x: Operand) -> Value:
        """The exponential function."""
        return self.unary("exp", x)

    def log(self, x: Operand) -> Value:
        """The natural logarithm."""
        return self.unary("log", x)

    def tanh(self, x: Operand) -> Value:
        """The hyperbolic tangent."""
        return self.unary("tanh", x)

    def sigmoid(self, x: Operand) -> Value:
        """`1 / (1 + exp(-x))`."""
        return self.unary("sigmoid", x)

    def sqrt(self, x: Operand) -> Value:
        """The square root."""
        return self.unary("sqrt", x)

    def relu(self, x: Operand) -> Value:
        """`x` where that is positive or NaN, else 0."""
        return self.unary("relu", x)

    def convert(self, x: Operand, dtype: str | type | DType) -> Value:
        """The elements in another type, rounded to nearest.

        Floats become integers by truncation; NaN becomes 0, and numbers out of range the nearest integer. Integers
        wrap. As booleans, all numbers but 0 are True.
        """
        value = self._value("convert", x)
        to = self._dtype("convert", dtype)
        if value.dtype == to:
            return value
        small, small_to = small_float_of(value.dtype), small_float_of(to)
        if small is not None or small_to is not None:
            return self._convert_small(value, to, small, small_to)
        if to == BOOL:
            return self.compare("ne", value, 0)
        number = splat_value(value)
        if number is not None and value.dtype.kind in "biu" and (to.kind in "iu" or to in _EXACT):
            return self.full(value.shape, np.asarray(number).astype(to).item(), to)
        source, result = type_of(value.dtype), type_of(to)
        if source == result:
            return self._make(to, value.view, value.buffer)
        if is_float(value.dtype) and is_float(to) and bits_of(source) == bits_of(result):
            return self.convert(self.convert(value, "float32"), to)  # half and bfloat
        return self._elementwise("convert", ElementwiseOp(*_conversion(value.dtype, to)), [value], to)

    def _convert_small(self, x: Value, to: DType, source: SmallFloat | None, result: SmallFloat | None) -> Value:
        """A conversion from or to floats of 8 bits; one between two formats, or from or to integers, is by float."""
        format_ = source or result
        assert format_ is not None
        other = to if source is not None else x.dtype
        if not is_float(other) or small_float_of(other) is not None:
            return self.convert(self.convert(x, "float32"), to)
        immediates: list[ir.Value] = [ir.OpaqueConstant(METADATA, format_.metadata)]
        if source is None:
            immediates += [ir.OpaqueConstant(METADATA, NEAREST), ir.ConstInt(I1, 0)]
        operation = ElementwiseOp("call", callee=FROM_SMALL if source is not None else TO_SMALL)
        return self._elementwise("convert", operation, [x], to, immediates)

    def iota(self, shape: Sequence[int], axis: int, dtype: str | type | DType = "int32") -> Value:
        """Each element's index along a dimension."""
        extents = self._shape("iota", shape)
        along = self._axis("iota", axis, len(extents))
        numbers = self._iota(extents[along], self._dtype("iota", dtype))
        return self._with_view(numbers, numbers.view.broadcast(extents, [along]))

    def _iota(self, count: int, dtype: DType) -> Value:
        """The numbers below a count; many of them are computed from two short constants, since constants are text."""
        if count <= _LONG_CONSTANT:
            return self.constant(np.arange(count), dtype)
        rows = -(-count // _LONG_CONSTANT)
        known = dtype if dtype.kind in "iu" and dtype.itemsize == 8 else np.dtype(np.int32)
        starts = self.constant(np.arange(rows)[:, None] * _LONG_CONSTANT, known)
        numbers = self.add(starts, self.constant(np.arange(_LONG_CONSTANT), known))
        view = View.dense((rows * _LONG_CONSTANT,)).sliced([0], [count], [1])
        return self.convert(self._with_view(numbers, view), dtype)

    # Emission --------------------------------------------------------------------------------------

    def _common_type(self, operation: str, x: Operand, y: Operand) -> tuple[Value, Value]:
        """Two operands of the same element type; numbers take that of the other one."""
        a = x if isinstance(x, Value) or not isinstance(y, Value) else None
        first = self._value(operation, x, y.dtype if isinstance(y, Value) and a is None else None)
        second = self._value(operation, y, first.dtype)
        if first.dtype != second.dtype:
            names = f"{first.dtype.name} and {second.dtype.name}"
            self._fail(operation, f"element types {names} differ: convert one operand")
        return first, second

    def _operation(self, name: str, dtype: DType) -> ElementwiseOp:
        """The instruction of a binary operation that is one."""
        if dtype.kind in "iu" and name in _SIGNED_BINARY:
            return _operation(f"llvm.{'u' if dtype.kind == 'u' else 's'}{_SIGNED_BINARY[name]}")
        opcodes = _BOOL_BINARY if dtype == BOOL else _FLOAT_BINARY if is_float(dtype) else _INTEGER_BINARY
        if name not in opcodes:
            self._fail(name, f"not defined for {dtype.name}: convert the operands first")
        return _operation(opcodes[name])

    def _binary(self, name: str, opcode: str, a: Value, b: Value) -> Value:
        return self._elementwise(name, _operation(opcode), [a, b], a.dtype)

    def _divide(self, name: str, opcode: str, a: Value, b: Value) -> Value:
        """Integer division, whose machine instruction traps where the quotient is not defined.

        The divisor becomes 1 where it is 0, and where it is -1, as the least number divided by -1 overflows.
        """
        is_zero = self.equal(b, 0)
        is_signed = a.dtype.kind == "i"
        is_negative = self.equal(b, -1) if is_signed else is_zero
        divisor = self.where(self.binary("or", is_zero, is_negative), 1, b)
        result = self._binary(name, opcode, a, divisor)
        if name == "remainder":
            result = self.where(is_negative, 0, result) if is_signed else result
            return self.where(is_zero, a, result)
        result = self.where(is_negative, self.subtract(0, a), result) if is_signed else result
        return self.where(is_zero, -1 if is_signed else _ones(a.dtype), result)

    def _shift(self, name: str, a: Value, b: Value) -> Value:
        """Shifts, which LLVM does not define for the width of the type or more."""
        width = bits_of(type_of(a.dtype))
        unsigned = self._make(np.dtype(f"u{b.dtype.itemsize}"), b.view, b.buffer)
        if name == "shift_right" and a.dtype.kind == "i":
            amount = self.minimum(unsigned, width - 1)
            return self._binary(name, "ashr", a, self._make(a.dtype, amount.view, amount.buffer))
        is_defined = self.compare("lt", unsigned, width)
        amount = self.where(is_defined, b, 0)
        shifted = self._binary(name, "shl" if name == "shift_left" else "lshr", a, amount)
        return self.where(is_defined, shifted, 0)

    def _signs(self, name: str, x: Value) -> Value:
        if name == "invert":
            if is_float(x.dtype):
                self._fail(name, f"not defined for {x.dtype.name}")
            return self.binary("xor", x, True if x.dtype == BOOL else -1 if x.dtype.kind == "i" else _ones(x.dtype))
        if x.dtype == BOOL:
            self._fail(name, "not defined for bool: convert the operand first")
        if name == "negative":
            return (
                self._elementwise(name, ElementwiseOp("fneg"), [x], x.dtype)
                if is_float(x.dtype)
                else self.subtract(0, x)
            )
        one = self.full((), 1, x.dtype)
        positive = self.where(self.compare("gt", x, 0), one, x)  # zeros keep their sign, NaNs stay NaN
        return (
            positive
            if x.dtype.kind == "u"
            else self.where(self.compare("lt", x, 0), self.unary("negative", one), positive)
        )

    def _magnitude(self, name: str, x: Value) -> Value:
        if is_float(x.dtype):
            return self._function("fabs" if name == "abs" else name, x)
        if x.dtype.kind in "bu":
            return x
        return self.maximum(x, 0) if name == "relu" else self.maximum(x, self.subtract(0, x))

    def _function(self, name: str, x: Value, accuracy: Accuracy = FULL_ACCURACY) -> Value:
        """Call a tensor function of the table on a token, with the accuracy that is required."""
        if not x.view.count:
            return x
        once = self._without_repeats(x)
        order = once.view.order
        dense = self._dense(once, order)
        token = self._token_of_all(dense) if x.rank else self._token(dense)[0]
        result = self._of_vector(
            self._builder.unary(name, token, metadata=accuracy.metadata), once.shape, x.dtype, order
        )
        return self._with_view(result, result.view.broadcast(x.shape, range(x.rank)))

    def _elementwise(
        self,
        name: str,
        operation: ElementwiseOp,
        operands: Sequence[Value],
        dtype: DType,
        immediates: Sequence[ir.Value] = (),
    ) -> Value:
        """An ordinary instruction on flattened vectors, and constants that follow them.

        Dimensions that all operands repeat are computed once; the vectors lie in the order of the largest operand.
        """
        shape = self._common_shape(name, operands)
        if 0 in shape:
            return self._empty(shape, dtype)
        number = _folded(operation, operands)
        if number is not None:
            return self.full(shape, as_signed(number, bits_of(type_of(dtype))) if dtype.kind == "i" else number, dtype)
        aligned = [self._broadcast_last(x, shape).view for x in operands]
        repeated = [d for d in range(len(shape)) if all(not view.strides[d] for view in aligned)]
        views = [view.first_positions(repeated) for view in aligned]
        once = views[0].shape
        order = _common_order(views, [x.buffer.in_memory for x in operands])
        vectors = [self._vector(self._with_view(x, view), order) for x, view in zip(operands, views, strict=True)]
        count = views[0].count
        vector = operation.emit(self._builder, vector_of(count, type_of(dtype)), [*vectors, *immediates])
        result = self._of_vector(vector, once, dtype, order)
        return self._with_view(result, result.view.broadcast(shape, range(len(shape))))

    def _broadcast_last(self, x: Value, shape: Sequence[int]) -> Value:
        """A value with its dimensions the last ones of a shape."""
        return self._with_view(x, x.view.broadcast(shape, range(len(shape) - x.rank, len(shape))))

    def _common_shape(self, name: str, operands: Sequence[Value]) -> tuple[int, ...]:
        shapes = [x.shape for x in operands]
        try:
            return np.broadcast_shapes(*shapes)
        except ValueError:
            texts = " and ".join(map(listed, dict.fromkeys(shapes)))
            self._fail(
                name, f"shapes {texts} do not broadcast: from the last dimension backwards, extents must be equal or 1"
            )


def _common_order(views: Sequence[View], in_memory: Sequence[bool]) -> tuple[int, ...]:
    """The memory order of an operand without repeated dimensions, else row-major.

    A row-major one in memory, such as a parameter that is updated, goes before one that is a result: what is computed
    of it is often stored row-major as well.
    """
    row_major = tuple(range(len(views[0].shape)))
    whole = [(memory, view.order) for view, memory in zip(views, in_memory, strict=True) if not view.repeated]
    if (True, row_major) in whole:
        return row_major
    return min(whole, key=lambda item: item[0])[1] if whole else row_major


def _folded(operation: ElementwiseOp, operands: Sequence[Value]) -> int | None:
    """The result, modulo 2^bits, of a binary operation or comparison of integers or booleans that are constant.

    None if one is not, or the result is not defined. A divisor or shift that a program computes of constants, as JAX
    does for `x % 1000`, would be a variable to LLVM.
    """
    numbers = [splat_value(x) for x in operands if x.dtype.kind in "biu"]
    if len(operands) != 2 or len(numbers) != 2 or None in numbers:
        return None
    first, second = (int(n) for n in numbers if n is not None)
    width = bits_of(type_of(operands[0].dtype))
    if operation.opcode == "icmp":
        return int(compare_integers(operation.predicate, first, second, width))
    if operation.callee in _CHOOSES_FIRST:
        return first if compare_integers(_CHOOSES_FIRST[operation.callee], first, second, width) else second
    return fold_integers(operation.opcode, first, second, width)


def _operation(opcode: str) -> ElementwiseOp:
    return ElementwiseOp("call", callee=opcode) if opcode.startswith("llvm.") else ElementwiseOp(opcode)


def _conversion(source: DType, result: DType) -> tuple[str, tuple[str, ...], str, str]:
    """Opcode, flags, predicate and callee of a conversion."""
    wider = bits_of(type_of(result)) > bits_of(type_of(source))
    unsigned = source.kind in "bu"
    if is_float(source):
        if is_float(result):
            return ("fpext" if wider else "fptrunc"), (), "", ""
        return "call", (), "", f"llvm.fpto{'u' if result.kind == 'u' else 's'}i.sat"
    if is_float(result):
        return ("uitofp" if unsigned else "sitofp"), (), "", ""
    return ("zext" if unsigned else "sext") if wider else "trunc", (), "", ""


def _ones(dtype: DType) -> int:
    return int(np.iinfo(dtype).max)
