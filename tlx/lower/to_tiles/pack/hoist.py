"""Hoisted packing: an operand is packed or copied once for several products.

B is packed by one kernel before a loop, and the kernel in the loop reads the panels:

    for i: C[i] = A[i] @ B                    pack(panels, B)
                                       ->     for i: C[i] = A[i] @ panels

The iterations of the loop must be independent, and B's address must not change.

A is copied once, into a layout that several products read in place, where each of their kernels would pack it:

    for i: C[i] = A^T @ B[i]                        copy(rows, A^T)
                                              ->    for i: C[i] = rows @ B[i]

    Q = X^T @ Wq; K = X^T @ Wk; V = X^T @ Wv        copy(rows, X^T)
                                              ->    Q = rows @ Wq; K = rows @ Wk; V = rows @ Wv

The products are in a loop of stage 1 in which A's address does not change, or in one block that does not write to A
between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.control_flow import FunctionLoops
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import definitions, underlying_object
from tlx.ir.tensors.model import FunctionTensors
from tlx.ir.types import I8, FloatType, Type, bytes_of
from tlx.ir.values import Local, Value
from tlx.lower.memory.aliases import AliasAnalysis, MemoryLocation
from tlx.lower.memory.buffers import PrivateBuffers, allow_heap
from tlx.lower.operations import ElementwiseOp
from tlx.lower.to_tiles.expression import Expression, InstructionNode, MatrixLeaf, MatrixView
from tlx.lower.to_tiles.match.batch_loops import BatchLoops
from tlx.lower.to_tiles.match.stores import Match
from tlx.lower.to_tiles.match.trees import FunctionSnapshot
from tlx.lower.to_tiles.problem import Copy, Elementwise, Gemm
from tlx.lower.to_tiles.select.recipe import Recipe, round_up
from tlx.target.costs.memory import Caches
from tlx.target.instructions.dots import Sign
from tlx.target.target import Target

_ADDRESS_OPCODES: Final = ("getelementptr", "bitcast")
_WRITERS: Final = ("llvm.tensor.store", "llvm.memcpy", "llvm.memmove", "llvm.memset")
_ELEMENT_OPERANDS: Final = 2  # of `getelementptr`: the array and the index
_ASSUMED_TRIPS: Final = 16  # iterations of a loop whose bound is unknown


@dataclass(frozen=True)
class HoistPoint:
    """Where B can be packed.

    Attributes:
        block: The block at whose end it is packed.
        trips: How many times the product is computed for each time B is packed.
        address: The computation of B's address, if it has to be repeated there.
    """

    block: Block
    trips: int
    address: Instruction | None = None


@dataclass(eq=False)
class HoistPoints:
    """Finds where in a function B can be packed for more than one product, and allocates memory for it.

    Attributes:
        module: The module.
        loops: The loops of a function before any of its trees is replaced.
        pending: Code to insert, and the blocks at whose ends it is inserted.
    """

    module: Module
    loops: FunctionLoops
    pending: list[tuple[Block, Block]] = field(default_factory=list[tuple[Block, Block]])

    def __post_init__(self) -> None:
        self.function, self.flow = self.loops.function, self.loops.flow
        self.definitions = definitions(self.function)
        self.batch_loops = BatchLoops(self.module, self.loops)
        self.buffers = PrivateBuffers(self.module, self.function)

    def before(self, block: Block, pointer: Value) -> HoistPoint | None:
        """The end of the block before the outermost loop around `block` in which a pointer does not change.

        That block leads to the loop alone: otherwise the loop might not run, and B not be readable.
        """
        loops, definition = self.loops.enclosing_independent_loops(block), self.definitions.get(str(pointer)[1:])
        for level, loop in enumerate(loops):
            if loop.entry is None or len(self.flow.successors[loop.entry]) > 1:
                continue
            address = definition if self._is_defined_in(pointer, loop.blocks) else None
            is_fixed = address is None or self._is_repeatable(address, loop.blocks)
            if is_fixed and not self._is_written_in(pointer, loop.blocks):
                trips = prod(inner.trips if inner.trips > 1 else _ASSUMED_TRIPS for inner in loops[level:])
                return HoistPoint(self.flow.blocks[loop.entry], trips, address)
        return None

    def _is_repeatable(self, address: Instruction, blocks: frozenset[str]) -> bool:
        """Whether `HoistPoint.address` can be computed before a loop: an element of what is defined before it."""
        is_element = address.opcode == "getelementptr" and len(address.operands) == _ELEMENT_OPERANDS
        return is_element and not any(self._is_defined_in(operand, blocks) for operand in address.operands)

    def _is_defined_in(self, pointer: Value, blocks: frozenset[str]) -> bool:
        results = (i.result for name in blocks for i in self.flow.blocks[name].instructions)
        return isinstance(pointer, Local) and pointer.name in results

    def _is_written_in(self, pointer: Value, blocks: frozenset[str]) -> bool:
        """Whether iterations write to a pointer's underlying object, as in a loop with a private buffer."""
        base = self._base(pointer)
        return any(self._base(to) == base for name in blocks for to in _written_addresses(self.flow.blocks[name]))

    def _base(self, pointer: Value) -> str:
        """The name of a pointer's underlying object."""
        return str(underlying_object(pointer, self.definitions, _ADDRESS_OPCODES))

    def allocate(self, b: Builder, element: Type, count: int) -> Value:
        """Allocate memory for panels or copies; returns its address at the builder's insertion point."""
        return b.retype(self.buffers.new(I8, count * bytes_of(element), "panels").pointer, element)

    def insert_at_end(self, block: Block, code: Block) -> None:
        """Add instructions to the end of a block; they are inserted once all trees are replaced."""
        self.pending.append((block, code))

    def finish(self) -> None:
        """Insert all code, and allocate the memory."""
        for block, code in self.pending:
            block.instructions[-1:-1] = code.instructions
        if self.buffers.buffers:
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


