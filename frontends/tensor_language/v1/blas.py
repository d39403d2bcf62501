"""Collective instructions that compute on whole memrefs.

The order of modifiers changes (`gemm.n.t.atomic` is `gemm.atomic.n.t` in version 2), and factors become values.

Version 1 takes what version 2 does not: an atomic update with any beta, and an alpha wider than the inputs. A function
with one of these gets the attribute `"wide_factors"`. Local memory belongs to one work-group, whose collective
instructions run one after the other, so there an update need not be atomic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tlx.frontends.tensor_language.ast import collective
from tlx.frontends.tensor_language.ast.base import Name, TypeRef
from tlx.frontends.tensor_language.types import MemrefType, ScalarType, promotable, promote
from tlx.frontends.tensor_language.v1 import tree as v1
from tlx.frontends.tensor_language.v1.builder import Builder


def alloca(_: Builder, i: v1.Alloca) -> collective.Alloca:
    """`alloca`, whose memory version 2 calls local."""
    (reference,) = i.types
    assert isinstance(reference.type, MemrefType)
    type_ = TypeRef(replace(reference.type, address_space="local"), reference.span)
    return collective.Alloca(types=(type_,))


def lifetime_stop(b: Builder, i: collective.LifetimeStop) -> collective.LifetimeStop:
    """`lifetime_stop`."""
    return collective.LifetimeStop(memref=b.known(i.memref))


def blas(b: Builder, i: v1.Blas) -> collective.Blas:
    """`axpby`, `gemm`, `gemv`, `ger`, `hadamard` and `sum`."""
    alpha_type, *input_types, beta_type, output_type = i.types
    alpha = b.operand(i.alpha, alpha_type)
    inputs: list[MemrefType] = []
    for name, type_ in zip(i.inputs, input_types, strict=True):
        inputs.append(b.memref(name, type_))
    beta = b.operand(i.beta, beta_type)
    output = b.memref(i.output, output_type)
    atomic = i.atomic and _stays_atomic(b, i, output)
    b.has_wide_factors |= _is_wide(alpha_type, inputs)
    return _of_version_2(i, alpha, beta, atomic=atomic)


def _stays_atomic(b: Builder, i: v1.Blas, output: MemrefType) -> bool:
    if isinstance(i.beta, v1.Constant) and i.beta.value in {0, 1}:
        return True
    is_global = output.address_space == "global"
    b.has_wide_factors |= is_global
    return is_global


def _is_wide(alpha: TypeRef, inputs: Sequence[MemrefType]) -> bool:
    """Whether the inputs do not hold all values of alpha."""
    computed: ScalarType | None = inputs[0].element
    for memref in inputs[1:]:
        computed = promote(computed, memref.element) if computed else None
    return isinstance(alpha.type, ScalarType) and computed is not None and not promotable(alpha.type, computed)


def _of_version_2(i: v1.Blas, alpha: Name, beta: Name, *, atomic: bool) -> collective.Blas:
    match i.name, i.inputs, i.transposes:
        case "axpby", (a,), (op,):
            return collective.Axpby(alpha=alpha, a=a, beta=beta, b=i.output, transpose=op, atomic=atomic)
        case "sum", (a,), (op,):
            return collective.Sum(alpha=alpha, a=a, beta=beta, b=i.output, transpose=op, atomic=atomic)
        case "gemv", (a, x), (op,):
            return collective.Gemv(alpha=alpha, a=a, b=x, beta=beta, c=i.output, transpose=op, atomic=atomic)
        case "gemm", (a, x), (op_a, op_b):
            return collective.Gemm(
                alpha=alpha, a=a, b=x, beta=beta, c=i.output, transpose_a=op_a, transpose_b=op_b, atomic=atomic
            )  # fmt: skip
        case "ger", (a, x), ():
            return collective.Ger(alpha=alpha, a=a, b=x, beta=beta, c=i.output, atomic=atomic)
        case _:
            a, x = i.inputs
            return collective.Hadamard(alpha=alpha, a=a, b=x, beta=beta, c=i.output, atomic=atomic)


RULES: Final = {
    v1.Alloca: alloca,
    v1.Blas: blas,
    collective.LifetimeStop: lifetime_stop,
}
