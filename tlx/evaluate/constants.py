"""Values of LLVM constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from tlx.diagnostics import EvaluationError
from tlx.evaluate.codec import Codecs
from tlx.evaluate.layout import Layout
from tlx.evaluate.values import Value, dtype_of, filled, signed, splat, vector, width_of
from tlx.ir.types import ArrayType, IntType, PointerType, StructType, Type, VectorType
from tlx.ir.values import Aggregate, ConstExpr, ConstFloat, ConstInt, Global, Keyword, Splat, Text
from tlx.ir.values import Value as Operand

_DIGITS: Final = np.array([int(chr(c), 16) if chr(c) in "0123456789abcdefABCDEF" else 0 for c in range(256)], np.uint8)
_FOLDED: Final[dict[str, Callable[[int, int], int]]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
}


class Constants:
    """Evaluates constants.

    Args:
        layout: Where fields and elements lie, for constant `getelementptr`.
        address: Address of a global or function by name.
    """

    def __init__(self, layout: Layout, address: Callable[[str], int]) -> None:
        self.layout = layout
        self.address = address
        self._codecs = Codecs(layout)

    def value(self, operand: Operand) -> Value:
        """The value of a constant operand.

        Raises:
            EvaluationError: The evaluator does not know this kind of constant.
        """
        match operand:
            case ConstInt():
                return operand.value & ((1 << width_of(operand.type)) - 1)
            case ConstFloat():
                return _float(operand)
            case Keyword():
                return filled(
                    operand.type, self.layout, self.layout.undefined if operand.word in ("undef", "poison") else 0
                )
            case Aggregate():
                return self._aggregate(operand)
            case Splat(type=VectorType() as type_):
                return splat(self.value(operand.element), type_)
            case Global():
                return self.address(operand.name)
            case Text(type=ArrayType()) if operand.spelling.startswith('c"'):
                return tuple(string_bytes(operand.spelling))
            case ConstExpr():
                return self._expression(operand)
            case _:
                raise EvaluationError(f"the evaluator does not know the constant {operand}")

    def _aggregate(self, operand: Aggregate) -> Value:
        elements = [self.value(e) for e in operand.elements]
        if isinstance(operand.type, VectorType):
            return vector(elements, operand.type.element)
        return tuple(elements)

    def _expression(self, operand: ConstExpr) -> Value:
        values = [self.value(o) for o in operand.operands]
        if operand.opcode == "bitcast" and not isinstance(operand.type, PointerType):
            bits = self._codecs[operand.operands[0].type].encode(values[0])
            return self._codecs[operand.type].decode(memoryview(bits), 0)
        mask = (1 << width_of(operand.type)) - 1
        if operand.opcode == "getelementptr" and operand.source_type is not None:
            indices = [signed(v, width_of(o.type)) for v, o in zip(values[1:], operand.operands[1:], strict=True)]
            return (values[0] + offset(self.layout, operand.source_type, indices)) & mask
        if operand.opcode in ("bitcast", "inttoptr", "ptrtoint", "addrspacecast", "trunc", "zext"):
            return values[0] & mask
        if operand.opcode in ("dso_local_equivalent", "no_cfi") and values:
            return values[0]
        if operand.opcode in _FOLDED and isinstance(operand.type, IntType):
            return _FOLDED[operand.opcode](values[0], values[1]) & mask
        raise EvaluationError(f"the evaluator does not know the constant expression {operand}")


def string_bytes(spelling: str) -> bytes:
    r"""The bytes of `c"..."`, escapes such as `\0A` resolved."""
    data = np.frombuffer(spelling[2:-1].encode("utf-8", "surrogateescape").replace(b"\\\\", b"\\5C"), np.uint8)
    places = np.flatnonzero(data == ord("\\"))
    keep = np.ones(len(data), np.bool_)
    keep[places + 1] = keep[places + 2] = False
    found = data.copy()
    found[places] = _DIGITS[data[places + 1]] * 16 + _DIGITS[data[places + 2]]
    return found[keep].tobytes()


def _float(operand: ConstFloat) -> Value:
    dtype = dtype_of(operand.type)
    if operand.spelling.startswith("0x") and dtype == np.float64:
        return np.frombuffer(int(operand.spelling, 0).to_bytes(8, "little"), dtype)[0]
    if operand.spelling.startswith(("0xH", "0xR")):
        return np.frombuffer(int(operand.spelling[3:], 16).to_bytes(2, "little"), dtype)[0]
    return dtype.type(operand.value)


def step_into(layout: Layout, type_: Type, index: int | None) -> tuple[Type, int | None]:
    """One index of a `getelementptr`: the type it reaches, and the offset if `index` is known.

    Raises:
        EvaluationError: The type has no elements, or a struct's field is not constant.
    """
    type_ = layout.resolve(type_)
    if isinstance(type_, (ArrayType, VectorType)):
        return type_.element, None if index is None else index * layout.size(type_.element)
    if isinstance(type_, StructType) and index is not None and index < len(type_.elements):
        return type_.elements[index], layout.fields(type_)[0][index]
    raise EvaluationError(f"getelementptr cannot index into {type_}")


def offset(layout: Layout, source: Type, indices: Sequence[int]) -> int:
    """Byte offset of a `getelementptr` whose indices are all known."""
    total = indices[0] * layout.size(source)
    for index in indices[1:]:
        source, step = step_into(layout, source, index)
        total += step or 0
    return total
