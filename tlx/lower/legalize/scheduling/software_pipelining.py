"""Software pipelining of loads: operands of products in a loop are loaded some products before their first use.

A core that holds few instructions in flight, or retires them in order, waits at a product whose operand has just been
loaded, or whose sum is not complete. So products of the same sum are as far apart as possible, and loads are spread
evenly over the products, each at least `ahead` products before its operand is used; a load that would come before the
first product of the loop is emitted in the iteration before, and a phi carries its result. The last iteration is
peeled: nothing beyond the operands is loaded.

Rewrite, two products ahead:
    k.loop:                                         %x.1 = load a[0]
      %k = phi [ 0, %entry ], [ %k.next, ... ]      br label %k.loop
      %s = phi [ zero, %entry ], [ %s.2, ... ]    k.loop:
      %t = phi [ zero, %entry ], [ %t.2, ... ]      %k = phi ...;  %s = phi ...;  %t = phi ...
      %x = load a[%k]                               %x = phi [ %x.1, %entry ], [ %x.2, %k.loop ]
      %s.1 = fma(%x, %b, %s)                        %k.next = add i64 %k, 1
      %y = load b[%k]                               %y = load b[%k]
      %s.2 = fma(%y, %b, %s.1)               ->     %s.1 = fma(%x, %b, %s);  %t.1 = fma(%x, %c, %t)
      %t.1 = fma(%x, %c, %t)                        %x.2 = load a[%k.next]
      %t.2 = fma(%y, %c, %t.1)                      %s.2 = fma(%y, %b, %s.1);  %t.2 = fma(%y, %c, %t.1)
      %k.next = add i64 %k, 1                       br (%k.next < 127), %k.loop, %k.last
      br (%k.next < 128), %k.loop, %k.end         k.last:
                                                    %y.1 = load b[%k.next];  four products of %x.2 and %y.1
                                                    br label %k.end

LLVM's schedulers would move loads next to their uses again, to save registers, and products of the same sum next to
each other. They move nothing across labels, so there is one before and one after the loads of each place. Without them,
the main loop of 256x256x256 float reaches 85 % of what Power10's ports allow instead of 91 %, with spills (llvm-mca 19,
2026-11-30).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import add_incoming, definitions, remove_dead, rename_incoming, set_operand, uses
from tlx.ir.transform import renamed
from tlx.ir.types import LABEL, VectorType, scalar_of
from tlx.ir.values import ConstInt, Local, Value
from tlx.target.target import Target

_BROADCASTS: Final = frozenset({"insertelement", "shufflevector", "bitcast"})
"""What brings a loaded element to the lanes of a register."""
_ADDRESSES: Final = frozenset({"getelementptr", "add", "sub", "mul"})


@dataclass(frozen=True, eq=False)
class _CountedLoop:
    """A loop of one block that runs at least twice.

    Attributes:
        block: Its block.
        before: The block that it is entered from.
        exit: Name of the block after it.
        index: The phi that counts.
        first: Its first value.
        length: By how much it grows in all iterations.
        step: The sum of the index and a constant.
        bound: The comparison of that sum with the end.
        sums: The other phis, all of registers.
        products: The instructions that add to the sums, in order.
    """

    block: Block
    before: Block
    exit: str
    index: Instruction
    first: Value
    length: int
    step: Instruction
    bound: Instruction
    sums: list[Instruction]
    products: list[Instruction]


def pipeline_loads(module: Module, function: Function, blocks: Sequence[Block], target: Target) -> None:
    """Load operands of products ahead, as far as the registers allow, in those blocks of a kernel that are loops."""
    most = target.core.limits.k_loop.loads_ahead
    if not most:
        return
    defined = definitions(function)
    for block in dict.fromkeys(blocks):
        loop = _counted_loop(function, block, defined)
        if loop is None:
            continue
        _merge_bitcasts(function, block)
        operands, free = _operands(loop), _registers(loop, target) - len(loop.sums)
        positions = _spread(operands, len(loop.products), most, free)
        if places := _LoadPositions.of(operands, len(loop.products), positions):
            _pipeline(module, function, loop, places)


def _registers(loop: _CountedLoop, target: Target) -> int:
    """Registers for sums and operands: those that dot products can use, if the sums may be theirs."""
    element = str(scalar_of(loop.sums[0].type))
    temporaries = (dot.scratch_registers for dot in target.usable_dots if dot.accumulator == element)
    return target.registers - max(temporaries, default=0)


def _counted_loop(function: Function, block: Block, defined: Mapping[str, Instruction]) -> _CountedLoop | None:
    """The loop that a block forms; None if it forms none, or one in which loads cannot be moved."""
    end = block.terminator
    if len(end.successors) != 2 or end.successors[0] != block.name or not all(map(_keeps_memory, block.instructions)):
        return None
    index, *sums = block.phis
    first, before = next((value, name) for value, name in index.incoming if name != block.name)
    bound, step = _definition(end.operands[0], defined), _definition(_latch_value(index, block), defined)
    entered_from = function.block(before)
    if bound is None or step is None or bound.operands[0] != step.value or len(entered_from.terminator.successors) != 1:
        return None
    length, each = _length(first, bound.operands[1], defined), step.operands[1]
    if length is None or not isinstance(each, ConstInt) or length < 2 * each.value:
        return None
    if not sums or not all(isinstance(phi.type, VectorType) for phi in sums):
        return None
    products = _products(block, sums)
    return _CountedLoop(block, entered_from, end.successors[1], index, first, length, step, bound, sums, products)


def _keeps_memory(instruction: Instruction) -> bool:
    """Whether an instruction writes no memory. Of calls, only those to LLVM's arithmetic and prefetches count."""
    if instruction.opcode == "call":
        return (instruction.callee or "").startswith("llvm.") and "llvm.mem" not in instruction.text
    return instruction.opcode not in {"store", "fence", "atomicrmw", "cmpxchg"}


