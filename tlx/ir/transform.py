"""Transforms of functions: inlining, outlining of loops, module constructors."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder import Builder, new_function
from tlx.ir.control_flow import ControlFlow, NaturalLoop
from tlx.ir.functions import Function, NameScope
from tlx.ir.instructions import BINARY_OPCODES, CAST_OPCODES, Block, Instruction
from tlx.ir.module import Module, UnparsedText
from tlx.ir.rewrite import drop_debug_uses, set_operand, split_block
from tlx.ir.types import LABEL, VOID, FloatType, FunctionType, IntType, PointerType, Type
from tlx.ir.values import Global, Local, Value

_RESTS: Final = re.compile(r"(\.rest(\.\d+)?)+$")
_WITHOUT_EFFECTS: Final = (
    BINARY_OPCODES
    | CAST_OPCODES
    | frozenset({"phi", "br", "switch", "getelementptr", "icmp", "fcmp", "select", "fneg"})
)
LOCAL_NAME: Final = re.compile(r'%("[^"]*"|[-a-zA-Z$._0-9]+)')


def can_inline(callee: Function) -> bool:
    """Whether a function can be inlined: it returns void and has one `ret`."""
    returns = sum(block.terminator.opcode == "ret" for block in callee.blocks)
    return returns == 1 and callee.signature.result == VOID


def inline_call(caller: Function, block: Block, call: Instruction, callee: Function) -> Block:
    """Replace a call by the callee's body.

    Args:
        caller: The function with the call.
        block: The block with the call.
        call: The call; it is not recursive, and `can_inline` accepts the callee.
        callee: The called function, which is not changed.

    Returns:
        The block with the instructions after the call.
    """
    names = _names(caller, block, call, callee)
    spellings = {name: str(value) for name, value in names.items()}
    index = next(i for i, instruction in enumerate(block.instructions) if instruction is call)
    rest = split_block(caller, block, index + 1, f"{_stem(block)}.rest") if len(callee.blocks) > 1 else None
    last = block.instructions[index + 1 :]
    del block.instructions[index:]
    head, *others = [_copied(source, names, spellings, rest) for source in callee.blocks]
    body = [i for i in head.instructions if i.opcode != "alloca"]
    caller.entry.instructions[:0] = [i for i in head.instructions if i.opcode == "alloca"]
    block.instructions += body + last
    at = caller.blocks.index(block) + 1
    caller.blocks[at:at] = others
    return rest or block


def _stem(block: Block) -> str:
    return "entry" if block.name.isdecimal() else _RESTS.sub("", block.name)


def _names(caller: Function, block: Block, call: Instruction, callee: Function) -> dict[str, Value]:
    """The value in the caller for each name in the callee."""
    names: dict[str, Value] = {p.name: a for p, a in zip(callee.arguments, call.args, strict=True)}
    names[callee.entry.name] = block.value
    for other in callee.blocks[1:]:
        names[other.name] = Local(LABEL, caller.names.fresh(other.name))
    for instruction in callee.instructions():
        if instruction.result is not None:
            names[instruction.result] = Local(instruction.type, caller.names.fresh(instruction.result))
    return names


def _copied(source: Block, names: dict[str, Value], spellings: dict[str, str], rest: Block | None) -> Block:
    """A copy of a block with other names; a return becomes a branch to `rest`, or is left out if that is None."""
    name = spellings[source.name][1:]
    block = Block(name, f"\n\n{name}:")
    for instruction in source.instructions:
        if instruction.opcode == "ret":
            block.instructions += [] if rest is None else [_branch(rest)]
        else:
            block.instructions.append(renamed(instruction, names, spellings))
    return block


def _branch(successor: Block) -> Instruction:
    return Instruction("br", VOID, [successor.value], f"br label %{successor.name}")


def renamed(i: Instruction, names: dict[str, Value], spellings: dict[str, str]) -> Instruction:
    """A copy of an instruction, with other names for its operands and result."""

    def spelling(match: re.Match[str]) -> str:
        return spellings.get(match[1]) or match[0]

    return Instruction(
        i.opcode,
        i.type,
        [names.get(o.name, o) if isinstance(o, Local) else o for o in i.operands],
        LOCAL_NAME.sub(spelling, i.text),
        i.result and spellings[i.result][1:],
        i.lead,
        span=i.span,
        source_type=i.source_type,
        predicate=i.predicate,
        indices=i.indices,
        arg_attributes=i.arg_attributes,
        flags=i.flags,
        align=i.align,
        trailer=LOCAL_NAME.sub(spelling, i.trailer) if i.trailer else "",
    )


_DEBUG: Final = re.compile(r",\s*!dbg (?:!\d+|!DILocation\([^)]*\))")
_ABI_DEPENDENT_FLOATS: Final = ("half", "bfloat", "fp128", "x86_fp80", "ppc_fp128")
_MAX_PASSED_BITS: Final = 64


@dataclass(frozen=True, eq=False)
class LoopRegion:
    """A loop that can be outlined.

    Attributes:
        blocks: Its blocks, in the function's order.
        header: Its header.
        before: The only predecessor of the header outside the loop.
        exit: The only successor of the loop.
        captured: The values defined outside that it uses.
    """

    blocks: list[Block]
    header: Block
    before: Block
    exit: Block
    captured: list[Local]


def has_no_effects(instruction: Instruction) -> bool:
    """Whether an instruction only computes a value or branches; it neither calls nor accesses memory."""
    return instruction.opcode in _WITHOUT_EFFECTS


def loop_region(flow: ControlFlow, loop: NaturalLoop, movable: Callable[[Instruction], bool]) -> LoopRegion | None:
    """A loop as a region that can be outlined; None if it cannot.

    Args:
        flow: Control flow of the function.
        loop: The loop.
        movable: Tells whether an instruction may be moved to another function.
    """
    blocks = [flow.blocks[name] for name in sorted(loop.blocks, key=flow.positions.__getitem__)]
    entries = [name for name in flow.predecessors[loop.header] if name not in loop.blocks]
    exits = {name for block in blocks for name in block.terminator.successors} - loop.blocks
    if len(entries) != 1 or len(exits) != 1:
        return None
    if not all(i.is_debug or movable(i) for block in blocks for i in block.instructions):
        return None
    exit_block = flow.blocks[exits.pop()]
    defined = {i.result for block in blocks for i in block.instructions if i.result is not None}
    if exit_block.phis or any(not flow.users.get(name, set()) <= loop.blocks for name in defined):
        return None
    captured = _captured(blocks, defined)
    if not all(_can_be_passed(value.type) for value in captured):
        return None
    return LoopRegion(blocks, flow.blocks[loop.header], flow.blocks[entries[0]], exit_block, captured)


def _captured(blocks: list[Block], defined: set[str]) -> list[Local]:
    """The values that blocks use and do not define."""
    captured: dict[str, Local] = {}
    for block in blocks:
        for instruction in block.instructions:
            for operand in () if instruction.is_debug else instruction.operands:
                if isinstance(operand, Local) and operand.type != LABEL and operand.name not in defined:
                    captured.setdefault(operand.name, operand)
    return list(captured.values())


def _can_be_passed(type_: Type) -> bool:
    """Whether functions with different target features pass values of a type in the same way."""
    if isinstance(type_, IntType):
        return type_.bits <= _MAX_PASSED_BITS
    return isinstance(type_, PointerType) or (isinstance(type_, FloatType) and str(type_) not in _ABI_DEPENDENT_FLOATS)


def outline_region(module: Module, function: Function, region: LoopRegion, name: str, attributes: str) -> Function:
    """Move a region to a new function, which is called in its place."""
    outlined, _ = extract_region(module, function, region, name, attributes)
    remove_regions(function, [region])
    return outlined


def remove_regions(function: Function, regions: Collection[LoopRegion]) -> None:
    """Remove the blocks of regions that have been outlined."""
    moved = {id(block) for region in regions for block in region.blocks}
    function.blocks = [block for block in function.blocks if id(block) not in moved]
    drop_debug_uses(function.instructions(), {name for region in regions for name in _results(region)})


def remove_loops(function: Function, regions: Collection[LoopRegion]) -> None:
    """Remove loops without effects: what comes before one continues at its exit."""
    exits: dict[Value, Value] = {region.header.value: region.exit.value for region in regions}
    remove_regions(function, regions)
    for block in function.blocks:
        for index, operand in enumerate(block.terminator.operands):
            successor = operand
            while successor in exits:
                successor = exits[successor]
            if successor is not operand:
                set_operand(block.terminator, index, successor)


def extract_region(
    module: Module, function: Function, region: LoopRegion, name: str, attributes: str
) -> tuple[Function, Block]:
    """Add a region's blocks to a new function, which is called in their place; `remove_regions` completes the move.

    Args:
        module: The module, to which the new function is added.
        function: The function with the region.
        region: The region to move.
        name: Name of the new function, which must be free.
        attributes: Attributes of the new function, as text.

    Returns:
        The new function, and the block that calls it.
    """
    parameters = [(value.type, "", value.name) for value in region.captured]
    outlined = new_function(module, name, parameters, attributes)
    debug = next((d for block in region.blocks for i in block.instructions if (d := i.debug_location)), "")
    outlined.names = NameScope(_outlined_names(region))
    entry = Block(outlined.names.fresh("entry"))
    entry.label = f"\n{entry.name}:"
    end = Block(region.exit.name, region.exit.label or f"\n\n{region.exit.name}:")
    outlined.blocks = [entry, *region.blocks, end]
    Builder(module, outlined, entry).branch(region.header)
    Builder(module, outlined, end).ret()
    _enter_from(region, entry)
    for block in region.blocks:
        block.instructions[:] = [i for i in block.instructions if not i.is_debug]
        for instruction in block.instructions:
            remove_debug_location(instruction)
    return outlined, _call(module, function, region, outlined, debug)


def _outlined_names(region: LoopRegion) -> set[str]:
    names = {value.name for value in region.captured} | {block.name for block in (*region.blocks, region.exit)}
    return names | _results(region)


def _results(region: LoopRegion) -> set[str]:
    return {i.result for block in region.blocks for i in block.instructions if i.result is not None}


def _enter_from(region: LoopRegion, entry: Block) -> None:
    """Make the new function's entry block the predecessor of the header."""
    for phi in region.header.phis:
        for index in range(1, len(phi.operands), 2):
            label = phi.operands[index]
            if isinstance(label, Local) and label.name == region.before.name:
                set_operand(phi, index, entry.value)


