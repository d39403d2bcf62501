"""Functions of the C library on a GPU, which has none."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final, cast

import ml_dtypes
import mpmath as _mpmath
import numpy as np
import numpy.typing as npt
import pytest

import tlx
from tests.nvidia.programs import function, lowered, tensor
from tests.semantics.llvm.elementwise_programs import Program
from tlx.diagnostics import LoweringError
from tlx.llvm.codegen import emit_code
from tlx.llvm.triples import with_platform
from tlx.lower.legalize.math.library import LIBRARY
from tlx.lower.operations import LIBRARY_FUNCTIONS

Run = Callable[..., list[Any]]
mpmath: Any = _mpmath  # has no types
DTYPES: Final[dict[str, Any]] = {
    "bfloat16": ml_dtypes.bfloat16, "float16": np.float16, "float32": np.float32, "float64": np.float64,
}  # fmt: skip


def remainder(x: float, y: float) -> float:
    """C's `fmod`, by exact fractions."""
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
        return math.nan
    if math.isinf(y):
        return x
    exact = Fraction(abs(x)) % Fraction(abs(y))
    return math.copysign(float(exact), x)


def operands(dtype: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Pairs of special numbers, of close ones, and of bits at random."""
    facts = cast("Any", ml_dtypes.finfo(dtype))
    least, largest = float(facts.smallest_subnormal), float(facts.max)
    special = [0.0, -0.0, 1.0, -1.0, least, -3 * least, 7 * least, float(facts.smallest_normal), largest, -largest]
    special += [math.inf, -math.inf, math.nan, 1 / 3, -0.1, 5.5, 1e-3, 100.0, 1 + float(facts.eps)]
    numbers = np.array(special, np.float64).astype(dtype)
    x, y = (part.ravel() for part in np.meshgrid(numbers, numbers))
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    random = np.random.default_rng(4).integers(0, np.iinfo(bits).max, (2, 600), bits, endpoint=True).view(dtype)
    close = (random[0].astype(np.float64) * 0.7).astype(dtype)
    return np.concatenate([x, random[0], random[0]]), np.concatenate([y, random[1], close])


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_remainders(run: Run, dtype: str) -> None:
    with np.errstate(all="ignore"):
        x, y = operands(DTYPES[dtype])
        want = [remainder(float(a), float(b)) for a, b in zip(x, y, strict=True)]
        expected = np.array(want, np.float64).astype(x.dtype)
    g = tlx.Graph("f")
    g.output(g.binary("remainder", g.parameter("x", x.shape, dtype), g.parameter("y", y.shape, dtype)))
    assert "frem" not in lowered(g.text())
    got = run(g.text(), x, y, np.zeros_like(x))[-1]
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    is_nan = np.isnan(expected.astype(np.float64))
    np.testing.assert_array_equal(np.isnan(got.astype(np.float64)), is_nan)
    np.testing.assert_array_equal(got.view(unsigned)[~is_nan], expected.view(unsigned)[~is_nan])


FUNCTIONS: Final = ("exp10", "tan", "sinh", "cosh", "asin", "acos", "atan", "atan2", "pow")


def exact(name: str, *operands: float) -> Any:
    """A function by mpmath."""
    if name in ("exp10", "pow"):
        return mpmath.mpf(10 if name == "exp10" else operands[0]) ** operands[-1]
    return getattr(mpmath, name)(*operands)


def rounded(name: str, *arrays: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A function by numpy."""
    if name in ("exp10", "pow"):
        return np.power(*arrays) if name == "pow" else np.power(arrays[0].dtype.type(10), arrays[0])
    return getattr(np, f"arc{name[1:]}" if name.startswith("a") else name)(*arrays)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_the_c_library(run: Run, name: str, dtype: str) -> None:
    """Within 4 units in the last place; special values and results are those of C."""
    rng, special = (
        np.random.default_rng(3),
        [0.0, -0.0, 1, -1, 2, -3, 0.5, 1e-30, -1e-30, 709.5, np.inf, -np.inf, np.nan],
    )
    x = np.concatenate([special, rng.standard_normal(40), 100 * rng.standard_normal(40)]).astype(dtype)
    arrays = [x, rng.permutation(x)] if name in ("pow", "atan2") else [x]
    if len(arrays) == 2:
        pairs = np.meshgrid(np.array(special, dtype), np.array(special, dtype))
        arrays = [np.concatenate([part, pair.ravel()]) for part, pair in zip(arrays, pairs, strict=True)]
    result = run(program(name, arrays, arrays[0].dtype), *arrays, np.zeros_like(arrays[0]))[-1]
    with np.errstate(all="ignore"):
        nearest = rounded(name, *arrays)
    for number, got in enumerate(result):
        operands = [float(array[number]) for array in arrays]
        expected = nearest[number]
        if name == "pow" and operands[1] == 0.5 and operands[0] in (0, -math.inf):
            expected = abs(operands[0])  # numpy's square root has other signs, and NaN
        if not np.isfinite(expected) or not expected:
            np.testing.assert_array_equal(got, expected, str(operands))
            assert np.isnan(got) or np.signbit(got) == np.signbit(expected), operands
            continue
        is_ordinary = all(math.isfinite(x) and (x or name != "atan2") for x in operands)  # mpmath has no signed zeros
        with mpmath.workprec(200):
            want = exact(name, *operands) if is_ordinary else mpmath.mpf(float(expected))
            distance = abs(mpmath.mpf(float(got)) - want)
        assert distance <= 4 * np.spacing(abs(expected)), (operands, got)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scaling_by_powers_of_two(run: Run, dtype: str) -> None:
    exponents = np.array([0, 1, -1, 127, 128, -126, -149, -150, 1023, 1024, -1022, -1074, -1075, 2200, -2200, 1 << 30])
    x, n = (part.ravel() for part in np.meshgrid(np.array([0.0, -1.5, 1 / 3, 5e-324, np.inf], dtype), exponents))
    result = run(program("ldexp", [x, n.astype(np.int32)], x.dtype), x, n.astype(np.int32), np.zeros_like(x))[-1]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(result, np.ldexp(x, n))


@pytest.mark.parametrize("name", ["lrint", "llrint", "lround", "llround"])
def test_rounding_to_integers(run: Run, name: str) -> None:
    x = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 1e15, -3.7, 0.49999999999999994])
    result = run(program(name, [x], np.dtype(np.int64)), x, np.zeros(x.shape, np.int64))[-1]
    nearest = np.rint(x) if name.endswith("rint") else np.trunc(x) + np.copysign(np.abs(x - np.trunc(x)) >= 0.5, x)
    np.testing.assert_array_equal(result, nearest.astype(np.int64))


