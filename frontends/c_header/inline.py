"""Inlining of helper functions that take or return tokens: a token cannot be an argument, and -O0 keeps the calls.

    define internal i32 @square(<16 x float> %v) {          %t = call i32 @tensor_typeinfo(<16 x float> %x, ...)
      %t = call i32 @tensor_typeinfo(<16 x float> %v, ...)
      ret i32 %t                                        ->
    }
    %s = call i32 @square(<16 x float> %x)                  (uses of %s use %t)

Only such calls are inlined. Helpers without remaining callers are removed if they are local to the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tlx.frontends.c_header.calling_convention import pass_by_value
from tlx.frontends.c_header.mem2reg import debug_only, promote_slots
from tlx.frontends.c_header.placeholders import callee_name, placeholder_calls
from tlx.frontends.c_header.token_flow import names_with_merges
from tlx.intrinsics import OperandKind
from tlx.ir.abi import attribute_pointee
from tlx.ir.builder import Builder
from tlx.ir.functions import Argument, Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.parser.instructions import parse_instruction_text
from tlx.ir.rewrite import replace_uses, split_block
from tlx.ir.types import LABEL
from tlx.ir.values import Keyword, Local, Value

_LOCAL_LINKAGE: Final = re.compile(r"\b(?:internal|private|linkonce|linkonce_odr|available_externally)\b")
_DEBUG: Final = re.compile(r",\s*!dbg !\d+")


def inline_helpers(module: Module) -> None:
    """Inline the calls that pass or return tokens, in the whole module (all functions of which are parsed)."""
    _Inlining(module).run()


class _Inlining:
    """One run over a module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.functions = {function.name: function for function in module.functions}
        self.callees = {name: _callees(function) & self.functions.keys() for name, function in self.functions.items()}
        self.helpers: set[str] = set()
        self.inlined: set[str] = set()

    def run(self) -> None:
        """Inline until no call passes or returns a token."""
        active = [function for function in self.functions.values() if placeholder_calls(function)]
        for function in active:
            self._simplify(function)
        while active:
            function = active.pop()
            self._inline_into(function)
            if self._takes_or_returns_tokens(function) and function.name not in self.helpers:
                self.helpers.add(function.name)
                active.extend(f for n, f in self.functions.items() if function.name in self.callees[n])
        self._remove_helpers()

    def _simplify(self, function: Function) -> None:
        pass_by_value(self.module, function)
        promote_slots(function)

    def _inline_into(self, function: Function) -> None:
        while (site := self._call_to_inline(function)) is not None:
            block, call, callee = site
            _Inliner(self.module, function, callee).inline(block, call)
            self.inlined.add(callee.name)
            self._simplify(function)

    def _call_to_inline(self, function: Function) -> tuple[Block, Instruction, Function] | None:
        """A call that takes or returns tokens, with its callee."""
        tokens = _tokens(function)
        for block in function.blocks:
            for instruction in block.instructions:
                callee = self.functions.get(callee_name(instruction) or "")
                if callee is None or instruction.opcode != "call" or not self._can_inline(callee, instruction):
                    continue
                passes = any(isinstance(v, Local) and v.name in tokens for v in instruction.args)
                if passes or callee.name in self.helpers:
                    return block, instruction, callee
        return None

    def _can_inline(self, callee: Function, call: Instruction) -> bool:
        types = [argument.type for argument in callee.arguments]
        same = not callee.signature.vararg and types == [value.type for value in call.args]
        return same and callee.signature.result == call.type and not self._is_recursive(callee.name)

    def _is_recursive(self, name: str) -> bool:
        seen: set[str] = set()
        stack = list(self.callees[name])
        while stack:
            callee = stack.pop()
            if callee == name:
                return True
            if callee not in seen:
                seen.add(callee)
                stack.extend(self.callees[callee])
        return False

    def _takes_or_returns_tokens(self, function: Function) -> bool:
        """Whether a function returns a token, or uses a parameter as a token."""
        tokens = _tokens(function)
        returns = (i for i in function.instructions() if i.opcode == "ret")
        if any(isinstance(v, Local) and v.name in tokens for i in returns for v in i.operands):
            return True
        parameters = {argument.name for argument in function.arguments}
        operands = {name for name in names_with_merges(function, parameters) if name in _token_operands(function)}
        return bool(operands)

    def _remove_helpers(self) -> None:
        """Remove the helpers that are no longer called."""
        removed = True
        while removed:
            removed = False
            for name in sorted(self.inlined):
                function = self.functions[name]
                local = _LOCAL_LINKAGE.search(function.signature.result_attributes)
                if local is not None and function in self.module.items and not self._is_mentioned(function):
                    self.module.remove(function)
                    removed = True

    def _is_mentioned(self, function: Function) -> bool:
        mention = re.compile(rf"@{re.escape(function.name)}(?![-a-zA-Z$._0-9])")
        return any(item is not function and mention.search(str(item)) for item in self.module.items)


def _callees(function: Function) -> set[str]:
    return {name for instruction in function.instructions() if (name := callee_name(instruction)) is not None}


