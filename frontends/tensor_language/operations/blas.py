"""Collective operations on whole vectors and matrices: `output := alpha * f(inputs) + beta * output`.

    axpby     B    := alpha op(A)         + beta B        shape(op(A)) = shape(B)
    cumsum    B    := running sums of A   + beta B        shape(A) = shape(B)
    sum       b    := alpha op(A) 1       + beta b        RxK K -> R, or K -> a scalar
    gemm      C    := alpha op1(A) op2(B) + beta C        RxK KxC -> RxC
    gemv      c    := alpha op(A) b       + beta c        RxK K -> R
    ger       C    := alpha a b^T         + beta C        R C -> RxC
    hadamard  C    := alpha A B           + beta C        entry by entry

A static extent matches the same static extent, `?` matches `?`. An input may also be the output only if each entry of
the output depends on no other entry of that input; running sums are an exception, as they overwrite what they have
read.

`Blas.indices` gives the index that each mode of an operand has: an index of the output, or `K`, which is summed.
Checker and emitter derive shapes and loops from it: the modes of `gemm` are A(0, K), with .t A(K, 0), B(K, 1) and C(0,
1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, TypeVar

from tlx.frontends.tensor_language.errors import listed
from tlx.frontends.tensor_language.operations.context import ExtentOperand, FunctionCheck
from tlx.frontends.tensor_language.operations.core import Transpose, entry_of, flag, mnemonic, operation, transpose
from tlx.frontends.tensor_language.syntax.forms import Piece, comma, integer, operands
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name, constant_text
from tlx.frontends.tensor_language.types import Extent, MemrefType, ScalarType, extent_text, promotable, promote

_ATOMIC: Final = flag("atomic")
K: Final = -1  # the index that is summed over
Indices = tuple[int, ...]
_Node = TypeVar("_Node", bound=Instruction)


@dataclass(kw_only=True, slots=True)
class Blas(Instruction):
    """An instruction that computes `alpha * f(inputs) + beta * output` into its last operand.

    Attributes:
        atomic: Whether the output is updated atomically.
        alpha: Factor of the computed value.
        a: The first (or only) input.
        beta: Factor of the output's old contents.
    """

    INDICES: ClassVar[Mapping[str, Indices]] = {}  # by operand, before it is transposed; empty where entry by entry

    atomic: bool = False
    alpha: Name
    a: Name
    beta: Name

    @property
    def inputs(self) -> tuple[str, ...]:
        """The fields of the memrefs that are read besides the output."""
        return ("a", "b") if "c" in entry_of(type(self)).fields else ("a",)

    def indices(self, field: str, order: int) -> Indices:
        """The index of each mode of an operand that has an order."""
        own = self.INDICES.get(field, tuple(range(order)))[-order:] if order else ()
        return own[::-1] if self.is_transposed(field) else own

    def is_transposed(self, field: str) -> bool:
        """Whether an operand is transposed."""
        name = self._transpose_of(field)
        return name is not None and getattr(self, name) == "t"

    def spelled(self, field: str) -> str:
        """An operand in messages: `%B`, or `op2(%B)` where it can be transposed."""
        number = "12"["ab".index(field)] if len(self.inputs) > 1 and field != "c" else ""
        name = getattr(self, field)
        return f"{name}" if self._transpose_of(field) is None else f"op{number}({name})"

    def _transpose_of(self, field: str) -> str | None:
        """The modifier that transposes an operand."""
        candidates = ("transpose", "transpose_a") if field == "a" else (f"transpose_{field}",)
        return next((m.field for m in entry_of(type(self)).modifiers or () if m.field in candidates), None)


def _of_memrefs(
    name: str, *transposes: str, mode: tuple[Piece, ...] = (), **memrefs: str
) -> Callable[[type[_Node]], type[_Node]]:
    """Enter an operation `name %alpha, %A, [%B,] %beta, %C` into the table.

    Args:
        name: Its name.
        transposes: The fields of the modifiers that transpose operands.
        mode: What follows the inputs.
        memrefs: Fields of the memrefs and their names in messages, the output last.
    """
    *inputs, output = memrefs
    before, after = {"alpha": "alpha", **{f: memrefs[f] for f in inputs}}, {"beta": "beta", output: memrefs[output]}
    return operation(
        name, *operands(**before), *mode, comma("beta"), *operands(**after),
        modifiers=(_ATOMIC, *map(transpose, transposes)), writes=output, results="none", region="collective",
    )  # fmt: skip


@_of_memrefs("axpby", "transpose", a="A", b="B")
@dataclass(kw_only=True, slots=True)
class Axpby(Blas):
    """`axpby[.atomic][.t|.n] %alpha, %A, %beta, %B`: `B := alpha op(A) + beta B`."""

    transpose: Transpose = "n"
    b: Name


@_of_memrefs("cumsum", mode=(comma("the mode"), integer("mode", "the mode of 'cumsum'")), a="A", b="B")
@dataclass(kw_only=True, slots=True)
class Cumsum(Blas):
    """`cumsum[.atomic] %alpha, %A, mode, %beta, %B`: running sums along a mode, counted from 0."""

    mode: int
    b: Name


@_of_memrefs("sum", "transpose", a="A", b="b")
@dataclass(kw_only=True, slots=True)
class Sum(Blas):
    """`sum[.atomic][.t|.n] %alpha, %A, %beta, %b`: sums of the rows of op(A), or of a vector."""

    INDICES: ClassVar[Mapping[str, Indices]] = {"a": (0, K), "b": (0,)}

    transpose: Transpose = "n"
    b: Name


@_of_memrefs("gemm", "transpose_a", "transpose_b", a="A", b="B", c="C")
@dataclass(kw_only=True, slots=True)
class Gemm(Blas):
    """`gemm[.atomic][.t|.n][.t|.n] %alpha, %A, %B, %beta, %C`: `C := alpha op1(A) op2(B) + beta C`."""

    INDICES: ClassVar[Mapping[str, Indices]] = {"a": (0, K), "b": (K, 1), "c": (0, 1)}

    transpose_a: Transpose = "n"
    transpose_b: Transpose = "n"
    b: Name
    c: Name


@_of_memrefs("gemv", "transpose", a="A", b="b", c="c")
@dataclass(kw_only=True, slots=True)
class Gemv(Blas):
    """`gemv[.atomic][.t|.n] %alpha, %A, %b, %beta, %c`: `c := alpha op(A) b + beta c`."""

    INDICES: ClassVar[Mapping[str, Indices]] = {"a": (0, K), "b": (K,), "c": (0,)}

    transpose: Transpose = "n"
    b: Name
    c: Name


@_of_memrefs("ger", a="a", b="b", c="C")
@dataclass(kw_only=True, slots=True)
class Ger(Blas):
    """`ger[.atomic] %alpha, %a, %b, %beta, %C`: `C := alpha a b^T + beta C`."""

    INDICES: ClassVar[Mapping[str, Indices]] = {"a": (0,), "b": (1,), "c": (0, 1)}

    b: Name
    c: Name


@_of_memrefs("hadamard", a="A", b="B", c="C")
@dataclass(kw_only=True, slots=True)
class Hadamard(Blas):
    """`hadamard[.atomic] %alpha, %A, %B, %beta, %C`: the product entry by entry."""

    b: Name
    c: Name


_SAME: Final = "; both must be equal, or both ?"


def check_axpby(context: FunctionCheck, node: Axpby) -> None:
    """`shape(B) = shape(op(A))`, of order 0, 1 or 2."""
    a, b = context.memref(node, node.a), context.memref(node, node.b)
    _check_scalars(context, node, node.b, a, b)
    if _has_order(context, node, node.b, b, 0, 1, 2) and a and b:
        _check_shapes(context, node, f"op({node.a})", _transposed(a, node.transpose), node.b, b.shape, node.a)
        _check_in_place(context, node, a=a, b=b)


def check_cumsum(context: FunctionCheck, node: Cumsum) -> None:
    """`shape(A) = shape(B)`, the mode one of A's."""
    a, b = context.memref(node, node.a), context.memref(node, node.b)
    _check_scalars(context, node, node.b, a, b)
    if a and not 0 <= node.mode < a.order:
        message = f"cumsum: there is no mode {node.mode} of {node.a}; the order is {a.order}, modes count from 0"
        context.error(message, node.span, *context.notes(node.a))
    if a and b:
        _check_shapes(context, node, str(node.a), a.shape, node.b, b.shape, node.a)


