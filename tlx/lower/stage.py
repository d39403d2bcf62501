"""What a stage is, and what every stage is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tlx.ir.module import Module
from tlx.remarks import Remarks
from tlx.target import Target


@dataclass(frozen=True, slots=True)
class Context:
    """The circumstances of a lowering.

    Attributes:
        target: The machine to aim at.
        remarks: Where decisions are noted.
        amx_permission: Whether a module with AMX code asks the kernel for tile permission in a constructor.
        emulate_matrix: Emit matrix-unit code in the form that LLVM's scalarisation can run on any machine.
    """

    target: Target
    remarks: Remarks = field(default_factory=Remarks)
    amx_permission: bool = True
    emulate_matrix: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """A named step of the lowering; `run` changes the module in place.

    Attributes:
        name: What `--stop-after=` and `--print-after=` call it.
        title: What the banner of `--print-after` calls it.
        run: The step.
    """

    name: str
    title: str
    run: Callable[[Module, Context], None]
