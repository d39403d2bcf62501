"""Machine code for Hexagon's vectors under QEMU computes what its programs mean.

QEMU has none of HVX's float instructions: without them, functions with floats are compiled without vectors. The start
code runs the threads of a team in turns.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.semantics.machines import programs
from tests.support.emulation import Machine
from tests.support.tools import quick
from tlx.evaluate import evaluate
from tlx.ir.parser.module import parse
from tlx.lower.pipeline import lower_text

WITHOUT_FLOATS = ("-hvx-ieee-fp", "-hvxv68", "-v68", "+hvxv66", "+hvx-length128b")
HVX = Machine("hvx", "qemu-hexagon -cpu v67", WITHOUT_FLOATS)
NAMES = {"smma": "vrmpybv", "umma": "vrmpyubv", "usmma": "vrmpybusv", "summa": "vrmpybusv"}


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("shape", quick([(33, 42, 70), (61, 59, 67), (40, 80, 64), (1, 3, 5)], 2), ids=str)
def test_products_of_bytes(kind: str, shape: tuple[int, int, int]) -> None:
    text = programs.fused_product_text(kind, shape)
    found, *operands = programs.fused_product_arguments(kind, shape)
    exact = found.copy()
    code = HVX.compile(text)
    code.entry(found, *operands)
    evaluate(parse(text), "_".join([kind, *map(str, shape)]), exact, *operands)
    np.testing.assert_array_equal(found, exact)
    assert f"@llvm.hexagon.V6.{NAMES[kind]}.acc.128B(" in code.lowered
    code.close()


@pytest.mark.parametrize("kind", quick(["float", "half", "bfloat", "double"]))
def test_products_of_floats(kind: str) -> None:
    programs.check_products(HVX, kinds=(kind,)).close()


def test_layers() -> None:
    """Without vectors, LLVM compiles in seconds what takes it minutes on registers that hold no floats."""
    programs.check_layers(HVX)


def test_threads() -> None:
    code = programs.check_products(HVX, kinds=("usmma",), shapes=[(33, 42, 70)], threads=True)
    assert "GOMP_parallel" in code.lowered
    code.close()


@pytest.mark.long
def test_tensor_language() -> None:
    programs.check_attention(HVX)


LOADS = """
define void @f(ptr %x, ptr noalias %to) {
  %t = call token @llvm.tensor.load(ptr elementtype(i8) %x, <2 x i32> <i32 17, i32 211>, ORDER, ZERO, ZERO)
  call void @llvm.tensor.store(ptr elementtype(i8) %to, token %t, <2 x i32> <i32 0, i32 214>)
  ret void
}
""".replace("ORDER", "<2 x i32> <i32 0, i32 1>").replace("ZERO", "<2 x i32> zeroinitializer")


@pytest.mark.parametrize("offset", [0, 59])
def test_unaligned_rows_end_before_an_inaccessible_page(offset: int) -> None:
    """LLVM's pass for unaligned vectors would read aligned ones beyond the last row."""
    code = HVX.compile(LOADS)
    x = np.arange(offset + 17 * 211, dtype=np.uint64).astype(np.int8)
    found = np.zeros(17 * 214, np.int8)
    code.entry.call_guarded([x[offset:], found], "after")
    np.testing.assert_array_equal(found.reshape(17, 214)[:, :211], x[offset:].reshape(17, 211))
    code.close()


EXCLUDED = ("matmul_i8_i8_i32_cc",)
"""LLVM takes minutes for transposes of bytes in vectors that do not fill a register."""


@pytest.mark.parametrize("name", quick([name for name in programs.PROGRAMS if name not in EXCLUDED][::3]))
def test_run_time_sizes(name: str) -> None:
    programs.check_dynamic(HVX, [name])


def test_only_functions_without_floats_have_vectors() -> None:
    """With the instructions of v68, vectors hold floats, but no double; without, they hold none."""
    text = "".join(programs.fused_product_text(kind, (16, 24, 32)) for kind in ("usmma", "float", "double"))

    def functions_with_vectors(features: tuple[str, ...]) -> set[str]:
        lowered = lower_text(text, target="hvx", options=replace(HVX.options, features=features))
        kernels = re.findall(r"@tlx\.(\S*?)\(.*\+hvx-length128b", lowered)
        return {element for kernel in kernels for element in ("i8", "f32", "f64") if f".{element}" in kernel}

    assert functions_with_vectors(WITHOUT_FLOATS) == {"i8"}
    assert functions_with_vectors(()) == {"i8", "f32"}


