"""A builder of instructions that compute values; operations on constants are folded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tlx.diagnostics import Span
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import declare_function, declare_intrinsic
from tlx.ir.types import (
    I1,
    I32,
    VOID,
    FunctionType,
    IntType,
    Type,
    VectorType,
    bits_of,
    function_of,
    vector_of,
)
from tlx.ir.values import (
    Aggregate,
    ConstInt,
    Global,
    Keyword,
    Local,
    Value,
    as_signed,
    const_int,
    const_ints,
    const_vector,
    fold_integers,
    int_elements,
    is_zeros,
    zero,
)


class ValueBuilder:
    """Inserts instructions that compute values at a point of a function.

    Attributes:
        module: The module of the function.
        function: The function.
        block: The block of the insertion point.
        index: Index in the block at which the next instruction is inserted.
        debug: Metadata attachment of every call, such as `, !dbg !7`.
        span: The user's code from which the inserted instructions are lowered.
        hint: Stem of the names of results for which the caller gives no name.
        bypassed: Shuffles of shuffles that select lanes from their source, which may be without a use now.
    """

    def __init__(
        self, module: Module, function: Function, block: Block | None = None, index: int | None = None
    ) -> None:
        self.module = module
        self.function = function
        self.block: Block = block or function.blocks[-1]
        self.index: int = len(self.block.instructions) if index is None else index
        self.debug = ""
        self.span: Span | None = None
        self.hint = "t"
        self._narrowed: dict[str, Instruction] = {}
        self.bypassed: list[Instruction] = []

    # Emitting --------------------------------------------------------------------------------------------------

    def emit(
        self,
        opcode: str,
        type_: Type,
        operands: Sequence[Value],
        body: str,
        name: str = "",
        source_type: Type | None = None,
    ) -> Instruction:
        """Insert an instruction whose text, after `%name = `, is `body`."""
        result = self.function.names.fresh(name or self.hint) if type_ != VOID else None
        text = f"%{result} = {body}" if result is not None else body
        instruction = Instruction(opcode, type_, list(operands), text, result, source_type=source_type, span=self.span)
        self.block.instructions.insert(self.index, instruction)
        self.index += 1
        return instruction

    def value(self, opcode: str, type_: Type, operands: Sequence[Value], body: str, name: str = "") -> Local:
        """Insert an instruction with a result."""
        return self.emit(opcode, type_, operands, body, name).value

    # Calls ---------------------------------------------------------------------------------------------------

    def call(
        self, callee: Global, type_: FunctionType, args: Sequence[Value], name: str = "", suffix: str = ""
    ) -> Instruction:
        """A call."""
        spelled = ", ".join(a.typed for a in args)
        written = type_ if type_.vararg else type_.result
        trailer = f"{suffix}{self.debug}"
        body = f"call {written} {callee}({spelled}){trailer}"
        instruction = self.emit("call", type_.result, [callee, *args], body, name, source_type=type_)
        instruction.trailer = trailer
        instruction.arg_attributes = ("",) * len(args)
        return instruction

    def call_intrinsic(
        self, name: str, overloads: list[Type], result: Type, args: Sequence[Value], result_name: str = ""
    ) -> Local:
        """A call of an LLVM intrinsic, declared under its mangled name; void calls return a placeholder."""
        type_ = function_of(result, tuple([a.type for a in args]))
        instruction = self.call(declare_intrinsic(self.module, name, overloads, type_), type_, args, result_name)
        return instruction.value if result != VOID else Local(VOID, "")

    def call_named(
        self, name: str, result: Type, args: Sequence[Value], result_name: str = "", attributes: str = ""
    ) -> Instruction:
        """A call to a function by its name; it is declared if it is not yet."""
        type_ = function_of(result, tuple([a.type for a in args]))
        return self.call(declare_function(self.module, name, type_, attributes), type_, args, result_name)

    # Arithmetic ------------------------------------------------------------------------------------------------

    def binary(self, opcode: str, lhs: Value, rhs: Value, name: str = "", flags: str = "") -> Value:
        """`opcode lhs, rhs`; folds trivial integer constants."""
        folded = fold_binary(opcode, lhs, rhs)
        if folded is not None:
            return folded
        words = f"{opcode} {flags}" if flags else opcode
        instruction = self.emit(opcode, lhs.type, [lhs, rhs], f"{words} {lhs.typed}, {rhs}", name)
        instruction.flags = tuple(flags.split())
        return instruction.value

    def add(self, lhs: Value, rhs: IntOrValue, name: str = "") -> Value:
        """Integer sum; a plain int takes the type of `lhs`."""
        return self.binary("add", lhs, as_value(rhs, lhs.type), name)

    def sub(self, lhs: Value, rhs: IntOrValue, name: str = "") -> Value:
        """Integer difference."""
        return self.binary("sub", lhs, as_value(rhs, lhs.type), name)

    def mul(self, lhs: Value, rhs: IntOrValue, name: str = "") -> Value:
        """Integer product."""
        return self.binary("mul", lhs, as_value(rhs, lhs.type), name)

    def icmp(self, predicate: str, lhs: Value, rhs: IntOrValue, name: str = "") -> Local:
        """Integer or pointer comparison."""
        other = as_value(rhs, lhs.type)
        type_ = VectorType(lhs.type.count, I1) if isinstance(lhs.type, VectorType) else I1
        instruction = self.emit("icmp", type_, [lhs, other], f"icmp {predicate} {lhs.typed}, {other}", name)
        instruction.predicate = predicate
        return instruction.value

    def select(self, condition: Value, first: Value, second: Value, name: str = "") -> Local:
        """`select condition, first, second`."""
        operands = [condition, first, second]
        return self.value("select", first.type, operands, f"select {', '.join(o.typed for o in operands)}", name)

    def ceil_div(self, lhs: Value, rhs: IntOrValue, name: str = "") -> Value:
        """`ceil(lhs / rhs)` of two unsigned numbers."""
        divisor = as_value(rhs, lhs.type)
        return self.binary("udiv", self.add(lhs, self.sub(divisor, 1)), divisor, name)

    def umin(self, lhs: Value, rhs: IntOrValue, name: str = "") -> Value:
        """The smaller of two unsigned numbers, by compare and select."""
        other = as_value(rhs, lhs.type)
        if isinstance(lhs, ConstInt) and isinstance(other, ConstInt):
            return lhs if lhs.unsigned <= other.unsigned else other
        return self.select(self.icmp("ult", lhs, other), lhs, other, name)

    def cast(self, opcode: str, value: Value, type_: Type, name: str = "") -> Value:
        """A conversion; the value itself if the types are equal."""
        if value.type == type_:
            return value
        return self.value(opcode, type_, [value], f"{opcode} {value.typed} to {type_}", name)

    def fma(self, a: Value, b: Value, c: Value, name: str = "") -> Local:
        """`a * b + c`, rounded once."""
        return self.call_intrinsic("llvm.fma", [a.type], a.type, [a, b, c], name)

    # Vectors ---------------------------------------------------------------------------------------------------

    def insert_element(self, vector: Value, element: Value, index: int, name: str = "") -> Local:
        """`insertelement`."""
        position = const_int(I32, index)
        body = f"insertelement {vector.typed}, {element.typed}, {position.typed}"
        return self.value("insertelement", vector.type, [vector, element, position], body, name)

    def extract_element(self, vector: Value, index: int, name: str = "") -> Local:
        """`extractelement`."""
        type_ = vector.type
        if not isinstance(type_, VectorType):
            message = f"extractelement of {type_}"
            raise TypeError(message)
        position = const_int(I32, index)
        body = f"extractelement {vector.typed}, {position.typed}"
        return self.value("extractelement", type_.element, [vector, position], body, name)

    def shuffle(self, first: Value, second: Value | None, mask: Sequence[int], name: str = "") -> Value:
        """`shufflevector`; negative mask entries are undefined lanes.

        The identity, and what has only zeros, need no instruction. Lanes of a register that was narrowed are selected
        from the register, whose size LLVM compiles in less time.
        """
        type_ = first.type
        if not isinstance(type_, VectorType):
            message = f"shufflevector of {type_}"
            raise TypeError(message)
        if tuple(mask) == tuple(range(type_.count)):
            return first
        if is_zeros(first) and (second is None or is_zeros(second)):
            return zero(vector_of(len(mask), type_.element))
        narrowed = self._narrowed.get(first.name) if isinstance(first, Local) and second is None else None
        if narrowed is not None:
            self.bypassed.append(narrowed)
            return self._widened(narrowed, mask, name)
        other = second if second is not None else Keyword(type_, "undef")
        lanes = _shuffle_mask(tuple(mask))
        body = f"shufflevector {first.typed}, {other.typed}, {lanes.typed}"
        result = vector_of(len(mask), type_.element)
        shuffle = self.emit("shufflevector", result, [first, other, lanes], body, name)
        if second is None and len(mask) < type_.count and len(mask) & (len(mask) - 1) and min(mask) >= 0:
            self._narrowed[str(shuffle.result)] = shuffle
        return shuffle.value

    def _widened(self, narrowed: Instruction, mask: Sequence[int], name: str) -> Value:
        """Lanes of a register that was narrowed, selected from the register itself."""
        register, selected = narrowed.operands[0], int_elements(narrowed.operands[2])
        assert isinstance(register.type, VectorType)
        assert selected is not None
        lanes = [selected[lane] if 0 <= lane < len(selected) else -1 for lane in mask]
        if len(lanes) == register.type.count and all(lane in (-1, place) for place, lane in enumerate(lanes)):
            return register
        return self.shuffle(register, None, lanes, name)

    def splat(self, scalar: Value, count: int, name: str = "") -> Value:
        """A vector with every lane `scalar`."""
        type_ = VectorType(count, scalar.type)
        if isinstance(scalar, ConstInt):
            return const_vector([scalar] * count)
        first = self.insert_element(Keyword(type_, "undef"), scalar, 0)
        return self.shuffle(first, None, [0] * count, name)


def fold_binary(opcode: str, lhs: Value, rhs: Value) -> Value | None:
    """`opcode lhs, rhs` folded, for integer constants or a neutral element; None if an instruction is needed."""
    if not isinstance(rhs, ConstInt):
        return fold_binary(opcode, rhs, lhs) if opcode in ("add", "mul") and isinstance(lhs, ConstInt) else None
    if isinstance(lhs, ConstInt):
        width = bits_of(lhs.type)
        number = fold_integers(opcode, lhs.value, rhs.value, width)
        return ConstInt(lhs.type, as_signed(number, width)) if number is not None else None
    if (opcode in ("add", "sub") and rhs.value == 0) or (opcode in ("mul", "udiv") and rhs.value == 1):
        return lhs
    return rhs if opcode == "mul" and rhs.value == 0 else None


@lru_cache(maxsize=4096)
def _shuffle_mask(lanes: tuple[int, ...]) -> Aggregate:
    """The mask operand of a `shufflevector`; negative lanes are undefined."""
    return const_vector([const_int(I32, lane) if lane >= 0 else Keyword(I32, "undef") for lane in lanes])


IntOrValue = int | Value


def as_value(number: IntOrValue, type_: Type) -> Value:
    """A number as a constant of a type, in every lane of a vector."""
    if isinstance(number, int):
        if isinstance(type_, VectorType) and isinstance(type_.element, IntType):
            return const_ints(type_.element, [number] * type_.count)
        return ConstInt(type_, number)
    return number
