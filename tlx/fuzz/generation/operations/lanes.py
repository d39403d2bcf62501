"""Statements that move or reduce the lanes of flattened vectors.

Every element of a result is defined: those for which a shuffle's mask is poison are then taken from another vector.

`insertelement` and `extractelement` come in straight-line code, and in loops that carry the vector:

    loop:
      %i = phi i64 [ 0, %before ], [ %next, %latch ]
      %v = phi <600 x float> [ %v3, %before ], [ %w, %latch ]
      %e = extractelement <600 x float> %v, i64 %j              elements of this vector, or of older ones
      %w = insertelement <600 x float> %v, float %e, i64 %k     under branches, selects and inner loops

A loop may exit early with the current vector; any of the vectors may be used after the loop.
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
"""Draws the mask of a shuffle of two vectors with the given number of elements; None if the number does not suit it."""


def _factors(writer: DataflowWriter, count: int, most: int = 3) -> list[int]:
    """Extents of a few dimensions with this product."""
    extents: list[int] = []
    for _ in range(writer.random.randint(2, most) - 1):
        extents.append(writer.random.choice([d for d in range(1, count + 1) if count % d == 0][:24]))
        count //= extents[-1]
    return [*extents, count]


def _permuted(writer: DataflowWriter, count: int) -> Lanes:
    """Permuted dimensions, some of them reversed."""
    extents = _factors(writer, count)
    order = list(range(len(extents)))
    writer.random.shuffle(order)
    lanes = [0]
    for k in order:
        stride, each = math.prod(extents[k + 1 :]), range(extents[k])
        lanes = [lane + stride * i for lane in lanes for i in (each[::-1] if writer.chance(0.2) else each)]
    return lanes


def _reversed(_writer: DataflowWriter, count: int) -> Lanes:
    return list(range(count))[::-1]


def _rotated(writer: DataflowWriter, count: int) -> Lanes:
    """Rotated rows, or a rotated vector."""
    width = writer.random.choice(_factors(writer, count))
    by = writer.random.randrange(width)
    return [lane // width * width + (lane + by) % width for lane in range(count)]


def _interleaved(_writer: DataflowWriter, count: int) -> Lanes:
    return [lane // 2 + lane % 2 * count for lane in range(2 * count)]


def _strided(writer: DataflowWriter, count: int) -> Lanes:
    """Every second or third element of both vectors."""
    step = writer.random.choice([2, 3, 5])
    return list(range(writer.random.randrange(step), writer.random.choice([count, 2 * count]), step))


def _window(writer: DataflowWriter, count: int) -> Lanes:
    """Consecutive elements, possibly across the boundary of the two vectors."""
    first = writer.random.randrange(2 * count)
    return list(range(first, min(2 * count, first + writer.random.randint(1, 2 * count))))


def _blend(writer: DataflowWriter, count: int) -> Lanes:
    """Each row or element from either vector, at its position."""
    width = writer.random.choice([*_factors(writer, count), 1])
    rows = [writer.random.randrange(2) for _ in range(min(count // width, 64))]
    return [lane + count * rows[lane // width % len(rows)] for lane in range(count)]


def _inserted(writer: DataflowWriter, count: int) -> Lanes:
    """Part of one vector inserted into the other."""
    first = writer.random.randrange(count)
    end = writer.random.randint(first, count)
    return [lane + count if first <= lane < end else lane for lane in range(count)]


def _repeated(writer: DataflowWriter, count: int) -> Lanes:
    times = writer.random.choice([2, 3, 4])
    by_row = writer.chance(0.5)
    return [lane % count if by_row else lane // times for lane in range(times * count)]


def _exchanged(writer: DataflowWriter, count: int) -> Lanes:
    """A few elements swapped."""
    lanes = list(range(count))
    for _ in range(writer.random.choice([1, 2, 5])):
        a, b = writer.random.randrange(count), writer.random.randrange(count)
        lanes[a], lanes[b] = lanes[b], lanes[a]
    return lanes


def _scattered(writer: DataflowWriter, count: int) -> Lanes:
    """An irregular permutation of rows or of elements."""
    width = writer.random.choice([1, *_factors(writer, count)])
    rows, step = count // width, writer.random.choice([7, 11, 13])
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


def _shuffle(writer: DataflowWriter) -> KnownValue | None:
    """`shufflevector` of one or two vectors by any mask."""
    x, count = _operand(writer)
    if not count:
        return None
    lanes = writer.random.choice(_MASKS)(writer, count)
    if not lanes or len(lanes) > _LONGEST_MASK:
        return None
    y = writer.partner(x, exact=False) if any(lane >= count for lane in lanes) or writer.chance(0.2) else None
    if writer.chance(0.3):
        lanes = _with_open(writer, lanes)
    type_ = writer.type_for(x.element, len(lanes))
    other = y.vector.name if y else writer.random.choice(["poison", "undef"])
    vector = x.type.vector
    shuffled = writer.let(f"shufflevector {vector} {x.vector.name}, {vector} {other}, {_spelled(lanes)}", type_)
    result = KnownValue(shuffled, x.facts.joined(y.facts) if y else x.facts)
    return _defined(writer, result, lanes) if _OPEN in lanes else result


def _operand(writer: DataflowWriter) -> tuple[KnownValue, int]:
    """A vector and its number of elements; 0 if it has padding, about which less is known."""
    x = writer.mask() if writer.chance(0.1) else writer.number(ELEMENTS, exact=False)
    return x, 0 if x.type.is_padded or x.type.count > _LONGEST_MASK else x.type.count


def _with_open(writer: DataflowWriter, lanes: Lanes) -> Lanes:
    """The mask with some lanes poison: at the end, in the middle, or one in every few."""
    first, step = writer.random.randrange(len(lanes)), writer.random.choice([1, 2, 3, 17])
    end = writer.random.choice([len(lanes), min(len(lanes), first + 9)])
    return [_OPEN if first <= k < end and (k - first) % step == 0 else lane for k, lane in enumerate(lanes)]


def _defined(writer: DataflowWriter, value: KnownValue, lanes: Lanes) -> KnownValue:
    """The vector with poison lanes replaced by those of another vector."""
    other = writer.partner(value, exact=False)
    if other.vector.name == value.vector.name:
        other = KnownValue(writer.constant(value.type).vector, value.facts.with_zero())
    count, vector = len(lanes), value.type.vector
    mask = _spelled([k + count if lane == _OPEN else k for k, lane in enumerate(lanes)])
    chosen = writer.let(f"shufflevector {vector} {value.vector.name}, {vector} {other.vector.name}, {mask}", value.type)
    return KnownValue(chosen, value.facts.joined(other.facts))


def _spelled(lanes: Sequence[int]) -> str:
    """A mask as an operand."""
    type_ = f"<{len(lanes)} x i32>"
    if all(lane == 0 for lane in lanes):
        return f"{type_} zeroinitializer"
    return f"{type_} <{', '.join('i32 poison' if lane == _OPEN else f'i32 {lane}' for lane in lanes)}>"


# Shuffles as `llvm.vector.*` intrinsics ----------------------------------------------------------------------------


def _reverse(writer: DataflowWriter) -> KnownValue | None:
    x, count = _operand(writer)
    return _called(writer, "reverse", [x], count) if count else None


def _interleave(writer: DataflowWriter) -> KnownValue | None:
    x, count = _operand(writer)
    return _called(writer, "interleave2", [x, writer.partner(x, exact=False)], 2 * count) if count else None


def _splice(writer: DataflowWriter) -> KnownValue | None:
    x, count = _operand(writer)
    if not count:
        return None
    first = writer.random.randint(-count, count - 1)
    return _called(writer, "splice", [x, writer.partner(x, exact=False)], count, f"i32 {first}")


def _deinterleave(writer: DataflowWriter) -> KnownValue | None:
    x, count = _operand(writer)
    if not count or count % 2:
        return None
    half = writer.type_for(x.element, count // 2)
    callee = f"@llvm.vector.deinterleave2.{mangle(x.type.vector)}"
    pair = f"{{ {half.vector}, {half.vector} }}"
    writer.declarations.add(f"declare {pair} {callee}({x.type.vector})")
    both = writer.fresh("d")
    writer.line(f"{both} = call {pair} {callee}({x.vector.typed})")
    return KnownValue(writer.let(f"extractvalue {pair} {both}, {writer.random.randrange(2)}", half), x.facts)


def _called(writer: DataflowWriter, name: str, operands: Sequence[KnownValue], count: int, *more: str) -> KnownValue:
    type_ = TensorType.dense(operands[0].element, (count,))
    callee = f"@llvm.vector.{name}.{mangle(type_.vector)}"
    types = [*(str(x.type.vector) for x in operands), *(text.split()[0] for text in more)]
    writer.declarations.add(f"declare {type_.vector} {callee}({', '.join(types)})")
    arguments = ", ".join([*(x.vector.typed for x in operands), *more])
    facts = operands[0].facts
    for x in operands[1:]:
        facts = facts.joined(x.facts)
    return KnownValue(writer.call(f"{type_.vector} {callee}({arguments})", type_), facts)


# Single elements -----------------------------------------------------------------------------------------------------


def _inserted_elements(writer: DataflowWriter) -> KnownValue | None:
    """Insertions of a vector's elements at constant positions, which `opt` turns into a shuffle."""
    x, count = _operand(writer)
    if not count:
        return None
    into = writer.partner(x, exact=False)
    vector, result = x.type.vector, into.vector.name
    for _ in range(writer.random.choice([2, 1, 3, 8])):
        element, index = writer.fresh("e"), writer.random.choice(["i32", "i64"])
        writer.line(f"{element} = extractelement {x.vector.typed}, {index} {writer.random.randrange(count)}")
        at = writer.random.randrange(count)
        result = writer.let(f"insertelement {vector} {result}, {x.element} {element}, {index} {at}", x.type).name
    return KnownValue(writer.let(f"freeze {vector} {result}", x.type), x.facts.joined(into.facts))


