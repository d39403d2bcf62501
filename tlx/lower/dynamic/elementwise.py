"""Elementwise instructions and functions of tensors of run-time size: loops over vectors or static blocks.

An expression of elementwise instructions on handles becomes one loop over vectors, and one over remaining elements:

    %s = fmul <vscale x 1 x float> %a, splat (float 2.0)
    %d = fadd <vscale x 1 x float> %s, %b                      the only use of %s
    ->
    call void @tlx.dynamic.map.d(ptr %d, ptr %a, ptr %b, i64 %count, float 2.0)

    for (; i + 16 <= count; i += 16) { <16 x float> ... }  for (; i < count; i++) { float ... }

An i1 in memory takes a byte.

A function of one tensor is computed in static blocks of 256 elements; the rest of a row is padded with zeros:

define internal void @tlx.dynamic.exp.r2.f32(ptr %to, ptr %from, i64 %e0, i64 %e1, i64 %t0, i64 %f0) {
  for each row:
    for (; j + 256 <= %e1; j += 256) store(%to + j, typeinfo(exp(load(%from + j, <256>))))
    copy the remaining elements to a block of zeros, compute that, copy the result back
}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder import Builder
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import elementwise_name, elementwise_operands, is_handle_type
from tlx.ir.types import BFLOAT, I1, I8, I16, ArrayType, Type, VectorType, bits_of, bytes_of
from tlx.ir.values import Constant, Keyword, Local, Value
from tlx.lower.dynamic.views import SteppedPointer, each_index, i64
from tlx.lower.operations import LIBRARY_FUNCTIONS, MATH_INTRINSICS, ElementwiseOp

_EXPANDED: Final = MATH_INTRINSICS | LIBRARY_FUNCTIONS | {"canonicalize", "lrint", "llrint", "lround", "llround"}
"""Functions that stage 3 expands, or computes in float where LLVM has no correct code for vectors of half."""


@dataclass(frozen=True)
class HandleOperand:
    """A handle that an expression reads."""

    name: str
    type: Type

    @property
    def element(self) -> Type:
        """Type of its elements."""
        assert isinstance(self.type, VectorType)
        return self.type.element


@dataclass(frozen=True)
class UniformOperand:
    """A scalar operand, the same for all elements: the operand's text, and its value."""

    operand: str
    value: Value


@dataclass
class FusedExpression:
    """Elementwise instructions, operands before their users; the last is the root.

    Attributes:
        nodes: The instructions.
        leaves: The handles they read.
        scalars: Numbers that are known only at run time.
        constants: Constants, by the operand's text.
    """

    nodes: list[Instruction]
    leaves: list[HandleOperand]
    scalars: list[UniformOperand]
    constants: dict[str, Constant] = field(default_factory=dict[str, Constant])

    def add_leaf(self, leaf: HandleOperand) -> None:
        """Add a handle unless it is there already."""
        if leaf not in self.leaves:
            self.leaves.append(leaf)

    def add_scalar(self, scalar: UniformOperand) -> None:
        """Add a scalar unless it is there already."""
        if scalar not in self.scalars:
            self.scalars.append(scalar)


def is_expanded(expression: FusedExpression) -> bool:
    """Whether later stages expand a part of an expression.

    These are functions, and bfloat, which LLVM 14 does not convert and later versions convert by calls.
    """
    return any(elementwise_name(node) in _EXPANDED or _has_bfloat(node) for node in expression.nodes)


def _has_bfloat(node: Instruction) -> bool:
    types = [node.type, *(operand.type for operand in elementwise_operands(node))]
    return any(isinstance(t, VectorType) and t.element == BFLOAT for t in types)


def emit_expression(
    b: Builder, expression: FusedExpression, loaded: Sequence[Value], scalars: dict[str, Local], lanes: int | None
) -> Value:
    """Compute an expression.

    Args:
        b: The builder.
        expression: The expression.
        loaded: The leaves in their memory types: i8 for i1.
        scalars: The numbers known at run time, by `s` and their position.
        lanes: Length of the vectors; None for single elements.

    Returns:
        The root in its memory type.
    """
    values: dict[str, Value] = {}
    for leaf, value in zip(expression.leaves, loaded, strict=True):
        is_bit = leaf.element == I1
        values[leaf.name] = b.cast("trunc", value, _with_lanes(leaf.type, lanes)) if is_bit else value
    writer = _ExpressionWriter(b, expression, values, scalars, lanes)
    result: Value = Keyword(I8, "undef")
    for node in expression.nodes:
        result = values[str(node.result)] = writer.write(node)
    root = expression.nodes[-1].type
    is_bit = isinstance(root, VectorType) and root.element == I1
    return b.cast("zext", result, VectorType(lanes, I8) if lanes else I8) if is_bit else result


