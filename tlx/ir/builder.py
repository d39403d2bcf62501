"""The builder: a method for each instruction, with arithmetic that folds constants; loops, branches, parallel regions.

In a parallel region every thread of a team runs the body. The emitted code calls functions that both GCC's and LLVM's
OpenMP libraries have:

    store the values into %shared
    call void @GOMP_parallel(ptr @name, ptr %shared, i32 team, i32 0)      team 0: OMP_NUM_THREADS

    define internal void @name(ptr %data) {      each thread calls it
      load the values
      body(values, omp_get_thread_num(), omp_get_num_threads())
    }

clang calls `__kmpc_fork_call`, which only LLVM's library has. With GOMP's functions a program needs one OpenMP library,
and `omp_in_parallel` is true inside the program's own parallel regions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from tlx.diagnostics import Span
from tlx.ir.functions import Argument, Function, NameScope, Signature
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import add_incoming, declare_function, declare_intrinsic, split_block
from tlx.ir.types import (
    I1,
    I8,
    I32,
    I64,
    LABEL,
    PTR,
    VOID,
    ArrayType,
    FunctionType,
    IntType,
    PointerType,
    StructType,
    Type,
    VectorType,
    bits_of,
    bytes_of,
    function_of,
    vector_of,
)
from tlx.ir.values import (
    Aggregate,
    ConstInt,
    Global,
    Keyword,
    Local,
    Text,
    Value,
    as_signed,
    const_int,
    const_ints,
    const_vector,
    fold_integers,
)

ASM_MEMORY_BARRIER: Final = 'asm sideeffect "", "r,~{memory}"'
"""Empty assembly that LLVM must assume to read and write memory."""
ASM_OPAQUE_SCALAR: Final = 'asm "", "=r,0"'
"""Empty assembly that returns its pointer or integer operand, which LLVM cannot know."""


def new_function(
    module: Module, name: str, parameters: Sequence[tuple[Type, str, str]], attributes: str, linkage: str = "internal"
) -> Function:
    """An empty void function at the end of the module.

    Args:
        module: The module, to which it is added.
        name: Its name, which must be free.
        parameters: Type, attributes as text, and name of each parameter.
        attributes: The text after the parameter list.
        linkage: The linkage keyword; empty for a function that others may call.
    """
    arguments = [Argument(type_, text, parameter) for type_, text, parameter in parameters]
    spelled = ", ".join(" ".join(x for x in (str(a.type), a.attributes, f"%{a.name}") if x) for a in arguments)
    signature = Signature(name, VOID, arguments, False, linkage, attributes)
    defined = " ".join(filter(None, ("define", linkage, "void")))
    header = f"\n\n{defined} @{name}({spelled}) {attributes} {{"
    names = NameScope({a.name for a in arguments} | {"entry"})
    function = Function(signature, header, [Block("entry", "\nentry:")], names=names)
    module.global_names.taken.add(name)
    module.append(function)
    return function


class ValueBuilder:
    """Inserts instructions that compute values at a point of a function.

    Attributes:
        module: The module of the function.
        function: The function.
        block: The block of the insertion point.
        index: Index in the block at which the next instruction is inserted.
        debug: Metadata attachment of every call, such as `, !dbg !7`.
        span: The user's code from which the inserted instructions are lowered.
        hint: Stem of the names of results for which the caller gives no name.
    """

    def __init__(
        self, module: Module, function: Function, block: Block | None = None, index: int | None = None
    ) -> None:
        self.module = module
        self.function = function
        self.block: Block = block or function.blocks[-1]
        self.index: int = len(self.block.instructions) if index is None else index
        self.debug = ""
        self.span: Span | None = None
        self.hint = "t"

    # Emitting --------------------------------------------------------------------------------------------------

    def emit(
        self,
        opcode: str,
        type_: Type,
        operands: Sequence[Value],
        body: str,
        name: str = "",
        source_type: Type | None = None,
    ) -> Instruction:
        """Insert an instruction whose text, after `%name = `, is `body`."""
        result = self.function.names.fresh(name or self.hint) if type_ != VOID else None
        text = f"%{result} = {body}" if result is not None else body
        instruction = Instruction(opcode, type_, list(operands), text, result, source_type=source_type, span=self.span)
        self.block.instructions.insert(self.index, instruction)
        self.index += 1
        return instruction

    def value(self, opcode: str, type_: Type, operands: Sequence[Value], body: str, name: str = "") -> Local:
        """Insert an instruction with a result."""
        return self.emit(opcode, type_, operands, body, name).value

    # Calls ---------------------------------------------------------------------------------------------------

    def call(
        self, callee: Global, type_: FunctionType, args: Sequence[Value], name: str = "", suffix: str = ""
    ) -> Instruction:
        """A call."""
        spelled = ", ".join(a.typed for a in args)
        written = type_ if type_.vararg else type_.result
        trailer = f"{suffix}{self.debug}"
        body = f"call {written} {callee}({spelled}){trailer}"
        instruction = self.emit("call", type_.result, [callee, *args], body, name, source_type=type_)
        instruction.trailer = trailer
        instruction.arg_attributes = ("",) * len(args)
        return instruction

    def call_intrinsic(
        self, name: str, overloads: list[Type], result: Type, args: Sequence[Value], result_name: str = ""
    ) -> Local:
        """A call of an LLVM intrinsic, declared under its mangled name; void calls return a placeholder."""
        type_ = function_of(result, tuple([a.type for a in args]))
        instruction = self.call(declare_intrinsic(self.module, name, overloads, type_), type_, args, result_name)
        return instruction.value if result != VOID else Local(VOID, "")

    def call_named(
        self, name: str, result: Type, args: Sequence[Value], result_name: str = "", attributes: str = ""
    ) -> Instruction:
        """A call of a function by its name; it is declared if it is not yet."""
        type_ = function_of(result, tuple([a.type for a in args]))
        return self.call(declare_function(self.module, name, type_, attributes), type_, args, result_name)

    # Arithmetic ------------------------------------------------------------------------------------------------

    def binary(self, opcode: str, lhs: Value, rhs: Value, name: str = "", flags: str = "") -> Value:
        """`opcode lhs, rhs`; folds trivial integer constants."""
        folded = fold_binary(opcode, lhs, rhs)
        if folded is not None:
            return folded
        words = f"{opcode} {flags}" if flags else opcode
        instruction = self.emit(opcode, lhs.type, [lhs, rhs], f"{words} {lhs.typed}, {rhs}", name)
        instruction.flags = tuple(flags.split())
        return instruction.value

    def add(self, lhs: Value, rhs: IntOrValue, name: str = "") -> Value:
        """Integer sum; a plain int takes the type of `lhs`."""
        return self.binary("add", lhs, as_value(rhs, lhs.type), name)

    def sub(self, lhs: Value, rhs: IntOrValue, name: str = "") -> Value:
        """Integer difference."""
        return self.binary("sub", lhs, as_value(rhs, lhs.type), name)

    def mul(self, lhs: Value, rhs: IntOrValue, name: str = "") -> Value:
        """Integer product."""
        return self.binary("mul", lhs, as_value(rhs, lhs.type), name)

    def icmp(self, predicate: str, lhs: Value, rhs: IntOrValue, name: str = "") -> Local:
        """Integer or pointer comparison."""
        other = as_value(rhs, lhs.type)
        type_ = VectorType(lhs.type.count, I1) if isinstance(lhs.type, VectorType) else I1
        instruction = self.emit("icmp", type_, [lhs, other], f"icmp {predicate} {lhs.typed}, {other}", name)
        instruction.predicate = predicate
        return instruction.value

    def select(self, condition: Value, first: Value, second: Value, name: str = "") -> Local:
        """`select condition, first, second`."""
        operands = [condition, first, second]
        return self.value("select", first.type, operands, f"select {', '.join(o.typed for o in operands)}", name)

    def ceil_div(self, lhs: Value, rhs: IntOrValue, name: str = "") -> Value:
        """`ceil(lhs / rhs)` of two unsigned numbers."""
        divisor = as_value(rhs, lhs.type)
        return self.binary("udiv", self.add(lhs, self.sub(divisor, 1)), divisor, name)

    def umin(self, lhs: Value, rhs: IntOrValue, name: str = "") -> Value:
        """The smaller of two unsigned numbers, by compare and select."""
        other = as_value(rhs, lhs.type)
        if isinstance(lhs, ConstInt) and isinstance(other, ConstInt):
            return lhs if lhs.unsigned <= other.unsigned else other
        return self.select(self.icmp("ult", lhs, other), lhs, other, name)

    def cast(self, opcode: str, value: Value, type_: Type, name: str = "") -> Value:
        """A conversion; the value itself if the types are equal."""
        if value.type == type_:
            return value
        return self.value(opcode, type_, [value], f"{opcode} {value.typed} to {type_}", name)

    def fma(self, a: Value, b: Value, c: Value, name: str = "") -> Local:
        """`a * b + c`, rounded once."""
        return self.call_intrinsic("llvm.fma", [a.type], a.type, [a, b, c], name)

    # Vectors ---------------------------------------------------------------------------------------------------

    def insert_element(self, vector: Value, element: Value, index: int, name: str = "") -> Local:
        """`insertelement`."""
        position = const_int(I32, index)
        body = f"insertelement {vector.typed}, {element.typed}, {position.typed}"
        return self.value("insertelement", vector.type, [vector, element, position], body, name)

    def extract_element(self, vector: Value, index: int, name: str = "") -> Local:
        """`extractelement`."""
        type_ = vector.type
        if not isinstance(type_, VectorType):
            msg = f"extractelement of {type_}"
            raise TypeError(msg)
        position = const_int(I32, index)
        body = f"extractelement {vector.typed}, {position.typed}"
        return self.value("extractelement", type_.element, [vector, position], body, name)

    def shuffle(self, first: Value, second: Value | None, mask: Sequence[int], name: str = "") -> Value:
        """`shufflevector`; negative mask entries are undefined lanes; the identity needs no instruction."""
        type_ = first.type
        if not isinstance(type_, VectorType):
            msg = f"shufflevector of {type_}"
            raise TypeError(msg)
        if tuple(mask) == tuple(range(type_.count)):
            return first
        other = second if second is not None else Keyword(type_, "undef")
        lanes = _shuffle_mask(tuple(mask))
        body = f"shufflevector {first.typed}, {other.typed}, {lanes.typed}"
        return self.value("shufflevector", vector_of(len(mask), type_.element), [first, other, lanes], body, name)

    def splat(self, scalar: Value, count: int, name: str = "") -> Value:
        """A vector with every lane `scalar`."""
        type_ = VectorType(count, scalar.type)
        if isinstance(scalar, ConstInt):
            return const_vector([scalar] * count)
        first = self.insert_element(Keyword(type_, "undef"), scalar, 0)
        return self.shuffle(first, None, [0] * count, name)


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
        saved = self.block, self.index
        entry = self.function.entry
        at_entry = self.block is entry
        self.block, self.index = entry, 0
        body = f"alloca {type_}, align {align}"
        result = self.emit("alloca", self.pointer(type_), [], body, name, source_type=type_).value
        self.block, self.index = saved
        if at_entry:
            self.index += 1
        return result

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
        self.emit("call", VOID, [Text(PTR, ASM_MEMORY_BARRIER), operand], body).arg_attributes = ("",)

    def opaque(self, vector: Value, constraint: str, name: str = "") -> Local:
        """The same vector, opaque to LLVM's optimiser; `constraint` is the asm constraint of vector registers."""
        return self._unchanged(f'asm "", "={constraint},0"', vector, name)

    def opaque_address(self, pointer: Value, name: str = "") -> Local:
        """The same pointer, computed into one register: LLVM does not split it into base and index."""
        return self._unchanged(ASM_OPAQUE_SCALAR, pointer, name)

    def _unchanged(self, assembly: str, value: Value, name: str) -> Local:
        """The value, passed through empty assembly."""
        body = f"call {value.type} {assembly}({value.typed})"
        instruction = self.emit("call", value.type, [Text(PTR, assembly), value], body, name)
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

    def branch(self, target: Block) -> None:
        """An unconditional branch."""
        self.emit("br", VOID, [target.value], f"br label %{target.name}")

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
            msg = f"loop from {first} to {last} never runs"
            raise ValueError(msg)
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


