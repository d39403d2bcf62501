"""Packing hoisted out of loops: B packed in front of a loop, A copied once for several products.

B packed once for all the products of a loop: one kernel packs, before the loop, and another one multiplies.

    for i: C[i] = A[i] @ B                    pack(panels, B)
                                       ->     for i: C[i] = A[i] @ panels

The loop must be one of stage 1's (`INDEPENDENT`), whose products write nothing that others read, and B's address the
same in all its rounds.

A copied once, in the layout that several products read, where each of their kernels would pack it.

    for i: C[i] = A^T @ B[i]                        copy(rows, A^T)
                                              ->    for i: C[i] = rows @ B[i]

    Q = X^T @ Wq; K = X^T @ Wk; V = X^T @ Wv        copy(rows, X^T)
                                              ->    Q = rows @ Wq; K = rows @ Wk; V = rows @ Wv

The products are those of a loop of stage 1 in which A's address stays the same, or stand in one block that does not
change A between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Final

from tlx.ir.analysis.control_flow import ControlFlow, NaturalLoop, natural_loops
from tlx.ir.builder.instructions import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.tensors.model import FunctionTensors
from tlx.ir.transform.rewrite import definitions
from tlx.ir.types import I8, FloatType, Type, bytes_of
from tlx.ir.values import Local, Value
from tlx.lower.context import INDEPENDENT_METADATA
from tlx.lower.memory.aliases import AliasAnalysis, MemoryLocation
from tlx.lower.memory.buffers import PrivateBuffers, allow_heap
from tlx.lower.operations import ElementwiseOp
from tlx.lower.to_tiles.match.loops import BatchLoops, trip_count
from tlx.lower.to_tiles.match.stores import Match
from tlx.lower.to_tiles.problem.expression import Expression, InstructionNode, MatrixLeaf, MatrixView
from tlx.lower.to_tiles.problem.problems import Copy, Elementwise, Gemm
from tlx.lower.to_tiles.select.caches import LINE, PAGE
from tlx.lower.to_tiles.select.recipe import Recipe, round_up
from tlx.target.hardware import Sign
from tlx.target.target import Target

_ADDRESS_OPCODES: Final = ("getelementptr", "bitcast")
_WRITERS: Final = ("llvm.tensor.store", "llvm.memcpy", "llvm.memmove", "llvm.memset")
_ASSUMED_TRIPS: Final = 16  # iterations of a loop whose bound is not known


@dataclass(frozen=True)
class HoistPoint:
    """Where B can be packed: at the end of a block, for a product that loops run so many times."""

    block: Block
    rounds: int


@dataclass(eq=False)
class HoistPoints:
    """Finds where in a function B can be packed for more than one product, and makes the memory for it.

    Attributes:
        module, function: The function before any of its trees is replaced.
    """

    module: Module
    function: Function
    pending: list[tuple[Block, Block]] = field(default_factory=list[tuple[Block, Block]])

    def __post_init__(self) -> None:
        self.flow = ControlFlow(self.function)
        self.loops = [loop for loop in natural_loops(self.flow) if self._is_independent(loop.header, loop.blocks)]
        self.made = definitions(self.function)
        self.rounds = BatchLoops(self.module, self.function, self.flow, self.loops)
        self.buffers = PrivateBuffers(self.module, self.function)

    def _is_independent(self, header: str, blocks: frozenset[str]) -> bool:
        latches = [name for name in self.flow.predecessors[header] if name in blocks]
        return all(INDEPENDENT_METADATA in self.flow.blocks[name].terminator.text for name in latches)

    def before(self, block: Block, pointer: Value) -> HoistPoint | None:
        """The end of the block in front of the outermost loop around a block in which a pointer stays the same."""
        for loop in self.loops:
            if block.name not in loop.blocks or self._is_made_in(pointer, loop.blocks):
                continue
            if self._is_written_in(pointer, loop.blocks):
                continue
            entered = [name for name in self.flow.predecessors[loop.header] if name not in loop.blocks]
            if len(entered) == 1:
                inner = [x for x in self.loops if block.name in x.blocks and x.blocks <= loop.blocks]
                return HoistPoint(self.flow.blocks[entered[0]], prod(self._trips(x) for x in inner))
        return None

    def _trips(self, loop: NaturalLoop) -> int:
        """The trip count of a loop, or a guess."""
        trips = trip_count(self.flow, loop)
        return trips if trips > 1 else _ASSUMED_TRIPS

    def _is_made_in(self, pointer: Value, blocks: frozenset[str]) -> bool:
        made = (i.result for name in blocks for i in self.flow.blocks[name].instructions)
        return isinstance(pointer, Local) and pointer.name in made

    def _is_written_in(self, pointer: Value, blocks: frozenset[str]) -> bool:
        """Whether an iteration may write what it reads there: a loop of the user's may have buffers of its own."""
        base = self._base(pointer)
        return any(self._base(to) == base for name in blocks for to in _written_addresses(self.flow.blocks[name]))

    def _base(self, pointer: Value) -> str:
        """The name of a pointer's underlying object."""
        made = self.made.get(pointer.name) if isinstance(pointer, Local) else None
        return self._base(made.operands[0]) if made is not None and made.opcode in _ADDRESS_OPCODES else str(pointer)

    def memory(self, b: Builder, size: int) -> Value:
        """Memory for panels, addressed where the builder stands."""
        return b.retype(self.buffers.new(I8, size, "panels").pointer, I8)

    def put(self, block: Block, code: Block) -> None:
        """Add instructions to the end of a block, once all trees are replaced."""
        self.pending.append((block, code))

    def finish(self) -> None:
        """Put everything in its place."""
        for block, code in self.pending:
            block.instructions[-1:-1] = code.instructions
        if self.buffers.made:
            self.buffers.emit()
            if self.buffers.uses_heap:
                allow_heap(self.module, self.function)


