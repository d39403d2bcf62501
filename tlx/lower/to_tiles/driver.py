"""Replaces each 2-D tree of a function by a call of its kernel, and makes the kernels.

equal problems              share a kernel
several versions            a kernel for each version that differs, and a dispatcher
several threads             a kernel for a part of the work, run by a team of threads
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tlx.ir.builder.instructions import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.tensors.inference import analyse
from tlx.ir.tensors.model import TensorOp
from tlx.ir.transform.rewrite import uses
from tlx.ir.types import VOID, FunctionType, Type
from tlx.ir.values import Global, Local, Value
from tlx.lower.context import LoweringContext, is_kernel
from tlx.lower.memory.planner import plan_memory
from tlx.lower.nests import outline_nests
from tlx.lower.to_tiles.emit.copy import copy_kernel, shuffle_kernel
from tlx.lower.to_tiles.emit.elementwise import elementwise_kernel, row_fusion_kernel
from tlx.lower.to_tiles.emit.gemm.loop_nest import GemmKernel, StreamingKernel, gemm_kernel
from tlx.lower.to_tiles.emit.gemm.matrix_unit import MatrixUnitKernel
from tlx.lower.to_tiles.emit.kernel import Scratch, insert_fences, kernel_scalar
from tlx.lower.to_tiles.emit.reduction import reduce_kernel
from tlx.lower.to_tiles.match.stores import FunctionSnapshot, Match, match_store
from tlx.lower.to_tiles.pack.hoist import HoistPoints, find_shared_copies
from tlx.lower.to_tiles.pack.panel_cache import PartialKernel
from tlx.lower.to_tiles.pack.prepacked import PackedPanels, packing_kernel
from tlx.lower.to_tiles.pack.weights import ConstantWeights, prepacked_recipes
from tlx.lower.to_tiles.parallel.nests import parallel_blocks, parallelise_nests
from tlx.lower.to_tiles.parallel.partition import ParallelCost, cut_into_slabs, gemm_parallel_cost, problem_cycles
from tlx.lower.to_tiles.parallel.team import (
    CooperativeBody,
    grid_kernel,
    pack_cooperatively,
    packs_cooperatively,
    slabs_kernel,
)
from tlx.lower.to_tiles.problem.expression import MatrixView
from tlx.lower.to_tiles.problem.problems import Copy, Elementwise, Gemm, LineShuffle, Problem, Reduction, RowFusion
from tlx.lower.to_tiles.remarks import describe_kernel, for_version, remark_product
from tlx.lower.to_tiles.rewrite.fp16_split import split_fp16
from tlx.lower.to_tiles.rewrite.products import as_row_reduction, transposed_product
from tlx.lower.to_tiles.rewrite.row_fusion import FusionCandidate, find_row_fusions
from tlx.lower.to_tiles.select.recipe import Recipe
from tlx.lower.to_tiles.select.selection import knobs_of, select_with_knobs
from tlx.lower.to_tiles.versions import Dispatcher, kernel_key, multiversion_nests
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
    listing, places = FunctionSnapshot(tensors), HoistPoints(module, function)
    target = kernels.context.target_of(module, function)
    done: list[Instruction] = []
    calls: dict[int, list[Instruction]] = {}
    trees = {id(op.instruction): (op, match_store(listing, op)) for op in tensors.ops if op.intrinsic.name == "store"}
    ahead = _split_fp16_products(kernels, target, places, listing, trees)
    _transpose_products(kernels, target, places, listing, trees)
    ahead |= _copy_shared_a(kernels, target, places, listing, trees)
    groups = find_row_fusions(module, tensors, [_candidate(op, found) for op, found in trees.values()], target)
    several = {listing.block_of[id(member.store)].name for group in groups for member in group.members}
    shared = parallel_blocks(function, several) if kernels.inner is not kernels else set[str]()
    inner = {id(i) for block in function.blocks if block.name in shared for i in block.instructions}
    for group in groups:
        *others, last = (member.store for member in group.members)
        calls |= {id(store): [] for store in others}
        found = Match(group.problem, group.pointers, group.scalars, [])
        own = kernels.inner if id(last) in inner else kernels
        calls[id(last)] = _kernel_call(own, target, listing, places, last, found)
    for op, found in trees.values():
        done += found.consumed
        if id(op.instruction) not in calls:
            own = kernels.inner if id(op.instruction) in inner else kernels
            call = _kernel_call(own, target, listing, places, op.instruction, found)
            calls[id(op.instruction)] = [*ahead.get(id(op.instruction), ()), *call]
    for block in function.blocks:
        block.instructions = [new for old in block.instructions for new in calls.get(id(old), (old,))]
    done += [op.instruction for op in tensors.ops] + [t.definition for t in tensors.tokens.values()]
    _remove_dead(function, done)
    places.finish()


def _transpose_products(
    kernels: KernelCache,
    target: Target,
    places: HoistPoints,
    listing: FunctionSnapshot,
    trees: dict[int, tuple[TensorOp, Match]],
) -> None:
    """Replace products by their transposes where that is faster and no knobs are set for them.

    Products in loops are left alone: iterations may share a packed operand.
    """
    looped = {block for loop in places.loops for block in loop.blocks}
    for store, (op, found) in trees.items():
        other = (
            transposed_product(found, target.versions or (target,))
            if listing.block_of[store].name not in looped
            else None
        )
        both = [gemm for gemm in (found.problem, other) if isinstance(gemm, Gemm)]
        if other is not None and not any(kernels.has_knobs(gemm, target, op.instruction) for gemm in both):
            found.problem = other
            found.pointers[1], found.pointers[2] = found.pointers[2], found.pointers[1]


def _copy_shared_a(
    kernels: KernelCache,
    target: Target,
    places: HoistPoints,
    listing: FunctionSnapshot,
    trees: dict[int, tuple[TensorOp, Match]],
) -> dict[int, list[Instruction]]:
    """Copy A where several products read it; returns the calls to insert before stores, by the stores' ids."""

    def recipes(gemm: Gemm, at: Instruction) -> list[tuple[Recipe, Target]]:
        return [] if kernels.has_knobs(gemm, target, at) else kernels.recipes(gemm, target, at)

    products = {store: (listing.block_of[store], found) for store, (_, found) in trees.items()}
    ahead: dict[int, list[Instruction]] = {}
    for copy in find_shared_copies(places, listing.tensors, products, recipes):
        b = Builder(kernels.module, places.function, Block("copy"))
        _call(b, kernels.of(copy.problem, target, copy.first), copy.serve(places, b))
        if copy.block is None:
            ahead[id(copy.first)] = b.block.instructions
        else:
            places.put(copy.block, b.block)
        kernels.context.remarks.add("applied", "to-tiles", copy.remark, copy.first.span)
    return ahead


