"""BLAS instructions as kernels, their arguments, and what numpy says they compute.

All numbers are small, so that sums are exact in every type that is computed with: results are equal or wrong. Around
each output there is memory that must not be written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

import ml_dtypes
import numpy as np

from tlx.frontends.tensor_language.types import NUMBERS, ScalarType, promote
from tlx.intrinsics.numpy_types import Array

Instruction = Literal["axpby", "cumsum", "sum", "gemm", "gemv", "ger", "hadamard"]
DTYPES: Final[dict[str, Any]] = {
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "c32": np.complex64,
    "c64": np.complex128,
}
GUARD: Final = 16  # elements before and after an array that are looked at afterwards
TWO_INPUTS: Final = ("gemm", "gemv", "ger", "hadamard")


@dataclass(frozen=True)
class Ref:
    """A memref parameter: its extents, its strides, and which of them the kernel's text leaves open."""

    type: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    open_shape: bool = False
    open_stride: Literal["none", "outer", "all"] = "none"

    @property
    def text(self) -> str:
        """The type in the language."""
        shape = "".join("x?" if self.open_shape else f"x{extent}" for extent in self.shape)
        is_open = [self.open_stride == "all" or (self.open_stride == "outer" and k > 0) for k in range(len(self.shape))]
        stride = ",".join("?" if free else str(s) for free, s in zip(is_open, self.stride, strict=True))
        return f"memref<{self.type}{shape}{f',strided<{stride}>' if self.stride else ''}>"

    def array(self, values: Array) -> tuple[Array, Array]:
        """An array that holds values, and all memory around it."""
        dtype = np.dtype(DTYPES[self.type])
        reach = 1 + sum(max(0, n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))
        base = np.full(reach + 2 * GUARD, poison(self.type), dtype)
        steps = [s * dtype.itemsize for s in self.stride]
        view = np.lib.stride_tricks.as_strided(base[GUARD:], self.shape, steps)
        view[...] = values
        return view, base


def plain(values: Array) -> Array:
    """Values in a type whose NaN numpy's assertions know."""
    return values.astype(np.float64) if values.dtype == DTYPES["bf16"] else values


def poison(type_: str) -> Any:
    """The content of memory that must not be read or written."""
    return 77 if type_[0] == "i" else np.nan


def packed(shape: Sequence[int], first: int = 1, extra: int = 0) -> tuple[int, ...]:
    """Column-major strides, with a first one and elements between columns."""
    result: list[int] = []
    step = first
    for extent in shape:
        result.append(step)
        step = step * max(1, extent) + extra
    return tuple(result)


@dataclass(frozen=True)
class Case:
    """A kernel of one instruction.

    Attributes:
        instruction: With its modifiers, such as `gemm.t.n`.
        inputs: One or two memrefs.
        out: The memref that is written.
        alpha, beta: Type and value, and whether the kernel's text has it as a constant.
        mode: Of cumsum.
        attributes: Of the kernel.
    """

    instruction: str
    inputs: tuple[Ref, ...]
    out: Ref
    alpha: tuple[str, complex, bool]
    beta: tuple[str, complex, bool]
    mode: int = 0
    attributes: str = ""
    seed: int = 0
    name: str = field(default="kernel", compare=False)

    @property
    def base(self) -> str:
        """The instruction without modifiers."""
        return self.instruction.split(".", maxsplit=1)[0]

    @property
    def transposes(self) -> list[bool]:
        """Whether each input is transposed."""
        flags = [m == "t" for m in self.instruction.split(".")[1:] if m in "nt"]
        return [*flags, False, False][: len(self.inputs)]

    @cached_property
    def text(self) -> str:
        """The kernel."""
        names = ["A", "B"][: len(self.inputs)]
        parameters = [f"%{n}: {r.text}" for n, r in zip(names, self.inputs, strict=True)]
        parameters.append(f"%C: {self.out.text}")
        body: list[str] = []
        for name, (type_, value, constant) in (("alpha", self.alpha), ("beta", self.beta)):
            if constant:
                body.append(f"  %{name} = constant {literal(type_, value)} : {type_}")
            else:
                parameters.append(f"%{name}: {type_}")
        operands = ["%alpha", *(f"%{n}" for n in names), *([str(self.mode)] if self.base == "cumsum" else [])]
        body.append(f"  {self.instruction} {', '.join([*operands, '%beta', '%C'])}")
        attributes = f" attributes {self.attributes}" if self.attributes else ""
        lines = "\n".join(body)
        return f"func @{self.name}({', '.join(parameters)}){attributes} {{\n{lines}\n}}\n"

    def values(self) -> tuple[list[Array], Array]:
        """What inputs and output hold at first."""
        rng = np.random.default_rng(self.seed + 1)
        return [numbers(rng, r) for r in self.inputs], numbers(rng, self.out)

    def check(self, kernel: Any, old: Array | None = None) -> None:
        """Run a compiled kernel and compare."""
        inputs, start = self.values()
        if old is not None:
            start = old
        arrays = [ref.array(v)[0] for ref, v in zip(self.inputs, inputs, strict=True)]
        out, base = self.out.array(start)
        scalars = [scalar(t, v) for t, v, constant in (self.alpha, self.beta) if not constant]
        kernel(*arrays, out, *scalars)
        expected = self.expected(inputs, start)
        np.testing.assert_array_equal(plain(out), plain(expected), err_msg=self.text)
        out[...] = 0
        untouched = self.out.array(np.zeros(self.out.shape))[1]
        assert base.tobytes() == untouched.tobytes(), f"written around the output\n{self.text}"

    def expected(self, inputs: list[Array], old: Array) -> Array:
        """What numpy computes, exactly, rounded to the output's type once."""
        wide = [exact(v, r.type) for v, r in zip(inputs, self.inputs, strict=True)]
        wide = [v.T if t and v.ndim == 2 else v for v, t in zip(wide, self.transposes, strict=True)]
        with np.errstate(all="ignore"):
            value = _value(self.base, wide, self.mode)
            return rounded(times(self.alpha[1], value) + times(self.beta[1], exact(old, self.out.type)), self.out.type)


