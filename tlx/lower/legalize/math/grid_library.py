"""Functions of the C library in code for grids, which have no C library: calls to internal functions on scalars.

    %r = call <2 x float> @llvm.pow(<2 x float> %x, <2 x float> %y)

    ->  %a = call float @tlx.pow.float(float %x0, float %y0)
        %b = call float @tlx.pow.float(float %x1, float %y1)

The functions for float compute in double, with the formulas of `tlx.lower.legalize.math.library`; bfloat and half use
the functions for float.

`frem` becomes calls, too, as LLVM computes `x - trunc(x / y) * y`, which is not exact. Its function divides integers
digit by digit. With x = m 2^a and y = n 2^b, where a >= b, the remainder is r 2^b with r = m 2^(a - b) mod n. As
m 2^(a - b) may have thousands of bits, a few zeros are appended at a time::

    r = m mod n
    for the next s of a - b:  r = r 2^s mod n                  r < n < 2^24 of floats: s is 40; of doubles 11

Results are exact, also for bfloat and half, which are extended: a remainder has no bits below those of x and y.

Kernels compute `exp`, `sin` and the like as vector code. Functions without tensor operations are not lowered; in these,
such calls become calls to internal functions, too, as LLVM has no code for them.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.builder import Builder, new_function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module, UnparsedText
from tlx.ir.parser.module import needs_lowering, parse
from tlx.ir.rewrite import replace_uses
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, FunctionType, Type, VectorType, function_of
from tlx.ir.values import Constant, Global, Keyword, Value
from tlx.lower.legalize.elementwise import emit_math
from tlx.lower.legalize.math.arithmetic import LaneArithmetic
from tlx.lower.legalize.math.library import LIBRARY
from tlx.lower.operations import MATH_INTRINSICS
from tlx.target.target import Target

_FREM: Final = "frem"
_IN_TEXT: Final = re.compile(rf"\bfrem\b|@llvm\.(?:{'|'.join(sorted({*LIBRARY, *MATH_INTRINSICS}))})\.")


def calls_library(text: str) -> bool:
    """Whether a text has `frem` or calls functions for which LLVM has no code on grids."""
    return _IN_TEXT.search(text) is not None


def replace_library_functions(module: Module, target: Target) -> None:
    """Replace `frem` and calls to functions of the C library in the parsed functions of a module for a grid.

    Raises:
        LoweringError: There is a call to a function of a type that there is no code for.
    """
    _replace(module, target, LIBRARY)


def with_library(module: Module, target: Target) -> Module:
    """A lowered module, or a new one without calls to the library in the functions that were not lowered.

    Raises:
        LoweringError: As for `replace_library_functions`.
        ParseError: Such a function is not LLVM assembly.
    """
    if not any(isinstance(item, UnparsedText) and calls_library(item.text) for item in module.items):
        return module
    changed = module
    for text in (module.source.text, str(module)):  # the first has the places for errors
        changed = parse(text, module.source.name, _is_plain)
        _replace(changed, target, {*LIBRARY, *MATH_INTRINSICS})
    return changed


def _is_plain(function: str) -> bool:
    """Whether a function, as a text, is not lowered, and calls the library."""
    return calls_library(function) and not needs_lowering(function)


def _replace(module: Module, target: Target, names: Container[str]) -> None:
    library = _LibraryFunctions(module, target)
    for function in list(module.functions):
        for block in function.blocks:
            for instruction in list(block.instructions):
                name = _library_function(instruction, names)
                if name:
                    b = Builder(module, function, block, block.instructions.index(instruction))
                    b.debug, b.span = instruction.debug_location, instruction.span
                    operands = instruction.operands if name == _FREM else instruction.args
                    replace_uses(function, str(instruction.result), library.apply(b, name, operands))
                    block.instructions.remove(instruction)
    library.define()


def _library_function(instruction: Instruction, names: Container[str]) -> str:
    """The one of these functions that an instruction becomes, or none. LLVM multiplies for constant `powi`."""
    if instruction.opcode == _FREM:
        return _FREM
    prefix, _, name = (instruction.callee or "").strip('"').partition(".")
    name = name.split(".")[0]
    if prefix != "llvm" or name not in names or instruction.opcode != "call":
        return ""
    return "" if name == "powi" and isinstance(instruction.args[1], Constant) else name


@dataclass(eq=False)
class _LibraryFunctions:
    """The functions that are called, which are defined when all uses are replaced."""

    module: Module
    target: Target
    names: dict[tuple[str, FunctionType], str] = field(default_factory=dict[tuple[str, FunctionType], str])

    def apply(self, b: Builder, name: str, operands: Sequence[Value]) -> Value:
        """A function of numbers, or of vectors element by element."""
        type_ = operands[0].type
        if not isinstance(type_, VectorType):
            return self._of_numbers(b, name, operands)
        result: Value = Keyword(type_, "poison")
        for k in range(type_.count):
            elements = [b.extract_element(x, k) if isinstance(x.type, VectorType) else x for x in operands]
            result = b.insert_element(result, self._of_numbers(b, name, elements), k)
        return result

    def _of_numbers(self, b: Builder, name: str, operands: Sequence[Value]) -> Value:
        type_ = operands[0].type
        if type_ in (BFLOAT, HALF):
            wide = [b.cast("fpext", x, FLOAT) if x.type == type_ else x for x in operands]
            return b.cast("fptrunc", self._of_numbers(b, name, wide), type_)
        if type_ not in _FORMATS:
            message = f"{name} of {type_} is not implemented for GPUs"
            raise LoweringError(message, b.span, name=self.module.source.name)
        function = function_of(type_, tuple([x.type for x in operands]))
        own, title = self.names.get((name, function)), "remainder" if name == _FREM else name
        if own is None:
            own = self.names[name, function] = self.module.global_names.fresh(f"tlx.{title}.{type_}")
        return b.call(Global(self.module.pointer_to(function), own), function, operands, title).value

    def define(self) -> None:
        """Add the functions to the module."""
        for (name, function), own in self.names.items():
            if name == _FREM:
                self.module.append(UnparsedText(_remainder_text(own, function.result)))
            else:
                self._define(name, function, own)

    def _define(self, name: str, type_: FunctionType, own: str) -> None:
        parameters = [(parameter, "", letter) for parameter, letter in zip(type_.params, "xy", strict=False)]
        function = new_function(self.module, own, parameters, "nounwind", result=type_.result)
        b = Builder(self.module, function)
        if name not in LIBRARY:
            x = b.insert_element(Keyword(VectorType(1, type_.result), "poison"), function.arguments[0].value, 0)
            b.ret(b.extract_element(emit_math(b, self.target, name, type_.result, x), 0))
            return
        registers = [_register(b, argument.value) for argument in function.arguments]
        number = b.extract_element(LIBRARY[name](LaneArithmetic(b, 1, DOUBLE), *registers), 0)
        b.ret(number if type_.result == DOUBLE else b.cast("fptrunc", number, type_.result))


def _register(b: Builder, x: Value) -> Value:
    """A number as a register of one lane; floats as doubles."""
    wide = b.cast("fpext", x, DOUBLE) if x.type == FLOAT else x
    return b.insert_element(Keyword(VectorType(1, wide.type), "poison"), wide, 0)


_FORMATS: Final[dict[Type, tuple[int, int]]] = {FLOAT: (32, 23), DOUBLE: (64, 52)}
"""Bits of a number, and of its fraction."""


def _remainder_text(name: str, type_: Type) -> str:
    """The function that computes a remainder."""
    bits, fraction = _FORMATS[type_]
    integer, hidden, sign = f"i{bits}", 1 << fraction, 1 << (bits - 1)
    infinity = sign - hidden
    widen = f"zext {integer} %{{0}} to i64" if bits < 64 else "add i64 %{0}, 0"
    return f"""

