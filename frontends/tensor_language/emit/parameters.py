"""The parameters of a compiled kernel: LLVM's types for them, and what the kernel's names are at its entry."""

from __future__ import annotations

from collections.abc import Sequence

from tlx.frontends.tensor_language.ast.base import Attribute, Function, Parameter
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.numbers import widened
from tlx.frontends.tensor_language.emit.values import Emitted, Group, Memref, Number, memory_type, register_type
from tlx.frontends.tensor_language.signature import CParameter, c_parameters
from tlx.frontends.tensor_language.types import BOOL, F16, Extent, GroupType, MemrefType, ScalarType
from tlx.ir.module import Module
from tlx.ir.types import I1, I16, I64, Type, VectorType
from tlx.ir.values import Value, const_int


def llvm_parameters(module: Module, function: Function, *, one_group: bool) -> list[tuple[Type, str, str]]:
    """Type, attributes and name of each parameter, as `new_function` takes them."""
    return [(_type(module, c), _attributes(c), c.name) for c in c_parameters(function, one_group=one_group)]


def bind_parameters(e: Emitter, function: Function, values: Sequence[Value]) -> None:
    """Say what the kernel's parameters are, given the compiled function's arguments.

    Args:
        e: The emitter, at the entry of the function.
        function: The kernel.
        values: The arguments of the function that runs one group.
    """
    carried = c_parameters(function, one_group=True)
    for position, parameter in enumerate(function.parameters):
        pairs = zip(carried, values, strict=True)
        own = {(c.role, c.mode): value for c, value in pairs if c.parameter == position}
        e.bind(parameter.name, _bound(e, parameter, own))


def _bound(e: Emitter, parameter: Parameter, own: dict[tuple[str, int], Value]) -> Emitted:
    type_ = parameter.type.type
    if isinstance(type_, MemrefType):
        shape = _extents(own, "shape", type_.shape)
        stride = _extents(own, "stride", type_.stride)
        return Memref(type_, own["pointer", 0], shape, stride, _alignment(parameter, type_))
    if isinstance(type_, GroupType):
        shapes = tuple(own.get(("shapes", m)) for m in range(type_.memref.order))
        strides = tuple(own.get(("strides", m)) for m in range(type_.memref.order))
        size = const_int(I64, type_.size) if type_.size is not None else own.get(("size", 0))
        offset = const_int(I64, type_.offset) if type_.offset is not None else own["offset", 0]
        alignment = _alignment(parameter, type_.memref)
        return Group(type_, own["pointers", 0], shapes, strides, size, offset, alignment)
    assert isinstance(type_, ScalarType)
    return Number(type_, _scalar(e, type_, own["scalar", 0]))


def _scalar(e: Emitter, type_: ScalarType, value: Value) -> tuple[Value, ...]:
    if type_.kind == "complex":
        return e.b.extract_element(value, 0), e.b.extract_element(value, 1)
    if type_ == F16:
        value = e.b.cast("bitcast", value, memory_type(type_))
    return (widened(e, value, type_),)


def _extents(own: dict[tuple[str, int], Value], role: str, extents: tuple[Extent, ...]) -> tuple[Value, ...]:
    return tuple(own[role, m] if entry is None else const_int(I64, entry) for m, entry in enumerate(extents))


def _alignment(parameter: Parameter, type_: MemrefType) -> int:
    found: Attribute | None = parameter.attributes.get("alignment")
    return found.value if found is not None and isinstance(found.value, int) else type_.element.part.size


def _type(module: Module, c: CParameter) -> Type:
    element = memory_type(c.type)
    match c.role:
        case "pointer":
            return module.pointer_to(element)
        case "pointers":
            return module.pointer_to(module.pointer_to(element))
        case "shapes" | "strides":
            return module.pointer_to(I64)
        case "scalar":
            return _scalar_type(c.type)
        case _:
            return I64


def _scalar_type(type_: ScalarType) -> Type:
    """LLVM type by which a scalar is passed: narrow floats as their bits, complex numbers as vectors."""
    if type_ == BOOL:
        return I1
    if type_.is_narrow_float:
        return I16
    if type_.kind == "complex":
        return VectorType(2, register_type(type_))
    return register_type(type_)


def _attributes(c: CParameter) -> str:
    """Small integers are extended as C's callers do; pointers are not kept."""
    if c.role == "scalar" and c.type.bits < 32 and c.type.kind != "float":
        return "zeroext" if c.type == BOOL else "signext"
    return "zeroext" if c.role == "scalar" and c.type.is_narrow_float else ""
