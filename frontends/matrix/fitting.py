"""Which tensor operations LLVM's matrix intrinsics can say."""

from __future__ import annotations

from typing import Final

from tlx.frontends.matrix.calls import matrix_stride
from tlx.frontends.matrix.shapes import ELEMENTS
from tlx.ir.tensors import Tensor, TensorOp
from tlx.ir.types import PointerType
from tlx.ir.values import Value

_PRODUCTS: Final = ("matmul", "umma", "smma", "usmma", "summa")
_SAID: Final = (*_PRODUCTS, "transpose", "store", "tovector")


def obstacle(op: TensorOp) -> str | None:
    """Why no matrix intrinsics say what an operation does; None if they do."""
    name = op.intrinsic.name
    if name not in _SAID:
        return "LLVM has no matrix intrinsic for it"
    least = 2 if name in (*_PRODUCTS, "transpose") else 1
    for tensor in op.tensors:
        problem = _obstacle_of_tensor(tensor, least)
        if problem is not None:
            return problem
    if op.pointer is not None and _is_elsewhere(op.pointer):
        return "it writes to another address space"
    narrow = [tensor.type.element for tensor in op.tensors if op.result and tensor.type.element != op.result.element]
    return f"it widens {narrow[0]} to {op.result.element}" if op.result and narrow else None


def _obstacle_of_tensor(tensor: Tensor, least: int) -> str | None:
    type_ = tensor.type
    if not least <= type_.rank <= 2:
        return f"{type_} is no matrix"
    if type_.is_padded:
        return f"{type_} has padding, which matrices have not"
    if str(type_.element) not in ELEMENTS:
        return f"matrices have no elements {type_.element}"
    if tensor.kind != "value" and _is_elsewhere(tensor.source):
        return "it reads another address space"
    if matrix_stride(type_, tensor.pitches) < type_.shape[-1]:
        return f"it reads {type_} at a stride of {matrix_stride(type_, tensor.pitches)}, so that columns overlap"
    return None


def _is_elsewhere(pointer: Value) -> bool:
    return isinstance(pointer.type, PointerType) and pointer.type.addrspace != 0
