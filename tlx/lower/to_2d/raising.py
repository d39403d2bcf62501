"""Raising: instructions that move or reduce elements of large flattened vectors become tensor operations.

A splat becomes a broadcast, as does any shuffle that repeats a vector, its rows or its elements::

    %i = insertelement <E x float> undef, float %s, i32 0          %i = insertelement <1 x float> undef, float %s, i32 0
    %v = shufflevector <E x float> %i, undef, zeroinitializer  ->  %t = typeinfo(<1 x float> %i, <1>, ...)
                                                                   %v = broadcast(%t, <E>, <0>)

A shuffle that permutes the dimensions of a vector becomes a transpose, and one that keeps each element of two vectors
in its lane a `select`; `rules.movement` lowers all others::

    %v = shufflevector <6 x float> %x, poison, <0, 3, 1, 4, 2, 5>  ->  %t = typeinfo(<6 x float> %x, <2, 3>, ...)
                                                                       %v = transpose(%t, <1, 0>)
    %v = shufflevector <4 x float> %x, %y, <0, 5, 6, 3>            ->  %v = select <1, 0, 0, 1>, %x, %y

A reduction becomes `llvm.tensor.reduce`, or a loop if the program fixes its order::

    %r = call i32 @llvm.vector.reduce.add(<E x i32> %v)        ->  %w = llvm.tensor.reduce.add(typeinfo(%v), <E>, <1>)
                                                                   %r = extractelement <1 x i32> %w, i32 0

    %r = call float @llvm.vector.reduce.fadd(float %s, %v)     ->  a loop of extractelement and fadd

Without NaNs (`nnan`), `fmax` equals `fmaximum`. LLVM's optimiser turns reductions of i1 into operations on an integer
of all bits, which become reductions again::

    %b = bitcast <N x i1> %k to iN                     ->  %r = call i1 @llvm.vector.reduce.or(<N x i1> %k)
    %c = icmp ne iN %b, 0                                  -1: reduce.and; llvm.ctpop: reduce.add of integers
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import Use, definitions, remove_dead, set_operand, split_block, uses
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I1, I32, I64, FloatType, IntType, VectorType, scalar_of
from tlx.ir.values import ConstInt, Keyword, Local, Value, const_int, const_vector
from tlx.lower.to_2d.analysis.shuffles import (
    LaneTable,
    StridedLanes,
    VectorShuffle,
    deinterleave_factor,
    strided_blocks_of,
    vector_width,
)
from tlx.lower.to_2d.analysis.tensor_operations import INSERT, exceeds_register_elements, is_large_shuffle, splat_value

_REDUCE: Final = "llvm.vector.reduce."
_OPCODES: Final = frozenset({"shufflevector", "insertelement", "select", "bitcast"})
_CALLEES: Final = ("llvm.vector.", "llvm.experimental.vector.")
_ORDERED: Final = {"fadd": "add", "fmul": "mul"}
_SCALAR_FUNCTIONS: Final = {"umax": "llvm.umax", "umin": "llvm.umin", "fmax": "llvm.maxnum", "fmin": "llvm.minnum"}
_WITHOUT_NANS: Final = {"fmax": "max", "fmin": "min"}
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


def raise_vectors(module: Module, function: Function) -> None:
    """Rewrite the shuffles and reductions of large vectors in a function as tensor operations."""
    callees = [(i.opcode, (i.callee or "").strip('"')) for i in function.instructions()]
    if not any(opcode in _OPCODES or callee.startswith(_CALLEES) for opcode, callee in callees):
        return
    replaced = _Replacements(function, definitions(function))
    function.facts[_Replacements] = replaced
    for instruction in list(function.instructions()):
        replaced.update(instruction)
        if is_large_shuffle(instruction):
            _shuffle(module, function, instruction)
        elif deinterleave_factor(instruction) and exceeds_register_elements(instruction.args[0].type):
            _deinterleave(module, function, instruction)
        elif (instruction.callee or "").startswith(_REDUCE) and exceeds_register_elements(instruction.args[-1].type):
            _reduction(module, function, instruction)
        elif _casts_to_integer(instruction):
            _reduce_bits(module, function, instruction)
    if replaced.values:
        for instruction in function.instructions():
            replaced.update(instruction)
    del function.facts[_Replacements]
    insert_selected_elements(module, function)
    remove_dead(function, _large_moves(function))


def _builder_at(module: Module, function: Function, instruction: Instruction) -> TensorBuilder:
    block = next(block for block in function.blocks if instruction in block.instructions)
    b = TensorBuilder(module, function, block, block.instructions.index(instruction))
    b.debug, b.span = instruction.debug_location, instruction.span
    return b


def _replace(b: TensorBuilder, instruction: Instruction, value: Value) -> None:
    _record_replacement(b.function, instruction, value)
    b.block.instructions.remove(instruction)


def _record_replacement(function: Function, instruction: Instruction, value: Value) -> None:
    """Record the value that replaces an instruction's result."""
    _replaced(function).values[str(instruction.result)] = value