define internal {type_} @{name}({type_} %x, {type_} %y) nounwind {{
entry:
  %x.all = bitcast {type_} %x to {integer}
  %y.all = bitcast {type_} %y to {integer}
  %sign = and {integer} %x.all, -{sign}
  %x.bits = and {integer} %x.all, {sign - 1}
  %y.bits = and {integer} %y.all, {sign - 1}
  %is.zero = icmp eq {integer} %y.bits, 0
  %is.infinite = icmp uge {integer} %x.bits, {infinity}
  %is.nan = icmp ugt {integer} %y.bits, {infinity}
  %is.either = or i1 %is.zero, %is.infinite
  %is.undefined = or i1 %is.either, %is.nan
  br i1 %is.undefined, label %undefined, label %defined

undefined:
  %product = fmul {type_} %x, %y
  %nan = fdiv {type_} %product, %product
  ret {type_} %nan

defined:
  %is.less = icmp ult {integer} %x.bits, %y.bits
  br i1 %is.less, label %less, label %divide

less:
  ret {type_} %x

divide:
  %x.field = lshr {integer} %x.bits, {fraction}
  %y.field = lshr {integer} %y.bits, {fraction}
  %x.fraction = and {integer} %x.bits, {hidden - 1}
  %y.fraction = and {integer} %y.bits, {hidden - 1}
  %x.normal = icmp ne {integer} %x.field, 0
  %y.normal = icmp ne {integer} %y.field, 0
  %x.hidden = select i1 %x.normal, {integer} {hidden}, {integer} 0
  %y.hidden = select i1 %y.normal, {integer} {hidden}, {integer} 0
  %x.exponent = select i1 %x.normal, {integer} %x.field, {integer} 1
  %y.exponent = select i1 %y.normal, {integer} %y.field, {integer} 1
  %x.number = or {integer} %x.fraction, %x.hidden
  %y.number = or {integer} %y.fraction, %y.hidden
  %m = {widen.format("x.number")}
  %n = {widen.format("y.number")}
  %zeros = sub {integer} %x.exponent, %y.exponent
  %zeros.wide = {widen.format("zeros")}
  %first = urem i64 %m, %n
  br label %step
{_remainder_loop(fraction)}
{_remainder_result(type_)}
}}
"""


def _remainder_loop(fraction: int) -> str:
    """Long division of `%first`: zeros are appended to the remainder, as many at a time as fit, until none are left."""
    return f"""