# Copies of A ---------------------------------------------------------------------------------------------------------


_MIN_USERS: Final = 2  # products

RecipesOf = Callable[[Gemm, Instruction], Sequence[tuple[Recipe, Target]]]
"""The recipes of a product for the versions of the target; empty where knobs or another method decide."""


@dataclass(frozen=True)
class _ProductUse:
    """A product that reads A: its match, and how often it is computed for each copy."""

    match: Match
    trips: int

    @property
    def gemm(self) -> Gemm:
        """The product."""
        assert isinstance(self.match.problem, Gemm)
        return self.match.problem


@dataclass(frozen=True)
class SharedCopyOfA:
    """A copy of A to be made.

    Attributes:
        problem: The copy or conversion that makes it.
        source: A, and its address.
        copied: The view of the copy.
        users: The products that read the copy.
        block: The block at whose end it is made; None if it is made right before the first product's kernel.
    """

    problem: Copy | Elementwise
    source: tuple[Value, MatrixView]
    copied: MatrixView
    users: tuple[_ProductUse, ...]
    block: Block | None

    @property
    def first(self) -> Instruction:
        """The store of the first product."""
        return self.users[0].match.store

    @property
    def remark(self) -> str:
        """The text of its remark."""
        _, view = self.source
        times = sum(user.trips for user in self.users)
        converted = f" as {self.copied.element}" if self.copied.element != view.element else ""
        return f"A of {view.layout} copied{converted} row by row, once for {times} products"

    def serve(self, hoist_points: HoistPoints, b: Builder) -> list[tuple[Value, MatrixView]]:
        """Allocate the copy and have the products read it; returns the arguments of the copy's kernel."""
        pointer = hoist_points.allocate(b, self.copied.element, self.copied.size)
        for user in self.users:
            user.match.problem = replace(user.gemm, a=self.copied)
            user.match.pointers[1] = pointer, self.copied
        return [(pointer, self.copied), self.source]


def find_shared_copies(
    hoist_points: HoistPoints, snapshot: FunctionSnapshot, matches: Sequence[Match], recipes: RecipesOf
) -> list[SharedCopyOfA]:
    """Find the copies that are profitable.

    Args:
        hoist_points: The function's loops.
        snapshot: Its instructions.
        matches: Its trees, in program order.
        recipes: Gives the recipes of a product.
    """
    groups: dict[tuple[object, ...], list[_ProductUse]] = {}
    blocks: dict[tuple[object, ...], Block | None] = {}
    for match in matches:
        gemm, block = match.problem, snapshot.block_of[id(match.store)]
        if not isinstance(gemm, Gemm) or len(gemm.term_offsets) > 1:
            continue
        source, view = match.pointers[1]
        point = hoist_points.before(block, source)
        if (point is None or point.address is not None) and hoist_points.loops.enclosing_independent_loops(block):
            continue  # a shared buffer would prevent the iterations from running in parallel
        key = str(source), view, gemm.lhs_sign, (point.block if point else block).name, point is None
        groups.setdefault(key, []).append(_ProductUse(match, point.trips if point else 1))
        blocks[key] = point.block if point else None
    shared = {key: users for key, users in groups.items() if sum(user.trips for user in users) >= _MIN_USERS}
    if not shared:
        return []
    unchanged = _WriteCheck(hoist_points, snapshot.tensors)
    copies = (
        _shared_copy(unchanged.after_first(users) if blocks[key] is None else users, blocks[key], recipes)
        for key, users in shared.items()
    )
    return [copy for copy in copies if copy is not None]


