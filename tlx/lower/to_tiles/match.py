"""Pattern matching: the tree rooted at a store becomes a problem, with the pointers and scalars of its kernel.

A tree is within one block. Each instruction that the stored value depends on becomes a node of an expression, in the
block's order.

Products chained through their accumulators are one product with several terms, if their operands are at constant
distances:

    %p = matmul(load %a, load %b)
    %q = smma(%p, load (%a + 64), load (%b + 512))         one product, two terms: (0, 0) and (64, 512)

A stored shufflevector is a shuffle of lines, one line per load and one step per shufflevector:

    %a = load %p, <1, 8>     %b = load %q, <1, 8>              two lines
    %v = tovector(%a)        %w = tovector(%b)
    %s = shufflevector %v, %w, <0, 1, 2, 3, 12, 13, 14, 15>    first step: blend
    %t = shufflevector %s, undef, <0, 4, 1, 5, 2, 6, 3, 7>     second step: reorder
    store %r, typeinfo(%t, <1, 8>)

A product in a loop also gets its batch strides: how far each iteration advances the kernel's pointers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Final, TypeVar

from tlx.diagnostics import LoweringError
from tlx.intrinsics.small_floats import is_conversion
from tlx.ir.control_flow import FunctionLoops, Loop
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import definitions
from tlx.ir.tensors.conversions import SmallConversion
from tlx.ir.tensors.model import FunctionTensors, Tensor, TensorOp
from tlx.ir.types import FloatType, Type, VectorType, bits_of, bytes_of, scalar_of
from tlx.ir.values import Aggregate, Constant, ConstInt, Keyword, Local, Splat, Value, int_elements, zero
from tlx.lower.context import CALL_COUNTER_ATTRIBUTE
from tlx.lower.operations import PRODUCT_SIGNS, UNARY_INTRINSICS, Accuracy, ElementwiseOp
from tlx.lower.to_tiles.expression import (
    Expression,
    InstructionNode,
    MatrixLeaf,
    MatrixView,
    Node,
    ProductLeaf,
    ScalarLeaf,
    SplatLeaf,
    UnaryNode,
)
from tlx.lower.to_tiles.problem import BatchStrides, Copy, Elementwise, Gemm, LineShuffle, Problem, Reduction
from tlx.target.instructions.dots import Sign


@dataclass(eq=False)
class StoreTree:
    """The tree whose root is a store.

    Attributes:
        value: The expression that it computes.
        pointers: First element and view of each leaf, by the leaves' pointer numbers.
        scalars: The scalars, by their numbers.
        product: Its product, if it has one.
        instructions: Instructions that only compute the value; they are removed with the tree.
    """

    value: Expression
    pointers: list[tuple[Value, MatrixView]]
    scalars: list[Value]
    product: TensorOp | None
    instructions: list[Instruction]


@dataclass(eq=False)
class FunctionSnapshot:
    """A function's instructions as they stood before any of its trees was replaced.

    Attributes:
        function: The function.
        tensors: Its tensors.
        block_of: The block of each instruction, by the instruction's id.
        definitions: The instruction that defines each value, and its number in the function, by the value's name.
    """

    function: Function
    tensors: FunctionTensors
    block_of: dict[int, Block] = field(default_factory=dict[int, Block])
    definitions: dict[str, tuple[int, Instruction]] = field(default_factory=dict[str, tuple[int, Instruction]])

    def __post_init__(self) -> None:
        for block in self.function.blocks:
            for instruction in block.instructions:
                self.block_of[id(instruction)] = block
                if instruction.result is not None:
                    self.definitions[instruction.result] = len(self.block_of), instruction


@dataclass(eq=False)
class TreeReader:
    """Reads the tree whose root is a token.

    Attributes:
        snapshot: The function's instructions.
        store: The store; the tree is in its block.
        root: The token of the value: the stored one, or the one that is reduced.
        nodes: The nodes read so far, with their numbers.
        numbers: The node of each instruction, by its result's name.
        pointers: The number of each leaf's pointer, by its spelling and element type.
        places: First element and view of each pointer.
        scalars: The number of each scalar, by its spelling.
        scalar_values: The scalars, by their numbers.
        product: The tree's product, if it has one.
        inserts: Instructions that put scalars into vectors to broadcast them.
    """

    snapshot: FunctionSnapshot
    store: TensorOp
    root: Tensor
    nodes: dict[Node, int] = field(default_factory=dict[Node, int])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    pointers: dict[tuple[str, Type], int] = field(default_factory=dict[tuple[str, Type], int])
    places: list[tuple[Value, MatrixView]] = field(default_factory=list[tuple[Value, MatrixView]])
    scalars: dict[str, int] = field(default_factory=dict[str, int])
    scalar_values: list[Value] = field(default_factory=list[Value])
    product: TensorOp | None = None
    inserts: list[Instruction] = field(default_factory=list[Instruction])

    def read(self) -> StoreTree:
        """The tree.

        Raises:
            LoweringError: An instruction cannot be part of a tree.
        """
        instructions = self._instructions()
        for instruction in instructions:
            self.numbers[str(instruction.result)] = self._instruction(instruction)
        last = self._number_of_token(self.root)
        rows, cols = self.root.type.extents
        value = Expression(rows, cols, tuple(self.nodes)[: last + 1])
        return StoreTree(value, self.places, self.scalar_values, self.product, [*instructions, *self.inserts])

    def _instructions(self) -> list[Instruction]:
        """The instructions that the value depends on through vectors, in the block's order."""
        block = self.snapshot.block_of[id(self.store.instruction)]
        needed: dict[str, tuple[int, Instruction]] = {}
        pending = self._sources(self.root)
        while pending:
            name = pending.pop()
            if name in needed:
                continue
            number, instruction = self.snapshot.definitions.get(name, (0, None))
            if instruction is None or self.snapshot.block_of[id(instruction)] is not block:
                raise unlowered_operation(self.store)
            needed[name] = number, instruction
            pending += self._dependencies(instruction)
        return [instruction for _, instruction in sorted(needed.values(), key=lambda definition: definition[0])]

    def _dependencies(self, instruction: Instruction) -> list[str]:
        op = self.snapshot.tensors.op_of(instruction)
        if op is None:
            return [o.name for o in instruction.operands if isinstance(o, Local) and isinstance(o.type, VectorType)]
        if op.intrinsic.name in PRODUCT_SIGNS or op.intrinsic.name == "broadcast":
            return []
        return [name for tensor in op.tensors for name in self._sources(tensor)]

    def _sources(self, tensor: Tensor) -> list[str]:
        if tensor.kind == "load":
            return []
        if tensor.kind == "value" and isinstance(tensor.source, Local):
            return [tensor.source.name]
        if tensor.kind == "value" and isinstance(tensor.source, Constant):
            return []
        raise unlowered_operation(self.store)

    # Nodes -----------------------------------------------------------------------------------------------------

    def _node(self, node: Node) -> int:
        return self.nodes.setdefault(node, len(self.nodes))

    def _instruction(self, instruction: Instruction) -> int:
        op = self.snapshot.tensors.op_of(instruction)
        if op is None:
            return self._elementwise(instruction)
        name = op.intrinsic.name
        if name in ("tovector", "transpose"):
            if name == "transpose" and op.dims != ((0, 1),):
                raise unlowered_operation(op)
            return self._number_of_token(op.tensors[0])
        if name == "broadcast":
            return self._broadcast(op)
        if name in PRODUCT_SIGNS and self.product in (None, op):
            self.product = op
            return self._node(ProductLeaf(scalar_of(instruction.type)))
        if name in UNARY_INTRINSICS and op.result is not None and op.result.is_row_major:
            operands, accuracy = (self._number_of_token(op.tensors[0]),), Accuracy.of(instruction)
            return self._node(UnaryNode(op.result.element, name, operands, accuracy))
        raise unlowered_operation(op)

    def _number_of_token(self, tensor: Tensor) -> int:
        if tensor.kind == "load":
            return self._leaf(tensor)
        return self._operand(tensor.source, tensor.definition)

    def _leaf(self, tensor: Tensor) -> int:
        element = tensor.type.element
        key = str(tensor.source), element
        view = MatrixView.of(tensor.type, tensor.pitches).broadcast()
        if key not in self.pointers:
            self.pointers[key] = len(self.pointers)
            self.places.append((tensor.source, view))
        return self._node(MatrixLeaf(element, view, self.pointers[key]))

    def _broadcast(self, op: TensorOp) -> int:
        tensor = op.tensors[0]
        if tensor.kind == "load" and op.dims and op.dims[1] == (0, 1):
            return self._leaf(tensor)
        if tensor.kind != "value" or tensor.type.count != 1 or len(op.dims) != 2:
            raise unlowered_operation(op)
        value = tensor.source
        if isinstance(value, Constant):
            return self._constant(value, op.instruction)
        _, definition = self.snapshot.definitions.get(str(value)[1:], (0, None))
        if definition is None or definition.opcode != "insertelement":
            raise unlowered_operation(op)
        self.inserts.append(definition)
        return self._scalar(definition.operands[1])

    def _scalar(self, value: Value) -> int:
        if isinstance(value, Constant):
            return self._node(SplatLeaf(value.type, value))
        if str(value) not in self.scalars:
            self.scalars[str(value)] = len(self.scalars)
            self.scalar_values.append(value)
        return self._node(ScalarLeaf(value.type, self.scalars[str(value)]))

    def _operand(self, value: Value, user: Instruction) -> int:
        if isinstance(value, Local) and isinstance(value.type, VectorType):
            return self.numbers[value.name]
        if isinstance(value.type, VectorType):
            return self._constant(value, user)
        return self._scalar(value)

    def _constant(self, value: Value, user: Instruction) -> int:
        element = scalar_of(value.type)
        if isinstance(value, Keyword):
            scalar = zero(element) if value.word == "zeroinitializer" else Keyword(element, value.word)
        elif isinstance(value, Splat):
            scalar = value.element
        elif isinstance(value, Aggregate) and len(set(value.elements)) == 1:
            scalar = value.elements[0]
        else:
            raise LoweringError("a constant that is not a splat is not lowered to tiles here", user.span)
        return self._node(SplatLeaf(element, scalar))

    def _elementwise(self, instruction: Instruction) -> int:
        operation = ElementwiseOp.of(instruction)
        if operation is None:
            raise LoweringError(f"'{instruction.opcode}' is not lowered to tiles here", instruction.span)
        values, immediates = ElementwiseOp.operands_of(instruction)
        if any(isinstance(i, Local) for i in immediates):
            raise LoweringError(f"{operation.title} with a variable operand is not lowered to tiles", instruction.span)
        operands = tuple(self._operand(v, instruction) for v in values)
        return self._node(InstructionNode(scalar_of(instruction.type), operation, operands, immediates))