def fold_binary(opcode: str, lhs: Value, rhs: Value) -> Value | None:
    """`opcode lhs, rhs` folded, for integer constants or a neutral element; None if an instruction is needed."""
    if not isinstance(rhs, ConstInt):
        return fold_binary(opcode, rhs, lhs) if opcode in ("add", "mul") and isinstance(lhs, ConstInt) else None
    if isinstance(lhs, ConstInt):
        width = bits_of(lhs.type)
        number = fold_integers(opcode, lhs.value, rhs.value, width)
        return ConstInt(lhs.type, as_signed(number, width)) if number is not None else None
    if (opcode in ("add", "sub") and rhs.value == 0) or (opcode in ("mul", "udiv") and rhs.value == 1):
        return lhs
    return rhs if opcode == "mul" and rhs.value == 0 else None


@lru_cache(maxsize=4096)
def _shuffle_mask(lanes: tuple[int, ...]) -> Aggregate:
    """The mask operand of a `shufflevector`; negative lanes are undefined."""
    return const_vector([const_int(I32, lane) if lane >= 0 else Keyword(I32, "undef") for lane in lanes])


IntOrValue = int | Value


def as_value(number: IntOrValue, type_: Type) -> Value:
    """A number as a constant of a type, in every lane of a vector."""
    if isinstance(number, int):
        if isinstance(type_, VectorType) and isinstance(type_.element, IntType):
            return const_ints(type_.element, [number] * type_.count)
        return ConstInt(type_, number)
    return number


