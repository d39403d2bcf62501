"""The operations of a function: `llvm.tensor.*`, and ordinary LLVM instructions on flattened vectors.

`fadd <E x T>`, comparisons, casts, `select`, `llvm.fma` and the like act element by element. Where their operands are
results of tensor operations, or too large for registers, they are fused and lowered like tensor operations:

    %s = fadd <4096 x float> %m, %b        TensorOp(elementwise, tensors (%m, %b), result <4096 x float>)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NoReturn

from tlx.intrinsics import INTRINSICS, Intrinsic
from tlx.intrinsics.small_floats import CONVERSIONS
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.functions import Function
from tlx.ir.instructions import BINARY_OPCODES, CAST_OPCODES, Instruction
from tlx.ir.rewrite import Use, definitions, uses
from tlx.ir.tensors.calls import ELEMENT_TYPES, is_tensor_call
from tlx.ir.tensors.model import FunctionTensors, Tensor, TensorOp
from tlx.ir.types import FLOAT, Type, VectorType, max_ssa_elements
from tlx.ir.values import Aggregate, Constant, Keyword, Local, Splat, Value, zero
from tlx.lower.operations import ELEMENTWISE_INTRINSICS, UNARY_INTRINSICS, ElementwiseOp
from tlx.lower.to_2d.analysis.shuffles import VectorShuffle, is_shuffle, vector_width

if TYPE_CHECKING:
    from typing import Any

ORDINARY: Final = "elementwise"
INSERT: Final = "insertelement"
SHUFFLE: Final = "shufflevector"
_RENAMES: Final = frozenset({"freeze", "bitcast", "phi"})
_COMPUTED_IN_FLOAT: Final = {*CONVERSIONS, "llvm.fptosi.sat", "llvm.fptoui.sat"}
_VALUE_CASTS: Final = CAST_OPCODES - {"bitcast", "ptrtoint", "ptrtoaddr", "inttoptr", "addrspacecast"}
_ELEMENTWISE_OPCODES: Final = BINARY_OPCODES | _VALUE_CASTS | {"fneg", "icmp", "fcmp", "select"}


def _never(*_arguments: Any) -> NoReturn:
    message = "ordinary instructions have no row in the table of intrinsics"
    raise AssertionError(message)


_ORDINARY_ROW: Final = Intrinsic(ORDINARY, (), "vector", "An ordinary instruction.", _never, _never, "", prefix="")
_INSERT_ROW: Final = Intrinsic(
    INSERT, (), "vector", "A vector with one element replaced.", _never, _never, "", prefix=""
)
_SHUFFLE_ROW: Final = Intrinsic(SHUFFLE, (), "vector", "Elements of vectors.", _never, _never, "", prefix="")


def with_elementwise(function: Function, tensors: FunctionTensors) -> FunctionTensors:
    """The tensors of a function, with the ordinary instructions on them as operations."""
    has_vectors = any(isinstance(i.type, VectorType) and not is_tensor_call(i) for i in function.instructions())
    added = _ElementwiseSearch(function, tensors).run() if has_vectors else {}
    if not added:
        return tensors
    known = {id(op.instruction): op for op in tensors.ops}
    ops = [known.get(id(i)) or added.get(id(i)) for i in function.instructions()]
    return FunctionTensors(tensors.tokens, [op for op in ops if op is not None])


def intrinsic_of(instruction: Instruction) -> str | None:
    """The elementwise intrinsic that is called, as `llvm.fma` for `llvm.fma.v4f32`; None for any other instruction."""
    operation = ElementwiseOp.of(instruction) if instruction.opcode == "call" else None
    return operation.callee if operation is not None and operation.callee in ELEMENTWISE_INTRINSICS else None


def is_elementwise(instruction: Instruction) -> bool:
    """Whether an instruction computes each element of a vector from the same element of its operands."""
    type_ = instruction.type
    if instruction.result is None or not isinstance(type_, VectorType) or type_.scalable:
        return False
    if not is_element_type(type_.element):
        return False
    if not all(_fits(operand.type, type_.count) for operand in call_operands(instruction)):
        return False
    return instruction.opcode in _ELEMENTWISE_OPCODES or bool(intrinsic_of(instruction))


def call_operands(instruction: Instruction) -> list[Value]:
    """The operands of an instruction; of a call, its arguments."""
    return instruction.args if instruction.is_call else instruction.operands


def _fits(type_: Type, count: int) -> bool:
    """Whether a type is a scalar, or a vector of `count` elements."""
    if not isinstance(type_, VectorType):
        return True
    return type_.count == count and not type_.scalable and is_element_type(type_.element)


def is_element_type(type_: Type) -> bool:
    """Whether a tensor can have elements of a type."""
    return type_ in ELEMENT_TYPES


class _ElementwiseSearch:
    """Finds the ordinary instructions on tensors: on results of tensor operations, and on large vectors."""

    def __init__(self, function: Function, tensors: FunctionTensors) -> None:
        self.function = function
        self.tensors = tensors
        self.uses = uses(function)
        self.names = {op.instruction.result for op in tensors.ops if op.instruction.result is not None}
        self.definitions = definitions(function)

    def run(self) -> dict[int, TensorOp]:
        added: dict[int, TensorOp] = {}
        changed = True
        while changed:
            changed = False
            for instruction in self.function.instructions():
                if id(instruction) in added or instruction.result in self.names:
                    continue
                if self._carries(instruction):
                    self.names.add(str(instruction.result))
                elif self._is_on_tensors(instruction):
                    added[id(instruction)] = self._op(instruction)
                    self.names.add(str(instruction.result))
                else:
                    continue
                changed = True
        return added

    def _carries(self, instruction: Instruction) -> bool:
        """Whether the result of an instruction is an alias of a tensor's vector."""
        if instruction.opcode not in _RENAMES or not isinstance(instruction.type, VectorType):
            return False
        if instruction.opcode == "phi" and not exceeds_register_elements(instruction.type):
            return False
        return any(isinstance(v, Local) and v.name in self.names for v in instruction.operands)

    def _is_on_tensors(self, instruction: Instruction) -> bool:
        if instruction.opcode == INSERT:
            return exceeds_register_elements(instruction.type)
        if is_large_shuffle(instruction):
            return True
        if not is_elementwise(instruction):
            return False
        if _computes_large_vectors(instruction):
            return True
        return any(isinstance(v, Local) and v.name in self.names for v in _vector_operands(instruction))

    def _op(self, instruction: Instruction) -> TensorOp:
        vector = instruction.type
        assert isinstance(vector, VectorType)
        if is_shuffle(instruction):
            vectors = [(v, VectorType(vector_width(v), vector.element)) for v in VectorShuffle.of(instruction).operands]
            tensors = [Tensor(_flat(type_), instruction, "value", v) for v, type_ in vectors]
            return TensorOp(instruction, _SHUFFLE_ROW, tuple(tensors), (), (), _flat(vector))
        tensors = [
            Tensor(_flat(v.type), instruction, "value", v)
            for v in call_operands(instruction)
            if isinstance(v.type, VectorType)
        ]
        if instruction.opcode == INSERT:
            return TensorOp(
                instruction, _INSERT_ROW, tuple(tensors), (), tuple(instruction.operands[1:]), _flat(vector)
            )
        return TensorOp(instruction, _ORDINARY_ROW, tuple(tensors), (), (), self._type(instruction))

    def _type(self, instruction: Instruction) -> TensorType:
        """The tensor type of the result if all its users agree on one, else the flattened vector."""
        vector = instruction.type
        assert isinstance(vector, VectorType)
        tokens = [self._token(use) for use in self.uses.get(str(instruction.result), [])]
        types = [None if token is None else token.type for token in tokens]
        first = types[0] if types else None
        if first is not None and all(type_ == first for type_ in types):
            return first
        return _flat(vector)

    def _token(self, use: Use) -> Tensor | None:
        return self.tensors.tokens.get(use.instruction.result or "")