def unlowered_operation(op: TensorOp) -> LoweringError:
    """The error for an operation that stage 1 should not have left."""
    return LoweringError(f"{op.intrinsic.full_name} is not lowered to tiles here", op.instruction.span)


@dataclass(eq=False)
class ShuffleReader:
    """Reads a stored shuffle.

    Attributes:
        snapshot: The function's instructions.
        store: The store of its result.
        last: The shufflevector whose result is stored.
        places: First element and view of each line.
        instructions: Instructions that only compute the result.
    """

    snapshot: FunctionSnapshot
    store: TensorOp
    last: Instruction
    places: list[tuple[Value, MatrixView]] = field(default_factory=list[tuple[Value, MatrixView]])
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    _lines: list[Tensor] = field(default_factory=list[Tensor])
    _steps: list[tuple[Instruction, list[str], tuple[int, ...]]] = field(
        default_factory=list[tuple[Instruction, list[str], tuple[int, ...]]]
    )
    _loaded: dict[str, int] = field(default_factory=dict[str, int])

    def read(self) -> LineShuffle:
        """The shuffle.

        Raises:
            LoweringError: An instruction in it is neither a line nor a step.
        """
        self._value(self.last)
        numbers = dict(self._loaded)
        steps = list[tuple[int, int, tuple[int, ...]]]()
        for instruction, sources, mask in self._steps:
            first, *second = (numbers[name] for name in sources)
            steps.append((first, second[0] if second else -1, mask))
            numbers[instruction.result or ""] = len(self._lines) + len(steps) - 1
        return LineShuffle(tuple(line.type for line in self._lines), tuple(steps), self.store.tensors[0].type)

    @property
    def _refusal(self) -> LoweringError:
        return LoweringError("'shufflevector' is not lowered to tiles here", self.last.span)

    def _value(self, instruction: Instruction) -> None:
        """Read an instruction and, first, the instructions it depends on."""
        if any(instruction is other for other in self.instructions):
            return
        op = self.snapshot.tensors.op_of(instruction)
        if op is not None:
            self._line(op)
        elif instruction.opcode == "shufflevector":
            self._step(instruction)
        else:
            raise self._refusal
        self.instructions.append(instruction)

    def _line(self, op: TensorOp) -> None:
        line = op.tensors[0]
        if op.intrinsic.name != "tovector" or line.kind != "load" or line.type.shape[0] != 1:
            raise self._refusal
        self._loaded[op.instruction.result or ""] = len(self._lines)
        self._lines.append(line)
        self.places.append((line.source, MatrixView.of(line.type, line.pitches)))

    def _step(self, instruction: Instruction) -> None:
        *sources, mask = instruction.operands
        places, names = int_elements(mask), [s.name for s in sources if isinstance(s, Local)]
        if places is None or not names or any(not isinstance(s, Local | Keyword) for s in sources):
            raise self._refusal
        for name in names:
            self._value(self.snapshot.definitions[name][1])
        self._steps.append((instruction, names, places))


