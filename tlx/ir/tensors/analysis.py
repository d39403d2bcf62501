"""Analysis and verification of tensor calls: the type of every token, the operands of every operation, broken rules.

Verifier, evaluator and lowering all start from `analyse`; it checks every rule of the intrinsics on the way, so what it
returns is consistent and what it cannot accept is a `VerifyError` that points at the call. The rest of the IR is LLVM's
to judge.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.diagnostics import Note, VerifyError, did_you_mean
from tlx.intrinsics import Operand, OperandKind, extents_text
from tlx.intrinsics.tensor_type import tensor_type, type_problem
from tlx.ir.analysis.constant_folding import ConstantFolder
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.parser.suggestions import suggest_intrinsic
from tlx.ir.tensors.calls import (
    ELEMENT_TYPES,
    TensorCall,
    attribute_type,
    element_type_error,
    is_tensor_call,
    operand_span,
    pointer_element,
    tensor_call,
)
from tlx.ir.tensors.dynamic import (
    dynamic_element,
    dynamic_operation,
    dynamic_tensor,
    is_dynamic_operation,
    is_dynamic_token,
)
from tlx.ir.tensors.handles import find_handles
from tlx.ir.tensors.inference import ElementTypeInference, PendingToken, check_pitches, checked_operation
from tlx.ir.tensors.model import DynamicTensors, FunctionTensors, Tensor, TensorOp
from tlx.ir.types import TOKEN, VOID, ArrayType, PointerType, VectorType, is_scalar_number
from tlx.ir.values import Keyword, Local, Value

_NUMBERS: Final = (OperandKind.DIMS, OperandKind.INDEX)
_RESULTS: Final = {"token": TOKEN, "void": VOID}


def analyse(module: Module, function: Function) -> FunctionTensors:
    """Type every token and every operation of a function.

    Raises:
        VerifyError: A rule is broken, or something is not supported; it points at the call, its notes at the
            definitions of the tensors.
    """
    state = [(instruction, instruction.text) for instruction in function.instructions()]
    known = function.facts.get(FunctionTensors)
    if isinstance(known, _CachedAnalysis) and known.module is module and known.state == state:
        return known.tensors
    tensors = _TensorAnalysis(module, function).run()
    function.facts[FunctionTensors] = _CachedAnalysis(module, state, tensors)
    return tensors


@dataclass(frozen=True, slots=True)
class _CachedAnalysis:
    """What was found out about a function, and the instructions and their texts that it is true of."""

    module: Module
    state: list[tuple[Instruction, str]]
    tensors: FunctionTensors


class _TensorAnalysis:
    """One run over a function: calls, then tokens, then element types of loads, then operations."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module = module
        self.function = function
        self.definitions = {i.result: i for i in function.instructions() if i.result is not None}
        self.folder = ConstantFolder(function, module, self.definitions)
        self.tokens: dict[str, PendingToken] = {}
        self.dynamic_tokens: list[str] = []
        self.operations: list[TensorCall] = []

    def run(self) -> FunctionTensors:
        for call in self._calls():
            if call.intrinsic.result == "token":
                self.tokens[str(call.instruction.result)] = self._token(call)
            else:
                self.operations.append(call)
        for call in self.operations:
            for value in call.values(OperandKind.TENSOR):
                self._check_token(call, value)
        self._check_users()
        ElementTypeInference(self.tokens, self.operations).solve()
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
                    near = suggest_intrinsic(instruction.callee) if instruction.callee else ""
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

    def _calls(self) -> Iterator[TensorCall]:
        for instruction in self.function.instructions():
            call = tensor_call(instruction)
            if call is None:
                continue
            self._check_result(call)
            yield call

    def _check_result(self, call: TensorCall) -> None:
        """The kind of the result; an operation's exact type is checked with its operands."""
        got = call.instruction.type
        expected = call.intrinsic.result
        if expected == "vector" and not isinstance(got, VectorType):
            raise call.error(f"returns a flattened vector, not {got}")
        if expected != "vector" and got != _RESULTS[expected]:
            raise call.error(f"returns {expected}, not {got}")

    # Operands --------------------------------------------------------------------------------------------------

    def _dims(self, call: TensorCall) -> tuple[tuple[int, ...], ...]:
        return tuple([self._numbers(call, o, value) for o, value in call.arguments if o.kind in _NUMBERS])

    def _numbers(self, call: TensorCall, operand: Operand, value: Value) -> tuple[int, ...]:
        if operand.kind is OperandKind.INDEX:
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

    def _check_token(self, call: TensorCall, value: Value) -> None:
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
        near = suggest_intrinsic(definition.callee) if definition.callee else ""
        raise call.error(f"operand {name} is {value}, a token of {maker}, which makes no tensor{near}", value, [note])

    # Tokens ----------------------------------------------------------------------------------------------------

    def _token(self, call: TensorCall) -> PendingToken:
        if is_dynamic_token(call, self.folder):
            return self._dynamic_token(call)
        dims = self._dims(call)
        self._check_dims(call, dims)
        source = call.instruction.args[0]
        if call.form[0].kind is OperandKind.POINTER:
            return PendingToken(call, "load", source, dims, pointer_element(call, source))
        if isinstance(source.type, VectorType):
            self._check_flat(call, source, source.type, dims[0])
            return PendingToken(call, "value", source, dims, source.type.element)
        flat = self._pointee_vector(call, source)
        self._check_flat(call, source, flat, dims[0])
        return PendingToken(call, "pointer", source, dims, flat.element)

    def _dynamic_token(self, call: TensorCall) -> PendingToken:
        source = call.instruction.args[0]
        self.dynamic_tokens.append(str(call.instruction.result))
        is_load = call.form[0].kind is OperandKind.POINTER
        kind = "load" if is_load else "value" if isinstance(source.type, VectorType) else "pointer"
        return PendingToken(call, kind, source, (), dynamic_element(call))

    def _check_dims(self, call: TensorCall, dims: Sequence[Sequence[int]]) -> None:
        problem = type_problem(*dims[:3])
        if problem:
            raise call.error(problem, _dims_to_blame(call, dims))
        if len(dims) == 4:
            check_pitches(call, dims[0], dims[3])

    def _check_flat(self, call: TensorCall, source: Value, flat: VectorType, shape: Sequence[int]) -> None:
        if flat.element not in ELEMENT_TYPES:
            raise call.error(element_type_error(flat.element), source)
        count = math.prod(shape)
        if flat.count != count:
            raise call.error(f"expected {count} elements for shape {extents_text(shape)}, got {flat}", source)

    def _pointee_vector(self, call: TensorCall, source: Value) -> VectorType:
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

    def _operation(self, call: TensorCall, known: dict[str, Tensor]) -> TensorOp:
        tensors = tuple(known[value.name] for value in call.values(OperandKind.TENSOR) if isinstance(value, Local))
        return checked_operation(call, tensors, self._dims(call))