def _split_fp16_products(
    kernels: KernelCache,
    target: Target,
    places: HoistPoints,
    listing: FunctionSnapshot,
    trees: dict[int, tuple[TensorOp, Match]],
) -> dict[int, list[Instruction]]:
    """Split fp16 products into bf16 ones where that is faster and no knobs are set for them.

    Returns:
        The calls to insert before stores, by the stores' ids.
    """
    ahead: dict[int, list[Instruction]] = {}
    looped = {block for loop in places.loops for block in loop.blocks}
    for store, (op, found) in trees.items():
        gemm = found.problem
        if target.versions or not isinstance(gemm, Gemm) or listing.block_of[store].name in looped:
            continue
        parts = split_fp16(found, target)
        if parts is None or kernels.has_knobs(gemm, target, op.instruction):
            continue
        b = Builder(kernels.module, places.function, Block("split"))
        for problem, operands in parts.rewrite_operands(places, b):
            _call(b, kernels.of(problem, target, op.instruction), operands)
        ahead[store] = b.block.instructions
    return ahead


def _call(b: Builder, kernel: Function, operands: Sequence[tuple[Value, MatrixView]]) -> None:
    """Call a kernel that takes pointers only."""
    args = [b.retype(pointer, view.element) for pointer, view in operands]
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(b.module.pointer_to(type_), kernel.name), type_, args)


