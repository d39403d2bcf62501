"""Tensor operations of a function as a graph: operations, their operands and types, and their tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from tlx.diagnostics import VerifyError
from tlx.intrinsics import Intrinsic
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.functions import Function
from tlx.ir.instructions import BINARY_OPCODES, CAST_OPCODES, Instruction
from tlx.ir.rewrite import definitions
from tlx.ir.tensors.calls import is_tensor_call, operand_span
from tlx.ir.types import PointerType, Type, VectorType
from tlx.ir.values import ConstExpr, Keyword, Local, Splat, Value


@dataclass(frozen=True, slots=True)
class Tensor:
    """The tensor of a token.

    Attributes:
        type: Its type.
        definition: The call that makes the token.
        kind: `value`: `source` is the flattened vector; `pointer`: `source` points to it; `load`: `source` points to
            the first element, and `pitches` determine the addresses of the others.
        source: The flattened vector, or the pointer.
        pitches: Operand `strides` of a load as written (0 is dense, the first is ignored); else None.
    """

    type: TensorType
    definition: Instruction
    kind: Literal["value", "pointer", "load"]
    source: Value
    pitches: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class TensorOp:
    """A tensor call that makes no token: an operation or a store.

    Attributes:
        instruction: The call.
        intrinsic: The row of the table.
        tensors: The tensors of the token operands, in the table's order.
        dims: Values of the operands that are constant vectors (or a constant index, as a vector of one).
        scalars: The scalar operands.
        result: Type of the flattened vector it returns; None for a store.
        pointer: The address that a store writes to.
        pitches: Operand `strides` of a store as written (0 is dense, the first is ignored).
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
    """The tensor of a token whose extents are known only at run time.

    Attributes:
        element: Its element type.
        layout: Its layout.
        definition: The call that makes the token.
        kind: As of `Tensor`.
        source: The handle, or the pointer.
        shape, padding: Operands of the call, vectors of i32 with an entry for each memory dimension.
        pitches: Operand `strides` of a load; else None.
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
    """An operation or a store whose tensors, some at least, have extents known only at run time.

    Attributes:
        instruction: The call.
        intrinsic: The row of the table.
        tensors: The tensors of the token operands, in the table's order.
        dims: The operands that are vectors of i32 or indices.
        scalars: The scalar operands.
        like: Element type, rank and layout of the result, with all extents 1; None for a store.
        pointer: The address that a store writes to.
        pitches: Operand `strides` of a store.
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
        tokens: The tensor of each token, by the token's name without `%`.
        ops: The operations, in the order of the text.
        handles: The instructions whose results are handles, by name.
        uniforms: Names of the results of elementwise instructions on splats alone, which are splats, too.
    """

    tokens: dict[str, DynamicTensor] = field(default_factory=dict[str, DynamicTensor])
    ops: list[DynamicOp] = field(default_factory=list[DynamicOp])
    handles: dict[str, Instruction] = field(default_factory=dict[str, Instruction])
    uniforms: set[str] = field(default_factory=set[str])
    _by_call: dict[int, DynamicOp] = field(default_factory=dict[int, DynamicOp], repr=False)

    def __bool__(self) -> bool:
        return bool(self.tokens or self.ops)

    def op_of(self, instruction: Instruction) -> DynamicOp | None:
        """The operation of a call; None for other instructions."""
        if len(self._by_call) != len(self.ops):
            self._by_call = {id(op.instruction): op for op in self.ops}
        return self._by_call.get(id(instruction))


@dataclass(eq=False)
class FunctionTensors:
    """The tensors of a function.

    Attributes:
        tokens: The tensor of each token, by the token's name without `%`.
        ops: The operations, in the order of the text.
        dynamic: The tensors and operations with extents or pitches known only at run time; the others are in `tokens`
            and `ops`.
    """

    tokens: dict[str, Tensor]
    ops: list[TensorOp]
    dynamic: DynamicTensors = field(default_factory=DynamicTensors)
    _by_call: dict[int, TensorOp] = field(default_factory=dict[int, TensorOp], repr=False)
    _by_result: dict[str, TensorOp] = field(default_factory=dict[str, TensorOp], repr=False)

    def __post_init__(self) -> None:
        self._by_call = {id(op.instruction): op for op in self.ops}
        self._by_result = {op.instruction.result: op for op in self.ops if op.instruction.result is not None}

    def op_of(self, instruction: Instruction) -> TensorOp | None:
        """The operation of a call; None for other instructions and for calls that make tokens."""
        return self._by_call.get(id(instruction))

    def definition(self, tensor: Tensor) -> TensorOp | None:
        """The operation whose result is the tensor of a token; None for other tensors."""
        return self.definition_of(tensor.source) if tensor.kind == "value" else None

    def definition_of(self, value: Value) -> TensorOp | None:
        """The operation whose result a flattened vector is."""
        return self._by_result.get(value.name) if isinstance(value, Local) else None

    def token(self, value: Value) -> Tensor:
        """The tensor of a token operand.

        Raises:
            KeyError: It is not a tensor's token in this function.
        """
        return self.tokens[str(value).removeprefix("%")]

    def result_types(self) -> dict[str, TensorType]:
        """Types of the flattened vectors that operations return, by the vector's name without `%`."""
        return {
            op.instruction.result: op.result
            for op in self.ops
            if op.result is not None and op.instruction.result is not None
        }


