"""Infers and checks the tensor types of all tokens and results of a function."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from tlx.diagnostics import Note, VerifyError, counted, did_you_mean
from tlx.intrinsics import Operand, OperandKind, RuleError, extents_text
from tlx.intrinsics.tensor_type import TensorType, tensor_type, type_problem, vector_text
from tlx.ir.constant_folding import ConstantFolder
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.parser.suggestions import suggest_intrinsic
from tlx.ir.tensors.calls import (
    ELEMENT_TYPES,
    TensorCall,
    attribute_type,
    element_type_error,
    innermost_element,
    is_tensor_call,
    operand_span,
    pointer_element,
    tensor_call,
)
from tlx.ir.tensors.conversions import wrong_conversion
from tlx.ir.tensors.dynamic import (
    dynamic_element,
    dynamic_operation,
    dynamic_tensor,
    is_dynamic_operation,
    is_dynamic_token,
)
from tlx.ir.tensors.model import DynamicTensors, FunctionTensors, Tensor, TensorOp, find_handles, find_uniforms
from tlx.ir.types import I8, TOKEN, VOID, ArrayType, PointerType, Type, VectorType, is_scalar_number
from tlx.ir.values import Keyword, Local, Value


@dataclass(eq=False)
class PendingToken:
    """A token during inference: its element type may still be unknown."""

    call: TensorCall
    kind: Literal["value", "pointer", "load"]
    source: Value
    dims: tuple[tuple[int, ...], ...]
    element: Type | None

    @property
    def checked_element(self) -> Type:
        """The element type, after inference."""
        if self.element is None:
            message = f"token without an element type: {self.call.instruction.text}"
            raise AssertionError(message)
        return self.element


class ElementTypeInference:
    """Infers the element types of loads from the users of their tokens.

    An operand whose element type must be the result's (of transpose, an accumulator) has that type. One that may be
    narrower (of matmul, of the mma family) has the type of the other such operand, if that is known, else the
    result's. A tensor stored through a typed pointer has the pointee type. A load without users may have any type and
    reads nothing: LLVM's optimiser leaves such loads behind when it deletes their users.
    """

    def __init__(self, tokens: dict[str, PendingToken], operations: list[TensorCall]) -> None:
        self._tokens = tokens
        self._operations = operations
        self._users: dict[str, list[tuple[TensorCall, int]]] = {}
        for call in self._operations:
            for number, value in enumerate(call.values(OperandKind.TENSOR)):
                self._users.setdefault(str(value)[1:], []).append((call, number))

    def solve(self) -> None:
        """Set all unknown element types.

        Raises:
            VerifyError: The users of a token disagree, or none determines the type.
        """
        for rule in (self._certain, self._peer, self._result):
            while self._apply(rule):
                pass
        for name, token in self._tokens.items():
            if token.element is None and name in self._users:
                raise self._undetermined(token)
            token.element = token.element or I8

    def _apply(self, rule: Callable[[TensorCall, int], Type | None]) -> bool:
        """Apply a rule to all tokens of unknown type; whether it determines a type."""
        changed = False
        for name, token in self._tokens.items():
            if token.element is None:
                token.element = self._common_type(name, rule)
                changed = changed or token.element is not None
        return changed

    def _common_type(self, name: str, rule: Callable[[TensorCall, int], Type | None]) -> Type | None:
        """The type on which all users of a token agree; None if none determines it."""
        users = {rule(call, number): call for call, number in self._users.get(name, [])}
        users.pop(None, None)
        if len(users) > 1:
            raise self._disagreement(self._tokens[name], [(t, c) for t, c in users.items() if t is not None])
        return next(iter(users), None)

    def _certain(self, call: TensorCall, number: int) -> Type | None:
        if call.intrinsic.result == "void":
            return pointer_element(call, call.values(OperandKind.POINTER)[0])
        return None if number in call.intrinsic.narrow else innermost_element(call.instruction.type)

    def _peer(self, call: TensorCall, number: int) -> Type | None:
        if number not in call.intrinsic.narrow:
            return None
        values = call.values(OperandKind.TENSOR)
        peers = {self._tokens[str(values[n])[1:]].element for n in call.intrinsic.narrow if n != number}
        peers.discard(None)
        return next(iter(peers)) if len(peers) == 1 else None

    def _result(self, call: TensorCall, number: int) -> Type | None:
        return innermost_element(call.instruction.type) if number in call.intrinsic.narrow else None

    def _disagreement(self, token: PendingToken, users: list[tuple[Type, TensorCall]]) -> VerifyError:
        types = " and ".join(str(type_) for type_, _ in users)
        notes = [Note(f"used as {type_} here", operand_span(call.instruction)) for type_, call in users]
        message = f"the users of the token disagree about the element type of {token.source.typed}: {types}; "
        return token.call.error(message + _remedy(token), token.source, notes)

    def _undetermined(self, token: PendingToken) -> VerifyError:
        message = f"no user of the token determines the element type of {token.source.typed}; "
        return token.call.error(message + _remedy(token), token.source)


def _remedy(token: PendingToken) -> str:
    type_ = token.source.type
    if isinstance(type_, PointerType) and type_.pointee is not None:
        return "cast the pointer to T*"
    return f"write {type_} elementtype(T) {token.source}"


def checked_operation(call: TensorCall, tensors: tuple[Tensor, ...], dims: tuple[tuple[int, ...], ...]) -> TensorOp:
    """Check a call against its typing rule; returns the operation.

    Args:
        call: The call.
        tensors: The tensors of its tokens.
        dims: Values of its operands that are constant vectors.

    Raises:
        VerifyError: Its operands or its result break the rule.
    """
    if call.intrinsic.result == "void":
        return _store(call, tensors, dims)
    scalars = tuple(call.values(OperandKind.SCALAR))
    result = _result(call, tensors, dims)
    for operand, value in call.arguments:
        if operand.kind is OperandKind.SCALAR and value.type != result.element:
            message = f"{operand.name} is {value.type} and the tensor's elements are {result.element}"
            raise call.error(message, value, _declared(call, tensors))
    return TensorOp(call.instruction, call.intrinsic, tensors, dims, scalars, result)


def _store(call: TensorCall, tensors: tuple[Tensor, ...], dims: tuple[tuple[int, ...], ...]) -> TensorOp:
    type_ = tensors[0].type
    pointer = call.values(OperandKind.POINTER)[0]
    pitches = dims[0]
    check_pitches(call, type_.shape, pitches)
    for dimension, (pitch, extent) in enumerate(zip(pitches, type_.data_shape, strict=True)):
        if dimension and pitch and pitch < extent:
            message = f"stride {pitch} of dimension {dimension} is less than its extent {extent}: rows would overlap"
            raise call.error(message, call.named("strides"), _declared(call, tensors))
    element = pointer_element(call, pointer)
    if element not in (None, type_.element):
        raise call.error(
            f"{pointer.typed} takes {element} and the tensor is {type_}", pointer, _declared(call, tensors)
        )
    return TensorOp(call.instruction, call.intrinsic, tensors, dims, (), None, pointer, pitches)


def _result(call: TensorCall, tensors: tuple[Tensor, ...], dims: tuple[tuple[int, ...], ...]) -> TensorType:
    got = call.instruction.type
    if not isinstance(got, VectorType) or got.element not in ELEMENT_TYPES:
        raise call.error(element_type_error(got.element if isinstance(got, VectorType) else got))
    try:
        allowed = call.intrinsic.infer([tensor.type for tensor in tensors], dims, got.element)
    except ValueError as broken:
        blamed = call.named(broken.operand, broken.number) if isinstance(broken, RuleError) else None
        raise call.error(str(broken), blamed, _declared(call, tensors)) from None
    fitting = [type_ for type_ in allowed if type_.vector == got]
    if not fitting:
        raise call.error(f"returns {_allowed_types(allowed)}, not {got}", None, _declared(call, tensors))
    if len(fitting) > 1 and fitting[0].is_padded:
        alternatives = " or ".join(vector_text(type_.padding) for type_ in fitting)
        message = f"{got} may keep padding {alternatives}: drop or keep all padding of the result"
        raise call.error(message, None, _declared(call, tensors))
    return fitting[0]


def check_pitches(call: TensorCall, shape: Sequence[int], pitches: Sequence[int]) -> None:
    """Check that a load or store has a nonnegative pitch for each dimension, and no address beyond 64 bits."""
    if _are_pitches(tuple(shape), tuple(pitches)):
        return
    value = call.named("strides")
    if len(pitches) != len(shape):
        entries = counted(len(pitches), "entry", "entries")
        raise call.error(f"strides has {entries}, shape {extents_text(shape)} has {len(shape)}", value)
    for dimension, pitch in enumerate(pitches):
        if pitch < 0:
            raise call.error(f"stride {pitch} of dimension {dimension} is negative", value)
    message = f"strides {vector_text(pitches)} of shape {extents_text(shape)} reach beyond 64 bits"
    raise call.error(message, value)


@lru_cache(maxsize=4096)
def _are_pitches(shape: tuple[int, ...], pitches: tuple[int, ...]) -> bool:
    """Whether pitches are valid for a shape."""
    if len(pitches) != len(shape) or min(pitches) < 0:
        return False
    sizes = [shape[0], *(p or s for p, s in zip(pitches[1:], shape[1:], strict=True))]
    return math.prod(sizes) < 1 << 63


def _allowed_types(allowed: Sequence[TensorType]) -> str:
    """`<9 x float> (3x3 float) or <12 x float> (...)`: the allowed types, the preferred first."""
    texts = dict.fromkeys(f"{type_.vector} ({type_})" for type_ in allowed[:2])
    return " or ".join(texts)


def _declared(call: TensorCall, tensors: Sequence[Tensor]) -> list[Note]:
    """Where the tensors of a call come from."""
    operands = [operand for operand in call.form if operand.kind is OperandKind.TENSOR]
    names = [f"{o.name}[{number}]" if o.repeated else o.name for number, o in enumerate(operands)]
    return [
        Note(f"{name} is {tensor.type}", operand_span(tensor.definition))
        for name, tensor in zip(names, tensors, strict=True)
    ]


_NUMBERS: Final = (OperandKind.DIMS, OperandKind.INDEX)
_RESULTS: Final = {"token": TOKEN, "void": VOID}


def analyse(module: Module, function: Function) -> FunctionTensors:
    """Infer the type of every token and every operation of a function; the result is cached.

    Raises:
        VerifyError: A rule is broken. The error points to the call, its notes to the definitions of the tensors.
    """
    state = [(instruction, instruction.text) for instruction in function.instructions()]
    known = function.facts.get(FunctionTensors)
    if isinstance(known, _CachedAnalysis) and known.module() is module and known.state == state:
        return known.tensors
    tensors = _TensorAnalysis(module, function).run()
    function.facts[FunctionTensors] = _CachedAnalysis(weakref.ref(module), state, tensors)
    return tensors


@dataclass(frozen=True, slots=True)
class _CachedAnalysis:
    """The analysis of a function, with the module, instructions and texts for which it is valid.

    It refers to neither function nor module, which refer to it: they are freed without a garbage collection.
    """

    module: weakref.ref[Module]
    state: list[tuple[Instruction, str]]
    tensors: FunctionTensors


class _TensorAnalysis:
    """The analysis of a function: its calls, then tokens, then element types of loads, then operations."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module = module
        self.function = function
        self.definitions = {i.result: i for i in function.instructions() if i.result is not None}
        self.folder = ConstantFolder(function, module, self.definitions)
        self.tokens: dict[str, PendingToken] = {}
        self.dynamic_tokens: list[str] = []
        self.operations: list[TensorCall] = []

    def run(self) -> FunctionTensors:
        for instruction in self.function.instructions():
            if (error := wrong_conversion(instruction)) is not None:
                raise error
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
        return FunctionTensors(tensors, operations, dynamic)

    def _check_users(self) -> None:
        """Check that only tensor operations use tensors' tokens."""
        for instruction in self.function.instructions():
            if is_tensor_call(instruction):
                continue
            for value in instruction.operands:
                if isinstance(value, Local) and value.name in self.tokens and value.type == TOKEN:
                    near = suggest_intrinsic(instruction.callee) if instruction.callee else ""
                    user = f"this {instruction.opcode}{near}"
                    message = f"{value} is the token of a tensor, which only llvm.tensor.* take, not {user}"
                    note = Note("defined here", operand_span(self.definitions[str(value).removeprefix("%")]))
                    raise VerifyError(message, operand_span(instruction, value), [note])

    def _dynamic(self, static: dict[str, Tensor]) -> DynamicTensors:
        """The tensors and operations with extents known only at run time."""
        dynamic = DynamicTensors()
        for name in self.dynamic_tokens:
            token = self.tokens[name]
            dynamic.tokens[name] = dynamic_tensor(token.call, token.kind, token.checked_element, self.folder)
        calls = [c for c in self.operations if is_dynamic_operation(c, dynamic.tokens, self.folder)]
        dynamic.ops = [dynamic_operation(c, static, dynamic.tokens, self.folder) for c in calls]
        dynamic.handles = find_handles(self.function, [op.instruction for op in dynamic.ops])
        dynamic.uniforms = find_uniforms(self.function, dynamic.handles)
        for name, tensor in dynamic.tokens.items():
            if tensor.kind == "value" and str(tensor.source).removeprefix("%") not in dynamic.handles:
                message = (
                    f"{tensor.source} is not the result of a tensor operation, so its number of elements is unknown"
                )
                raise self.tokens[name].call.error(message, tensor.source)
        return dynamic

    def _calls(self) -> Iterator[TensorCall]:
        for instruction in self.function.instructions():
            call = tensor_call(instruction)
            if call is None:
                continue
            self._check_result(call)
            yield call

    def _check_result(self, call: TensorCall) -> None:
        """Check the kind of the result; an operation's exact type is checked with its operands."""
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
        name = next(operand.name for operand, argument in call.arguments if argument is value)
        if isinstance(value, Keyword):
            raise call.error(f"operand {name} is {value}, which is not the token of a tensor", value)
        definition = self.definitions.get(value.name) if isinstance(value, Local) else None
        if definition is None:
            near = did_you_mean(str(value), [f"%{known}" for known in self.tokens])
            raise call.error(f"operand {name} is {value}, which is not defined in @{self.function.name}{near}", value)
        note = Note("defined here", operand_span(definition))
        origin = f"@{definition.callee}" if definition.callee else definition.opcode
        near = suggest_intrinsic(definition.callee) if definition.callee else ""
        raise call.error(
            f"operand {name} is {value}, a token of {origin}, which does not make tensors{near}", value, [note]
        )

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
    """The operand at fault among shape, layout and padding: the first with which the problem appears."""
    shape, layout, padding = dims[:3]
    rank = len(shape)
    if type_problem(shape, range(rank), (0,) * rank):
        return call.named("shape")
    if len(layout) != rank or type_problem(shape, layout, (0,) * rank):
        return call.named("layout")
    return call.named("padding") if padding else None


def verify_tensors(module: Module) -> None:
    """Check all tensor calls of the parsed functions.

    Raises:
        VerifyError: A rule is broken; this is the first error.
    """
    for function in module.functions:
        analyse(module, function)


def collect_errors(module: Module) -> list[VerifyError]:
    """All errors that are independent of each other.

    These are all malformed calls to each function, or the first broken rule if no call is malformed.
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
    return wrong_conversion(instruction)
