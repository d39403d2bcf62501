"""Stage 2's driver: replaces each 2-D tree of a function by a call of its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tlx.ir.builder import Builder
from tlx.ir.control_flow import FunctionLoops
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import uses
from tlx.ir.tensors.inference import analyse
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import VOID, FunctionType, Type
from tlx.ir.values import Global, Local, Value
from tlx.lower.context import LoweringContext, is_kernel
from tlx.lower.memory.planner import plan_memory
from tlx.lower.outlining import outline_nests
from tlx.lower.to_tiles.emit.kernel import kernel_scalar
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.kernels import KernelCache, PackingKernel, insert_fences
from tlx.lower.to_tiles.match import FunctionSnapshot, Match, match_store
from tlx.lower.to_tiles.pack.hoist import HoistPoints, find_shared_copies
from tlx.lower.to_tiles.parallel.worksharing import parallel_blocks, parallelise_nests
from tlx.lower.to_tiles.problem import Elementwise, Gemm, Reduction
from tlx.lower.to_tiles.rewrite.row_fusion import FusionCandidate, find_row_fusions
from tlx.lower.to_tiles.select.product import Selection, select_product
from tlx.lower.to_tiles.select.recipe import Recipe
from tlx.lower.to_tiles.versions import multiversion_nests
from tlx.target.target import Target


def to_tiles(module: Module, context: LoweringContext) -> None:
    """Replace every 2-D tree by a call of a kernel made of tile operations.

    Raises:
        LoweringError: A tensor operation is left that is not part of a tree of stage 1's output.
    """
    kernels = KernelCache(module, context)
    for function in module.functions:
        if not is_kernel(module, function):
            _lower_function(module, function, kernels)
    plan_memory(module, context, threads=kernels.inner is not kernels)
    nests = outline_nests(module, kernels.dispatch.made)
    insert_fences(module, nests, kernels.nontemporal)
    nests = multiversion_nests(module, nests, kernels.dispatch, context.target.versions)
    if kernels.inner is not kernels:
        parallelise_nests(module, nests, kernels.cycles | kernels.inner.cycles, context.options.thread_cycles)


def _lower_function(module: Module, function: Function, kernels: KernelCache) -> None:
    tensors = analyse(module, function)
    loops = FunctionLoops(function)
    snapshot, places = FunctionSnapshot(tensors), HoistPoints(module, loops)
    target = kernels.context.target_of(module, function)
    done: list[Instruction] = []
    calls: dict[int, list[Instruction]] = {}
    trees = {id(op.instruction): (op, match_store(snapshot, op)) for op in tensors.ops if op.intrinsic.name == "store"}
    ahead = _apply_selections(kernels, target, places, snapshot, trees)
    ahead |= _copy_shared_a(kernels, target, places, snapshot, trees)
    groups = find_row_fusions(module, tensors, [_candidate(op, match) for op, match in trees.values()], target)
    several = {snapshot.block_of[id(member.store)].name for group in groups for member in group.members}
    shared = parallel_blocks(loops, several) if kernels.inner is not kernels else set[str]()
    inner = {id(i) for block in function.blocks if block.name in shared for i in block.instructions}
    for group in groups:
        *others, last = (member.store for member in group.members)
        calls |= {id(store): [] for store in others}
        match = Match(group.problem, group.pointers, group.scalars, [])
        own = kernels.inner if id(last) in inner else kernels
        calls[id(last)] = _kernel_call(own, target, snapshot, places, last, match)
    for op, match in trees.values():
        done += match.consumed
        if id(op.instruction) not in calls:
            own = kernels.inner if id(op.instruction) in inner else kernels
            call = _kernel_call(own, target, snapshot, places, op.instruction, match)
            calls[id(op.instruction)] = [*ahead.get(id(op.instruction), ()), *call]
    for block in function.blocks:
        block.instructions = [new for old in block.instructions for new in calls.get(id(old), (old,))]
    done += [op.instruction for op in tensors.ops] + [t.definition for t in tensors.tokens.values()]
    _remove_dead(function, done)
    places.finish()


def _apply_selections(
    kernels: KernelCache,
    target: Target,
    places: HoistPoints,
    snapshot: FunctionSnapshot,
    trees: dict[int, tuple[TensorOp, Match]],
) -> dict[int, list[Instruction]]:
    """Replace products by what is selected for them: transposed products, or products of split operands.

    Products in loops are left alone, as iterations may share a packed operand, and so are products with knobs.

    Returns:
        The calls to insert before stores, by the stores' ids.
    """
    ahead: dict[int, list[Instruction]] = {}
    for store, (op, match) in trees.items():
        gemm = match.problem
        if not isinstance(gemm, Gemm) or places.loops.around(snapshot.block_of[store]):
            continue
        constant_b = isinstance(match.pointers[2][0], Global)
        selection = select_product(gemm, target.versions or (target,), constant_b=constant_b)
        if selection == Selection(gemm):
            continue
        if any(kernels.has_knobs(problem, target, op.instruction) for problem in (gemm, selection.problem)):
            continue
        match.problem = selection.problem
        if selection.is_transposed:
            match.pointers[1], match.pointers[2] = match.pointers[2], match.pointers[1]
        if selection.split is not None:
            b = Builder(kernels.module, places.function, Block("split"))
            for problem, operands in selection.split.rewrite_operands(match, places, b):
                _call(b, kernels.of(problem, target, op.instruction), operands)
            ahead[store] = b.block.instructions
    return ahead


def _copy_shared_a(
    kernels: KernelCache,
    target: Target,
    places: HoistPoints,
    snapshot: FunctionSnapshot,
    trees: dict[int, tuple[TensorOp, Match]],
) -> dict[int, list[Instruction]]:
    """Copy A where several products read it; returns the calls to insert before stores, by the stores' ids."""

    def recipes(gemm: Gemm, at: Instruction) -> list[tuple[Recipe, Target]]:
        return [] if kernels.has_knobs(gemm, target, at) else kernels.recipes(gemm, target, at)

    products = {store: (snapshot.block_of[store], match) for store, (_, match) in trees.items()}
    ahead: dict[int, list[Instruction]] = {}
    for copy in find_shared_copies(places, snapshot.tensors, products, recipes):
        b = Builder(kernels.module, places.function, Block("copy"))
        _call(b, kernels.of(copy.problem, target, copy.first), copy.serve(places, b))
        if copy.block is None:
            ahead[id(copy.first)] = b.block.instructions
        else:
            places.insert_at_end(copy.block, b.block)
        kernels.context.remarks.add("applied", "to-tiles", copy.remark, copy.first.span)
    return ahead


