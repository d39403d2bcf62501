"""Control flow: predecessors, dominators, reachability, natural loops, their trip counts and independence.

Dominators by Lengauer and Tarjan, "A Fast Algorithm for Finding Dominators in a Flowgraph" (1979).

    loop:
      %i = phi i64 [ 0, %entry ], [ %next, %loop ]                    the index
      ...
      %next = add i64 %i, 1
      %again = icmp slt i64 %next, 100                                the test: 100 iterations
      br i1 %again, label %loop, label %end, !tlx.independent !{}     the mark

Stage 1 marks its loops as independent. Stage 2 and the memory planner read the marks: threads may share the iterations
of such loops, and invariant operands may be packed before them. Stage 3 removes the marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.types import IntType
from tlx.ir.values import ConstInt, Local


@dataclass(eq=False)
class ControlFlow:
    """Predecessors, reverse post order and immediate dominators of a function's blocks, by name."""

    function: Function
    blocks: dict[str, Block] = field(init=False)
    successors: dict[str, list[str]] = field(init=False)
    predecessors: dict[str, list[str]] = field(init=False)
    order: list[str] = field(init=False)
    dominators: dict[str, str] = field(init=False)
    _parents: dict[str, str] = field(init=False)
    """The depth-first search tree: the parent of each block, in the order of discovery."""

    def __post_init__(self) -> None:
        self.blocks = {b.name: b for b in self.function.blocks}
        self.successors = {b.name: list(dict.fromkeys(b.terminator.successors)) for b in self.function.blocks}
        self.order = self._reverse_post_order()
        self.predecessors = {name: [] for name in self.successors}
        for name, successors in self.successors.items():
            for successor in successors:
                self.predecessors[successor].append(name)
        self.dominators = self._immediate_dominators()

    def _reverse_post_order(self) -> list[str]:
        """The blocks in reverse post order; also records the depth-first search tree."""
        first = self.function.entry.name
        post: list[str] = []
        self._parents = {first: first}
        stack = [(first, iter(self.successors[first]))]
        while stack:
            name, successors = stack[-1]
            successor = next((s for s in successors if s not in self._parents), None)
            if successor is None:
                post.append(name)
                stack.pop()
                continue
            self._parents[successor] = name
            stack.append((successor, iter(self.successors[successor])))
        return post[::-1]

    def _immediate_dominators(self) -> dict[str, str]:
        """By semidominators; blocks are numbered in the order of the depth-first search."""
        names = list(self._parents)
        numbers = {name: number for number, name in enumerate(names)}
        parents = [numbers[parent] for parent in self._parents.values()]
        count = len(names)
        forest = _DominatorForest(count)
        semi = forest.semi
        buckets: list[list[int]] = [[] for _ in range(count)]
        idom = [0] * count
        for block in range(count - 1, 0, -1):
            for name in self.predecessors[names[block]]:
                if name in numbers:
                    semi[block] = min(semi[block], semi[forest.least(numbers[name])])
            buckets[semi[block]].append(block)
            parent = forest.ancestors[block] = parents[block]
            for other in buckets[parent]:
                least = forest.least(other)
                idom[other] = least if semi[least] < semi[other] else parent
            buckets[parent].clear()
        for block in range(1, count):
            if idom[block] != semi[block]:
                idom[block] = idom[idom[block]]
        return {name: names[idom[numbers[name]]] for name in self.order}

    def is_cyclic(self, block: str, avoiding: str = "") -> bool:
        """Whether control may come back to a block on a path that avoids another block."""
        return block in _reachable(block, self.successors, avoiding)

    @cached_property
    def positions(self) -> dict[str, int]:
        """The index of each block in the function."""
        return {name: number for number, name in enumerate(self.blocks)}

    @cached_property
    def users(self) -> dict[str, set[str]]:
        """The blocks that use each local, other than in debug information."""
        users: dict[str, set[str]] = {}
        for name, block in self.blocks.items():
            for instruction in block.instructions:
                for operand in () if instruction.is_debug else instruction.operands:
                    if isinstance(operand, Local):
                        users.setdefault(operand.name, set()).add(name)
        return users

    @cached_property
    def _subtrees(self) -> dict[str, tuple[int, int]]:
        """For each block its number in a preorder walk of the dominator tree, and the last number in its subtree."""
        sizes = dict.fromkeys(self.order, 1)
        for name in reversed(self.order[1:]):
            sizes[self.dominators[name]] += sizes[name]
        free = {self.order[0]: 0}
        intervals: dict[str, tuple[int, int]] = {}
        for name in self.order:
            above = self.dominators[name]
            start = free[above]
            free[above] = start + sizes[name]
            free[name] = start + 1
            intervals[name] = start, start + sizes[name] - 1
        return intervals

    def dominates(self, first: str, second: str) -> bool:
        """Whether block `first` dominates block `second` (unreachable blocks are dominated by all)."""
        if second not in self._subtrees:
            return True
        if first not in self._subtrees:
            return False
        start, end = self._subtrees[first]
        return start <= self._subtrees[second][0] <= end

    def between(self, start: tuple[str, int], end: tuple[str, int]) -> list[Instruction]:
        """Every instruction that may run after `start` and before `end` (both (block, index)), neither included."""
        return [i for name, low, high in self.spans(start, end) for i in self.blocks[name].instructions[low:high]]

    def spans(self, start: tuple[str, int], end: tuple[str, int]) -> list[tuple[str, int, int]]:
        """The ranges of instructions that may run after `start` and before `end`: (block, first, end).

        `start` dominates `end`. A path that passes `start` several times counts from its last visit.
        """
        (first, i), (last, j) = start, end
        if first == last and i < j:
            return [(first, i + 1, j)]
        after = _reachable(first, self.successors, avoiding=first)
        before = _reachable(last, self.predecessors, avoiding=first)
        between = sorted(after & before, key=self.positions.__getitem__)
        sizes = [(name, 0, len(self.blocks[name].instructions)) for name in between]
        return [(first, i + 1, len(self.blocks[first].instructions)), (last, 0, j), *sizes]


