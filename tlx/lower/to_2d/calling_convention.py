"""The calling convention of large vectors: functions take and return them through pointers.

LLVM's code generator crashes on vectors of more than some thousand elements in a signature, so there is no convention
to be compatible with. Rewrite of a function and its calls::

    define <6400 x float> @f(<6400 x float> %x, i32 %n) {        define void @f(ptr noalias %out, ptr %x.in, i32 %n) {
                                                                   %x = load <6400 x float>, ptr %x.in
      ret <6400 x float> %v                                  ->    store <6400 x float> %v, ptr %out
                                                                   ret void
    %r = call <6400 x float> @f(<6400 x float> %a, i32 3)          store <6400 x float> %a, ptr %x.in.buf
                                                                   call void @f(ptr %out.buf, ptr %x.in.buf, i32 3)
                                                                   %r = load <6400 x float>, ptr %out.buf

Functions of other modules keep their signature: a call with such vectors is an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tlx.diagnostics import LoweringError
from tlx.ir.abi import calling_convention
from tlx.ir.functions import Argument, Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import ABI_ELEMENTS, VOID, FunctionType, Type, VectorType, bytes_of, exceeds_abi
from tlx.ir.values import Global, Value
from tlx.lower.memory.buffers import PrivateBuffers, allow_heap
from tlx.lower.memory.views import storage_type
from tlx.lower.to_2d.memory.copies import to_storage_type

if TYPE_CHECKING:
    from tlx.lower.context import LoweringContext

_RESULT: Final = re.compile(r"(?:\b(?:noundef|nofpclass\([^)]*\))\s+)*<\s*\d+\s+x\s+\w+\s*>\s*$")
_OUT: Final = "out"


def pass_by_pointer(module: Module, context: LoweringContext) -> None:
    """Replace large vectors in the signatures of functions by pointers.

    Raises:
        LoweringError: Such a function has another use than a plain call.
    """
    functions = {
        f.name: f for f in module.functions if any(map(exceeds_abi, (f.signature.result, *f.signature.type.params)))
    }
    if not functions:
        return
    for function in functions.values():
        _check_uses(module, function)
    old = {name: function.signature.type for name, function in functions.items()}
    for function in functions.values():
        message = f"@{function.name} takes and returns vectors of more than {ABI_ELEMENTS} elements through pointers"
        context.remarks.add("applied", "to-2d", message, function.span)
        _rewrite_definition(module, function)
    for caller in module.functions:
        _rewrite_calls(module, caller, old, functions)


def _check_uses(module: Module, function: Function) -> None:
    """Check that a function is only used by plain calls."""
    name = f"@{function.name}"
    known = Global(module.pointer_to(function.signature.type), function.name)
    for caller in module.functions:
        for instruction in caller.instructions():
            called = instruction.opcode == "call" and instruction.callee == function.name
            others = instruction.operands[1:] if called else instruction.operands
            if called and instruction.source_type != function.signature.type:
                message = (
                    f"{name} has a vector of more than {ABI_ELEMENTS} elements in its signature: "
                    "call it with the type of its definition"
                )
                raise LoweringError(message, instruction.span)
            if any(isinstance(v, Global) and v.name == known.name for v in others) or (
                called and "musttail" in instruction.flags
            ):
                message = (
                    f"{name} has a vector of more than {ABI_ELEMENTS} elements in its signature: "
                    "its only uses may be plain calls"
                )
                raise LoweringError(message, instruction.span)
    if re.search(rf"{re.escape(name)}(?![\w.$-])", module.raw_text()):
        message = (
            f"{name} has a vector of more than {ABI_ELEMENTS} elements in its signature: its address cannot be taken"
        )
        raise LoweringError(message, function.span)


# The function --------------------------------------------------------------------------------------------------------


def _rewrite_definition(module: Module, function: Function) -> None:
    signature = function.signature
    parameters = _split(function)
    b = TensorBuilder(module, function, function.entry, _index_after_allocas(function))
    for index, argument in enumerate(signature.arguments):
        if exceeds_abi(argument.type):
            pointer = _incoming(module, function, argument)
            parameters[index] = f"{pointer.type} %{pointer.name}"
            signature.arguments[index] = pointer
            _load(b, argument.name, argument.type, pointer.value)
    result = signature.result
    if exceeds_abi(result):
        out = Argument(module.pointer_to(_in_memory(result)), "noalias", function.names.fresh(_OUT))
        parameters.insert(0, f"{out.type} noalias %{out.name}")
        signature.arguments.insert(0, out)
        signature.result = VOID
        for block in function.blocks:
            _rewrite_return(module, function, block.terminator, out.value)
    _write_header(function, parameters, void=exceeds_abi(result))
    allow_heap(module, function)


def _index_after_allocas(function: Function) -> int:
    return next(i for i, inst in enumerate(function.entry.instructions) if inst.opcode != "alloca")


def _incoming(module: Module, function: Function, argument: Argument) -> Argument:
    stem = "in" if argument.name.isdecimal() else f"{argument.name}.in"
    return Argument(module.pointer_to(_in_memory(argument.type)), "", function.names.fresh(stem))


def _load(b: TensorBuilder, name: str, type_: Type, pointer: Value) -> None:
    """Define the name of a parameter, or of a call's result, by a load."""
    stored = _in_memory(type_)
    if stored != type_:
        value = b.load(stored, pointer, _align(stored))
        loaded = Instruction("trunc", type_, [value], f"%{name} = trunc {value.typed} to {type_}", result=name)
    else:
        text = f"%{name} = load {type_}, {pointer.typed}, align {_align(type_)}"
        loaded = Instruction("load", type_, [pointer], text, result=name, align=_align(type_))
    loaded.span = b.span
    b.block.instructions.insert(b.index, loaded)
    b.index += 1