def _call(b: Builder, kernel: Function, operands: Sequence[tuple[Value, MatrixView]]) -> None:
    """Call a kernel that takes pointers only."""
    args = [b.retype(pointer, view.element) for pointer, view in operands]
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(b.module.pointer_to(type_), kernel.name), type_, args)


def _candidate(op: TensorOp, match: Match) -> FusionCandidate:
    problem = match.problem if isinstance(match.problem, (Elementwise, Reduction)) else None
    return FusionCandidate(op.instruction, problem, match.pointers, match.scalars)


def _kernel_call(
    kernels: KernelCache,
    target: Target,
    snapshot: FunctionSnapshot,
    places: HoistPoints,
    store: Instruction,
    match: Match,
) -> list[Instruction]:
    """The call of a kernel that replaces a store."""
    b = Builder(kernels.module, places.function, Block("call"))
    b.debug = store.debug_location
    args = [b.retype(p, v.element) for p, v in match.pointers]
    match.problem = places.batch_loops.with_batch(match.problem, snapshot.block_of[id(store)], match.pointers)
    panels = _panels(kernels, target, places, snapshot.block_of[id(store)], store, match)
    kernel = kernels.of(match.problem, target, store)
    if panels is not None:
        args[2] = b.retype(*panels)
    args += [kernel_scalar(b, scalar) for scalar in match.scalars]
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(b.module.pointer_to(type_), kernel.name), type_, args)
    return b.block.instructions


def _panels(
    kernels: KernelCache, target: Target, places: HoistPoints, block: Block, store: Instruction, match: Match
) -> tuple[Value, Type] | None:
    """The panels of a B packed at compile time or before a loop, and their element type; the problem then says so."""
    problem = match.problem
    if not isinstance(problem, Gemm):
        return None
    source = match.pointers[2][0]
    if kernels.weights.is_constant(places.function, source):
        known = replace(problem, packs_per_product=0.0)
        recipes = kernels.recipes(known, target, store)
        panels = kernels.weights.panels(places.function, source, known, recipes, store.span)
        if panels is not None:
            match.problem = known
            return panels, problem.b.element if len(recipes) > 1 else recipes[0][0].mma.operand_b
    place = None if target.versions else places.before(block, source)
    if place is None:
        return None
    shared = replace(problem, packs_per_product=1 / place.trips)
    recipes = kernels.recipes(shared, target, store)
    if not any(recipe.packing.b for recipe, _ in recipes):
        return None
    match.problem = shared
    packer = kernels.packer(shared, recipes[0][0], target)
    return _pack_before(places, place.block, packer, match.pointers[2]), packer.element


def _pack_before(places: HoistPoints, place: Block, packing: PackingKernel, operand: tuple[Value, MatrixView]) -> Value:
    """Pack B at the end of a block; returns the panels."""
    b = Builder(places.module, places.function, Block("pack"))
    panels = b.retype(places.allocate(b, packing.size), packing.element)
    args = [panels, b.retype(operand[0], operand[1].element)]
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(b.module.pointer_to(type_), packing.kernel.name), type_, args)
    places.insert_at_end(place, b.block)
    return panels


def _remove_dead(function: Function, candidates: list[Instruction]) -> None:
    """Remove instructions of trees whose results are no longer used."""
    counts = {name: len(users) for name, users in uses(function).items()}
    made = {i.result: i for i in candidates if i.result is not None}
    dead = {name for name in made if not counts.get(name)}
    pending = list(dead)
    while pending:
        for operand in made[pending.pop()].operands:
            if isinstance(operand, Local) and operand.name in made:
                counts[operand.name] -= 1
                if not counts[operand.name] and operand.name not in dead:
                    dead.add(operand.name)
                    pending.append(operand.name)
    for block in function.blocks:
        block.instructions = [i for i in block.instructions if i.result not in dead]
