"""Which dimensions of a contraction become the matrices of 2-D products, and which become loops.

convolution of 64 x 56 x 56 with 64 x 64 x 3 x 3         loops   y                      (N)
                                                         sums    i, j                   (K)
                                                         2-D     o x c times c x x      (M, K, N)
                                                         copied  w, so that c is dense

All choices are tried: one dimension of each of M, N and K for the products, either operand copied, the result or its
transpose. The one that an estimate of cycles likes best is taken; most of it is what a 2-D load can say (one of two
strides is 1), and that products are large.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Final

from tlx.ir.types import BFLOAT, HALF, PTR, Type, bytes_of
from tlx.ir.values import Keyword
from tlx.lower.to_2d.contraction import ACC, LEAVES, LHS, OUT, RHS, Contraction, Memory, is_reduced
from tlx.lower.to_2d.copy_cost import FAR_BYTE, NEAR_BYTES, TURNED, copy_cycles
from tlx.lower.to_2d.grouping import Groups
from tlx.lower.to_2d.loops import INDEX_LIMIT, Walk
from tlx.lower.to_2d.runs import Run, merge
from tlx.lower.to_2d.unit import Unit
from tlx.lower.to_2d.views import Dim, Place, View, loaded_as

CHAINED: Final = 64
"""Products of a sum up to which they are one tree."""
CALL: Final = 100
"""Cycles that a 2-D product takes beside its arithmetic."""
_TERM: Final = 4
_TERM_OF_REGISTER: Final = 0.8
"""Cycles between two products of a sum; more for each register of the result, whose tiles begin a loop each."""
_CROWDED: Final = 1024
"""Bytes of which the distance of rows is a multiple where rows share cache sets."""
_ROWS: Final = 16
"""Rows that a part of an operand has a multiple of."""
_LINE: Final = 0.05
"""Cycles that products of registers take longer where the left operand has another line for each position of K."""
_STORE: Final = 2
_TURNED_STORE: Final = 6
"""Cycles to store a register of the result, and one that is turned before."""
_NOWHERE: Final = Keyword(PTR, "null")
_TURNED: Final = 4
"""Cycles to turn a narrow element for dot products."""
FOLDED: Final = 4
"""Cycles to reduce a vector to one element."""
_MOST_REPEATED: Final = 16 << 20
"""Bytes up to which a copy may hold elements of overlapping windows more than twice."""


@dataclass(frozen=True, eq=False)
class Blocking:
    """A choice.

    Attributes:
        contraction: The contraction or its transpose.
        packed: Which operands are copied: LHS, RHS.
        batch, outer_m, outer_n: Loops around the blocks of the result.
        outer_k: Loops around the products that make one block.
        m, n, k: The dimensions of the products.
        uneven: One more loop around the products of a block, where the contraction has such a dimension.
        groups: How rows of a copied right operand are interleaved for a matrix unit, if they are.
        room: Columns of a row of that copy: whole tiles.
    """

    contraction: Contraction
    packed: frozenset[int]
    batch: tuple[Run, ...]
    outer_m: tuple[Run, ...]
    outer_n: tuple[Run, ...]
    outer_k: tuple[Run, ...]
    m: Run
    n: Run
    k: Run
    uneven: tuple[Run, ...] = ()
    groups: Groups | None = None
    room: int = 0

    def order(self, column: int) -> list[Run]:
        """An operand's dimensions in the order in which they are read, and copied."""
        if column == LHS:
            runs = [*self.batch, *self.outer_m, *self.uneven, *self.outer_k, self.m, self.k]
        else:
            runs = [*self.batch, *self.outer_n, *self.uneven, *self.outer_k, self.k, self.n]
        return [run for run in runs if run.strides[column] and run.extent > 1]

    @property
    def loops(self) -> list[Run]:
        """The loops around blocks: those that move on in the larger operand are outside."""
        larger = max((LHS, RHS), key=lambda column: _block_bytes(self, column))
        inner = [run for run in (*self.outer_m, *self.outer_n) if not run.strides[larger]]
        outer = [run for run in (*self.outer_m, *self.outer_n) if run.strides[larger]]
        return [*self.batch, *outer, *inner]

    @property
    def is_turned(self) -> bool:
        """Whether the result of a product is stored column by column."""
        return self.n.extent > 1 and self.n.strides[OUT] > 1

    @property
    def sums(self) -> int:
        """Products that are added up in each block."""
        return math.prod(run.extent for run in (*self.outer_k, *self.uneven))

    @property
    def blocks(self) -> int:
        """Blocks of the result."""
        return math.prod(run.extent for run in (*self.batch, *self.outer_m, *self.outer_n))