def _reachable(start: str, edges: Mapping[str, list[str]], avoiding: str) -> set[str]:
    """The blocks to which a path of at least one edge leads from `start` without entering `avoiding`."""
    reached: set[str] = set()
    pending = list(edges[start])
    while pending:
        name = pending.pop()
        if name not in reached and name != avoiding:
            reached.add(name)
            pending += edges[name]
    return reached


class _DominatorForest:
    """The forest of the blocks processed so far, in reverse depth-first order, with path compression.

    Attributes:
        semi: The semidominator of each block, so far.
        ancestors: The next block towards the root of a block's tree; -1 at a root.
    """

    def __init__(self, count: int) -> None:
        self.semi = list(range(count))
        self.ancestors = [-1] * count
        self._least = list(range(count))

    def least(self, block: int) -> int:
        """The block with the least semidominator on the path from a block to the root of its tree, without the root."""
        path: list[int] = []
        current = block
        while self.ancestors[current] >= 0 and self.ancestors[self.ancestors[current]] >= 0:
            path.append(current)
            current = self.ancestors[current]
        for below in reversed(path):
            above = self.ancestors[below]
            if self.semi[self._least[above]] < self.semi[self._least[below]]:
                self._least[below] = self._least[above]
            self.ancestors[below] = self.ancestors[above]
        return self._least[block]


@dataclass(frozen=True, slots=True)
class NaturalLoop:
    """A natural loop: its header and the blocks in it."""

    header: str
    blocks: frozenset[str]


def natural_loops(flow: ControlFlow) -> list[NaturalLoop]:
    """All natural loops, outer ones first; back edges to the same header make one loop."""
    bodies: dict[str, set[str]] = {}
    for name in flow.order:
        for header in (block for block in flow.successors[name] if flow.dominates(block, name)):
            body = bodies.setdefault(header, {header})
            stack = [name]
            while stack:
                block = stack.pop()
                if block not in body and block in flow.dominators:
                    body.add(block)
                    stack.extend(flow.predecessors[block])
    return sorted((NaturalLoop(h, frozenset(b)) for h, b in bodies.items()), key=lambda lp: -len(lp.blocks))


INDEPENDENT_METADATA: Final = ", !tlx.independent !{}"
"""Metadata of the branch back to a loop's header: no iteration reads what another one writes."""


@dataclass(frozen=True, slots=True, eq=False)
class Loop(NaturalLoop):
    """A natural loop, and what is known about its iterations.

    Attributes:
        entry: The block that enters the loop; None if there are several.
        latch: The block that branches back to the header; None if there are several.
        index: The induction variable: the phi whose next value is tested; None if there is none.
        test: The comparison of the next index with the bound that the branch back to the header depends on.
        bounds: The values of the index as signed numbers, if its first value, the bound and the step are constants, and
            it does not wrap around.
        is_independent: Whether the loop is marked as independent.
    """

    entry: str | None
    latch: Block | None
    index: Instruction | None
    test: Instruction | None
    bounds: range | None
    is_independent: bool

    @property
    def trips(self) -> int:
        """The trip count of a loop that is tested at its end."""
        return 1 if self.bounds is None else max(1, len(self.bounds))