@dataclass(eq=False)
class Match:
    """The problem of a tree, with the pointers (and their views) and scalars that its kernel is passed.

    Attributes:
        store: The store that the kernel's call replaces.
        problem: What is computed.
        pointers: Of a product: C, A, B, Acc if there is one, then the epilogue's leaves.
        scalars: Values known at run time.
        consumed: Instructions that only compute the value; they are removed with the tree.
    """

    store: Instruction
    problem: Problem
    pointers: list[tuple[Value, MatrixView]]
    scalars: list[Value]
    consumed: list[Instruction]


def match_store(snapshot: FunctionSnapshot, op: TensorOp) -> Match:
    """Match the tree whose root is a store.

    Raises:
        LoweringError: It is not a tree that stage 1 emits.
    """
    stored = op.tensors[0]
    if op.pointer is None:
        raise unlowered_operation(op)
    out = MatrixView.of(stored.type, op.pitches)
    if stored.kind == "load":
        return _copy(op, stored, (op.pointer, out))
    definition = snapshot.tensors.definition(stored)
    if definition is not None and definition.intrinsic.name == "transpose":
        return _transposed_store(snapshot, op, definition.tensors[0], (op.pointer, out))
    if not stored.type.is_row_major:
        raise unlowered_operation(op)
    if definition is not None and definition.intrinsic.name.startswith("reduce."):
        return _reduction(snapshot, op, definition, (op.pointer, out))
    _, shuffled = snapshot.definitions.get(str(stored.source)[1:], (0, None))
    if shuffled is not None and shuffled.opcode == "shufflevector":
        lines = ShuffleReader(snapshot, op, shuffled)
        return Match(op.instruction, lines.read(), [(op.pointer, out), *lines.places], [], lines.instructions)
    tree = TreeReader(snapshot, op, stored).read()
    if tree.product is not None:
        return _gemm(snapshot, op, tree, (op.pointer, out))
    pointers = [(op.pointer, out), *tree.pointers]
    return Match(op.instruction, Elementwise(out, tree.value), pointers, tree.scalars, tree.instructions)


