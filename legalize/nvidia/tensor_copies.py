"""Copies by the tensor memory accelerator of sm_90, and the mbarriers that count them: inline PTX.

LLVM 19 has no intrinsics for the mbarriers' waits. A tensor map is passed as a `__grid_constant__` parameter.

PTX ISA 8.7: 9.7.9.27 cp.async.bulk.tensor, 9.7.13.15 mbarrier; CUDA C++ Programming Guide 13.0: 10.30 tensor maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tlx.ir.types import I32, VOID, PointerType
from tlx.ir.values import Value, const_int
from tlx.legalize.nvidia.operations import SHARED_SPACE, assembly

if TYPE_CHECKING:
    from tlx.ir.builder import Builder

_WAIT: Final = (
    "{ .reg .pred done; W_${:uid}: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; @!done bra W_${:uid}; }"
)


@dataclass(frozen=True)
class TensorMemoryAccelerator:
    """See `tlx.target.grid_unit.TensorCopies`."""

    map_bytes: int = 128
    map_alignment: int = 64
    line_bytes: int = 128
    most_dimensions: int = 5

    def make_barrier(self, b: Builder, barrier: Value, arrivals: int) -> None:
        """mbarrier.init."""
        count = const_int(I32, arrivals)
        self._run(b, "mbarrier.init.shared::cta.b64 [$0], $1;", "l,r", [_shared(b, barrier), count])

    def publish_barriers(self, b: Builder) -> None:
        """fence.mbarrier_init, and fence.proxy.async of shared memory."""
        self._run(b, "fence.mbarrier_init.release.cluster;\\0Afence.proxy.async.shared::cta;", "", [])

    def expect(self, b: Builder, barrier: Value, size: int) -> None:
        """mbarrier.arrive.expect_tx."""
        text = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;"
        self._run(b, text, "l,r", [_shared(b, barrier), const_int(I32, size)])

    def copy(self, b: Builder, to: Value, tensor_map: Value, at: Sequence[Value], barrier: Value) -> None:
        """cp.async.bulk.tensor."""
        place = ", ".join(f"${number + 2}" for number in range(len(at)))
        kind = f"cp.async.bulk.tensor.{len(at)}d.shared::cluster.global.mbarrier::complete_tx::bytes"
        operands = [_shared(b, to), tensor_map, *at, _shared(b, barrier)]
        text = f"{kind} [$0], [$1, {{{place}}}], [${len(at) + 2}];"
        self._run(b, text, ",".join(["l", "l", *["r"] * len(at), "l"]), operands)

    def arrive(self, b: Builder, barrier: Value) -> None:
        """mbarrier.arrive."""
        self._run(b, "mbarrier.arrive.shared::cta.b64 _, [$0];", "l", [_shared(b, barrier)])

    def wait(self, b: Builder, barrier: Value, parity: Value) -> None:
        """mbarrier.try_wait, until it succeeds."""
        self._run(b, _WAIT, "l,r", [_shared(b, barrier), parity])

    def _run(self, b: Builder, text: str, constraints: str, operands: Sequence[Value]) -> None:
        assembly(b, text, ",".join(filter(None, (constraints, "~{memory}"))), VOID, operands)


def _shared(b: Builder, pointer: Value) -> Value:
    return b.cast("addrspacecast", pointer, PointerType(None, SHARED_SPACE))
