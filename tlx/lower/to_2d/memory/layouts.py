"""Layout assignment: the order in memory of the dimensions of images between the operations of a network.

The flattened vector of a result has its dimensions in row-major order. Its buffer may have another order where nothing
reads the vector itself, as all operations read strides::

    64 x 52 x 52, channels first       y = w @ x             64 x 2704: rows of x are 2704 apart, and begin anywhere
    52 x 52 x 64, channels last        y^T = x^T @ w^T       2704 x 64: w is packed, once if it is constant

Each image has one of two labels, and the operations between images have costs for their labels:

- a convolution the estimated cycles of its products, with copies of its input, for both orders of input and result;
- other operations, and the epilogues of convolutions, the cycles of a copy of what they read in another order than
  they write.

The labels with the least sum are a minimum cut. Arguments and results of the function keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Final

from tlx.intrinsics.convolution import Windows
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.values import Local
from tlx.lower.memory.views import TensorView, without_unit_dims
from tlx.lower.remarks import Remarks
from tlx.lower.to_2d.analysis.minimum_cut import LabelCosts, PairCosts
from tlx.lower.to_2d.analysis.tensor_operations import ORDINARY, POINTWISE, PRODUCTS, STAGE, operation_title
from tlx.lower.to_2d.contraction.problem import ContractionResult
from tlx.lower.to_2d.convolution.dense import best_layout
from tlx.lower.to_2d.convolution.problem import DenseConvolution
from tlx.lower.to_2d.fusion import has_dilated_input, is_reduction
from tlx.lower.to_2d.memory.copies import copy_cycles
from tlx.lower.to_2d.memory.operand_views import OperandViews, SymbolicStorage
from tlx.lower.to_2d.memory.padding import is_crop

_LEAST_RANK: Final = 3
_CONVOLUTION: Final = "convolution"
_Cycles = Callable[[bool, bool], float]
"""The cycles of an operation by whether its operand, and its result, have channels last."""


def find_layouts(operands: OperandViews, live: AbstractSet[str], remarks: Remarks) -> Mapping[str, tuple[int, ...]]:
    """Names of the results with channels last in memory, each with its dimensions, the outermost first.

    Args:
        operands: The operands of all operations.
        live: Names of the results that are needed in memory.
        remarks: Where decisions are reported.
    """
    if operands.facts.target.grid is not None:
        return {}  # each block of a grid reads its part
    written = [
        op
        for op in operands.facts.tensors.ops
        if str(op.instruction.result) in live and str(op.instruction.result) not in operands.views
    ]
    if not any(_convolution(operands, op) for op in written):
        return {}
    images = {str(op.instruction.result): op for op in written if _may_change(operands, op)}
    assignment = LayoutAssignment(replace(operands, storage=SymbolicStorage()), images)
    last = assignment.channels_last(written)
    for name in last:
        op = images[name]
        message = f"{operation_title(op)} has channels last in memory: convolutions then take less time"
        remarks.add("applied", STAGE, message, op.instruction.span)
    return {name: _last_order(images[name].result) for name in last}


def _convolution(operands: OperandViews, op: TensorOp) -> TensorOp | None:
    """The convolution of an undilated input that an operation is, or is the epilogue of."""
    multiplied = operands.groups.product_of(op) or op
    is_dense = multiplied.intrinsic.name == _CONVOLUTION and not has_dilated_input(multiplied)
    return multiplied if is_dense else None


def _last_order(type_: TensorType | None) -> tuple[int, ...]:
    """The dimensions of an image with channels last, the outermost first."""
    assert type_ is not None
    return _order(type_.rank, last=True)


def _order(rank: int, *, last: bool) -> tuple[int, ...]:
    return (0, *range(2, rank), 1) if last else tuple(range(rank))


def _may_change(operands: OperandViews, op: TensorOp) -> bool:
    """Whether a result is an image whose order in memory is seen by nothing but operations that read strides."""
    facts, result, name = operands.facts, op.result, str(op.instruction.result)
    if result is None or result.rank < _LEAST_RANK or not result.is_row_major or result.is_padded:
        return False
    multiplied = operands.groups.product_of(op)
    if multiplied is None and not _takes_strides(op) and _convolution(operands, op) is None:
        return False
    if multiplied is not None and (_convolution(operands, op) is None or not _has_extents_of(multiplied, result)):
        return False
    if facts.vectors.needs_ssa(name):
        return False
    changed = replace(operands, layouts={name: _last_order(result)}, storage=SymbolicStorage())
    image = changed.result_view(op)
    return all(_reads_strides(changed, use.instruction, image) for use in facts.vectors.uses.get(name, ()))


def _has_extents_of(op: TensorOp, type_: TensorType) -> bool:
    return op.result is not None and op.result.extents == type_.extents


def _takes_strides(op: TensorOp) -> bool:
    """Whether an operation other than a convolution reads and writes images with any strides."""
    name = op.intrinsic.name
    return name in POINTWISE | {"concat", "pad", "broadcast"} or is_reduction(op)


def _reads_strides(operands: OperandViews, user: Instruction, image: TensorView) -> bool:
    """Whether all that uses a result reads its memory with the strides of an image, which the operands have."""
    facts = operands.facts
    own = facts.tensors.op_of(user)
    if own is not None:
        return own.intrinsic.name == ORDINARY
    token = facts.tensors.tokens.get(user.result or "")
    if token is None or token.kind != "value" or token.type.is_padded or not token.type.is_row_major:
        return False
    if image.reshaped(token.type) is None:
        return False
    readers = [facts.tensors.op_of(use.instruction) for use in facts.vectors.uses.get(str(user.result), ())]
    return all(reader is not None and _reads_image(operands, reader, token) for reader in readers)


def _reads_image(operands: OperandViews, op: TensorOp, token: Tensor) -> bool:
    name = str(op.instruction.result)
    if name in operands.views and is_crop(op):  # its readers read the image, too, perhaps in another shape
        users = operands.facts.vectors.uses.get(name, ())
        return all(operands.readers(use.instruction) is not None for use in users)
    if op.intrinsic.name == _CONVOLUTION:
        return op.tensors[0] is token and op.tensors[1] is not token and not has_dilated_input(op)
    return op.pointer is None and _takes_strides(op)


@dataclass(eq=False)
class LayoutAssignment:
    """The costs of the orders of images: label 1 is channels last.

    Attributes:
        operands: The operands of all operations.
        images: The results whose order may change, by name.
        costs: The costs that are known so far.
    """

    operands: OperandViews
    images: Mapping[str, TensorOp]
    costs: LabelCosts[str] = field(default_factory=LabelCosts[str])

    def channels_last(self, written: Sequence[TensorOp]) -> list[str]:
        """Names of the images that have channels last, for the least cost of all operations that write memory."""
        for op in written:
            convolution = _convolution(self.operands, op)
            if convolution is not None:
                self._add(convolution.tensors[0], op, partial(self._convolution_cycles, op, convolution))
            for tensor in self._other_operands(op):
                self._add(tensor, op, partial(self._copy_cycles, tensor))
        ones = self.costs.ones()
        return [name for name in self.images if name in ones]

    def _other_operands(self, op: TensorOp) -> list[Tensor]:
        """The tensors that an operation reads, without those of its product."""
        if op.intrinsic.name in POINTWISE:
            return self.operands.groups.leaves(op)
        return [] if op.intrinsic.name in PRODUCTS else list(op.tensors)

    def _add(self, tensor: Tensor, op: TensorOp, cycles: _Cycles) -> None:
        """Add the cycles of an operation for the orders of an operand and of its result: whether channels are last."""
        image, result = self._image(tensor), str(op.instruction.result)
        if image and result in self.images:
            costs = (cycles(first, second) for first, second in product((False, True), repeat=2))
            self.costs.add_pair(image, result, PairCosts(*costs))
        elif image:
            self.costs.add(image, cycles(False, False), cycles(True, False))
        elif result in self.images:
            self.costs.add(result, cycles(False, False), cycles(False, True))

    def _image(self, tensor: Tensor) -> str:
        """The name of the image that an operand is a view of; empty if it is none whose order may change."""
        while (view := self.operands.view_of(tensor)) is not None:
            tensor = view.tensors[0]
        root = self.operands.facts.vectors.root(tensor.source) if tensor.kind == "value" else None
        return root.name if isinstance(root, Local) and root.name in self.images else ""

    def _with(self, tensor: Tensor | None, op: TensorOp | None) -> OperandViews:
        """The operands with channels last in an operand, in the result of an operation, or in both."""
        read, written = "" if tensor is None else self._image(tensor), "" if op is None else str(op.instruction.result)
        last = {read, written} & self.images.keys()
        return replace(self.operands, layouts={name: _last_order(self.images[name].result) for name in last})

    def _copy_cycles(self, tensor: Tensor, is_read_last: bool, is_written_last: bool) -> float:
        """The cycles of a copy of an operand in the order of the result; none if it has this order."""
        view = self._with(tensor if is_read_last else None, None).view(tensor)
        if len(view.dims) < _LEAST_RANK or any(dim.stride == 0 and dim.extent > 1 for dim in view.dims):
            return 0  # numbers of channels, or of positions
        dims = [view.dims[d] for d in _order(len(view.dims), last=is_written_last)]
        rows = without_unit_dims(dims)
        return 0 if not rows or rows[-1].stride == 1 else copy_cycles(dims, view.element, self.operands.facts.target)

    def _convolution_cycles(
        self, op: TensorOp, convolution: TensorOp, is_read_last: bool, is_written_last: bool
    ) -> float:
        """The estimated cycles of a convolution, with copies of its input."""
        assert convolution.result is not None
        operands = self._with(convolution.tensors[0] if is_read_last else None, op if is_written_last else None)
        x, w = (operands.view(tensor) for tensor in convolution.tensors)
        windows = Windows.of(convolution.tensors[0].type.rank, convolution.dims)
        problem = DenseConvolution(x, w, windows, ContractionResult(operands.product_view(convolution)))
        return best_layout(operands.facts.target, problem, convolution.result.element)[1]
