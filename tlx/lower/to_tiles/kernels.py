"""The kernels of a module: equal problems share one; fences after non-temporal stores.

several versions            a kernel for each version that differs, and a dispatcher
several threads             a kernel that computes a part of the tiles, run by a team of threads
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tlx.diagnostics import Span, size_text
from tlx.ir.builder import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.types import Type
from tlx.ir.values import Global, Value
from tlx.lower.context import LoweringContext
from tlx.lower.knobs import Knobs
from tlx.lower.to_tiles.emit.copy import copy_kernel, shuffle_kernel
from tlx.lower.to_tiles.emit.elementwise import elementwise_kernel
from tlx.lower.to_tiles.emit.gemm.kernel import gemm_kernel
from tlx.lower.to_tiles.emit.kernel import Scratch
from tlx.lower.to_tiles.emit.reduction import reduce_kernel
from tlx.lower.to_tiles.emit.row_fusion import row_fusion_kernel
from tlx.lower.to_tiles.match.stores import Match
from tlx.lower.to_tiles.pack.hoist import HoistPoint, HoistPoints
from tlx.lower.to_tiles.pack.panels import PackedPanels, copying_kernel, packing_kernel
from tlx.lower.to_tiles.pack.prepare import ConstantPlace, PreparedArguments
from tlx.lower.to_tiles.pack.weights import ConstantWeights, PackedForm, packed_forms, with_panel_offsets
from tlx.lower.to_tiles.parallel.partition import (
    ParallelCost,
    gemm_parallel_cost,
    most_threads,
    partition_problem,
    problem_cycles,
)
from tlx.lower.to_tiles.parallel.team import (
    CooperativePacking,
    PartialKernel,
    TeamKernels,
    grid_kernel,
    pack_cooperatively,
    packs_cooperatively,
    partition_kernel,
)
from tlx.lower.to_tiles.parallel.worksharing import KernelWork, LoopCosts
from tlx.lower.to_tiles.problem import (
    Copy,
    Elementwise,
    Gemm,
    KernelSequence,
    LineShuffle,
    Problem,
    Reduction,
    RowFusion,
)
from tlx.lower.to_tiles.remarks import describe_kernel, for_version, remark_product
from tlx.lower.to_tiles.rewrite.products import select_kernel, select_product
from tlx.lower.to_tiles.select.recipe import Recipe
from tlx.lower.to_tiles.select.recipe_cost import cost
from tlx.lower.to_tiles.select.selection import knobs_of
from tlx.lower.to_tiles.versions import Dispatcher, kernel_key
from tlx.target.target import Target


@dataclass(frozen=True)
class PackingKernel:
    """A kernel that packs B for others: its function, the bytes of the panels and their element type."""

    kernel: Function
    size: int
    element: Type


@dataclass(frozen=True)
class HoistedPanels:
    """Panels of B that are packed before the loop whose products read them."""

    point: HoistPoint
    packing: PackingKernel


@dataclass(frozen=True)
class PreparedPanels:
    """Panels of B in the prepared block of an argument, at an offset."""

    place: ConstantPlace
    at: int


@dataclass(frozen=True)
class PrepackedB:
    """A B whose panels are packed before the product's kernel is called.

    Attributes:
        problem: The product, which says how often B is packed for it.
        element: Element type of the panels.
        panels: Where they are: in a global, in a prepared argument, or in memory of the function.
    """

    problem: Gemm
    element: Type
    panels: Value | HoistedPanels | PreparedPanels


@dataclass(eq=False)
class KernelFacts:
    """Why a kernel exists, for reports on the lowering; stored in the `facts` of its function.

    Attributes:
        problem: What it computes.
        target: The machine it is for.
        recipe: How it computes a product; None for other problems, and for a dispatcher of several versions.
        trees: For each call in the program, the user's code that it computes, that of the store last.
    """

    problem: Problem
    target: Target
    recipe: Recipe | None = None
    trees: list[tuple[Span, ...]] = field(default_factory=list[tuple[Span, ...]])

    def add_tree(self, instructions: Iterable[Instruction]) -> None:
        """Add the tree that a call to the kernel replaces: its instructions, the store last."""
        self.trees.append(tuple(dict.fromkeys(i.span for i in instructions if i.span is not None)))


def facts_of(kernel: Function, problem: Problem, target: Target, recipe: Recipe | None = None) -> KernelFacts:
    """The facts about a kernel; the given ones if it has none yet."""
    facts = kernel.facts.setdefault(KernelFacts, KernelFacts(problem, target, recipe))
    assert isinstance(facts, KernelFacts)
    return facts


_Key = tuple[Problem, tuple[str, ...]]


@dataclass(eq=False)
class KernelCache:
    """The kernels of a module; equal problems share one.

    Attributes:
        module: The module.
        context: Options and remarks.
        functions: Kernels, or their dispatchers, by problem and features.
        packers: Kernels that pack B for products that are passed B in panels.
        block_packers: The same for the versions of a target, whose panels share a block.
        knobs: Knobs of products, by problem and features, each looked up once.
        dispatch: Emits the dispatchers.
        weights: Constant operands, packed at compile time.
        uses_threads: Whether the work of a kernel may be divided among threads.
        needs_cycles: Whether threads may share the loops around kernels, which depends on the kernels' cycles.
        cycles: Estimated cycles of single-threaded kernels, by name.
        written: The positions of the pointers that kernels write to, by name, if that is not only the first.
        nontemporal: Names of kernels with non-temporal stores.
        teams: The kernels that run on several threads.
    """

    module: Module
    context: LoweringContext
    functions: dict[_Key, Function] = field(default_factory=dict["_Key", Function])
    packers: dict[_Key, PackingKernel] = field(default_factory=dict["_Key", PackingKernel])
    block_packers: dict[_Key, Function] = field(default_factory=dict["_Key", Function])
    knobs: dict[tuple[Gemm, tuple[str, ...]], Knobs] = field(default_factory=dict[tuple[Gemm, tuple[str, ...]], Knobs])
    dispatch: Dispatcher = field(init=False)
    weights: ConstantWeights = field(init=False)
    uses_threads: bool = field(init=False)
    needs_cycles: bool = field(init=False)
    cycles: dict[str, float] = field(default_factory=dict[str, float])
    written: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    nontemporal: set[str] = field(default_factory=set[str])
    teams: TeamKernels = field(init=False)

    def __post_init__(self) -> None:
        self.uses_threads = self.needs_cycles = self.context.options.threads != "none"
        self.teams = TeamKernels(self.module)
        self.dispatch = Dispatcher(self.module, self.context.options.request_permission)
        self.weights = ConstantWeights(
            self.module, self.context.remarks, self.context.options.weight_bytes, self.context.run_kernel
        )

    @cached_property
    def inner(self) -> KernelCache:
        """The cache of single-threaded kernels, for parallel loops."""
        inner = KernelCache(self.module, self.context.with_options(threads="none"))
        inner.weights, inner.nontemporal, inner.dispatch = self.weights, self.nontemporal, self.dispatch
        inner.needs_cycles = True
        return inner

    @property
    def loop_costs(self) -> LoopCosts:
        """What is known about the kernels in loops that threads may share."""
        return LoopCosts(self.cycles | self.inner.cycles, self.written | self.inner.written)

    def of(self, problem: Problem, target: Target, at: Instruction) -> Function:
        """The kernel for a problem on a target."""
        key = problem, target.features
        if key not in self.functions:
            make = self._versions if target.versions else self._make
            self.functions[key] = make(problem, target, at)
            if isinstance(problem, RowFusion):
                self.written[self.functions[key].name] = tuple({part.pointers[0]: None for part in problem.parts})
        return self.functions[key]

    def work(self, match: Match, target: Target) -> KernelWork:
        """What the kernel of a match does, as far as its loop is concerned."""
        problem, version, least = match.problem, (target.versions or (target,))[-1], self.context.options.thread_cycles
        written = tuple({part.pointers[0]: None for part in problem.parts}) if isinstance(problem, RowFusion) else (0,)
        pointers = tuple(match.pointers[position][0] for position in written)
        if isinstance(problem, Gemm):
            selected = self._selected(problem, version, match.store)
            work = gemm_parallel_cost(problem, selected, version) if isinstance(selected, Recipe) else None
            if work is not None:
                return KernelWork(work.cycles, work.max_threads(least), pointers)
            if isinstance(selected, Recipe):
                return KernelWork(cost(problem, selected, version).compute, 1, pointers)
            problem = selected
        if isinstance(problem, LineShuffle):
            return KernelWork(problem.cycles, 1, pointers)
        parts = partition_problem(problem, version, least)
        threads = most_threads(parts.total, parts.cycles, least) if parts else 1
        return KernelWork(problem_cycles(problem, version), threads, pointers)

    def sequence(
        self, match: Match, gemm: Gemm, target: Target, *, is_in_loop: bool, prepared: PreparedArguments | None = None
    ) -> KernelSequence:
        """The kernels that compute a matched product.

        A product in a loop is computed as it is, since iterations may share a packed operand, and so is one with knobs.
        """
        if is_in_loop:
            return KernelSequence.of(gemm)
        b = match.pointers[2][0]
        constant_b = isinstance(b, Global) or (prepared is not None and prepared.place(b) is not None)
        sequence = select_product(gemm, target.versions or (target,), constant_b=constant_b)
        problems = dict.fromkeys((gemm, *(step.problem for step in sequence.steps)))
        products = [problem for problem in problems if isinstance(problem, Gemm)]
        has_knobs = len(products) > 1 and any(self._has_knobs(problem, target, match.store) for problem in products)
        return KernelSequence.of(gemm) if has_knobs else sequence

    def prepacked_b(
        self,
        match: Match,
        target: Target,
        hoist_points: HoistPoints,
        block: Block,
        prepared: PreparedArguments | None = None,
    ) -> PrepackedB | None:
        """The B of a matched product, if it is packed at compile time, before all calls, or before the loops around it.

        None if none of that pays.
        """
        gemm = match.problem
        if not isinstance(gemm, Gemm):
            return None
        source = match.pointers[2][0]
        if self.weights.is_constant(hoist_points.definitions, source):
            problem = replace(gemm, packs_per_product=0.0)
            recipes = self.recipes(problem, target, match.store)
            panels = self.weights.panels(hoist_points.function, source, problem, recipes, match.store.span)
            if panels is not None:
                element = problem.b.element if len(recipes) > 1 else recipes[0][0].mma.operand_b
                return PrepackedB(problem, element, panels)
        place = prepared.place(source) if prepared is not None else None
        if prepared is not None and place is not None:
            prepacked = self._prepared_b(replace(gemm, packs_per_product=0.0), target, prepared, place, match.store)
            if prepacked is not None:
                return prepacked
        point = None if target.versions else hoist_points.before(block, source)
        if point is None:
            return None
        problem = replace(gemm, packs_per_product=1 / point.trips)
        recipes = self.recipes(problem, target, match.store)
        if not any(recipe.packing.b for recipe, _ in recipes):
            return None
        packing = self._packing(problem, recipes[0][0], target)
        return PrepackedB(problem, packing.element, HoistedPanels(point, packing))

    def _prepared_b(
        self, problem: Gemm, target: Target, prepared: PreparedArguments, place: ConstantPlace, at: Instruction
    ) -> PrepackedB | None:
        """B packed by the preparation of its function; None if no version packs B."""
        recipes = self.recipes(problem, target, at)
        if not any(recipe.packing.b for recipe, _ in recipes):
            return None
        forms = packed_forms(problem, recipes)
        key = tuple(form.key(problem) for form in forms)
        offset = prepared.find(place, key)
        if offset is None:
            size = max(form.at + form.size for form in forms)
            offset = prepared.reserve(place, key, size)
            prepared.pack(place, offset, self._block_packing(problem, target, recipes, forms))
        else:
            size = 0
        name = prepared.preparation
        text = f"{problem.title}: B packed by @{name}: " + (size_text(size) if size else "shared")
        self.context.remarks.add("applied", "to-tiles", text, at.span)
        element = problem.b.element if len(recipes) > 1 else recipes[0][0].mma.operand_b
        return PrepackedB(problem, element, PreparedPanels(place, offset))

    def _block_packing(
        self, problem: Gemm, target: Target, recipes: Sequence[tuple[Recipe, Target]], forms: Sequence[PackedForm]
    ) -> Function:
        """The kernel that packs B, in the form that this machine's version reads."""
        if not target.versions:
            return self._packing(problem, recipes[0][0], target).kernel
        key = problem, target.features
        if key not in self.block_packers:
            kernels: dict[int, Function] = {}
            for form in forms:
                if form.at not in kernels:
                    make = packing_kernel if form.recipe.packing.b else copying_kernel
                    kernels[form.at] = make(self.module, problem, form.recipe, form.target, at=form.at)
            name = self.module.global_names.fresh(f"{problem.kernel_name}.pack")
            dispatched = [kernels[form.at] for form in forms]
            only = len(kernels) == 1
            self.block_packers[key] = (
                dispatched[0] if only else self.dispatch.dispatcher(name, target.versions, dispatched)
            )
        return self.block_packers[key]

    def recipes(
        self, problem: Gemm, target: Target, at: Instruction, *, with_knobs: bool = True
    ) -> list[tuple[Recipe, Target]]:
        """The recipe of each version of a target; empty if some version computes a reduction of rows instead.

        Without `with_knobs`, it is empty for a product with knobs, too.
        """
        if not with_knobs and self._has_knobs(problem, target, at):
            return []
        versions = target.versions or (target,)
        selected = [(self._selected(problem, version, at), version) for version in versions]
        recipes = [(recipe, version) for recipe, version in selected if isinstance(recipe, Recipe)]
        return recipes if len(recipes) == len(versions) else []

    def _has_knobs(self, problem: Gemm, target: Target, at: Instruction) -> bool:
        """Whether any knob is set for a product."""
        return any(self._knobs(problem, version, at) for version in target.versions or (target,))

    def _packing(self, problem: Gemm, recipe: Recipe, target: Target) -> PackingKernel:
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
            previous = zip(target.versions, kernels, strict=False)
            weaker = (k for v, k in previous if self._equals_weaker_version(problem, v, version, at))
            kernels.append(next(weaker, None) or self._make(problem, version, at, *prepacked[number : number + 1]))
        if len({id(kernel) for kernel in kernels}) == 1:
            return kernels[0]
        names = {k.name: v.name for v, k in zip(reversed(target.versions), reversed(kernels), strict=True)}
        levels = ", ".join(reversed(names.values()))
        text = f"versions for {levels}: the program uses the last one that the processor supports"
        self.context.remarks.add("applied", "to-tiles", text, at.span)
        stem = kernels[0].name.removesuffix(f".{target.versions[0].name}")
        dispatcher = self.dispatch.dispatcher(self.module.global_names.fresh(stem), target.versions, kernels)
        if self.nontemporal.intersection(names):
            self.nontemporal.add(dispatcher.name)
        return dispatcher

    def _equals_weaker_version(self, problem: Problem, weaker: Target, version: Target, at: Instruction) -> bool:
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
                kernel = self._product(problem, target, at, selected)
                facts_of(kernel, problem, target, selected)
                return kernel
            problem = selected
        if isinstance(problem, LineShuffle):
            kernel = shuffle_kernel(self.module, problem, target)
            facts_of(kernel, problem, target)
            self.cycles[kernel.name] = problem.cycles
            return kernel
        if not isinstance(problem, Copy):
            self.context.remarks.add(
                "applied", "to-tiles", for_version(target, describe_kernel(problem, target)), at.span
            )
        thread_cycles = self.context.options.thread_cycles
        parts = partition_problem(problem, target, thread_cycles) if self.uses_threads else None
        max_threads = most_threads(parts.total, parts.cycles, thread_cycles) if parts else 1
        if parts is None or max_threads < 2:
            kernel = self._kernel(problem, target)
            facts_of(kernel, problem, target)
            self.cycles[kernel.name] = problem_cycles(problem, target)
            if isinstance(problem, RowFusion):
                self.written[kernel.name] = tuple({part.pointers[0]: None for part in problem.parts})
            return kernel
        kernels = [self._kernel(part, target) for part in (parts.part, parts.rest) if part is not None]
        return partition_kernel(self.teams, problem.kernel_name, parts, kernels, max_threads)

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
        if self.uses_threads:
            # Which columns a thread multiplies is known only at run time.
            recipe = replace(recipe, tile=replace(recipe.tile, dot_columns=0, paired_columns=0))
        remark_product(self.context, problem, recipe, knobs, target, at)
        work = gemm_parallel_cost(problem, recipe, target) if self.needs_cycles else None
        max_threads = work.max_threads(self.context.options.thread_cycles) if work and self.uses_threads else 1
        if work is None or max_threads < 2:
            kernel = gemm_kernel(self.module, problem, recipe, target)
            if recipe.stores.nontemporal:
                self.nontemporal.add(kernel.name)
            if work is not None:
                self.cycles[kernel.name] = work.cycles
            return kernel
        prefetch, stores = replace(recipe.prefetch, locality=0), replace(recipe.stores, nontemporal=False)
        recipe = replace(recipe, prefetch=prefetch, stores=stores)
        cache = Scratch() if work.caches_panels else None
        part = gemm_kernel(self.module, problem, recipe, target, parts=True, panel_cache=cache)
        packing = self._cooperative_packing(problem, recipe, target, (work, max_threads))
        return grid_kernel(self.teams, PartialKernel(part, work, cache.size if cache else 0), max_threads, packing)

    def _cooperative_packing(
        self, problem: Gemm, recipe: Recipe, target: Target, team: tuple[ParallelCost, int]
    ) -> CooperativePacking | None:
        """How a team packs B for the product; None if each thread packs what it reads."""
        work, max_threads = team
        if not packs_cooperatively(problem, recipe, work, self.context.options.thread_cycles):
            return None
        prepacked = recipe.with_prepacked_b()
        pack = packing_kernel(self.module, problem, recipe, target, parts=True)
        part = gemm_kernel(self.module, problem, prepacked, target, parts=True)
        shared = gemm_parallel_cost(problem, prepacked, target) or work
        return pack_cooperatively(problem, prepacked, (pack, part), shared, max_threads)


def insert_fences(module: Module, nests: Collection[Function], kernels: Collection[str]) -> None:
    """Insert a fence after the loops around kernels with non-temporal stores.

    Args:
        module: The module.
        nests: Functions that are loop nests around kernels.
        kernels: Names of the kernels; outside of nests, a fence follows each call.
    """
    for function in module.functions:
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
