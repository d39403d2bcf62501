"""Canonical names and declarations, so that stock LLVM reads the module.

The proposal's examples call several overloads under one name and declare none. LLVM wants one type a function, so every
overload gets a name of its own, mangled as LLVM mangles intrinsics, and a declaration:

    %t = call token @llvm.tensor.typeinfo(<9 x float> %v, <2 x i32> ..., <2 x i32> ..., <2 x i32> ...)
    call void @llvm.tensor.store(float* %p, <2 x i32> %s, token %t)
    ->
    %t = call token @llvm.tensor.typeinfo.v9f32.v2i32(<9 x float> %v, <2 x i32> ..., ...)
    call void @llvm.tensor.store.p0f32.v2i32(float* %p, token %t, <2 x i32> %s)

    declare token @llvm.tensor.typeinfo.v9f32.v2i32(<9 x float>, <2 x i32>, <2 x i32>, <2 x i32>) nounwind readnone
    declare void @llvm.tensor.store.p0f32.v2i32(float*, token, <2 x i32>) argmemonly nounwind willreturn writeonly

Attributes of calls are dropped: what an old declaration promised (the proposal has stores `readnone`) may be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from tlx.intrinsics import Intrinsic, Operand, OperandKind, is_tensor_name
from tlx.ir.functions import Argument, Signature
from tlx.ir.instructions import Instruction
from tlx.ir.module import Declaration, Module, Raw
from tlx.ir.parser.instructions import parse_instruction_text
from tlx.ir.tensors.calls import TensorCall, attribute_type, find_form, suffix_element, tensor_call
from tlx.ir.types import TOKEN, PointerType, Type, VectorType, mangle

_METADATA: Final = re.compile(r",\s*![-a-zA-Z$._\\].*", re.DOTALL)
_TAILS: Final = frozenset({"tail", "notail", "musttail"})
_BYVAL: Final = re.compile(r"\bbyval\b")
_NAME: Final = re.compile(r"[^-a-zA-Z$._0-9]+")


def canonicalise(module: Module) -> None:
    """Give every tensor call of the parsed functions its canonical name and operand order, and declare it.

    Calls and declarations that are canonical stay as they are, byte for byte.

    Raises:
        VerifyError: A call is of no known intrinsic, or of none of its forms.
    """
    needed: dict[str, Declaration] = {}
    for function in module.functions:
        for block in function.blocks:
            for index, instruction in enumerate(block.instructions):
                call = tensor_call(instruction)
                if call is None:
                    continue
                new = block.instructions[index] = _canonical_call(call)
                if new.callee is not None and new.callee not in needed:
                    needed[new.callee] = _declaration_of(new, call.intrinsic)
    _replace_declarations(module, needed)


def canonical_name(intrinsic: Intrinsic, result: Type, operands: Sequence[Type]) -> str:
    """The mangled name of one overload.

    The suffixes are the result, if a vector, and the operands that are not tokens, without the vectors that are as long
    as the one before by rule (layout and padding); a number of tokens that may vary is a suffix too.

    Args:
        intrinsic: The row of the table.
        result: Type of what the call returns.
        operands: Types of its operands, in canonical order.
    """
    return _canonical_name(intrinsic, result, tuple(operands))


@lru_cache(maxsize=4096)
def _canonical_name(intrinsic: Intrinsic, result: Type, operands: tuple[Type, ...]) -> str:
    form = find_form(intrinsic, operands)
    if form is None:
        message = f"{intrinsic.full_name} takes no operands of types {', '.join(map(str, operands))}"
        raise ValueError(message)
    suffixes = [_suffix(result)] if isinstance(result, VectorType) else []
    if any(operand.repeated for operand in form):
        suffixes.append(str(sum(type_ == TOKEN for type_ in operands)))
    mangled = (_suffix(t) for o, t in zip(form, operands, strict=True) if _is_mangled(o))
    return ".".join([intrinsic.full_name, *suffixes, *mangled])


def declare_overload(module: Module, intrinsic: Intrinsic, result: Type, operands: Sequence[Type]) -> Declaration:
    """The declaration of one overload, added to the module if it is not there."""
    wanted = overload_declaration(intrinsic, result, operands)
    known = module.declarations.get(wanted.name)
    if known is not None:
        return known
    module.append(wanted)
    module.global_names.taken.add(wanted.name)
    return wanted


def overload_declaration(intrinsic: Intrinsic, result: Type, operands: Sequence[Type]) -> Declaration:
    """The declaration of one overload, in no module yet."""
    name = canonical_name(intrinsic, result, operands)
    reads = intrinsic.effects == "typeinfo" and isinstance(operands[0], PointerType)
    attributes = intrinsic.attributes(reads=reads)
    arguments = [Argument(type_, "", str(index)) for index, type_ in enumerate(operands)]
    text = f"\n\ndeclare {result} @{name}({', '.join(map(str, operands))}) {attributes}"
    return Declaration(text, Signature(name, result, arguments, False, "", attributes))


# Calls -------------------------------------------------------------------------------------------------------------


def _canonical_call(call: TensorCall) -> Instruction:
    """The call under its canonical name, in canonical order; the same object if it is that already."""
    old = call.instruction
    order = _canonical_order(call)
    given = call.arguments
    types = [given[index][1].type for index in order]
    name = canonical_name(call.intrinsic, old.type, types)
    metadata = _METADATA.search(old.trailer)
    trailer = metadata.group() if metadata else ""
    if old.callee == name and trailer == old.trailer and order == sorted(order) and _has_pointees(call):
        return old
    arguments = ", ".join(_argument_text(call, index) for index in order)
    text = f"{_call_prefix(old)}@{name}({arguments}){trailer}"
    new = parse_instruction_text(text)
    new.lead, new.span = old.lead, old.span
    return new


def _call_prefix(call: Instruction) -> str:
    """What stands before the callee: `%r = tail call token `; a function type is left to the declaration."""
    result = [f"%{call.result} ="] if call.result is not None else []
    tails = [word for word in call.flags if word in _TAILS - {"musttail"}]
    fast_math = [word for word in call.flags if word not in _TAILS]
    return " ".join([*result, *tails, "call", *fast_math, str(call.type), ""])


def _argument_text(call: TensorCall, index: int) -> str:
    value = call.instruction.args[index]
    parts = [str(value.type), _argument_attributes(call, index), str(value)]
    return " ".join(part for part in parts if part)


def _argument_attributes(call: TensorCall, index: int) -> str:
    """The attributes of an argument, and what only its type or the call's old name tell of a pointee.

    A pointer to a flattened tensor carries the vector's type, which `byval` of LLVM 8 and older does not; a load or
    store whose name says `p0f32` though pointers are opaque gets that type as `elementtype`.
    """
    operand, value = call.arguments[index]
    attributes = call.instruction.arg_attributes[index]
    if not isinstance(value.type, PointerType) or attribute_type(call, value) is not None:
        return attributes
    pointee = value.type.pointee if operand.kind is OperandKind.FLAT else suffix_element(call, value)
    if pointee is None:
        return attributes
    if _BYVAL.search(attributes):
        return _BYVAL.sub(f"byval({pointee})", attributes)
    return f"{attributes} elementtype({pointee})".strip()


def _has_pointees(call: TensorCall) -> bool:
    attributes = call.instruction.arg_attributes
    return all(_argument_attributes(call, index) == text for index, text in enumerate(attributes))


def _canonical_order(call: TensorCall) -> list[int]:
    """Arguments of the call, by number, in the canonical form's order."""
    if call.form == call.intrinsic.operands:
        return list(range(len(call.form)))
    canonical = [operand.name for operand in call.intrinsic.operands]
    given = [operand.name for operand in call.form]
    if sorted(canonical) != sorted(given):
        return list(range(len(given)))
    return [given.index(name) for name in canonical]


