"""A program compiled with `-g` is lowered to the same code as without."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tlx.ir.instructions import Instruction
from tlx.ir.parser.module import parse
from tlx.lower.pipeline import lower

ROOT: Final = Path(__file__).parents[2]
PROGRAMS: Final = {
    "mlp": ROOT / "examples/ir/mlp.ll",
    "softmax": ROOT / "examples/ir/softmax.ll",
    "loop": ROOT / "tests/lit/versions/Inputs/loop.ll",
    "run-time sizes": ROOT / "tests/lit/lower/dynamic/memory.ll",
}
METADATA: Final = """
declare void @llvm.dbg.value(metadata, metadata, metadata)
!llvm.dbg.cu = !{!102}
!llvm.module.flags = !{!104}
!102 = distinct !DICompileUnit(language: DW_LANG_C11, file: !106, emissionKind: FullDebug)
!104 = !{i32 2, !"Debug Info Version", i32 3}
!105 = distinct !DISubprogram(name: "f", scope: !106, file: !106, line: 2, type: !107, unit: !102)
!106 = !DIFile(filename: "a.c", directory: "/")
!107 = !DISubroutineType(types: !{null})
!109 = !DILocalVariable(name: "a", scope: !105, file: !106, line: 3, type: !110)
!110 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!111 = !DILocation(line: 3, column: 1, scope: !105)
"""
RECORD: Final = "#dbg_value({}, !109, !DIExpression(), !111)"
INTRINSIC: Final = "call void @llvm.dbg.value(metadata {}, metadata !109, metadata !DIExpression()), !dbg !111"
DEBUG: Final = ("#dbg_", "call void @llvm.dbg.", "declare void @llvm.dbg.", "!", ";")


@pytest.mark.parametrize("debug", [RECORD, INTRINSIC], ids=["records", "intrinsics"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_is_no_use(program: str, debug: str) -> None:
    _check(PROGRAMS[program].read_text(), debug, "avx2")


@pytest.mark.parametrize("debug", [RECORD, INTRINSIC], ids=["records", "intrinsics"])
def test_is_no_use_on_a_gpu(debug: str) -> None:
    _check(PROGRAMS["mlp"].read_text(), debug, "nvidia")


def test_values_of_several_variables_at_once() -> None:
    text = PROGRAMS["mlp"].read_text()
    debug = (
        "call void @llvm.dbg.value(metadata !DIArgList({0}, {0}), metadata !109, metadata !DIExpression()), !dbg !111"
    )
    _check(text, debug, "avx2")


@pytest.mark.parametrize("debug", [RECORD, INTRINSIC], ids=["records", "intrinsics"])
def test_load_that_only_a_variable_uses(debug: str) -> None:
    operands = "<1 x i32> <i32 9>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> <i32 1>"
    text = f"""define void @f(ptr noalias %y, ptr %x) {{
  %unused = load <4 x float>, ptr %x
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, {operands})
  call void @llvm.tensor.store(ptr %y, token %t, <1 x i32> <i32 1>)
  ret void
}}
"""
    _check(text, debug, "avx2")
    assert "%unused" not in str(lower(parse(_with_debug(text, debug)), "avx2"))


def _check(text: str, debug: str, target: str) -> None:
    lowered = [str(lower(parse(program), target)) for program in (text, _with_debug(text, debug))]
    without, with_debug = map(_without_debug, lowered)
    assert with_debug == without


def _with_debug(text: str, debug: str) -> str:
    """A program in which every value, after its definition, is the value of a variable."""
    module = parse(text)
    for function in module.functions:
        for block in function.blocks:
            phis: list[Instruction] = []
            for instruction in block.instructions:
                if instruction.opcode == "phi":
                    phis.append(instruction)
                    continue
                records = [f"{debug.format(phi.value.typed)}\n  " for phi in phis]
                phis = []
                instruction.text = f"{''.join(records)}{instruction.text}"
                if instruction.result is not None and str(instruction.type) != "token":
                    instruction.text += f"\n  {debug.format(instruction.value.typed)}"
    return f"{module}{METADATA}"


def _without_debug(text: str) -> list[str]:
    """The lines of a program without debug information, comments and empty lines."""
    lines = (line.strip().removesuffix(", !dbg !111") for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(DEBUG)]
