"""A copied once, in the layout that several products read, where each of their kernels would pack it.

    for i: C[i] = A^T @ B[i]                        copy(rows, A^T)
                                              ->    for i: C[i] = rows @ B[i]

    Q = X^T @ Wq; K = X^T @ Wk; V = X^T @ Wv        copy(rows, X^T)
                                              ->    Q = rows @ Wq; K = rows @ Wk; V = rows @ Wv

The products are those of a loop of stage 1 in which A's address stays the same, or those of a block that does not
change A between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tlx.ir.builder.instructions import Builder
from tlx.ir.instructions import Block, Instruction
from tlx.ir.tensors.model import FunctionTensors
from tlx.ir.types import FloatType, Type, bytes_of
from tlx.ir.values import Value
from tlx.lower.memory.aliases import AliasAnalysis, MemoryLocation
from tlx.lower.operations import ElementwiseOp
from tlx.lower.to_tiles.match.stores import Match
from tlx.lower.to_tiles.pack.hoist import HoistPoints
from tlx.lower.to_tiles.problem.expression import Expression, InstructionNode, MatrixLeaf
from tlx.lower.to_tiles.problem.problems import Copy, Elementwise, Gemm
from tlx.lower.to_tiles.problem.views import MatrixView
from tlx.lower.to_tiles.select.recipe import Recipe, round_up
from tlx.target.hardware import Caches, Sign
from tlx.target.target import Target

_MIN_USERS: Final = 2  # products

RecipesOf = Callable[[Gemm, Instruction], Sequence[tuple[Recipe, Target]]]
"""The recipes of a product for the versions of the target; none where knobs or rewrites decide otherwise."""


@dataclass(frozen=True)
class _ProductUse:
    """A product that reads A: its store, what it was matched as, and how often it runs for each copy."""

    store: Instruction
    found: Match
    trips: int

    @property
    def gemm(self) -> Gemm:
        """The product."""
        assert isinstance(self.found.problem, Gemm)
        return self.found.problem


@dataclass(frozen=True)
class SharedCopyOfA:
    """A copy of A to be made.

    Attributes:
        problem: The copy or conversion that makes it.
        source: A, and its address.
        copied: The view of the copy.
        users: The products that read the copy.
        block: The block at whose end it is made; None if it is made right before the first product.
    """

    problem: Copy | Elementwise
    source: tuple[Value, MatrixView]
    copied: MatrixView
    users: tuple[_ProductUse, ...]
    block: Block | None

    @property
    def first(self) -> Instruction:
        """The store of the first product."""
        return self.users[0].store

    @property
    def remark(self) -> str:
        """The text of its remark."""
        _, view = self.source
        times = sum(user.trips for user in self.users)
        what = f" as {self.copied.element}" if self.copied.element != view.element else ""
        return f"A of {view.layout} copied{what} row by row, once for {times} products"

    def serve(self, places: HoistPoints, b: Builder) -> list[tuple[Value, MatrixView]]:
        """Allocate the copy and have the products read it; returns the arguments of the copy's kernel."""
        size = self.copied.size * bytes_of(self.copied.element)
        pointer = b.retype(places.memory(b, size), self.copied.element)
        for user in self.users:
            user.found.problem = replace(user.gemm, a=self.copied)
            user.found.pointers[1] = pointer, self.copied
        return [(pointer, self.copied), self.source]


def find_shared_copies(
    places: HoistPoints, tensors: FunctionTensors, products: Mapping[int, tuple[Block, Match]], recipes: RecipesOf
) -> list[SharedCopyOfA]:
    """Find the copies that pay.

    Args:
        places: The function's loops.
        tensors: Its tensors.
        products: The matched problems by the id of the store, in the function's order, with the block of the store.
        recipes: Gives the recipes of a product.
    """
    groups: dict[tuple[object, ...], list[_ProductUse]] = {}
    blocks: dict[tuple[object, ...], Block | None] = {}
    stores = {id(op.instruction): op.instruction for op in tensors.ops}
    for number, (block, found) in products.items():
        gemm = found.problem
        if not isinstance(gemm, Gemm) or len(gemm.term_offsets) > 1:
            continue
        source, view = found.pointers[1]
        place = places.before(block, source)
        if place is None and places.loops.around(block):
            continue  # memory of the function would keep the iterations from running in parallel
        key = str(source), view, gemm.lhs_sign, (place.block if place else block).name, place is None
        groups.setdefault(key, []).append(_ProductUse(stores[number], found, place.trips if place else 1))
        blocks[key] = place.block if place else None
    shared = {key: users for key, users in groups.items() if sum(user.trips for user in users) >= _MIN_USERS}
    if not shared:
        return []
    unchanged = _WriteCheck(places, tensors)
    made = (
        _shared_copy(unchanged.after_first(users) if blocks[key] is None else users, blocks[key], recipes)
        for key, users in shared.items()
    )
    return [copy for copy in made if copy is not None]


