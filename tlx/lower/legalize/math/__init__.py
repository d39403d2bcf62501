"""Vector code for the mathematical functions, without library calls.

    >>> emit_math_function(b, target, "exp", x, FLOAT)

emits ordinary instructions that compute e^x in every lane of the register x. Every function is within 4 ulp of the
infinitely precise result for all arguments, denormal arguments and results included, and gives IEEE 754's special
values; each family's module gives the method and its actual error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.types import Type
from tlx.ir.values import Value
from tlx.lower.legalize.math.arithmetic import LaneArithmetic, lanes_of
from tlx.lower.legalize.math.error_function import erfc
from tlx.lower.legalize.math.exponential import exp, exp2, sigmoid, tanh
from tlx.lower.legalize.math.logarithm import log, log2, log10
from tlx.lower.legalize.math.trigonometric import cos, sin
from tlx.lower.operations import FULL_ACCURACY, Accuracy
from tlx.target.target import Target

VECTOR_FUNCTIONS: Final[dict[str, Callable[[LaneArithmetic, Value], Value]]] = {
    "exp": exp,
    "exp2": exp2,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "erfc": erfc,
    "log": log,
    "log2": log2,
    "log10": log10,
    "sin": sin,
    "cos": cos,
}


def emit_math_function(
    b: Builder,
    target: Target,
    name: str,
    x: Value,
    element: Type,
    accuracy: Accuracy = FULL_ACCURACY,
) -> Value:
    """Emit a mathematical function of a register.

    Args:
        b: Where to emit.
        target: The machine; it may have instructions that make the code shorter.
        name: One of `VECTOR_FUNCTIONS`.
        x: A vector of float or double, of any length.
        element: Its element type.
        accuracy: How accurate the result must be.

    Raises:
        ValueError: There is no such function.
        TypeError: The register is not a vector of float or double.
    """
    if name not in VECTOR_FUNCTIONS:
        message = f"no vector code for '{name}' on {target.name}; there is code for {', '.join(VECTOR_FUNCTIONS)}"
        raise ValueError(message)
    return VECTOR_FUNCTIONS[name](lanes_of(b, target, x, element, accuracy), x)
