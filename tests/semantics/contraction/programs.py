"""Random contractions and convolutions: any layout, padding, pitches and element types, as text."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tests.semantics.to_2d.random.writer import DTYPES, WIDER, ints
from tlx.intrinsics.convolution import dilated
from tlx.intrinsics.numpy_types import Array
from tlx.intrinsics.products import EMPTY, free_axes
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import FloatType, Type

ELEMENTS: Final = tuple(WIDER)
SMALL: Final[tuple[int, ...]] = (1, 2, 3, 4, 5, 7)
LARGE: Final[tuple[int, ...]] = (1, 2, 8, 17, 32, 50)
MOST_PRODUCTS: Final[dict[tuple[int, ...], int]] = {SMALL: 8_000, LARGE: 4_000_000}


@dataclass(frozen=True)
class Program:
    """`void @f(ptr a, ptr b, ptr c)`.

    Attributes:
        text: The module.
        elements: Element types of the three.
        counts: How many elements lie behind each pointer.
        terms: Products in each sum.
        seed: Of the contents.
    """

    text: str
    elements: tuple[Type, Type, Type]
    counts: tuple[int, int, int]
    terms: int
    seed: int

    @property
    def typed(self) -> str:
        """The same program with typed pointers."""
        text = self.text.replace("ptr %c, align", "ptr %v, align")
        vector = re.search(r"store (<\d+ x \w+>) ", text)
        if vector is not None:
            cast = f"%v = bitcast {self.elements[2]}* %c to {vector[1]}*\n  store "
            text = text.replace("store ", cast, 1).replace("ptr %v", f"{vector[1]}* %v")
        for name, element in zip("abc", self.elements, strict=True):
            text = text.replace(f"ptr noalias %{name}", f"{element}* noalias %{name}").replace(
                f"ptr elementtype({element}) %{name}", f"{element}* elementtype({element}) %{name}"
            )
        return text.replace("ptr %c", f"{self.elements[2]}* %c")

    def inputs(self) -> list[Array]:
        """Memory for a call; integers are large, so that sums wrap."""
        generator = np.random.default_rng(self.seed)
        return [_numbers(generator, e, c) for e, c in zip(self.elements, self.counts, strict=True)]


def _numbers(generator: np.random.Generator, element: Type, count: int) -> Array:
    dtype = DTYPES[element]
    if isinstance(element, FloatType):
        return generator.standard_normal(count).astype(dtype)
    limits = np.iinfo(dtype)
    return generator.integers(limits.min, limits.max, count, dtype, endpoint=True)


class Writer:
    """Writes one program.

    Attributes:
        random: Source of all choices.
        lines: The body.
        counts: Elements behind each pointer.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.lines: list[str] = []
        self.counts: dict[str, int] = {}

    def program(self, elements: tuple[Type, Type, Type], terms: int) -> Program:
        """The program that has been written."""
        body = "".join(f"  {line}\n" for line in self.lines)
        text = f"define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %c) {{\n{body}  ret void\n}}\n"
        return Program(text, elements, (self.counts["a"], self.counts["b"], self.counts["c"]), terms, self.seed)

    def types(self) -> tuple[Type, Type, Type]:
        """Element types of both operands and of a result that they extend to."""
        one, other = self.random.choice(ELEMENTS), self.random.choice(ELEMENTS)
        common = [t for t in WIDER[one] if t in WIDER[other]]
        return (one, other, self.random.choice(common)) if common else self.types()

    def operand(self, name: str, element: Type, extents: Sequence[int]) -> None:
        """A load of a tensor of these logical extents."""
        rank = len(extents)
        layout = list(range(rank))
        if self.random.random() < 0.5:
            self.random.shuffle(layout)
        padding = [self.random.choice([0, 0, 0, 1]) for _ in range(rank)]
        shape = [extents[d] + p for d, p in zip(layout, padding, strict=True)]
        pitches = [0, *(self.random.choice([0, 0, 0, size + 1]) for size in shape[1:])]
        type_ = TensorType(element, tuple(shape), tuple(layout), tuple(padding))
        self.counts[name] = math.prod([shape[0], *(p or s for p, s in zip(pitches[1:], shape[1:], strict=True))])
        dims = ", ".join(map(ints, (type_.shape, type_.layout, type_.padding, pitches)))
        self.lines.append(f"%{name}.t = call token @llvm.tensor.load(ptr elementtype({element}) %{name}, {dims})")

    def store(self, vector: str, element: Type, extents: Sequence[int]) -> None:
        """A store of the result, as a vector or with pitches."""
        type_ = TensorType.dense(element, extents)
        self.counts["c"] = type_.count
        if self.random.random() < 0.5:
            self.lines.append(f"store {type_.vector} {vector}, ptr %c, align 1")
            return
        pitches = [0, *(size + self.random.choice([0, 2]) for size in extents[1:])]
        self.counts["c"] = math.prod([extents[0], *pitches[1:]])
        dims = ", ".join(map(ints, (type_.shape, type_.layout, type_.padding)))
        self.lines.append(f"%c.t = call token @llvm.tensor.typeinfo({type_.vector} {vector}, {dims})")
        self.lines.append(f"call void @llvm.tensor.store(ptr %c, token %c.t, {ints(pitches)})")


