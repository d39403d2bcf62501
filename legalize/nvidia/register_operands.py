"""Products of warpgroups whose left operand is in registers: `wgmma` with four registers of A for each step.

PTX ISA 8.7: 9.7.15.5 wgmma.mma_async.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tlx.ir.types import FLOAT, StructType
from tlx.ir.values import Value
from tlx.legalize.nvidia.operations import assembly, extract
from tlx.target.grid_unit import GroupProduct

if TYPE_CHECKING:
    from tlx.ir.builder import Builder

_REGISTERS: Final = 4
_TYPES: Final = {"bfloat": "bf16", "half": "f16"}


def multiply_from_registers(
    b: Builder,
    product: GroupProduct,
    acc: Sequence[Value],
    lhs: Sequence[Sequence[Value]],
    descriptors: Sequence[Value],
    rhs: tuple[int, bool],
) -> list[Value]:
    """Start the products of some steps, as one group; returns the sums, which are not complete yet.

    Args:
        b: The builder.
        product: The product, of bfloat or half.
        acc: The sums before.
        lhs: Registers of A for each step.
        descriptors: Where B is, for each step.
        rhs: Columns of B, and whether its lines follow K.
    """
    count, element, (columns, k_lines) = len(acc), _TYPES[product.lhs[0]], rhs
    sums = ", ".join(f"${k}" for k in range(count))
    name = f"wgmma.mma_async.sync.aligned.m{product.rows}n{columns}k{product.depth}.f32.{element}.{element}"
    lines, operands, constraints = ["wgmma.fence.sync.aligned;"], list(acc), [*["=f"] * count, *map(str, range(count))]
    for registers, descriptor in zip(lhs, descriptors, strict=True):
        first = count + len(operands)
        held = ", ".join(f"${first + k}" for k in range(_REGISTERS))
        lines.append(f"{name} {{{sums}}}, {{{held}}}, ${first + _REGISTERS}, 1, 1, 1, {int(k_lines)};")
        operands += [*registers, descriptor]
        constraints += [*["r"] * _REGISTERS, "l"]
    lines.append("wgmma.commit_group.sync.aligned;")
    type_ = StructType((FLOAT,) * count)
    result = assembly(b, "\\0A".join(lines), ",".join([*constraints, "~{memory}"]), type_, operands)
    return [extract(b, result, k, FLOAT) for k in range(count)]
