"""Row fusion: consecutive trees of a block, computed together row by row.

Each tree is a map of R rows or a reduction of each of R rows, with at least one reduction:

    store(%max, reduce.max(%x))        R x C -> R x 1
    store(%e, exp(%x - %max))          R x C
    store(%sum, reduce.add(%e))        R x C -> R x 1
    store(%y, %e / %sum)               R x C

Row i of all trees may be computed before row i + 1 of any tree if, wherever one tree writes and another one reads or
writes, both access the same row of the same matrix, or memory that does not alias. Trees are fused if together they
exceed the L1 cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tlx.ir.control_flow import ControlFlow
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction, may_read, may_write
from tlx.ir.module import Module
from tlx.ir.rewrite import Use, uses
from tlx.ir.tensors.model import FunctionTensors
from tlx.ir.types import Type, bytes_of
from tlx.ir.values import Local, Value
from tlx.lower.memory.aliases import AliasAnalysis, MemoryLocation
from tlx.lower.to_tiles.expression import Expression, MatrixLeaf, MatrixView, scalar_parameter_type
from tlx.lower.to_tiles.match.stores import Match
from tlx.lower.to_tiles.match.trees import FunctionSnapshot
from tlx.lower.to_tiles.problem import Elementwise, Reduction, RowFusion, RowFusionPart, pointer_views
from tlx.lower.to_tiles.select.elementwise import needs_transpose
from tlx.target.target import Target


@dataclass(frozen=True, eq=False)
class FusionCandidate:
    """A tree that may be fused with others.

    Attributes:
        store: Its store.
        problem: What it computes.
        pointers: The memory of its result and of its leaves.
        scalars: Its scalars.
    """

    store: Instruction
    problem: Elementwise | Reduction
    pointers: Sequence[tuple[Value, MatrixView]]
    scalars: Sequence[Value]


@dataclass(frozen=True, eq=False)
class FusionGroup:
    """Trees that are computed together.

    Attributes:
        match: What they compute, with the kernel's arguments and the store of the last tree.
        stores: The stores of all trees.
    """

    match: Match
    stores: list[Instruction]


def find_row_fusions(
    module: Module, snapshot: FunctionSnapshot, matches: Sequence[Match], target: Target
) -> list[FusionGroup]:
    """The groups of a function's trees, which are passed in program order."""
    if not any(isinstance(match.problem, Reduction) for match in matches):
        return []
    search = _RowFusionSearch(module, snapshot.function, snapshot.tensors, matches, target)
    return [group for sequence in search.sequences() for group in search.groups(sequence)]


def _is_row_reduction(problem: Elementwise | Reduction) -> bool:
    return isinstance(problem, Reduction) and problem.axis == 1


