"""Register allocation of AMX tiles, and the tile configuration of each function.

Tiles are values (`x86_amx`) until a function is complete. Then each gets a tile register, and the function a constant
configuration. LLVM could allocate them, but it writes the tile configuration to the stack byte by byte, which stalls
LDTILECFG, and at -O0 it accepts no tiles in phis (LLVM 14) or runs out of registers.

Rewrite:
    %z = call x86_amx @llvm.x86.tilezero.internal(i16 16, i16 64)        call void @llvm.x86.tilezero(i8 0)
    %a = call x86_amx @llvm.x86.tileloadd64.internal(i16 16, ...)   ->   call void @llvm.x86.tileloadd64(i8 1, ...)
    %c = phi x86_amx [ %z, %entry ], [ %p, %k ]
    %p = call x86_amx @llvm.x86.tdpbssd.internal(..., %c, %a, %b)        call void @llvm.x86.tdpbssd(i8 0, i8 1, i8 2)

A product and its accumulator, and a phi and its incoming values, share a register: they are a web. Webs whose live
ranges overlap interfere, and get different registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module, UnparsedText
from tlx.ir.types import I8, VOID, X86_AMX, ArrayType
from tlx.ir.values import ConstInt, Global, Local, OpaqueConstant, Value, const_int

if TYPE_CHECKING:
    from tlx.ir.builder import Builder

TILES: Final = 8
_CONFIGURATION_BYTES: Final = 64
_STEM: Final = "llvm.x86."
_INTERNAL: Final = ".internal"
_NO_ASSEMBLY: Final = ('asm "",', 'asm sideeffect "",')
"""How empty assembly begins, which only LLVM's optimisations have to respect."""
_TILE_STEMS: Final = tuple(f"{_STEM}{stem}" for stem in ("ldtilecfg", "sttilecfg", "tile", "tdp", "tcmm"))
_NAME: Final = "tlx.amx.tiles"
_SHAPE_OPERANDS: Final = 2  # rows, and bytes of a row
_ACC: Final = 3  # the accumulator of a product, after rows, bytes of a row of B and of A

Shape = tuple[int, int]


def number_tiles(module: Module) -> None:
    """Assign registers to the tiles of all functions where eight are enough.

    Other functions are unchanged: those with calls that may reconfigure the unit, with uses of tiles that registers
    cannot express, or that may be inlined into a function whose tiles LLVM allocates.
    """
    if not any(_is_tile_call(name) for name in module.declarations):
        return
    configurations: dict[bytes, Global] = {}
    for function in module.functions:
        webs = _Webs(function)
        tiles = [i for code in webs.code.values() for i in code]
        is_expressible = all(i.opcode == "phi" or _is_tile_call(i.callee) for i in tiles)
        is_inlined = "noinline" not in module.attribute_text(function.signature).split()
        if tiles and is_expressible and not is_inlined and not _calls_others(function):
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
    """Whether a callee uses no tiles: allocators, intrinsics, empty assembly."""
    from tlx.lower.memory.allocation import ALLOCATORS

    if not isinstance(callee, Global):
        return isinstance(callee, OpaqueConstant) and callee.spelling.startswith(_NO_ASSEMBLY)
    name = callee.name
    uses_tiles = name.startswith(_TILE_STEMS) and not name.endswith(_INTERNAL)
    return name in ALLOCATORS or (name.startswith("llvm.") and not uses_tiles)


