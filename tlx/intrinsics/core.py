"""The rows of the table of intrinsics, and typing rules that families of intrinsics share."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tlx.intrinsics.tensor_type import TensorType, tensor_type, vector_text
from tlx.ir.types import FloatType, IntType, Type

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from tlx.intrinsics.numpy_types import Array

    Dims = Sequence[tuple[int, ...]]

    Infer = Callable[[Sequence[TensorType], Dims, Type], list[TensorType]]

    Meaning = Callable[[Sequence[Array], Dims, Sequence[Array], np.dtype[Any]], Array]


class OperandKind(enum.Enum):
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
        like_previous: Whether it has the type of the DIMS operand before it, so that its type is not mangled.
        repeated: Whether one or more operands of this kind may follow each other.
        empty: Of DIMS: advice on how to write an empty list, as LLVM has no vectors without elements; empty if the
            list must have entries.
    """

    name: str
    kind: OperandKind
    doc: str
    like_previous: bool = False
    repeated: bool = False
    empty: str = ""


@dataclass(frozen=True, eq=False)
class Intrinsic:
    """One row of the table.

    Attributes:
        name: `matmul` of `llvm.tensor.matmul`.
        operands: Operands of the canonical form.
        result: What a call returns; a vector is the flattened result.
        doc: One line for the reference.
        infer: From the operands' tensor types, the values of the DIMS (and INDEX) operands and the result's element
            type to the allowed results, the preferred one first. Raises ValueError (RuleError if one operand is to
            blame) if the operands do not match. The result of loads and typeinfo is the type that they describe.
        meaning: From logical arrays, DIMS, SCALAR operands and the result's dtype to the result's logical array.
        example: Calls in the canonical spelling, without the function around them.
        effects: Effects on memory; `typeinfo` is pure, but neither speculatable nor `willreturn` (see `attributes`).
        variants: Other accepted forms.
        aliases: Other accepted names.
        narrow: Tensor operands (by index among the tensors) whose elements may be narrower than those of the result.
        is_function: Whether it is an elementary function such as exp, which `tlx.lower.legalize.math` expands.
        is_product: Whether it multiplies and adds, so that its rule in `tlx.lower.to_2d.rules.products` takes an
            epilogue: operations on the sums before they are stored.
        prefix: Prefix of the full name.
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
    is_function: bool = False
    is_product: bool = False
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
        """Attributes of the declaration, as LLVM 14 to 22 spell them.

        Args:
            reads: Whether the operand of `typeinfo` is a pointer.

        `typeinfo` is not `willreturn speculatable`: otherwise LLVM deletes a loop whose token is used after it.
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
        operand: Name of the operand to blame; None if it is not a single one.
        number: Index of a repeated operand.
    """

    def __init__(self, message: str, operand: str | None = None, number: int = 0) -> None:
        super().__init__(message)
        self.operand = operand
        self.number = number


_MOST_SUBSETS: Final = 6


def extents_text(extents: Iterable[int]) -> str:
    """Extents as messages show them, such as `3x4`."""
    return "x".join(map(str, extents))


def logical_paddings(tensor: TensorType) -> list[int]:
    """Padding of each logical dimension."""
    return [tensor.padding[tensor.position(d)] for d in range(tensor.rank)]


def row_major_results(element: Type, extents: Sequence[int], paddings: Sequence[int]) -> list[TensorType]:
    """Row-major results: without padding, with all of `paddings`, then with that of some dimensions only."""
    padded = [d for d, padding in enumerate(paddings) if padding]
    if not padded:
        return [TensorType.dense(element, extents)]
    sizes = [0, len(padded)]
    if len(padded) <= _MOST_SUBSETS:
        sizes.extend(range(1, len(padded)))
    layout = tuple(range(len(extents)))
    results: list[TensorType] = []
    for padded_dims in itertools.chain.from_iterable(itertools.combinations(padded, size) for size in sizes):
        padding = tuple(p if d in padded_dims else 0 for d, p in enumerate(paddings))
        shape = tuple(e + p for e, p in zip(extents, padding, strict=True))
        results.append(tensor_type(element, shape, layout, padding))
    return results


def _bits(type_: Type) -> int:
    return type_.bits if isinstance(type_, (IntType, FloatType)) else 0


def check_extends(name: str, operand: Type, to: Type, what: str) -> None:
    """Check that an operand's elements have the result's type or extend to it: i8 to i32, bfloat to float."""
    if isinstance(operand, IntType) != isinstance(to, IntType):
        message = f"{name} has elements of type {operand} and {what} of type {to}: both must be integers or both floats"
        raise RuleError(message, name)
    if operand != to and _bits(operand) >= _bits(to):
        message = f"{name} has elements of type {operand}, which do not extend to {what}'s type {to}"
        raise RuleError(message, name)


def check_same_element(tensor: TensorType, element: Type) -> None:
    """Check that the operand's elements have the result's type."""
    if tensor.element != element:
        message = f"the operand has elements of type {tensor.element} and the result of type {element}: they must agree"
        raise RuleError(message)


def check_permutation(name: str, numbers: Sequence[int], rank: int) -> None:
    """Check that an operand names each dimension once."""
    if sorted(numbers) != list(range(rank)):
        message = f"{name} {vector_text(numbers)} is not a permutation of 0 to {rank - 1}"
        raise RuleError(message, name)


def own_type(tensors: Sequence[TensorType], _dims: Dims, element: Type) -> list[TensorType]:
    """The typing rule of operations whose result has the type of their only operand."""
    check_same_element(tensors[0], element)
    return [tensors[0]]


def same_array(arrays: Sequence[Array], _dims: Dims, _scalars: Sequence[Array], _dtype: np.dtype[Any]) -> Array:
    """The meaning of operations that do not change the logical array."""
    return arrays[0]
