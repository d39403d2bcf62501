"""A graph as data: parameters, statements and results; its text, and how it is executed.

x0 = parameter((3, 5), "float32")
x1 = weight((5, 4), "float32")
v0 = matmul(x0, x1)
v1 = softmax(v0, axis=0)
return v1
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

import numpy as np

from tlx.intrinsics.numpy_types import Array, bfloat_dtype, is_float

FLOATS: Final = ("float32", "float64", "bfloat16", "float16")
INTEGERS: Final = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
Role = Literal["parameter", "weight", "constant"]


def dtype_named(name: str) -> np.dtype[Any]:
    """The element type of a name such as `bfloat16`."""
    return bfloat_dtype("float32") if name == "bfloat16" else np.dtype(name)


@dataclass(frozen=True, slots=True)
class Variable:
    """A tensor of a graph.

    Attributes:
        name: Its name in the text.
        shape: Its shape.
        dtype: Name of its element type.
        bound: About the greatest magnitude of its elements.
        is_exact: Whether its elements are not rounded, and so are the same whoever computes them.
        is_integral: Whether its elements are integers, of whatever type.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    bound: float = 1
    is_exact: bool = True
    is_integral: bool = False

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def count(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def is_float(self) -> bool:
        """Whether its elements are floating-point numbers."""
        return is_float(dtype_named(self.dtype))


@dataclass(frozen=True, slots=True)
class GraphParameter:
    """A tensor that a graph takes.

    Attributes:
        variable: The tensor.
        role: An argument of each call, a weight, or a constant of the code.
        seed: Seed of its elements.
    """

    variable: Variable
    role: Role
    seed: int

    def array(self) -> Array:
        """Its elements: small numbers, often equal; those of half and bfloat are representable."""
        v, rng = self.variable, np.random.default_rng(self.seed)
        dtype = dtype_named(v.dtype)
        if v.dtype == "bool":
            return np.asarray(rng.integers(0, 2, v.shape)).astype(np.bool_)
        if not v.is_float or v.is_integral:
            low = 0 if v.dtype.startswith("u") else -int(v.bound)
            return np.asarray(rng.integers(low, int(v.bound) + 1, v.shape)).astype(dtype)
        numbers = np.asarray(rng.uniform(-v.bound, v.bound, v.shape))
        return np.asarray(np.round(numbers * 4) / 4 if self.seed % 4 == 0 else numbers).astype(dtype)


@dataclass(frozen=True, slots=True)
class Statement:
    """An operation on variables.

    Attributes:
        operation: Its name in the table.
        operands: Names of the variables that it reads.
        attributes: What else it takes: numbers, names, and blocks, which become functions when it is executed.
        results: The variables that it defines.
        is_rounded: Whether its results are rounded.
        epsilon: The distance from 1 to the next number in the least precise type that it computes in.
    """

    operation: str
    operands: tuple[str, ...]
    attributes: Mapping[str, Any]
    results: tuple[Variable, ...]
    is_rounded: bool
    epsilon: float


@dataclass(frozen=True, slots=True)
class GraphBlock:
    """Statements: a graph, or the body of a loop or a branch, which may read variables from outside.

    Attributes:
        parameters: Names of the variables that it is called with.
        statements: What it computes.
        results: Names of the variables that it returns.
    """

    parameters: tuple[str, ...]
    statements: tuple[Statement, ...]
    results: tuple[str, ...]

    def run(self, arguments: Sequence[Any], apply: Apply, outer: Mapping[str, Any] | None = None) -> tuple[Any, ...]:
        """The results, where `apply` executes a statement; blocks among its attributes are passed as functions."""
        values = {**(outer or {}), **dict(zip(self.parameters, arguments, strict=True))}

        def bound(attribute: Any) -> Any:
            if isinstance(attribute, GraphBlock):
                return BlockFunction(attribute, apply, values)
            return tuple(map(bound, as_tuple(attribute))) if isinstance(attribute, tuple) else attribute

        for statement in self.statements:
            attributes = {name: bound(value) for name, value in statement.attributes.items()}
            found = apply(statement, [values[name] for name in statement.operands], attributes)
            values |= {v.name: value for v, value in zip(statement.results, as_tuple(found), strict=True)}
        return tuple(values[name] for name in self.results)

    def lines(self, indent: str) -> Iterator[str]:
        """The text of the statements, the blocks in them as functions before them."""
        for statement in self.statements:
            words: list[str] = list(statement.operands)
            for name, attribute in statement.attributes.items():
                blocks = as_tuple(attribute)
                if blocks and all(isinstance(block, GraphBlock) for block in blocks):
                    names = [f"{name}_{statement.results[0].name}_{k}" for k in range(len(blocks))]
                    for function, block in zip(names, blocks, strict=True):
                        yield f"{indent}def {function}({', '.join(block.parameters)}):"
                        yield from block.lines(f"{indent}    ")
                    listed = ", ".join(names)
                    words.append(f"{name}={f'({listed})' if isinstance(attribute, tuple) else listed}")
                else:
                    words.append(f"{name}={attribute!r}")
            results = ", ".join(v.name for v in statement.results)
            types = ", ".join(f"{v.dtype}{list(v.shape)}" for v in statement.results)
            yield f"{indent}{results} = {statement.operation}({', '.join(words)})  # {types}"
        yield f"{indent}return {', '.join(self.results)}"


@dataclass(frozen=True, eq=False)
class BlockFunction:
    """A block as a function: the block, what executes a statement, and the values outside."""

    block: GraphBlock
    apply: Apply
    outer: Mapping[str, Any]

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """The results of the block."""
        return self.block.run(arguments, self.apply, self.outer)


def as_tuple(item: Any) -> tuple[Any, ...]:
    """The items of a tuple; anything else alone."""
    return cast("tuple[Any, ...]", item) if isinstance(item, tuple) else (item,)


Apply = Callable[[Statement, list[Any], dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class GraphProgram:
    """A graph.

    Attributes:
        parameters: What it takes.
        body: What it computes.
        results: The variables that it returns.
        node: The numbers drawn for it.
        is_gradient: Whether the results are the gradients of a sum of the body's, after them.
    """

    parameters: tuple[GraphParameter, ...]
    body: GraphBlock
    results: tuple[Variable, ...]
    node: Any = field(compare=False)
    is_gradient: bool = False

    @property
    def text(self) -> str:
        """The graph as text, in Python's syntax."""
        lines = [
            f"{p.variable.name} = {p.role}({p.variable.shape}, {p.variable.dtype!r}, seed={p.seed})"
            for p in self.parameters
        ]
        return "\n".join([*lines, *self.body.lines(""), *["gradient()"] * self.is_gradient, ""])

    @property
    def operations(self) -> frozenset[str]:
        """Names of the operations in it."""
        return frozenset(_operations(self.body))


def _operations(block: GraphBlock) -> Iterator[str]:
    for statement in block.statements:
        yield statement.operation
        for attribute in statement.attributes.values():
            for item in as_tuple(attribute):
                if isinstance(item, GraphBlock):
                    yield from _operations(item)
