"""Memory of values of run-time size, in slots that are null or hold what malloc gave.

%sum.slot = alloca ptr                     entry block; then: store ptr null, ptr %sum.slot
call void @tlx.dynamic.allocate(ptr %sum.slot, i64 %bytes)
%memory = load ptr, ptr %sum.slot          a value defined again (in a loop) takes the place of the one before
%sum = %memory, moved on to a line of the caches
...
call void @free(what %sum.slot holds)      before every ret and resume

Values that follow one another share a slot: see `joined`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.module import Instruction
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I8, I64, VOID, FunctionType, Type, bytes_of
from tlx.ir.values import Keyword, Local, Value
from tlx.lower.dynamic.helpers import Helpers, To, numbers
from tlx.lower.dynamic.joined import Allocation, join
from tlx.lower.dynamic.numbers import trap
from tlx.lower.to_2d.buffers import exit_index

LINE: Final = 64
"""Bytes of a line of the caches; malloc aligns to 16."""


@dataclass(eq=False)
class Heap:
    """The slots of one function.

    Attributes:
        b: The builder of the function.
        helpers: The module's helpers.
    """

    b: TensorBuilder
    helpers: Helpers
    _slots: list[Local] = field(default_factory=list[Local])
    _allocations: list[Allocation] = field(default_factory=list[Allocation])

    def allocate(self, count: Value, element: Type, stem: str) -> Value:
        """Memory for `count` elements, which belongs to nothing else."""
        slot = self.slot(stem)
        call = self._fill(slot, count, element)
        load = self._load(slot)
        self._allocations.append(Allocation(slot, call, load))
        return self._start(load.value, element)

    def slot(self, stem: str) -> Local:
        """A new slot."""
        self._check_libc()
        slot = self.b.alloca(self.b.pointer(I8), f"{stem}.slot", 8)
        self._slots.append(slot)
        return slot

    def allocate_in(self, slot: Local, count: Value, element: Type) -> Value:
        """Memory for `count` elements in place of what a slot holds."""
        self._fill(slot, count, element)
        return self.memory_of(slot, element)

    def memory_of(self, slot: Local, element: Type) -> Value:
        """Where the elements are for which a slot holds memory."""
        return self._start(self._load(slot).value, element)

    def _fill(self, slot: Local, count: Value, element: Type) -> Instruction:
        b = self.b
        size = b.add(b.mul(count, bytes_of(element), "bytes"), LINE - 1)
        self.helpers.call(b, "allocate", [("slot", To(b.pointer(I8))), *numbers("size")], [slot, size], _allocate)
        return b.block.instructions[b.index - 1]

    def _load(self, slot: Local) -> Instruction:
        self.b.load(self.b.pointer(I8), slot, 8, "memory")
        return self.b.block.instructions[self.b.index - 1]

    def _start(self, memory: Value, element: Type) -> Value:
        return self.b.retype(self.b.at_boundary(memory, LINE), element)

    def finish(self) -> None:
        """Clear the slots at the head of the function, and free what is in them at every way out."""
        b = self.b
        gone = join(b.module, b.function, self._allocations)
        self._slots = [slot for slot in self._slots if slot.name not in gone]
        if not self._slots:
            return
        entry = b.function.entry
        b.block, b.index = entry, next(i for i, inst in enumerate(entry.instructions) if inst.opcode != "alloca")
        for slot in self._slots:
            b.store(Keyword(b.pointer(I8), "null"), slot, 8)
        for block in b.function.blocks:
            index = exit_index(block)
            if index is None:
                continue
            b.block, b.index = block, index
            for slot in self._slots:
                pointer = b.pointer(I8)
                b.call_named("free", VOID, [b.load(pointer, slot, 8, "used")])

    def _check_libc(self) -> None:
        module = self.b.module
        pointer = module.pointer_to(I8)
        wanted = {"malloc": FunctionType(pointer, (I64,)), "free": FunctionType(VOID, (pointer,))}
        for name, type_ in wanted.items():
            declared = module.declarations.get(name)
            if declared is not None and declared.signature.type != type_:
                message = f"tensors of run-time size need @{name} as {type_}; here it is {declared.signature.type}"
                raise LoweringError(message, self.b.function.span)
            if declared is None and re.search(rf"(?m)^@{name} *=", module.raw_text()):
                message = f"tensors of run-time size need @{name}, which is no function in this module"
                raise LoweringError(message, self.b.function.span)


def _allocate(b: TensorBuilder, parameters: dict[str, Local]) -> None:
    """`free(*slot); *slot = malloc(size); if (!*slot) trap();`."""
    pointer = b.pointer(I8)
    slot = parameters["slot"]
    b.call_named("free", VOID, [b.load(pointer, slot, 8, "old")])
    memory = b.call_named("malloc", pointer, [parameters["size"]], "memory").value
    b.store(memory, slot, 8)
    stop = b.new_block("out.of.memory")
    end = b.new_block("end", stop)
    b.branch_if(b.icmp("eq", memory, Keyword(pointer, "null"), "none"), stop, end)
    trap(b, stop)
    b.at_end(end)