def _replaced(function: Function) -> _Replacements:
    replaced = function.facts[_Replacements]
    assert isinstance(replaced, _Replacements)
    return replaced


@dataclass
class _Replacements:
    """The values that replace results; the uses of these are updated in one pass at the end.

    Attributes:
        function: The function.
        definitions: The instruction that defines each name, before anything is changed.
        values: The replacement of each result, by the result's name.
    """

    function: Function
    definitions: dict[str, Instruction]
    values: dict[str, Value] = field(default_factory=dict[str, Value])

    @cached_property
    def uses(self) -> dict[str, list[Use]]:
        """The uses of each result, computed on first use; uses that are added later are of large vectors only."""
        return uses(self.function)

    def update(self, instruction: Instruction) -> None:
        """Replace the operands of an instruction."""
        for index, operand in enumerate(instruction.operands):
            value = operand
            while isinstance(value, Local) and value.name in self.values:
                value = self.values[value.name]
            if value is not operand:
                set_operand(instruction, index, value)


# Shuffles ------------------------------------------------------------------------------------------------------------


def _shuffle(module: Module, function: Function, instruction: Instruction) -> None:
    """Rewrite a shuffle as a broadcast, a transpose or a `select`; other shuffles are not changed."""
    shuffle = VectorShuffle.of(instruction)
    lanes, result = shuffle.mask[shuffle.defined], instruction.value
    if not len(lanes):
        _replace(_builder_at(module, function, instruction), instruction, Keyword(result.type, "undef"))
    elif (lanes == lanes[0]).all():
        b = _builder_at(module, function, instruction)
        scalar = splat_value(result, _replaced(function).definitions) or _first(b, shuffle)
        one = b.insert_element(Keyword(VectorType(1, scalar.type), "undef"), scalar, 0, "scalar")
        _repeat(b, instruction, one, (vector_width(result),), (0,))
    elif len(shuffle.operands) == 1 and shuffle.operands[0].type == result.type and _is_identity(shuffle):
        _replace(_builder_at(module, function, instruction), instruction, shuffle.operands[0])
    elif isinstance(blocks := strided_blocks_of(shuffle), LaneTable):
        if _is_choice(shuffle):
            _select_elements(_builder_at(module, function, instruction), instruction, shuffle)
    elif len(blocks) == 1 and blocks[0].start == 0:
        _as_transpose(
            _builder_at(module, function, instruction), instruction, shuffle.operands[blocks[0].operand], blocks[0]
        )


def _first(b: TensorBuilder, shuffle: VectorShuffle) -> Value:
    """The element that a shuffle repeats."""
    (operand,) = shuffle.operands
    return _element(b, operand, const_int(I64, int(shuffle.mask[shuffle.defined][0])))


def _is_identity(shuffle: VectorShuffle) -> bool:
    return bool(((shuffle.mask == np.arange(len(shuffle.mask))) | ~shuffle.defined).all())


def _is_choice(shuffle: VectorShuffle) -> bool:
    """Whether each element is in the same lane of one of two vectors."""
    count = len(shuffle.mask)
    stays = bool((shuffle.mask % count == np.arange(count))[shuffle.defined].all())
    return stays and [vector_width(operand) for operand in shuffle.operands] == [count, count]


def _select_elements(b: TensorBuilder, instruction: Instruction, shuffle: VectorShuffle) -> None:
    """Rewrite a shuffle as a `select` with a constant condition."""
    count = len(shuffle.mask)
    condition = const_vector([ConstInt(I1, int(lane < count)) for lane in shuffle.mask.tolist()])
    one, other = shuffle.operands
    _replace(b, instruction, b.select(condition, one, other))


def _as_transpose(b: TensorBuilder, instruction: Instruction, source: Value, block: StridedLanes) -> None:
    """Rewrite a shuffle that permutes dimensions, or repeats elements, if it is one."""
    extents = [extent for extent, _ in block.dims]
    strides = [stride for _, (stride, _) in block.dims]
    read = sorted((k for k, stride in enumerate(strides) if stride), key=lambda k: strides[k], reverse=True)
    shape = [extents[k] for k in read]
    if math.prod(shape) != vector_width(source) or math.prod(extents) != vector_width(instruction.value):
        return
    assert isinstance(source.type, VectorType)
    dense = TensorType.dense(source.type.element, shape)
    if dense.strides() != tuple(strides[k] for k in read):
        return
    if len(read) == len(extents):
        token = b.typeinfo(source, dense, "whole")
        _replace(b, instruction, b.transpose(token, [read.index(k) for k in range(len(read))]))
    elif read == sorted(read):
        _repeat(b, instruction, source, extents, read, shape)