@dataclass(eq=False)
class _RowFusionSearch:
    module: Module
    function: Function
    tensors: FunctionTensors
    matches: Sequence[Match]
    target: Target

    @cached_property
    def aliases(self) -> AliasAnalysis:
        return AliasAnalysis(self.module, self.function, ControlFlow(self.function))

    @cached_property
    def _trees_of(self) -> Mapping[Value, set[int]]:
        """The trees that use each pointer, by the identity of their stores."""
        trees: dict[Value, set[int]] = {}
        for match in self.matches:
            for pointer, _ in match.pointers:
                trees.setdefault(pointer, set()).add(id(match.store))
        return trees

    def sequences(self) -> list[list[FusionCandidate]]:
        """Consecutive trees with no other memory access between them."""
        by_store = {id(match.store): match for match in self.matches}
        sequences: list[list[FusionCandidate]] = []
        for block in self.function.blocks:
            sequence: list[FusionCandidate] = []
            for instruction in block.instructions:
                match = by_store.get(id(instruction))
                if match is not None and isinstance(match.problem, (Elementwise, Reduction)):
                    sequence.append(FusionCandidate(match.store, match.problem, match.pointers, match.scalars))
                elif match is not None or self._touches_memory(instruction):
                    sequences.append(sequence)
                    sequence = []
            sequences.append(sequence)
        return [sequence for sequence in sequences if len(sequence) > 1]

    def _touches_memory(self, instruction: Instruction) -> bool:
        if self.tensors.op_of(instruction) is not None or instruction.result in self.tensors.tokens:
            return False
        return may_write(instruction) or may_read(instruction)

    def groups(self, sequence: list[FusionCandidate]) -> list[FusionGroup]:
        """The groups of a sequence, each as long as possible."""
        groups: list[FusionGroup] = []
        start = 0
        while start < len(sequence):
            rows = next((c.problem.value.rows for c in sequence[start:] if _is_row_reduction(c.problem)), 0)
            members = self._longest(sequence[start:], rows) if rows > 1 else []
            if self._is_profitable(members):
                groups.append(self._group(members, rows))
                start += len(members)
            else:
                start += 1
        return groups

    def _longest(self, sequence: list[FusionCandidate], rows: int) -> list[FusionCandidate]:
        members: list[FusionCandidate] = []
        for candidate in sequence:
            problem = with_rows(candidate.problem, rows)
            if problem is None:
                break
            pointers = [(p, v) for (p, _), v in zip(candidate.pointers, pointer_views(problem), strict=True)]
            member = replace(candidate, problem=problem, pointers=pointers)
            if not all(self._may_interleave(before, member, rows) for before in [*members, member]):
                break
            members.append(member)
        return members

    def _may_interleave(self, before: FusionCandidate, member: FusionCandidate, rows: int) -> bool:
        """Whether rows of two trees may be computed alternately."""
        (_, first), (_, second) = before.pointers[0], member.pointers[0]
        if min(first.rows, second.rows) < rows:
            return False
        written, read = _accesses(before), _accesses(member)
        if not all(_have_equal_strides(x, y) for x in written for y in read):
            return False
        return all(self._is_disjoint(written[0], other, rows) for other in read) and all(
            self._is_disjoint(read[0], other, rows) for other in written
        )

    def _is_disjoint(self, one: tuple[Value, MatrixView], other: tuple[Value, MatrixView], rows: int) -> bool:
        (pointer, view), (other_pointer, other_view) = one, other
        if pointer == other_pointer:
            return other_view.rows == rows and _row_key(view) == _row_key(other_view)
        return self.aliases.disjoint(memory_range(*one), memory_range(*other))

    def _is_profitable(self, members: list[FusionCandidate]) -> bool:
        if len(members) < 2 or not any(_is_row_reduction(m.problem) for m in members):
            return False
        sizes = {str(p): v.rows * v.cols * bytes_of(v.element) for m in members for p, v in m.pointers}
        return sum(sizes.values()) > self.target.caches.l1

    # The group -------------------------------------------------------------------------------------------------

    def _group(self, members: list[FusionCandidate], rows: int) -> FusionGroup:
        pointers: dict[tuple[Value, Type], tuple[int, MatrixView]] = {}
        scalars: dict[Value, int] = {}
        parts: list[RowFusionPart] = []
        for index, member in enumerate(members):
            for pointer, view in member.pointers:
                pointers.setdefault((pointer, view.element), (len(pointers), view))
            for scalar in member.scalars:
                scalars.setdefault(scalar, len(scalars))
            numbers = tuple(pointers[p, v.element][0] for p, v in member.pointers)
            to = member.pointers[0][0]
            later = [p for m in members[index + 1 :] for p, _ in m.pointers]
            is_disjoint = to not in [*(p for p, _ in member.pointers[1:]), *later]
            parts.append(RowFusionPart(member.problem, numbers, tuple(scalars[s] for s in member.scalars), is_disjoint))
        arguments = [(pointer, view) for (pointer, _), (_, view) in pointers.items()]
        private = frozenset(
            n for n, (pointer, _) in enumerate(arguments) if self._is_private(pointer, members, arguments)
        )
        types = tuple(scalar_parameter_type(s.type) for s in scalars)
        problem = RowFusion(rows, tuple(parts), tuple(v.element for _, v in arguments), types, private)
        stores = [member.store for member in members]
        return FusionGroup(Match(stores[-1], problem, arguments, list(scalars), []), stores)

    def _is_private(
        self, pointer: Value, members: list[FusionCandidate], arguments: list[tuple[Value, MatrixView]]
    ) -> bool:
        """Whether only these trees use a pointer's memory, and they write it before they read it."""
        if not isinstance(pointer, Local) or sum(pointer == p for p, _ in arguments) != 1:
            return False
        (base,) = bases if len(bases := self.aliases.bases(pointer)) == 1 else [None]
        if base is None or base.kind not in ("alloca", "fresh"):
            return False
        if base.name != str(pointer) and not self._is_aligned_start(pointer, base.name):
            return False
        if not self._trees_of[pointer] <= {id(m.store) for m in members}:
            return False
        first = next(m for m in members if any(pointer == p for p, _ in m.pointers))
        is_written = first.pointers[0][0] == pointer and all(pointer != p for p, _ in first.pointers[1:])
        return is_written and all(self._is_harmless(i) for i in self._users(pointer.name))

    def _is_aligned_start(self, pointer: Local, memory: str) -> bool:
        """Whether a pointer is the aligned start of an allocation: `memory + (-memory & 63)`."""
        users = self._users(memory.removeprefix("%"))
        return all(self._is_harmless(user) or self._computes(user, pointer) for user in users)

    def _computes(self, instruction: Instruction, start: Local) -> bool:
        """Whether an instruction is part of the computation of the aligned start of an allocation."""
        if instruction.opcode in ("ptrtoint", "sub", "and"):
            return all(self._computes(user, start) for user in self._users(str(instruction.result)))
        return instruction.opcode == "getelementptr" and instruction.result == start.name

    def _users(self, name: str) -> list[Instruction]:
        return [use.instruction for use in self._uses.get(name, [])]

    @cached_property
    def _uses(self) -> Mapping[str, Sequence[Use]]:
        return uses(self.function)

    def _is_harmless(self, instruction: Instruction) -> bool:
        is_tensor = self.tensors.op_of(instruction) is not None or instruction.result in self.tensors.tokens
        return is_tensor or instruction.opcode == "icmp" or (instruction.is_call and instruction.callee == "free")


