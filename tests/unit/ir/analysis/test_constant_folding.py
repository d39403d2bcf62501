"""Folding of shape vectors: every spelling, every instruction that builds one, and what is not folded."""

import pytest

from tlx.ir.constant_folding import ConstantFolder
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.parser.module import parse_fully
from tlx.ir.values import Value

TEMPLATE = """\
@shape = private unnamed_addr constant <2 x i32> <i32 3, i32 4>, align 8
@array = internal constant [2 x i32] [i32 5, i32 6]
@variable = global <2 x i32> <i32 3, i32 4>
@weak = weak constant <2 x i32> <i32 3, i32 4>
@set_by_others = externally_initialized constant <2 x i32> <i32 3, i32 4>
define void @f(<2 x i32> %a, i32 %n) {{
{body}
  call void @use({type} {value})
  ret void
}}
"""


def last(body: str, value: str, type_: str = "<2 x i32>") -> tuple[Module, Function, Value]:
    module = parse_fully(TEMPLATE.format(body=body, type=type_, value=value))
    function = module.functions[0]
    call = next(i for i in function.instructions() if i.callee == "use")
    return module, function, call.args[0]


def ints(body: str, value: str = "%v", type_: str = "<2 x i32>") -> tuple[int, ...] | None:
    module, function, use = last(body, value, type_)
    return ConstantFolder(function, module).ints(use)


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("<i32 3, i32 -4>", (3, -4)),
        ("zeroinitializer", (0, 0)),
        ("splat (i32 7)", (7, 7)),
        ("undef", None),
        ("poison", None),
        ("<i32 3, i32 undef>", None),
        ("<i32 3, i32 4294967295>", (3, -1)),
        ("bitcast (i64 17179869187 to <2 x i32>)", (3, 4)),
        ("%a", None),
    ],
)
def test_constants(spelling: str, expected: tuple[int, ...] | None) -> None:
    assert ints("", spelling) == expected


@pytest.mark.parametrize(
    "body",
    [
        "%u = insertelement <2 x i32> poison, i32 3, i32 0\n%v = insertelement <2 x i32> %u, i32 4, i64 1",
        "%u = insertelement <2 x i32> %a, i32 3, i32 0\n%v = insertelement <2 x i32> %u, i32 4, i32 1",
        "%v = shufflevector <2 x i32> <i32 4, i32 9>, <2 x i32> <i32 3, i32 9>, <2 x i32> <i32 2, i32 0>",
        "%v = shufflevector <2 x i32> %a, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 2, i32 3>",
        "%v = bitcast <1 x i64> <i64 17179869187> to <2 x i32>",
        "%u = add i64 17179869184, 3\n%v = bitcast i64 %u to <2 x i32>",
        "%v = load <2 x i32>, ptr @shape",
        "%v = add <2 x i32> <i32 1, i32 2>, <i32 2, i32 2>",
        "%v = trunc <2 x i64> <i64 3, i64 4> to <2 x i32>",
        "%v = select i1 true, <2 x i32> <i32 3, i32 4>, <2 x i32> zeroinitializer",
        "%v = select <2 x i1> <i1 true, i1 false>, <2 x i32> <i32 3, i32 1>, <2 x i32> <i32 1, i32 4>",
        "%v = freeze <2 x i32> <i32 3, i32 4>",
        "%u = extractelement <1 x i32> <i32 3>, i32 0\n%v = insertelement <2 x i32> <i32 0, i32 4>, i32 %u, i32 0",
    ],
)
def test_instructions(body: str) -> None:
    assert ints(body) == (3, 4)


def test_loads_from_constant_globals_only() -> None:
    assert ints("%v = load <2 x i32>, ptr @array") == (5, 6)
    assert ints("%v = load <2 x i32>, <2 x i32>* bitcast ([2 x i32]* @array to <2 x i32>*)") == (5, 6)
    assert ints("%v = load <2 x i32>, ptr @variable") is None
    assert ints("%v = load <2 x i32>, ptr @weak") is None
    assert ints("%v = load <2 x i32>, ptr @set_by_others") is None
    assert ints("%v = load volatile <2 x i32>, ptr @shape") is None
    assert ints("%v = load <3 x i32>, ptr @shape", type_="<3 x i32>") is None


@pytest.mark.parametrize(
    "body",
    [
        "%v = insertelement <2 x i32> poison, i32 3, i32 0",
        "%v = insertelement <2 x i32> <i32 3, i32 4>, i32 4, i32 %n",
        "%v = insertelement <2 x i32> <i32 3, i32 4>, i32 4, i32 2",
        "%v = udiv <2 x i32> <i32 3, i32 4>, <i32 1, i32 0>",
        "%v = shl <2 x i32> <i32 3, i32 4>, <i32 1, i32 32>",
        "%v = add <2 x i32> %a, <i32 1, i32 1>",
        "%v = add <2 x i32> %v, <i32 1, i32 1>",
        "%v = call <2 x i32> @g()",
    ],
)
def test_values_that_are_not_folded(body: str) -> None:
    assert ints(body) is None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%v = mul i32 6, 7", 42),
        ("%u = trunc i32 255 to i8\n%v = sext i8 %u to i32", -1),
        ("%u = trunc i32 255 to i8\n%v = zext i8 %u to i32", 255),
        ("%v = ashr i32 -8, 1", -4),
        ("%v = lshr i32 -8, 28", 15),
        ("%v = add i32 2147483647, 1", -(1 << 31)),
        ("%v = urem i32 17, 5", 2),
        ("%v = add i32 %n, 1", None),
        ("%v = call i32 @llvm.umax.i32(i32 0, i32 1)", 1),
        ("%v = call i32 @llvm.umin.i32(i32 -1, i32 5)", 5),
        ("%v = call i32 @llvm.smax.i32(i32 -3, i32 -7)", -3),
        ("%v = call i32 @llvm.smin.i32(i32 4, i32 -7)", -7),
        ("%v = call i32 @llvm.smin.i32(i32 %n, i32 -7)", None),
    ],
)
def test_scalars(body: str, expected: int | None) -> None:
    module, function, value = last(body, "%v", "i32")
    assert ConstantFolder(function, module).integer(value) == expected


def test_long_chains_take_linear_time() -> None:
    steps = ["%v0 = add <2 x i32> <i32 0, i32 0>, <i32 0, i32 0>"]
    steps += [f"%v{k} = add <2 x i32> %v{k - 1}, %v{k - 1}" for k in range(1, 90)]
    assert ints("\n".join(steps), "%v89") == (0, 0)


def test_folder_answers_for_scalars_and_vectors_only() -> None:
    _, function, value = last("", "%a")
    folder = ConstantFolder(function)
    assert folder.integer(value) is None
    assert folder.ints(last("", "%n", "i32")[2]) is None