UNARY = """
define void @{name}_{type}(ptr noalias %x, ptr noalias %y) {{
  %t = call token @llvm.tensor.load(ptr elementtype({type}) %x, <1 x i32> <i32 24>, <1 x i32> zeroinitializer,
      <1 x i32> zeroinitializer, <1 x i32> <i32 24>)
  %r = call <24 x {type}> @llvm.tensor.{name}(token %t)
  store <24 x {type}> %r, ptr %y, align 4
  ret void
}}
"""
CALLS = """
define void @{name}_{type}(ptr noalias %x, ptr noalias %y) {{
  %v = load <24 x {type}>, ptr %x, align 4
  %r = call <24 x {type}> @llvm.{name}.v24{mangled}(<24 x {type}> %v{more})
  store <24 x {type}> %r, ptr %y, align 4
  ret void
}}
declare <24 x {type}> @llvm.{name}.v24{mangled}(<24 x {type}>{arguments})
"""
MORE = {"pow": 1, "fma": 2}
"""Operands after the first one; all are the same."""
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-310, -3e300, 1e22, 710.5, -745.0, 1.5, -2.5, 0.1)


def _function(template: str, name: str, type_: str) -> str:
    mangled, more = {"half": "f16", "float": "f32", "double": "f64"}[type_], MORE.get(name, 0)
    operands = {"more": f", <24 x {type_}> %v" * more, "arguments": f", <24 x {type_}>" * more}
    return template.format(name=name, type=type_, mangled=mangled, **operands)


def _check_functions(
    template: str, names: tuple[str, ...], opt_level: int, types: tuple[str, ...] = ("float", "double")
) -> None:
    """Functions of special and random numbers, to two units in the last place of what they mean."""
    text = "".join(_function(template, name, type_) for name in names for type_ in types)
    code, module = HVX.compile(text, opt_level=opt_level), parse(text)
    random = np.random.default_rng(3)
    numbers = np.concatenate([SPECIAL, random.normal(size=10) * 3])
    for type_ in types:
        with np.errstate(over="ignore"):
            x = numbers.astype(programs.DTYPES[type_])
        for name in names:
            found, exact = np.zeros_like(x), np.zeros_like(x)
            code[f"{name}_{type_}"](x, found)
            evaluate(module, f"{name}_{type_}", x, exact)
            bound = 2 * float(np.finfo(x.dtype).eps)
            np.testing.assert_allclose(found, exact, rtol=bound, atol=0, err_msg=f"{name} of {type_}")
    code.close()


@pytest.mark.parametrize("opt_level", quick([2, 0]))
def test_library_functions(opt_level: int) -> None:
    """What LLVM leaves to a C library, which the start code brings."""
    roundings = ("floor", "ceil", "trunc", "rint", "round", "roundeven")
    functions = ("exp", "exp2", "log", "log2", "log10", "sin", "cos", "tanh", "pow", "fma", "sqrt")
    _check_functions(CALLS, (*roundings, *functions), opt_level)


@pytest.mark.parametrize("opt_level", quick([2, 0]))
def test_nan_in_kernels(opt_level: int) -> None:
    """LLVM turns a select of the lesser number into a minimum that is never NaN."""
    _check_functions(UNARY, ("relu", "tanh"), opt_level)


BOUNDED = """
define void @{name}_{type}(ptr %x, ptr %y) {{
  %t = call token @llvm.tensor.load(ptr elementtype({type}) %x, <1 x i32> <i32 24>, <1 x i32> zeroinitializer,
      <1 x i32> zeroinitializer, <1 x i32> <i32 24>)
  %v = call <24 x {type}> @llvm.tensor.tovector(token %t)
  %r = call <24 x {type}> @llvm.{name}.v24{mangled}(<24 x {type}> %v, <24 x {type}> zeroinitializer)
  store <24 x {type}> %r, ptr %y, align 4
  ret void
}}
declare <24 x {type}> @llvm.{name}.v24{mangled}(<24 x {type}>, <24 x {type}>)
"""


