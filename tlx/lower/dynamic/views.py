"""Views of tensors of run-time size, dense or with strides, loops over their dimensions, and copies."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tlx.ir.builder.instructions import Builder
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import IntType, Type, bytes_of
from tlx.ir.values import ConstInt, Local, Value
from tlx.lower.dynamic.extents import i64
from tlx.lower.dynamic.helpers import HelperFunctions, NoAliasPointer, i64_parameters
from tlx.lower.memory.views import Storage, StridedDim, StridedView


@dataclass(frozen=True)
class DenseHandle:
    """The dense memory of a handle.

    Attributes:
        pointer: The first element.
        count: Number of elements, i64.
        element: Their type in memory: i8 for i1.
    """

    pointer: Value
    count: Value
    element: Type


@dataclass(frozen=True)
class DynamicView(StridedView[Value]):
    """A tensor of run-time extents in memory.

    Attributes:
        is_dense: Whether it is known to be contiguous, without padding.
    """

    is_dense: bool = False

    @property
    def pointer(self) -> Value:
        """The first element."""
        return self.storage.pointer

    @property
    def extents(self) -> list[Value]:
        """Extents of the logical dimensions."""
        return [dim.extent for dim in self.dims]

    @classmethod
    def dense(cls, b: Builder, pointer: Value, element: Type, extents: Sequence[Value]) -> DynamicView:
        """A row-major tensor without padding."""
        shape = tuple(extents)
        steps = tuple(row_major_strides(b, shape))
        return cls(Storage(pointer), element, shape, shape, steps, tuple(range(len(shape))), is_dense=True)


def row_major_strides(b: Builder, sizes: Sequence[Value]) -> list[Value]:
    """Strides, in elements, of the dimensions of a dense array."""
    steps: list[Value] = [i64(1)]
    for size in reversed(sizes[1:]):
        steps.append(b.mul(steps[-1], size, "step"))
    return steps[::-1]


def is_one(value: Value) -> bool:
    """Whether a value is the constant 1."""
    return isinstance(value, ConstInt) and value.value == 1


@dataclass(frozen=True)
class Walk:
    """A pointer that loops over dimensions advance: type of its elements, and its stride along each dimension."""

    pointer: Value
    element: Type
    steps: Sequence[Value]
    name: str


@contextmanager
def each_index(
    b: TensorBuilder, extents: Sequence[Value], walks: Sequence[Walk], name: str = "i"
) -> Generator[list[Value]]:
    """Loops over some dimensions; yields the pointers of an iteration."""
    pointers = [walk.pointer for walk in walks]
    with ExitStack() as stack:
        for k, extent in enumerate(extents):
            index = stack.enter_context(b.loop(0, extent, name=name)).index
            pointers = [
                b.gep(walk.element, pointer, b.mul(index, walk.steps[k], "offset"), walk.name)
                for walk, pointer in zip(walks, pointers, strict=True)
            ]
        yield pointers


def copy_strided(
    helpers: HelperFunctions,
    b: Builder,
    element: Type,
    to: tuple[Value, Sequence[Value]],
    source: tuple[Value, Sequence[StridedDim[Value]]],
) -> None:
    """Copy an array.

    Args:
        helpers: The module's helpers.
        b: Where to emit.
        element: Type of the elements.
        to: Pointer and step of each dimension.
        source: Pointer, and extent and step of each dimension.
    """
    bits = IntType(8 * bytes_of(element))
    rank = len(source[1])
    names = [f"{letter}{k}" for letter in "etf" for k in range(rank)]
    parameters = [("to", NoAliasPointer(bits)), ("from", NoAliasPointer(bits)), *i64_parameters(*names)]
    args = [to[0], source[0], *(d.extent for d in source[1]), *to[1], *(d.stride for d in source[1])]

    def build(inner: TensorBuilder, p: dict[str, Local]) -> None:
        _build_copy(inner, p, rank, bits)

    helpers.call(b, f"copy.r{rank}.{bits}", parameters, args, build)


def _build_copy(b: TensorBuilder, p: dict[str, Local], rank: int, element: IntType) -> None:
    last = rank - 1
    walks = [
        Walk(p["to"], element, [p[f"t{k}"] for k in range(last)], "to"),
        Walk(p["from"], element, [p[f"f{k}"] for k in range(last)], "from"),
    ]
    with each_index(b, [p[f"e{k}"] for k in range(last)], walks) as (to, source):
        copy_row(b, element, (to, p[f"t{last}"]), (source, p[f"f{last}"]), p[f"e{last}"])


def copy_row(
    b: TensorBuilder, element: IntType, to: tuple[Value, Value], source: tuple[Value, Value], count: Value
) -> None:
    """Copy elements: by memcpy if both steps are 1."""
    size = bytes_of(element)
    both = b.binary("and", b.icmp("eq", to[1], 1), b.icmp("eq", source[1], 1), "is.dense")
    piece = b.new_block("piece")
    single = b.new_block("single", piece)
    end = b.new_block("row.end", single)
    b.branch_if(both, piece, single)
    b.at_end(piece)
    b.memcpy(to[0], source[0], b.mul(count, size, "bytes"))
    b.branch(end)
    b.at_end(single)
    with b.loop(0, count, name="j") as loop:
        value = b.load(element, b.gep(element, source[0], b.mul(loop.index, source[1], "offset")), size, "element")
        b.store(value, b.gep(element, to[0], b.mul(loop.index, to[1], "offset")), size)
    b.branch(end)
    b.at_end(end)