@dataclass(eq=False)
class _Webs:
    """Webs: tile values of a function that share a register, named after one of them (union-find).

    Attributes:
        function: The function.
        definitions: The definition of each tile, by name, in program order.
        code: The instructions of each block that define or use tiles.
        parents: A tile of the same web, or the tile itself, by name.
        interference: The webs that interfere with a web.
        shapes: Rows and bytes of a row of each web.
    """

    function: Function
    definitions: dict[str, Instruction] = field(default_factory=dict[str, Instruction])
    code: dict[str, list[Instruction]] = field(default_factory=dict[str, list[Instruction]])
    parents: dict[str, str] = field(default_factory=dict[str, str])
    interference: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    shapes: dict[str, Shape] = field(default_factory=dict[str, Shape])

    def __post_init__(self) -> None:
        definitions = (i for i in self.function.instructions() if i.type == X86_AMX)
        self.definitions = {i.value.name: i for i in definitions}
        if not self.definitions:
            return
        self.code = {
            block.name: [i for i in block.instructions if self._defines_or_uses(i)] for block in self.function.blocks
        }
        self.parents = {name: name for name in self.definitions}
        for name, definition in self.definitions.items():
            is_phi = definition.opcode == "phi"
            joined = [v for v, _ in definition.incoming] if is_phi else definition.args[_ACC : _ACC + 1]
            for value in joined:
                if isinstance(value, Local) and value.name in self.parents:
                    self.parents[self.of(value.name)] = self.of(name)
        self.interference = {self.of(name): set() for name in self.definitions}

    def of(self, name: str) -> str:
        """The web of a tile."""
        while self.parents[name] != name:
            name = self.parents[name]
        return name

    def numbers(self) -> dict[str, int] | None:
        """A register for each web; None if there are too few, or two tiles of a web are live at once."""
        if not self._build_interference() or not self._find_shapes():
            return None
        registers: dict[str, int] = {}
        shapes: dict[int, Shape] = {}
        for name in self.definitions:
            web = self.of(name)
            if web in registers:
                continue
            shape = self.shapes[web]
            occupied = {registers[other] for other in self.interference[web] if other in registers}
            fitting = (n for n in range(TILES) if n not in occupied and shapes.get(n, shape) == shape)
            number = next(fitting, None)
            if number is None:
                return None
            registers[web] = number
            shapes[number] = shape
        calls = (i for code in self.code.values() for i in code if i.is_call)
        return registers if all(self._are_distinct(call, registers) for call in calls) else None

    def _are_distinct(self, call: Instruction, registers: dict[str, int]) -> bool:
        """Whether the tiles of a product are in three different registers, as the instruction requires."""
        tiles = [tile for tile in call.args if tile.type == X86_AMX]
        return len({registers[self.of(tile.name)] for tile in tiles if isinstance(tile, Local)}) == len(tiles)

    def _find_shapes(self) -> bool:
        """Note the shape of each web; False if one has two, or none."""
        for name, definition in self.definitions.items():
            if definition.opcode == "phi":
                continue
            rows, row_bytes = definition.args[:_SHAPE_OPERANDS]
            if not isinstance(rows, ConstInt) or not isinstance(row_bytes, ConstInt):
                return False
            shape = rows.value, row_bytes.value
            if self.shapes.setdefault(self.of(name), shape) != shape:
                return False
        return all(web in self.shapes for web in self.interference)

    def _build_interference(self) -> bool:
        """Build the interference graph; False if two tiles of a web are live at once."""
        live_out = self._live_out()
        return all(self._add_interference_in(code, set(live_out[name])) for name, code in self.code.items())

    def _add_interference_in(self, code: Sequence[Instruction], live: set[str]) -> bool:
        for instruction in reversed(code):
            if instruction.opcode == "phi":
                break
            if instruction.type == X86_AMX and not self._define(instruction.value.name, live):
                return False
            live |= self._used(instruction)
        phis = [i.value.name for i in code if i.opcode == "phi"]
        live |= set(phis)
        return all(self._define(name, live - {name}) for name in phis)

    def _define(self, name: str, live: set[str]) -> bool:
        """Note the definition of a tile while others are live; False if one is of the same web."""
        live.discard(name)
        web = self.of(name)
        for other in map(self.of, live):
            if other == web:
                return False
            self.interference[web].add(other)
            self.interference[other].add(web)
        return True

    def _defines_or_uses(self, instruction: Instruction) -> bool:
        """Whether an instruction defines or uses tiles; most do neither."""
        tiles = self.definitions
        return instruction.result in tiles or any(
            isinstance(v, Local) and v.name in tiles for v in instruction.operands
        )

    def _used(self, instruction: Instruction) -> set[str]:
        return {v.name for v in instruction.operands if isinstance(v, Local) and v.name in self.definitions}

    def _live_out(self) -> dict[str, set[str]]:
        """Live-out tiles of each block, including those that phis take from it."""
        defined = {name: {i.value.name for i in code if i.type == X86_AMX} for name, code in self.code.items()}
        exposed = {name: self._exposed(code) for name, code in self.code.items()}
        incoming = {(name, source): tiles for name in self.code for source, tiles in self._incoming(name).items()}
        live_out: dict[str, set[str]] = {name: set() for name in self.code}
        changed = True
        while changed:
            changed = False
            for block in reversed(self.function.blocks):
                live: set[str] = set()
                for successor in block.terminator.successors:
                    live |= exposed[successor] | (live_out[successor] - defined[successor])
                    live |= incoming.get((successor, block.name), set())
                changed = changed or live != live_out[block.name]
                live_out[block.name] = live
        return live_out

    def _exposed(self, code: Sequence[Instruction]) -> set[str]:
        """The tiles that a block uses before it defines them."""
        exposed: set[str] = set()
        for instruction in reversed(code):
            exposed.discard(instruction.result or "")
            if instruction.opcode != "phi":
                exposed |= self._used(instruction)
        return exposed

    def _incoming(self, name: str) -> dict[str, set[str]]:
        """The tiles that the phis of a block take from each of its predecessors."""
        incoming: dict[str, set[str]] = {}
        for phi in self.code[name]:
            for value, source in phi.incoming if phi.opcode == "phi" else ():
                if isinstance(value, Local) and value.name in self.definitions:
                    incoming.setdefault(source, set()).add(value.name)
        return incoming


