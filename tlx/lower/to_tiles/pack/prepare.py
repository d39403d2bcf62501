"""Arguments that are the same in every call: B is packed once, by a function that the program calls first.

The attribute `"tlx-constant"` on a pointer argument promises that the memory does not change between the preparation
and the last call. After this stage, the function takes a prepared block in place of the array:

    define void @f(ptr "tlx-constant" %w) {        define void @f(ptr "tlx-prepared" %w) {
      multiply(c, a, %w)                             multiply(c, a, %w + 64)
      add(y, x, %w)                          ->      %w.raw = load ptr, ptr %w
    }                                                add(y, x, %w.raw)
                                                   }
                                                   @f.prepare.bytes = constant [1 x i64] [i64 8256], align 8
                                                   define void @f.prepare(ptr %w.prepared, ptr %w) {
                                                     store ptr %w, ptr %w.prepared
                                                     pack(%w.prepared + 64, %w)
                                                   }

    block of %w:   | address of the array | panels for one product | panels for another | block of %v of @g | ...
                   0                      64

A product reads panels if B lies at a constant distance from the argument. For a target with several versions, the block
has room for the panels of each, and the preparation packs those of the machine's version.

A function that others of the module call is prepared by the preparation of its callers, in blocks within theirs:

    define void @g(ptr "tlx-constant" %v)          define void @g.prepare(ptr %v.prepared, ptr %v)
    define void @f(ptr "tlx-constant" %w) {  ->    define void @f.prepare(ptr %w.prepared, ptr %w) {
      call void @g(ptr %w)                           call void @g.prepare(ptr %w.prepared + 8256, ptr %w)

An argument of an internal function is constant, too, if that holds for what each call passes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from tlx.diagnostics import LoweringError, Note
from tlx.ir.abi import parse_attributes
from tlx.ir.builder import Builder, new_function
from tlx.ir.control_flow import ControlFlow
from tlx.ir.functions import DuplicateFunction, Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Declaration, Module, UnparsedText
from tlx.ir.prepared import CONSTANT, PREPARED, block_sizes_name, preparation_name
from tlx.ir.rewrite import definitions, set_operand, uses
from tlx.ir.types import I8, I64, ArrayType, PointerType, Type
from tlx.ir.values import Global, Local, Value
from tlx.lower.context import is_kernel
from tlx.lower.memory.aliases import AliasAnalysis, gep_offset
from tlx.lower.memory.allocation import CACHE_LINE
from tlx.lower.memory.buffers import allow_heap
from tlx.lower.to_tiles.emit.kernel import call_function

_LOCAL: Final = frozenset({"internal", "private"})
_LINKAGE: Final = frozenset(
    "private internal available_externally linkonce weak linkonce_odr weak_odr dso_local dso_preemptable "
    "default hidden protected dllexport".split()
)
_BY_VALUE: Final = frozenset("byval byref sret inalloca preallocated swifterror swiftself nest writeonly".split())
_SAME_OBJECT: Final = ("getelementptr", "bitcast")
_WRITERS: Final = ("llvm.tensor.store", "llvm.memcpy", "llvm.memmove", "llvm.memset")
_COMMENT: Final = re.compile(r'"[^"]*"|;[^\n]*')
_KEPT_ALIVE: Final = re.compile(r"(?m)^@llvm\.(?:compiler\.)?used = [^\n]*")
_DEREFERENCEABLE: Final = re.compile(r"\bdereferenceable(?:_or_null)?\(\d+\)\s*")


@dataclass(frozen=True, slots=True)
class ConstantPlace:
    """A place at a constant distance from an argument that is constant over calls, or from its prepared block.

    Attributes:
        argument: Number of the argument.
        offset: Distance in bytes.
        is_prepared: Whether it is in the block.
    """

    argument: int
    offset: int
    is_prepared: bool = False


@dataclass(frozen=True, slots=True)
class CopyLoop:
    """A loop around a copy.

    Attributes:
        trips: Its trip count.
        source, destination: Bytes by which an iteration advances what the copy reads, and what it writes.
    """

    trips: int
    source: int
    destination: int


@dataclass(frozen=True, slots=True)
class _PackingCall:
    """A call of a packing kernel, or of one that copies: from a place to an offset in the prepared block, in loops."""

    place: ConstantPlace
    at: int
    kernel: Function
    loops: tuple[CopyLoop, ...] = ()


@dataclass(frozen=True, slots=True)
class _PrepareCall:
    """A call of the preparation of a callee: for each of its constant arguments, the place and the block's offset."""

    function: PreparedArguments
    blocks: tuple[tuple[ConstantPlace, int], ...]


