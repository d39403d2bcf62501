"""Statements that move or reduce elements of flattened vectors.

Every element of a result is defined: those that a mask leaves open are then selected from another vector.

`insertelement` and `extractelement` come in straight-line code, and in loops that carry the vector:

    loop:
      %i = phi i64 [ 0, %before ], [ %next, %latch ]
      %v = phi <600 x float> [ %v3, %before ], [ %w, %latch ]
      %e = extractelement <600 x float> %v, i64 %j              elements of this vector, or of older ones
      %w = insertelement <600 x float> %v, float %e, i64 %k     chosen by branches and selects; in inner loops

A loop may exit early with the vector as it is then; any of the vectors may be used after the loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from tlx.fuzz.generation.dataflow import (
    ELEMENTS,
    INTEGERS,
    DataflowWriter,
    KnownValue,
    Operation,
    ValueFacts,
    constant_literal,
    range_facts,
    unknown_facts,
)
from tlx.fuzz.generation.writer import Vector
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import DOUBLE, FLOAT, I1, I32, FloatType, Type, mangle

_OPEN: Final = -1
_LONGEST_MASK: Final = 8192
Lanes = list[int]
Mask = Callable[[DataflowWriter, int], Lanes | None]
"""What a mask takes of two vectors of so many elements; None where they cannot be taken so."""


def _factors(flow: DataflowWriter, count: int, most: int = 3) -> list[int]:
    """Extents of a few dimensions."""
    extents: list[int] = []
    for _ in range(flow.random.randint(2, most) - 1):
        extents.append(flow.random.choice([d for d in range(1, count + 1) if count % d == 0][:24]))
        count //= extents[-1]
    return [*extents, count]


def _permuted(flow: DataflowWriter, count: int) -> Lanes:
    """Dimensions in another order, some of them backwards."""
    extents = _factors(flow, count)
    order = list(range(len(extents)))
    flow.random.shuffle(order)
    lanes = [0]
    for k in order:
        stride, each = math.prod(extents[k + 1 :]), range(extents[k])
        lanes = [lane + stride * i for lane in lanes for i in (each[::-1] if flow.chance(0.2) else each)]
    return lanes


def _reversed(_flow: DataflowWriter, count: int) -> Lanes:
    return list(range(count))[::-1]


def _rotated(flow: DataflowWriter, count: int) -> Lanes:
    """Each row, or all."""
    width = flow.random.choice(_factors(flow, count))
    by = flow.random.randrange(width)
    return [lane // width * width + (lane + by) % width for lane in range(count)]


def _interleaved(_flow: DataflowWriter, count: int) -> Lanes:
    return [lane // 2 + lane % 2 * count for lane in range(2 * count)]


def _strided(flow: DataflowWriter, count: int) -> Lanes:
    """Every second element, or every third; of both vectors."""
    step = flow.random.choice([2, 3, 5])
    return list(range(flow.random.randrange(step), flow.random.choice([count, 2 * count]), step))


def _window(flow: DataflowWriter, count: int) -> Lanes:
    """Consecutive elements, also from the end of one vector to the beginning of the other."""
    first = flow.random.randrange(2 * count)
    return list(range(first, min(2 * count, first + flow.random.randint(1, 2 * count))))


def _blend(flow: DataflowWriter, count: int) -> Lanes:
    """Elements where they are, by rows or one by one."""
    width = flow.random.choice([*_factors(flow, count), 1])
    rows = [flow.random.randrange(2) for _ in range(min(count // width, 64))]
    return [lane + count * rows[lane // width % len(rows)] for lane in range(count)]


def _inserted(flow: DataflowWriter, count: int) -> Lanes:
    """A part of one vector in the other."""
    first = flow.random.randrange(count)
    behind = flow.random.randint(first, count)
    return [lane + count if first <= lane < behind else lane for lane in range(count)]


def _repeated(flow: DataflowWriter, count: int) -> Lanes:
    times = flow.random.choice([2, 3, 4])
    by_row = flow.chance(0.5)
    return [lane % count if by_row else lane // times for lane in range(times * count)]


def _exchanged(flow: DataflowWriter, count: int) -> Lanes:
    """A few elements exchanged."""
    lanes = list(range(count))
    for _ in range(flow.random.choice([1, 2, 5])):
        a, b = flow.random.randrange(count), flow.random.randrange(count)
        lanes[a], lanes[b] = lanes[b], lanes[a]
    return lanes


def _scattered(flow: DataflowWriter, count: int) -> Lanes:
    """Any order, but a regular one, of rows or of elements."""
    width = flow.random.choice([1, *_factors(flow, count)])
    rows, step = count // width, flow.random.choice([7, 11, 13])
    order = [(row * step + row // 5) % (2 * rows) for row in range(rows)]
    return [row * width + lane for row in order for lane in range(width)]


_MASKS: Final[tuple[Mask, ...]] = (
    _permuted,
    _reversed,
    _rotated,
    _interleaved,
    _strided,
    _window,
    _blend,
    _inserted,
    _repeated,
    _exchanged,
    _scattered,
)


def _shuffle(flow: DataflowWriter) -> KnownValue | None:
    """`shufflevector` of one or two vectors by any mask."""
    x, count = _operand(flow)
    if not count:
        return None
    lanes = flow.random.choice(_MASKS)(flow, count)
    if not lanes or len(lanes) > _LONGEST_MASK:
        return None
    y = flow.partner(x, exact=False) if any(lane >= count for lane in lanes) or flow.chance(0.2) else None
    if flow.chance(0.3):
        lanes = _with_open(flow, lanes)
    type_ = flow.type_for(x.element, len(lanes))
    other = y.vector.name if y else flow.random.choice(["poison", "undef"])
    vector = x.type.vector
    shuffled = flow.let(f"shufflevector {vector} {x.vector.name}, {vector} {other}, {_spelled(lanes)}", type_)
    made = KnownValue(shuffled, x.facts.joined(y.facts) if y else x.facts)
    return _defined(flow, made, lanes) if _OPEN in lanes else made


def _operand(flow: DataflowWriter) -> tuple[KnownValue, int]:
    """A vector, and how many elements it has; none where some are padding, of which less is known."""
    x = flow.mask() if flow.chance(0.1) else flow.number(ELEMENTS, exact=False)
    return x, 0 if x.type.is_padded or x.type.count > _LONGEST_MASK else x.type.count


def _with_open(flow: DataflowWriter, lanes: Lanes) -> Lanes:
    """A mask that leaves some open: at the end, in the middle, or one of a few."""
    first, step = flow.random.randrange(len(lanes)), flow.random.choice([1, 2, 3, 17])
    behind = flow.random.choice([len(lanes), min(len(lanes), first + 9)])
    return [_OPEN if first <= k < behind and (k - first) % step == 0 else lane for k, lane in enumerate(lanes)]


def _defined(flow: DataflowWriter, made: KnownValue, lanes: Lanes) -> KnownValue:
    """Elements of another vector where a mask left any."""
    other = flow.partner(made, exact=False)
    if other.vector.name == made.vector.name:
        other = KnownValue(flow.constant(made.type).vector, made.facts.with_zero())
    count, vector = len(lanes), made.type.vector
    mask = _spelled([k + count if lane == _OPEN else k for k, lane in enumerate(lanes)])
    chosen = flow.let(f"shufflevector {vector} {made.vector.name}, {vector} {other.vector.name}, {mask}", made.type)
    return KnownValue(chosen, made.facts.joined(other.facts))


def _spelled(lanes: Sequence[int]) -> str:
    """A mask as an operand."""
    type_ = f"<{len(lanes)} x i32>"
    if all(lane == 0 for lane in lanes):
        return f"{type_} zeroinitializer"
    return f"{type_} <{', '.join('i32 poison' if lane == _OPEN else f'i32 {lane}' for lane in lanes)}>"


# LLVM's own names of some ------------------------------------------------------------------------------------------


def _reverse(flow: DataflowWriter) -> KnownValue | None:
    x, count = _operand(flow)
    return _called(flow, "reverse", [x], count) if count else None


def _interleave(flow: DataflowWriter) -> KnownValue | None:
    x, count = _operand(flow)
    return _called(flow, "interleave2", [x, flow.partner(x, exact=False)], 2 * count) if count else None


def _splice(flow: DataflowWriter) -> KnownValue | None:
    x, count = _operand(flow)
    if not count:
        return None
    first = flow.random.randint(-count, count - 1)
    return _called(flow, "splice", [x, flow.partner(x, exact=False)], count, f"i32 {first}")


def _deinterleave(flow: DataflowWriter) -> KnownValue | None:
    x, count = _operand(flow)
    if not count or count % 2:
        return None
    half = flow.type_for(x.element, count // 2)
    callee = f"@llvm.vector.deinterleave2.{mangle(x.type.vector)}"
    pair = f"{{ {half.vector}, {half.vector} }}"
    flow.declarations.add(f"declare {pair} {callee}({x.type.vector})")
    both = flow.fresh("d")
    flow.line(f"{both} = call {pair} {callee}({x.vector.typed})")
    return KnownValue(flow.let(f"extractvalue {pair} {both}, {flow.random.randrange(2)}", half), x.facts)


def _called(flow: DataflowWriter, name: str, operands: Sequence[KnownValue], count: int, *more: str) -> KnownValue:
    type_ = TensorType.dense(operands[0].element, (count,))
    callee = f"@llvm.vector.{name}.{mangle(type_.vector)}"
    types = [*(str(x.type.vector) for x in operands), *(text.split()[0] for text in more)]
    flow.declarations.add(f"declare {type_.vector} {callee}({', '.join(types)})")
    arguments = ", ".join([*(x.vector.typed for x in operands), *more])
    facts = operands[0].facts
    for x in operands[1:]:
        facts = facts.joined(x.facts)
    return KnownValue(flow.call(f"{type_.vector} {callee}({arguments})", type_), facts)


# Single elements -----------------------------------------------------------------------------------------------------


def _moved(flow: DataflowWriter) -> KnownValue | None:
    """Elements of one vector inserted into it, or into another, at constant places: `opt` makes a shuffle of it."""
    x, count = _operand(flow)
    if not count:
        return None
    into = flow.partner(x, exact=False)
    vector, made = x.type.vector, into.vector.name
    for _ in range(flow.random.choice([2, 1, 3, 8])):
        element, index = flow.fresh("e"), flow.random.choice(["i32", "i64"])
        flow.line(f"{element} = extractelement {x.vector.typed}, {index} {flow.random.randrange(count)}")
        at = flow.random.randrange(count)
        made = flow.let(f"insertelement {vector} {made}, {x.element} {element}, {index} {at}", x.type).name
    return KnownValue(flow.let(f"freeze {vector} {made}", x.type), x.facts.joined(into.facts))


def _chosen(flow: DataflowWriter) -> KnownValue | None:
    """`select` by a constant, of which `opt` makes a shuffle."""
    x, count = _operand(flow)
    if not count:
        return None
    lanes = _blend(flow, count)
    condition = ", ".join(f"i1 {int(lane < count)}" for lane in lanes)
    y = flow.partner(x, exact=False)
    form = f"select <{count} x {I1}> <{condition}>, {x.vector.typed}, {y.vector.typed}"
    return KnownValue(flow.let(form, x.type), x.facts.joined(y.facts))


# Reductions ----------------------------------------------------------------------------------------------------------


def _reduced(flow: DataflowWriter) -> KnownValue | None:
    """One number of all elements, in every element of the result: `opt` has its own way to say this of i1."""
    x = flow.mask() if flow.chance(0.4) else flow.number((*INTEGERS, FLOAT, DOUBLE))
    if x.type.is_padded or (x.is_float and not (x.facts.integral and x.facts.zeros)):
        return None
    scalar = _fold(flow, flow.random.choice(_EXTREMA if x.is_float else _FOLDS), x)
    if x.is_mask and flow.chance(0.3):
        number = flow.fresh("r")
        flow.line(f"{number} = xor i1 {scalar}, true")
        scalar = number
    return _splat(flow, scalar, x, replace(x.facts, zeros=False) if x.is_float else unknown_facts(x.element))


def _counted(flow: DataflowWriter) -> KnownValue | None:
    """How many of a mask are true, in every element."""
    x = flow.mask()
    if x.type.is_padded:
        return None
    wide = flow.instruction(f"{flow.random.choice(['zext', 'sext'])} {{}} to {{}}", [x], I32, unknown_facts(I32))
    return _splat(flow, _fold(flow, "add", wide), wide, unknown_facts(I32))


def _fold(flow: DataflowWriter, name: str, x: KnownValue) -> str:
    """The name of what a reduction gives."""
    callee, scalar = f"@llvm.vector.reduce.{name}.{mangle(x.type.vector)}", flow.fresh("r")
    flow.declarations.add(f"declare {x.element} {callee}({x.type.vector})")
    flow.line(f"{scalar} = call {x.element} {callee}({x.vector.typed})")
    return scalar


def _splat(flow: DataflowWriter, scalar: str, like: KnownValue, facts: ValueFacts) -> KnownValue:
    start, vector = flow.fresh("i"), like.type.vector
    flow.line(f"{start} = insertelement {vector} poison, {like.element} {scalar}, i64 0")
    shuffled = f"shufflevector {vector} {start}, {vector} poison, <{like.type.count} x i32> zeroinitializer"
    return KnownValue(flow.let(shuffled, like.type), facts)


_FOLDS: Final = ("or", "and", "add", "xor", "umax", "smin", "umin", "smax", "mul")
_EXTREMA: Final = ("fmax", "fmin", "fmaximum", "fminimum")


LANES: Final[dict[str, Operation]] = {
    "shuffle": _shuffle,
    "reverse": _reverse,
    "splice": _splice,
    "interleave": _interleave,
    "deinterleave": _deinterleave,
    "elements": _moved,
    "choice": _chosen,
    "vector-reduce": _reduced,
    "count": _counted,
}
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
