"""What stage 1 promises stage 2, checked on its output: the forms of the trees, and that destinations are apart.

The evaluator runs a tree's loads before its store, so it does not see a destination that overlaps an operand.
`poisoned` makes it visible: it fills every destination with undefined values once the accumulator has been read.
"""

from __future__ import annotations

from tlx.ir.module import Block, Function, Instruction, Module
from tlx.ir.rewriter import Use, uses
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensor_calls import is_tensor_call
from tlx.ir.tensors import FunctionTensors, Tensor, TensorOp, analyse
from tlx.ir.types import VectorType
from tlx.ir.values import Keyword, Local

MMA = ("umma", "smma", "usmma", "summa")


def check_contract(module: Module) -> None:
    """Every tensor call of every function belongs to a tree of one of the four forms."""
    for function in module.functions:
        tensors = analyse(module, function)
        used = uses(function)
        in_trees: set[int] = set()
        for op in tensors.ops:
            if op.pointer is not None:
                block = _block_of(function, op.instruction)
                tree = _tree(tensors, op)
                _check_neighbours(block, tree)
                in_trees.update(map(id, tree))
        for instruction in function.instructions():
            assert not is_tensor_call(instruction) or id(instruction) in in_trees, f"left over: {instruction.text}"
        _check_vectors(function, in_trees, used)


def _check_vectors(function: Function, in_trees: set[int], used: dict[str, list[Use]]) -> None:
    """No large vector is left outside of trees."""
    for instruction in function.instructions():
        if id(instruction) in in_trees or not isinstance(instruction.type, VectorType):
            continue
        assert instruction.type.count <= 4096
        assert instruction.opcode in ("freeze", "bitcast", "phi", "load", "fadd", "add"), instruction.text
        assert used.get(str(instruction.result)) or instruction.opcode != "load", instruction.text


def _tree(tensors: FunctionTensors, store: TensorOp) -> list[Instruction]:
    """The instructions of a tree, checked against the four forms."""
    (token,) = store.tensors
    assert store.pitches is not None
    assert token.type.rank == 2
    assert not token.type.is_padded
    if token.kind == "load":
        return [_load(token), store.instruction]
    assert token.kind == "value"
    assert isinstance(token.source, Local)
    operation = next(op for op in tensors.ops if op.instruction.result == token.source.name)
    assert operation.result == token.type
    operands = [_load(tensor) for tensor in operation.tensors]
    name = operation.intrinsic.name
    assert name in ("matmul", "transpose", *MMA), name
    if name != "transpose":
        assert token.type.is_row_major
    if name in MMA:
        assert operation.tensors[0].type.is_row_major
    return [*operands, operation.instruction, token.definition, store.instruction]


def _load(tensor: Tensor) -> Instruction:
    assert tensor.kind == "load"
    assert tensor.type.rank == 2
    assert not tensor.type.is_padded
    assert tensor.pitches is not None
    assert tensor.pitches[1] > 0
    return tensor.definition


def _check_neighbours(block: Block, tree: list[Instruction]) -> None:
    """A tree's instructions stand next to each other."""
    at = [next(i for i, x in enumerate(block.instructions) if x is instruction) for instruction in tree]
    assert at == list(range(at[0], at[0] + len(at))), [x.text for x in tree]


def _block_of(function: Function, instruction: Instruction) -> Block:
    return next(b for b in function.blocks if any(i is instruction for i in b.instructions))


def poisoned(module: Module) -> Module:
    """The module, changed so that each tree's destination holds undefined values once the accumulator is read."""
    for function in module.functions:
        for op in analyse(module, function).ops:
            if op.pointer is not None:
                _poison(module, function, op)
    return module


def _poison(module: Module, function: Function, store: TensorOp) -> None:
    (token,) = store.tensors
    assert store.pointer is not None
    block = _block_of(function, store.instruction)
    end = next(i for i, x in enumerate(block.instructions) if x is store.instruction)
    length = 2
    skipped = 0
    if token.kind == "value":
        operation = block.instructions[end - 2]
        tokens = sum(str(a.type) == "token" for a in operation.args)
        length, skipped = 3 + tokens, 1 if tokens == 3 else 0
    b = TensorBuilder(module, function, block, end + 1 - length + skipped)
    garbage = b.typeinfo(Keyword(token.type.vector, "undef"), token.type)
    b.tensor_store(store.pointer, garbage, store.pitches)
