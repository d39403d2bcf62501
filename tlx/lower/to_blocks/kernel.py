"""Kernels of a grid: their parameters, the iterations of loops that their blocks run, and loops over a block's threads.

    block = (iterations of the loops around the tree) x (tiles of the problem), the tiles varying fastest

Each thread computes tiles of one row, by tile operations, which stage 3 turns into instructions. The numbers of threads
and blocks, shared memory, barriers and fragments are operations of the grid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.builder import Builder, new_function
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import replace_uses
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I8, I32, I64, PTR, PointerType, StructType, Type, bytes_of
from tlx.ir.values import ConstInt, Keyword, OpaqueConstant, Value, const_int
from tlx.lower.context import STAGE_ATTRIBUTE
from tlx.lower.to_tiles.emit.tiles import ResultTile
from tlx.lower.to_tiles.expression import scalar_parameter_type
from tlx.target import thread_calls
from tlx.target.grid_unit import CHUNK_BYTES, FragmentProduct, GridUnit
from tlx.target.launches import FunctionLaunches, Launch, LaunchArgument, TensorMap
from tlx.target.thread_calls import BLOCK_ATTRIBUTE, COUNTS, PREFIX

_NOT_IN_NAMES: Final = re.compile(r"\W")


@dataclass(frozen=True, slots=True)
class GridFacts:
    """How a kernel is launched.

    Attributes:
        name: The kernel.
        grid: Blocks.
        block: Threads of a block.
        shared: Bytes of dynamic shared memory of a block.
        resident: Blocks that a multiprocessor runs at once at least.
        workspace: Bytes of a temporary, which is passed after the other pointers; 0 for none.
        maps: The tensor maps that it is passed last.
    """

    name: str
    grid: int
    block: int
    shared: int
    resident: int = 1
    workspace: int = 0
    maps: tuple[MappedPointer, ...] = ()


@dataclass(frozen=True, slots=True)
class MappedPointer:
    """A pointer of a kernel that is passed as a tensor map, too.

    Attributes:
        number: The pointer's number.
        tensor_map: The tensor that it points to in all iterations.
        workspace_offset: Its place in the workspace, if it is there.
    """

    number: int
    tensor_map: TensorMap
    workspace_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Iterations:
    """The loops around a tree.

    Attributes:
        trips: Their trip counts, outer ones first.
        steps: For each pointer of the tree, the bytes from one iteration of each loop to the next.
        alignments: For each pointer, the alignment of its address, which all iterations have.
        constants: For each pointer, the constant of the program that it points to, and how many bytes after its start;
            None for a pointer that the kernel is passed.
    """

    trips: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]
    alignments: tuple[int, ...]
    constants: tuple[tuple[str, int] | None, ...]

    def split(self, inner: int) -> tuple[Iterations, Iterations]:
        """The outer loops, and some inner ones."""
        outer = len(self.trips) - inner
        return self._part(slice(outer)), self._part(slice(outer, None))

    def with_workspace(self, splits: int, size: int) -> Iterations:
        """The loops, inside of one of some iterations, each of which has a part of some bytes of a workspace."""
        trips = (splits, *self.trips) if splits > 1 else self.trips
        own = tuple(prod(trips[number + 1 :]) * size for number in range(len(trips)))
        steps = tuple((0, *steps) if splits > 1 else steps for steps in self.steps)
        return Iterations(trips, (*steps, own), (*self.alignments, CHUNK_BYTES), (*self.constants, None))

    def with_dense(self, number: int, size: int) -> Iterations:
        """The loops, with the matrices of some bytes that a pointer points to packed after each other, and aligned."""
        steps, following = list[int](), size
        for trips, step in zip(reversed(self.trips), reversed(self.steps[number]), strict=True):
            steps.insert(0, following if step else 0)
            following *= trips if step else 1
        every = [*self.steps]
        every[number] = tuple(steps)
        alignments = [*self.alignments]
        alignments[number] = CHUNK_BYTES
        return Iterations(self.trips, tuple(every), tuple(alignments), self.constants)

    def moving(self, number: int) -> Iterations:
        """The loops that move a pointer."""
        loops = [loop for loop, step in enumerate(self.steps[number]) if step]
        steps = tuple(tuple(steps[loop] for loop in loops) for steps in self.steps)
        return Iterations(tuple(self.trips[loop] for loop in loops), steps, self.alignments, self.constants)

    def _part(self, loops: slice) -> Iterations:
        return Iterations(
            self.trips[loops], tuple(steps[loops] for steps in self.steps), self.alignments, self.constants
        )


class GridKernel:
    """A kernel under construction.

    Args:
        module: The module.
        grid: The target's grid.
        name: The kernel's name, which is made a fresh one.
        pointers: Element types of the pointers that it is passed.
        scalars: Types of its numbers.
        iterations: The loops around it.
        tiles: Blocks of an iteration.
        in_workspace: Pointers by number that are instead places in the workspace, which is the last pointer: how many
            bytes after its start.
        maps: Its tensor maps.

    Attributes:
        grid: The target's grid.
        b: Emits its code.
        block: Number of the block in the grid, i32.
        tile: Number of the block among those of its iteration, i32.
        thread: Number of the thread in its block, i32.
        iteration: Number of the block's iteration of all loops, i32.
        pointers, scalars: The arguments, those of its iteration.
        maps: The addresses of its tensor maps.
    """

    def __init__(
        self,
        module: Module,
        grid: GridUnit,
        name: str,
        pointers: Sequence[Type],
        scalars: Sequence[Type],
        iterations: Iterations,
        tiles: int,
        in_workspace: Mapping[int, int] | None = None,
        maps: Sequence[MappedPointer] = (),
    ) -> None:
        self.grid, self.tiles, self.iterations, self._mapped = grid, tiles, iterations, tuple(maps)
        spelled = [
            (module.pointer_to(element), f"align {alignment}", f"p{number}")
            for number, (element, alignment) in enumerate(zip(pointers, iterations.alignments, strict=True))
            if iterations.constants[number] is None
        ]
        spelled += [(scalar_parameter_type(type_), "", f"s{number}") for number, type_ in enumerate(scalars)]
        if grid.tensor_copies is not None:
            by_value = f"byval([{grid.tensor_copies.map_bytes} x i8]) align {grid.tensor_copies.map_alignment}"
            spelled += [(module.pointer_to(I8), by_value, f"map{number}") for number in range(len(maps))]
        self.function: Function = new_function(
            module,
            module.global_names.fresh(_NOT_IN_NAMES.sub("_", name)),
            spelled,
            f'nounwind "{STAGE_ATTRIBUTE}"="tiles"',
            grid.calling_convention,
        )
        self.b = TensorBuilder(module, self.function)
        values: list[Value] = [argument.value for argument in self.function.arguments]
        for number, constant in enumerate(iterations.constants):
            if constant is not None:
                values.insert(number, self.b.gep(I8, OpaqueConstant(PTR, f"@{constant[0]}"), constant[1]))
        for number, offset in (in_workspace or {}).items():
            values[number] = self.b.gep(I8, values[len(pointers) - 1], offset)
        self._bases = values[: len(pointers)]
        self.scalars, self.maps = values[len(pointers) : len(values) - len(maps)], values[len(values) - len(maps) :]
        self.thread, self.block = grid.operations.thread(self.b), grid.operations.block(self.b)
        self.move_to(self.block)

    def move_to(self, number: Value) -> None:
        """Go on with the tile and iteration of the block with a number, i32."""
        self.tile = self._remainder(number, self.tiles)
        self.iteration = self._quotient(number, self.tiles)
        self.pointers = self._moved(self._bases, self.iteration)

    @property
    def all_tiles(self) -> int:
        """Tiles of all iterations."""
        return self.tiles * prod(self.iterations.trips)

    def _moved(self, pointers: Sequence[Value], iteration: Value) -> list[Value]:
        """The pointers of an iteration, whose number counts those of all loops, the inner ones fastest."""
        iterations = self.iterations
        return [
            self.b.gep(I8, base, self.distance(iteration, iterations.trips, steps))
            for base, steps in zip(pointers, iterations.steps, strict=True)
        ]

    def distance(self, iteration: Value, trips: Sequence[int], steps: Sequence[int]) -> Value:
        """Bytes from a pointer of the first iteration of some loops to that of another one (i32), i64."""
        b = self.b
        total: Value = const_int(I64, 0)
        for extent, step in zip(reversed(trips), reversed(steps), strict=True):
            iteration, index = self.divided(iteration, extent)
            if step:
                total = b.add(total, b.mul(as_index(b, index), step))
        return total

    def _quotient(self, value: Value, divisor: int) -> Value:
        return self.b.binary("udiv", value, const_int(I32, divisor))

    def _remainder(self, value: Value, divisor: int) -> Value:
        return self.b.binary("urem", value, const_int(I32, divisor)) if divisor > 1 else const_int(I32, 0)

    def divided(self, value: Value, divisor: int) -> tuple[Value, Value]:
        """Quotient and remainder of an unsigned i32."""
        return self._quotient(value, divisor), self._remainder(value, divisor)

    def for_each(
        self,
        count: int,
        threads: int,
        body: Callable[[Value], None],
        *,
        unrolled: bool = False,
        thread: Value | None = None,
    ) -> None:
        """Emit code that runs the body for the numbers (i32) below `count`, spread over some threads.

        Args:
            count: How many numbers.
            threads: How many threads: by default those of the block.
            body: Emits the code for a number.
            unrolled: Whether the code is repeated rather than in a loop.
            thread: The thread's number among them, i32; by default that in the block.
        """
        b, rounds, thread = self.b, -(-count // threads), thread or self.thread

        def emit(number: Value) -> None:
            if count % threads == 0:
                body(number)
            else:
                with b.if_block(b.icmp("ult", number, count), "in.range"):
                    body(number)

        if unrolled:
            for round_number in range(rounds):
                emit(b.add(thread, round_number * threads))
            return
        with b.loop(0, rounds, name="round") as loop:
            emit(b.add(thread, b.mul(b.cast("trunc", loop.index, I32), threads)) if rounds > 1 else thread)

    def finish(
        self, threads: int, shared: int, resident: int = 1, workspace: int = 0, blocks: int | None = None
    ) -> GridFacts:
        """End the kernel, whose blocks have some threads and bytes of shared memory; by default one for each tile."""
        self.b.ret()
        blocks = self.all_tiles if blocks is None else blocks
        return GridFacts(self.function.name, blocks, threads, shared, resident, workspace, self._mapped)


def all_of(b: TensorBuilder, conditions: Sequence[Value]) -> Value | None:
    """Whether all conditions hold; None if there are none."""
    return reduce(lambda x, y: b.binary("and", x, y), conditions) if conditions else None


def vector_columns(cols: int, element: Type) -> int:
    """Adjacent elements of a row that a thread computes at once: a power of two that divides the columns."""
    most = max(1, CHUNK_BYTES // bytes_of(element))
    return min(most, cols & -cols)


def row_tile(columns: int, row: Value | None = None, column: Value | None = None) -> ResultTile:
    """A tile of one row, at a place given as i64."""
    return ResultTile(1, columns, 0, row, column)


def as_index(b: TensorBuilder, value: Value) -> Value:
    """An unsigned i32 as the i64 of addresses."""
    if isinstance(value, ConstInt):
        return const_int(I64, value.value)
    return b.cast("zext", value, I64)


# Functions that are written for one thread of a grid: see `tlx.target.thread_calls` -----------------------------------


def is_for_threads(module: Module, function: Function) -> bool:
    """Whether a function is written for one thread of a grid."""
    return BLOCK_ATTRIBUTE in module.function_attributes(function.signature)


def thread_function_kernel(module: Module, function: Function, grid: GridUnit) -> tuple[GridFacts, FunctionLaunches]:
    """Turn a function into a kernel, in place.

    Raises:
        LoweringError: A block has too many threads or too much shared memory.
    """
    words = module.function_attributes(function.signature)[BLOCK_ATTRIBUTE].split(",")
    threads, shared = (int(word) for word in words)
    if threads > grid.max_block_threads:
        message = f"@{function.name}: a block of {threads} threads; a work-group has at most {grid.max_block_threads}"
        raise LoweringError(f"{message} work-items", function.span)
    if shared > grid.max_shared_bytes:
        message = f"@{function.name}: {shared} bytes of local memory and matrices; a block has {grid.max_shared_bytes}"
        raise LoweringError(f"{message}: use smaller work-groups, tiles or types", function.span)
    for block in function.blocks:
        for call in [i for i in block.instructions if (i.callee or "").startswith(PREFIX)]:
            b = Builder(module, function, block, block.instructions.index(call))
            value = _operation(b, grid, call)
            if value is not None and call.result is not None:
                replace_uses(function, call.result, value)
            block.instructions.remove(call)
    function.header = function.header.replace("define void", f"define {grid.calling_convention} void", 1)
    function.signature.result_attributes = grid.calling_convention
    function.replace_attributes(f'nounwind "{STAGE_ATTRIBUTE}"="tiles"')
    arguments = function.arguments
    passed = tuple(
        LaunchArgument(parameter=number, offset=0 if isinstance(argument.type, PointerType) else None)
        for number, argument in enumerate(arguments)
    )
    types = tuple("ptr" if isinstance(a.type, PointerType) else str(a.type) for a in arguments)
    counts = tuple(range(len(arguments) - COUNTS, len(arguments)))
    launch = Launch(function.name, counts, threads, shared, passed)
    return GridFacts(function.name, 0, threads, shared), FunctionLaunches(function.name, types, (), (launch,))


def _operation(b: Builder, grid: GridUnit, call: Instruction) -> Value | None:
    """The operation of the grid that a call is."""
    operations, arguments = grid.operations, call.args
    match (call.callee or "").removeprefix(PREFIX):
        case "number":
            return operations.thread(b)
        case "block":
            return operations.block(b)
        case "shared":
            return operations.shared(b)
        case "barrier":
            operations.barrier(b)
        case "subgroup.barrier":
            operations.subgroup_barrier(b, _size(arguments[0]))
        case "shuffle":
            return operations.shuffle(b, arguments[0], arguments[1], _size(arguments[2]))
        case "ballot":
            return operations.ballot(b, arguments[0], _size(arguments[1]))
        case "fragments" | "fragments.transposed" as name:
            return _structure(b, operations.load_fragments(b, arguments[0], transposed=name != thread_calls.FRAGMENTS))
        case name if name.startswith(thread_calls.MULTIPLY):
            return _multiplied(b, grid, call)
        case name:
            raise LoweringError(f"there is no operation {PREFIX}{name} of threads", call.span)
    return None


def _multiplied(b: Builder, grid: GridUnit, call: Instruction) -> Value:
    """The sums of a product of fragments."""
    name = (call.callee or "").removeprefix(f"{PREFIX}{thread_calls.MULTIPLY}.")
    products = [p for p in grid.products if isinstance(p, FragmentProduct) and thread_calls.product_name(p) == name]
    if not products:
        raise LoweringError(f"the target's grid has no product of fragments {name}", call.span)
    (product,) = products
    own = product.rows * product.columns // grid.warp_threads
    acc, rest = call.args[:own], call.args[own:]
    of_lhs = len(rest) * product.rows // (product.rows + product.columns)
    return _structure(b, product.multiply(b, acc, rest[:of_lhs], rest[of_lhs:]))


def _structure(b: Builder, values: Sequence[Value]) -> Value:
    """A structure of values."""
    type_ = StructType(tuple(value.type for value in values))
    structure: Value = Keyword(type_, "undef")
    for number, value in enumerate(values):
        body = f"insertvalue {structure.typed}, {value.typed}, {number}"
        structure = b.value("insertvalue", type_, [structure, value, const_int(I64, number)], body)
    return structure


def _size(value: Value) -> int:
    assert isinstance(value, ConstInt)
    return value.value
