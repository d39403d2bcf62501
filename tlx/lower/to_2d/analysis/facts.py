"""Facts: the analyses of a function, before anything is decided or changed.

A flattened vector is the SSA value of a tensor, `<E x T>`. `FlatVectors` tells which vectors are in memory, which
values are aliases of a vector, and which uses still need an SSA value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

from tlx.diagnostics import LoweringError, Source, Span
from tlx.ir.control_flow import ControlFlow
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.parser.module import named_types
from tlx.ir.rewrite import Use, definitions, uses
from tlx.ir.tensors.calls import is_tensor_call
from tlx.ir.tensors.inference import analyse
from tlx.ir.tensors.model import FunctionTensors, Tensor, TensorOp
from tlx.ir.types import (
    ABI_ELEMENTS,
    I1,
    MAX_SSA_BYTES,
    VOID,
    ArrayType,
    NamedType,
    StructType,
    Type,
    VectorType,
    exceeds_abi,
    exceeds_register,
    size_in_bytes,
)
from tlx.ir.values import Keyword, Local, Value
from tlx.lower.memory.aliases import AliasAnalysis, instruction_positions
from tlx.lower.memory.buffers import PrivateBuffers
from tlx.lower.memory.views import Storage, TensorView
from tlx.lower.to_2d.analysis.tensor_operations import exceeds_register_elements, with_elementwise
from tlx.target.target import Target

SMALL_PHI: Final = 64
"""Largest number of elements of a loop-carried vector that stays a phi."""

Kind = Literal["op", "load", "phi", "register", "constant"]


@dataclass(eq=False)
class FlatVectors:
    """The flattened vectors of a function.

    Attributes:
        function: The function.
        tensors: Its tokens and operations.
        source: The module's text, which defines named types.
        definitions: The instruction that defines each name.
        uses: The uses of each name.
    """

    function: Function
    tensors: FunctionTensors
    source: Source
    _roots: dict[str, Value] = field(default_factory=dict[str, Value])
    _kinds: dict[str, Kind] = field(default_factory=dict[str, Kind])

    def __post_init__(self) -> None:
        self.definitions = definitions(self.function)
        self.uses = uses(self.function)
        self._results = frozenset(self.tensors.result_types())

    @cached_property
    def _named(self) -> dict[str, Type]:
        return named_types(self.source)

    # Kinds -----------------------------------------------------------------------------------------------------

    def kind(self, value: Value) -> Kind:
        """The kind of a root."""
        if not isinstance(value, Local):
            return "constant"
        if value.name not in self._kinds:
            self._kinds[value.name] = self._kind(value.name)
        return self._kinds[value.name]

    def _kind(self, name: str) -> Kind:
        definition = self.definitions.get(name)
        if definition is None:
            return "register"
        if name in self._results:
            return "op"
        unusual = {"volatile", "atomic"} & set(definition.flags) or is_i1_vector(definition.type)
        if definition.opcode == "load" and not unusual:
            return "load"
        if definition.opcode == "phi" and self._is_memory_phi(definition):
            return "phi"
        return "register"

    def _is_memory_phi(self, phi: Instruction) -> bool:
        if exceeds_register(phi.type) or exceeds_register_elements(phi.type):
            return True
        is_large = isinstance(phi.type, VectorType) and phi.type.count > SMALL_PHI
        return is_large and any(self._makes_token(use) for use in self.uses.get(str(phi.result), []))

    def _makes_token(self, use: Use) -> bool:
        instruction = use.instruction
        return instruction.result in self.tensors.tokens and is_tensor_call(instruction) and use.index == 1

    def root(self, value: Value) -> Value:
        """The vector that a value is an alias of, through freeze, bitcast and phis of one value."""
        if not isinstance(value, Local):
            return value
        if value.name not in self._roots:
            self._roots[value.name] = value
            self._roots[value.name] = self._root(value)
        return self._roots[value.name]

    def _root(self, value: Local) -> Value:
        definition = self.definitions.get(value.name)
        source = self._renamed(definition) if definition is not None else None
        if source is None:
            return value
        root = self.root(source)
        return value if self.kind(root) == "register" else root

    def _renamed(self, instruction: Instruction) -> Value | None:
        """The operand of an instruction whose result is the same vector."""
        if not is_numeric_vector(instruction.type):
            return None
        if instruction.opcode == "freeze":
            return instruction.operands[0]
        if instruction.opcode == "bitcast" and _has_same_bytes(instruction.operands[0].type, instruction.type):
            return instruction.operands[0]
        if instruction.opcode == "phi":
            different = {str(v): v for v, _ in instruction.incoming if str(v) != f"%{instruction.result}"}
            return next(iter(different.values())) if len(different) == 1 else None
        return None

    def is_renaming(self, instruction: Instruction) -> bool:
        """Whether the result of an instruction is an alias of a vector in memory."""
        return instruction.result is not None and self.root(instruction.value) != instruction.value

    # Uses ------------------------------------------------------------------------------------------------------

    def is_memory_store(self, instruction: Instruction) -> bool:
        """Whether an ordinary store stores a vector that is in memory; it becomes a copy."""
        if instruction.opcode != "store" or {"volatile", "atomic"} & set(instruction.flags):
            return False
        value = instruction.operands[0]
        if not is_numeric_vector(value.type) or is_i1_vector(value.type):
            return False
        kind = self.kind(self.root(value))
        return kind in ("op", "phi") or (
            kind in ("load", "constant") and (exceeds_register(value.type) or exceeds_register_elements(value.type))
        )

    def is_memory_extract(self, instruction: Instruction) -> bool:
        """Whether an `extractelement` reads a large vector in memory."""
        if instruction.opcode != "extractelement":
            return False
        value = instruction.operands[0]
        return self.kind(self.root(value)) != "register" and (
            exceeds_register(value.type) or exceeds_register_elements(value.type)
        )

    def needs_ssa(self, name: str) -> bool:
        """Whether ordinary instructions use a name, or an alias of it, as an SSA value."""
        return next(self.ssa_uses(name), None) is not None

    def ssa_uses(self, name: str) -> Iterator[Use]:
        """The uses of a vector and of its aliases that need an SSA value."""
        names = [name]
        seen = {name}
        for current in names:
            for use in self.uses.get(current, []):
                if self.is_renaming(use.instruction):
                    names.extend({str(use.instruction.result)} - seen)
                    seen.add(str(use.instruction.result))
                elif self._is_ssa_use(use):
                    yield use

    def _is_ssa_use(self, use: Use) -> bool:
        instruction = use.instruction
        if self._makes_token(use) or self.tensors.op_of(instruction) is not None:
            return False
        if instruction.opcode == "phi":
            return self.kind(instruction.value) != "phi"
        if instruction.opcode == "store" and use.index == 0:
            return not self.is_memory_store(instruction)
        return not self.is_memory_extract(instruction)

    # What is not lowered ---------------------------------------------------------------------------------------

    def check(self) -> None:
        """Reject large vectors outside of tensor operations.

        Raises:
            LoweringError: An instruction or a parameter has one; the error points at it.
        """
        for argument in self.function.arguments:
            if exceeds_abi(argument.type) or self._holds_large(argument.type):
                message = f"parameter %{argument.name} of @{self.function.name} is a {argument.type} by value"
                raise _not_lowered(message, "pass a pointer to it, such as ptr byval", self.function.span)
        for instruction in self.function.instructions():
            types = (instruction.type, *(operand.type for operand in instruction.operands))
            large = next((type_ for type_ in types if self._holds_large(type_)), None)
            if large is not None:
                message = f"{instruction.opcode} of {large} is not lowered"
                raise _not_lowered(message, _ADVICE, instruction.span or self.function.span)
            if instruction.result is not None and exceeds_register(instruction.type):
                self._check_result(instruction)

    def _holds_large(self, type_: Type) -> bool:
        """Whether a structure or an array has a vector too large for LLVM's code generator."""
        while isinstance(type_, NamedType):
            type_ = self._named.get(type_.name, VOID)
        if not isinstance(type_, StructType | ArrayType):
            return False
        members = type_.elements if isinstance(type_, StructType) else [type_.element]
        return any(self._holds_large(m) or (isinstance(m, VectorType) and m.count > ABI_ELEMENTS) for m in members)

    def _check_result(self, instruction: Instruction) -> None:
        value = instruction.value
        root = self.root(value)
        if self.kind(root) == "register":
            if instruction.is_call and not exceeds_abi(instruction.type):
                return
            message = f"{instruction.opcode} of {instruction.type} is not lowered yet"
            raise _not_lowered(message, _ADVICE, instruction.span or self.function.span)
        for use in self.ssa_uses(value.name):
            user = use.instruction
            if user.opcode == "phi":
                continue
            if (user.opcode == "ret" or user.is_call) and not exceeds_abi(instruction.type):
                continue
            message = f"{user.opcode} of {instruction.type} is not lowered yet"
            raise _not_lowered(message, _ADVICE, user.span or self.function.span)


