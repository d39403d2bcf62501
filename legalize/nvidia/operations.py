"""Operations of NVIDIA's GPUs: threads, shared memory, asynchronous copies, and products of fragments by `mma.sync`.

PTX ISA 8.7: 9.7.9.25 cp.async, 9.7.14.5 ldmatrix and mma.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tlx.ir.module import UnparsedText
from tlx.ir.types import DOUBLE, FLOAT, HALF, I32, I64, PTR, VOID, PointerType, StructType, Type, VectorType
from tlx.ir.values import Keyword, OpaqueConstant, Value, const_int
from tlx.target.grid_unit import BlockShape, FragmentProduct
from tlx.target.instructions.dots import Sign
from tlx.target.instructions.functions import FloatEstimates

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.functions import Function
    from tlx.ir.module import Module

SHARED: Final = "tlx_shared"
_NODE: Final = re.compile(r"(?m)^!(\d+) = ")
_GLOBAL_SPACE: Final = 1
SHARED_SPACE: Final = 3
_FRAGMENTS: Final = 4
_WARP: Final = 32


@dataclass(frozen=True)
class NvidiaOperations:
    """See `tlx.target.grid_unit.GridOperations`."""

    def declare(self, module: Module) -> None:
        """Declare the dynamic shared memory."""
        text = f"\n\n@{SHARED} = external addrspace({SHARED_SPACE}) global [0 x i8], align 1024\n"
        if not any(isinstance(item, UnparsedText) and f"@{SHARED} =" in item.text for item in module.items):
            module.append(UnparsedText(text))
            module.global_names.taken.add(SHARED)

    def annotate(self, module: Module, sizes: Mapping[str, tuple[int, int]]) -> None:
        """Name the kernels in `!nvvm.annotations`, which every LLVM reads."""
        first = max((int(number) for number in _NODE.findall(module.raw_text())), default=-1) + 1
        facts = [
            (kernel, fact)
            for kernel, (threads, resident) in sizes.items()
            for fact in (("kernel", "i32 1"), ("maxntidx", f"i32 {threads}"), ("minctasm", f"i32 {resident}"))
        ]
        facts += [
            (function.name, ("grid_constant", f"!{{{', '.join(f'i32 {number}' for number in by_value)}}}"))
            for function in module.functions
            if (by_value := _passed_by_value(function))
        ]
        lines = [
            f'!{number} = !{{ptr @{kernel}, !"{name}", {value}}}'
            for number, (kernel, (name, value)) in enumerate(facts, first)
        ]
        nodes = ", ".join(f"!{first + k}" for k in range(len(facts)))
        module.append(UnparsedText("\n\n" + "\n".join([*lines, f"!nvvm.annotations = !{{{nodes}}}"]) + "\n"))

    def thread(self, b: Builder) -> Value:
        """%tid.x."""
        return b.call_named("llvm.nvvm.read.ptx.sreg.tid.x", I32, [], "thread").value

    def block(self, b: Builder) -> Value:
        """%ctaid.x."""
        return b.call_named("llvm.nvvm.read.ptx.sreg.ctaid.x", I32, [], "block").value

    def shared(self, b: Builder) -> Value:
        """The address of the dynamic shared memory, as a generic pointer, whose space LLVM infers."""
        pointer = OpaqueConstant(PointerType(None, SHARED_SPACE), f"@{SHARED}")
        return b.cast("addrspacecast", pointer, PointerType(None, 0), "shared")

    def barrier(self, b: Builder) -> None:
        """bar.sync 0."""
        b.call_named("llvm.nvvm.barrier0", VOID, [])

    def subgroup_barrier(self, b: Builder, size: int) -> None:
        """bar.warp.sync."""
        b.call_named("llvm.nvvm.bar.warp.sync", VOID, [self._members(b, size)])

    def shuffle(self, b: Builder, value: Value, lane: Value, size: int) -> Value:
        """shfl.sync.idx.b32."""
        segment = const_int(I32, (_WARP - size) << 8 | (_WARP - 1))
        arguments = [self._members(b, size), value, lane, segment]
        return b.call_named("llvm.nvvm.shfl.sync.idx.i32", I32, arguments, "shuffled").value

    def ballot(self, b: Builder, flag: Value, size: int) -> Value:
        """vote.sync.ballot.b32."""
        bits = b.call_named("llvm.nvvm.vote.ballot.sync", I32, [self._members(b, size), flag], "ballot").value
        if size == _WARP:
            return bits
        bits = b.binary("lshr", bits, self._first_lane(b, size))
        return b.binary("and", bits, const_int(I32, (1 << size) - 1))

    def _first_lane(self, b: Builder, size: int) -> Value:
        """The lane of the warp that is the subgroup's first one."""
        return b.binary("and", self.thread(b), const_int(I32, (_WARP - 1) & -size))

    def _members(self, b: Builder, size: int) -> Value:
        """The subgroup's lanes of the warp, as bits."""
        members = const_int(I32, (1 << size) - 1 if size < _WARP else -1)
        return members if size == _WARP else b.binary("shl", members, self._first_lane(b, size))

    def copy(self, b: Builder, to: Value, source: Value, valid: Value | None) -> None:
        """cp.async.cg.shared.global of 16 bytes, past L1."""
        args = [_in_space(b, to, SHARED_SPACE), _in_space(b, source, _GLOBAL_SPACE)]
        name = "llvm.nvvm.cp.async.cg.shared.global.16"
        b.call_named(f"{name}.s" if valid is not None else name, VOID, args if valid is None else [*args, valid])

    def commit(self, b: Builder) -> None:
        """cp.async.commit_group."""
        b.call_named("llvm.nvvm.cp.async.commit.group", VOID, [])

    def wait(self, b: Builder, pending: int) -> None:
        """cp.async.wait_group."""
        b.call_named("llvm.nvvm.cp.async.wait.group", VOID, [const_int(I32, pending)])

    def load_fragments(self, b: Builder, address: Value, *, transposed: bool) -> list[Value]:
        """ldmatrix.x4."""
        order = ".trans" if transposed else ""
        type_ = StructType((I32,) * _FRAGMENTS)
        name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{order}.b16.p{SHARED_SPACE}"
        loaded = b.call_named(name, type_, [_in_space(b, address, SHARED_SPACE)], "fragments").value
        return [extract(b, loaded, k, I32) for k in range(_FRAGMENTS)]

    def power_of_two(self, b: Builder, exponent: Value) -> Value:
        """ex2.approx.ftz.f32."""
        return b.call_named("llvm.nvvm.ex2.approx.ftz.f", FLOAT, [exponent], "power").value


