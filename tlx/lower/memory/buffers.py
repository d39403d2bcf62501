"""Private buffers: on the stack if they are small, otherwise on the heap from entry to exit of the function.

%matmul.buf = alloca [15 x float], align 64, !tlx.buffer !{}

%matmul.heap = call noalias i8* @malloc(i64 2560064), !tlx.buffer !{}      and before every ret and resume:
%matmul.buf = %matmul.heap, aligned up to a cache line                     call void @free(i8* %matmul.heap)

A function with buffers on the heap loses the attributes that say which memory it accesses: they no longer hold.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Final

from tlx.diagnostics import Span, size_text
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module, UnparsedText
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I8, I64, ArrayType, Type, bytes_of
from tlx.ir.values import ConstInt, Local, Value
from tlx.lower.memory.allocation import (
    CACHE_LINE,
    buffer_metadata,
    emit_allocation,
    emit_release,
    exit_index,
    require_allocator,
    trap_if_null,
)

STACK_BYTES: Final = 16 << 10
_STACK_TOTAL: Final = 256 << 10


@dataclass(frozen=True)
class PrivateBuffer:
    """Memory that only one function accesses.

    Attributes:
        pointer: Its address.
        element: Type of its elements.
        count: Number of elements.
        on_heap: Whether it is on the heap.
    """

    pointer: Local
    element: Type
    count: int
    on_heap: bool

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        return self.count * bytes_of(self.element)

    @property
    def align(self) -> int:
        """Alignment of its first element in bytes: a cache line."""
        return CACHE_LINE


@dataclass
class PrivateBuffers:
    """The buffers of one function; `emit` writes their allocation and release.

    Attributes:
        module: The module.
        function: The function.
        buffers: The buffers.
        block: Name of the block whose code reserves buffers; empty if unknown.
        scopes: For each buffer's name, the block that overwrites all of it first whenever the block runs, so that no
            value outlives an iteration of a loop around that block; empty if unknown.
    """

    module: Module
    function: Function
    buffers: list[PrivateBuffer] = field(default_factory=list[PrivateBuffer])
    block: str = ""
    scopes: dict[str, str] = field(default_factory=dict[str, str])
    _on_stack: int = 0
    _has_allocator: bool = False

    def new(self, element: Type, count: int, stem: str, span: Span | None = None) -> PrivateBuffer:
        """Reserve a buffer.

        Args:
            element: Type of its elements.
            count: Number of elements.
            stem: What it holds; the pointer is named `stem.buf`.
            span: Where errors point.

        Raises:
            LoweringError: It belongs on the heap, and the module has a malloc or free of another type.
        """
        size = count * bytes_of(element)
        on_heap = size > STACK_BYTES or self._on_stack + size > _STACK_TOTAL
        if not on_heap:
            self._on_stack += size
        elif not self._has_allocator:  # the check reads the text of the module
            require_allocator(self.module, f"a temporary of {size_text(size)} needs", span)
            self._has_allocator = True
        pointee = I8 if on_heap else ArrayType(count, element)
        name = self.function.names.fresh(f"{stem}.buf")
        buffer = PrivateBuffer(Local(self.module.pointer_to(pointee), name), element, count, on_heap)
        self.buffers.append(buffer)
        self.scopes[name] = self.block
        return buffer

    def discard(self, names: Container[str]) -> None:
        """Drop the buffers whose pointers have these names."""
        self._on_stack -= sum(b.bytes for b in self.buffers if b.pointer.name in names and not b.on_heap)
        self.buffers = [b for b in self.buffers if b.pointer.name not in names]

    @property
    def uses_heap(self) -> bool:
        """Whether any buffer is on the heap."""
        return any(b.on_heap for b in self.buffers)

    def emit(self) -> None:
        """Write allocations after the leading allocas of the entry block, and frees before every exit."""
        entry = self.function.entry
        index = next(i for i, inst in enumerate(entry.instructions) if inst.opcode != "alloca")
        builder = TensorBuilder(self.module, self.function, entry, index)
        for buffer in self.buffers:
            if not buffer.on_heap:
                _emit_alloca(builder, buffer, self.scopes[buffer.pointer.name])
        heap = [b for b in self.buffers if b.on_heap]
        if heap:
            self._emit_heap(builder, heap)

    def _emit_heap(self, builder: TensorBuilder, heap: list[PrivateBuffer]) -> None:
        memory = [_allocate(builder, buffer, self.scopes[buffer.pointer.name]) for buffer in heap]
        trap_if_null(builder, memory)
        for block in self.function.blocks:
            index = exit_index(block)
            if index is not None:
                at_exit = TensorBuilder(self.module, self.function, block, index)
                for pointer in memory:
                    emit_release(at_exit, pointer)


def _emit_alloca(builder: TensorBuilder, buffer: PrivateBuffer, scope: str) -> None:
    """Insert the alloca of a buffer under its reserved name."""
    array, name, mark = ArrayType(buffer.count, buffer.element), buffer.pointer.name, buffer_metadata(scope)
    text = f"%{name} = alloca {array}, align {CACHE_LINE}{mark}"
    instruction = Instruction("alloca", buffer.pointer.type, [], text, trailer=mark, result=name, source_type=array)
    builder.block.instructions.insert(builder.index, instruction)
    builder.index += 1


def _allocate(builder: TensorBuilder, buffer: PrivateBuffer, scope: str) -> Value:
    """Emit `%x.heap = call noalias ptr @malloc(i64 size)`, and `%x.buf`, the first cache line in it."""
    size = ConstInt(I64, buffer.bytes + CACHE_LINE)
    stem = buffer.pointer.name.removesuffix(".buf")
    memory = emit_allocation(builder, size, f"{stem}.heap", buffer_metadata(scope))
    start = builder.align_up(memory, CACHE_LINE, "line")
    instruction = builder.block.instructions[builder.index - 1]
    builder.function.names.taken.discard(str(instruction.result))
    instruction.text = instruction.text.replace(f"{start} =", f"{buffer.pointer} =", 1)
    instruction.result = buffer.pointer.name
    return memory


_MEMORY_ATTRIBUTES: Final = re.compile(
    r"(?<![\w\"-])(?:memory\([^)]*\)|readnone|readonly|writeonly|argmemonly|inaccessiblememonly|"
    r"inaccessiblemem_or_argmemonly|speculatable)(?![\w\"=-])\s?"
)


def allow_heap(module: Module, function: Function) -> None:
    """Remove the attributes of a function that forbid calls to malloc and free.

    An attribute group that others share is replaced by a new one::

        define void @f(...) #0 {            attributes #0 = { nounwind memory(argmem: readwrite) }
        ->
        define void @f(...) #1 {            attributes #1 = { nounwind }
    """
    attributes = function.signature.attributes
    changed = _MEMORY_ATTRIBUTES.sub("", attributes).strip()
    for group in re.findall(r"#\d+", changed):
        body = module.attribute_groups.get(group, "")
        allowed = _MEMORY_ATTRIBUTES.sub("", body).strip()
        if allowed != body:
            changed = changed.replace(group, _new_group(module, allowed) if allowed else "")
    changed = " ".join(changed.split()) if changed != attributes else attributes
    if changed != attributes:
        function.replace_attributes(changed)


def _new_group(module: Module, body: str) -> str:
    known = module.attribute_groups
    for name, text in known.items():
        if text == body:
            return name
    number = 1 + max((int(name[1:]) for name in known), default=-1)
    name = f"#{number}"
    module.items.append(UnparsedText(f"\nattributes {name} = {{ {body} }}\n"))
    known[name] = body
    return name