_ADVICE: Final = (
    f"vectors of more than {MAX_SSA_BYTES} bytes are loaded, stored, computed with element by element, passed between "
    "functions of this module, and used by llvm.tensor.*"
)


def _not_lowered(message: str, advice: str, span: Span | None) -> LoweringError:
    return LoweringError(f"{message}: {advice}", span)


def is_i1_vector(type_: Type) -> bool:
    """Whether a type is a vector of i1, which ordinary loads and stores pack into bits."""
    return isinstance(type_, VectorType) and type_.element == I1


def _has_same_bytes(source: Type, to: Type) -> bool:
    """Whether a bitcast keeps a vector's bytes in memory, where i1 elements take one byte each."""
    if not isinstance(source, VectorType) or not isinstance(to, VectorType) or not is_numeric_vector(source):
        return False
    return source == to or I1 not in (source.element, to.element)


def is_numeric_vector(type_: Type) -> bool:
    """Whether a type is a vector of a known size in bytes."""
    return size_in_bytes(type_) is not None


@dataclass(eq=False)
class Facts:
    """The analyses of one function.

    Attributes:
        module: The module.
        function: The function.
        target: The machine that the function is lowered for.
        buffers: The private buffers of the function.
        tensors: Tokens and operations, including ordinary instructions on tensors.
        vectors: The flattened vectors.
        flow: The control flow graph.
        aliases: The alias analysis; a tensor store writes all bytes that its tensor spans.
        positions: Block and index of each instruction, by the instruction's id.
    """

    module: Module
    function: Function
    target: Target
    buffers: PrivateBuffers

    def __post_init__(self) -> None:
        self.tensors = with_elementwise(self.function, analyse(self.module, self.function))
        self.vectors = FlatVectors(self.function, self.tensors, self.module.source)
        self.flow = ControlFlow(self.function)
        sizes = {id(op.instruction): store_view(op).spanned_bytes for op in self.tensors.ops if op.pointer is not None}
        private = frozenset(buffer.pointer.name for buffer in self.buffers.buffers)
        self.aliases = AliasAnalysis(self.module, self.function, self.flow, sizes, private)
        self.positions = instruction_positions(self.function)

    def op_of(self, root: Local) -> TensorOp:
        """The operation that defines a vector."""
        op = self.tensors.op_of(self.vectors.definitions[root.name])
        assert op is not None
        return op

    def is_zero(self, tensor: Tensor) -> bool:
        """Whether a tensor is a zero constant, or undefined, which zeros may replace."""
        return tensor.kind == "value" and isinstance(self.vectors.root(tensor.source), Keyword)


def store_view(op: TensorOp) -> TensorView:
    """The memory that a tensor store writes."""
    assert op.pointer is not None
    return TensorView.of(Storage(op.pointer), op.tensors[0].type, op.pitches)
