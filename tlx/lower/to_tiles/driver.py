"""Stage 2's driver: replaces each 2-D tree of a function with a call to its kernel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tlx.diagnostics import size_text
from tlx.ir.builder import Builder
from tlx.ir.control_flow import FunctionLoops
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import remove_dead, set_operand, uses
from tlx.ir.tensors.inference import analyse
from tlx.ir.transform import LoopRegion, has_no_effects, loop_region, remove_loops
from tlx.ir.types import I8, I64, PointerType, Type
from tlx.ir.values import Value, const_int
from tlx.lower.context import LoweringContext, is_kernel
from tlx.lower.memory.allocation import CACHE_LINE
from tlx.lower.memory.planner import choose_allocators, plan_memory
from tlx.lower.outlining import outline_nests
from tlx.lower.to_tiles.emit.kernel import call_function, kernel_scalar
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.kernels import (
    HoistedPanels,
    KernelCache,
    PackingKernel,
    PreparedPanels,
    facts_of,
    insert_fences,
)
from tlx.lower.to_tiles.match.stores import Match, match_store
from tlx.lower.to_tiles.match.trees import FunctionSnapshot
from tlx.lower.to_tiles.pack.constant_copies import find_constant_copies
from tlx.lower.to_tiles.pack.hoist import HoistPoint, HoistPoints, find_shared_copies
from tlx.lower.to_tiles.pack.prepare import PreparedArguments, find_prepared_arguments
from tlx.lower.to_tiles.parallel.region import share_teams
from tlx.lower.to_tiles.parallel.worksharing import (
    KernelWork,
    parallel_blocks,
    parallelise_nests,
    privatize_loops,
)
from tlx.lower.to_tiles.problem import Gemm, KernelOperand
from tlx.lower.to_tiles.rewrite.float_intermediates import with_float_intermediates
from tlx.lower.to_tiles.rewrite.row_fusion import find_row_fusions
from tlx.lower.to_tiles.rewrite.shared_constants import share_constants
from tlx.lower.to_tiles.select.recipe import Recipe
from tlx.lower.to_tiles.sharing import share_kernels
from tlx.lower.to_tiles.versions import multiversion_nests
from tlx.target.target import Target


def to_tiles(module: Module, context: LoweringContext) -> None:
    """Replace every 2-D tree by a call to a kernel made of tile operations.

    Raises:
        LoweringError: A tensor operation is left that is not part of a tree of stage 1's output.
    """
    kernels = KernelCache(module, context)
    functions = [function for function in module.functions if not is_kernel(module, function)]
    known = {prepared.function.name: prepared for prepared in find_prepared_arguments(module)}
    for prepared in known.values():
        _FunctionLowering(kernels, prepared.function, prepared).lower()
        prepared.drop_unused()
    for function in functions:
        if function.name not in known:
            _FunctionLowering(kernels, function).lower()
    for prepared in known.values():
        prepared.prepare_callees(known)
        prepared.finish()
    costs = kernels.loop_costs if kernels.uses_threads else None
    private = privatize_loops(module, functions, costs, context.options.thread_cycles) if costs is not None else []
    plan_memory(module, context, threads=kernels.uses_threads)
    nests = private + outline_nests(module, kernels.dispatch.kernels)
    if kernels.nontemporal:
        insert_fences(module, nests, kernels.nontemporal)
    if kernels.dispatch.kernels:
        nests = multiversion_nests(module, nests, kernels.dispatch, context.target.versions)
    if costs is not None:
        parallelise_nests(kernels.teams, nests, costs, context.options.thread_cycles)
        if share_teams(kernels.teams, context.remarks):
            choose_allocators(module, context)
    elif not context.target.versions:
        share_kernels(module, {prepared.preparation for prepared in known.values()})


class _FunctionLowering:
    """Replaces the trees of one function.

    Attributes:
        kernels: The kernels of the module.
        function: The function.
        prepared: Its arguments that are constant over calls; None if it has none.
        target: The machine it is for.
        loops, snapshot: Its loops and instructions before any tree is replaced.
        hoist_points: Where code is hoisted out of its loops.
        matches: Its trees, in program order.
        calls: The instructions that replace each store, by the store's id.
    """

    def __init__(self, kernels: KernelCache, function: Function, prepared: PreparedArguments | None = None) -> None:
        self.kernels, self.function, self.prepared = kernels, function, prepared
        self.target = kernels.context.target_of(kernels.module, function)
        self._analyse()
        if prepared is not None and not self.target.versions and self._prepare_copies(prepared):
            prepared.read_definitions()
            self._analyse()
        if kernels.context.options.bf16_intermediates == "float":
            self._keep_floats()
        share_constants(self.matches)
        self.calls: dict[int, list[Instruction]] = defaultdict(list)

    def _analyse(self) -> None:
        """Find the trees."""
        module, function = self.kernels.module, self.function
        self.loops, self.snapshot = FunctionLoops(function), FunctionSnapshot(function, analyse(module, function))
        self.hoist_points = HoistPoints(module, self.loops)
        stores = [op for op in self.snapshot.tensors.ops if op.intrinsic.name == "store"]
        self.matches = [match_store(self.snapshot, op) for op in stores]

    def _prepare_copies(self, prepared: PreparedArguments) -> bool:
        """Have the preparation copy constant arguments; returns whether there are any."""
        kernels = self.kernels.inner if self.kernels.uses_threads else self.kernels
        block_of = self.snapshot.block_of
        copies = list(find_constant_copies(prepared, self.loops, [(m, block_of[id(m.store)]) for m in self.matches]))
        if not copies:
            return False
        used = uses(self.function)
        for copy in copies:
            match, name = copy.match, str(copy.buffer.result)
            at = prepared.reserve(copy.place, ("copy", name), copy.size)
            kernel = kernels.of(match.problem, self.target, match.store)
            facts_of(kernel, match.problem, self.target).add_tree([*match.consumed, match.store])
            prepared.pack(copy.place, at, kernel, copy.loops)
            block = block_of[id(copy.buffer)]
            b = Builder(self.kernels.module, self.function, block, block.instructions.index(copy.buffer))
            address, type_ = prepared.address(b, copy.place, at), copy.buffer.value.type
            pointee = type_.pointee if isinstance(type_, PointerType) else None
            address = address if pointee is None else b.retype(address, pointee)
            for use in used.get(name, []):
                set_operand(use.instruction, use.index, address)
            block_of[id(match.store)].instructions.remove(match.store)
            if copy.allocation.is_call:  # it stays, as the function checks whether it failed
                set_operand(copy.allocation, 1, const_int(I64, 2 * CACHE_LINE))
            text = f"copy of {size_text(copy.size)} made once, by @{prepared.preparation}"
            self.kernels.context.remarks.add("applied", "to-tiles", text, match.store.span)
        remove_dead(self.function, [*self._tree_instructions(), *(copy.buffer for copy in copies)])
        remove_loops(self.function, self._loops_without_effects([block_of[id(copy.match.store)] for copy in copies]))
        return True

    def _loops_without_effects(self, blocks: Sequence[Block]) -> list[LoopRegion]:
        """The outermost loops around some blocks that only count."""
        outermost = dict[str, LoopRegion]()
        for block in blocks:
            loops = self.loops.enclosing_loops(block)
            regions = (loop_region(self.loops.flow, loop, has_no_effects) for loop in loops)
            if (region := next((region for region in regions if region is not None), None)) is not None:
                outermost[region.header.name] = region
        return list(outermost.values())

    def lower(self) -> None:
        """Replace all trees."""
        candidates = self._tree_instructions()
        self._run_selected_kernels()
        self._copy_shared_a()
        self._call_kernels()
        for block in self.function.blocks:
            block.instructions = [new for old in block.instructions for new in self.calls.get(id(old), (old,))]
        remove_dead(self.function, candidates)
        self.hoist_points.finish()

    def _tree_instructions(self) -> list[Instruction]:
        """The instructions of trees, which are dead once no store is left that needs them."""
        tensors = self.snapshot.tensors
        consumed = [instruction for match in self.matches for instruction in match.consumed]
        return [*consumed, *(op.instruction for op in tensors.ops), *(t.definition for t in tensors.tokens.values())]

    def _keep_floats(self) -> None:
        """Compute bfloat expressions in float."""
        for match in self.matches:
            match.problem, unrounded = with_float_intermediates(match.problem)
            if unrounded:
                text = f"bfloat expression computed in float: not rounded after {unrounded}"
                self.kernels.context.remarks.add("applied", "to-tiles", text, match.store.span)

    def _builder(self, name: str, at: Instruction) -> Builder:
        """A builder of instructions that are inserted later, for the tree of a store."""
        b = Builder(self.kernels.module, self.function, Block(name))
        b.span = at.span
        return b

    def _run_selected_kernels(self) -> None:
        """Call the kernels selected for each product but the last, which becomes the problem of the match."""
        for match in self.matches:
            gemm = match.problem
            if not isinstance(gemm, Gemm):
                continue
            is_in_loop = bool(self.loops.enclosing_independent_loops(self.snapshot.block_of[id(match.store)]))
            selected = self.kernels.sequence(match, gemm, self.target, is_in_loop=is_in_loop, prepared=self.prepared)
            b = self._builder("steps", match.store)
            temporaries = [(self.hoist_points.allocate(b, *memory), memory[0]) for memory in selected.temporaries]
            pointers = [(pointer, view.element) for pointer, view in match.pointers]
            operands = dict.fromkeys(operand for step in selected.steps for operand in step.operands)
            places = {o: _place(b, temporaries if o.is_temporary else pointers, o) for o in operands}
            *before, last = selected.steps
            for step in before:
                kernel = self.kernels.of(step.problem, self.target, match.store)
                _call(b, kernel, [places[operand] for operand in step.operands])
            match.problem = last.problem
            match.pointers[: 3 + (gemm.acc is not None)] = [places[operand] for operand in last.operands]
            self.calls[id(match.store)] += b.block.instructions

    def _copy_shared_a(self) -> None:
        """Copy A where several products read it."""

        def recipes(gemm: Gemm, at: Instruction) -> list[tuple[Recipe, Target]]:
            return self.kernels.recipes(gemm, self.target, at, with_knobs=False)

        for copy in find_shared_copies(self.hoist_points, self.snapshot, self.matches, recipes):
            b = self._builder("copy", copy.first)
            _call(b, self.kernels.of(copy.problem, self.target, copy.first), copy.serve(self.hoist_points, b))
            if copy.block is None:
                self.calls[id(copy.first)] += b.block.instructions
            else:
                self.hoist_points.insert_at_end(copy.block, b.block)
            self.kernels.context.remarks.add("applied", "to-tiles", copy.remark, copy.first.span)

    def _call_kernels(self) -> None:
        """Call the kernel of each tree, or of several trees whose rows are fused."""
        kernels, block_of = self.kernels, self.snapshot.block_of
        fusions = find_row_fusions(kernels.module, self.snapshot, self.matches, self.target)
        fused = {id(store) for fusion in fusions for store in fusion.stores}
        trees = {id(match.store): [*match.consumed, match.store] for match in self.matches}
        trees |= {id(f.match.store): [i for store in f.stores for i in trees[id(store)]] for f in fusions}
        self.calls |= {store: [] for store in fused}
        others = [match for match in self.matches if id(match.store) not in fused]
        matches = [*(fusion.match for fusion in fusions), *others]
        parallel = self._parallel_blocks(matches) if kernels.uses_threads else dict[str, int]()
        for match in matches:
            is_inner = block_of[id(match.store)].name in parallel
            tree = trees[id(match.store)]
            self.calls[id(match.store)] += self._kernel_call(kernels.inner if is_inner else kernels, match, tree)

    def _parallel_blocks(self, matches: Sequence[Match]) -> dict[str, int]:
        """The blocks in loops whose iterations threads share, with the number of these iterations."""
        work: dict[str, list[KernelWork]] = defaultdict(list)
        for match in matches if self.loops.independent else ():
            block = self.snapshot.block_of[id(match.store)]
            if self.loops.enclosing_independent_loops(block):
                work[block.name].append(self.kernels.work(match, self.target))
        context = self.kernels.context
        blocks = parallel_blocks(self.loops, work, context.options.thread_cycles)
        remarked: set[str] = set()
        for match in matches:
            block = self.snapshot.block_of[id(match.store)]
            if block.name in blocks and block.name not in remarked:
                remarked.add(block.name)
                text = f"threads share {blocks[block.name]} iterations: each runs the kernels of an iteration"
                context.remarks.add("applied", "to-tiles", text, match.store.span)
        return blocks

    def _kernel_call(self, kernels: KernelCache, match: Match, tree: Sequence[Instruction]) -> list[Instruction]:
        """The call to a kernel that replaces a tree, or several whose rows are fused."""
        b, block = self._builder("call", match.store), self.snapshot.block_of[id(match.store)]
        b.debug = match.store.debug_location
        args = [b.retype(pointer, view.element) for pointer, view in match.pointers]
        match.problem = self.hoist_points.batch_loops.with_batch(match.problem, block, match.pointers)
        prepacked = kernels.prepacked_b(match, self.target, self.hoist_points, block, self.prepared)
        if prepacked is not None:
            match.problem, panels = prepacked.problem, prepacked.panels
            if isinstance(panels, PreparedPanels):
                assert self.prepared is not None
                panels = self.prepared.address(b, panels.place, panels.at)
            elif isinstance(panels, HoistedPanels):
                panels = self._pack_before(panels.point, panels.packing, match)
            args[2] = b.retype(panels, prepacked.element)
        kernel = kernels.of(match.problem, self.target, match.store)
        facts_of(kernel, match.problem, self.target).add_tree(tree)
        call_function(b, kernel, [*args, *(kernel_scalar(b, scalar) for scalar in match.scalars)])
        return b.block.instructions

    def _pack_before(self, point: HoistPoint, packing: PackingKernel, match: Match) -> Value:
        """Pack B of a product before a loop; returns the panels."""
        b, (source, view), address = self._builder("pack", match.store), match.pointers[2], point.address
        panels = b.retype(self.hoist_points.allocate(b, I8, packing.size), packing.element)
        if address is not None:
            assert address.source_type is not None
            source = b.gep(address.source_type, address.operands[0], address.operands[1], "rhs.ptr")
        call_function(b, packing.kernel, [panels, b.retype(source, view.element)])
        self.hoist_points.insert_at_end(point.block, b.block)
        return panels


def _place(b: Builder, pointers: Sequence[tuple[Value, Type]], operand: KernelOperand) -> tuple[Value, MatrixView]:
    """Address and view of an operand, given the pointers that its number refers to, and their element types."""
    pointer, element = pointers[operand.number]
    if operand.offset:
        pointer = b.gep(element, b.retype(pointer, element), operand.offset)
    return pointer, operand.view


def _call(b: Builder, kernel: Function, operands: Sequence[tuple[Value, MatrixView]]) -> None:
    """Call a kernel that takes pointers only."""
    call_function(b, kernel, [b.retype(pointer, view.element) for pointer, view in operands])
