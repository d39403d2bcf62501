"""`nvidia`: NVIDIA's GPUs from compute capability 8.0 on, by LLVM's NVPTX back end.

bfloat and half are multiplied by the tensor cores (`mma.sync` m16n8k16, and `wgmma` on sm_90a), other types by ordinary
instructions. A block of sm_80 may have 163 KiB of shared memory, one of sm_86, sm_89 and sm_120 99 KiB, one of sm_90
227 KiB.

CUDA C++ Programming Guide 13.0, table "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.legalize.nvidia import TRIPLES
from tlx.legalize.nvidia.driver import first_device
from tlx.legalize.nvidia.operations import BF16, BYTES, ESTIMATES, F16, F64, F64_WIDE, TF32, NvidiaOperations
from tlx.legalize.nvidia.tensor_copies import TensorMemoryAccelerator
from tlx.legalize.nvidia.warpgroups import BF16_GROUP, BYTE_GROUPS, F16_GROUP, FP8_GROUPS, TF32_GROUP
from tlx.target.costs.blocks import BlockCosts, ConvolutionCosts, CopyCosts, LoopFusionLimits
from tlx.target.costs.core import CoreModel
from tlx.target.costs.memory import Caches
from tlx.target.grid_unit import BlockShape, GridUnit, MultiprocessorCosts
from tlx.target.instructions.compilers import CompilerVersions
from tlx.target.instructions.vectors import NarrowFloats, VectorInstructions
from tlx.target.machines import Processor
from tlx.target.target import Target

_BLOCKS: Final = BlockCosts(
    cached_operand_bytes=1 << 40,  # blocks run at once: no slices of operands, one after the other
    strided_lhs_cycles=0,
    max_overlapping_copy_bytes=0,  # products read overlapping windows in place
    set_conflict_product_cycles=0,
    unreduced_factor=0,  # products are reduced by kernels of their own
    copies=CopyCosts(
        row_cycles=12,
        row_register_cycles=10,
        element_cycles=6,
        tile_cycles=0,  # operands are read in either order
        narrow_tile_cycles=0,
    ),
    convolutions=ConvolutionCosts(
        max_whole_copy_bytes=1 << 40,
        max_partial_copy_bytes=1 << 40,
        channels_first_byte_cycles=0.1,  # by another kernel, where the product could read the input in place
    ),
    loop_fusion=LoopFusionLimits(
        min_intermediate_caches=0, min_part_bytes=0, min_rows=1 << 30, max_whole_operand_l2s=0
    ),  # by batches: one kernel for attention
)
_GRID: Final = GridUnit(
    operations=NvidiaOperations(),
    calling_convention="ptx_kernel",
    warp_threads=32,
    block_threads=256,
    max_block_threads=1024,
    multiprocessors=108,
    max_shared_bytes=163 << 10,
    reserved_shared_bytes=1 << 10,
    registers=64 << 10,
    max_thread_registers=255,
    sector_bytes=32,
    raster_rows=8,
    products=(BF16, F16, *BYTES, F64),
    tf32_products=(TF32,),
    costs=MultiprocessorCosts(
        scalar_fmas_per_cycle=64,
        copied_bytes_per_cycle=40,
        shared_bytes_per_cycle=128,
        memory_bytes_per_cycle=12,
        block_cycles=1500,
        kernel_cycles=5000,
        serial_start_share=0.25,
        exposed_share=0.25,
        exposed_share_at_once=0.35,
        exposed_share_of_maps=0.1,
    ),
    scalar_shapes=(
        BlockShape(128, 128, 16, 8, 8, 1, min_resident_blocks=2),
        BlockShape(64, 64, 16, 4, 4, 1),
        BlockShape(32, 32, 32, 2, 2, 1),
    ),
    find_device=first_device,
)
_SMALL: Final = replace(_GRID, multiprocessors=82, max_shared_bytes=99 << 10)
_HOPPER: Final = replace(
    _GRID,
    multiprocessors=132,
    max_shared_bytes=227 << 10,
    products=(BF16_GROUP, F16_GROUP, *BYTE_GROUPS, F64_WIDE, *_GRID.products),
    tf32_products=(TF32_GROUP, TF32),
    fp8_products=FP8_GROUPS,
    costs=replace(
        _GRID.costs,
        scalar_fmas_per_cycle=128,
        copied_bytes_per_cycle=50,
        memory_bytes_per_cycle=25,
        tensor_map_cycles=700,
    ),
    tensor_copies=TensorMemoryAccelerator(),
)

TARGET: Final = Target(
    name="nvidia",
    title="NVIDIA GPUs with tensor cores, sm_80 and later",
    triples=TRIPLES,
    compilers=CompilerVersions(15),  # LLVM 14 crashes
    instructions=VectorInstructions(has_fma=True, has_rounding=True, has_minimum=True, estimates=ESTIMATES),
    narrow_floats=NarrowFloats(converts_half=True, converts_bfloat=True),
    vector_bytes=16,
    registers=56,
    grid=_GRID,
    block_costs=_BLOCKS,
    cpus={
        **dict.fromkeys(("sm_86", "sm_89", "sm_120"), Processor((), grid=_SMALL)),
        "sm_90a": Processor((), grid=_HOPPER),
    },
    default_cpu="sm_80",
    unsupported_cpus=tuple(f"sm_{number}" for number in (20, 21, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75)),
    caches=Caches(l1=128 << 10, l2=40 << 20, l3=40 << 20, line_bytes=128),
    core=CoreModel(fmas_per_cycle=4, loads_per_cycle=1, fma_latency=4, issue_width=4),
)