def _repeat(
    b: TensorBuilder,
    shuffle: Instruction,
    source: Value,
    extents: Sequence[int],
    dims: Sequence[int],
    shape: Sequence[int] = (1,),
) -> None:
    """Rewrite a shuffle as a broadcast of a vector with a shape, whose dimensions become `dims` of the result."""
    assert isinstance(source.type, VectorType)
    token = b.typeinfo(source, TensorType.dense(source.type.element, shape), "repeated")
    _replace(b, shuffle, b.broadcast(token, extents, dims))


def _deinterleave(module: Module, function: Function, call: Instruction) -> None:
    """Rewrite each `extractvalue` of a deinterleaving as a shuffle that selects every n-th element."""
    factor = deinterleave_factor(call)
    is_used = False
    for use in _replaced(function).uses.get(str(call.result), []):
        extract = use.instruction
        if extract.opcode != "extractvalue":
            is_used = True
            continue
        b = _builder_at(module, function, extract)
        lanes = range(extract.indices[0], vector_width(call.args[0]), factor)
        deinterleaved = b.shuffle(call.args[0], None, lanes, "deinterleaved")
        shuffle = b.block.instructions[b.index - 1]
        _replace(b, extract, deinterleaved)
        _shuffle(module, function, shuffle)
    if not is_used:
        block = next(block for block in function.blocks if call in block.instructions)
        block.instructions.remove(call)


# Reductions ----------------------------------------------------------------------------------------------------------


def _reduction(module: Module, function: Function, call: Instruction) -> None:
    kind = str(call.callee).removeprefix(_REDUCE).split(".")[0]
    b = _builder_at(module, function, call)
    if kind in _KINDS:
        _replace(b, call, _reduce(b, _KINDS[kind], call.args[-1]))
    elif kind in _WITHOUT_NANS and {"nnan", "fast"} & set(call.flags):
        _replace(b, call, _reduce(b, _WITHOUT_NANS[kind], call.args[-1]))
    elif kind in _ORDERED and {"reassoc", "fast"} & set(call.flags):
        start, vector = call.args
        _replace(b, call, b.binary(kind, start, _reduce(b, _ORDERED[kind], vector), "reduced"))
    elif kind in _ORDERED:
        _in_order(b, call, call.args[0], lambda sum_, x: b.binary(kind, sum_, x, "reduced"))
    elif kind in _SCALAR_FUNCTIONS:
        start = _element(b, call.args[0], const_int(I64, 0))
        _in_order(
            b, call, start, lambda x, y: b.call_intrinsic(_SCALAR_FUNCTIONS[kind], [x.type], x.type, [x, y], "reduced")
        )


def _reduce(b: TensorBuilder, kind: str, vector: Value) -> Value:
    type_ = vector.type
    assert isinstance(type_, VectorType)
    assert isinstance(type_.element, (IntType, FloatType))
    token = b.typeinfo(vector, TensorType.dense(type_.element, (type_.count,)), "reduced")
    return b.extract_element(b.reduce(kind, token, (type_.count,), (1,)), 0, "reduced")


def _casts_to_integer(instruction: Instruction) -> bool:
    """Whether an instruction casts a large vector to an integer."""
    type_ = instruction.type
    return (
        instruction.opcode == "bitcast"
        and isinstance(type_, IntType)
        and exceeds_register_elements(instruction.operands[0].type)
    )


def _reduce_bits(module: Module, function: Function, bitcast: Instruction) -> None:
    """Rewrite comparisons and bit counts of an integer that is cast from a vector of i1 as reductions of the vector."""
    (truth,) = bitcast.operands
    if scalar_of(truth.type) != I1:
        return
    is_used = False
    for use in _replaced(function).uses.get(str(bitcast.result), []):
        user = use.instruction
        other = user.operands[1] if user.opcode == "icmp" and user.predicate in ("eq", "ne") else None
        if isinstance(other, ConstInt) and other.value in (0, -1):
            b = _builder_at(module, function, user)
            reduced = _reduce(b, "or" if other.value == 0 else "and", truth)
            is_same = (user.predicate == "ne") == (other.value == 0)
            _replace(b, user, reduced if is_same else b.binary("xor", reduced, ConstInt(I1, 1), "not"))
        elif (user.callee or "").startswith("llvm.ctpop."):
            _count_bits(_builder_at(module, function, user), user, truth)
        else:
            is_used = True
    if not is_used:
        block = next(block for block in function.blocks if bitcast in block.instructions)
        block.instructions.remove(bitcast)