def program(name: str, arrays: Sequence[npt.NDArray[Any]], result: np.dtype[Any]) -> str:
    """A function of LLVM, element by element."""
    count, names = arrays[0].size, "xy"[: len(arrays)]
    types = [f"<{count} x {ELEMENTS[array.dtype.name]}>" for array in arrays]
    body = "".join(
        tensor(f"{letter}.t", letter, ELEMENTS[array.dtype.name], (count,))
        + f"  %{letter}.v = call {type_} @llvm.tensor.tovector(token %{letter}.t)\n"
        for letter, array, type_ in zip(names, arrays, types, strict=True)
    )
    mangled = [f"v{count}{MANGLED[array.dtype.name]}" for array in arrays]
    own = f"v{count}{MANGLED[result.name]}"
    suffix = ".".join([own, *mangled]) if result.kind == "i" else ".".join(mangled if name == "ldexp" else [own])
    arguments = ", ".join(f"{type_} %{letter}.v" for letter, type_ in zip(names, types, strict=True))
    returned = f"<{count} x {ELEMENTS[result.name]}>"
    body += f"  %r = call {returned} @llvm.{name}.{suffix}({arguments})\n  store {returned} %r, ptr %z\n"
    return function([*names, "z"], body)


ELEMENTS: Final = {"float32": "float", "float64": "double", "int32": "i32", "int64": "i64"}
MANGLED: Final = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64"}


