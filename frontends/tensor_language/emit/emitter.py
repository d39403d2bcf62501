"""The state while a kernel is written, and the walk over its regions.

Each instruction of the language has a rule, a function `(Emitter, instruction) -> None` found by the instruction's
class in the `RULES` of a module of this package: a new instruction is one class and one rule.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tlx.diagnostics import LoweringError
from tlx.frontends.tensor_language.emit.blas.first_writes import FirstWrites
from tlx.frontends.tensor_language.emit.values import Emitted, Group, Matrix, Memref, Number
from tlx.frontends.tensor_language.operations.control import Yield
from tlx.frontends.tensor_language.syntax.nodes import Function, Instruction, Name, Region
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.values import Value

Rule = Callable[["Emitter", Any], None]


@dataclass(frozen=True, slots=True)
class Launch:
    """Where a work-group stands.

    Attributes:
        group_id: i64 for x, y and z.
        num_groups: i64 for x, y and z.
        subgroup_size: Work-items of a subgroup, which is the number of lanes of varying values: a power of two.
        work_group_size: Work-items along the two modes; the first is a multiple of the subgroup size.
    """

    group_id: tuple[Value, ...]
    num_groups: tuple[Value, ...]
    subgroup_size: int
    work_group_size: tuple[int, int]

    @property
    def num_subgroups(self) -> tuple[int, int, int]:
        """Subgroups along x, y and z."""
        rows, columns = self.work_group_size
        return rows // self.subgroup_size, columns, 1


@dataclass(eq=False)
class Emitter:
    """Writes one kernel's work-group function.

    Attributes:
        b: Where LLVM IR goes.
        source: The kernel.
        launch: Where the work-group stands.
        varying: Ids of the defining `Name`s that may differ between the work-items of a subgroup.
        rules: Rule of each class of instruction.
        first_writes: What BLAS instructions need not read, and what is made zero for them.
        scope: What each visible name is.
        mask: `<S x i1>`, the work-items that run the current region; None for all of them.
        subgroup: In an SPMD region the linear subgroup id, i32; None in a collective region.
        at_region_end: Write what is done where the current region ends, such as freeing memory.
    """

    b: TensorBuilder
    source: Function
    launch: Launch
    varying: frozenset[int]
    rules: Mapping[type[Instruction], Rule]
    first_writes: FirstWrites
    scope: dict[str, Emitted] = field(default_factory=dict[str, Emitted])
    mask: Value | None = None
    subgroup: Value | None = None
    at_region_end: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    @property
    def lanes(self) -> int:
        """Work-items of a subgroup."""
        return self.launch.subgroup_size

    # Names -----------------------------------------------------------------------------------------------------

    def bind(self, name: Name, value: Emitted) -> None:
        """Say what a name is."""
        self.scope[name.text] = value

    def number(self, name: Name) -> Number:
        """The scalar of a name."""
        value = self.scope[name.text]
        assert isinstance(value, Number), f"{name} is no scalar"
        return value

    def numbers(self, names: tuple[Name, ...]) -> tuple[Number, ...]:
        """The scalars of names."""
        return tuple(self.number(name) for name in names)

    def memref(self, name: Name) -> Memref:
        """The memref of a name."""
        value = self.scope[name.text]
        assert isinstance(value, Memref), f"{name} is no memref"
        return value

    def group(self, name: Name) -> Group:
        """The group of a name."""
        value = self.scope[name.text]
        assert isinstance(value, Group), f"{name} is no group"
        return value

    def matrix(self, name: Name) -> Matrix:
        """The cooperative matrix of a name."""
        value = self.scope[name.text]
        assert isinstance(value, Matrix), f"{name} is no cooperative matrix"
        return value

    def is_varying(self, name: Name) -> bool:
        """Whether the value bound by this (defining) name may differ between work-items."""
        return id(name) in self.varying

    # Regions ---------------------------------------------------------------------------------------------------

    def run(self, region: Region) -> tuple[Emitted, ...]:
        """Write a region's instructions; gives what it yields. Names bound in it are forgotten."""
        with self.region():
            return self.instructions(region.instructions)

    def instructions(self, instructions: list[Instruction]) -> tuple[Emitted, ...]:
        """Write instructions in the current region; gives what the last one yields."""
        for instruction in instructions:
            if isinstance(instruction, Yield):
                return tuple(self.scope[name.text] for name in instruction.values)
            self.instruction(instruction)
        return ()

    def instruction(self, instruction: Instruction) -> None:
        """Write one instruction.

        Raises:
            LoweringError: It is one that cannot be written.
        """
        rule = self.rules.get(type(instruction))
        if rule is None:
            message = f"{type(instruction).__name__} has no rule; this is a bug of TLX"
            raise LoweringError(message, instruction.span)
        hint, self.b.span = self.b.hint, instruction.span
        if instruction.results:
            self.b.hint = instruction.results[0].text
        rule(self, instruction)
        self.b.hint = hint

    @contextmanager
    def region(self) -> Generator[None]:
        """A region: what is bound in it is forgotten behind it, and what it allocated is freed at its end."""
        scope, ends = dict(self.scope), self.at_region_end
        self.at_region_end = []
        yield
        for end in reversed(self.at_region_end):
            end()
        self.scope, self.at_region_end = scope, ends

    @contextmanager
    def masked(self, mask: Value | None) -> Generator[None]:
        """A region that only some work-items run."""
        before, self.mask = self.mask, mask
        yield
        self.mask = before
