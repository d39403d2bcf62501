"""Draws operations, operands and attributes from numbers; simplifying a failing graph changes these numbers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from tlx.diagnostics import UsageError
from tlx.fuzz.generation.model import Choices
from tlx.fuzz.graphs.program import (
    FLOATS,
    GraphBlock,
    GraphParameter,
    Role,
    Statement,
    Variable,
    as_tuple,
    dtype_named,
)
from tlx.intrinsics.numpy_types import is_float

EXTENTS: Final = (2, 1, 3, 4, 5, 7, 8, 16, 17, 31, 33)
"""Extents of parameters, by chance up to twice the last."""
_LARGEST: Final = 6000
"""Elements of a tensor."""
_LIMITS: Final = {"float16": 500.0, "bfloat16": 1e4, "float32": 1e6, "float64": 1e6}
_ATTEMPTS: Final = 12
_DEPTH: Final = 2
UNBOUNDED: Final = 2.0**64
"""The bound of integers that may wrap."""


@dataclass(frozen=True, slots=True)
class DrawnOperation:
    """What an operation draws.

    Attributes:
        operands: The variables that it reads.
        attributes: What else it takes.
        bound: About the greatest magnitude of its floats; by default that of its operands.
        is_integral: Whether its floats are integers.
        results: Variables like the results; None to find out from JAX.
    """

    operands: Sequence[Variable]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    bound: float | None = None
    is_integral: bool = False
    results: Sequence[Variable] | None = None


@dataclass(frozen=True, slots=True)
class GraphOperation:
    """An operation of graphs.

    Attributes:
        name: Its name.
        draw: Draws operands and attributes; None if there are none that suit.
        jax: The operation on arrays of JAX, with its modules before the operands and the attributes as keywords.
        graph: The operation on values of a graph, which comes before the operands.
        is_exact: Whether results are exact if operands are: it moves, selects or compares elements. Otherwise its
            floats are rounded.
        is_continuous: Whether small changes of its operands change its results little. Otherwise operands must be
            exact.
        weight: How often it is drawn.
    """

    name: str
    draw: Callable[[GraphDraft], DrawnOperation | None]
    jax: Callable[..., Any]
    graph: Callable[..., Any]
    is_exact: bool = False
    is_continuous: bool = True
    weight: int = 1


def in_jax(path: str) -> Callable[..., Any]:
    """The function of JAX's modules at a path, such as `np.flip`, of the operands and then the attributes in order."""
    function = attrgetter(path)

    def apply(modules: Any, *operands: Any, **attributes: Any) -> Any:
        return function(modules)(*operands, *attributes.values())

    return apply


def in_graph(name: str) -> Callable[..., Any]:
    """The method of graphs of a name, of the operands and then the attributes in order."""

    def apply(graph: Any, *operands: Any, **attributes: Any) -> Any:
        return getattr(graph, name)(*operands, *attributes.values())

    return apply


