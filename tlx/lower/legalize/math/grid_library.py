"""Functions of the C library in code for grids, which have none.

`frem` becomes calls to an internal function, as LLVM computes `x - trunc(x / y) * y` there, which is not exact::

    %r = frem <2 x float> %x, %y    ->    %a = call float @tlx.remainder.float(float %x0, float %y0)
                                          %b = call float @tlx.remainder.float(float %x1, float %y1)

The function divides integers as in school. With x = m 2^a and y = n 2^b, where a >= b, the remainder is r 2^b with
r = m 2^(a - b) mod n. As m 2^(a - b) may have thousands of bits, some zeros are appended at a time::

    r = m mod n
    for the next s of a - b:  r = r 2^s mod n                  r < n < 2^24 of floats: s is 40; of doubles 11

Results are exact, those of bfloat and half as well, which are extended: a remainder has no bits below those of x and y.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.builder import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module, Raw
from tlx.ir.rewrite import replace_uses
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, Type, VectorType, function_of, scalar_of
from tlx.ir.values import Global, Keyword, Local, Value
from tlx.lower.operations import LIBRARY_FUNCTIONS


def replace_library_functions(module: Module) -> None:
    """Replace `frem` in all functions of a module for a grid.

    Raises:
        LoweringError: There is a call to a function that LLVM has no code for.
    """
    remainders = _Remainders(module)
    for function in list(module.functions):
        for block in function.blocks:
            for instruction in list(block.instructions):
                if instruction.opcode == "frem":
                    b = Builder(module, function, block, block.instructions.index(instruction))
                    b.debug, b.span = instruction.debug_location, instruction.span
                    replace_uses(function, str(instruction.result), remainders.of(b, *instruction.operands))
                    block.instructions.remove(instruction)
                else:
                    _check(module, function, instruction)
    remainders.define()


def _check(module: Module, function: Function, instruction: Instruction) -> None:
    name = _library_function(instruction)
    if name and all(isinstance(argument, Local) for argument in instruction.args):  # LLVM expands powers of constants
        message = f"{name} is not implemented for targets with grids: compute it by exp, log, sin, cos and the like"
        raise LoweringError(message, instruction.span or function.span, name=module.source.name)


def _library_function(instruction: Instruction) -> str:
    """The function of the C library that a call becomes; empty if there is none."""
    prefix, _, name = (instruction.callee or "").partition(".")
    name = name.split(".")[0]
    return name if prefix == "llvm" and name in LIBRARY_FUNCTIONS else ""


@dataclass(eq=False)
class _Remainders:
    """The functions that compute remainders, which are defined when all uses are replaced."""

    module: Module

    def __post_init__(self) -> None:
        self.used: dict[Type, str] = {}

    def of(self, b: Builder, x: Value, y: Value) -> Value:
        """The remainder of two numbers, or of vectors element by element."""
        if not isinstance(x.type, VectorType):
            return self._of_numbers(b, x, y)
        result: Value = Keyword(x.type, "poison")
        for k in range(x.type.count):
            element = self._of_numbers(b, b.extract_element(x, k), b.extract_element(y, k))
            result = b.insert_element(result, element, k)
        return result

    def _of_numbers(self, b: Builder, x: Value, y: Value) -> Value:
        type_ = scalar_of(x.type)
        if type_ in (BFLOAT, HALF):
            return b.cast("fptrunc", self._of_numbers(b, b.cast("fpext", x, FLOAT), b.cast("fpext", y, FLOAT)), type_)
        if type_ not in _FORMATS:
            message = f"frem of {type_} is not implemented for targets with grids"
            raise LoweringError(message, b.span, name=self.module.source.name)
        if type_ not in self.used:
            self.used[type_] = self.module.global_names.fresh(f"tlx.remainder.{type_}")
        function = function_of(type_, (type_, type_))
        return b.call(Global(self.module.pointer_to(function), self.used[type_]), function, [x, y], "remainder").value

    def define(self) -> None:
        """Add the functions to the module."""
        for type_, name in self.used.items():
            self.module.append(Raw(_remainder_text(name, type_)))


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

done:
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
  ret {type_} %result
}}
"""