def _with_lanes(type_: Type, lanes: int | None) -> Type:
    """The type that takes the place of `<vscale x 1 x T>`."""
    if not is_handle_type(type_) or not isinstance(type_, VectorType):
        return type_
    return VectorType(lanes, type_.element) if lanes else type_.element


@dataclass(eq=False)
class _ExpressionWriter:
    b: Builder
    expression: FusedExpression
    values: dict[str, Value]
    scalars: dict[str, Local]
    lanes: int | None

    def write(self, node: Instruction) -> Value:
        """One instruction."""
        operands = [self._operand(o) for o in elementwise_operands(node)]
        operation = ElementwiseOp.of(node)
        assert operation is not None, node.text
        return operation.emit(self.b, _with_lanes(node.type, self.lanes), operands, str(node.result))

    def _operand(self, operand: Value) -> Value:
        if isinstance(operand, Local) and operand.name in self.values and is_handle_type(operand.type):
            return self.values[operand.name]
        text = str(operand.typed)
        names = [f"s{k}" for k, scalar in enumerate(self.expression.scalars) if scalar.operand == text]
        scalar: Value = self.scalars[names[0]] if names else self.expression.constants[text]
        if not is_handle_type(operand.type) or self.lanes is None:
            return scalar
        if isinstance(scalar, Keyword):
            return Keyword(VectorType(self.lanes, scalar.type), scalar.word)
        return self.b.splat(scalar, self.lanes, "splat")


BLOCK: Final = 256