def test_calls_share_a_function() -> None:
    """A power of numbers of one vector is one function, called for each element."""
    g = tlx.Graph("f")
    x = g.parameter("x", (64,))
    g.output(x**x)
    text = lowered(g.text())
    assert text.count("define internal float @tlx.pow.float(") == 1
    assert not re.search(r"call [^\n]*@llvm\.pow", text)


def test_every_elementwise_function_has_code() -> None:
    """No function is left that the target would have to call."""
    assert set(LIBRARY) == LIBRARY_FUNCTIONS
    functions = re.split(r"(?m)^(?=define )", Program(19, 5, typed=False).text)
    text = lowered("".join(f for f in functions if re.search(r"@llvm\.(?!tensor|fpto)", f)))
    assembly = emit_code(with_platform(text, "nvptx64-nvidia-cuda"), "asm", 0, cpu="sm_80").decode()
    assert ".extern .func" not in assembly


_PLAIN: Final = """
define void @plain(ptr %x, ptr %y, ptr %z, i32 %n) {
  %a = load <6 x float>, ptr %x, align 4
  %b = load <6 x float>, ptr %y, align 4
  %power = call <6 x float> @llvm.pow.v6f32(<6 x float> %a, <6 x float> %b)
  %whole = call <6 x float> @llvm.powi.v6f32.i32(<6 x float> %a, i32 %n)
  %sine = call <6 x float> @llvm.sin.v6f32(<6 x float> %b)
  %first = extractelement <6 x float> %a, i32 0
  %log = call float @llvm.log.f32(float %first)
  %remainder = frem <6 x float> %b, %a
  %s = fadd <6 x float> %power, %whole
  %t = fadd <6 x float> %sine, %remainder
  %u = fadd <6 x float> %s, %t
  store <6 x float> %u, ptr %z, align 4
  %end = getelementptr float, ptr %z, i64 6
  store float %log, ptr %end, align 4
  ret void
}
declare <6 x float> @llvm.pow.v6f32(<6 x float>, <6 x float>)
declare <6 x float> @llvm.powi.v6f32.i32(<6 x float>, i32)
declare <6 x float> @llvm.sin.v6f32(<6 x float>)
declare float @llvm.log.f32(float)
"""


@pytest.mark.parametrize("beside", ["", "a kernel"])
def test_functions_without_tensor_operations(beside: str) -> None:
    """They stay functions, in which the library's are replaced; LLVM compiles them for GPUs, and here for this CPU."""
    y = "\n  store <32 x float> %v, ptr %y\n"
    tensors = tensor("a", "x", "float", (4, 8)) + f"  %v = call <32 x float> @llvm.tensor.exp(token %a){y}"
    text = lowered(_PLAIN + (function(["x", "y"], tensors) if beside else ""))
    assembly = emit_code(with_platform(text, "nvptx64-nvidia-cuda"), "asm", 2, "sm_80").decode()
    assert ".visible .func plain(" in assembly
    x, n = np.array([0.3, 1.0, 2.5, 7.0, 0.9, 1e3], np.float32), 3
    y = np.array([-2.5, 0.0, 1.5, 20.0, 100.0, 2.0], np.float32)
    z = np.zeros(7, np.float32)
    plain = text[: text.index("ptx_kernel")].rpartition("define")[0] if beside else text
    functions = "".join(re.findall(r"(?ms)^define internal .*?^}$", text)) if beside else ""
    module: Any = tlx.compile(plain.replace('target triple = "nvptx64-nvidia-cuda"', "") + functions)
    module.plain(x, y, z, n)
    np.testing.assert_allclose(z[:6], x**y + x**n + np.sin(y) + np.fmod(y, x), rtol=1e-6)
    np.testing.assert_allclose(z[6], np.log(x[0]), rtol=1e-6)


def test_functions_of_other_types_are_refused_with_their_place() -> None:
    text = "define fp128 @f(fp128 %x) {\n  %y = call fp128 @llvm.exp.f128(fp128 %x)\n  ret fp128 %y\n}\n"
    with pytest.raises(LoweringError, match="exp of fp128 is not implemented for GPUs") as caught:
        lowered(text)
    assert "test.ll:2:3: error:" in caught.value.render()
