"""B packed once for all the products of a loop: a kernel that packs, in front of the loop, and one that multiplies.

    for i: C[i] = A[i] @ B                    pack(panels, B)
                                       ->     for i: C[i] = A[i] @ panels

The loop must be one of stage 1's (`INDEPENDENT`), whose products write nothing that others read, and B's address the
same in all its rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.dominance import ControlFlow, Loop, natural_loops
from tlx.ir.module import Block, Function, Module
from tlx.ir.rewriter import definitions
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I8, I64, bytes_of
from tlx.ir.values import Local, Value, const_int
from tlx.lower.stage import INDEPENDENT
from tlx.lower.to_2d.attributes import allow_heap
from tlx.lower.to_2d.buffers import STACK_ALIGN, Buffers
from tlx.lower.to_tiles.blocks import Range, column_ranges
from tlx.lower.to_tiles.corrections import column_sums
from tlx.lower.to_tiles.matrix_pack import TilePacking, pack_panel
from tlx.lower.to_tiles.nest_team import trips_of
from tlx.lower.to_tiles.pack_b import PanelOfB
from tlx.lower.to_tiles.packing import Packing
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.lower.to_tiles.rounds import Rounds
from tlx.lower.to_tiles.share import arguments_of
from tlx.lower.to_tiles.sums import Sums
from tlx.lower.to_tiles.tiles import new_kernel
from tlx.target import Target

_COUNTED: Final = ("getelementptr", "bitcast")
_WRITERS: Final = ("llvm.tensor.store", "llvm.memcpy", "llvm.memmove", "llvm.memset")
_MANY: Final = 16  # rounds of a loop whose bound is not known


@dataclass(frozen=True)
class Panels:
    """The packed form of all of B: panel behind panel, the sums of columns behind them.

    Attributes:
        packing: How B is packed.
        depth: Positions along K of a panel, over all products of the sum.
        width: Columns of all panels.
        ranges: The panels, in ranges; they may overlap in B, but not here.
    """

    packing: Packing
    depth: int
    width: int
    ranges: tuple[Range, ...]

    @classmethod
    def of(cls, gemm: Gemm, recipe: Recipe) -> Panels:
        """The panels of a product."""
        flip = recipe.correction == "rows"
        packing = Packing(gemm.b, recipe.operand_b, gemm.rhs_sign, recipe.width, recipe.kstep, flip, recipe.lanes)
        ranges = column_ranges(gemm, recipe)
        width = sum(columns.count * columns.size for columns in ranges)
        return cls(packing, packing.depth(gemm.k) * len(gemm.sums), width, tuple(ranges))

    def place(self, b: Builder, columns: Range, column: Value) -> Value:
        """How many columns lie before the panel of a range that begins at a column of B."""
        before = sum(other.count * other.size for other in self.ranges[: self.ranges.index(columns)])
        return b.add(column, before - columns.start)

    @property
    def sums_at(self) -> int:
        """Bytes from the first panel to the sums of columns."""
        return -(-self.depth * self.width * bytes_of(self.packing.element) // STACK_ALIGN) * STACK_ALIGN

    def size(self, recipe: Recipe) -> int:
        """Bytes of all of it."""
        sums = self.width * bytes_of(recipe.accumulator) if recipe.correction == "columns" else 0
        return self.sums_at + sums


def packing_kernel(module: Module, gemm: Gemm, recipe: Recipe, target: Target, *, parts: bool = False) -> Function:
    """Add the kernel that packs B to the module: a function of pointers to the panels and to B.

    Where it works on `parts`, the bounds of its panels follow, behind those of rows, which it has none of.
    """
    parameters = [("panels", recipe.operand_b, "noalias"), ("b", gemm.b.element, "")]
    function = new_kernel(module, target, f"{gemm.kernel_name}.pack", parameters, parts=parts)
    b = TensorBuilder(module, function)
    (panels, source), share = arguments_of(function)
    form, terms = Panels.of(gemm, recipe), Sums(b, gemm.sums)
    sums = b.retype(b.gep(I8, panels, form.sums_at), recipe.accumulator) if recipe.correction == "columns" else None
    tiles: TilePacking | None = None
    if recipe.unit == "matrix" and target.matrix is not None:
        tiles = TilePacking(b, recipe.operand_b, target.matrix.rows, recipe.kstep, recipe.width)
    for columns in form.ranges:
        with b.loop(*share.columns.of(b, form.ranges, columns), name="jp") as loop:
            column = columns.begin(b, loop.index)
            place = form.place(b, columns, column)
            panel = b.gep(recipe.operand_b, panels, b.mul(place, form.depth))
            first = b.gep(gemm.b.element, source, b.mul(column, gemm.b.col_stride))
            with terms.loop() as term:
                there = b.gep(recipe.operand_b, panel, b.mul(term.index, form.depth // terms.count * columns.size))
                here = b.gep(gemm.b.element, first, terms.offset(1, term.index))
                if tiles is not None:
                    pack_panel(tiles, gemm.b, (here, there), columns, gemm.k)
                else:
                    PanelOfB(b, form.packing, here, there, columns, gemm.k).pack()
            if sums is not None:
                out, groups = b.gep(recipe.accumulator, sums, place), form.depth // recipe.width
                column_sums(b, panel, out, columns.size, groups, recipe.width, recipe.accumulator)
    b.ret()
    return function


@dataclass(frozen=True)
class Place:
    """Where B can be packed: at the end of a block, for a product in so many rounds of loops."""

    block: Block
    rounds: int


@dataclass(eq=False)
class Places:
    """Where in a function B can be packed for more than one product; makes the memory for it.

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
        self.rounds = Rounds(self.module, self.function, self.flow, self.loops)
        self.buffers = Buffers(self.module, self.function)

    def _is_independent(self, header: str, blocks: frozenset[str]) -> bool:
        latches = [name for name in self.flow.predecessors[header] if name in blocks]
        return all(INDEPENDENT in self.flow.blocks[name].terminator.text for name in latches)

    def before(self, block: Block, pointer: Value) -> Place | None:
        """The end of the block in front of the outermost loop around a block in which a pointer stays the same."""
        for loop in self.loops:
            if block.name not in loop.blocks or self._is_made_in(pointer, loop.blocks):
                continue
            if self._is_written_in(pointer, loop.blocks):
                continue
            entered = [name for name in self.flow.predecessors[loop.header] if name not in loop.blocks]
            if len(entered) == 1:
                inner = [x for x in self.loops if block.name in x.blocks and x.blocks <= loop.blocks]
                return Place(self.flow.blocks[entered[0]], prod(self._rounds(x) for x in inner))
        return None

    def _rounds(self, loop: Loop) -> int:
        """How often a loop runs, or a guess."""
        trips = trips_of(self.flow, loop)
        return trips if trips > 1 else _MANY

    def _is_made_in(self, pointer: Value, blocks: frozenset[str]) -> bool:
        made = (i.result for name in blocks for i in self.flow.blocks[name].instructions)
        return isinstance(pointer, Local) and pointer.name in made

    def _is_written_in(self, pointer: Value, blocks: frozenset[str]) -> bool:
        """Whether a round itself writes what it reads there: a loop that came from elsewhere may have buffers in it."""
        base = self._base(pointer)
        return any(self._base(to) == base for name in blocks for to in _written(self.flow.blocks[name]))

    def _base(self, pointer: Value) -> str:
        """What a pointer is counted from."""
        made = self.made.get(pointer.name) if isinstance(pointer, Local) else None
        return self._base(made.operands[0]) if made is not None and made.opcode in _COUNTED else str(pointer)

    def memory(self, b: Builder, size: int) -> Value:
        """Memory for panels, as the builder's block finds it."""
        buffer = self.buffers.new(I8, size + STACK_ALIGN, "panels")
        start = b.retype(buffer.pointer, I8)
        address = b.cast("ptrtoint", start, I64)
        gap = b.binary("and", b.sub(const_int(I64, 0), address), const_int(I64, STACK_ALIGN - 1))
        return b.gep(I8, start, gap, "panels")

    def put(self, block: Block, code: Block) -> None:
        """Have instructions run at the end of a block, once all trees are replaced."""
        self.pending.append((block, code))

    def finish(self) -> None:
        """Put everything in its place."""
        for block, code in self.pending:
            block.instructions[-1:-1] = code.instructions
        if self.buffers.made:
            self.buffers.emit()
            if self.buffers.uses_heap:
                allow_heap(self.module, self.function)


def _written(block: Block) -> Iterator[Value]:
    """The addresses that a block writes to."""
    for instruction in block.instructions:
        callee = str(instruction.callee) if instruction.is_call else ""
        if callee.startswith(_WRITERS):
            yield instruction.args[0]
        elif instruction.opcode == "store":
            yield instruction.operands[1]
