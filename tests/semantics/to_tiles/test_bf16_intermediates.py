"""`--bf16-intermediates=float`: random bfloat expressions against numpy in float with one rounding at the end."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest

import tlx
from tests.support.tools import quick, quick_by_target, require_processor
from tlx.evaluate import evaluate
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse
from tlx.lower.options import Intermediates, Options
from tlx.lower.pipeline import lower

_ROWS: Final = 5
_COLUMNS: Final = 70
_DEPTH: Final = 6
_COUNT: Final = _ROWS * _COLUMNS
_VECTOR: Final = f"<{_COUNT} x bfloat>"
_BFLOAT: Final = ml_dtypes.bfloat16


def rounded(x: Array) -> Array:
    """Floats rounded to bfloat."""
    return x.astype(_BFLOAT).astype(np.float32)


def loaded(name: str, rows: int, columns: int) -> str:
    """A token for a matrix in memory."""
    return (
        f"  %t.{name} = call token @llvm.tensor.load(ptr elementtype(bfloat) %{name}, "
        f"<2 x i32> <i32 {rows}, i32 {columns}>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, "
        "<2 x i32> zeroinitializer)\n"
    )


def typed(token: str, value: str) -> str:
    """A token for a matrix of the result's shape."""
    return (
        f"  %{token} = call token @llvm.tensor.typeinfo({_VECTOR} {value}, <2 x i32> <i32 {_ROWS}, i32 {_COLUMNS}>, "
        "<2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)\n"
    )


_BINARY: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "fadd": np.add,
    "fsub": np.subtract,
    "fmul": np.multiply,
    "fdiv": np.divide,
    "llvm.maximum": np.maximum,
    "llvm.minimum": np.minimum,
}
_UNARY: Final[dict[str, Callable[[Any], Any]]] = {
    "fneg": np.negative,
    "llvm.fabs": np.abs,
    "llvm.tensor.relu": lambda x: np.where(np.less_equal(x, 0), np.float32(0), x),
    "llvm.floor": np.floor,
    "llvm.tensor.sqrt": np.sqrt,
}


