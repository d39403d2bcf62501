"""First step of stage 1: tensors of run-time extents become static tensors, loops and memory.

    %x = load(%a, <%m, %k>)  %y = load(%b, <%k, %n>)  %p = matmul(%x, %y)  store(%c, typeinfo(%p, <%m, %n>))
    ->
    call void @tlx.dynamic.smma.f32.f32.f32.rr(ptr %c, i64 %n, ptr %a, i64 %k, i64 1, ptr %b, i64 %n, i64 1, ...)

For each function, `decisions` determines which loads are copied and which results are written directly to where they
are stored; `expansion` then rewrites the function by a rule for each operation (`rules`). A handle, a value of run-time
size, becomes a dense array (`heap`). The work is done by helper functions (`helpers`), which are loops around static
tensors (`products`, `elementwise`) or around vectors of one register (`elementwise`); stages 2 and 3 see nothing
dynamic. Code for devices is compiled for the sizes of a call: `specialization` makes the tensors static.
"""

from __future__ import annotations

from tlx.diagnostics import LoweringError
from tlx.ir.functions import Function
from tlx.ir.module import Module, UnparsedText
from tlx.ir.tensors.calls import is_tensor_call
from tlx.ir.tensors.dynamic import is_dynamic_vector
from tlx.ir.tensors.inference import analyse
from tlx.ir.tensors.model import FunctionTensors
from tlx.ir.types import I32, VectorType, scalar_of
from tlx.ir.values import Local
from tlx.lower.context import LoweringContext


def expand_dynamic(module: Module, context: LoweringContext) -> None:
    """Rewrite the functions that have tensors of run-time extents; others are unchanged.

    Raises:
        VerifyError: A rule of the tensor intrinsics is violated.
        LoweringError: Something is not supported yet; no function was changed.
    """
    candidates = [(f, analyse(module, f)) for f in module.functions if _may_be_dynamic(f)]
    dynamic = [(function, tensors) for function, tensors in candidates if tensors.dynamic]
    handles = [i for _, tensors in dynamic for i in tensors.dynamic.handles.values()]
    if handles and context.target.grid is not None:
        message = "sizes known only at run time: kernels are made for known sizes; tlx.compile makes them in a call"
        raise LoweringError(message, handles[0].span)
    if dynamic:
        _expand(module, context, dynamic)


def _expand(module: Module, context: LoweringContext, functions: list[tuple[Function, FunctionTensors]]) -> None:
    from tlx.lower.dynamic.expansion import ExpansionContext, FunctionExpansion
    from tlx.lower.dynamic.helpers import HelperFunctions
    from tlx.lower.dynamic.rules import RULES, product_into

    for _, tensors in functions:
        _check(tensors)
    helpers = HelperFunctions(module, context)
    for function, tensors in functions:
        FunctionExpansion(ExpansionContext(module, function, tensors, helpers), RULES, product_into).run()
    _remove_declarations(module)


def _remove_declarations(module: Module) -> None:
    """Remove declarations of functions that take or return handles."""
    called = {i.callee for function in module.functions for i in function.instructions()}
    raw = "".join(item.text for item in module.items if isinstance(item, UnparsedText))
    for item in list(module.declarations.values()):
        types = (item.signature.result, *(argument.type for argument in item.signature.arguments))
        if any(map(is_dynamic_vector, types)) and item.name not in called and f"@{item.name}" not in raw:
            module.remove(item)


def _may_be_dynamic(function: Function) -> bool:
    """Whether a tensor call has a handle, or a computed vector of extents."""
    for instruction in function.instructions():
        if is_tensor_call(instruction):
            computed = [a for a in instruction.args if isinstance(a, Local) and isinstance(a.type, VectorType)]
            pointee = any("vscale" in text for text in instruction.arg_attributes) or "vscale" in instruction.text
            if pointee or is_dynamic_vector(instruction.type) or any(scalar_of(a.type) == I32 for a in computed):
                return True
    return False


def _check(tensors: FunctionTensors) -> None:
    from tlx.lower.dynamic.rules import RULES

    for op in tensors.dynamic.ops:
        if op.pointer is None and op.intrinsic.name not in RULES:
            message = f"{op.intrinsic.full_name} of extents known only at run time is not lowered yet"
            raise LoweringError(f"{message}: make them constants, in a function for each size", op.instruction.span)
