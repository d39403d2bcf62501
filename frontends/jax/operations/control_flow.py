"""Calls, loops and conditionals."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from tlx.frontends.jax.operations.linear_algebra import LAPACK
from tlx.frontends.jax.operations.sorting import approximate_top_k
from tlx.frontends.jax.translation import OperationContext, Results, TranslationRule
from tlx.graph import Value

_ALGORITHMS: Final = {"THREE_FRY": "threefry", "PHILOX": "philox", "DEFAULT": "philox"}
_SHARDING: Final = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape")
_FUNCTIONS: Final = {"ApproxTopK": approximate_top_k, **LAPACK}
_REMEDY: Final = "write it in jax.numpy and jax.lax"


def _call(c: OperationContext) -> Results:
    """The function's operations, in place of the call."""
    return c.translation.call(c.operation, c.attribute("callee"), c.operands, c.needed)


def _composite(c: OperationContext) -> Results:
    """An operation that has a definition: its own rule if there is one, else the definition."""
    name: str = c.attribute("name")
    if name == "chlo.erf" and c.operands[0].dtype.itemsize <= 4:
        return [c.graph.erf(c.operands[0])]
    return c.translation.call(c.operation, c.attribute("decomposition"), c.operands, c.needed)


def _custom_call(c: OperationContext) -> Results:
    name: str = c.attribute("call_target_name")
    if name in _FUNCTIONS:
        return _FUNCTIONS[name](c)
    if name not in _SHARDING:
        remedy = "call numpy.linalg outside of the compiled function" if name.startswith("lapack") else _REMEDY
        c.refuse(f"'{name}' is an XLA function that TLX cannot call: {remedy}")
    return c.operands


def _while(c: OperationContext) -> Results:
    def condition(*state: Value) -> Value:
        (holds,) = c.region(0, *state)
        return holds

    return c.graph.while_loop(condition, lambda *state: c.region(1, *state), *c.operands)


def _case(c: OperationContext) -> Results:
    branches = [partial(c.region, k) for k in range(len(c.operation.regions))]
    return c.graph.switch(c.operands[0], branches)


def _if(c: OperationContext) -> Results:
    return c.graph.conditional(c.operands[0], partial(c.region, 0), partial(c.region, 1))


def _random_bits(c: OperationContext) -> Results:
    algorithm = _ALGORITHMS[c.attribute("rng_algorithm")]
    bits = c.operation.types[1]
    return c.graph.random_bits(c.operands[0], bits.shape or (), bits.dtype or np.dtype(np.uint32), algorithm)


RULES: Final[dict[str, TranslationRule]] = {
    "func.call": TranslationRule(_call, "the operations of the function"),
    "stablehlo.case": TranslationRule(_case, "`switch(index, branches)`"),
    "stablehlo.composite": TranslationRule(_composite, "the operations of its definition; `erf` for `chlo.erf`"),
    "stablehlo.custom_call": TranslationRule(
        _custom_call,
        "its operands, if it says how they are sharded; `ApproxTopK` sorts; LAPACK's potrf, trsm and getrf are "
        "`cholesky`, `triangular_solve` and `lu`; others are refused",
    ),
    "stablehlo.if": TranslationRule(_if, "`conditional(predicate, if_true, if_false)`"),
    "stablehlo.rng_bit_generator": TranslationRule(
        _random_bits, "`random_bits(state, shape, dtype, algorithm)`; the default algorithm is philox, as XLA's here"
    ),
    "stablehlo.while": TranslationRule(_while, "`while_loop(condition, body, *initial)`"),
}
