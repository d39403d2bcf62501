"""Checks calls on tensors whose extents are known only at run time.

Their flattened type is `<vscale x 1 x T>`: not a vector of vscale elements but a handle, which tensor operations and
elementwise instructions pass on. Extents, padding and pitches are values; rank, layout and element type are constant.

    %t = call token @llvm.tensor.load(ptr %p, <2 x i32> %shape, <2 x i32> <i32 0, i32 1>, ...)     DynamicTensor
    %c = call <vscale x 1 x float> @llvm.tensor.matmul(token %t, token %u)                         DynamicOp
    %d = fadd <vscale x 1 x float> %c, %c                                                          a handle, as %c is

A call is dynamic if one of its tensors is, if it returns a handle, or if a pitch is not constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from tlx.diagnostics import Note
from tlx.intrinsics import OperandKind, RuleError
from tlx.intrinsics.tensor_type import TensorType, vector_text
from tlx.ir.constant_folding import ConstantFolder
from tlx.ir.tensors.calls import (
    ELEMENT_TYPES,
    TensorCall,
    attribute_type,
    element_type_error,
    operand_span,
    pointer_element,
)
from tlx.ir.tensors.model import DynamicOp, DynamicTensor
from tlx.ir.types import PointerType, Type, VectorType
from tlx.ir.values import Local, Value

if TYPE_CHECKING:
    from tlx.ir.tensors.model import Tensor

KnownNumbers = Sequence[int | None]


def check_dynamic_dims(call: TensorCall, folder: ConstantFolder) -> tuple[int, ...]:
    """Check shape, layout and padding of a tensor; returns its layout.

    Raises:
        VerifyError: The layout is not a constant permutation, or known extents or paddings are invalid.
    """
    layout = _layout(call, folder)
    shape = known_numbers(call, "shape", folder)
    padding = known_numbers(call, "padding", folder)
    rank = len(shape)
    if len(layout) != rank or len(padding) != rank:
        message = f"shape has {rank} entries, layout {len(layout)} and padding {len(padding)}: "
        name = "layout" if len(layout) != rank else "padding"
        raise call.error(message + "a tensor needs one of each per dimension", call.named(name))
    if sorted(layout) != list(range(rank)):
        message = f"layout {vector_text(layout)} is not a permutation of 0 to {rank - 1}"
        raise call.error(message, call.named("layout"))
    for k, (extent, pad) in enumerate(zip(shape, padding, strict=True)):
        _check_dimension(call, k, extent, pad)
    return layout


def _check_dimension(call: TensorCall, k: int, extent: int | None, pad: int | None) -> None:
    if extent is not None and extent <= 0:
        message = f"shape has extent {extent} in dimension {k}: extents are at least 1"
        raise call.error(message, call.named("shape"))
    if pad is not None and (pad < 0 or (extent is not None and pad >= extent)):
        most = "" if extent is None else f" to {extent - 1}"
        raise call.error(f"padding {pad} of dimension {k} is outside 0{most}", call.named("padding"))


def _layout(call: TensorCall, folder: ConstantFolder) -> tuple[int, ...]:
    value = call.named("layout")
    assert value is not None
    layout = folder.ints(value)
    if layout is None:
        reason = f"{value} is not" if isinstance(value, Local) else f"got {value}"
        raise call.error(f"operand layout must be a constant in every entry; {reason}", value)
    return layout


def known_numbers(call: TensorCall, name: str, folder: ConstantFolder) -> KnownNumbers:
    """The entries of an operand, with None for those that are known only at run time.

    Raises:
        VerifyError: It is a constant with an undefined entry.
    """
    value = call.named(name)
    assert value is not None
    if not isinstance(value, Local) and folder.ints(value) is None:
        raise call.error(f"operand {name} needs a number in every entry; got {value}", value)
    numbers = folder.integer_lanes(value)
    count = value.type.count if isinstance(value.type, VectorType) else 1
    return numbers if numbers is not None else (None,) * count


def check_dynamic_pitches(call: TensorCall, folder: ConstantFolder) -> None:
    """Check that a load has a pitch for each dimension, and none that is known to be negative.

    Raises:
        VerifyError: They are wrong.
    """
    shape = call.named("shape")
    assert shape is not None
    assert isinstance(shape.type, VectorType)
    _check_strides(call, shape.type.count, known_numbers(call, "strides", folder))


def check_dynamic_store_pitches(
    call: TensorCall, tensor: Tensor | DynamicTensor, notes: Sequence[Note], folder: ConstantFolder
) -> None:
    """Check that a store has a pitch for each dimension, and none that is known to make rows overlap.

    Raises:
        VerifyError: They are wrong.
    """
    pitches = known_numbers(call, "strides", folder)
    extents = _known_extents(tensor, folder)
    _check_strides(call, len(extents), pitches)
    for k, (pitch, extent) in enumerate(zip(pitches, extents, strict=True)):
        if k and pitch and extent is not None and pitch < extent:
            message = f"stride {pitch} of dimension {k} is less than its extent {extent}: rows would overlap"
            raise call.error(message, call.named("strides"), notes)


def _check_strides(call: TensorCall, rank: int, pitches: KnownNumbers) -> None:
    if len(pitches) != rank:
        raise call.error(f"strides has {len(pitches)} entries, shape has {rank}", call.named("strides"))
    for k, pitch in enumerate(pitches):
        if pitch is not None and pitch < 0:
            raise call.error(f"stride {pitch} of dimension {k} is negative", call.named("strides"))


def _known_extents(tensor: Tensor | DynamicTensor, folder: ConstantFolder) -> KnownNumbers:
    """The number of positions with data in each memory dimension, if known."""
    from tlx.ir.tensors.model import DynamicTensor

    if not isinstance(tensor, DynamicTensor):
        return tensor.type.data_shape
    unknown = (None,) * tensor.rank
    shape, padding = folder.integer_lanes(tensor.shape) or unknown, folder.integer_lanes(tensor.padding) or unknown
    return [None if s is None or p is None else s - p for s, p in zip(shape, padding, strict=True)]


_RUN_TIME_OPERANDS: Final = frozenset({"out_shape", "window", "strides", "low", "high", "interior", "new_shape"})
_DISTANCES: Final = frozenset({"low", "high", "interior"})


def is_dynamic_vector(type_: Type | None) -> bool:
    """Whether a type is that of a handle, `<vscale x 1 x T>`."""
    return isinstance(type_, VectorType) and type_.scalable and type_.count == 1


def is_dynamic_token(call: TensorCall, folder: ConstantFolder) -> bool:
    """Whether a call makes a token whose extents or pitches are known only at run time."""
    source = call.instruction.args[0]
    if call.form[0].kind is OperandKind.POINTER:
        names = ("shape", "padding", "strides")
        return any(isinstance(v, Local) and o.name in names and folder.ints(v) is None for o, v in call.arguments)
    if isinstance(source.type, VectorType):
        return source.type.scalable
    pointee = attribute_type(call, source) or (source.type.pointee if isinstance(source.type, PointerType) else None)
    return isinstance(pointee, VectorType) and pointee.scalable


def is_dynamic_operation(call: TensorCall, dynamic: Mapping[str, object], folder: ConstantFolder) -> bool:
    """Whether an operation has a dynamic tensor, a dynamic result, or pitches known only at run time."""
    result = call.instruction.type
    if isinstance(result, VectorType) and result.scalable:
        return True
    if any(isinstance(v, Local) and v.name in dynamic for v in call.values(OperandKind.TENSOR)):
        return True
    pitches = call.named("strides") if call.intrinsic.result == "void" else None
    return isinstance(pitches, Local) and folder.ints(pitches) is None


def dynamic_element(call: TensorCall) -> Type | None:
    """The element type of a dynamic token by its call; None if it has to be inferred from the users."""
    source = call.instruction.args[0]
    if call.form[0].kind is OperandKind.POINTER:
        return pointer_element(call, source)
    flat = source.type if isinstance(source.type, VectorType) else attribute_type(call, source)
    if flat is None and isinstance(source.type, PointerType):
        flat = source.type.pointee
    assert isinstance(flat, VectorType)
    if flat.count != 1:
        raise call.error(f"a tensor whose size is known only at run time is <vscale x 1 x T>, not {flat}", source)
    if flat.element not in ELEMENT_TYPES:
        raise call.error(element_type_error(flat.element), source)
    return flat.element


def dynamic_tensor(
    call: TensorCall, kind: Literal["value", "pointer", "load"], element: Type, folder: ConstantFolder
) -> DynamicTensor:
    """The tensor of the token that a call makes.

    Raises:
        VerifyError: The known entries of shape, layout, padding and strides contradict each other.
    """
    layout = check_dynamic_dims(call, folder)
    if kind == "load":
        check_dynamic_pitches(call, folder)
    shape, padding = call.named("shape"), call.named("padding")
    assert shape is not None
    assert padding is not None
    source = call.instruction.args[0]
    return DynamicTensor(element, layout, call.instruction, kind, source, shape, padding, call.named("strides"))


# Operations ----------------------------------------------------------------------------------------------------------


def dynamic_operation(
    call: TensorCall, static: Mapping[str, Tensor], dynamic: Mapping[str, DynamicTensor], folder: ConstantFolder
) -> DynamicOp:
    """An operation on tensors, some of them dynamic.

    Raises:
        VerifyError: Ranks, element types or constant operands break the operation's rule.
    """
    names = [value.name for value in call.values(OperandKind.TENSOR) if isinstance(value, Local)]
    tensors = tuple(dynamic[name] if name in dynamic else static[name] for name in names)
    notes = _declared(call, tensors)
    dims = tuple(value for operand, value in call.arguments if operand.kind in (OperandKind.DIMS, OperandKind.INDEX))
    if call.intrinsic.result == "void":
        return _store(call, tensors, dims, notes, folder)
    like = _result_like(call, tensors, notes, folder)
    scalars = tuple(call.values(OperandKind.SCALAR))
    for scalar in scalars:
        if scalar.type != like.element:
            message = f"scalar is {scalar.type} and the tensor's elements are {like.element}"
            raise call.error(message, scalar, notes)
    return DynamicOp(call.instruction, call.intrinsic, tensors, dims, scalars, like)


def _store(
    call: TensorCall,
    tensors: tuple[Tensor | DynamicTensor, ...],
    dims: tuple[Value, ...],
    notes: list[Note],
    folder: ConstantFolder,
) -> DynamicOp:
    (tensor,) = tensors
    pointer = call.values(OperandKind.POINTER)[0]
    element = pointer_element(call, pointer)
    if element not in (None, element_type(tensor)):
        message = f"{pointer.typed} takes {element} and the tensor has elements of type {element_type(tensor)}"
        raise call.error(message, pointer, notes)
    check_dynamic_store_pitches(call, tensor, notes, folder)
    return DynamicOp(call.instruction, call.intrinsic, tensors, dims, (), None, pointer, dims[0])


def _result_like(
    call: TensorCall, tensors: Sequence[Tensor | DynamicTensor], notes: list[Note], folder: ConstantFolder
) -> TensorType:
    """The result's type with all extents 1, which determines its rank, layout and element type."""
    result = call.instruction.type
    if not isinstance(result, VectorType) or result.element not in ELEMENT_TYPES:
        raise call.error(element_type_error(result.element if isinstance(result, VectorType) else result))
    if not result.scalable:
        name = next(t.definition.result for t in tensors if isinstance(t, DynamicTensor))
        reason = f"as the extents of %{name} are known only at run time"
        raise call.error(f"returns <vscale x 1 x {result.element}>, not {result}, {reason}", None, notes)
    if result.count != 1:
        raise call.error(f"returns <vscale x 1 x {result.element}>, not {result}", None, notes)
    if not any(isinstance(t, DynamicTensor) for t in tensors) and not _has_unknown_dims(call, folder):
        message = f"returns {result} though all extents are constants: return a vector of known size"
        raise call.error(message, None, notes)
    try:
        types = [unit_type(tensor) for tensor in tensors]
        return call.intrinsic.infer(types, _placeholder_dims(call, folder), result.element)[0]
    except RuleError as broken:
        raise call.error(str(broken), call.named(broken.operand, broken.number), notes) from None
    except ValueError as broken:
        raise call.error(str(broken), None, notes) from None


