"""What the tensor calls of a function mean: the tensor type of every token, the operands of every operation.

Verifier, evaluator and lowering all start from `analyse`; it checks every rule of the intrinsics on the way, so what it
returns is consistent and what it cannot accept is a `VerifyError` that points at the call.

    %a = call token @llvm.tensor.typeinfo(...)    Tensor      a token: its type and where the data is
    %c = call <9 x float> @llvm.tensor.matmul(token %a, token %b)
                                                  TensorOp    the row of the table, its tensors, dims and result
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

from tlx.diagnostics import Note, VerifyError
from tlx.intrinsics import Intrinsic, Kind, Operand, RuleError, extents_text
from tlx.ir.dynamic import (
    DynamicTensors,
    dynamic_element,
    dynamic_operation,
    dynamic_tensor,
    is_dynamic_operation,
    is_dynamic_token,
)
from tlx.ir.dynamic_handles import find_handles
from tlx.ir.element_types import ElementTypes, PendingToken
from tlx.ir.fold import Folder
from tlx.ir.module import Function, Instruction, Module
from tlx.ir.tensor_calls import (
    ELEMENT_TYPES,
    Call,
    attribute_type,
    bad_element,
    is_tensor_call,
    operand_span,
    pointer_element,
    tensor_call,
)
from tlx.ir.types import TOKEN, VOID, ArrayType, PointerType, VectorType, is_scalar_number
from tlx.ir.values import Keyword, Local, Value
from tlx.types import TensorType, tensor_type, type_problem, vector_text

_NUMBERS: Final = (Kind.DIMS, Kind.INDEX)
_RESULTS: Final = {"token": TOKEN, "void": VOID}


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


def analyse(module: Module, function: Function) -> FunctionTensors:
    """Type every token and every operation of a function.

    Raises:
        VerifyError: A rule is broken, or something is not supported; it points at the call, its notes at the
            definitions of the tensors.
    """
    state = [(instruction, instruction.text) for instruction in function.instructions()]
    known = function.facts.get(FunctionTensors)
    if isinstance(known, _Known) and known.module is module and known.state == state:
        return known.tensors
    tensors = _Analysis(module, function).run()
    function.facts[FunctionTensors] = _Known(module, state, tensors)
    return tensors


@dataclass(frozen=True, slots=True)
class _Known:
    """What was found out about a function, and the instructions and their texts that it is true of."""

    module: Module
    state: list[tuple[Instruction, str]]
    tensors: FunctionTensors


class _Analysis:
    """One run over a function: calls, then tokens, then element types of loads, then operations."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module = module
        self.function = function
        self.definitions = {i.result: i for i in function.instructions() if i.result is not None}
        self.folder = Folder(function, module, self.definitions)
        self.tokens: dict[str, PendingToken] = {}
        self.dynamic_tokens: list[str] = []
        self.operations: list[Call] = []

    def run(self) -> FunctionTensors:
        for call in self._calls():
            if call.intrinsic.result == "token":
                self.tokens[str(call.instruction.result)] = self._token(call)
            else:
                self.operations.append(call)
        for call in self.operations:
            for value in call.values(Kind.TENSOR):
                self._check_token(call, value)
        self._check_users()
        ElementTypes(self.tokens, self.operations).solve()
        tensors = {n: _tensor(token) for n, token in self.tokens.items() if n not in self.dynamic_tokens}
        dynamic = self._dynamic(tensors)
        operations = [self._operation(c, tensors) for c in self.operations if dynamic.op_of(c.instruction) is None]
        return FunctionTensors(self.function, tensors, operations, dynamic)

    def _check_users(self) -> None:
        """Only tensor operations take tensors' tokens."""
        for instruction in self.function.instructions():
            if is_tensor_call(instruction):
                continue
            for value in instruction.operands:
                if value.type == TOKEN and isinstance(value, Local) and value.name in self.tokens:
                    message = f"{value} stands for a tensor: only llvm.tensor.* take it, not this {instruction.opcode}"
                    note = Note("defined here", operand_span(self.definitions[str(value).removeprefix("%")]))
                    raise VerifyError(message, operand_span(instruction, value), [note])

    def _dynamic(self, static: dict[str, Tensor]) -> DynamicTensors:
        """The tensors and operations with extents known only at run time."""
        found = DynamicTensors()
        for name in self.dynamic_tokens:
            token = self.tokens[name]
            found.tokens[name] = dynamic_tensor(token.call, token.kind, token.checked_element, self.folder)
        calls = [c for c in self.operations if is_dynamic_operation(c, found.tokens, self.folder)]
        found.ops = [dynamic_operation(c, static, found.tokens, self.folder) for c in calls]
        found.handles = find_handles(self.function, [op.instruction for op in found.ops])
        for name, tensor in found.tokens.items():
            if tensor.kind == "value" and str(tensor.source).removeprefix("%") not in found.handles:
                message = f"{tensor.source} is no result of a tensor operation, so its number of elements is not known"
                raise self.tokens[name].call.error(message, tensor.source)
        return found

    def _calls(self) -> Iterator[Call]:
        for instruction in self.function.instructions():
            call = tensor_call(instruction)
            if call is None:
                continue
            self._check_result(call)
            yield call

    def _check_result(self, call: Call) -> None:
        """The kind of the result; an operation's exact type is checked with its operands."""
        got = call.instruction.type
        expected = call.intrinsic.result
        if expected == "vector" and not isinstance(got, VectorType):
            raise call.error(f"returns a flattened vector, not {got}")
        if expected != "vector" and got != _RESULTS[expected]:
            raise call.error(f"returns {expected}, not {got}")

    # Operands --------------------------------------------------------------------------------------------------

    def _dims(self, call: Call) -> tuple[tuple[int, ...], ...]:
        return tuple([self._numbers(call, o, value) for o, value in call.arguments if o.kind in _NUMBERS])

    def _numbers(self, call: Call, operand: Operand, value: Value) -> tuple[int, ...]:
        if operand.kind is Kind.INDEX:
            number = self.folder.integer(value)
            if number is None:
                raise call.error(f"operand {operand.name} must be a constant, got {value}", value)
            return (number,)
        numbers = self.folder.ints(value)
        if numbers is not None:
            return numbers
        if isinstance(value, Local):
            reason = f"{value} is not; a tensor whose size is known only at run time is a <vscale x 1 x T>"
        else:
            reason = f"got {value}"
        raise call.error(f"operand {operand.name} must be a constant in every entry; {reason}", value)

    def _check_token(self, call: Call, value: Value) -> None:
        if isinstance(value, Local) and value.name in self.tokens:
            return
        name = next(operand.name for operand, given in call.arguments if given is value)
        if isinstance(value, Keyword):
            raise call.error(f"operand {name} is {value}, which stands for no tensor", value)
        definition = self.definitions.get(value.name) if isinstance(value, Local) else None
        if definition is None:
            raise call.error(f"operand {name} is {value}, which is not defined in @{self.function.name}", value)
        note = Note("defined here", operand_span(definition))
        maker = f"@{definition.callee}" if definition.callee else definition.opcode
        raise call.error(f"operand {name} is {value}, a token of {maker}, which makes no tensor", value, [note])

    # Tokens ----------------------------------------------------------------------------------------------------

    def _token(self, call: Call) -> PendingToken:
        if is_dynamic_token(call, self.folder):
            return self._dynamic_token(call)
        dims = self._dims(call)
        self._check_dims(call, dims)
        source = call.instruction.args[0]
        if call.form[0].kind is Kind.POINTER:
            return PendingToken(call, "load", source, dims, pointer_element(call, source))
        if isinstance(source.type, VectorType):
            self._check_flat(call, source, source.type, dims[0])
            return PendingToken(call, "value", source, dims, source.type.element)
        flat = self._pointee_vector(call, source)
        self._check_flat(call, source, flat, dims[0])
        return PendingToken(call, "pointer", source, dims, flat.element)

    def _dynamic_token(self, call: Call) -> PendingToken:
        source = call.instruction.args[0]
        self.dynamic_tokens.append(str(call.instruction.result))
        is_load = call.form[0].kind is Kind.POINTER
        kind = "load" if is_load else "value" if isinstance(source.type, VectorType) else "pointer"
        return PendingToken(call, kind, source, (), dynamic_element(call))

    def _check_dims(self, call: Call, dims: Sequence[Sequence[int]]) -> None:
        problem = type_problem(*dims[:3])
        if problem:
            raise call.error(problem, _dims_to_blame(call, dims))
        if len(dims) == 4:
            self._check_pitches(call, dims[0], dims[3])

    def _check_pitches(self, call: Call, shape: Sequence[int], pitches: Sequence[int]) -> None:
        """Pitches of a load or store: one a dimension, none negative, no address beyond 64 bits."""
        if _are_pitches(tuple(shape), tuple(pitches)):
            return
        value = call.named("strides")
        if len(pitches) != len(shape):
            raise call.error(f"strides has {len(pitches)} entries, shape {extents_text(shape)} has {len(shape)}", value)
        for dimension, pitch in enumerate(pitches):
            if pitch < 0:
                raise call.error(f"stride {pitch} of dimension {dimension} is negative", value)
        message = f"strides {vector_text(pitches)} of shape {extents_text(shape)} reach beyond 64 bits"
        raise call.error(message, value)

    def _check_flat(self, call: Call, source: Value, flat: VectorType, shape: Sequence[int]) -> None:
        if flat.element not in ELEMENT_TYPES:
            raise call.error(bad_element(flat.element), source)
        count = math.prod(shape)
        if flat.count != count:
            raise call.error(f"expected {count} elements for shape {extents_text(shape)}, got {flat}", source)

    def _pointee_vector(self, call: Call, source: Value) -> VectorType:
        """The flattened vector that a pointer operand of typeinfo points to."""
        pointee = attribute_type(call, source)
        if pointee is None and isinstance(source.type, PointerType):
            pointee = source.type.pointee
        if isinstance(pointee, ArrayType) and is_scalar_number(pointee.element):
            return VectorType(pointee.count, pointee.element)
        if isinstance(pointee, VectorType):
            return pointee
        got = f"points to {pointee}" if pointee is not None else "does not say what it points to"
        message = f"{source.typed} {got}: write elementtype(<E x T>) in front of it"
        raise call.error(message, source)

    # Operations ------------------------------------------------------------------------------------------------

    def _operation(self, call: Call, known: dict[str, Tensor]) -> TensorOp:
        values = call.values(Kind.TENSOR)
        tensors = tuple(known[value.name] for value in values if isinstance(value, Local))
        dims = self._dims(call)
        if call.intrinsic.result == "void":
            return self._store(call, tensors, dims)
        scalars = tuple(call.values(Kind.SCALAR))
        result = self._result(call, tensors, dims)
        for operand, value in call.arguments:
            if operand.kind is Kind.SCALAR and value.type != result.element:
                message = f"{operand.name} is {value.type} and the tensor's elements are {result.element}"
                raise call.error(message, value, _declared(call, tensors))
        return TensorOp(call.instruction, call.intrinsic, tensors, dims, scalars, result)

    def _store(self, call: Call, tensors: tuple[Tensor, ...], dims: tuple[tuple[int, ...], ...]) -> TensorOp:
        type_ = tensors[0].type
        pointer = call.values(Kind.POINTER)[0]
        pitches = dims[0]
        self._check_pitches(call, type_.shape, pitches)
        for dimension, (pitch, extent) in enumerate(zip(pitches, type_.data_shape, strict=True)):
            if dimension and pitch and pitch < extent:
                message = (
                    f"stride {pitch} of dimension {dimension} is less than its extent {extent}: rows would overlap"
                )
                raise call.error(message, call.named("strides"), _declared(call, tensors))
        element = pointer_element(call, pointer)
        if element not in (None, type_.element):
            raise call.error(
                f"{pointer.typed} takes {element} and the tensor is {type_}", pointer, _declared(call, tensors)
            )
        return TensorOp(call.instruction, call.intrinsic, tensors, dims, (), None, pointer, pitches)

    def _result(self, call: Call, tensors: tuple[Tensor, ...], dims: tuple[tuple[int, ...], ...]) -> TensorType:
        got = call.instruction.type
        if not isinstance(got, VectorType) or got.element not in ELEMENT_TYPES:
            raise call.error(bad_element(got.element if isinstance(got, VectorType) else got))
        try:
            allowed = call.intrinsic.infer([tensor.type for tensor in tensors], dims, got.element)
        except ValueError as broken:
            blamed = call.named(broken.operand, broken.number) if isinstance(broken, RuleError) else None
            raise call.error(str(broken), blamed, _declared(call, tensors)) from None
        fitting = [type_ for type_ in allowed if type_.vector == got]
        if not fitting:
            raise call.error(f"returns {_choices(allowed)}, not {got}", None, _declared(call, tensors))
        if len(fitting) > 1 and fitting[0].is_padded:
            kept = " or ".join(vector_text(type_.padding) for type_ in fitting)
            message = f"{got} may keep padding {kept}: drop or keep all padding of the result"
            raise call.error(message, None, _declared(call, tensors))
        return fitting[0]


