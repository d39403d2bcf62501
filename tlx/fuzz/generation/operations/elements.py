"""`insertelement` and `extractelement` in dataflow functions: in a row, and in loops that carry the vector.

    loop:
      %i = phi i64 [ 0, %before ], [ %next, %latch ]
      %v = phi <600 x float> [ %v3, %before ], [ %w, %latch ]
      %e = extractelement <600 x float> %v, i64 %j              elements of this vector, or of older ones
      %w = insertelement <600 x float> %v, float %e, i64 %k     chosen by branches and selects; in inner loops

A loop may be left early, with the vector as it is then, and any of the vectors may be used behind it.
"""

from __future__ import annotations

from typing import Final

from tlx.fuzz.generation.dataflow import (
    ELEMENTS,
    DataflowWriter,
    KnownValue,
    Operation,
    ValueFacts,
    constant_literal,
    range_facts,
)
from tlx.fuzz.generation.writer import Vector
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import I1, FloatType, Type

_INDEX: Final = ("i64", "i32", "i64", "i16")
_DEEPEST: Final = 3
_LARGE: Final = ((300,), (17, 31), (5, 7, 16), (33, 33))


def _inserts(flow: DataflowWriter) -> KnownValue:
    """Some insertions in a row."""
    return _Elements(flow, _vector(flow)).straight()


def _insert_loop(flow: DataflowWriter) -> KnownValue | None:
    """A loop of insertions."""
    return None if flow.is_in_loop else _Elements(flow, _vector(flow)).looped()


def _vector(flow: DataflowWriter) -> KnownValue:
    if flow.chance(0.5):
        shape = flow.random.choice(_LARGE)
        element: Type = flow.random.choice((*ELEMENTS, I1))
        return flow.leaf_of(flow.type_of(shape, element))
    return flow.mask() if flow.chance(0.2) else flow.number(ELEMENTS)