class GraphDraft:
    """A graph that is being drawn.

    Attributes:
        choose: Draws numbers.
        floats: The element types of floats.
        is_gradient: Whether JAX must be able to differentiate the graph.
        pool: The variables that may be read, the oldest first.
    """

    def __init__(
        self,
        choose: Choices,
        jax: Any,
        table: Mapping[str, GraphOperation],
        operations: Sequence[str],
        *,
        is_gradient: bool,
    ) -> None:
        self.choose = choose
        self.pool: list[Variable] = []
        self.parameters: list[GraphParameter] = []
        self.depth = 0
        self.is_gradient = is_gradient
        self._jax = jax
        self._table = table
        self._names = [n for n in operations or table for _ in range(table[n].weight)]
        self._count = 0
        kinds = FLOATS[:2] if is_gradient else FLOATS
        first = choose.choice(kinds)
        self.floats = (first, first, choose.choice(kinds)) if choose.chance(0.2) else (first,)

    # Operands ----------------------------------------------------------------------------------------------------

    def shape(self, rank: int) -> tuple[int, ...]:
        """A shape with at most `_LARGEST` elements."""
        shape: list[int] = []
        room = _LARGEST
        for _ in range(rank):
            extent = min(self.choose.choice(EXTENTS), room)
            shape.append(extent)
            room //= extent
        return tuple(shape)

    def parameter(
        self,
        shape: Sequence[int],
        dtype: str = "",
        *,
        bound: float = 0,
        role: Role | None = None,
        integral: bool = False,
    ) -> Variable:
        """A new parameter, weight or constant; of the graph's type of floats by default."""
        name = dtype or self.choose.choice(self.floats)
        is_number = is_float(dtype_named(name))
        greatest = bound or (1 if name == "bool" else 2 if is_number and not integral else 9)
        variable = Variable(f"x{len(self.parameters)}", tuple(shape), name, greatest, True, integral or not is_number)
        kind = role or self.choose.choice(("parameter", "parameter", "weight", "constant"))
        self.parameters.append(GraphParameter(variable, kind, self.choose.randrange(1 << 16)))
        return variable

    def find(self, suits: Callable[[Variable], bool]) -> Variable | None:
        """A variable that suits, often a late one; None if there is none."""
        found = [v for v in reversed(self.pool) if suits(v)]
        if not found:
            return None
        late = found[:3] if self.choose.chance(0.6) else found
        return self.choose.choice(late)

    def number(
        self, least_rank: int = 0, most_rank: int = 6, *, exact: bool = False, bound: float = 0
    ) -> Variable | None:
        """A variable of floats."""
        return self.find(
            lambda v: (
                v.is_float
                and least_rank <= v.rank <= most_rank
                and (v.is_exact or not exact)
                and (not bound or v.bound <= bound)
            )
        )

    def any(self, least_rank: int = 0, *, exact: bool = False) -> Variable | None:
        """A variable of any type."""
        return self.find(lambda v: v.rank >= least_rank and (v.is_exact or not exact))

    def integers(self, least_rank: int = 0, most_rank: int = 6) -> Variable | None:
        """A variable of integers."""
        return self.find(lambda v: not v.is_float and v.dtype != "bool" and least_rank <= v.rank <= most_rank)

    def indices(self, shape: Sequence[int], extent: int) -> Variable:
        """Positions of a dimension, some of them outside it."""
        dtype = self.choose.choice(("int32", "int32", "int64", "uint8", "int16"))
        return self.parameter(shape, dtype, bound=max(1, min(extent, 100)), role="parameter")

    def like(self, x: Variable) -> Variable:
        """A variable of the same element type that broadcasts with another; a new one if there is none."""

        def broadcasts(y: Variable) -> bool:
            pairs = zip(reversed(x.shape), reversed(y.shape), strict=False)
            return y.dtype == x.dtype and all(a == b or 1 in (a, b) for a, b in pairs)

        other = self.find(broadcasts) if self.choose.chance(0.8) else None
        if other is not None and max(x.count, other.count) * 8 < _LARGEST * 8:
            both = np.broadcast_shapes(x.shape, other.shape)
            if int(np.prod(both, dtype=np.int64)) <= _LARGEST:
                return other
        shape = [1 if self.choose.chance(0.2) else e for e in x.shape[self.choose.randrange(x.rank + 1) :]]
        return self.parameter(shape, x.dtype)

    def axis(self, x: Variable) -> int:
        """A dimension of a variable that has some."""
        return self.choose.randrange(x.rank)

    def axes(self, x: Variable) -> tuple[int, ...]:
        """One or more dimensions."""
        chosen = [d for d in range(x.rank) if self.choose.chance(0.5)]
        return tuple(chosen) or (self.axis(x),)

    # Statements --------------------------------------------------------------------------------------------------

    def block(
        self, choices: Sequence[Choices], parameters: Sequence[Variable], results: Sequence[Variable]
    ) -> GraphBlock:
        """A block with a statement for each of the choices, which returns variables like `results`."""
        with self._inner(parameters):
            statements: list[Statement] = []
            for part in choices:
                statements += self.statements(part)
            names: list[str] = []
            for wanted in results:
                alike = [v for v in self.pool if (v.shape, v.dtype) == (wanted.shape, wanted.dtype)]
                alike = [v for v in alike if v.is_exact or not wanted.is_exact]
                found = self.choose.choice([v for v in reversed(alike) if v.bound <= wanted.bound] or [wanted])
                names.append(found.name)
        return GraphBlock(tuple(p.name for p in parameters), tuple(statements), tuple(names))

    def state(self, x: Variable) -> Variable:
        """A parameter of a block that is like a variable: rounded floats up to some bound, any integers."""
        self._count += 1
        bound = max(x.bound, 4) if x.is_float else 1 if x.dtype == "bool" else UNBOUNDED
        return Variable(f"s{self._count}", x.shape, x.dtype, bound, not x.is_float, not x.is_float)

    def statements(self, choices: Choices) -> list[Statement]:
        """A statement; none if no operation suits. What it defines is in the pool then."""
        outer, self.choose = self.choose, choices
        try:
            for _ in range(_ATTEMPTS):
                statement = self._statement(self._table[self.choose.choice(self._names)])
                if statement is not None:
                    self.pool += statement.results
                    return [statement]
        finally:
            self.choose = outer
        return []

    def _statement(self, operation: GraphOperation) -> Statement | None:
        count = len(self.parameters)
        drawn = operation.draw(self)
        statement = None if drawn is None else self._checked(operation, drawn)
        if statement is None:
            del self.parameters[count:]
        return statement

    def _checked(self, operation: GraphOperation, drawn: DrawnOperation) -> Statement | None:
        operands = drawn.operands
        are_exact = all(v.is_exact for v in operands)
        if not (operation.is_continuous or are_exact):
            return None
        names = tuple(v.name for v in operands)
        bound = max((v.bound for v in operands), default=1) if drawn.bound is None else drawn.bound
        results: list[Variable] = []
        for dtype, shape in self._types(operation, drawn):
            is_number = is_float(dtype_named(dtype))
            is_exact = not is_number or (operation.is_exact and are_exact)
            limit = _LIMITS[dtype] if is_number else UNBOUNDED
            if bound > limit or int(np.prod(shape, dtype=np.int64)) > _LARGEST or 0 in shape:
                return None
            integral = not is_number or drawn.is_integral or (is_exact and all(v.is_integral for v in operands))
            greatest = 1 if dtype == "bool" else UNBOUNDED if drawn.results and not is_number else bound
            results.append(Variable(f"v{self._count}", shape, dtype, greatest, is_exact, integral))
            self._count += 1
        rounded = not operation.is_exact and any(v.is_float for v in results)
        epsilons = [float(_epsilon(v.dtype)) for v in (*operands, *results) if v.is_float]
        return Statement(operation.name, names, drawn.attributes, tuple(results), rounded, max(epsilons, default=0))

    def _types(self, operation: GraphOperation, drawn: DrawnOperation) -> list[tuple[str, tuple[int, ...]]]:
        """Element types and shapes of the results."""
        if drawn.results is not None:
            return [(v.dtype, v.shape) for v in drawn.results]
        specifications = [self._jax.ShapeDtypeStruct(v.shape, dtype_named(v.dtype)) for v in drawn.operands]

        def traced(*arrays: Any) -> Any:
            return operation.jax(modules(self._jax), *arrays, **drawn.attributes)

        found = self._jax.eval_shape(traced, *specifications)
        return [(type_.dtype.name, tuple(type_.shape)) for type_ in as_tuple(found)]

    @contextmanager
    def _inner(self, parameters: Sequence[Variable]) -> Generator[None]:
        outer = list(self.pool)
        self.depth += 1
        self.pool += parameters
        try:
            yield
        finally:
            self.pool, self.depth = outer, self.depth - 1

    def inner_choices(self, most: int) -> list[Choices]:
        """The choices of the statements of a block; none if no loop or branch may be drawn here."""
        return [] if self.depth >= _DEPTH or self.choose.node.parts else self.choose.parts(1, most)