def _rewrite(
    module: Module, function: Function, webs: _Webs, numbers: dict[str, int], configurations: dict[bytes, Global]
) -> None:
    """Replace the tile values of a function, configure the unit before their first use, and release it at the end."""
    from tlx.ir.builder import Builder

    b = Builder(module, function)
    shapes = {number: webs.shapes[web] for web, number in numbers.items()}
    configuration = _configuration(module, shapes, configurations)
    for block in function.blocks:
        instructions, block.instructions = block.instructions, []
        b.at_end(block)
        is_unconfigured = block is function.entry
        for instruction in instructions:
            is_tile_call = _is_tile_call(instruction.callee)
            if is_unconfigured and (is_tile_call or instruction.is_terminator):
                b.call_named(f"{_STEM}ldtilecfg", VOID, [b.retype(configuration, I8)])
                is_unconfigured = False
            if instruction.opcode == "ret":
                b.call_named(f"{_STEM}tilerelease", VOID, [])
            if is_tile_call:
                _emit_numbered(b, instruction, webs, numbers)
            elif instruction.type != X86_AMX:
                block.instructions.append(instruction)
                b.index = len(block.instructions)


def _emit_numbered(b: Builder, instruction: Instruction, webs: _Webs, numbers: dict[str, int]) -> None:
    """Replace an instruction on tile values by its form on numbered registers."""

    def register(value: Value) -> Value:
        return const_int(I8, numbers[webs.of(value.name)]) if isinstance(value, Local) else value

    name = str(instruction.callee).removesuffix(_INTERNAL)
    tiles = [a for a in instruction.args if a.type == X86_AMX]
    others = [a for a in instruction.args[_SHAPE_OPERANDS:] if a.type != X86_AMX]
    if len(tiles) == 1:
        b.call_named(name, VOID, [register(tiles[0]), *others])
        return
    result = register(instruction.value)
    b.call_named(name, VOID, [result, *(map(register, tiles[1:]) if tiles else others)])


def _configuration(module: Module, shapes: dict[int, Shape], configurations: dict[bytes, Global]) -> Global:
    """The constant that LDTILECFG reads: palette 1, bytes of a row of each tile from byte 16 on, rows from 48 on."""
    data = bytearray(_CONFIGURATION_BYTES)
    data[0] = 1
    for number, (rows, row_bytes) in shapes.items():
        data[16 + 2 * number] = row_bytes
        data[48 + number] = rows
    key = bytes(data)
    if key not in configurations:
        name = module.global_names.fresh(_NAME)
        text = "".join(f"\\{byte:02X}" for byte in key)
        type_ = ArrayType(_CONFIGURATION_BYTES, I8)
        module.append(UnparsedText(f'\n\n@{name} = private unnamed_addr constant {type_} c"{text}", align 64'))
        configurations[key] = Global(module.pointer_to(type_), name)
    return configurations[key]
