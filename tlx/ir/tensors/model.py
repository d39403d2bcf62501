"""Tensors and tensor operations of a function, as `tlx.ir.tensors.model.analysis` finds them.

    %a = call token @llvm.tensor.typeinfo(...)                       Tensor     a token: its type and where the data is
    %c = call <9 x float> @llvm.tensor.matmul(token %a, token %b)    TensorOp   the row of the table, its operands

Those with extents known only at run time are `DynamicTensor` and `DynamicOp`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tlx.intrinsics import Intrinsic
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.types import Type
from tlx.ir.values import Local, Value


@dataclass(frozen=True)
class Tensor:
    """What a token stands for.

    Attributes:
        type: Its type.
        definition: The call that makes the token.
        kind: `value`: `source` is the flattened vector; `pointer`: `source` points to it; `load`: `source` points to
            the first element and `pitches` tell where the others are.
        source: The flattened vector, or the pointer.
        pitches: Operand `strides` of a load as written (0 is dense, the first is ignored), None otherwise.
    """

    type: TensorType
    definition: Instruction
    kind: Literal["value", "pointer", "load"]
    source: Value
    pitches: tuple[int, ...] | None = None


@dataclass(frozen=True)
class TensorOp:
    """A tensor call that does something: an operation, or a store.

    Attributes:
        instruction: The call.
        intrinsic: Its row of the table.
        tensors: The operands that are tokens, in the table's order.
        dims: Values of the operands that are constant vectors (or a constant index, as a vector of one).
        scalars: The operands that are numbers.
        result: Type of the flattened vector it returns; None for a store.
        pointer: Of a store.
        pitches: Of a store: operand `strides` as written (0 is dense, the first is ignored).
    """

    instruction: Instruction
    intrinsic: Intrinsic
    tensors: tuple[Tensor, ...]
    dims: tuple[tuple[int, ...], ...]
    scalars: tuple[Value, ...]
    result: TensorType | None
    pointer: Value | None = None
    pitches: tuple[int, ...] | None = None


@dataclass(frozen=True)
class DynamicTensor:
    """What a token of a tensor with extents known only at run time stands for.

    Attributes:
        element: Its element type.
        layout: Its layout.
        definition: The call that makes the token.
        kind: As of `Tensor`.
        source: The handle, or the pointer.
        shape, padding: Operands of the call, vectors of i32 with an entry for each memory dimension.
        pitches: Operand `strides` of a load, None otherwise.
    """

    element: Type
    layout: tuple[int, ...]
    definition: Instruction
    kind: Literal["value", "pointer", "load"]
    source: Value
    shape: Value
    padding: Value
    pitches: Value | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.layout)

    def __str__(self) -> str:
        layout = "" if list(self.layout) == sorted(self.layout) else f", layout <{', '.join(map(str, self.layout))}>"
        return f"{'x'.join('?' * self.rank)} {self.element}{layout}"


@dataclass(frozen=True)
class DynamicOp:
    """An operation on tensors of which some have extents known only at run time, or a store.

    Attributes:
        instruction: The call.
        intrinsic: Its row of the table.
        tensors: The operands that are tokens, in the table's order.
        dims: The operands that are vectors of i32 or indices.
        scalars: The operands that are numbers.
        like: Element type, rank and layout of the result, with all extents 1; None for a store.
        pointer: Of a store.
        pitches: Of a store: its operand `strides`.
    """

    instruction: Instruction
    intrinsic: Intrinsic
    tensors: tuple[Tensor | DynamicTensor, ...]
    dims: tuple[Value, ...]
    scalars: tuple[Value, ...]
    like: TensorType | None
    pointer: Value | None = None
    pitches: Value | None = None


@dataclass(eq=False)
class DynamicTensors:
    """The tensors of a function whose extents are known only at run time.

    Attributes:
        tokens: What each token stands for, by the token's name without `%`.
        ops: In the order of the text.
        handles: The instructions that give handles, by name.
    """

    tokens: dict[str, DynamicTensor] = field(default_factory=dict[str, DynamicTensor])
    ops: list[DynamicOp] = field(default_factory=list[DynamicOp])
    handles: dict[str, Instruction] = field(default_factory=dict[str, Instruction])
    _by_call: dict[int, DynamicOp] = field(default_factory=dict[int, DynamicOp], repr=False)

    def __bool__(self) -> bool:
        return bool(self.tokens or self.ops)

    def op_of(self, instruction: Instruction) -> DynamicOp | None:
        """The operation that a call is."""
        if len(self._by_call) != len(self.ops):
            self._by_call = {id(op.instruction): op for op in self.ops}
        return self._by_call.get(id(instruction))


@dataclass(eq=False)
class FunctionTensors:
    """The tensors of a function.

    Attributes:
        function: The function.
        tokens: What each token stands for, by the token's name without `%`.
        ops: In the order of the text.
        dynamic: Those with extents or pitches known only at run time; they are not among `tokens` and `ops`.
    """

    function: Function
    tokens: dict[str, Tensor]
    ops: list[TensorOp]
    dynamic: DynamicTensors = field(default_factory=DynamicTensors)
    _by_call: dict[int, TensorOp] = field(default_factory=dict[int, TensorOp], repr=False)
    _by_result: dict[str, TensorOp] = field(default_factory=dict[str, TensorOp], repr=False)

    def __post_init__(self) -> None:
        self._by_call = {id(op.instruction): op for op in self.ops}
        self._by_result = {op.instruction.result: op for op in self.ops if op.instruction.result is not None}

    def op_of(self, instruction: Instruction) -> TensorOp | None:
        """The operation that a call is; None for other instructions and for calls that make tokens."""
        return self._by_call.get(id(instruction))

    def maker(self, tensor: Tensor) -> TensorOp | None:
        """The operation whose result a token stands for; None where it stands for anything else."""
        return self.maker_of(tensor.source) if tensor.kind == "value" else None

    def maker_of(self, value: Value) -> TensorOp | None:
        """The operation whose result a flattened vector is."""
        return self._by_result.get(value.name) if isinstance(value, Local) else None

    def token(self, value: Value) -> Tensor:
        """What a token operand stands for.

        Raises:
            KeyError: It is no token of this function.
        """
        return self.tokens[str(value).removeprefix("%")]

    def result_types(self) -> dict[str, TensorType]:
        """Types of the flattened vectors that operations return, by the vector's name without `%`."""
        return {
            op.instruction.result: op.result
            for op in self.ops
            if op.result is not None and op.instruction.result is not None
        }
