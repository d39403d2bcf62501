"""Stage 1: tensors of any rank, layout and padding become loops over 2-D tensors in memory.

What is left of `llvm.tensor.*` are trees, each in one block, with static shapes and pitches:

    store(%d, load %s)                                        2-D copy
    store(%d, typeinfo(transpose(load %s, <1, 0>), ...))      2-D copy that transposes
    store(%c, typeinfo(expression))                           element by element
    store(%r, typeinfo(reduce.add(typeinfo(expression), ...)))    rows or columns of an expression reduced

An expression is a row-major flattened vector: a block of memory, also repeated, or a number (`memory.block_access`); a
product of two loaded matrices, with or without an accumulator, of which there is at most one, or a chain of them, each
added to the one before, which differ in where their matrices lie; or ordinary instructions and `exp` and its kind on
such vectors. Loops in which no round reads what another one writes say so by `!tlx.independent`.

Memory is the user's own where that is provably the same (`tlx.lower.memory.aliases`), else a private buffer
(`tlx.lower.memory.buffers`). Each function passes through four steps: `facts` are read only, `decisions` are made from
them, `placement` gives every vector its memory, and `rewrite` emits the result by one rule for each operation
(`rules`). Functions with the attribute `"tlx-stage"="tiles"` are past this stage and are
left alone.
"""

from __future__ import annotations

from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.lower.context import LoweringContext, is_kernel
from tlx.lower.dynamic import expand_dynamic
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.calling_convention import pass_by_pointer
from tlx.lower.to_2d.decisions import decide
from tlx.lower.to_2d.memory.placement import Placement
from tlx.lower.to_2d.raising import raise_vectors
from tlx.lower.to_2d.rewrite import rewrite


def to_2d(module: Module, context: LoweringContext) -> None:
    """Lower the tensors of every parsed function to 2-D tensors in memory.

    Raises:
        VerifyError: A rule of the tensor intrinsics is broken.
        LoweringError: Something is not lowered yet; no function was changed.
    """
    expand_dynamic(module, context)
    pass_by_pointer(module, context)
    functions = [function for function in module.functions if _is_input(module, function)]
    for function in functions:
        raise_vectors(module, function)
    facts = [Facts(module, function, context.target_of(module, function)) for function in functions]
    decisions = [decide(known, context.remarks) for known in facts]
    placements = [Placement.of(known, decided) for known, decided in zip(facts, decisions, strict=True)]
    for placement in placements:
        rewrite(placement, context.options.threads, context.remarks)


def _is_input(module: Module, function: Function) -> bool:
    return not is_kernel(module, function)
