"""The host's part of a function: the loops around its trees, and where their pointers point.

The host only launches kernels, so everything else in the function must be known when it is compiled:

    %p = getelementptr float, ptr %x, i64 %o        %o = %i * 600 + 32, %i the index of a loop
    ->  parameter 0, offset 128, step 2400 for the loop

Iterations of independent loops around a tree become blocks of its kernel's grid. Where such a loop has several trees,
each kernel runs all iterations before the next one starts. A temporary that iterations share gets a copy for each of
them. The trees of other loops are launched for each iteration.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.control_flow import FunctionLoops, Loop
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import definitions, uses
from tlx.ir.tensors.calls import is_tensor_call
from tlx.ir.tensors.inference import TensorOp, analyse
from tlx.ir.types import IntType, PointerType, VectorType
from tlx.ir.values import ConstInt, Global, Local, Value
from tlx.lower.memory.aliases import AliasAnalysis, size_of
from tlx.lower.to_blocks.attention.match import AttentionSearch
from tlx.lower.to_blocks.attention.plan import has_attention_kernel
from tlx.lower.to_blocks.memory_operations import PlainStores, host_error, is_memory_call, match_memory_call
from tlx.lower.to_blocks.rows.row_fusion import has_one_stride, private_rows
from tlx.lower.to_tiles.match.stores import Match, match_store
from tlx.lower.to_tiles.match.trees import FunctionSnapshot
from tlx.lower.to_tiles.problem import RowFusion
from tlx.lower.to_tiles.rewrite.row_fusion import find_row_fusions, memory_range
from tlx.target.launches import TEMPORARY_ALIGNMENT
from tlx.target.target import Target

_IGNORED: Final = ("llvm.lifetime.", "llvm.assume", "llvm.experimental.noalias.scope.decl")
_CONSTANT: Final = re.compile(r'(?m)^@("?[-\w.$]+"?) = (?:[a-z_]+ )*constant [^\n]*?(?:, align (\d+))?$')
_ALLOCATORS: Final = ("malloc", "aligned_alloc")
_WITHOUT_MEMORY: Final = frozenset(
    "add sub mul shl lshr ashr and or xor udiv sdiv urem srem icmp select zext sext trunc ptrtoint getelementptr "
    "bitcast phi insertelement shufflevector extractelement fadd fsub fmul fdiv fneg fptrunc fpext fcmp sitofp uitofp "
    "fptosi fptoui alloca br unreachable freeze frem inttoptr".split()
)
_MOST_REPEATED: Final = 1024
"""Most iterations whose kernels are launched one after the other."""
_ADDRESS_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class AffinePointer:
    """Where a pointer points: bytes after some memory, and how far an iteration of each loop moves it.

    The memory is a parameter, a temporary or a constant of the program; the others of the three are None.

    Attributes:
        parameter: Number of the function's parameter.
        temporary: Name of the instruction that allocates the temporary.
        constant: Name of the constant.
        offset: Bytes in the first iterations.
        steps: Bytes from one iteration to the next, for each loop around the tree, outer ones first.
    """

    parameter: int | None
    temporary: str | None
    constant: str | None
    offset: int
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HostTree:
    """A tree and the loops around it.

    Attributes:
        match: The tree.
        trips: Trip counts of the loops, outer ones first.
        places: Where its pointers point.
        scalars: The numbers of the parameters that its scalars are.
        private: The pointers of fused rows that are in shared memory, and where; they have no place.
    """

    match: Match
    trips: tuple[int, ...]
    places: tuple[AffinePointer, ...]
    scalars: tuple[int, ...]
    private: dict[int, int]


@dataclass(frozen=True, slots=True)
class _AffineValue:
    """A number or an address: a base, a constant, and a factor for each loop index."""

    base: str = ""
    constant: int = 0
    factors: tuple[tuple[str, int], ...] = ()

    def scaled(self, factor: int) -> _AffineValue:
        return _AffineValue("", self.constant * factor, tuple((name, value * factor) for name, value in self.factors))

    def plus(self, other: _AffineValue, sign: int = 1) -> _AffineValue:
        factors = defaultdict[str, int](int, self.factors)
        for name, value in other.factors:
            factors[name] += sign * value
        nonzero = tuple(sorted((name, value) for name, value in factors.items() if value))
        return _AffineValue(self.base or other.base, self.constant + sign * other.constant, nonzero)


@dataclass(eq=False)
class HostFunction:
    """Reads a function of stage 1's output.

    Attributes:
        module, function: The function.
        target: The machine it is for.
        temporaries: Bytes of each temporary, by the name of the instruction that allocates it.
        copies: For a temporary that iterations share, the indices of the loops each of whose iterations has a copy.
        blocks: The blocks that can be reached, in the order in which they run.
    """

    module: Module
    function: Function
    target: Target
    temporaries: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.loops = FunctionLoops(self.function)
        self.blocks = [self.loops.flow.blocks[name] for name in self.loops.flow.order]
        self.definitions = definitions(self.function)
        self.parameters = {argument.name: number for number, argument in enumerate(self.function.arguments)}
        self.copies: dict[str, tuple[str, ...]] = {}
        self.aliases = AliasAnalysis(self.module, self.function, self.loops.flow)
        self.plain_stores = PlainStores(self.aliases)
        self._repeated = {loop.header: loop for loop in self.loops.loops if _is_repeated(self.loops, loop)}
        self._indices = dict.fromkeys(map(_index_of, self._repeated.values()), 0)

    def trees(self) -> list[HostTree]:
        """The trees, in order.

        Raises:
            LoweringError: The function does something that only a processor can.
        """
        self._check()
        snapshot = FunctionSnapshot(self.function, analyse(self.module, self.function))
        stores = {id(op.instruction): op for op in snapshot.tensors.ops if op.intrinsic.name == "store"}
        matches = [
            (match, block)
            for block in self.blocks
            for i in block.instructions
            if (match := self._match(snapshot, stores, i)) is not None
        ]
        matches = self._with_attention(matches)
        fusions = find_row_fusions(self.module, snapshot, [match for match, _ in matches], self.target)
        fused = {id(fusion.match.store): fusion.match for fusion in fusions if has_one_stride(fusion.match)}
        dropped = {id(s) for fusion in fusions if id(fusion.match.store) in fused for s in fusion.stores} - set(fused)
        matches = [
            (fused.get(id(match.store), match), block) for match, block in matches if id(match.store) not in dropped
        ]
        for match, block in matches:
            for pointer in _written(match):
                self._privatise(pointer, self.loops.enclosing_independent_loops(block), match)
        of_blocks: dict[str, list[Match]] = {block.name: [] for block in self.blocks}
        for match, block in matches:
            of_blocks[block.name].append(match)
        trees: list[HostTree] = []
        for block, indices in self._sequence(self.blocks, {}):
            self._indices = indices
            trees += [self._tree(match, block) for match in of_blocks[block.name]]
        return trees

    def _with_attention(self, matches: list[tuple[Match, Block]]) -> list[tuple[Match, Block]]:
        """The trees, with those of attention replaced by one."""
        users = Counter(
            name
            for match, _ in matches
            for name in {self._temporary_of(pointer, match) for pointer, _ in match.pointers}
        )
        search = AttentionSearch(
            self._temporary_of,
            {name: count for name, count in users.items() if name is not None},
            lambda one, other: self.aliases.disjoint(memory_range(*one), memory_range(*other)),
            lambda problem: self.target.grid is not None and has_attention_kernel(self.target.grid, problem),
        )
        result: list[tuple[Match, Block]] = []
        for block in self.blocks:
            result += [(m, block) for m in search.fused([match for match, other in matches if other is block])]
        return result

    def _temporary_of(self, pointer: Value, match: Match) -> str | None:
        """The temporary that a pointer of a tree points to, if it points to one."""
        base = self._linear(pointer, match.store).base
        return base if base in self.temporaries else None

    def _sequence(self, blocks: list[Block], indices: dict[str, int]) -> Iterator[tuple[Block, dict[str, int]]]:
        """The blocks as they run one after the other, with the values of the repeated loops' indices."""
        passed: set[str] = set()
        for block in blocks:
            loop = self._repeated.get(block.name)
            if block.name in passed:
                continue
            if loop is None or _index_of(loop) in indices:
                yield block, indices
                continue
            body = [inner for inner in blocks if inner.name in loop.blocks]
            passed |= loop.blocks
            bounds = _bounds_of(loop)
            for iteration in range(loop.trips):
                yield from self._sequence(body, {**indices, _index_of(loop): bounds.start + iteration * bounds.step})

    def _match(self, snapshot: FunctionSnapshot, stores: dict[int, TensorOp], instruction: Instruction) -> Match | None:
        """The tree that an instruction stores; None for one that does not write memory."""
        if id(instruction) in stores:
            return match_store(snapshot, stores[id(instruction)])
        if is_memory_call(instruction):
            return match_memory_call(instruction)
        return self.plain_stores.match(instruction)

    # Checks ----------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        latches = {loop.latch.name: loop for loop in self.loops.independent if loop.latch is not None}
        latches |= {loop.latch.name: loop for loop in self._repeated.values() if loop.latch is not None}
        few = {loop.header for loop in self._repeated.values() if self._count(loop) <= _MOST_REPEATED}
        known = {loop.header for loop in self.loops.independent} | few
        headers = {loop.header for loop in self.loops.loops} - known
        for loop in self.loops.independent:
            if loop.bounds is None:
                raise host_error(
                    "a loop whose bounds are known only at run time",
                    self.loops.flow.blocks[loop.header].instructions[0],
                    "give it constant bounds and a positive constant step",
                )
        for block in self.function.blocks:
            for instruction in block.instructions:
                self._check_instruction(instruction)
            last = block.terminator
            if block.name in headers:
                raise host_error(
                    "a loop whose iterations depend on each other",
                    block.instructions[0],
                    "write it as a tensor operation, such as a scan or a reduction, or run the loop on the processor",
                )
            if (
                len(set(last.successors)) > 1
                and block.name not in latches
                and not self._checks_allocation(last.operands[0])
            ):
                raise host_error(
                    "a branch that depends on run-time values",
                    last,
                    "compute both sides and choose by a select of vectors, or branch in the caller",
                )

    def _count(self, loop: Loop) -> int:
        """How often the body of a repeated loop runs, in all iterations of those around it."""
        return prod(other.trips for other in self._repeated.values() if loop.header in other.blocks)

    def _checks_allocation(self, condition: Value) -> bool:
        """Whether a condition is that a temporary was not allocated, as stage 1 checks."""
        test = self.definitions.get(condition.name) if isinstance(condition, Local) else None
        if test is None:
            return False
        if test.opcode == "or":
            return all(map(self._checks_allocation, test.operands))
        pointer = test.operands[0]
        allocation = self.definitions.get(pointer.name) if isinstance(pointer, Local) else None
        is_null_test = test.opcode == "icmp" and str(test.operands[1]) == "null"
        return is_null_test and allocation is not None and allocation.callee in _ALLOCATORS

    def _check_instruction(self, instruction: Instruction) -> None:
        if instruction.is_debug or is_tensor_call(instruction) or instruction.opcode in _WITHOUT_MEMORY:
            if instruction.opcode == "alloca":
                self._allocate(instruction)
            return
        callee = instruction.callee or ""
        if instruction.opcode == "ret" and not instruction.operands:
            return
        if instruction.opcode == "ret":
            raise host_error("a result that is returned", instruction, "store it to memory that the caller passes")
        if callee in _ALLOCATORS:
            self._allocate(instruction)
        elif is_memory_call(instruction) or self.plain_stores.match(instruction) is not None:
            return
        elif id(instruction) in self.plain_stores.loads:
            return
        elif instruction.opcode != "call" or not (callee in ("free", "llvm.trap") or callee.startswith(_IGNORED)):
            is_elementwise = callee.startswith("llvm.") and isinstance(instruction.type, VectorType)
            if instruction.opcode == "load":
                readers = [use.instruction for use in uses(self.function).get(str(instruction.result), [])]
                at = next((reader for reader in (instruction, *readers) if reader.span is not None), instruction)
                is_element = at.opcode == "extractelement"
                what = "an element of a tensor, as a number," if is_element else "a value that is read from memory"
                raise host_error(what, at, "store or broadcast a tensor of one element instead")
            if not is_elementwise:
                what = f"a call of @{callee}" if instruction.opcode == "call" else f"'{instruction.opcode}'"
                raise host_error(what, instruction, "keep such code in a function of its own, for the processor")

    def _allocate(self, instruction: Instruction) -> None:
        assert instruction.result is not None
        if instruction.opcode == "alloca":
            size = size_of(instruction.source_type)
            if size is None:
                raise host_error("a temporary of a type without a size", instruction, "give it a type of constant size")
            self.temporaries[instruction.result] = size
            return
        size = instruction.args[-1]
        if not isinstance(size, ConstInt):
            raise host_error(
                "a temporary whose size is known only at run time", instruction, "have the caller pass the memory"
            )
        self.temporaries[instruction.result] = size.value

    @cached_property
    def constants(self) -> dict[str, int]:
        """The module's constants, each with its alignment, 1 if that is not spelled."""
        return {name: int(align or 1) for name, align in _CONSTANT.findall(self.module.raw_text())}

    # Trees -----------------------------------------------------------------------------------------------------

    def _privatise(self, pointer: Value, enclosing: Sequence[Loop], match: Match) -> None:
        """Give each iteration its own copy of a temporary that all of them write.

        Raises:
            LoweringError: The memory is no temporary, or other loops write it as well.
        """
        linear = self._linear(pointer, match.store)
        shared = [loop for loop in enclosing if _index_of(loop) not in dict(linear.factors)]
        if not shared:
            return
        if linear.base not in self.temporaries:
            raise host_error(
                "memory that several iterations of a loop write", match.store, "give each iteration a part of its own"
            )
        indices = tuple(_index_of(loop) for loop in shared)
        if self.copies.setdefault(linear.base, indices) != indices:
            raise host_error("a temporary that different loops write", match.store, "use a temporary for each loop")

    def _tree(self, match: Match, block: Block) -> HostTree:
        enclosing, private = self.loops.enclosing_independent_loops(block), dict[int, int]()
        if isinstance(match.problem, RowFusion) and self.target.grid is not None:
            private = private_rows(match, self.target.grid)
        places = tuple(
            self._place(pointer, enclosing, match)
            for number, (pointer, _) in enumerate(match.pointers)
            if number not in private
        )
        scalars = tuple(self._scalar(value, match) for value in match.scalars)
        return HostTree(match, tuple(loop.trips for loop in enclosing), places, scalars, private)

    def _place(self, pointer: Value, enclosing: Sequence[Loop], match: Match) -> AffinePointer:
        linear = self._linear(pointer, match.store)
        start = {_index_of(loop): _bounds_of(loop) for loop in enclosing}
        factors = dict(linear.factors)
        copied = self.copies.get(linear.base, ())
        outside = [name for name in (*factors, *copied) if name not in start]
        if outside:
            raise host_error(
                "a temporary of a loop that is used outside of it", match.store, "have the caller pass the memory"
            )
        offset = linear.constant + sum(factor * start[name].start for name, factor in factors.items())
        steps = {name: factor * start[name].step for name, factor in factors.items()}
        if copied:
            size = self._rounded(linear.base)
            for name in reversed(copied):
                steps[name] = steps.get(name, 0) + size
                size *= next(loop.trips for loop in enclosing if _index_of(loop) == name)
        parameter = self.parameters.get(linear.base)
        temporary = linear.base if linear.base in self.temporaries else None
        constant = linear.base[1:] if linear.base.startswith("@") else None
        if parameter is None and temporary is None and constant is None:
            raise host_error(
                f"the pointer {pointer}, which is neither a parameter nor a temporary,",
                match.store,
                "have the caller pass it",
            )
        return AffinePointer(
            parameter, temporary, constant, offset, tuple(steps.get(_index_of(loop), 0) for loop in enclosing)
        )

    def _rounded(self, temporary: str) -> int:
        size = self.temporaries[temporary]
        return -(-size // TEMPORARY_ALIGNMENT) * TEMPORARY_ALIGNMENT

    def bytes_of_temporary(self, name: str) -> int:
        """Bytes of a temporary with all of its copies."""
        trips = {_index_of(loop): loop.trips for loop in self.loops.independent}
        return self._rounded(name) * prod(trips[index] for index in self.copies.get(name, ()))

    def _scalar(self, value: Value, match: Match) -> int:
        number = self.parameters.get(value.name) if isinstance(value, Local) else None
        if number is None:
            raise host_error(
                f"the scalar {value}, which is computed,", match.store, "compute it in the caller, and pass it"
            )
        return number

    def _linear(self, value: Value, user: Instruction) -> _AffineValue:
        """A value as a linear function of the loops' indices."""
        if isinstance(value, ConstInt):
            return _AffineValue(constant=value.value)
        if isinstance(value, Global) and value.name in self.constants:
            return _AffineValue(f"@{value.name}")
        if not isinstance(value, Local):
            raise host_error(f"memory of the program such as {value}", user, "have the caller pass a pointer to it")
        if value.name in self.parameters or value.name in self.temporaries:
            return _AffineValue(value.name)
        if value.name in self._indices:
            return _AffineValue(constant=self._indices[value.name])
        definition = self.definitions[value.name]
        if any(definition is loop.index for loop in self.loops.independent):
            return _AffineValue(factors=((value.name, 1),))
        operands = definition.operands
        match definition.opcode:
            case "bitcast" | "freeze":
                return self._linear(operands[0], user)
            case "zext" | "sext":
                return self._extended(operands[0], definition, user)
            case "ptrtoint":
                address = self._linear(operands[0], user)
                return _AffineValue("", address.constant, address.factors)  # temporaries are aligned
            case "add" | "sub":
                first, second = (self._linear(operand, user) for operand in operands)
                return first.plus(second, 1 if definition.opcode == "add" else -1)
            case "getelementptr" if len(operands) == 2 and (size := size_of(definition.source_type)) is not None:
                first, second = self._linear(operands[0], user), self._extended(operands[1], definition, user)
                return first.plus(second.scaled(size))
            case "mul" | "shl" if isinstance(operands[1], ConstInt):
                factor = operands[1].value if definition.opcode == "mul" else 1 << operands[1].value
                return self._linear(operands[0], user).scaled(factor)
            case "and" if self._is_zero(operands[0], user):
                return _AffineValue()
            case _:
                raise host_error(
                    f"an address that depends on '{definition.opcode}'",
                    definition,
                    "add to pointers by getelementptr with sums and constant multiples of loop indices",
                )

    def _extended(self, value: Value, extension: Instruction, user: Instruction) -> _AffineValue:
        """An integer as one of 64 bits: without sign by zext, else with its sign.

        Sums and products of narrow integers may have wrapped around.
        """
        linear, type_ = self._linear(value, user), value.type
        if not isinstance(type_, IntType) or type_.bits >= _ADDRESS_BITS:
            return linear
        if linear.factors or linear.base:
            raise host_error(
                f"an address that depends on an index of type {type_}, which may wrap around,",
                extension,
                f"compute it in i{_ADDRESS_BITS}",
            )
        number = linear.constant % (1 << type_.bits)
        is_negative = extension.opcode != "zext" and number >> type_.bits - 1
        return _AffineValue(constant=number - (1 << type_.bits) if is_negative else number)

    def _is_zero(self, value: Value, user: Instruction) -> bool:
        return self._linear(value, user) == _AffineValue()

    def parameter_types(self) -> tuple[str, ...]:
        """The types of the function's parameters.

        Raises:
            LoweringError: One is neither a pointer nor a number.
        """
        for argument in self.function.arguments:
            if isinstance(argument.type, VectorType):
                raise LoweringError(
                    f"@{self.function.name}: parameter %{argument.name} is a vector, which a kernel launch cannot "
                    "pass; pass a pointer to it",
                    self.function.span,
                )
        return tuple("ptr" if isinstance(a.type, PointerType) else str(a.type) for a in self.function.arguments)


def _written(match: Match) -> list[Value]:
    """The pointers to what a tree, or fused trees, write."""
    if not isinstance(match.problem, RowFusion):
        return [match.pointers[0][0]]
    return [match.pointers[part.pointers[0]][0] for part in match.problem.parts]


def _is_repeated(loops: FunctionLoops, loop: Loop) -> bool:
    """Whether a loop's kernels can be launched for each iteration, one after the other: these are known and few."""
    if loop.is_independent or loop.latch is None or loop.bounds is None:
        return False
    exiting = [name for name in loop.blocks if not set(loops.flow.successors[name]) <= loop.blocks]
    return exiting == [loop.latch.name] and loop.bounds.start >= 0 and loop.trips <= _MOST_REPEATED


def _index_of(loop: Loop) -> str:
    """The name of a loop's index."""
    assert loop.index is not None
    return str(loop.index.result)


def _bounds_of(loop: Loop) -> range:
    """The values of a loop's index."""
    assert loop.bounds is not None
    return loop.bounds
