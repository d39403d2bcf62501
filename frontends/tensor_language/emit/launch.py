"""The function of a kernel that runs all work-groups, one after the other or in parallel threads.

    define void @name(args, i64 %nx, i64 %ny, i64 %nz) {
      for z < nz: for y < ny: for x < nx:  call void @name.group(args, x, y, z, nx, ny, nz)
    }

With OpenMP the groups are numbered `x + nx * (y + ny * z)`, and thread t of n runs those from `t*N/n` to `(t+1)*N/n`:
the same groups on the same thread in every run with as many threads. A region inside a parallel region runs on the
calling thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tlx.frontends.tensor_language.ast.base import Function as Kernel
from tlx.frontends.tensor_language.emit.parameters import llvm_parameters
from tlx.frontends.tensor_language.signature import GROUP_SUFFIX, llvm_name
from tlx.ir.builder import Builder, new_function
from tlx.ir.module import Module
from tlx.ir.threads import Thread, in_threads
from tlx.ir.types import VOID, FunctionType
from tlx.ir.values import Global, Value

ATTRIBUTES: Final = "#0"


def emit_launch(module: Module, kernel: Kernel, *, threads: bool) -> None:
    """Add the function that runs all groups."""
    parameters = llvm_parameters(module, kernel, one_group=False)
    function = new_function(module, llvm_name(kernel), parameters, ATTRIBUTES, linkage="dso_local")
    b = Builder(module, function)
    values: list[Value] = [a.value for a in function.arguments]
    if threads:
        _in_threads(b, kernel, values)
    else:
        _in_turn(b, kernel, values)
    b.ret()


def _in_turn(b: Builder, kernel: Kernel, values: Sequence[Value]) -> None:
    """Loops over z, y and x."""
    counts = values[-3:]
    with b.loop(0, counts[2], name="z") as z, b.loop(0, counts[1], name="y") as y, b.loop(0, counts[0], name="x") as x:
        _call_group(b, kernel, values, [x.index, y.index, z.index])


def _call_group(b: Builder, kernel: Kernel, values: Sequence[Value], ids: Sequence[Value]) -> None:
    args = [*values[:-3], *ids, *values[-3:]]
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(b.module.pointer_to(type_), llvm_name(kernel, GROUP_SUFFIX)), type_, args)


def _in_threads(b: Builder, kernel: Kernel, values: Sequence[Value]) -> None:
    """Have every thread of a team run its share of the groups."""

    def share(b: Builder, own: list[Value], thread: Thread) -> None:
        nx, ny, nz = own[-3:]
        first, last = thread.share(b, b.mul(b.mul(nx, ny), nz))
        with b.loop(first, last, name="group") as group:
            row = b.binary("sdiv", group.index, nx)
            ids = [b.binary("srem", group.index, nx), b.binary("srem", row, ny), b.binary("sdiv", row, ny)]
            _call_group(b, kernel, own, ids)

    in_threads(b, llvm_name(kernel, ".thread"), values, share, ATTRIBUTES)
