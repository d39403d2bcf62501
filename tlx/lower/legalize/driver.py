"""Running a target's legalisation over all kernels, and taking away what is no longer needed."""

from __future__ import annotations

from dataclasses import replace

from tlx.ir.module import Function, Module
from tlx.ir.reader import has_tensors
from tlx.ir.types import X86_AMX
from tlx.lower.legalize.vector import legalize_vector
from tlx.lower.stage import Context, is_kernel


def legalize(module: Module, context: Context) -> None:
    """Legalise every kernel, give kernels their features, drop the tensor declarations."""
    step = context.target.legalize_kernel or legalize_vector
    for function in module.functions:
        if is_kernel(module, function):
            own = replace(context, target=context.target_of(module, function))
            step(module, function, own)
            scalarised = context.emulate_matrix and _has_tiles(function)
            function.replace_attributes(kernel_attributes(own, scalarised=scalarised))
    module.remove(*(item for item in module.declarations.values() if has_tensors(item.text)))
    if context.target.finish is not None:
        context.target.finish(module, context)


def kernel_attributes(context: Context, *, scalarised: bool = False) -> str:
    """Attributes of a kernel: its features, and what keeps LLVM from spoiling it.

    `"no-builtins"` keeps packing loops from becoming calls of memcpy, `"min-legal-vector-width"` keeps 512-bit
    registers whole on machines that prefer 256. LLVM scalarises tile instructions in `optnone` functions only.
    """
    target = context.target
    words = ["nounwind", "noinline", '"no-builtins"']
    if scalarised:
        words.insert(1, "optnone")
    if target.features:
        words.append(f'"target-features"="{",".join(target.features)}"')
        width = target.vector_bytes * 8
        words.append(f'"min-legal-vector-width"="{width}" "prefer-vector-width"="{width}"')
    return " ".join(words)


def _has_tiles(function: Function) -> bool:
    """Whether a legalised kernel uses tile registers."""
    return any(instruction.type == X86_AMX for instruction in function.instructions())
