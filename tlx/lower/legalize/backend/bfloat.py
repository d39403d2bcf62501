"""bfloat as i16, for triples whose LLVM backend does not support bfloat (PowerPC, SystemZ, MIPS, ...).

Loads, stores, phis, shuffles and calls then move integers; operations extend them to float and round the result.

Rewrite:
    define bfloat @f(bfloat %x, bfloat %y) {            define i16 @f(i16 %x, i16 %y) {
      %s = fadd bfloat %x, %y                             %w = zext i16 %x to i32
                                                          %b = shl i32 %w, 16         a bfloat is the upper half
                                                 ->       %a = bitcast i32 %b to float             of a float
                                                          ...
                                                          %t = fadd float %a, %c
                                                          %s = ...                    rounded to nearest even
      ret bfloat %s                                       ret i16 %s
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.builder import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import BINARY_OPCODES, CAST_OPCODES, Instruction
from tlx.ir.module import Declaration, Module, UnparsedText
from tlx.ir.parser.module import parse_fully
from tlx.ir.rewrite import declare_function, set_operand
from tlx.ir.types import BFLOAT, FLOAT, I16, FunctionType, StructType, Type, VectorType, scalar_of
from tlx.ir.values import (
    Aggregate,
    ConstFloat,
    Global,
    Keyword,
    Local,
    OpaqueConstant,
    Splat,
    Value,
    const_float,
    const_int,
    const_vector,
)
from tlx.lower.legalize.conversions import convert_register
from tlx.lower.operations import bfloat_as_float, round_to_bfloat
from tlx.target.target import Target

_BFLOAT: Final = re.compile(
    r'"[^"]*"|;[^\n]*|(?<![%@\w.$!-])(bfloat)(?![\w.$-])(?:\s+(0xR[0-9A-Fa-f]{4}|[-+]?\d+\.[\d.e+-]*))?'
)
"""The type, with a constant that follows it; strings and comments, which stay, match without groups."""
_NO_CLASS: Final = re.compile(r"\bnofpclass\([^)]*\)\s*")
_FAST_MATH: Final = re.compile(r"\b(phi|select|call)(?: (?:fast|nnan|ninf|nsz|arcp|contract|reassoc|afn))+ ")
_MANGLED: Final = re.compile(r"bf16(?![a-z0-9])")
_MOVES: Final = re.compile(
    r"llvm\.(?:masked|vector\.(?:insert|extract|reverse|splice|interleave|deinterleave)|experimental\.vector|"
    r"dbg|lifetime|invariant|mem|prefetch|assume|fake\.use|ssa\.copy|launder|strip|ptr)"
)
"""Intrinsics that move bfloats or point to them, and compute nothing."""
_REDUCTION: Final = re.compile(r"llvm\.vector\.reduce\.(fadd|fmul|fmaximum|fminimum|fmax|fmin)\.")
_EXTREMA: Final = {"fmax": "llvm.maxnum", "fmin": "llvm.minnum", "fmaximum": "llvm.maximum", "fminimum": "llvm.minimum"}
_SIGN_OPERATIONS: Final = re.compile(r"llvm\.(fabs|copysign)\.")
_COMPUTING: Final = (BINARY_OPCODES | CAST_OPCODES | {"fneg", "fcmp"}) - {"bitcast"}
_UNCHANGEABLE: Final = frozenset({"atomicrmw", "va_arg"})


def without_bfloat(module: Module, target: Target) -> Module:
    """A module in which bfloat is i16, in signatures as well; the same module if it has no bfloat.

    Raises:
        LoweringError: An instruction has no other form, or a function that is not in the module takes bfloat.
    """
    text = str(module)
    if not _mentions_bfloat(text):
        return module
    whole = parse_fully(text, module.source.name)
    for function in whole.functions:
        _FunctionRewriter(whole, function, target).run()
    for item in list(whole.items):
        if isinstance(item, Declaration) and item.name.startswith("llvm.") and _mentions_bfloat(item.text):
            whole.remove(item)
        elif isinstance(item, UnparsedText | Declaration):
            item.text = _respelled(item.text)
    return whole


def _mentions_bfloat(text: str) -> bool:
    return "bfloat" in text and any(match[1] for match in _BFLOAT.finditer(text))


def _respelled(text: str) -> str:
    """A text with i16 for bfloat, and with integers for constants that follow it."""

    def spelled(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        return "i16" if match[2] is None else f"i16 {_bits(ConstFloat(BFLOAT, match[2]))}"

    return _NO_CLASS.sub("", _BFLOAT.sub(spelled, text)) if "bfloat" in text else text


def _bits(constant: ConstFloat) -> int:
    """The bits of a constant."""
    text = constant.spelling
    return int((text if text.startswith("0xR") else const_float(BFLOAT, constant.value).spelling)[3:], 16)


def _as_bits(type_: Type) -> Type:
    """The type with i16 for bfloat."""
    if type_ == BFLOAT:
        return I16
    return replace(type_, element=I16) if isinstance(type_, VectorType) and type_.element == BFLOAT else type_


def _is_bfloat(type_: Type) -> bool:
    return scalar_of(type_) == BFLOAT


def _value_as_bits(value: Value) -> Value:
    """An operand as integers."""
    if not _is_bfloat(value.type):
        return value
    type_ = _as_bits(value.type)
    match value:
        case ConstFloat():
            return const_int(type_, _bits(value))
        case Keyword() | Local():
            return replace(value, type=type_)
        case Aggregate():
            return const_vector([_value_as_bits(element) for element in value.elements])
        case Splat():
            return Splat(type_, _value_as_bits(value.element))
        case _:
            return OpaqueConstant(type_, _respelled(str(value)))


def _float_type(type_: Type) -> Type:
    return replace(type_, element=FLOAT) if isinstance(type_, VectorType) else FLOAT


class _FunctionRewriter:
    """Rewrites a function of a module that is parsed fully."""

    def __init__(self, module: Module, function: Function, target: Target) -> None:
        self.module, self.function, self.target = module, function, target
        self.b = Builder(module, function)

    def run(self) -> None:
        """Rewrite the signature and all instructions."""
        function, signature = self.function, self.function.signature
        function.header = _respelled(function.header)
        signature.result = _as_bits(signature.result)
        for argument in signature.arguments:
            argument.type = _as_bits(argument.type)
        for block in list(function.blocks):
            for instruction in list(block.instructions):
                has_values = any(_is_bfloat(value.type) for value in (instruction, *instruction.operands))
                if has_values or _mentions_bfloat(instruction.text):
                    self.b = Builder(self.module, function, block, block.instructions.index(instruction))
                    self.b.debug = instruction.debug_location
                    self._rewrite(instruction, has_values=has_values)

    def _rewrite(self, i: Instruction, *, has_values: bool) -> None:
        callee = i.callee or ""
        is_intrinsic = callee.startswith("llvm.")
        if has_values and (i.opcode in _UNCHANGEABLE or (is_intrinsic and isinstance(i.type, StructType))):
            raise self._error(i, f"{callee or i.opcode} of bfloat", "compute with float")
        if has_values and (i.opcode in _COMPUTING or (is_intrinsic and not _MOVES.match(callee))):
            operands = [_value_as_bits(o) for o in (i.args if i.is_call else i.operands)]
            self._replace(i, self._computed(i, operands))
        elif is_intrinsic:
            self._move_by_intrinsic(i, callee)
        else:
            external = self.module.declarations.get(callee)
            if external is not None and _mentions_bfloat(external.text):
                raise self._error(i, f"a call to @{callee}, which takes or returns bfloat,", "pass its bits as i16")
            self._move(i)

    def _error(self, i: Instruction, what: str, remedy: str) -> LoweringError:
        message = f"in @{self.function.name}, {what} is not possible: LLVM has no bfloat for this triple; {remedy}"
        return LoweringError(message, i.span, name=self.module.source.name)

    def _move(self, i: Instruction) -> None:
        """Respell an instruction that moves values or points to them."""
        for index, operand in enumerate(i.operands):
            if _is_bfloat(operand.type) and not isinstance(operand, Local | Global | Keyword):
                set_operand(i, index, _value_as_bits(operand))
        i.text, i.spans = _respelled(i.text), None
        if _is_bfloat(i.type):
            i.text = _FAST_MATH.sub(r"\1 ", i.text, count=1)

    def _move_by_intrinsic(self, i: Instruction, callee: str) -> None:
        """Respell a call to an intrinsic; types are part of its name."""
        name, result = _MANGLED.sub("i16", callee), _as_bits(i.type)
        params = tuple(_as_bits(argument.type) for argument in i.args)
        self._move(i)
        if name != callee:
            i.text = i.text.replace(f"@{callee}(", f"@{name}(", 1)
            declare_function(self.module, name, FunctionType(result, params))

    def _replace(self, i: Instruction, value: Value) -> None:
        """Replace an operation by its result, under the same name."""
        i.text = f"%{i.result} = bitcast {value.typed} to {value.type}"
        i.opcode, i.type, i.operands, i.spans = "bitcast", value.type, [value], None

    def _computed(self, i: Instruction, operands: Sequence[Value]) -> Value:
        """The result of an operation; operands of bfloat are given by their bits."""
        b, callee = self.b, i.callee or ""
        if i.opcode == "fneg" or _SIGN_OPERATIONS.match(callee):
            return self._with_sign(i, operands)
        if i.opcode in CAST_OPCODES:
            return self._converted(i, operands[0])
        if reduction := _REDUCTION.match(callee):
            return self._reduced(reduction[1], operands)
        sources = i.args if i.is_call else i.operands
        numbers = [bfloat_as_float(b, o) if _is_bfloat(s.type) else o for o, s in zip(operands, sources, strict=True)]
        if i.opcode == "fcmp":
            return b.value("fcmp", i.type, numbers, f"fcmp {i.predicate} {numbers[0].typed}, {numbers[1]}")
        if not i.is_call:
            return round_to_bfloat(b, b.binary(i.opcode, numbers[0], numbers[1]))
        result = _float_type(i.type) if _is_bfloat(i.type) else i.type
        value = b.call_named(_MANGLED.sub("f32", callee), result, numbers).value
        return round_to_bfloat(b, value) if _is_bfloat(i.type) else value

    def _with_sign(self, i: Instruction, operands: Sequence[Value]) -> Value:
        """`fneg`, `fabs` and `copysign`, which keep the bits of NaN."""
        b, bits = self.b, operands[0]

        def number(n: int) -> Value:
            one = const_int(I16, n)
            return const_vector([one] * bits.type.count) if isinstance(bits.type, VectorType) else one

        if i.opcode == "fneg":
            return b.binary("xor", bits, number(-0x8000))
        magnitude = b.binary("and", bits, number(0x7FFF))
        return b.binary("or", magnitude, b.binary("and", operands[1], number(-0x8000))) if operands[1:] else magnitude

    def _converted(self, i: Instruction, operand: Value) -> Value:
        """A conversion, rounded once; that of a scalar is that of a register of one element."""
        b, source, to = self.b, scalar_of(i.operands[0].type), scalar_of(i.type)
        if isinstance(operand.type, VectorType):
            return self._converted_register(i.opcode, operand, source, to)
        register = b.insert_element(Keyword(VectorType(1, operand.type), "undef"), operand, 0)
        return b.extract_element(self._converted_register(i.opcode, register, source, to), 0)

    def _converted_register(self, opcode: str, register: Value, source: Type, to: Type) -> Value:
        """A register in another type; half is i16 as well there."""
        b, type_ = self.b, register.type
        assert isinstance(type_, VectorType)
        bits = b.cast("bitcast", register, replace(type_, element=I16)) if str(source) == "half" else register
        result = convert_register(b, self.target, opcode, bits, source, to)
        return b.cast("bitcast", result, replace(type_, element=to)) if str(to) == "half" else result

    def _reduced(self, name: str, operands: Sequence[Value]) -> Value:
        """A reduction, each step of which is rounded."""
        b, vector = self.b, operands[-1]
        assert isinstance(vector.type, VectorType)
        elements = [b.extract_element(vector, index) for index in range(vector.type.count)]
        total = operands[0] if len(operands) > 1 else elements.pop(0)
        for element in elements:
            x, y = bfloat_as_float(b, total), bfloat_as_float(b, element)
            value = (
                b.call_intrinsic(_EXTREMA[name], [FLOAT], FLOAT, [x, y]) if name in _EXTREMA else b.binary(name, x, y)
            )
            total = round_to_bfloat(b, value)
        return total