def _definition(value: Value, defined: Mapping[str, Instruction]) -> Instruction | None:
    return defined.get(value.name) if isinstance(value, Local) else None


def _latch_value(phi: Instruction, block: Block) -> Value:
    """What a phi of a loop takes from the iteration before."""
    return next(value for value, name in phi.incoming if name == block.name)


def _length(first: Value, end: Value, defined: Mapping[str, Instruction]) -> int | None:
    """`end - first`, if it is a constant."""
    if isinstance(first, ConstInt) and isinstance(end, ConstInt):
        return end.value - first.value
    total = _definition(end, defined)
    if total is None or total.opcode != "add" or total.operands[0] != first:
        return None
    return total.operands[1].value if isinstance(total.operands[1], ConstInt) else None


def _products(block: Block, sums: Sequence[Instruction]) -> list[Instruction]:
    """The instructions, but for shuffles, that depend on sums: the first one of each sum, then the second one, ..."""
    added = {str(phi.result): 0 for phi in sums}
    products: list[Instruction] = []
    for instruction in block.instructions:
        before = [added[o.name] for o in instruction.operands if isinstance(o, Local) and o.name in added]
        if instruction.opcode == "phi" or not before:
            continue
        is_product = instruction.opcode not in _BROADCASTS
        added[str(instruction.result)] = max(before) + is_product
        if is_product:
            products.append(instruction)
    return sorted(products, key=lambda product: added[str(product.result)])


def _merge_bitcasts(function: Function, block: Block) -> None:
    """Give a register one value for each type, instead of a bitcast for each use, as if each were another register."""
    sources: dict[str, Value] = {}
    values: dict[tuple[str, str], Value] = {}
    bitcasts = [instruction for instruction in block.instructions if instruction.opcode == "bitcast"]
    for bitcast in bitcasts:
        operand = bitcast.operands[0]
        source = sources.get(str(operand), operand)
        sources[str(bitcast.value)] = source
        values.setdefault((str(source), str(source.type)), source)
        values.setdefault((str(source), str(bitcast.type)), bitcast.value)
    for instruction in block.instructions:
        for index, operand in enumerate(instruction.operands):
            if (source := sources.get(str(operand))) is not None:
                set_operand(instruction, index, values[str(source), str(operand.type)])
    remove_dead(function, bitcasts)


@dataclass(eq=False)
class _LoadedRegister:
    """A register that is loaded in each iteration.

    Attributes:
        instruction: What loads it, or brings what was loaded to the register's lanes.
        first, last: Numbers of the products that use it first and last.
    """

    instruction: Instruction
    first: int
    last: int


