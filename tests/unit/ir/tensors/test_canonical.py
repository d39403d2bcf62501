"""The canonical form of calls of tensor operations, as declarations and names."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.tools import require
from tests.unit.ir.tensors.texts import DENSE, PROPOSAL, SHAPE, SQUARE, load, opaque
from tlx.intrinsics import INTRINSICS, Intrinsic, lookup
from tlx.ir.parser.module import parse
from tlx.ir.tensors.calls import canonical_name, canonicalise
from tlx.ir.tensors.inference import analyse, collect_errors
from tlx.ir.types import FLOAT, I8, I32, PTR, TOKEN, VOID, PointerType, Type, VectorType
from tlx.llvm import verification


def canonical(text: str) -> str:
    module = parse(text)
    canonicalise(module)
    return str(module)


@pytest.mark.parametrize("text", [PROPOSAL, opaque(PROPOSAL)])
def test_canonical_form_is_accepted_by_llvm_and_stable(text: str) -> None:
    result = canonical(text)
    verification.check_text(result, "<canonical>")
    assert canonical(result) == result


@pytest.mark.parametrize(("tool", "is_typed"), [("opt-14", True), ("opt-19", True), ("opt-19", False)])
def test_canonical_form_is_accepted_by_other_llvms(tool: str, is_typed: bool, tmp_path: Path) -> None:
    path = require(tool)
    file = tmp_path / "module.ll"
    file.write_text(canonical(PROPOSAL if is_typed else opaque(PROPOSAL)))
    command = [path, "-passes=verify", "-S", str(file), "-o", "-"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True)
    assert printed.stderr == ""
    again = parse(printed.stdout)
    assert collect_errors(again) == []
    canonicalise(again)
    verification.check_text(str(again), "<canonical>")


def test_canonical_text() -> None:
    result = canonical(PROPOSAL)
    for line in (
        "  %output = call <240 x float> @llvm.tensor.transpose.v240f32.v3i32(token %input, <3 x i32> <i32 2, ",
        "  call void @llvm.tensor.store.p0f32.v3i32(float* %to, token %loaded, <3 x i32> <i32 0, i32 12, i32 10>)\n",
        "  tail call void @llvm.tensor.store.p0f32.v3i32(float* %to, token %loaded, <3 x i32> <i32 0, ",
        "i32 10>), !note !0\n",
        "  %product = call fast <9 x float> @llvm.tensor.matmul.v9f32(token %lhs, token %rhs)\n",
        "@llvm.tensor.typeinfo.p0v36i32.v2i32(<36 x i32>* byval(<36 x i32>) %p, ",
        "  %3 = call <36 x i32> @llvm.tensor.smma.v36i32(token %1, token %1, token %2)\n",
        "\ndeclare void @llvm.tensor.store.p0f32.v3i32(float*, token, <3 x i32>) argmemonly nounwind willreturn write",
    ):
        assert line in result
    assert "readnone" not in next(line for line in result.splitlines() if line.startswith("declare void"))
    assert result.count("declare void @llvm.tensor.store") == 1


def test_canonical_text_is_unchanged() -> None:
    text = f"""\
define void @f(ptr %p) {{
  %t = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %p,   {SQUARE},
     {DENSE})   ; as it was
  call void @llvm.tensor.store.p0.v2i32(ptr %p, token %t, {DENSE}), !dbg !0
  ret void
}}

declare token @llvm.tensor.load.p0.v2i32(ptr, <2 x i32>, <2 x i32>, <2 x i32>, <2 x i32>) #0
declare void @llvm.tensor.store.p0.v2i32(ptr, token, <2 x i32>) nounwind willreturn memory(argmem: write)

attributes #0 = {{ nounwind memory(argmem: read) }}
"""
    assert canonical(text) == text


def test_unused_and_wrong_declarations_go() -> None:
    text = f"""\
declare token @llvm.tensor.typeinfo(...)
declare token @llvm.tensor.load.p0.v2i32(ptr, i32)
declare void @other()

