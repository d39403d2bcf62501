"""Tokens that come from several places: tokens cannot be phis, so their flattened vectors are.

    %t = phi i32 [ %a, %then ], [ %b, %else ]
    ->
    %merged = phi <16 x float> [ %va, %then ], [ %vb, %else ]
    %t = call token @llvm.tensor.typeinfo(<16 x float> %merged, ...)

All the tokens that meet must say the same. A phi of one token is that token.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tlx.diagnostics import Note, VerifyError
from tlx.frontends.c_header.tokens import StrayTokenError, Token
from tlx.ir.module import Block, Function, Instruction, Module
from tlx.ir.rewriter import replace_uses
from tlx.ir.tensor_calls import operand_span
from tlx.ir.types import LABEL, TOKEN, VOID
from tlx.ir.values import Global, Keyword, Local, Value, is_undefined


def merge_tokens(module: Module, function: Function, tokens: dict[str, Token]) -> None:
    """Replace the phis and selects of tokens; new tokens are added to `tokens`.

    Raises:
        VerifyError: Tokens meet that say different things, or something that is no token.
    """
    merges = _merges(function, tokens)
    _resolve(function, merges)
    for name, (_, merge) in merges.items():
        _check_sources(merge, name, tokens, merges)
    _Merging(module, function, tokens, merges).run()


_Merges = dict[str, tuple[Block, Instruction]]


def _sources(merge: Instruction) -> list[Value]:
    """The values that a phi or select chooses from."""
    if merge.opcode == "phi":
        return [value for value, _ in merge.incoming]
    return merge.operands[1:]


def merging_names(function: Function, names: Collection[str]) -> set[str]:
    """The names given, and those of the phis and selects that they reach."""
    return {*names, *_merges(function, names)}


def _merges(function: Function, tokens: Collection[str]) -> _Merges:
    """The phis and selects that some token reaches."""
    merges: _Merges = {}
    grown = True
    while grown:
        grown = False
        for block in function.blocks:
            for instruction in block.instructions:
                if instruction.opcode not in ("phi", "select") or instruction.result is None:
                    continue
                names = {v.name for v in _sources(instruction) if isinstance(v, Local)}
                if instruction.result not in merges and any(name in tokens or name in merges for name in names):
                    merges[instruction.result] = (block, instruction)
                    grown = True
    return merges


def _resolve(function: Function, merges: _Merges) -> None:
    """Take out the phis that have one source only."""
    changed = True
    while changed:
        changed = False
        for name, (block, merge) in list(merges.items()):
            sources = {v for v in _sources(merge) if not (isinstance(v, Local) and v.name == name)}
            if len(sources) == 1 and isinstance(source := next(iter(sources)), Local):
                replace_uses(function, name, source)
                block.instructions.remove(merge)
                del merges[name]
                changed = True


def _check_sources(merge: Instruction, name: str, tokens: dict[str, Token], merges: _Merges) -> None:
    for value in _sources(merge):
        if is_undefined(value):
            continue
        if not isinstance(value, Local) or (value.name not in tokens and value.name not in merges):
            message = (
                f"{_subject(merge, name)} is a tensor's token on one way and {value} on another: a token is no number"
            )
            kind = StrayTokenError if isinstance(value, Local) else VerifyError
            raise kind(message, operand_span(merge, value))


def _subject(merge: Instruction, name: str) -> str:
    """What to call a merge: by its name, if the program gave it one."""
    span = merge.span
    written = span is not None and span.source.text.startswith(f"%{name} =", span.start)
    return f"%{name}" if written else "this variable"


class _Merging:
    """Replaces the merges that are left."""

    def __init__(self, module: Module, function: Function, tokens: dict[str, Token], merges: _Merges) -> None:
        self.module = module
        self.function = function
        self.tokens = tokens
        self.merges = merges
        self.vectors: dict[str, Local] = {}

    def run(self) -> None:
        """Make a vector of each merge and a token of each vector."""
        examples = {name: self._check(name) for name in self.merges}
        for name, example in examples.items():
            if example.type is not None:
                self.vectors[name] = Local(example.type.vector, self.function.names.fresh("merged"))
        for name, example in examples.items():
            self._replace(name, example)

    def _leaves(self, name: str) -> Iterator[Token]:
        """The tokens that reach a merge."""
        seen: set[str] = set()
        stack = [name]
        while stack:
            merge = stack.pop()
            if merge in seen:
                continue
            seen.add(merge)
            if merge in self.tokens:
                yield self.tokens[merge]
            elif merge in self.merges:
                stack.extend(v.name for v in reversed(_sources(self.merges[merge][1])) if isinstance(v, Local))

    def _check(self, name: str) -> Token:
        """One of the tokens that reach a merge; all of them say the same."""
        leaves = list(self._leaves(name))
        merge = self.merges[name][1]
        subject = _subject(merge, name)
        for leaf in leaves:
            if leaf.type is None:
                message = f"{subject} merges tokens, so what they say must be known: give the load an element type"
                if leaf.dims and any(isinstance(d, Local) for d in leaf.dims):
                    message = f"{subject} merges tokens, so their shapes must be constants"
                raise self._error(message, merge, [leaf])
            if leaf.type != leaves[0].type:
                message = f"{subject} is a token of {leaves[0].type} on one way and of {leaf.type} on another"
                raise self._error(message, merge, [leaves[0], leaf])
        return leaves[0]

    def _error(self, message: str, merge: Instruction, leaves: list[Token]) -> VerifyError:
        span = merge.span or leaves[-1].maker.span
        return VerifyError(message, span, [Note("made here", leaf.maker.span) for leaf in leaves])

    def _vector(self, value: Value, example: Token) -> Value:
        if not isinstance(value, Local):
            assert example.type is not None
            return Keyword(example.type.vector, "undef")
        if value.name in self.vectors:
            return self.vectors[value.name]
        return self.tokens[value.name].flattened(self.module, self.function)

    def _replace(self, name: str, example: Token) -> None:
        block, merge = self.merges[name]
        vector = self.vectors[name]
        values = [self._vector(value, example) for value in _sources(merge)]
        merge.type, merge.result, merge.spans = vector.type, vector.name, None
        if merge.opcode == "phi":
            labels = [label for _, label in merge.incoming]
            merge.operands = [x for v, label in zip(values, labels, strict=True) for x in (v, Local(LABEL, label))]
            pairs = ", ".join(f"[ {v}, %{label} ]" for v, label in zip(values, labels, strict=True))
            merge.text = f"{vector} = phi {vector.type} {pairs}"
        else:
            condition = merge.operands[0]
            merge.operands = [condition, *values]
            merge.text = f"{vector} = select {', '.join(v.typed for v in merge.operands)}{merge.debug_location}"
        self.tokens[name] = self._typeinfo(name, block, merge, vector, example)

    def _typeinfo(self, name: str, block: Block, merge: Instruction, vector: Local, example: Token) -> Token:
        operands = [vector, *example.dims]
        text = f"%{name} = call token @llvm.tensor.typeinfo({', '.join(v.typed for v in operands)})"
        callee = Global(VOID, "llvm.tensor.typeinfo")
        call = Instruction("call", TOKEN, [callee, *operands], text, result=name, span=merge.span or example.maker.span)
        call.arg_attributes = ("",) * len(operands)
        place = next(i for i, other in enumerate(block.instructions) if other is merge) + 1
        while block.instructions[place].opcode == "phi":
            place += 1
        block.instructions.insert(place, call)
        return Token(block, call, example.dims, example.type, vector)