def check_sum(context: FunctionCheck, node: Sum) -> None:
    """`order(A) = order(b) + 1`, `rows(b) = rows(op(A))`."""
    a, b = context.memref(node, node.a), context.memref(node, node.b)
    _check_scalars(context, node, node.b, a, b)
    if not _has_order(context, node, node.b, b, 0, 1) or not a or not b:
        return
    if a.order == b.order + 1:
        _check_extents(context, node, {"a": a, "b": b})
        return
    message = (
        f"the order of {node.a} must be that of {node.b} plus 1, {b.order + 1}, but it is {a.order}: "
        "sums of a matrix are a vector, the sum of a vector is a memref of order 0"
    )
    context.report_operand(node, node.a, message, node.a, node.b)


def check_product(context: FunctionCheck, node: Gemm | Gemv | Ger) -> None:
    """`RxK KxC -> RxC`, `RxK K -> R` and `R C -> RxC`."""
    a, b, c = (context.memref(node, name) for name in (node.a, node.b, node.c))
    _check_products(context, node, node.b, node.c, a, b, c)
    fitting = {
        field: type_
        for (field, indices), type_ in zip(node.INDICES.items(), (a, b, c), strict=True)
        if _has_order(context, node, getattr(node, field), type_, len(indices)) and type_
    }
    _check_extents(context, node, fitting)
    _check_in_place(context, node, **fitting)


