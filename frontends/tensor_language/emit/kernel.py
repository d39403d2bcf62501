"""A kernel as LLVM functions: one that runs a work-group, one that runs all of them.

    func @name(%A: memref<f32x8x8>)   ->  define void @name.group(ptr %A, i64 %group_id_x, ..., i64 %num_groups_z)
                                          define void @name(ptr %A, i64 %num_groups_x, ..., i64 %num_groups_z)

Both carry the attribute `"tlx-features"="target"`: the lowering gives them the features of the machine it aims at.
"""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.ast.base import Function
from tlx.frontends.tensor_language.emit.blas_first_writes import first_writes
from tlx.frontends.tensor_language.emit.divergence import varying_names
from tlx.frontends.tensor_language.emit.emitter import Emitter, Launch
from tlx.frontends.tensor_language.emit.launch import ATTRIBUTES, emit_launch
from tlx.frontends.tensor_language.emit.parameters import bind_parameters, llvm_parameters
from tlx.frontends.tensor_language.rules import rules_of
from tlx.frontends.tensor_language.signature import GROUP_SUFFIX, llvm_name
from tlx.frontends.tensor_language.work_groups import work_group
from tlx.ir.builder import new_function
from tlx.ir.module import Module
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.values import Value
from tlx.lower.stage import ROUNDS

_PACKAGE: Final = "tlx.frontends.tensor_language.emit"


def emit_kernel(module: Module, kernel: Function, *, threads: bool) -> None:
    """Add a kernel's functions to a module."""
    parameters = llvm_parameters(module, kernel, one_group=True)
    attributes = f'{ATTRIBUTES} "{ROUNDS}"="{parameters[-6][2]}"'
    function = new_function(module, llvm_name(kernel, GROUP_SUFFIX), parameters, attributes, linkage="dso_local")
    b = TensorBuilder(module, function)
    values: list[Value] = [a.value for a in function.arguments]
    size, shape = work_group(kernel)
    launch = Launch(tuple(values[-6:-3]), tuple(values[-3:]), size, shape)
    e = Emitter(b, kernel, launch, varying_names(kernel), rules_of(_PACKAGE), first_writes(kernel))
    bind_parameters(e, kernel, values)
    e.run(kernel.body)
    b.span = None
    b.ret()
    emit_launch(module, kernel, threads=threads)
