"""Stage 2 of targets with grids: each 2-D tree becomes a kernel, whose blocks compute tiles of its result.

A function of stage 1's output becomes a sequence of launches, one for each tree, which the launch table
(`tlx.target.launches`) lists; the function itself is removed. Iterations of independent loops around a tree are blocks
of its kernel's grid. Equal trees share a kernel.

Kernels consist of tile operations on what a thread computes, which stage 3 turns into instructions, and of operations
of the target's grid (`tlx.target.grid_unit`).
"""

from __future__ import annotations

from dataclasses import replace

from tlx.diagnostics import LoweringError, size_text
from tlx.ir.functions import Function
from tlx.ir.module import Module, UnparsedText
from tlx.ir.tensors.calls import is_tensor_call
from tlx.ir.types import VOID, Type, VectorType, bytes_of, is_scalar_number
from tlx.lower.context import LoweringContext, is_kernel
from tlx.lower.operations import ElementwiseOp
from tlx.lower.to_blocks.attention.kernel import attention_grid_kernel
from tlx.lower.to_blocks.attention.match import Attention, AttentionMatch
from tlx.lower.to_blocks.elementwise import copy_grid_kernel, elementwise_grid_kernel
from tlx.lower.to_blocks.host import AffinePointer, HostFunction, HostTree
from tlx.lower.to_blocks.kernel import (
    GridFacts,
    Iterations,
    MappedPointer,
    is_for_threads,
    thread_function_kernel,
)
from tlx.lower.to_blocks.memory_operations import is_memory_call
from tlx.lower.to_blocks.products.kernel import product_grid_kernels
from tlx.lower.to_blocks.rows.reduction import reduction_grid_kernel
from tlx.lower.to_blocks.rows.row_fusion import row_fusion_grid_kernel
from tlx.lower.to_tiles.match.stores import Match
from tlx.lower.to_tiles.problem import Copy, Elementwise, Gemm, Problem, Reduction, RowFusion
from tlx.target.grid_unit import GridUnit
from tlx.target.launches import (
    ALIGNMENT,
    SYMBOL,
    FunctionLaunches,
    Launch,
    LaunchArgument,
    constant_text,
)
from tlx.target.thread_calls import PREFIX

_QUALIFIERS = "addrspace(1) constant"


def to_blocks(module: Module, context: LoweringContext) -> None:
    """Lower all trees of the module to kernels, and add the launch table.

    Raises:
        LoweringError: The target has no kernel for a tree, or a function does more than launch kernels.
    """
    grid = context.target.grid
    assert grid is not None
    written = [function for function in module.functions if is_for_threads(module, function)]
    functions = [f for f in module.functions if not is_kernel(module, f) and _has_work(f) and f not in written]
    kernels = _Kernels(module, grid, context)
    table = [_launches(kernels, function) for function in functions]
    all_facts = [facts for sequence in kernels.facts.values() for facts in sequence]
    for function in written:
        facts, launches = thread_function_kernel(module, function, grid)
        all_facts.append(facts)
        table.append(launches)
    if not table:
        return
    module.remove(*functions, *(item for name, item in module.declarations.items() if name.startswith(PREFIX)))
    grid.operations.declare(module)
    grid.operations.annotate(module, {facts.name: (facts.block, facts.resident) for facts in all_facts})
    module.append(UnparsedText(constant_text(table, _QUALIFIERS)))
    module.global_names.taken.add(SYMBOL)


def _has_work(function: Function) -> bool:
    """Whether a function has tensor operations, or copies or numbers that stage 1 made of them."""
    return _is_of_numbers(function) or any(is_tensor_call(i) or is_memory_call(i) for i in function.instructions())


def _is_of_numbers(function: Function) -> bool:
    """Whether a function loads, computes and stores numbers, and nothing else: tensors of one element, or of none."""
    stored = [i.operands[0].type for i in function.instructions() if i.opcode == "store"]
    calls = [i for i in function.instructions() if i.is_call]
    is_straight = len(function.blocks) == 1 and all(map(ElementwiseOp.of, calls))
    does_nothing = len(list(function.instructions())) == 1
    return (
        is_straight
        and (does_nothing or bool(stored))
        and all(map(_is_number, stored))
        and function.signature.result == VOID
    )


def _is_number(type_: Type) -> bool:
    """Whether a type is a number, or a vector of one."""
    return is_scalar_number(type_.element if isinstance(type_, VectorType) and type_.count == 1 else type_)