@dataclass(eq=False)
class ExpressionLoops:
    """Emits the body of an expression's helper."""

    b: TensorBuilder
    p: dict[str, Local]
    expression: FusedExpression
    root: Instruction

    def run(self) -> None:
        """Write the loops."""
        b, p = self.b, self.p
        expanded = is_expanded(self.expression)
        lanes = BLOCK if expanded else self._lanes()
        full = b.binary("and", p["count"], i64(-lanes), "full")
        with b.loop(0, full, lanes, name="i") as loop:
            if expanded:
                self._block({name: b.gep(t, p[name], loop.index, name) for name, t in self._arrays()})
            else:
                self._step(loop.index, lanes)
        if expanded:
            self._remainder(full)
            return
        with b.loop(full, p["count"], name="j") as loop:
            self._step(loop.index, None)

    def _arrays(self) -> list[tuple[str, Type]]:
        """Parameters that are arrays, the result first, with their elements in memory."""
        assert isinstance(self.root.type, VectorType)
        types = [("to", self.root.type.element)]
        types += [(f"leaf{k}", leaf.element) for k, leaf in enumerate(self.expression.leaves)]
        return [(name, I8 if t == I1 else t) for name, t in types]

    def _lanes(self) -> int:
        """Elements of a vector: a register of the widest type."""
        widest = max(bits_of(node.type.element) for node in self.expression.nodes if isinstance(node.type, VectorType))
        widest = max([widest, *(bits_of(t) for _, t in self._arrays())])
        return max(4, 512 // max(8, widest))

    def _step(self, index: Value, lanes: int | None) -> None:
        """Load the leaves, compute, store; vectors of `lanes` elements, or one element."""
        b, p = self.b, self.p
        loaded: list[Value] = []
        for name, type_ in self._arrays()[1:]:
            whole = VectorType(lanes, type_) if lanes else type_
            loaded.append(b.load(whole, b.gep(type_, p[name], index, name), bytes_of(type_), "x"))
        result = self._computed(loaded, lanes)
        name, type_ = self._arrays()[0]
        b.store(result, b.gep(type_, p[name], index, name), bytes_of(type_))

    def _computed(self, loaded: Sequence[Value], lanes: int | None) -> Value:
        scalars = {f"s{k}": self.p[f"s{k}"] for k in range(len(self.expression.scalars))}
        return emit_expression(self.b, self.expression, loaded, scalars, lanes)

    def _block(self, pointers: dict[str, Value]) -> None:
        """The same on static tensors, for functions that the later stages expand."""
        b = self.b
        loaded: list[Value] = []
        for name, type_ in self._arrays()[1:]:
            loaded.append(b.tovector(b.tensor_load(pointers[name], TensorType.dense(type_, (BLOCK,)))))
        result = self._computed(loaded, BLOCK)
        assert isinstance(result.type, VectorType)
        token = b.typeinfo(result, TensorType.dense(result.type.element, (BLOCK,)))
        b.tensor_store(pointers["to"], token)

    def _remainder(self, full: Value) -> None:
        """The remaining elements, in blocks on the stack that are padded with the first of them.

        So no division traps on padding that does not on the first element.
        """
        b, p = self.b, self.p
        left = b.sub(p["count"], full, "remaining")
        body, end = b.new_block("rest"), b.new_block("done", b.function.blocks[-1])
        b.branch_if(b.icmp("sgt", left, 0, "has.rest"), body, end)
        b.at_end(body)
        arrays = self._arrays()
        blocks = {name: b.retype(b.alloca(ArrayType(BLOCK, t), f"{name}.chunk"), t) for name, t in arrays}
        for name, type_ in arrays[1:]:
            bits = I16 if type_ == BFLOAT else type_  # LLVM 14 does not load and store bfloat
            first = b.load(bits, b.retype(b.gep(type_, p[name], full, name), bits), bytes_of(type_), "first")
            with b.loop(0, BLOCK, name="k") as loop:
                b.store(first, b.gep(bits, b.retype(blocks[name], bits), loop.index), bytes_of(type_))
            b.memcpy(blocks[name], b.gep(type_, p[name], full, name), b.mul(left, bytes_of(type_), "bytes"))
        self._block(blocks)
        type_ = arrays[0][1]
        b.memcpy(b.gep(type_, p["to"], full, "to"), blocks["to"], b.mul(left, bytes_of(type_), "bytes"))
        b.branch(end)
        b.at_end(end)


@dataclass(eq=False)
class FunctionRows:
    """Emits the body of the helper for a function of one tensor."""

    b: TensorBuilder
    p: dict[str, Local]
    name: str
    element: Type
    rank: int

    def run(self) -> None:
        """Write the loops."""
        b, p = self.b, self.p
        array = ArrayType(BLOCK, self.element)
        padded = b.retype(b.alloca(array, "chunk"), self.element)
        result = b.retype(b.alloca(array, "chunk.result"), self.element)
        outer = range(self.rank - 1)
        pointers = [
            SteppedPointer(p["to"], self.element, [p[f"t{k}"] for k in outer], "to"),
            SteppedPointer(p["from"], self.element, [p[f"f{k}"] for k in outer], "from"),
        ]
        with each_index(b, [p[f"e{k}"] for k in outer], pointers) as (to, source):
            count = p[f"e{self.rank - 1}"]
            full = b.binary("and", count, i64(-BLOCK), "full")
            with b.loop(0, full, BLOCK, name="j") as loop:
                self._block(b.gep(self.element, to, loop.index, "to"), b.gep(self.element, source, loop.index, "from"))
            size = b.mul(b.sub(count, full, "remaining"), bytes_of(self.element), "bytes")
            rest = b.new_block("rest")
            end = b.new_block("row.end", rest)
            b.branch_if(b.icmp("sgt", size, 0, "has.rest"), rest, end)
            b.at_end(rest)
            b.memset(padded, 0, BLOCK * bytes_of(self.element))
            b.memcpy(padded, b.gep(self.element, source, full, "from"), size)
            self._block(result, padded)
            b.memcpy(b.gep(self.element, to, full, "to"), result, size)
            b.branch(end)
            b.at_end(end)

    def _block(self, destination: Value, source: Value) -> None:
        b = self.b
        type_ = TensorType.dense(self.element, (BLOCK,))
        token = b.tensor_load(source, type_)
        b.tensor_store(destination, b.typeinfo(b.unary(self.name, token, type_), type_))
