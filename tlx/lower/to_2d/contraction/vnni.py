"""VNNI: right operands whose rows are interleaved in groups, as a matrix unit or a dot product reads them.

Operands that the program has interleaved itself are read in place:

    %b = call token @llvm.tensor.load(ptr %p, <K/v, N, v>, ...)
    %f = call <K*N x bfloat> @llvm.tensor.reshape.permute(token %b, <0, 2, 1>, <K, N>)
    %t = call token @llvm.tensor.typeinfo(<K*N x bfloat> %f, <K, N>, ...)
    %p = call <M*N x float> @llvm.tensor.matmul(token %a, token %t)

The permutation stays a part of the product if the matrix unit, or a dot product of vectors, reads such operands;
otherwise it is a copy. A contraction over the groups and over the rows in them is the same product:

    %a = call token @llvm.tensor.load(ptr %x, <M, K/v, v>, ...)
    %p = call <M*N x float> @llvm.tensor.contract(token %a, token %b, <1, 2>, <0, 2>)

Other operands are copied (`VnniCopy`):

rows of an image's windows, in memory          copy, two rows a group

c  i  j                                        x, y        0 0   0 0   0 1   0 1 ...
0  0  0    0 1 2 ...                           group 0     r0    r1    r0    r1
0  0  1    1 2 3 ...                           group 1     r2    r3    r2    r3
...                                            ...
1  0  0    100 101 102 ...                     group 4     r8    r9    r8    r9        the last window of a channel, and
1  0  1    101 102 103 ...                                                             the first of the next one

The rows of a group may be any distance apart, and the distances may differ from group to group: code is unrolled over
groups until the distances repeat. A register of a group is gathered from these rows (`gathers`). Code is unrolled over
columns, too, until the pattern repeats (`RaggedColumns`); if that takes too many registers, over the columns of a row:

14 x 14 columns, 16 at a time: whole registers that begin and end anywhere in a row; 12 of them, and the rest

    row 0    0 1 2 3 4 5 6 7 8 9 a b c d | 0 1        register 0: all of row 0, two of row 1
    row 1    2 3 4 5 6 7 8 9 a b c d | 0 1 2 3        register 1: the rest of row 1, four of row 2

The pattern of 28 x 28 columns repeats after 7 registers, or 4 rows: they are unrolled, with a loop around them.

A register of elements at known distances (`RegisterGather`) is loaded as lines, which are merged, then permuted:

elements at 0, 1, 2, 9, 10, 11      line 0    0 1 2 - - - - -
                                    line 6    - - - 9 10 11 - -        begins where its elements fall into free lanes
                                    merged    0 1 2 9 10 11 - -        one shuffle for each line but the first
                                    order     0 9 1 10 2 11            one shuffle at the end
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Final

from tlx.intrinsics.products import axes_of
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import Type, bits_of, bytes_of
from tlx.ir.values import Value
from tlx.lower.cost import randomized_cycles
from tlx.lower.memory.views import StridedDim
from tlx.lower.to_2d.analysis.tensor_operations import PRODUCTS
from tlx.lower.to_2d.contraction.problem import LHS, OUT, RHS, Contraction, OperandMemory
from tlx.lower.to_2d.loop_nests import LoopDim, collapse_dims, loop_nest
from tlx.lower.to_2d.memory.copies import WIDEST_VECTOR
from tlx.target.costs.blocks import BlockCosts
from tlx.target.instructions.dots import Dot
from tlx.target.target import Target

VNNI: Final = (0, 2, 1)
VNNI_STRIPS: Final = (1, 3, 0, 2)
"""The permutation of strips x K/v x columns x v to K x N."""
_WORD_BITS: Final = 32


def is_interleaved(op: TensorOp, target: Target) -> bool:
    """Whether the result of a `reshape.permute` is a K x N matrix that products can read in place, interleaved."""
    source, result = op.tensors[0], op.result
    if op.intrinsic.name != "reshape.permute" or result is None or target.versions:
        return False
    type_ = source.type
    plain = source.kind == "load" and type_.rank == len(VNNI) and not type_.is_padded and not any(source.pitches or ())
    if not plain or op.dims[0] != VNNI or type_.layout != tuple(range(type_.rank)):
        return False
    groups, columns, width = type_.shape
    return _is_read(type_.element, width, target) and result.shape == (groups * width, columns)


def _is_read(element: Type, width: int, target: Target, rows: int | None = None) -> bool:
    """Whether the matrix unit, or dot products, read right operands with `width` interleaved rows.

    `rows` is the number of rows of the left operand, if it is known.
    """
    return any(d.lhs[0] == d.rhs[0] == str(element) and d.width == width for d in _dots(target, rows))


def _dots(target: Target, rows: int | None) -> Iterable[Dot]:
    """The matrix unit's products; if there is none, the dot products of vectors that handle all signs of operands."""
    if target.matrix is not None:
        return target.usable_matrix_dots
    core = target.core
    profitable = [
        d
        for d in target.usable_dots
        if (d.is_profitable(core) if rows is None else d.is_profitable_in_place(core, rows))
    ]
    dots = [dot for dot in profitable if dot.widening_loads is None]
    kinds = {(dot.lhs, dot.rhs, dot.width) for dot in dots}
    return [d for d in dots if "f" in d.lhs or ((d.lhs[0], "u"), (d.rhs[0], "s"), d.width) in kinds]


