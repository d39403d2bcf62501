"""Finding the 2-D trees of a function and replacing each by a call of its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tlx.ir.analysis import analyse
from tlx.ir.builder import Builder
from tlx.ir.module import Block, Function, Instruction, Module
from tlx.ir.rewriter import uses
from tlx.ir.tensors import TensorOp
from tlx.ir.types import VOID, FunctionType, Type
from tlx.ir.values import Global, Local, Value
from tlx.lower.nests import outline_nests
from tlx.lower.stage import Context, is_kernel
from tlx.lower.to_tiles.asked import chosen
from tlx.lower.to_tiles.copied_a import find_copies
from tlx.lower.to_tiles.copy import copy_kernel
from tlx.lower.to_tiles.dispatch import Dispatch, likeness
from tlx.lower.to_tiles.dispatched_nests import dispatch_nests
from tlx.lower.to_tiles.evaluate import passed
from tlx.lower.to_tiles.found import Found, Problem, problem_of
from tlx.lower.to_tiles.gemm import GemmKernel, gemm_kernel
from tlx.lower.to_tiles.kept import Cut
from tlx.lower.to_tiles.map import map_kernel
from tlx.lower.to_tiles.matrix_gemm import MatrixKernel
from tlx.lower.to_tiles.matvec import as_row_sums
from tlx.lower.to_tiles.nest_team import shared_blocks, spread
from tlx.lower.to_tiles.next_round import fence_behind
from tlx.lower.to_tiles.one_block import join_buffers
from tlx.lower.to_tiles.problem import Copy, Gemm, Map, Reduction, Rows, Shuffle
from tlx.lower.to_tiles.reading import Listing
from tlx.lower.to_tiles.recipe import Recipe
from tlx.lower.to_tiles.reduce import reduce_kernel
from tlx.lower.to_tiles.remarks import describe, for_version, remark_product
from tlx.lower.to_tiles.row_groups import Candidate, row_groups
from tlx.lower.to_tiles.rows import rows_kernel
from tlx.lower.to_tiles.scratch import Scratch
from tlx.lower.to_tiles.shared import Panels, Places, packing_kernel
from tlx.lower.to_tiles.shuffle import shuffle_kernel
from tlx.lower.to_tiles.slabs import cycles_of, slabs_of
from tlx.lower.to_tiles.streams import StreamKernel
from tlx.lower.to_tiles.team import Together, grid_kernel, slabs_kernel
from tlx.lower.to_tiles.team_panels import pack_together, packs_together
from tlx.lower.to_tiles.turned import turned
from tlx.lower.to_tiles.view import View
from tlx.lower.to_tiles.weights import Weights, given_weights
from tlx.lower.to_tiles.work import Work, gemm_work
from tlx.target import Target


@dataclass(frozen=True)
class _Packer:
    """The kernel that packs B for others: into so many bytes, of elements of a type."""

    kernel: Function
    size: int
    element: Type


_Key = tuple[Problem, tuple[str, ...], bool]


@dataclass(eq=False)
class _Kernels:
    """The kernels made so far; equal problems share one."""

    module: Module
    context: Context
    made: dict[_Key, Function] = field(default_factory=dict["_Key", Function])
    packers: dict[_Key, _Packer] = field(default_factory=dict["_Key", "_Packer"])
    dispatch: Dispatch = field(init=False)
    cycles: dict[str, float] = field(default_factory=dict[str, float])
    past_caches: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.dispatch = Dispatch(self.module, self.context.amx_permission)
        self.weights = Weights(self.module, self.context.remarks, self.context.weight_bytes)

    @cached_property
    def inner(self) -> _Kernels:
        """Kernels in loops whose iterations threads share: each runs on one thread."""
        if self.context.threads == "none":
            return self
        inner = _Kernels(self.module, replace(self.context, threads="none"))
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
        return [(chosen(self.context, problem, version, at)[0], version) for version in versions]

    def is_asked_for(self, problem: Gemm, target: Target, at: Instruction) -> bool:
        """Whether somebody says how a product is computed."""
        return any(chosen(self.context, problem, version, at)[1] for version in target.versions or (target,))

    def packer(self, problem: Gemm, recipe: Recipe, target: Target) -> _Packer:
        """What packs B for a product that is given it in panels."""
        key = problem, target.features, True
        if key not in self.packers:
            kernel = packing_kernel(self.module, problem, recipe, target)
            self.packers[key] = _Packer(kernel, Panels.of(problem, recipe).size(recipe), recipe.operand_b)
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
            return likeness(version, None, None)
        recipe = self._as_row_sums(problem, version, at) or chosen(self.context, problem, version, at)[0]
        return likeness(version, problem, recipe)

    def _make(self, problem: Problem, target: Target, at: Instruction, given: Sequence[Recipe]) -> Function:
        if isinstance(problem, Gemm):
            sums = None if given else self._as_row_sums(problem, target, at)
            if sums is None:
                return self._product(problem, target, at, given)
            problem = sums
        if isinstance(problem, Shuffle):
            kernel = shuffle_kernel(self.module, problem, target)
            self.cycles[kernel.name] = problem.cycles
            return kernel
        if not isinstance(problem, Copy):
            self.context.remarks.add("applied", "to-tiles", for_version(target, describe(problem, target)), at.span)
        least = self.context.thread_cycles
        slabs = slabs_of(problem, target, least) if self.context.threads != "none" else None
        most = min(slabs.total, int(slabs.cycles / max(least, 1))) if slabs else 1
        if slabs is None or most < 2:
            kernel = self._kernel(problem, target)
            self.cycles[kernel.name] = cycles_of(problem, target)
            return kernel
        kernels = [self._kernel(piece, target) for piece in (slabs.slab, slabs.rest) if piece is not None]
        return slabs_kernel(self.module, problem.kernel_name, slabs, kernels, most)

    def _kernel(self, problem: Copy | Map | Reduction | Rows, target: Target) -> Function:
        """The kernel of one thread."""
        if isinstance(problem, Copy):
            return copy_kernel(self.module, problem, target)
        if isinstance(problem, Map):
            return map_kernel(self.module, problem, target)
        if isinstance(problem, Rows):
            return rows_kernel(self.module, problem, target)
        return reduce_kernel(self.module, problem, target)

    def _as_row_sums(self, problem: Gemm, target: Target, at: Instruction) -> Reduction | None:
        """A product with a vector as sums along K, unless somebody asks for a tile."""
        sums = as_row_sums(problem, target)
        return None if sums is None or chosen(self.context, problem, target, at)[1] else sums

    def _product(self, problem: Gemm, target: Target, at: Instruction, given: Sequence[Recipe]) -> Function:
        recipe, knobs = chosen(self.context, problem, target, at)
        recipe = given[0] if given else recipe
        if self.context.threads != "none":
            recipe = replace(recipe, dots=0, pairs=0)  # who multiplies which columns is known when the program runs
        remark_product(self.context, problem, recipe, knobs, target, at)
        work = gemm_work(problem, recipe, target)
        emitter = MatrixKernel if recipe.unit == "matrix" else StreamKernel if recipe.streams else None
        most = work.team(self.context.thread_cycles) if work and self.context.threads != "none" else 1
        if work is None or most < 2:
            kernel = gemm_kernel(self.module, problem, recipe, target, emitter=emitter)
            if recipe.past_caches:
                self.past_caches.add(kernel.name)
            self.cycles[kernel.name] = work.cycles if work else 0.0
            return kernel
        recipe = replace(recipe, fetch=0, past_caches=False)
        kept = Scratch() if work.keeps else None
        part = gemm_kernel(self.module, problem, recipe, target, parts=True, kept=kept, emitter=emitter)
        many = self._together(problem, recipe, target, (work, most), emitter)
        return grid_kernel(self.module, Cut(part, work, kept.size if kept else 0), most, many)

    def _together(
        self, problem: Gemm, recipe: Recipe, target: Target, team: tuple[Work, int], emitter: type[GemmKernel] | None
    ) -> Together | None:
        """How a team of many threads packs B and multiplies; None where each thread packs what it reads."""
        work, most = team
        if not packs_together(problem, recipe, work, self.context.thread_cycles):
            return None
        given = replace(recipe, shared_b=True)
        pack = packing_kernel(self.module, problem, recipe, target, parts=True)
        part = gemm_kernel(self.module, problem, given, target, parts=True, emitter=emitter)
        shared = gemm_work(problem, given, target) or work
        return pack_together(self.module, problem, given, (pack, part), shared, most)


def to_tiles(module: Module, context: Context) -> None:
    """Replace every 2-D tree by a call of a kernel made of tile operations.

    Raises:
        LoweringError: A tensor operation is left that is no tree of stage 1's output.
    """
    kernels = _Kernels(module, context)
    for function in module.functions:
        if not is_kernel(module, function):
            _lower_function(module, function, kernels)
    nests = outline_nests(module, kernels.dispatch.made)
    join_buffers(module)
    fence_behind(module, nests, kernels.past_caches)
    nests = dispatch_nests(module, nests, kernels.dispatch, context.target.versions)
    if kernels.inner is not kernels:
        spread(module, nests, kernels.cycles | kernels.inner.cycles, context.thread_cycles)


def _lower_function(module: Module, function: Function, kernels: _Kernels) -> None:
    tensors = analyse(module, function)
    listing, places = Listing(tensors), Places(module, function)
    target = kernels.context.target_of(module, function)
    done: list[Instruction] = []
    calls: dict[int, list[Instruction]] = {}
    trees = {id(op.instruction): (op, problem_of(listing, op)) for op in tensors.ops if op.intrinsic.name == "store"}
    _turn(kernels, target, places, listing, trees)
    ahead = _copies(kernels, target, places, listing, trees)
    groups = row_groups(module, tensors, [_candidate(op, found) for op, found in trees.values()], target)
    several = {listing.block_of[id(member.store)].name for group in groups for member in group.members}
    shared = shared_blocks(function, several) if kernels.inner is not kernels else set[str]()
    inner = {id(i) for block in function.blocks if block.name in shared for i in block.instructions}
    for group in groups:
        *others, last = (member.store for member in group.members)
        calls |= {id(store): [] for store in others}
        found = Found(group.problem, group.pointers, group.scalars, [])
        own = kernels.inner if id(last) in inner else kernels
        calls[id(last)] = _kernel_call(own, target, listing, places, last, found)
    for op, found in trees.values():
        done += found.instructions
        if id(op.instruction) not in calls:
            own = kernels.inner if id(op.instruction) in inner else kernels
            call = _kernel_call(own, target, listing, places, op.instruction, found)
            calls[id(op.instruction)] = [*ahead.get(id(op.instruction), ()), *call]
    for block in function.blocks:
        block.instructions = [new for old in block.instructions for new in calls.get(id(old), (old,))]
    done += [op.instruction for op in tensors.ops] + [t.definition for t in tensors.tokens.values()]
    _remove_dead(function, done)
    places.finish()


def _turn(
    kernels: _Kernels, target: Target, places: Places, listing: Listing, trees: dict[int, tuple[TensorOp, Found]]
) -> None:
    """Have transposes of products computed where that pays, and nobody asks for something.

    Not in a loop, whose rounds may share a packed operand.
    """
    looped = {block for loop in places.loops for block in loop.blocks}
    for store, (op, found) in trees.items():
        other = turned(found, target.versions or (target,)) if listing.block_of[store].name not in looped else None
        both = [gemm for gemm in (found.problem, other) if isinstance(gemm, Gemm)]
        if other is not None and not any(kernels.is_asked_for(gemm, target, op.instruction) for gemm in both):
            found.problem = other
            found.pointers[1], found.pointers[2] = found.pointers[2], found.pointers[1]


def _copies(
    kernels: _Kernels, target: Target, places: Places, listing: Listing, trees: dict[int, tuple[TensorOp, Found]]
) -> dict[int, list[Instruction]]:
    """Have A copied where several products read it; gives what runs in front of stores, by their ids."""

    def recipes(gemm: Gemm, at: Instruction) -> list[tuple[Recipe, Target]]:
        return [] if kernels.is_asked_for(gemm, target, at) else kernels.recipes(gemm, target, at)

    products = {store: (listing.block_of[store], found) for store, (_, found) in trees.items()}
    ahead: dict[int, list[Instruction]] = {}
    for copy in find_copies(places, listing.tensors, products, recipes):
        b = Builder(kernels.module, places.function, Block("copy"))
        _call(b, kernels.of(copy.problem, target, copy.first), copy.serve(places, b))
        if copy.block is None:
            ahead[id(copy.first)] = b.block.instructions
        else:
            places.put(copy.block, b.block)
        kernels.context.remarks.add("applied", "to-tiles", copy.remark, copy.first.span)
    return ahead


def _call(b: Builder, kernel: Function, operands: Sequence[tuple[Value, View]]) -> None:
    """Call a kernel of pointers only."""
    args = [b.retype(pointer, view.element) for pointer, view in operands]
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(b.module.pointer_to(type_), kernel.name), type_, args)


def _candidate(op: TensorOp, found: Found) -> Candidate:
    problem = found.problem if isinstance(found.problem, (Map, Reduction)) else None
    return Candidate(op.instruction, problem, found.pointers, found.scalars)


def _kernel_call(
    kernels: _Kernels, target: Target, listing: Listing, places: Places, store: Instruction, found: Found
) -> list[Instruction]:
    """The call of a kernel that takes the place of a store."""
    b = Builder(kernels.module, places.function, Block("call"))
    b.debug = store.debug_location
    args = [b.retype(p, v.element) for p, v in found.pointers]
    found.problem = places.rounds.known(found.problem, listing.block_of[id(store)], found.pointers)
    given, panels = _panels(kernels, target, places, listing.block_of[id(store)], store, found)
    kernel = kernels.of(found.problem, target, store, given)
    if panels is not None:
        args[2] = b.retype(*panels)
    args += [passed(b, scalar) for scalar in found.scalars]
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(b.module.pointer_to(type_), kernel.name), type_, args)
    return b.block.instructions


def _panels(
    kernels: _Kernels, target: Target, places: Places, block: Block, store: Instruction, found: Found
) -> tuple[Sequence[Recipe], tuple[Value, Type] | None]:
    """B in panels that the compiler has packed, or code in front of a loop: recipes, pointer, and type of elements."""
    problem = found.problem
    if not isinstance(problem, Gemm):
        return (), None
    source = found.pointers[2][0]
    if kernels.weights.are_at(places.function, source):
        known = replace(problem, packings=0.0)
        recipes = kernels.recipes(known, target, store)
        panels = kernels.weights.panels(places.function, source, known, recipes, store.span)
        if panels is not None:
            found.problem, given = known, given_weights(known, recipes)
            return given, (panels, problem.b.element if len(recipes) > 1 else given[0].operand_b)
    place = None if target.versions else places.before(block, source)
    if place is None:
        return (), None
    shared = replace(problem, packings=1 / place.rounds)
    recipes = kernels.recipes(shared, target, store)
    if not any(recipe.pack_b for recipe, _ in recipes):
        return (), None
    found.problem, recipe = shared, replace(recipes[0][0], shared_b=True)
    packer = kernels.packer(shared, recipe, target)
    return (recipe,), (_pack_before(places, place.block, packer, found.pointers[2]), recipe.operand_b)


def _pack_before(places: Places, place: Block, packing: _Packer, operand: tuple[Value, View]) -> Value:
    """Have B packed at the end of a block; gives the panels."""
    b = Builder(places.module, places.function, Block("pack"))
    panels = b.retype(places.memory(b, packing.size), packing.element)
    args = [panels, b.retype(operand[0], operand[1].element)]
    type_ = FunctionType(VOID, tuple(a.type for a in args))
    b.call(Global(b.module.pointer_to(type_), packing.kernel.name), type_, args)
    places.put(place, b.block)
    return panels


def _remove_dead(function: Function, candidates: list[Instruction]) -> None:
    """Take out instructions of trees whose results nobody uses any more."""
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