def _store(b: TensorBuilder, value: Value, pointer: Value) -> None:
    stored = to_storage_type(b, value)
    b.store(stored, pointer, _align(stored.type))


def _in_memory(type_: Type) -> Type:
    """The type of a vector in memory."""
    assert isinstance(type_, VectorType)
    return VectorType(type_.count, storage_type(type_.element))


def _align(type_: Type) -> int:
    assert isinstance(type_, VectorType)
    return bytes_of(type_.element)


def _rewrite_return(module: Module, function: Function, ret: Instruction, out: Value) -> None:
    if ret.opcode != "ret":
        return
    block = next(block for block in function.blocks if block.terminator is ret)
    value = ret.operands[0]
    del block.instructions[-1]
    b = TensorBuilder(module, function, block, len(block.instructions))
    b.debug, b.span = ret.debug_location, ret.span
    _store(b, value, out)
    b.ret()


def _split(function: Function) -> list[str]:
    """The texts of the parameters in the header."""
    start, end = _list_range(function)
    parameters: list[str] = []
    depth, last = 0, start
    text = function.header
    for index in range(start, end):
        if text[index] in "(<[{":
            depth += 1
        elif text[index] in ")>]}":
            depth -= 1
        elif text[index] == "," and depth == 0:
            parameters.append(text[last:index].strip())
            last = index + 1
    rest = text[last:end].strip()
    return [*parameters, rest] if rest else parameters


def _list_range(function: Function) -> tuple[int, int]:
    """The range of the parameters in the header, without the parentheses."""
    start = function.header.index("(", function.header.index(f"@{function.name}")) + 1
    depth, index = 1, start
    while depth:
        depth += {"(": 1, ")": -1}.get(function.header[index], 0)
        index += 1
    return start, index - 1


def _write_header(function: Function, parameters: list[str], *, void: bool) -> None:
    start, end = _list_range(function)
    at = function.header.index(f"@{function.name}")
    head = _RESULT.sub("void ", function.header[:at]) if void else function.header[:at]
    function.header = f"{head}{function.header[at:start]}{', '.join(parameters)}{function.header[end:]}"


# Its calls -----------------------------------------------------------------------------------------------------------


def _rewrite_calls(
    module: Module, caller: Function, old: dict[str, FunctionType], functions: dict[str, Function]
) -> None:
    buffers = PrivateBuffers(module, caller)
    for block in caller.blocks:
        for call in [i for i in block.instructions if i.opcode == "call" and i.callee in functions]:
            callee = functions[str(call.callee)]
            b = TensorBuilder(module, caller, block, block.instructions.index(call))
            b.debug, b.span = call.debug_location, call.span
            block.instructions.remove(call)
            _call(b, buffers, call, old[callee.name], callee)
    buffers.emit()
    if buffers.uses_heap:
        allow_heap(module, caller)


def _call(b: TensorBuilder, buffers: PrivateBuffers, call: Instruction, old: FunctionType, callee: Function) -> None:
    args: list[tuple[Value, str]] = []
    out: Value | None = None
    if exceeds_abi(old.result):
        out = _buffer(b, buffers, old.result, _OUT, call)
        args.append((out, ""))
    for index, value in enumerate(call.args):
        if index >= len(old.params) or not exceeds_abi(old.params[index]):
            args.append((value, call.arg_attributes[index]))
            continue
        slot = _buffer(b, buffers, value.type, "in", call)
        _store(b, value, slot)
        args.append((slot, ""))
    replacement = _emit_call(b, call, callee, args)
    if out is None:
        if call.result is not None:
            text = replacement.text.split(" = ", 1)[-1]
            replacement.result, replacement.text = call.result, f"%{call.result} = {text}"
        return
    _load(b, str(call.result), old.result, out)


def _emit_call(b: TensorBuilder, call: Instruction, callee: Function, args: list[tuple[Value, str]]) -> Instruction:
    """Emit the call with its calling convention and argument attributes, which affect how arguments are passed."""
    type_ = callee.signature.type
    called = Global(b.module.pointer_to(type_), callee.name)
    calling = calling_convention(call.text.partition("call ")[2].partition(str(called))[0])
    written = type_ if type_.vararg else type_.result
    arguments = ", ".join(" ".join(filter(None, (str(value.type), words, str(value)))) for value, words in args)
    body = " ".join(filter(None, ("call", calling, f"{written} {called}({arguments}){b.debug}")))
    replacement = b.emit("call", type_.result, [called, *(value for value, _ in args)], body, source_type=type_)
    replacement.arg_attributes = tuple(words for _, words in args)
    return replacement


def _buffer(b: TensorBuilder, buffers: PrivateBuffers, type_: Type, stem: str, call: Instruction) -> Value:
    stored = _in_memory(type_)
    assert isinstance(stored, VectorType)
    buffer = buffers.new(stored.element, stored.count, stem, call.span)
    return b.retype(buffer.pointer, stored)
