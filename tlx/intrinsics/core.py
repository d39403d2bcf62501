"""What a row of the table is: its operands, its typing rule, what it computes, its attributes."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tlx.ir.types import Type
from tlx.types import TensorType

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from tlx.numpy_types import Array

    Dims = Sequence[tuple[int, ...]]
    Infer = Callable[[Sequence[TensorType], Dims, Type], list[TensorType]]
    Meaning = Callable[[Sequence[Array], Dims, Sequence[Array], np.dtype[Any]], Array]


class Kind(enum.Enum):
    """What an operand is; the value is how messages name it."""

    TENSOR = "a token"
    FLAT = "a flattened vector or a pointer to one"
    POINTER = "a pointer"
    DIMS = "a constant vector of i32"
    INDEX = "a constant i32"
    SCALAR = "a number"


@dataclass(frozen=True)
class Operand:
    """One operand of an intrinsic.

    Attributes:
        name: What messages and the reference call it.
        kind: What it must be.
        doc: One line for the reference.
        like_previous: Whether its type is that of the DIMS operand before it, so that it is not mangled.
        repeated: Whether it may stand once or more often.
        empty: Of DIMS: what to write for no numbers, which no vector of LLVM holds; empty where there must be some.
    """

    name: str
    kind: Kind
    doc: str
    like_previous: bool = False
    repeated: bool = False
    empty: str = ""


@dataclass(frozen=True, eq=False)
class Intrinsic:
    """One row of the table.

    Attributes:
        name: `matmul` of `llvm.tensor.matmul`.
        operands: The canonical form's.
        result: What a call returns; a vector is the flattened result.
        doc: One line.
        infer: From the operands' tensor types, the values of the DIMS (and INDEX) operands and the result's element
            type to the results that are allowed, the preferred one first. Raises ValueError (RuleError where one
            operand is to blame) if the operands do not go together. Loads and typeinfo give the type they describe.
        meaning: From logical arrays, DIMS, SCALAR operands and the result's dtype to the result's logical array.
        example: Calls in the proposal's spelling, complete but for the function around them.
        effects: On memory; `typeinfo` is pure but may be neither speculated nor taken for one that always returns.
        variants: Other accepted forms.
        aliases: Other accepted names.
        narrow: Tensor operands (by their number among the tensors) whose elements may be narrower than the result's.
        prefix: What stands before the name.
    """

    name: str
    operands: tuple[Operand, ...]
    result: Literal["token", "vector", "void"]
    doc: str
    infer: Infer
    meaning: Meaning
    example: str
    effects: Literal["pure", "typeinfo", "read", "write"] = "pure"
    variants: tuple[tuple[Operand, ...], ...] = ()
    aliases: tuple[str, ...] = ()
    narrow: tuple[int, ...] = ()
    prefix: str = "llvm.tensor."

    @property
    def full_name(self) -> str:
        """The name with its prefix, not mangled."""
        return self.prefix + self.name

    @property
    def forms(self) -> tuple[tuple[Operand, ...], ...]:
        """All accepted operand lists, the canonical one first."""
        return (self.operands, *self.variants)

    def attributes(self, *, reads: bool = False) -> str:
        """Attributes of the declaration, in words that LLVM 14 to 22 all take.

        Args:
            reads: Whether the operand that may be a pointer is one.

        `typeinfo` is no `willreturn speculatable`: with these LLVM deletes a loop whose token is used behind it.
        """
        return _ATTRIBUTES["read" if reads else self.effects]


_ATTRIBUTES: Final = {
    "pure": "nounwind readnone speculatable willreturn",
    "typeinfo": "nounwind readnone",
    "read": "argmemonly nounwind readonly",
    "write": "argmemonly nounwind willreturn writeonly",
}


class RuleError(ValueError):
    """Operands break a rule of their intrinsic.

    Attributes:
        operand: Name of the operand to blame, None where no single one is.
        number: Which of them, where it is repeated.
    """

    def __init__(self, message: str, operand: str | None = None, number: int = 0) -> None:
        super().__init__(message)
        self.operand = operand
        self.number = number