# Names -------------------------------------------------------------------------------------------------------------


def _is_mangled(operand: Operand) -> bool:
    return operand.kind not in (OperandKind.TENSOR, OperandKind.INDEX) and not operand.like_previous


def _suffix(type_: Type) -> str:
    """LLVM's suffix; for pointers to what LLVM has none for, the type's spelling without its punctuation."""
    try:
        return mangle(type_)
    except ValueError:
        return _NAME.sub("_", f"p_{type_}").strip("_")


# Declarations ------------------------------------------------------------------------------------------------------


def _declaration_of(call: Instruction, intrinsic: Intrinsic) -> Declaration:
    return overload_declaration(intrinsic, call.type, [value.type for value in call.args])


def _replace_declarations(module: Module, needed: dict[str, Declaration]) -> None:
    """Take out tensor declarations that are wrong or not needed, add those that are missing."""
    text = "".join(item.text for item in module.items if isinstance(item, Raw))
    mentioned = set(re.findall(r"@(llvm\.(?:tensor|vector\.totensor)[-a-zA-Z$._0-9]*)", text))
    unwanted: list[Declaration] = []
    for item in module.items:
        if not isinstance(item, Declaration) or not is_tensor_name(item.name):
            continue
        wanted = needed.get(item.name)
        if wanted is not None and _is_same(module, item, wanted):
            del needed[item.name]
        elif wanted is not None or item.name not in mentioned:
            unwanted.append(item)
    module.remove(*unwanted)
    for new in needed.values():
        module.append(new)
        module.global_names.taken.add(new.name)


def _is_same(module: Module, old: Declaration, new: Declaration) -> bool:
    signature = old.signature
    words = _words(module.attribute_text(signature))
    words -= _INFERRED if "willreturn" in words else _INFERRED - {"mustprogress"}
    return signature.type == new.signature.type and words == _words(new.signature.attributes)


def _words(attributes: str) -> set[str]:
    """Attributes, `memory(...)` in the words that LLVM 15 and older know."""
    for newer, older in _MEMORY.items():
        attributes = attributes.replace(newer, older)
    return set(attributes.split())


_INFERRED: Final = {"mustprogress", "nofree", "nosync"}
"""What LLVM's optimiser adds to declarations, and what holds; `mustprogress` says no more than `willreturn`."""


_MEMORY: Final = {
    "memory(none)": "readnone",
    "memory(argmem: read)": "argmemonly readonly",
    "memory(argmem: write)": "argmemonly writeonly",
}
