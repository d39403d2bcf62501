"""Running a target's legalisation over all kernels, and taking away what is no longer needed."""

from __future__ import annotations

from dataclasses import replace

from tlx.ir.module import Module
from tlx.ir.reader import has_tensors
from tlx.lower.legalize.vector import legalize_vector
from tlx.lower.stage import Context, is_kernel


def legalize(module: Module, context: Context) -> None:
    """Legalise every kernel, give kernels their features, drop the tensor declarations."""
    step = context.target.legalize_kernel or legalize_vector
    for function in module.functions:
        if is_kernel(module, function):
            own = replace(context, target=context.target_of(module, function))
            step(module, function, own)
            function.replace_attributes(kernel_attributes(own))
    for declaration in list(module.declarations.values()):
        if has_tensors(declaration.text):
            module.remove(declaration)
    if context.target.finish is not None:
        context.target.finish(module, context)


def kernel_attributes(context: Context) -> str:
    """Attributes of a kernel: its features, and what keeps LLVM from spoiling it.

    `"no-builtins"` keeps packing loops from becoming calls of memcpy, `"min-legal-vector-width"` keeps 512-bit
    registers whole on machines that prefer 256.
    """
    target = context.target
    words = ["nounwind", "noinline", '"no-builtins"']
    if context.emulate_matrix and target.matrix is not None:
        words.insert(1, "optnone")
    if target.features:
        words.append(f'"target-features"="{",".join(target.features)}"')
        width = target.vector_bytes * 8
        words.append(f'"min-legal-vector-width"="{width}" "prefer-vector-width"="{width}"')
    return " ".join(words)