def _select_by_constant(writer: DataflowWriter) -> KnownValue | None:
    """`select` by a constant, which `opt` turns into a shuffle."""
    x, count = _operand(writer)
    if not count:
        return None
    lanes = _blend(writer, count)
    condition = ", ".join(f"i1 {int(lane < count)}" for lane in lanes)
    y = writer.partner(x, exact=False)
    form = f"select <{count} x {I1}> <{condition}>, {x.vector.typed}, {y.vector.typed}"
    return KnownValue(writer.let(form, x.type), x.facts.joined(y.facts))


# Reductions ----------------------------------------------------------------------------------------------------------


def _reduced(writer: DataflowWriter) -> KnownValue | None:
    """A reduction, splat to a vector; `opt` rewrites those of i1."""
    x = writer.mask() if writer.chance(0.4) else writer.number((*INTEGERS, FLOAT, DOUBLE))
    if x.type.is_padded or (x.is_float and not (x.facts.integral and x.facts.zeros)):
        return None
    fold = writer.random.choice(_EXTREMA if x.is_float else _FOLDS)
    if x.is_mask and fold in ("add", "xor") and x.type.count > _LONGEST_PARITY:
        return None
    scalar = _fold(writer, fold, x)
    if x.is_mask and writer.chance(0.3):
        number = writer.fresh("r")
        writer.line(f"{number} = xor i1 {scalar}, true")
        scalar = number
    return _splat(writer, scalar, x, replace(x.facts, zeros=False) if x.is_float else unknown_facts(x.element))


