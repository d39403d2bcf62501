"""LLVM's ordinary intrinsics on flattened vectors as statements of dataflow functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.fuzz.dataflow import FLOATS, INTEGERS, Dataflow
from tlx.fuzz.flows import Facts, Flow, range_of, ranged, unknown
from tlx.fuzz.operation import Operation
from tlx.fuzz.tensor_operations import ulps_of, unary_facts
from tlx.ir.mangle import mangle
from tlx.ir.types import DOUBLE, FLOAT, I16, I32, I64, Type
from tlx.types import TensorType


def _intrinsic(flow: Dataflow, name: str, operands: list[Flow], element: Type, facts: Facts, *more: str) -> Flow:
    """A call of an `llvm.*` intrinsic, declared."""
    type_ = operands[0].type
    result = TensorType(element, type_.shape, type_.layout, type_.padding)
    suffix = mangle(type_.vector)
    callee = f"@llvm.{name}.{suffix}" if element == type_.element else f"@llvm.{name}.{mangle(result.vector)}.{suffix}"
    types = [str(x.type.vector) for x in operands] + [text.split()[0] for text in more]
    flow.declarations.add(f"declare {result.vector} {callee}({', '.join(types)})")
    arguments = [*(x.vector.typed for x in operands), *more]
    return Flow(flow.call(f"{result.vector} {callee}({', '.join(arguments)})", result), facts)


def _rounding(name: str) -> Operation:
    def operation(flow: Dataflow) -> Flow:
        x = flow.number(FLOATS)
        return _intrinsic(flow, name, [x], x.element, x.facts)

    return operation


def _function(name: str) -> Operation:
    """Functions of a float such as `fabs`, `exp`, `sin`."""

    def operation(flow: Dataflow) -> Flow:
        x = flow.number(FLOATS)
        return _intrinsic(flow, name, [x], x.element, unary_facts(name, x))

    return operation


def _power(flow: Dataflow) -> Flow | None:
    x = flow.number((FLOAT, DOUBLE))
    y = flow.partner(x)
    if not (x.facts.zeros and y.facts.zeros):
        return None
    return _intrinsic(flow, "pow", [x, y], x.element, Facts(ulps=ulps_of(x.element), zeros=False))


def _extremum(name: str) -> Operation:
    """`minnum` and its kin: which of two zeros comes out is determined for `minimum` and `maximum` only."""

    def operation(flow: Dataflow) -> Flow:
        x = flow.number(FLOATS)
        y = flow.partner(x)
        facts = x.facts.joined(y.facts)
        return _intrinsic(
            flow, name, [x, y], x.element, facts if name.endswith("imum") else replace(facts, zeros=False)
        )

    return operation


def _copysign(flow: Dataflow) -> Flow | None:
    """The sign of NaN is not determined, so that signs come from small integers."""
    x = flow.number(FLOATS)
    y = flow.partner(x, integral=True)
    if not (y.facts.integral and y.facts.zeros) or y.type.is_padded:
        return None
    facts = replace(x.facts, low=-x.facts.bound, high=x.facts.bound)
    return _intrinsic(flow, "copysign", [x, y], x.element, replace(facts, zeros=x.facts.zeros))


def _fused(name: str) -> Operation:
    """`fma` is rounded once; whether `fmuladd` is must not matter, nor may half be fused by way of float."""

    def operation(flow: Dataflow) -> Flow | None:
        narrow = name == "fmuladd" or flow.chance(0.5)
        x = flow.number(FLOATS if narrow else (FLOAT, DOUBLE), integral=narrow)
        y, z = flow.partner(x, integral=narrow), flow.partner(x, integral=narrow)
        low, high = range_of("add", Facts(*range_of("mul", x.facts, y.facts)), z.facts)
        zeros = x.facts.zeros and y.facts.zeros and z.facts.zeros
        facts = Facts(zeros=zeros)
        if x.facts.integral and y.facts.integral and z.facts.integral:
            facts = ranged(x.element, low, high, zeros=zeros)
        if narrow and not facts.integral:
            return None
        return _intrinsic(flow, name, [x, y, z], x.element, facts)

    return operation


def _saturating_conversion(name: str) -> Operation:
    def operation(flow: Dataflow) -> Flow:
        x = flow.number(FLOATS)
        element = flow.random.choice(INTEGERS)
        return _intrinsic(flow, name, [x], element, unknown(element))

    return operation


def _integer_function(name: str, operands: int, *more: str) -> Operation:
    """Functions of integers such as `smax`, `ctpop`, `fshl`."""

    def operation(flow: Dataflow) -> Flow:
        x = flow.number((I32, I16, I64) if name == "bswap" else INTEGERS)
        others = [flow.partner(x) for _ in range(operands - 1)]
        facts = x.facts.joined(others[0].facts) if name in ("smax", "smin") else unknown(x.element)
        return _intrinsic(flow, name, [x, *others], x.element, facts, *more)

    return operation


INTRINSICS: Final[dict[str, Operation]] = {
    **{f"llvm.{name}": _rounding(name) for name in "trunc rint nearbyint round roundeven floor ceil".split()},
    **{f"llvm.{name}": _function(name) for name in "fabs sqrt exp exp2 log log2 log10 sin cos tanh".split()},
    "llvm.pow": _power,
    **{f"llvm.{name}": _extremum(name) for name in ("minnum", "maxnum", "minimum", "maximum")},
    "llvm.copysign": _copysign,
    **{f"llvm.{name}": _fused(name) for name in ("fma", "fmuladd")},
    **{f"llvm.{name}": _saturating_conversion(name) for name in ("fptosi.sat", "fptoui.sat")},
    **{f"llvm.{name}": _integer_function(name, 2) for name in ("smax", "smin", "umax", "umin")},
    **{f"llvm.{name}": _integer_function(name, 2) for name in ("sadd.sat", "ssub.sat", "uadd.sat", "usub.sat")},
    **{f"llvm.{name}": _integer_function(name, 1, "i1 false") for name in ("abs", "ctlz", "cttz")},
    **{f"llvm.{name}": _integer_function(name, 1) for name in ("ctpop", "bswap", "bitreverse")},
    **{f"llvm.{name}": _integer_function(name, 3) for name in ("fshl", "fshr")},
}
