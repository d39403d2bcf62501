"""Outlining: loops around kernels become separate functions, compiled for the target, with the kernels inlined.

The call to a kernel is cheap, but entering and leaving it is not: the upper halves of vector registers are cleared for
code of older machines, and a matrix unit is configured and released. This slows down loops around small kernels. So
such loops are moved out of the user's functions, which may be compiled for any machine, into functions that are
compiled for the target. There, the kernels are inlined once they consist of target instructions.

Rewrite (`outline_nests`, at the end of stage 2; `inline_kernels`, at the end of stage 3):
    define void @f(...) {                         define void @f(...) {
      for (i)                                       call void @tlx.nest.f(...)
        call void @tlx.matmul.8x8x8(...)          }
    }                                       ->    define internal void @tlx.nest.f(...) "target-features"="..." {
    define internal void @tlx.matmul.8x8x8(...)     for (i)
                                                      ... the product ...
                                                  }

Loops that differ only in names share a function.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from tlx.ir.control_flow import ControlFlow, natural_loops, remove_marks
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import set_operand
from tlx.ir.transform import (
    LOCAL_NAME,
    LoopRegion,
    can_inline,
    extract_region,
    has_no_effects,
    inline_call,
    loop_region,
    remove_regions,
)
from tlx.ir.values import Global
from tlx.lower.context import (
    CALL_COUNTER_ATTRIBUTE,
    NEST_STAGE,
    STAGE_ATTRIBUTE,
    is_kernel,
    is_kernel_nest,
    requests_features,
)

_MEMORY: Final = frozenset({"load", "store"})
_ORDERED: Final = frozenset({"volatile", "atomic"})
_INTRINSICS: Final = ("llvm.memcpy.", "llvm.memset.", "llvm.memmove.")
_GLOBAL: Final = re.compile(r"@([-a-zA-Z$._0-9]+)")
_COUNTER: Final = re.compile(rf' *"{CALL_COUNTER_ATTRIBUTE}"="[^"]*"')
_UNKNOWN_CALLS: Final = 1 << 20
MAX_INLINED_INSTRUCTIONS: Final = 600
"""Most instructions of a kernel that is inlined in more than one place."""
_MOST_COPIED_INSTRUCTIONS: Final = 8 * MAX_INLINED_INSTRUCTIONS
"""Most instructions of all places together; LLVM compiles them in about 0.1 s."""


def outline_nests(module: Module, dispatchers: Collection[str]) -> list[Function]:
    """Move the outermost loops around calls to kernels into functions that have the kernels' features.

    Args:
        module: The module.
        dispatchers: Names of dispatchers: functions that call one of several kernels.

    Returns:
        The new functions.
    """
    kernels = {f.name: f for f in module.functions if is_kernel(module, f) or f.name in dispatchers}
    nests: dict[object, Function] = {}
    for function in module.functions:
        if (
            function.name not in kernels
            and not is_kernel_nest(module, function)
            and not requests_features(module, function)
        ):
            _outline(module, function, kernels, nests)
    return list(nests.values())


def _outline(module: Module, function: Function, kernels: dict[str, Function], nests: dict[object, Function]) -> None:
    """Move the loops that can be moved, outer loops first, together with their inner loops.

    Args:
        module: The module.
        function: The function with the loops.
        kernels: The functions whose calls are moved, by name.
        nests: The new functions of the module, by what they compute.
    """
    if not any(instruction.callee in kernels for instruction in function.instructions()):
        return
    flow = ControlFlow(function)
    called = {
        name: [kernels[str(i.callee)] for i in block.instructions if str(i.callee) in kernels]
        for name, block in flow.blocks.items()
    }
    regions: list[LoopRegion] = []
    moved: set[str] = set()
    equal: list[Function] = []
    for loop in natural_loops(flow):
        inside = [kernel for name in loop.blocks for kernel in called[name]] if loop.header not in moved else []
        region = loop_region(flow, loop, lambda i: _can_move(i, kernels)) if inside else None
        inside = [kernel for kernel in inside if is_kernel(module, kernel)]
        if region is None or len({_features(module, kernel) for kernel in inside}) > 1:
            continue
        name = module.global_names.fresh(f"tlx.nest.{function.name}")
        nest, caller = extract_region(module, function, region, name, nest_attributes(module, inside))
        shared = nests.setdefault(_canonical_form(nest), nest)
        if shared is not nest:
            call = next(i for i in caller.instructions if i.callee == nest.name)
            set_operand(call, 0, replace(cast("Global", call.operands[0]), name=shared.name))
            equal.append(nest)
        regions.append(region)
        moved |= loop.blocks
        others = [p for p in flow.predecessors[region.exit.name] if p not in loop.blocks]
        flow.predecessors[region.exit.name] = [*others, caller.name]
        flow.blocks[caller.name] = caller
    remove_regions(function, regions)
    module.remove(*equal)


def _canonical_form(nest: Function) -> object:
    """The text of a nest with numbers for the names of its values, and its attributes."""
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"%{numbers.setdefault(match[1], len(numbers))}"

    types = [f"{argument.type} %{argument.name}" for argument in nest.arguments]
    texts = [f"%{block.name}: {''.join(i.text for i in block.instructions)}" for block in nest.blocks]
    return nest.signature.attributes, LOCAL_NAME.sub(number, " ".join([*types, *texts]))


def _features(module: Module, kernel: Function) -> str:
    return module.function_attributes(kernel.signature).get("target-features", "")


def nest_attributes(module: Module, kernels: Sequence[Function]) -> str:
    """Attributes of a nest around kernels, whose sets of features are subsets of one another."""
    features = max((_features(module, kernel) for kernel in kernels), key=len, default="")
    return f'nounwind noinline "{STAGE_ATTRIBUTE}"="{NEST_STAGE}"' + (
        f' "target-features"="{features}"' if features else ""
    )


def _can_move(instruction: Instruction, kernels: dict[str, Function]) -> bool:
    if instruction.is_call:
        callee = str(instruction.callee)
        return instruction.opcode == "call" and (callee in kernels or callee.startswith(_INTRINSICS))
    if instruction.opcode in _MEMORY:
        return not _ORDERED & set(instruction.flags)
    return has_no_effects(instruction)


@dataclass(frozen=True, slots=True)
class LegalizedKernel:
    """A kernel made of target instructions.

    Attributes:
        function: The kernel.
        tile_shapes: The shapes of its tiles, for which a matrix unit has to be configured.
        has_mode: Whether it runs in a mode of the machine, which it enters by attributes: it stays a function.
    """

    function: Function
    tile_shapes: frozenset[tuple[str, ...]]
    has_mode: bool = False


def inline_kernels(module: Module, legalized: Mapping[str, LegalizedKernel]) -> None:
    """Inline kernels into nests, and into functions that request the target's features.

    Args:
        module: The module; kernels that are no longer called are removed.
        legalized: The kernels by name, after legalization.
    """
    calls = _count_calls(module, legalized)
    before = dict(calls)
    inlined = {name for name, kernel in legalized.items() if _is_worth_inlining(kernel.function, calls[name])}
    for function in module.functions:
        nest = is_kernel_nest(module, function)
        if (nest or requests_features(module, function)) and not _has_bfloat_memory(module, function):
            _inline(function, legalized, inlined, calls, keeps_attributes=not nest)
        if CALL_COUNTER_ATTRIBUTE in function.signature.attributes:
            function.replace_attributes(_COUNTER.sub("", function.signature.attributes))
        remove_marks(function.blocks)
    module.remove(*(kernel.function for name, kernel in legalized.items() if before[name] and not calls[name]))


def _has_bfloat_memory(module: Module, function: Function) -> bool:
    """Whether a function for LLVM 14 has bfloat buffers: inlined kernels would store i16 there, and LLVM 14 crashes."""
    return module.typed_pointers and any(i.opcode == "alloca" and "bfloat" in i.text for i in function.instructions())


def _count_calls(module: Module, legalized: Iterable[str]) -> dict[str, int]:
    """How often each kernel is called; a mention in a function that was not parsed counts as many calls."""
    calls = dict.fromkeys(legalized, 0)
    for function in module.functions:
        for instruction in function.instructions():
            for operand in instruction.operands if "@" in instruction.text else ():
                if isinstance(operand, Global) and operand.name in calls:
                    calls[operand.name] += 1
    for name in _GLOBAL.findall(module.raw_text()):
        calls[name] = calls.get(name, 0) + _UNKNOWN_CALLS
    return calls


def _inline(
    function: Function,
    legalized: Mapping[str, LegalizedKernel],
    inlined: Collection[str],
    calls: dict[str, int],
    *,
    keeps_attributes: bool,
) -> None:
    """Inline kernels into one function: a nest, which gets the attributes of its kernels, or one that keeps its own.

    Args:
        function: The function.
        legalized: All kernels by name.
        inlined: Names of those that are inlined, unless they need attributes that the function lacks.
        calls: How often each kernel is called; reduced by the calls that are inlined.
        keeps_attributes: Whether the function keeps its attributes.
    """
    attributes = ""
    shapes: frozenset[tuple[str, ...]] = frozenset()
    pending = list(function.blocks)
    while pending:
        block = pending.pop(0)
        for call in block.instructions:
            legalized_kernel = legalized.get(str(call.callee))
            if legalized_kernel is None or legalized_kernel.has_mode:
                continue
            kernel, tile_shapes = legalized_kernel.function, legalized_kernel.tile_shapes
            if not keeps_attributes:
                attributes = max(attributes, kernel.signature.attributes, key=len)
            if kernel.name not in inlined or (keeps_attributes and "optnone" in kernel.signature.attributes):
                continue
            if shapes and tile_shapes and tile_shapes != shapes:
                continue
            shapes = shapes or tile_shapes
            calls[kernel.name] -= 1
            pending.insert(0, inline_call(function, block, call, kernel))
            break
    if attributes:
        function.replace_attributes(attributes)


def _is_worth_inlining(kernel: Function, calls: int) -> bool:
    """Whether to inline a kernel that is called in so many places."""
    size = sum(1 for _ in kernel.instructions())
    is_small = size <= MAX_INLINED_INSTRUCTIONS and size * calls <= _MOST_COPIED_INSTRUCTIONS
    return can_inline(kernel) and (calls == 1 or is_small)
