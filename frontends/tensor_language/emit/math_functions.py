"""Functions of one number, as tensor operations on a vector with a lane each work-item: the lowering has code for them.

    exp(a + bi)  = exp(a) (cos b + i sin b)
    exp2(a + bi) = exp2(a) (cos(b ln 2) + i sin(b ln 2))

Numbers with b = 0 stay real where exp(a) is infinite.
"""

from __future__ import annotations

import math
from typing import Final

from tlx.frontends.tensor_language.ast.mixed import Math
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.numbers import compare, full_like, narrowed, undefined
from tlx.frontends.tensor_language.emit.values import Number, Parts
from tlx.ir.types import VectorType
from tlx.ir.values import Value
from tlx.types import TensorType


def math_rule(e: Emitter, i: Math) -> None:
    """`%r = exp %a : type`."""
    operand = e.number(i.operand)
    function = i.op.removeprefix("native_")
    if operand.type.kind == "complex":
        parts = _complex(e, function, operand.parts)
    else:
        parts = (narrowed(e, applied(e, function, operand.value), operand.type),)
    e.bind(i.result, Number(operand.type, parts))


def applied(e: Emitter, function: str, value: Value) -> Value:
    """A function of a float or double, or of each lane of a vector of them."""
    if not isinstance(value.type, VectorType):
        vector = VectorType(1, value.type)
        return e.b.extract_element(applied(e, function, e.b.insert_element(undefined(vector), value, 0)), 0)
    type_ = TensorType.dense(value.type.element, [value.type.count])
    return e.b.unary(function, e.b.typeinfo(value, type_))


def _complex(e: Emitter, function: str, operand: Parts) -> Parts:
    real, imaginary = operand
    length = applied(e, function, real)
    angle = e.b.binary("fmul", imaginary, full_like(imaginary, math.log(2))) if function == "exp2" else imaginary
    cosine, sine = (e.b.binary("fmul", length, applied(e, turn, angle)) for turn in ("cos", "sin"))
    is_real = compare(e, "fcmp", "oeq", imaginary, full_like(imaginary, 0.0))
    return cosine, e.b.select(is_real, imaginary, sine)


RULES: Final = {Math: math_rule}