def _transposed_store(
    snapshot: FunctionSnapshot, op: TensorOp, source: Tensor, destination: tuple[Value, MatrixView]
) -> Match:
    """Match a stored transpose: of a block in memory, or of a product with its epilogue (C is column-major then)."""
    if source.kind == "load":
        return _copy(op, source, destination)
    tree = TreeReader(snapshot, op, source).read()
    if tree.product is None or bits_of(destination[1].element) > bits_of(scalar_of(tree.product.instruction.type)):
        raise unlowered_operation(op)
    return _gemm(snapshot, op, tree, destination)


def _gemm(
    snapshot: FunctionSnapshot,
    store: TensorOp,
    tree: StoreTree,
    destination: tuple[Value, MatrixView],
    reduction: tuple[str, int] | None = None,
) -> Match:
    assert tree.product is not None
    chain = accumulator_chain(snapshot, tree.product)
    op = chain[0]
    initial = list(op.tensors[:-2])
    if initial and initial[0].kind == "value" and isinstance(initial[0].source, Keyword):
        del initial[0]  # zeros
    if any(t.kind != "load" for t in initial):
        raise unlowered_operation(op)
    acc = [(t.source, MatrixView.of(t.type, t.pitches)) for t in initial]
    a, b = product_operands(snapshot, op)
    floats = isinstance(scalar_of(op.instruction.type), FloatType)
    lhs, rhs = _formats(snapshot, op) if floats else PRODUCT_SIGNS[op.intrinsic.name]
    epilogue = tree.value if len(tree.value.nodes) > 1 or reduction else None
    gemm = Gemm(
        a[1],
        b[1],
        destination[1],
        acc[0][1] if acc else None,
        lhs,
        rhs,
        epilogue,
        reduction,
        term_offsets(snapshot, chain),
    )
    pointers = [destination, a, b, *acc, *tree.pointers]
    return Match(store.instruction, gemm, pointers, tree.scalars, tree.instructions)


