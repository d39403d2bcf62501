"""Mathematical functions compiled for a target and run on arrays; their errors in units in the last place."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

import mpmath as _mpmath
import numpy as np
from numpy.typing import NDArray

import tlx
from tlx.ir.builder import Builder, new_function
from tlx.ir.parser.module import parse
from tlx.ir.types import DOUBLE, FLOAT, I8, I64, FloatType, VectorType
from tlx.lower.legalize.math import VECTOR_FUNCTIONS, emit_math_function
from tlx.lower.operations import FULL_ACCURACY, Accuracy
from tlx.target.host import cpu_flags, missing_features
from tlx.target.lookup import find_target
from tlx.target.target import Target

mpmath: Any = _mpmath  # has no types
Array = NDArray[Any]
NAMES: Final = tuple(VECTOR_FUNCTIONS)
TARGETS: Final = tuple(find_target(name) for name in ("generic", "avx2", "avx512"))
RUNNABLE: Final = tuple(target.name for target in TARGETS if not missing_features(target, cpu_flags()))
DTYPES: Final[dict[FloatType, Any]] = {FLOAT: np.float32, DOUBLE: np.float64}
ELEMENTS: Final = tuple(DTYPES)
TYPE_NAMES: Final = ("float", "double")

# Bits that a reference of doubles needs: sine and cosine cancel all but the last of up to 1024 + 53 + 62 bits.
_PRECISION: Final = 160
_HUGE_PRECISION: Final = 1300
PRECISE: Final[dict[str, Callable[[Any], Any]]] = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpmath.power(2, x),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "tanh": mpmath.tanh,
    "erfc": mpmath.erfc,
    "log": mpmath.log,
    "log2": lambda x: mpmath.log(x, 2),
    "log10": mpmath.log10,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
}


def lanes_of(target: Target, element: FloatType) -> int:
    return target.vector_bytes * 8 // element.bits


def program(name: str, element: FloatType, target: Target, lanes: int, accuracy: Accuracy = FULL_ACCURACY) -> str:
    """`@f(out, in, n)` applies a function to n numbers, `lanes` at a time."""
    module = parse("")
    pointer = module.pointer_to(I8)
    features = f' "target-features"="{",".join(target.features)}"' if target.features else ""
    parameters = [(pointer, "", "out"), (pointer, "", "in"), (I64, "", "n")]
    made = new_function(module, "f", parameters, f"nounwind{features}", "")
    b = Builder(module, made)
    out, source, count = (argument.value for argument in made.arguments)
    align = element.bits // 8
    with b.loop(0, count, lanes) as loop:
        x = b.load(VectorType(lanes, element), b.gep(element, source, loop.index), align)
        b.store(emit_math_function(b, target, name, x, element, accuracy), b.gep(element, out, loop.index), align)
    b.ret()
    return str(module)


@cache
def _compiled(name: str, element: FloatType, target: str, accuracy: Accuracy) -> Callable[[Array, Array, int], None]:
    machine = find_target(target)
    made = tlx.compile(program(name, element, machine, lanes_of(machine, element), accuracy), "generic", opt_level=1)
    return cast("Callable[[Array, Array, int], None]", made["f"])


def computed(name: str, x: Array, target: str, accuracy: Accuracy = FULL_ACCURACY) -> Array:
    """The function of every number, by the target's code."""
    element = FLOAT if x.dtype == np.float32 else DOUBLE
    lanes = lanes_of(find_target(target), element)
    padded = np.concatenate([x, np.ones(-x.size % lanes, x.dtype)])
    result = np.empty_like(padded)
    _compiled(name, element, target, accuracy)(result, padded, padded.size)
    return result[: x.size]


# Errors ----------------------------------------------------------------------------------------------------------


def errors_of_floats(name: str, x: Array, result: Array) -> Array:
    """Errors in ulp of floats; the reference are numpy's doubles, whose own error is 2^-29 of a float's ulp."""
    with np.errstate(all="ignore"):
        exact = _IN_DOUBLES[name](x.astype(np.float64))
    finite = np.isfinite(exact) & (np.abs(exact) < float(np.finfo(np.float32).max))
    exact, got = np.where(finite, exact, 1.0), np.where(finite, result, 1.0).astype(np.float64)
    exponent = np.maximum(np.frexp(exact)[1] - 24, -149)
    return np.abs(got - exact) * np.exp2(-exponent.astype(np.float64))


def error_of_double(name: str, x: float, result: float) -> float:
    """The error in ulp of a double."""
    huge = name in ("sin", "cos") and abs(x) > 1e6
    with mpmath.workprec(_HUGE_PRECISION if huge else _PRECISION):
        exact = PRECISE[name](mpmath.mpf(x))
        exponent = max(int(mpmath.frexp(exact)[1]) - 53, -1074) if exact else -1074
        return float(abs(mpmath.ldexp(mpmath.mpf(result) - exact, -exponent)))


def errors(name: str, x: Array, result: Array) -> Array:
    """Errors in ulp of finite results."""
    if x.dtype == np.float32:
        return errors_of_floats(name, x, result)
    return np.array([error_of_double(name, float(a), float(b)) for a, b in zip(x, result, strict=True)])


def _sigmoid(x: Array) -> Array:
    power = np.exp(-np.abs(x))
    return np.where(x < 0, power, 1.0) / (1.0 + power)


_IN_DOUBLES: Final[dict[str, Callable[[Array], Array]]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sin": np.sin,
    "cos": np.cos,
}


# Arguments -------------------------------------------------------------------------------------------------------

# Where results are finite and change.
RANGES: Final = {
    (FLOAT, "exp"): (-103.97, 88.72),
    (DOUBLE, "exp"): (-745.1, 709.78),
    (FLOAT, "exp2"): (-149.9, 127.99),
    (DOUBLE, "exp2"): (-1074.9, 1023.99),
    (FLOAT, "sigmoid"): (-103.97, 20.0),
    (DOUBLE, "sigmoid"): (-745.1, 40.0),
    (FLOAT, "tanh"): (-10.0, 10.0),
    (DOUBLE, "tanh"): (-20.0, 20.0),
    (FLOAT, "erfc"): (-4.0, 10.05),
    (DOUBLE, "erfc"): (-6.0, 27.22),
}


def every_exponent(element: FloatType, step: int) -> Array:
    """Every `step`-th float, or as many doubles as evenly spread over all that are finite."""
    if element == FLOAT:
        words = np.arange(0, 1 << 32, step, dtype=np.uint64) + np.arange(0, 1 << 32, step, dtype=np.uint64) % 97
        result: Array = words.astype(np.uint32).view(np.float32)
    else:
        random = np.random.default_rng(7)
        result = random.integers(0, 1 << 64, (1 << 32) // step, dtype=np.uint64).view(np.float64)
    return result[np.isfinite(result)]


def denormals(element: FloatType, count: int) -> Array:
    """Denormal numbers of both signs, the smallest and the largest among them."""
    info = np.finfo(DTYPES[element])
    random = np.random.default_rng(3)
    some = random.uniform(-1, 1, count) * float(info.smallest_normal)
    return np.array([*some, info.smallest_subnormal, -info.smallest_subnormal], DTYPES[element])


def uniform(element: FloatType, low: float, high: float, count: int) -> Array:
    """Evenly distributed numbers."""
    return np.random.default_rng(5).uniform(low, high, count).astype(DTYPES[element])


def worst(name: str, x: Array, target: str) -> float:
    """The largest error in ulp."""
    return float(np.max(errors(name, x, computed(name, x, target))))
