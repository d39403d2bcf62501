"""Collective instructions that compute on whole memrefs.

The order of modifiers changes (`gemm.n.t.atomic` is `gemm.atomic.n.t` in version 2), and factors become values.

An atomic update with a beta other than 0 and 1 has an equal in version 2 only where nobody else updates the output:
local memory belongs to one work-group, whose collective instructions run one after the other, so there the update need
not be atomic. Scaling global memory first and adding to it afterwards is not the same: another work-group may come in
between.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.frontends.tensor_language.ast import collective
from tlx.frontends.tensor_language.ast.base import Name, TypeRef
from tlx.frontends.tensor_language.types import MemrefType
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
    for name, type_ in zip(i.inputs, input_types, strict=True):
        b.expect(name, type_)
    beta = b.operand(i.beta, beta_type)
    output = b.memref(i.output, output_type)
    atomic = i.atomic and _stays_atomic(b, i, output)
    return _of_version_2(i, alpha, beta, atomic=atomic)


def _stays_atomic(b: Builder, i: v1.Blas, output: MemrefType) -> bool:
    if isinstance(i.beta, v1.Constant) and i.beta.value in {0, 1}:
        return True
    if output.address_space == "global":
        message = f"version 2 has '{i.name}.atomic' only with a beta of 0 or 1"
        how = "scale with axpby in a kernel before, or compute into an alloca and add that with beta 1.0"
        b.reports.add(f"{message}; {how}", i.beta.span)
    return False


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
