"""How a product is computed: the tile of a block, the unit that multiplies, and how many blocks share K.

The fastest of the tiles that fit into shared memory is chosen, by the costs of the grid (`MultiprocessorCosts`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from tlx.ir.types import Type, bytes_of
from tlx.lower.to_blocks.products.epilogue import ResultPart
from tlx.lower.to_blocks.products.group_product import GroupSums, MappedMemory, MappedOperands
from tlx.lower.to_blocks.products.implicit_gemm import MergedProduct
from tlx.lower.to_blocks.products.k_positions import terms_of
from tlx.lower.to_blocks.products.scalar_product import operand_bytes
from tlx.lower.to_tiles.problem import Gemm, gemm_accumulator_type
from tlx.target.grid_unit import BlockShape, FragmentProduct, GridUnit, GroupProduct, MultiprocessorCosts

_MOST_SPLITS: Final = 16
_OTHER_REGISTERS: Final = 40
"""Registers of a thread besides those of its sums and operands: addresses, numbers of stages and the like."""
_REGISTER_BYTES: Final = 4
"""Bytes of a register."""
_GAIN: Final = 1.1
"""How much faster a product must be expected to be for several blocks to share its positions of K."""


@dataclass(frozen=True, slots=True)
class ProductPlan:
    """How a product is computed.

    Attributes:
        shape: The block's tile.
        product: The product of fragments or of groups; None if each thread multiplies numbers.
        tiles: Rows and columns of tiles.
        splits: How many blocks share a tile's positions of K.
        is_mapped: Whether the operands are copied by tensor maps.
    """

    shape: BlockShape
    product: FragmentProduct | GroupProduct | None
    tiles: tuple[int, int]
    splits: int = 1
    is_mapped: bool = False

    @property
    def tile(self) -> int:
        """Elements of a tile."""
        return self.shape.rows * self.shape.columns


def plan_product(grid: GridUnit, product: MergedProduct, copied: Collection[int]) -> ProductPlan:
    """Choose the fastest tile and number of blocks that share its positions of K.

    Args:
        grid: The target's grid.
        product: The product.
        copied: Operands, by their pointers' numbers, that other kernels copy to the workspace before.
    """
    gemm = product.gemm
    accumulator = gemm_accumulator_type(gemm)
    unit = unit_of(grid, gemm)
    plans = [
        ProductPlan(shape, unit, (-(-product.rows // shape.rows), -(-product.columns // shape.columns)))
        for shape in (unit.shapes if unit is not None else grid.scalar_shapes)
    ]
    if isinstance(unit, GroupProduct):
        places = dict.fromkeys(copied, 0)
        plans += [
            replace(plan, is_mapped=True)
            for plan in plans
            if MappedOperands.of(grid, product, plan.shape, places) is not None
        ]
    plans = [plan for plan in plans if shared_bytes(plan, gemm, accumulator) <= grid.max_shared_bytes]
    candidates = [_with_splits(grid, plan, splits, gemm) for plan in plans for splits in _splits(plan, gemm)]
    return min(candidates, key=lambda plan: _cycles(grid, plan, product))


def _with_splits(grid: GridUnit, plan: ProductPlan, splits: int, gemm: Gemm) -> ProductPlan:
    """The plan with blocks that share a tile's positions of K, which need no more stages than they have.

    Blocks that compute several tiles have more stages, for copies of the next tiles, if that does not reduce the blocks
    that run at once.
    """
    most = plan.shape.stages
    plans = [
        replace(plan, splits=splits, shape=replace(plan.shape, stages=stages))
        for stages in range(min(most, _stages(plan, gemm) // splits), most + 1)
    ]
    if not plan.is_mapped or splits > 1:
        return plans[0]
    return max(plans, key=lambda plan: (resident_blocks(grid, plan, gemm), plan.shape.stages))


def unit_of(grid: GridUnit, gemm: Gemm) -> FragmentProduct | GroupProduct | None:
    """The product of fragments or groups, if there is one."""
    return next((unit for unit in grid.products if _fits(unit, gemm)), None)


def _splits(plan: ProductPlan, gemm: Gemm) -> list[int]:
    """The numbers of blocks that can share a tile's positions of K."""
    stages, least = _stages(plan, gemm), plan.shape.stages
    return [n for n in range(1, _MOST_SPLITS + 1) if stages % n == 0 and (n == 1 or stages // n >= least)]


def _cycles(grid: GridUnit, plan: ProductPlan, product: MergedProduct) -> float:
    """The time of the kernels, if each multiprocessor runs its blocks one after the other, but starts some at once."""
    gemm, shape, costs = product.gemm, plan.shape, grid.costs
    size = bytes_of(gemm.a.element)
    copied = (shape.rows + shape.columns) * shape.depth * size / costs.copied_bytes_per_cycle
    multiplied = plan.tile * shape.depth / _rate(grid, plan, size)
    stages = _stages(plan, gemm) // plan.splits
    stage = max(copied, multiplied) + _exposed_share(costs, plan, stages) * min(copied, multiplied)
    rounds = -(-prod(plan.tiles) * plan.splits * prod(product.outer.trips) // grid.multiprocessors)
    at_once = resident_blocks(grid, plan, gemm)
    started = -(-rounds // at_once)
    if plan.is_mapped and at_once == 1:  # the first copies of a tile are those during the epilogue of the one before
        started = (1 + rounds) / 2
    starts = (started + costs.serial_start_share * rounds) * costs.block_cycles + (
        costs.tensor_map_cycles if plan.is_mapped else 0
    )
    cycles = stages * stage
    if plan.splits == 1:
        return starts + rounds * cycles
    parts = 2 * plan.tile * bytes_of(gemm_accumulator_type(gemm)) / costs.memory_bytes_per_cycle  # written, and read
    return _GAIN * (starts + rounds * (cycles + parts)) + costs.kernel_cycles


def resident_blocks(grid: GridUnit, plan: ProductPlan, gemm: Gemm) -> int:
    """Blocks that a multiprocessor runs at once: as many as it has shared memory and registers for."""
    shared = shared_bytes(plan, gemm, gemm_accumulator_type(gemm)) + grid.reserved_shared_bytes
    registers = block_threads(grid, plan) * _registers(grid, plan, gemm)
    by_registers = max(plan.shape.min_resident_blocks, grid.registers // registers)
    return min(by_registers, (grid.max_shared_bytes + grid.reserved_shared_bytes) // shared)


def block_threads(grid: GridUnit, plan: ProductPlan) -> int:
    """Threads of a block, those of the warp that copies by tensor maps included."""
    threads = plan.shape.warps * (grid.warp_threads if plan.product is not None else 1)
    return threads + (grid.warp_threads if plan.is_mapped else 0)


def _registers(grid: GridUnit, plan: ProductPlan, gemm: Gemm) -> int:
    """An estimate of a thread's registers: its sums and operands; of fragments two steps, of groups none.

    The operands of groups stay in shared memory.
    """
    shape, unit, size = plan.shape, plan.product, bytes_of(gemm_accumulator_type(gemm))
    area, sides = shape.warp_rows * shape.warp_columns, shape.warp_rows + shape.warp_columns
    if unit is None:
        held_bytes = (area + sides) * size
    elif isinstance(unit, GroupProduct):
        held_bytes = area // grid.warp_threads * size
    else:
        held_bytes = (area * size + 2 * sides * unit.depth * bytes_of(gemm.a.element)) // grid.warp_threads
    return held_bytes // _REGISTER_BYTES + _OTHER_REGISTERS


def _exposed_share(costs: MultiprocessorCosts, plan: ProductPlan, stages: int) -> float:
    """The share of the faster of copies and products that takes time besides the other, in a block of some stages."""
    if stages == 1:
        return 1.0
    if plan.is_mapped:
        return costs.exposed_share_of_maps
    return costs.exposed_share_at_once if stages <= plan.shape.stages else costs.exposed_share


def _rate(grid: GridUnit, plan: ProductPlan, size: int) -> float:
    """Products in a cycle, of operands of some bytes, which most units load from shared memory."""
    shape, unit = plan.shape, plan.product
    area, sides = shape.warp_rows * shape.warp_columns, shape.warp_rows + shape.warp_columns
    if isinstance(unit, GroupProduct):
        return unit.fmas_per_cycle
    if unit is None:  # an instruction for each number that is loaded, too
        return grid.costs.scalar_fmas_per_cycle * area / (area + sides)
    return min(unit.fmas_per_cycle, grid.costs.shared_bytes_per_cycle / size * area / sides)


def _stages(plan: ProductPlan, gemm: Gemm) -> int:
    return -(-gemm.k * len(terms_of(gemm)) // plan.shape.depth)


def _fits(product: FragmentProduct | GroupProduct, gemm: Gemm) -> bool:
    operands = (str(gemm.a.element), gemm.lhs_sign), (str(gemm.b.element), gemm.rhs_sign)
    return operands == (product.lhs, product.rhs) and str(gemm_accumulator_type(gemm)) == product.accumulator


def shared_bytes(plan: ProductPlan, gemm: Gemm, accumulator: Type) -> int:
    """Bytes of shared memory of a block."""
    shape = plan.shape
    if plan.is_mapped:
        return MappedMemory.of(shape, gemm).size
    if plan.product is None:
        return operand_bytes(shape, accumulator)
    operands = (shape.rows + shape.columns) * shape.depth * bytes_of(gemm.a.element) * shape.stages
    rows = GroupSums.rows if isinstance(plan.product, GroupProduct) else plan.product.rows
    return max(operands, shape.warps * ResultPart.of(gemm.c.element, rows, shape.warp_columns).size)
