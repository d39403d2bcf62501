"""Register allocation for AMX tiles: coalescing, running out of registers, and results."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.legalize.x86.tile_loop import DECLARED, POWER
from tlx.diagnostics import EvaluationError
from tlx.evaluate import evaluate
from tlx.ir.builder.blocks import ASM_MEMORY_BARRIER
from tlx.ir.parser.module import parse, parse_fully
from tlx.legalize.x86.tile_registers import number_tiles
from tlx.lower.memory.allocation import ALLOCATORS

_OTHER = "declare void @other()\n"


def _numbered(text: str) -> str:
    module = parse_fully(DECLARED + _OTHER + text)
    number_tiles(module)
    return str(module)


def test_sums_and_their_phi_share_a_register() -> None:
    text = _numbered(POWER)
    assert "x86_amx" not in text
    assert "call void @llvm.x86.tileloadd64(i8 0, ptr %a, i64 4)" in text
    assert "call void @llvm.x86.tdpbssd(i8 2, i8 0, i8 1)" in text
    assert "call void @llvm.x86.tilestored64(i8 2, ptr %c, i64 4)\n  call void @llvm.x86.tilerelease()" in text
    c = np.zeros(1, np.int32)
    evaluate(parse(text), "power", np.array([1, 2, 3, -4], np.int8), c, 5)
    assert c[0] == 5 * 30


def test_streaming_loads_are_loads() -> None:
    text = _numbered(POWER.replace("tileloadd64", "tileloaddt164"))
    assert "call void @llvm.x86.tileloaddt164(i8 1, ptr %a, i64 4)" in text
    c = np.zeros(1, np.int32)
    evaluate(parse(text), "power", np.array([1, 2, 3, -4], np.int8), c, 2)
    assert c[0] == 2 * 30


def test_equal_configurations_are_one_constant() -> None:
    text = _numbered(
        POWER + POWER.replace("@power", "@again") + POWER.replace("@power", "@deep").replace("i16 4", "i16 8")
    )
    assert text.count("private unnamed_addr constant") == 2
    assert text.count("call void @llvm.x86.ldtilecfg(ptr @tlx.amx.tiles)") == 2


@pytest.mark.parametrize("name", sorted(ALLOCATORS))
def test_heap_allocation_does_not_clobber_tiles(name: str) -> None:
    call, declaration = f"entry:\n  call void @{name}()\n", f"declare void @{name}()\n"
    assert "x86_amx" not in _numbered(declaration + POWER.replace("entry:\n", call))


def _loaded(count: int) -> str:
    """Some tiles that are alive together."""
    shape = "i16 16, i16 64"
    loads = [f"  %t{i} = call x86_amx @llvm.x86.tileloadd64.internal({shape}, ptr %a, i64 64)\n" for i in range(count)]
    stores = [
        f"  call void @llvm.x86.tilestored64.internal({shape}, ptr %c, i64 64, x86_amx %t{i})\n" for i in range(count)
    ]
    return f"define void @f(ptr %a, ptr %c) noinline {{\n{''.join(loads + stores)}  ret void\n}}\n"


@pytest.mark.parametrize(("count", "suffice"), [(8, True), (9, False)])
def test_tiles_stay_values_where_registers_do_not_suffice(count: int, *, suffice: bool) -> None:
    assert ("x86_amx" not in _numbered(_loaded(count))) is suffice


def test_a_register_has_one_shape() -> None:
    """One tile after the other, of nine shapes."""
    parts = "".join(
        f"  %t{i} = call x86_amx @llvm.x86.tilezero.internal(i16 {i}, i16 64)\n"
        f"  call void @llvm.x86.tilestored64.internal(i16 {i}, i16 64, ptr %c, i64 64, x86_amx %t{i})\n"
        for i in range(1, 10)
    )
    text = f"define void @f(ptr %c) noinline {{\n{parts}  ret void\n}}\n"
    assert "x86_amx" in _numbered(text)
    assert "x86_amx" not in _numbered(text.replace("i16 9", "i16 8"))


def test_sums_that_are_live_with_their_addends_stay_values() -> None:
    text = POWER.replace("x86_amx %next)\n  ret", "x86_amx %z)\n  ret")
    assert "x86_amx" in _numbered(text)


def test_tiles_that_become_vectors_stay_values() -> None:
    words = "  %v = bitcast x86_amx %next to <256 x i32>\n  store <256 x i32> %v, ptr %c\n"
    assert "x86_amx %next" in _numbered(POWER.replace("done:\n", f"done:\n{words}"))


@pytest.mark.parametrize(
    "callee",
    [
        "@other",
        "%a",
        'asm sideeffect "tilerelease", ""',
        "getelementptr (i8, ptr @other, i64 0)",
        "@llvm.x86.tilerelease",
    ],
)
def test_functions_that_call_others_stay_as_they_are(callee: str) -> None:
    assert "x86_amx" in _numbered(POWER.replace("done:\n", f"done:\n  call void {callee}()\n"))


@pytest.mark.parametrize("call", ['%v = call i32 asm "", "=r,0"(i32 1)', f"call void {ASM_MEMORY_BARRIER}(ptr %a)"])
def test_assembly_without_instructions_touches_no_tiles(call: str) -> None:
    """At `-O0`, LLVM's own allocation gives tiles of different shapes the same register and configuration."""
    assert "x86_amx" not in _numbered(POWER.replace("done:\n", f"done:\n  {call}\n"))


