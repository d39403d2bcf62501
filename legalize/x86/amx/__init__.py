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
from typing import Final

from tlx.ir.builder.instructions import Builder, new_function
from tlx.ir.module import Module
from tlx.ir.transform.functions import add_constructor
from tlx.legalize.x86.amx.register_allocation import TILES, number_tiles
from tlx.legalize.x86.amx.tiles import ROW_BYTES, ROWS, TileEmitter, tile_shapes
from tlx.legalize.x86.avx512 import TARGET as AVX512
from tlx.legalize.x86.features import request_tiles
from tlx.target.hardware import Caches, Dot
from tlx.target.matrix_unit import MatrixEmulation, MatrixTiming, MatrixUnit, SplitCosts


def _finish(module: Module, *, emulate_matrix: bool, request_permission: bool) -> None:
    """Number tiles, and have the program ask Linux for their use before `main`. Emulated tiles stay values."""
    if not emulate_matrix:
        number_tiles(module)
    if not request_permission or not any("tileloadd" in d for d in module.declarations):
        return
    function = new_function(module, module.global_names.fresh("tlx.amx.permission"), [], "nounwind")
    b = Builder(module, function)
    request_tiles(b, "granted")
    b.ret()
    add_constructor(module, function.name)


_DOTS: Final = (
    Dot(("bfloat", "f"), ("bfloat", "f"), "float", 2, "amx-bf16"),
    Dot(("half", "f"), ("half", "f"), "float", 2, "amx-fp16"),
    *(Dot(("i8", lhs), ("i8", rhs), "i32", 4, "amx-int8") for lhs in ("s", "u") for rhs in ("s", "u")),
)

AMX_TIMING: Final = MatrixTiming(
    configuration=225,
    load=(10.0, 26.0, 34.0, 88.0),
    load_bypassing_l1=(22.0, 28.0),
    store=(10.0, 44.0, 60.0),
    crossing=1.3,
    packed_row=(2.5, 5.0, 12.0),
    transposed_row=(12.0, 20.0, 20.0),
    masked_row=2.0,
    epilogue_row=1,
    vectors_lead=(0.8, 0.6),
    copy_uses=4,
    few_steps=4,
    split=SplitCosts(cycles=0.5, lead=0.6, depth=1024),
    block_tile=25,
    block_packed=128,
    block_interleaved=16,
    block_crossing=20,
    block_scattered=6,
)
"""Measured on Sapphire Rapids, one core, in cycles: LDTILECFG 249; four loads and four products 65 from the first-level
cache, 88 to 98 from the second, 164 beyond 512 KB of 4 KB pages; a tile store 21 (48 across lines); a row packed 2.5 to
3 in the first-level cache. A loop configures once. The other figures are calibrated on the benchmark."""

TARGET: Final = replace(
    AVX512,
    name="amx",
    title="x86-64 with AMX (bfloat, int8) and AVX-512",
    features=(*AVX512.features, "+avx512vbmi", "+amx-tile", "+amx-bf16", "+amx-int8"),
    matrix=MatrixUnit(
        rows=ROWS,
        row_bytes=ROW_BYTES,
        tiles=TILES,
        grid=(2, 2),
        dots=_DOTS,
        timing=AMX_TIMING,
        operations=TileEmitter,
        tile_shapes=tile_shapes,
        emulation=MatrixEmulation(
            llvm_options=("-enable-x86-scalar-amx",),
            attributes=("optnone",),  # LLVM scalarises tile instructions in such functions only
            opt_level=0,  # LLVM 22 asserts over some emulated tiles that it optimises
        ),
        max_uses=2,  # LLVM 14 to 22 crash at -O0 over loaded tiles with more
    ),
    caches=Caches(l1=48 << 10, l2=2 << 20, l3=32 << 20),
    requires=(*AVX512.requires, "avx512_vbmi", "amx_tile", "amx_bf16", "amx_int8"),
    tiers=(),
    finish=_finish,
)