def with_vnni_rows(c: Contraction, target: Target) -> Contraction | None:
    """The contraction with the two dimensions of interleaved rows merged; None if the right operand has none.

    Rewrite of 64 x 16 x 4 times 16 x 32 x 4 bytes, strides in lhs, rhs, out::

        n 32 (0, 4, 1)    k 16 (4, 128, 0), 4 (1, 1, 0)
        ->
        n 32 (0, 1, 1)    k 64 (1, 32, 0)                    group 4

    Other dimensions of columns and of rows, those of blocks of the operand, are loops, but for blocks of rows that
    continue each other.
    """
    inner = [dim for dim in c.k if _steps(dim) == (1, 1)]
    known = not target.versions and c.kind == "matmul" and c.lhs.element == c.rhs.element
    if not known or len(inner) != 1 or c.reduces or bits_of(c.out.element) > _WORD_BITS:
        return None
    width = inner[0].extent
    across = next((dim for dim in c.n if dim.extent > 1 and (dim.strides[RHS], dim.strides[OUT]) == (width, 1)), None)
    if across is None:
        return None
    columns, at = across
    groups = next((dim for dim in c.k if _steps(dim) == (width, width * columns)), None)
    rows_of_lhs = math.prod(dim.extent for dim in c.m)
    if groups is None or not _is_read(c.rhs.element, width, target, rows_of_lhs):
        return None
    rows = LoopDim(groups.extent * width, (1, columns, *groups.strides[OUT:]))
    others = [dim for dim in c.k if dim not in (groups, inner[0])]
    blocks = [dim for dim in c.n if dim.extent > 1 and dim is not across]
    whole = LoopDim(columns, (at[LHS], 1, *at[OUT:]))
    return replace(c, rhs=c.rhs._replace(vnni_group=width), n=(*blocks, whole), k=tuple(collapse_dims([*others, rows])))


def has_dense_vnni_rows(c: Contraction) -> bool:
    """Whether the interleaved rows of a right operand are contiguous."""
    return c.k[-1].strides[RHS] == c.n[-1].extent


