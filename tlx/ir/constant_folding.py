"""Constant folding of integers: the contents of shape vectors, however they are spelled or computed.

Front ends write shapes as constants, build them with `insertelement` and `shufflevector`, or keep them in constant
globals; optimisers rewrite one form into another. Vectors are folded lane by lane: a lane may be unknown until an
instruction inserts another element there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from tlx.diagnostics import ParseError, Source
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.parser.operands import ValueParser, tokenize
from tlx.ir.types import ArrayType, IntType, Type, VectorType
from tlx.ir.values import (
    OPERATIONS,
    Aggregate,
    ConstExpr,
    ConstInt,
    Global,
    Keyword,
    Local,
    Splat,
    Value,
    as_signed,
    fold_integers,
    int_elements,
)

Lanes = Sequence[int | None]

_REPLACEABLE: Final = re.compile(r"\b(?:external|extern_weak|externally_initialized|weak|linkonce|common)\b")
"""Linkages and attributes of globals whose initial values may be replaced."""

_MAX_DEPTH: Final = 100
_MAX_LANES: Final = 4096
_PLAIN_BITS: Final = 31
_PLAIN: Final = 1 << _PLAIN_BITS
"""Numbers below this are the same signed and unsigned, in more than 31 bits."""


class ConstantFolder:
    """Folds the values of one function; caches its definitions."""

    def __init__(
        self, function: Function, module: Module | None = None, definitions: dict[str, Instruction] | None = None
    ) -> None:
        self._definitions = (
            {i.result: i for i in function.instructions() if i.result is not None}
            if definitions is None
            else definitions
        )
        self._module = module
        self._known: dict[str, Lanes | None] = {}

    def ints(self, value: Value) -> tuple[int, ...] | None:
        """The integers of a vector, signed; None unless every lane is constant."""
        if not isinstance(value.type, VectorType):
            return None
        plain = int_elements(value) if isinstance(value, Aggregate) else None
        if plain and min(plain) >= 0 and max(plain) < _PLAIN and _width(value.type) > _PLAIN_BITS:
            return plain
        lanes = self._lanes(value, _MAX_DEPTH)
        known = [_signed(lane, value.type) for lane in lanes if lane is not None] if lanes else []
        return tuple(known) if lanes and len(known) == len(lanes) else None

    def integer_lanes(self, value: Value) -> tuple[int | None, ...] | None:
        """The integers of a vector, signed, with None for unknown lanes; None if nothing is known."""
        lanes = self._lanes(value, _MAX_DEPTH) if isinstance(value.type, VectorType) else None
        return tuple(None if lane is None else _signed(lane, value.type) for lane in lanes) if lanes else None

    def entry(self, vector: Value, index: int) -> int | Value | None:
        """An element of a vector: its constant integer, or the value that is inserted there; else None."""
        known = self.integer_lanes(vector)
        if known is not None and known[index] is not None:
            return known[index]
        while isinstance(vector, Local):
            definition = self._definitions.get(vector.name)
            if definition is None or definition.opcode != "insertelement":
                return None
            vector, element, place = definition.operands
            if not isinstance(place, ConstInt):
                return None
            if place.value == index:
                return element
        return None

    def integer(self, value: Value) -> int | None:
        """The constant integer of a scalar, signed; None if it is not known."""
        if not isinstance(value.type, IntType):
            return None
        lanes = self._lanes(value, _MAX_DEPTH)
        return _signed(lanes[0], value.type) if lanes and lanes[0] is not None else None

    def _lanes(self, value: Value, depth: int) -> Lanes | None:
        """Each lane's bits as an unsigned number (None: unknown, undef, poison); None if there are no integer lanes."""
        count = _lane_count(value.type)
        if count is None or depth == 0:
            return None
        if isinstance(value, Local):
            return self._local_lanes(value.name, depth - 1)
        if isinstance(value, ConstExpr):
            return self._folded(value.opcode, value.type, list(value.operands), depth - 1)
        return _constant_lanes(value, count)

    def _local_lanes(self, name: str, depth: int) -> Lanes | None:
        if name not in self._known:
            self._known[name] = None  # a value that depends on itself is unknown
            instruction = self._definitions.get(name)
            self._known[name] = self._instruction_lanes(instruction, depth) if instruction is not None else None
        return self._known[name]

    def _instruction_lanes(self, instruction: Instruction, depth: int) -> Lanes | None:
        if instruction.opcode == "load":
            return self._loaded(instruction)
        if instruction.opcode == "call":
            name = (instruction.callee or "").rpartition(".")[0]  # without the suffix for the type
            return self._folded(name, instruction.type, instruction.args, depth)
        return self._folded(instruction.opcode, instruction.type, instruction.operands, depth)

    def _folded(self, opcode: str, type_: Type, operands: Sequence[Value], depth: int) -> Lanes | None:
        rule = _RULES.get(opcode)
        if rule is None:
            return None
        lanes = [self._lanes(operand, depth) for operand in operands]
        if opcode == "bitcast" and lanes[0] and self._module is not None and self._module.is_big_endian:
            mirrored = rule([operands[0].type], [lanes[0][::-1]], type_)
            return mirrored and mirrored[::-1]
        return rule([operand.type for operand in operands], lanes, type_)

    def _loaded(self, load: Instruction) -> Lanes | None:
        pointer = load.operands[0]
        while isinstance(pointer, ConstExpr) and pointer.opcode == "bitcast":
            pointer = pointer.operands[0]
        if not isinstance(pointer, Global) or self._module is None or "volatile" in load.flags:
            return None
        initial = _initial_value(self._module, pointer.name)
        if initial is None or _scalar(initial.type) != _scalar(load.type):
            return None
        count = _lane_count(initial.type)
        lanes = _constant_lanes(initial, count) if count is not None else None
        return lanes if lanes is not None and len(lanes) == _lane_count(load.type) else None