def contraction(seed: int, sizes: tuple[int, ...] = SMALL) -> Program:
    """A contraction of two tensors over some of their dimensions or over none, the form with batch among them.

    Args:
        seed: Of all choices.
        sizes: SMALL or LARGE: extents to choose from.
    """
    writer = Writer(seed)
    choose = writer.random
    batches, pairs = choose.choice([0, 0, 1, 2]), choose.choice([0, 1, 1, 2, 3])
    free = [choose.choice([0, 1, 1, 2]), choose.choice([0, 1, 1, 2])]
    if pairs + batches + max(free) > 5 or pairs + batches + min(free) == 0:
        return contraction(seed + 100_000, sizes)
    kinds = [[f"b{i}" for i in range(batches)] + [f"k{i}" for i in range(pairs)] for _ in free]
    for kind, count, name in zip(kinds, free, "mn", strict=True):
        kind += [f"{name}{i}" for i in range(count)]
        choose.shuffle(kind)
    extents = {dim: choose.choice(sizes) for kind in kinds for dim in kind}
    elements = writer.types()
    for name, element, kind in zip("ab", elements, kinds, strict=False):
        writer.operand(name, element, [extents[dim] for dim in kind])
    order = [f"k{i}" for i in range(pairs)]
    choose.shuffle(order)
    dims = [[kind.index(dim) for dim in order] for kind in kinds]
    together = [[kind.index(f"b{i}") for i in range(batches)] for kind in kinds]
    left = [extents[dim] for dim in (f"b{i}" for i in range(batches))]
    for kind, axes, batch in zip(kinds, dims, together, strict=True):
        left += [extents[kind[d]] for d in free_axes(len(kind), axes, batch)]
    if math.prod(extents.values()) > MOST_PRODUCTS[sizes]:
        return contraction(seed + 100_000, sizes)
    lists = [axes or EMPTY for axes in ([*dims, *together] if batches else dims)] if batches + pairs else []
    return _finished(writer, "contract", lists, elements, left or [1], math.prod(extents[dim] for dim in order))


def convolution(seed: int, sizes: tuple[int, ...] = SMALL) -> Program:
    """A convolution of any rank, with groups, strides and dilations.

    Args:
        seed: Of all choices.
        sizes: SMALL or LARGE: numbers of channels and filters, and how far the kernel moves.
    """
    writer = Writer(seed)
    choose = writer.random
    spatial = choose.choice([1, 2, 2, 2, 3])
    plain = spatial == 2 and choose.random() < 0.3
    kernel = [choose.choice([1, 1, 2, 3]) for _ in range(spatial)]
    vectors = [[choose.choice(numbers) for _ in range(spatial)] for numbers in ([1, 1, 2, 3], [0, 0, 0, 1], [0, 0, 1])]
    strides, input_holes, kernel_holes = vectors
    inputs = [_input_extent(choose, *numbers, sizes) for numbers in zip(kernel, input_holes, kernel_holes, strict=True)]
    result = [
        (dilated(i, h + 1) - dilated(k, d + 1)) // s + 1
        for i, k, s, h, d in zip(inputs, kernel, strides, input_holes, kernel_holes, strict=True)
    ]
    groups, inner, filters = choose.choice([1, 1, 1, 2, 3]), choose.choice(sizes[:-1]), choose.choice(sizes[:-1])
    images = choose.choice([1, 1, 2])
    elements = writer.types()
    x, w = ([], []) if plain else ([images, groups * inner], [groups * filters, inner])
    writer.operand("a", elements[0], [*x, *inputs])
    writer.operand("b", elements[1], [*w, *kernel])
    if not plain and choose.random() < 0.5:
        vectors = [[1, 1, *numbers] for numbers in vectors]
    if choose.random() < 0.2 and not any(map(any, ([s - 1 for s in strides], input_holes, kernel_holes))):
        vectors = []
    extents = result if plain else [images, groups * filters, *result]
    terms = math.prod(kernel) * (1 if plain else inner)
    if math.prod(extents) * terms > MOST_PRODUCTS[sizes] * 4:
        return convolution(seed + 100_000, sizes)
    return _finished(writer, "convolution", vectors, elements, extents, terms)


def _input_extent(
    choose: random.Random, kernel: int, input_holes: int, kernel_holes: int, sizes: tuple[int, ...]
) -> int:
    """An extent that the kernel fits into, with some room."""
    least = -(-(dilated(kernel, kernel_holes + 1) - 1) // (input_holes + 1)) + 1
    return least + choose.choice([0, *sizes])


def _finished(
    writer: Writer,
    name: str,
    vectors: Sequence[Sequence[int]],
    elements: tuple[Type, Type, Type],
    extents: Sequence[int],
    terms: int,
) -> Program:
    result = TensorType.dense(elements[2], extents)
    operands = ", ".join(["token %a.t", "token %b.t", *map(_ints, vectors)])
    writer.lines.append(f"%r = call {result.vector} @llvm.tensor.{name}({operands})")
    writer.store("%r", elements[2], extents)
    return writer.program(elements, terms)


def _ints(numbers: Sequence[int]) -> Any:
    return ints(numbers) if numbers else "<0 x i32> zeroinitializer"