def is_narrow(element: Type) -> bool:
    """Whether a type is too narrow to keep sums in, because it would round them at each step."""
    return element in (HALF, BFLOAT)


def choose(contraction: Contraction, unit: Unit, *, narrow: bool = False) -> tuple[Blocking, float] | None:
    """The best choice, and an estimate of the cycles it takes; None where no blocks hold all that is reduced.

    Args:
        contraction: What to compute.
        unit: What multiplies.
        narrow: Whether the result is too narrow for sums to be kept in it.
    """
    shape = _anywhere(contraction)
    best = _chosen(shape, unit, narrow)
    if best is None:
        return None
    found, cost = best
    turned = contraction if found.contraction == shape else contraction.swapped()
    return replace(found, contraction=turned), cost


def _anywhere(c: Contraction) -> Contraction:
    """A contraction without what does not matter to the choice: where its operands lie."""
    lhs, rhs, out = (memory._replace(pointer=_NOWHERE) for memory in (c.lhs, c.rhs, c.out))
    return replace(c, lhs=lhs, rhs=rhs, out=out, acc=c.acc and Memory(_NOWHERE, c.acc.element))


@lru_cache(maxsize=1024)
def _chosen(contraction: Contraction, unit: Unit, narrow: bool) -> tuple[Blocking, float] | None:
    """The best choice of `choose`; programs have the same contractions again and again."""
    best: tuple[float, Blocking] | None = None
    turns = filter(_has_reduced_columns, (contraction, contraction.swapped()))
    for turned, packed in product(turns, _packings()):
        for blocking in _choices(turned, packed, unit):
            if (narrow and contraction.acc is not None and blocking.sums > 1) or not _keeps_groups(blocking):
                continue
            if blocking.is_turned and (narrow or unit.rows or blocking.sums > CHAINED):
                continue
            cost = estimate(blocking, unit)
            if best is None or cost < best[0]:
                best = cost, blocking
    return None if best is None else (best[1], best[0])


def _has_reduced_columns(c: Contraction) -> bool:
    """Whether what is reduced, if anything, are dimensions of the right operand, which can be columns of blocks."""
    return not any(map(is_reduced, (*c.batch, *c.m)))


def _keeps_groups(blocking: Blocking) -> bool:
    """Whether products read an operand of interleaved rows, if there is one, as it lies: whole, on the right."""
    c, n, k = blocking.contraction, blocking.n, blocking.k
    if c.lhs.group == c.rhs.group == 1:
        return True
    return c.lhs.group == 1 and RHS not in blocking.packed and n.parts == c.n[-1:] and k.parts == c.k[-1:]


def _packings() -> Iterator[frozenset[int]]:
    yield from map(frozenset[int], ((), (LHS,), (RHS,), (LHS, RHS)))


def _uneven_run(c: Contraction) -> tuple[Run, ...]:
    """The uneven dimension with its strides in the operands where it has them."""
    if c.uneven is None:
        return ()
    strides = [steps.step * steps.stride for steps in (c.uneven.lhs, c.uneven.rhs)]
    return (Run(((c.uneven.extent, (*strides, *[0] * (c.width - 2))),)),)


# Choices -------------------------------------------------------------------------------------------------------------


def _choices(c: Contraction, packed: frozenset[int], unit: Unit) -> Iterator[Blocking]:
    """The choices for which 2-D loads and stores exist, with some operands copied."""
    if not _can_pack(c, packed):
        return
    single, uneven, reduces = Run(((1, (0,) * c.width),)), _uneven_run(c), c.reduces
    first = next((column for column in (LHS, RHS) if column not in packed), LHS)
    batch, all_m, all_n = (merge(_sorted(walks, OUT), packed) for walks in (c.batch, c.m, c.n))
    apart = c.k[-1:] if c.rhs.group > 1 else ()  # its strides are those of groups
    all_k = [*merge(_sorted(c.k[: len(c.k) - len(apart)], first), packed), *(Run((walk,)) for walk in apart)]
    for m, k in product([*all_m, single], all_k or [single]):
        if LHS not in packed and _loaded_as(LHS, m, k) is None:
            continue
        for n in [*all_n, single]:
            if (RHS in packed or _loaded_as(RHS, k, n)) and _can_store(c, m, n, reduces=reduces):
                outer_m, outer_n, outer_k = (
                    tuple(run for run in runs if run is not inner)
                    for runs, inner in ((all_m, m), (all_n, n), (all_k, k))
                )
                if reduces and not all(run.strides[OUT] for run in outer_n):
                    continue
                whole = Blocking(c, packed, tuple(batch), outer_m, outer_n, outer_k, m, n, k, uneven)
                for choice in (whole, *_split(whole, unit.lanes)):
                    yield choice
                    yield from _interleaved(choice, unit)


