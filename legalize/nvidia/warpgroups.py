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

from tlx.ir.types import FLOAT, I32, I64, VOID, PointerType, StructType
from tlx.ir.values import Value, const_int
from tlx.legalize.nvidia.operations import SHARED_SPACE, SIGNS, assembly, extract
from tlx.target.grid_unit import BlockShape, GroupProduct, SharedOperand
from tlx.target.instructions.dots import Sign

if TYPE_CHECKING:
    from tlx.ir.builder import Builder

_LINES: Final = 8
_UNIT: Final = 16
_SWIZZLED: Final = 1 << 62
_ADDRESS: Final = 0x3FFFF
_TYPES: Final[dict[tuple[str, Sign], str]] = {
    ("bfloat", "f"): "bf16",
    ("half", "f"): "f16",
    ("float", "f"): "tf32",
    ("i8", "s"): "s8",
    ("i8", "u"): "u8",
    ("i8", "e4m3"): "e4m3",
    ("i8", "e5m2"): "e5m2",
}
"""PTX's names of elements."""
_FREE: Final = ("bfloat", "half")
"""Elements of operands whose lines may follow K."""
_RATE: Final = 4096
"""Products of bytes in a cycle of a multiprocessor."""
_SUMS: Final = {"float": "f32", "i32": "s32"}
_FRAGMENT: Final = 4
"""Registers of a fragment of A, which a thread holds for each step."""


@dataclass(frozen=True)
class WarpgroupOperations:
    """See `tlx.target.grid_unit.GroupOperations`."""

    def fence(self, b: Builder) -> None:
        """fence.proxy.async of shared memory."""
        assembly(b, "fence.proxy.async.shared::cta;", "~{memory}", VOID, [])

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
        count = len(acc)
        registers = ", ".join(f"${k}" for k in range(count))
        types = ".".join(_TYPES[type_] for type_ in (product.lhs, product.rhs))
        shape = f"m{product.rows}n{columns}k{product.depth}"
        name = f"wgmma.mma_async.sync.aligned.{shape}.{_SUMS[product.accumulator]}.{types}"
        lines, descriptors = ["wgmma.fence.sync.aligned;"], list[Value]()
        for number, (x, y) in enumerate(zip(lhs, rhs, strict=True)):
            first = 2 * (count + number)
            flags = ["1"]
            flags += ["1", "1"] if product.accumulator == "float" else []  # operands are not negated
            flags += [str(int(x.k_lines)), str(int(y.k_lines))] if product.lhs[0] in _FREE else []
            lines.append(f"{name} {{{registers}}}, ${first}, ${first + 1}, {', '.join(flags)};")
            descriptors += [_descriptor(b, x), _descriptor(b, y)]
        lines.append("wgmma.commit_group.sync.aligned;")
        return _with_sums(b, "\\0A".join(lines), acc, descriptors)

    def multiply_from_registers(
        self,
        b: Builder,
        product: GroupProduct,
        acc: Sequence[Value],
        lhs: Sequence[Sequence[Value]],
        rhs: Sequence[SharedOperand],
        columns: int,
    ) -> list[Value]:
        """wgmma.mma_async with A of bfloat or half in registers, as one group."""
        count, element = len(acc), _TYPES[product.lhs]
        sums = ", ".join(f"${k}" for k in range(count))
        name = f"wgmma.mma_async.sync.aligned.m{product.rows}n{columns}k{product.depth}.f32.{element}.{element}"
        lines, operands = ["wgmma.fence.sync.aligned;"], list(acc)
        constraints = [*["=f"] * count, *map(str, range(count))]
        for registers, operand in zip(lhs, rhs, strict=True):
            first = count + len(operands)
            fragment = ", ".join(f"${first + k}" for k in range(_FRAGMENT))
            lines.append(f"{name} {{{sums}}}, {{{fragment}}}, ${first + _FRAGMENT}, 1, 1, 1, {int(rhs[0].k_lines)};")
            operands += [*registers, _descriptor(b, operand)]
            constraints += [*["r"] * _FRAGMENT, "l"]
        lines.append("wgmma.commit_group.sync.aligned;")
        type_ = StructType((FLOAT,) * count)
        results = assembly(b, "\\0A".join(lines), ",".join([*constraints, "~{memory}"]), type_, operands)
        return [extract(b, results, k, FLOAT) for k in range(count)]

    def wait(self, b: Builder) -> None:
        """wgmma.wait_group of all but the last group."""
        assembly(b, "wgmma.wait_group.sync.aligned 1;", "~{memory}", VOID, [])

    def complete(self, b: Builder, acc: Sequence[Value]) -> list[Value]:
        """wgmma.wait_group of all groups; the sums pass through, so that nothing reads them before."""
        return _with_sums(b, "wgmma.wait_group.sync.aligned 0;", acc, [])


