"""Every operation in the evaluator, on tensors of any layout with garbage in their padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.unit.evaluate.test_tensors import logical, run, typeinfo, vector
from tlx.evaluate import evaluate
from tlx.ir.parser.module import parse

Array = NDArray[Any]
Numbers = tuple[int, ...]
FUNCTIONS: Final = "relu tanh sigmoid erfc sin cos exp exp2 log log2 log10 sqrt fabs floor ceil".split()
RUBBISH: Final = {"float": np.nan, "i32": 2**31 - 1}
DTYPES: Final[dict[str, Any]] = {"float": np.float32, "i32": np.int32}


class Stored:
    """A tensor in memory in some layout, its padding not zero.

    Attributes:
        memory: The array that is passed.
        data: The logical array.
        token: The typeinfo of a pointer to it.
    """

    def __init__(
        self, rng: np.random.Generator, name: str, extents: Numbers, element: str = "float", padding: int | None = None
    ) -> None:
        self.rank = len(extents)
        self.layout = tuple(int(d) for d in rng.permutation(self.rank))
        self.padding = tuple(int(p) if padding is None else padding for p in rng.integers(0, 3, self.rank))
        self.shape = tuple(extents[d] + p for d, p in zip(self.layout, self.padding, strict=True))
        self.memory = np.full(self.shape, RUBBISH[element], DTYPES[element])
        inside = tuple(slice(extents[d]) for d in self.layout)
        self.memory[inside] = rng.integers(1, 9, [extents[d] for d in self.layout])
        self.data = logical(self.memory, self.layout, self.padding)
        operand = f"ptr byval(<{self.memory.size} x {element}>) %{name}"
        self.token = typeinfo(operand, self.shape, self.layout, self.padding)


def call(result: Array, operation: str, tokens: Sequence[Stored], operands: str = "", element: str = "float") -> Array:
    """Run one operation and give its flattened result, in the shape of an array to write it to."""
    names = "abcd"
    lines = [f"  %t{name} = {tensor.token}" for name, tensor in zip(names, tokens, strict=False)]
    arguments = ", ".join(f"token %t{name}" for name in names[: len(tokens)])
    flat = f"<{result.size} x {element}>"
    lines.append(f"  %r = call {flat} @llvm.tensor.{operation}({arguments}{operands})")
    lines.append(f"  store {flat} %r, ptr %{names[len(tokens)]}, align 4")
    run("\n".join(lines), *(tensor.memory for tensor in tokens), result)
    return result


def lists(*numbers: Numbers) -> str:
    return "".join(f", {vector(n)}" for n in numbers)


def empty(shape: Numbers, element: str = "float") -> Array:
    return np.full(shape, 77, DTYPES[element])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_keep_the_type_and_leave_padding_zero(name: str) -> None:
    for seed in range(4):
        x = Stored(np.random.default_rng(seed), "a", (2, 3, 4))
        got = call(empty(x.shape), name, [x])
        wide = x.data.astype(np.float64)
        formulas: dict[str, Array] = {
            "relu": np.maximum(wide, 0),
            "sigmoid": 1 / (1 + np.exp(-wide)),
            "erfc": np.vectorize(math.erfc)(wide),
        }
        expected = (formulas[name] if name in formulas else getattr(np, name)(wide)).astype(np.float32)
        np.testing.assert_array_equal(logical(got, x.layout, x.padding), expected)
        inside = np.zeros(x.shape, bool)
        inside[tuple(slice(s - p) for s, p in zip(x.shape, x.padding, strict=True))] = True
        np.testing.assert_array_equal(got[~inside], 0)


@pytest.mark.parametrize("seed", range(8))
def test_contract(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = Stored(rng, "a", (2, 3, 4)), Stored(rng, "b", (4, 5, 3))
    got = call(empty((2, 5)), "contract", [a, b], lists((1, 2), (2, 0)))
    np.testing.assert_array_equal(got, np.tensordot(a.data, b.data, ((1, 2), (2, 0))))
    c, d = Stored(rng, "a", (3, 2, 4)), Stored(rng, "b", (5, 4, 3))
    got = call(empty((3, 2, 5)), "contract", [c, d], lists((2,), (1,), (0,), (2,)))
    np.testing.assert_array_equal(got, np.einsum("bik,jkb->bij", c.data, d.data))
    got = call(empty((2, 3, 4, 4, 5, 3)), "contract", [a, b])
    np.testing.assert_array_equal(got, np.multiply.outer(a.data, b.data))
    got = call(empty((3, 2, 4, 5, 4)), "contract", [c, d], lists((-1,), (-1,), (0,), (2,)))
    np.testing.assert_array_equal(got, np.einsum("bik,jlb->bikjl", c.data, d.data))


@pytest.mark.parametrize("seed", range(8))
def test_convolution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, w = Stored(rng, "a", (2, 3, 6, 5)), Stored(rng, "b", (4, 3, 2, 3))
    windows = np.lib.stride_tricks.sliding_window_view(x.data, (2, 3), (2, 3))
    expected = np.einsum("nchwij,ocij->nohw", windows, w.data)
    np.testing.assert_array_equal(call(empty((2, 4, 5, 3)), "convolution", [x, w]), expected)
    got = call(empty((2, 4, 3, 2)), "convolution", [x, w], lists((2, 2), (0, 0), (0, 0)))
    np.testing.assert_array_equal(got, expected[:, :, ::2, ::2])


def test_a_convolution_may_keep_the_padding_of_filters() -> None:
    """The four-filter result with two filters of padding: `<N, O + 2, ...>`, zero behind the data."""
    rng = np.random.default_rng(0)
    x, w = Stored(rng, "a", (1, 1, 3, 3), padding=0), Stored(rng, "b", (4, 1, 2, 2), padding=2)
    dense = call(empty((1, 4, 2, 2)), "convolution", [x, w])
    padded = call(empty((1, 6, 2, 2)), "convolution", [x, w])
    np.testing.assert_array_equal(padded[:, :4], dense)
    np.testing.assert_array_equal(padded[:, 4:], 0)


@pytest.mark.parametrize(
    ("operation", "element"),
    [*((o, e) for o in ("add", "mul", "max", "min") for e in DTYPES), ("and", "i32"), ("or", "i32"), ("xor", "i32")],
)
def test_reduce(operation: str, element: str) -> None:
    ufuncs = {"mul": "multiply", "max": "maximum", "min": "minimum"}
    ufunc = getattr(np, ufuncs.get(operation, operation if operation == "add" else f"bitwise_{operation}"))
    for seed in range(4):
        x = Stored(np.random.default_rng(seed), "a", (4, 3, 5), element)
        got = call(empty((4,), element), f"reduce.{operation}", [x], lists((1, 3, 5), (1, 1, 1)), element)
        wide = x.data.astype(np.float64 if element == "float" else np.int64)
        np.testing.assert_array_equal(got, ufunc.reduce(wide, (1, 2)).astype(x.data.dtype))
        pooled = call(empty((2, 3, 2), element), f"reduce.{operation}", [x], lists((2, 1, 3), (2, 1, 2)), element)
        windows = np.lib.stride_tricks.sliding_window_view(wide, (2, 1, 3))[::2, :, ::2]
        np.testing.assert_array_equal(pooled, ufunc.reduce(windows, (3, 4, 5)).astype(x.data.dtype))


@pytest.mark.parametrize("seed", range(8))
def test_pad(seed: int) -> None:
    x = Stored(np.random.default_rng(seed), "a", (3, 4))
    got = call(empty((4, 5)), "pad", [x], f"{lists((2, 0), (-1, 1))}, float -1.5")
    np.testing.assert_array_equal(got, np.pad(x.data, ((2, 1), (0, 1)), constant_values=-1.5)[:4])
    got = call(empty((5, 5)), "pad", [x], f"{lists((0, -1), (0, -1))}, float 2.0{lists((1, 1))}")
    expected = np.full((5, 7), 2, np.float32)
    expected[::2, ::2] = x.data
    np.testing.assert_array_equal(got, expected[:, 1:-1])


@pytest.mark.parametrize("seed", range(8))
def test_concat(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [Stored(rng, name, (2, extent, 3), "i32") for name, extent in zip("abc", (1, 4, 2), strict=True)]
    got = call(empty((2, 7, 3), "i32"), "concat", parts, ", i32 1", "i32")
    np.testing.assert_array_equal(got, np.concatenate([part.data for part in parts], 1))
    one = call(empty((2, 1, 3), "i32"), "concat", parts[:1], ", i32 0", "i32")
    np.testing.assert_array_equal(one, parts[0].data)


@pytest.mark.parametrize("element", ["float", "bfloat"])
def test_results_that_a_program_promises_to_be_normal(element: str) -> None:
    """Where one is not, it is NaN, which nobody takes for right."""
    shape = "<1 x i32> <i32 6>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer"
    text = f"""define void @f(ptr %x, ptr %y) {{
  %t = call token @llvm.tensor.load(ptr elementtype({element}) %x, {shape}, <1 x i32> zeroinitializer)
  %r = call <6 x {element}> @llvm.tensor.exp(token %t), !tlx.normal !{{}}
  store <6 x {element}> %r, ptr %y
  ret void
}}
"""
    dtype = np.dtype(np.float32 if element == "float" else ml_dtypes.bfloat16)
    x, y = np.array([0, -87, -88, 89, np.nan, 1], dtype), np.zeros(6, dtype)
    evaluate(parse(text), "f", x, y)
    np.testing.assert_array_equal(np.isnan(y), [False, False, True, True, True, False])
    exact, bound = np.exp([0.0, -87.0, 1.0]), 1e-6 if element == "float" else 2.0**-8
    np.testing.assert_allclose(y[[0, 1, 5]].astype(np.float64), exact, rtol=bound)
