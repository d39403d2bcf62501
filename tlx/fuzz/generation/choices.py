"""What is drawn for a program, as a tree of numbers: a seed draws it, and a tree that was cut down draws less.

Each part of a program (a function, a statement) draws from a node of its own, so that dropping a part leaves the others
as they are. Every tree gives a valid program, and smaller numbers give simpler ones: what is simplest stands first
wherever something is chosen. A tree that has no more numbers goes on with zeros.

    node of the program ── draws 0 3 1
      ├─ node of @f0 ── draws 2 2 0 5
      │    ├─ node of a statement ── draws 1 0 7
      │    └─ node of a statement ── draws 4
      └─ node of @f1 ── ...
"""

from __future__ import annotations

import random
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

Item = TypeVar("Item")
_PARTS: Final = 1000


@dataclass
class Node:
    """Numbers that were drawn for a part, and its parts."""

    draws: list[int] = field(default_factory=list[int])
    parts: list[Node] = field(default_factory=list["Node"])

    def copy(self) -> Node:
        """A deep copy."""
        return Node(list(self.draws), [part.copy() for part in self.parts])

    @property
    def size(self) -> int:
        """How many numbers and parts there are."""
        return len(self.draws) + sum(1 + part.size for part in self.parts)

    def as_json(self) -> list[Any]:
        """The tree as lists."""
        return [self.draws, [part.as_json() for part in self.parts]]

    @classmethod
    def of_json(cls, value: Sequence[Any]) -> Node:
        """The tree of `as_json`."""
        return cls([int(draw) for draw in value[0]], [cls.of_json(part) for part in value[1]])


class Choices:
    """Draws the numbers of one node.

    Args:
        source: A seed, or a tree to follow.

    Attributes:
        node: What was drawn.
    """

    def __init__(self, source: str | Node) -> None:
        self.node = Node()
        self._source = source
        self._random = random.Random(source) if isinstance(source, str) else None

    def below(self, bound: int) -> int:
        """A number from 0 to `bound - 1`."""
        number = self._next(bound)
        self.node.draws.append(number)
        return number

    def _next(self, bound: int) -> int:
        if self._random is not None:
            return self._random.randrange(bound)
        assert isinstance(self._source, Node)
        at = len(self.node.draws)
        return min(self._source.draws[at], bound - 1) if at < len(self._source.draws) else 0

    def parts(self, least: int, most: int) -> list[Choices]:
        """The choices of this node's parts; to be called once. A tree that was cut down has fewer than `least`."""
        if isinstance(self._source, str):
            assert self._random is not None
            made = [Choices(f"{self._source}.{n}") for n in range(self._random.randint(least, most))]
        else:
            made = [Choices(part) for part in self._source.parts]
        self.node.parts = [part.node for part in made]
        return made

    def chance(self, probability: float) -> bool:
        """True with this probability; False is the simple case."""
        return self.below(_PARTS) >= _PARTS - round(probability * _PARTS)

    def choice(self, items: Sequence[Item]) -> Item:
        """One of some items; the first is the simplest."""
        return items[self.below(len(items))]

    def randint(self, low: int, high: int) -> int:
        """A number from `low`, the simplest, to `high`."""
        return low + self.below(high - low + 1)

    def randrange(self, bound: int) -> int:
        """A number from 0 to `bound - 1`."""
        return self.below(bound)

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Put items into another order; zeros leave them as they are."""
        for at in range(len(items) - 1):
            other = at + self.below(len(items) - at)
            items[at], items[other] = items[other], items[at]

    def sample(self, items: Sequence[Item], count: int) -> list[Item]:
        """Some items in any order."""
        shuffled = list(items)
        self.shuffle(shuffled)
        return shuffled[:count]