def _passed_by_value(function: Function) -> list[int]:
    """The parameters whose memory is passed, counted from 1."""
    return [number for number, a in enumerate(function.arguments, 1) if a.attributes.startswith("byval")]


def _for_each(name: str) -> Callable[[Builder, Value], Value]:
    """An intrinsic of a float, of each element of a register."""

    def emit(b: Builder, x: Value) -> Value:
        assert isinstance(x.type, VectorType)
        result: Value = Keyword(x.type, "undef")
        for k in range(x.type.count):
            element = b.extract_element(x, k)
            result = b.insert_element(result, b.call_named(f"llvm.nvvm.{name}", FLOAT, [element], "estimate").value, k)
        return result

    return emit


ESTIMATES: Final = FloatEstimates(_for_each("ex2.approx.ftz.f"), _for_each("rcp.approx.ftz.f"), _for_each("saturate.f"))
"""ex2.approx.ftz.f32, rcp.approx.ftz.f32 and cvt.sat.f32.f32, which becomes part of the instruction before."""


def _in_space(b: Builder, pointer: Value, space: int) -> Value:
    return b.cast("addrspacecast", pointer, PointerType(None, space))


def extract(b: Builder, structure: Value, index: int, type_: Type) -> Value:
    """An element of a structure."""
    body = f"extractvalue {structure.typed}, {index}"
    return b.value("extractvalue", type_, [structure, const_int(I64, index)], body)


def assembly(b: Builder, text: str, constraints: str, type_: Type, operands: Sequence[Value]) -> Value:
    """Inline PTX, which returns a value of some type."""
    spelled = f'asm sideeffect "{text}", "{constraints}"'
    body = f"call {type_} {spelled}({', '.join(operand.typed for operand in operands)}) convergent"
    call = b.emit("call", type_, [OpaqueConstant(PTR, spelled), *operands], body)
    call.arg_attributes = ("",) * len(operands)
    return call.value if type_ != VOID else OpaqueConstant(VOID, "")


def _mma(
    name: str, register: Type, sums: Type, b: Builder, acc: Sequence[Value], lhs: Sequence[Value], rhs: Sequence[Value]
) -> list[Value]:
    """mma.sync of a shape and types, whose operands are passed as `register`s."""
    operands = [b.cast("bitcast", value, register) for value in (*lhs, *rhs)]
    type_ = StructType((sums,) * len(acc))
    product = b.call_named(f"llvm.nvvm.mma.{name}", type_, [*operands, *acc], "product").value
    return [extract(b, product, k, sums) for k in range(len(acc))]