def _operands(loop: _CountedLoop) -> list[_LoadedRegister]:
    """The registers that are loaded for products, in the order of their first uses."""
    defined = {i.result: i for i in loop.block.instructions}
    loaded: set[str] = set()
    for instruction in loop.block.instructions:
        inside = [o.name for o in instruction.operands if isinstance(o, Local) and o.name in defined]
        is_load = instruction.opcode == "load" and all(_is_address(defined[name], loop, defined) for name in inside)
        if is_load or (instruction.opcode in _BROADCASTS and inside and loaded.issuperset(inside)):
            loaded.add(str(instruction.result))
    operands: dict[str, _LoadedRegister] = {}
    emitted = {i.result for i in [*loop.block.phis, *loop.products]}
    for position, product in enumerate(loop.products):
        pending = [product]
        while pending:
            inside = [o.name for o in pending.pop().operands if isinstance(o, Local) and o.name in defined]
            for name in inside:
                if name in loaded:
                    operands.setdefault(name, _LoadedRegister(defined[name], position, position)).last = position
                elif name not in emitted:
                    pending.append(defined[name])
    return list(operands.values())


def _is_address(instruction: Instruction, loop: _CountedLoop, defined: Mapping[str | None, Instruction]) -> bool:
    """Whether a value depends on the index only."""
    if instruction is loop.index:
        return True
    inside = [defined[o.name] for o in instruction.operands if isinstance(o, Local) and o.name in defined]
    return instruction.opcode in _ADDRESSES and all(_is_address(i, loop, defined) for i in inside)


def _spread(operands: Sequence[_LoadedRegister], products: int, ahead: int, registers: int) -> Sequence[int]:
    """Positions of the products that the loads of operands come before; negative ones are in the iteration before.

    They are evenly apart, and each is `ahead` products before the first use, or more. If no register is free then, the
    load comes as soon as one is, which is after the last use of an earlier operand. No load comes before its operand's
    last use in the iteration before: that would take a copy of a register.

    Returns:
        A position for each operand; none if there are too few registers.
    """
    gap = products / max(1, len(operands))
    start = min((operand.first - i * gap for i, operand in enumerate(operands)), default=0) - ahead
    ends = sorted(operand.last for operand in operands)
    positions: list[int] = []
    for i, operand in enumerate(operands):
        iteration, index = divmod(i - registers, len(operands))
        free_after = max(operand.last - products, ends[index] + iteration * products)
        positions.append(max(floor(start + i * gap), free_after + 1))
    return positions if all(n <= operand.first for n, operand in zip(positions, operands, strict=True)) else ()


@dataclass(frozen=True)
class _LoadPositions:
    """Which operands are loaded before each product, by its position in the loop.

    Attributes:
        this_iteration: Operands of the same iteration.
        next_iteration: Operands of the next one.
    """

    this_iteration: Mapping[int, list[Instruction]]
    next_iteration: Mapping[int, list[Instruction]]

    @staticmethod
    def of(operands: Sequence[_LoadedRegister], products: int, places: Sequence[int]) -> _LoadPositions | None:
        """Operands by the positions of their loads; None if no operand is carried."""
        this_iteration: dict[int, list[Instruction]] = defaultdict(list)
        next_iteration: dict[int, list[Instruction]] = defaultdict(list)
        for operand, place in zip(operands, places, strict=False):
            (this_iteration if place >= 0 else next_iteration)[place % products].append(operand.instruction)
        return _LoadPositions(this_iteration, next_iteration) if next_iteration else None

    @property
    def carried(self) -> list[Instruction]:
        """The operands that are loaded an iteration before."""
        return [load for position in sorted(self.next_iteration) for load in self.next_iteration[position]]


@dataclass(eq=False)
class _Iteration:
    """Emits instructions of an iteration, each after those that it depends on.

    Attributes:
        module, function: The module and its function.
        defined: The instructions of the loop, by result.
        values: What stands for results of the loop.
        copies: Whether instructions are copied, with fresh names.
        instructions: What has been emitted.
    """

    module: Module
    function: Function
    defined: Mapping[str, Instruction]
    values: dict[str, Value]
    copies: bool = True
    instructions: list[Instruction] = field(default_factory=list[Instruction])

    def emit(self, instruction: Instruction) -> None:
        """Emit an instruction, unless a value stands for its result."""
        if instruction.result in self.values:
            return
        for operand in instruction.operands:
            if isinstance(operand, Local) and operand.name in self.defined:
                self.emit(self.defined[operand.name])
        if instruction.result is not None:
            name = self.function.names.fresh(instruction.result) if self.copies else instruction.result
            self.values[instruction.result] = Local(instruction.type, name)
        if self.copies:
            used = {o.name for o in instruction.operands if isinstance(o, Local)} | {instruction.result}
            names = {name: self.values[name] for name in used if name in self.values}
            instruction = renamed(instruction, names, {name: str(value) for name, value in names.items()})
        self.instructions.append(instruction)

    def emit_barrier(self) -> None:
        """Keep LLVM from moving instructions across this place."""
        Builder(self.module, self.function, Block("", instructions=self.instructions)).scheduling_barrier()