def _counted(writer: DataflowWriter) -> KnownValue | None:
    """The number of true elements of a mask, splat to a vector."""
    x = writer.mask()
    if x.type.is_padded:
        return None
    wide = writer.instruction(f"{writer.random.choice(['zext', 'sext'])} {{}} to {{}}", [x], I32, unknown_facts(I32))
    return _splat(writer, _fold(writer, "add", wide), wide, unknown_facts(I32))


def _fold(writer: DataflowWriter, name: str, x: KnownValue) -> str:
    """Write a reduction; returns the name of its result."""
    callee, scalar = f"@llvm.vector.reduce.{name}.{mangle(x.type.vector)}", writer.fresh("r")
    writer.declarations.add(f"declare {x.element} {callee}({x.type.vector})")
    writer.line(f"{scalar} = call {x.element} {callee}({x.vector.typed})")
    return scalar


def _splat(writer: DataflowWriter, scalar: str, like: KnownValue, facts: ValueFacts) -> KnownValue:
    start, vector = writer.fresh("i"), like.type.vector
    writer.line(f"{start} = insertelement {vector} poison, {like.element} {scalar}, i64 0")
    shuffled = f"shufflevector {vector} {start}, {vector} poison, <{like.type.count} x i32> zeroinitializer"
    return KnownValue(writer.let(shuffled, like.type), facts)