def _count_bits(b: TensorBuilder, ctpop: Instruction, truth: Value) -> None:
    """Rewrite a bit count as a sum in i32, which is large enough: integers have less than 2^24 bits."""
    numbers = b.cast("zext", truth, VectorType(vector_width(truth), I32))
    count = _reduce(b, "add", numbers)
    is_used = False
    for use in _replaced(b.function).uses.get(str(ctpop.result), []):
        user = use.instruction
        if user.opcode == "trunc" and isinstance(user.type, IntType):
            at = _builder_at(b.module, b.function, user)
            _replace(at, user, at.cast("trunc" if user.type.bits < I32.bits else "zext", count, user.type))
        else:
            is_used = True
    if is_used:
        _replace(b, ctpop, b.cast("zext", count, ctpop.type))
    else:
        b.block.instructions.remove(ctpop)


def _in_order(b: TensorBuilder, call: Instruction, start: Value, combine: Callable[[Value, Value], Value]) -> None:
    """Rewrite a reduction as a loop over elements."""
    vector = call.args[-1]
    assert isinstance(vector.type, VectorType)
    tail = split_block(b.function, b.block, b.index, "reduced")
    with b.loop(0, vector.type.count, carry=[start], name="element") as loop:
        loop.next(combine(loop.carried[0], _element(b, vector, loop.index)))
    b.branch(tail)
    _record_replacement(b.function, call, loop.results[0])
    tail.instructions.remove(call)


def _element(b: TensorBuilder, vector: Value, index: Value) -> Value:
    assert isinstance(vector.type, VectorType)
    body = f"extractelement {vector.typed}, {index.typed}"
    return b.value("extractelement", vector.type.element, [vector, index], body, "element")


# Clean-up ------------------------------------------------------------------------------------------------------------


def _large_moves(function: Function) -> list[Instruction]:
    """Inserts into large vectors, and shuffles whose result is one."""
    return [
        i
        for i in function.instructions()
        if i.opcode in ("insertelement", "shufflevector") and exceeds_register_elements(i.type)
    ]


def insert_selected_elements(module: Module, function: Function) -> None:
    """Rewrite a `select` between a large vector with elements inserted and the vector itself as insertions."""
    selects = [
        (block, i)
        for block in function.blocks
        for i in block.instructions
        if i.opcode == "select" and exceeds_register_elements(i.type) and i.operands[0].type == I1
    ]
    known, used = (definitions(function), uses(function)) if selects else ({}, {})
    for block, select in selects:
        for inserted, vector in (select.operands[1:], select.operands[:0:-1]):
            chain = _insert_chain(inserted, vector, known, used)
            if chain:
                b = TensorBuilder(module, function, block, block.instructions.index(select))
                b.debug, b.span = select.debug_location, select.span
                _insert_selected(b, select, chain, inserted_first=inserted == select.operands[1])
                break


def _insert_chain(
    inserted: Value, vector: Value, known: Mapping[str, Instruction], used: Mapping[str, Sequence[Use]]
) -> list[Instruction]:
    """The chain of insertions from a vector to another one, each with one use; empty if there is no such chain."""
    chain: list[Instruction] = []
    while isinstance(inserted, Local) and inserted != vector:
        insert = known.get(inserted.name)
        if insert is None or insert.opcode != INSERT or len(used[inserted.name]) != 1:
            return []
        chain.insert(0, insert)
        inserted = insert.operands[0]
    return chain if inserted == vector else []


def _insert_selected(
    b: TensorBuilder, select: Instruction, inserts: Sequence[Instruction], *, inserted_first: bool
) -> None:
    """Emit the insertions in place of the `select`; the last one gets its name."""
    condition, vector = select.operands[0], inserts[0].operands[0]
    for insert in inserts:
        _, element, index = insert.operands
        if not isinstance(index, ConstInt):  # it may be poison if the vector without the element is selected
            index = b.value("freeze", index.type, [index], f"freeze {index.typed}", "index")
        old = b.value(
            "extractelement", element.type, [vector, index], f"extractelement {vector.typed}, {index.typed}", "old"
        )
        chosen = b.select(condition, *((element, old) if inserted_first else (old, element)), "selected")
        body = f"insertelement {vector.typed}, {chosen.typed}, {index.typed}"
        vector = b.value(INSERT, vector.type, [vector, chosen, index], body, "inserted")
    last = b.block.instructions[b.index - 1]
    last.text = last.text.replace(f"%{last.result} =", f"%{select.result} =", 1)
    last.result = select.result
    del b.block.instructions[b.index]
