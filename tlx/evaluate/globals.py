"""Constants and globals: their values, addresses, initial contents and read-only memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tlx.diagnostics import EvaluationError, ParseError, Source
from tlx.evaluate.memory import AddressSpace, Layout
from tlx.evaluate.values import Codecs, RuntimeValue, element_dtype, filled, signed, splat, vector, width_of
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.parser.operands import ValueParser, tokenize
from tlx.ir.tensors.model import uniform_scalar
from tlx.ir.types import ArrayType, IntType, PointerType, StructType, Type, VectorType
from tlx.ir.values import (
    Aggregate,
    ConstExpr,
    ConstFloat,
    ConstInt,
    Global,
    Keyword,
    Local,
    OpaqueConstant,
    Splat,
    Value,
    compare_integers,
    fold_integers,
)
from tlx.ir.values import Value as Operand

_NAME: Final = r'(?:[-a-zA-Z$._0-9\x80-\U0010ffff]+|"[^"]*")'
_GLOBAL: Final = re.compile(rf"(?m)^[ \t]*@({_NAME})[ \t]*=")
_NAMED_TYPE: Final = re.compile(rf"(?m)^[ \t]*(%{_NAME})[ \t]*=[ \t]*type\b")
_NEXT_ITEM: Final = re.compile(r"(?m)^[ \t]*(?:[@%!$^]|(?:define|declare|attributes|source_filename|target|module)\b)")
_EXTERNAL: Final = frozenset({"external", "extern_weak"})
_CODE_BASE: Final = 1 << 24
_CODE_STEP: Final = 16


@dataclass(frozen=True)
class GlobalVariable:
    """A global variable: `initialiser` is None for an external one; `words` precede its kind."""

    name: str
    kind: str
    words: frozenset[str]
    type: Type
    initialiser: Operand | None
    align: int | None


def named_type_bodies(source: Source) -> dict[str, Type]:
    """Bodies of the `%name = type ...` of a module."""
    bodies: dict[str, Type] = {}
    for match in _NAMED_TYPE.finditer(source.text):
        bodies[match[1]] = _cursor(source, match.end()).type()
    return bodies


def _cursor(source: Source, start: int) -> ValueParser:
    """A cursor on the rest of a top-level item, from `start` in its first line."""
    line_end = source.text.find("\n", start)
    following = _NEXT_ITEM.search(source.text, line_end) if line_end >= 0 else None
    return ValueParser(source, tokenize(source, start, following.start() if following else None))


def _read_global(source: Source, name: str, start: int) -> GlobalVariable:
    """Parse what follows `@name =`."""
    cursor = _cursor(source, start)
    words: set[str] = set()
    while (kind := cursor.next()).text not in ("global", "constant", "alias", "ifunc"):
        words.add(kind.text)
        if kind.kind == "end":
            raise cursor.error("expected 'global' or 'constant'", kind)
        if cursor.at("("):
            cursor.skip_parens()
    type_ = cursor.type()
    if kind.text in ("alias", "ifunc"):
        cursor.expect(",")
        return GlobalVariable(name, kind.text, frozenset(words), type_, cursor.typed_value(), None)
    value = None if words & _EXTERNAL else cursor.value(type_)
    return GlobalVariable(name, kind.text, frozenset(words), type_, value, _alignment(cursor))


def _alignment(cursor: ValueParser) -> int | None:
    while cursor.token.kind != "end":
        if cursor.accept("align"):
            return cursor.integer()
        cursor.next()
    return None


class SymbolTable:
    """Addresses of globals and functions, allocated on first use."""

    def __init__(self, module: Module, layout: Layout, memory: AddressSpace, codecs: Codecs) -> None:
        self._source = module.source
        self._layout = layout
        self._memory = memory
        self._codecs = codecs
        self._places = {m[1]: m.end() for m in _GLOBAL.finditer(module.source.text)}
        self._functions = {f.name for f in module.functions} | set(module.declarations)
        self._variables: dict[str, GlobalVariable] = {}
        self._addresses: dict[str, int] = {}
        self._names: dict[int, str] = {}

    @property
    def constants(self) -> ConstantEvaluator:
        """Evaluates constants that refer to the symbols."""
        return ConstantEvaluator(self._layout, self.address)

    def address(self, name: str) -> int:
        """Address of a global or a function.

        Raises:
            EvaluationError: There is no such name, or the global is external.
        """
        if name not in self._addresses:
            variable = self.variable(name)
            if variable is not None:
                self._place_global(variable)
            elif name in self._functions:
                self._place_function(name)
            else:
                raise EvaluationError(f"@{name} is not defined in this module")
        return self._addresses[name]

    def variable(self, name: str) -> GlobalVariable | None:
        """The global variable of that name; None if there is none."""
        if name not in self._variables and name in self._places:
            self._variables[name] = _read_global(self._source, name, self._places[name])
        return self._variables.get(name)

    def function_at(self, address: int) -> str:
        """Name of the function at an address.

        Raises:
            EvaluationError: There is none.
        """
        if address not in self._names:
            raise EvaluationError(f"call through {address:#x}, which is not the address of a function")
        return self._names[address]

    def aliased(self, name: str) -> str | None:
        """The function that an alias names; None if the name is not an alias."""
        return self.function_at(self.address(name)) if name in self._places else None

    def _place_function(self, name: str) -> None:
        address = _CODE_BASE + _CODE_STEP * len(self._names)
        self._addresses[name] = address
        self._names[address] = name

    def _data(self, type_: Type, value: Operand) -> bytes:
        if isinstance(value, OpaqueConstant) and value.spelling.startswith('c"'):
            return string_bytes(value.spelling)
        return self._codecs[type_].encode(self.constants.value(value))

    def _place_global(self, variable: GlobalVariable) -> None:
        if "extern_weak" in variable.words:  # nothing defines it
            self._addresses[variable.name] = 0
            return
        if variable.initialiser is None:
            raise EvaluationError(f"global @{variable.name} is external: its memory is not in this module")
        if variable.kind in ("alias", "ifunc"):
            self._addresses[variable.name] = self.constants.value(variable.initialiser)
            return
        align = variable.align or self._preferred_alignment(variable.type)
        size = self._layout.size(variable.type)
        region = self._memory.allocate(size, f"global @{variable.name}", align)
        self._addresses[variable.name] = region.base
        data = self._data(variable.type, variable.initialiser)
        region.data[: len(data)] = data
        region.writable = variable.kind == "global"

    def _preferred_alignment(self, type_: Type) -> int:
        """As LLVM's `DataLayout::getPreferredAlign`: 16 bytes for what is larger; `opt` relies on it."""
        align = self._layout.align(type_)
        return max(align, 16) if self._layout.size(type_) > 16 else align