_LONGEST_PARITY: Final = 512
"""Elements of a mask whose parity LLVM 22 computes correctly: it miscompiles that of 513 with AVX512BW."""
_FOLDS: Final = ("or", "and", "add", "xor", "umax", "smin", "umin", "smax", "mul")
_EXTREMA: Final = ("fmax", "fmin", "fmaximum", "fminimum")


LANES: Final[dict[str, Operation]] = {
    "shuffle": _shuffle,
    "reverse": _reverse,
    "splice": _splice,
    "interleave": _interleave,
    "deinterleave": _deinterleave,
    "elements": _inserted_elements,
    "choice": _select_by_constant,
    "vector-reduce": _reduced,
    "count": _counted,
}
_INDEX: Final = ("i64", "i32", "i64", "i16")
_DEEPEST: Final = 3
_LARGE: Final = ((300,), (17, 31), (5, 7, 16), (33, 33))


def _inserts(writer: DataflowWriter) -> KnownValue:
    """A sequence of insertions."""
    return _Elements(writer, _vector(writer)).straight()


def _insert_loop(writer: DataflowWriter) -> KnownValue | None:
    """A loop of insertions."""
    return None if writer.is_in_loop else _Elements(writer, _vector(writer)).looped()


def _vector(writer: DataflowWriter) -> KnownValue:
    if writer.chance(0.5):
        shape = writer.random.choice(_LARGE)
        element: Type = writer.random.choice((*ELEMENTS, I1))
        return writer.leaf_of(writer.type_of(shape, element))
    return writer.mask() if writer.chance(0.2) else writer.number(ELEMENTS)