def _tensor(token: PendingToken) -> Tensor:
    pitches = token.dims[3] if token.kind == "load" else None
    type_ = tensor_type(token.checked_element, *token.dims[:3])
    return Tensor(type_, token.call.instruction, token.kind, token.source, pitches)


def _dims_to_blame(call: TensorCall, dims: Sequence[Sequence[int]]) -> Value | None:
    """Which of shape, layout and padding a problem is in: the first with which it appears."""
    shape, layout, padding = dims[:3]
    rank = len(shape)
    if type_problem(shape, range(rank), (0,) * rank):
        return call.named("shape")
    if len(layout) != rank or type_problem(shape, layout, (0,) * rank):
        return call.named("layout")
    return call.named("padding") if padding else None


def verify_tensors(module: Module) -> None:
    """Check every tensor call of the parsed functions.

    Raises:
        VerifyError: The first broken rule.
    """
    for function in module.functions:
        analyse(module, function)


def collect_errors(module: Module) -> list[VerifyError]:
    """All broken rules that do not depend on one another.

    These are every malformed call of each function; and for functions whose calls are all well-formed the first rule
    that is broken.
    """
    return [error for function in module.functions for error in _errors(module, function)]


def _errors(module: Module, function: Function) -> list[VerifyError]:
    malformed = [error for instruction in function.instructions() if (error := _malformed(instruction)) is not None]
    if malformed:
        return malformed
    try:
        analyse(module, function)
    except VerifyError as error:
        return [error]
    return []


def _malformed(instruction: Instruction) -> VerifyError | None:
    try:
        tensor_call(instruction)
    except VerifyError as error:
        return error
    return None