@dataclass(eq=False)
class Program:
    """A random expression of a matrix, a row, a column, a scalar, constants and maybe a product, and its meaning."""

    generator: np.random.Generator
    has_product: bool
    text: str = ""
    values: dict[str, Array] = field(default_factory=dict[str, Array])
    inputs: list[Array] = field(default_factory=list[Array])

    def __post_init__(self) -> None:
        draw, shape = self.generator, (_ROWS, _COLUMNS)
        self.inputs = [(draw.standard_normal(size) * 3).astype(_BFLOAT) for size in (shape, (1, _COLUMNS), (_ROWS, 1))]
        self.inputs += [draw.integers(-3, 4, (_ROWS, _DEPTH)).astype(_BFLOAT)]
        self.inputs += [(draw.integers(-200, 201, (_DEPTH, _COLUMNS)) / 64).astype(_BFLOAT)]
        x, row, column, a, b = (value.astype(np.float32) for value in self.inputs)
        self.text = loaded("x", *shape) + loaded("row", 1, _COLUMNS) + loaded("column", _ROWS, 1)
        self.text += f"  %v.x = call {_VECTOR} @llvm.tensor.tovector(token %t.x)\n"
        self.values = {"%v.x": x}
        for name, value in (("row", row), ("column", column)):
            extents = f"<2 x i32> <i32 {_ROWS}, i32 {_COLUMNS}>, <2 x i32> <i32 0, i32 1>"
            self.text += f"  %v.{name} = call {_VECTOR} @llvm.tensor.broadcast(token %t.{name}, {extents})\n"
            self.values[f"%v.{name}"] = np.broadcast_to(value, shape)
        self.values["splat (bfloat 0xR3F4C)"] = np.full(shape, np.float32(0.796875))
        if self.has_product:
            self.text += loaded("a", _ROWS, _DEPTH) + loaded("b", _DEPTH, _COLUMNS)
            self.text += f"  %v.p = call {_VECTOR} @llvm.tensor.matmul(token %t.a, token %t.b)\n"
            self.values["%v.p"] = a @ b  # exact in float, but not in bfloat

    def operation(self, name: str, *operands: str) -> str:
        """Add an operation; the first operand has a name."""
        result = f"%v{len(self.values)}"
        numbers = [self.values[operand] for operand in operands]
        spelled = ", ".join(f"{_VECTOR} {operand}" for operand in operands)
        if name.startswith("llvm.tensor."):
            self.text += typed(f"t{len(self.values)}", operands[0])
            self.text += f"  {result} = call {_VECTOR} @{name}(token %t{len(self.values)})\n"
        elif name.startswith("llvm."):
            self.text += f"  {result} = call {_VECTOR} @{name}.v{_COUNT}bf16({spelled})\n"
        else:
            self.text += f"  {result} = {name} {_VECTOR} {', '.join(operands)}\n"
        with np.errstate(all="ignore"):
            compute = _UNARY[name] if len(operands) == 1 else _BINARY[name]
            self.values[result] = np.asarray(compute(*numbers), np.float32)
        return result

    def choice(self, *operands: str) -> str:
        """Add a comparison, and a select by it."""
        result = f"%v{len(self.values)}"
        self.text += f"  %c{result[1:]} = fcmp olt {_VECTOR} {operands[0]}, {operands[1]}\n"
        condition = f"<{_COUNT} x i1> %c{result[1:]}"
        self.text += f"  {result} = select {condition}, {_VECTOR} {operands[0]}, {_VECTOR} {operands[2]}\n"
        first, second, third = (self.values[operand] for operand in operands)
        self.values[result] = np.where(np.less(first, second), first, third)
        return result

    def grow(self, count: int) -> str:
        """Add operations, so that the result depends on all of them."""
        last = self.operation("fadd", "%v.p", "%v.row") if self.has_product else self.operation("fmul", "%v.x", "%v.x")
        for _ in range(count):
            other, third = (str(name) for name in self.generator.choice(list(self.values), 2))
            kind = self.generator.integers(0, 10)
            if kind == 0:
                last = self.choice(last, other, third)
            elif kind <= 2:
                last = self.operation(str(self.generator.choice(list(_UNARY))), last)
            else:
                last = self.operation(str(self.generator.choice(list(_BINARY))), last, other)
        return last

    def function(self, *stored: tuple[str, str]) -> str:
        """The whole text, which stores values at pointers."""
        text = self.text
        for value, pointer in stored:
            text += typed(f"out.{pointer}", value)
            text += f"  call void @llvm.tensor.store(ptr %{pointer}, token %out.{pointer}, <2 x i32> zeroinitializer)\n"
        pointers = ", ".join(f"ptr noalias %{name}" for name in ("c", "d", "x", "row", "column", "a", "b"))
        return f"define void @f({pointers}) {{\n{text}  ret void\n}}\n"


def results(text: str, target: str, inputs: list[Array], mode: Intermediates = "float") -> tuple[Array, Array]:
    """What the evaluator computes after both stages, which must agree."""
    first: tuple[Array, Array] | None = None
    for stage in ("to-tiles", "legalize"):
        c, d = (np.zeros((_ROWS, _COLUMNS), _BFLOAT) for _ in range(2))
        options = Options(stop_after=stage, bf16_intermediates=mode)
        evaluate(lower(parse(text), target, options=options), "f", c, d, *inputs)
        if first is not None:
            assert_equal(c, first[0])
            assert_equal(d, first[1])
        first = c, d
    assert first is not None
    return first


