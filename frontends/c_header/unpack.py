"""Tokens that the optimiser packed into vectors are unpacked: LLVM's SLP vectoriser (-O2) takes them for numbers.

%v = insertelement <2 x i32> %n.only, i32 %token, i64 1        %v = insertelement <2 x i32> %n.only, i32 undef, i64 1
...                                                            ...
%m = phi <2 x i32> [ %v, %a ], [ %w, %b ]                 ->   %m = phi <2 x i32> [ %v, %a ], [ %w, %b ]
                                                               %lane = phi i32 [ %token, %a ], [ %other, %b ]
%n = extractelement <2 x i32> %m, i64 0                        %n = extractelement <2 x i32> %m, i64 0
%t = extractelement <2 x i32> %m, i64 1                        (uses of %t use %lane)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Final

from tlx.diagnostics import VerifyError
from tlx.frontends.c_header.merges import merging_names
from tlx.frontends.c_header.promote import debug_only
from tlx.ir.module import Block, Function, Instruction
from tlx.ir.rewriter import replace_uses, set_operand
from tlx.ir.tensor_calls import operand_span
from tlx.ir.types import I64, LABEL, Type, VectorType
from tlx.ir.values import Aggregate, ConstInt, Keyword, Local, Splat, Value, int_elements

_Lanes = dict[str, set[int]]
_MOVES: Final = ("phi", "select", "insertelement", "shufflevector")


def unpack_tokens(function: Function, tokens: Collection[str]) -> None:
    """Take tokens out of vectors.

    Args:
        function: Where.
        tokens: Names of the calls' results that are tokens.

    Raises:
        VerifyError: A vector with a token in it is calculated with, stored or passed on.
    """
    packed, lanes = _packed(function, tokens)
    if lanes:
        _check(function, lanes)
        _Unpacking(function, lanes).run(packed)


def _check(function: Function, lanes: _Lanes) -> None:
    """Vectors that hold tokens are moved about, and nothing else."""
    for instruction in function.instructions():
        held = [v for v in instruction.operands if isinstance(v, Local) and v.name in lanes]
        if not held or debug_only(instruction) or instruction.opcode in _MOVES:
            continue
        if instruction.opcode == "extractelement" and isinstance(instruction.operands[1], ConstInt):
            continue
        message = f"a tensor's token is an element of {held[0]}: a token is no number, keep it in an int variable"
        raise VerifyError(message, operand_span(instruction, held[0]))


def _packed(function: Function, tokens: Collection[str]) -> tuple[set[str], _Lanes]:
    """All names of tokens, those from vectors included, and the lanes of vectors that hold tokens."""
    names: set[str] = set()
    lanes: _Lanes = defaultdict(set)
    found = merging_names(function, tokens)
    while found != names:
        names = found
        _spread(function, names, lanes)
        extracts = {str(i.result) for i in function.instructions() if _is_extract(i, lanes)}
        found = merging_names(function, names | extracts)
    return names, {name: held for name, held in lanes.items() if held}


def _is_extract(instruction: Instruction, lanes: _Lanes) -> bool:
    """Whether an instruction takes a token out of a vector."""
    if instruction.opcode != "extractelement":
        return False
    vector, index = instruction.operands
    return isinstance(vector, Local) and isinstance(index, ConstInt) and index.value in lanes.get(vector.name, ())


def _spread(function: Function, names: Collection[str], lanes: _Lanes) -> None:
    """Follow tokens into the lanes of vectors, until nothing is new."""
    grown = True
    while grown:
        grown = False
        for instruction in function.instructions():
            if instruction.result is None or not isinstance(instruction.type, VectorType):
                continue
            held = _held(instruction, names, lanes)
            if not held <= lanes[instruction.result]:
                lanes[instruction.result] |= held
                grown = True


def _held(instruction: Instruction, names: Collection[str], lanes: _Lanes) -> set[int]:
    """The lanes of a result that hold tokens."""

    def of(value: Value) -> set[int]:
        return lanes.get(value.name, set()) if isinstance(value, Local) else set()

    operands = instruction.operands
    if instruction.opcode == "phi":
        return {lane for value, _ in instruction.incoming for lane in of(value)}
    if instruction.opcode == "select":
        return of(operands[1]) | of(operands[2])
    if instruction.opcode == "insertelement":
        index, element = operands[2], operands[1]
        if not isinstance(index, ConstInt):
            return of(operands[0])
        kept = of(operands[0]) - {index.value}
        return kept | {index.value} if isinstance(element, Local) and element.name in names else kept
    if instruction.opcode == "shufflevector":
        return {lane for lane in range(_count(instruction.type)) if _is_held(_source(instruction, lane), lanes)}
    return set()


def _is_held(source: tuple[Value, int] | None, lanes: _Lanes) -> bool:
    if source is None:
        return False
    vector, lane = source
    return isinstance(vector, Local) and lane in lanes.get(vector.name, ())


def _source(shuffle: Instruction, lane: int) -> tuple[Value, int] | None:
    """The vector and lane that a lane of a shuffle comes from, None if it is undefined."""
    first, second, mask = shuffle.operands
    numbers = int_elements(mask)
    if numbers is not None:
        place = numbers[lane]
    else:
        element = mask.elements[lane] if isinstance(mask, Aggregate) else mask
        if not isinstance(element, ConstInt):
            return None
        place = element.value
    count = _count(first.type)
    return (first, place) if place < count else (second, place - count)


def _count(type_: Type) -> int:
    return type_.count if isinstance(type_, VectorType) else 0


class _Unpacking:
    """Makes scalars of the lanes that hold tokens."""

    def __init__(self, function: Function, lanes: _Lanes) -> None:
        self.function = function
        self.lanes = lanes
        self.homes = {i.result: (block, i) for block in function.blocks for i in block.instructions if i.result}
        self.scalars: dict[tuple[str, int], Value] = {}

    def run(self, names: Collection[str]) -> None:
        """Replace the tokens that are taken out of vectors, then those that are put into them."""
        for instruction in list(self.function.instructions()):
            if _is_extract(instruction, self.lanes) and instruction.result is not None:
                vector, index = instruction.operands
                assert isinstance(index, ConstInt)
                replace_uses(self.function, instruction.result, self._scalar(vector, index.value))
        for block in self.function.blocks:
            block.instructions = [i for i in block.instructions if not _is_extract(i, self.lanes)]
            for instruction in block.instructions:
                self._clear(instruction, names)

    def _clear(self, instruction: Instruction, names: Collection[str]) -> None:
        """Put nothing where a token was put into a vector."""
        if instruction.opcode != "insertelement":
            return
        element = instruction.operands[1]
        made = {str(value).removeprefix("%") for value in self.scalars.values()}
        if isinstance(element, Local) and (element.name in names or element.name in made):
            set_operand(instruction, 1, Keyword(element.type, "undef"))

    def _scalar(self, vector: Value, lane: int) -> Value:
        """One lane of a vector as a value of its own."""
        if not isinstance(vector, Local):
            return _constant_lane(vector, lane)
        key = (vector.name, lane)
        if key not in self.scalars:
            self.scalars[key] = self._made(vector, lane)
        return self.scalars[key]

    def _made(self, vector: Local, lane: int) -> Value:
        if vector.name not in self.homes:
            return self._extracted(vector, lane, self.function.entry, 0)
        block, definition = self.homes[vector.name]
        place = next(i for i, other in enumerate(block.instructions) if other is definition)
        operands = definition.operands
        if definition.opcode == "phi":
            return self._phi(vector, lane, block, definition, place)
        if definition.opcode == "insertelement" and isinstance(index := operands[2], ConstInt):
            return operands[1] if index.value == lane else self._scalar(operands[0], lane)
        if definition.opcode == "shufflevector":
            source = _source(definition, lane)
            return Keyword(_element(vector.type), "undef") if source is None else self._scalar(*source)
        if definition.opcode == "select" and not isinstance(operands[0].type, VectorType):
            chosen = [operands[0], *(self._scalar(value, lane) for value in operands[1:])]
            place = next(i for i, other in enumerate(block.instructions) if other is definition)
            return self._insert(block, place, "select", _element(vector.type), chosen)
        return self._extracted(vector, lane, block, place + 1)

    def _phi(self, vector: Local, lane: int, block: Block, definition: Instruction, place: int) -> Value:
        """A phi of one lane; known before its operands are, since these may lead back to it."""
        type_ = _element(vector.type)
        scalar = Instruction("phi", type_, [], "", result=self.function.names.fresh("lane"), span=definition.span)
        block.instructions.insert(place, scalar)
        self.scalars[vector.name, lane] = scalar.value
        pairs = [(self._scalar(value, lane), label) for value, label in definition.incoming]
        scalar.operands = [x for value, label in pairs for x in (value, Local(LABEL, label))]
        scalar.text = f"{scalar.value} = phi {type_} {', '.join(f'[ {v}, %{label} ]' for v, label in pairs)}"
        return scalar.value

    def _extracted(self, vector: Local, lane: int, block: Block, place: int) -> Value:
        """A lane of what holds no token."""
        operands = [vector, ConstInt(I64, lane)]
        return self._insert(block, place, "extractelement", _element(vector.type), operands)

    def _insert(self, block: Block, place: int, opcode: str, type_: Type, operands: Sequence[Value]) -> Value:
        name = self.function.names.fresh("lane")
        text = f"%{name} = {opcode} {', '.join(value.typed for value in operands)}"
        instruction = Instruction(opcode, type_, list(operands), text, result=name)
        block.instructions.insert(place, instruction)
        return instruction.value


def _element(type_: Type) -> Type:
    return type_.element if isinstance(type_, VectorType) else type_


def _constant_lane(vector: Value, lane: int) -> Value:
    if isinstance(vector, Aggregate):
        return vector.elements[lane]
    if isinstance(vector, Splat):
        return vector.element
    numbers = int_elements(vector)
    element = _element(vector.type)
    return Keyword(element, "undef") if numbers is None else ConstInt(element, numbers[lane])