def _flat(vector: VectorType) -> TensorType:
    return TensorType.dense(vector.element, (vector.count,))


def exceeds_register_elements(type_: Type) -> bool:
    """Whether a vector is too large for ordinary instructions to compute with it as an SSA value."""
    if not isinstance(type_, VectorType) or type_.scalable or not is_element_type(type_.element):
        return False
    return type_.count > max_ssa_elements(type_.element)


def _computes_large_vectors(instruction: Instruction) -> bool:
    """Whether an elementwise instruction has a vector that is too large for an SSA value.

    Conversions from and to 8-bit floats, and from half to integers with saturation, compute in float.
    """
    result = instruction.type
    types = [result, *(value.type for value in _vector_operands(instruction))]
    if isinstance(result, VectorType) and intrinsic_of(instruction) in _COMPUTED_IN_FLOAT:
        types.append(VectorType(result.count, FLOAT))
    return any(map(exceeds_register_elements, types))


def _vector_operands(instruction: Instruction) -> list[Value]:
    return [value for value in call_operands(instruction) if isinstance(value.type, VectorType)]


def is_large_shuffle(instruction: Instruction) -> bool:
    """Whether an instruction shuffles vectors, and one of them or its result is too large to be an SSA value."""
    vectors = instruction.args if instruction.is_call else instruction.operands[:2]
    return is_shuffle(instruction) and any(
        exceeds_register_elements(value.type) for value in (instruction.value, *vectors)
    )


