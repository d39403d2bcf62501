"""Element types of loads through pointers that do not tell: `ptr %p`, `i8* %p`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tlx.diagnostics import Note, VerifyError
from tlx.intrinsics import Kind
from tlx.ir.tensor_calls import Call, innermost, operand_span, pointer_element
from tlx.ir.types import I8, PointerType, Type
from tlx.ir.values import Value


@dataclass(eq=False)
class PendingToken:
    """A token on the way to a Tensor: its element type may still be unknown."""

    call: Call
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


class ElementTypes:
    """Finds the element types of loads from the tokens' users.

    An operand whose elements are the result's (a transpose's, an accumulator) has the result's type. One that may be
    narrower (of matmul, of the mma family) has the type of its peer, the other such operand, where that is known, else
    the result's. A store through a typed pointer stores what that points to. A load that nothing uses reads nothing, of
    whatever type: LLVM's optimiser leaves those whose users it finds dead.
    """

    def __init__(self, tokens: dict[str, PendingToken], operations: list[Call]) -> None:
        self._tokens = tokens
        self._operations = operations
        self._users: dict[str, list[tuple[Call, int]]] = {}
        for call in self._operations:
            for number, value in enumerate(call.values(Kind.TENSOR)):
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

    def _apply(self, rule: Callable[[Call, int], Type | None]) -> bool:
        """Whether a rule finds the type of another token."""
        found = False
        for name, token in self._tokens.items():
            if token.element is None:
                token.element = self._agreed(name, rule)
                found = found or token.element is not None
        return found

    def _agreed(self, name: str, rule: Callable[[Call, int], Type | None]) -> Type | None:
        """The one type that all users of a token tell, None where none tells."""
        told = {rule(call, number): call for call, number in self._users.get(name, [])}
        told.pop(None, None)
        if len(told) > 1:
            raise self._disagreement(self._tokens[name], [(t, c) for t, c in told.items() if t is not None])
        return next(iter(told), None)

    def _certain(self, call: Call, number: int) -> Type | None:
        if call.intrinsic.result == "void":
            return pointer_element(call, call.values(Kind.POINTER)[0])
        return None if number in call.intrinsic.narrow else innermost(call.instruction.type)

    def _peer(self, call: Call, number: int) -> Type | None:
        if number not in call.intrinsic.narrow:
            return None
        values = call.values(Kind.TENSOR)
        peers = {self._tokens[str(values[n])[1:]].element for n in call.intrinsic.narrow if n != number}
        peers.discard(None)
        return next(iter(peers)) if len(peers) == 1 else None

    def _result(self, call: Call, number: int) -> Type | None:
        return innermost(call.instruction.type) if number in call.intrinsic.narrow else None

    def _disagreement(self, token: PendingToken, told: list[tuple[Type, Call]]) -> VerifyError:
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