def test_nan_of_bounded_vectors() -> None:
    """The same select, of a number and a constant, is right if NaN is selected by itself."""
    _check_functions(BOUNDED, ("minimum", "maximum"), 2, ("half", "float", "double"))


HALF_REGISTER = """
define void @sum(ptr %x, ptr %y) {
  %t = call token @llvm.tensor.load(ptr elementtype(i16) %x, <2 x i32> <i32 3, i32 32>, FLAT)
  %v = call <96 x i16> @llvm.tensor.tovector(token %t)
  %s = add <96 x i16> %v, %v
  %u = call token @llvm.tensor.typeinfo(<96 x i16> %s, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, ZERO)
  call void @llvm.tensor.store(ptr %y, token %u, <2 x i32> <i32 0, i32 40>)
  ret void
}
""".replace("FLAT", "<2 x i32> <i32 0, i32 1>, ZERO, <2 x i32> <i32 0, i32 40>").replace(
    "ZERO", "<2 x i32> zeroinitializer"
)


def test_accesses_do_not_pass_the_end_of_arrays() -> None:
    """LLVM accesses a whole register for a vector that fills half of one."""
    x, y = np.arange(112, dtype=np.int16), np.zeros(112, np.int16)
    code = HVX.compile(HALF_REGISTER)
    code.sum.call_guarded([x, y], "after")
    for row in (0, 40, 80):
        np.testing.assert_array_equal(y[row : row + 32], 2 * x[row : row + 32])
    code.close()


OWN_VECTORS = """
define void @whole(ptr %x, ptr %y) {
  %v = load <64 x i8>, ptr %x, align 1
  %s = sub <64 x i8> zeroinitializer, %v
  store <64 x i8> %s, ptr %y, align 1
  %t = call token @llvm.tensor.load(ptr elementtype(i8) %x, <1 x i32> <i32 1>, FLAT, <1 x i32> <i32 1>)
  call void @llvm.tensor.store(ptr elementtype(i8) %y, token %t, <1 x i32> <i32 0>)
  ret void
}
define void @sized(ptr %x, ptr %y, i32 %n) {
  %shape = insertelement <1 x i32> zeroinitializer, i32 %n, i32 0
  %t = call token @llvm.tensor.load(ptr elementtype(i8) %x, <1 x i32> %shape, FLAT, <1 x i32> %shape)
  %v = call <vscale x 1 x i8> @llvm.tensor.tovector(token %t)
  %s = add <vscale x 1 x i8> %v, %v
  %u = call token @llvm.tensor.typeinfo(<vscale x 1 x i8> %s, <1 x i32> %shape, FLAT)
  call void @llvm.tensor.store(ptr elementtype(i8) %y, token %u, <1 x i32> %shape)
  ret void
}
""".replace("FLAT", "<1 x i32> zeroinitializer, <1 x i32> zeroinitializer")


def test_whole_vectors_do_not_pass_the_end_of_arrays() -> None:
    """Loads and stores of 64 bytes that are the program's own, or in loops of run-time length."""
    x, y = np.arange(64, dtype=np.int8), np.zeros(64, np.int8)
    code = HVX.compile(OWN_VECTORS)
    code.whole.call_guarded([x, y], "after")
    np.testing.assert_array_equal(y[1:], -x[1:])
    code.sized.call_guarded([x, y, 64], "after")
    np.testing.assert_array_equal(y, 2 * x)
    code.close()


FUNNEL = """
define void @{name}_{type}(ptr %x, ptr %y) {{
  %n = getelementptr {type}, ptr %x, i32 24
  %t = call token @llvm.tensor.load(ptr elementtype({type}) %x, <1 x i32> <i32 24>, FLAT)
  %u = call token @llvm.tensor.load(ptr elementtype({type}) %n, <1 x i32> <i32 24>, FLAT)
  %v = call <24 x {type}> @llvm.tensor.tovector(token %t)
  %w = call <24 x {type}> @llvm.tensor.tovector(token %u)
  %r = call <24 x {type}> @llvm.{name}.v24{type}(<24 x {type}> %v, <24 x {type}> %v, <24 x {type}> %w)
  store <24 x {type}> %r, ptr %y, align 4
  ret void
}}
declare <24 x {type}> @llvm.{name}.v24{type}(<24 x {type}>, <24 x {type}>, <24 x {type}>)
""".replace("FLAT", "<1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> <i32 24>")