@lru_cache(maxsize=4096)
def _are_pitches(shape: tuple[int, ...], pitches: tuple[int, ...]) -> bool:
    """Whether `pitches` go with a shape."""
    if len(pitches) != len(shape) or min(pitches) < 0:
        return False
    sizes = [shape[0], *(p or s for p, s in zip(pitches[1:], shape[1:], strict=True))]
    return math.prod(sizes) < 1 << 63


def _tensor(token: PendingToken) -> Tensor:
    pitches = token.dims[3] if token.kind == "load" else None
    type_ = tensor_type(token.checked_element, *token.dims[:3])
    return Tensor(type_, token.call.instruction, token.kind, token.source, pitches)


def _choices(allowed: Sequence[TensorType]) -> str:
    """`<9 x float> (3x3 float) or <12 x float> (...)`: what would fit, the preferred first."""
    texts = dict.fromkeys(f"{type_.vector} ({type_})" for type_ in allowed[:2])
    return " or ".join(texts)


def _declared(call: Call, tensors: Sequence[Tensor]) -> list[Note]:
    """Where the tensors of a call come from."""
    operands = [operand for operand in call.form if operand.kind is Kind.TENSOR]
    names = [f"{o.name}[{number}]" if o.repeated else o.name for number, o in enumerate(operands)]
    return [
        Note(f"{name} is {tensor.type}", operand_span(tensor.definition))
        for name, tensor in zip(names, tensors, strict=True)
    ]


def _dims_to_blame(call: Call, dims: Sequence[Sequence[int]]) -> Value | None:
    """Which of shape, layout and padding a problem is in: the first with which it appears."""
    shape, layout, padding = dims[:3]
    rank = len(shape)
    if type_problem(shape, range(rank), (0,) * rank):
        return call.named("shape")
    if len(layout) != rank or type_problem(shape, layout, (0,) * rank):
        return call.named("layout")
    return call.named("padding") if padding else None
