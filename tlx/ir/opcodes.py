"""The words of LLVM assembly's instructions, and how one instruction is told from the next."""

from __future__ import annotations

from typing import Final

from tlx.ir.type_cursor import TypeCursor

BINARY: Final = frozenset("add sub mul udiv sdiv urem srem shl lshr ashr and or xor fadd fsub fmul fdiv frem".split())
CASTS: Final = frozenset(
    "trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp "
    "ptrtoint ptrtoaddr inttoptr bitcast addrspacecast".split()
)
CALLS: Final = frozenset({"call", "invoke", "callbr"})
TERMINATORS: Final = frozenset(
    "ret br switch indirectbr invoke callbr resume unreachable cleanupret catchret catchswitch".split()
)
OPCODES: Final = (
    BINARY
    | CASTS
    | CALLS
    | TERMINATORS
    | frozenset(
        "fneg freeze icmp fcmp select extractelement insertelement shufflevector extractvalue insertvalue alloca load "
        "store getelementptr phi landingpad catchpad cleanuppad atomicrmw cmpxchg fence va_arg".split()
    )
)
FLAGS: Final = frozenset(
    "nuw nsw exact disjoint nneg samesign inbounds nusw fast nnan ninf nsz arcp contract reassoc afn volatile atomic "
    "weak tail musttail notail inalloca swifterror".split()
)
TAILS: Final = frozenset({"tail", "musttail", "notail"})
_STARTS: Final = OPCODES | TAILS | {"uselistorder", "uselistorder_bb"}


def starts_instruction(cursor: TypeCursor) -> bool:
    """Whether the token at the cursor, outside all brackets, cannot belong to the instruction before it."""
    token = cursor.token
    kind = token.kind
    if kind == "word":
        return token.text in _STARTS
    if kind == "local":
        return cursor.at("=", 1)
    return kind in ("label", "end") or (kind == "group" and token.text[1].isalpha())
