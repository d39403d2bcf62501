"""What flattened vectors are: the rows and columns of each, carried from where they are said to where they are not."""

from __future__ import annotations

from tlx.ir.module import Function
from tlx.ir.tensors import FunctionTensors
from tlx.ir.types import Type, VectorType, scalar_of
from tlx.ir.values import Local
from tlx.lower.ordinary import Operation

Shapes = dict[str, tuple[Type, int, int]]


def tile_shapes(function: Function, tensors: FunctionTensors) -> Shapes:
    """Element type, rows and columns of every flattened tile value, by name.

    A vector has the shape that the operation that made it, or the typeinfo that reads it, says.
    """
    shapes: Shapes = {}
    for name, type_ in tensors.result_types().items():
        shapes[name] = type_.element, type_.shape[0], type_.count // type_.shape[0]
    for tensor in tensors.tokens.values():
        if tensor.kind == "value" and isinstance(tensor.source, Local):
            type_ = tensor.type
            shapes.setdefault(tensor.source.name, (type_.element, type_.shape[0], type_.count // type_.shape[0]))
    for instruction in function.instructions():
        if instruction.opcode == "shufflevector" and isinstance(instruction.type, VectorType):
            shapes[instruction.result or ""] = instruction.type.element, 1, instruction.type.count
    return _spread(function, shapes)


def _spread(function: Function, shapes: Shapes) -> Shapes:
    """Carry shapes through phis, casts and arithmetic, both ways."""
    changed = True
    while changed:
        changed = False
        for instruction in function.instructions():
            if instruction.opcode != "phi" and Operation.of(instruction) is None:
                continue
            names = [o.name for o in instruction.operands if isinstance(o, Local) and _is_vector(o.type)]
            group = [*names, *([instruction.result] if instruction.result and _is_vector(instruction.type) else [])]
            known = next((shapes[n] for n in group if n in shapes), None)
            for value in [*instruction.operands, *([instruction.value] if instruction.result else [])]:
                if known and isinstance(value, Local) and _is_vector(value.type) and value.name not in shapes:
                    shapes[value.name] = scalar_of(value.type), known[1], known[2]
                    changed = True
    return shapes


def _is_vector(type_: Type) -> bool:
    return isinstance(type_, VectorType)
