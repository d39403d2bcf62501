"""Rewrites spellings of older LLVMs that the current one no longer reads.

    void (i8* byval %x)              ->  void (i8* byval(i8) %x)
    (i32 0, inrange i32 1)           ->  (i32 0, i32 1)
    br i1 icmp ne (ptr @w, ptr null) ->  %constant = icmp ne ptr @w, null  br i1 %constant

Lines stay the same, and mostly columns too: an error in the rewritten text has its place in the original one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tlx.diagnostics import TlxError

if TYPE_CHECKING:
    from tlx.ir.functions import Function
    from tlx.ir.instructions import Block, Instruction
    from tlx.ir.values import Value

_SKIPPED: Final = r'(?P<skipped>"[^"]*"|;[^\n]*)'  # strings and comments
_INRANGE: Final = re.compile(rf"{_SKIPPED}|(?<=[\s,])inrange(?= i\d)")
_TYPED_ATTRIBUTES: Final = ("byval", "sret", "inalloca")
_UNTYPED: Final = re.compile(rf"{_SKIPPED}|(?<= )(?:{'|'.join(_TYPED_ATTRIBUTES)})(?=[ ,)])")
_ATTRIBUTES: Final = re.compile(r"(?: (?:[a-z]+|align \d+|dereferenceable\(\d+\)))* $")
_LONGEST_TYPE: Final = 4096
_OPENING: Final = "([{<"
_CLOSING: Final = ")]}>"

_REMOVED_OPCODES: Final = frozenset(
    "icmp fcmp select zext sext fptrunc fpext fptoui fptosi uitofp sitofp mul udiv sdiv urem srem shl lshr ashr and or "
    "fneg fadd fsub fmul fdiv frem extractvalue insertvalue".split()
)
"""Opcodes that constant expressions had before LLVM 15 to 21."""
_REMOVED: Final = re.compile(rf"\b(?:{'|'.join(sorted(_REMOVED_OPCODES))})(?: [a-z]+)*\Z")
_LONGEST_OPCODE: Final = 64  # with its flags


def upgrade_ir(text: str) -> str:
    """The text with the spellings that LLVM 22 cannot read replaced; the same text if it has none."""
    if "inrange " in text:
        text = _INRANGE.sub(lambda m: m.group("skipped") or " " * len("inrange"), text)
    if any(word in text for word in _TYPED_ATTRIBUTES):
        text = _UNTYPED.sub(_typed, text)
    return _expand_constant_expressions(text) if _has_removed(text) else text


def _has_removed(text: str) -> bool:
    """Whether a text may have such a constant expression: `icmp ne (`, `select (`."""
    bracket = text.find(" (")
    while bracket >= 0:
        if _REMOVED.search(text, max(0, bracket - _LONGEST_OPCODE), bracket):
            return True
        bracket = text.find(" (", bracket + 1)
    return False


def _typed(match: re.Match[str]) -> str:
    """`byval` with the type of the typed pointer before it; unchanged if there is none, or in a string."""
    if match["skipped"]:
        return match.group()
    before = match.string[max(0, match.start() - _LONGEST_TYPE) : match.start()]
    before = _ATTRIBUTES.sub("", before)
    if not before.endswith("*"):
        return match.group()
    return f"{match.group()}({_last_type(before[:-1])})"


def _last_type(text: str) -> str:
    """The type at the end of a text, which starts after an opening bracket, a comma or white space."""
    depth = 0
    quoted = False
    for index in range(len(text) - 1, -1, -1):
        character = text[index]
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in _CLOSING:
            depth += 1
        elif depth == 0 and character in f"{_OPENING}, \n":
            return text[index + 1 :]
        elif character in _OPENING:
            depth -= 1
    return text


def _expand_constant_expressions(text: str) -> str:
    """Turn constant expressions in functions that LLVM no longer has into instructions."""
    from tlx.ir.parser.module import parse

    try:
        module = parse(text, is_parsed=_has_removed)
    except TlxError:  # LLVM reports what is wrong
        return text
    for function in module.functions:
        _Expansion(function).run()
    return str(module)


class _Expansion:
    """The constant expressions of a function that become instructions."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._edges: dict[tuple[str, str], Value] = {}
        """Values that phis receive from a block, by its name and the expression: equal for equal edges."""

    def run(self) -> None:
        """Replace them, each in the block that uses it."""
        from tlx.ir.rewrite import set_operand

        for block in self._function.blocks:
            for instruction in list(block.instructions):
                for index, operand in enumerate(instruction.operands):
                    if not _is_removed(operand):
                        continue
                    if instruction.opcode == "phi":
                        value = self._on_edge(operand, instruction.incoming[index // 2][1])
                    else:
                        value = self._expanded(operand, block, instruction)
                    set_operand(instruction, index, value)

    def _on_edge(self, operand: Value, predecessor: str) -> Value:
        key = predecessor, str(operand)
        if key not in self._edges:
            block = self._function.block(predecessor)
            self._edges[key] = self._expanded(operand, block, block.terminator)
        return self._edges[key]

    def _expanded(self, operand: Value, block: Block, before: Instruction) -> Value:
        """The result of an instruction on the same line, right before another one."""
        from tlx.ir.instructions import BINARY_OPCODES, Instruction
        from tlx.ir.values import ConstExpr, Local

        assert isinstance(operand, ConstExpr)
        spelling = operand.spelling
        opening = spelling.index("(")
        if operand.opcode in ("icmp", "fcmp") or operand.opcode in BINARY_OPCODES:
            first, second = operand.operands
            spelling = f"{spelling[:opening]}({first.typed}, {second})"
        for inner in operand.operands:
            if _is_removed(inner):
                spelling = spelling.replace(str(inner), str(self._expanded(inner, block, before)), 1)
        result = Local(operand.type, self._function.names.fresh("constant"))
        text = f"{result} = {spelling[:opening]}{spelling[opening + 1 : -1]}"
        new = Instruction(operand.opcode, operand.type, [], text, result.name, lead=before.lead)
        before.lead = " "
        block.instructions.insert(block.instructions.index(before), new)
        return result


def _is_removed(value: Value) -> bool:
    """Whether a value is such a constant expression, or contains one."""
    from tlx.ir.values import ConstExpr

    return isinstance(value, ConstExpr) and (
        value.opcode in _REMOVED_OPCODES or any(_is_removed(operand) for operand in value.operands)
    )