def _accesses(candidate: FusionCandidate) -> list[tuple[Value, MatrixView]]:
    """A tree's accesses: its result, then each leaf."""
    pointers = [pointer for pointer, _ in candidate.pointers[1:]]
    leaves = [(pointers[leaf.pointer], leaf.view) for leaf in candidate.problem.value.leaves()]
    return [candidate.pointers[0], *leaves]


def _have_equal_strides(one: tuple[Value, MatrixView], other: tuple[Value, MatrixView]) -> bool:
    """Whether two accesses through the same pointer have the same row stride, so that one pointer serves both."""
    (pointer, view), (other_pointer, other_view) = one, other
    return pointer != other_pointer or (view.rows, view.row_stride) == (other_view.rows, other_view.row_stride)


def _row_key(view: MatrixView) -> tuple[Type, int, int]:
    """A key that is equal for views with the same rows in memory."""
    return view.element, view.row_stride, view.cols


def memory_range(pointer: Value, view: MatrixView) -> MemoryLocation:
    """The bytes from the first through the last element of a view."""
    last = (view.rows - 1) * view.row_stride + (view.cols - 1) * view.col_stride
    return MemoryLocation(pointer, (last + 1) * bytes_of(view.element))


# Rows ---------------------------------------------------------------------------------------------------------------


def with_rows(problem: Elementwise | Reduction, rows: int) -> Elementwise | Reduction | None:
    """The problem as one of `rows` independent rows; None where it is not."""
    if isinstance(problem, Reduction):
        fits = problem.axis == 1 and problem.value.rows == rows
        return problem if fits and not needs_transpose(problem.value) else None
    value, to = problem.value, problem.destination
    if needs_transpose(value):
        return None
    if value.rows == rows:
        return problem
    if value.rows > 1 or value.cols % rows or not to.is_dense:
        return None
    cols = value.cols // rows
    if not all(leaf.view.cols in (1, value.cols) for leaf in value.leaves()):
        return None

    def split(view: MatrixView) -> MatrixView:
        return MatrixView(view.element, rows, cols, cols, 1).broadcast() if view.cols > 1 else view

    nodes = tuple(replace(n, view=split(n.view)) if isinstance(n, MatrixLeaf) else n for n in value.nodes)
    return Elementwise(MatrixView(to.element, rows, cols, cols, 1), Expression(rows, cols, nodes))