# Constants ---------------------------------------------------------------------------------------------------------


def _lane_count(type_: Type) -> int | None:
    """Lanes of an integer, or of a vector or array of integers, of a reasonable size."""
    if isinstance(type_, IntType):
        return 1
    if not isinstance(type_, (VectorType, ArrayType)) or not isinstance(type_.element, IntType):
        return None
    if isinstance(type_, VectorType) and type_.scalable:
        return None
    return type_.count if type_.count <= _MAX_LANES else None


def _scalar(type_: Type) -> Type:
    return type_.element if isinstance(type_, (VectorType, ArrayType)) else type_


def _width(type_: Type) -> int:
    scalar = _scalar(type_)
    return scalar.bits if isinstance(scalar, IntType) else 0


def _signed(bits: int, type_: Type) -> int:
    return as_signed(bits, _width(type_))


def _constant_lanes(value: Value, count: int) -> Lanes | None:
    mask = (1 << _width(value.type)) - 1
    if isinstance(value, ConstInt):
        return [value.value & mask]
    if isinstance(value, Splat):
        return [value.element.value & mask] * count if isinstance(value.element, ConstInt) else None
    if isinstance(value, Keyword):
        return [0 if value.word == "zeroinitializer" else None] * count
    if isinstance(value, Aggregate):
        return [e.value & mask if isinstance(e, ConstInt) else None for e in value.elements]
    return None


def _initial_value(module: Module, name: str) -> Value | None:
    """The initial value of a constant global."""
    pattern = rf"(?m)^@{re.escape(name)} =(?:[^\n\"]|\"[^\"]*\")*?\bconstant "
    text = module.raw_text()
    definition = re.search(pattern, text)
    if definition is None or _REPLACEABLE.search(definition.group()):
        return None
    end = text.find("\n", definition.end())
    source = Source("<global>", text[definition.end() : end if end >= 0 else len(text)])
    try:
        return ValueParser(source, tokenize(source)).typed_value()
    except ParseError:
        return None


# Rules -------------------------------------------------------------------------------------------------------------

_Rule = Callable[[list[Type], list[Lanes | None], Type], Lanes | None]


def _unknown(count: int) -> Lanes:
    return [None] * count


def _insert(types: list[Type], lanes: list[Lanes | None], _type: Type) -> Lanes | None:
    vector, element, index = lanes
    place = _index(index)
    count = _lane_count(types[0])
    if place is None or count is None or place >= count:
        return None
    result = list(vector or _unknown(count))
    result[place] = element[0] if element else None
    return result


