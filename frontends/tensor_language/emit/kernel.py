"""A kernel as two LLVM functions: one runs a work-group, the other runs all of them, sequentially or in threads.

    define void @name(args, i64 %nx, i64 %ny, i64 %nz) {
      for z < nz: for y < ny: for x < nx:  call void @name.group(args, x, y, z, nx, ny, nz)
    }

With OpenMP the groups are numbered `x + nx * (y + ny * z)`, and thread t of n runs those from `t*N/n` to `(t+1)*N/n`:
the same groups on the same thread in every run with the same number of threads. A nested parallel region runs on the
calling thread.

    func @name(%A: memref<f32x8x8>)   ->  define void @name.group(ptr %A, i64 %group_id_x, ..., i64 %num_groups_z)
                                          define void @name(ptr %A, i64 %num_groups_x, ..., i64 %num_groups_z)

Both have the attribute `"tlx-features"="target"`: the lowering gives them the features of the target.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tlx.diagnostics import LoweringError, Source
from tlx.frontends.tensor_language.analysis.divergence import varying_names
from tlx.frontends.tensor_language.analysis.first_writes import first_writes
from tlx.frontends.tensor_language.analysis.uses import matrix_uses
from tlx.frontends.tensor_language.emit.arithmetic.scalars import from_memory
from tlx.frontends.tensor_language.emit.emitter import (
    Emitted,
    Emitter,
    Group,
    Memref,
    Number,
    SharedMemory,
    WorkGroup,
    WorkItem,
    memory_type,
    register_type,
)
from tlx.frontends.tensor_language.operations.core import rules_of
from tlx.frontends.tensor_language.signature import GROUP_SUFFIX, CParameter, c_parameters, llvm_name
from tlx.frontends.tensor_language.syntax.nodes import Attribute, Function, Parameter
from tlx.frontends.tensor_language.types import BOOL, F16, Extent, GroupType, MemrefType, ScalarType
from tlx.frontends.tensor_language.work_items import work_group_sizes
from tlx.ir.builder import Builder, Thread, emit_parallel_region, new_function
from tlx.ir.module import Module, UnparsedText
from tlx.ir.rewrite import set_operand
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I1, I8, I16, I32, I64, VOID, FunctionType, Type, VectorType
from tlx.ir.values import Global, Value, const_int
from tlx.llvm.openmp import Threads
from tlx.lower.context import CALL_COUNTER_ATTRIBUTE, STAGE_ATTRIBUTE
from tlx.target import thread_calls
from tlx.target.grid_unit import FragmentProduct

if TYPE_CHECKING:
    from tlx.frontends.tensor_language.syntax.nodes import Program
    from tlx.target.grid_unit import GridUnit


def llvm_parameters(module: Module, function: Function, *, one_group: bool) -> list[tuple[Type, str, str]]:
    """Type, attributes and name of each parameter, as `new_function` takes them."""
    return [(_type(module, c), _attributes(c), c.name) for c in c_parameters(function, one_group=one_group)]


def bind_parameters(e: Emitter, function: Function, values: Sequence[Value]) -> None:
    """Bind the kernel's parameters to the arguments of the compiled function.

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
    return (from_memory(e, value, type_),)


def _extents(own: dict[tuple[str, int], Value], role: str, extents: tuple[Extent, ...]) -> tuple[Value, ...]:
    return tuple(own[role, m] if entry is None else const_int(I64, entry) for m, entry in enumerate(extents))


def _alignment(parameter: Parameter, type_: MemrefType) -> int:
    attribute: Attribute | None = parameter.attributes.get("alignment")
    return attribute.value if attribute is not None and isinstance(attribute.value, int) else type_.element.part.size


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
    """LLVM type in which a scalar is passed: narrow floats as their bits, complex numbers as vectors."""
    if type_ == BOOL:
        return I1
    if type_.is_narrow_float:
        return I16
    if type_.kind == "complex":
        return VectorType(2, register_type(type_))
    return register_type(type_)


def _attributes(c: CParameter) -> str:
    """Small integers are extended as C compilers do."""
    if c.role == "scalar" and c.type.bits < 32 and c.type.kind != "float":
        return "zeroext" if c.type == BOOL else "signext"
    return "zeroext" if c.role == "scalar" and c.type.is_narrow_float else ""


ATTRIBUTES: Final = "#0"


def emit_launch(module: Module, kernel: Function, *, threads: bool) -> None:
    """Add the function that runs all groups."""
    parameters = llvm_parameters(module, kernel, one_group=False)
    function = new_function(module, llvm_name(kernel), parameters, ATTRIBUTES, linkage="dso_local")
    b = Builder(module, function)
    values: list[Value] = [a.value for a in function.arguments]
    if threads:
        _in_threads(b, kernel, values)
    else:
        _sequentially(b, kernel, values)
    b.ret()


def _sequentially(b: Builder, kernel: Function, values: Sequence[Value]) -> None:
    """Loops over z, y and x."""
    counts = values[-3:]
    with b.loop(0, counts[2], name="z") as z, b.loop(0, counts[1], name="y") as y, b.loop(0, counts[0], name="x") as x:
        _call_group(b, kernel, values, [x.index, y.index, z.index])


def _call_group(b: Builder, kernel: Function, values: Sequence[Value], ids: Sequence[Value]) -> None:
    args = [*values[:-3], *ids, *values[-3:]]
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(b.module.pointer_to(type_), llvm_name(kernel, GROUP_SUFFIX)), type_, args)


