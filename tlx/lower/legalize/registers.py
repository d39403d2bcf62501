"""Tiles as lists of vector registers.

    8x40 float, 16 lanes          regs[row] = [<16 x float>, <16 x float>, <8 x float>]

bfloat and half registers are vectors of i16. No LLVM before 19 selects code for vectors of bfloat; and where a machine
has no half, LLVM may fold bit operations on what was a half into operations that call the library for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tlx.ir.instructions import Instruction
from tlx.ir.types import BFLOAT, HALF, I16, FloatType, Type, VectorType
from tlx.ir.values import (
    Aggregate,
    Constant,
    ConstFloat,
    ConstInt,
    Keyword,
    Splat,
    Value,
    const_float,
    const_vector,
    int_elements,
    zero,
)


def register_element(element: Type) -> Type:
    """The element type a register of these elements has."""
    return I16 if element in (BFLOAT, HALF) else element


@dataclass(frozen=True, slots=True)
class Registers:
    """A rows x cols tile in registers of at most `lanes` elements, row by row.

    Attributes:
        element: Element type, which may be bfloat or half.
        regs: The registers of each row.
    """

    element: Type
    rows: int
    cols: int
    lanes: int
    regs: tuple[tuple[Value, ...], ...]

    def map(self, element: Type, change: Callable[[Value], Value]) -> Registers:
        """The tile with every register changed."""
        regs = tuple(tuple(change(r) for r in row) for row in self.regs)
        return Registers(element, self.rows, self.cols, self.lanes, regs)

    def flat(self) -> list[Value]:
        """All registers, row by row."""
        return [r for row in self.regs for r in row]

    def replaced(self, flat: Sequence[Value]) -> Registers:
        """The tile with other registers, given as by `flat`."""
        chunks = len(self.regs[0])
        rows = tuple(tuple(flat[i * chunks : (i + 1) * chunks]) for i in range(self.rows))
        return Registers(self.element, self.rows, self.cols, self.lanes, rows)


def slice_start(instruction: Instruction) -> int | None:
    """Where a shuffle that picks neighbours of its first operand starts; None for everything else."""
    if instruction.opcode != "shufflevector":
        return None
    mask = int_elements(instruction.operands[2])
    source = instruction.operands[0].type
    if not mask or not isinstance(source, VectorType) or mask[-1] >= source.count:
        return None
    return mask[0] if mask == tuple(range(mask[0], mask[0] + len(mask))) else None


def register_widths(cols: int, lanes: int) -> list[int]:
    """Elements of each register of a row."""
    full, rest = divmod(cols, lanes)
    return [lanes] * full + ([rest] if rest else [])


def constant_registers(value: Constant, element: Type, rows: int, cols: int, lanes: int) -> Registers:
    """The registers of a constant flattened vector.

    Raises:
        ValueError: The constant is none that has elements.
    """
    kept = register_element(element)

    def piece(start: int, size: int) -> Value:
        if isinstance(value, Keyword):
            if value.word == "zeroinitializer":
                return zero(VectorType(size, kept))
            return Keyword(VectorType(size, kept), value.word)
        if isinstance(value, Splat):
            return const_vector([_as_stored(value.element, kept)] * size)
        if isinstance(value, Aggregate):
            return const_vector([_as_stored(e, kept) for e in value.elements[start : start + size]])
        msg = f"no elements in constant {value}"
        raise ValueError(msg)

    sizes = register_widths(cols, lanes)
    regs = tuple(tuple(piece(row * cols + j * lanes, size) for j, size in enumerate(sizes)) for row in range(rows))
    return Registers(element, rows, cols, lanes, regs)


def _as_stored(value: Value, kept: Type) -> Value:
    """A scalar constant as it is kept in a register (bfloat and half as their bits)."""
    if value.type == kept:
        return value
    if isinstance(value, ConstFloat) and isinstance(value.type, FloatType):
        return ConstInt(kept, int(const_float(value.type, value.value).spelling[3:], 16))
    return zero(kept)


Permute = Callable[[Value, Sequence[int]], Value]
"""A register and the old places of its elements, in their new order, to the register permuted."""

Gather = Callable[[Sequence[Value], Sequence[int]], Value | None]
"""Registers and places in them, one behind the other, to the elements there; None where no instruction does that."""