def _epsilon(dtype: str) -> float:
    return 2.0**-7 if dtype == "bfloat16" else float(np.finfo(np.dtype(dtype)).eps)


def modules(jax: Any, widen: bool = False) -> SimpleNamespace:
    """The modules of JAX that operations use, and `dtype`, which names an element type: `float64` for all floats."""

    def dtype(name: str) -> Any:
        known = dtype_named(name)
        return np.dtype(np.float64) if widen and is_float(known) else known

    return SimpleNamespace(np=jax.numpy, lax=jax.lax, nn=jax.nn, special=jax.scipy.special, dtype=dtype)


def require_jax() -> Any:
    """The package `jax`.

    Raises:
        UsageError: It is not installed.
    """
    from importlib import import_module

    try:
        jax = import_module("jax")
        import_module("jax.scipy.special")
    except ImportError as error:
        raise UsageError(f"tlx fuzz --graphs compares with JAX ({error}): pip install 'tlx-ir[jax]'") from None
    jax.config.update("jax_platforms", "cpu")
    return jax


@contextmanager
def wide_jax() -> Generator[Any]:
    """The package `jax`, with types of 64 bits while the context lasts.

    Raises:
        UsageError: It is not installed.
    """
    jax = require_jax()
    with jax.enable_x64(True):
        yield jax