GOMP_PARALLEL: Final = "GOMP_parallel"
SCHED_YIELD: Final = "sched_yield"


@dataclass(frozen=True, slots=True)
class Thread:
    """The thread that code runs on: its number in its team, and the team's size, both i64."""

    number: Value
    team: Value

    def share(self, b: Builder, total: Value) -> tuple[Value, Value]:
        """The thread's part of the range 0 to `total`: its start and its exclusive end."""
        return partition(b, total, self.number, self.team)


def partition(b: Builder, total: Value, number: Value, parts: Value) -> tuple[Value, Value]:
    """Part `number` of `parts` equal ones: `number * total / parts` to `(number + 1) * total / parts`."""
    first = b.binary("sdiv", b.mul(number, total), parts)
    return first, b.binary("sdiv", b.mul(b.add(number, 1), total), parts)


def emit_parallel_region(
    b: Builder,
    name: str,
    values: Sequence[Value],
    body: Callable[[Builder, list[Value], Thread], None],
    attributes: str,
    team: Value | None = None,
) -> None:
    """Emit code that calls a new function on every thread of a team, and waits for all of them.

    Args:
        b: The builder.
        name: Name of the new function.
        values: The values that the function is passed.
        body: Emits the function's body, without its `ret`, given a builder, the passed values, and the thread.
        attributes: Attributes of the function.
        team: The number of threads (i32); None for OMP_NUM_THREADS.
    """
    shared = StructType(tuple(v.type for v in values))
    memory = b.alloca(shared, "shared", 16)
    for k, value in enumerate(values):
        b.store(value, _field(b, shared, memory, k), _alignment(value.type))
    data = b.retype(memory, I8)
    _thread_function(b, name, shared, body, attributes)
    _start_team(b, name, data, const_int(I32, 0) if team is None else team)


