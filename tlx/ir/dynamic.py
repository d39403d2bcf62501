"""Tensors whose extents are known only at run time, and what their calls mean.

Their flattened type is `<vscale x 1 x T>`, which is no vector of vscale elements but a handle: it goes from one tensor
operation or elementwise instruction to the next. Extents, padding and pitches are values; rank, layout and element type
are known.

    %t = call token @llvm.tensor.load(ptr %p, <2 x i32> %shape, <2 x i32> <i32 0, i32 1>, ...)     DynamicTensor
    %c = call <vscale x 1 x float> @llvm.tensor.matmul(token %t, token %u)                         DynamicOp
    %d = fadd <vscale x 1 x float> %c, %c                                                          a handle, as %c is

A call is dynamic if one of its tensors is, if it returns a handle, or if a pitch is no constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from tlx.diagnostics import Note
from tlx.intrinsics import Kind, RuleError
from tlx.ir.dynamic_rules import check_dims, check_pitches, check_store_pitches
from tlx.ir.fold import Folder
from tlx.ir.module import Instruction
from tlx.ir.tensor_calls import ELEMENT_TYPES, Call, attribute_type, bad_element, operand_span, pointer_element
from tlx.ir.types import PointerType, Type, VectorType
from tlx.ir.values import Local, Value
from tlx.types import TensorType

if TYPE_CHECKING:
    from tlx.intrinsics import Intrinsic
    from tlx.ir.tensors import Tensor

_AT_RUN_TIME: Final = frozenset({"out_shape", "window", "strides", "low", "high", "interior", "new_shape"})
_DISTANCES: Final = frozenset({"low", "high", "interior"})


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


def is_dynamic_vector(type_: Type | None) -> bool:
    """Whether a type is that of handles."""
    return isinstance(type_, VectorType) and type_.scalable and type_.count == 1


def is_dynamic_token(call: Call, folder: Folder) -> bool:
    """Whether a call makes a token of a tensor with extents or pitches known only at run time."""
    source = call.instruction.args[0]
    if call.form[0].kind is Kind.POINTER:
        names = ("shape", "padding", "strides")
        return any(isinstance(v, Local) and o.name in names and folder.ints(v) is None for o, v in call.arguments)
    if isinstance(source.type, VectorType):
        return source.type.scalable
    pointee = attribute_type(call, source) or (source.type.pointee if isinstance(source.type, PointerType) else None)
    return isinstance(pointee, VectorType) and pointee.scalable


def is_dynamic_operation(call: Call, dynamic: Mapping[str, object], folder: Folder) -> bool:
    """Whether an operation has a tensor, a result or pitches that are known only at run time."""
    result = call.instruction.type
    if isinstance(result, VectorType) and result.scalable:
        return True
    if any(isinstance(v, Local) and v.name in dynamic for v in call.values(Kind.TENSOR)):
        return True
    pitches = call.named("strides") if call.intrinsic.result == "void" else None
    return isinstance(pitches, Local) and folder.ints(pitches) is None


def dynamic_element(call: Call) -> Type | None:
    """The element type that the call of a dynamic token tells; None where its users have to."""
    source = call.instruction.args[0]
    if call.form[0].kind is Kind.POINTER:
        return pointer_element(call, source)
    flat = source.type if isinstance(source.type, VectorType) else attribute_type(call, source)
    if flat is None and isinstance(source.type, PointerType):
        flat = source.type.pointee
    assert isinstance(flat, VectorType)
    if flat.count != 1:
        raise call.error(f"a tensor whose size is known only at run time is <vscale x 1 x T>, not {flat}", source)
    if flat.element not in ELEMENT_TYPES:
        raise call.error(bad_element(flat.element), source)
    return flat.element


def dynamic_tensor(
    call: Call, kind: Literal["value", "pointer", "load"], element: Type, folder: Folder
) -> DynamicTensor:
    """What the token that a call makes stands for.

    Raises:
        VerifyError: As far as they are known, shape, layout, padding and strides do not go together.
    """
    layout = check_dims(call, folder)
    if kind == "load":
        check_pitches(call, folder)
    shape, padding = call.named("shape"), call.named("padding")
    assert shape is not None
    assert padding is not None
    source = call.instruction.args[0]
    return DynamicTensor(element, layout, call.instruction, kind, source, shape, padding, call.named("strides"))


# Operations ----------------------------------------------------------------------------------------------------------


def dynamic_operation(
    call: Call, static: Mapping[str, Tensor], dynamic: Mapping[str, DynamicTensor], folder: Folder
) -> DynamicOp:
    """An operation on tensors of which some are dynamic.

    Raises:
        VerifyError: Ranks, element types or constant operands break the operation's rule.
    """
    names = [value.name for value in call.values(Kind.TENSOR) if isinstance(value, Local)]
    tensors = tuple(dynamic[name] if name in dynamic else static[name] for name in names)
    notes = _declared(call, tensors)
    dims = tuple(value for operand, value in call.arguments if operand.kind in (Kind.DIMS, Kind.INDEX))
    if call.intrinsic.result == "void":
        return _store(call, tensors, dims, notes, folder)
    like = _result_like(call, tensors, notes, folder)
    scalars = tuple(call.values(Kind.SCALAR))
    for scalar in scalars:
        if scalar.type != like.element:
            message = f"scalar is {scalar.type} and the tensor's elements are {like.element}"
            raise call.error(message, scalar, notes)
    return DynamicOp(call.instruction, call.intrinsic, tensors, dims, scalars, like)


def _store(
    call: Call,
    tensors: tuple[Tensor | DynamicTensor, ...],
    dims: tuple[Value, ...],
    notes: list[Note],
    folder: Folder,
) -> DynamicOp:
    (tensor,) = tensors
    pointer = call.values(Kind.POINTER)[0]
    element = pointer_element(call, pointer)
    if element not in (None, element_of(tensor)):
        message = f"{pointer.typed} takes {element} and the tensor has elements of type {element_of(tensor)}"
        raise call.error(message, pointer, notes)
    check_store_pitches(call, tensor, notes, folder)
    return DynamicOp(call.instruction, call.intrinsic, tensors, dims, (), None, pointer, dims[0])


def _result_like(
    call: Call, tensors: Sequence[Tensor | DynamicTensor], notes: list[Note], folder: Folder
) -> TensorType:
    """The result's type with all extents 1: what rules say of ranks, layouts and element types holds for it."""
    got = call.instruction.type
    if not isinstance(got, VectorType) or got.element not in ELEMENT_TYPES:
        raise call.error(bad_element(got.element if isinstance(got, VectorType) else got))
    if not got.scalable:
        name = next(t.definition.result for t in tensors if isinstance(t, DynamicTensor))
        reason = f"as the extents of %{name} are known at run time only"
        raise call.error(f"returns <vscale x 1 x {got.element}>, not {got}, {reason}", None, notes)
    if got.count != 1:
        raise call.error(f"returns <vscale x 1 x {got.element}>, not {got}", None, notes)
    if not any(isinstance(t, DynamicTensor) for t in tensors) and not _has_unknown_dims(call, folder):
        raise call.error(f"returns {got} though all extents are constants: return a vector of known size", None, notes)
    try:
        return call.intrinsic.infer([example(t) for t in tensors], _example_dims(call, folder), got.element)[0]
    except RuleError as broken:
        raise call.error(str(broken), call.named(broken.operand, broken.number), notes) from None
    except ValueError as broken:
        raise call.error(str(broken), None, notes) from None


