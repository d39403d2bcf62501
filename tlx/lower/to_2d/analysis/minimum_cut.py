r"""Two labels for variables at the least total cost, as a minimum cut of a network.

The costs of a variable's labels 0 and 1, and those of two variables' labels, become capacities. The variables on the
source's side of the cut have label 1::

    cost of a: 3, 8       of b: 6, 1       of labels that differ: 4

                5 -> sink                            cut 5: a has label 1, as b has
    source      a
       \  4 ^ v 4                                    cut 4: b has label 1, a has label 0
      5 -> b

Pairs must not favour labels that differ: where they would, the cut takes such labels to cost as much as it can express.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

Variable = TypeVar("Variable", bound=Hashable)
_SOURCE: Final = 0
_SINK: Final = 1


class PairCosts(NamedTuple):
    """The costs of the labels of two variables: `first_second`."""

    zero_zero: float
    zero_one: float
    one_zero: float
    one_one: float


@dataclass(eq=False)
class LabelCosts(Generic[Variable]):
    """The sum of the costs of labels."""

    _nodes: dict[Variable, int] = field(default_factory=dict[Variable, int])
    _of_one: dict[int, float] = field(default_factory=lambda: defaultdict[int, float](float))
    _capacities: dict[int, dict[int, float]] = field(
        default_factory=lambda: defaultdict[int, dict[int, float]](lambda: defaultdict[int, float](float))
    )

    def add(self, variable: Variable, zero: float, one: float) -> None:
        """Add the costs of a variable's labels."""
        self._of_one[self._node(variable)] += one - zero

    def add_pair(self, first: Variable, second: Variable, costs: PairCosts) -> None:
        """Add the costs of the labels of two variables."""
        self.add(first, costs.zero_zero, costs.one_zero)
        self.add(second, costs.one_zero, costs.one_one)
        differing = costs.zero_one + costs.one_zero - costs.zero_zero - costs.one_one
        if differing > 0:
            self._capacities[self._node(second)][self._node(first)] += differing

    def ones(self) -> frozenset[Variable]:
        """The variables with label 1 in the labelling of least cost; of several, the one with the fewest."""
        residual = defaultdict[int, dict[int, float]](lambda: defaultdict[int, float](float))
        for node, targets in self._capacities.items():
            residual[node].update(targets)
        for node, cost in self._of_one.items():
            if cost > 0:
                residual[node][_SINK] += cost
            elif cost < 0:
                residual[_SOURCE][node] -= cost
        while path := _shortest_path(residual):
            _push(residual, path)
        reached = _predecessors(residual)
        return frozenset(variable for variable, node in self._nodes.items() if node in reached)

    def _node(self, variable: Variable) -> int:
        return self._nodes.setdefault(variable, len(self._nodes) + 1 + _SINK)


_Residual = dict[int, dict[int, float]]


def _predecessors(residual: _Residual) -> dict[int, int]:
    """For each node that the source reaches, the node before it on a shortest path."""
    before, pending = {_SOURCE: _SOURCE}, deque([_SOURCE])
    while pending:
        node = pending.popleft()
        for successor, capacity in residual[node].items():
            if capacity > 0 and successor not in before:
                before[successor] = node
                pending.append(successor)
    return before


def _shortest_path(residual: _Residual) -> list[tuple[int, int]]:
    """The edges of a shortest path from the source to the sink that has capacity left; empty if there is none."""
    before, node, path = _predecessors(residual), _SINK, list[tuple[int, int]]()
    while node != _SOURCE:
        if node not in before:
            return []
        path.append((before[node], node))
        node = before[node]
    return path


def _push(residual: _Residual, path: list[tuple[int, int]]) -> None:
    """Send as much along a path as it takes (Edmonds and Karp)."""
    flow = min(residual[node][successor] for node, successor in path)
    for node, successor in path:
        residual[node][successor] -= flow
        residual[successor][node] += flow