@dataclass(eq=False)
class _WriteCheck:
    """Checks whether A may be written between two products."""

    places: HoistPoints
    tensors: FunctionTensors

    def __post_init__(self) -> None:
        function, flow = self.places.function, self.places.flow
        written = {
            id(op.instruction): MatrixView.of(op.tensors[0].type, op.pitches) for op in self.tensors.ops if op.pointer
        }
        sizes = {store: view.size * bytes_of(view.element) for store, view in written.items()}
        self.aliases = AliasAnalysis(self.places.module, function, flow, sizes)
        self.positions = {
            id(instruction): (block.name, index)
            for block in function.blocks
            for index, instruction in enumerate(block.instructions)
        }

    def after_first(self, users: Sequence[_ProductUse]) -> Sequence[_ProductUse]:
        """The leading products that read A before anything may change it.

        A product's store follows its reads, so the store of the first one may change what the second one reads.
        """
        pointer, view = users[0].found.pointers[1]
        range_ = MemoryLocation(pointer, view.size * bytes_of(view.element))
        block, index = self.positions[id(users[0].store)]
        for number, user in enumerate(users[1:], 1):
            if (
                self.aliases.clobbering_instruction(range_, (block, index - 1), self.positions[id(user.store)])
                is not None
            ):
                return users[:number]
        return users


def _shared_copy(users: Sequence[_ProductUse], block: Block | None, recipes: RecipesOf) -> SharedCopyOfA | None:
    """The copy for the products that need not pack A if they read it; None if there are fewer than two of them.

    Packing takes about as long as copying (measured: 256x64x256 and 64x64x64 bfloat with A by columns).
    """
    source, view = users[0].found.pointers[1]
    served: list[_ProductUse] = []
    layout: MatrixView | None = None
    for user in users:
        before = recipes(user.gemm, user.store)
        read = {recipe.mma.operand_a for recipe, _ in before if recipe.packing.a}
        if len(read) != 1 or not all(recipe.packing.a and not recipe.tile.streamed_rows for recipe, _ in before):
            continue
        copied = _copy_layout(view, next(iter(read)), before[0][1].caches)
        after = recipes(replace(user.gemm, a=copied), user.store)
        if layout in (None, copied) and after and not any(recipe.packing.a for recipe, _ in after):
            layout = copied
            served.append(user)
    if layout is None or sum(user.trips for user in served) < _MIN_USERS:
        return None
    problem = _copy_problem(view, layout, served[0].gemm.lhs_sign)
    return SharedCopyOfA(problem, (source, view), layout, tuple(served), block)


def _copy_layout(view: MatrixView, element: Type, caches: Caches) -> MatrixView:
    """The view of a copy: row-major, each row aligned to a cache line, and not whole pages apart."""
    size = bytes_of(element)
    pitch = round_up(view.cols * size, caches.line)
    pitch += caches.line if pitch % caches.page == 0 else 0
    return MatrixView(element, view.rows, view.cols, pitch // size, 1)


def _copy_problem(view: MatrixView, copied: MatrixView, sign: Sign) -> Copy | Elementwise:
    """The problem that makes a copy: a conversion where the products read another type."""
    if view.element == copied.element:
        return Copy(view, copied)
    opcode = "fpext" if isinstance(view.element, FloatType) else "zext" if sign == "u" else "sext"
    nodes = MatrixLeaf(view.element, view.broadcast(), 0), InstructionNode(copied.element, ElementwiseOp(opcode), (0,))
    return Elementwise(copied, Expression(view.rows, view.cols, nodes))
