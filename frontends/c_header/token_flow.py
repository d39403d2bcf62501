"""Tokens that flow through phis, selects and vectors, which LLVM does not allow for the type `token`.

    %t = phi i32 [ %a, %then ], [ %b, %else ]
    ->
    %merged = phi <16 x float> [ %va, %then ], [ %vb, %else ]
    %t = call token @llvm.tensor.typeinfo(<16 x float> %merged, ...)

All tokens that are merged must have the same tensor type. A phi of a single token is replaced by that token.

Tokens in vectors are unpacked: LLVM's SLP vectoriser (-O2) packs them like numbers.

%v = insertelement <2 x i32> %n.only, i32 %token, i64 1        %v = insertelement <2 x i32> %n.only, i32 undef, i64 1
...                                                            ...
%m = phi <2 x i32> [ %v, %a ], [ %w, %b ]                 ->   %m = phi <2 x i32> [ %v, %a ], [ %w, %b ]
                                                               %lane = phi i32 [ %token, %a ], [ %other, %b ]
%n = extractelement <2 x i32> %m, i64 0                        %n = extractelement <2 x i32> %m, i64 0
%t = extractelement <2 x i32> %m, i64 1                        (uses of %t use %lane)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from tlx.diagnostics import Note, VerifyError
from tlx.frontends.c_header.intrinsic_calls import StrayTokenError, TensorToken
from tlx.frontends.c_header.mem2reg import debug_only
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import replace_uses, set_operand
from tlx.ir.tensors.calls import operand_span
from tlx.ir.types import I64, LABEL, TOKEN, VOID, Type, VectorType
from tlx.ir.values import Aggregate, ConstInt, Global, Keyword, Local, Splat, Value, int_elements, is_undefined


def merge_tokens(module: Module, function: Function, tokens: dict[str, TensorToken]) -> None:
    """Replace the phis and selects of tokens; new tokens are added to `tokens`.

    Raises:
        VerifyError: Tokens of different types are merged, or a token with another value.
    """
    merges = _merges(function, tokens)
    _resolve(function, merges)
    for name, (_, merge) in merges.items():
        _check_sources(merge, name, tokens, merges)
    _Merging(module, function, tokens, merges).run()


_Merges = dict[str, tuple[Block, Instruction]]


def _incoming_values(merge: Instruction) -> list[Value]:
    """The values between which a phi or select chooses."""
    if merge.opcode == "phi":
        return [value for value, _ in merge.incoming]
    return merge.operands[1:]


def names_with_merges(function: Function, names: Collection[str]) -> set[str]:
    """The names, and those of the phis and selects that they reach."""
    return {*names, *_merges(function, names)}


def _merges(function: Function, tokens: Collection[str]) -> _Merges:
    """The phis and selects that tokens reach."""
    merges: _Merges = {}
    grown = True
    while grown:
        grown = False
        for block in function.blocks:
            for instruction in block.instructions:
                if instruction.opcode not in ("phi", "select") or instruction.result is None:
                    continue
                names = {v.name for v in _incoming_values(instruction) if isinstance(v, Local)}
                if instruction.result not in merges and any(name in tokens or name in merges for name in names):
                    merges[instruction.result] = (block, instruction)
                    grown = True
    return merges


def _resolve(function: Function, merges: _Merges) -> None:
    """Remove the phis with a single source."""
    changed = True
    while changed:
        changed = False
        for name, (block, merge) in list(merges.items()):
            sources = {v for v in _incoming_values(merge) if not (isinstance(v, Local) and v.name == name)}
            if len(sources) == 1 and isinstance(source := next(iter(sources)), Local):
                replace_uses(function, name, source)
                block.instructions.remove(merge)
                del merges[name]
                changed = True


def _check_sources(merge: Instruction, name: str, tokens: dict[str, TensorToken], merges: _Merges) -> None:
    for value in _incoming_values(merge):
        if is_undefined(value):
            continue
        if not isinstance(value, Local) or (value.name not in tokens and value.name not in merges):
            merged = f"{_name_of(merge, name)} is a tensor's token on one path and {value} on another"
            message = f"{merged}: a token is not a number"
            kind = StrayTokenError if isinstance(value, Local) else VerifyError
            raise kind(message, operand_span(merge, value))


def _name_of(merge: Instruction, name: str) -> str:
    """The name of a merge in messages, if the program gave it one."""
    span = merge.span
    written = span is not None and span.source.text.startswith(f"%{name} =", span.start)
    return f"%{name}" if written else "this variable"


class _Merging:
    """Replaces the remaining merges."""

    def __init__(self, module: Module, function: Function, tokens: dict[str, TensorToken], merges: _Merges) -> None:
        self.module = module
        self.function = function
        self.tokens = tokens
        self.merges = merges
        self.vectors: dict[str, Local] = {}

    def run(self) -> None:
        """Turn each merge into one of vectors, and make a token of its result."""
        examples = {name: self._check(name) for name in self.merges}
        for name, example in examples.items():
            if example.type is not None:
                self.vectors[name] = Local(example.type.vector, self.function.names.fresh("merged"))
        for name, example in examples.items():
            self._replace(name, example)

    def _leaves(self, name: str) -> Iterator[TensorToken]:
        """The tokens that reach a merge."""
        seen: set[str] = set()
        stack = [name]
        while stack:
            merge = stack.pop()
            if merge in seen:
                continue
            seen.add(merge)
            if merge in self.tokens:
                yield self.tokens[merge]
            elif merge in self.merges:
                stack.extend(v.name for v in reversed(_incoming_values(self.merges[merge][1])) if isinstance(v, Local))

    def _check(self, name: str) -> TensorToken:
        """One of the tokens that reach a merge, after checking that all have the same type."""
        leaves = list(self._leaves(name))
        merge = self.merges[name][1]
        subject = _name_of(merge, name)
        for leaf in leaves:
            if leaf.type is None:
                message = f"{subject} merges tokens, so what they say must be known: give the load an element type"
                if leaf.dims and any(isinstance(d, Local) for d in leaf.dims):
                    message = f"{subject} merges tokens, so their shapes must be constants"
                raise self._error(message, merge, [leaf])
            if leaf.type != leaves[0].type:
                message = f"{subject} is a token of {leaves[0].type} on one path and of {leaf.type} on another"
                raise self._error(message, merge, [leaves[0], leaf])
        return leaves[0]

    def _error(self, message: str, merge: Instruction, leaves: list[TensorToken]) -> VerifyError:
        span = merge.span or leaves[-1].definition.span
        return VerifyError(message, span, [Note("defined here", leaf.definition.span) for leaf in leaves])

    def _vector(self, value: Value, example: TensorToken) -> Value:
        if not isinstance(value, Local):
            assert example.type is not None
            return Keyword(example.type.vector, "undef")
        if value.name in self.vectors:
            return self.vectors[value.name]
        return self.tokens[value.name].flattened(self.module, self.function)

    def _replace(self, name: str, example: TensorToken) -> None:
        block, merge = self.merges[name]
        vector = self.vectors[name]
        values = [self._vector(value, example) for value in _incoming_values(merge)]
        merge.type, merge.result, merge.spans = vector.type, vector.name, None
        if merge.opcode == "phi":
            labels = [label for _, label in merge.incoming]
            merge.operands = [x for v, label in zip(values, labels, strict=True) for x in (v, Local(LABEL, label))]
            pairs = ", ".join(f"[ {v}, %{label} ]" for v, label in zip(values, labels, strict=True))
            merge.text = f"{vector} = phi {vector.type} {pairs}"
        else:
            condition = merge.operands[0]
            merge.operands = [condition, *values]
            merge.text = f"{vector} = select {', '.join(v.typed for v in merge.operands)}{merge.debug_location}"
        self.tokens[name] = self._typeinfo(name, block, merge, vector, example)

    def _typeinfo(
        self, name: str, block: Block, merge: Instruction, vector: Local, example: TensorToken
    ) -> TensorToken:
        operands = [vector, *example.dims]
        text = f"%{name} = call token @llvm.tensor.typeinfo({', '.join(v.typed for v in operands)})"
        callee = Global(VOID, "llvm.tensor.typeinfo")
        call = Instruction(
            "call", TOKEN, [callee, *operands], text, result=name, span=merge.span or example.definition.span
        )
        call.arg_attributes = ("",) * len(operands)
        place = next(i for i, other in enumerate(block.instructions) if other is merge) + 1
        while block.instructions[place].opcode == "phi":
            place += 1
        block.instructions.insert(place, call)
        return TensorToken(block, call, example.dims, example.type, vector)


_Lanes = dict[str, set[int]]
_MOVES: Final = ("phi", "select", "insertelement", "shufflevector")


def unpack_tokens(function: Function, tokens: Collection[str]) -> None:
    """Unpack tokens from vectors.

    Args:
        function: Where.
        tokens: Names of the calls' results that are tokens.

    Raises:
        VerifyError: A vector with a token is used in arithmetic, stored or passed to a function.
    """
    packed, lanes = _tokens_and_lanes(function, tokens)
    if lanes:
        _check_moves(function, lanes)
        _Unpacking(function, lanes).run(packed)


def _check_moves(function: Function, lanes: _Lanes) -> None:
    """Vectors that contain tokens may only be moved."""
    for instruction in function.instructions():
        vectors = [v for v in instruction.operands if isinstance(v, Local) and v.name in lanes]
        if not vectors or debug_only(instruction) or instruction.opcode in _MOVES:
            continue
        if instruction.opcode == "extractelement" and isinstance(instruction.operands[1], ConstInt):
            continue
        message = f"a tensor's token is an element of {vectors[0]}: a token is not a number, keep it in an int variable"
        raise VerifyError(message, operand_span(instruction, vectors[0]))


def _tokens_and_lanes(function: Function, tokens: Collection[str]) -> tuple[set[str], _Lanes]:
    """All names of tokens, including those from vectors, and the lanes of vectors that contain tokens."""
    names: set[str] = set()
    lanes: _Lanes = defaultdict(set)
    merged = names_with_merges(function, tokens)
    while merged != names:
        names = merged
        _spread(function, names, lanes)
        extracts = {str(i.result) for i in function.instructions() if _is_extract(i, lanes)}
        merged = names_with_merges(function, names | extracts)
    return names, {name: token_lanes for name, token_lanes in lanes.items() if token_lanes}


def _is_extract(instruction: Instruction, lanes: _Lanes) -> bool:
    """Whether an instruction extracts a token from a vector."""
    if instruction.opcode != "extractelement":
        return False
    vector, index = instruction.operands
    return isinstance(vector, Local) and isinstance(index, ConstInt) and index.value in lanes.get(vector.name, ())


def _spread(function: Function, names: Collection[str], lanes: _Lanes) -> None:
    """Propagate tokens into lanes of vectors, to a fixed point."""
    grown = True
    while grown:
        grown = False
        for instruction in function.instructions():
            if instruction.result is None or not isinstance(instruction.type, VectorType):
                continue
            token_lanes = _token_lanes(instruction, names, lanes)
            if not token_lanes <= lanes[instruction.result]:
                lanes[instruction.result] |= token_lanes
                grown = True


def _token_lanes(instruction: Instruction, names: Collection[str], lanes: _Lanes) -> set[int]:
    """The lanes of a result that contain tokens."""

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
        others = of(operands[0]) - {index.value}
        return others | {index.value} if isinstance(element, Local) and element.name in names else others
    if instruction.opcode == "shufflevector":
        return {
            lane
            for lane in range(_lane_count(instruction.type))
            if _is_token_lane(_shuffle_source(instruction, lane), lanes)
        }
    return set()


def _is_token_lane(source: tuple[Value, int] | None, lanes: _Lanes) -> bool:
    if source is None:
        return False
    vector, lane = source
    return isinstance(vector, Local) and lane in lanes.get(vector.name, ())


def _shuffle_source(shuffle: Instruction, lane: int) -> tuple[Value, int] | None:
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
    count = _lane_count(first.type)
    return (first, place) if place < count else (second, place - count)


def _lane_count(type_: Type) -> int:
    return type_.count if isinstance(type_, VectorType) else 0


class _Unpacking:
    """Turns lanes that contain tokens into scalars."""

    def __init__(self, function: Function, lanes: _Lanes) -> None:
        self.function = function
        self.lanes = lanes
        self.homes = {i.result: (block, i) for block in function.blocks for i in block.instructions if i.result}
        self.scalars: dict[tuple[str, int], Value] = {}

    def run(self, names: Collection[str]) -> None:
        """Replace tokens that are extracted from vectors, then those that are inserted."""
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
        """Replace a token that is inserted into a vector by undef."""
        if instruction.opcode != "insertelement":
            return
        element = instruction.operands[1]
        scalars = {str(value).removeprefix("%") for value in self.scalars.values()}
        if isinstance(element, Local) and (element.name in names or element.name in scalars):
            set_operand(instruction, 1, Keyword(element.type, "undef"))

    def _scalar(self, vector: Value, lane: int) -> Value:
        """One lane of a vector as a scalar."""
        if not isinstance(vector, Local):
            return _constant_lane(vector, lane)
        key = (vector.name, lane)
        if key not in self.scalars:
            self.scalars[key] = self._new_scalar(vector, lane)
        return self.scalars[key]

    def _new_scalar(self, vector: Local, lane: int) -> Value:
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
            source = _shuffle_source(definition, lane)
            return Keyword(_constant_element(vector.type), "undef") if source is None else self._scalar(*source)
        if definition.opcode == "select" and not isinstance(operands[0].type, VectorType):
            chosen = [operands[0], *(self._scalar(value, lane) for value in operands[1:])]
            place = next(i for i, other in enumerate(block.instructions) if other is definition)
            return self._insert(block, place, "select", _constant_element(vector.type), chosen)
        return self._extracted(vector, lane, block, place + 1)

    def _phi(self, vector: Local, lane: int, block: Block, definition: Instruction, place: int) -> Value:
        """A phi of one lane, recorded before its operands are computed, as these may refer to it."""
        type_ = _constant_element(vector.type)
        scalar = Instruction("phi", type_, [], "", result=self.function.names.fresh("lane"), span=definition.span)
        block.instructions.insert(place, scalar)
        self.scalars[vector.name, lane] = scalar.value
        pairs = [(self._scalar(value, lane), label) for value, label in definition.incoming]
        scalar.operands = [x for value, label in pairs for x in (value, Local(LABEL, label))]
        scalar.text = f"{scalar.value} = phi {type_} {', '.join(f'[ {v}, %{label} ]' for v, label in pairs)}"
        return scalar.value

    def _extracted(self, vector: Local, lane: int, block: Block, place: int) -> Value:
        """A lane of a value without tokens."""
        operands = [vector, ConstInt(I64, lane)]
        return self._insert(block, place, "extractelement", _constant_element(vector.type), operands)

    def _insert(self, block: Block, place: int, opcode: str, type_: Type, operands: Sequence[Value]) -> Value:
        name = self.function.names.fresh("lane")
        text = f"%{name} = {opcode} {', '.join(value.typed for value in operands)}"
        instruction = Instruction(opcode, type_, list(operands), text, result=name)
        block.instructions.insert(place, instruction)
        return instruction.value


def _constant_element(type_: Type) -> Type:
    return type_.element if isinstance(type_, VectorType) else type_


def _constant_lane(vector: Value, lane: int) -> Value:
    if isinstance(vector, Aggregate):
        return vector.elements[lane]
    if isinstance(vector, Splat):
        return vector.element
    numbers = int_elements(vector)
    element = _constant_element(vector.type)
    return Keyword(element, "undef") if numbers is None else ConstInt(element, numbers[lane])