def _placeholder_dims(call: TensorCall, folder: ConstantFolder) -> list[tuple[int, ...]]:
    """Operands that match `unit_type` tensors: constants as they are, run-time entries as 1 or 0."""
    placeholders: list[tuple[int, ...]] = []
    for operand, value in call.arguments:
        if operand.kind not in (OperandKind.DIMS, OperandKind.INDEX):
            continue
        if operand.name in _RUN_TIME_OPERANDS and isinstance(value.type, VectorType):
            placeholders.append((0 if operand.name in _DISTANCES else 1,) * value.type.count)
            continue
        numbers = constant_dims(operand.kind, value, folder)
        if numbers is None:
            raise call.error(f"operand {operand.name} must be a constant in every entry; {value} is not", value)
        placeholders.append(numbers)
    return placeholders


def _has_unknown_dims(call: TensorCall, folder: ConstantFolder) -> bool:
    return any(
        operand.name in _RUN_TIME_OPERANDS and constant_dims(operand.kind, value, folder) is None
        for operand, value in call.arguments
        if operand.kind in (OperandKind.DIMS, OperandKind.INDEX)
    )


def constant_dims(kind: OperandKind, value: Value, folder: ConstantFolder) -> tuple[int, ...] | None:
    """The numbers of an operand that is a vector of i32 or an index; None if they are known only at run time."""
    if kind is OperandKind.DIMS:
        return folder.ints(value)
    number = folder.integer(value)
    return None if number is None else (number,)


def unit_type(tensor: Tensor | DynamicTensor) -> TensorType:
    """The tensor's type with all extents 1."""
    layout = tensor.layout if isinstance(tensor, DynamicTensor) else tensor.type.layout
    return TensorType(element_type(tensor), (1,) * len(layout), layout, (0,) * len(layout))


def element_type(tensor: Tensor | DynamicTensor) -> Type:
    """The tensor's element type."""
    return tensor.element if isinstance(tensor, DynamicTensor) else tensor.type.element


def _declared(call: TensorCall, tensors: Sequence[Tensor | DynamicTensor]) -> list[Note]:
    """Notes that point to the definitions of a call's tensors."""
    operands = [operand for operand in call.form if operand.kind is OperandKind.TENSOR]
    names = [f"{o.name}[{number}]" if o.repeated else o.name for number, o in enumerate(operands)]
    types = [tensor if isinstance(tensor, DynamicTensor) else tensor.type for tensor in tensors]
    return [
        Note(f"{name} is {type_}", operand_span(tensor.definition))
        for name, type_, tensor in zip(names, types, tensors, strict=True)
    ]