def _descriptor(b: Builder, operand: SharedOperand) -> Value:
    """The descriptor of an operand; those of its parts differ in the address, to whose field the offset is added."""
    boxes = operand.box_bytes if operand.k_lines else _UNIT
    pointer = b.cast("addrspacecast", operand.address, PointerType(None, SHARED_SPACE))
    address = b.binary("and", b.cast("trunc", b.cast("ptrtoint", pointer, I64), I32), const_int(I32, _ADDRESS))
    first = b.binary("lshr", address, const_int(I32, _UNIT.bit_length() - 1))
    low = b.add(first, operand.offset // _UNIT + (boxes // _UNIT << 16))
    layout = _LINES * operand.line_bytes // _UNIT << 32 | _SWIZZLED
    return b.binary("or", b.cast("zext", low, I64), const_int(I64, layout))


def _with_sums(b: Builder, text: str, acc: Sequence[Value], descriptors: Sequence[Value]) -> list[Value]:
    """Inline PTX that changes the sums."""
    count, sum_type = len(acc), acc[0].type
    register = "f" if sum_type == FLOAT else "r"
    constraints = [*[f"={register}"] * count, *map(str, range(count)), *["l"] * len(descriptors), "~{memory}"]
    type_ = StructType((sum_type,) * count)
    sums = assembly(b, text, ",".join(constraints), type_, [*acc, *descriptors])
    return [extract(b, sums, k, sum_type) for k in range(count)]


def _shapes(depth: int) -> tuple[BlockShape, ...]:
    """Tiles, whose stages have lines of 128 bytes: `depth` elements."""
    sizes = (128, 256), (128, 128), (128, 64), (64, 128), (64, 64)
    return tuple(BlockShape(rows, columns, depth, 16, columns, 4) for rows, columns in sizes)


def _product(lhs: tuple[str, Sign], rhs: tuple[str, Sign], accumulator: str, size: int) -> GroupProduct:
    """A product of elements of some bytes."""
    return GroupProduct(
        lhs, rhs, accumulator, 64, 32 // size, _RATE // size, _shapes(128 // size), WarpgroupOperations()
    )


BF16_GROUP: Final = _product(("bfloat", "f"), ("bfloat", "f"), "float", 2)
F16_GROUP: Final = _product(("half", "f"), ("half", "f"), "float", 2)
TF32_GROUP: Final = _product(("float", "f"), ("float", "f"), "float", 4)
BYTE_GROUPS: Final = tuple(_product(("i8", sign), ("i8", sign), "i32", 1) for sign in SIGNS)
"""Of different signs they need PTX 8.4, where LLVM writes 8.0."""
_FORMATS: Final[tuple[Sign, ...]] = ("e4m3", "e5m2")
FP8_GROUPS: Final = tuple(_product(("i8", x), ("i8", y), "float", 1) for x in _FORMATS for y in _FORMATS)
"""The sums of a product are added with about 14 bits of the mantissa."""
