"""The graph: parameters, weights and outputs; its text, and functions on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tlx.api.call import ArgumentError
from tlx.graph.core import FLOAT32, listed
from tlx.graph.indexing import Indexing
from tlx.graph.value import DType, Operand, Value
from tlx.ir.functions import Argument
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.rewrite import declare_function
from tlx.ir.types import PTR, VOID, FunctionType

if TYPE_CHECKING:
    from tlx.target.target import Target

Array = np.ndarray[Any, np.dtype[Any]]
_READ: Final = "noalias readonly"
_WRITTEN: Final = "noalias"


@dataclass(frozen=True, slots=True)
class Input:
    """A parameter of the function, or a weight.

    Attributes:
        name: Its name in the IR.
        shape: Its shape.
        dtype: Its element type.
        array: The weight; None for what the caller passes.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    array: Array | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """A result: its name in the IR, shape and element type."""

    name: str
    shape: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class GraphFunction:
    """A graph as a function of numpy arrays; weights are passed along.

    Attributes:
        inputs: Parameters and weights, in the order of the IR's.
        outputs: The results.
        lowered: The LLVM IR that was compiled; empty for the evaluator.
    """

    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    call: Callable[..., Any]
    lowered: str = ""

    def __call__(self, *arrays: Any) -> Any:
        """The results for an array for each parameter, in order of declaration.

        Returns:
            A new array, or a tuple of them if there are several outputs.

        Raises:
            ArgumentError: There are too few or too many arrays, or one has another shape or element type.
        """
        passed = [i for i in self.inputs if i.array is None]
        if len(arrays) != len(passed):
            names = ", ".join(i.name for i in passed)
            raise ArgumentError(f"expected {len(passed)} arrays ({names}), got {len(arrays)}")
        by_name = {i.name: _checked(i, array) for i, array in zip(passed, arrays, strict=True)}
        results = [np.empty(o.shape, o.dtype) for o in self.outputs]
        self.call(*(by_name[i.name] if i.array is None else i.array for i in self.inputs), *results)
        return results[0] if len(results) == 1 else tuple(results)


class Graph(Indexing):
    """A function of tensors under construction: operations are its methods, and values have Python's operators."""

    def __init__(self, name: str = "main") -> None:
        """An empty graph.

        Args:
            name: Name of the function in the IR; what needs quotes there is replaced by dots.
        """
        super().__init__(name)
        self._name = self._definition.name
        self._inputs: list[Input] = []
        self._outputs: list[Output] = []

    def parameter(self, name: str, shape: Sequence[int], dtype: str | type | DType = FLOAT32) -> Value:
        """An array that each call passes."""
        return self._declare(Input(self._free(name), self._shape("parameter", shape), self._dtype("parameter", dtype)))

    def weight(self, name: str, array: Any, dtype: str | type | DType | None = None) -> Value:
        """An array that is the same in every call: a parameter of the function in the IR, passed along by TLX.

        The array is not copied if it is contiguous, so that changes are seen by the next call.
        """
        data = np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array)
        known = self._dtype("weight", data.dtype if dtype is None else dtype)
        self._shape("weight", data.shape)
        return self._declare(Input(self._free(name), data.shape, known, data.astype(known, copy=False)))

    def output(self, x: Operand, name: str = "out") -> None:
        """Make a value a result, after those before it."""
        value = self._value("output", x)
        free = self._free(name)
        token, _ = self._token(self._dense(value))
        self._builder.tensor_store(Argument(PTR, _WRITTEN, free).value, token)
        self._outputs.append(Output(free, value.shape, value.dtype))

    def text(self) -> str:
        """The function as TLX IR."""
        if not self._outputs:
            self._fail("text", "the graph has no output: call output(value) first")
        parameters = ", ".join(
            [*(f"ptr {_READ} %{i.name}" for i in self._inputs), *(f"ptr {_WRITTEN} %{o.name}" for o in self._outputs)]
        )
        blocks = [b.label + "".join(i.lead + i.text for i in b.instructions) for b in self._definition.blocks]
        frees = "".join(f"\n  call void @free({pointer.typed})" for pointer in self._heap)
        function = f"define void @{self._name}({parameters}) {{{''.join(blocks)}{frees}\n  ret void\n}}\n"
        if frees:
            declare_function(self._module, "free", FunctionType(VOID, (PTR,)), "nounwind")
        others = [str(item).strip() for item in self._module.items if item is not self._definition]
        return (
            "\n".join(
                [
                    *(text for text in others if text.startswith("@")),
                    function,
                    *(text for text in others if not text.startswith("@")),
                ]
            )
            + "\n"
        )

    def module(self) -> Module:
        """The function as a module."""
        return parse(self.text(), f"<graph {self._name}>")

    def compile(self, target: Target | str = "native", **settings: Any) -> GraphFunction:
        """Lower and compile the graph: a function on numpy arrays.

        Args:
            target: The machine to aim at, which must be this one.
            **settings: As for `tlx.compile`: `threads="openmp"`, ...
        """
        from tlx.api.compiler import compile as compile_module

        compiled = compile_module(self.module(), target, entry=self._name, **settings)
        return GraphFunction(tuple(self._inputs), tuple(self._outputs), compiled.entry, compiled.lowered)

    def evaluate(self, *arrays: Any) -> Any:
        """The results by the evaluator, without machine code; slow."""
        from tlx.evaluate import Machine

        machine = Machine(self.module())

        def call(*arguments: Any) -> None:
            machine.call(self._name, *arguments)

        return GraphFunction(tuple(self._inputs), tuple(self._outputs), call)(*arrays)

    def _free(self, name: str) -> str:
        """A name for a parameter of the function."""
        return self._definition.names.fresh(name)

    def _declare(self, declared: Input) -> Value:
        self._inputs.append(declared)
        return self._in_memory(Argument(PTR, _READ, declared.name).value, declared.shape, declared.dtype)


def _checked(expected: Input, array: Any) -> Array:
    data = np.asarray(array)
    if data.shape != expected.shape or data.dtype != expected.dtype:
        message = (
            f"{expected.name}: expected {expected.dtype.name} array of shape {listed(expected.shape)}, "
            f"got {data.dtype.name} array of shape {listed(data.shape)}"
        )
        raise ArgumentError(message)
    return data if data.flags.c_contiguous else np.ascontiguousarray(data)
