"""Analysis of a function's tensors, and the canonical form that stock LLVM reads."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.tools import require
from tlx import judge
from tlx.diagnostics import ParseError, VerifyError
from tlx.intrinsics import INTRINSICS, Intrinsic, lookup
from tlx.ir.analysis import analyse
from tlx.ir.canonical import canonical_name, canonicalise, declare
from tlx.ir.reader import parse
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import FunctionTensors
from tlx.ir.types import FLOAT, I8, I32, PTR, TOKEN, VOID, PointerType, Type, VectorType
from tlx.ir.verifier import collect, verify_tensors
from tlx.types import TensorType

SHAPE = "<2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
SQUARE = "<2 x i32> <i32 4, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
DENSE = "<2 x i32> zeroinitializer"

PROPOSAL = """\
define <9 x float> @f(<240 x float> %tensor, <12 x float> %a, <12 x float> %b, i8* %from, float* %to, <36 x i32>* %p) {
  %input = call token @llvm.tensor.typeinfo(<240 x float> %tensor,
    <3 x i32> <i32 16, i32 5, i32 3>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 3, i32 2, i32 1>)
  %output = call <240 x float> @llvm.tensor.transpose(token %input, <3 x i32> <i32 2, i32 0, i32 1>)
  %loaded = call token @llvm.tensor.load(i8* %from, <3 x i32> <i32 16, i32 6, i32 4>,
    <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> <i32 0, i32 0, i32 8>)
  call void @llvm.tensor.store(float* %to, token %loaded, <3 x i32> <i32 0, i32 12, i32 10>) #0
  tail call void @llvm.tensor.store(float* %to, <3 x i32> <i32 0, i32 12, i32 10>, token %loaded), !note !0
  %lhs = call token @llvm.tensor.typeinfo(<12 x float> %a, <2 x i32> <i32 3, i32 4>,
    <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %rhs = call token @llvm.tensor.typeinfo(<12 x float> %b, <2 x i32> <i32 4, i32 3>,
    <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %product = call fast <9 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %0 = call token @llvm.tensor.typeinfo(<36 x i32>* byval(<36 x i32>) %p, <2 x i32> <i32 6, i32 6>,
    <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %1 = call token @llvm.tensor.load.p0i8.v2i32.v2i32.v2i32.v2i32(i8* %from, <2 x i32> <i32 6, i32 6>,
    <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %2 = call <36 x i32> @llvm.tensor.mma(token %0, token %0, token %1)
  ret <9 x float> %product
}

declare void @llvm.tensor.store(float*, token, <3 x i32>) readnone

attributes #0 = { readnone }

!0 = !{}
"""


def opaque(text: str) -> str:
    text = text.replace("store(float* %to", "store(ptr elementtype(float) %to")
    for typed in ("<36 x i32>*", "i8*", "float*"):
        text = text.replace(typed, "ptr")
    return text


def tensors(body: str, arguments: str = "ptr %p, ptr %q") -> FunctionTensors:
    module = parse(f"define void @f({arguments}) {{\n{body}\n  ret void\n}}\n")
    return analyse(module, module.functions[0])


def load(name: str, pointer: str = "ptr %p", shape: str = SQUARE) -> str:
    return f"  %{name} = call token @llvm.tensor.load({pointer}, {shape}, {DENSE})\n"


# Analysis ----------------------------------------------------------------------------------------------------------


def test_the_proposal_is_understood() -> None:
    module = parse(PROPOSAL)
    found = analyse(module, module.functions[0])
    assert [op.intrinsic.name for op in found.ops] == ["transpose", "store", "store", "matmul", "smma"]
    transposed = TensorType(FLOAT, (3, 16, 5), (2, 0, 1), (1, 3, 2))
    assert found.result_types() == {
        "output": transposed,
        "product": TensorType.dense(FLOAT, (3, 3)),
        "2": TensorType.dense(I32, (6, 6)),
    }
    assert found.tokens["loaded"].type == TensorType.dense(FLOAT, (16, 6, 4))
    assert found.tokens["loaded"].pitches == (0, 0, 8)
    assert [found.tokens[name].kind for name in ("input", "loaded", "0", "1")] == ["value", "load", "pointer", "load"]
    assert found.tokens["1"].type.element == I32
    assert [op.pitches for op in found.ops[1:3]] == [(0, 12, 10)] * 2
    assert [str(op.pointer) for op in found.ops[1:3]] == ["%to"] * 2


def test_ops_are_found_by_call_and_tokens_by_value() -> None:
    found = tensors(load("t") + "  %v = call <16 x float> @llvm.tensor.tovector(token %t)")
    (op,) = found.ops
    assert found.op_of(op.instruction) is op
    token = op.tensors[0]
    assert found.op_of(token.definition) is None
    assert found.token(op.instruction.args[0]) is token


def test_tokens_may_be_defined_further_down_in_the_text() -> None:
    text = f"""\
define void @f(ptr %p) {{
  br label %first
second:
  %v = call <16 x float> @llvm.tensor.tovector(token %t)
  ret void
first:
  %t = call token @llvm.tensor.load(ptr %p, {SQUARE}, {DENSE})
  br label %second
}}
"""
    module = parse(text)
    assert analyse(module, module.functions[0]).tokens["t"].type.element == FLOAT


@pytest.mark.parametrize(
    ("body", "elements"),
    [
        (load("a") + load("b") + "  %c = call <16 x i32> @llvm.tensor.matmul(token %a, token %b)", "i32 i32"),
        (
            load("a")
            + load("b", "ptr elementtype(i8) %q")
            + "  %c = call <16 x i32> @llvm.tensor.matmul(token %a, token %b)",
            "i8 i8",
        ),
        (load("a", "float* %p") + load("b", "i8* %q") + "  call void @llvm.tensor.store(float* %p, token %b, "
         f"{DENSE})", "float float"),
        (
            load("a")
            + load("b", "ptr elementtype(i8) %q")
            + load("c")
            + "  %d = call <16 x i32> @llvm.tensor.umma(token %c, token %a, token %b)",
            "i8 i8 i32",
        ),
        (
            load("a")
            + load("b", "ptr elementtype(i8) %q")
            + "  %c = call <4 x i32> @llvm.tensor.contract(token %a, token %b, <1 x i32> zeroinitializer, "
            + "<1 x i32> zeroinitializer, <1 x i32> <i32 1>, <1 x i32> <i32 1>)",
            "i8 i8",
        ),
        (load("a") + load("b") + "  %c = call <32 x half> @llvm.tensor.concat(token %a, token %b, i32 0)", "half half"),
        (load("a") + "  call void @llvm.tensor.store(ptr elementtype(half) %q, token %a, " + DENSE + ")", "half"),
        (load("a", "[16 x i16]* %p"), "i16"),
        (load("a").replace("load(", "load.p0bf16.v2i32("), "bfloat"),
        (
            load("a")
            + load("b")
            + "  %c = call <16 x float> @llvm.tensor.matmul(token %a, token %b)\n"
            + "  %d = call <16 x bfloat> @llvm.tensor.tovector(token %b)",
            "bfloat bfloat",
        ),
    ],
)  # fmt: skip
def test_element_types_of_loads(body: str, elements: str) -> None:
    found = tensors(body)
    assert " ".join(str(token.type.element) for token in found.tokens.values()) == elements


def test_shapes_are_folded() -> None:
    body = f"""\
  %s0 = insertelement <2 x i32> poison, i32 3, i32 0
  %s = insertelement <2 x i32> %s0, i32 4, i32 1
  %t = call token @llvm.tensor.load(ptr elementtype(i8) %p, <2 x i32> %s, <2 x i32> <i32 1, i32 0>, {DENSE}, {DENSE})
"""
    assert tensors(body).tokens["t"].type == TensorType(I8, (3, 4), (1, 0), (0, 0))


def test_result_type_tells_which_padding_is_kept() -> None:
    typeinfo = "  %t = call token @llvm.tensor.typeinfo(<16 x float> %v, <2 x i32> <i32 4, i32 4>, <2 x i32> <i32 0, "
    typeinfo += "i32 1>, <2 x i32> <i32 1, i32 0>)\n"
    square = load("u", "ptr elementtype(float) %p")
    for count, shape in ((12, (3, 4)), (16, (4, 4))):
        body = f"{typeinfo}{square}  %c = call <{count} x float> @llvm.tensor.matmul(token %t, token %u)"
        (op,) = tensors(body, "<16 x float> %v, ptr %p").ops
        assert op.result is not None
        assert op.result.shape == shape
        assert op.result.extents == (3, 4)


def test_generated_instructions_have_spans_of_their_own() -> None:
    module = parse(f"define void @f(ptr %p) {{\n{load('t')}  ret void\n}}\n")
    for instruction in module.functions[0].instructions():
        instruction.span = None
    with pytest.raises(VerifyError) as caught:
        verify_tensors(module)
    assert "<generated>:1:" in caught.value.render()


def test_collect_finds_one_error_a_function_and_every_malformed_call() -> None:
    wrong = f"{load('t')}{load('u')}  call void @llvm.tensor.nonsense()\n  call void @llvm.tensor.tovector()\n"
    functions = [f"define void @f{k}(ptr %p) {{\n{body}  ret void\n}}\n" for k, body in enumerate((wrong, load("t")))]
    module = parse("\n".join(functions))
    messages = [error.message for error in collect(module)]
    assert messages[0].startswith("unknown intrinsic @llvm.tensor.nonsense")
    assert messages[1] == "tovector: expected operands (x), got 0 operands"
    assert messages[2].startswith("load: no user of the token tells")
    assert len(messages) == 3
    assert collect(parse(PROPOSAL)) == []


# Canonical form ----------------------------------------------------------------------------------------------------


def canonical(text: str) -> str:
    module = parse(text)
    canonicalise(module)
    return str(module)


@pytest.mark.parametrize("text", [PROPOSAL, opaque(PROPOSAL)])
def test_canonical_form_is_accepted_by_llvm_and_stable(text: str) -> None:
    result = canonical(text)
    judge.check(result, "<canonical>")
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
    assert collect(again) == []
    canonicalise(again)
    judge.check(str(again), "<canonical>")


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


def test_what_is_canonical_stays_byte_for_byte() -> None:
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
    judge.check(result, "<canonical>")


def test_names_that_tell_element_types_leave_them_as_attributes() -> None:
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


def test_declaring_twice_declares_once() -> None:
    module = parse("define void @f() {\n  ret void\n}\n")
    row = next(r for r in INTRINSICS if r.name == "tovector")
    first = declare(module, row, VectorType(4, FLOAT), [TOKEN])
    assert declare(module, row, VectorType(4, FLOAT), [TOKEN]) is first
    assert str(module).count("declare") == 1


def test_undeclarable_operands_are_refused() -> None:
    module = parse("")
    row = next(r for r in INTRINSICS if r.name == "tovector")
    with pytest.raises(ValueError, match="takes no operands of types float"):
        declare(module, row, VectorType(4, FLOAT), [FLOAT])


@pytest.mark.parametrize("row", INTRINSICS, ids=lambda row: row.full_name)
def test_what_stock_optimisers_leave_means_the_same(row: Intrinsic, tmp_path: Path) -> None:
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
    found = re.search(r"<\d+ x \w+> %v", example)
    vectors = re.findall(r"(%\w+) = call (<\d+ x \w+>)", example)
    stores = "\n".join(f"  store volatile {type_} {name}, ptr %q" for name, type_ in vectors)
    arguments = ", ".join([*([found.group()] if found else []), "ptr %p, ptr %q"])
    return f"define void @f({arguments}) {{\n{example}\n{stores}\n  ret void\n}}\n"


def test_builder_makes_canonical_calls() -> None:
    module = parse("define void @f(ptr %p) {\n  ret void\n}\n", wanted=lambda _: True)
    function = module.functions[0]
    builder = TensorBuilder(module, function, function.entry, 0)
    type_ = TensorType.dense(FLOAT, (4, 4))
    token = builder.tensor_load(function.arguments[0].value, type_)
    product = builder.matmul(token, token, type_)
    blocked = builder.reshape_block(builder.typeinfo(product, type_), (1,), (2,), TensorType.dense(FLOAT, (4, 2, 2)))
    rows = TensorType.dense(FLOAT, (2, 4, 4))
    builder.broadcast(builder.typeinfo(blocked, type_), rows.shape, (1, 2), rows)
    builder.tensor_store(function.arguments[0].value, token)
    text = str(module)
    canonicalise(module)
    assert str(module) == text
    verify_tensors(module)


def test_a_call_without_a_result_type_is_an_error() -> None:
    with pytest.raises(ParseError, match="expected a type, found 'undef'"):
        parse("define void @f() {\n  call undef @llvm.tensor.store()\n  ret void\n}\n")
