"""The ABI of a function: its calling convention, and the attributes that determine how arguments are passed.

    define fastcc zeroext i8 @f(ptr byval(<4 x float>) align 16 %x, i16 signext %n)

Attributes are text in `tlx.ir`; this module parses that text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tlx.diagnostics import Source
from tlx.ir.types import PointerType, Type

if TYPE_CHECKING:
    from tlx.ir.parser.operands import ValueParser

_ABI_ATTRIBUTES: Final = frozenset(
    "align alignstack byref byval inalloca inreg nest noext preallocated signext sret swiftasync swifterror swiftself "
    "zeroext".split()
)
MEMORY_ATTRIBUTES: Final = ("byval", "byref", "sret", "inalloca", "preallocated")
"""Attributes that carry the pointee type of a pointer."""


# By number, from LLVM's include/llvm/IR/CallingConv.h, without those that C cannot call: functions that are only jumped
# to (ghccc, HiPE, hhvm), stack maps, interrupt handlers, GPU kernels, and intel_ocl_bicc, which does not preserve the
# frame pointer.
_C_CONVENTION: Final = "ccc"
_CONVENTION_NUMBERS: Final = {
    0: _C_CONVENTION,
    8: "fastcc",
    9: "coldcc",
    14: "preserve_mostcc",
    15: "preserve_allcc",
    16: "swiftcc",
    17: "cxx_fast_tlscc",
    18: "tailcc",
    20: "swifttailcc",
    21: "preserve_nonecc",
    64: "x86_stdcallcc",
    65: "x86_fastcallcc",
    70: "x86_thiscallcc",
    75: "spir_func",
    78: "x86_64_sysvcc",
    79: "win64cc",
    80: "x86_vectorcallcc",
    92: "x86_regcallcc",
    97: "aarch64_vector_pcs",
}
C_CALLABLE_CONVENTIONS: Final = frozenset(_CONVENTION_NUMBERS.values())
"""Conventions of functions that a C function can call."""

_TARGET_PREFIXES: Final = ("aarch64_", "amdgpu_", "arm_", "avr_", "m68k_", "msp430_", "ptx_", "riscv_", "spir_", "x86_")


@dataclass(frozen=True, slots=True)
class ParameterAttribute:
    """An attribute of a parameter, an argument or a result.

    Attributes:
        name: Its name.
        text: As it is spelled.
        type: The type in its parentheses; None if it has none.
    """

    name: str
    text: str
    type: Type | None = None

    @property
    def number(self) -> int:
        """The number of `align 16` or `dereferenceable(64)`; 0 if it has none."""
        digits = "".join(c for c in self.text if c.isdecimal())
        return int(digits) if digits else 0


_WORDS: Final = re.compile(r" *+(?:[a-z_]++ *+)*+")
"""Attributes without numbers, types and strings: most texts, for which the parser is not imported."""


@lru_cache(maxsize=4096)
def parse_attributes(text: str) -> tuple[ParameterAttribute, ...]:
    """The attributes in a text, in order.

    Raises:
        ParseError: A type in them is malformed.
    """
    if _WORDS.fullmatch(text):
        return tuple(ParameterAttribute(word, word) for word in text.split())
    from tlx.ir.parser.operands import ValueParser, tokenize

    source = Source("<attributes>", text)
    cursor = ValueParser(source, tokenize(source))
    parsed: list[ParameterAttribute] = []
    while (token := cursor.token).kind != "end":
        type_ = _type_argument(cursor) if token.text in (*MEMORY_ATTRIBUTES, "elementtype") else None
        if not cursor.attribute():
            cursor.next()
        parsed.append(ParameterAttribute(token.text, text[token.start : cursor.previous_end], type_))
    return tuple(parsed)


def _type_argument(cursor: ValueParser) -> Type | None:
    """The type in the parentheses of the attribute at the cursor, without moving the cursor."""
    if not cursor.at("(", 1):
        return None
    inside = type(cursor)(cursor.source, cursor.tokens)
    inside.index = cursor.index + 2
    return inside.type()


def attribute_pointee(text: str, *names: str) -> Type | None:
    """The type in `byval(T)`, `sret(T)`, ...: that of the first attribute with one of these names.

    Raises:
        ParseError: The type is malformed.
    """
    if not any(name in text for name in names):
        return None
    return next((a.type for a in parse_attributes(text) if a.name in names and a.type is not None), None)


def pointee_type(type_: Type, text: str, *names: str) -> Type | None:
    """The pointee type of a pointer that has an attribute with one of these names.

    Up to LLVM 11 the attributes had no types: `float* byval`.

    Raises:
        ParseError: The type is malformed.
    """
    if not isinstance(type_, PointerType) or not any(name in text for name in names):
        return None
    attribute = next((a for a in parse_attributes(text) if a.name in names), None)
    return None if attribute is None else attribute.type or type_.pointee


def abi_attributes(text: str) -> str:
    """The attributes of a parameter or result that belong to the ABI, as they are spelled.

    An alignment belongs to the ABI only next to such an attribute: it is that of a stack slot. It does not change how
    other pointers are passed.
    """
    attributes = parse_attributes(text)
    words = {a.name for a in attributes} & _ABI_ATTRIBUTES
    if words <= {"align"}:
        return ""
    return " ".join(a.text for a in attributes if a.name in words)


def calling_convention(text: str) -> str:
    """The calling convention among the words in front of a result type; empty for C's.

    A numbered convention that C can call is returned by its name.
    """
    words = parse_attributes(text)
    for index, attribute in enumerate(words):
        if attribute.name == "cc":
            number = words[index + 1].text
            name = _CONVENTION_NUMBERS.get(int(number), f"cc {number}")
            return "" if name == _C_CONVENTION else name
        if (
            attribute.name in C_CALLABLE_CONVENTIONS
            or attribute.name.endswith("cc")
            or attribute.name.startswith(_TARGET_PREFIXES)
        ):
            return "" if attribute.name == _C_CONVENTION else attribute.text
    return ""
