"""Matrix products between views: loops over the batch dimensions around one 2-D tree.

Used by `matmul` and `mma`, which show before and after.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import Type
from tlx.ir.values import Local, Value
from tlx.lower.to_2d.copies import copy, fill_zero
from tlx.lower.to_2d.loops import merged, nest
from tlx.lower.to_2d.views import Matrix, Place, View, matrix
from tlx.types import TensorType

MMA: Final = frozenset({"umma", "smma", "usmma", "summa"})
_NAMES: Final = ("lhs", "rhs", "out")

NewPlace = Callable[[Type, int, str], Place]


@dataclass(frozen=True)
class Product:
    """A product to emit.

    Attributes:
        kind: `matmul`, or umma, smma, usmma, summa.
        lhs: `B... x M x K`.
        rhs: `B... x K x N`.
        target: `B... x M x N`, row-major, apart from the operands.
        acc: `M x N`: None for matmul, `zero` for an accumulator of zeros. It is the target itself or apart from it.
    """

    kind: str
    lhs: View
    rhs: View
    target: View
    acc: View | None = None
    zero: bool = False


def emit_product(b: TensorBuilder, product: Product, new_place: NewPlace) -> None:
    """Write a product as loops over its batch around a 2-D tree.

    Args:
        b: Where.
        product: The operands and the result.
        new_place: Gives memory for an operand that has to be copied first: element type, count, name.
    """
    lhs = _operand(b, product.lhs, new_place, "lhs")
    rhs = _operand(b, product.rhs, new_place, "rhs")
    target = matrix(product.target)
    if target is None:
        msg = f"result of {product.kind} is not row-major: {product.target}"
        raise ValueError(msg)
    acc = _accumulator(b, product)
    strides = zip(lhs[0].batch, rhs[0].batch, target.batch, strict=True)
    batch = [(dim.extent, s) for dim, s in zip(product.target.dims[:-2], strides, strict=True)]
    with nest(b, merged(batch), 3, "batch") as offsets:
        pointers = [
            b.gep(view.element, view.place.pointer, offset, f"{name}.ptr")
            for name, view, offset in zip(_NAMES, (lhs[1], rhs[1], product.target), offsets, strict=True)
        ]
        destination = pointers[2]
        source = destination if acc is product.target or acc is None else acc.place.pointer
        tokens = [] if acc is None else [_load_acc(b, source, acc)]
        tokens.append(b.tensor_load(pointers[0], lhs[0].type, (0, lhs[0].pitch), "lhs"))
        tokens.append(b.tensor_load(pointers[1], rhs[0].type, (0, rhs[0].pitch), "rhs"))
        token = _combine(b, product.kind, tokens, target.type)
        b.tensor_store(destination, token, (0, target.pitch))


def _operand(b: TensorBuilder, view: View, new_place: NewPlace, name: str) -> tuple[Matrix, View]:
    """An operand as matrices that a 2-D load can read, copied to a dense buffer where it has none."""
    found = matrix(view)
    if found is not None:
        return found, view
    type_ = TensorType.dense(view.element, [dim.extent for dim in view.dims])
    dense = View.of(new_place(view.element, type_.count, name), type_)
    copy(b, view, dense)
    found = matrix(dense)
    assert found is not None
    return found, dense


def _accumulator(b: TensorBuilder, product: Product) -> View | None:
    """The accumulator, row-major: the target itself, after a copy, where it is not."""
    acc, target = product.acc, product.target
    if product.zero:
        fill_zero(b, target)
        return target
    if acc is None or acc.is_same(target):
        return target if acc is not None else None
    found = matrix(acc)
    if found is not None and found.type.is_row_major:
        return acc
    copy(b, acc, target)
    return target


def _load_acc(b: TensorBuilder, pointer: Value, acc: View) -> Local:
    found = matrix(acc)
    assert found is not None
    return b.tensor_load(pointer, found.type, (0, found.pitch), "acc")


def _combine(b: TensorBuilder, kind: str, tokens: list[Local], type_: TensorType) -> Local:
    if kind == "matmul":
        lhs, rhs = tokens
        return b.typeinfo(b.matmul(lhs, rhs, type_), type_, "product")
    acc, lhs, rhs = tokens
    return b.typeinfo(b.mma(kind, acc, lhs, rhs, type_), type_, "sum")