def _reduction(
    snapshot: FunctionSnapshot, store: TensorOp, op: TensorOp, destination: tuple[Value, MatrixView]
) -> Match:
    """Match a reduction along one axis; along an axis of extent 1 it is a copy."""
    source = op.tensors[0]
    window = op.dims[0]
    axes = [axis for axis, size in enumerate(window) if size > 1]
    whole = all(window[axis] == source.type.extents[axis] for axis in axes)
    if len(axes) > 1 or not whole or not source.type.is_row_major:
        raise unlowered_operation(op)
    tree = TreeReader(snapshot, store, source).read()
    pointers = [destination, *tree.pointers]
    operation = op.intrinsic.name.removeprefix("reduce.")
    if tree.product is not None:
        return _gemm(snapshot, store, tree, destination, (operation, axes[0]) if axes else None)
    if not axes:
        return Match(
            store.instruction, Elementwise(destination[1], tree.value), pointers, tree.scalars, tree.instructions
        )
    reduction = Reduction(destination[1], tree.value, operation, axes[0])
    return Match(store.instruction, reduction, pointers, tree.scalars, tree.instructions)


def _copy(store: TensorOp, source: Tensor, destination: tuple[Value, MatrixView]) -> Match:
    view = MatrixView.of(source.type, source.pitches)
    return Match(store.instruction, Copy(view, destination[1]), [destination, (source.source, view)], [], [])


_STRIPS: Final = 4
"""Rank of a tensor of interleaved rows in strips."""


def accumulator_chain(snapshot: FunctionSnapshot, last: TensorOp) -> list[TensorOp]:
    """The products that are accumulated, in order, from the last one.

    Raises:
        LoweringError: They differ in more than their operands' addresses.
    """
    chain = [last]
    while len(chain[0].tensors) > 2 and (acc := chain[0].tensors[0]).kind == "value":
        before = snapshot.tensors.definition(acc)
        if before is None:
            break
        chain.insert(0, before)
    kinds = {(PRODUCT_SIGNS[op.intrinsic.name], _formats(snapshot, op)) for op in chain}
    shapes = {tuple(view for _, view in product_operands(snapshot, op)) for op in chain}
    if len(kinds) > 1 or len(shapes) > 1:
        raise unlowered_operation(last)
    return chain


