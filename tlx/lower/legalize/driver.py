"""Running a target's legalisation over all kernels, and taking away what is no longer needed.

Calls of kernels that end a function: it jumps to the kernel, which returns to the function's caller.

call void @tlx.matmul.8x8x8.f32.f32.f32(...)          tail call void @tlx.matmul.8x8x8.f32.f32.f32(...)
ret void                                        ->    ret void

LLVM's optimiser would find out; code that it does not see saves the second return and the stack that it takes.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import replace
from typing import Final

from tlx.ir.abi import parse_attributes
from tlx.ir.functions import Function
from tlx.ir.instructions import Block
from tlx.ir.module import Module, Raw
from tlx.ir.parser.module import has_tensors
from tlx.ir.types import X86_AMX
from tlx.lower.context import FEATURES_ATTRIBUTE, LoweringContext, is_kernel
from tlx.lower.legalize.vector import legalize_vector
from tlx.lower.nests import inline_kernels
from tlx.target.target import Target

_COMMON_BITS: Final = 128
_ASKING: Final = re.compile(rf"(?m)^(?:attributes|define)\b.*{re.escape(FEATURES_ATTRIBUTE)}.*$")


def legalize(module: Module, context: LoweringContext) -> None:
    """Legalise every kernel, give it its features, inline kernels into nests, drop the tensor declarations."""
    kernels: dict[str, Function] = {}
    for function in module.functions:
        if is_kernel(module, function):
            own = replace(context, target=context.target_of(module, function))
            step = own.target.legalize_kernel or legalize_vector
            step(module, function, own)
            scalarised = context.emulate_matrix and _has_tiles(function)
            function.replace_attributes(kernel_attributes(own, scalarised=scalarised))
            kernels[function.name] = function
    inline_kernels(module, kernels)
    mark_tail_calls(module, kernels)
    module.remove(*(item for item in module.declarations.values() if has_tensors(item.text)))
    _add_target_features(module, context.target)
    _finish(module, context)


def _finish(module: Module, context: LoweringContext) -> None:
    """The target's own end; versions ask for permissions themselves, when the first kernel runs."""
    target = context.target
    for version in target.versions or (target,):
        if version.finish is not None:
            asks = context.amx_permission and not target.versions
            version.finish(module, replace(context, target=version, amx_permission=asks))


def kernel_attributes(context: LoweringContext, *, scalarised: bool = False) -> str:
    """Attributes of a kernel: its features, and what keeps LLVM from spoiling it.

    `"no-builtins"` keeps packing loops from becoming calls of memcpy, `"min-legal-vector-width"` keeps 512-bit
    registers whole on machines that prefer 256. LLVM scalarises tile instructions in `optnone` functions only.
    """
    words = ["nounwind", "noinline", '"no-builtins"']
    if scalarised:
        words.insert(1, "optnone")
    return " ".join([*words, *feature_attributes(context.target)])


def feature_attributes(target: Target) -> list[str]:
    """Function attributes for code that only runs on the target, and for vectors that backends would cut in two."""
    width = target.vector_bytes * 8
    features = [f'"target-features"="{",".join(target.features)}"'] if target.features else []
    if not features and width <= _COMMON_BITS:
        return []
    return [*features, f'"min-legal-vector-width"="{width}" "prefer-vector-width"="{width}"']


def _add_target_features(module: Module, target: Target) -> None:
    """Give the target's features to the functions that ask for them.

    Rewrite:
        attributes #0 = { nounwind "tlx-features"="target" }
        ->
        attributes #0 = { nounwind "target-features"="+avx2,..." "min-legal-vector-width"="256" ... }
    """
    features = " ".join(feature_attributes(target)) or '"tlx-lowered"'  # an attribute group must hold something
    for item in module.items:
        if isinstance(item, Raw):
            item.text = _ASKING.sub(lambda line: line.group().replace(FEATURES_ATTRIBUTE, features), item.text)
        elif isinstance(item, Function) and FEATURES_ATTRIBUTE in item.signature.attributes:
            item.replace_attributes(item.signature.attributes.replace(FEATURES_ATTRIBUTE, features))


def _has_tiles(function: Function) -> bool:
    """Whether a legalised kernel uses tile registers."""
    return any(instruction.type == X86_AMX for instruction in function.instructions())


_ON_STACK: Final = frozenset({"byval", "inalloca", "preallocated"})


def mark_tail_calls(module: Module, kernels: Container[str]) -> None:
    """Mark the calls of kernels that end functions without memory of their own, which no kernel can be given then."""
    for function in module.functions:
        if not _has_memory(function):
            for block in function.blocks:
                _mark_tail_call(block, kernels)


def _has_memory(function: Function) -> bool:
    """Whether a function has memory on the stack, be it that of its arguments, which a tail call may overwrite."""
    given = {attribute.name for argument in function.arguments for attribute in parse_attributes(argument.attributes)}
    return not given.isdisjoint(_ON_STACK) or any(
        instruction.opcode == "alloca" for instruction in function.instructions()
    )


def _mark_tail_call(block: Block, kernels: Container[str]) -> None:
    if len(block.instructions) < 2 or not block.terminator.text.startswith("ret void"):
        return
    call = block.instructions[-2]
    if call.text.startswith("call ") and (call.callee or "") in kernels:
        call.text, call.flags = f"tail {call.text}", ("tail", *call.flags)
