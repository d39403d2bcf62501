"""The kernel of a product: its function, buffers and body."""

from __future__ import annotations

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.types import Type
from tlx.lower.to_tiles.emit.gemm.function import GemmFunction
from tlx.lower.to_tiles.emit.gemm.loop_nest import LoopNest
from tlx.lower.to_tiles.emit.gemm.matrix_unit import MatrixUnitLoopNest
from tlx.lower.to_tiles.emit.gemm.streaming import StreamingLoopNest
from tlx.lower.to_tiles.emit.kernel import expression_parameters, may_alias_leaf, new_kernel
from tlx.lower.to_tiles.emit.scratch import Scratch
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.select.recipe import Recipe
from tlx.target.target import Target


def gemm_kernel(
    module: Module,
    gemm: Gemm,
    recipe: Recipe,
    target: Target,
    *,
    parts: bool = False,
    panel_cache: Scratch | None = None,
) -> Function:
    """Add the kernel for a product to the module.

    Its parameters are pointers to C, A, B and, if there is one, Acc, then the epilogue's leaves and scalars, and, if it
    works on `parts`, the first and last row tile and panel. If panels of B are cached across calls, the size of the
    cache is reserved in `panel_cache`.
    """
    own_panels = recipe.packing.prepacked_b and recipe.packing.b_panel_offset is None
    reads_c = gemm.acc or (gemm.epilogue and may_alias_leaf(gemm.epilogue, gemm.c))
    parameters: list[tuple[str, Type, str]] = [
        ("c", gemm.c.element, "" if reads_c else "noalias"),
        ("a", gemm.a.element, ""),
        ("b", recipe.mma.operand_b if own_panels else gemm.b.element, ""),
    ]
    if gemm.acc:
        parameters.append(("acc", gemm.acc.element, ""))
    leaves, scalars = expression_parameters(gemm.epilogue) if gemm.epilogue else ([], [])
    keeps = panel_cache is not None
    made = new_kernel(
        module, target, gemm.kernel_name, [*parameters, *leaves], scalars, parts=parts, caches_panels=keeps
    )
    _emit_body(GemmFunction.of(TensorBuilder(module, made), gemm, recipe, target), panel_cache or Scratch())
    return made


def _emit_body(function: GemmFunction, scratch: Scratch) -> None:
    """Emit the body of a kernel, with its buffers in `scratch`."""
    b, cached, nest = function.b, function.share.cached_panels, _loop_nest(function)
    scratch.provided = cached.memory if cached else None
    nest.reserve(scratch)
    scratch.allocate(b)
    partial = nest.tile.partial
    if partial is not None:
        partial.start()
    nest.emit()
    if partial is not None:
        partial.finish()
    scratch.release(b)
    b.ret()


def _loop_nest(function: GemmFunction) -> LoopNest | MatrixUnitLoopNest:
    if function.recipe.mma.unit == "matrix":
        return MatrixUnitLoopNest(function)
    return StreamingLoopNest(function) if function.recipe.tile.streamed_rows else LoopNest(function)