class _Kernels:
    """The kernels of a module, by what they compute."""

    def __init__(self, module: Module, grid: GridUnit, context: LoweringContext) -> None:
        self.module, self.grid, self.context = module, grid, context
        self.facts: dict[tuple[Problem | Attention, Iterations], tuple[GridFacts, ...]] = {}

    def of(self, function: str, number: int, tree: HostTree, iterations: Iterations) -> tuple[GridFacts, ...]:
        """The kernels of a tree, in order."""
        match = tree.match
        key = match.attention if isinstance(match, AttentionMatch) else match.problem, iterations
        if key not in self.facts:
            self.facts[key] = self._new(function, number, tree, iterations)
            for facts in self.facts[key]:
                shared = f"{size_text(facts.shared)} of shared memory" if facts.shared else "no shared memory"
                size = f"{facts.grid} blocks of {facts.block} threads, {shared}"
                self.context.remarks.add("applied", "to-tiles", f"kernel {facts.name}: {size}", match.store.span)
        return self.facts[key]

    def _new(self, function: str, number: int, tree: HostTree, iterations: Iterations) -> tuple[GridFacts, ...]:
        match, problem, name = tree.match, tree.match.problem, f"{function}_{number}_matmul"
        if isinstance(match, AttentionMatch):
            name = f"{function}_{number}_attention"
            return (attention_grid_kernel(self.module, self.grid, match.attention, iterations, name),)
        if isinstance(problem, Gemm):
            _check_views(tree.match)
            return product_grid_kernels(self.module, self.grid, problem, iterations, name, tree.match.store.span)
        return (self._single(function, number, tree, iterations),)

    def _single(self, function: str, number: int, tree: HostTree, iterations: Iterations) -> GridFacts:
        match = tree.match
        problem, stem = match.problem, f"{function}_{number}_"
        span = match.store.span
        _check_views(match)
        if isinstance(problem, Copy):
            return copy_grid_kernel(self.module, self.grid, problem, iterations, f"{stem}copy")
        if isinstance(problem, Elementwise):
            return elementwise_grid_kernel(self.module, self.grid, problem, iterations, f"{stem}map")
        if isinstance(problem, Reduction):
            return reduction_grid_kernel(self.module, self.grid, problem, iterations, f"{stem}{problem.operation}")
        if isinstance(problem, RowFusion):
            return row_fusion_grid_kernel(self.module, self.grid, match, tree.private, iterations, f"{stem}rows")
        raise LoweringError("a shuffle of loaded vectors is not implemented for GPUs", span)


def _check_views(match: Match) -> None:
    if any(view.interleave > 1 for _, view in match.pointers):
        raise LoweringError(
            "a matrix with interleaved rows is not implemented for GPUs; pass it row-major",
            match.store.span,
        )


def _launches(kernels: _Kernels, function: Function) -> FunctionLaunches:
    """The launches of a function."""
    host = HostFunction(kernels.module, function, kernels.context.target)
    try:
        return _launches_of_trees(kernels, host)
    except LoweringError as error:
        if error.span is not None:
            raise
        raise LoweringError(f"@{function.name}: {error.message}", function.span) from None


def _launches_of_trees(kernels: _Kernels, host: HostFunction) -> FunctionLaunches:
    function, trees = host.function, host.trees()
    used = {place.temporary for tree in trees for place in tree.places}
    names = {name: number for number, name in enumerate(name for name in host.temporaries if name in used)}
    launches: list[Launch] = []
    workspace = 0  # one for all kernels, which run one after the other
    for number, tree in enumerate(trees):
        pointers = [_argument(place, names) for place in tree.places if place.constant is None]
        scalars = [LaunchArgument(parameter=scalar) for scalar in tree.scalars]
        for facts in kernels.of(function.name, number, tree, _iterations(host, tree)):
            shared = [LaunchArgument(temporary=len(names), offset=0)] if facts.workspace else []
            workspace = max(workspace, facts.workspace)
            maps = [_mapped(pointer, tree, names) for pointer in facts.maps]
            arguments = (*pointers, *shared, *scalars, *maps)
            launches.append(Launch(facts.name, facts.grid, facts.block, facts.shared, arguments))
    sizes = (*(host.bytes_of_temporary(name) for name in names), *([workspace] if workspace else []))
    return FunctionLaunches(function.name, host.parameter_types(), sizes, tuple(launches))


def _argument(place: AffinePointer, temporaries: dict[str, int]) -> LaunchArgument:
    if place.temporary is not None:
        return LaunchArgument(temporary=temporaries[place.temporary], offset=place.offset)
    return LaunchArgument(parameter=place.parameter, offset=place.offset)


def _mapped(pointer: MappedPointer, tree: HostTree, temporaries: dict[str, int]) -> LaunchArgument:
    """A tensor map; the workspace is the last temporary."""
    if pointer.workspace_offset is not None:
        place = LaunchArgument(temporary=len(temporaries), offset=pointer.workspace_offset)
    else:
        place = _argument(tree.places[pointer.number], temporaries)
    return replace(place, map=pointer.tensor_map)


def _iterations(host: HostFunction, tree: HostTree) -> Iterations:
    """The loops around a tree. Pointers are as aligned as parameters, as far as their offsets and steps allow."""
    alignments: list[int] = []
    passed = [pointer for number, pointer in enumerate(tree.match.pointers) if number not in tree.private]
    for place, (_, view) in zip(tree.places, passed, strict=True):
        alignment = ALIGNMENT if place.constant is None else min(ALIGNMENT, host.constants[place.constant])
        while any(number % alignment for number in (place.offset, *place.steps)):
            alignment //= 2
        alignments.append(max(alignment, bytes_of(view.element)))
    constants = tuple(None if place.constant is None else (place.constant, place.offset) for place in tree.places)
    return Iterations(tree.trips, tuple(place.steps for place in tree.places), tuple(alignments), constants)