def _in_threads(b: Builder, kernel: Function, values: Sequence[Value]) -> None:
    """Each thread of a team runs its share of the groups."""

    def share(b: Builder, own: list[Value], thread: Thread) -> None:
        nx, ny, nz = own[-3:]
        first, last = thread.share(b, b.mul(b.mul(nx, ny), nz))
        with b.loop(first, last, name="group") as group:
            row = b.binary("sdiv", group.index, nx)
            ids = [b.binary("srem", group.index, nx), b.binary("srem", row, ny), b.binary("sdiv", row, ny)]
            _call_group(b, kernel, own, ids)

    emit_parallel_region(b, llvm_name(kernel, ".thread"), values, share, ATTRIBUTES)


def emit_for_grid(module: Module, kernel: Function, grid: GridUnit) -> None:
    """Add a kernel to a module, as a function for one thread of a grid: a block runs a work-group.

    Raises:
        LoweringError: A subgroup has more work-items than a warp of any grid.
    """
    parameters = llvm_parameters(module, kernel, one_group=False)
    function = new_function(module, llvm_name(kernel), parameters, ATTRIBUTES, linkage="")
    b = TensorBuilder(module, function)
    values: list[Value] = [a.value for a in function.arguments]
    size, shape = work_group_sizes(kernel)
    if size > grid.warp_threads:
        message = f"a subgroup of {size} work-items; on a grid it has at most {grid.warp_threads}: set 'subgroup_size'"
        raise LoweringError(message, kernel.span)
    thread, base = thread_calls.number(b), thread_calls.shared(b)
    lane, subgroup = b.binary("urem", thread, const_int(I32, size)), b.binary("udiv", thread, const_int(I32, size))
    number = b.cast("zext", subgroup, I64)
    unknown = const_int(I64, _UNKNOWN)
    scratch_of_subgroup = b.emit("mul", I64, [number, unknown], f"mul i64 {number}, {unknown}")
    scratch_offset = b.emit(
        "add", I64, [scratch_of_subgroup.value, unknown], f"add i64 {scratch_of_subgroup.value}, {unknown}"
    )
    group, counts = b.cast("zext", thread_calls.block(b), I64), values[-3:]
    row = b.binary("udiv", group, counts[0])
    ids = (b.binary("urem", group, counts[0]), b.binary("urem", row, counts[1]), b.binary("udiv", row, counts[1]))
    shared = SharedMemory(base, b.gep(I8, base, scratch_offset.value))
    launch = WorkGroup(ids, tuple(counts), size, shape)
    e = Emitter(b, kernel, launch, varying_names(kernel), rules_of(_PACKAGE), first_writes(kernel))
    products = tuple(p for p in grid.products if isinstance(p, FragmentProduct)) if size == grid.warp_threads else ()
    e.item = WorkItem(thread, lane, subgroup, shared, products, matrix_uses(kernel, e.varying))
    bind_parameters(e, kernel, [*values[:-3], *ids, *counts])
    e.run(kernel.body)
    b.span = None
    b.ret()
    start = -(-shared.most // _SCRATCH_ALIGNMENT) * _SCRATCH_ALIGNMENT
    set_operand(scratch_of_subgroup, 1, const_int(I64, shared.most_scratch))
    set_operand(scratch_offset, 1, const_int(I64, start))
    threads = math.prod(shape)
    total = start + shared.most_scratch * (threads // size)
    block = f'"{thread_calls.BLOCK_ATTRIBUTE}"="{threads},{total}"'
    function.replace_attributes(f'nounwind "{STAGE_ATTRIBUTE}"="tiles" {block}')


_UNKNOWN: Final = 1 << 40  # until the code has been written
_SCRATCH_ALIGNMENT: Final = 16
_PACKAGE: Final = "tlx.frontends.tensor_language.emit"


def emit_kernel(module: Module, kernel: Function, *, threads: bool) -> None:
    """Add a kernel's functions to a module."""
    parameters = llvm_parameters(module, kernel, one_group=True)
    attributes = f'{ATTRIBUTES} "{CALL_COUNTER_ATTRIBUTE}"="{parameters[-6][2]}"'
    function = new_function(module, llvm_name(kernel, GROUP_SUFFIX), parameters, attributes, linkage="dso_local")
    b = TensorBuilder(module, function)
    values: list[Value] = [a.value for a in function.arguments]
    size, shape = work_group_sizes(kernel)
    launch = WorkGroup(tuple(values[-6:-3]), tuple(values[-3:]), size, shape)
    e = Emitter(b, kernel, launch, varying_names(kernel), rules_of(_PACKAGE), first_writes(kernel))
    bind_parameters(e, kernel, values)
    e.run(kernel.body)
    b.span = None
    b.ret()
    emit_launch(module, kernel, threads=threads)


def emit_program(program: Program, *, typed_pointers: bool, threads: Threads | GridUnit, name: str) -> Module:
    """Write a program.

    Args:
        program: A checked program.
        typed_pointers: Spell pointers as `T*`, for LLVM before 15.
        threads: What runs work-groups in parallel: a library, or the blocks of a target's grid.
        name: The name of the module in messages.
    """
    module = Module(Source(name, ""), [UnparsedText("")], typed_pointers)
    for function in program.functions:
        if isinstance(threads, str):
            emit_kernel(module, function, threads=threads == "openmp")
        else:
            emit_for_grid(module, function, threads)
    module.items.append(UnparsedText('\n\nattributes #0 = { nounwind "tlx-features"="target" }\n'))
    return module