@dataclass(eq=False)
class _WriteCheck:
    """Checks whether A may be written between two products."""

    hoist_points: HoistPoints
    tensors: FunctionTensors

    def __post_init__(self) -> None:
        function, flow = self.hoist_points.function, self.hoist_points.flow
        written = {
            id(op.instruction): MatrixView.of(op.tensors[0].type, op.pitches) for op in self.tensors.ops if op.pointer
        }
        sizes = {store: view.size * bytes_of(view.element) for store, view in written.items()}
        self.aliases = AliasAnalysis(self.hoist_points.module, function, flow, sizes)
        self.positions = {
            id(instruction): (block.name, index)
            for block in function.blocks
            for index, instruction in enumerate(block.instructions)
        }

    def after_first(self, users: Sequence[_ProductUse]) -> Sequence[_ProductUse]:
        """The leading products that read A before anything may change it.

        A product's store follows its reads, so the store of the first one may change what the second one reads.
        """
        pointer, view = users[0].match.pointers[1]
        range_ = MemoryLocation(pointer, view.size * bytes_of(view.element))
        block, index = self.positions[id(users[0].match.store)]
        for number, user in enumerate(users[1:], 1):
            if (
                self.aliases.clobbering_instruction(range_, (block, index - 1), self.positions[id(user.match.store)])
                is not None
            ):
                return users[:number]
        return users


def _shared_copy(users: Sequence[_ProductUse], block: Block | None, recipes: RecipesOf) -> SharedCopyOfA | None:
    """The copy for the products that need not pack A if they read it; None for fewer than two products.

    Packing takes about as long as copying (measured for 256x64x256 and 64x64x64 bfloat with a column-major A).
    """
    source, view = users[0].match.pointers[1]
    readers: list[_ProductUse] = []
    layout: MatrixView | None = None
    for user in users:
        before = recipes(user.gemm, user.match.store)
        elements = {recipe.mma.operand_a for recipe, _ in before if recipe.packing.a}
        if len(elements) != 1 or not all(recipe.packing.a and not recipe.tile.streamed_rows for recipe, _ in before):
            continue
        copied = _copy_layout(view, elements.pop(), before[0][1].caches)
        after = recipes(replace(user.gemm, a=copied), user.match.store)
        if layout in (None, copied) and after and not any(recipe.packing.a for recipe, _ in after):
            layout = copied
            readers.append(user)
    if layout is None or sum(user.trips for user in readers) < _MIN_USERS:
        return None
    problem = _copy_problem(view, layout, readers[0].gemm.lhs_sign)
    return SharedCopyOfA(problem, (source, view), layout, tuple(readers), block)


def _copy_layout(view: MatrixView, element: Type, caches: Caches) -> MatrixView:
    """The view of a copy: row-major, with rows aligned to cache lines and no row stride of whole pages."""
    size = bytes_of(element)
    pitch = round_up(view.cols * size, caches.line_bytes)
    pitch += caches.line_bytes if pitch % caches.page_bytes == 0 else 0
    return MatrixView(element, view.rows, view.cols, pitch // size, 1)


def _copy_problem(view: MatrixView, copied: MatrixView, sign: Sign) -> Copy | Elementwise:
    """The problem that makes a copy: a conversion where the products read another type."""
    if view.element == copied.element:
        return Copy(view, copied)
    opcode = "fpext" if isinstance(view.element, FloatType) else "zext" if sign == "u" else "sext"
    nodes = MatrixLeaf(view.element, view.broadcast(), 0), InstructionNode(copied.element, ElementwiseOp(opcode), (0,))
    return Elementwise(copied, Expression(view.rows, view.cols, nodes))
