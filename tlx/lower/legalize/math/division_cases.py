"""Quotients by one of several code paths, chosen at run time by the operands of a few registers.

The next registers probably are of the same case (`DivisionCase`): that is remembered in a variable of the function, for
some blocks of registers, in which only the conditions of that case are tested.

    %remembered = load i32, ptr %cell                   ; the case, and for how many blocks; 0: no number is subnormal
    br i1 %is.known, label %known, label %compare
    compare:
      br i1 %may.be.subnormal, label %choose, label %divide
    known:
      store i32 %remembered.less.one, ptr %cell
      br i1 %is.first.case, label %normal.operands, label %case
    normal.operands:
      br i1 %fails, label %normal.divisors, label %done
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.instructions import Block
from tlx.ir.rewrite import split_block
from tlx.ir.types import I32
from tlx.ir.values import Value, const_int
from tlx.lower.legalize.math.arithmetic import any_lane
from tlx.lower.legalize.math.division_operands import DivisionOperands, Extremes
from tlx.lower.legalize.math.scaled_division import DivisionCase, begin_quotients, cases_of, scale_exponent

_NEXT: Final = {
    DivisionCase.NORMAL_OPERANDS: DivisionCase.NORMAL_DIVISORS,
    DivisionCase.NORMAL_DIVISORS: DivisionCase.NORMAL_NUMBERS,
    DivisionCase.NORMAL_QUOTIENTS: DivisionCase.ANY,
    DivisionCase.NORMAL_NUMBERS: DivisionCase.ANY,
}
"""The case that is tried where another one does not hold."""
_BLOCKS: Final = 128
"""One more than the blocks for which a case is remembered, as 128 case + blocks."""


def quotients_by_case(operands: DivisionOperands, divide: Callable[[], list[Value]]) -> list[Value]:
    """Quotients, by code that is chosen at run time.

    The builder is in another block afterwards.

    Args:
        operands: What is divided.
        divide: Emits the code for registers where no operand or quotient is subnormal.
    """
    lanes = operands.lanes
    b, cases = lanes.b, cases_of(lanes)
    cell = _zero_cell(b)
    end = split_block(b.function, b.block, b.index, "quotients.end")
    head, incoming = b.block, list[tuple[list[Value], Block]]()
    blocks = [head]
    for stem in ("compare", "choose", "divide", "known", *(case.name.lower().replace("_", ".") for case in cases)):
        blocks.append(b.new_block(stem, blocks[-1]))
    _, compare, choose, plain, known, *starts = blocks
    start_of = dict(zip(cases, starts, strict=True))

    b.at_end(head)
    remembered = b.load(I32, cell, 4)
    b.branch_if(b.icmp("ne", b.binary("and", remembered, const_int(I32, _BLOCKS - 1)), 0), known, compare)

    b.at_end(compare)
    extremes = Extremes.of(operands)
    b.branch_if(any_lane(extremes.lanes, extremes.may_have_subnormal_quotients()), choose, plain)

    b.at_end(choose)
    first = _first_case(operands, extremes)
    b.branch(known)

    b.at_end(plain)
    b.store(const_int(I32, 0), cell, 4)
    incoming.append((divide(), b.block))
    b.branch(end)

    b.at_end(known)
    count = b.phi(I32, [(remembered, head), (first, choose)])
    left = b.sub(count, 1)
    b.store(left, cell, 4)
    for case in cases[:-1]:
        following = start_of[DivisionCase.ANY] if case is cases[-2] else b.new_block("case")
        b.branch_if(b.icmp("ult", count, (case + 1) * _BLOCKS), start_of[case], following)
        b.at_end(following)

    for case in cases:
        b.at_end(start_of[case])
        attempt = begin_quotients(operands, case)
        if attempt.fails is not None:
            failed, done = b.if_else_blocks(attempt.fails, ("failed", "done"))
            b.at_end(failed)
            other = _NEXT[case]
            if other is not DivisionCase.ANY:
                rest = b.binary("and", left, const_int(I32, _BLOCKS - 1))
                b.store(b.add(rest, other * _BLOCKS), cell, 4)
            elif case is not DivisionCase.NORMAL_NUMBERS:
                b.store(_remembered(other), cell, 4)
            b.branch(start_of[other])
            b.at_end(done)
        incoming.append((attempt.finish(), b.block))
        b.branch(end)
    b.block, b.index = end, 0
    return [
        b.phi(values[0].type, list(zip(values, [block for _, block in incoming], strict=True)))
        for values in zip(*(values for values, _ in incoming), strict=True)
    ]


def _remembered(case: DivisionCase) -> Value:
    return const_int(I32, (case + 1) * _BLOCKS - 1)


def _zero_cell(b: Builder) -> Value:
    """A variable of the function, zero at first."""
    cell = b.alloca(I32, "case", 4)
    with b.inserting_at(b.function.entry, 1):
        b.store(const_int(I32, 0), cell, 4)
    return cell


def _first_case(operands: DivisionOperands, extremes: Extremes) -> Value:
    """The case to try first, as it is remembered: none where an instruction would have a subnormal result."""
    lanes, words = operands.lanes, extremes.lanes
    b = lanes.b
    is_special = any_lane(words, extremes.have_subnormal_divisors())
    is_subnormal = any_lane(words, extremes.have_subnormal_numerators())
    # Subnormal numbers are less than their exponent field says.
    least = lanes.bias - lanes.fraction - 2
    is_low, is_lower = (
        any_lane(words, operands.quotients_below(exponent))
        for exponent in (least, least + scale_exponent(operands.floats))
    )

    def select_case(condition: Value, case: DivisionCase | Value, otherwise: DivisionCase | Value) -> Value:
        first, second = (_remembered(x) if isinstance(x, DivisionCase) else x for x in (case, otherwise))
        return b.select(condition, first, second)

    normal = select_case(is_subnormal, DivisionCase.NORMAL_DIVISORS, cases_of(lanes)[0])
    low = select_case(is_subnormal, DivisionCase.ANY, DivisionCase.NORMAL_NUMBERS)
    special = select_case(is_low, DivisionCase.ANY, DivisionCase.NORMAL_QUOTIENTS)
    return select_case(is_special, special, select_case(is_lower, low, normal))
