"""How to lower: the options of the pipeline, checked when they are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tlx.diagnostics import UsageError
from tlx.llvm.openmp import THREAD_CYCLES, THREADS, Threads
from tlx.lower.knobs import WEIGHT_BYTES, KnobSource, no_knobs
from tlx.lower.remarks import Remarks

if TYPE_CHECKING:
    from tlx.ir.module import Module
    from tlx.lower.context import LoweringContext

STAGE_NAMES: Final = ("to-2d", "to-tiles", "legalize")
VECTOR_BITS: Final = (0, 128, 256, 512)


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """One named step.

    Attributes:
        name: What `--stop-after=` and `--print-after=` call it.
        title: What messages and the banner of `--print-after` call it.
        run: The step; gives the module to go on with.
    """

    name: str
    title: str
    run: Callable[[Module, LoweringContext], Module]


@dataclass(frozen=True, slots=True)
class Options:
    """How to lower.

    Attributes:
        start_after: Name of the stage whose output the input is; None where it has been through none.
        stop_after: Name of the last stage to run; None for all.
        verify_each: Have LLVM judge the input and what each step leaves; None for all but large text (`UNJUDGED_SIZE`)
            that comes back as it is.
        print_after: Called with each step and the module it leaves.
        remarks: Where decisions are noted.
        cpu: Processor whose optional features are used and that code is scheduled for, empty for any.
        attrs: Features added to (`+avx512bf16`) or taken from (`-amx-bf16`) the target's.
        triple: Triple of the machine, in place of the module's own; empty for that.
        vector_bits: Bits of a vector register, where the target leaves them open; 0 for what the target says.
        amx_permission: Whether a module with AMX code asks the kernel for tile permission in a constructor.
        emulate_matrix: Emit matrix-unit code in the form that LLVM's scalarisation can run on any machine.
        knobs: What is asked of products, in place of what the target's model would choose; see `tlx.lower.knobs`.
        threads: What runs large kernels on several threads.
        thread_cycles: Cycles of work that are worth a thread; 0 has everything on several threads, for tests.
        weight_bytes: Bytes of panels up to which a constant B is packed at compile time.
    """

    start_after: str | None = None
    stop_after: str | None = None
    verify_each: bool | None = None
    print_after: Callable[[PipelineStep, Module], None] | None = None
    remarks: Remarks = field(default_factory=Remarks)
    cpu: str = ""
    attrs: tuple[str, ...] = ()
    triple: str = ""
    vector_bits: int = 0
    amx_permission: bool = True
    emulate_matrix: bool = False
    knobs: KnobSource = no_knobs
    threads: Threads = "none"
    thread_cycles: int = THREAD_CYCLES
    weight_bytes: int = WEIGHT_BYTES

    def __post_init__(self) -> None:
        if self.threads not in THREADS:
            raise UsageError(f"unknown threads '{self.threads}'; known are {', '.join(THREADS)}")
        for name in (self.start_after, self.stop_after):
            if name is not None and name not in STAGE_NAMES:
                raise UsageError(f"unknown stage '{name}'; stages are {', '.join(STAGE_NAMES)}")
        if not self.stages:
            last = self.stop_after or STAGE_NAMES[-1]
            raise UsageError(f"no stage is left to run: --start-after={self.start_after} is behind {last} or the same")
        if self.vector_bits not in VECTOR_BITS:
            raise UsageError(f"vectors of {self.vector_bits} bits; {', '.join(map(str, VECTOR_BITS[1:]))} are known")
        for feature in self.attrs:
            if feature[:1] not in ("+", "-") or len(feature) < 2:
                raise UsageError(f"feature '{feature}' needs a '+' to be switched on or a '-' to be switched off")

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of the stages to run."""
        first = 0 if self.start_after is None else STAGE_NAMES.index(self.start_after) + 1
        last = len(STAGE_NAMES) if self.stop_after is None else STAGE_NAMES.index(self.stop_after) + 1
        return STAGE_NAMES[first:last]
