"""The contract between stages 1 and 2, checked on the output of stage 1: forms of trees, destinations without overlap.

The evaluator runs a tree's loads before its store, so it does not see a destination that overlaps an operand.
`poisoned` makes it visible: it fills every destination with undefined values once what may be the destination itself,
an accumulator or an operand of ordinary instructions, has been read.
"""

from __future__ import annotations

from tlx.intrinsics import OperandKind
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.functions import Function
from tlx.ir.instructions import BINARY_OPCODES, CAST_OPCODES, Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import Use, uses
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.calls import is_tensor_call
from tlx.ir.tensors.inference import analyse
from tlx.ir.tensors.model import FunctionTensors, Tensor, TensorOp
from tlx.ir.types import VectorType
from tlx.ir.values import Constant, Keyword, Local, Value

MMA = ("umma", "smma", "usmma", "summa")
UNARY = frozenset("relu tanh sigmoid erfc sin cos exp exp2 log log2 log10 sqrt fabs floor ceil".split())
ORDINARY = BINARY_OPCODES | CAST_OPCODES | {"fneg", "icmp", "fcmp", "select", "freeze", "call"}
BETWEEN = frozenset({"getelementptr", "bitcast", "insertelement"})
"""Instructions without side effects that may be among those of a tree."""


def check_contract(module: Module) -> None:
    """Check that every tensor call belongs to a tree, and that there are no other large vectors."""
    for function in module.functions:
        tensors = analyse(module, function)
        used = uses(function)
        in_trees: set[int] = set()
        for op in tensors.ops:
            if op.pointer is not None:
                tree = _Tree(function, tensors, op)
                tree.check(used)
                in_trees.update(tree.members)
        for instruction in function.instructions():
            assert not is_tensor_call(instruction) or id(instruction) in in_trees, f"left over: {instruction.text}"
        _check_vectors(function, in_trees, used)


def _check_vectors(function: Function, in_trees: set[int], used: dict[str, list[Use]]) -> None:
    """Check that no large vector is left outside of trees."""
    for instruction in function.instructions():
        if id(instruction) in in_trees or not isinstance(instruction.type, VectorType):
            continue
        assert instruction.type.count <= 4096
        assert instruction.opcode in ("freeze", "bitcast", "phi", "load", "fadd", "add"), instruction.text
        assert used.get(str(instruction.result)) or instruction.opcode != "load", instruction.text


def _is_zeros(tensor: Tensor) -> bool:
    """Whether a token is a constant of zeros, which only accumulators may be."""
    return tensor.kind == "value" and isinstance(tensor.source, Keyword) and tensor.source.word == "zeroinitializer"


