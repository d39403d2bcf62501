"""What kernels share: functions and parameters, tile types, conversions, scratch memory, non-temporal stores, terms."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.instructions import Builder, LoopState, new_function
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block
from tlx.ir.module import Module, Raw, nontemporal_metadata
from tlx.ir.types import (
    I8,
    I16,
    I64,
    ArrayType,
    FloatType,
    IntType,
    Type,
    VectorType,
    bits_of,
    bytes_of,
)
from tlx.ir.values import Aggregate, ConstInt, Global, Keyword, Local, Value, const_int, const_ints
from tlx.lower.context import STAGE_ATTRIBUTE, TARGET_ATTRIBUTE
from tlx.lower.memory.allocation import FRAME_METADATA, buffer_metadata, emit_allocation, emit_release, trap_if_null
from tlx.lower.to_tiles.parallel.tile_range import PART_SUFFIX, tile_range_parameters
from tlx.lower.to_tiles.problem.expression import Expression, MatrixLeaf, MatrixView, scalar_parameter_type
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.select.caches import LINE
from tlx.lower.to_tiles.select.recipe import Recipe
from tlx.target.hardware import Sign
from tlx.target.target import Target


def tile(element: Type, rows: int, cols: int, padding: tuple[int, int] = (0, 0)) -> TensorType:
    """A row-major tile."""
    return TensorType(element, (rows, cols), (0, 1), padding)


def column_tile(element: Type, rows: int, cols: int, padding: tuple[int, int] = (0, 0)) -> TensorType:
    """A column-major tile of `rows` x `cols` (its shape is listed in memory order: columns first)."""
    return TensorType(element, (cols, rows), (1, 0), (padding[1], padding[0]))


def convert_tile(b: TensorBuilder, value: Value, element: Type, sign: Sign) -> Value:
    """A flattened tile with its elements converted; integers are widened by `sign`."""
    type_ = value.type
    if not isinstance(type_, VectorType) or type_.element == element:
        return value
    to = VectorType(type_.count, element)
    source = type_.element
    narrower = bits_of(element) < bits_of(source)
    if isinstance(source, FloatType) and isinstance(element, FloatType):
        return b.cast("fptrunc" if narrower else "fpext", value, to)
    if isinstance(source, IntType) and isinstance(element, IntType):
        widen = "zext" if sign == "u" else "sext"
        return b.cast("trunc" if narrower else widen, value, to)
    msg = f"no conversion from {source} to {element}"
    raise TypeError(msg)


def flip_sign_bit(b: TensorBuilder, value: Value) -> Value:
    """Bytes xor 0x80: s8 as u8 plus 128, and u8 as s8 minus 128."""
    type_ = value.type
    if not isinstance(type_, VectorType):
        msg = f"no vector: {type_}"
        raise TypeError(msg)
    return b.binary("xor", value, const_ints(I8, [-128] * type_.count))


def new_kernel(
    module: Module,
    target: Target,
    stem: str,
    parameters: Sequence[tuple[str, Type, str]],
    scalars: Sequence[tuple[str, Type]] = (),
    *,
    parts: bool = False,
    keeps: bool = False,
) -> Function:
    """An internal function on pointers, to hold tile code.

    Args:
        module: Where it is added.
        target: The machine it is for, whose features it carries.
        stem: Its name, made unique.
        parameters: Name, element type and attributes of each pointer parameter.
        scalars: Name and type of each scalar parameter, after the pointers.
        parts: Whether it computes a range of its tiles, whose bounds are its last parameters.
        keeps: Whether further parameters describe a cache of packed panels of B across calls.
    """
    version = f".{target.name}" if target.level else ""
    name = module.global_names.fresh(f"{stem}{version}{PART_SUFFIX if parts else ''}")
    spelled = [(module.pointer_to(element), attributes, parameter) for parameter, element, attributes in parameters]
    own = tile_range_parameters(module, keeps=keeps) if parts else ()
    spelled += [(type_, "", parameter) for parameter, type_ in (*scalars, *own)]
    features = f' "target-features"="{",".join(target.features)}"' if target.features else ""
    features += f' "{TARGET_ATTRIBUTE}"="{target.name}"' if target.level else ""
    return new_function(module, name, spelled, f'nounwind noinline "{STAGE_ATTRIBUTE}"="tiles"{features}')


def expression_parameters(value: Expression) -> tuple[list[tuple[str, Type, str]], list[tuple[str, Type]]]:
    """Parameters of a kernel for the leaves and for the scalars of an expression."""
    elements = {leaf.pointer: leaf.element for leaf in value.leaves()}
    pointers = [(f"x{number}", elements[number], "") for number in sorted(elements)]
    kinds = {scalar.number: scalar.element for scalar in value.scalars()}
    return pointers, [(f"s{number}", scalar_parameter_type(kinds[number])) for number in sorted(kinds)]


def may_alias_leaf(value: Expression, destination: MatrixView) -> bool:
    """Whether a leaf may alias the destination."""
    return bool(in_place_leaves(value, destination))


def in_place_leaves(value: Expression, destination: MatrixView) -> list[MatrixLeaf]:
    """The leaves that may be the destination itself: they have the same layout."""
    to = destination.broadcast()
    leaves = [leaf for leaf in value.leaves() if bits_of(leaf.element) == bits_of(to.element)]
    return [leaf for leaf in leaves if _element_layout(leaf.view.broadcast()) == _element_layout(to)]


def _element_layout(view: MatrixView) -> tuple[int, int, int, int]:
    return view.rows, view.cols, view.row_stride, view.col_stride


@contextmanager
def if_block(b: Builder, condition: Value, name: str) -> Generator[None]:
    """A block that runs if a condition holds."""
    inside, behind = if_else_blocks(b, condition, (name, f"{name}.end"))
    b.at_end(inside)
    yield
    b.branch(behind)
    b.at_end(behind)


def if_else_blocks(b: Builder, condition: Value, names: tuple[str, str]) -> tuple[Block, Block]:
    """Branch on a condition; returns the blocks for true and for false."""
    before = b.block
    then = b.new_block(names[0])
    otherwise = b.new_block(names[1], then)
    b.at_end(before)
    b.branch_if(condition, then, otherwise)
    return then, otherwise


def kernel_scalar(b: Builder, scalar: Value) -> Value:
    """A scalar as it is passed to a kernel."""
    if scalar_parameter_type(scalar.type) == scalar.type:
        return scalar
    one = VectorType(1, scalar.type)
    vector = b.insert_element(Keyword(one, "undef"), scalar, 0)
    return b.extract_element(b.cast("bitcast", vector, VectorType(1, I16)), 0)


def elements_to_boundary(b: TensorBuilder, address: Value, element: int, boundary: int) -> Value:
    """Elements of `element` bytes from an address to the next one that is aligned to `boundary` elements."""
    bytes_behind = b.sub(const_int(I64, 0), b.cast("ptrtoint", address, I64))
    gap = b.binary("and", bytes_behind, const_int(I64, boundary * element - 1))
    return b.binary("lshr", gap, const_int(I64, element.bit_length() - 1))


STACK_LIMIT: Final = 32 << 10


@dataclass(eq=False)
class Scratch:
    """Working memory of a kernel: one 64-byte aligned block for all its buffers.

    `reserve` notes buffers, `allocate` makes all of them, and `release` frees them.

    Attributes:
        size: Bytes reserved so far.
        joins: Whether the memory planner may have callers provide heap memory; else it is a frame.
        given: Memory of the caller to use instead: aligned, with at least `size` bytes.
    """

    size: int = 0
    joins: bool = True
    given: Value | None = None
    _offsets: list[tuple[int, Type]] = field(default_factory=list[tuple[int, Type]])
    _block: Value | None = None

    def reserve(self, element: Type, count: int) -> int:
        """Reserve a buffer of `count` elements; returns its number."""
        self._offsets.append((self.size, element))
        self.size += -(-count * bytes_of(element) // LINE) * LINE
        return len(self._offsets) - 1

    def allocate(self, b: Builder) -> list[Value]:
        """Allocate all reserved buffers; returns a pointer to each."""
        if not self._offsets:
            return []
        if self.given is not None:
            base = self.given
        elif self.size <= STACK_LIMIT:
            base: Value = b.retype(b.alloca(ArrayType(self.size, I8), "scratch", LINE), I8)
        else:
            base = self._from_heap(b)
        return [b.retype(b.gep(I8, base, offset), element) for offset, element in self._offsets]

    def _from_heap(self, b: Builder) -> Value:
        size = const_int(I64, self.size + LINE)
        self._block = emit_allocation(b, size, "scratch.heap", self._mark)
        trap_if_null(b, [self._block])
        return b.at_boundary(self._block, LINE)

    def release(self, b: Builder) -> None:
        """Free heap memory."""
        if self._block is not None:
            emit_release(b, self._block, "" if self.joins else FRAME_METADATA)

    @property
    def _mark(self) -> str:
        return buffer_metadata() if self.joins else FRAME_METADATA


class ResultStores:
    """Emits the stores of C: non-temporal if the recipe says so and C is aligned at run time."""

    def __init__(self, b: TensorBuilder, c: Value, gemm: Gemm, recipe: Recipe) -> None:
        self.b = b
        self._aligned: Value | None = None
        if recipe.stores.nontemporal:
            size = recipe.tile.lanes * bytes_of(gemm.c.element)
            behind = b.binary("and", b.cast("ptrtoint", c, I64), const_int(I64, size - 1))
            self._aligned = b.icmp("eq", behind, const_int(I64, 0))

    def store(self, address: Value, token: Local, pitch: int) -> None:
        """Store a tile of C."""
        b = self.b
        if self._aligned is None:
            b.tensor_store(address, token, (0, pitch))
            return
        past = b.new_block("past", b.block)
        usual = b.new_block("usual", past)
        stored = b.new_block("stored", usual)
        b.branch_if(self._aligned, past, usual)
        for block, mark in ((past, nontemporal_metadata(b.module)), (usual, "")):
            b.at_end(block)
            b.tensor_store(address, token, (0, pitch), metadata=mark)
            b.branch(stored)
        b.at_end(stored)


def insert_fences(module: Module, nests: Collection[Function], kernels: Collection[str]) -> None:
    """Put a fence after the loops around kernels with non-temporal stores.

    Args:
        module: The module.
        nests: Functions that are loop nests around kernels.
        kernels: Names of the kernels; outside nests, a fence follows each call.
    """
    for function in module.functions if kernels else ():
        for block in function.blocks:
            calls = [index for index, i in enumerate(block.instructions) if i.callee in kernels]
            if calls and function in nests:
                _fence(module, function, function.blocks[-1], 0)
                break
            for index in reversed(calls):
                _fence(module, function, block, index + 1)


def _fence(module: Module, function: Function, block: Block, index: int) -> None:
    b = Builder(module, function, block)
    b.index = index
    b.fence()


Offset = tuple[int, int]


@dataclass(eq=False)
class SumTerms:
    """The terms of a sum of products in one kernel.

    C = f(sum over s of A[s] @ B[s])        for s: for k: acc += A[s][tile, k] @ B[s][k, panel]

    The accumulators stay in registers throughout. `A[s]` is `offsets[s][0]` elements behind `A[0]`, `B[s]` is
    `offsets[s][1]` behind `B[0]`; offsets that are not linear in `s` are read from a table. A single product is a sum
    of one term.

    Attributes:
        b: The builder.
        offsets: Element offsets of each term's operands from those of the first.
    """

    b: TensorBuilder
    offsets: tuple[Offset, ...]
    _tables: dict[int, Global] = field(default_factory=dict[int, Global])

    @property
    def count(self) -> int:
        """Number of terms."""
        return len(self.offsets)

    def loop(self, carry: Sequence[Value] = ()) -> AbstractContextManager[LoopState]:
        """The loop over the terms; no loop for one term."""
        return self.b.loop(0, self.count, carry=carry, name="s")

    def offset(self, operand: int, index: Value) -> Value:
        """Elements from the first term's operand (0: A, 1: B) to that of another."""
        offsets = [pair[operand] for pair in self.offsets]
        step = offsets[1] if self.count > 1 else 0
        if offsets == [i * step for i in range(self.count)]:
            return self.b.mul(index, step)
        if isinstance(index, ConstInt):
            return ConstInt(I64, offsets[index.value])
        if operand not in self._tables:
            self._tables[operand] = self._table(offsets)
        return self.b.load(I64, self.b.gep(I64, self._tables[operand], index), 8, "offset")

    def _table(self, offsets: Sequence[int]) -> Global:
        module = self.b.module
        name = module.global_names.fresh("tlx.offsets")
        type_ = ArrayType(len(offsets), I64)
        value = Aggregate(type_, tuple(ConstInt(I64, offset) for offset in offsets), "[")
        module.append(Raw(f"\n\n@{name} = private unnamed_addr constant {value.typed}, align 64"))
        return Global(module.pointer_to(type_), name)
