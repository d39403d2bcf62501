"""Cuts a failing program down: drops parts of it and makes its numbers smaller as long as it fails alike.

what is asked for           is asked for no more: processor, features, knobs
functions and statements    are dropped, many at once first (delta debugging)
what a statement draws      becomes all zeros: the simplest types, extents, operands
each number                 becomes 0, a half, one less
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tlx.fuzz.campaign import CheckOutcome
from tlx.fuzz.generation.choices import Node
from tlx.fuzz.options import RandomOptions
from tlx.fuzz.worker import Request

Path = tuple[int, ...]


@dataclass
class _SmallestFailure:
    """The smallest failure so far.

    Attributes:
        best: It, and how it failed.
        check: Checks a program.
        left: Programs that may still be checked.
        seen: Texts that have been checked.
    """

    best: CheckOutcome
    node: Node
    check: Callable[[Request], CheckOutcome]
    left: int
    seen: set[str]

    def accepts(self, candidate: Node) -> bool:
        """Whether a program fails alike; then it is the best."""
        request = replace(self.best.request, source=candidate)
        try:
            made = request.program()
        except (ValueError, AssertionError, IndexError):
            return False
        if made.text in self.seen or self.left <= 0:
            return False
        self.seen.add(made.text)
        return self._fails_alike(replace(request, source=made.node), made.node)

    def accepts_asked(self, asked: RandomOptions) -> bool:
        """Whether the program fails alike where less is asked for; then it is the best."""
        if self.left <= 0:
            return False
        request = self.best.request
        return self._fails_alike(replace(request, check=replace(request.check, asked=asked)), self.node)

    def _fails_alike(self, request: Request, node: Node) -> bool:
        self.left -= 1
        outcome = self.check(request)
        if not outcome.is_like(self.best):
            return False
        self.best, self.node = replace(outcome, request=request), node
        return True


def shrink(failure: CheckOutcome, check: Callable[[Request], CheckOutcome], trials: int = 300) -> CheckOutcome:
    """A simpler program that fails alike.

    Args:
        failure: The failure.
        check: Checks a program.
        trials: Most programs to check.
    """
    made = failure.request.program()
    search = _SmallestFailure(failure, made.node, check, trials, {made.text})
    while any(search.accepts_asked(asked) for asked in search.best.request.check.asked.simpler()):
        pass
    before = -1
    while search.left > 0 and before != search.left:
        before = search.left
        _drop_parts(search)
        _zero_nodes(search)
        _lower_numbers(search)
    return search.best


def _drop_parts(search: _SmallestFailure) -> None:
    for path in list(_paths(search.node)):
        size = len(_at(search.node, path).parts) if _exists(search.node, path) else 0
        chunk = size
        while chunk > 0:
            at = 0
            while at < size:
                candidate = search.node.copy()
                del _at(candidate, path).parts[at : at + chunk]
                if search.accepts(candidate) and _exists(search.node, path):
                    size = len(_at(search.node, path).parts)
                else:
                    at += chunk
            chunk //= 2


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


def _lower(search: _SmallestFailure, path: Path, at: int) -> None:
    """Make one number as small as it can be by zero, halving, and counting down."""
    while _exists(search.node, path) and at < len(_at(search.node, path).draws):
        number = _at(search.node, path).draws[at]
        if not any(search.accepts(_with(search.node, path, at, new)) for new in _smaller(number)):
            return


def _smaller(number: int) -> list[int]:
    return list(dict.fromkeys(new for new in (0, number // 2, number - 1) if 0 <= new < number))


def _with(node: Node, path: Path, at: int, number: int) -> Node:
    candidate = node.copy()
    _at(candidate, path).draws[at] = number
    return candidate


def _paths(node: Node, path: Path = ()) -> Iterator[Path]:
    yield path
    for index, part in enumerate(node.parts):
        yield from _paths(part, (*path, index))


def _exists(node: Node, path: Path) -> bool:
    for index in path:
        if index >= len(node.parts):
            return False
        node = node.parts[index]
    return True


def _at(node: Node, path: Path) -> Node:
    for index in path:
        node = node.parts[index]
    return node
