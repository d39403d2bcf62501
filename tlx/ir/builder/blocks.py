"""The builder: memory accesses, branches and loops beside the instructions that compute values."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from tlx.ir.builder.values import IntOrValue, ValueBuilder, as_value
from tlx.ir.functions import Argument, Function, NameScope, Signature
from tlx.ir.instructions import Block
from tlx.ir.module import Module
from tlx.ir.rewrite import add_incoming, split_block
from tlx.ir.types import (
    I1,
    I8,
    I32,
    I64,
    LABEL,
    METADATA,
    PTR,
    VOID,
    PointerType,
    Type,
    VectorType,
)
from tlx.ir.values import (
    ConstInt,
    Keyword,
    Local,
    OpaqueConstant,
    Value,
    const_int,
)

ASM_MEMORY_BARRIER: Final = 'asm sideeffect "", "r,~{memory}"'
"""Empty assembly that LLVM must assume to read and write memory."""
ASM_OPAQUE_SCALAR: Final = 'asm "", "=r,0"'
"""Empty assembly that returns its pointer or integer operand, which LLVM cannot know."""


def new_function(
    module: Module,
    name: str,
    parameters: Sequence[tuple[Type, str, str]],
    attributes: str,
    linkage: str = "internal",
    result: Type = VOID,
) -> Function:
    """An empty function at the end of the module.

    Args:
        module: The module, to which it is added.
        name: Its name, which must be free.
        parameters: Type, attributes as text, and name of each parameter.
        attributes: The text after the parameter list.
        linkage: The linkage keyword; empty for a function that others may call.
        result: The type that it returns.
    """
    arguments = [Argument(type_, text, parameter) for type_, text, parameter in parameters]
    spelled = ", ".join(" ".join(x for x in (str(a.type), a.attributes, f"%{a.name}") if x) for a in arguments)
    signature = Signature(name, result, arguments, False, linkage, attributes)
    defined = " ".join(filter(None, ("define", linkage, str(result))))
    header = f"\n\n{defined} @{name}({spelled}) {attributes} {{"
    names = NameScope({a.name for a in arguments} | {"entry"})
    function = Function(signature, header, [Block("entry", "\nentry:")], names=names)
    module.global_names.taken.add(name)
    module.append(function)
    return function


class Builder(ValueBuilder):
    """A `ValueBuilder` that also inserts memory accesses and control flow."""

    # Memory ----------------------------------------------------------------------------------------------------

    def pointer(self, pointee: Type) -> PointerType:
        """The type of a pointer to `pointee`, as the module spells it."""
        return self.module.pointer_to(pointee)

    def retype(self, pointer: Value, pointee: Type, name: str = "") -> Value:
        """The pointer as a pointer to `pointee`: a bitcast if pointers are typed, else the pointer itself."""
        type_ = pointer.type
        if not isinstance(type_, PointerType) or not self.module.typed_pointers or type_.pointee == pointee:
            return pointer
        return self.cast("bitcast", pointer, PointerType(pointee, type_.addrspace), name)

    def alloca(self, type_: Type, name: str = "", align: int = 64) -> Local:
        """Stack memory, allocated at the start of the entry block."""
        body = f"alloca {type_}, align {align}"
        with self.inserting_at(self.function.entry, 0):
            return self.emit("alloca", self.pointer(type_), [], body, name, source_type=type_).value

    def load(self, type_: Type, pointer: Value, align: int, name: str = "") -> Local:
        """An ordinary load."""
        pointer = self.retype(pointer, type_)
        return self.value("load", type_, [pointer], f"load {type_}, {pointer.typed}, align {align}", name)

    def store(self, value: Value, pointer: Value, align: int, metadata: str = "") -> None:
        """An ordinary store, with metadata such as `, !nontemporal !0`."""
        pointer = self.retype(pointer, value.type)
        self.emit("store", VOID, [value, pointer], f"store {value.typed}, {pointer.typed}, align {align}{metadata}")

    def fence(self) -> None:
        """`fence seq_cst`, which orders non-temporal stores, too."""
        self.emit("fence", VOID, [], "fence seq_cst")

    def keep_in_memory(self, pointer: Value) -> None:
        """Keep LLVM from promoting stack memory to registers, by an asm that may read and write it.

        LLVM would use more registers than there are, and spill them to the stack again.
        """
        operand = self.retype(pointer, I8)
        body = f"call void {ASM_MEMORY_BARRIER}({operand.typed})"
        self.emit("call", VOID, [OpaqueConstant(PTR, ASM_MEMORY_BARRIER), operand], body).arg_attributes = ("",)

    def opaque(self, vector: Value, constraint: str, name: str = "") -> Local:
        """The same vector, opaque to LLVM's optimiser; `constraint` is the asm constraint of vector registers."""
        return self._unchanged(f'asm "", "={constraint},0"', vector, name)

    def in_place(self, vector: Value, constraint: str, name: str = "") -> Local:
        """The same vector; its users stay after the instructions with side effects that precede this point."""
        return self._unchanged(f'asm sideeffect "", "={constraint},0"', vector, name)

    def scheduling_barrier(self) -> None:
        """A label in the code, which is not an instruction: LLVM's instruction schedulers move nothing across it."""
        self.call_intrinsic("llvm.codeview.annotation", [], VOID, [OpaqueConstant(METADATA, "!{}")])

    def opaque_address(self, pointer: Value, name: str = "") -> Local:
        """The same pointer, computed into one register: LLVM does not split it into base and index."""
        return self._unchanged(ASM_OPAQUE_SCALAR, pointer, name)

    def _unchanged(self, assembly: str, value: Value, name: str) -> Local:
        """The value, passed through empty assembly."""
        body = f"call {value.type} {assembly}({value.typed})"
        instruction = self.emit("call", value.type, [OpaqueConstant(PTR, assembly), value], body, name)
        instruction.arg_attributes = ("",)
        return instruction.value

    def gep(self, element: Type, pointer: Value, index: IntOrValue, name: str = "") -> Value:
        """The address `index` elements after `pointer`."""
        offset = as_value(index, I64)
        pointer = self.retype(pointer, element)
        if isinstance(offset, ConstInt) and offset.value == 0:
            return pointer
        body = f"getelementptr inbounds {element}, {pointer.typed}, {offset.typed}"
        return self.emit("getelementptr", pointer.type, [pointer, offset], body, name, source_type=element).value

    def align_up(self, pointer: Value, align: int, name: str = "") -> Value:
        """An `i8` pointer, rounded up to a multiple of `align`, a power of two."""
        address = self.cast("ptrtoint", pointer, I64)
        gap = self.binary("and", self.sub(ConstInt(I64, 0), address), ConstInt(I64, align - 1))
        return self.gep(I8, pointer, gap, name)

    def prefetch(self, pointer: Value, offset: IntOrValue = 0, locality: int = 3, *, write: bool = False) -> None:
        """`llvm.prefetch` of the data cache line at `pointer + offset`, which need not be mapped.

        Args:
            pointer: An address.
            offset: In bytes.
            locality: 3 for all caches, 2 for all but L1.
            write: Whether the line will be written, else read.
        """
        byte_offset = as_value(offset, I64)
        address = self.retype(pointer, I8)
        body = f"getelementptr {I8}, {address.typed}, {byte_offset.typed}"  # not inbounds: it may be outside
        line = self.emit("getelementptr", address.type, [address, byte_offset], body, "", source_type=I8)
        hints = [ConstInt(I32, int(write)), ConstInt(I32, locality), ConstInt(I32, 1)]  # ..., data
        self.call_intrinsic("llvm.prefetch", [address.type], VOID, [line.value, *hints])

    def memcpy(self, destination: Value, source: Value, size: IntOrValue) -> None:
        """`llvm.memcpy`."""
        i8p = self.pointer(I8)
        args = [self.retype(destination, I8), self.retype(source, I8), as_value(size, I64), ConstInt(I1, 0)]
        self.call_intrinsic("llvm.memcpy", [i8p, i8p, I64], VOID, args)

    def memset(self, destination: Value, byte: int, size: IntOrValue) -> None:
        """`llvm.memset`."""
        args = [self.retype(destination, I8), ConstInt(I8, byte), as_value(size, I64), ConstInt(I1, 0)]
        self.call_intrinsic("llvm.memset", [self.pointer(I8), I64], VOID, args)

    def masked_load(self, type_: VectorType, pointer: Value, align: int, mask: Value, name: str = "") -> Local:
        """`llvm.masked.load` with zeros where the mask is off."""
        pointer = self.retype(pointer, type_)
        args = [pointer, const_int(I32, align), mask, Keyword(type_, "zeroinitializer")]
        return self.call_intrinsic("llvm.masked.load", [type_, pointer.type], type_, args, name)

    def masked_store(self, value: Value, pointer: Value, align: int, mask: Value) -> None:
        """`llvm.masked.store`."""
        pointer = self.retype(pointer, value.type)
        args = [value, pointer, const_int(I32, align), mask]
        self.call_intrinsic("llvm.masked.store", [value.type, pointer.type], VOID, args)

    # Control flow --------------------------------------------------------------------------------------------

    def ret(self, value: Value | None = None) -> None:
        """`ret`."""
        operands = [] if value is None else [value]
        self.emit("ret", VOID, operands, f"ret {value.typed if value is not None else 'void'}")

    def branch(self, successor: Block) -> None:
        """An unconditional branch."""
        self.emit("br", VOID, [successor.value], f"br label %{successor.name}")

    def branch_if(self, condition: Value, then: Block, otherwise: Block) -> None:
        """A conditional branch."""
        body = f"br {condition.typed}, label %{then.name}, label %{otherwise.name}"
        self.emit("br", VOID, [condition, then.value, otherwise.value], body)

    def phi(self, type_: Type, incoming: Sequence[tuple[Value, Block]], name: str = "") -> Local:
        """A phi at the insertion point."""
        pairs = ", ".join(f"[ {v}, %{blk.name} ]" for v, blk in incoming)
        operands: list[Value] = [x for v, blk in incoming for x in (v, Local(LABEL, blk.name))]
        return self.value("phi", type_, operands, f"phi {type_} {pairs}", name)

    def new_block(self, stem: str, after: Block | None = None) -> Block:
        """An empty block after `after` (by default after the current one)."""
        name = self.function.names.fresh(stem)
        block = Block(name, f"\n\n{name}:")
        self.function.blocks.insert(self.function.blocks.index(after or self.block) + 1, block)
        return block

    def at_end(self, block: Block) -> None:
        """Move the insertion point to the end of a block."""
        self.block, self.index = block, len(block.instructions)

    @contextmanager
    def inserting_at(self, block: Block, index: int) -> Generator[None]:
        """Insert elsewhere, in one block; afterwards, the insertion point is before the same instruction as it was."""
        saved_block, saved_index = self.block, self.index
        self.block, self.index = block, index
        yield
        moved_by = self.index - index if block is saved_block and index <= saved_index else 0
        self.block, self.index = saved_block, saved_index + moved_by

    @contextmanager
    def if_block(self, condition: Value, name: str) -> Generator[None]:
        """Build a block that runs if a condition holds."""
        inside, after = self.if_else_blocks(condition, (name, f"{name}.end"))
        self.at_end(inside)
        yield
        self.branch(after)
        self.at_end(after)

    def if_else_blocks(self, condition: Value, names: tuple[str, str]) -> tuple[Block, Block]:
        """Branch on a condition; returns the blocks for true and for false, both empty."""
        before = self.block
        then = self.new_block(names[0])
        otherwise = self.new_block(names[1], then)
        self.at_end(before)
        self.branch_if(condition, then, otherwise)
        return then, otherwise

    @contextmanager
    def loop(
        self,
        start: IntOrValue,
        stop: IntOrValue,
        step: int = 1,
        *,
        carry: Sequence[Value] = (),
        name: str = "i",
        nonempty: bool = False,
    ) -> Generator[LoopState]:
        """A counted loop over `start, start + step, ...` below `stop`.

        `state.carried` are the carried values in the body; `state.next(...)` sets their next values;
        `state.results` are their values after the loop. A trip count of one needs no loop. A loop that is known to run
        (constant bounds, or `nonempty`) is tested at its end only.
        """
        first, last = as_value(start, I64), as_value(stop, I64)
        trips = (
            -(-(last.value - first.value) // step)
            if isinstance(first, ConstInt) and isinstance(last, ConstInt)
            else None
        )
        if trips == 1:
            state = LoopState(first, "", list(carry))
            yield state
            state.results = state.following or state.carried
            return
        if trips is not None and trips <= 0:
            message = f"loop from {first} to {last} never runs"
            raise ValueError(message)
        yield from counted_loop(self, (first, last, step), list(carry), name, guarded=trips is None and not nonempty)


@dataclass(eq=False)
class LoopState:
    """A loop under construction.

    Attributes:
        index: The loop variable, i64.
        mark: Metadata of the branch back to the header, as text.
        carried: The loop-carried values in the body.
        following: Their values for the next iteration.
        results: Their values after the loop, set when the loop is closed.
    """

    index: Value
    mark: str = ""
    carried: list[Value] = field(default_factory=list[Value])
    following: list[Value] = field(default_factory=list[Value])
    results: list[Value] = field(default_factory=list[Value])

    def next(self, *values: Value) -> None:
        """Set the carried values of the next iteration, in the order of `carry`."""
        self.following = list(values)


def counted_loop(
    b: Builder, bounds: tuple[Value, Value, int], carry: list[Value], name: str, *, guarded: bool
) -> Generator[LoopState]:
    """Build a loop around the code that the caller emits inside the `with` block of `Builder.loop`.

    Args:
        b: The builder; it is left after the loop.
        bounds: First value, exclusive bound, and step of the loop variable.
        carry: Initial values of what the loop carries.
        name: Stem of the names.
        guarded: Whether to test before the loop that it runs at all.
    """
    first, last, step = bounds
    tail = split_block(b.function, b.block, b.index, f"{name}.end")
    before = b.block
    body = b.new_block(f"{name}.loop", before)
    b.at_end(before)
    if guarded:
        b.branch_if(b.icmp("slt", first, last), body, tail)
    else:
        b.branch(body)
    b.at_end(body)
    index = b.phi(I64, [(first, before)], name)
    state = LoopState(index, "", [b.phi(v.type, [(v, before)], f"{name}.acc") for v in carry])
    yield state
    latch = b.block
    following = b.add(index, step, f"{name}.next")
    again = b.icmp("slt", following, last)
    b.branch_if(again, body, tail)
    latch.terminator.text += state.mark
    latch.terminator.trailer += state.mark
    nexts = state.following or state.carried
    for phi, value in zip(body.instructions, [following, *nexts], strict=False):
        add_incoming(phi, value, latch.name)
    b.block, b.index = tail, 0
    state.results = list(nexts)
    if guarded:
        state.results = [b.phi(v.type, [(c, before), (v, latch)]) for c, v in zip(carry, nexts, strict=True)]