_DIGITS: Final = np.array([int(chr(c), 16) if chr(c) in "0123456789abcdefABCDEF" else 0 for c in range(256)], np.uint8)


class ConstantEvaluator:
    """Evaluates constants.

    Args:
        layout: Offsets of fields and elements, for constant `getelementptr`.
        address: Returns the address of a global or function by name.
    """

    def __init__(self, layout: Layout, address: Callable[[str], int]) -> None:
        self.layout = layout
        self.address = address
        self._codecs = Codecs(layout)

    def value(self, operand: Operand) -> RuntimeValue:
        """The value of a constant operand.

        Raises:
            EvaluationError: The evaluator does not know this kind of constant.
        """
        match operand:
            case ConstInt():
                return operand.value & ((1 << width_of(operand.type)) - 1)
            case ConstFloat():
                return _float_value(operand)
            case Keyword():
                return filled(
                    operand.type, self.layout, self.layout.undefined if operand.word in ("undef", "poison") else 0
                )
            case Aggregate():
                return self._aggregate(operand)
            case Splat(type=VectorType() as type_):
                return splat(self.value(operand.element), type_)
            case Global():
                return self.address(operand.name)
            case OpaqueConstant(type=ArrayType()) if operand.spelling.startswith('c"'):
                return tuple(string_bytes(operand.spelling))
            case ConstExpr():
                return self._expression(operand)
            case _:
                raise EvaluationError(f"the evaluator does not support the constant {operand}")

    def _aggregate(self, operand: Aggregate) -> RuntimeValue:
        elements = [self.value(e) for e in operand.elements]
        if isinstance(operand.type, VectorType):
            return vector(elements, operand.type.element)
        return tuple(elements)

    def _expression(self, operand: ConstExpr) -> RuntimeValue:
        scalar = uniform_scalar(operand, {})
        if scalar is not None and isinstance(operand.type, VectorType):
            return splat(self.value(scalar), operand.type)
        values = [self.value(o) for o in operand.operands]
        if operand.opcode == "bitcast" and not isinstance(operand.type, PointerType):
            return self._codecs.bitcast(operand.operands[0].type, operand.type)(values[0])
        mask = (1 << width_of(operand.type)) - 1
        if operand.opcode == "getelementptr" and operand.source_type is not None:
            indices = [signed(v, width_of(o.type)) for v, o in zip(values[1:], operand.operands[1:], strict=True)]
            return (values[0] + constant_gep_offset(self.layout, operand.source_type, indices)) & mask
        if operand.opcode in ("bitcast", "inttoptr", "ptrtoint", "addrspacecast", "trunc", "zext"):
            return values[0] & mask
        if operand.opcode == "sext":
            return signed(values[0], width_of(operand.operands[0].type)) & mask
        if operand.opcode == "select":
            return values[1] if values[0] else values[2]
        if operand.opcode == "icmp":
            predicate = operand.spelling.split()[1]
            return int(compare_integers(predicate, values[0], values[1], width_of(operand.operands[0].type)))
        if operand.opcode in ("dso_local_equivalent", "no_cfi") and values:
            return values[0]
        if isinstance(operand.type, IntType) and len(values) == 2:
            folded = fold_integers(operand.opcode, values[0], values[1], width_of(operand.type))
            if folded is not None:
                return folded
        raise EvaluationError(f"the evaluator does not support the constant expression {operand}")


