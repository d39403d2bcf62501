"""Stage 3: tile operations become target instructions; no `llvm.tensor.*` is left.

`legalize` legalises all kernels of a module, and removes declarations that are no longer needed.

A kernel's call at the end of a function becomes a tail call:

call void @tlx.matmul.8x8x8.f32.f32.f32(...)          tail call void @tlx.matmul.8x8x8.f32.f32.f32(...)
ret void                                        ->    ret void

LLVM's optimiser does this, too; here it saves a return and stack space in unoptimised code.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import replace
from typing import Final

from tlx.ir.abi import parse_attributes
from tlx.ir.functions import Function
from tlx.ir.instructions import Block
from tlx.ir.module import Module, UnparsedText
from tlx.ir.parser.module import has_tensors
from tlx.llvm.triples import has_bfloat, may_be_linux, triple_of
from tlx.lower.context import (
    FEATURES_ATTRIBUTE,
    LoweringContext,
    is_kernel,
    is_kernel_nest,
    requests_features,
    without_unsuitable_vectors,
)
from tlx.lower.legalize.backend.bfloat import without_bfloat
from tlx.lower.legalize.backend.vectors import leave_out_vectors, replace_operations, split_widened
from tlx.lower.legalize.math.grid_library import replace_library_functions, with_library
from tlx.lower.legalize.math.small_floats import replace_small_conversions
from tlx.lower.legalize.matrix_unit import MatrixLegalizer
from tlx.lower.legalize.scheduling.redundant_loads import remove_redundant_loads
from tlx.lower.legalize.vector import VectorLegalizer
from tlx.lower.memory.execution_mode import enter_mode
from tlx.lower.outlining import LegalizedKernel, inline_kernels
from tlx.target.lookup import foreign_triple
from tlx.target.target import Target

_FEATURE_REQUEST: Final = re.compile(rf"(?m)^(?:attributes|define)\b.*{re.escape(FEATURES_ATTRIBUTE)}.*$")


def legalize(module: Module, context: LoweringContext) -> Module:
    """Legalise every kernel, give it its features, inline kernels into nests, drop the tensor declarations.

    Returns:
        The module, or a new one without bfloat if LLVM has none for its triple.
    """
    kernels: dict[str, LegalizedKernel] = {}
    own = [
        f
        for f in module.functions
        if not (is_kernel(module, f) or is_kernel_nest(module, f) or requests_features(module, f))
    ]
    for function in module.functions:
        if is_kernel(module, function):
            kernel_context = replace(context, target=context.target_of(module, function))
            kernels[function.name] = _legalize_kernel(module, function, kernel_context)
    if context.target.grid is not None:
        replace_library_functions(module, context.target)
    replace_small_conversions(module, own, context.target)
    nests = [function for function in module.functions if is_kernel_nest(module, function)]
    inline_kernels(module, kernels)
    for nest in nests:
        remove_redundant_loads(nest, context.target.registers)
    mark_tail_calls(module, kernels)
    module.remove(*(item for item in module.declarations.values() if has_tensors(item.text)))
    _add_target_features(module, context.target)
    replace_operations(module, own, context.target)
    leave_out_vectors(module, own, context.target)
    split_widened(module, context.target)
    triple = context.options.triple or triple_of(module.source.text) or foreign_triple(context.target)
    _finish(module, context, triple)
    if context.target.grid is not None:
        module = with_library(module, context.target)
    return module if has_bfloat(triple) else without_bfloat(module, context.target)


def _legalize_kernel(module: Module, function: Function, context: LoweringContext) -> LegalizedKernel:
    """Legalise a kernel and give it its attributes.

    `"no-builtins"` keeps packing loops from becoming calls to memcpy, `"min-legal-vector-width"` keeps wide registers
    whole on machines that prefer narrower ones.
    """
    target, unit = context.target, context.target.matrix
    if unit is None:
        VectorLegalizer(module, function, context).run()
        function.replace_attributes(" ".join(["nounwind", "noinline", '"no-builtins"', *target.function_attributes]))
        return LegalizedKernel(function, frozenset())
    legalizer = MatrixLegalizer(module, function, context, unit)
    legalizer.run()
    shapes = unit.tile_shapes(function)
    emulation = unit.emulation if shapes and context.options.emulate_matrix else None
    extra = emulation.attributes if emulation else ()
    mode = unit.attributes if legalizer.uses_tiles else ()
    words = " ".join(["nounwind", *extra, "noinline", '"no-builtins"', *target.function_attributes])
    if mode:
        enter_mode(module, function, words, " ".join(mode))
    else:
        function.replace_attributes(words)
    return LegalizedKernel(function, shapes, has_mode=bool(mode))


def _finish(module: Module, context: LoweringContext, triple: str) -> None:
    """Run the target's final step; with several versions, permission is requested when the first kernel runs.

    Only Linux is asked for permission: the same system call means something else on other systems.
    """
    target = context.target
    for version in target.versions or (target,):
        if version.finish is not None:
            asks = context.options.request_permission and not target.versions and may_be_linux(triple)
            version.finish(module, emulate_matrix=context.options.emulate_matrix, request_permission=asks)


def _add_target_features(module: Module, target: Target) -> None:
    """Give the target's features to the functions that request them.

    Rewrite:
        attributes #0 = { nounwind "tlx-features"="target" }
        ->
        attributes #0 = { nounwind "target-features"="+avx2,..." "min-legal-vector-width"="256" ... }

    Functions with floats that the target's vectors do not hold get the features of the target without vectors.
    """
    for function in module.functions:
        own = without_unsuitable_vectors(target, function)
        if own is not target and requests_features(module, function):
            attributes = module.attribute_text(function.signature)
            function.replace_attributes(attributes.replace(FEATURES_ATTRIBUTE, " ".join(own.function_attributes)))
    features = " ".join(target.function_attributes) or '"tlx-lowered"'  # an attribute group must hold something
    for item in module.items:
        if isinstance(item, UnparsedText):
            item.text = _FEATURE_REQUEST.sub(lambda line: line.group().replace(FEATURES_ATTRIBUTE, features), item.text)
        elif isinstance(item, Function) and FEATURES_ATTRIBUTE in item.signature.attributes:
            item.replace_attributes(item.signature.attributes.replace(FEATURES_ATTRIBUTE, features))


_ON_STACK: Final = frozenset({"byval", "inalloca", "preallocated"})


def mark_tail_calls(module: Module, kernels: Container[str]) -> None:
    """Mark calls to kernels at the end of functions without stack memory, whose address a kernel might get."""
    for function in module.functions:
        if not _has_memory(function):
            for block in function.blocks:
                _mark_tail_call(block, kernels)


def _has_memory(function: Function) -> bool:
    """Whether a function has stack memory, including by-value arguments, which a tail call may overwrite."""
    attributes = {
        attribute.name for argument in function.arguments for attribute in parse_attributes(argument.attributes)
    }
    return not attributes.isdisjoint(_ON_STACK) or any(
        instruction.opcode == "alloca" for instruction in function.instructions()
    )


def _mark_tail_call(block: Block, kernels: Container[str]) -> None:
    if len(block.instructions) < 2 or not block.terminator.text.startswith("ret void"):
        return
    call = block.instructions[-2]
    if call.text.startswith("call ") and (call.callee or "") in kernels:
        call.text, call.flags = f"tail {call.text}", ("tail", *call.flags)


__all__ = ["legalize"]
