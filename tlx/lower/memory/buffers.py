"""Private buffers: on the stack where they are small, else from malloc at the function's head.

%matmul.buf = alloca [15 x float], align 64

%matmul.heap = call noalias i8* @malloc(i64 2560064), !tlx.buffer !{}      and before every ret and resume:
%matmul.buf = %matmul.heap, moved on to a cache line                       call void @free(i8* %matmul.heap)

A function with buffers loses the attributes that would no longer be true: those that say which memory it touches.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Final

from tlx.diagnostics import LoweringError, Span
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module, Raw
from tlx.ir.transform.rewrite import split_block
from tlx.ir.types import I8, I64, VOID, ArrayType, FunctionType, Type, bytes_of
from tlx.ir.values import ConstInt, Keyword, Local, Value
from tlx.lower.context import buffer_metadata

STACK_BYTES: Final = 16 << 10
_STACK_TOTAL: Final = 256 << 10
STACK_ALIGN: Final = 64


@dataclass(frozen=True)
class PrivateBuffer:
    """Memory of the function's own.

    Attributes:
        pointer: Its address.
        element: Type of its elements.
        count: Number of elements.
        on_heap: Whether malloc gives it.
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
        """Alignment of its first element in bytes: that of a line of the caches."""
        return STACK_ALIGN


@dataclass
class PrivateBuffers:
    """The buffers of one function; `emit` writes what makes and frees them.

    Attributes:
        module: The module.
        function: The function.
        made: The buffers.
        block: Name of the block for whose code buffers are reserved; empty where that is not known.
        scopes: For the name of a buffer, that of a block which, whenever it runs, begins by making what the buffer
            holds anew: it does not outlive a round of a loop around the block. Empty where that is not known.
    """

    module: Module
    function: Function
    made: list[PrivateBuffer] = field(default_factory=list[PrivateBuffer])
    block: str = ""
    scopes: dict[str, str] = field(default_factory=dict[str, str])
    _on_stack: int = 0

    def new(self, element: Type, count: int, stem: str, span: Span | None = None) -> PrivateBuffer:
        """Reserve a buffer.

        Args:
            element: Type of its elements.
            count: Number of elements.
            stem: What it holds; it is named `stem.buf`.
            span: What it is for, where an error has to point.

        Raises:
            LoweringError: It belongs on the heap, and the module has a malloc or free of another type.
        """
        size = count * bytes_of(element)
        on_heap = size > STACK_BYTES or self._on_stack + size > _STACK_TOTAL
        if on_heap:
            self._check_libc(size, span)
        else:
            self._on_stack += size
        pointee = I8 if on_heap else ArrayType(count, element)
        name = self.function.names.fresh(f"{stem}.buf")
        buffer = PrivateBuffer(Local(self.module.pointer_to(pointee), name), element, count, on_heap)
        self.made.append(buffer)
        self.scopes[name] = self.block
        return buffer

    def discard(self, names: Container[str]) -> None:
        """Give back the buffers whose pointers have these names."""
        self._on_stack -= sum(b.bytes for b in self.made if b.pointer.name in names and not b.on_heap)
        self.made = [b for b in self.made if b.pointer.name not in names]

    def _check_libc(self, size: int, span: Span | None) -> None:
        for name, type_ in self._libc().items():
            declared = self.module.declarations.get(name)
            if declared is not None and declared.signature.type != type_:
                message = (
                    f"a temporary of {size_text(size)} needs @{name} as {type_}, "
                    f"and this module declares it as {declared.signature.type}"
                )
                raise LoweringError(message, span)
            if declared is None and re.search(rf"(?m)^@{name} *=", self.module.raw_text()):
                message = f"a temporary of {size_text(size)} needs @{name}, which is no function in this module"
                raise LoweringError(message, span)

    def _libc(self) -> dict[str, FunctionType]:
        pointer = self.module.pointer_to(I8)
        return {"malloc": FunctionType(pointer, (I64,)), "free": FunctionType(VOID, (pointer,))}

    @property
    def uses_heap(self) -> bool:
        """Whether any buffer comes from malloc."""
        return any(b.on_heap for b in self.made)

    def emit(self) -> None:
        """Write allocations behind the leading allocas of the entry block, and frees before every way out."""
        entry = self.function.entry
        index = next(i for i, inst in enumerate(entry.instructions) if inst.opcode != "alloca")
        builder = TensorBuilder(self.module, self.function, entry, index)
        for buffer in self.made:
            if not buffer.on_heap:
                _insert_definition(
                    builder, buffer, f"alloca {ArrayType(buffer.count, buffer.element)}, align {STACK_ALIGN}"
                )
        heap = [b for b in self.made if b.on_heap]
        if heap:
            self._emit_heap(builder, heap)

    def _emit_heap(self, builder: TensorBuilder, heap: list[PrivateBuffer]) -> None:
        exits = [(blk, i) for blk in self.function.blocks for i in [exit_index(blk)] if i is not None]
        names = [self.function.names.fresh(b.pointer.name.removesuffix(".buf") + ".heap") for b in heap]
        blocks = [Local(b.pointer.type, name) for b, name in zip(heap, names, strict=True)]
        for block, index in exits:
            at_exit = TensorBuilder(self.module, self.function, block, index)
            for memory in blocks:
                at_exit.call_named("free", VOID, [memory])
        for buffer, memory in zip(heap, blocks, strict=True):
            _declare_malloc(builder, buffer, memory, buffer_metadata(self.scopes[buffer.pointer.name]))
        missing: Value | None = None
        for memory in blocks:
            null = builder.icmp("eq", memory, Keyword(memory.type, "null"))
            missing = null if missing is None else builder.binary("or", missing, null)
        if missing is not None:
            _trap_if(builder, missing)


