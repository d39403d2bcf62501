"""Packed operands: a product of a matrix that is stored in blocks becomes a contraction over their dimensions.

Rewrite of 128 x 768 times 768 x 512, the right operand in strips of 16 columns, as `reshape.block` of its transpose
stores it::

    %b = call token @llvm.tensor.load(ptr %p, <32, 768, 16>, ...)
    %f = call <393216 x float> @llvm.tensor.reshape.permute(token %b, <1, 0, 2>, <768, 512>)
    %t = call token @llvm.tensor.typeinfo(<393216 x float> %f, <768, 512>, ...)
    %c = call <65536 x float> @llvm.tensor.matmul(token %a, token %t)
    ->
    %c = call <65536 x float> @llvm.tensor.contract(token %a, token %b, <1>, <1>)         128 x 32 x 16

Where rows are in blocks, too, the columns of the left operand are split in the same way. The permutation stays if a
copy and a product of it are estimated to be faster, for instance of blocks of a few columns; if the contraction would
copy its operand as well; if its rows are interleaved in a way that no dot product reads; if anything else reads the
matrix; if what is permuted is the result of an operation; and if the matrix can be read in place without blocks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.intrinsics.products import axes_of, free_axes
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import Use, definitions, remove_dead, replace_uses, uses
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.inference import analyse
from tlx.ir.tensors.model import FunctionTensors, Tensor, TensorOp
from tlx.ir.types import PTR, Type
from tlx.ir.values import Keyword, Local, Value
from tlx.lower.memory.views import NO_ADDRESS, Storage, TensorView, pitches_of
from tlx.lower.to_2d.contraction.blocking import Blocking
from tlx.lower.to_2d.contraction.problem import LHS, RHS, Contraction, ContractionResult, contraction_of
from tlx.lower.to_2d.contraction.strategy import best_blocking, least_contraction_cycles
from tlx.lower.to_2d.contraction.vnni import is_interleaved, is_vnni_product
from tlx.lower.to_2d.memory.copies import copy_cycles
from tlx.lower.to_2d.memory.derived_views import permuted_view
from tlx.target.target import Target

_PERMUTE: Final = "reshape.permute"
_MATRIX: Final = 2
_LEAST_ROW: Final = 16
"""Positions of a row that products read, if they are not interleaved; shorter rows leave columns apart."""
_PACKED: Final = Keyword(PTR, "poison")
"""A symbolic address of the packed operand, by which it differs from the other one."""


def contract_packed_operands(module: Module, function: Function, target: Target) -> None:
    """Rewrite the products of permuted matrices in a function as contractions that read the matrices in place."""
    if not any(_PERMUTE in (instruction.callee or "") for instruction in function.instructions()):
        return
    tensors, used, known = analyse(module, function), uses(function), definitions(function)
    replaced: set[int] = set()
    for permute in tensors.ops:
        packed = _PackedMatrix.of(permute)
        if packed is None or _is_computed(tensors, known, permute.tensors[0]):
            continue
        products = _products(tensors, used, permute)
        contractions = [_PackedContraction.of(packed, product, target) for product in products]
        if not contractions or None in contractions or not replaced.isdisjoint(map(_key, products)):
            continue
        for contraction in contractions:
            assert contraction is not None
            contraction.emit(module, function)
        replaced |= set(map(_key, products))
        tokens = [tensor.definition for product in products for tensor in product.tensors]
        remove_dead(function, {id(i): i for i in (permute.instruction, *tokens)}.values())


def _is_computed(tensors: FunctionTensors, known: Mapping[str, Instruction], tensor: Tensor) -> bool:
    """Whether a tensor is the result of an operation, which may write it in the order of the matrix."""
    definition = known.get(tensor.source.name) if tensor.kind == "value" and isinstance(tensor.source, Local) else None
    return definition is not None and tensors.op_of(definition) is not None


def _key(product: TensorOp) -> int:
    return id(product.instruction)


def _products(tensors: FunctionTensors, used: dict[str, list[Use]], permute: TensorOp) -> list[TensorOp]:
    """The products that read a permuted matrix; none if anything else reads it."""
    users = [use.instruction for use in used.get(str(permute.instruction.result), [])]
    tokens = [tensors.tokens.get(user.result or "") for user in users]
    if any(token is None or token.kind != "value" or token.type != permute.result for token in tokens):
        return []
    readers = [tensors.op_of(use.instruction) for user in users for use in used.get(str(user.result), [])]
    products = [reader for reader in readers if reader is not None and reader.intrinsic.name in ("matmul", "contract")]
    return products if len(products) == len(readers) else []


@dataclass(frozen=True)
class _PackedMatrix:
    """A matrix as the permutation of a tensor in which its rows or its columns are more than one dimension.

    Attributes:
        permute: The permutation.
        dims: The dimensions of the tensor that are rows, and those that are columns, the outermost first.
    """

    permute: TensorOp
    dims: tuple[tuple[int, ...], tuple[int, ...]]

    @classmethod
    def of(cls, permute: TensorOp) -> _PackedMatrix | None:
        """The matrix that an operation permutes; None if it is none, or has strides in memory."""
        result = permute.result
        if permute.intrinsic.name != _PERMUTE or result is None or result.is_padded or result.rank != _MATRIX:
            return None
        source = permute.tensors[0]
        if source.type.is_padded or permuted_view(_view(source.type, source.pitches), permute) is not None:
            return None
        order, extents = permute.dims[0], source.type.extents
        for count in range(1, len(order)):
            if math.prod(extents[d] for d in order[:count]) == result.extents[0]:
                rows, columns = (tuple(d for d in part if extents[d] > 1) for part in (order[:count], order[count:]))
                is_ordered = all(list(part) == sorted(part) for part in (rows, columns))
                return cls(permute, (rows, columns)) if is_ordered and rows and columns else None
        return None

    @property
    def type(self) -> TensorType:
        """The type of the tensor in memory."""
        return self.permute.tensors[0].type


@dataclass(frozen=True)
class _PackedContraction:
    """A product of a packed matrix as a contraction.

    Attributes:
        product: The product.
        packed: The matrix.
        operand: The number of the product's operand that it is.
        other: The type of the other operand with its summed dimension split like that of the matrix.
        pitches: The pitches of the other operand, if it is loaded.
        axes: For each operand of the contraction the dimensions that are summed.
    """

    product: TensorOp
    packed: _PackedMatrix
    operand: int
    other: TensorType
    pitches: tuple[int, ...] | None
    axes: tuple[tuple[int, ...], tuple[int, ...]]

    @classmethod
    def of(cls, packed: _PackedMatrix, product: TensorOp, target: Target) -> _PackedContraction | None:
        """The contraction that replaces a product; None if there is none, or it is not faster than a copy."""
        axes = _summed_axes(product)
        is_packed = [_is_result(tensor, packed.permute) for tensor in product.tensors]
        if axes is None or sum(is_packed) != 1:
            return None
        operand = is_packed.index(True)
        is_read_in_place = is_interleaved(packed.permute, target) and is_vnni_product(product, product.tensors[operand])
        dims = packed.dims[axes[operand]]
        split = _split(product.tensors[1 - operand], axes[1 - operand], [packed.type.extents[d] for d in dims])
        if is_read_in_place or split is None:
            return None
        places = tuple(range(axes[1 - operand], axes[1 - operand] + len(dims)))
        contraction = cls(product, packed, operand, *split, (places, dims) if operand else (dims, places))
        return contraction if contraction._is_faster(target) else None

    def _is_faster(self, target: Target) -> bool:
        """Whether reading the matrix in place is estimated to be faster than copying it."""
        result, source = self.product.result, self.packed.permute.tensors[0]
        axes = _summed_axes(self.product)
        assert result is not None
        assert axes is not None
        views = [_view(tensor.type, tensor.pitches) for tensor in self.product.tensors]
        copied = _contraction(views, ((axes[0],), (axes[1],)), result)
        views[self.operand] = _view(source.type, source.pitches, _PACKED)
        views[1 - self.operand] = _view(self.other, self.pitches)
        in_place = _contraction(views, self.axes, result)
        if not _is_read_in_place(target, in_place, result.element):
            return False
        dims = [views[self.operand].dims[d] for d in self.packed.permute.dims[0]]
        copying = copy_cycles(dims, source.type.element, target)
        cycles, with_copy = (least_contraction_cycles(target, c, result.element) for c in (in_place, copied))
        return cycles < copying + with_copy

    def emit(self, module: Module, function: Function) -> None:
        """Write the contraction in place of the product."""
        call, result = self.product.instruction, self.product.result
        assert result is not None
        packed: Value = self.packed.permute.tensors[0].definition.value
        other = self._emit_split(module, function)
        a, b = (other, packed) if self.operand else (packed, other)
        builder = _builder_at(module, function, call)
        contraction = builder.contract(a, b, *self.axes, result=result.vector, name=str(call.result))
        replace_uses(function, str(call.result), contraction)
        builder.block.instructions.remove(call)

    def _emit_split(self, module: Module, function: Function) -> Value:
        """Write the token of the other operand, whose tensor is loaded where it was loaded before."""
        other = self.product.tensors[1 - self.operand]
        if self.other == other.type:
            return other.definition.value
        b = _builder_at(module, function, other.definition)
        if other.kind == "load":
            return b.tensor_load(other.source, self.other, self.pitches, "split")
        return b.typeinfo(other.source, self.other, "split")


def _builder_at(module: Module, function: Function, instruction: Instruction) -> TensorBuilder:
    """A builder right before an instruction."""
    block = next(block for block in function.blocks if instruction in block.instructions)
    b = TensorBuilder(module, function, block, block.instructions.index(instruction))
    b.debug, b.span = instruction.debug_location, instruction.span
    return b


def _summed_axes(product: TensorOp) -> tuple[int, int] | None:
    """The dimension of each operand that a product sums; None if there are several, or batch dimensions."""
    if product.intrinsic.name == "matmul":
        return (1, 0) if product.tensors[0].type.rank == len(product.tensors) else None
    axes_a, axes_b, batch, _ = axes_of(product.dims)
    return (axes_a[0], axes_b[0]) if len(axes_a) == 1 and not batch else None


def _is_result(tensor: Tensor, permute: TensorOp) -> bool:
    return tensor.kind == "value" and tensor.source == permute.instruction.value


def _split(tensor: Tensor, axis: int, extents: Sequence[int]) -> tuple[TensorType, tuple[int, ...] | None] | None:
    """The type and pitches of a tensor with a dimension split into several; None if it has no such pitches."""
    type_ = tensor.type
    if len(extents) == 1:
        return type_, tensor.pitches
    if type_.is_padded or not type_.is_row_major or tensor.kind == "pointer":
        return None
    strides = type_.strides(tensor.pitches)
    inner = [strides[axis] * math.prod(extents[k + 1 :]) for k in range(len(extents))]
    shape = (*type_.shape[:axis], *extents, *type_.shape[axis + 1 :])
    pitches = pitches_of(shape, (*strides[:axis], *inner, *strides[axis + 1 :]))
    return None if pitches is None else (TensorType.dense(type_.element, shape), pitches)


def _view(type_: TensorType, pitches: Sequence[int] | None, address: Value = NO_ADDRESS) -> TensorView:
    return TensorView.of(Storage(address), type_, pitches)


def _is_read_in_place(target: Target, contraction: Contraction, element: Type) -> bool:
    """Whether the contraction does not copy the packed operand, and reads rows of it or interleaved ones."""
    choice, _ = best_blocking(target, contraction, element)
    if not isinstance(choice, Blocking):
        return False
    operands = choice.contraction.lhs, choice.contraction.rhs
    column = next(k for k, operand in enumerate(operands) if operand.pointer == _PACKED)
    strides = [(dim.extent, dim.strides[LHS if contraction.lhs.pointer == _PACKED else RHS]) for dim in contraction.k]
    is_apart = any(1 < extent < _LEAST_ROW and stride == 1 for extent, stride in strides)
    return column not in choice.copied and (operands[column].vnni_group > 1 or not is_apart)


def _contraction(
    views: Sequence[TensorView], axes: tuple[tuple[int, ...], tuple[int, ...]], result: TensorType
) -> Contraction:
    """A contraction to a dense result, for estimates."""
    dims = [(view.dims, free_axes(len(view.dims), summed, ())) for view, summed in zip(views, axes, strict=True)]
    free = [view[d].extent for view, places in dims for d in places]
    destination = _view(TensorType.dense(result.element, free), None)
    return contraction_of(views[0], views[1], axes, ContractionResult(destination))
