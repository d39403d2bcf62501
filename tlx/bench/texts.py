"""Writing workloads as LLVM IR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tlx.bench.elements import Element
from tlx.bench.workload import Buffer
from tlx.ir.builder import new_function
from tlx.ir.reader import parse
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I8, I32, PTR, Type
from tlx.ir.values import Value
from tlx.types import TensorType

_TYPES: Final[dict[str, Type]] = {
    "double": DOUBLE,
    "float": FLOAT,
    "half": HALF,
    "bfloat": BFLOAT,
    "i8": I8,
    "i32": I32,
}


def type_of(element: Element) -> Type:
    """The LLVM type of an element type."""
    return _TYPES[element.llvm]


def tensor(element: Element, shape: Sequence[int], layout: Sequence[int] | None = None) -> TensorType:
    """The type of a dense tensor; `shape` is in memory order, the layout row-major where none is given."""
    if layout is None:
        return TensorType.dense(type_of(element), tuple(shape))
    return TensorType(type_of(element), tuple(shape), tuple(layout), (0,) * len(shape))


class Writer(TensorBuilder):
    """A function `@work` that takes a pointer for each buffer."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        module = parse("")
        parameters = [(PTR, "noalias", buffer.name) for buffer in buffers]
        super().__init__(module, new_function(module, "work", parameters, "nounwind", linkage="dso_local"))
        self._buffers = {buffer.name: buffer for buffer in buffers}

    def buffer(self, name: str) -> Value:
        """The pointer to a buffer."""
        return next(argument.value for argument in self.function.arguments if str(argument.value) == f"%{name}")

    def loaded(self, name: str, layout: Sequence[int] | None = None) -> Value:
        """A token for a whole buffer; `layout` lists its logical dimensions in memory order."""
        buffer = self._buffers[name]
        return self.tensor_load(self.buffer(name), tensor(buffer.element, buffer.shape, layout), name=f"{name}.t")

    def stored(self, name: str, token: Value) -> str:
        """Write a tensor to a buffer and end; gives the module's text."""
        self.tensor_store(self.buffer(name), token)
        self.ret()
        return str(self.module)
