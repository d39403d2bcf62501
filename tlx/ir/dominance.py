"""Control flow: predecessors, dominators, reachability, natural loops.

Dominators by Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tlx.ir.module import Block, Function, Instruction


@dataclass(eq=False)
class ControlFlow:
    """Predecessors, reverse post order and immediate dominators of a function's blocks, by name."""

    function: Function
    blocks: dict[str, Block] = field(init=False)
    predecessors: dict[str, list[str]] = field(init=False)
    order: list[str] = field(init=False)
    dominators: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.blocks = {b.name: b for b in self.function.blocks}
        self.order = self._reverse_post_order()
        self.predecessors = {b.name: [] for b in self.function.blocks}
        for block in self.function.blocks:
            for target in dict.fromkeys(block.terminator.targets):
                self.predecessors[target].append(block.name)
        self.dominators = self._immediate_dominators()

    def _reverse_post_order(self) -> list[str]:
        seen: set[str] = set()
        post: list[str] = []
        stack: list[tuple[str, list[str]]] = []
        first = self.function.entry.name
        seen.add(first)
        stack.append((first, list(self.blocks[first].terminator.targets)))
        while stack:
            name, targets = stack[-1]
            if not targets:
                post.append(name)
                stack.pop()
                continue
            target = targets.pop(0)
            if target not in seen:
                seen.add(target)
                stack.append((target, list(self.blocks[target].terminator.targets)))
        return post[::-1]

    def _immediate_dominators(self) -> dict[str, str]:
        position = {name: i for i, name in enumerate(self.order)}
        first = self.order[0]
        idom = {first: first}
        changed = True
        while changed:
            changed = False
            for name in self.order[1:]:
                known = [p for p in self.predecessors[name] if p in idom]
                new = known[0]
                for other in known[1:]:
                    new = _intersect(new, other, idom, position)
                if idom.get(name) != new:
                    idom[name] = new
                    changed = True
        return idom

    def dominates(self, first: str, second: str) -> bool:
        """Whether block `first` dominates block `second` (unreachable blocks are dominated by all)."""
        if second not in self.dominators:
            return True
        root = self.order[0]
        while True:
            if first == second:
                return True
            if second == root:
                return False
            second = self.dominators[second]

    def between(self, start: tuple[str, int], end: tuple[str, int]) -> list[Instruction]:
        """Every instruction that may run after `start` and before `end` (both (block, index)), neither included.

        On a way from start to end, start's block may be run again only through a cycle; `start` dominates `end`,
        so ways that pass `start` again count from there.
        """
        (first, i), (last, j) = start, end
        if first == last and i < j:
            return self.blocks[first].instructions[i + 1 : j]
        forward = self._reach(first, last)
        found = self.blocks[first].instructions[i + 1 :] + self.blocks[last].instructions[:j]
        for name in forward:
            found.extend(self.blocks[name].instructions)
        return found

    def _reach(self, first: str, last: str) -> set[str]:
        """Blocks on some way from `first` to `last`, without passing `first` again."""
        after: set[str] = set()
        stack = list(self.blocks[first].terminator.targets)
        while stack:
            name = stack.pop()
            if name not in after and name != first:
                after.add(name)
                stack.extend(self.blocks[name].terminator.targets)
        before: set[str] = set()
        stack = list(self.predecessors[last])
        while stack:
            name = stack.pop()
            if name not in before and name != first:
                before.add(name)
                stack.extend(self.predecessors[name])
        return after & before


def _intersect(a: str, b: str, idom: dict[str, str], position: dict[str, int]) -> str:
    while a != b:
        while position[a] > position[b]:
            a = idom[a]
        while position[b] > position[a]:
            b = idom[b]
    return a


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: its header and the blocks in it."""

    header: str
    blocks: frozenset[str]


def natural_loops(flow: ControlFlow) -> list[Loop]:
    """All natural loops, outer ones first; back edges to one header make one loop, without unreachable blocks."""
    bodies: dict[str, set[str]] = {}
    for name in flow.order:
        for target in flow.blocks[name].terminator.targets:
            if flow.dominates(target, name):
                body = bodies.setdefault(target, {target})
                stack = [name]
                while stack:
                    block = stack.pop()
                    if block not in body and block in flow.dominators:
                        body.add(block)
                        stack.extend(flow.predecessors[block])
    return sorted((Loop(h, frozenset(b)) for h, b in bodies.items()), key=lambda lp: -len(lp.blocks))
