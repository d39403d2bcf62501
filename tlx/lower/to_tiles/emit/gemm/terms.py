"""The terms of a sum of products: the loop over them, and the offsets of their operands."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from tlx.ir.builder.instructions import LoopState
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.module import Raw
from tlx.ir.types import I64, ArrayType
from tlx.ir.values import Aggregate, ConstInt, Global, Value

Offset = tuple[int, int]
"""Of A and of B, in elements."""


@dataclass(eq=False)
class SumTerms:
    """The terms of a sum of products in one kernel.

    C = f(sum over s of A[s] @ B[s])        for s: for k: acc += A[s][tile, k] @ B[s][k, panel]

    The accumulators stay in registers throughout. `A[s]` begins `offsets[s][0]` elements after `A[0]`, and `B[s]`
    `offsets[s][1]` elements after `B[0]`; offsets that are not linear in `s` are read from a table. A single product is
    a sum of one term.

    Attributes:
        b: The builder.
        offsets: Element offsets of each term's operands from those of the first.
    """

    b: TensorBuilder
    offsets: tuple[Offset, ...]
    _tables: dict[int, Global] = field(default_factory=dict[int, Global])

    @property
    def count(self) -> int:
        """Number of terms."""
        return len(self.offsets)

    def loop(self, carry: Sequence[Value] = ()) -> AbstractContextManager[LoopState]:
        """The loop over the terms; no loop for one term."""
        return self.b.loop(0, self.count, carry=carry, name="s")

    def offset(self, operand: int, index: Value) -> Value:
        """Elements from the first term's operand (0: A, 1: B) to that of another."""
        offsets = [pair[operand] for pair in self.offsets]
        step = offsets[1] if self.count > 1 else 0
        if offsets == [i * step for i in range(self.count)]:
            return self.b.mul(index, step)
        if isinstance(index, ConstInt):
            return ConstInt(I64, offsets[index.value])
        if operand not in self._tables:
            self._tables[operand] = self._table(offsets)
        return self.b.load(I64, self.b.gep(I64, self._tables[operand], index), 8, "offset")

    def _table(self, offsets: Sequence[int]) -> Global:
        module = self.b.module
        name = module.global_names.fresh("tlx.offsets")
        type_ = ArrayType(len(offsets), I64)
        value = Aggregate(type_, tuple(ConstInt(I64, offset) for offset in offsets), "[")
        module.append(Raw(f"\n\n@{name} = private unnamed_addr constant {value.typed}, align 64"))
        return Global(module.pointer_to(type_), name)