def _example_dims(call: Call, folder: Folder) -> list[tuple[int, ...]]:
    """Operands that go with `example` tensors: constants, and for those that may be known at run time only 1 or 0."""
    found: list[tuple[int, ...]] = []
    for operand, value in call.arguments:
        if operand.kind not in (Kind.DIMS, Kind.INDEX):
            continue
        if operand.name in _AT_RUN_TIME and isinstance(value.type, VectorType):
            found.append((0 if operand.name in _DISTANCES else 1,) * value.type.count)
            continue
        numbers = constant_dims(operand.kind, value, folder)
        if numbers is None:
            raise call.error(f"operand {operand.name} must be a constant in every entry; {value} is not", value)
        found.append(numbers)
    return found


def _has_unknown_dims(call: Call, folder: Folder) -> bool:
    return any(
        operand.name in _AT_RUN_TIME and constant_dims(operand.kind, value, folder) is None
        for operand, value in call.arguments
        if operand.kind in (Kind.DIMS, Kind.INDEX)
    )


def constant_dims(kind: Kind, value: Value, folder: Folder) -> tuple[int, ...] | None:
    """The numbers of an operand that is a vector of i32 or an index; None where they are known at run time only."""
    if kind is Kind.DIMS:
        return folder.ints(value)
    number = folder.integer(value)
    return None if number is None else (number,)


def example(tensor: Tensor | DynamicTensor) -> TensorType:
    """The tensor's type with all extents 1."""
    layout = tensor.layout if isinstance(tensor, DynamicTensor) else tensor.type.layout
    return TensorType(element_of(tensor), (1,) * len(layout), layout, (0,) * len(layout))


def element_of(tensor: Tensor | DynamicTensor) -> Type:
    """The tensor's element type."""
    return tensor.element if isinstance(tensor, DynamicTensor) else tensor.type.element


def _declared(call: Call, tensors: Sequence[Tensor | DynamicTensor]) -> list[Note]:
    """Where the tensors of a call come from."""
    operands = [operand for operand in call.form if operand.kind is Kind.TENSOR]
    names = [f"{o.name}[{number}]" if o.repeated else o.name for number, o in enumerate(operands)]
    types = [tensor if isinstance(tensor, DynamicTensor) else tensor.type for tensor in tensors]
    return [
        Note(f"{name} is {type_}", operand_span(tensor.definition))
        for name, type_, tensor in zip(names, types, tensors, strict=True)
    ]