def test_functions_that_may_be_inlined_stay_as_they_are() -> None:
    """What they become a part of may keep tiles of LLVM's."""
    assert "x86_amx" in _numbered(POWER.replace(" noinline", ""))
    assert "x86_amx" not in _numbered(POWER.replace(" noinline", " #0") + "attributes #0 = { noinline nounwind }\n")


@pytest.mark.parametrize(
    "tiles", ["%acc, x86_amx %t, x86_amx %t", "%acc, x86_amx %acc, x86_amx %t", "undef, x86_amx %t, x86_amx %u"]
)
def test_products_of_fewer_than_three_tiles_stay_values(tiles: str) -> None:
    assert "x86_amx" in _numbered(POWER.replace("%acc, x86_amx %t, x86_amx %u", tiles))


def test_products_need_three_registers() -> None:
    broken = _numbered(POWER).replace("i8 2, i8 0, i8 1", "i8 2, i8 0, i8 0")
    with pytest.raises(EvaluationError, match="are not distinct"):
        evaluate(parse(broken), "power", np.zeros(64, np.int8), np.zeros(1, np.int32), 1)


@pytest.mark.parametrize(
    ("rows", "row_bytes", "message"),
    [(0, 0, "tile register 0 is not configured"), (17, 64, "tile of 17 rows of 64 bytes")],
)
def test_registers_have_the_shapes_that_they_are_configured_for(rows: int, row_bytes: int, message: str) -> None:
    configuration = bytes([1, *[0] * 15, row_bytes, *[0] * 31, rows, *[0] * 15])
    spelled = "".join(f"\\{byte:02X}" for byte in configuration)
    text = f"""\
declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tilezero(i8)
@shapes = constant [64 x i8] c"{spelled}"
define void @f() {{
  call void @llvm.x86.ldtilecfg(ptr @shapes)
  call void @llvm.x86.tilezero(i8 0)
  ret void
}}
"""
    with pytest.raises(EvaluationError, match=message):
        evaluate(parse(text), "f")


def test_products_need_matching_shapes() -> None:
    text = _numbered(POWER)
    head, shapes = text.split('c"\\01')
    assert shapes[45:48] == "\\04"
    broken = head + 'c"\\01' + shapes[:45] + "\\08" + shapes[48:]
    with pytest.raises(EvaluationError, match="do not fit"):
        evaluate(parse(broken), "power", np.zeros(64, np.int8), np.zeros(1, np.int32), 1)
