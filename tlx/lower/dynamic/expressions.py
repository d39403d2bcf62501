"""Expressions of elementwise instructions, written again for vectors of another length, or for single elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.dynamic_handles import elementwise_name, is_handle_type
from tlx.ir.module import Instruction
from tlx.ir.opcodes import BINARY, CASTS
from tlx.ir.rewriter import declare
from tlx.ir.types import BFLOAT, I1, I8, FunctionType, Type, VectorType
from tlx.ir.values import Constant, Keyword, Local, Value

_OWN_MATH: Final = frozenset("exp exp2 exp10 log log2 log10 sin cos tan tanh sinh cosh asin acos atan pow".split())
_TRAPPING: Final = frozenset({"udiv", "sdiv", "urem", "srem"})


@dataclass(frozen=True)
class Leaf:
    """A handle that an expression reads."""

    name: str
    type: Type

    @property
    def element(self) -> Type:
        """Type of its elements."""
        assert isinstance(self.type, VectorType)
        return self.type.element


@dataclass(frozen=True)
class Scalar:
    """A number that is the same for all elements: how the operand is spelled, and the number."""

    operand: str
    value: Value


@dataclass
class Expression:
    """Elementwise instructions, operands before their users; the last is the root.

    Attributes:
        nodes: The instructions.
        leaves: The handles they read.
        scalars: Numbers that are known only at run time.
        constants: Constants, by how the operand is spelled.
    """

    nodes: list[Instruction]
    leaves: list[Leaf]
    scalars: list[Scalar]
    constants: dict[str, Constant] = field(default_factory=dict[str, Constant])

    def add_leaf(self, leaf: Leaf) -> None:
        """Note a handle, once."""
        if leaf not in self.leaves:
            self.leaves.append(leaf)

    def add_scalar(self, scalar: Scalar) -> None:
        """Note a number, once."""
        if scalar not in self.scalars:
            self.scalars.append(scalar)


def operand_types(instruction: Instruction) -> list[Value]:
    """The operands of an elementwise instruction, without the callee."""
    return instruction.args if instruction.is_call else instruction.operands


def needs_own_math(expression: Expression) -> bool:
    """Whether an expression has what the later stages expand (and nothing that traps on odd numbers).

    That is functions, and bfloat, which LLVM 14 does not convert and later ones convert by calls.
    """
    if any(node.opcode in _TRAPPING for node in expression.nodes):
        return False
    return any(elementwise_name(node) in _OWN_MATH or _has_bfloat(node) for node in expression.nodes)


def _has_bfloat(node: Instruction) -> bool:
    types = [node.type, *(operand.type for operand in operand_types(node))]
    return any(isinstance(t, VectorType) and t.element == BFLOAT for t in types)


def emit(
    b: Builder, expression: Expression, loaded: Sequence[Value], scalars: dict[str, Local], lanes: int | None
) -> Value:
    """Compute an expression.

    Args:
        b: Where.
        expression: What.
        loaded: The leaves as they lie in memory: i8 for i1.
        scalars: The numbers known at run time, by `s` and their position.
        lanes: Length of the vectors; None for single elements.

    Returns:
        The root as it lies in memory.
    """
    values: dict[str, Value] = {}
    for leaf, value in zip(expression.leaves, loaded, strict=True):
        is_bit = leaf.element == I1
        values[leaf.name] = b.cast("trunc", value, _typed(leaf.type, lanes)) if is_bit else value
    writer = _Writer(b, expression, values, scalars, lanes)
    result: Value = Keyword(I8, "undef")
    for node in expression.nodes:
        result = values[str(node.result)] = writer.write(node)
    root = expression.nodes[-1].type
    is_bit = isinstance(root, VectorType) and root.element == I1
    return b.cast("zext", result, VectorType(lanes, I8) if lanes else I8) if is_bit else result


def _typed(type_: Type, lanes: int | None) -> Type:
    """The type that takes the place of `<vscale x 1 x T>`."""
    if not is_handle_type(type_) or not isinstance(type_, VectorType):
        return type_
    return VectorType(lanes, type_.element) if lanes else type_.element


@dataclass(eq=False)
class _Writer:
    b: Builder
    expression: Expression
    values: dict[str, Value]
    scalars: dict[str, Local]
    lanes: int | None

    def write(self, node: Instruction) -> Value:
        """One instruction."""
        operands = [self._operand(o) for o in operand_types(node)]
        type_ = _typed(node.type, self.lanes)
        if node.opcode == "call":
            return self._call(node, operands, type_)
        return self.b.value(node.opcode, type_, operands, _body(node, operands, type_), str(node.result))

    def _operand(self, operand: Value) -> Value:
        if isinstance(operand, Local) and operand.name in self.values and is_handle_type(operand.type):
            return self.values[operand.name]
        spelled = str(operand.typed)
        names = [f"s{k}" for k, scalar in enumerate(self.expression.scalars) if scalar.operand == spelled]
        scalar: Value = self.scalars[names[0]] if names else self.expression.constants[spelled]
        if not is_handle_type(operand.type) or self.lanes is None:
            return scalar
        if isinstance(scalar, Keyword):
            return Keyword(VectorType(self.lanes, scalar.type), scalar.word)
        return self.b.splat(scalar, self.lanes, "splat")

    def _call(self, node: Instruction, operands: list[Value], type_: Type) -> Value:
        """`llvm.fma.nxv1f32` as `llvm.fma.v16f32` or `llvm.fma.f32`."""
        b = self.b
        name = (node.callee or "").replace("nxv1", f"v{self.lanes}" if self.lanes else "")
        signature = FunctionType(type_, tuple(o.type for o in operands))
        callee = declare(b.module, name, signature)
        flags = "".join(f"{f} " for f in node.flags if f not in ("tail", "notail", "musttail"))
        body = f"call {flags}{type_} {callee}({', '.join(o.typed for o in operands)})"
        call = b.emit("call", type_, [callee, *operands], body, str(node.result), source_type=signature)
        call.arg_attributes = ("",) * len(operands)
        return call.value


def _body(node: Instruction, operands: list[Value], type_: Type) -> str:
    """The text of an instruction behind `%name = `."""
    head = " ".join([node.opcode, *node.flags])
    if node.opcode in BINARY:
        return f"{head} {operands[0].typed}, {operands[1]}"
    if node.opcode in CASTS:
        return f"{head} {operands[0].typed} to {type_}"
    if node.opcode in ("icmp", "fcmp"):
        return f"{head} {node.predicate} {operands[0].typed}, {operands[1]}"
    return f"{head} {', '.join(o.typed for o in operands)}"