@dataclass(eq=False)
class PreparedArguments:
    """The arguments of a function that are constant over calls, and their prepared blocks.

    Attributes:
        module, function: The function.
        sizes: Bytes of the block of each constant argument, by the argument's number.
        is_declared: Whether the attribute says that they are constant; else their callers do.
    """

    module: Module
    function: Function
    sizes: dict[int, int]
    is_declared: bool
    _places: dict[tuple[object, ...], int] = field(default_factory=dict[tuple[object, ...], int])
    _steps: list[_PackingCall | _PrepareCall] = field(default_factory=list["_PackingCall | _PrepareCall"])
    _calls: list[tuple[Instruction, _PrepareCall]] = field(default_factory=list[tuple[Instruction, "_PrepareCall"]])

    def __post_init__(self) -> None:
        self.read_definitions()

    def read_definitions(self) -> None:
        """Note the function's instructions, in which `place` finds the definitions of pointers."""
        self._definitions = definitions(self.function)

    @classmethod
    def of(
        cls, module: Module, function: Function, constant: Collection[int], *, is_declared: bool
    ) -> PreparedArguments:
        """The constant arguments of a function, whose blocks hold only the address of the array so far."""
        return cls(module, function, dict.fromkeys(sorted(constant), CACHE_LINE), is_declared)

    @cached_property
    def _blocks(self) -> dict[int, Local]:
        """Stand-ins for the arguments as prepared blocks, until all other uses read the address of the array."""
        arguments = self.function.arguments
        return {
            number: Local(arguments[number].type, self.function.names.fresh(f"{arguments[number].name}.block"))
            for number in self.sizes
        }

    def place(self, pointer: Value) -> ConstantPlace | None:
        """The place that a pointer refers to; None for pointers elsewhere or at an unknown distance."""
        found = _place(self.function, self._definitions, self.sizes, pointer)
        if found is not None or not self._steps:
            return found
        base, offset = _base(self._definitions, pointer)
        number = next((number for number, block in self._blocks.items() if block == base), None)
        return None if number is None or offset is None else ConstantPlace(number, offset, is_prepared=True)

    # Panels ----------------------------------------------------------------------------------------------------

    def find(self, place: ConstantPlace, key: tuple[object, ...]) -> int | None:
        """The offset in the block of what was packed from a place, by a key of its form."""
        return self._places.get((place, *key))

    def reserve(self, place: ConstantPlace, key: tuple[object, ...], size: int) -> int:
        """The offset of new memory in the block."""
        at = self._places[(place, *key)] = self.sizes[place.argument]
        self.sizes[place.argument] += -(-size // CACHE_LINE) * CACHE_LINE
        return at

    def pack(self, place: ConstantPlace, at: int, kernel: Function, loops: tuple[CopyLoop, ...] = ()) -> None:
        """Have the preparation call a packing kernel, or one that copies, in loops."""
        self._steps.append(_PackingCall(place, at, kernel, loops))

    def address(self, b: Builder, place: ConstantPlace, at: int) -> Value:
        """The address in the function of an offset in the block."""
        return _offset(b, self._blocks[place.argument], at)

    # Calls to other functions ----------------------------------------------------------------------------------

    def prepare_callees(self, known: Mapping[str, PreparedArguments]) -> None:
        """Reserve blocks for functions with prepared arguments that this one calls; they are complete."""
        self.read_definitions()
        for call in self.function.instructions():
            callee = known.get(str(call.callee)) if call.is_call else None
            if callee is None or not callee.sizes:
                continue
            places = [self.place(call.args[number]) for number in callee.sizes]
            blocks = [(place, size) for place, size in zip(places, callee.sizes.values(), strict=True) if place]
            assert len(blocks) == len(places)
            key = (callee.function.name, *places)
            first, _ = blocks[0]
            if self.find(first, (*key, 0)) is None:
                ats = [self.reserve(place, (*key, n), size) for n, (place, size) in enumerate(blocks)]
                step = _PrepareCall(callee, tuple((place, at) for (place, _), at in zip(blocks, ats, strict=True)))
                self._steps.append(step)
            at_of = [self._places[(place, *key, n)] for n, (place, _) in enumerate(blocks)]
            step = _PrepareCall(callee, tuple((place, at) for (place, _), at in zip(blocks, at_of, strict=True)))
            self._calls.append((call, step))

    # The result ------------------------------------------------------------------------------------------------

    def drop_unused(self) -> None:
        """Keep arguments that no attribute declares constant as they are where nothing is packed."""
        if not self.is_declared:
            self.sizes = {number: size for number, size in self.sizes.items() if size > CACHE_LINE}

    def finish(self) -> None:
        """Have the function read its blocks, and add the function that prepares them."""
        if not self.sizes:
            return
        self._pass_blocks()
        self._read_addresses()
        self._mark()
        allow_heap(self.module, self.function)  # memory reached through an address in a block is not an argument's
        self._add_preparation()

    def _pass_blocks(self) -> None:
        """Pass blocks to the callees."""
        for block in self.function.blocks:
            calls = {id(call): step for call, step in self._calls}
            for call in [i for i in block.instructions if id(i) in calls]:
                b = Builder(self.module, self.function, block, block.instructions.index(call))
                callee = calls[id(call)]
                call.text, call.spans = _DEREFERENCEABLE.sub("", call.text), None
                for number, (place, at) in zip(callee.function.sizes, callee.blocks, strict=True):
                    set_operand(call, 1 + number, _retyped(b, self.address(b, place, at), call.args[number].type))

    def _read_addresses(self) -> None:
        """Read the address of the array wherever the argument is used; then the argument is the block."""
        b = Builder(self.module, self.function, self.function.entry, 0)
        reads = uses(self.function)
        for number, block in self._blocks.items():
            argument = self.function.arguments[number]
            if argument.name in reads:
                raw = b.load(argument.type, block, CACHE_LINE, f"{argument.name}.raw")
                for use in reads[argument.name]:
                    set_operand(use.instruction, use.index, raw)
        reads = uses(self.function)
        for number, block in self._blocks.items():
            for use in reads.get(block.name, ()):
                set_operand(use.instruction, use.index, self.function.arguments[number].value)

    def _mark(self) -> None:
        """Mark the arguments as prepared blocks."""
        for number in self.sizes:
            argument = self.function.arguments[number]
            words = _DEREFERENCEABLE.sub("", argument.attributes.replace(CONSTANT, "")).split()
            argument.attributes = " ".join([*words, PREPARED])
        _respell_parameters(self.function)

    def _add_preparation(self) -> None:
        function, module = self.function, self.module
        words = function.signature.result_attributes.split()
        linkage = " ".join(word for word in words if word in _LINKAGE)
        name = preparation_name(function.name)
        arguments = [function.arguments[number] for number in self.sizes]
        parameters: list[tuple[Type, str, str]] = []
        for number, argument in zip(self.sizes, arguments, strict=True):
            stem = f"arg{number}" if argument.name.isdecimal() else argument.name.strip('"')
            stem = re.sub(r"[^-a-zA-Z$._0-9]", "_", stem)
            parameters += [(module.pointer_to(I8), "noalias", f"{stem}.prepared"), (argument.type, "", stem)]
        preparation = new_function(module, name, parameters, "nounwind", linkage)
        b = Builder(module, preparation)
        values = [argument.value for argument in preparation.arguments]
        blocks = dict(zip(self.sizes, values[::2], strict=True))
        arrays = dict(zip(self.sizes, values[1::2], strict=True))
        for number, block in blocks.items():
            b.store(arrays[number], block, CACHE_LINE)
        for step in self._steps:
            places = [(step.place, step.at)] if isinstance(step, _PackingCall) else step.blocks
            passed: list[Value] = []
            for place, at in places:
                source = (blocks if place.is_prepared else arrays)[place.argument]
                passed += [_offset(b, blocks[place.argument], at), _offset(b, source, place.offset)]
            if isinstance(step, _PackingCall):
                _call_in_loops(b, step.kernel, passed, step.loops)
            else:
                _call(b, module.function(step.function.preparation), passed)
        b.ret()
        sizes = ", ".join(f"i64 {size}" for size in self.sizes.values())
        constant = " ".join(filter(None, (linkage, "constant", str(ArrayType(len(self.sizes), I64)))))
        module.append(UnparsedText(f"\n\n@{block_sizes_name(function.name)} = {constant} [{sizes}], align 8"))

    @property
    def preparation(self) -> str:
        """Name of the function that prepares the blocks."""
        return preparation_name(self.function.name)


def _call_in_loops(b: Builder, kernel: Function, places: Sequence[Value], loops: Sequence[CopyLoop]) -> None:
    """Call a kernel with the addresses that it writes to and reads, advanced by loops around the call."""
    if not loops:
        _call(b, kernel, places)
        return
    outer, *inner = loops
    with b.loop(0, outer.trips) as loop:
        steps = (outer.destination, outer.source)
        moved = [_offset(b, p, b.mul(loop.index, step)) for p, step in zip(places, steps, strict=True)]
        _call_in_loops(b, kernel, moved, inner)


def _call(b: Builder, function: Function, pointers: Sequence[Value]) -> None:
    """Call a function of pointers."""
    arguments = zip(pointers, function.arguments, strict=True)
    call_function(b, function, [_retyped(b, pointer, argument.type) for pointer, argument in arguments])


def _offset(b: Builder, pointer: Value, offset: int | Value) -> Value:
    return b.gep(I8, b.retype(pointer, I8), offset)


def _retyped(b: Builder, pointer: Value, type_: Type) -> Value:
    """A pointer in the type of another."""
    pointee = type_.pointee if isinstance(type_, PointerType) else None
    return pointer if pointee is None else b.retype(pointer, pointee)


def _respell_parameters(function: Function) -> None:
    """Spell the parameters in the header as they are in the signature."""
    header, signature = function.header, function.signature
    start = header.index("(", header.index(f"@{function.name}") + len(function.name)) + 1
    end, depth, quoted = start, 1, False
    while depth:
        character = header[end]
        quoted ^= character == '"'
        depth += 0 if quoted else {"(": 1, ")": -1}.get(character, 0)
        end += 1
    spelled = [" ".join(filter(None, (str(a.type), a.attributes, str(a.value)))) for a in signature.arguments]
    function.header = f"{header[:start]}{', '.join([*spelled, *['...'] * signature.vararg])}{header[end - 1 :]}"


# Which arguments are constant ----------------------------------------------------------------------------------------


def find_prepared_arguments(module: Module) -> list[PreparedArguments]:
    """The functions with arguments that are constant over calls, callees first.

    Raises:
        LoweringError: An argument with the attribute cannot be prepared.
    """
    functions = [f for f in module.functions if not is_kernel(module, f)]
    declared = {f.name: numbers for f in functions if (numbers := _declared(f))}
    if not declared:
        return []
    for name, numbers in declared.items():
        _refuse_stores(module, module.function(name), numbers)
    calls = _Calls.of(module, functions)
    constant: dict[str, set[int]] = {name: set(numbers) for name, numbers in declared.items()}
    calls.infer(constant)
    for name, numbers in declared.items():
        calls.check(module.function(name), numbers, constant)
    ordered = calls.callees_first(constant)
    return [PreparedArguments.of(module, f, constant[f.name], is_declared=f.name in declared) for f in ordered]


def _declared(function: Function) -> list[int]:
    """The numbers of the arguments with the attribute.

    Raises:
        LoweringError: An argument is not a pointer that a caller could pass a block in.
    """
    numbers = [number for number, a in enumerate(function.arguments) if CONSTANT in a.attributes]
    for number in numbers:
        argument = function.arguments[number]
        is_plain = isinstance(argument.type, PointerType) and argument.type.addrspace == 0
        words = {attribute.name for attribute in parse_attributes(argument.attributes)}
        if not is_plain or words & _BY_VALUE:
            what = next(iter(sorted(words & _BY_VALUE)), str(argument.type))
            message = f"{CONSTANT} on %{argument.name}: it is for pointers to memory that is read, not for {what}"
            raise LoweringError(message, function.span)
    return numbers


def _refuse_stores(module: Module, function: Function, numbers: Collection[int]) -> None:
    """Check that a function does not write to its constant arguments.

    Raises:
        LoweringError: It does.
    """
    aliases = AliasAnalysis(module, function, ControlFlow(function), {})
    names = {str(function.arguments[number].value) for number in numbers}
    for i in function.instructions():
        callee = str(i.callee) if i.is_call else ""
        if i.opcode != "store" and not callee.startswith(_WRITERS):
            continue
        written = aliases.bases(i.operands[1] if i.opcode == "store" else i.args[0])
        if any(base.name in names for base in written) and len(written) == 1:
            name = next(iter(written)).name
            message = f"a store to {name} of @{function.name}, whose memory is constant over calls ({CONSTANT})"
            raise LoweringError(message, i.span or function.span)


def _place(
    function: Function, defined: Mapping[str, Instruction], constant: Collection[int], pointer: Value
) -> ConstantPlace | None:
    """The place in a constant argument that a pointer refers to."""
    base, offset = _base(defined, pointer)
    names = {function.arguments[number].name: number for number in constant}
    number = names.get(base.name) if isinstance(base, Local) else None
    return None if number is None or offset is None else ConstantPlace(number, offset)


def _base(defined: Mapping[str, Instruction], pointer: Value) -> tuple[Value, int | None]:
    """The argument or global that a pointer is derived from, and its distance from that; None if unknown."""
    offset = 0
    for _ in range(len(defined) + 1):
        definition = defined.get(pointer.name) if isinstance(pointer, Local) else None
        if definition is None:
            return pointer, offset
        step = gep_offset(definition) if definition.opcode == "getelementptr" else 0
        if definition.opcode not in _SAME_OBJECT or step is None:
            break
        offset, pointer = offset + step, definition.operands[0]
    return pointer, None


@dataclass(eq=False)
class _Calls:
    """The calls among the functions of a module.

    Attributes:
        functions: The functions by name.
        sites: For each function that others call, the callers and the calls.
        escaping: Functions whose address is used otherwise, or that text which is not parsed mentions.
    """

    module: Module
    functions: dict[str, Function]
    sites: dict[str, list[tuple[Function, Instruction]]]
    escaping: set[str]

    @classmethod
    def of(cls, module: Module, functions: Sequence[Function]) -> _Calls:
        """The calls of a module."""
        named = {f.name: f for f in functions}
        sites: dict[str, list[tuple[Function, Instruction]]] = {}
        escaping = {item.original.name for item in module.items if isinstance(item, DuplicateFunction)}
        for function in functions:
            for i in function.instructions():
                direct = i.callee if i.is_call else None
                if direct in named:
                    sites.setdefault(str(direct), []).append((function, i))
                values = i.operands[1:] if direct is not None else i.operands
                escaping |= {name for value in values for name in _referenced_functions(value)}
        raw = _KEPT_ALIVE.sub("", _without_comments(module.raw_text()))
        escaping |= {name for name in named if re.search(rf"@{re.escape(name)}(?![\w.$-])", raw)}
        return cls(module, named, sites, escaping)

    def _passes_constants(self, name: str, number: int, constant: Mapping[str, Collection[int]]) -> bool:
        """Whether each call passes a place in a constant argument of its caller."""
        return all(
            _place(caller, definitions(caller), constant.get(caller.name, ()), call.args[number]) is not None
            for caller, call in self.sites[name]
        )

    def infer(self, constant: dict[str, set[int]]) -> None:
        """Add the arguments of internal functions that are constant because those of all callers are."""
        changed = True
        while changed:
            changed = False
            for name, function in self.functions.items():
                is_local = _LOCAL & set(function.signature.result_attributes.split())
                if not is_local or name not in self.sites or name in self.escaping or function.signature.vararg:
                    continue
                for number, argument in enumerate(function.arguments):
                    is_candidate = isinstance(argument.type, PointerType) and number not in constant.get(name, ())
                    if not is_candidate or _BY_VALUE & set(re.findall(r"\w+", argument.attributes)):
                        continue
                    if self._passes_constants(name, number, constant):
                        constant.setdefault(name, set()).add(number)
                        changed = True

    def check(self, function: Function, numbers: Sequence[int], constant: Mapping[str, Collection[int]]) -> None:
        """Refuse arguments with the attribute that cannot be prepared.

        Raises:
            LoweringError: The module uses the function in a way that does not prepare it.
        """
        name = function.name
        if _is_defined(self.module, preparation_name(name)):
            message = f"@{preparation_name(name)}, which prepares the {CONSTANT} arguments of @{name}, exists already"
            raise LoweringError(message, function.span)
        if name in self.escaping:
            message = f"@{name} has {CONSTANT} arguments: in its module, only functions with such arguments can call it"
            raise LoweringError(message, function.span)
        for number in numbers:
            for caller, call in self.sites.get(name, ()):
                if _place(caller, definitions(caller), constant.get(caller.name, ()), call.args[number]) is None:
                    argument = function.arguments[number]
                    message = (
                        f"@{caller.name} passes {call.args[number]} to %{argument.name} of @{name}, which is constant "
                        f"over calls: pass a {CONSTANT} argument, at a constant offset, or remove the attribute"
                    )
                    raise LoweringError(message, call.span or caller.span, [Note("declared here", function.span)])

    def callees_first(self, constant: Mapping[str, Collection[int]]) -> list[Function]:
        """The functions with constant arguments, each after those that it calls.

        Raises:
            LoweringError: One of them calls itself.
        """
        ordered: dict[str, Function] = {}
        for name in constant:
            self._add_callees_first(name, constant, ordered, ())
        return list(ordered.values())

    def _add_callees_first(
        self, name: str, constant: Collection[str], ordered: dict[str, Function], callers: tuple[str, ...]
    ) -> None:
        """Add a function to `ordered`, after those that it calls."""
        if name in ordered:
            return
        function = self.functions[name]
        if name in callers:
            message = f"@{name} calls itself: its {CONSTANT} arguments cannot be prepared"
            raise LoweringError(message, function.span)
        for callee in dict.fromkeys(str(i.callee) for i in function.instructions() if i.is_call):
            if callee in constant:
                self._add_callees_first(callee, constant, ordered, (*callers, name))
        ordered[name] = function


def _is_defined(module: Module, name: str) -> bool:
    """Whether a module defines or declares a global."""
    known = {item.name for item in module.items if isinstance(item, Function | Declaration | DuplicateFunction)}
    named = rf"@{re.escape(name)}"
    text = _without_comments(module.raw_text())
    return name in known or re.search(rf"(?m)^(?:{named} *=|define\b[^\n]*{named}\()", text) is not None


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda match: match[0] if match[0].startswith('"') else "", text)


def _referenced_functions(value: Value) -> Iterator[str]:
    """The functions that a value mentions."""
    if isinstance(value, Global):
        yield value.name
    else:
        yield from re.findall(r'@("[^"]*"|[-a-zA-Z$._0-9]+)', str(value)) if "@" in str(value) else ()
