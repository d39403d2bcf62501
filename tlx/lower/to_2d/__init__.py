"""Stage 1: tensors of any rank, layout and padding become loops over 2-D tensors in memory.

The `llvm.tensor.*` operations that remain are trees, each in one block, with static shapes and pitches:

    store(%d, load %s)                                        2-D copy
    store(%d, typeinfo(transpose(load %s, <1, 0>), ...))      2-D copy that transposes
    store(%c, typeinfo(expression))                           element by element
    store(%r, typeinfo(reduce.add(typeinfo(expression), ...)))    rows or columns of an expression reduced

An expression is a row-major flattened vector. It is a block of memory, which may be broadcast, or a scalar
(`memory.copies`); a product of two loaded matrices, with or without an accumulator; or ordinary instructions and
intrinsics such as `exp` on such vectors. A tree has at most one product, or one chain of products, each added to the
one before, which differ only in the addresses of their matrices. Loops whose iterations are independent are marked by
`!tlx.independent`.

Tensors stay in the user's memory if it provably does not change (`tlx.lower.memory.aliases`); otherwise they are in
private buffers (`tlx.lower.memory.buffers`). First, tensors of run-time extents become static ones
(`tlx.lower.dynamic`), and operations with large results become loops over their parts (`loop_fusion`). Then each
function passes through four steps: `facts` are read only, `decisions` are made from them, `placement` gives every
vector its memory, and `rewrite` emits the result by one rule for each operation (`rules`). Functions with the attribute
`"tlx-stage"="tiles"` have passed this stage and are not changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction, may_write
from tlx.ir.module import Module
from tlx.ir.rewrite import Use, drop_debug_uses, remove_dead, replace_uses, uses
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.calls import is_tensor_call
from tlx.ir.tensors.inference import analyse
from tlx.ir.tensors.model import FunctionTensors, TensorOp
from tlx.ir.types import FloatType, VectorType, exceeds_register
from tlx.ir.values import Local
from tlx.lower.context import LoweringContext, is_kernel
from tlx.lower.dynamic import expand_dynamic
from tlx.lower.memory.buffers import PrivateBuffers
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.analysis.nonpositive import mark_nonpositive_exponents
from tlx.lower.to_2d.calling_convention import pass_by_pointer
from tlx.lower.to_2d.contraction.packed import contract_packed_operands
from tlx.lower.to_2d.decisions import decide
from tlx.lower.to_2d.loop_fusion import fuse_loops
from tlx.lower.to_2d.memory.padding import merge_common_pads
from tlx.lower.to_2d.memory.placement import Placement
from tlx.lower.to_2d.raising import raise_vectors
from tlx.lower.to_2d.rewrite import rewrite


def to_2d(module: Module, context: LoweringContext) -> None:
    """Lower the tensors of every parsed function to 2-D tensors in memory.

    Raises:
        VerifyError: A tensor operation is invalid.
        LoweringError: An operation cannot be lowered; no function was changed.
    """
    for function in module.functions:
        _check_is_no_coroutine(module, function)
        _drop_debug_values(function)
    expand_dynamic(module, context)
    pass_by_pointer(module, context)
    functions = [function for function in module.functions if not is_kernel(module, function)]
    for function in functions:
        raise_vectors(module, function)
        remove_dead(function, filter(_is_removable, function.instructions()))
        merge_common_pads(function)
        mark_nonpositive_exponents(module, function)
        contract_packed_operands(module, function, context.target_of(module, function))
        if context.target.grid is not None:
            _sink_conversions(module, function)
    facts = [_facts(module, function, context) for function in functions]
    decisions = [decide(known, context.remarks) for known in facts]
    placements = [Placement.of(known, decided) for known, decided in zip(facts, decisions, strict=True)]
    for placement in placements:
        rewrite(placement, context.options.threads, context.remarks)


_COROUTINES: Final = ("presplitcoroutine", '"coroutine.presplit"')
"""The attribute of coroutines that LLVM has not split yet, today and up to LLVM 15."""


def _check_is_no_coroutine(module: Module, function: Function) -> None:
    """Refuse tensors in coroutines: every return, even one that only suspends the coroutine, would free temporaries.

    Raises:
        LoweringError: The function is a coroutine with tensors; the error points at the first one.
    """
    attributes = module.attribute_text(function.signature)
    if not any(attribute in attributes for attribute in _COROUTINES):
        return
    for instruction in function.instructions():
        if is_tensor_call(instruction):
            message = f"@{function.name} is a coroutine, which cannot have tensors: move them to a function it calls"
            raise LoweringError(message, instruction.span)


def _is_removable(instruction: Instruction) -> bool:
    """Whether an instruction matters only by its result: a tensor operation, or a load of a vector."""
    is_load = instruction.opcode == "load" and not may_write(instruction)
    return is_tensor_call(instruction) or (is_load and isinstance(instruction.type, VectorType))


def _facts(module: Module, function: Function, context: LoweringContext) -> Facts:
    """The analyses of a function, after operations with large results are computed in loops over their parts."""
    facts = Facts(module, function, context.target_of(module, function), PrivateBuffers(module, function))
    return fuse_loops(facts, context.remarks)


def _sink_conversions(module: Module, function: Function) -> None:
    """Widen a tensor that is only broadcast after the broadcast, so that it needs no memory of its own.

    Rewrite of the scale of a layer norm, which all rows share::

        %w = fpext <768 x bfloat> %s to <768 x float>           %t = typeinfo(<768 x bfloat> %s, <768>, ...)
        %t = typeinfo(<768 x float> %w, <768>, ...)        ->   %n = broadcast(%t, <512, 768>, <1>)
        %v = broadcast(%t, <512, 768>, <1>)                     %v = fpext <393216 x bfloat> %n to <393216 x float>

    This is done for grids only, where a separate tree for the conversion would split a kernel on rows in two, and where
    conversions cost next to nothing. CPUs convert such a tensor once.
    """
    widened = [i for i in function.instructions() if i.opcode == "fpext" and isinstance(i.type, VectorType)]
    if not widened:
        return
    tensors, used = analyse(module, function), uses(function)
    moved = [(i, broadcasts) for i in widened if (broadcasts := _broadcasts(tensors, used, i))]
    for widening, broadcasts in moved:
        for broadcast in broadcasts:
            _widen_after(module, function, widening, broadcast)
    dead = [t.definition for _, broadcasts in moved for broadcast in broadcasts for t in broadcast.tensors]
    remove_dead(function, {id(i): i for i in (*(widening for widening, _ in moved), *dead)}.values())


def _broadcasts(
    tensors: FunctionTensors, used: Mapping[str, Sequence[Use]], widening: Instruction
) -> list[TensorOp] | None:
    """The broadcasts that use a widened vector; None if anything else does."""
    broadcasts: list[TensorOp] = []
    for token in (use.instruction for use in used.get(str(widening.result), [])):
        if token.result not in tensors.tokens:
            return None
        readers = [tensors.op_of(use.instruction) for use in used.get(str(token.result), [])]
        for reader in readers:
            if reader is None or reader.intrinsic.name != "broadcast":
                return None
            broadcasts.append(reader)
    return broadcasts


def _widen_after(module: Module, function: Function, widening: Instruction, broadcast: TensorOp) -> None:
    """Replace a broadcast of a widened vector by the widened broadcast."""
    old, (tensor,), result, (source,) = broadcast.instruction, broadcast.tensors, broadcast.result, widening.operands
    assert result is not None
    assert isinstance(source.type, VectorType)
    assert isinstance(source.type.element, FloatType)
    block = next(block for block in function.blocks if old in block.instructions)
    b = TensorBuilder(module, function, block, block.instructions.index(old))
    b.debug, b.span = old.debug_location, old.span
    narrow = b.typeinfo(source, replace(tensor.type, element=source.type.element), "narrow")
    shape, dims = broadcast.dims
    repeated = b.broadcast(narrow, shape, dims, replace(result, element=source.type.element))
    replace_uses(function, str(old.result), b.cast("fpext", repeated, old.value.type))
    block.instructions.remove(old)


def _drop_debug_values(function: Function) -> None:
    """Mark the variables that hold tensors as optimised out in the debug information.

    A debug record counts as no use, so that a program compiled with `-g` is lowered to the same code. Rewrite::

        #dbg_value(<256 x float> %product, !9, ...)    ->    #dbg_value(<256 x float> poison, !9, ...)

    A vector holds a tensor if a tensor operation or an instruction on such vectors makes or takes it; or if it is too
    large for a register.
    """
    records = [instruction for instruction in function.instructions() if instruction.is_debug]
    if records:
        drop_debug_uses(records, _tensor_vectors(function))


def _tensor_vectors(function: Function) -> set[str]:
    """Names of the vectors that hold tensors."""
    tensors: set[str] = set()
    connected: list[set[str]] = []
    for instruction in function.instructions():
        if instruction.is_debug:
            continue
        names = {o.name for o in instruction.operands if isinstance(o, Local) and isinstance(o.type, VectorType)}
        if instruction.result is not None and isinstance(instruction.type, VectorType):
            names.add(instruction.result)
        if is_tensor_call(instruction) or exceeds_register(instruction.type):
            tensors |= names
        elif not instruction.is_call or (instruction.callee or "").startswith("llvm."):
            connected.append(names)
    size = -1
    while len(tensors) != size:
        size = len(tensors)
        for names in connected:
            if not tensors.isdisjoint(names):
                tensors |= names
    return tensors