def _written_addresses(block: Block) -> Iterator[Value]:
    """The addresses that a block writes to."""
    for instruction in block.instructions:
        callee = str(instruction.callee) if instruction.is_call else ""
        if callee.startswith(_WRITERS):
            yield instruction.args[0]
        elif instruction.opcode == "store":
            yield instruction.operands[1]


_MIN_USERS: Final = 2  # products

RecipesOf = Callable[[Gemm, Instruction], Sequence[tuple[Recipe, Target]]]
"""The recipes of a product for the versions of the target; none where knobs or rewrites decide otherwise."""


@dataclass(frozen=True)
class _ProductUse:
    """A product: its store, its matched problem, and how often it runs for each copy."""

    store: Instruction
    found: Match
    rounds: int

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
        users: The products that are to read the copy.
        block: The block at whose end it is made; None where it is made in front of the first product.
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
        times = sum(user.rounds for user in self.users)
        what = f" as {self.copied.element}" if self.copied.element != view.element else ""
        return f"A of {view.layout} copied{what} row by row, once for {times} products"

    def serve(self, places: HoistPoints, b: Builder) -> list[tuple[Value, MatrixView]]:
        """Make the memory and have the products read it; returns the arguments of the copy's kernel."""
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
        if place is None and any(block.name in loop.blocks for loop in places.loops):
            continue  # memory of the function would keep the iterations from running in parallel
        key = str(source), view, gemm.lhs_sign, (place.block if place else block).name, place is None
        groups.setdefault(key, []).append(_ProductUse(stores[number], found, place.rounds if place else 1))
        blocks[key] = place.block if place else None
    shared = {key: users for key, users in groups.items() if sum(user.rounds for user in users) >= _MIN_USERS}
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
    """Tells what is written between two products."""

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
    """The copy for the products that need not pack A then, where there are at least two; else None.

    Packing takes about as long as copying (measured: 256x64x256 and 64x64x64 bfloat with A by columns).
    """
    source, view = users[0].found.pointers[1]
    served: list[_ProductUse] = []
    element: Type | None = None
    for user in users:
        before = recipes(user.gemm, user.store)
        read = {recipe.mma.operand_a for recipe, _ in before if recipe.packing.a}
        if len(read) != 1 or not all(recipe.packing.a and not recipe.tile.streamed_rows for recipe, _ in before):
            continue
        after = recipes(replace(user.gemm, a=_copy_layout(view, *read)), user.store)
        if element in (None, *read) and after and not any(recipe.packing.a for recipe, _ in after):
            (element,) = read
            served.append(user)
    if element is None or sum(user.rounds for user in served) < _MIN_USERS:
        return None
    copied = _copy_layout(view, element)
    problem = _copy_problem(view, copied, served[0].gemm.lhs_sign)
    return SharedCopyOfA(problem, (source, view), copied, tuple(served), block)


def _copy_layout(view: MatrixView, element: Type) -> MatrixView:
    """The view of a copy: row-major, each row aligned to a cache line."""
    size = bytes_of(element)
    pitch = round_up(view.cols * size, LINE)
    return MatrixView(element, view.rows, view.cols, (pitch + (LINE if pitch % PAGE == 0 else 0)) // size, 1)


def _copy_problem(view: MatrixView, copied: MatrixView, sign: Sign) -> Copy | Elementwise:
    """The problem that makes a copy: a conversion where the products read another type."""
    if view.element == copied.element:
        return Copy(view, copied)
    opcode = "fpext" if isinstance(view.element, FloatType) else "zext" if sign == "u" else "sext"
    nodes = MatrixLeaf(view.element, view.broadcast(), 0), InstructionNode(copied.element, ElementwiseOp(opcode), (0,))
    return Elementwise(copied, Expression(view.rows, view.cols, nodes))