def string_bytes(spelling: str) -> bytes:
    r"""The bytes of `c"..."`, escapes such as `\0A` resolved."""
    data = np.frombuffer(spelling[2:-1].encode("utf-8", "surrogateescape").replace(b"\\\\", b"\\5C"), np.uint8)
    places = np.flatnonzero(data == ord("\\"))
    keep = np.ones(len(data), np.bool_)
    keep[places + 1] = keep[places + 2] = False
    decoded = data.copy()
    decoded[places] = _DIGITS[data[places + 1]] * 16 + _DIGITS[data[places + 2]]
    return decoded[keep].tobytes()


def _float_value(operand: ConstFloat) -> RuntimeValue:
    dtype = element_dtype(operand.type)
    if operand.spelling.startswith("0x") and dtype == np.float64:
        return np.frombuffer(int(operand.spelling, 0).to_bytes(8, "little"), dtype)[0]
    if operand.spelling.startswith(("0xH", "0xR")):
        return np.frombuffer(int(operand.spelling[3:], 16).to_bytes(2, "little"), dtype)[0]
    return dtype.type(operand.value)


def gep_step(layout: Layout, type_: Type, index: int | None) -> tuple[Type, int | None]:
    """One index of a `getelementptr`: the type it reaches, and the offset if `index` is known.

    Raises:
        EvaluationError: The type has no elements, or a struct's field is not constant.
    """
    type_ = layout.resolve(type_)
    if isinstance(type_, (ArrayType, VectorType)):
        return type_.element, None if index is None else index * layout.size(type_.element)
    if isinstance(type_, StructType) and index is not None and index < len(type_.elements):
        return type_.elements[index], layout.fields(type_)[0][index]
    raise EvaluationError(f"getelementptr cannot index into {type_}")


def constant_gep_offset(layout: Layout, source: Type, indices: Sequence[int]) -> int:
    """Byte offset of a `getelementptr` whose indices are all known."""
    total = indices[0] * layout.size(source)
    for index in indices[1:]:
        source, step = gep_step(layout, source, index)
        total += step or 0
    return total


_DEFINITIVE: Final = frozenset(
    "private internal linkonce_odr weak_odr dso_local unnamed_addr local_unnamed_addr hidden protected default".split()
)


class ConstantMemory:
    """The constant globals of a module's source whose contents cannot be replaced at link time."""

    def __init__(self, module: Module) -> None:
        self._memory = AddressSpace()
        self._layout = Layout(named_type_bodies(module.source), is_big_endian=module.is_big_endian)
        self._symbols = SymbolTable(module, self._layout, self._memory, Codecs(self._layout))

    def find(self, definitions: Mapping[str, Instruction], pointer: Value) -> tuple[bytes, int] | None:
        """The contents of the global that a pointer always points into, and the offset of the pointer in it.

        Args:
            definitions: The instructions of the pointer's function, by the names of their results.
            pointer: A pointer.
        """
        try:
            address = self._address(definitions, pointer)
        except (EvaluationError, ParseError):
            return None
        region = None if address is None else self._memory.nearest(address)
        if address is None or region is None or address >= region.end:
            return None
        return bytes(region.data), address - region.base

    def _address(self, definitions: Mapping[str, Instruction], pointer: Value) -> int | None:
        if not isinstance(pointer, Local):
            return ConstantEvaluator(self._layout, self._place).value(pointer)
        definition = definitions.get(pointer.name)
        if definition is None or definition.opcode not in ("bitcast", "getelementptr"):
            return None
        base, indices = self._address(definitions, definition.operands[0]), definition.operands[1:]
        constants = [index.value for index in indices if isinstance(index, ConstInt)]
        if base is None or len(constants) < len(indices):
            return None
        source = definition.source_type
        return base if source is None else base + constant_gep_offset(self._layout, source, constants)

    def _place(self, name: str) -> int:
        variable = self._symbols.variable(name)
        if variable is None or not _is_definitive(variable):
            raise EvaluationError(f"@{name} may be replaced at link time")
        return self._symbols.address(name)


def _is_definitive(variable: GlobalVariable) -> bool:
    value = variable.initialiser
    return variable.kind == "constant" and variable.words <= _DEFINITIVE and value is not None and _is_data(value)


def _is_data(value: Value) -> bool:
    """Whether a constant consists of numbers only: addresses are known to the linker alone."""
    match value:
        case Aggregate():
            return value.integers is not None or all(_is_data(element) for element in value.elements)
        case Splat():
            return _is_data(value.element)
        case OpaqueConstant():
            return value.spelling.startswith('c"')
        case Keyword():
            return value.word == "zeroinitializer"
        case _:
            return isinstance(value, ConstInt | ConstFloat)
