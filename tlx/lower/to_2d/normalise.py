"""Instructions on large flattened vectors that move or reduce elements, written as tensor operations.

A splat, and a shuffle that repeats a row or each element of a column::

    %i = insertelement <E x float> undef, float %s, i32 0          %i = insertelement <1 x float> undef, float %s, i32 0
    %v = shufflevector <E x float> %i, undef, zeroinitializer  ->  %t = typeinfo(<1 x float> %i, <1>, ...)
                                                                   %v = broadcast(%t, <E>, <0>)

Consecutive lanes of one or two vectors become `pad` that crops, and `concat`. A reduction, and one whose order the
program fixes::

    %r = call i32 @llvm.vector.reduce.add(<E x i32> %v)        ->  %w = llvm.tensor.reduce.add(typeinfo(%v), <E>, <1>)
                                                                   %r = extractelement <1 x i32> %w, i32 0

    %r = call float @llvm.vector.reduce.fadd(float %s, %v)     ->  a loop of extractelement and fadd

Of numbers only (`nnan`), `fmax` is the largest, as `fmaximum` is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tlx.ir.module import Function, Instruction, Module
from tlx.ir.rewriter import definitions, set_operand, split_block, uses
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64, FloatType, IntType, VectorType
from tlx.ir.values import Aggregate, ConstInt, Keyword, Local, Splat, Value, const_int, zero
from tlx.lower.to_2d.elementwise import is_large, is_zero_mask, uniform
from tlx.lower.to_2d.insert import insert_chosen
from tlx.types import TensorType

_REDUCE: Final = "llvm.vector.reduce."
_ORDERED: Final = {"fadd": "add", "fmul": "mul"}
_OTHERS: Final = {"umax": "llvm.umax", "umin": "llvm.umin", "fmax": "llvm.maxnum", "fmin": "llvm.minnum"}
_OF_NUMBERS: Final = {"fmax": "max", "fmin": "min"}
_KINDS: Final = {
    "add": "add",
    "mul": "mul",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "smax": "max",
    "smin": "min",
    "fmaximum": "max",
    "fminimum": "min",
}


def normalise(module: Module, function: Function) -> None:
    """Rewrite what a function does to large vectors by other means than arithmetic, loads and stores."""
    replaced = _Replaced(definitions(function))
    function.facts[_Replaced] = replaced
    for instruction in list(function.instructions()):
        replaced.update(instruction)
        if instruction.opcode == "shufflevector" and is_large(instruction.type):
            _shuffle(module, function, instruction)
        elif (instruction.callee or "").startswith(_REDUCE) and is_large(instruction.args[-1].type):
            _reduction(module, function, instruction)
    if replaced.values:
        for instruction in function.instructions():
            replaced.update(instruction)
    del function.facts[_Replaced]
    insert_chosen(module, function)
    _remove_dead(function)


def _at(module: Module, function: Function, instruction: Instruction) -> TensorBuilder:
    block = next(block for block in function.blocks if instruction in block.instructions)
    b = TensorBuilder(module, function, block, block.instructions.index(instruction))
    b.debug, b.span = instruction.debug_location, instruction.span
    return b


def _replace(b: TensorBuilder, instruction: Instruction, value: Value) -> None:
    _note(b.function, instruction, value)
    b.block.instructions.remove(instruction)


def _note(function: Function, instruction: Instruction, value: Value) -> None:
    """Note that a value is used in place of an instruction's result."""
    _replaced(function).values[str(instruction.result)] = value


def _replaced(function: Function) -> _Replaced:
    found = function.facts[_Replaced]
    assert isinstance(found, _Replaced)
    return found


@dataclass
class _Replaced:
    """What is used in place of results that are gone, by their names; uses are changed all at once in the end.

    Attributes:
        definitions: The instruction behind each name at the beginning.
        values: What is used in place of results.
    """

    definitions: dict[str, Instruction]
    values: dict[str, Value] = field(default_factory=dict[str, Value])

    def update(self, instruction: Instruction) -> None:
        """Bring the operands of an instruction up to date."""
        for index, operand in enumerate(instruction.operands):
            value = operand
            while isinstance(value, Local) and value.name in self.values:
                value = self.values[value.name]
            if value is not operand:
                set_operand(instruction, index, value)


# Shuffles ------------------------------------------------------------------------------------------------------------


def _shuffle(module: Module, function: Function, shuffle: Instruction) -> None:
    known = _replaced(function).definitions
    if is_zero_mask(shuffle.operands[2]):
        b = _at(module, function, shuffle)
        scalar = uniform(shuffle.value, known) or _element(b, shuffle.operands[0], const_int(I64, 0))
        one = b.insert_element(Keyword(VectorType(1, scalar.type), "undef"), scalar, 0, "scalar")
        _repeat(b, shuffle, one, (0,))
        return
    found = _pattern(shuffle)
    if found is not None:
        source, place = found
        _repeat(_at(module, function, shuffle), shuffle, source, place)
        return
    start = _run(shuffle)
    if start is not None:
        _take(_at(module, function, shuffle), shuffle, start)


def _run(shuffle: Instruction) -> int | None:
    """Where the consecutive lanes of both operands begin that a shuffle takes; None if it takes others."""
    lanes = _lanes(shuffle.operands[2], _count(shuffle))
    first = next((lane - i for i, lane in enumerate(lanes) if lane >= 0), 0)
    return first if all(lane in (-1, first + i) for i, lane in enumerate(lanes)) else None