define void @f(ptr %p) {{
{load("t", "ptr elementtype(float) %p")}  ret void
}}
"""
    result = canonical(text)
    assert "(...)" not in result
    assert "(ptr, i32)" not in result
    assert "declare void @other()" in result
    verification.check_text(result, "<canonical>")


def test_element_types_in_names_become_attributes() -> None:
    body = load("t").replace("load(", "load.p0i16.v2i32(")
    result = canonical(f"define void @f(ptr %p) {{\n{body}  ret void\n}}\n")
    assert "@llvm.tensor.load.p0.v2i32(ptr elementtype(i16) %p, " in result


def test_old_byval_gets_its_type() -> None:
    body = f"  %t = call token @llvm.tensor.typeinfo(<12 x i8>* byval %p, {SHAPE})\n"
    result = canonical(f"define void @f(<12 x i8>* %p) {{\n{body}  ret void\n}}\n")
    assert "(<12 x i8>* byval(<12 x i8>) %p, " in result


ROW_TYPES: list[tuple[str, Type, list[Type], str]] = [
    ("typeinfo", TOKEN, [VectorType(240, FLOAT), *[VectorType(3, I32)] * 3], "typeinfo.v240f32.v3i32"),
    ("load", TOKEN, [PTR, *[VectorType(2, I32)] * 4], "load.p0.v2i32"),
    ("load", TOKEN, [PointerType(FLOAT), *[VectorType(2, I32)] * 4], "load.p0f32.v2i32"),
    ("store", VOID, [PTR, TOKEN, VectorType(2, I32)], "store.p0.v2i32"),
    ("matmul", VectorType(9, FLOAT), [TOKEN, TOKEN], "matmul.v9f32"),
    ("broadcast", VectorType(9, FLOAT), [TOKEN, FLOAT], "broadcast.v9f32.f32"),
    (
        "broadcast",
        VectorType(9, FLOAT),
        [TOKEN, VectorType(2, I32), VectorType(1, I32)],
        "broadcast.v9f32.v2i32.v1i32",
    ),
    ("exp2", VectorType(9, FLOAT), [TOKEN], "exp2.v9f32"),
    ("reduce.max", VectorType(9, FLOAT), [TOKEN, *[VectorType(2, I32)] * 2], "reduce.max.v9f32.v2i32"),
    ("contract", VectorType(9, FLOAT), [TOKEN, TOKEN, *[VectorType(1, I32)] * 2], "contract.v9f32.v1i32"),
    (
        "contract",
        VectorType(9, FLOAT),
        [TOKEN, TOKEN, *[VectorType(1, I32)] * 2, *[VectorType(2, I32)] * 2],
        "contract.v9f32.v1i32.v2i32",
    ),
    ("convolution", VectorType(9, FLOAT), [TOKEN, TOKEN], "convolution.v9f32"),
    (
        "convolution",
        VectorType(9, FLOAT),
        [TOKEN, TOKEN, VectorType(2, I32), VectorType(4, I32), VectorType(2, I32)],
        "convolution.v9f32.v2i32.v4i32.v2i32",
    ),
    ("pad", VectorType(9, FLOAT), [TOKEN, *[VectorType(2, I32)] * 2, FLOAT], "pad.v9f32.v2i32.f32"),
    (
        "pad",
        VectorType(9, FLOAT),
        [TOKEN, *[VectorType(2, I32)] * 2, FLOAT, VectorType(2, I32)],
        "pad.v9f32.v2i32.f32.v2i32",
    ),
    ("concat", VectorType(9, FLOAT), [TOKEN, I32], "concat.v9f32.1"),
    ("concat", VectorType(9, FLOAT), [TOKEN, TOKEN, TOKEN, I32], "concat.v9f32.3"),
    ("reshape.block", VectorType(9, I8), [TOKEN, *[VectorType(1, I32)] * 2], "reshape.block.v9i8.v1i32.v1i32"),
]


@pytest.mark.parametrize(("name", "result", "operands", "expected"), ROW_TYPES)
def test_canonical_names(name: str, result: Type, operands: list[Type], expected: str) -> None:
    row = lookup(f"llvm.tensor.{name}")
    assert row is not None
    assert canonical_name(row, result, operands) == f"llvm.tensor.{expected}"


def test_undeclarable_operands_are_refused() -> None:
    row = next(r for r in INTRINSICS if r.name == "tovector")
    with pytest.raises(ValueError, match="takes no operands of types float"):
        canonical_name(row, VectorType(4, FLOAT), [FLOAT])


@pytest.mark.parametrize("row", INTRINSICS, ids=lambda row: row.full_name)
def test_opt_does_not_change_the_tensors(row: Intrinsic, tmp_path: Path) -> None:
    """Every example goes through `opt -O2`; where it keeps an operation, it keeps the tensor's type."""
    path = require("opt-19")
    module = parse(keeping_results(row.example))
    before = {op.instruction.result: op.result for op in analyse(module, module.functions[0]).ops}
    canonicalise(module)
    file = tmp_path / "module.ll"
    file.write_text(str(module))
    optimised = subprocess.run([path, "-O2", "-S", str(file)], check=True, capture_output=True, text=True).stdout
    after = parse(optimised)
    results = {op.instruction.result: op.result for op in analyse(after, after.functions[0]).ops}
    assert results == before


def keeping_results(example: str) -> str:
    """A function around an example that stores every vector the example computes."""
    match = re.search(r"<\d+ x \w+> %v", example)
    vectors = re.findall(r"(%\w+) = call (<\d+ x \w+>)", example)
    stores = "\n".join(f"  store volatile {type_} {name}, ptr %q" for name, type_ in vectors)
    arguments = ", ".join([*([match.group()] if match else []), "ptr %p, ptr %q"])
    return f"define void @f({arguments}) {{\n{example}\n{stores}\n  ret void\n}}\n"