def _check_extents(context: FunctionCheck, node: Blas, operands: dict[str, MemrefType]) -> None:
    """Modes with the same index have the same extent."""
    for index in (K, 0, 1):
        sides = [side for field, type_ in operands.items() for side in _sides(node, field, type_, index)]
        if len(sides) == 2:
            context.check_equal_extents(node, sides[0], sides[1], "the inner extents" if index == K else "the extents")


def _check_in_place(context: FunctionCheck, node: Blas, **operands: MemrefType) -> None:
    """Check that the output is not an input whose entries are read in another order or repeatedly."""
    output = entry_of(type(node)).writes
    if output not in operands:
        return
    name: Name = getattr(node, output)
    indices = node.indices(output, operands[output].order)
    for field, type_ in operands.items():
        if getattr(node, field) == name and node.indices(field, type_.order) != indices:
            message = f"the output {name} is also an input, read at other indices: write to another memref"
            context.report_operand(node, name, message)
            return


def _sides(node: Blas, field: str, type_: MemrefType, index: int) -> Iterator[ExtentOperand]:
    """The mode of an operand that has an index: `columns(op1(%A))`."""
    name: Name = getattr(node, field)
    indices, shape = node.indices(field, type_.order), type_.shape
    if index in indices:
        mode = indices.index(index)
        is_first = mode == (type_.order - 1 if node.is_transposed(field) else 0)
        yield ExtentOperand(name, f"{'rows' if is_first else 'columns'}({node.spelled(field)})", shape[mode])


def check_hadamard(context: FunctionCheck, node: Hadamard) -> None:
    """Three vectors or three matrices of one shape."""
    a, b, c = (context.memref(node, name) for name in (node.a, node.b, node.c))
    _check_products(context, node, node.b, node.c, a, b, c)
    if not _has_order(context, node, node.a, a, 1, 2) or not a:
        return
    for name, type_ in ((node.b, b), (node.c, c)):
        if type_:
            _check_shapes(context, node, str(node.a), a.shape, name, type_.shape, node.a)