class _Elements:
    """Insertions into a vector; all intermediate vectors have its type.

    Args:
        writer: Writes the function.
        start: The initial vector.
    """

    def __init__(self, writer: DataflowWriter, start: KnownValue) -> None:
        self.writer, self.start = writer, start
        self.type: TensorType = start.type
        self.facts: ValueFacts = start.facts.with_zero() if start.type.is_padded else start.facts
        self.indices: list[str] = []
        self.seen: list[str] = []
        """Vectors that dominate the next line."""

    def straight(self) -> KnownValue:
        """Write a sequence of insertions; returns the last vector."""
        self.seen.append(self.start.vector.name)
        return self._result(self._statements(self.start.vector.name, _DEEPEST))

    def looped(self) -> KnownValue:
        """Write a loop of insertions; returns the last vector."""
        self.seen.append(self.start.vector.name)
        return self._result(self._loop(self.start.vector.name, 1))

    def _result(self, name: str) -> KnownValue:
        if self.writer.chance(0.3):
            old = self.writer.random.choice(self.seen)
            self.writer.add(KnownValue(Vector(old, self.type), self.facts))
        return KnownValue(Vector(name, self.type), self.facts)

    # Statements --------------------------------------------------------------------------------------------------

    def _statements(self, vector: str, depth: int) -> str:
        """Write statements, each of which defines the next vector; returns the last one."""
        for _ in range(self.writer.random.choice([1, 1, 2, 3])):
            kinds = ["insert", "insert", "insert", "select", "branch"] + ["loop"] * (depth < _DEEPEST)
            kind = self.writer.random.choice(kinds)
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
        """A select between the vectors before and after some insertions."""
        changed = vector
        for _ in range(self.writer.random.choice([1, 1, 2])):
            changed = self._inserted(changed)
        if self.writer.chance(0.2):
            self.seen.append(changed)
        one, other = (changed, vector) if self.writer.chance(0.5) else (vector, changed)
        type_ = self.type.vector
        return self._let(f"select i1 {self._condition(vector)}, {type_} {one}, {type_} {other}")

    def _branch(self, vector: str, depth: int) -> str:
        """Statements under a condition."""
        writer = self.writer
        condition = self._condition(vector)
        body, join = writer.fresh("body")[1:], writer.fresh("join")[1:]
        before, seen_before = writer.label, len(self.seen)
        writer.line(f"br i1 {condition}, label %{body}, label %{join}")
        writer.begin(body)
        changed = self._statements(vector, depth)
        after = writer.label
        writer.line(f"br label %{join}")
        writer.begin(join)
        del self.seen[seen_before:]
        return self._let(f"phi {self.type.vector} [ {vector}, %{before} ], [ {changed}, %{after} ]")

    def _loop(self, vector: str, depth: int) -> str:
        """A loop around statements, possibly with an early exit."""
        writer = self.writer
        index, carried, following, again = (writer.fresh(stem) for stem in ("i", "v", "next", "again"))
        head, latch, done = (writer.fresh(stem)[1:] for stem in ("loop", "latch", "done"))
        before = writer.label
        writer.line(f"br label %{head}")
        writer.begin(head)
        phis = writer.deferred()
        self.indices.append(index)
        seen_before = len(self.seen)
        self.seen.append(carried)
        changed = self._statements(carried, depth)
        exits: list[str] = []
        if writer.chance(0.3):
            left = writer.random.choice([changed, changed, carried])
            condition, on = self._condition(changed), writer.fresh("on")[1:]
            exits.append(f"[ {left}, %{writer.label} ]")
            writer.line(f"br i1 {condition}, label %{done}, label %{on}")
            writer.begin(on)
            changed = self._statements(changed, _DEEPEST) if writer.chance(0.5) else changed
        writer.line(f"br label %{latch}")
        writer.begin(latch)
        writer.line(f"{following} = add i64 {index}, 1")
        writer.line(f"{again} = icmp ult i64 {following}, {writer.random.choice([1, 2, 3, 5])}")
        writer.line(f"br i1 {again}, label %{head}, label %{done}")
        writer.begin(done)
        type_ = self.type.vector
        phis(
            f"{index} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]",
            f"{carried} = phi {type_} [ {vector}, %{before} ], [ {changed}, %{latch} ]",
        )
        self.indices.pop()
        if not exits:
            return changed
        del self.seen[seen_before:]
        left = writer.random.choice([changed, changed, carried])
        return self._let(f"phi {type_} {', '.join(exits)}, [ {left}, %{latch} ]")

    # Scalars -----------------------------------------------------------------------------------------------------

    def _element(self, vector: str) -> str:
        """The scalar to insert: an element of this vector or of another one, or a number."""
        writer, element = self.writer, self.type.element
        if writer.chance(0.3):
            number = writer.random.randint(0, 1 if element == I1 else 5)
            self.facts = self.facts.joined(range_facts(element, number, number))
            return f"{element} {constant_literal(element, number)}"
        return f"{element} {self._extracted(vector)}"

    def _extracted(self, vector: str) -> str:
        source = vector if self.writer.chance(0.7) else self.writer.random.choice(self.seen[-4:])
        name = self.writer.fresh("e")
        self.writer.line(f"{name} = extractelement {self.type.vector} {source}, {self._index()}")
        return name

    def _index(self) -> str:
        """The index of an element: a constant, or one that depends on loop indices."""
        writer, count = self.writer, self.type.count
        if not self.indices or writer.chance(0.2):
            return f"{writer.random.choice(_INDEX)} {writer.random.randint(0, count - 1)}"
        scaled, at = writer.fresh("j"), writer.fresh("k")
        writer.line(f"{scaled} = mul i64 {writer.random.choice(self.indices)}, {writer.random.choice([1, 17, 3, 101])}")
        writer.line(f"{at} = urem i64 {scaled}, {count}")
        if writer.chance(0.7):
            return f"i64 {at}"
        narrow = writer.fresh("k")
        writer.line(f"{narrow} = trunc i64 {at} to i32")
        return f"i32 {narrow}"

    def _condition(self, vector: str) -> str:
        """A scalar i1 that depends on an element or on a loop index."""
        writer, element = self.writer, self.type.element
        name = writer.fresh("c")
        if not self.indices or writer.chance(0.5):
            scalar = self._extracted(vector)
            comparison = "fcmp ogt" if isinstance(element, FloatType) else "icmp sgt"
            writer.line(f"{name} = {comparison} {element} {scalar}, {constant_literal(element, 0)}")
            return name
        bit = writer.fresh("bit")
        writer.line(f"{bit} = and i64 {writer.random.choice(self.indices)}, {writer.random.choice([1, 2])}")
        writer.line(f"{name} = icmp {writer.random.choice(['eq', 'ne'])} i64 {bit}, 0")
        return name

    def _let(self, text: str) -> str:
        name = self.writer.fresh("w")
        self.writer.line(f"{name} = {text}")
        return name


ELEMENT_OPERATIONS: Final[dict[str, Operation]] = {"insert": _inserts, "insert-loop": _insert_loop}
