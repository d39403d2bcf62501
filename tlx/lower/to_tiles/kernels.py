"""The kernels of a module: equal problems share one; fences after non-temporal stores.

several versions            a kernel for each version that differs, and a dispatcher
several threads             a kernel for a part of the work, run by a team of threads
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property

from tlx.ir.builder import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.types import Type
from tlx.lower.context import LoweringContext
from tlx.lower.knobs import Knobs
from tlx.lower.to_tiles.emit.copy import copy_kernel, shuffle_kernel
from tlx.lower.to_tiles.emit.elementwise import elementwise_kernel
from tlx.lower.to_tiles.emit.gemm.kernel import gemm_kernel
from tlx.lower.to_tiles.emit.kernel import Scratch
from tlx.lower.to_tiles.emit.reduction import reduce_kernel
from tlx.lower.to_tiles.emit.row_fusion import row_fusion_kernel
from tlx.lower.to_tiles.pack.panels import PackedPanels, packing_kernel
from tlx.lower.to_tiles.pack.weights import ConstantWeights, with_panel_offsets
from tlx.lower.to_tiles.parallel.partition import ParallelCost, gemm_parallel_cost, partition_problem, problem_cycles
from tlx.lower.to_tiles.parallel.team import (
    CooperativeBody,
    PartialKernel,
    grid_kernel,
    pack_cooperatively,
    packs_cooperatively,
    partition_kernel,
)
from tlx.lower.to_tiles.problem import Copy, Elementwise, Gemm, LineShuffle, Problem, Reduction, RowFusion
from tlx.lower.to_tiles.remarks import describe_kernel, for_version, remark_product
from tlx.lower.to_tiles.select.product import select_kernel
from tlx.lower.to_tiles.select.recipe import Recipe
from tlx.lower.to_tiles.select.selection import knobs_of
from tlx.lower.to_tiles.versions import Dispatcher, kernel_key
from tlx.target.target import Target


@dataclass(frozen=True)
class PackingKernel:
    """A kernel that packs B for others: its function, the bytes of the panels and their element type."""

    kernel: Function
    size: int
    element: Type


_Key = tuple[Problem, tuple[str, ...]]


@dataclass(eq=False)
class KernelCache:
    """The kernels of a module; equal problems share one.

    Attributes:
        module: The module.
        context: Options and remarks.
        made: Kernels, or their dispatchers, by problem and features.
        packers: Kernels that pack B for products that are passed B in panels.
        knobs: Knobs of products, by problem and features, each looked up once.
        dispatch: Emits the dispatchers.
        weights: Constant operands, packed at compile time.
        cycles: Estimated cycles of single-threaded kernels, by name.
        nontemporal: Names of kernels with non-temporal stores.
    """

    module: Module
    context: LoweringContext
    made: dict[_Key, Function] = field(default_factory=dict["_Key", Function])
    packers: dict[_Key, PackingKernel] = field(default_factory=dict["_Key", PackingKernel])
    knobs: dict[tuple[Gemm, tuple[str, ...]], Knobs] = field(default_factory=dict[tuple[Gemm, tuple[str, ...]], Knobs])
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
        """The cache of single-threaded kernels, for parallel loops."""
        if self.context.options.threads == "none":
            return self
        inner = KernelCache(self.module, self.context.with_options(threads="none"))
        inner.weights, inner.nontemporal, inner.dispatch = self.weights, self.nontemporal, self.dispatch
        return inner

    def of(self, problem: Problem, target: Target, at: Instruction) -> Function:
        """The kernel for a problem on a target."""
        key = problem, target.features
        if key not in self.made:
            make = self._versions if target.versions else self._make
            self.made[key] = make(problem, target, at)
        return self.made[key]

    def recipes(self, problem: Gemm, target: Target, at: Instruction) -> list[tuple[Recipe, Target]]:
        """The recipe of each version of a target; empty if some version computes a reduction of rows instead."""
        versions = target.versions or (target,)
        selected = [(self._selected(problem, version, at), version) for version in versions]
        recipes = [(recipe, version) for recipe, version in selected if isinstance(recipe, Recipe)]
        return recipes if len(recipes) == len(versions) else []

    def has_knobs(self, problem: Gemm, target: Target, at: Instruction) -> bool:
        """Whether knobs are set for a product."""
        return any(self._knobs(problem, version, at) for version in target.versions or (target,))

    def packer(self, problem: Gemm, recipe: Recipe, target: Target) -> PackingKernel:
        """The kernel that packs B for a product that is passed B in panels."""
        key = problem, target.features
        if key not in self.packers:
            kernel = packing_kernel(self.module, problem, recipe, target)
            size = PackedPanels.of(problem, recipe).size(recipe)
            self.packers[key] = PackingKernel(kernel, size, recipe.mma.operand_b)
        return self.packers[key]

    def _versions(self, problem: Problem, target: Target, at: Instruction) -> Function:
        """The dispatcher of a kernel's versions, or the kernel if all versions are equal."""
        prepacked: tuple[Recipe, ...] = ()
        if isinstance(problem, Gemm) and problem.is_b_prepacked:
            prepacked = with_panel_offsets(problem, self.recipes(problem, target, at))
        kernels: list[Function] = []
        for number, version in enumerate(target.versions):
            known = zip(target.versions, kernels, strict=False)
            weaker = (k for v, k in known if self._is_like(problem, v, version, at))
            kernels.append(next(weaker, None) or self._make(problem, version, at, *prepacked[number : number + 1]))
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
        """Whether a version's kernel would equal that of a weaker version."""
        includes = set(weaker.features) <= set(version.features)
        return includes and self._key(problem, weaker, at) == self._key(problem, version, at)

    def _key(self, problem: Problem, version: Target, at: Instruction) -> tuple[object, ...]:
        """Everything that the kernel of a version depends on."""
        if not isinstance(problem, Gemm):
            return kernel_key(version, None, None)
        return kernel_key(version, problem, self._selected(problem, version, at))

    def _make(self, problem: Problem, target: Target, at: Instruction, recipe: Recipe | None = None) -> Function:
        if isinstance(problem, Gemm):
            selected = recipe or self._selected(problem, target, at)
            if isinstance(selected, Recipe):
                return self._product(problem, target, at, selected)
            problem = selected
        if isinstance(problem, LineShuffle):
            kernel = shuffle_kernel(self.module, problem, target)
            self.cycles[kernel.name] = problem.cycles
            return kernel
        if not isinstance(problem, Copy):
            self.context.remarks.add(
                "applied", "to-tiles", for_version(target, describe_kernel(problem, target)), at.span
            )
        least = self.context.options.thread_cycles
        parts = partition_problem(problem, target, least) if self.context.options.threads != "none" else None
        max_threads = min(parts.total, int(parts.cycles / max(least, 1))) if parts else 1
        if parts is None or max_threads < 2:
            kernel = self._kernel(problem, target)
            self.cycles[kernel.name] = problem_cycles(problem, target)
            return kernel
        kernels = [self._kernel(part, target) for part in (parts.part, parts.rest) if part is not None]
        return partition_kernel(self.module, problem.kernel_name, parts, kernels, max_threads)

    def _kernel(self, problem: Copy | Elementwise | Reduction | RowFusion, target: Target) -> Function:
        """A kernel that runs on one thread."""
        if isinstance(problem, Copy):
            return copy_kernel(self.module, problem, target)
        if isinstance(problem, Elementwise):
            return elementwise_kernel(self.module, problem, target)
        if isinstance(problem, RowFusion):
            return row_fusion_kernel(self.module, problem, target)
        return reduce_kernel(self.module, problem, target)

    def _selected(self, problem: Gemm, target: Target, at: Instruction) -> Recipe | Reduction:
        """How a kernel computes a product, by the knobs that the context has for it."""
        return select_kernel(problem, target, self._knobs(problem, target, at))

    def _knobs(self, problem: Gemm, target: Target, at: Instruction) -> Knobs:
        key = problem, target.features
        if key not in self.knobs:
            self.knobs[key] = knobs_of(self.context, problem, target, at)
        return self.knobs[key]

    def _product(self, problem: Gemm, target: Target, at: Instruction, recipe: Recipe) -> Function:
        knobs = self._knobs(problem, target, at)
        if self.context.options.threads != "none":
            # Which columns a thread multiplies is known only at run time.
            recipe = replace(recipe, tile=replace(recipe.tile, dot_columns=0, paired_columns=0))
        remark_product(self.context, problem, recipe, knobs, target, at)
        work = gemm_parallel_cost(problem, recipe, target)
        max_threads = (
            work.max_threads(self.context.options.thread_cycles)
            if work and self.context.options.threads != "none"
            else 1
        )
        if work is None or max_threads < 2:
            kernel = gemm_kernel(self.module, problem, recipe, target)
            if recipe.stores.nontemporal:
                self.nontemporal.add(kernel.name)
            self.cycles[kernel.name] = work.cycles if work else 0.0
            return kernel
        prefetch, stores = replace(recipe.prefetch, locality=0), replace(recipe.stores, nontemporal=False)
        recipe = replace(recipe, prefetch=prefetch, stores=stores)
        cache = Scratch() if work.caches_panels else None
        part = gemm_kernel(self.module, problem, recipe, target, parts=True, panel_cache=cache)
        body = self._cooperative_body(problem, recipe, target, (work, max_threads))
        return grid_kernel(self.module, PartialKernel(part, work, cache.size if cache else 0), max_threads, body)

    def _cooperative_body(
        self, problem: Gemm, recipe: Recipe, target: Target, team: tuple[ParallelCost, int]
    ) -> CooperativeBody | None:
        """The emitter of a team's cooperative packing and its product; None if each thread packs what it reads."""
        work, max_threads = team
        if not packs_cooperatively(problem, recipe, work, self.context.options.thread_cycles):
            return None
        prepacked = recipe.with_prepacked_b()
        pack = packing_kernel(self.module, problem, recipe, target, parts=True)
        part = gemm_kernel(self.module, problem, prepacked, target, parts=True)
        shared = gemm_parallel_cost(problem, prepacked, target) or work
        return pack_cooperatively(self.module, problem, prepacked, (pack, part), shared, max_threads)


def insert_fences(module: Module, nests: Collection[Function], kernels: Collection[str]) -> None:
    """Insert a fence after the loops around kernels with non-temporal stores.

    Args:
        module: The module.
        nests: Functions that are loop nests around kernels.
        kernels: Names of the kernels; outside of nests, a fence follows each call.
    """
    for function in module.functions if kernels else ():
        for block in function.blocks:
            calls = [index for index, i in enumerate(block.instructions) if i.callee in kernels]
            if calls and function in nests:
                _fence(module, function, function.blocks[-1], 0)
                break
            for index in reversed(calls):
                _fence(module, function, block, index + 1)


def _fence(module: Module, function: Function, block: Block, index: int) -> None:
    b = Builder(module, function, block)
    b.index = index
    b.fence()
