"""`nvidia`: NVIDIA's GPUs from compute capability 8.0 on, by LLVM's NVPTX back end.

bfloat and half are multiplied by the tensor cores (`mma.sync` m16n8k16), other types by ordinary instructions. A block
of sm_80 and sm_90 may have 163 KiB of shared memory at least.

CUDA C++ Programming Guide 13.0, table "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

from typing import Final

from tlx.legalize.nvidia import TRIPLES
from tlx.legalize.nvidia.driver import first_device
from tlx.legalize.nvidia.operations import BF16, F16, NvidiaOperations
from tlx.target.grid_unit import BlockShape, GridUnit
from tlx.target.hardware import Caches, CoreModel
from tlx.target.target import Target

GRID: Final = GridUnit(
    operations=NvidiaOperations(),
    linkage="ptx_kernel",
    warp=32,
    threads=256,
    multiprocessors=108,
    shared_bytes=163 << 10,
    group=8,
    products=(BF16, F16),
    shapes=(
        BlockShape(128, 256, 32, 64, 64, 4),
        BlockShape(128, 128, 32, 64, 32, 4),
        BlockShape(64, 64, 64, 32, 32, 4),
        BlockShape(32, 32, 64, 16, 16, 4),
    ),
    scalar_shapes=(BlockShape(128, 128, 16, 8, 8, 1), BlockShape(64, 64, 16, 4, 4, 1), BlockShape(32, 32, 16, 2, 2, 1)),
    device=first_device,
)

TARGET: Final = Target(
    name="nvidia",
    title="NVIDIA GPUs with tensor cores, sm_80 and later",
    triples=TRIPLES,
    processor="sm_80",
    fused=True,
    rounds=True,
    vector_bytes=16,
    registers=64,
    grid=GRID,
    caches=Caches(l1=128 << 10, l2=40 << 20, l3=40 << 20, line=128),
    core=CoreModel(products=4, loads=1, latency=4, width=4),
)
