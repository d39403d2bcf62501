"""Code of other machines in tests: compiled here and run under an emulator; skipped where one is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.tools import missing, require
from tlx.api.emulation import EmulatedModule, compile_emulated
from tlx.diagnostics import UsageError
from tlx.llvm.emulator import emulator_command, emulator_triple, toolchain
from tlx.lower.options import Options


@dataclass(frozen=True)
class Machine:
    """A machine that runs under an emulator.

    Attributes:
        target: The target to lower for.
        emulator: The command of its emulator.
        features: Features to add to the target's.
    """

    target: str
    emulator: str
    features: tuple[str, ...] = ()

    def __str__(self) -> str:
        command, *options = self.emulator.removeprefix("qemu-").split()
        return " ".join([self.target, command, *options[1:], *self.features])

    @property
    def options(self) -> Options:
        """Options of the lowering."""
        return Options(features=self.features, triple=emulator_triple(self.emulator))

    def require(self) -> None:
        """Skip a test without the emulator or the cross compiler, or fail it where `CI` is set."""
        triple = emulator_triple(self.emulator)
        try:
            emulator_command(self.emulator, triple)
            toolchain(triple)
        except UsageError as error:
            missing(error.message)

    def compile(
        self,
        source: Any,
        *,
        opt_level: int = 2,
        entry: str | None = None,
        options: Options | None = None,
        compiler: str = "",
    ) -> EmulatedModule:
        """A module for the machine, running under its emulator; the test is skipped without it, or the compiler."""
        self.require()
        if compiler:
            require(compiler)
        return compile_emulated(
            source,
            self.target,
            self.emulator,
            entry=entry,
            opt_level=opt_level,
            options=options or self.options,
            cpu_seconds=SECONDS,
            compiler=compiler,
        )


SECONDS = 300
"""CPU time for all calls of a module's functions."""

GENERIC = (
    Machine("generic", "qemu-aarch64 -cpu max"),
    Machine("generic", "qemu-ppc64le -one-insn-per-tb -cpu power10"),
    Machine("generic", "qemu-ppc64 -one-insn-per-tb"),
    Machine("generic", "qemu-riscv64"),
    Machine("generic", "qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0", ("+v",)),
    Machine("generic", "qemu-arm -cpu max"),
    Machine("generic", "qemu-hexagon"),
)
"""The machines that plain vectors run on."""

on_generic_machines = pytest.mark.parametrize("machine", GENERIC, ids=str)