def remove_debug_location(instruction: Instruction) -> None:
    """Remove an instruction's debug location, whose scope is the original function."""
    if "!dbg" in instruction.text:
        instruction.text = _DEBUG.sub("", instruction.text)
        instruction.trailer = _DEBUG.sub("", instruction.trailer)


def _call(module: Module, function: Function, region: LoopRegion, outlined: Function, debug: str) -> Block:
    """Call the new function before the region and branch to the exit; returns the block with the call."""
    before = region.before
    b = Builder(module, function, before)
    b.debug = debug
    if before.terminator.successors == [region.header.name]:
        before.instructions.pop()
        b.index -= 1
    else:
        block = b.new_block(outlined.name.rsplit(".", 1)[-1], before)
        for index, operand in enumerate(before.terminator.operands):
            if operand == region.header.value:
                set_operand(before.terminator, index, block.value)
        b.at_end(block)
    type_ = FunctionType(VOID, tuple(value.type for value in region.captured))
    arguments: list[Value] = list(region.captured)
    b.call(Global(module.pointer_to(type_), outlined.name), type_, arguments)
    b.branch(region.exit)
    return b.block


_EXISTING: Final = re.compile(
    r"^@llvm\.global_ctors\s*=\s*appending\s+(?:\w+\s+)*?global\s+\[(\d+) x ([^\[\]]+)\]\s*(\[|zeroinitializer)",
    re.MULTILINE,
)
_ENTRY: Final = re.compile(r'\{\s*i32\s+(\d+),\s*(?:ptr|void \(\)\*)\s+(@(?:"[^"]*"|[-\w$.]+))\s*[,}]')
_PRIORITY: Final = 65535