def emit_parallel_call(
    b: Builder,
    names: tuple[str, str],
    values: Sequence[Value],
    body: Callable[[Builder, list[Value], Thread], None],
    attributes: str,
    team: Value,
) -> None:
    """Emit code that calls a new function on every thread of a team; a team of one is the calling thread.

    Unlike the code of `emit_parallel_region`, it may be executed inside a parallel region of the program.

    Args:
        b: The builder.
        names: Names of the new functions: that with the body, and that which the threads of a team call.
        values: The values that the body is passed, of at most eight bytes each.
        body: Emits the body, without its `ret`, given a builder, the passed values, and the thread.
        attributes: Attributes of the functions.
        team: The number of threads (i32).
    """
    slots = b.retype(b.alloca(ArrayType(len(values), I64), "shared", 16), I64)
    for k, value in enumerate(values):
        b.store(value, b.gep(I64, slots, k), _alignment(value.type))
    data = b.retype(slots, I8)
    bounds: list[tuple[Type, str, str]] = [(I64, "", "thread"), (I64, "", "team")]
    function = new_function(b.module, names[0], [(b.pointer(I8), "", "data"), *bounds], attributes)
    inner = Builder(b.module, function)
    memory, number, size = (argument.value for argument in function.arguments)
    slots = inner.retype(memory, I64)
    passed: list[Value] = [
        inner.load(v.type, inner.gep(I64, slots, k), _alignment(v.type)) for k, v in enumerate(values)
    ]
    body(inner, passed, Thread(number, size))
    inner.ret()
    member = new_function(b.module, names[1], [(b.pointer(I8), "", "data")], attributes)
    outer = Builder(b.module, member)
    type_ = FunctionType(VOID, (data.type, I64, I64))
    callee = Global(b.module.pointer_to(type_), names[0])
    thread = _current_thread(outer)
    outer.call(callee, type_, [member.arguments[0].value, thread.number, thread.team])
    outer.ret()
    several, alone = b.if_else_blocks(b.icmp("ugt", team, 1), ("parallel", "serial"))
    end = b.new_block("joined", alone)
    b.at_end(several)
    _start_team(b, names[1], data, team)
    b.branch(end)
    b.at_end(alone)
    b.call(callee, type_, [data, const_int(I64, 0), const_int(I64, 1)])
    b.branch(end)
    b.at_end(end)