def assert_equal(got: Array, expected: Array) -> None:
    """The same numbers, or NaN."""
    np.testing.assert_array_equal(got.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize(("seed", "target"), quick_by_target(range(40), ("generic", "avx2", "avx512", "amx"), 8))
def test_one_rounding(seed: int, target: str) -> None:
    program = Program(np.random.default_rng(seed), has_product=seed % 2 == 1)
    last = program.grow(4 + seed % 7)
    text = program.function((last, "c"))
    expected = program.values[last].astype(_BFLOAT)
    assert_equal(results(text, target, program.inputs)[0], expected)


@pytest.mark.parametrize("seed", quick(range(20), 3))
def test_machine_code(seed: int) -> None:
    require_processor("avx2")
    program = Program(np.random.default_rng(100 + seed), has_product=seed % 2 == 1)
    last = program.grow(8)
    compiled = tlx.compile(program.function((last, "c")), bf16_intermediates="float")
    c, d = (np.zeros((_ROWS, _COLUMNS), _BFLOAT) for _ in range(2))
    compiled.f(c, d, *program.inputs)
    assert_equal(c, program.values[last].astype(_BFLOAT))


def test_exact_rounds_each_operation() -> None:
    """1 + x - 1: the sum loses all of a small x if it is rounded, and nothing in float."""
    program = Program(np.random.default_rng(0), has_product=False)
    program.inputs[0][...] = 2.0**-12
    one = "splat (bfloat 0xR3F80)"
    program.values[one] = np.ones((_ROWS, _COLUMNS), np.float32)
    text = program.function((program.operation("fsub", program.operation("fadd", "%v.x", one), one), "c"))
    cases: list[tuple[Intermediates, float]] = [("float", 2.0**-12), ("exact", 0.0)]
    for mode, expected in cases:
        got, _ = results(text, "avx512", program.inputs, mode)
        assert np.all(got.astype(np.float32) == expected)
    exact = str(lower(parse(text), "avx512"))
    assert exact == str(lower(parse(text), "avx512", options=Options(bf16_intermediates="exact")))


def test_stored_values_are_rounded() -> None:
    """A value with another use is rounded for all its users."""
    program = Program(np.random.default_rng(1), has_product=True)
    inner = program.operation("fadd", "%v.p", "%v.x")
    outer = program.operation("fmul", inner, "%v.row")
    text = program.function((program.operation("fadd", outer, inner), "c"), (inner, "d"))
    c, d = results(text, "avx512", program.inputs)
    stored = rounded(program.values[inner])
    row = program.values["%v.row"]
    assert_equal(d, stored)
    assert_equal(c, (stored * row + stored).astype(_BFLOAT))


def test_conversions_and_bits_are_rounded() -> None:
    """`fptrunc` rounds as the program says, and a `bitcast` sees the bits of the rounded value."""
    program = Program(np.random.default_rng(2), has_product=False)
    total = program.operation("fmul", "%v.x", "%v.row")
    wide, words = f"<{_COUNT} x float>", f"<{_COUNT} x i16>"
    program.text += f"  %wide = fpext {_VECTOR} {total} to {wide}\n"
    program.text += f"  %half = fmul {wide} %wide, splat (float 0x3FD5555560000000)\n"
    program.text += f"  %third = fptrunc {wide} %half to {_VECTOR}\n"
    exact = program.values[total]
    program.values["%third"] = rounded(exact * np.float32(1 / 3))
    total = program.operation("fadd", "%third", "%v.x")
    program.text += f"  %bits = bitcast {_VECTOR} {total} to {words}\n  %odd = xor {words} %bits, splat (i16 1)\n"
    program.text += f"  %back = bitcast {words} %odd to {_VECTOR}\n"
    sums = program.values[total].astype(_BFLOAT).view(np.uint16) ^ np.uint16(1)
    program.values["%back"] = sums.view(_BFLOAT).astype(np.float32)
    last = program.operation("fmul", "%back", total)
    got, _ = results(program.function((last, "c")), "avx512", program.inputs)
    assert_equal(got, program.values[last].astype(_BFLOAT))


@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_gelu(target: str) -> None:
    """Functions have the accuracy of float: only the result's rounding is left, of half an ulp."""
    program = Program(np.random.default_rng(3), has_product=True)
    x = program.operation("fadd", "%v.p", "%v.row")
    constants = {"0xR3D37": 0.044677734, "0xR3F4C": 0.796875, "0xR3F00": 0.5, "0xR3F80": 1.0}
    k, s, h, one = (f"splat (bfloat {spelling})" for spelling in constants)
    for name, number in zip((k, s, h, one), constants.values(), strict=True):
        program.values[name] = np.full((_ROWS, _COLUMNS), np.float32(number))
    cube = program.operation("fmul", program.operation("fmul", x, x), x)
    inner = program.operation("fmul", program.operation("fadd", x, program.operation("fmul", cube, k)), s)
    program.text += typed("t.inner", inner)
    program.text += f"  %tanh = call {_VECTOR} @llvm.tensor.tanh(token %t.inner)\n"
    program.values["%tanh"] = np.tanh(program.values[inner])
    last = program.operation("fmul", program.operation("fmul", program.operation("fadd", "%tanh", one), h), x)
    module = lower(parse(program.function((last, "c"))), target, options=Options(bf16_intermediates="float"))
    got, other = (np.zeros((_ROWS, _COLUMNS), _BFLOAT) for _ in range(2))
    evaluate(module, "f", got, other, *program.inputs)
    expected = program.values[last].astype(np.float64)
    error = np.abs(got.astype(np.float64) - expected)
    assert np.all(error <= 2.0**-8 * np.abs(expected) + 1e-6 * np.abs(program.values[x]))


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512", "amx"])
def test_one_plus_tanh(target: str) -> None:
    """1 + tanh u is relatively exact where it nearly cancels, and zero or tiny where tanh is -1."""
    program = Program(np.random.default_rng(5), has_product=False)
    u = np.linspace(-60, 60, _COUNT).reshape(_ROWS, _COLUMNS).astype(_BFLOAT)
    u[0, :3] = [np.nan, -np.inf, np.inf]
    program.inputs[0][...] = u
    program.text += f"  %tanh = call {_VECTOR} @llvm.tensor.tanh(token %t.x)\n"
    program.values["%tanh"] = np.tanh(u.astype(np.float32))
    program.values["splat (bfloat 0xR3F80)"] = np.ones((_ROWS, _COLUMNS), np.float32)
    gate = program.operation("fadd", "%tanh", "splat (bfloat 0xR3F80)")
    text = program.function((program.operation("fmul", gate, gate), "c"))
    got, other = (np.zeros((_ROWS, _COLUMNS), _BFLOAT) for _ in range(2))
    evaluate(lower(parse(text), target, options=Options(bf16_intermediates="float")), "f", got, other, *program.inputs)
    expected = (2 / (1 + np.exp(-2 * u.astype(np.float64)))) ** 2
    error = np.abs(got.astype(np.float64) - expected)
    assert np.isnan(got[0, 0])
    assert np.all(error.ravel()[1:] <= (2.0**-8 + 2.0**-12) * expected.ravel()[1:] + 1e-37)


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512", "amx"])
def test_one_plus_tanh_in_a_sum(target: str) -> None:
    """1 + tanh u has the accuracy of that sum of floats where another number is subtracted from it."""
    program = Program(np.random.default_rng(5), has_product=False)
    u = np.linspace(-60, 60, _COUNT).reshape(_ROWS, _COLUMNS).astype(_BFLOAT)
    u[0, :3] = [np.nan, -np.inf, np.inf]
    u[1] = np.linspace(-2, 2, _COLUMNS).astype(_BFLOAT)
    program.inputs[0][...] = u
    program.text += f"  %tanh = call {_VECTOR} @llvm.tensor.tanh(token %t.x)\n"
    program.values["%tanh"] = np.tanh(u.astype(np.float32))
    one = "splat (bfloat 0xR3F80)"
    program.values[one] = np.ones((_ROWS, _COLUMNS), np.float32)
    last = program.operation("fsub", program.operation("fadd", "%tanh", one), one)
    module = lower(parse(program.function((last, "c"))), target, options=Options(bf16_intermediates="float"))
    got, other = (np.zeros((_ROWS, _COLUMNS), _BFLOAT) for _ in range(2))
    evaluate(module, "f", got, other, *program.inputs)
    expected = np.tanh(u.astype(np.float64))
    error = np.abs(got.astype(np.float64) - expected)
    assert np.isnan(got[0, 0])
    assert np.all(error.ravel()[1:] <= 2.0**-8 * np.abs(expected).ravel()[1:] + 2.0**-22)


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512", "amx"])
def test_one_plus_tanh_times_a_large_number(target: str) -> None:
    """Where 1 + tanh u is zero, its product with a number of any size is, and that with infinity is not a number."""
    program = Program(np.random.default_rng(5), has_product=False)
    u = np.linspace(-1, 1, _COUNT).reshape(_ROWS, _COLUMNS).astype(_BFLOAT)
    u[0, :5] = [-np.inf, -1e38, -3e38, -1e30, -200.0]
    program.inputs[0][...] = u
    program.text += f"  %tanh = call {_VECTOR} @llvm.tensor.tanh(token %t.x)\n"
    program.values["%tanh"] = np.tanh(u.astype(np.float32))
    one, zero = "splat (bfloat 0xR3F80)", "zeroinitializer"
    program.values[one] = np.ones((_ROWS, _COLUMNS), np.float32)
    program.values[zero] = np.zeros((_ROWS, _COLUMNS), np.float32)
    product = program.operation("fmul", "%v.x", program.operation("fadd", "%tanh", one))
    last = program.operation("fadd", product, zero)
    module = lower(parse(program.function((last, "c"))), target, options=Options(bf16_intermediates="float"))
    got, other = (np.zeros((_ROWS, _COLUMNS), _BFLOAT) for _ in range(2))
    evaluate(module, "f", got, other, *program.inputs)
    assert np.isnan(got[0, 0])
    assert_equal(got[0, 1:5], np.zeros(4, _BFLOAT))


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512", "amx"])
@np.errstate(all="ignore")
def test_one_plus_tanh_in_float(target: str) -> None:
    """What the program computes in float is relatively exact, too, where the result is only multiplied and rounded."""
    u = np.concatenate([np.linspace(-9, 9, 299), [np.nan, -np.inf, np.inf, -1e38, 1e38]]).astype(np.float32)
    g = tlx.Graph("f")
    x = g.parameter("x", u.shape, np.float32)
    g.output(g.convert(x * 0.5 * (1.0 + g.tanh(x)), _BFLOAT))
    got = np.zeros(u.shape, _BFLOAT)
    evaluate(lower(g.module(), target, options=Options(bf16_intermediates="float")), "f", u, got)
    wide = u.astype(np.float64)
    expected = wide / (1 + np.exp(-2 * wide))
    assert np.all(np.isnan(got[-5:-3].astype(np.float64)))  # -infinity is multiplied by zero
    error = np.abs(got.astype(np.float64) - expected)
    finite = np.isfinite(expected)
    assert np.all(error[finite] <= (2.0**-8 + 2.0**-13) * np.abs(expected[finite]))
    assert_equal(got[-3:], expected[-3:].astype(np.float32).astype(_BFLOAT))


@pytest.mark.parametrize("use", ["float", "sum", "power"])
def test_one_plus_tanh_in_float_stays(use: str) -> None:
    """The sum stays one of floats where the result is not rounded, is added to, or has its error three times."""
    u = np.linspace(-3, 3, 64).astype(np.float32)
    g = tlx.Graph("f")
    x = g.parameter("x", u.shape, np.float32)
    gate = 1.0 + g.tanh(x)
    result = {"float": x * gate, "sum": gate - 1.0, "power": gate * gate * gate}[use]
    g.output(result if use == "float" else g.convert(result, _BFLOAT))
    text = str(lower(g.module(), "avx512", options=Options(bf16_intermediates="float", stop_after="to-tiles")))
    assert "llvm.tensor.tanh" in text
    assert "llvm.tensor.sigmoid" not in text
    assert "tlx.short" not in text


def test_last_rounding_of_doubles() -> None:
    """An `fptrunc` of doubles rounds, whatever its metadata says."""
    program = Program(np.random.default_rng(6), has_product=False)
    doubles = f"<{_COUNT} x double>"
    program.text += f"  %wide = fpext {_VECTOR} %v.x to {doubles}\n"
    program.text += f"  %y = fptrunc {doubles} %wide to {_VECTOR}, !tlx.function_result !{{}}\n"
    program.values["%y"] = program.values["%v.x"]
    last = program.operation("fmul", program.operation("fmul", "%y", "%v.row"), "%v.column")
    got, _ = results(program.function((last, "c")), "avx512", program.inputs)
    assert_equal(got, program.values[last].astype(_BFLOAT))


@pytest.mark.parametrize("use", ["fmul", "fadd"])
@pytest.mark.parametrize("marked", [False, True])
def test_last_rounding_of_a_function(use: str, *, marked: bool) -> None:
    """What ends a function need not be rounded if it is only multiplied; any other `fptrunc` and all sums round it."""
    program = Program(np.random.default_rng(6), has_product=False)
    floats = f"<{_COUNT} x float>"
    program.text += f"  %wide = fpext {_VECTOR} %v.x to {floats}\n"
    program.text += f"  %third = fmul {floats} %wide, splat (float 0x3FD5555560000000)\n"
    program.text += f"  %y = fptrunc {floats} %third to {_VECTOR}{', !tlx.function_result !{}' * marked}\n"
    third = program.values["%v.x"] * np.float32(1 / 3)
    program.values["%y"] = third if marked and use == "fmul" else rounded(third)
    last = program.operation(use, program.operation(use, "%y", "%v.row"), "%v.column")
    got, _ = results(program.function((last, "c")), "avx512", program.inputs)
    assert_equal(got, program.values[last].astype(_BFLOAT))


def test_rounding_of_pairs() -> None:
    """The instruction that rounds two registers flushes subnormal numbers; they are kept: ties, signs, zeros, NaN."""
    special = [2.0**-126, 2.0**-127, 2.0**-133, 2.0**-134, 3 * 2.0**-134, 2.0**-149, 0.0, np.inf, np.nan, 3.4e38]
    near = np.concatenate([np.nextafter(np.float32(s), np.array([0, np.inf], np.float32)) for s in special] + [special])
    x = np.resize(np.concatenate([near, -near]).astype(np.float32), (_ROWS, 64))
    wide, narrow = f"<{x.size} x float>", f"<{x.size} x bfloat>"
    text = (
        f"define void @f(ptr noalias %c, ptr %x) {{\n  %x.0 = load {wide}, ptr %x\n"
        f"  %y = fptrunc {wide} %x.0 to {narrow}\n  store {narrow} %y, ptr %c\n  ret void\n}}\n"
    )
    module = lower(parse(text), "avx512")
    assert "cvtne2ps2bf16" in str(module)
    got = np.zeros(x.shape, _BFLOAT)
    evaluate(module, "f", got, x)
    assert_equal(got, x.astype(_BFLOAT))
    assert_equal(np.signbit(got), np.signbit(x))


_FUNCTIONS: Final[dict[str, Callable[[Array], Array]]] = {
    "exp": np.exp,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "log": np.log,
    "erfc": np.vectorize(math.erfc),
}


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
@pytest.mark.parametrize("name", list(_FUNCTIONS))
@pytest.mark.parametrize("use", ["fmul", "fsub"])
def test_accuracy_of_functions(name: str, target: str, use: str) -> None:
    """A function adds little to the error of the last rounding as a factor, and as little where a sum cancels."""
    program = Program(np.random.default_rng(4), has_product=False)
    program.inputs[0][...] = np.abs(program.inputs[0]).astype(_BFLOAT)
    function = _FUNCTIONS[name](program.inputs[0].astype(np.float64))
    program.text += f"  %function = call {_VECTOR} @llvm.tensor.{name}(token %t.x)\n"
    program.values["%function"] = function.astype(np.float32)
    one = "splat (bfloat 0xR3F80)"
    program.values[one] = np.ones((_ROWS, _COLUMNS), np.float32)
    last = program.operation(use, "%function", "%v.row" if use == "fmul" else one)
    expected = function * program.inputs[1].astype(np.float64) if use == "fmul" else function - 1
    module = lower(parse(program.function((last, "c"))), target, options=Options(bf16_intermediates="float"))
    got, other = (np.zeros((_ROWS, _COLUMNS), _BFLOAT) for _ in range(2))
    evaluate(module, "f", got, other, *program.inputs)
    error = np.abs(got.astype(np.float64) - expected)
    of_function = 2.0**-13 * np.abs(expected) if use == "fmul" else 2.0**-21 * np.abs(function)
    assert np.all(error <= 2.0**-8 * np.abs(expected) + of_function)


def test_exact_gelu_is_short() -> None:
    g = tlx.Graph("f")
    x = g.parameter("x", (16, 32), _BFLOAT)
    g.output(x * 0.5 * g.erfc(-x * math.sqrt(0.5)))
    module = lower(g.module(), "avx512", options=Options(bf16_intermediates="float"))
    function = next(str(f) for f in module.functions if "tlx.map" in f.name)
    assert " fneg " not in function  # it is part of the constant
    assert " fmul <" not in function  # LLVM may merge each product with a sum
    # Of each of two registers, the least |x|, the sign of x, and where the power of two is below the normal numbers.
    assert len(re.findall(r" select <16 x i1> %\S+, <16 x float>", function)) == 6
    assert "cvtne2ps2bf16" in function  # both are rounded to one of bfloat
    assert " trunc <16 x i32>" not in function
