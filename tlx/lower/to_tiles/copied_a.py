"""A copied once for several products as they read it, where each of their kernels would pack it.

    for i: C[i] = A^T @ B[i]                        copy(rows, A^T)
                                              ->    for i: C[i] = rows @ B[i]

    Q = X^T @ Wq; K = X^T @ Wk; V = X^T @ Wv        copy(rows, X^T)
                                              ->    Q = rows @ Wq; K = rows @ Wk; V = rows @ Wv

The products are those of a loop of stage 1 in which A's address stays the same, or stand in one block that does not
change A between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.module import Block, Instruction
from tlx.ir.tensors import FunctionTensors
from tlx.ir.types import FloatType, Type, bytes_of
from tlx.ir.values import Value
from tlx.lower.ordinary import Operation
from tlx.lower.to_2d.safety import Aliases, Range
from tlx.lower.to_tiles.expression import Expression, Leaf, Ordinary
from tlx.lower.to_tiles.found import Found
from tlx.lower.to_tiles.memory import LINE, PAGE
from tlx.lower.to_tiles.problem import Copy, Gemm, Map
from tlx.lower.to_tiles.recipe import Recipe, up
from tlx.lower.to_tiles.shared import Places
from tlx.lower.to_tiles.view import View
from tlx.target import Sign, Target

_LEAST: Final = 2  # products

Recipes = Callable[[Gemm, Instruction], Sequence[tuple[Recipe, Target]]]
"""The recipes of a product for the versions of the target; none where something else is asked for, or done."""


@dataclass(frozen=True)
class _User:
    """A product: its store, what was found of it, and how often it runs where the copy is made once."""

    store: Instruction
    found: Found
    rounds: int

    @property
    def gemm(self) -> Gemm:
        """The product."""
        assert isinstance(self.found.problem, Gemm)
        return self.found.problem


@dataclass(frozen=True)
class CopiedA:
    """A copy of A to be made.

    Attributes:
        problem: What makes it.
        source: A, and where it lies.
        copied: Where the copy lies, as a view.
        users: The products that are to read the copy.
        block: The block at whose end it is made; None where it is made in front of the first product.
    """

    problem: Copy | Map
    source: tuple[Value, View]
    copied: View
    users: tuple[_User, ...]
    block: Block | None

    @property
    def first(self) -> Instruction:
        """The store of the first product."""
        return self.users[0].store

    @property
    def remark(self) -> str:
        """What is said about it."""
        _, view = self.source
        times = sum(user.rounds for user in self.users)
        what = f" as {self.copied.element}" if self.copied.element != view.element else ""
        return f"A of {view.layout} copied{what} row by row, once for {times} products"

    def serve(self, places: Places, b: Builder) -> list[tuple[Value, View]]:
        """Make the memory and have the products read it; gives what the copy's kernel is given."""
        size = self.copied.size * bytes_of(self.copied.element)
        pointer = b.retype(places.memory(b, size), self.copied.element)
        for user in self.users:
            user.found.problem = replace(user.gemm, a=self.copied)
            user.found.pointers[1] = pointer, self.copied
        return [(pointer, self.copied), self.source]


def find_copies(
    places: Places, tensors: FunctionTensors, products: Mapping[int, tuple[Block, Found]], recipes: Recipes
) -> list[CopiedA]:
    """The copies that pay.

    Args:
        places: The function's loops.
        tensors: Its tensors.
        products: What was found, by the id of the store, in the function's order; with the block of the store.
        recipes: How a product is computed.
    """
    groups: dict[tuple[object, ...], list[_User]] = {}
    blocks: dict[tuple[object, ...], Block | None] = {}
    stores = {id(op.instruction): op.instruction for op in tensors.ops}
    for number, (block, found) in products.items():
        gemm = found.problem
        if not isinstance(gemm, Gemm) or len(gemm.sums) > 1:
            continue
        source, view = found.pointers[1]
        place = places.before(block, source)
        if place is None and any(block.name in loop.blocks for loop in places.loops):
            continue  # memory of the function would keep the rounds from running side by side
        key = str(source), view, gemm.lhs_sign, (place.block if place else block).name, place is None
        groups.setdefault(key, []).append(_User(stores[number], found, place.rounds if place else 1))
        blocks[key] = place.block if place else None
    shared = {key: users for key, users in groups.items() if sum(user.rounds for user in users) >= _LEAST}
    if not shared:
        return []
    unchanged = _Unchanged(places, tensors)
    made = (
        _copy(unchanged.after_first(users) if blocks[key] is None else users, blocks[key], recipes)
        for key, users in shared.items()
    )
    return [copy for copy in made if copy is not None]


