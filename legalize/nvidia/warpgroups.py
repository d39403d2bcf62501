"""Products of warpgroups, `wgmma`, of sm_90a: inline PTX, as LLVM has no intrinsics for them.

A descriptor says where an operand lies in shared memory, in units of 16 bytes, swizzled in lines of 128 bytes:

    bits 0 to 13    address          bits 16 to 29   bytes between boxes, of operands whose lines follow K
    bits 32 to 45   bytes between groups of eight lines                        bits 62 to 63   1: lines of 128 bytes

PTX ISA 8.7: 9.7.15 wgmma; 9.7.13.4 fence.proxy.async.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tlx.ir.types import FLOAT, I64, PTR, VOID, PointerType, StructType, Type
from tlx.ir.values import Text, Value, const_int
from tlx.legalize.nvidia.held_operands import multiply_held
from tlx.legalize.nvidia.operations import SHARED_SPACE, extract
from tlx.target.grid_unit import BlockShape, GroupProduct, SharedOperand

if TYPE_CHECKING:
    from tlx.ir.builder import Builder

_LINES: Final = 8
_UNIT: Final = 16
_SWIZZLED: Final = 1 << 62
_ADDRESS: Final = 0x3FFFF
_TYPES: Final = {"bfloat": "bf16", "half": "f16"}


@dataclass(frozen=True)
class WarpgroupOperations:
    """See `tlx.target.grid_unit.GroupOperations`."""

    def fence(self, b: Builder) -> None:
        """fence.proxy.async of shared memory."""
        _assembly(b, "fence.proxy.async.shared::cta;", "~{memory}", VOID, [])

    def multiply(
        self,
        b: Builder,
        product: GroupProduct,
        acc: Sequence[Value],
        lhs: Sequence[SharedOperand],
        rhs: Sequence[SharedOperand],
        columns: int,
    ) -> list[Value]:
        """wgmma.mma_async for each step, as one group."""
        count, element = len(acc), _TYPES[product.lhs[0]]
        registers = ", ".join(f"${k}" for k in range(count))
        name = f"wgmma.mma_async.sync.aligned.m{product.rows}n{columns}k{product.depth}.f32.{element}.{element}"
        lines, descriptors = ["wgmma.fence.sync.aligned;"], list[Value]()
        for number, (x, y) in enumerate(zip(lhs, rhs, strict=True)):
            first = 2 * (count + number)
            signs = f"1, 1, 1, {int(x.k_lines)}, {int(y.k_lines)}"
            lines.append(f"{name} {{{registers}}}, ${first}, ${first + 1}, {signs};")
            descriptors += [_descriptor(b, x), _descriptor(b, y)]
        lines.append("wgmma.commit_group.sync.aligned;")
        constraints = [*["=f"] * count, *map(str, range(count)), *["l"] * len(descriptors), "~{memory}"]
        type_ = StructType((FLOAT,) * count)
        sums = _assembly(b, "\\0A".join(lines), ",".join(constraints), type_, [*acc, *descriptors])
        return [extract(b, sums, k, FLOAT) for k in range(count)]

    def multiply_held(
        self,
        b: Builder,
        product: GroupProduct,
        acc: Sequence[Value],
        lhs: Sequence[Sequence[Value]],
        rhs: Sequence[SharedOperand],
        columns: int,
    ) -> list[Value]:
        """wgmma.mma_async with A in registers."""
        descriptors = [_descriptor(b, operand) for operand in rhs]
        return multiply_held(b, product, acc, lhs, descriptors, (columns, rhs[0].k_lines))

    def wait(self, b: Builder) -> None:
        """wgmma.wait_group of all but the last group."""
        _assembly(b, "wgmma.wait_group.sync.aligned 1;", "~{memory}", VOID, [])

    def complete(self, b: Builder, acc: Sequence[Value]) -> list[Value]:
        """wgmma.wait_group of all groups; the sums pass through, so that nothing reads them before."""
        count = len(acc)
        constraints = [*["=f"] * count, *map(str, range(count)), "~{memory}"]
        type_ = StructType((FLOAT,) * count)
        sums = _assembly(b, "wgmma.wait_group.sync.aligned 0;", ",".join(constraints), type_, list(acc))
        return [extract(b, sums, k, FLOAT) for k in range(count)]


def _descriptor(b: Builder, operand: SharedOperand) -> Value:
    """The descriptor of an operand."""
    boxes = operand.box_bytes if operand.k_lines else _UNIT
    layout = boxes // _UNIT << 16 | _LINES * operand.line_bytes // _UNIT << 32 | _SWIZZLED
    pointer = b.cast("addrspacecast", operand.address, PointerType(None, SHARED_SPACE))
    address = b.cast("ptrtoint", pointer, I64)
    low = b.binary("lshr", b.binary("and", address, const_int(I64, _ADDRESS)), const_int(I64, 4))
    return b.binary("or", low, const_int(I64, layout))


def _assembly(b: Builder, text: str, constraints: str, type_: Type, operands: Sequence[Value]) -> Value:
    spelled = f'asm sideeffect "{text}", "{constraints}"'
    body = f"call {type_} {spelled}({', '.join(operand.typed for operand in operands)}) convergent"
    call = b.emit("call", type_, [Text(PTR, spelled), *operands], body)
    call.arg_attributes = ("",) * len(operands)
    return call.value if type_ != VOID else Text(VOID, "")


_SHAPES: Final = (
    BlockShape(128, 256, 64, 16, 256, 4),
    BlockShape(128, 128, 64, 16, 128, 4),
    BlockShape(128, 64, 64, 16, 64, 4),
    BlockShape(64, 128, 64, 16, 128, 4),
    BlockShape(64, 64, 64, 16, 64, 4),
)
BF16_GROUP: Final = GroupProduct(("bfloat", "f"), ("bfloat", "f"), "float", 64, 16, _SHAPES, WarpgroupOperations())
F16_GROUP: Final = GroupProduct(("half", "f"), ("half", "f"), "float", 64, 16, _SHAPES, WarpgroupOperations())