def _pipeline(module: Module, function: Function, loop: _CountedLoop, places: _LoadPositions) -> None:
    """Emit loads ahead, and peel the last iteration."""
    block, carried = loop.block, places.carried
    defined = {i.result: i for i in block.instructions if i.result is not None}
    used_outside = {name for name, found in uses(function).items() if any(use.block is not block for use in found)}
    results = [i for i in block.instructions if i.result in used_outside]
    ends = {str(phi.result): _latch_value(phi, block) for phi in block.phis}

    entering = _Iteration(module, function, defined, {str(loop.index.result): loop.first})
    next_iteration = _Iteration(module, function, defined, {str(loop.index.result): loop.step.value})
    own = [*block.phis, loop.step, *carried]
    this_iteration = _Iteration(module, function, defined, {str(i.result): i.value for i in own}, copies=False)
    phis = block.phis
    for instruction in carried:
        entering.emit(instruction)
        text = f"%{instruction.result} = phi {instruction.type} "
        phis.append(phi := Instruction("phi", instruction.type, [], text, instruction.result))
        add_incoming(phi, entering.values[str(instruction.result)], loop.before.name)
    next_iteration.instructions = this_iteration.instructions
    _emit_products(loop, this_iteration, places.this_iteration, next_iteration, places.next_iteration)
    for value in ends.values():
        if isinstance(value, Local) and value.name in defined:
            this_iteration.emit(defined[value.name])
    this_iteration.emit(block.terminator)
    for phi, instruction in zip(phis[-len(carried) :], carried, strict=True):
        add_incoming(phi, next_iteration.values[str(instruction.result)], block.name)

    last = Block(function.names.fresh(f"{block.name.removesuffix('.loop')}.last"))
    last.label = f"\n\n{last.name}:"
    each = loop.step.operands[1]
    assert isinstance(each, ConstInt)
    b = Builder(module, function, loop.before, len(loop.before.instructions) - 1)
    end = b.add(loop.first, (loop.length - 1) // each.value * each.value)  # without the loop's index, which may be dead
    ends[str(loop.index.result)] = end
    values = {**ends, **{str(i.result): next_iteration.values[str(i.result)] for i in carried}}
    peeled = _Iteration(module, function, defined, values)
    _emit_products(loop, peeled, places.this_iteration)
    for instruction in results:
        peeled.emit(instruction)
    leave = Instruction("br", block.terminator.type, [Local(LABEL, loop.exit)], f"br label %{loop.exit}")
    last.instructions = [*peeled.instructions, leave]
    for name in {str(i.result) for i in results}:
        for use in uses(function)[name]:
            if use.block is not block:
                set_operand(use.instruction, use.index, peeled.values[name])
    rename_incoming(function, [loop.exit], block.name, last.name)

    loop.before.instructions[-1:-1] = entering.instructions
    set_operand(loop.bound, 1, end)
    set_operand(block.terminator, 2, last.value)
    block.instructions = [*phis, loop.step, *this_iteration.instructions]
    function.blocks.insert(function.blocks.index(block) + 1, last)


def _emit_products(
    loop: _CountedLoop,
    this_iteration: _Iteration,
    loads: Mapping[int, Sequence[Instruction]],
    next_iteration: _Iteration | None = None,
    loads_of_following: Mapping[int, Sequence[Instruction]] | None = None,
) -> None:
    """Emit an iteration's products and calls without results, and loads of operands of it and the following one."""
    for instruction in loop.block.instructions:
        if instruction.is_call and instruction.result is None:
            this_iteration.emit(instruction)
    for position, product in enumerate(loop.products):
        own, others = (places.get(position, ()) for places in (loads, loads_of_following or {}))
        if own or others:
            this_iteration.emit_barrier()
        for load in own:
            this_iteration.emit(load)
        for load in others:
            assert next_iteration is not None
            next_iteration.emit(load)
        if own or others:
            this_iteration.emit_barrier()
        this_iteration.emit(product)