@dataclass(eq=False)
class _Unchanged:
    """Knows what is written between two products."""

    places: Places
    tensors: FunctionTensors

    def __post_init__(self) -> None:
        function, flow = self.places.function, self.places.flow
        written = {id(op.instruction): View.of(op.tensors[0].type, op.pitches) for op in self.tensors.ops if op.pointer}
        sizes = {store: view.size * bytes_of(view.element) for store, view in written.items()}
        self.aliases = Aliases(self.places.module, function, flow, sizes)
        self.positions = {
            id(instruction): (block.name, index)
            for block in function.blocks
            for index, instruction in enumerate(block.instructions)
        }

    def after_first(self, users: Sequence[_User]) -> Sequence[_User]:
        """The products up to the first one, none included, in front of which A may have been changed.

        A store of a product comes behind its reads; the store of the first one may change what the second one reads.
        """
        pointer, view = users[0].found.pointers[1]
        range_ = Range(pointer, view.size * bytes_of(view.element))
        block, index = self.positions[id(users[0].store)]
        for number, user in enumerate(users[1:], 1):
            if self.aliases.clobbered(range_, (block, index - 1), self.positions[id(user.store)]) is not None:
                return users[:number]
        return users


def _copy(users: Sequence[_User], block: Block | None, recipes: Recipes) -> CopiedA | None:
    """The copy for those products that need not pack A then, where they are two at least; else None.

    Packing takes about as long as copying (measured: 256x64x256 and 64x64x64 bfloat with A by columns).
    """
    source, view = users[0].found.pointers[1]
    served: list[_User] = []
    element: Type | None = None
    for user in users:
        before = recipes(user.gemm, user.store)
        read = {recipe.operand_a for recipe, _ in before if recipe.pack_a}
        if len(read) != 1 or not all(recipe.pack_a and not recipe.streams for recipe, _ in before):
            continue
        after = recipes(replace(user.gemm, a=_copied(view, *read)), user.store)
        if element in (None, *read) and after and not any(recipe.pack_a for recipe, _ in after):
            (element,) = read
            served.append(user)
    if element is None or sum(user.rounds for user in served) < _LEAST:
        return None
    copied = _copied(view, element)
    problem = _problem(view, copied, served[0].gemm.lhs_sign)
    return CopiedA(problem, (source, view), copied, tuple(served), block)


def _copied(view: View, element: Type) -> View:
    """Where a copy lies: row by row, each at the beginning of a line of the caches."""
    size = bytes_of(element)
    pitch = up(view.cols * size, LINE)
    return View(element, view.rows, view.cols, (pitch + (LINE if pitch % PAGE == 0 else 0)) // size, 1)


def _problem(view: View, copied: View, sign: Sign) -> Copy | Map:
    """What makes a copy: a conversion where the products read another type."""
    if view.element == copied.element:
        return Copy(view, copied)
    opcode = "fpext" if isinstance(view.element, FloatType) else "zext" if sign == "u" else "sext"
    nodes = Leaf(view.element, view.repeated(), 0), Ordinary(copied.element, Operation(opcode), (0,))
    return Map(copied, Expression(view.rows, view.cols, nodes))
