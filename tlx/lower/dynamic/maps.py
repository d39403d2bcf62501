"""Elementwise instructions on handles: expressions become one loop each.

    %s = fmul <vscale x 1 x float> %a, splat (float 2.0)
    %d = fadd <vscale x 1 x float> %s, %b                      only %d is used by anything but one such instruction
    ->
    call void @tlx.dynamic.map.d(ptr %d, ptr %a, ptr %b, i64 %count, float 2.0)

    for (; i + 16 <= count; i += 16) { <16 x float> ... }  for (; i < count; i++) { float ... }

Comparisons that end up in memory take a byte an element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tlx.ir.dynamic_handles import is_handle_type, uniform_scalar
from tlx.ir.module import Instruction
from tlx.ir.rewriter import Use, definitions, uses
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I1, I8, Type, VectorType, bits_of, bytes_of
from tlx.ir.values import Constant, ConstFloat, ConstInt, Local, Value
from tlx.lower.dynamic.expressions import Expression, Leaf, Scalar, emit, needs_own_math, operand_types
from tlx.lower.dynamic.helpers import To, numbers
from tlx.lower.dynamic.numbers import number
from tlx.lower.dynamic.views import Flat
from tlx.types import TensorType

if TYPE_CHECKING:
    from tlx.lower.dynamic.rewrite import Expansion

CHUNK: Final = 256


@dataclass(eq=False)
class Maps:
    """The elementwise instructions of one function."""

    expansion: Expansion
    _pending: dict[str, Instruction] = field(default_factory=dict[str, Instruction])
    _numbers: int = 0

    def __post_init__(self) -> None:
        self._definitions = definitions(self.expansion.function)
        self._uses = uses(self.expansion.function)
        self._blocks = {id(i): b.name for b in self.expansion.function.blocks for i in b.instructions}

    def visit(self, instruction: Instruction) -> None:
        """Compute an instruction now, or with its only user."""
        if self._is_fused(instruction) or instruction.result in self.expansion.decisions.maps:
            self._pending[str(instruction.result)] = instruction
        elif self._uses.get(str(instruction.result)):
            self._emit(instruction)

    def _is_fused(self, instruction: Instruction) -> bool:
        """Whether the only user is an elementwise instruction in the same block."""
        used: list[Use] = self._uses.get(str(instruction.result), [])
        if len(used) != 1 or used[0].instruction.opcode == "phi":
            return False
        user = used[0].instruction
        handles, dynamic = self.expansion.tensors.dynamic.handles, self.expansion.tensors.dynamic
        same_block = self._blocks[id(user)] == self._blocks[id(instruction)]
        return same_block and user.result in handles and dynamic.op_of(user) is None and self._size(instruction) < 32

    def _size(self, instruction: Instruction) -> int:
        """Instructions in an expression."""
        parts = [self._pending.get(o.name) for o in instruction.operands if isinstance(o, Local)]
        return 1 + sum(self._size(part) for part in parts if part is not None)

    def emit_at(self, name: str, pointer: Value, count: Value) -> None:
        """Compute an instruction that waited for its store, and write it there.

        Args:
            name: Of the instruction.
            pointer: Where to.
            count: How many elements the store takes.
        """
        self._emit(self._pending.pop(name), pointer, count)

    def _emit(self, root: Instruction, target: Value | None = None, count: Value | None = None) -> None:
        e = self.expansion
        expression = Expression([], [], [])
        self._collect(root, expression)
        flats = [e.flats[leaf.name] for leaf in expression.leaves]
        for flat in flats[1:]:
            e.checks.compare("eq", flats[0].count, flat.count)
        if count is not None:
            e.checks.compare("eq", flats[0].count, count)
        e.checks.emit()
        assert isinstance(root.type, VectorType)
        element = I8 if root.type.element == I1 else root.type.element
        out = e.new_flat(root, flats[0].count, element) if target is None else Flat(target, flats[0].count, element)
        parameters: list[tuple[str, Type]] = [("to", To(out.element))]
        parameters += [(f"leaf{k}", To(flat.element)) for k, flat in enumerate(flats)]
        parameters += [*numbers("count"), *((f"s{k}", s.value.type) for k, s in enumerate(expression.scalars))]
        args = [out.pointer, *(f.pointer for f in flats), out.count, *(s.value for s in expression.scalars)]

        def build(inner: TensorBuilder, p: dict[str, Local]) -> None:
            _Loops(inner, p, expression, root).run()

        name = f"map.{e.function.name}.{root.result}".replace('"', "")
        e.helpers.call(e.b, name, parameters, args, build)

    def _collect(self, instruction: Instruction, expression: Expression) -> None:
        """Put an instruction and what is fused into it into an expression, operands first."""
        for operand in operand_types(instruction):
            fused = self._pending.pop(operand.name, None) if isinstance(operand, Local) else None
            if fused is not None:
                self._collect(fused, expression)
            elif isinstance(operand, Local) and operand.name in self.expansion.tensors.dynamic.handles:
                self.expansion.flats.setdefault(operand.name, self.expansion.flat(operand))
                expression.add_leaf(Leaf(operand.name, operand.type))
            else:
                self._add_scalar(operand, expression)
        expression.nodes.append(instruction)

    def _add_scalar(self, operand: Value, expression: Expression) -> None:
        scalar = uniform_scalar(operand, self._definitions) if is_handle_type(operand.type) else operand
        assert scalar is not None, operand
        if isinstance(scalar, Constant):
            expression.constants[str(operand.typed)] = scalar
        else:
            expression.add_scalar(Scalar(str(operand.typed), scalar))

    def remove_splats(self) -> None:
        """Take out scalable vectors that only were splats for handles."""
        function = self.expansion.function
        changed = True
        while changed:
            used = uses(function)
            changed = False
            for block in function.blocks:
                kept = [i for i in block.instructions if not _is_dead_splat(i, used)]
                changed = changed or len(kept) != len(block.instructions)
                block.instructions = kept


def _is_dead_splat(instruction: Instruction, used: dict[str, list[Use]]) -> bool:
    is_part = instruction.opcode in ("insertelement", "shufflevector") and is_handle_type(instruction.type)
    return is_part and not used.get(str(instruction.result))


@dataclass(eq=False)
class _Loops:
    """Fills the helper of an expression."""

    b: TensorBuilder
    p: dict[str, Local]
    expression: Expression
    root: Instruction

    def run(self) -> None:
        b, p = self.b, self.p
        own_math = needs_own_math(self.expression)
        lanes = CHUNK if own_math else self._lanes()
        full = b.binary("and", p["count"], number(-lanes), "full")
        with b.loop(0, full, lanes, name="i") as loop:
            if own_math:
                self._chunk({name: b.gep(t, p[name], loop.index, name) for name, t in self._arrays()})
            else:
                self._step(loop.index, lanes)
        if own_math:
            self._rest(full)
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
        return emit(self.b, self.expression, loaded, scalars, lanes)

    def _chunk(self, pointers: dict[str, Value]) -> None:
        """The same on static tensors, for functions that the later stages expand."""
        b = self.b
        loaded: list[Value] = []
        for name, type_ in self._arrays()[1:]:
            loaded.append(b.tovector(b.tensor_load(pointers[name], TensorType.dense(type_, (CHUNK,)))))
        result = self._computed(loaded, CHUNK)
        assert isinstance(result.type, VectorType)
        token = b.typeinfo(result, TensorType.dense(result.type.element, (CHUNK,)))
        b.tensor_store(pointers["to"], token)

    def _rest(self, full: Value) -> None:
        """Fewer elements than a chunk, in chunks of the function's own that are filled up with ones."""
        b, p = self.b, self.p
        left = b.sub(p["count"], full, "left")
        body, end = b.new_block("rest"), b.new_block("done", b.function.blocks[-1])
        b.branch_if(b.icmp("sgt", left, 0, "any"), body, end)
        b.at_end(body)
        arrays = self._arrays()
        from tlx.ir.types import ArrayType

        chunks = {name: b.retype(b.alloca(ArrayType(CHUNK, t), f"{name}.chunk"), t) for name, t in arrays}
        for name, type_ in arrays[1:]:
            with b.loop(0, CHUNK, name="k") as loop:
                one = _one(type_)
                place = b.gep(one.type, b.retype(chunks[name], one.type), loop.index)
                b.store(one, place, bytes_of(type_))
            b.memcpy(chunks[name], b.gep(type_, p[name], full, name), b.mul(left, bytes_of(type_), "bytes"))
        self._chunk(chunks)
        type_ = arrays[0][1]
        b.memcpy(b.gep(type_, p["to"], full, "to"), chunks["to"], b.mul(left, bytes_of(type_), "bytes"))
        b.branch(end)
        b.at_end(end)


def _one(type_: Type) -> ConstInt | ConstFloat:
    """One; of bfloat, which LLVM 14 does not store, the bits."""
    from tlx.ir.types import BFLOAT, I16, FloatType
    from tlx.ir.values import const_float

    if type_ == BFLOAT:
        return ConstInt(I16, 0x3F80)
    return const_float(type_, 1.0) if isinstance(type_, FloatType) else ConstInt(type_, 1)