class _Tree:
    """The instructions of a store's tree, checked against the forms while they are collected.

    Attributes:
        members: Ids of the instructions.
        instructions: They, the store included, in no order.
        loads: The tensors that it loads.
        products: How many products, or sums of products, there are in it.
    """

    def __init__(self, function: Function, tensors: FunctionTensors, store: TensorOp) -> None:
        self.tensors = tensors
        self.store = store
        self.block = _block_of(function, store.instruction)
        self.defined = {i.result: i for i in self.block.instructions if i.result is not None}
        self.members: set[int] = set()
        self.instructions: list[Instruction] = []
        self.loads: list[Tensor] = []
        self.products = 0
        self._collect()

    def _collect(self) -> None:
        (token,) = self.store.tensors
        assert self.store.pitches is not None
        assert token.type.rank == 2
        self._add(self.store.instruction)
        if self._is_shuffle(token.source):
            self._shuffle(token)
            return
        assert not token.type.is_padded
        if token.kind == "load":
            self._load(token)
            return
        definition = self.tensors.definition(token)
        name = definition.intrinsic.name if definition is not None else ""
        if definition is not None and name == "transpose" and not token.type.is_row_major:
            assert definition.result == token.type
            self._add(token.definition)
            self._add(definition.instruction)
            self._transposed_load(definition.tensors[0])
            return
        assert token.type.is_row_major
        if definition is not None and name.startswith("reduce."):
            self._reduction(token, definition)
        else:
            self.extents = token.type.extents
            self._value_token(token)

    def _is_shuffle(self, value: Value) -> bool:
        definition = self.defined.get(value.name) if isinstance(value, Local) else None
        return definition is not None and definition.opcode == "shufflevector"

    def _shuffle(self, token: Tensor) -> None:
        """Check a root that is a row shuffled from others; rows may have padding."""
        self.extents = 1, token.type.count
        self._add(token.definition)
        pending = [token.source]
        while pending:
            value = pending.pop()
            assert isinstance(value, Local)
            definition = self.defined[value.name]
            if not self._add(definition):
                continue
            if definition.opcode == "shufflevector":
                assert definition.operands[0].type == definition.type
                pending += [operand for operand in definition.operands[:2] if not isinstance(operand, Keyword)]
                continue
            op = self.tensors.op_of(definition)
            assert op is not None
            assert op.intrinsic.name == "tovector"
            (line,) = op.tensors
            assert line.kind == "load"
            assert line.type.shape == self.extents
            self._add(line.definition)
            self.loads.append(line)

    def _add(self, instruction: Instruction) -> bool:
        """Add an instruction to the tree; whether it is new."""
        if id(instruction) in self.members:
            return False
        assert any(i is instruction for i in self.block.instructions), f"in another block: {instruction.text}"
        self.members.add(id(instruction))
        self.instructions.append(instruction)
        return True

    def _load(self, tensor: Tensor) -> None:
        assert tensor.kind == "load"
        assert tensor.type.rank == 2
        assert not tensor.type.is_padded
        assert tensor.pitches is not None
        assert tensor.pitches[1] > 0
        self._add(tensor.definition)
        self.loads.append(tensor)

    def _transposed_load(self, tensor: Tensor) -> None:
        """Check a root that is the transpose of a load or of products."""
        if tensor.kind == "load":
            self._load(tensor)
            return
        self.extents = tensor.type.extents
        self._value_token(tensor)
        assert self.products

    def _reduction(self, token: Tensor, definition: TensorOp) -> None:
        """Check a root that reduces the rows or the columns of a value."""
        (whole,) = definition.tensors
        rows, columns = whole.type.extents
        assert definition.dims[0] in ((1, columns), (rows, 1))
        assert (
            token.type.extents == ((1, columns) if definition.dims[0] == (rows, 1) else (rows, 1))
            or whole.type.count == 1
        )
        self._add(token.definition)
        self._add(definition.instruction)
        self.extents = whole.type.extents
        self._value_token(whole)

    def _value_token(self, token: Tensor) -> None:
        """Check a token of a value of the whole block."""
        assert token.kind == "value"
        assert token.type == TensorType.dense(token.type.element, self.extents)
        self._add(token.definition)
        self._value(token.source)

    def _value(self, value: Value) -> None:
        """Check a row-major vector of the whole block."""
        rows, columns = self.extents
        assert isinstance(value, Local), f"a constant is no node: {value}"
        assert isinstance(value.type, VectorType)
        assert value.type.count == rows * columns
        instruction = self.defined[value.name]
        if not self._add(instruction):
            return
        op = self.tensors.op_of(instruction)
        if op is not None:
            self._operation(op)
            return
        assert instruction.opcode in ORDINARY, instruction.text
        assert instruction.opcode != "call" or (instruction.callee or "").startswith("llvm.")
        for operand in instruction.args if instruction.opcode == "call" else instruction.operands:
            if isinstance(operand.type, VectorType):
                self._value(operand)

    def _operation(self, op: TensorOp) -> None:
        name = op.intrinsic.name
        assert op.result is not None
        if name in ("matmul", *MMA):
            self.products += 1
            assert self.products == 1
            self._sum(op)
        elif name in UNARY:
            (tensor,) = op.tensors
            if tensor.kind == "load":
                self._load(tensor)
            else:
                self._value_token(tensor)
        else:
            self._leaf(op)

    def _sum(self, op: TensorOp) -> None:
        """Check a product, and those that it is added to."""
        *acc, lhs, rhs = op.tensors
        assert op.result is not None
        assert op.result.extents == self.extents
        self._load(lhs)
        self._right_operand(rhs)
        assert all(tensor.type.is_row_major for tensor in acc)
        before = self.tensors.definition(acc[0]) if acc and acc[0].kind == "value" else None
        if before is not None:
            assert before.intrinsic.name in ("matmul", *MMA)
            self._add(acc[0].definition)
            self._add(before.instruction)
            self._sum(before)
        elif acc and _is_zeros(acc[0]):
            self._add(acc[0].definition)
        elif acc:
            self._load(acc[0])

    def _right_operand(self, rhs: Tensor) -> None:
        """Check a right operand; it may have interleaved rows that are permuted back, with readable padding."""
        definition = self.tensors.definition(rhs)
        if definition is None or definition.intrinsic.name != "reshape.permute":
            self._load(rhs)
            return
        (packed,) = definition.tensors
        assert packed.kind == "load"
        if packed.type.rank == 4:
            strips, groups, columns, width = packed.type.shape
            assert not packed.type.is_padded
            assert definition.dims == ((1, 3, 0, 2), (groups * width, strips * columns))
            assert strips * columns - columns < rhs.type.extents[1] <= strips * columns
        else:
            groups, columns, width = packed.type.extents
            assert packed.type.padding[0] == packed.type.padding[2] == 0
            assert definition.dims == ((0, 2, 1), (groups * width, columns))
        for part in (packed.definition, definition.instruction, rhs.definition):
            self._add(part)
        self.loads.append(packed)

    def _leaf(self, op: TensorOp) -> None:
        (tensor,) = op.tensors
        rows, columns = self.extents
        name = op.intrinsic.name
        if name == "tovector":
            assert tensor.type.extents == self.extents
            assert tensor.type.is_row_major
        elif name == "transpose":
            assert tensor.type.extents == self.extents
            assert tensor.type.layout == (1, 0)
            assert op.dims == ((0, 1),)
        else:
            assert name == "broadcast", name
            assert op.dims == (self.extents, (0, 1))
            assert tensor.type.is_row_major
            assert tensor.type.extents in ((1, columns), (rows, 1), (1, 1))
        if tensor.kind == "value":
            self._scalar(tensor)
        else:
            self._load(tensor)

    def _scalar(self, tensor: Tensor) -> None:
        assert tensor.type == TensorType.dense(tensor.type.element, (1, 1))
        self._add(tensor.definition)
        if isinstance(tensor.source, Constant):
            return
        assert isinstance(tensor.source, Local)
        insertion = self.defined[tensor.source.name]
        assert insertion.opcode == "insertelement"
        self._add(insertion)

    def check(self, used: dict[str, list[Use]]) -> None:
        """Check that a tree's instructions have no other uses, and no side effects are among them."""
        for instruction in self.instructions:
            for use in used.get(str(instruction.result), []):
                assert id(use.instruction) in self.members, f"used elsewhere: {instruction.text}"
        for instruction in self.block.instructions[self.first : self.last]:
            assert id(instruction) in self.members or instruction.opcode in BETWEEN, instruction.text

    @property
    def first(self) -> int:
        """The index of its first instruction."""
        return next(i for i, x in enumerate(self.block.instructions) if id(x) in self.members)

    @property
    def last(self) -> int:
        """The index of the store."""
        return next(i for i, x in enumerate(self.block.instructions) if x is self.store.instruction)


