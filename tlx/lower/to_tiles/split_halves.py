"""Products of halves on a matrix unit that knows no halves, but bfloat: each half as the sum of two bfloat numbers.

    a = a1 + a2     a1 = the upper 16 bits of float(a) * 127/128     a2 = a - a1, or an infinite `a`
    A @ B = A1 @ B1 + A1 @ B2 + A2 @ B1 + A2 @ B2

A half has 11 bits of precision: 127/128 of it is less by 8 to 16 units of the last of them, and what is cut off then is
less than 8. So a2 is exact, is not zero unless `a` is, and has the sign of `a`: each product is exact in float, an
infinity is the sum of two, which give with the parts of what they are multiplied by what it gives with the whole, and
zero is the sum of two zeros. No part is subnormal as a bfloat number: the least is 2^-31.

Both operands are split once, in front of the product, into bfloat matrices one behind the other. A step of K multiplies
both tiles of A by both of B. Measured in one process, as multiples of multiply-adds of floats (Xeon with AMX, one core,
medians): 128x128x128 1.2, 256 cubed 1.66, 512 cubed 1.9, 1024 cubed 1.9, 1024x1024x64 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.types import BFLOAT, FLOAT, HALF, I1, I16, I32, Type, bytes_of
from tlx.ir.values import Value, const_float, const_int
from tlx.lower.ordinary import Operation
from tlx.lower.to_tiles.choose import choose
from tlx.lower.to_tiles.expression import Expression, Fill, Leaf, Node, Ordinary
from tlx.lower.to_tiles.found import Found
from tlx.lower.to_tiles.problem import Gemm, Map
from tlx.lower.to_tiles.shared import Places
from tlx.lower.to_tiles.units import matrix_cycles, moving_cycles, recipe_cycles, with_waits
from tlx.lower.to_tiles.view import View
from tlx.target import Target

_SHORTENED: Final = 127 / 128
_UPPER: Final = 1 << 16
_CYCLES: Final = 8
"""Cycles in which a register of 16 halves is split into both parts, apart from waiting for memory."""
_REGISTER: Final = 16
_LEAD: Final = 0.8
"""How much of the vectors' cycles a split product may take, of what is estimated."""


@dataclass(frozen=True)
class Split:
    """A product whose operands are to be split.

    Attributes:
        found: The product as it was found.
        gemm: The product of the parts, of which the first ones are at the operands' places.
    """

    found: Found
    gemm: Gemm

    def serve(self, places: Places, b: Builder) -> list[tuple[Map, list[tuple[Value, View]]]]:
        """Make the memory and have the product read it; gives the maps that split, with what they are given."""
        maps: list[tuple[Map, list[tuple[Value, View]]]] = []
        for number, view in ((1, self.gemm.a), (2, self.gemm.b)):
            source = self.found.pointers[number]
            size = view.rows * view.cols
            pointer = b.retype(places.memory(b, 2 * size * bytes_of(BFLOAT)), BFLOAT)
            for part in range(2):
                problem = _part_of(source[1], part)
                maps.append((problem, [(b.gep(BFLOAT, pointer, part * size), problem.destination), source]))
            self.found.pointers[number] = pointer, view
        self.found.problem = self.gemm
        return maps


def split(found: Found, target: Target) -> Split | None:
    """The product of halves on the target's matrix unit, where that pays; else None."""
    gemm = found.problem
    if not isinstance(gemm, Gemm) or len(gemm.sums) > 1 or {gemm.a.element, gemm.b.element} != {HALF}:
        return None
    if not _multiplies_bfloat(target) or max(gemm.a.group, gemm.b.group) > 1:
        return None
    parts = _of_parts(gemm)
    recipe = choose(parts, target)
    if recipe.unit != "matrix":
        return None
    vectors = choose(gemm, target)
    if vectors.unit == "matrix":
        return None
    by_vectors = with_waits(recipe_cycles(gemm, vectors, target), gemm, vectors, target)
    by_tiles = _splitting(gemm, target) + matrix_cycles(parts, recipe, target)
    return Split(found, parts) if by_tiles < _LEAD * by_vectors else None


def _splitting(gemm: Gemm, target: Target) -> float:
    """Cycles to split both operands: each part is made on its own."""
    halves = gemm.m * gemm.k + gemm.k * gemm.n
    return halves / _REGISTER * _CYCLES + moving_cycles(4 * halves * bytes_of(HALF), target)


def _multiplies_bfloat(target: Target) -> bool:
    return any(dot.lhs[0] == dot.rhs[0] == "bfloat" for dot in target.usable_matrix_dots)


def _of_parts(gemm: Gemm) -> Gemm:
    """The sum of all products of parts, which lie without gaps."""
    a, b = _dense(gemm.a), _dense(gemm.b)
    return replace(gemm, a=a, b=b, sums=((0, 0), (gemm.m * gemm.k, gemm.k * gemm.n)), crossed=True)


def _dense(view: View, element: Type = BFLOAT) -> View:
    if view.is_row_major:
        return View(element, view.rows, view.cols, view.cols, 1)
    return View(element, view.rows, view.cols, 1, view.rows)


def _part_of(view: View, part: int) -> Map:
    """What makes the first or the second part, line by line, as the upper halves of floats."""
    lines = view if view.is_row_major else View(view.element, view.cols, view.rows, view.col_stride, 1)
    first: list[Node] = [
        Leaf(HALF, lines.repeated(), 0),
        Ordinary(FLOAT, Operation("fpext"), (0,)),
        Fill(FLOAT, const_float(FLOAT, _SHORTENED)),
        Ordinary(FLOAT, Operation("fmul"), (1, 2)),
        Ordinary(I32, Operation("bitcast"), (3,)),
    ]
    second: list[Node] = [
        Fill(I32, const_int(I32, -_UPPER)),
        Ordinary(I32, Operation("and"), (4, 5)),
        Ordinary(FLOAT, Operation("bitcast"), (6,)),
        Ordinary(FLOAT, Operation("fsub"), (1, 7)),
        Ordinary(I1, Operation("fcmp", predicate="oeq"), (1, 7)),
        Ordinary(FLOAT, Operation("select"), (9, 1, 8)),
        Ordinary(I32, Operation("bitcast"), (10,)),
    ]
    nodes = [*first, *(second if part else ())]
    bits = len(nodes) - 1
    nodes += [
        Fill(I32, const_int(I32, 16)),
        Ordinary(I32, Operation("lshr"), (bits, bits + 1)),
        Ordinary(I16, Operation("trunc"), (bits + 2,)),
    ]
    return Map(_dense(lines, I16), Expression(lines.rows, lines.cols, tuple(nodes)))
