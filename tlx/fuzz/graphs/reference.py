"""The results of a graph in double precision, computed by JAX, and how much rounding may change them.

Every rounded statement is perturbed: each element of its operands and results is changed by a few units in the last
place of the least precise type involved. How far the results move, over several such runs, is what the graph makes of
rounding errors, whatever its condition; results of TLX may be a few times further away. What is not rounded is compared
bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tlx.fuzz.graphs.drawing import modules
from tlx.fuzz.graphs.operations import table
from tlx.fuzz.graphs.program import GraphProgram, Statement, Variable, as_tuple, dtype_named
from tlx.intrinsics.numpy_types import Array, is_float

_UNITS: Final = 4
"""Units in the last place by which elements are perturbed, the error of TLX's elementary functions."""
_RUNS: Final = 4
_FACTOR: Final = 4
"""How much further than the perturbed results those of TLX may be away."""
_GRADIENT: Final = 32
"""Units in the last place of 1 that gradients may be away: those of saturated functions are `1 - tanh^2`."""
_OF_GRADIENTS: Final = "gradient of "
_TINY: Final = {"float16": 2.0**-22, "bfloat16": 2.0**-120, "float32": 2.0**-120, "float64": 2.0**-1000}
"""Errors of results near zero, where numbers are subnormal."""
_COMPILER_OPTIONS: Final = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    # Wrong in jaxlib 0.10.2: merges nested dynamic slices without clamping the outer start, and aborts the process on
    # some gradients of convolutions with dilated inputs.
    "xla_disable_hlo_passes": "algsimp",
}
"""How XLA compiles the reference: fast, and with as few rewrites as possible."""


@dataclass(frozen=True, slots=True)
class ExpectedResult:
    """A result.

    Attributes:
        variable: The result.
        value: It, in double precision if it is a float.
        error: How far each element may be away; zero for exact ones.
    """

    variable: Variable
    value: Array
    error: Array

    def difference(self, got: Array) -> str | None:
        """What is wrong with a result; None if nothing is."""
        v = self.variable
        if got.shape != v.shape or got.dtype != dtype_named(v.dtype):
            return f"{v.name} is {got.dtype.name}{list(got.shape)}, expected {v.dtype}{list(v.shape)}"
        wide = got.astype(np.float64) if v.is_float else got
        with np.errstate(all="ignore"):
            same = np.asarray(wide == self.value)
            if v.is_float:
                same |= (np.abs(wide - self.value) <= self.error) | ~np.isfinite(self.value) | ~np.isfinite(self.error)
        if bool(same.all()):
            return None
        wrong = np.argwhere(~same)
        at = tuple(int(k) for k in wrong[0])
        allowed = f" within {self.error[at]:.3g}" if v.is_float else ""
        return (
            f"{v.name} ({v.dtype}{list(v.shape)}): {len(wrong)} of {same.size} elements differ; element {list(at)} is "
            f"{wide[at]!s}, expected {self.value[at]!s}{allowed}"
        )


def jax_function(program: GraphProgram, jax: Any, apply: Callable[..., Any]) -> Callable[..., Any]:
    """A graph as a function of JAX of its parameters, with the gradients if they are asked for.

    Args:
        program: The graph.
        jax: The package.
        apply: Executes a statement.
    """

    def forward(*arrays: Any) -> tuple[Any, ...]:
        return program.body.run(arrays, apply)

    if not program.is_gradient:
        return forward
    places = [k for k, p in enumerate(program.parameters) if p.variable.is_float]

    def both(*arrays: Any) -> tuple[Any, ...]:
        def loss(*floats: Any) -> Any:
            every = list(arrays)
            for k, array in zip(places, floats, strict=True):
                every[k] = array
            results = forward(*every)
            parts = [
                jax.numpy.mean(jax.numpy.sin(r)) for r in results if jax.numpy.issubdtype(r.dtype, jax.numpy.floating)
            ]
            return sum(part.astype(parts[0].dtype) for part in parts), results

        gradients, results = jax.grad(loss, tuple(range(len(places))), has_aux=True)(*(arrays[k] for k in places))
        return (*results, *gradients)

    return both


def applied(jax: Any, widen: bool = False) -> Callable[[Statement, list[Any], dict[str, Any]], Any]:
    """Executes statements by JAX."""
    known, operations = modules(jax, widen), table()

    def apply(statement: Statement, operands: list[Any], attributes: dict[str, Any]) -> Any:
        return operations[statement.operation].jax(known, *operands, **attributes)

    return apply


def result_variables(program: GraphProgram) -> list[Variable]:
    """The results, and the gradients after them, which are rounded."""
    gradients = [p.variable for p in program.parameters if p.variable.is_float] if program.is_gradient else []
    rounded = [Variable(f"{_OF_GRADIENTS}{v.name}", v.shape, v.dtype, v.bound, is_exact=False) for v in gradients]
    return [*program.results, *rounded]


def expected_results(program: GraphProgram, arrays: Sequence[Array], jax: Any) -> list[ExpectedResult]:
    """The results for some arguments."""
    exact = applied(jax, widen=True)

    def noisy(noise: Any) -> Callable[..., Any]:
        numbers: dict[int, int] = {}

        def perturbed(x: Any, statement: Statement, place: int) -> Any:
            if not jax.numpy.issubdtype(x.dtype, jax.numpy.floating):
                return x
            key = numbers.setdefault(id(statement), len(numbers)) * 7.13 + place * 1.37
            waves = jax.numpy.sin(
                jax.numpy.arange(x.size, dtype="float64").reshape(x.shape) * 12.9898 + key + noise * 3.7
            )
            unit = waves * 43758.5453 % 2 - 1
            change = jax.numpy.where(noise == 0, 0.0, unit * _UNITS * statement.epsilon)
            return x * (1 + change)

        def apply(statement: Statement, operands: list[Any], attributes: dict[str, Any]) -> Any:
            if not statement.is_rounded:
                return exact(statement, operands, attributes)
            moved = [perturbed(x, statement, k) for k, x in enumerate(operands)]
            found = exact(statement, moved, attributes)
            return tuple(perturbed(x, statement, -1 - k) for k, x in enumerate(as_tuple(found)))

        return apply

    def run(noise: Any, *wide: Any) -> tuple[Any, ...]:
        return jax_function(program, jax, noisy(noise))(*wide)

    wide = [a.astype(np.float64) if is_float(a.dtype) else a for a in arrays]
    compiled = jax.jit(run, compiler_options=_COMPILER_OPTIONS)
    value, *others = [[np.asarray(x) for x in compiled(float(k), *wide)] for k in range(_RUNS + 1)]
    return [
        _expected(v, x, [other[k] for other in others])
        for k, (v, x) in enumerate(zip(result_variables(program), value, strict=True))
    ]


def _expected(variable: Variable, value: Array, others: Sequence[Array]) -> ExpectedResult:
    if not variable.is_float or variable.is_exact:
        return ExpectedResult(variable, value, np.zeros(value.shape))
    with np.errstate(all="ignore"):
        distance: Array = np.max([np.abs(other - value) for other in others], axis=0)
        typical = np.sqrt(np.mean(distance**2))
        epsilon = 2.0**-7 if variable.dtype == "bfloat16" else float(np.finfo(dtype_named(variable.dtype)).eps)
        error = _FACTOR * (distance + typical) + 2 * epsilon * np.abs(value) + _TINY[variable.dtype]
        error += _GRADIENT * epsilon if variable.name.startswith(_OF_GRADIENTS) else 0
    return ExpectedResult(variable, value, np.asarray(error))
