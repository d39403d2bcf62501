"""Tensors of run-time extents: their extents as i64 values, checks at run time, views, loops and copies."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.constant_folding import ConstantFolder
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I1, I64, IntType, Type, VectorType, bytes_of
from tlx.ir.values import ConstInt, Local, Value, compare_integers
from tlx.lower.dynamic.helpers import HelperFunctions, NoAliasPointer, i64_parameters
from tlx.lower.memory.allocation import emit_trap
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
        """Address of the first element."""
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
class SteppedPointer:
    """A pointer that advances with the loops over some dimensions.

    Attributes:
        pointer: The pointer before the loops.
        element: Type of its elements.
        steps: Elements by which each loop advances it.
        name: Name of the advanced pointers.
    """

    pointer: Value
    element: Type
    steps: Sequence[Value]
    name: str


@contextmanager
def each_index(
    b: TensorBuilder, extents: Sequence[Value], stepped: Sequence[SteppedPointer], name: str = "i"
) -> Generator[list[Value]]:
    """Emit loops over some dimensions; yields the pointers of an iteration."""
    pointers = [start.pointer for start in stepped]
    with ExitStack() as stack:
        for k, extent in enumerate(extents):
            index = stack.enter_context(b.loop(0, extent, name=name)).index
            pointers = [
                b.gep(start.element, pointer, b.mul(index, start.steps[k], "offset"), start.name)
                for start, pointer in zip(stepped, pointers, strict=True)
            ]
        yield pointers


def copy_strided(
    helpers: HelperFunctions,
    b: Builder,
    element: Type,
    destination: tuple[Value, Sequence[Value]],
    source: tuple[Value, Sequence[StridedDim[Value]]],
) -> None:
    """Copy an array.

    Args:
        helpers: The module's helpers.
        b: The builder.
        element: Type of the elements.
        destination: Pointer, and stride of each dimension.
        source: Pointer, and extent and stride of each dimension.
    """
    bits = IntType(8 * bytes_of(element))
    rank = len(source[1])
    names = [f"{letter}{k}" for letter in "etf" for k in range(rank)]
    parameters = [("to", NoAliasPointer(bits)), ("from", NoAliasPointer(bits)), *i64_parameters(*names)]
    args = [destination[0], source[0], *(d.extent for d in source[1]), *destination[1], *(d.stride for d in source[1])]

    def build(inner: TensorBuilder, p: dict[str, Local]) -> None:
        _build_copy(inner, p, rank, bits)

    helpers.call(b, f"copy.r{rank}.{bits}", parameters, args, build)


def _build_copy(b: TensorBuilder, p: dict[str, Local], rank: int, element: IntType) -> None:
    last = rank - 1
    pointers = [
        SteppedPointer(p["to"], element, [p[f"t{k}"] for k in range(last)], "to"),
        SteppedPointer(p["from"], element, [p[f"f{k}"] for k in range(last)], "from"),
    ]
    with each_index(b, [p[f"e{k}"] for k in range(last)], pointers) as (to, source):
        copy_row(b, element, (to, p[f"t{last}"]), (source, p[f"f{last}"]), p[f"e{last}"])


def copy_row(
    b: TensorBuilder, element: IntType, destination: tuple[Value, Value], source: tuple[Value, Value], count: Value
) -> None:
    """Copy elements: by memcpy if both steps are 1."""
    size = bytes_of(element)
    both = b.binary("and", b.icmp("eq", destination[1], 1), b.icmp("eq", source[1], 1), "is.dense")
    piece = b.new_block("dense")
    single = b.new_block("strided", piece)
    end = b.new_block("row.end", single)
    b.branch_if(both, piece, single)
    b.at_end(piece)
    b.memcpy(destination[0], source[0], b.mul(count, size, "bytes"))
    b.branch(end)
    b.at_end(single)
    with b.loop(0, count, name="j") as loop:
        value = b.load(element, b.gep(element, source[0], b.mul(loop.index, source[1], "offset")), size, "element")
        b.store(value, b.gep(element, destination[0], b.mul(loop.index, destination[1], "offset")), size)
    b.branch(end)
    b.at_end(end)


_MOST_ELEMENTS: Final = 1 << 48


def i64(value: int) -> ConstInt:
    """An i64."""
    return ConstInt(I64, value)


def product(b: Builder, factors: Sequence[Value]) -> Value:
    """The product of i64 values; 1 if there are none."""
    result: Value = i64(1)
    for factor in factors:
        result = b.mul(result, factor, "count")
    return result


@dataclass(eq=False)
class RuntimeChecks:
    """Conditions that must hold at run time; `emit` writes code that stops the program if one does not.

    call void @tlx.dynamic.check(i1 %all)
    """

    b: TensorBuilder
    helpers: HelperFunctions
    _conditions: list[Value] = field(default_factory=list[Value])

    def compare(self, predicate: str, a: Value, b: Value) -> None:
        """Require a signed comparison of two i64, unless it is known to hold."""
        if a == b and predicate in ("eq", "sle", "sge"):
            return
        if isinstance(a, ConstInt) and isinstance(b, ConstInt) and compare_integers(predicate, a.value, b.value, 64):
            return
        self._conditions.append(self.b.icmp(predicate, a, b, "valid"))

    def require(self, condition: Value) -> None:
        """Require an i1."""
        self._conditions.append(condition)

    def require_countable(self, sizes: Sequence[Value]) -> None:
        """Require that the product of positive numbers does not exceed the largest number of elements."""
        total: Value | None = None
        for size in sizes:
            if total is not None and not (isinstance(total, ConstInt) and isinstance(size, ConstInt)):
                positive = self.b.binary("or", size, i64(1), "positive")  # its sign is checked as well
                most = self.b.binary("udiv", i64(_MOST_ELEMENTS), positive, "limit")
                self._conditions.append(self.b.icmp("ule", total, most, "valid"))
            total = size if total is None else self.b.mul(total, size, "count")

    def emit(self) -> None:
        """Stop the program unless all conditions hold."""
        if not self._conditions:
            return
        all_: Value = self._conditions[0]
        for condition in self._conditions[1:]:
            all_ = self.b.binary("and", all_, condition, "valid")
        self.helpers.call(self.b, "check", [("valid", I1)], [all_], _emit_check)
        self._conditions = []


def _emit_check(b: TensorBuilder, parameters: dict[str, Local]) -> None:
    """`if (!valid) trap();`."""
    stop = b.new_block("trap")
    end = b.new_block("end", stop)
    b.branch_if(parameters["valid"], end, stop)
    b.at_end(stop)
    emit_trap(b)
    b.at_end(end)


@dataclass(eq=False)
class VectorEntries:
    """The entries of a function's vectors.

    Attributes:
        b: The builder that extracts entries.
        folder: Finds those that are constant or inserted.
    """

    b: Builder
    folder: ConstantFolder
    _origins: dict[str, str] = field(default_factory=dict[str, str])

    def of(self, vector: Value) -> list[Value]:
        """All entries, as i64; constants where they are known."""
        assert isinstance(vector.type, VectorType)
        return [self._entry(vector, index) for index in range(vector.type.count)]

    def is_same(self, a: Value, b: Value) -> bool:
        """Whether two values are known to be equal."""
        return a == b or (str(a) in self._origins and self._origins.get(str(a)) == self._origins.get(str(b)))

    def _entry(self, vector: Value, index: int) -> Value:
        known = self.folder.entry(vector, index)
        if isinstance(known, int):
            return i64(known)
        entry = known if known is not None else self.b.extract_element(vector, index, "entry")
        extent = self.b.cast("sext", entry, I64, "extent")
        self._origins[str(extent)] = str(known) if known is not None else f"{vector}[{index}]"
        return extent


def entry_symbol(folder: ConstantFolder, vector: Value, index: int) -> str | int:
    """The symbol of an entry: entries with the same symbol are equal."""
    known = folder.entry(vector, index)
    return known if isinstance(known, int) else f"{vector}[{index}]" if known is None else str(known)