def _extract(_types: list[Type], lanes: list[Lanes | None], _type: Type) -> Lanes | None:
    vector, index = lanes
    place = _index(index)
    if vector is None or place is None or place >= len(vector):
        return None
    return [vector[place]]


def _index(lanes: Lanes | None) -> int | None:
    return lanes[0] if lanes else None


def _shuffle(types: list[Type], lanes: list[Lanes | None], _type: Type) -> Lanes | None:
    count = _lane_count(types[0])
    first, second, mask = lanes
    if count is None or mask is None:
        return None
    both = [*(first or _unknown(count)), *(second or _unknown(count))]
    return [both[place] if place is not None and place < len(both) else None for place in mask]


def _bitcast(types: list[Type], lanes: list[Lanes | None], type_: Type) -> Lanes | None:
    """Reinterpret integers of one width as integers of another, first lane lowest (little endian)."""
    source, count = lanes[0], _lane_count(type_)
    old, new = _width(types[0]), _width(type_)
    if source is None or count is None or not old or not new:
        return None
    if old == new:
        return source
    if any(lane is None for lane in source):
        return None
    bits = sum(lane << (old * place) for place, lane in enumerate(source) if lane is not None)
    return [bits >> (new * place) & ((1 << new) - 1) for place in range(count)]


def _cast(convert: Callable[[int, Type], int]) -> _Rule:
    def rule(types: list[Type], lanes: list[Lanes | None], type_: Type) -> Lanes | None:
        mask = (1 << _width(type_)) - 1
        if lanes[0] is None or not mask:
            return None
        return [convert(lane, types[0]) & mask if lane is not None else None for lane in lanes[0]]

    return rule


def _binary(opcode: str) -> _Rule:
    """A binary instruction, lane by lane."""

    def rule(_types: list[Type], lanes: list[Lanes | None], type_: Type) -> Lanes | None:
        lhs, rhs = lanes
        width = _width(type_)
        if lhs is None or rhs is None or not width:
            return None
        return [
            fold_integers(opcode, a, b, width) if a is not None and b is not None else None
            for a, b in zip(lhs, rhs, strict=True)
        ]

    return rule


def _extreme(choose: Callable[[int, int], int], *, is_signed: bool) -> _Rule:
    """The lesser or greater of two integers, lane by lane."""

    def rule(_types: list[Type], lanes: list[Lanes | None], type_: Type) -> Lanes | None:
        lhs, rhs = lanes
        if lhs is None or rhs is None:
            return None
        flipped = 1 << (_width(type_) - 1) if is_signed else 0  # the sign, so that unsigned numbers are in order
        return [
            choose(a ^ flipped, b ^ flipped) ^ flipped if a is not None and b is not None else None
            for a, b in zip(lhs, rhs, strict=True)
        ]

    return rule


def _select(_types: list[Type], lanes: list[Lanes | None], _type: Type) -> Lanes | None:
    condition, yes, no = lanes
    if condition is None or yes is None or no is None:
        return None
    if len(condition) == 1:
        condition = [condition[0]] * len(yes)
    return [None if c is None else a if c else b for c, a, b in zip(condition, yes, no, strict=True)]


def _same(_types: list[Type], lanes: list[Lanes | None], _type: Type) -> Lanes | None:
    """`freeze` of a known lane; an unknown lane stays unknown."""
    return lanes[0]


_RULES: Final[dict[str, _Rule]] = {
    "insertelement": _insert,
    "extractelement": _extract,
    "shufflevector": _shuffle,
    "bitcast": _bitcast,
    "select": _select,
    "freeze": _same,
    "zext": _cast(lambda lane, _: lane),
    "trunc": _cast(lambda lane, _: lane),
    "sext": _cast(_signed),
    "llvm.smin": _extreme(min, is_signed=True),
    "llvm.smax": _extreme(max, is_signed=True),
    "llvm.umin": _extreme(min, is_signed=False),
    "llvm.umax": _extreme(max, is_signed=False),
    **{opcode: _binary(opcode) for opcode in OPERATIONS},
}
