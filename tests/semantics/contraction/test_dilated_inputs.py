"""Convolutions of dilated inputs, phase by phase: the same memory after each stage, and as machine code."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import numpy as np
import pytest
from ml_dtypes import bfloat16

import tlx
from tests.semantics.contraction.decisions import with_costs
from tests.semantics.to_2d.contract import check_contract, poisoned
from tests.semantics.to_2d.random.writer import ints
from tests.support.tools import quick
from tlx.evaluate import Machine
from tlx.intrinsics.convolution import Windows, dilated
from tlx.intrinsics.numpy_types import Array
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.tensors.calls import canonicalise
from tlx.lower.context import LoweringContext
from tlx.lower.pipeline import lower
from tlx.lower.to_2d import to_2d
from tlx.target.lookup import find_target
from tlx.target.target import Target

TYPES = [("float", "float"), ("bfloat", "float"), ("i8", "i32"), ("double", "double"), ("half", "half"), ("i16", "i16")]
DTYPES = {
    "float": np.float32,
    "bfloat": bfloat16,
    "half": np.float16,
    "double": np.float64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
}
FOLLOWING = ("", "relu", "bias", "image", "in place")
WEIGHTS = (None, None, np.inf, None, -np.inf, np.nan)
EACH = 20


@dataclass(frozen=True)
class Case:
    """A convolution and its epilogue: nothing, `relu`, the sum with numbers of filters, an image, or the result.

    Attributes:
        types: Of the operands and the result.
        x, w: Extents.
        vectors: Strides, holes of the input, and of the kernel.
        following: What follows.
        order: The result's spatial dimensions, filters and images, in memory.
    """

    types: tuple[str, str]
    x: tuple[int, ...]
    w: tuple[int, ...]
    vectors: tuple[tuple[int, ...], ...]
    following: str = ""
    order: tuple[int, ...] = ()

    @property
    def result(self) -> tuple[int, ...]:
        """Extents of the result."""
        windows = Windows.of(len(self.x), self.vectors)
        first = len(self.x) - len(windows.strides)
        sizes = zip(
            self.x[first:], self.w[first:], windows.strides, windows.input_steps, windows.kernel_steps, strict=True
        )
        out = ((dilated(x, step) - dilated(w, apart)) // stride + 1 for x, w, stride, step, apart in sizes)
        return (*((self.x[0], self.w[0]) if first else ()), *out)

    @property
    def text(self) -> str:
        """The program: result, input, kernel, and the operand of the epilogue."""
        element, wide = self.types
        rank, out = len(self.x), self.result
        plain = tuple(range(rank))
        order = self.order or plain
        vector = f"<{math.prod(out)} x {wide}>"
        stored = _tensor([out[d] for d in order], order)
        lines = [
            f"%x = call token @llvm.tensor.load(ptr elementtype({element}) %p, {_tensor(self.x)}, {ints([0] * rank)})",
            f"%w = call token @llvm.tensor.load(ptr elementtype({element}) %q, {_tensor(self.w)}, {ints([0] * rank)})",
            f"%c = call {vector} @llvm.tensor.convolution(token %x, token %w, {', '.join(map(ints, self.vectors))})",
        ]
        add = "add" if wide.startswith("i") else "fadd"
        if self.following == "relu":
            lines.append(f"%d = call token @llvm.tensor.typeinfo({vector} %c, {_tensor(out)})")
            lines.append(f"%z = call {vector} @llvm.tensor.relu(token %d)")
        elif self.following == "bias":
            some = [extent if d == 1 and rank > 2 else 1 for d, extent in enumerate(out)]
            lines.append(
                f"%r = call token @llvm.tensor.load(ptr elementtype({wide}) %s, {_tensor(some)}, {ints([0] * rank)})"
            )
            lines.append(f"%e = call {vector} @llvm.tensor.broadcast(token %r, {ints(out)}, {ints(plain)})")
            lines.append(f"%z = {add} {vector} %c, %e")
        elif self.following:
            other = "%y" if self.following == "in place" else "%s"
            lines += [f"%r = load {vector}, ptr {other}", f"%z = {add} {vector} %c, %r"]
        last = "%z" if self.following else "%c"
        if order != plain:
            lines.append(f"%t = call token @llvm.tensor.typeinfo({vector} {last}, {_tensor(out)})")
            lines.append(f"%u = call {vector} @llvm.tensor.transpose(token %t, {ints(order)})")
            lines.append(f"%v = call token @llvm.tensor.typeinfo({vector} %u, {stored})")
            lines.append(f"call void @llvm.tensor.store(ptr %y, token %v, {ints([0] * rank)})")
        else:
            lines.append(f"store {vector} {last}, ptr %y")
        body = "\n  ".join([*lines, "ret void"])
        return f"define void @f(ptr noalias %y, ptr noalias %p, ptr noalias %q, ptr noalias %s) {{\n  {body}\n}}\n"

    def inputs(self, weights: float | None = None) -> list[Array]:
        """Small numbers, whose sums are exact; some weights are replaced."""
        generator = np.random.default_rng(math.prod(self.x))
        element, wide = self.types
        kinds = [(self.result, wide), (self.x, element), (self.w, element), (self.result, wide)]
        arrays = [generator.integers(-3, 4, shape).astype(DTYPES[kind]) for shape, kind in kinds]
        if weights is not None:
            arrays[2].flat[:: max(3, arrays[2].size // 3)] = weights
        return arrays


def _tensor(shape: tuple[int, ...] | list[int], layout: tuple[int, ...] = ()) -> str:
    return ", ".join(map(ints, (shape, layout or range(len(shape)), [0] * len(shape))))


def drawn(seed: int) -> Case:
    """Any case."""
    choose = random.Random(seed)
    spatial = choose.choice([1, 2, 2, 2, 3])
    flat = spatial == 2 and choose.random() < 0.2
    holes = [choose.choice([0, 1, 1, 2, 3]) for _ in range(spatial)]
    holes[choose.randrange(spatial)] = choose.choice([1, 2, 3, 5])
    apart = [choose.choice([0, 0, 0, 1, 2, 3]) for _ in range(spatial)]
    strides = [choose.choice([1, 1, 1, 2, 3, 4]) for _ in range(spatial)]
    kernel = [choose.choice([1, 2, 3, 4, 5] if spatial < 3 else [1, 2, 3]) for _ in range(spatial)]
    image = [
        max(2, -(-dilated(k, a + 1) // (h + 1)) + 1) + choose.choice([0, 1, 2, 5])
        for k, a, h in zip(kernel, apart, holes, strict=True)
    ]
    groups, each, filters = choose.choice([1, 1, 2, 3]), choose.choice([1, 2, 5]), choose.choice([1, 3, 4])
    x = tuple(image) if flat else (choose.choice([1, 1, 2]), groups * each, *image)
    w = tuple(kernel) if flat else (groups * filters, each, *kernel)
    order = [*range(len(x))]
    if choose.random() < 0.3:
        choose.shuffle(order)
    return Case(
        choose.choice(TYPES), x, w, (tuple(strides), tuple(holes), tuple(apart)), choose.choice(FOLLOWING), tuple(order)
    )


def by_phases(target: str) -> Target:
    """A target on which phases always pay off, as zeros between elements cost too much."""
    return with_costs(target, zeroed_bytes_per_cycle=1e-12)


def evaluated(module: Module, arguments: list[Array]) -> Array:
    with np.errstate(all="ignore"):
        Machine(module).call("f", *arguments)
    return arguments[0]


def stage1(case: Case, target: str | Target) -> Module:
    module = parse(case.text)
    canonicalise(module)
    to_2d(module, LoweringContext(find_target(target) if isinstance(target, str) else target))
    return module


def check(case: Case, target: str, weights: float | None = None) -> None:
    """Check a case after stage 1, and as machine code."""
    expected = evaluated(parse(case.text), case.inputs(weights))
    module = stage1(case, by_phases(target))
    check_contract(module)
    assert "%dilated.buf" not in str(module)
    np.testing.assert_array_equal(evaluated(module, case.inputs(weights)), expected, str(case))
    if case.following != "in place":
        np.testing.assert_array_equal(evaluated(poisoned(module), case.inputs(weights)), expected, str(case))
    arguments = case.inputs(weights)
    tlx.compile(case.text, by_phases("native"), opt_level=0)(*arguments)
    np.testing.assert_array_equal(arguments[0], expected, str(case))


@pytest.mark.parametrize("part", quick(range(3)))
def test_phases_mean_the_same(part: int) -> None:
    for seed in range(part * EACH, (part + 1) * EACH):
        case = drawn(seed)
        is_float = case.types[1] not in ("i32", "i16")
        check(case, "avx512" if seed % 2 else "generic", WEIGHTS[seed % len(WEIGHTS)] if is_float else None)


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512", "amx"])
@pytest.mark.parametrize("types", TYPES[:3])
def test_phases_mean_the_same_on_all_targets(types: tuple[str, str], target: str) -> None:
    case = Case(types, (1, 16, 5, 6), (18, 16, 4, 3), ((1, 1), (1, 1), (0, 0)), "bias")
    weights = None if types[1] == "i32" else np.inf
    expected = evaluated(parse(case.text), case.inputs(weights))
    assert not np.isfinite(expected).all() or weights is None
    np.testing.assert_array_equal(evaluated(lower(parse(case.text), by_phases(target)), case.inputs(weights)), expected)


def test_zeros_times_skipped_weights_are_added() -> None:
    case = Case(("float", "float"), (3, 3), (2, 2), ((1, 1), (1, 1), (0, 0)))
    y, x, w, other = case.inputs()
    x[:], w[:] = 1, 1
    w[0, 1] = np.inf
    tlx.compile(case.text, by_phases("native"))(y, x, w, other)
    with_weight = np.isinf(y)  # windows that begin in even rows and odd columns
    assert with_weight[::2, 1::2].all()
    assert with_weight.sum() == with_weight[::2, 1::2].size
    assert np.isnan(y[~with_weight]).all()


def test_nnan_ignores_skipped_weights() -> None:
    case = Case(("float", "float"), (1, 2, 4, 4), (2, 2, 2, 2), ((1, 1), (1, 1), (0, 0)))
    assert "%skipped" in str(stage1(case, by_phases("generic")))
    module = parse(case.text.replace("%c = call <", "%c = call nnan <"))
    canonicalise(module)
    to_2d(module, LoweringContext(by_phases("generic")))
    assert "%skipped" not in str(module)


def test_too_many_phases_become_one_convolution_with_zeros() -> None:
    case = Case(("float", "float"), (1, 1, 4, 4), (1, 1, 9, 9), ((1, 1), (8, 8), (0, 0)))
    assert "%dilated.buf" in str(stage1(case, by_phases("generic")))


def test_phases_run_on_threads() -> None:
    case = Case(("float", "float"), (2, 32, 20, 20), (48, 32, 4, 4), ((1, 1), (1, 1), (0, 0)), "relu")
    expected = evaluated(parse(case.text), case.inputs())
    arguments = case.inputs()
    tlx.compile(case.text, by_phases("native"), threads="openmp")(*arguments)
    np.testing.assert_array_equal(arguments[0], expected)