_RATE: Final = 1024
"""Products of 16 bits in a cycle of a multiprocessor of sm_80, and by `mma.sync` of later ones."""
SIGNS: Final[tuple[Sign, ...]] = ("s", "u")
_SHAPES: Final = (
    BlockShape(128, 256, 32, 64, 64, 4),
    BlockShape(128, 128, 32, 64, 32, 4),
    BlockShape(128, 64, 32, 32, 32, 4),
    BlockShape(64, 64, 64, 32, 32, 4),
    BlockShape(32, 32, 64, 16, 16, 4),
)


_BYTES: Final = (
    BlockShape(128, 256, 64, 64, 64, 4),
    BlockShape(128, 128, 64, 64, 32, 4),
    BlockShape(128, 64, 64, 32, 32, 4),
    BlockShape(64, 64, 128, 32, 32, 4),
    BlockShape(32, 32, 128, 16, 16, 4),
)
_DOUBLES: Final = (
    BlockShape(128, 128, 16, 64, 32, 3),
    BlockShape(64, 64, 16, 32, 32, 4),
    BlockShape(32, 32, 16, 16, 16, 4),
)


def _floats(element: str, multiply: Callable[..., list[Value]]) -> FragmentProduct:
    """A product of 16-bit floats with sums in float."""
    return FragmentProduct((element, "f"), (element, "f"), "float", 16, 8, 16, _RATE, _SHAPES, multiply)


def _bytes(lhs: Sign, rhs: Sign) -> FragmentProduct:
    """A product of bytes."""
    types = f"{lhs}8" if lhs == rhs else f"{lhs}8.{rhs}8"
    multiply = partial(_mma, f"m16n8k32.row.col.{types}", I32, I32)
    return FragmentProduct(("i8", lhs), ("i8", rhs), "i32", 16, 8, 32, 2 * _RATE, _BYTES, multiply)


TF32: Final = FragmentProduct(
    ("float", "f"),
    ("float", "f"),
    "float",
    16,
    8,
    8,
    _RATE // 2,
    tuple(replace(shape, depth=shape.depth // 2) for shape in _SHAPES),
    partial(_mma, "m16n8k8.row.col.tf32", I32, FLOAT),
)
BF16: Final = _floats("bfloat", partial(_mma, "m16n8k16.row.col.bf16", I32, FLOAT))
F16: Final = _floats("half", partial(_mma, "m16n8k16.row.col.f32.f32", VectorType(2, HALF), FLOAT))
BYTES: Final = tuple(_bytes(lhs, rhs) for lhs in SIGNS for rhs in SIGNS)


def _double_pairs(b: Builder, acc: Sequence[Value], lhs: Sequence[Value], rhs: Sequence[Value]) -> list[Value]:
    """Two mma.sync m8n8k4 of doubles."""
    for x, y in zip(lhs, rhs, strict=True):
        acc = _mma("m8n8k4.row.col.f64", DOUBLE, DOUBLE, b, acc, [x], [y])
    return list(acc)


def _wide_doubles(b: Builder, acc: Sequence[Value], lhs: Sequence[Value], rhs: Sequence[Value]) -> list[Value]:
    """mma.sync m16n8k8 of doubles, of sm_90, for which LLVM 19 has no intrinsic."""
    sums, x, y = (_registers(first, len(part)) for first, part in ((0, acc), (4, lhs), (8, rhs)))
    text = f"mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {sums}, {x}, {y}, {sums};"
    constraints = [*["=d"] * 4, *["d"] * 6, *map(str, range(4))]
    product = assembly(b, text, ",".join(constraints), StructType((DOUBLE,) * 4), [*lhs, *rhs, *acc])
    return [extract(b, product, k, DOUBLE) for k in range(4)]


def _registers(first: int, count: int) -> str:
    return f"{{{', '.join(f'${first + k}' for k in range(count))}}}"


def _doubles(
    rows: int, rate: int, shapes: tuple[BlockShape, ...], multiply: Callable[..., list[Value]]
) -> FragmentProduct:
    return FragmentProduct(("double", "f"), ("double", "f"), "double", rows, 8, 8, rate, shapes, multiply)


F64: Final = _doubles(8, _RATE // 16, _DOUBLES, _double_pairs)
F64_WIDE: Final = _doubles(
    16, _RATE // 8, (BlockShape(128, 64, 16, 64, 32, 4, min_resident_blocks=2), *_DOUBLES[1:]), _wide_doubles
)