def product_operands(
    snapshot: FunctionSnapshot, op: TensorOp
) -> tuple[tuple[Value, MatrixView], tuple[Value, MatrixView]]:
    """The addresses and views of a product's operands; the right one may be permuted back from interleaved rows.

    Those of operands that are converted from bytes are the bytes'.

    Raises:
        LoweringError: An operand is not loaded from memory.
    """
    a, b = (_loaded_bytes(snapshot, tensor) or tensor for tensor in op.tensors[-2:])
    if a.kind != "load":
        raise unlowered_operation(op)
    lhs = a.source, MatrixView.of(a.type, a.pitches)
    if b.kind == "load":
        return lhs, (b.source, MatrixView.of(b.type, b.pitches))
    definition = snapshot.tensors.definition(b)
    if definition is None or definition.intrinsic.name != "reshape.permute" or definition.tensors[0].kind != "load":
        raise unlowered_operation(op)
    packed = definition.tensors[0]
    if packed.type.rank == _STRIPS:
        return lhs, (packed.source, MatrixView.strips(packed.type, b.type.extents[1]))
    return lhs, (packed.source, MatrixView.interleaved(packed.type, packed.pitches))


def _loaded_bytes(snapshot: FunctionSnapshot, tensor: Tensor) -> Tensor | None:
    """The loaded bytes that an operand is converted from; None if it is not."""
    conversion = _conversion(snapshot, tensor)
    loaded = None if conversion is None else snapshot.tensors.definition_of(conversion.args[0])
    return None if loaded is None else loaded.tensors[0]


def _conversion(snapshot: FunctionSnapshot, tensor: Tensor) -> Instruction | None:
    """The conversion from bytes that an operand is the result of."""
    _, definition = snapshot.definitions.get(str(tensor.source)[1:], (0, None))
    is_converted = tensor.kind == "value" and definition is not None and is_conversion(definition.callee or "")
    return definition if is_converted else None


def _formats(snapshot: FunctionSnapshot, op: TensorOp) -> tuple[Sign, Sign]:
    """The formats of a product's operands: "f" for types of LLVM."""
    lhs, rhs = (_conversion(snapshot, tensor) for tensor in op.tensors[-2:])
    return _format(lhs), _format(rhs)


def _format(conversion: Instruction | None) -> Sign:
    if conversion is None:
        return "f"
    return SmallConversion.of(conversion.callee or "", conversion.args).format.short


def term_offsets(snapshot: FunctionSnapshot, chain: list[TensorOp]) -> tuple[tuple[int, int], ...]:
    """Element offsets from the first product's operands to those of each product."""
    if len(chain) == 1:
        return ((0, 0),)
    (a, _), (b, _) = places = product_operands(snapshot, chain[0])
    elements = [view.element for _, view in places]
    offsets: list[tuple[int, int]] = []
    for op in chain:
        (x, _), (y, _) = product_operands(snapshot, op)
        offsets.append((_distance(snapshot, op, elements[0], a, x), _distance(snapshot, op, elements[1], b, y)))
    return tuple(offsets)


def _distance(snapshot: FunctionSnapshot, op: TensorOp, element: Type, first: Value, other: Value) -> int:
    (base, start), (other_base, end) = (_base_and_offset(snapshot, pointer, element) for pointer in (first, other))
    if base != other_base:
        raise unlowered_operation(op)
    return end - start


def _base_and_offset(snapshot: FunctionSnapshot, pointer: Value, element: Type) -> tuple[str, int]:
    """A pointer as a base and an offset in elements."""
    _, definition = snapshot.definitions.get(str(pointer)[1:], (0, None))
    if definition is None:
        return str(pointer), 0
    if definition.opcode == "bitcast":
        return _base_and_offset(snapshot, definition.operands[0], element)
    if definition.opcode == "getelementptr" and definition.source_type == element and len(definition.operands) == 2:
        index = definition.operands[1]
        if isinstance(index, ConstInt):
            base, start = _base_and_offset(snapshot, definition.operands[0], element)
            return base, start + index.value
    return str(pointer), 0


