"""`amx`: Intel AMX tiles for bfloat and 8-bit integers, for half with AMX-FP16, AVX-512 for everything else.

Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18: eight tiles of 16 rows x 64 bytes;
TDPBF16PS, TDPFP16PS and TDPB[SU][SU]D multiply 16x64 bytes of A with B in VNNI order:

    A 16 x K      B K/v x 16 x v (v = 2 bfloat or half, 4 bytes)      C 16 x 16 float or i32

Sums of float that are subnormal are zeros; TDPFP16PS takes subnormals of half for what they are, TDPBF16PS those of
bfloat for zeros.

A register tile is a 2x2 grid of C; a step of K loads two tiles of A and two of B and multiplies four times. Tiles are
values (`x86_amx`) until a function is complete, then registers with numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tlx.ir.builder.instructions import Builder, new_function
from tlx.ir.module import Module
from tlx.ir.transform.constructors import add_constructor
from tlx.ir.types import I64, PTR
from tlx.ir.values import Text, Value
from tlx.legalize.x86.amx.legalizer import AmxLegalizer
from tlx.legalize.x86.amx.tile_registers import number_tiles
from tlx.legalize.x86.amx.tiles import ROW_BYTES, ROWS
from tlx.legalize.x86.avx512 import TARGET as AVX512
from tlx.target.hardware import Caches, Dot, MatrixUnit

if TYPE_CHECKING:
    from tlx.ir.functions import Function
    from tlx.lower.context import LoweringContext

_GRID: Final = 2
_SYSCALL: Final = Text(
    PTR,
    'asm sideeffect "syscall", "={ax},{ax},{di},{si},~{rcx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}"',
)


def _no_register_form(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """Tile products have no vector form; the legaliser emits them itself."""
    del b, lhs, rhs
    return acc


def _legalize_kernel(module: Module, function: Function, context: LoweringContext) -> None:
    AmxLegalizer(module, function, context).run()


def _finish(module: Module, context: LoweringContext) -> None:
    """Number tiles, and have the program ask Linux for their use before `main`.

    That is `arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA)`. Emulated tiles stay values.
    """
    if not context.emulate_matrix:
        number_tiles(module)
    if not context.amx_permission or not any("tileloadd" in d for d in module.declarations):
        return
    function = new_function(module, module.global_names.fresh("tlx.amx.permission"), [], "nounwind")
    b = Builder(module, function)
    b.emit("call", I64, [_SYSCALL], f"call i64 {_SYSCALL}(i64 158, i64 4131, i64 18)", "granted")
    b.ret()
    add_constructor(module, function.name)


_DOTS: Final = (
    Dot(("bfloat", "f"), ("bfloat", "f"), "float", 2, "amx-bf16", _no_register_form),
    Dot(("half", "f"), ("half", "f"), "float", 2, "amx-fp16", _no_register_form),
    *(
        Dot(("i8", lhs), ("i8", rhs), "i32", 4, "amx-int8", _no_register_form)
        for lhs in ("s", "u")
        for rhs in ("s", "u")
    ),
)

TARGET: Final = replace(
    AVX512,
    name="amx",
    title="x86-64 with AMX (bfloat, int8) and AVX-512",
    features=(*AVX512.features, "+avx512vbmi", "+amx-tile", "+amx-bf16", "+amx-int8"),
    matrix=MatrixUnit(rows=ROWS, row_bytes=ROW_BYTES, tiles=8, grid=(_GRID, _GRID), dots=_DOTS),
    caches=Caches(l1=48 << 10, l2=2 << 20, l3=32 << 20),
    requires=(*AVX512.requires, "avx512_vbmi", "amx_tile", "amx_bf16", "amx_int8"),
    tiers=(),
    legalize_kernel=_legalize_kernel,
    finish=_finish,
)