@dataclass(eq=False)
class FunctionLoops:
    """The loops of a function.

    Attributes:
        function: The function.
        flow: Its control flow.
        loops: All loops, outer ones first.
        independent: Those that are marked as independent, outer ones first.
    """

    function: Function

    def __post_init__(self) -> None:
        self.flow = ControlFlow(self.function)
        self.loops = [_loop(self.flow, loop) for loop in natural_loops(self.flow)]
        self.independent = [loop for loop in self.loops if loop.is_independent]

    def enclosing_loops(self, block: Block) -> list[Loop]:
        """All loops around a block, outer ones first."""
        return [loop for loop in self.loops if block.name in loop.blocks]

    def enclosing_independent_loops(self, block: Block) -> list[Loop]:
        """The loops around a block that are marked as independent, outer ones first."""
        return [loop for loop in self.enclosing_loops(block) if loop.is_independent]


def _loop(flow: ControlFlow, loop: NaturalLoop) -> Loop:
    entries = [name for name in flow.predecessors[loop.header] if name not in loop.blocks]
    latches = [name for name in flow.predecessors[loop.header] if name in loop.blocks]
    latch = flow.blocks[latches[0]] if len(latches) == 1 else None
    test = _latch_test(latch) if latch is not None else None
    index = _induction_variable(flow.blocks[loop.header], latch, test)
    return Loop(
        loop.header,
        loop.blocks,
        entries[0] if len(entries) == 1 else None,
        latch,
        index,
        test,
        _constant_bounds(loop.header, latch, index, test),
        latch is not None and INDEPENDENT_METADATA in latch.terminator.text,
    )


def _latch_test(latch: Block) -> Instruction | None:
    """The comparison of integers that the branch of a latch depends on, if it is in the latch."""
    if latch.terminator.opcode != "br":  # a switch on an i1 has its blocks in another order
        return None
    condition = latch.terminator.operands[0]
    return next((i for i in latch.instructions if i.opcode == "icmp" and i.value == condition), None)


def _induction_variable(header: Block, latch: Block | None, test: Instruction | None) -> Instruction | None:
    """The phi whose next value a latch compares."""
    if latch is None or test is None:
        return None
    return next((phi for phi in header.phis if (test.operands[0], latch.name) in phi.incoming), None)


_INVERSE: Final = {"eq": "ne", "sge": "slt", "uge": "ult", "sgt": "sle", "ugt": "ule"}


def _constant_bounds(
    header: str, latch: Block | None, index: Instruction | None, test: Instruction | None
) -> range | None:
    """The values of an index that a constant is added to until it reaches a constant; None if it may wrap around."""
    if latch is None or index is None or test is None or not isinstance(index.type, IntType):
        return None
    starts = [value for value, block in index.incoming if block != latch.name]
    advance = next((i for i in latch.instructions if i.result is not None and i.value == test.operands[0]), None)
    if advance is None or advance.opcode != "add" or advance.operands[0] != index.value:
        return None
    constants = [value for value in (*starts, *test.operands[1:], advance.operands[1]) if isinstance(value, ConstInt)]
    if len(starts) != 1 or len(constants) != 3 or constants[2].value <= 0:
        return None
    first, bound, step = (constant.value for constant in constants)
    continues_if_true = latch.terminator.successors[0] == header
    predicate = test.predicate if continues_if_true else _INVERSE.get(test.predicate, "")
    is_met = first < bound and (bound - first) % step == 0
    if predicate not in ("slt", "ult", "sle", "ule") and not (predicate == "ne" and is_met):
        return None
    if predicate in ("ult", "ule") and min(first, bound) < 0:  # a large unsigned number
        return None
    bounds = range(first, bound + 1 if predicate in ("sle", "ule") else bound, step)
    following = first + max(1, len(bounds)) * step
    return bounds if following < 1 << index.type.bits - 1 else None


def has_independent_loops(function: Function) -> bool:
    """Whether any loop of a function is marked as independent."""
    return any(INDEPENDENT_METADATA in block.terminator.text for block in function.blocks)


def remove_marks(blocks: Iterable[Block]) -> None:
    """Remove the marks of the loops whose latches are among some blocks."""
    for block in blocks:
        last = block.terminator
        last.text, last.trailer = (text.replace(INDEPENDENT_METADATA, "") for text in (last.text, last.trailer))
