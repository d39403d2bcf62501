"""Recognises `erfc` of float, which JAX exports as its expansion in StableHLO: 60 operations.

    |x| < 1     1 - x T(x²)
    |x| >= 1    exp(-x²) / |x| P(1 / x²), with other coefficients from 2 on; 0 where exp(-x²) is; 2 - that where x < 0

Exact GELU is half a product with `erfc`, which is one operation as `Graph.erfc`. All operations and constants of the
expansion are compared; code that differs in any of them is translated as it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final

import numpy as np

from tlx.frontends.jax.program import StablehloOperation, StablehloRegion

ERFC: Final = "chlo.erfc"
"""The name of the operation that takes the place of an expansion."""
_SELECT: Final = "stablehlo.select"
_CONVERT: Final = "stablehlo.convert"


@dataclass(frozen=True, eq=False)
class _Pattern:
    """An operation of the expansion with its operands; a constant where it has a number; x where it has neither."""

    name: str = ""
    operands: tuple[_Pattern, ...] = ()
    number: float | None = None


_Term = _Pattern | float


def _op(name: str, *operands: _Term) -> _Pattern:
    terms = tuple(o if isinstance(o, _Pattern) else _Pattern(number=o) for o in operands)
    return _Pattern(f"stablehlo.{name}", terms)


def _polynomial(y: _Pattern, first: float, *others: float) -> _Pattern:
    def step(total: _Term, coefficient: float) -> _Pattern:
        return _op("add", _op("multiply", total, y), coefficient)

    result = reduce(step, others, first)
    assert isinstance(result, _Pattern)
    return result


def _expansion() -> tuple[_Pattern, _Pattern]:
    """x, and its erfc."""
    x = _Pattern()
    square, size = _op("multiply", x, x), _op("abs", x)
    exponent, inverse = _op("negate", square), _op("divide", 1.0, square)
    p = _polynomial(
        inverse,
        *(0.0232682, -0.13870394, 0.36874247, -0.5824733, 0.62100047),
        *(-0.49445152, 0.340488, -0.2741127, 0.56382596),
    )
    r = _polynomial(inverse, -10.477664, 12.9772, -7.4955187, 2.921019, -1.0152652, 0.42184633, -0.28207675, 0.5641895)
    power = _op("multiply", _op("exponential", exponent), _op("divide", 1.0, size))
    far = _op("multiply", power, _op("select", _op("compare", size, 2.0), p, r))
    far = _op("select", _op("compare", exponent, -88.72284), 0.0, far)
    far = _op("select", _op("compare", x, 0.0), _op("subtract", 2.0, far), far)
    t = _polynomial(
        square, 7.8538615e-05, -0.00080101937, 0.0051883277, -0.026853813, 0.112835854, -0.37612626, 1.1283791
    )
    near = _op("subtract", 1.0, _op("multiply", x, t))
    return x, _op("select", _op("compare", size, 1.0), near, far)


_X, _RESULT = _expansion()


@dataclass
class _Match:
    """The comparison of an operation with the expansion.

    Attributes:
        definitions: The operations that define values.
        values: Whether a value is a part of the expansion, by their numbers.
        x: The argument, once it is known.
    """

    definitions: Mapping[int, StablehloOperation]
    values: dict[tuple[int, int], bool] = field(default_factory=dict[tuple[int, int], bool])
    x: int | None = None

    def fits(self, value: int, pattern: _Pattern) -> bool:
        """Whether a value is computed as a part of the expansion is."""
        if pattern is _X:
            self.x = value if self.x is None else self.x
            return self.x == value
        key = value, id(pattern)
        if key not in self.values:
            self.values[key] = self._compare(self.definitions.get(value), pattern)
        return self.values[key]

    def fits_result(self, operation: StablehloOperation) -> bool:
        """Whether an operation computes erfc."""
        return self._compare(operation, _RESULT)

    def _compare(self, operation: StablehloOperation | None, pattern: _Pattern) -> bool:
        if operation is None:
            return False
        if pattern.number is not None:
            return _number(operation, self.definitions) == np.float32(pattern.number)
        direction = operation.attributes.get("comparison_direction", "LT")
        is_same = operation.name == pattern.name and len(operation.operands) == len(pattern.operands)
        return is_same and direction == "LT" and all(map(self.fits, operation.operands, pattern.operands))


def _number(operation: StablehloOperation, definitions: Mapping[int, StablehloOperation]) -> Any:
    """The number of which a constant consists; None if it has others."""
    while operation.name == "stablehlo.broadcast_in_dim" and operation.operands[0] in definitions:
        operation = definitions[operation.operands[0]]
    numbers: np.ndarray[Any, Any] | None = operation.attributes.get("value")
    if operation.name != "stablehlo.constant" or operation.types[0].dtype != np.float32 or numbers is None:
        return None
    first = numbers.flat[0] if numbers.size else None
    return first if not any(numbers.strides) or bool((numbers == first).all()) else None


def _narrow_argument(operation: StablehloOperation, definitions: Mapping[int, StablehloOperation]) -> int | None:
    """The bfloat or half x of `convert(erfc(convert(x)))` with the type of x, which is computed in float anyway."""
    if operation.name != _CONVERT:
        return None
    function = definitions.get(operation.operands[0])
    inner = definitions.get(function.operands[0]) if function is not None and function.name == ERFC else None
    is_same = inner is not None and inner.name == _CONVERT and inner.operand_types == operation.types
    return inner.operands[0] if inner is not None and is_same else None


def with_erfc(region: StablehloRegion, around: Mapping[int, StablehloOperation] | None = None) -> StablehloRegion:
    """A region in which each expansion ends in an `ERFC` operation; its other operations remain, but are not used.

    Args:
        region: The region.
        around: The operations that define values around the region.
    """
    definitions = dict(around or {})
    operations: list[StablehloOperation] = []
    for operation in region.operations:
        if operation.regions:
            inner = tuple(with_erfc(r, definitions) for r in operation.regions)
            operation = replace(operation, regions=inner)
        match = _Match(definitions)
        if operation.name == _SELECT and match.fits_result(operation):
            assert match.x is not None
            operation = replace(operation, name=ERFC, operands=(match.x,), operand_types=operation.types)
        elif (x := _narrow_argument(operation, definitions)) is not None:
            operation = replace(operation, name=ERFC, operands=(x,), operand_types=operation.types)
        definitions.update(dict.fromkeys(operation.results, operation))
        operations.append(operation)
    return replace(region, operations=tuple(operations))