def splat_value(value: Value, definitions: dict[str, Instruction]) -> Value | None:
    """The scalar that is splat to a vector; None if elements may differ. Undefined elements count as zeros.

    Args:
        value: The vector.
        definitions: The instruction that defines each name.
    """
    type_ = value.type
    assert isinstance(type_, VectorType)
    if isinstance(value, Keyword):
        return zero(type_.element)
    if isinstance(value, Splat):
        return value.element
    if isinstance(value, Aggregate):
        return value.elements[0] if _all_equal(value.elements) else None
    definition = definitions.get(value.name) if isinstance(value, Local) else None
    return None if definition is None else _splat_scalar(definition, definitions)


def only_element(value: Value, definitions: dict[str, Instruction]) -> Value | None:
    """The scalar in a vector of one element, if it is an SSA value or a constant."""
    definition = definitions.get(value.name) if isinstance(value, Local) else None
    if definition is not None and definition.opcode == "insertelement":
        return definition.operands[1]
    return splat_value(value, definitions)


def _all_equal(elements: Sequence[Value]) -> bool:
    return all(element == elements[0] for element in elements) and isinstance(elements[0], Constant)


def _splat_scalar(instruction: Instruction, definitions: dict[str, Instruction]) -> Value | None:
    """The scalar of `shufflevector (insertelement undef, s, 0), undef, zeroinitializer`."""
    if instruction.opcode != "shufflevector" or not _is_zero_mask(instruction.operands[2]):
        return None
    source = instruction.operands[0]
    if not isinstance(source, Local):
        return splat_value(source, definitions)
    inserted = definitions.get(source.name)
    if inserted is None or inserted.opcode != "insertelement" or str(inserted.operands[2]) != "0":
        return None
    return inserted.operands[1]


def _is_zero_mask(mask: Value) -> bool:
    """Whether a shuffle takes lane 0 only."""
    if isinstance(mask, Keyword):
        return True
    if isinstance(mask, Splat):
        return str(mask.element) == "0"
    return isinstance(mask, Aggregate) and all(str(e) in ("0", "undef", "poison") for e in mask.elements)


MMA: Final = frozenset({"umma", "smma", "usmma", "summa"})
POINTWISE: Final = UNARY_INTRINSICS | {ORDINARY}
PRODUCTS: Final = frozenset(row.name for row in INTRINSICS if row.is_product)
"""The operations that multiply and add."""
STAGE: Final = "to-2d"


def operation_title(op: TensorOp) -> str:
    """The name of an operation in remarks: its intrinsic, or an ordinary instruction's opcode or `llvm.*` function."""
    if op.intrinsic.name != ORDINARY:
        return op.intrinsic.name
    operation = ElementwiseOp.of(op.instruction)
    return operation.title if operation is not None else op.instruction.opcode
