"""Constant tensors in memory."""

from __future__ import annotations

from tlx.ir.module import Module, Raw
from tlx.ir.types import I1, I8, ArrayType, VectorType
from tlx.ir.values import Aggregate, ConstInt, Global, Splat, Value
from tlx.lower.to_2d.views import stored


def constant_array(module: Module, value: Value) -> Global:
    """A constant vector as an array: LLVM aligns vectors to their size, which linkers refuse where it is large."""
    name = module.global_names.fresh("tensor.constant")
    type_ = value.type
    assert isinstance(type_, VectorType)
    if isinstance(value, (Aggregate, Splat)):
        elements = value.elements if isinstance(value, Aggregate) else (value.element,) * type_.count
        if type_.element == I1:
            elements = tuple(ConstInt(I8, int(str(e) in ("1", "-1", "true"))) for e in elements)
        value = Aggregate(ArrayType(type_.count, stored(type_.element)), elements, "[")
    text = f"\n\n@{name} = private unnamed_addr constant {value.typed}, align 64"
    module.append(Raw(text))
    return Global(module.pointer_to(value.type), name)