def without_vnni_rows(c: Contraction) -> Contraction:
    """The contraction with interleaved rows as two dimensions: the inverse of `with_vnni_rows`."""
    width = c.rhs.vnni_group
    if width == 1:
        return c
    (columns, at), (rows, steps) = c.n[-1], c.k[-1]
    groups = LoopDim(rows // width, (steps[LHS] * width, columns * width, *steps[OUT:]))
    inner = LoopDim(width, (steps[LHS], 1, *steps[OUT:]))
    separate = LoopDim(columns, (at[LHS], width, *at[OUT:]))
    return replace(c, rhs=c.rhs._replace(vnni_group=1), n=(*c.n[:-1], separate), k=(*c.k[:-1], groups, inner))


def _steps(dim: LoopDim) -> tuple[int, int]:
    return dim.strides[LHS], dim.strides[RHS]


def is_vnni_product(product: TensorOp | None, operand: Tensor) -> bool:
    """Whether an operation is a product of rows by a matrix, and reads an operand only as that matrix."""
    if product is None or product.intrinsic.name not in PRODUCTS or product.result is None:
        return False
    *others, rhs = product.tensors
    same = rhs is operand and all(o is not operand for o in others) and others[-1].type.element == rhs.type.element
    if not same or rhs.type.rank != 2 or bits_of(product.result.element) > _WORD_BITS:
        return False
    if product.intrinsic.name == "contract":
        axes = axes_of(product.dims)
        return axes == ((others[-1].type.rank - 1,), (0,), (), ())
    return product.result.rank == 2


_MAX_REGISTERS: Final = 16
"""Largest number of registers of unrolled columns; if more are needed, registers hold whole rows, or parts of one."""


@dataclass(frozen=True)
class RaggedColumns:
    """The columns of a register, copied by one shuffle, with loops around it.

    Attributes:
        enclosing: Loops around the registers: extent, stride in the operand, columns from one to the next.
        start: Offset of the first column in the operand, and its number.
        places: Element offsets of a register's columns from the first one.
    """

    enclosing: tuple[LoopDim, ...]
    start: tuple[int, int]
    places: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of registers."""
        return math.prod(extent for extent, _ in self.enclosing)


def ragged_columns(columns: Sequence[StridedDim[int]], lanes: int) -> list[RaggedColumns]:
    """All columns, in whole registers if these can be unrolled; otherwise by whole rows, or parts of one."""
    outer, places = list(columns), (0,)
    while outer and len(places) % lanes:
        dim = outer.pop()
        factor = lanes // math.gcd(len(places), lanes)
        unrolled = factor if dim.extent % factor == 0 else dim.extent
        if len(places) * unrolled > _MAX_REGISTERS * lanes:
            return _registers_of_rows(columns, lanes)
        places = _repeated_places(places, StridedDim(unrolled, dim.stride))
        if unrolled < dim.extent:
            outer.append(StridedDim(dim.extent // unrolled, dim.stride * unrolled))
    enclosing = with_dense_strides(outer, len(places))
    return [RaggedColumns(enclosing, (0, at), places[at : at + lanes]) for at in range(0, len(places), lanes)]


def are_whole_registers(registers: Sequence[RaggedColumns], lanes: int) -> bool:
    """Whether the first column of each register is a multiple of `lanes`."""
    steps = [register.start[1] for register in registers]
    steps += [step for register in registers for _, (_, step) in register.enclosing]
    return all(step % lanes == 0 for step in steps)


def with_dense_strides(dims: Sequence[StridedDim[int]], step: int) -> tuple[LoopDim, ...]:
    """Loops over dimensions, with their strides and those of a dense copy, in which the last one's is `step`."""
    loops = list[LoopDim]()
    for dim in reversed(dims):
        loops.insert(0, LoopDim(dim.extent, (dim.stride, step)))
        step *= dim.extent
    return tuple(loops)


def _registers_of_rows(columns: Sequence[StridedDim[int]], lanes: int) -> list[RaggedColumns]:
    """Columns, at most `lanes` at a time: whole inner dimensions, and some positions of the next one."""
    outer, places = list(columns), (0,)
    while outer[-1].extent * len(places) <= lanes:
        places = _repeated_places(places, outer.pop())
    each, (extent, stride) = len(places), outer.pop()
    enclosing, count = with_dense_strides(outer, extent * each), lanes // each
    full, rest = divmod(extent, count)
    registers = [
        RaggedColumns(
            (*enclosing, LoopDim(full, (count * stride, count * each))),
            (0, 0),
            _repeated_places(places, StridedDim(count, stride)),
        )
    ]
    if rest:
        start = full * count * stride, full * count * each
        registers.append(RaggedColumns(enclosing, start, _repeated_places(places, StridedDim(rest, stride))))
    return registers


def _repeated_places(places: tuple[int, ...], dim: StridedDim[int]) -> tuple[int, ...]:
    """Offsets, repeated for each position of an outer dimension."""
    return tuple(index * dim.stride + place for index in range(dim.extent) for place in places)


@dataclass(frozen=True, slots=True)
class GatheredLine:
    """Elements that are loaded together.

    Attributes:
        start: Offset of the line.
        count: Number of elements up to the last one that is needed.
        mask: The shuffle that merges the line into those before it.
    """

    start: int
    count: int
    mask: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RegisterGather:
    """How a register is gathered from memory.

    Attributes:
        count: Number of elements that are gathered.
        lanes: Number of elements of the register.
        loads: The lines that are loaded.
        order: The lane of each element in the merged lines.
    """

    count: int
    lanes: int
    loads: tuple[GatheredLine, ...]
    order: tuple[int, ...]

    @classmethod
    @lru_cache(maxsize=4096)
    def of(cls, places: tuple[int, ...], lanes: int) -> RegisterGather:
        """The register of at most `lanes` elements at offsets from an address, none of which is negative."""
        lane_of: dict[int, int] = {}
        lines: list[GatheredLine] = []
        for needed in _lines(places, lanes):
            start = _start(needed, lane_of, lanes)
            free = iter([lane for lane in range(lanes) if lane not in set(lane_of.values())])
            mask = list(range(lanes))
            conflicts = any(place - start in lane_of.values() for place in needed)
            for place in needed:
                lane = next(free) if conflicts else place - start
                lane_of[place], mask[lane] = lane, lanes + place - start
            lines.append(GatheredLine(start, needed[-1] - start + 1, tuple(mask)))
        order = [lane_of[place] for place in places]
        return cls(len(places), lanes, tuple(lines), (*order, *range(len(order), lanes)))

    def emit(self, b: TensorBuilder, element: Type, source: Value, destination: Value, count: int) -> None:
        """Write the tree that gathers a register from one address and stores it, or its first elements, to another.

        Args:
            b: The builder.
            element: Type of the elements.
            source: The address that offsets count from.
            destination: The destination.
            count: Number of elements that are written; those after the gathered ones have any value.
        """
        if len(self.loads) == 1 and self.order[: self.count] == tuple(range(self.count)):
            here = b.gep(element, source, self.loads[0].start, "from")
            line = b.tensor_load(here, TensorType.dense(element, (1, self.count)), (0, self.count), "line")
            b.tensor_store(destination, line, (0, self.count))
            return
        merged: Value | None = None
        for line in self.loads:
            type_ = TensorType(element, (1, self.lanes), (0, 1), (0, self.lanes - line.count))
            here = b.gep(element, source, line.start, "from")
            vector = b.tovector(b.tensor_load(here, type_, None, "line"), type_)
            merged = vector if merged is None else b.shuffle(merged, vector, line.mask, "merged")
        assert merged is not None
        gathered = b.shuffle(merged, None, self.order, "permuted")
        type_ = TensorType(element, (1, self.lanes), (0, 1), (0, self.lanes - count))
        b.tensor_store(destination, b.typeinfo(gathered, type_, "permuted"))


def _lines(places: Sequence[int], lanes: int) -> list[list[int]]:
    """The offsets in order, in lines of at most a register's elements."""
    lines: list[list[int]] = []
    for place in sorted(set(places)):
        if not lines or place - lines[-1][0] >= lanes:
            lines.append([])
        lines[-1].append(place)
    return lines


def _start(needed: Sequence[int], lane_of: dict[int, int], lanes: int) -> int:
    """The start of a line, such that its elements fall into free lanes if any start from 0 on does that."""
    occupied = set(lane_of.values())
    starts = range(needed[0], max(-1, needed[-1] - lanes), -1)
    fitting = (start for start in starts if not any(place - start in occupied for place in needed))
    return next(fitting, needed[0])


_MAX_ROWS: Final = 64
"""Largest number of rows that are unrolled."""


@dataclass(frozen=True)
class VnniRows:
    """The rows of an operand in groups.

    Attributes:
        width: Rows of a group.
        enclosing: Loops around the unrolled rows: extent, and stride in the operand.
        offsets: Element offsets of the unrolled rows from the first one, group after group.
    """

    width: int
    enclosing: tuple[StridedDim[int], ...]
    offsets: tuple[int, ...]

    @classmethod
    def of(cls, rows: Sequence[StridedDim[int]], width: int) -> VnniRows | None:
        """The groups of rows with these dimensions; None if too many rows would have to be unrolled."""
        enclosing, inner, count = list(rows), list[StridedDim[int]](), 1
        while count % width:
            if not enclosing:
                return None
            extent, stride = enclosing.pop()
            factor = width // math.gcd(count, width)
            unrolled = factor if extent % factor == 0 else extent
            enclosing.append(StridedDim(extent // unrolled, stride * unrolled))
            inner.insert(0, StridedDim(unrolled, stride))
            count *= unrolled
            if unrolled == extent:
                enclosing.pop()
        if count > _MAX_ROWS or any(dim.stride < 0 for dim in rows):
            return None
        offsets = tuple(sum(places) for places in product(*(range(0, d.extent * d.stride, d.stride) for d in inner)))
        return cls(width, tuple(enclosing), offsets)

    def gathers(self, register: RaggedColumns, lanes: int) -> list[tuple[int, RegisterGather]]:
        """For each unrolled group the offset of a register of its columns, and the gather of that register."""
        gathers: list[tuple[int, RegisterGather]] = []
        for first in range(0, len(self.offsets), self.width):
            rows = self.offsets[first : first + self.width]
            places = tuple(place + row - min(rows) for place in register.places for row in rows)
            gathers.append((min(rows), RegisterGather.of(places, lanes)))
        return gathers

    def cycles(self, rows: float, columns: Sequence[StridedDim[int]], lanes: int, costs: BlockCosts) -> float:
        """The estimated cycles to copy `rows` rows of such columns, of which a register holds `lanes`."""
        registers = ragged_columns(columns, lanes)
        lines = max(len(gather.loads) for _, gather in self.gathers(registers[0], lanes * self.width))
        each = max(costs.copies.interleaved_store_cycles, costs.copies.interleaved_line_cycles * lines)
        cycles = rows / self.width * sum(register.count for register in registers) * each
        return randomized_cycles(costs.decision_seed, cycles, self, rows, columns)


@dataclass(frozen=True)
class VnniCopy:
    """A copy with interleaved rows.

    Attributes:
        b: The builder.
        source: The operand.
        groups: Its rows.
        outer: Loops around the matrices that are copied: extent, strides in the operand and in the copy.
        columns: Dimensions of a row in the operand.
        pitch: Columns of a row of the copy; those after the operand's last one may have any value.
        strip: Elements from one strip of `pitch` columns to the next in the copy; 0: there is one strip.
    """

    b: TensorBuilder
    source: OperandMemory
    groups: VnniRows
    outer: tuple[LoopDim, ...]
    columns: tuple[StridedDim[int], ...]
    pitch: int
    strip: int = 0

    def write(self, destination: Value) -> None:
        """Write the copy."""
        b, (pointer, element, *_) = self.b, self.source
        lanes = WIDEST_VECTOR // bytes_of(element)
        width = self.groups.width
        rows = with_dense_strides(self.groups.enclosing, len(self.groups.offsets) * self.pitch)
        with loop_nest(b, [*self.outer, *rows], 2, "groups") as (start, there):
            base, out = b.gep(element, pointer, start, "from"), b.gep(element, destination, there, "to")
            for register in ragged_columns(self.columns, self._register_columns):
                enclosing = [
                    LoopDim(extent, (here, self._place(column))) for extent, (here, column) in register.enclosing
                ]
                columns = self._columns(register)
                with loop_nest(b, enclosing, 2, "column") as (along, to):
                    for number, (first, gather) in enumerate(self.groups.gathers(register, lanes)):
                        here = b.gep(element, base, b.add(along, register.start[0] + first), "row")
                        place = b.add(to, self._place(register.start[1]) + number * self.pitch * width)
                        gather.emit(b, element, here, b.gep(element, out, place, "group"), columns * width)

    def _columns(self, register: RaggedColumns) -> int:
        """Number of columns that a register writes: all its lanes if there is room after the last column."""
        start = register.start[1] % self.pitch if self.strip else register.start[1]
        return len(register.places) if register.enclosing else min(self._register_columns, self.pitch - start)

    @property
    def _register_columns(self) -> int:
        """Columns of a register, all of one strip."""
        columns = WIDEST_VECTOR // bytes_of(self.source.element) // self.groups.width
        return min(columns, self.pitch) if self.strip else columns

    def _place(self, column: int) -> int:
        """Element offset of a column in a row of the copy."""
        return column // self.pitch * self.strip if self.strip else column * self.groups.width
