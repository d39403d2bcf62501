"""Register allocation of AMX tiles: tile values become numbered registers, and each function a constant configuration.

LLVM could allocate them, but it writes the tile configuration to the stack byte by byte, which stalls LDTILECFG, and at
-O0 it accepts no tiles in phis (LLVM 14) or runs out of registers.

Rewrite:
    %z = call x86_amx @llvm.x86.tilezero.internal(i16 16, i16 64)        call void @llvm.x86.tilezero(i8 0)
    %a = call x86_amx @llvm.x86.tileloadd64.internal(i16 16, ...)   ->   call void @llvm.x86.tileloadd64(i8 1, ...)
    %c = phi x86_amx [ %z, %entry ], [ %p, %k ]
    %p = call x86_amx @llvm.x86.tdpbssd.internal(..., %c, %a, %b)        call void @llvm.x86.tdpbssd(i8 0, i8 1, i8 2)

A product and its accumulator, and a phi and its incoming values, share a register: they are a web. Webs whose live
ranges overlap interfere, and get different registers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tlx.ir.builder.instructions import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module, Raw
from tlx.ir.types import I8, VOID, X86_AMX, ArrayType
from tlx.ir.values import ConstInt, Global, Local, Text, Value, const_int
from tlx.lower.memory.allocation import ALLOCATORS

TILES: Final = 8
_CONFIGURATION_BYTES: Final = 64
_STEM: Final = "llvm.x86."
_INTERNAL: Final = ".internal"
_NO_ASSEMBLY: Final = 'asm "",'
_TILE_STEMS: Final = tuple(f"{_STEM}{stem}" for stem in ("ldtilecfg", "sttilecfg", "tile", "tdp", "tcmm"))
_NAME: Final = "tlx.amx.tiles"
_OWN_SHAPE: Final = 2  # operands: rows, and bytes of a row
_ACC: Final = 3  # operand of a product, after rows, bytes of a row of B and of A

Shape = tuple[int, int]


def number_tiles(module: Module) -> None:
    """Assign registers to the tiles of all functions where eight are enough.

    Other functions are unchanged: those with calls that may reconfigure the unit, with uses of tiles that registers
    cannot express, or that may be inlined into a function whose tiles LLVM allocates.
    """
    configurations: dict[bytes, Global] = {}
    for function in module.functions:
        tiles = [i for i in function.instructions() if X86_AMX in (i.type, *(operand.type for operand in i.operands))]
        known = all(i.opcode == "phi" or _is_tile_call(i.callee) for i in tiles)
        is_inlined = "noinline" not in module.attribute_text(function.signature).split()
        if tiles and known and not is_inlined and not _calls_others(function):
            webs = _Webs(function)
            numbers = webs.numbers()
            if numbers is not None:
                _rewrite(module, function, webs, numbers, configurations)
    used = {i.callee for function in module.functions for i in function.instructions()}
    module.remove(*(d for name, d in module.declarations.items() if _is_tile_call(name) and name not in used))


def _is_tile_call(name: str | None) -> bool:
    return name is not None and name.startswith(_STEM) and name.endswith(_INTERNAL)


def _calls_others(function: Function) -> bool:
    """Whether a function has calls that may use tiles: of other functions, indirect, or assembly."""
    called = [i.operands[0] for i in function.instructions() if i.is_call]
    return not all(_is_harmless(callee) for callee in called)


def _is_harmless(callee: Value) -> bool:
    """Whether a callee uses no tiles: what allocates memory, intrinsics, empty assembly."""
    if not isinstance(callee, Global):
        return isinstance(callee, Text) and callee.spelling.startswith(_NO_ASSEMBLY)
    name = callee.name
    own = name.startswith(_TILE_STEMS) and not name.endswith(_INTERNAL)
    return name in ALLOCATORS or (name.startswith("llvm.") and not own)


@dataclass(eq=False)
class _Webs:
    """Webs: tile values of a function that share a register, named after one of them (union-find).

    Attributes:
        function: The function.
        makers: What defines each tile, by name, in program order.
        parents: A tile of the same web, or the tile itself, by name.
        interference: The webs that interfere with a web.
        shapes: Rows and bytes of a row of each web.
    """

    function: Function
    makers: dict[str, Instruction] = field(default_factory=dict[str, Instruction])
    parents: dict[str, str] = field(default_factory=dict[str, str])
    interference: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    shapes: dict[str, Shape] = field(default_factory=dict[str, Shape])

    def __post_init__(self) -> None:
        found = (i for i in self.function.instructions() if i.type == X86_AMX)
        self.makers = {i.value.name: i for i in found}
        self.parents = {name: name for name in self.makers}
        for name, maker in self.makers.items():
            joined = [v for v, _ in maker.incoming] if maker.opcode == "phi" else maker.args[_ACC : _ACC + 1]
            for value in joined:
                if isinstance(value, Local) and value.name in self.parents:
                    self.parents[self.of(value.name)] = self.of(name)
        self.interference = {self.of(name): set() for name in self.makers}

    def of(self, name: str) -> str:
        """The web of a tile."""
        while self.parents[name] != name:
            name = self.parents[name]
        return name

    def numbers(self) -> dict[str, int] | None:
        """A register for each web; None if there are too few, or two tiles of a web are live at once."""
        if not self._build_interference() or not self._find_shapes():
            return None
        given: dict[str, int] = {}
        held: dict[int, Shape] = {}
        for name in self.makers:
            web = self.of(name)
            if web in given:
                continue
            taken = {given[other] for other in self.interference[web] if other in given}
            fitting = (n for n in range(TILES) if n not in taken and held.get(n, self.shapes[web]) == self.shapes[web])
            number = next(fitting, None)
            if number is None:
                return None
            given[web] = number
            held[number] = self.shapes[web]
        calls = (i for i in self.function.instructions() if _is_tile_call(i.callee))
        return given if all(self._are_distinct(call, given) for call in calls) else None

    def _are_distinct(self, call: Instruction, given: dict[str, int]) -> bool:
        """Whether the tiles of a product are in three different registers, as the instruction requires."""
        tiles = [tile for tile in call.args if tile.type == X86_AMX]
        return len({given[self.of(tile.name)] for tile in tiles if isinstance(tile, Local)}) == len(tiles)

    def _find_shapes(self) -> bool:
        """Note the shape of each web; False if one has two, or none."""
        for name, maker in self.makers.items():
            if maker.opcode == "phi":
                continue
            sizes = [a.value for a in maker.args[:_OWN_SHAPE] if isinstance(a, ConstInt)]
            if len(sizes) != _OWN_SHAPE or self.shapes.setdefault(self.of(name), (sizes[0], sizes[1])) != tuple(sizes):
                return False
        return all(web in self.shapes for web in self.interference)

    def _build_interference(self) -> bool:
        """Build the interference graph; False if two tiles of a web are live at once."""
        alive = self._alive_at_ends()
        return all(self._add_interference_in(block, set(alive[block.name])) for block in self.function.blocks)

    def _add_interference_in(self, block: Block, alive: set[str]) -> bool:
        for instruction in reversed(block.instructions):
            if instruction.opcode == "phi":
                break
            if instruction.type == X86_AMX and not self._define(instruction.value.name, alive):
                return False
            alive |= self._used(instruction)
        phis = [i.value.name for i in block.phis if i.type == X86_AMX]
        alive |= set(phis)
        return all(self._define(name, alive - {name}) for name in phis)

    def _define(self, name: str, alive: set[str]) -> bool:
        """Note the definition of a tile while others are live; False if one is of the same web."""
        alive.discard(name)
        web = self.of(name)
        for other in map(self.of, alive):
            if other == web:
                return False
            self.interference[web].add(other)
            self.interference[other].add(web)
        return True

    def _used(self, instruction: Instruction) -> set[str]:
        return {v.name for v in instruction.operands if isinstance(v, Local) and v.name in self.makers}

    def _alive_at_ends(self) -> dict[str, set[str]]:
        """Live-out tiles of each block, including those that phis take from it."""
        blocks = {block.name: block for block in self.function.blocks}
        ends: dict[str, set[str]] = {name: set() for name in blocks}
        changed = True
        while changed:
            changed = False
            for name, block in reversed(blocks.items()):
                found: set[str] = set()
                for target in block.terminator.targets:
                    found |= self._alive_before(blocks[target], ends[target], name)
                changed = changed or found != ends[name]
                ends[name] = found
        return ends

    def _alive_before(self, block: Block, end: set[str], source: str) -> set[str]:
        """Live-in tiles of a block on the edge from `source`."""
        alive = set(end)
        for instruction in reversed(block.instructions):
            if instruction.opcode == "phi":
                alive.discard(instruction.result or "")
                continue
            alive.discard(instruction.result or "")
            alive |= self._used(instruction)
        taken = {v.name for phi in block.phis for v, name in phi.incoming if name == source and isinstance(v, Local)}
        return alive | taken & self.makers.keys()


def _rewrite(
    module: Module, function: Function, webs: _Webs, numbers: dict[str, int], configurations: dict[bytes, Global]
) -> None:
    """Replace the tile values of a function, configure the unit before their first use, and release it at the end."""
    b = Builder(module, function)
    shapes = {number: webs.shapes[web] for web, number in numbers.items()}
    configuration = _configuration(module, shapes, configurations)
    for block in function.blocks:
        instructions, block.instructions = block.instructions, []
        b.at_end(block)
        begins = block is function.entry
        for instruction in instructions:
            if begins and (instruction.is_terminator or _is_tile_call(instruction.callee)):
                b.call_named(f"{_STEM}ldtilecfg", VOID, [b.retype(configuration, I8)])
                begins = False
            if instruction.opcode == "ret":
                b.call_named(f"{_STEM}tilerelease", VOID, [])
            if _is_tile_call(instruction.callee):
                _numbered(b, instruction, webs, numbers)
            elif instruction.type != X86_AMX:
                block.instructions.append(instruction)
                b.index = len(block.instructions)


def _numbered(b: Builder, instruction: Instruction, webs: _Webs, numbers: dict[str, int]) -> None:
    """Replace an instruction on tile values by its form on numbered registers."""

    def register(value: Value) -> Value:
        return const_int(I8, numbers[webs.of(value.name)]) if isinstance(value, Local) else value

    name = str(instruction.callee).removesuffix(_INTERNAL)
    tiles = [a for a in instruction.args if a.type == X86_AMX]
    others = [a for a in instruction.args[_OWN_SHAPE:] if a.type != X86_AMX]
    if len(tiles) == 1:
        b.call_named(name, VOID, [register(tiles[0]), *others])
        return
    made = register(instruction.value)
    b.call_named(name, VOID, [made, *map(register, tiles[1:])] if tiles else [made, *others])


def _configuration(module: Module, shapes: dict[int, Shape], known: dict[bytes, Global]) -> Global:
    """The constant that LDTILECFG reads: palette 1, bytes of a row of each tile from byte 16 on, rows from 48 on."""
    data = bytearray(_CONFIGURATION_BYTES)
    data[0] = 1
    for number, (rows, row_bytes) in shapes.items():
        data[16 + 2 * number] = row_bytes
        data[48 + number] = rows
    key = bytes(data)
    if key not in known:
        name = module.global_names.fresh(_NAME)
        text = "".join(f"\\{byte:02X}" for byte in key)
        type_ = ArrayType(_CONFIGURATION_BYTES, I8)
        module.append(Raw(f'\n\n@{name} = private unnamed_addr constant {type_} c"{text}", align 64'))
        known[key] = Global(module.pointer_to(type_), name)
    return known[key]