def _candidate(op: TensorOp, found: Match) -> FusionCandidate:
    problem = found.problem if isinstance(found.problem, (Elementwise, Reduction)) else None
    return FusionCandidate(op.instruction, problem, found.pointers, found.scalars)


def _kernel_call(
    kernels: KernelCache,
    target: Target,
    listing: FunctionSnapshot,
    places: HoistPoints,
    store: Instruction,
    found: Match,
) -> list[Instruction]:
    """The call of a kernel that replaces a store."""
    b = Builder(kernels.module, places.function, Block("call"))
    b.debug = store.debug_location
    args = [b.retype(p, v.element) for p, v in found.pointers]
    found.problem = places.rounds.with_batch(found.problem, listing.block_of[id(store)], found.pointers)
    given, panels = _panels(kernels, target, places, listing.block_of[id(store)], store, found)
    kernel = kernels.of(found.problem, target, store, given)
    if panels is not None:
        args[2] = b.retype(*panels)
    args += [kernel_scalar(b, scalar) for scalar in found.scalars]
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(b.module.pointer_to(type_), kernel.name), type_, args)
    return b.block.instructions


def _panels(
    kernels: KernelCache, target: Target, places: HoistPoints, block: Block, store: Instruction, found: Match
) -> tuple[Sequence[Recipe], tuple[Value, Type] | None]:
    """B in panels packed at compile time or before a loop: the recipes, and the panels' pointer and element type."""
    problem = found.problem
    if not isinstance(problem, Gemm):
        return (), None
    source = found.pointers[2][0]
    if kernels.weights.are_at(places.function, source):
        known = replace(problem, packs_per_product=0.0)
        recipes = kernels.recipes(known, target, store)
        panels = kernels.weights.panels(places.function, source, known, recipes, store.span)
        if panels is not None:
            found.problem, given = known, prepacked_recipes(known, recipes)
            return given, (panels, problem.b.element if len(recipes) > 1 else given[0].mma.operand_b)
    place = None if target.versions else places.before(block, source)
    if place is None:
        return (), None
    shared = replace(problem, packs_per_product=1 / place.rounds)
    recipes = kernels.recipes(shared, target, store)
    if not any(recipe.packing.b for recipe, _ in recipes):
        return (), None
    found.problem, recipe = shared, recipes[0][0].with_prepacked_b()
    packer = kernels.packer(shared, recipe, target)
    return (recipe,), (_pack_before(places, place.block, packer, found.pointers[2]), recipe.mma.operand_b)


def _pack_before(places: HoistPoints, place: Block, packing: PackingKernel, operand: tuple[Value, MatrixView]) -> Value:
    """Pack B at the end of a block; returns the panels."""
    b = Builder(places.module, places.function, Block("pack"))
    panels = b.retype(places.memory(b, packing.size), packing.element)
    args = [panels, b.retype(operand[0], operand[1].element)]
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(b.module.pointer_to(type_), packing.kernel.name), type_, args)
    places.put(place, b.block)
    return panels


def _remove_dead(function: Function, candidates: list[Instruction]) -> None:
    """Remove instructions of trees whose results are no longer used."""
    counts = {name: len(found) for name, found in uses(function).items()}
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


@dataclass(frozen=True)
class PackingKernel:
    """A kernel that packs B for others: its function, the bytes of the panels and their element type."""

    kernel: Function
    size: int
    element: Type


_Key = tuple[Problem, tuple[str, ...], bool]