def test_funnel_shifts() -> None:
    """LLVM shifts by the whole amount, and by 64 less zero, for which the instruction shifts the other way."""
    cases = [(name, type_) for name in ("fshl", "fshr") for type_ in ("i8", "i16", "i32", "i64")]
    text = "".join(FUNNEL.format(name=name, type=type_) for name, type_ in cases)
    code, module = HVX.compile(text), parse(text)
    amounts = np.array([0, 1, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 70, 100, 127, 128, 255, -1, -2, -64, -65, 5, 3, 2])
    for name, type_ in cases:
        dtype = np.dtype(f"i{int(type_[1:]) // 8}")
        numbers = np.random.default_rng(5).integers(-(1 << 63), 1 << 63, 24)
        x = np.concatenate([numbers, amounts]).astype(dtype)
        found, exact = np.zeros(24, dtype), np.zeros(24, dtype)
        code[f"{name}_{type_}"](x, found)
        evaluate(module, f"{name}_{type_}", x, exact)
        np.testing.assert_array_equal(found, exact, f"{name} of {type_}")
    code.close()


FLAT = "<1 x i32> zeroinitializer, <1 x i32> zeroinitializer"
KERNEL_SELECT = f"""
define void @kernel_{{name}}_{{type}}(ptr %x, ptr %y, ptr %z) {{{{
  %t = call token @llvm.tensor.load(ptr elementtype({{type}}) %x, <1 x i32> <i32 100>, {FLAT}, <1 x i32> <i32 100>)
  %u = call token @llvm.tensor.load(ptr elementtype({{type}}) %y, <1 x i32> <i32 100>, {FLAT}, <1 x i32> <i32 100>)
  %v = call <100 x {{type}}> @llvm.tensor.tovector(token %t)
  %w = call <100 x {{type}}> @llvm.tensor.tovector(token %u)
  %c = fcmp {{name}} <100 x {{type}}> %v, %w
  %r = select <100 x i1> %c, <100 x {{type}}> %v, <100 x {{type}}> %w
  %a = call token @llvm.tensor.typeinfo(<100 x {{type}}> %r, <1 x i32> <i32 100>, {FLAT})
  call void @llvm.tensor.store(ptr elementtype({{type}}) %z, token %a, <1 x i32> <i32 100>)
  ret void
}}}}
"""
OWN_SELECT = f"""
define void @own_{{name}}_{{type}}(ptr %x, ptr %y, ptr %z) {{{{
  %a = load <100 x {{type}}>, ptr %x, align 4
  %b = load <100 x {{type}}>, ptr %y, align 4
  %v = shufflevector <100 x {{type}}> %a, <100 x {{type}}> %a, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %w = shufflevector <100 x {{type}}> %b, <100 x {{type}}> %b, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %c = fcmp {{name}} <4 x {{type}}> %v, %w
  %r = select <4 x i1> %c, <4 x {{type}}> %v, <4 x {{type}}> %w
  store <4 x {{type}}> %r, ptr %z, align 4
  %t = call token @llvm.tensor.load(ptr elementtype({{type}}) %x, <1 x i32> <i32 96>, {FLAT}, <1 x i32> <i32 96>)
  %to = getelementptr {{type}}, ptr %z, i32 4
  call void @llvm.tensor.store(ptr elementtype({{type}}) %to, token %t, <1 x i32> <i32 96>)
  ret void
}}}}
"""


@pytest.mark.parametrize("opt_level", quick([0, 2]))
def test_selected_nan(opt_level: int) -> None:
    """LLVM makes minima and maxima of selects, which ignore NaN, and an ordered comparison of `ult` at -O0."""
    predicates = [f"{order}{sense}" for order in "ou" for sense in ("gt", "ge", "lt", "le")]
    cases = [(name, type_) for name in predicates for type_ in ("float", "double")]
    templates = {"kernel": KERNEL_SELECT, "own": OWN_SELECT}
    text = "".join(template.format(name=name, type=type_) for template in templates.values() for name, type_ in cases)
    code, module = HVX.compile(text, opt_level=opt_level), parse(text)
    random = np.random.default_rng(5)
    for name, type_ in cases:
        numbers = np.array([1, 2, np.nan, -3, 0], programs.DTYPES[type_])
        x, y = random.choice(numbers, 100), random.choice(numbers, 100)
        x[:4], y[:4] = [1, np.nan, np.nan, 2], [np.nan, 5, np.nan, -1]
        for kind in templates:
            found, exact = np.zeros_like(x), np.zeros_like(x)
            code[f"{kind}_{name}_{type_}"](x, y, found)
            evaluate(module, f"{kind}_{name}_{type_}", x, y, exact)
            np.testing.assert_array_equal(found, exact, err_msg=f"{kind} {name} of {type_}")
    code.close()