def _block_of(function: Function, instruction: Instruction) -> Block:
    return next(b for b in function.blocks if any(i is instruction for i in b.instructions))


def poisoned(module: Module) -> Module:
    """The module, changed so that a tree's destination is undefined as soon as its old content has been read."""
    for function in module.functions:
        tensors = analyse(module, function)
        for op in tensors.ops:
            if op.pointer is not None:
                _poison(module, function, _Tree(function, tensors, op))
    return module


def _poison(module: Module, function: Function, tree: _Tree) -> None:
    store = tree.store
    (token,) = store.tensors
    assert store.pointer is not None
    instructions = tree.block.instructions
    at = _defined_before(tree, store.pointer)
    for tensor in tree.loads:
        if _may_be_destination(tree, tensor):
            at = max(at, 1 + next(i for i, x in enumerate(instructions) if x is tensor.definition))
    b = TensorBuilder(module, function, tree.block, at)
    garbage = b.typeinfo(Keyword(token.type.vector, "undef"), token.type)
    b.tensor_store(store.pointer, garbage, store.pitches)


def _defined_before(tree: _Tree, pointer: Value) -> int:
    """The first index, from the tree's start on, at which the destination's address is defined."""
    definitions = [
        i for i, x in enumerate(tree.block.instructions) if x.result is not None and f"%{x.result}" == str(pointer)
    ]
    return max([tree.first, *(i + 1 for i in definitions)])


def _may_be_destination(tree: _Tree, tensor: Tensor) -> bool:
    """Whether a load may read the destination: an accumulator, or elements overwritten one by one."""
    user = next(
        (op for op in tree.tensors.ops if any(t.definition is tensor.definition for t in op.tensors)), tree.store
    )
    if user.intrinsic.name in MMA:
        return user.tensors[0].definition is tensor.definition
    assert any(operand.kind is OperandKind.TENSOR for operand in user.intrinsic.operands)
    return (
        user.intrinsic.name not in ("matmul", "store")
        and tree.store.tensors[0].type.is_row_major
        and str(tensor.source) == str(tree.store.pointer)
    )
