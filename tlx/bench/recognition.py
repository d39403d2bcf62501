"""Recognises that a function computes one product or convolution, for which other libraries have a function, too.

    function                                                            workload
    load a, load b, matmul, store c                                     a product, a and b in either order in memory
    load a, load b, contract over K, or K/v and v                       the same, b interleaved
    load a, load b, contract over the batch and K                       a batch-reduce product
    load a, load b, matmul of 3-D tensors                               a batch of products
    load c, load a, load b, smma (or + c), store c                      the same, added to what c holds
    load x, load w, convolution, store y                                a convolution

The sums may be truncated to the type of the result. A function that computes anything else besides is not recognised:
it would be slower than a library that does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.bench.workloads import convolutions, products
from tlx.intrinsics.products import axes_of
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import FunctionTensors, Tensor, TensorOp
from tlx.ir.values import Keyword, Local, Value
from tlx.tuning.workload import (
    BF16,
    F16,
    F32,
    F64,
    S8,
    S32,
    U8,
    ConvolutionProblem,
    Element,
    Workload,
)

_ELEMENTS: Final = {element.llvm: element for element in (F64, F32, F16, BF16, S8, S32)}
_SIGNS: Final = {"umma": (U8, U8), "usmma": (U8, S8), "summa": (S8, U8)}
_PREFIX: Final = "llvm.tensor."
_ROWS: Final = (0, 1)
_ADDITIONS: Final = ("fadd", "add")
_IMAGE_RANK: Final = 4


@dataclass(frozen=True)
class RecognisedWorkload:
    """A workload that a function computes.

    Attributes:
        workload: The workload, as the table would have it; its buffers are named after their roles.
        roles: The name of each of the function's parameters in the workload.
    """

    workload: Workload
    roles: Mapping[str, str]


def recognise(function: Function, tensors: FunctionTensors) -> RecognisedWorkload | None:
    """The workload that a function computes; None if it is none that other libraries have."""
    return _Recognition(function, tensors).run()


class _Recognition:
    """Matches the instructions of a function, each of which has to have a part in the workload.

    Attributes:
        tensors: The function's tensor operations.
        instructions: Its instructions.
        used: Those that have been matched, by position.
    """

    def __init__(self, function: Function, tensors: FunctionTensors) -> None:
        self.function = function
        self.tensors = tensors
        self.instructions = list(function.instructions())
        self.definitions = {i.result: i for i in self.instructions if i.result is not None}
        self.used: set[int] = set()

    def run(self) -> RecognisedWorkload | None:
        if len(self.function.blocks) != 1 or not self.instructions:
            return None
        stores = [op for op in self.tensors.ops if op.result is None]
        if len(stores) != 1 or stores[0].intrinsic.name != "store":
            return None
        store, stored = stores[0], stores[0].tensors[0]
        out = self._output(store)
        if out is None or stored.kind != "value":
            return None
        self._use(store.instruction, stored.definition, self.instructions[-1])
        value, initial = self._truncated(stored.source), None
        definition = self._definition(value)
        if definition is not None and definition.opcode in _ADDITIONS:
            self._use(definition)
            value, initial = self._split_addition(definition)
        definition = self._definition(value)
        op = self.tensors.op_of(definition) if definition is not None else None
        if op is None or op.result is None:
            return None
        self._use(op.instruction)
        found = self._workload(op, stored, out, initial)
        return found if all(id(i) in self.used or self._is_unused_token(i) for i in self.instructions) else None

    # Parts -----------------------------------------------------------------------------------------------------------

    def _use(self, *instructions: Instruction) -> None:
        self.used |= {id(instruction) for instruction in instructions}

    def _is_unused_token(self, instruction: Instruction) -> bool:
        operands = (operand for i in self.instructions for operand in i.operands)
        names = {operand.name for operand in operands if isinstance(operand, Local)}
        return instruction.result in self.tensors.tokens and instruction.result not in names

    def _definition(self, value: Value | None) -> Instruction | None:
        return self.definitions.get(value.name) if isinstance(value, Local) else None

    def _output(self, store: TensorOp) -> str | None:
        """The parameter that is written from its first element on, row by row."""
        type_ = store.tensors[0].type
        is_dense = type_.is_row_major and not type_.is_padded and type_.strides(store.pitches) == type_.strides(None)
        return self._parameter(store.pointer) if is_dense else None

    def _parameter(self, pointer: Value | None) -> str | None:
        names = {argument.name for argument in self.function.arguments}
        return pointer.name if isinstance(pointer, Local) and pointer.name in names else None

    def _loaded(self, tensor: Tensor) -> str | None:
        """The parameter from whose first element on a dense tensor is loaded."""
        type_ = tensor.type
        if tensor.kind != "load" or type_.is_padded or type_.strides(tensor.pitches) != type_.strides(None):
            return None
        self._use(tensor.definition)
        return self._parameter(tensor.source)

    def _truncated(self, value: Value) -> Value:
        """The sums that a value is truncated from, or the value."""
        definition = self._definition(value)
        if definition is None or definition.opcode != "fptrunc":
            return value
        self._use(definition)
        return definition.operands[0]

    def _split_addition(self, addition: Instruction) -> tuple[Value | None, str | None]:
        """The product, and the parameter that holds the other term of a sum."""
        for product, other in (addition.operands[:2], addition.operands[1::-1]):
            definition = self._definition(other)
            op = self.tensors.op_of(definition) if definition is not None else None
            if op is not None and op.intrinsic.name == "tovector":
                name = self._loaded(op.tensors[0])
                self._use(op.instruction)
                return (product, name) if name is not None else (None, None)
        return None, None

    # Workloads -------------------------------------------------------------------------------------------------------

    def _workload(self, op: TensorOp, stored: Tensor, out: str, initial: str | None) -> RecognisedWorkload | None:
        name = op.intrinsic.name.removeprefix(_PREFIX)
        if name not in ("matmul", "contract", "convolution", "smma", *_SIGNS):
            return None
        *accumulator, lhs, rhs = op.tensors
        if accumulator and not self._starts_from_zero(accumulator[0]):
            if initial is not None:
                return None
            initial = self._loaded(accumulator[0])
            if initial is None:
                return None
        pointers = self._loaded(lhs), self._loaded(rhs)
        if None in pointers or len({*pointers, out}) != len(pointers) + 1 or initial not in (None, out):
            return None
        assert op.result is not None
        types = [_ELEMENTS.get(str(t)) for t in (lhs.type.element, rhs.type.element, op.result.element)]
        result = _ELEMENTS.get(str(stored.type.element))
        if None in types or result is None or not self._is_stored_as_it_is(stored, op, initial):
            return None
        elements = [element for element in types if element is not None]
        elements[:2] = _SIGNS.get(name, tuple(elements[:2]))
        if name == "convolution":
            work = self._convolution(op, elements[0], elements[1], result) if initial is None else None
            roles = ("y", "x", "w")
        else:
            work = self._product(op, (*elements, result), accumulates=initial is not None)
            roles = ("c", "a", "b")
        names = [parameter for parameter in (out, *pointers) if parameter is not None]
        return RecognisedWorkload(work, dict(zip(names, roles, strict=True))) if work is not None else None

    def _starts_from_zero(self, accumulator: Tensor) -> bool:
        is_zero = isinstance(accumulator.source, Keyword) and str(accumulator.source) == "zeroinitializer"
        if accumulator.kind == "value" and is_zero:
            self._use(accumulator.definition)
            return True
        return False

    def _is_stored_as_it_is(self, stored: Tensor, op: TensorOp, initial: str | None) -> bool:
        """Whether the stored tensor has the shape of the result, and sums are added in the result's type."""
        assert op.result is not None
        same = stored.type.shape == op.result.shape and op.result.is_row_major
        return same and (initial is None or stored.type.element == op.result.element)

    def _product(self, op: TensorOp, elements: Sequence[Element], *, accumulates: bool) -> Workload | None:
        types = products.named_types(*elements)
        lhs, rhs = (tensor.type for tensor in op.tensors[-2:])
        if types is None:
            return None
        shapes, layouts = (lhs.extents, rhs.extents), (lhs.layout, rhs.layout)
        axes = axes_of(op.dims) if op.intrinsic.name == "contract" else None
        rank = len(shapes[0])
        if axes is not None and any(axes[2:]):
            return None
        row_major = all(tuple(layout) == tuple(range(len(layout))) for layout in layouts)
        m, n = shapes[0][-2], shapes[1][-1]
        k = shapes[0][-1]
        if rank == len(shapes[1]) == len(_ROWS) and axes in (None, ((1,), (0,)), ((1,), (1,)), ((0,), (0,))):
            return self._matrices(types, shapes, layouts, axes or ((1,), (0,)), accumulates=accumulates)
        if not row_major:
            return None
        if axes is None:
            is_batch = rank == len(shapes[1]) == len(_ROWS) + 1 and shapes[0][0] == shapes[1][0] and not accumulates
            return products.batch(types, shapes[0][0], (m, n, k)) if is_batch else None
        summed = tuple(map(tuple, axes[:2]))
        if summed == ((0, 2), (0, 1)) and rank == len(_ROWS) + 1:
            return products.batch(types, shapes[0][0], (m, n, k), reduced=True, accumulates=accumulates)
        v = shapes[0][-1]
        if v != max(1, 4 // elements[1].bytes) or shapes[1][-1] != v or elements[0] is not elements[1]:
            return None
        m, n, k = shapes[0][-3], shapes[1][-2], shapes[0][-2] * v
        if summed == ((1, 2), (0, 2)) and rank == len(_ROWS) + 1:
            return products.product(types, m, n, k, vnni=True, accumulates=accumulates)
        if summed == ((0, 2, 3), (0, 1, 3)):
            of_batch = {"reduced": True, "vnni": True, "accumulates": accumulates}
            return products.batch(types, shapes[0][0], (m, n, k), **of_batch)
        return None

    def _matrices(
        self,
        types: str,
        shapes: Sequence[Sequence[int]],
        layouts: Sequence[Sequence[int]],
        axes: Sequence[Sequence[int]],
        *,
        accumulates: bool,
    ) -> Workload:
        """A product of matrices, each row-major or column-major as A is MxK and B is KxN."""
        (of_lhs,), (of_rhs,) = axes[:2]
        is_column_major = {
            "a": (tuple(layouts[0]) == _ROWS) != (of_lhs == 1),
            "b": (tuple(layouts[1]) == _ROWS) != (of_rhs == 0),
        }
        m, k, n = shapes[0][1 - of_lhs], shapes[0][of_lhs], shapes[1][1 - of_rhs]
        columns = "".join(operand for operand, holds in is_column_major.items() if holds)
        return products.product(types, m, n, k, columns, accumulates=accumulates)

    def _convolution(self, op: TensorOp, lhs: Element, rhs: Element, out: Element) -> Workload | None:
        types, (x, w) = convolutions.convolution_types(lhs, rhs, out), (tensor.type for tensor in op.tensors)
        strides, *holes = (tuple(numbers[-2:]) for numbers in op.dims) if op.dims else ((1, 1), (0, 0))
        if types is None or x.rank != _IMAGE_RANK or w.rank != _IMAGE_RANK or not (x.is_row_major and w.is_row_major):
            return None
        images, channels, rows, columns = x.extents
        filters, each, window, across = w.extents
        if window != across or len(set(strides)) > 1 or any(map(any, holes)) or channels % each:
            return None
        sizes = images, channels, rows, columns, filters, window, strides[0], channels // each
        conv = ConvolutionProblem(*sizes, lhs, rhs, out)
        size = f"{images}x{channels}x{rows}x{columns}-{filters}x{each}x{window}x{window}s{strides[0]}"
        return convolutions.convolution_of(conv, types, size, "depthwise" if conv.groups > 1 else "convolution")