def add_constructor(module: Module, name: str) -> None:
    """Make `@name`, a void function without parameters, a constructor: it is called when the program starts.

    The module keeps its other constructors.

    Rewrite:
        @llvm.global_ctors = appending global [1 x T] [T x]
            ->
        @llvm.global_ctors = appending global [2 x T] [T x, T { i32 65535, ptr @name, ptr null }]
    """
    function, data = ("void ()*", "i8*") if module.typed_pointers else ("ptr", "ptr")
    type_ = f"{{ i32, {function}, {data} }}"
    value = f"{{ i32 {_PRIORITY}, {function} @{name}, {data} null }}"
    for item in module.items:
        if isinstance(item, UnparsedText) and (existing := _EXISTING.search(item.text)):
            count, type_, opening = int(existing[1]) + 1, existing[2], existing[3]
            if type_.startswith("{") and type_.count(",") == 1:  # before LLVM 9: no associated data
                value = f"{{ i32 {_PRIORITY}, {function} @{name} }}"
            end = _end_of_list(item.text, existing.end()) if opening == "[" else existing.end()
            entries = item.text[existing.end() : end - 1].strip() + ", " if opening == "[" else ""
            text = f"@llvm.global_ctors = appending global [{count} x {type_}] [{entries}{type_} {value}]"
            item.text = item.text[: existing.start()] + text + item.text[end:]
            return
    module.append(UnparsedText(f"\n\n@llvm.global_ctors = appending global [1 x {type_}] [{type_} {value}]"))


def collect_constructors(text: str, name: str) -> str:
    """Replace `@llvm.global_ctors` in a module's text by a function `@name` that calls the constructors.

    This is for linkers that run no constructors. A module without constructors stays as it is.

    Rewrite:
        @llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [... { i32 65535, ptr @a, ptr null }]
        ->
        define void @name() {
          call void @a()
          ret void
        }
    """
    start = text.find("@llvm.global_ctors")
    existing = _EXISTING.search(text, start) if start >= 0 else None
    if existing is None:
        return text
    end = _end_of_list(text, existing.end()) if existing[3] == "[" else existing.end()
    entries = _ENTRY.findall(text, existing.end(), end)
    line_end = text.find("\n", end)
    rest = text[line_end:] if line_end >= 0 else ""
    calls = "".join(f"  call void {entry[1]}()\n" for entry in sorted(entries, key=lambda entry: int(entry[0])))
    return f"{text[: existing.start()]}{rest}\ndefine void @{name}() {{\n{calls}  ret void\n}}\n"


def _end_of_list(text: str, start: int) -> int:
    """The offset after the bracket that closes the one before `start`."""
    depth = 1
    for offset in range(start, len(text)):
        depth += {"[": 1, "]": -1}.get(text[offset], 0)
        if not depth:
            return offset + 1
    return len(text)