# Batch strides -------------------------------------------------------------------------------------------------------


P = TypeVar("P")


@dataclass(eq=False)
class BatchLoops:
    """The independent loops of a function, or the loop around its calls (attribute `tlx-rounds`).

    Attributes:
        module: The module.
        loops: The function's loops.
        definitions: The instruction that defines each value, by the value's name.
    """

    module: Module
    loops: FunctionLoops
    definitions: Mapping[str, Instruction] = field(init=False)

    def __post_init__(self) -> None:
        function = self.loops.function
        self.counter = self.module.function_attributes(function.signature).get(CALL_COUNTER_ATTRIBUTE)
        self.definitions = definitions(function) if self.loops.independent or self.counter else {}

    def with_batch(self, problem: P, block: Block, pointers: Sequence[tuple[Value, MatrixView]]) -> P:
        """The problem, with its batch strides if it is a product or a map in a loop."""
        if isinstance(problem, Elementwise):
            return replace(problem, streamed_bytes=self._streamed_bytes(block, [pointer for pointer, _ in pointers]))
        return replace(problem, batch=self.batch(block, pointers)) if isinstance(problem, Gemm) else problem

    def _streamed_bytes(self, block: Block, pointers: Sequence[Value]) -> int:
        """Bytes that pointers cover in all iterations of the loops around a block; equal strides count once."""
        around = self.loops.enclosing_loops(block)
        if not around:
            return 0
        steps = {abs(self._step(pointer, _index(around[-1])) or 0) for pointer in pointers}
        return sum(steps) * prod(loop.trips for loop in around)

    def batch(self, block: Block, pointers: Sequence[tuple[Value, MatrixView]]) -> BatchStrides | None:
        """How the pointers of a kernel called in a block advance per iteration; None outside loops."""
        around = self.loops.enclosing_loops(block)
        sizes = tuple(0 if view.has_gaps else view.bytes_moved for _, view in pointers)
        if not around:
            steps = tuple(self._step(pointer, self.counter) or 0 for pointer, _ in pointers) if self.counter else ()
            return BatchStrides((0, *steps[1:]), sizes, None) if any(steps[1:]) else None
        steps = tuple(self._step(pointer, _index(around[-1])) or 0 for pointer, _ in pointers)
        total = sum(view.bytes_moved for (_, view), step in zip(pointers, steps, strict=True) if step)
        return BatchStrides(steps, sizes, total * prod(loop.trips for loop in around))

    def _step(self, value: Value, index_name: str) -> int | None:
        """How much a value grows per iteration, pointers in bytes; None where that is unknown."""
        if isinstance(value, Local) and value.name == index_name:
            return 1
        definition = self.definitions.get(value.name) if isinstance(value, Local) else None
        if definition is None:
            return 0
        if definition.opcode == "bitcast":
            return self._step(definition.operands[0], index_name)
        if definition.opcode not in ("add", "sub", "mul", "getelementptr") or len(definition.operands) != 2:
            return None if self._depends(definition, index_name) else 0
        first, second = (self._step(operand, index_name) for operand in definition.operands)
        if first is None or second is None:
            return None
        if definition.opcode == "getelementptr":
            return first + second * bytes_of(definition.source_type) if definition.source_type is not None else None
        if definition.opcode != "mul":
            return first - second if definition.opcode == "sub" else first + second
        factor = definition.operands[1]
        if isinstance(factor, ConstInt):
            return first * factor.value
        return None if first or second else 0

    def _depends(self, definition: Instruction, index_name: str) -> bool:
        """Whether an instruction's result may depend on the index; that of a phi, load or call always may."""
        if definition.opcode in ("phi", "load", "call"):
            return True
        return any(self._step(operand, index_name) != 0 for operand in definition.operands)


def _index(loop: Loop) -> str:
    return str(loop.index.result) if loop.index is not None else ""