class _Elements:
    """Insertions that start from a vector; all vectors that come up are of its type.

    Args:
        flow: The function.
        start: The vector.
    """

    def __init__(self, flow: DataflowWriter, start: KnownValue) -> None:
        self.flow, self.start = flow, start
        self.type: TensorType = start.type
        self.facts: ValueFacts = start.facts.with_zero() if start.type.is_padded else start.facts
        self.indices: list[str] = []
        self.seen: list[str] = []
        """Vectors that are defined wherever the next line goes."""

    def straight(self) -> KnownValue:
        """What a row of insertions gives."""
        self.seen.append(self.start.vector.name)
        return self._flow(self._statements(self.start.vector.name, _DEEPEST))

    def looped(self) -> KnownValue:
        """What a loop of insertions gives."""
        self.seen.append(self.start.vector.name)
        return self._flow(self._loop(self.start.vector.name, 1))

    def _flow(self, name: str) -> KnownValue:
        if self.flow.chance(0.3):
            old = self.flow.random.choice(self.seen)
            self.flow.add(KnownValue(Vector(old, self.type), self.facts))
        return KnownValue(Vector(name, self.type), self.facts)

    # Statements --------------------------------------------------------------------------------------------------

    def _statements(self, vector: str, depth: int) -> str:
        """Some statements; each gives the next vector."""
        for _ in range(self.flow.random.choice([1, 1, 2, 3])):
            kinds = ["insert", "insert", "insert", "select", "branch"] + ["loop"] * (depth < _DEEPEST)
            kind = self.flow.random.choice(kinds)
            if kind == "insert":
                vector = self._inserted(vector)
            elif kind == "select":
                vector = self._selected(vector)
            elif kind == "branch":
                vector = self._branch(vector, depth)
            else:
                vector = self._loop(vector, depth + 1)
            self.seen.append(vector)
        return vector

    def _inserted(self, vector: str) -> str:
        element, index = self._element(vector), self._index()
        return self._let(f"insertelement {self.type.vector} {vector}, {element}, {index}")

    def _selected(self, vector: str) -> str:
        """One of the vectors before and behind some insertions."""
        changed = vector
        for _ in range(self.flow.random.choice([1, 1, 2])):
            changed = self._inserted(changed)
        if self.flow.chance(0.2):
            self.seen.append(changed)
        one, other = (changed, vector) if self.flow.chance(0.5) else (vector, changed)
        type_ = self.type.vector
        return self._let(f"select i1 {self._condition(vector)}, {type_} {one}, {type_} {other}")

    def _branch(self, vector: str, depth: int) -> str:
        """What runs only sometimes."""
        flow = self.flow
        condition = self._condition(vector)
        body, join = flow.fresh("body")[1:], flow.fresh("join")[1:]
        before, kept = flow.label, len(self.seen)
        flow.line(f"br i1 {condition}, label %{body}, label %{join}")
        flow.begin(body)
        changed = self._statements(vector, depth)
        after = flow.label
        flow.line(f"br label %{join}")
        flow.begin(join)
        del self.seen[kept:]
        return self._let(f"phi {self.type.vector} [ {vector}, %{before} ], [ {changed}, %{after} ]")

    def _loop(self, vector: str, depth: int) -> str:
        """A loop around statements, which may be left early."""
        flow = self.flow
        index, carried, following, again = (flow.fresh(stem) for stem in ("i", "v", "next", "again"))
        head, latch, done = (flow.fresh(stem)[1:] for stem in ("loop", "latch", "done"))
        before = flow.label
        flow.line(f"br label %{head}")
        flow.begin(head)
        phis = flow.deferred()
        self.indices.append(index)
        kept = len(self.seen)
        self.seen.append(carried)
        changed = self._statements(carried, depth)
        ways: list[str] = []
        if flow.chance(0.3):
            left = flow.random.choice([changed, changed, carried])
            condition, on = self._condition(changed), flow.fresh("on")[1:]
            ways.append(f"[ {left}, %{flow.label} ]")
            flow.line(f"br i1 {condition}, label %{done}, label %{on}")
            flow.begin(on)
            changed = self._statements(changed, _DEEPEST) if flow.chance(0.5) else changed
        flow.line(f"br label %{latch}")
        flow.begin(latch)
        flow.line(f"{following} = add i64 {index}, 1")
        flow.line(f"{again} = icmp ult i64 {following}, {flow.random.choice([1, 2, 3, 5])}")
        flow.line(f"br i1 {again}, label %{head}, label %{done}")
        flow.begin(done)
        type_ = self.type.vector
        phis(
            f"{index} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]",
            f"{carried} = phi {type_} [ {vector}, %{before} ], [ {changed}, %{latch} ]",
        )
        self.indices.pop()
        if not ways:
            return changed
        del self.seen[kept:]
        left = flow.random.choice([changed, changed, carried])
        return self._let(f"phi {type_} {', '.join(ways)}, [ {left}, %{latch} ]")

    # Scalars -----------------------------------------------------------------------------------------------------

    def _element(self, vector: str) -> str:
        """What is inserted: an element of this vector or of another one, or a number."""
        flow, element = self.flow, self.type.element
        if flow.chance(0.3):
            number = flow.random.randint(0, 1 if element == I1 else 5)
            self.facts = self.facts.joined(range_facts(element, number, number))
            return f"{element} {constant_literal(element, number)}"
        return f"{element} {self._extracted(vector)}"

    def _extracted(self, vector: str) -> str:
        source = vector if self.flow.chance(0.7) else self.flow.random.choice(self.seen[-4:])
        name = self.flow.fresh("e")
        self.flow.line(f"{name} = extractelement {self.type.vector} {source}, {self._index()}")
        return name

    def _index(self) -> str:
        """The number of an element: a constant, or one that depends on the rounds of loops."""
        flow, count = self.flow, self.type.count
        if not self.indices or flow.chance(0.2):
            return f"{flow.random.choice(_INDEX)} {flow.random.randint(0, count - 1)}"
        scaled, at = flow.fresh("j"), flow.fresh("k")
        flow.line(f"{scaled} = mul i64 {flow.random.choice(self.indices)}, {flow.random.choice([1, 17, 3, 101])}")
        flow.line(f"{at} = urem i64 {scaled}, {count}")
        if flow.chance(0.7):
            return f"i64 {at}"
        narrow = flow.fresh("k")
        flow.line(f"{narrow} = trunc i64 {at} to i32")
        return f"i32 {narrow}"

    def _condition(self, vector: str) -> str:
        """A scalar i1: of an element, or of the round."""
        flow, element = self.flow, self.type.element
        name = flow.fresh("c")
        if not self.indices or flow.chance(0.5):
            scalar = self._extracted(vector)
            comparison = "fcmp ogt" if isinstance(element, FloatType) else "icmp sgt"
            flow.line(f"{name} = {comparison} {element} {scalar}, {constant_literal(element, 0)}")
            return name
        bit = flow.fresh("bit")
        flow.line(f"{bit} = and i64 {flow.random.choice(self.indices)}, {flow.random.choice([1, 2])}")
        flow.line(f"{name} = icmp {flow.random.choice(['eq', 'ne'])} i64 {bit}, 0")
        return name

    def _let(self, text: str) -> str:
        name = self.flow.fresh("w")
        self.flow.line(f"{name} = {text}")
        return name


ELEMENT_OPERATIONS: Final[dict[str, Operation]] = {"insert": _inserts, "insert-loop": _insert_loop}
