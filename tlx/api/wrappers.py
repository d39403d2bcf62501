"""Wrappers around a module's functions, which take in memory the values that outside callers cannot pass directly.

define <4 x half> @f(<4 x half> %x)    ->    define void @tlx.call.f(ptr %0, ptr %1)    argument, result
"""

from __future__ import annotations

import string
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final

from tlx.api.arguments import passed_by_value
from tlx.api.signatures import CallParameter, Prototype, symbol_name
from tlx.ir.module import Module
from tlx.ir.types import I1, PTR, VOID, FloatType, IntType, PointerType, Type, VectorType, exceeds_abi

_PREFIX: Final = "tlx.call."
_IN_NAMES: Final = frozenset(string.printable.encode()) - frozenset(string.whitespace.encode()) - frozenset(b'"\\')
_INHERITED: Final = ("target-cpu", "target-features")


def wrapper_names(wrapped: Sequence[str], functions: Collection[str]) -> dict[str, str]:
    """The name of each function's wrapper: printable ASCII, and different from all functions."""
    names: dict[str, str] = {}
    for name in wrapped:
        wrapper = _PREFIX + "".join(c if _is_plain(c) else "_" for c in name)
        while wrapper in functions or wrapper in names.values():
            wrapper += "."
        names[name] = wrapper
    return names


def with_workspace(prototype: Prototype) -> Prototype:
    """The prototype of a lowered function whose caller passes its workspace."""
    return replace(prototype, parameters=(*prototype.parameters, CallParameter("%workspace", PTR)))


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isprintable()


def needs_wrapper(prototype: Prototype) -> bool:
    """Whether ctypes cannot call the function by its convention or look up its name."""
    types = [p.type for p in prototype.parameters]
    if prototype.result != VOID:
        types.append(prototype.result)
    return not (prototype.is_plain and _is_plain(prototype.name) and all(map(passed_by_value, types)))


def wrapper_definition(
    prototype: Prototype, symbol: str, features: str, is_direct: Callable[[Type], bool] = passed_by_value
) -> str:
    """A C function that takes pointers to the values that cannot be passed otherwise, and calls the function.

    Args:
        prototype: The function.
        symbol: Name of the C function.
        features: Attributes of the function, as they determine which registers vectors are passed in.
        is_direct: Whether values of a type are passed as they are; by default, whether ctypes can pass them.
    """
    parameters: list[str] = []
    body: list[str] = []
    passed: list[tuple[str, str]] = []
    for index, parameter in enumerate(prototype.parameters):
        type_ = parameter.type
        direct = is_direct(type_)
        parameters.append(f"{type_ if direct else 'ptr'} %{index}")
        if exceeds_abi(type_):  # the lowered function takes a pointer as well
            passed.append(("ptr", f"%{index}"))
            continue
        passed.append((str(type_), f"{parameter.abi_attributes} %{'' if direct else 'a'}{index}".lstrip()))
        if not direct:
            body.extend(_loaded(type_, index))
    result = prototype.result
    if exceeds_abi(result):
        passed.insert(0, ("ptr", f"%{len(parameters)}"))
        parameters.append(" ".join(passed[0]))
        result = VOID
    call = _call(prototype, result, passed)
    if result == VOID or is_direct(result):
        body.extend([call, "ret void"] if result == VOID else [f"%r = {call}", f"ret {result} %r"])
    else:
        parameters.append(f"ptr %{len(parameters)}")
        body.extend([f"%r = {call}", *_stored(result, len(parameters) - 1), "ret void"])
        result = VOID
    lines = "".join(f"  {line}\n" for line in body)
    head = f"define {result} {quoted_name(symbol)}({', '.join(parameters)}){features}"
    return f"\n{head} {{\n{lines}}}\n"


def is_pointer(type_: Type) -> bool:
    """Whether a type is that of pointers."""
    return isinstance(type_, PointerType)


def slot_wrapper_definition(prototype: Prototype, symbol: str, features: str) -> str:
    """A C function that takes a pointer to the addresses of all arguments and of the result, and calls the function.

    define i32 @f(ptr %x, i32 %n)    ->    define void @symbol(ptr %slots)    slots: x, address of n, of the result
    """
    inner = f"{symbol}.values"
    count = len(prototype.parameters) + (prototype.result != VOID)
    lines: list[str] = []
    for index in range(count):
        lines.append(f"%s{index} = getelementptr ptr, ptr %slots, i32 {index}")
        lines.append(f"%p{index} = load ptr, ptr %s{index}")
    arguments = ", ".join(f"ptr %p{index}" for index in range(count))
    lines += [f"call void {quoted_name(inner)}({arguments})", "ret void"]
    body = "".join(f"  {line}\n" for line in lines)
    definition = wrapper_definition(prototype, inner, features, is_pointer)
    return f"{definition}\ndefine internal void {quoted_name(symbol)}(ptr %slots) {{\n{body}}}\n"


def _call(prototype: Prototype, result: Type, passed: Sequence[tuple[str, str]]) -> str:
    """The call to a function, given type and value of each argument, with the attributes of its definition.

    It is marked `notail`: LLVM 22 crashes on tail calls with byval arguments in x86_vectorcallcc.
    """
    type_ = str(result)
    if prototype.variadic:
        type_ = f"{result} ({', '.join([*(type_ for type_, _ in passed), '...'])})"
    words = ("notail call", prototype.convention, "" if result == VOID else prototype.abi_attributes, type_)
    return f"{' '.join(filter(None, words))} {quoted_name(prototype.name)}({', '.join(map(' '.join, passed))})"


def _loaded(type_: Type, index: int) -> list[str]:
    """Load an argument; vectors of i1 have a byte for each element."""
    if isinstance(type_, VectorType) and type_.element == I1:
        bytes_ = f"<{type_.count} x i8>"
        return [f"%b{index} = load {bytes_}, ptr %{index}, align 1", f"%a{index} = trunc {bytes_} %b{index} to {type_}"]
    return [f"%a{index} = load {type_}, ptr %{index}, align {_alignment(type_)}"]


def _stored(type_: Type, index: int) -> list[str]:
    if isinstance(type_, VectorType) and type_.element == I1:
        bytes_ = f"<{type_.count} x i8>"
        return [f"%w = zext {type_} %r to {bytes_}", f"store {bytes_} %w, ptr %{index}, align 1"]
    return [f"store {type_} %r, ptr %{index}, align {_alignment(type_)}"]


def _alignment(type_: Type) -> int:
    """The alignment in bytes of a value in memory: that of numpy's arrays of its elements.

    On machines without unaligned accesses, LLVM would otherwise load a vector byte by byte.
    """
    element = type_.element if isinstance(type_, VectorType) else type_
    bits = element.bits if isinstance(element, (IntType, FloatType)) else 0
    return bits // 8 if bits in (8, 16, 32, 64) else 1


def inherited_attributes(module: Module) -> dict[str, str]:
    """Processor and features of each function, as attributes of its wrapper."""
    features: dict[str, str] = {}
    for function in module.functions:
        attributes = module.function_attributes(function.signature)
        words = [f' "{key}"="{attributes[key]}"' for key in _INHERITED if key in attributes]
        features[symbol_name(function.name)] = "".join(words)
    return features


def quoted_name(name: str) -> str:
    """A symbol's name as a global in LLVM assembly."""
    raw = name.encode(errors="surrogateescape")
    escaped = "".join(chr(byte) if byte in _IN_NAMES else f"\\{byte:02X}" for byte in raw)
    return f'@"{escaped}"'