def _check_products(
    context: FunctionCheck,
    node: Blas,
    b_name: Name,
    output: Name,
    a: MemrefType | None,
    b: MemrefType | None,
    c: MemrefType | None,
) -> None:
    """`type(alpha) <= promote(element(A), element(B)) <= element(C)`."""
    product = promote(a.element, b.element) if a and b else None
    if a and b and product is None:
        message = (
            f"elements {a.element} of {node.a} and {b.element} of {b_name} cannot be promoted to a common type: "
            "neither holds all values of the other"
        )
        context.report_operand(node, b_name, message, node.a)
    inputs = f"the product of {node.a} and {b_name}"
    _check_factors(context, node, output, product, c, inputs)


def _check_scalars(
    context: FunctionCheck, node: Blas, output: Name, a: MemrefType | None, b: MemrefType | None
) -> None:
    """`type(alpha) <= element(A) <= element(B)`."""
    _check_factors(context, node, output, a.element if a else None, b, f"the elements of {node.a}")


def _check_factors(
    context: FunctionCheck, node: Blas, output: Name, inputs: ScalarType | None, result: MemrefType | None, what: str
) -> None:
    alpha, beta = context.number(node, node.alpha), context.number(node, node.beta)
    if context.wide_factors and alpha and result:
        _check_wide_alpha(context, node, output, alpha, result.element)
    elif alpha and inputs and not promotable(alpha, inputs):
        message = f"{node.alpha} has type {alpha}, which cannot be promoted to {inputs}, the type of {what}"
        context.report_operand(node, node.alpha, message, node.alpha, node.a)
    if inputs and result and not promotable(inputs, result.element):
        message = f"{inputs}, the type of {what}, cannot be promoted to {result.element}, the type of {output}"
        context.report_operand(node, output, message, node.a)
    if beta and result and not promotable(beta, result.element):
        message = f"{node.beta} has type {beta}, which cannot be promoted to {result.element}, the type of {output}"
        context.report_operand(node, node.beta, message, node.beta, output)
    is_complex = result is not None and result.element.kind == "complex"
    if node.atomic and beta and (is_complex or not context.wide_factors):
        _check_atomic(context, node)


def _check_wide_alpha(context: FunctionCheck, node: Blas, output: Name, alpha: ScalarType, result: ScalarType) -> None:
    if not promotable(alpha, result):
        message = f"{node.alpha} has type {alpha}, which cannot be promoted to {result}, the type of {output}"
        context.report_operand(node, node.alpha, message, node.alpha, output)


def _check_atomic(context: FunctionCheck, node: Blas) -> None:
    value = context.constant(node.beta)
    if value is None:
        message = f"{mnemonic(node)}.atomic: {node.beta} must come from a constant instruction, 0 or 1"
    elif value not in {0, 1}:
        message = f"{mnemonic(node)}.atomic: {node.beta} must be 0 or 1, but it is {constant_text(value)}"
    else:
        return
    context.error(message, node.beta.span, *context.notes(node.beta))


def _has_order(context: FunctionCheck, node: Blas, name: Name, type_: MemrefType | None, *orders: int) -> bool:
    if type_ is None or type_.order in orders:
        return type_ is not None
    message = f"{name} must have order {listed(orders, 'or')}, but {type_} has order {type_.order}"
    context.report_operand(node, name, message)
    return False


def _transposed(type_: MemrefType, transpose: str) -> tuple[Extent, ...]:
    return type_.shape[::-1] if transpose == "t" and type_.order == 2 else type_.shape


def _check_shapes(
    context: FunctionCheck,
    node: Blas,
    left: str,
    shape: tuple[Extent, ...],
    at: Name,
    other: tuple[Extent, ...],
    against: Name,
) -> None:
    if shape == other:
        return
    message = f"shape({left}) = {_shape_text(shape)} but shape({at}) = {_shape_text(other)}{_SAME}"
    context.report_operand(node, at, message, against)


def _shape_text(shape: tuple[Extent, ...]) -> str:
    return f"({','.join(map(extent_text, shape))})"