@dataclass(eq=False)
class KernelCache:
    """The kernels of a module; equal problems share one.

    Attributes:
        module: The module.
        context: Options and remarks.
        made: Kernels, or their dispatchers, by problem, features, and whether B comes in panels.
        packers: Kernels that pack B for products whose B comes in panels.
        dispatch: Makes the dispatchers.
        weights: Constant operands, packed at compile time.
        cycles: Estimated cycles of single-threaded kernels, by name.
        nontemporal: Names of kernels with non-temporal stores.
    """

    module: Module
    context: LoweringContext
    made: dict[_Key, Function] = field(default_factory=dict["_Key", Function])
    packers: dict[_Key, PackingKernel] = field(default_factory=dict["_Key", PackingKernel])
    dispatch: Dispatcher = field(init=False)
    weights: ConstantWeights = field(init=False)
    cycles: dict[str, float] = field(default_factory=dict[str, float])
    nontemporal: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.dispatch = Dispatcher(self.module, self.context.options.request_permission)
        self.weights = ConstantWeights(
            self.module, self.context.remarks, self.context.options.weight_bytes, self.context.run_kernel
        )

    @cached_property
    def inner(self) -> KernelCache:
        """The kernels of parallel loops, each of which runs on one thread."""
        if self.context.options.threads == "none":
            return self
        inner = KernelCache(self.module, self.context.with_options(threads="none"))
        inner.weights, inner.nontemporal, inner.dispatch = self.weights, self.nontemporal, self.dispatch
        return inner

    def of(self, problem: Problem, target: Target, at: Instruction, given: Sequence[Recipe] = ()) -> Function:
        """The kernel for a problem on a target; `given` has a recipe for each version if B comes in panels."""
        key = problem, target.features, bool(given)
        if key not in self.made:
            make = self._versions if target.versions else self._make
            self.made[key] = make(problem, target, at, given)
        return self.made[key]

    def recipes(self, problem: Gemm, target: Target, at: Instruction) -> list[tuple[Recipe, Target]]:
        """The recipe of each version of a target; empty if some version computes a reduction of rows instead."""
        versions = target.versions or (target,)
        if any(self._as_row_sums(problem, version, at) is not None for version in versions):
            return []
        return [(select_with_knobs(self.context, problem, version, at)[0], version) for version in versions]

    def has_knobs(self, problem: Gemm, target: Target, at: Instruction) -> bool:
        """Whether knobs are set for a product."""
        return any(knobs_of(self.context, problem, version, at) for version in target.versions or (target,))

    def packer(self, problem: Gemm, recipe: Recipe, target: Target) -> PackingKernel:
        """The kernel that packs B for a product whose B comes in panels."""
        key = problem, target.features, True
        if key not in self.packers:
            kernel = packing_kernel(self.module, problem, recipe, target)
            size = PackedPanels.of(problem, recipe).size(recipe)
            self.packers[key] = PackingKernel(kernel, size, recipe.mma.operand_b)
        return self.packers[key]

    def _versions(self, problem: Problem, target: Target, at: Instruction, given: Sequence[Recipe]) -> Function:
        """The dispatcher of a kernel's versions, or the kernel if all versions are equal."""
        kernels: list[Function] = []
        for number, version in enumerate(target.versions):
            known = zip(target.versions, kernels, strict=False)
            weaker = (k for v, k in known if self._is_like(problem, v, version, at))
            kernels.append(next(weaker, None) or self._make(problem, version, at, given[number : number + 1]))
        if len({id(kernel) for kernel in kernels}) == 1:
            return kernels[0]
        names = {k.name: v.name for v, k in zip(reversed(target.versions), reversed(kernels), strict=True)}
        text = f"versions for {', '.join(reversed(names.values()))}: the program takes the last that its machine runs"
        self.context.remarks.add("applied", "to-tiles", text, at.span)
        stem = kernels[0].name.removesuffix(f".{target.versions[0].name}")
        made = self.dispatch.dispatcher(self.module.global_names.fresh(stem), target.versions, kernels)
        if self.nontemporal.intersection(names):
            self.nontemporal.add(made.name)
        return made

    def _is_like(self, problem: Problem, weaker: Target, version: Target, at: Instruction) -> bool:
        """Whether a version's kernel would equal that of a weaker one."""
        return set(weaker.features) <= set(version.features) and self._likeness(problem, weaker, at) == self._likeness(
            problem, version, at
        )

    def _likeness(self, problem: Problem, version: Target, at: Instruction) -> tuple[object, ...]:
        if not isinstance(problem, Gemm):
            return kernel_key(version, None, None)
        recipe = self._as_row_sums(problem, version, at) or select_with_knobs(self.context, problem, version, at)[0]
        return kernel_key(version, problem, recipe)

    def _make(self, problem: Problem, target: Target, at: Instruction, given: Sequence[Recipe]) -> Function:
        if isinstance(problem, Gemm):
            sums = None if given else self._as_row_sums(problem, target, at)
            if sums is None:
                return self._product(problem, target, at, given)
            problem = sums
        if isinstance(problem, LineShuffle):
            kernel = shuffle_kernel(self.module, problem, target)
            self.cycles[kernel.name] = problem.cycles
            return kernel
        if not isinstance(problem, Copy):
            self.context.remarks.add(
                "applied", "to-tiles", for_version(target, describe_kernel(problem, target)), at.span
            )
        least = self.context.options.thread_cycles
        slabs = cut_into_slabs(problem, target, least) if self.context.options.threads != "none" else None
        most = min(slabs.total, int(slabs.cycles / max(least, 1))) if slabs else 1
        if slabs is None or most < 2:
            kernel = self._kernel(problem, target)
            self.cycles[kernel.name] = problem_cycles(problem, target)
            return kernel
        kernels = [self._kernel(piece, target) for piece in (slabs.slab, slabs.rest) if piece is not None]
        return slabs_kernel(self.module, problem.kernel_name, slabs, kernels, most)

    def _kernel(self, problem: Copy | Elementwise | Reduction | RowFusion, target: Target) -> Function:
        """A kernel that runs on one thread."""
        if isinstance(problem, Copy):
            return copy_kernel(self.module, problem, target)
        if isinstance(problem, Elementwise):
            return elementwise_kernel(self.module, problem, target)
        if isinstance(problem, RowFusion):
            return row_fusion_kernel(self.module, problem, target)
        return reduce_kernel(self.module, problem, target)

    def _as_row_sums(self, problem: Gemm, target: Target, at: Instruction) -> Reduction | None:
        """A matrix-vector product as a reduction along K, unless knobs set a tile."""
        sums = as_row_reduction(problem, target)
        return None if sums is None or knobs_of(self.context, problem, target, at) else sums

    def _product(self, problem: Gemm, target: Target, at: Instruction, given: Sequence[Recipe]) -> Function:
        recipe, knobs = select_with_knobs(self.context, problem, target, at)
        recipe = given[0] if given else recipe
        if self.context.options.threads != "none":
            # Which thread multiplies which columns is known only at run time.
            recipe = replace(recipe, tile=replace(recipe.tile, dot_columns=0, paired_columns=0))
        remark_product(self.context, problem, recipe, knobs, target, at)
        work = gemm_parallel_cost(problem, recipe, target)
        streams = StreamingKernel if recipe.tile.streamed_rows else None
        emitter = MatrixUnitKernel if recipe.mma.unit == "matrix" else streams
        most = work.team(self.context.options.thread_cycles) if work and self.context.options.threads != "none" else 1
        if work is None or most < 2:
            kernel = gemm_kernel(self.module, problem, recipe, target, emitter=emitter)
            if recipe.stores.nontemporal:
                self.nontemporal.add(kernel.name)
            self.cycles[kernel.name] = work.cycles if work else 0.0
            return kernel
        prefetch, stores = replace(recipe.prefetch, locality=0), replace(recipe.stores, nontemporal=False)
        recipe = replace(recipe, prefetch=prefetch, stores=stores)
        kept = Scratch() if work.keeps else None
        part = gemm_kernel(self.module, problem, recipe, target, parts=True, kept=kept, emitter=emitter)
        many = self._together(problem, recipe, target, (work, most), emitter)
        return grid_kernel(self.module, PartialKernel(part, work, kept.size if kept else 0), most, many)

    def _together(
        self,
        problem: Gemm,
        recipe: Recipe,
        target: Target,
        team: tuple[ParallelCost, int],
        emitter: type[GemmKernel] | None,
    ) -> CooperativeBody | None:
        """How a team packs B together and multiplies; None where each thread packs what it reads."""
        work, most = team
        if not packs_cooperatively(problem, recipe, work, self.context.options.thread_cycles):
            return None
        given = recipe.with_prepacked_b()
        pack = packing_kernel(self.module, problem, recipe, target, parts=True)
        part = gemm_kernel(self.module, problem, given, target, parts=True, emitter=emitter)
        shared = gemm_parallel_cost(problem, given, target) or work
        return pack_cooperatively(self.module, problem, given, (pack, part), shared, most)