def _insert_definition(builder: TensorBuilder, buffer: PrivateBuffer, body: str) -> None:
    """Insert the instruction that makes a buffer, under the name it was promised."""
    array = ArrayType(buffer.count, buffer.element)
    name = buffer.pointer.name
    instruction = Instruction("alloca", buffer.pointer.type, [], f"%{name} = {body}", result=name, source_type=array)
    builder.block.instructions.insert(builder.index, instruction)
    builder.index += 1


def _declare_malloc(builder: TensorBuilder, buffer: PrivateBuffer, memory: Local, metadata: str) -> None:
    """`%x.heap = call noalias ptr @malloc(i64 size)`, and `%x.buf`, the first line of the cache in it."""
    size = ConstInt(I64, buffer.bytes + STACK_ALIGN)
    call = builder.call_named("malloc", memory.type, [size], "malloc")
    builder.function.names.taken.discard(str(call.result))
    call.result = memory.name
    call.text = f"%{memory.name} = call noalias {memory.type} @malloc({size.typed}){metadata}"
    call.trailer, call.spans = metadata, None
    found = builder.at_boundary(memory, STACK_ALIGN, "line")
    start = builder.block.instructions[builder.index - 1]
    builder.function.names.taken.discard(str(start.result))
    start.text = start.text.replace(f"{found} =", f"{buffer.pointer} =", 1)
    start.result = buffer.pointer.name


def _trap_if(builder: TensorBuilder, condition: Value) -> None:
    """Stop the program where there is no memory."""
    head = builder.block
    tail = split_block(builder.function, head, builder.index, "allocated")
    trap = builder.new_block("out.of.memory", head)
    builder.at_end(head)
    builder.branch_if(condition, trap, tail)
    builder.at_end(trap)
    builder.call_named("llvm.trap", VOID, [])
    builder.emit("unreachable", VOID, [], "unreachable")


def exit_index(block: Block) -> int | None:
    """Where frees go: in front of `ret` or `resume`, and of a `musttail` call before it; None elsewhere."""
    last = len(block.instructions) - 1
    if block.terminator.opcode not in ("ret", "resume"):
        return None
    for index in range(last - 1, max(last - 3, -1), -1):
        if "musttail" in block.instructions[index].flags:
            return index
    return last


def size_text(size: int) -> str:
    """`4.0 MiB`, as remarks show sizes."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} bytes"


_MEMORY_ATTRIBUTES: Final = re.compile(
    r"(?<![\w\"-])(?:memory\([^)]*\)|readnone|readonly|writeonly|argmemonly|inaccessiblememonly|"
    r"inaccessiblemem_or_argmemonly|speculatable)(?![\w\"=-])\s?"
)


def allow_heap(module: Module, function: Function) -> None:
    """Take attributes off a function that forbid it to call malloc and free.

    An attribute group that others share is replaced by a new one::

        define void @f(...) #0 {            attributes #0 = { nounwind memory(argmem: readwrite) }
        ->
        define void @f(...) #1 {            attributes #1 = { nounwind }
    """
    attributes = function.signature.attributes
    changed = _MEMORY_ATTRIBUTES.sub("", attributes).strip()
    for group in re.findall(r"#\d+", changed):
        body = module.attribute_groups.get(group, "")
        kept = _MEMORY_ATTRIBUTES.sub("", body).strip()
        if kept != body:
            changed = changed.replace(group, _new_group(module, kept) if kept else "")
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
    module.items.append(Raw(f"\nattributes {name} = {{ {body} }}\n"))
    known[name] = body
    return name
