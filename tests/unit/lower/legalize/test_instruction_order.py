"""Instructions of several registers in turn."""

from __future__ import annotations

from tlx.ir.builder import Builder, new_function
from tlx.ir.parser.module import parse
from tlx.ir.types import FLOAT, VectorType
from tlx.ir.values import Value
from tlx.lower.legalize.registers import emit_interleaved

REGISTER = VectorType(4, FLOAT)


def _function() -> tuple[Builder, list[Value]]:
    module = parse("")
    parameters = [(REGISTER, "", "x"), (REGISTER, "", "y")]
    b = Builder(module, new_function(module, "f", parameters, ""))
    return b, [argument.value for argument in b.function.arguments]


def test_equal_numbers_of_instructions_alternate() -> None:
    b, (x, y) = _function()
    made = emit_interleaved(b, [lambda: b.binary("fmul", b.binary("fadd", x, x), x), lambda: b.binary("fmul", y, y)])
    assert [i.opcode for i in b.block.instructions] == ["fadd", "fmul", "fmul"]
    made += emit_interleaved(b, [lambda v=v: b.binary("fmul", b.binary("fadd", v, v), v) for v in made])
    assert [i.opcode for i in b.block.instructions[3:]] == ["fadd", "fadd", "fmul", "fmul"]
    assert [i.result for i in b.block.instructions[5:]] == [str(v).removeprefix("%") for v in made[2:]]


def test_sequences_that_end_in_another_block_stay() -> None:
    b, (x, _) = _function()

    def cut() -> Value:
        total = b.binary("fadd", x, x)
        after = b.new_block("after", b.block)
        b.branch(after)
        b.at_end(after)
        return total

    emit_interleaved(b, [cut, cut])
    assert [[i.opcode for i in block.instructions] for block in b.function.blocks] == [
        ["fadd", "br"],
        ["fadd", "br"],
        [],
    ]
