"""One team per call: the threaded kernels of a function share one team, with barriers between them.

To start a team and to wait for it takes 2 to 5 microseconds, and a barrier a fraction of that. A model has dozens of
kernels in each of its layers.

Rewrite:
    define void @f(...) {                define void @f(...) {
      %p = gep %x, 100                     a team runs @f.team
      call void @K(%x, ...)              }
      call void @J(...)                  define internal void @f.team(shared, thread, team) {
      call void @L(%p, ...)       ->       %p = gep %x, 100                     by all threads
    }                                      call void @K.member(...)             this thread's share, if it takes part
                                           call void @barrier(...)
                                           if (thread == 0) call void @J(...)   not worth threads
                                           call void @barrier(...)
                                           call void @L.member(%p, ...)
                                         }

A region is a sequence of instructions without branches, from the first kernel that runs in threads to the last one. A
loop around such kernels is one of its steps: it becomes a function, whose iterations all threads execute, one after the
other. A loop without them becomes a function that the first thread calls.

Every thread computes addresses and loads scalars; everything else that is not a kernel for a team runs on the first
thread. A kernel that is worth fewer threads than the team has is run by the first of them.

Work stealing needs counters that are zero when a kernel begins. There are two sets, which kernels use in turn; before
a barrier, each thread clears its counter of the set that the next kernel uses and that no thread reads any more:

    kernel 0, set 0    | barrier clears set 1 |    kernel 1, set 1    | barrier clears set 0 |    kernel 2, set 0 ...
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from tlx.ir.builder import Builder, Thread, emit_parallel_call, new_function, team_size
from tlx.ir.control_flow import ControlFlow, FunctionLoops, Loop
from tlx.ir.functions import Function
from tlx.ir.instructions import BINARY_OPCODES, CAST_OPCODES, Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import Use, remove_dead, split_block, uses
from tlx.ir.transform import (
    LoopRegion,
    extract_region,
    loop_region,
    remove_debug_location,
    remove_regions,
    renamed,
)
from tlx.ir.types import I8, I64, VOID, FloatType, IntType, PointerType, Type
from tlx.ir.values import ConstInt, Global, Local, Value, const_int
from tlx.lower.context import is_kernel, is_kernel_nest
from tlx.lower.memory.allocation import CACHE_LINE, emit_allocation, emit_release, frame_metadata, trap_if_null
from tlx.lower.memory.buffers import allow_heap
from tlx.lower.remarks import Remarks
from tlx.lower.to_tiles.emit.kernel import call_function
from tlx.lower.to_tiles.parallel.barrier import add_barrier, barrier_state
from tlx.lower.to_tiles.parallel.stealing import COUNTERS, share_counters
from tlx.lower.to_tiles.parallel.team import (
    MIN_COOPERATING_THREADS,
    TEAM_ATTRIBUTES,
    TeamKernels,
    TeamWork,
)

_COMPUTED: Final = BINARY_OPCODES | CAST_OPCODES | {"getelementptr", "icmp", "fcmp", "select", "fneg", "freeze"}
_INTRINSICS: Final = ("llvm.memcpy.", "llvm.memset.", "llvm.memmove.")
_QUOTE: Final = '"'
_MIN_KERNELS: Final = 2
"""Least number of kernels for which they share a team."""


def share_teams(teams: TeamKernels, remarks: Remarks) -> bool:
    """Have the kernels of each function run on one team, where several in a row run in threads.

    Args:
        teams: The kernels of the module.
        remarks: Receives a remark for each team.

    Returns:
        Whether any function was changed.
    """
    module, lowering = teams.module, _RegionLowering(teams, remarks)
    changed = False
    for function in list(module.functions):
        if not is_kernel(module, function) and not is_kernel_nest(module, function):
            changed |= lowering.lower(function)
    if changed:
        module.remove(*(loop.function for name, loop in lowering.loops.items() if name in lowering.members))
        _remove_unused(module, teams)
    return changed


def _remove_unused(module: Module, teams: TeamKernels) -> None:
    """Remove the functions that start a team of their own and that nothing calls any more."""
    by_name = {function.name: function for function in module.functions}
    called = {o.name for f in module.functions for i in f.instructions() for o in i.operands if isinstance(o, Global)}
    unused = [work for name, work in teams.work.items() if name not in called]
    names = [name for work in unused for name in (work.function.name, *work.threads)]
    module.remove(*(by_name[name] for name in names if name in by_name))


@dataclass(frozen=True, eq=False)
class _ParallelRegion:
    """A sequence of instructions that one team executes.

    Attributes:
        instructions: The instructions, without branches.
        captured: The values from outside that they use.
    """

    instructions: list[Instruction]
    captured: list[Local]


@dataclass(frozen=True, eq=False)
class _Member:
    """A function by which a thread of a team takes part in a kernel, or in a loop of kernels.

    Attributes:
        function: Its parameters are those of the kernel, the thread, the team and the counters of the first step; if
            the threads wait for each other in it, the counters of the second step and the state of the barrier; and if
            a large team packs B together, memory for the panels.
        steps: The number of steps.
        waits: Whether it contains barriers.
        packs: Whether it needs memory for panels.
    """

    function: Function
    steps: int
    waits: bool
    packs: bool


@dataclass(frozen=True, eq=False)
class _KernelLoop:
    """A loop of known trip count around kernels that run in threads, in a function of its own.

    Attributes:
        function: The function.
        index: The loop's index, which begins with 0.
        trips: The trip count.
        body: The instructions of an iteration, without those that count.
    """

    function: Function
    index: Instruction
    trips: int
    body: list[Instruction]


@dataclass(eq=False)
class _RegionLowering:
    """Rewrites functions.

    Attributes:
        teams: The kernels that run on a team.
        remarks: Receives a remark for each region.
        members: The functions by which a thread of a larger team takes part in a kernel, by the kernel's name.
        loops: The loops around kernels that run in threads, by the name of the function that they have become.
    """

    teams: TeamKernels
    remarks: Remarks
    members: dict[str, _Member] = field(default_factory=dict[str, "_Member"])
    loops: dict[str, _KernelLoop] = field(default_factory=dict[str, "_KernelLoop"])

    def __post_init__(self) -> None:
        self.module = self.teams.module

    @cached_property
    def serial_callees(self) -> set[str]:
        """The functions that the first thread may call: they start no team themselves."""
        work = self.teams.work.keys()
        starters = {f.name for f in self.module.functions if any(i.callee in work for i in f.instructions())}
        names = {f.name for f in self.module.functions if f.name.strip('"').startswith("tlx.")}
        return names - starters - work

    def runs_in_threads(self, instruction: Instruction) -> bool:
        """Whether an instruction calls a kernel, or a loop of kernels, that runs in threads."""
        return instruction.callee in self.teams.work or instruction.callee in self.loops

    def work_of(self, instructions: Iterable[Instruction]) -> list[TeamWork]:
        """The work of the kernels that some instructions call, and those in loops."""
        work: list[TeamWork] = []
        for instruction in instructions:
            callee = str(instruction.callee)
            if callee in self.loops:
                work += 2 * self.work_of(self.loops[callee].body)
            elif callee in self.teams.work:
                work.append(self.teams.work[callee])
        return work

    def lower(self, function: Function) -> bool:
        """Rewrite the regions of a function; returns whether it has any."""
        if not any(map(self.runs_in_threads, function.instructions())):
            return False
        self._outline_loops(function)
        changed = False
        while (region := self._region(function)) is not None:
            kernels = sum(map(self.runs_in_threads, region.instructions))
            text = f"@{function.name}: one team of threads runs {kernels} kernels, with barriers between them"
            self.remarks.add("applied", "to-tiles", text, function.span)
            self._outline(function, region)
            changed = True
        return changed

    def _outline_loops(self, function: Function) -> None:
        """Move the loops around kernels, and those between kernels, to functions of their own."""
        loops = FunctionLoops(function)
        flow, order = loops.flow, {name: place for place, name in enumerate(loops.flow.order)}
        places = [order[name] for name in flow.order if any(map(self.runs_in_threads, flow.blocks[name].instructions))]
        moved: set[str] = set()
        regions: list[LoopRegion] = []
        for loop in loops.independent:
            is_between = all(places[0] <= order[name] <= places[-1] for name in loop.blocks)
            body = _body(flow, loop) if loop.header not in moved else None
            has_kernels = body is not None and any(map(self.runs_in_threads, body))
            if loop.header in moved or not (has_kernels or is_between):
                continue
            region = loop_region(flow, loop, self._is_loop_part if has_kernels else self._is_serial)
            if region is None:
                continue
            name = self.module.global_names.fresh(f"tlx.loop.{function.name.strip(_QUOTE)}")
            outlined, caller = extract_region(self.module, function, region, name, TEAM_ATTRIBUTES)
            if body is not None and has_kernels and loop.index is not None:
                self.loops[outlined.name] = _KernelLoop(outlined, loop.index, loop.trips, body)
            else:
                self.serial_callees.add(outlined.name)
            regions.append(region)
            moved |= loop.blocks
            others = [p for p in flow.predecessors[region.exit.name] if p not in loop.blocks]
            flow.predecessors[region.exit.name] = [*others, caller.name]
            flow.blocks[caller.name] = caller
        remove_regions(function, regions)

    def _is_serial(self, instruction: Instruction) -> bool:
        """Whether an instruction of a loop can be executed by the first thread."""
        return not self.runs_in_threads(instruction) and self._is_loop_part(instruction)

    def _is_loop_part(self, instruction: Instruction) -> bool:
        """Whether an instruction can be in a loop that a team executes."""
        return instruction.opcode in ("br", "phi") or self._is_allowed(instruction)

    # Finding regions ---------------------------------------------------------------------------------------------

    def _region(self, function: Function) -> _ParallelRegion | None:
        """The first region of a function."""
        flow, used = ControlFlow(function), uses(function)
        seen: set[str] = set()
        for name in flow.order:
            chain = [] if name in seen else _chain(flow, name)
            seen |= {block.name for block in chain}
            instructions = [i for block in chain for i in block.instructions]
            limits: set[int] = set()
            while (sequence := self._sequence(instructions, limits)) and (region := _ParallelRegion(sequence, [])):
                found = self._limit(region, used)
                if found is None:
                    return region
                limits.add(id(found))
        return None

    def _sequence(self, instructions: Sequence[Instruction], limits: Container[int]) -> list[Instruction]:
        """The first run of instructions that a team can execute, from its first kernel to its last one; else empty."""
        sequence: list[Instruction] = []
        for instruction in [*instructions, None]:
            if instruction is not None and instruction.opcode == "br" and len(instruction.operands) == 1:
                continue
            if instruction is not None and id(instruction) not in limits and self._is_allowed(instruction):
                sequence.append(instruction)
                continue
            kernels = [index for index, i in enumerate(sequence) if self.runs_in_threads(i)]
            if len(self.work_of(sequence)) >= _MIN_KERNELS:
                return sequence[kernels[0] : kernels[-1] + 1]
            sequence = []
        return []

    def _is_allowed(self, instruction: Instruction) -> bool:
        """Whether a region may contain an instruction."""
        if instruction.is_debug:
            return True
        if instruction.is_call:
            callee = str(instruction.callee)
            known = self.runs_in_threads(instruction) or callee in self.serial_callees or callee.startswith(_INTRINSICS)
            return known and instruction.opcode == "call" and instruction.type == VOID
        if instruction.opcode in ("load", "store"):
            return not {"volatile", "atomic"} & set(instruction.flags)
        return instruction.opcode in _COMPUTED or instruction.opcode == "fence"

    def _limit(self, region: _ParallelRegion, used: Mapping[str, Sequence[Use]]) -> Instruction | None:
        """An instruction that keeps a sequence from being a region, whose captured values are set; None if none does.

        What is loaded in a region cannot be used after it, and what is captured must be stored in a structure.
        """
        inside = {id(instruction) for instruction in region.instructions}
        defined = {instruction.result for instruction in region.instructions}
        loads: dict[str, Instruction] = {}
        captured: dict[str, Local] = {}
        for instruction in region.instructions:
            operands = [] if instruction.is_debug else instruction.operands
            for operand in operands:
                if isinstance(operand, Local) and operand.name not in defined:
                    if not _can_be_shared(operand.type):
                        return instruction
                    captured.setdefault(operand.name, operand)
            if instruction.result is None:
                continue
            sources = [loads[o.name] for o in operands if isinstance(o, Local) and o.name in loads]
            if instruction.opcode == "load" or sources:
                loads[instruction.result] = sources[0] if sources else instruction
                if any(id(use.instruction) not in inside for use in used.get(instruction.result, ())):
                    return loads[instruction.result]
        region.captured[:] = captured.values()
        return None

    # Emission ----------------------------------------------------------------------------------------------------

    def _outline(self, function: Function, region: _ParallelRegion) -> None:
        """Move a region to a function that a team executes."""
        first = region.instructions[0]
        block = next(block for block in function.blocks if first in block.instructions)
        moved = [i for i in region.instructions if i.opcode not in _COMPUTED]
        tail = split_block(function, block, _index(block, first), f"{block.name}.joined")
        b = Builder(self.module, function, block, len(block.instructions))
        work = self.work_of(region.instructions)
        size = team_size(b, max(kernel.max_threads for kernel in work))
        counters, state = share_counters(b, size, sets=2), barrier_state(b)
        packed = max((kernel.packing.bytes for kernel in work if kernel.packing is not None), default=0)
        memory = _allocate_panels(b, size, packed) if packed else None
        shared = [counters, state, *([memory[1]] if memory else []), *region.captured]

        def body(inner: Builder, values: list[Value], thread: Thread) -> None:
            panels = values[2] if memory else None
            captured = values[3 if memory else 2 :]
            names: dict[str, Value] = {v.name: new for v, new in zip(region.captured, captured, strict=True)}
            fresh = inner.function.names.fresh
            results = [i for i in region.instructions if i.result is not None]
            names |= {str(i.result): Local(i.type, fresh(str(i.result))) for i in results}
            spellings = {name: str(value) for name, value in names.items()}
            sets = values[0], inner.gep(I64, values[0], COUNTERS)
            _Body(self, inner, thread, sets, values[1], panels, names, spellings).emit(region.instructions)

        stem = function.name.strip('"')
        run, member = (self.module.global_names.fresh(f"tlx.team.{stem}{suffix}") for suffix in ("", ".thread"))
        emit_parallel_call(b, (run, member), shared, body, TEAM_ATTRIBUTES, size)
        if memory is not None:
            emit_release(b, memory[0], frame_metadata())
            allow_heap(self.module, function)
        b.branch(tail)
        removed = set(map(id, moved)) - {id(i) for i in moved if i.opcode == "load"}
        for other in function.blocks:
            other.instructions = [i for i in other.instructions if id(i) not in removed]
        remove_dead(function, [i for i in region.instructions if i.result is not None])

    @cached_property
    def barrier(self) -> Function:
        """The function in which threads wait for each other, and clear the counters that the next kernel uses."""
        return add_barrier(self.module, self.module.global_names.fresh("tlx.team.barrier"))

    def member(self, kernel: str) -> _Member:
        """The function by which a thread of a team takes part in a kernel, or in a loop of kernels."""
        if kernel not in self.members:
            loop = self.loops.get(kernel)
            self.members[kernel] = self._loop_member(loop) if loop else self._member(self.teams.work[kernel])
        return self.members[kernel]

    def _loop_member(self, loop: _KernelLoop) -> _Member:
        """All threads execute the loop; it begins each iteration with the set of counters after the last one used."""
        packs = any(work.packing is not None for work in self.work_of(loop.body))
        pointer = self.module.pointer_to(I64)
        parameters = [(a.type, a.attributes, a.name) for a in loop.function.arguments]
        parameters += [(I64, "", "thread"), (I64, "", "team")]
        parameters += [(pointer, "", name) for name in ("counters", "counters.1", "barrier")]
        if packs:
            parameters.append((self.module.pointer_to(I8), "", "panels"))
        name = self.module.global_names.fresh(f"{loop.function.name.strip(_QUOTE)}.member")
        function = new_function(self.module, name, parameters, TEAM_ATTRIBUTES)
        b = Builder(self.module, function)
        values: list[Value] = [argument.value for argument in function.arguments]
        number, team, first, second, state = values[len(loop.function.arguments) :][:5]
        names: dict[str, Value] = {a.name: a.value for a in function.arguments}
        fresh = function.names.fresh
        with b.loop(0, loop.trips, carry=[const_int(I64, 0)], name="iteration") as iterations:
            names[str(loop.index.result)] = iterations.index
            names |= {str(i.result): Local(i.type, fresh(str(i.result))) for i in loop.body if i.result is not None}
            is_even = b.icmp("eq", iterations.carried[0], 0)
            sets = b.select(is_even, first, second), b.select(is_even, second, first)
            spellings = {name: str(value) for name, value in names.items()}
            panels = values[-1] if packs else None
            body = _Body(self, b, Thread(number, team), sets, state, panels, names, spellings)
            body.emit(loop.body)
            body.wait()
            iterations.next(b.binary("and", b.add(iterations.carried[0], body.step), const_int(I64, 1)))
        b.ret()
        return _Member(function, body.step * loop.trips, waits=True, packs=packs)

    def _member(self, work: TeamWork) -> _Member:
        module, packing = self.module, work.packing
        counters = module.pointer_to(I64)
        parameters = [(a.type, a.attributes, a.name) for a in work.function.arguments]
        parameters += [(I64, "", "thread"), (I64, "", "team"), (counters, "", "counters")]
        if packing is not None:
            parameters += [
                (counters, "", "counters.1"),
                (counters, "", "barrier"),
                (module.pointer_to(I8), "", "panels"),
            ]
        name = module.global_names.fresh(f"{work.function.name.strip(_QUOTE)}.member")
        function = new_function(module, name, parameters, TEAM_ATTRIBUTES)
        b = Builder(module, function)
        values: list[Value] = [argument.value for argument in function.arguments]
        count = len(work.function.arguments)
        arguments, (number, team, first) = values[:count], values[count : count + 3]
        size = b.umin(team, work.max_threads)
        takes_part = b.icmp("ult", number, size)
        if packing is not None:
            second, state, memory = values[count + 3 :]
            wait = [number, team, second, state]
            panels = b.retype(memory, packing.element)
            large, small = b.if_else_blocks(b.icmp("uge", size, MIN_COOPERATING_THREADS), ("large.team", "small.team"))
            b.at_end(large)
            pack, multiply = work.packers
            with b.if_block(takes_part, "pack"):
                call_function(b, pack, [*packing.packing_arguments(arguments, panels), number, size, first])
            call_function(b, self.barrier, wait)
            with b.if_block(takes_part, "multiply"):
                call_function(b, multiply, [*packing.multiply_arguments(arguments, panels), number, size, second])
            b.ret()
            b.at_end(small)
        inside, outside = b.if_else_blocks(takes_part, ("takes.part", "waits"))
        b.at_end(inside)
        several, one = b.if_else_blocks(b.icmp("ugt", size, 1), ("several", "alone"))
        b.at_end(several)
        call_function(b, work.share, [*arguments, number, size, first])
        b.branch(outside)
        b.at_end(one)
        work.single_thread(b, arguments)
        b.branch(outside)
        b.at_end(outside)
        if packing is not None:
            call_function(b, self.barrier, [number, team, *values[count + 3 : -1]])
        b.ret()
        has_packing = packing is not None
        return _Member(function, 2 if has_packing else 1, waits=has_packing, packs=has_packing)


@dataclass(eq=False)
class _Body:
    """Emits the function that a team executes.

    Attributes:
        lowering: Has the functions that it calls.
        b: Where to emit.
        thread: The thread.
        counters: The two sets of counters.
        state: The state of the barrier.
        panels: Memory for packed panels; None if no kernel needs it.
        names: The values in this function for those of the region, by name.
        spellings: The texts of these values.
        step: Number of steps so far, each of which uses the other set of counters.
        is_written, is_read: Whether memory has been written, or read by all threads, since the last barrier.
        serial: Instructions that the first thread is to execute.
    """

    lowering: _RegionLowering
    b: Builder
    thread: Thread
    counters: tuple[Value, Value]
    state: Value
    panels: Value | None
    names: dict[str, Value]
    spellings: dict[str, str]
    step: int = 0
    is_written: bool = False
    is_read: bool = False
    serial: list[Instruction] = field(default_factory=list[Instruction])

    def emit(self, instructions: Iterable[Instruction]) -> None:
        """Emit instructions."""
        for instruction in instructions:
            if instruction.is_debug:
                continue
            if self.lowering.runs_in_threads(instruction):
                self._flush()
                self._kernel(instruction)
            elif instruction.opcode == "load":
                self._flush()
                self.wait(reads=False)
                self._insert(instruction)
                self.is_read = True
            elif instruction.opcode in _COMPUTED:
                self._insert(instruction)
            else:
                self.serial.append(instruction)
        self._flush()

    def _insert(self, instruction: Instruction) -> None:
        """A copy of an instruction."""
        copy = renamed(instruction, self.names, self.spellings)
        copy.span = None
        remove_debug_location(copy)
        self.b.block.instructions.insert(self.b.index, copy)
        self.b.index += 1

    def wait(self, *, reads: bool = True) -> None:
        """Emit a barrier, if memory has been written since the last one, or, if `reads`, read."""
        if self.is_written or (reads and self.is_read):
            arguments = [self.thread.number, self.thread.team, self.counters[self.step % 2], self.state]
            call_function(self.b, self.lowering.barrier, arguments)
            self.is_written = self.is_read = False

    def _flush(self) -> None:
        """Emit the instructions that the first thread executes."""
        if not self.serial:
            return
        self.wait()
        with self.b.if_block(self.b.icmp("eq", self.thread.number, 0), "first.thread"):
            for instruction in self.serial:
                self._insert(instruction)
        self.serial.clear()
        self.is_written = True

    def _kernel(self, call: Instruction) -> None:
        self.wait()
        arguments = [self.names[a.name] if isinstance(a, Local) else a for a in call.args]
        member = self.lowering.member(str(call.callee))
        places = [self.counters[self.step % 2]]
        if member.waits:
            places += [self.counters[(self.step + 1) % 2], self.state]
        if member.packs:
            assert self.panels is not None
            places.append(self.panels)
        call_function(self.b, member.function, [*arguments, self.thread.number, self.thread.team, *places])
        self.step += member.steps
        self.is_written = True


def _chain(flow: ControlFlow, name: str) -> list[Block]:
    """A block and those that follow it without a branch, as long as nothing else leads to them."""
    chain = [flow.blocks[name]]
    while len(following := flow.successors[chain[-1].name]) == 1 and len(flow.predecessors[following[0]]) == 1:
        block = flow.blocks[following[0]]
        if block in chain or block.phis:
            break
        chain.append(block)
    return chain


def _body(flow: ControlFlow, loop: Loop) -> list[Instruction] | None:
    """The instructions of an iteration, without those that count; None unless they are a sequence without branches."""
    if loop.index is None or loop.test is None or loop.latch is None or loop.entry is None or loop.trips < 2:
        return None
    chain = [block for block in _chain(flow, loop.header) if block.name in loop.blocks]
    following = loop.test.operands[0]
    phis = flow.blocks[loop.header].phis
    starts = [value for value, label in loop.index.incoming if label == loop.entry]
    if len(chain) != len(loop.blocks) or len(phis) != 1 or starts != [ConstInt(I64, 0)]:
        return None
    counting = {id(loop.index), id(loop.test)}
    instructions = [i for block in chain for i in block.instructions if i.opcode != "br" and id(i) not in counting]
    step = next((i for i in instructions if i.result is not None and i.value == following), None)
    if step is None or step.operands != [loop.index.value, ConstInt(I64, 1)]:
        return None
    return [i for i in instructions if i is not step]


def _index(block: Block, instruction: Instruction) -> int:
    return next(index for index, other in enumerate(block.instructions) if other is instruction)


def _can_be_shared(type_: Type) -> bool:
    """Whether a value of a type can be passed to the threads of a team."""
    if isinstance(type_, IntType):
        return type_.bits in (8, 16, 32, 64)
    return isinstance(type_, PointerType | FloatType)


def _allocate_panels(b: Builder, team: Value, size: int) -> tuple[Value, Value]:
    """Allocate memory for the panels that a large team packs; returns the allocation and its first aligned byte."""
    large = b.icmp("uge", team, MIN_COOPERATING_THREADS)
    bytes_ = b.select(large, const_int(I64, size + CACHE_LINE), const_int(I64, CACHE_LINE))
    memory = emit_allocation(b, bytes_, "panels.heap", frame_metadata())
    trap_if_null(b, [memory])
    return memory, b.align_up(memory, CACHE_LINE)