_CASTS: Final = CAST_OPCODES - {"ptrtoint", "ptrtoaddr", "inttoptr", "addrspacecast", "bitcast"}
ELEMENTWISE_OPCODES: Final = frozenset({*BINARY_OPCODES, *_CASTS, "fneg", "freeze", "icmp", "fcmp", "select"})
ELEMENTWISE_FUNCTIONS: Final = frozenset(
    "fma fmuladd fabs sqrt floor ceil trunc rint nearbyint round roundeven copysign canonicalize minnum maxnum "
    "minimum maximum minimumnum maximumnum smax smin umax umin abs ctpop ctlz cttz bswap bitreverse fshl fshr "
    "sadd.sat ssub.sat uadd.sat usub.sat sshl.sat ushl.sat exp exp2 exp10 log log2 log10 sin cos tan asin acos atan "
    "atan2 sinh cosh tanh pow powi ldexp fptosi.sat fptoui.sat lrint llrint lround llround scmp ucmp is.fpclass "
    "convert.from.arbitrary.fp convert.to.arbitrary.fp".split()
)
"""LLVM's intrinsics that act element by element, without `llvm.`."""


def find_handles(function: Function, results: Iterable[Instruction]) -> dict[str, Instruction]:
    """The instructions whose results are handles, by name.

    Args:
        function: The function.
        results: The tensor operations that return handles.
    """
    handles = {i.result: i for i in results if i.result is not None}
    candidates = [i for i in function.instructions() if is_elementwise_on_handles(i)] if handles else []
    size = -1
    while len(handles) != size:
        size = len(handles)
        for i in candidates:
            if i.result is not None and any(_is_handle(o, handles) for o in i.operands):
                handles[i.result] = i
    return {i.result: i for i in function.instructions() if i.result is not None and i.result in handles}


def find_uniforms(function: Function, handles: dict[str, Instruction]) -> set[str]:
    """The names of instructions on splats alone, whose results take the place of a handle.

    Raises:
        VerifyError: A handle is used by an instruction that is not elementwise, or together with a scalable vector that
            is not a splat.
    """
    if not handles:
        return set()
    defined = definitions(function)
    on_handles = [i for i in function.instructions() if is_elementwise_on_handles(i) or _repeats_first_lane(i)]
    candidates = [i for i in on_handles if i.opcode != "phi" and i.result not in handles]
    uniforms: set[str] = set()
    size = -1
    while len(uniforms) != size:
        size = len(uniforms)
        for i in candidates:
            if i.result is not None and all(_is_uniform(o, defined, uniforms) for o in elementwise_operands(i)):
                uniforms.add(i.result)
    for instruction in function.instructions():
        _check_uses(instruction, handles, defined, uniforms)
    return uniforms


def elementwise_operands(instruction: Instruction) -> list[Value]:
    """The operands of an elementwise instruction, without the callee."""
    return instruction.args if instruction.is_call else instruction.operands


def is_elementwise_on_handles(instruction: Instruction) -> bool:
    """Whether an instruction on handles returns a handle: it is elementwise, or a phi."""
    if not is_handle_type(instruction.type):
        return False
    return (
        instruction.opcode in ELEMENTWISE_OPCODES
        or instruction.opcode == "phi"
        or elementwise_name(instruction) is not None
    )


