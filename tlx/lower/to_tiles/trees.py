"""Finding the 2-D trees of a function and replacing each by a call of its kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

from tlx.diagnostics import LoweringError
from tlx.ir.builder import Builder
from tlx.ir.module import Block, Function, Instruction, Module
from tlx.ir.rewriter import uses
from tlx.ir.tensors import FunctionTensors, Tensor, TensorOp, analyse
from tlx.ir.types import VOID, FloatType, FunctionType
from tlx.ir.values import Global, Value
from tlx.lower.signs import PRODUCT_SIGNS
from tlx.lower.stage import Context, is_kernel
from tlx.lower.to_tiles.copy import copy_kernel
from tlx.lower.to_tiles.gemm import gemm_kernel
from tlx.lower.to_tiles.problem import Copy, Gemm, View
from tlx.lower.to_tiles.recipe import Recipe, choose
from tlx.target import Target


@dataclass(eq=False)
class _Kernels:
    """The kernels made so far; equal problems share one."""

    module: Module
    context: Context
    made: dict[tuple[Gemm | Copy, tuple[str, ...]], Function] = field(
        default_factory=dict[tuple[Gemm | Copy, tuple[str, ...]], Function]
    )

    def of(self, problem: Gemm | Copy, target: Target, at: Instruction) -> Function:
        """The kernel for a problem on a target."""
        key = problem, target.features
        if key not in self.made:
            self.made[key] = self._make(problem, target, at)
        return self.made[key]

    def _make(self, problem: Gemm | Copy, target: Target, at: Instruction) -> Function:
        if isinstance(problem, Copy):
            return copy_kernel(self.module, problem, target)
        recipe = choose(problem, target)
        _remark(self.context, problem, recipe, at)
        return gemm_kernel(self.module, problem, recipe, target)


def to_tiles(module: Module, context: Context) -> None:
    """Replace every 2-D tree by a call of a kernel made of tile operations.

    Raises:
        LoweringError: A tensor operation is left that is no tree of stage 1's output.
    """
    kernels = _Kernels(module, context)
    for function in module.functions:
        if not is_kernel(module, function):
            _lower_function(module, function, kernels)


def _lower_function(module: Module, function: Function, kernels: _Kernels) -> None:
    tensors = analyse(module, function)
    blocks = {id(i): block for block in function.blocks for i in block.instructions}
    for op in tensors.ops:
        if op.intrinsic.name == "store":
            _lower_store(module, function, tensors, op, blocks[id(op.instruction)], kernels)
    _remove_dead(function, tensors)


def _lower_store(
    module: Module, function: Function, tensors: FunctionTensors, op: TensorOp, block: Block, kernels: _Kernels
) -> None:
    problem, pointers = _problem(tensors, op)
    kernel = kernels.of(problem, kernels.context.target_of(module, function), op.instruction)
    index = block.instructions.index(op.instruction)
    b = Builder(module, function, block, index)
    b.debug = op.instruction.debug_location
    args = [b.retype(p, v.element) for p, v in pointers]
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(module.pointer_to(type_), kernel.name), type_, args)
    block.instructions.remove(op.instruction)


def _problem(tensors: FunctionTensors, op: TensorOp) -> tuple[Gemm | Copy, list[tuple[Value, View]]]:
    """What a store's tree computes, and the pointers its kernel takes with what they point to."""
    stored = op.tensors[0]
    if op.pointer is None:
        raise _left_over(op)
    out = View.of(stored.type, op.pitches)
    if stored.kind == "load":
        return _copy(op, stored, op.pointer, out)
    source = tensors.maker(stored)
    if source is None:
        raise _left_over(op)
    if source.intrinsic.name == "transpose":
        return _copy(op, source.tensors[0], op.pointer, out)
    if source.intrinsic.name not in PRODUCT_SIGNS:
        raise _left_over(source)
    return _gemm(source, op.pointer, out)


def _gemm(op: TensorOp, pointer: Value, out: View) -> tuple[Gemm, list[tuple[Value, View]]]:
    *acc, a, b = [(t.source, View.of(t.type, t.pitches)) for t in op.tensors]
    if any(t.kind != "load" for t in op.tensors):
        raise _left_over(op)
    floats = isinstance(out.element, FloatType)
    lhs, rhs = ("f", "f") if floats else PRODUCT_SIGNS[op.intrinsic.name]
    gemm = Gemm(a[1], b[1], out, acc[0][1] if acc else None, lhs, rhs)
    return gemm, [(pointer, out), a, b, *acc]


def _copy(op: TensorOp, source: Tensor, pointer: Value, out: View) -> tuple[Copy, list[tuple[Value, View]]]:
    if source.kind != "load":
        raise _left_over(op)
    view = View.of(source.type, source.pitches)
    return Copy(view, out), [(pointer, out), (source.source, view)]


def _left_over(op: TensorOp) -> LoweringError:
    return LoweringError(f"{op.intrinsic.full_name} is not lowered to tiles here", op.instruction.span)


def _remove_dead(function: Function, tensors: FunctionTensors) -> None:
    """Take out tensor calls whose results nobody uses any more, last ones first."""
    calls = [op.instruction for op in tensors.ops] + [t.definition for t in tensors.tokens.values()]
    dead = {id(i) for i in calls if i.result is not None}
    changed = True
    while changed:
        changed = False
        used = uses(function)
        for block in function.blocks:
            kept = [i for i in block.instructions if id(i) not in dead or i.result is None or used.get(i.result)]
            changed = changed or len(kept) != len(block.instructions)
            block.instructions = kept


def _remark(context: Context, gemm: Gemm, recipe: Recipe, at: Instruction) -> None:
    packed = [name for name, on in (("A", recipe.pack_a), ("B", recipe.pack_b)) if on]
    unit = {"fma": "multiply-add", "dot": "dot product", "matrix": "matrix unit"}[recipe.unit]
    text = (
        f"{gemm.title}: {unit} {recipe.operand_a} x {recipe.operand_b} -> {recipe.accumulator}, "
        f"register tile {recipe.mr}x{recipe.nr}, "
        f"{'packed ' + ' and '.join(packed) if packed else 'nothing packed'}, "
        f"blocks M {recipe.mc}, N {recipe.nc}, K {recipe.kc}"
    )
    context.remarks.add("applied", "to-tiles", text, at.span)
    if context.target.matrix is not None and recipe.unit != "matrix":
        missed = f"{gemm.title}: no {context.target.name} instruction multiplies these types; vector code is used"
        context.remarks.add("missed", "to-tiles", missed, at.span)
