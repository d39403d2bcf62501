"""Redundant load elimination: a register that a block has loaded a few loads before is not loaded again.

Rewrite of two taps of a depthwise convolution, whose tile has the channels of three pixels::

    %a0 = load %x            %a1 = load %x + 64       %a2 = load %x + 128        pixels 0, 1, 2 for the first tap
    %b0 = load %x + 64       %b1 = load %x + 128      %b2 = load %x + 192        pixels 1, 2, 3 for the second
    ->
    %a0 = load %x            %a1 = load %x + 64       %a2 = load %x + 128
    %b0 is %a1               %b1 is %a2               %b2 = load %x + 192

Each operand of a kernel has an address of its own. So kernels are inlined first: then addresses are sums of the same
terms. LLVM does not see that, and folds each load into the product that uses it; a register that is in two cache lines
takes two accesses.

Only the registers that were loaded or read last are remembered, half as many as the target has: the others hold sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction, may_write
from tlx.ir.rewrite import definitions, remove_dead, set_operand, uses
from tlx.ir.types import I64, FloatType, IntType, VectorType
from tlx.ir.values import ConstInt, Local, Value
from tlx.lower.memory.aliases import no_memory, size_of

_SHARE: Final = 2
"""One register in this many is remembered."""
_ARITHMETIC: Final = frozenset({"add", "mul"})
_ADDRESSES: Final = _ARITHMETIC | {"getelementptr"}

_Terms = dict[str, int]
"""Locals, each with its factor."""
_Key = tuple[str, int, frozenset[tuple[str, int]], str]
"""A register in memory: the base of its address, bytes from there, further terms in bytes, and its type."""


def remove_redundant_loads(function: Function, registers: int) -> None:
    """Remove the loads of a function whose register is still remembered.

    Args:
        function: The function, with its kernels inlined.
        registers: Vector registers of the target.
    """
    blocks = [block for block in function.blocks if sum(map(_loads_vector, block.instructions)) > 1]
    addresses = _Addresses(definitions(function)) if blocks else _Addresses({})
    replaced: dict[str, Value] = {}
    for block in blocks:
        _remove_in(block, addresses, registers // _SHARE, replaced)
    if not replaced:
        return
    used = uses(function)
    for name, register in replaced.items():
        for use in used.get(name, ()):
            set_operand(use.instruction, use.index, register)
    remove_dead(function, [i for i in function.instructions() if i.opcode in _ADDRESSES])


def _remove_in(block: Block, addresses: _Addresses, most: int, replaced: dict[str, Value]) -> None:
    """Remove the redundant loads of a block; `replaced` has the results of removed loads, and what replaces them."""
    held: dict[_Key, Local] = {}  # the register that was loaded or read last comes last
    remaining: list[Instruction] = []
    for instruction in block.instructions:
        if _loads_vector(instruction):
            key = addresses.key(instruction)
            register = held.pop(key, None)
            held[key] = instruction.value if register is None else register
            if len(held) > most:
                del held[next(iter(held))]
            if register is not None:
                replaced[str(instruction.result)] = register
                continue
        elif may_write(instruction) and not no_memory(instruction.callee or ""):
            held.clear()
        remaining.append(instruction)
    block.instructions = remaining


def _loads_vector(instruction: Instruction) -> bool:
    """Whether an instruction is a load of a vector register that is not volatile."""
    return instruction.opcode == "load" and isinstance(instruction.type, VectorType) and not may_write(instruction)


class _Addresses:
    """Addresses as sums of a base, a number of bytes, and locals times numbers of bytes."""

    def __init__(self, defined: Mapping[str, Instruction]) -> None:
        self._defined = defined
        self._known: dict[str, tuple[int, _Terms]] = {}

    def key(self, load: Instruction) -> _Key:
        """What a load reads."""
        pointer, constant, terms = load.operands[0], 0, _Terms()
        while isinstance(pointer, Local):
            gep = self._defined.get(pointer.name)
            if gep is None or gep.opcode != "getelementptr" or not isinstance(gep.source_type, IntType | FloatType):
                break
            size = size_of(gep.source_type)
            if size is None:
                break
            pointer, index = gep.operands
            start, factors = self._linear(index)
            constant += start * size
            _add(terms, factors, size)
        return str(pointer), constant, frozenset(terms.items()), str(load.type)

    def _linear(self, index: Value) -> tuple[int, _Terms]:
        """An index as a sum of a constant, and locals times constants."""
        if isinstance(index, ConstInt):
            return index.value, {}
        name = str(index)
        if name not in self._known:
            self._known[name] = self._expanded(index)
        return self._known[name]

    def _expanded(self, index: Value) -> tuple[int, _Terms]:
        definition = self._defined.get(index.name) if isinstance(index, Local) else None
        is_wide = index.type == I64  # a sum of fewer bits may wrap before it is extended
        if definition is not None and is_wide and definition.opcode in _ARITHMETIC:
            (start, terms), (other, others) = map(self._linear, definition.operands)
            if definition.opcode == "add":
                total = dict(terms)
                _add(total, others, 1)
                return start + other, total
            if not terms or not others:
                factor = other if terms else start
                scaled = terms or others
                return start * other, {name: factor * times for name, times in scaled.items()}
        return 0, {str(index): 1}


def _add(terms: _Terms, others: _Terms, factor: int) -> None:
    """Add other terms, each times a factor."""
    for name, times in others.items():
        terms[name] = terms.get(name, 0) + times * factor
