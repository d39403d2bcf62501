"""The kernels of a module.

equal problems              one kernel
several targets in one      a kernel for each that differs, and what chooses when the program runs
threads, much work          a kernel of a part of it, and what has a team run that
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.types import Type
from tlx.lower.context import LoweringContext
from tlx.lower.to_tiles.emit.copy.kernels import copy_kernel, shuffle_kernel
from tlx.lower.to_tiles.emit.elementwise import elementwise_kernel
from tlx.lower.to_tiles.emit.gemm.loop_nest import GemmKernel, gemm_kernel
from tlx.lower.to_tiles.emit.gemm.matrix_unit import MatrixUnitKernel
from tlx.lower.to_tiles.emit.gemm.streaming import StreamingKernel
from tlx.lower.to_tiles.emit.reduction import reduce_kernel
from tlx.lower.to_tiles.emit.row_fusion import row_fusion_kernel
from tlx.lower.to_tiles.pack.panel_cache import PartialKernel
from tlx.lower.to_tiles.pack.prepacked import PackedPanels, packing_kernel
from tlx.lower.to_tiles.pack.weights import ConstantWeights
from tlx.lower.to_tiles.parallel.partition import ParallelCost, cut_into_slabs, gemm_parallel_cost, problem_cycles
from tlx.lower.to_tiles.parallel.team import (
    CooperativeBody,
    grid_kernel,
    pack_cooperatively,
    packs_cooperatively,
    slabs_kernel,
)
from tlx.lower.to_tiles.problem.problems import Copy, Elementwise, Gemm, LineShuffle, Problem, Reduction, RowFusion
from tlx.lower.to_tiles.remarks import describe_kernel, for_version, remark_product
from tlx.lower.to_tiles.rewrite.products import as_row_reduction
from tlx.lower.to_tiles.scratch import Scratch
from tlx.lower.to_tiles.select.recipe import Recipe
from tlx.lower.to_tiles.select.selection import knobs_of, select_with_knobs
from tlx.lower.to_tiles.versions import Dispatcher, kernel_key
from tlx.target.target import Target


@dataclass(frozen=True)
class PackingKernel:
    """The kernel that packs B for others: into so many bytes, of elements of a type."""

    kernel: Function
    size: int
    element: Type


_Key = tuple[Problem, tuple[str, ...], bool]


@dataclass(eq=False)
class KernelCache:
    """The kernels made so far; equal problems share one.

    Attributes:
        module: Where they are.
        context: How to lower.
        made: Kernels, or what chooses one of them, by problem, features, and whether B is given in panels.
        packers: What packs B for products that are given it in panels.
        dispatch: Makes what chooses a version.
        weights: Constant operands that are packed at compile time.
        cycles: Work of kernels that run on one thread, by name.
        past_caches: Names of kernels that store past the caches.
    """

    module: Module
    context: LoweringContext
    made: dict[_Key, Function] = field(default_factory=dict["_Key", Function])
    packers: dict[_Key, PackingKernel] = field(default_factory=dict["_Key", PackingKernel])
    dispatch: Dispatcher = field(init=False)
    weights: ConstantWeights = field(init=False)
    cycles: dict[str, float] = field(default_factory=dict[str, float])
    past_caches: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.dispatch = Dispatcher(self.module, self.context.options.request_permission)
        self.weights = ConstantWeights(
            self.module, self.context.remarks, self.context.options.weight_bytes, self.context.run_kernel
        )

    @cached_property
    def inner(self) -> KernelCache:
        """Kernels in loops whose iterations threads share: each runs on one thread."""
        if self.context.options.threads == "none":
            return self
        inner = KernelCache(self.module, self.context.with_options(threads="none"))
        inner.weights, inner.past_caches, inner.dispatch = self.weights, self.past_caches, self.dispatch
        return inner

    def of(self, problem: Problem, target: Target, at: Instruction, given: Sequence[Recipe] = ()) -> Function:
        """The kernel for a problem on a target; a product may be `given` B in panels, by a recipe for each version."""
        key = problem, target.features, bool(given)
        if key not in self.made:
            make = self._versions if target.versions else self._make
            self.made[key] = make(problem, target, at, given)
        return self.made[key]

    def recipes(self, problem: Gemm, target: Target, at: Instruction) -> list[tuple[Recipe, Target]]:
        """How each version of a target multiplies; none where one adds up rows instead."""
        versions = target.versions or (target,)
        if any(self._as_row_sums(problem, version, at) is not None for version in versions):
            return []
        return [(select_with_knobs(self.context, problem, version, at)[0], version) for version in versions]

    def is_asked_for(self, problem: Gemm, target: Target, at: Instruction) -> bool:
        """Whether somebody says how a product is computed."""
        return any(knobs_of(self.context, problem, version, at) for version in target.versions or (target,))

    def packer(self, problem: Gemm, recipe: Recipe, target: Target) -> PackingKernel:
        """What packs B for a product that is given it in panels."""
        key = problem, target.features, True
        if key not in self.packers:
            kernel = packing_kernel(self.module, problem, recipe, target)
            size = PackedPanels.of(problem, recipe).size(recipe)
            self.packers[key] = PackingKernel(kernel, size, recipe.mma.operand_b)
        return self.packers[key]

    def _versions(self, problem: Problem, target: Target, at: Instruction, given: Sequence[Recipe]) -> Function:
        """Kernels for all versions of a target, and what chooses one when the program runs."""
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
        if self.past_caches.intersection(names):
            self.past_caches.add(made.name)
        return made

    def _is_like(self, problem: Problem, weaker: Target, version: Target, at: Instruction) -> bool:
        """Whether the kernel for a machine that can do less, and nothing else, is the one for a version."""
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
        """The kernel of one thread."""
        if isinstance(problem, Copy):
            return copy_kernel(self.module, problem, target)
        if isinstance(problem, Elementwise):
            return elementwise_kernel(self.module, problem, target)
        if isinstance(problem, RowFusion):
            return row_fusion_kernel(self.module, problem, target)
        return reduce_kernel(self.module, problem, target)

    def _as_row_sums(self, problem: Gemm, target: Target, at: Instruction) -> Reduction | None:
        """A product with a vector as sums along K, unless somebody asks for a tile."""
        sums = as_row_reduction(problem, target)
        return None if sums is None or knobs_of(self.context, problem, target, at) else sums

    def _product(self, problem: Gemm, target: Target, at: Instruction, given: Sequence[Recipe]) -> Function:
        recipe, knobs = select_with_knobs(self.context, problem, target, at)
        recipe = given[0] if given else recipe
        if self.context.options.threads != "none":
            # Which thread multiplies which columns is known at run time only.
            recipe = replace(recipe, tile=replace(recipe.tile, dot_columns=0, paired_columns=0))
        remark_product(self.context, problem, recipe, knobs, target, at)
        work = gemm_parallel_cost(problem, recipe, target)
        streams = StreamingKernel if recipe.tile.streamed_rows else None
        emitter = MatrixUnitKernel if recipe.mma.unit == "matrix" else streams
        most = work.team(self.context.options.thread_cycles) if work and self.context.options.threads != "none" else 1
        if work is None or most < 2:
            kernel = gemm_kernel(self.module, problem, recipe, target, emitter=emitter)
            if recipe.stores.nontemporal:
                self.past_caches.add(kernel.name)
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
        """How a team of many threads packs B and multiplies; None where each thread packs what it reads."""
        work, most = team
        if not packs_cooperatively(problem, recipe, work, self.context.options.thread_cycles):
            return None
        given = recipe.with_prepacked_b()
        pack = packing_kernel(self.module, problem, recipe, target, parts=True)
        part = gemm_kernel(self.module, problem, given, target, parts=True, emitter=emitter)
        shared = gemm_parallel_cost(problem, given, target) or work
        return pack_cooperatively(self.module, problem, given, (pack, part), shared, most)
