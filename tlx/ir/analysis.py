"""What the tensor calls of a function mean: the tensor type of every token, the operands of every operation.

Verifier, evaluator and lowering all start from `analyse`; it checks every rule of the intrinsics on the way, so what it
returns is consistent and what it cannot accept is a `VerifyError` that points at the call.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.diagnostics import Note, VerifyError, did_you_mean
from tlx.intrinsics import Kind, Operand, extents_text
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
from tlx.ir.hints import nearest_intrinsic
from tlx.ir.module import Function, Instruction, Module
from tlx.ir.operations import check_pitches, checked_operation
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
from tlx.ir.tensors import FunctionTensors, Tensor, TensorOp
from tlx.ir.types import TOKEN, VOID, ArrayType, PointerType, VectorType, is_scalar_number
from tlx.ir.values import Keyword, Local, Value
from tlx.types import tensor_type, type_problem

_NUMBERS: Final = (Kind.DIMS, Kind.INDEX)
_RESULTS: Final = {"token": TOKEN, "void": VOID}


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
                    near = nearest_intrinsic(instruction.callee) if instruction.callee else ""
                    message = (
                        f"{value} stands for a tensor: only llvm.tensor.* take it, not this {instruction.opcode}{near}"
                    )
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
        if isinstance(value.type, VectorType) and not value.type.count:
            remedy = operand.empty or f"{operand.name} needs a number for each dimension"
            raise call.error(f"operand {operand.name} is a {value.type}, which LLVM does not have: {remedy}", value)
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
            near = did_you_mean(str(value), [f"%{known}" for known in self.tokens])
            raise call.error(f"operand {name} is {value}, which is not defined in @{self.function.name}{near}", value)
        note = Note("defined here", operand_span(definition))
        maker = f"@{definition.callee}" if definition.callee else definition.opcode
        near = nearest_intrinsic(definition.callee) if definition.callee else ""
        raise call.error(f"operand {name} is {value}, a token of {maker}, which makes no tensor{near}", value, [note])

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
            check_pitches(call, dims[0], dims[3])

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

    def _operation(self, call: Call, known: dict[str, Tensor]) -> TensorOp:
        tensors = tuple(known[value.name] for value in call.values(Kind.TENSOR) if isinstance(value, Local))
        return checked_operation(call, tensors, self._dims(call))


def _tensor(token: PendingToken) -> Tensor:
    pitches = token.dims[3] if token.kind == "load" else None
    type_ = tensor_type(token.checked_element, *token.dims[:3])
    return Tensor(type_, token.call.instruction, token.kind, token.source, pitches)


def _dims_to_blame(call: Call, dims: Sequence[Sequence[int]]) -> Value | None:
    """Which of shape, layout and padding a problem is in: the first with which it appears."""
    shape, layout, padding = dims[:3]
    rank = len(shape)
    if type_problem(shape, range(rank), (0,) * rank):
        return call.named("shape")
    if len(layout) != rank or type_problem(shape, layout, (0,) * rank):
        return call.named("layout")
    return call.named("padding") if padding else None