def _tokens(function: Function) -> set[str]:
    """Names of values that are tokens."""
    makers = (c for c in placeholder_calls(function) if c.placeholder.intrinsic.result == "token")
    return names_with_merges(function, {str(call.instruction.result) for call in makers})


def _token_operands(function: Function) -> set[str]:
    """Names of values that operations take as tokens."""
    names: set[str] = set()
    for call in placeholder_calls(function):
        for form in call.placeholder.intrinsic.forms:
            if len(form) == len(call.args):
                pairs = zip(form, call.args, strict=True)
                names |= {v.name for o, v in pairs if o.kind is OperandKind.TENSOR and isinstance(v, Local)}
    return names


class _Inliner:
    """Replaces one call by the body of its callee."""

    def __init__(self, module: Module, caller: Function, callee: Function) -> None:
        self.module = module
        self.caller = caller
        self.callee = callee
        self.values: dict[str, Value] = {}
        self.returned: list[tuple[Value | None, Block]] = []

    def inline(self, block: Block, call: Instruction) -> None:
        """Inline a call in a block of the caller."""
        place = next(i for i, other in enumerate(block.instructions) if other is call)
        tail = split_block(self.caller, block, place + 1, "inlined.end")
        block.instructions.pop()
        self._map_arguments(block, call)
        for callee_block in self.callee.blocks:
            self.values[callee_block.name] = Local(LABEL, self._fresh(callee_block.name))
            for instruction in callee_block.instructions:
                if instruction.result is not None:
                    self.values[instruction.result] = Local(instruction.type, self._fresh(instruction.result))
        blocks = [self._clone_block(b, call, tail) for b in self.callee.blocks]
        at = self.caller.blocks.index(block) + 1
        self.caller.blocks[at:at] = blocks
        Builder(self.module, self.caller, block).branch(blocks[0])
        if call.result is not None:
            replace_uses(self.caller, call.result, self._result(call, tail))

    def _fresh(self, name: str) -> str:
        return self.caller.names.fresh(f"{self.callee.name}.{name}")

    def _map_arguments(self, block: Block, call: Instruction) -> None:
        builder = Builder(self.module, self.caller, block)
        for argument, value, attributes in zip(self.callee.arguments, call.args, call.arg_attributes, strict=True):
            self.values[argument.name] = self._argument(builder, argument, value, attributes)

    def _argument(self, builder: Builder, argument: Argument, value: Value, attributes: str) -> Value:
        """The value of a parameter; arguments in memory are copied."""
        type_ = attribute_pointee(attributes, "byval")
        if type_ is None:
            return value
        copy = builder.alloca(type_, self._fresh(argument.name))
        builder.store(builder.load(type_, value, 1), copy, 1)
        return copy

    def _clone_block(self, block: Block, call: Instruction, tail: Block) -> Block:
        name = str(self.values[block.name]).removeprefix("%")
        clone = Block(name, f"\n\n{name}:")
        for instruction in block.instructions:
            if debug_only(instruction):
                continue
            if instruction.opcode == "ret":
                value = self._mapped(instruction.operands[0]) if instruction.operands else None
                self.returned.append((value, clone))
                Builder(self.module, self.caller, clone).branch(tail)
            elif instruction.opcode == "alloca" and not instruction.operands:
                self.caller.entry.instructions.insert(0, self._clone(instruction, call))
            else:
                clone.instructions.append(self._clone(instruction, call))
        return clone

    def _mapped(self, value: Value) -> Value:
        """The value in the caller for one of the callee, with the type at its use (which may be a typed pointer)."""
        mapped = self.values.get(value.name, value) if isinstance(value, Local) else value
        return Local(value.type, mapped.name) if isinstance(mapped, Local) and mapped is not value else mapped

    def _clone(self, instruction: Instruction, call: Instruction) -> Instruction:
        """A copy of an instruction with the caller's names and the debug location of the call."""
        operands = [self._mapped(value) for value in instruction.operands]
        text = _with_operands(instruction, operands)
        result = instruction.result
        if result is not None:
            name = str(self.values[result])
            text = name + text[len(f"%{result}") :]
            result = name.removeprefix("%")
        text = _DEBUG.sub(call.debug_location, text)
        trailer = _DEBUG.sub(call.debug_location, instruction.trailer)
        return replace(instruction, operands=operands, text=text, result=result, spans=None, trailer=trailer)

    def _result(self, call: Instruction, tail: Block) -> Value:
        """The value that the call returned."""
        values = [(value, block) for value, block in self.returned if value is not None]
        if not values:
            return Keyword(call.type, "undef")
        if len(values) == 1:
            return values[0][0]
        return Builder(self.module, self.caller, tail, 0).phi(call.type, values, "inlined")


def _with_operands(instruction: Instruction, operands: Sequence[Value]) -> str:
    """The text of an instruction with other operands of the same types."""
    spans = instruction.spans if instruction.spans is not None else parse_instruction_text(instruction.text).spans or []
    pieces: list[str] = []
    position = 0
    for (start, end), old, new in zip(spans, instruction.operands, operands, strict=True):
        pieces += [instruction.text[position:start], str(new) if new is not old else instruction.text[start:end]]
        position = end
    return "".join([*pieces, instruction.text[position:]])
