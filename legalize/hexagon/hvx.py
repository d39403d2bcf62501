"""`hvx`: Hexagon with HVX in 128-byte mode: 32 registers of 128 bytes; floats from v68 on.

VRMPY adds four products of bytes of any signs to each i32. Floats are added and multiplied by the IEEE instructions of
v68 (VADD, VMPY of SF), which round as IEEE 754 says; there is no multiply-add of floats. With `+hvx-qfloat` in place of
`+hvx-ieee-fp` LLVM uses Qualcomm's floats, which are a little less accurate. Without both, and on v66, floats are
computed one by one.

Qualcomm Hexagon V68 HVX Programmer's Reference Manual, 80-N2040-47: VRMPY, VMPY, VADD. A packet starts two multiplies,
a load and a store.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tlx.ir.types import I32, VectorType
from tlx.legalize.hexagon import TRIPLES
from tlx.target.costs.core import CoreModel
from tlx.target.costs.memory import Caches
from tlx.target.instructions.compilers import LlvmBackend
from tlx.target.instructions.dots import Dot, with_swapped_operands
from tlx.target.machines import OptionalVectors, VectorLengths
from tlx.target.target import Target

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.values import Value

_FLOATS: Final = ("hvx-ieee-fp", "hvx-qfloat")
_WORDS: Final = VectorType(32, I32)


def _vrmpy(name: str, b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """VRMPY: products of four bytes added to each i32."""
    operands = [b.cast("bitcast", operand, _WORDS) for operand in (lhs, rhs)]
    return b.call_named(f"llvm.hexagon.V6.{name}.acc.128B", _WORDS, [acc, *operands], "acc").value


_vrmpybus: Final = partial(_vrmpy, "vrmpybusv")


TARGET: Final = Target(
    name="hvx",
    title="Hexagon with HVX of 128 bytes, v68",
    triples=TRIPLES,
    features=("+hvx-length128b", "+v68", "+hvxv68", "+hvx-ieee-fp"),
    vector_bytes=128,
    lengths=VectorLengths(features=(("hvx-length64b", 64), ("hvx-length128b", 128))),
    registers=32,
    optional_vectors=OptionalVectors("hvx", float_features={"float": _FLOATS, "half": _FLOATS, "bfloat": _FLOATS}),
    backend=LlvmBackend(
        keeps_selected_nan=False,  # LLVM's minimum and maximum lose it
        has_funnel_shifts=False,  # LLVM's shift by the whole amount, not modulo 64, and by 64 less zero
        has_vector_shuffles=False,  # LLVM fills a register with the lowest byte of the most frequent word
        whole_register_bytes=(64,),
    ),
    dots=(
        Dot(("i8", "u"), ("i8", "s"), "i32", 4, "hvx-length128b", _vrmpybus),
        Dot(("i8", "s"), ("i8", "u"), "i32", 4, "hvx-length128b", with_swapped_operands(_vrmpybus)),
        Dot(("i8", "s"), ("i8", "s"), "i32", 4, "hvx-length128b", partial(_vrmpy, "vrmpybv")),
        Dot(("i8", "u"), ("i8", "u"), "i32", 4, "hvx-length128b", partial(_vrmpy, "vrmpyubv")),
    ),
    caches=Caches(l1=32 << 10, l2=1 << 20, l3=1 << 20, line_bytes=128),
    core=CoreModel(fmas_per_cycle=1, loads_per_cycle=1, fma_latency=4, issue_width=4),
    requires=("hvx-length128b",),
)