LARGEST = """
define void @entry(ptr %x, ptr %y) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 30, i32 31>, FLAT,
      <2 x i32> <i32 30, i32 31>)
  %r = call <30 x float> @llvm.tensor.reduce.max(token %t, <2 x i32> <i32 1, i32 31>, <2 x i32> <i32 1, i32 1>)
  %u = call token @llvm.tensor.typeinfo(<30 x float> %r, <2 x i32> <i32 30, i32 1>, FLAT)
  call void @llvm.tensor.store(ptr elementtype(float) %y, token %u, <2 x i32> <i32 30, i32 1>)
  ret void
}
""".replace("FLAT", "<2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer")


def test_nan_of_reductions() -> None:
    """Each row's maximum is NaN wherever the row has one."""
    x = np.random.default_rng(2).normal(size=(30, 31)).astype(np.float32)
    x[np.arange(0, 30), np.arange(30)] = np.nan
    x[::5] = 1
    y = np.zeros(30, np.float32)
    code = HVX.compile(LARGEST, opt_level=0)
    code.entry(x.reshape(-1), y)
    np.testing.assert_array_equal(y, x.max(1))
    code.close()


PRESENT = [i % 32 for i in range(128)]
SCATTERED = f"""
define void @entry(ptr %x, ptr %y, ptr %shifted) {{
  %t = call token @llvm.tensor.load(ptr elementtype(i8) %x, <1 x i32> <i32 32>, {FLAT}, <1 x i32> <i32 32>)
  %v = call <32 x i8> @llvm.tensor.tovector(token %t)
  %s = shufflevector <32 x i8> %v, <32 x i8> %v, <128 x i32> <{", ".join(f"i32 {i}" for i in PRESENT)}>
  store <128 x i8> %s, ptr %y, align 1
  %n = load <4 x i64>, ptr %x, align 1
  %z = call <4 x i64> @llvm.fshl.v4i64(<4 x i64> %n, <4 x i64> %n, <4 x i64> <i64 0, i64 64, i64 65, i64 3>)
  store <4 x i64> %z, ptr %shifted, align 1
  ret void
}}
declare <4 x i64> @llvm.fshl.v4i64(<4 x i64>, <4 x i64>, <4 x i64>)
"""


@pytest.mark.parametrize("opt_level", quick([2, 0]))
def test_vectors_of_programs(opt_level: int) -> None:
    """LLVM fills a register with the lowest byte of the most frequent word, and shifts i64 by the whole amount."""
    x = np.random.default_rng(1).integers(-128, 128, 32).astype(np.int8)
    y, shifted = np.zeros(128, np.int8), np.zeros(4, np.int64)
    code = HVX.compile(SCATTERED, opt_level=opt_level)
    code.entry(x, y, shifted)
    np.testing.assert_array_equal(y, x[PRESENT])
    words = x.view(np.uint64)
    amounts = np.array([0, 0, 1, 3], np.uint64)
    rotated = np.where(amounts, words << amounts | words >> (64 - amounts) % 64, words)
    np.testing.assert_array_equal(shifted.view(np.uint64), rotated)
    code.close()


def test_products_with_one_row_of_bytes() -> None:
    """LLVM crashes on bytes interleaved with zeros; K is one, so that three of four rows are zeros."""
    for shape in ((97, 47, 1), (65, 47, 1), (16, 255, 1)):
        text = programs.fused_product_text("smma", shape)
        found, *operands = programs.fused_product_arguments("smma", shape)
        exact = found.copy()
        code = HVX.compile(text, opt_level=3)
        code.entry(found, *operands)
        evaluate(parse(text), "_".join(["smma", *map(str, shape)]), exact, *operands)
        np.testing.assert_array_equal(found, exact)
        code.close()


@pytest.mark.long
def test_random_programs() -> None:
    programs.check_random_programs(HVX, range(3))
