"""Type inference: element types of loads through opaque pointers, result types of operations, rules of stores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tlx.diagnostics import Note, VerifyError
from tlx.intrinsics import OperandKind, RuleError, extents_text
from tlx.intrinsics.tensor_type import TensorType, vector_text
from tlx.ir.tensors.calls import (
    ELEMENT_TYPES,
    TensorCall,
    element_type_error,
    innermost_element,
    operand_span,
    pointer_element,
)
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.types import I8, PointerType, Type, VectorType
from tlx.ir.values import Value


@dataclass(eq=False)
class PendingToken:
    """A token on the way to a Tensor: its element type may still be unknown."""

    call: TensorCall
    kind: Literal["value", "pointer", "load"]
    source: Value
    dims: tuple[tuple[int, ...], ...]
    element: Type | None

    @property
    def checked_element(self) -> Type:
        """The element type, once it is known."""
        if self.element is None:
            message = f"token without an element type: {self.call.instruction.text}"
            raise AssertionError(message)
        return self.element


class ElementTypeInference:
    """Finds the element types of loads from the tokens' users.

    An operand whose elements are the result's (a transpose's, an accumulator) has the result's type. One that may be
    narrower (of matmul, of the mma family) has the type of its peer, the other such operand, where that is known, else
    the result's. A store through a typed pointer stores what that points to. A load that nothing uses reads nothing, of
    whatever type: LLVM's optimiser leaves those whose users it finds dead.
    """

    def __init__(self, tokens: dict[str, PendingToken], operations: list[TensorCall]) -> None:
        self._tokens = tokens
        self._operations = operations
        self._users: dict[str, list[tuple[TensorCall, int]]] = {}
        for call in self._operations:
            for number, value in enumerate(call.values(OperandKind.TENSOR)):
                self._users.setdefault(str(value)[1:], []).append((call, number))

    def solve(self) -> None:
        """Set the element types that are still unknown.

        Raises:
            VerifyError: Users disagree, or none tells.
        """
        for rule in (self._certain, self._peer, self._result):
            while self._apply(rule):
                pass
        for name, token in self._tokens.items():
            if token.element is None and name in self._users:
                raise self._undetermined(token)
            token.element = token.element or I8

    def _apply(self, rule: Callable[[TensorCall, int], Type | None]) -> bool:
        """Whether a rule finds the type of another token."""
        found = False
        for name, token in self._tokens.items():
            if token.element is None:
                token.element = self._agreed(name, rule)
                found = found or token.element is not None
        return found

    def _agreed(self, name: str, rule: Callable[[TensorCall, int], Type | None]) -> Type | None:
        """The one type that all users of a token tell, None where none tells."""
        told = {rule(call, number): call for call, number in self._users.get(name, [])}
        told.pop(None, None)
        if len(told) > 1:
            raise self._disagreement(self._tokens[name], [(t, c) for t, c in told.items() if t is not None])
        return next(iter(told), None)

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

    def _disagreement(self, token: PendingToken, told: list[tuple[Type, TensorCall]]) -> VerifyError:
        types = " and ".join(str(type_) for type_, _ in told)
        notes = [Note(f"used as {type_} here", operand_span(call.instruction)) for type_, call in told]
        message = f"the users of the token disagree about the element type of {token.source.typed}: {types}; "
        return token.call.error(message + _remedy(token), token.source, notes)

    def _undetermined(self, token: PendingToken) -> VerifyError:
        message = f"no user of the token tells the element type of {token.source.typed}; "
        return token.call.error(message + _remedy(token), token.source)


def _remedy(token: PendingToken) -> str:
    type_ = token.source.type
    if isinstance(type_, PointerType) and type_.pointee is not None:
        return "cast the pointer to T*"
    return f"write {type_} elementtype(T) {token.source}"


def checked_operation(call: TensorCall, tensors: tuple[Tensor, ...], dims: tuple[tuple[int, ...], ...]) -> TensorOp:
    """The operation that a call is.

    Args:
        call: The call.
        tensors: What its tokens stand for.
        dims: Values of its operands that are constant vectors.

    Raises:
        VerifyError: Its operands or its result break a rule.
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
        kept = " or ".join(vector_text(type_.padding) for type_ in fitting)
        message = f"{got} may keep padding {kept}: drop or keep all padding of the result"
        raise call.error(message, None, _declared(call, tensors))
    return fitting[0]


def check_pitches(call: TensorCall, shape: Sequence[int], pitches: Sequence[int]) -> None:
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


@lru_cache(maxsize=4096)
def _are_pitches(shape: tuple[int, ...], pitches: tuple[int, ...]) -> bool:
    """Whether `pitches` go with a shape."""
    if len(pitches) != len(shape) or min(pitches) < 0:
        return False
    sizes = [shape[0], *(p or s for p, s in zip(pitches[1:], shape[1:], strict=True))]
    return math.prod(sizes) < 1 << 63


def _allowed_types(allowed: Sequence[TensorType]) -> str:
    """`<9 x float> (3x3 float) or <12 x float> (...)`: what would fit, the preferred first."""
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