def _take(b: TensorBuilder, shuffle: Instruction, start: int) -> None:
    """Consecutive lanes: a part of one operand, or of both behind each other."""
    one, other = shuffle.operands[:2]
    assert isinstance(one.type, VectorType)
    width, count = one.type.count, _count(shuffle)
    dense = TensorType.dense(one.type.element, (width,))
    if start + count <= width or start >= width:
        source, size, start = (one, width, start) if start < width else (other, width, start - width)
        token = b.typeinfo(source, dense, "whole")
    else:
        both = [b.typeinfo(value, dense, "part") for value in (one, other)]
        size = 2 * width
        token = b.typeinfo(b.concat(both, 0), TensorType.dense(one.type.element, (size,)), "whole")
    low, high = -start, start + count - size
    result = b.pad(token, (low,), (high,), zero(one.type.element)) if low or high else b.tovector(token)
    _replace(b, shuffle, result)


def _repeat(b: TensorBuilder, shuffle: Instruction, source: Value, place: tuple[int, ...]) -> None:
    """Broadcast a vector to the shuffle's result: as each row (`(1,)`), each column (`(0,)`) or everywhere."""
    type_, count = source.type, _count(shuffle)
    assert isinstance(type_, VectorType)
    token = b.typeinfo(source, TensorType.dense(type_.element, (type_.count,)), "repeated")
    if type_.count == 1:
        result = b.broadcast(token, (count,), (0,))
    else:
        other = count // type_.count
        result = b.broadcast(token, (other, type_.count) if place == (1,) else (type_.count, other), place)
    _replace(b, shuffle, result)


def _pattern(shuffle: Instruction) -> tuple[Value, tuple[int, ...]] | None:
    """The vector that a shuffle repeats whole (as rows), or element by element (as columns)."""
    lanes = _lanes(shuffle.operands[2], _count(shuffle))
    source = shuffle.operands[0]
    assert isinstance(source.type, VectorType)
    width, count = source.type.count, len(lanes)
    if width < 2 or count % width:
        return None
    other = count // width
    if all(lane in (-1, i % width) for i, lane in enumerate(lanes)):
        return source, (1,)
    if all(lane in (-1, i // other) for i, lane in enumerate(lanes)):
        return source, (0,)
    return None


def _count(instruction: Instruction) -> int:
    assert isinstance(instruction.type, VectorType)
    return instruction.type.count


def _lanes(mask: Value, count: int) -> Sequence[int]:
    """Lanes a shuffle takes; -1 where any will do."""
    if isinstance(mask, Keyword):
        return [0 if mask.word == "zeroinitializer" else -1] * count
    if isinstance(mask, Splat):
        return [_lane(mask.element)] * count
    assert isinstance(mask, Aggregate)
    return [_lane(element) for element in mask.elements]


def _lane(element: Value) -> int:
    return element.value if isinstance(element, ConstInt) else -1


# Reductions ----------------------------------------------------------------------------------------------------------


def _reduction(module: Module, function: Function, call: Instruction) -> None:
    kind = str(call.callee).removeprefix(_REDUCE).split(".")[0]
    b = _at(module, function, call)
    if kind in _KINDS:
        _replace(b, call, _reduce(b, _KINDS[kind], call.args[-1]))
    elif kind in _OF_NUMBERS and {"nnan", "fast"} & set(call.flags):
        _replace(b, call, _reduce(b, _OF_NUMBERS[kind], call.args[-1]))
    elif kind in _ORDERED and {"reassoc", "fast"} & set(call.flags):
        start, vector = call.args
        _replace(b, call, b.binary(kind, start, _reduce(b, _ORDERED[kind], vector), "reduced"))
    elif kind in _ORDERED:
        _in_order(b, call, call.args[0], lambda sum_, x: b.binary(kind, sum_, x, "reduced"))
    elif kind in _OTHERS:
        start = _element(b, call.args[0], const_int(I64, 0))
        _in_order(b, call, start, lambda x, y: b.call_intrinsic(_OTHERS[kind], [x.type], x.type, [x, y], "reduced"))


def _reduce(b: TensorBuilder, kind: str, vector: Value) -> Value:
    type_ = vector.type
    assert isinstance(type_, VectorType)
    assert isinstance(type_.element, (IntType, FloatType))
    token = b.typeinfo(vector, TensorType.dense(type_.element, (type_.count,)), "reduced")
    return b.extract_element(b.reduce(kind, token, (type_.count,), (1,)), 0, "reduced")


def _in_order(b: TensorBuilder, call: Instruction, start: Value, combine: Callable[[Value, Value], Value]) -> None:
    """One element after the other."""
    vector = call.args[-1]
    assert isinstance(vector.type, VectorType)
    tail = split_block(b.function, b.block, b.index, "reduced")
    with b.loop(0, vector.type.count, carry=[start], name="element") as loop:
        loop.next(combine(loop.carried[0], _element(b, vector, loop.index)))
    b.branch(tail)
    _note(b.function, call, loop.results[0])
    tail.instructions.remove(call)


def _element(b: TensorBuilder, vector: Value, index: Value) -> Value:
    assert isinstance(vector.type, VectorType)
    body = f"extractelement {vector.typed}, {index.typed}"
    return b.value("extractelement", vector.type.element, [vector, index], body, "element")


# What is left over ---------------------------------------------------------------------------------------------------


def _remove_dead(function: Function) -> None:
    """Take away large inserts that only fed a splat."""
    known = definitions(function)
    counts = Counter({name: len(found) for name, found in uses(function).items()})
    pending = [i for i in known.values() if not counts[str(i.result)]]
    dead: set[int] = set()
    for instruction in pending:
        if instruction.opcode not in ("insertelement", "shufflevector") or not is_large(instruction.type):
            continue
        dead.add(id(instruction))
        for operand in instruction.operands:
            if isinstance(operand, Local):
                counts[operand.name] -= 1
                pending += [known[operand.name]] if not counts[operand.name] and operand.name in known else []
    if dead:
        for block in function.blocks:
            block.instructions = [i for i in block.instructions if id(i) not in dead]
