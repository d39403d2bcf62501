"""What bounds a kernel without a product: the instructions of its elements, or the cache or memory that holds its data.

    moves     bytes of each matrix once; what only lies between problems on the same rows stays in L1
    where     the first cache that holds all of it: L1, L2, L3 (no more than streams count on), else memory
    moving    L1: loads and one store a cycle, of whole registers; L2: half a line a cycle; beyond: 8 bytes a cycle
    work      instructions of the elements, over the ports

The longer of the two bounds the kernel. The model knows no loop overhead, and nothing of what else uses the memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from tlx.lower.to_tiles.map import stores_past
from tlx.lower.to_tiles.memory import FAR_BYTES, L2_BYTES, counted_on
from tlx.lower.to_tiles.problem import Map, Reduction, Rows
from tlx.lower.to_tiles.rows import block_rows, cut_rows, views_of
from tlx.target import Target


@dataclass(frozen=True, slots=True)
class Bound:
    """What a kernel does, and what it is bound by.

    Attributes:
        moves: Bytes that are read and written.
        place: What holds them: `L1`, `L2`, `L3` or `memory`.
        moving: Cycles to move them.
        work: Cycles of the instructions on them.
        past: Whether results are written past the caches.
    """

    moves: int
    place: str
    moving: float
    work: float
    past: bool

    @property
    def share(self) -> float:
        """The part of the bandwidth that the kernel should reach."""
        return self.moving / max(self.moving, self.work)


def bound_of(problem: Map | Reduction | Rows, target: Target) -> Bound:
    """What bounds a problem's kernel on one thread."""
    read, written = _traffic(problem)
    moves = read + written
    place = _place(moves, target)
    work = _instructions(problem, target) / target.core.products
    return Bound(moves, place, _moving(read, written, place, target), work, _is_past(problem, target))


def _traffic(problem: Map | Reduction | Rows) -> tuple[int, int]:
    """Bytes read and bytes written."""
    if not isinstance(problem, Rows):
        return problem.value.moves, problem.destination.moves
    sizes: dict[int, int] = {}
    results: set[int] = set()
    for part in problem.parts:
        results.add(part.pointers[0])
        for number, view in zip(part.pointers, views_of(part.problem), strict=True):
            sizes[number] = max(sizes.get(number, 0), view.moves)
    kept = {number: size for number, size in sizes.items() if number not in problem.private}
    return (
        sum(size for number, size in kept.items() if number not in results),
        sum(size for number, size in kept.items() if number in results),
    )


def _place(moves: int, target: Target) -> str:
    sizes = {"L1": target.caches.l1, "L2": target.caches.l2, "L3": counted_on(target)}
    return next((name for name, size in sizes.items() if moves <= size), "memory")


def _moving(read: int, written: int, place: str, target: Target) -> float:
    if place == "L1":
        width = max(target.vector_bytes, 1)
        return max(read / (target.core.loads * width), written / width)
    return (read + written) / (L2_BYTES if place == "L2" else FAR_BYTES)


def _instructions(problem: Map | Reduction | Rows, target: Target) -> float:
    """Instructions on registers, beyond loads and stores."""
    if isinstance(problem, Rows):
        return sum(_instructions(part.problem, target) for part in problem.parts)
    value = problem.value
    lanes = max(1, target.vector_bytes * 8 // value.bits)
    cost = problem.cost if isinstance(problem, Reduction) else value.cost
    return cost * value.rows * value.cols / lanes


def _is_past(problem: Map | Reduction | Rows, target: Target) -> bool:
    if isinstance(problem, Map):
        return stores_past(problem, target)
    if isinstance(problem, Reduction):
        return False
    rows = block_rows(problem, target)
    pieces = (cut_rows(part.problem, rows) for part in problem.parts if part.is_apart)
    return any(stores_past(piece, target) for piece in pieces if isinstance(piece, Map))