def _interleaved(choice: Blocking, unit: Unit) -> Iterator[Blocking]:
    """The choice with the right operand copied as a matrix unit reads it, where such a copy can be made."""
    c, m, n, k = choice.contraction, choice.m, choice.n, choice.k
    wanted = unit.width > 1 and RHS in choice.packed and c.kind == "matmul" and not c.reduces
    dense = m.extent > 1 and n.extent > 1 and n.parts[-1][1][RHS] == 1
    if not wanted or not dense or k.extent % unit.step or not k.strides[RHS]:
        return
    groups = Groups.of([Dim(extent, strides[RHS]) for extent, strides in k.parts], unit.width)
    if groups is not None:
        yield replace(choice, groups=groups, room=-(-n.extent // unit.lanes) * unit.lanes)


def _split(whole: Blocking, lanes: int) -> Iterator[Blocking]:
    """The choice with the far operand in parts that stay in the caches, while all that they meet goes by.

    7 rows of 7 x 4608 times 4608 x 512 float        8 parts of 4608 x 64 times 7 rows each
    """
    if whole.contraction.reduces or whole.sums > CHAINED:
        return
    for column, run, granule in ((RHS, whole.n, 2 * lanes), (LHS, whole.m, _ROWS)):
        size = _block_bytes(whole, column)
        if size <= NEAR_BYTES or len(run.parts) > 1 or not _meets_others(whole, column):
            continue
        sizes = [s for s in range(granule, run.extent, granule) if run.extent % s == 0]
        near = [s for s in sizes if size * s // run.extent <= NEAR_BYTES]
        if near:
            extent, strides = run.extent, run.strides
            part = Run(((near[-1], strides),))
            parts = Run(((extent // near[-1], tuple(stride * near[-1] for stride in strides)),))
            if column == RHS:
                yield replace(whole, outer_n=(*whole.outer_n, parts), n=part)
            else:
                yield replace(whole, outer_m=(*whole.outer_m, parts), m=part)


def _meets_others(blocking: Blocking, column: int) -> bool:
    """Whether a block of an operand is used for several blocks of the result."""
    loops = (*blocking.batch, *blocking.outer_m, *blocking.outer_n)
    return any(run.extent > 1 and not run.strides[column] for run in loops)


def _block_bytes(blocking: Blocking, column: int) -> int:
    """Bytes of an operand that a block of the result needs."""
    memory = (blocking.contraction.lhs, blocking.contraction.rhs)[column]
    side = (blocking.m, blocking.n)[column]
    return blocking.sums * blocking.k.extent * side.extent * bytes_of(memory.element)


def _can_pack(c: Contraction, packed: frozenset[int]) -> bool:
    """Whether the copied operands have plain strides."""
    uneven = c.uneven
    return uneven is None or all((uneven.lhs, uneven.rhs)[column].period == 1 for column in packed)


def _sorted(walks: Sequence[Walk], column: int) -> list[Walk]:
    """Dimensions from the largest stride in an operand to the smallest."""
    return sorted((w for w in walks if w[0] > 1), key=lambda w: w[1][column], reverse=True)


def _loaded_as(column: int, rows: Run, cols: Run) -> tuple[bool, int] | None:
    """How an operand's block is loaded; None if no 2-D load can say it."""
    return loaded_as(Dim(rows.extent, rows.strides[column]), Dim(cols.extent, cols.strides[column]))


def block_view(memory: Memory, rows: Dim, cols: Dim) -> View:
    """A 2-D view of memory."""
    extents, steps = (rows.extent, cols.extent), (rows.stride, cols.stride)
    return View(Place(memory.pointer), memory.element, extents, extents, steps, (0, 1))


def _can_store(c: Contraction, m: Run, n: Run, *, reduces: bool) -> bool:
    """Whether result, accumulator and leaves are row-major in a block; what is reduced, if anything, are columns."""
    if max((*m.strides[OUT:], *n.strides[OUT:])) >= INDEX_LIMIT:
        return False
    if n.extent == 1:
        return True
    if c.may_turn and m.strides[OUT] == 1 and not reduces:
        return True
    is_dense = n.strides[OUT] == (0 if reduces else 1) and (c.acc is None or n.strides[ACC] == 1)
    return is_dense and all(stride <= 1 for stride in n.strides[LEAVES:])


# Costs ---------------------------------------------------------------------------------------------------------------


def estimate(blocking: Blocking, unit: Unit) -> float:
    """About how many cycles a choice takes."""
    rows, depth = blocking.m.extent, blocking.k.extent
    group = blocking.contraction.rhs.group if blocking.groups is None else blocking.groups.width
    vectors = -(-blocking.n.extent // unit.lanes)
    terms, products = (blocking.sums, 1) if blocking.sums <= CHAINED else (1, blocking.sums)
    shared = math.prod(run.extent for run in blocking.loops if not run.strides[RHS])
    between = _TERM if unit.rows else _TERM + _TERM_OF_REGISTER * rows * vectors
    cycles = CALL + terms * (between + unit.cycles(rows, blocking.n.extent, depth, group, 1 / shared))
    stored = _TURNED_STORE if blocking.is_turned else _STORE
    cycles += _reduced_cycles(blocking, vectors) if blocking.contraction.reduces else stored * rows * vectors
    lhs = None if LHS in blocking.packed else _loaded_as(LHS, blocking.m, blocking.k)
    if lhs is not None and not lhs[0] and not unit.rows:
        cycles += terms * depth * rows * min(_LINE * vectors, TURNED)
    rhs = None if RHS in blocking.packed else _loaded_as(RHS, blocking.k, blocking.n)
    if rhs is not None and not rhs[0]:
        cycles += terms * depth * blocking.n.extent * TURNED
    cycles += sum(_far_cycles(blocking, column) for column in (LHS, RHS)) / products
    copies = sum(_copy_cost(blocking, column, unit) for column in blocking.packed)
    return blocking.blocks * products * cycles + _outside_cycles(blocking) + copies


def _outside_cycles(blocking: Blocking) -> float:
    """About how many cycles it takes to read operands, or their copies, that are larger than the near caches.

    The left one is read once for each part of the right one that stays there.
    """
    lhs, rhs = (_operand_bytes(blocking, column) for column in (LHS, RHS))
    parts = -(-rhs // NEAR_BYTES)
    return FAR_BYTE * ((lhs * parts if lhs > NEAR_BYTES else 0) + (rhs if parts > 1 else 0))


def _operand_bytes(blocking: Blocking, column: int) -> int:
    """Bytes of an operand, or its copy; those of overlapping windows count once."""
    _, count, reach = _dims(blocking, column)
    element = (blocking.contraction.lhs, blocking.contraction.rhs)[column].element
    return (count if column in blocking.packed else min(count, reach)) * bytes_of(element)


def _dims(blocking: Blocking, column: int) -> tuple[list[tuple[int, int]], int, int]:
    """An operand's dimensions in the order of a copy, its elements, and from the first to behind the last in memory."""
    dims = [(extent, strides[column]) for run in blocking.order(column) for extent, strides in run.parts]
    reach = 1 + sum((extent - 1) * stride for extent, stride in dims)
    return dims, math.prod(extent for extent, _ in dims), reach


def _far_cycles(blocking: Blocking, column: int) -> float:
    """About how many cycles a block waits for an operand that does not stay in the caches between blocks."""
    size = _block_bytes(blocking, column)
    stays = size * _crowding(blocking, column) <= NEAR_BYTES
    return 0 if stays or not _meets_others(blocking, column) else size * FAR_BYTE


def _crowding(blocking: Blocking, column: int) -> float:
    """How much less of a cache there is for an operand whose rows share cache sets."""
    if column in blocking.packed:
        return 1
    runs = (blocking.m, blocking.k) if column == LHS else (blocking.k, blocking.n)
    size = bytes_of((blocking.contraction.lhs, blocking.contraction.rhs)[column].element)
    near, far = sorted(runs, key=lambda run: run.strides[column])
    step = far.strides[column] * size
    return max(1, step / (near.extent * size)) if step % _CROWDED == 0 else 1


def _reduced_cycles(blocking: Blocking, vectors: int) -> float:
    """About how many cycles it takes to reduce a block, beside those to compute its rows.

    Columns are what is reduced, so that rows may be what lies next to each other in the left operand. Those of narrow
    elements are turned for dot products.
    """
    m, k = blocking.m, blocking.k
    found = None if LHS in blocking.packed else _loaded_as(LHS, m, k)
    is_turned = found is not None and not found[0] and bytes_of(blocking.contraction.lhs.element) < 4
    return m.extent * (vectors + FOLDED + (_TURNED * k.extent if is_turned else 0))


def _copy_cost(blocking: Blocking, column: int, unit: Unit) -> float:
    memory = (blocking.contraction.lhs, blocking.contraction.rhs)[column]
    dims, count, reach = _dims(blocking, column)
    if count > 2 * reach and count * bytes_of(memory.element) > _MOST_REPEATED:
        return math.inf
    if column == LHS or blocking.groups is None:
        return CALL + copy_cycles(dims, memory.element)
    columns = [extent for extent, _ in blocking.n.parts]
    return CALL + blocking.groups.cycles(count // blocking.n.extent, columns, unit.lanes)
