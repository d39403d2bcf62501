"""Analysis of a function's tensors, and the canonical form that stock LLVM reads."""

import pytest

from tests.unit.ir.tensors.texts import DENSE, PROPOSAL, SQUARE, load
from tlx.diagnostics import ParseError, VerifyError
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.parser.module import parse, parse_fully
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.calls import canonicalise
from tlx.ir.tensors.inference import analyse, collect_errors, verify_tensors
from tlx.ir.tensors.model import FunctionTensors
from tlx.ir.types import FLOAT, I8, I32
from tlx.lower.pipeline import lower


def tensors(body: str, arguments: str = "ptr %p, ptr %q") -> FunctionTensors:
    module = parse(f"define void @f({arguments}) {{\n{body}\n  ret void\n}}\n")
    return analyse(module, module.functions[0])


def test_the_example_in_the_proposal_is_accepted() -> None:
    module = parse(PROPOSAL)
    actual = analyse(module, module.functions[0])
    assert [op.intrinsic.name for op in actual.ops] == ["transpose", "store", "store", "matmul", "smma"]
    transposed = TensorType(FLOAT, (3, 16, 5), (2, 0, 1), (1, 3, 2))
    assert actual.result_types() == {
        "output": transposed,
        "product": TensorType.dense(FLOAT, (3, 3)),
        "2": TensorType.dense(I32, (6, 6)),
    }
    assert actual.tokens["loaded"].type == TensorType.dense(FLOAT, (16, 6, 4))
    assert actual.tokens["loaded"].pitches == (0, 0, 8)
    assert [actual.tokens[name].kind for name in ("input", "loaded", "0", "1")] == ["value", "load", "pointer", "load"]
    assert actual.tokens["1"].type.element == I32
    assert [op.pitches for op in actual.ops[1:3]] == [(0, 12, 10)] * 2
    assert [str(op.pointer) for op in actual.ops[1:3]] == ["%to"] * 2


def test_ops_are_looked_up_by_call_and_tokens_by_value() -> None:
    actual = tensors(load("t") + "  %v = call <16 x float> @llvm.tensor.tovector(token %t)")
    (op,) = actual.ops
    assert actual.op_of(op.instruction) is op
    token = op.tensors[0]
    assert actual.op_of(token.definition) is None
    assert actual.token(op.instruction.args[0]) is token


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
    actual = tensors(body)
    assert " ".join(str(token.type.element) for token in actual.tokens.values()) == elements


def test_shapes_are_folded() -> None:
    body = f"""\
  %s0 = insertelement <2 x i32> poison, i32 3, i32 0
  %s = insertelement <2 x i32> %s0, i32 4, i32 1
  %t = call token @llvm.tensor.load(ptr elementtype(i8) %p, <2 x i32> %s, <2 x i32> <i32 1, i32 0>, {DENSE}, {DENSE})
"""
    assert tensors(body).tokens["t"].type == TensorType(I8, (3, 4), (1, 0), (0, 0))


def test_the_result_type_decides_about_padding() -> None:
    typeinfo = "  %t = call token @llvm.tensor.typeinfo(<16 x float> %v, <2 x i32> <i32 4, i32 4>, <2 x i32> <i32 0, "
    typeinfo += "i32 1>, <2 x i32> <i32 1, i32 0>)\n"
    square = load("u", "ptr elementtype(float) %p")
    for count, shape in ((12, (3, 4)), (16, (4, 4))):
        body = f"{typeinfo}{square}  %c = call <{count} x float> @llvm.tensor.matmul(token %t, token %u)"
        (op,) = tensors(body, "<16 x float> %v, ptr %p").ops
        assert op.result is not None
        assert op.result.shape == shape
        assert op.result.extents == (3, 4)


_STORE = "  call void @llvm.tensor.store(ptr %p, token %t, <2 x i32> zeroinitializer)\n"


def test_an_unused_load_may_have_any_type() -> None:
    module = parse(f"define void @f(ptr %p) {{\n{load('t')}  ret void\n}}\n")
    assert collect_errors(module) == []
    assert "llvm.tensor" not in str(lower(module, "generic"))


def test_generated_instructions_have_spans_of_their_own() -> None:
    module = parse(f"define void @f(ptr %p) {{\n{load('t')}{_STORE}  ret void\n}}\n")
    for instruction in module.functions[0].instructions():
        instruction.span = None
    with pytest.raises(VerifyError) as caught:
        verify_tensors(module)
    assert "<generated>:1:" in caught.value.render()


def test_collect_reports_one_error_per_function_and_every_malformed_call() -> None:
    wrong = f"{load('t')}{load('u')}  call void @llvm.tensor.nonsense()\n  call void @llvm.tensor.tovector()\n"
    bodies = wrong, load("t") + _STORE
    functions = [f"define void @f{k}(ptr %p) {{\n{body}  ret void\n}}\n" for k, body in enumerate(bodies)]
    module = parse("\n".join(functions))
    messages = [error.message for error in collect_errors(module)]
    assert messages[0].startswith("unknown intrinsic @llvm.tensor.nonsense")
    assert messages[1] == "tovector: expected operands (x), got 0 operands"
    assert messages[2].startswith("load: no user of the token determines")
    assert len(messages) == 3
    assert collect_errors(parse(PROPOSAL)) == []


def test_builder_makes_canonical_calls() -> None:
    module = parse_fully("define void @f(ptr %p) {\n  ret void\n}\n")
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
