"""How many elements a register holds: the same number in everything that is computed together.

    %x = i8 tile     %w = sext %x to i32    %y = fptrunc %z to bfloat        16 lanes all of them with 512 bits

What is as wide as the widest needs no cutting and joining in between: 16 bytes are loaded and extended at once.
Sums of products keep whole registers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tlx.ir.module import Function, Instruction
from tlx.ir.tensors import FunctionTensors, TensorOp
from tlx.ir.types import VectorType, scalar_of
from tlx.ir.values import Local
from tlx.lower.ordinary import UNARY, Operation, unary_bits, working_bits
from tlx.lower.signs import MMA_SIGNS

_LOADS: Final = frozenset({"tovector", "broadcast", "transpose"})


def lane_counts(
    function: Function, tensors: FunctionTensors, tiles: set[str], lanes_of_bits: Callable[[int], int]
) -> dict[str, int]:
    """Lanes of the registers of flattened vectors, by name, where users and makers decide.

    Args:
        function: The kernel.
        tensors: Its tensors.
        tiles: Names of its flattened vectors.
        lanes_of_bits: Elements of so many bits that a register has.
    """
    groups = _Groups()
    sums = _sums(tensors)
    for instruction in function.instructions():
        if instruction.result in tiles and instruction.result not in sums:
            groups.add(instruction, tensors.op_of(instruction), sums)
    return {name: lanes_of_bits(max(8, groups.bits[groups.root(name)])) for name in groups.parents}


def _sums(tensors: FunctionTensors) -> set[str]:
    """Names of the sums of products."""
    names: set[str] = set()
    for op in tensors.ops:
        if op.intrinsic.name in MMA_SIGNS:
            names.add(op.instruction.result or "")
            source = op.tensors[0].source
            names |= {source.name} if isinstance(source, Local) else set()
    return names


@dataclass(eq=False)
class _Groups:
    """Sets of values that are computed together, and the width of the widest element in each."""

    parents: dict[str, str] = field(default_factory=dict[str, str])
    bits: dict[str, int] = field(default_factory=dict[str, int])

    def root(self, name: str) -> str:
        while self.parents[name] != name:
            self.parents[name] = self.parents[self.parents[name]]
            name = self.parents[name]
        return name

    def add(self, instruction: Instruction, op: TensorOp | None, sums: set[str]) -> None:
        """An instruction joins the groups of its operands."""
        if op is not None:
            bits = self._bits_of_op(op)
            names = [t.source.name for t in op.tensors if t.kind == "value" and isinstance(t.source, Local)]
            names = [] if op.intrinsic.name == "broadcast" else names
        else:
            bits = self._bits_of_instruction(instruction)
            names = [o.name for o in instruction.operands if isinstance(o, Local) and isinstance(o.type, VectorType)]
        if bits is not None and instruction.result is not None:
            for name in [instruction.result, *names]:
                if name not in sums:
                    self._join(instruction.result, name, bits)

    def _bits_of_op(self, op: TensorOp) -> int | None:
        name = op.intrinsic.name
        if name not in UNARY | _LOADS:
            return None
        return working_bits(op.instruction.type, moved=True) if name in _LOADS else unary_bits(op.instruction.type)

    def _bits_of_instruction(self, instruction: Instruction) -> int | None:
        operation = Operation.of(instruction)
        vectors = [v.type for v in [*instruction.operands, instruction.value] if isinstance(v.type, VectorType)]
        if operation is not None:
            return operation.bits([scalar_of(v) for v in vectors])
        return working_bits(instruction.type, moved=True) if instruction.opcode == "phi" else None

    def _join(self, first: str, second: str, bits: int) -> None:
        for name in (first, second):
            self.parents.setdefault(name, name)
            self.bits.setdefault(name, 8)
        one, other = self.root(first), self.root(second)
        self.parents[other] = one
        self.bits[one] = max(self.bits[one], self.bits[other], bits)