step:
  %r = phi i64 [ %first, %divide ], [ %next, %append ]
  %left = phi i64 [ %zeros.wide, %divide ], [ %fewer, %append ]
  %no.zeros = icmp eq i64 %left, 0
  %is.divisible = icmp eq i64 %r, 0
  %is.done = or i1 %no.zeros, %is.divisible
  br i1 %is.done, label %done, label %append

append:
  %is.last = icmp ult i64 %left, {63 - fraction}
  %count = select i1 %is.last, i64 %left, i64 {63 - fraction}
  %shifted = shl i64 %r, %count
  %next = urem i64 %shifted, %n
  %fewer = sub i64 %left, %count
  br label %step
"""


def _remainder_result(type_: Type) -> str:
    """The remainder in units of the last place of `%y`, as a number with the sign of `%x`."""
    bits, fraction = _FORMATS[type_]
    integer = f"i{bits}"
    return f"""done:
  %r.number = uitofp i64 %r to {type_}
  %has.normal.unit = icmp ugt {integer} %y.exponent, {fraction}
  %unit.exponent = sub {integer} %y.exponent, {fraction}
  %unit.normal = shl {integer} %unit.exponent, {fraction}
  %y.less = sub {integer} %y.exponent, 1
  %y.shift = select i1 %has.normal.unit, {integer} 0, {integer} %y.less
  %unit.subnormal = shl {integer} 1, %y.shift
  %unit.bits = select i1 %has.normal.unit, {integer} %unit.normal, {integer} %unit.subnormal
  %unit = bitcast {integer} %unit.bits to {type_}
  %magnitude = fmul {type_} %r.number, %unit
  %magnitude.bits = bitcast {type_} %magnitude to {integer}
  %bits = or {integer} %magnitude.bits, %sign
  %result = bitcast {integer} %bits to {type_}
  ret {type_} %result"""