def times(factor: complex, value: Array) -> Array:
    """A product of a factor of some type and exact numbers."""
    if factor == 1:
        return value
    if value.dtype == object:
        return value * int(factor.real) if float(factor.real).is_integer() else value * factor
    return value * (factor if isinstance(factor, complex) and factor.imag else factor.real)


def _value(base: str, inputs: list[Array], mode: int) -> Any:
    a = inputs[0]
    match base:
        case "axpby":
            return a
        case "cumsum":
            return np.cumsum(a, axis=mode)
        case "sum":
            return a.sum(axis=-1)
        case "ger":
            return np.multiply.outer(a, inputs[1])
        case "hadamard":
            return a * inputs[1]
        case _:
            return a @ inputs[1]


def exact(values: Array, type_: str) -> Array:
    """Values in a type that computes exactly: Python's integers, doubles, complex numbers."""
    kind = NUMBERS[type_].kind
    if kind == "int":
        return values.astype(object)
    return values.astype(np.complex128 if kind == "complex" else np.float64)


def rounded(values: Any, type_: str) -> Array:
    """Exact values in a type; integers wrap."""
    scalar_type = NUMBERS[type_]
    values = np.asarray(values)
    if scalar_type.kind == "int":
        half = 1 << (scalar_type.bits - 1)
        return ((values.astype(object) + half) % (2 * half) - half).astype(DTYPES[type_])
    if scalar_type.kind == "complex":
        return values.astype(np.complex128).astype(DTYPES[type_])
    return values.astype(np.float64).astype(DTYPES[type_])


def numbers(rng: np.random.Generator, ref: Ref) -> Array:
    """Small numbers of a memref's type: exact in all that is computed with them, some of them large for integers."""
    result = rng.integers(-3, 4, ref.shape).astype(np.float64)
    if NUMBERS[ref.type].kind == "complex":
        return (result + 1j * rng.integers(-3, 4, ref.shape)).astype(DTYPES[ref.type])
    return result.astype(DTYPES[ref.type])


def scalar(type_: str, value: complex) -> Any:
    """A number as a kernel takes it."""
    match NUMBERS[type_].kind:
        case "int":
            return int(value.real)
        case "complex":
            return complex(value)
        case _:
            return float(value.real)


def literal(type_: str, value: complex) -> str:
    """A constant in the language."""
    match NUMBERS[type_].kind:
        case "int":
            return str(int(value.real))
        case "complex":
            return f"[{float(value.real)},{float(complex(value).imag)}]"
        case _:
            return repr(float(value.real))


def common(a: str, b: str) -> str | None:
    """The name of the type that two are promoted to."""
    result: ScalarType | None = promote(NUMBERS[a], NUMBERS[b])
    return result.name if result else None


def memrefs(
    instruction: str,
    types: Sequence[str],
    sizes: tuple[int, int, int],
    *,
    first: int = 1,
    extra: int = 0,
    open_shape: bool = False,
    open_stride: Literal["none", "outer", "all"] = "none",
) -> tuple[tuple[Ref, ...], Ref]:
    """The memrefs of an instruction on matrices of M x N (x K).

    Args:
        instruction: With its modifiers.
        types: Element types of the inputs and of the output.
        sizes: M, N and K.
        first: The first stride.
        extra: Elements between columns.
        open_shape: Whether shapes are left open.
        open_stride: Which strides are left open; packed strides are left out where shapes are open.
    """
    m, n, k = sizes
    base, *modifiers = instruction.split(".")
    flags = [*(x == "t" for x in modifiers if x in "nt"), False, False]
    shapes: dict[str, list[tuple[int, ...]]] = {
        "axpby": [(m, n), (m, n)],
        "cumsum": [(m, n), (m, n)],
        "sum": [(m, k), (m,)],
        "gemm": [(m, k), (k, n), (m, n)],
        "gemv": [(m, k), (k,), (m,)],
        "ger": [(m,), (n,), (m, n)],
        "hadamard": [(m, n), (m, n), (m, n)],
    }
    *inputs, out = shapes[base]
    inputs = [s[::-1] if t and len(s) == 2 else s for s, t in zip(inputs, flags, strict=False)]
    refs = [
        Ref(t, s, packed(s, first, extra), open_shape, open_stride) for t, s in zip(types, [*inputs, out], strict=True)
    ]
    return tuple(refs[:-1]), refs[-1]
