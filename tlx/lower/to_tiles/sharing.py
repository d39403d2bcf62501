"""Kernel sharing: kernels that differ only in a few integers become one that takes these as arguments.

Rewrite:
    call void @tlx.matmul.384x169x1728...(ptr %c, ptr %a, ptr %b)
    call void @tlx.matmul.192x169x1728...(ptr %d, ptr %e, ptr %f)
    define internal void @tlx.matmul.384x169x1728...(ptr %c, ptr %a, ptr %b) { ... icmp slt i64 %ic.next, 64 }
    define internal void @tlx.matmul.192x169x1728...(ptr %c, ptr %a, ptr %b) { ... icmp slt i64 %ic.next, 32 }
        ->
    call void @tlx.matmul.384x169x1728...(ptr %c, ptr %a, ptr %b, i64 64)
    call void @tlx.matmul.384x169x1728...(ptr %d, ptr %e, ptr %f, i64 32)
    define internal void @tlx.matmul.384x169x1728...(ptr %c, ptr %a, ptr %b, i64 %n) { ... icmp slt i64 %ic.next, %n }

The integers are bounds of loops, and factors and terms of indices. Offsets of addresses and distances of rows stay
constants, which cost nothing in instructions. Products share their kernels, as their loops are long, and so do the
packing and copies of a preparation, which runs once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.functions import Argument, Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import set_operand
from tlx.ir.transform import LOCAL_NAME
from tlx.ir.types import I64, FunctionType
from tlx.ir.values import ConstInt, Global, Local, const_int
from tlx.lower.context import is_kernel, is_kernel_nest, requests_features
from tlx.lower.to_tiles.kernels import KernelFacts

_OPCODES: Final = frozenset({"add", "icmp", "mul"})
_MOST_PARAMETERS: Final = 4
"""Most integers that become arguments: they occupy registers, or stack slots."""
_PRODUCT: Final = "llvm.tensor.smma"


@dataclass(eq=False)
class _ShareableKernel:
    """A kernel that may be shared, and the calls to it."""

    function: Function
    calls: list[tuple[Function, Block, Instruction]] = field(default_factory=list[tuple[Function, Block, Instruction]])


def share_kernels(module: Module, preparations: Collection[str]) -> None:
    """Have kernels of products, and of preparations, that differ in a few integers only share one kernel.

    Kernels that are called in loops of their own function stay, as stage 3 inlines them there, and so do those whose
    addresses are taken.

    Args:
        module: The module.
        preparations: Names of the functions that prepare arguments (`tlx.lower.to_tiles.pack.prepare`).
    """
    kernels = _shareable_kernels(module, preparations)
    callers = {id(caller) for kernel in kernels.values() for caller, _, _ in kernel.calls}
    inner = [kernel for kernel in kernels.values() if id(kernel.function) not in callers]
    outer = [kernel for kernel in kernels.values() if id(kernel.function) in callers]
    for group in (inner, outer):  # callers are compared when they call the same kernels
        similar = _groups(group, lambda kernel: _size(kernel.function))
        for equal in (equal for alike in similar for equal in _groups(alike, lambda k: _text(k.function, kernels))):
            _share(module, equal, kernels)


def _groups(
    kernels: Iterable[_ShareableKernel], key: Callable[[_ShareableKernel], object]
) -> Iterable[list[_ShareableKernel]]:
    """The kernels with equal keys, without those that no other one equals."""
    by_key: dict[object, list[_ShareableKernel]] = defaultdict(list)
    for kernel in kernels:
        by_key[key(kernel)].append(kernel)
    return [equal for equal in by_key.values() if len(equal) > 1]


def _size(function: Function) -> object:
    return len(function.arguments), tuple(len(block.instructions) for block in function.blocks)


def _shareable_kernels(module: Module, preparations: Collection[str]) -> dict[str, _ShareableKernel]:
    """The kernels of products, those that they call, and those that only preparations call, by name."""
    functions = list(module.functions)
    candidates = {f.name: _ShareableKernel(f) for f in functions if is_kernel(module, f)}
    raw = module.raw_text()
    excluded = {name for name in candidates if f"@{name}" in raw}
    products = {
        name for name, kernel in candidates.items() if any(_is_product(i) for i in kernel.function.instructions())
    }
    for function in functions:
        inlines = is_kernel_nest(module, function) or requests_features(module, function)
        for block, instruction in ((home, i) for home in function.blocks for i in home.instructions):
            mentioned = [o.name for o in instruction.operands if isinstance(o, Global) and o.name in candidates]
            if mentioned != [instruction.callee] or inlines:
                excluded.update(mentioned)
                continue
            candidates[mentioned[0]].calls.append((function, block, instruction))
            if function.name in products:
                products.add(mentioned[0])
    return {
        name: kernel
        for name, kernel in candidates.items()
        if name not in excluded
        and (name in products or all(caller.name in preparations for caller, _, _ in kernel.calls))
    }


def _is_product(instruction: Instruction) -> bool:
    return (instruction.callee or "").startswith(_PRODUCT)


def _numbers(instruction: Instruction, kernels: Collection[str]) -> list[int]:
    """The operands that may become arguments, by their positions."""
    if instruction.opcode not in _OPCODES and instruction.callee not in kernels:
        return []
    operands = enumerate(instruction.operands)
    return [index for index, operand in operands if isinstance(operand, ConstInt) and operand.type == I64]


def _text(function: Function, kernels: Collection[str]) -> object:
    """What kernels that can be shared have in common: the text without names and without those operands."""
    names: dict[str, str] = {}

    def numbered(text: str) -> str:
        return LOCAL_NAME.sub(lambda name: names.setdefault(name[0], f"%{len(names)}"), text)

    lines = [" ".join(f"{argument.type} {argument.attributes} %{argument.name}" for argument in function.arguments)]
    for block in function.blocks:
        lines.append(f"%{block.name}:")
        for instruction in block.instructions:
            numbers = _numbers(instruction, kernels)
            if not numbers:
                lines.append(instruction.text)
                continue
            operands = ["#" if i in numbers else str(o) for i, o in enumerate(instruction.operands)]
            flags = (*instruction.flags, instruction.predicate, instruction.trailer)
            lines.append(f"%{instruction.result} {instruction.opcode} {' '.join((*flags, *operands))}")
    return function.signature.attributes, numbered("\n".join(lines))


def _share(module: Module, equal: Sequence[_ShareableKernel], kernels: Collection[str]) -> None:
    """Replace kernels by the first of them, if they differ in few integers."""
    places = [(i, index) for i in equal[0].function.instructions() for index in _numbers(i, kernels)]
    rows = [
        [str(i.operands[index]) for i in kernel.function.instructions() for index in _numbers(i, kernels)]
        for kernel in equal
    ]
    columns = list(zip(*rows, strict=True))
    parameters = list(dict.fromkeys(column for column in columns if len(set(column)) > 1))
    if len(parameters) > _MOST_PARAMETERS:
        return
    first = equal[0].function
    names = {column: first.names.fresh("n") for column in parameters}
    for (instruction, index), column in zip(places, columns, strict=True):
        if column in names:
            set_operand(instruction, index, Local(I64, names[column]))
    if names:
        _add_parameters(first, list(names.values()))
    for number, kernel in enumerate(equal):
        arguments = [const_int(I64, int(column[number])) for column in parameters]
        for caller, block, call in kernel.calls:
            _call_shared(module, (caller, block, call), first, arguments)
        if kernel.function is not first:
            module.remove(kernel.function)
            _join_facts(first, kernel.function)


def _add_parameters(function: Function, names: Sequence[str]) -> None:
    """Add integers to a function's parameters."""
    function.arguments.extend(Argument(I64, "", name) for name in names)
    end = function.header.rindex(")", 0, function.header.rindex(function.signature.attributes))
    added = "".join(f", i64 %{name}" for name in names)
    function.header = f"{function.header[:end]}{added}{function.header[end:]}"


def _call_shared(
    module: Module, place: tuple[Function, Block, Instruction], shared: Function, arguments: Sequence[ConstInt]
) -> None:
    """Replace a call by that of the shared kernel."""
    caller, block, call = place
    b = Builder(module, caller, block, block.instructions.index(call))
    b.debug, b.span = call.debug_location, call.span
    type_: FunctionType = shared.signature.type
    b.call(Global(module.pointer_to(type_), shared.name), type_, [*call.args, *arguments])
    block.instructions.remove(call)


def _join_facts(shared: Function, other: Function) -> None:
    """Note that the shared kernel computes the trees of another one."""
    facts, others = shared.facts.get(KernelFacts), other.facts.get(KernelFacts)
    if isinstance(facts, KernelFacts) and isinstance(others, KernelFacts):
        facts.trees += others.trees