def elementwise_name(instruction: Instruction) -> str | None:
    """`fma` of a call of `llvm.fma.nxv1f32`; None for other instructions."""
    callee = instruction.callee or ""
    stem = callee.strip('"').removeprefix("llvm.").split(".nxv1", 1)[0]
    return (
        stem if instruction.opcode == "call" and callee.startswith("llvm.") and stem in ELEMENTWISE_FUNCTIONS else None
    )


def is_handle_type(type_: Type) -> bool:
    """Whether a type is `<vscale x 1 x T>`, with elements that are numbers."""
    if not isinstance(type_, VectorType) or isinstance(type_.element, PointerType):
        return False
    return type_.scalable and type_.count == 1


def _is_handle(value: Value, handles: dict[str, Instruction]) -> bool:
    return isinstance(value, Local) and value.name in handles


def _check_uses(
    instruction: Instruction, handles: dict[str, Instruction], defined: dict[str, Instruction], uniforms: set[str]
) -> None:
    used = [o for o in instruction.operands if _is_handle(o, handles)]
    if instruction.result in handles and not is_tensor_call(instruction):
        for operand in elementwise_operands(instruction):
            if not is_handle_type(operand.type) or _is_handle(operand, handles):
                continue
            if instruction.opcode == "phi" or not _is_uniform(operand, defined, uniforms):
                message = f"{operand} is not the result of a tensor operation, so its number of elements is unknown"
                raise VerifyError(message, operand_span(instruction, operand))
    elif used and not is_tensor_call(instruction) and not instruction.is_debug:
        what = f"@{instruction.callee}" if instruction.callee else f"'{instruction.opcode}'"
        message = (
            f"{used[0]} is the handle of a tensor whose size is known only at run time: "
            f"llvm.tensor.typeinfo and elementwise instructions take it, {what} does not"
        )
        raise VerifyError(message, operand_span(instruction, used[0]))


def _is_uniform(value: Value, defined: dict[str, Instruction], uniforms: set[str]) -> bool:
    """Whether an operand is not a vector, a splat, or an expression of splats."""
    if not is_handle_type(value.type) or (isinstance(value, Local) and value.name in uniforms):
        return True
    return first_lane_scalar(value, defined) is not None


def _repeats_first_lane(instruction: Instruction) -> bool:
    is_shuffle = instruction.opcode == "shufflevector" and is_handle_type(instruction.type)
    return is_shuffle and str(instruction.operands[2]) == "zeroinitializer"


def first_lane_scalar(value: Value, definitions: dict[str, Instruction]) -> Value | None:
    """The scalar of a splat, or of the only lane of a vector that is not poison, which may become a splat of it.

    LLVM's optimiser computes such vectors before it repeats their first lanes.
    """
    inserted = _operands(value, "insertelement", definitions)
    if inserted is not None and str(inserted[2]) == "0" and str(inserted[0]) in ("undef", "poison"):
        return inserted[1]
    return uniform_scalar(value, definitions)


def uniform_scalar(value: Value, definitions: dict[str, Instruction]) -> Value | None:
    """The scalar of a splat; None for other values.

    `splat (T x)`, `zeroinitializer`, and the shuffle of an `insertelement` into lane 0.
    """
    from tlx.ir.values import zero

    if isinstance(value, Splat):
        return value.element
    element = value.type.element if isinstance(value.type, VectorType) else value.type
    if isinstance(value, Keyword):
        return zero(element) if value.word == "zeroinitializer" else Keyword(element, value.word)
    operands = _operands(value, "shufflevector", definitions)
    if operands is None or str(operands[2]) not in ("zeroinitializer", "undef", "poison"):
        return None
    inserted = _operands(operands[0], "insertelement", definitions)
    return inserted[1] if inserted is not None and str(inserted[2]) == "0" else None


def _operands(value: Value, opcode: str, definitions: dict[str, Instruction]) -> list[Value] | None:
    if isinstance(value, ConstExpr):
        return list(value.operands) if value.opcode == opcode else None
    definition = definitions.get(value.name) if isinstance(value, Local) else None
    return definition.operands if definition is not None and definition.opcode == opcode else None