def _start_team(b: Builder, name: str, data: Value, team: Value) -> None:
    """Call a function on every thread of a team, and wait for all of them."""
    function = Global(b.module.pointer_to(FunctionType(VOID, (data.type,))), name)
    b.call_named(GOMP_PARALLEL, VOID, [function, data, team, const_int(I32, 0)])


def _current_thread(b: Builder) -> Thread:
    number, team = (
        b.cast("sext", b.call_named(callee, I32, []).value, I64, stem)
        for callee, stem in (("omp_get_thread_num", "thread"), ("omp_get_num_threads", "team"))
    )
    return Thread(number, team)


def team_size(b: Builder, most: int) -> Value:
    """The size of a team (i32): at most `most`, and one thread inside a parallel region."""
    inside = b.call_named("omp_in_parallel", I32, [], "in.parallel").value
    allowed = b.call_named("omp_get_max_threads", I32, [], "max.threads").value
    one = const_int(I32, 1)
    return b.select(b.icmp("eq", inside, 0), b.umin(allowed, most), one, "team")


def _thread_function(
    b: Builder,
    name: str,
    shared: StructType,
    body: Callable[[Builder, list[Value], Thread], None],
    attributes: str,
) -> None:
    function = new_function(b.module, name, [(b.pointer(I8), "", "data")], attributes)
    inner = Builder(b.module, function)
    memory = inner.retype(function.arguments[0].value, shared)
    values: list[Value] = [
        inner.load(t, _field(inner, shared, memory, k), _alignment(t)) for k, t in enumerate(shared.elements)
    ]
    body(inner, values, _current_thread(inner))
    inner.ret()


def _alignment(type_: Type) -> int:
    """The alignment in bytes of a structure's field of a type."""
    if isinstance(type_, PointerType):
        return 8
    size = bytes_of(type_)
    return min(8, size & -size)


def _field(b: Builder, shared: StructType, memory: Value, k: int) -> Value:
    type_ = b.pointer(shared.elements[k]) if b.module.typed_pointers else memory.type
    body = f"getelementptr inbounds {shared}, {memory.typed}, i32 0, i32 {k}"
    operands = [memory, const_int(I32, 0), const_int(I32, k)]
    return b.emit("getelementptr", type_, operands, body, source_type=shared).value
