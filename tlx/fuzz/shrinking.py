"""Shrinking: a simpler program that fails in the same way as a given one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tlx.fuzz.generation.model import ChoiceNode
from tlx.fuzz.options import RandomOptions
from tlx.fuzz.worker import Request
from tlx.fuzz.worker_pool import CheckOutcome

NodePath = tuple[int, ...]


@dataclass
class _SmallestFailure:
    """The smallest failing program found so far.

    Attributes:
        best: The program and how it failed.
        check: Checks a program.
        left: Number of programs that may still be checked.
        seen: Texts that have already been checked.
    """

    best: CheckOutcome
    node: ChoiceNode
    check: Callable[[Request], CheckOutcome]
    left: int
    seen: set[str]

    def accepts(self, candidate: ChoiceNode) -> bool:
        """Check a program; if it fails in the same way, it becomes the best. Returns whether it does."""
        request = replace(self.best.request, source=candidate)
        try:
            program = request.program()
        except (ValueError, AssertionError, IndexError):
            return False
        if program.text in self.seen or self.left <= 0:
            return False
        self.seen.add(program.text)
        return self._fails_alike(replace(request, source=program.node), program.node)

    def accepts_options(self, drawn: RandomOptions) -> bool:
        """Check the program with fewer options; like `accepts`."""
        if self.left <= 0:
            return False
        request = self.best.request
        return self._fails_alike(replace(request, check=replace(request.check, drawn=drawn)), self.node)

    def _fails_alike(self, request: Request, node: ChoiceNode) -> bool:
        self.left -= 1
        outcome = self.check(request)
        if not outcome.is_like(self.best):
            return False
        self.best, self.node = replace(outcome, request=request), node
        return True


def shrink(failure: CheckOutcome, check: Callable[[Request], CheckOutcome], trials: int = 300) -> CheckOutcome:
    """Find a simpler program that fails in the same way.

    Args:
        failure: The failure.
        check: Checks a program; raises `TimeoutError` if the search has to end.
        trials: Maximum number of programs to check.
    """
    program = failure.request.program()
    search = _SmallestFailure(failure, program.node, check, trials, {program.text})
    with contextlib.suppress(TimeoutError):
        _simplify(search)
    return search.best


def _simplify(search: _SmallestFailure) -> None:
    while any(search.accepts_options(drawn) for drawn in search.best.request.check.drawn.simpler()):
        pass
    before = -1
    while search.left > 0 and before != search.left:
        before = search.left
        _drop_parts(search)
        _zero_nodes(search)
        _lower_numbers(search)


def _drop_parts(search: _SmallestFailure) -> None:
    for path in list(_paths(search.node)):
        if not _exists(search.node, path):
            continue

        def drop(start: int, end: int, path: NodePath = path) -> int | None:
            candidate = search.node.copy()
            del _at(candidate, path).parts[start:end]
            is_dropped = search.accepts(candidate) and _exists(search.node, path)
            return len(_at(search.node, path).parts) if is_dropped else None

        drop_items(len(_at(search.node, path).parts), drop)


def _zero_nodes(search: _SmallestFailure) -> None:
    for path in list(_paths(search.node)):
        if _exists(search.node, path) and any(_at(search.node, path).draws):
            candidate = search.node.copy()
            _at(candidate, path).draws = []
            search.accepts(candidate)


def _lower_numbers(search: _SmallestFailure) -> None:
    for path in list(_paths(search.node)):
        at = 0
        while _exists(search.node, path) and at < len(_at(search.node, path).draws):
            _lower(search, path, at)
            at += 1


def _lower(search: _SmallestFailure, path: NodePath, at: int) -> None:
    """Minimise one number by trying zero, halving, and counting down."""
    while _exists(search.node, path) and at < len(_at(search.node, path).draws):
        number = _at(search.node, path).draws[at]
        if not any(search.accepts(_with(search.node, path, at, new)) for new in _smaller(number)):
            return


def _smaller(number: int) -> list[int]:
    return list(dict.fromkeys(new for new in (0, number // 2, number - 1) if 0 <= new < number))


def _with(node: ChoiceNode, path: NodePath, at: int, number: int) -> ChoiceNode:
    candidate = node.copy()
    _at(candidate, path).draws[at] = number
    return candidate


def _paths(node: ChoiceNode, path: NodePath = ()) -> Iterator[NodePath]:
    yield path
    for index, part in enumerate(node.parts):
        yield from _paths(part, (*path, index))


def _exists(node: ChoiceNode, path: NodePath) -> bool:
    for index in path:
        if index >= len(node.parts):
            return False
        node = node.parts[index]
    return True


def _at(node: ChoiceNode, path: NodePath) -> ChoiceNode:
    for index in path:
        node = node.parts[index]
    return node


def drop_items(size: int, drop: Callable[[int, int], int | None]) -> None:
    """Remove ranges of items: all of them first, then halves, quarters, down to single ones.

    Args:
        size: Number of items.
        drop: Removes the items from one position to another (exclusive) and returns how many remain, or returns None if
            they are needed.
    """
    chunk = size
    while chunk > 0:
        at = 0
        while at < size:
            left = drop(at, at + chunk)
            if left is None:
                at += chunk
            else:
                size = left
        chunk //= 2
