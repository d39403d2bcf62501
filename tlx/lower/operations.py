"""Operations that all stages share: elementwise operations, combining operations of reductions, signs of products.

Stage 2 applies an elementwise operation to tiles, stage 3 to registers. Tile code has only the mma family, no `matmul`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tlx.intrinsics.elementwise import ELEMENTWISE
from tlx.intrinsics.small_floats import CONVERSIONS
from tlx.ir.builder import Builder
from tlx.ir.instructions import BINARY_OPCODES, CAST_OPCODES, Instruction
from tlx.ir.module import (
    ABSOLUTE,
    FUNCTION_RESULT,
    NO_SUBNORMALS,
    NONPOSITIVE,
    NORMAL,
    SHORT,
    has_no_subnormals,
    is_absolute,
    is_function_result,
    is_nonpositive,
    is_normal,
    is_short,
)
from tlx.ir.tensors.model import ELEMENTWISE_FUNCTIONS
from tlx.ir.types import BFLOAT, FLOAT, HALF, I1, I16, I32, FloatType, IntType, Type, VectorType, bits_of, scalar_of
from tlx.ir.values import Constant, ConstInt, Value, const_float, const_int, const_ints
from tlx.target.instructions.dots import Sign
from tlx.target.target import Target

UNARY_INTRINSICS: Final = frozenset(row.name for row in ELEMENTWISE)
"""The tensor operations that compute each element from the same element of one operand."""
MATH_INTRINSICS: Final = frozenset(row.name for row in ELEMENTWISE if row.is_function)
"""The elementary functions among them, which `tlx.lower.legalize.math` computes."""
LIBRARY_FUNCTIONS: Final = frozenset("exp10 tan sinh cosh asin acos atan atan2 pow powi ldexp".split())
"""LLVM's functions `llvm.*` that LLVM lowers to calls to the C library, one for each element."""
DIVISIONS: Final = frozenset({"sdiv", "udiv", "srem", "urem"})
_UNARY: Final = frozenset({"fneg", "freeze"})
_COMPARES: Final = frozenset({"icmp", "fcmp"})
_OPCODES: Final = BINARY_OPCODES | CAST_OPCODES | _UNARY | _COMPARES | {"select"}
_FAST: Final = frozenset({"fast", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc"})
_SUFFIX: Final = re.compile(r"(?:\.(?:(?:nx)?v\d+)?(?:i|f|bf)\d+)+$")
_OVERLOADED_BY_RESULT_AND_FIRST: Final = frozenset(
    [*(f"llvm.{n}" for n in "fptosi.sat fptoui.sat lrint llrint lround llround scmp ucmp".split()), *CONVERSIONS]
)
_OVERLOADED_BY_RESULT_AND_SECOND: Final = frozenset({"llvm.powi", "llvm.ldexp"})
_MOVES: Final = frozenset({"select", "freeze", "bitcast"})
_HALF_ARITHMETIC: Final = frozenset(
    [
        *("fadd", "fsub", "fmul", "fdiv", "fneg", "fcmp"),
        *(f"llvm.{n}" for n in "fma fmuladd sqrt fabs copysign floor ceil trunc rint nearbyint roundeven".split()),
        *(f"llvm.{n}" for n in "minnum maxnum minimum maximum minimumnum maximumnum".split()),
    ]
)
"""Operations that machines with arithmetic on half compute in half: see `NarrowFloats.half_arithmetic`."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How accurate an elementary function of floats must be; by default, as `tlx.lower.legalize.math` promises.

    Attributes:
        short: Whether the result is rounded to bfloat: an error of 2^-14 is enough.
        no_subnormals: Whether zero is good enough for results below the normal numbers.
        absolute: Whether an error of 2^-23 is enough, however small the result is.
        normal: Of `exp`: whether every result is a normal number; NaN and other arguments may have any result.
        nonpositive: Of `exp`: whether no argument is above 0; NaN may be.
    """

    short: bool = False
    no_subnormals: bool = False
    absolute: bool = False
    normal: bool = False
    nonpositive: bool = False

    @classmethod
    def of(cls, instruction: Instruction) -> Accuracy:
        """The accuracy that an instruction's metadata requests."""
        return cls(
            is_short(instruction),
            has_no_subnormals(instruction),
            is_absolute(instruction),
            is_normal(instruction),
            is_nonpositive(instruction),
        )

    @property
    def metadata(self) -> str:
        """The metadata of an instruction that requests it."""
        marks = {
            SHORT: self.short,
            NO_SUBNORMALS: self.no_subnormals,
            ABSOLUTE: self.absolute,
            NORMAL: self.normal,
            NONPOSITIVE: self.nonpositive,
        }
        return "".join(mark for mark, is_set in marks.items() if is_set)


FULL_ACCURACY: Final = Accuracy()


@dataclass(frozen=True, slots=True)
class ElementwiseOp:
    """An elementwise instruction without operands and type.

    Attributes:
        opcode: LLVM's opcode.
        flags: `nsw`, `fast`, ... as written.
        predicate: Of comparisons.
        callee: Of calls: the intrinsic's name without its type suffix.
        is_function_result: Of `fptrunc`: whether it rounds what a function computed in float.
    """

    opcode: str
    flags: tuple[str, ...] = ()
    predicate: str = ""
    callee: str = ""
    is_function_result: bool = False

    @classmethod
    def of(cls, instruction: Instruction) -> ElementwiseOp | None:
        """The operation of an instruction; None if the instruction is not elementwise."""
        opcode = instruction.opcode
        if opcode == "call":
            name = (instruction.callee or "").strip('"')
            if not name.startswith("llvm.") or not isinstance(instruction.type, VectorType):
                return None
            return cls(opcode, tuple(f for f in instruction.flags if f in _FAST), "", _SUFFIX.sub("", name))
        if opcode in _OPCODES:
            is_result = opcode == "fptrunc" and is_function_result(instruction)
            return cls(opcode, instruction.flags, instruction.predicate, is_function_result=is_result)
        return None

    @staticmethod
    def operands_of(instruction: Instruction) -> tuple[Sequence[Value], tuple[Value, ...]]:
        """The operands of an elementwise instruction, and the numbers after them, such as the i1 of `llvm.abs`."""
        if instruction.opcode != "call":
            return instruction.operands, ()
        values = instruction.args
        count = len(values)
        while not isinstance(values[count - 1].type, VectorType):
            count -= 1
        return values[:count], tuple(values[count:])

    @property
    def title(self) -> str:
        """Its name in remarks: `fadd`, `llvm.fma`."""
        return self.callee or self.opcode

    def emit(self, b: Builder, type_: Type, operands: Sequence[Value], name: str = "") -> Value:
        """Emit the instruction on operands of any width."""
        words = " ".join(self.flags)
        if self.opcode == "call":
            return self._call(b, type_, operands, words, name)
        head = " ".join(x for x in (self.opcode, words, self.predicate) if x)
        if self.opcode == "select":
            spelled = ", ".join(o.typed for o in operands)
        else:
            spelled = ", ".join([operands[0].typed, *map(str, operands[1:])])
        tail = f" to {type_}" if self.opcode in CAST_OPCODES else ""
        tail += FUNCTION_RESULT * self.is_function_result
        instruction = b.emit(self.opcode, type_, operands, f"{head} {spelled}{tail}", name)
        instruction.flags, instruction.predicate = self.flags, self.predicate
        return instruction.value

    def _call(self, b: Builder, type_: Type, operands: Sequence[Value], words: str, name: str) -> Value:
        result = b.call_intrinsic(self.callee, self._overloads(type_, operands), type_, operands, name)
        if words:
            call = b.block.instructions[b.index - 1]
            call.text = call.text.replace("= call ", f"= call {words} ", 1)
            call.flags = self.flags
        return result

    def _overloads(self, type_: Type, operands: Sequence[Value]) -> list[Type]:
        if self.callee in _OVERLOADED_BY_RESULT_AND_FIRST:
            return [type_, operands[0].type]
        if self.callee in _OVERLOADED_BY_RESULT_AND_SECOND:
            return [type_, operands[1].type]
        if self.callee == "llvm.is.fpclass":
            return [operands[0].type]
        return [type_]

    def is_half_arithmetic(self, types: Sequence[Type], target: Target) -> bool:
        """Whether a target computes it in half, given the types of operands and result."""
        return (
            target.computes_half
            and self.title in _HALF_ARITHMETIC
            and all(scalar_of(type_) in (HALF, I1) for type_ in types)
        )

    def bits(self, types: Sequence[Type], target: Target) -> int:
        """Width in bits at which a target computes elements of these types: bfloat, and most often half, as float.

        An operation with only bfloat operands and results works on registers of bfloat, each as two registers of float.
        """
        if self.is_half_arithmetic(types, target):
            return bits_of(HALF)
        if self.callee != "llvm.fma" and all(scalar_of(t) == BFLOAT for t in types):
            return bits_of(BFLOAT)
        return max((working_bits(t, moved=self.opcode in _MOVES) for t in types), default=1)


def working_bits(type_: Type, *, moved: bool) -> int:
    """Width in bits at which elements of a type (or vector) are computed, or only `moved`."""
    element = scalar_of(type_)
    if element in (BFLOAT, HALF):
        return 16 if moved else 32
    return bits_of(element)


def unary_bits(name: str, type_: Type, target: Target) -> int:
    """Width in bits at which a target computes a unary tensor operation on a type; `relu` compares bits of half."""
    element = scalar_of(type_)
    in_half = name == "relu" or f"llvm.{name}" in _HALF_ARITHMETIC
    moved = element == BFLOAT or (element == HALF and target.computes_half and in_half)
    return working_bits(type_, moved=moved)


def is_mask(type_: Type) -> bool:
    """Whether elements are i1."""
    return scalar_of(type_) == IntType(1)


MIN_MAX: Final = frozenset({"max", "min"})


def emit_combine(b: Builder, operation: str, x: Value, y: Value) -> Value:
    """Combine two values by add, mul, max, min, and, or or xor; max and min give NaN if `x` or `y` is NaN."""
    best = emit_combine_ordered(b, operation, x, y)
    if operation not in MIN_MAX or not _are_floats(x):
        return best
    return b.select(emit_fcmp(b, "uno", x, x), x, best, "acc")


def emit_combine_ordered(b: Builder, operation: str, x: Value, y: Value, *, signed: bool = True) -> Value:
    """Combine two values that are not NaN; max and min of integers are signed unless `signed` is false."""
    if operation not in MIN_MAX:
        return b.binary(f"f{operation}" if _are_floats(x) and operation in ("add", "mul") else operation, x, y, "acc")
    sense = "gt" if operation == "max" else "lt"
    if _are_floats(x):
        return b.select(emit_fcmp(b, f"o{sense}", x, y), x, y, "acc")
    return b.select(b.icmp(f"{'s' if signed else 'u'}{sense}", x, y), x, y, "acc")


def emit_portable_combine(b: Builder, operation: str, x: Value, y: Value) -> Value:
    """Combine two scalars, vectors or flattened tensors by instructions that the later stages lower."""
    floats = isinstance(scalar_of(x.type), FloatType)
    if operation not in MIN_MAX:
        opcode = f"f{operation}" if floats and operation in ("add", "mul") else operation
        return b.binary(opcode, x, y, operation)
    if floats:
        return b.call_intrinsic(f"llvm.{operation}imum", [x.type], x.type, [x, y])
    return b.select(b.icmp("sgt" if operation == "max" else "slt", x, y), x, y)


def bfloat_as_float(b: Builder, bits: Value) -> Value:
    """A bfloat, or a vector of them, given by its bits, as float: a bfloat is the upper half of a float."""
    wide = b.cast("zext", bits, _like(bits.type, I32))
    return b.cast("bitcast", b.binary("shl", wide, _words(bits.type, 16)), _like(bits.type, FLOAT))


def round_to_bfloat(b: Builder, value: Value) -> Value:
    """The bits of a float, or of a vector of floats, rounded to bfloat, to nearest even; NaN keeps its upper bits."""
    words, halves, flags = (_like(value.type, element) for element in (I32, I16, I1))
    number = partial(_words, value.type)
    bits = b.cast("bitcast", value, words)
    odd = b.binary("and", b.binary("lshr", bits, number(16)), number(1))
    rounded = b.binary("add", bits, b.binary("add", odd, number(0x7FFF)))
    quiet = b.binary("or", bits, number(0x400000))
    is_nan = b.value("fcmp", flags, [value, value], f"fcmp uno {value.typed}, {value}")
    return b.cast("trunc", b.binary("lshr", b.select(is_nan, quiet, rounded), number(16)), halves)


def _like(shape: Type, element: Type) -> Type:
    """A type of as many elements as another one."""
    return VectorType(shape.count, element) if isinstance(shape, VectorType) else element


def _words(shape: Type, number: int) -> Value:
    """A number as an i32 for each element of a type."""
    return const_ints(I32, [number] * shape.count) if isinstance(shape, VectorType) else const_int(I32, number)


def emit_scalar_truncation(b: Builder, value: Value, to: Type) -> Value:
    """`fptrunc` of a scalar; to bfloat by integer arithmetic, since some backends cannot select its store (PowerPC)."""
    if to != BFLOAT or value.type != FLOAT:
        return b.cast("fptrunc", value, to)
    return b.cast("bitcast", round_to_bfloat(b, value), to)


def combine_identity(operation: str, element: Type) -> Constant:
    """The identity element of `operation`: -0 for sums of floats, since -0 + -0 is -0."""
    if isinstance(element, FloatType):
        return const_float(element, {"add": -0.0, "mul": 1.0, "max": float("-inf"), "min": float("inf")}[operation])
    assert isinstance(element, IntType)
    least = -(1 << (element.bits - 1))
    numbers = {"add": 0, "mul": 1, "max": least, "min": -least - 1, "and": -1, "or": 0, "xor": 0}
    return ConstInt(element, numbers[operation])


def emit_fcmp(b: Builder, predicate: str, x: Value, y: Value) -> Value:
    """`fcmp`."""
    type_ = VectorType(x.type.count, I1) if isinstance(x.type, VectorType) else I1
    return ElementwiseOp("fcmp", (), predicate).emit(b, type_, [x, y], "cmp")


def _are_floats(x: Value) -> bool:
    return isinstance(x.type, VectorType) and isinstance(x.type.element, FloatType)


MMA_SIGNS: Final[dict[str, tuple[Sign, Sign]]] = {
    "umma": ("u", "u"),
    "smma": ("s", "s"),
    "mma": ("s", "s"),
    "usmma": ("u", "s"),
    "summa": ("s", "u"),
}
PRODUCT_SIGNS: Final[dict[str, tuple[Sign, Sign]]] = {**MMA_SIGNS, "matmul": ("s", "s")}
MMA_NAMES: Final[dict[tuple[Sign, Sign], str]] = {
    **{MMA_SIGNS[name]: name for name in ("umma", "smma", "usmma", "summa")},
    ("f", "f"): "smma",
}


ELEMENTWISE_INTRINSICS: Final = frozenset(f"llvm.{name}" for name in ELEMENTWISE_FUNCTIONS)
"""LLVM's intrinsics that act element by element."""
