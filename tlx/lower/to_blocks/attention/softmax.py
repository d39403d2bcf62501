"""Softmax of scores in registers, one tile of positions after the other.

A row is spread over four threads. With a tile of scores S, its maximum so far, m, and the sum l of the exponentials of
the differences to that become

    m' = max(m, S)    l' = l exp(m - m') + sum of exp(S - m')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.ir.types import FLOAT, I32
from tlx.ir.values import Value, const_float, const_int, zero
from tlx.lower.operations import emit_fcmp
from tlx.lower.to_blocks.kernel import GridKernel

_LOG2_E_HIGH: Final = 1.44269502162933349609375
_LARGE: Final = 2.0**27
"""What rounding the product of log2(e) and numbers up to this loses is at most 8: powers of two, by which all powers of
a row are then too large or small, remain in the range of all types. The differences of larger numbers, such as those
by which masks are filled, are zero, or so large that their powers vanish with any factor, which is 1 then.
"""


@dataclass(frozen=True, slots=True)
class SoftmaxState:
    """The rows of scores of a thread: for each one its maximum, and the sum of the thread's exponentials."""

    maxima: list[Value]
    totals: list[Value]

    @classmethod
    def of(cls, values: Sequence[Value]) -> SoftmaxState:
        """The state with these maxima and sums."""
        half = len(values) // 2
        return cls(list(values[:half]), list(values[half:]))

    @property
    def values(self) -> list[Value]:
        """The maxima and the sums."""
        return [*self.maxima, *self.totals]


@dataclass(frozen=True, slots=True)
class SoftmaxStep:
    """The results of a tile of scores.

    Attributes:
        weights: The weights of each row, not narrowed yet.
        rows: The state of the rows.
        factors: What the sums of each row are scaled by; none if they stay.
    """

    weights: list[list[Value]]
    rows: SoftmaxState
    factors: list[Value]


class Softmax:
    """Emits the steps of softmax on the scores of a thread, which are lists by the thread's row.

    Args:
        kernel: The kernel.
        lane: The thread's lane of the warp, i32.
    """

    def __init__(self, kernel: GridKernel, lane: Value) -> None:
        self._b, self._operations, self._lane = kernel.b, kernel.grid.operations, lane
        self._warp_threads = kernel.grid.warp_threads

    def start(self, rows: int) -> SoftmaxState:
        """The state of the thread's rows before the first tile."""
        return SoftmaxState([const_float(FLOAT, float("-inf"))] * rows, [zero(FLOAT)] * rows)

    def running(self, scores: list[list[Value]], rows: SoftmaxState) -> SoftmaxStep:
        """A step with the running maximum, after which the weights are exponentials."""
        b = self._b
        largest, totals, factors = self._new_largest(scores, rows), list[Value](), list[Value]()
        powers: list[list[Value]] = []
        for line, before, after, total in zip(scores, rows.maxima, largest, rows.totals, strict=True):
            of_row, scale, least = self._powers(line, after)
            # What rounding the maximum's product loses is a factor of all powers, so `before` has to be rounded, too.
            growth = b.binary("fsub", b.binary("fmul", before, scale), least)
            factors.append(self._operations.power_of_two(b, growth))
            powers.append(of_row)
            totals.append(b.fma(total, factors[-1], self._tree(self._added, of_row)))
        return SoftmaxStep(powers, SoftmaxState(largest, totals), factors)

    def quotients(self, scores: list[list[Value]], rows: SoftmaxState, inverses: Sequence[Value]) -> SoftmaxStep:
        """A step of the pass that divides: the totals are of powers with the same factor by rounding the maximum.

        Args:
            scores: The scores of a tile.
            rows: The state of the rows after all tiles.
            inverses: The reciprocals of their sums.
        """
        b, quotients = self._b, list[list[Value]]()
        for line, largest, inverse in zip(scores, rows.maxima, inverses, strict=True):
            powers, _, _ = self._powers(line, largest)
            quotients.append([b.binary("fmul", power, inverse) for power in powers])
        return SoftmaxStep(quotients, rows, [])

    def totals(self, rows: SoftmaxState) -> list[Value]:
        """The sums of whole rows."""
        return [self._combined_over_row(self._added, total) for total in rows.totals]

    def inverses(self, totals: Sequence[Value]) -> list[Value]:
        """The reciprocals of sums."""
        return [self._b.binary("fdiv", const_float(FLOAT, 1.0), total) for total in totals]

    def _new_largest(self, scores: list[list[Value]], rows: SoftmaxState) -> list[Value]:
        """The maxima of the rows with a tile."""
        result: list[Value] = []
        for line, before in zip(scores, rows.maxima, strict=True):
            result.append(self._larger(before, self._combined_over_row(self._larger, self._tree(self._larger, line))))
        return result

    def _powers(self, line: list[Value], largest: Value) -> tuple[list[Value], Value, Value]:
        """The exponentials of the differences to a maximum; and the scale and the scaled maximum for these."""
        b = self._b
        start, scale = self._subtrahend(largest), self._scale(largest)
        least = b.binary("fmul", start, scale)
        minus = b.binary("fsub", const_float(FLOAT, -0.0), least)
        return [self._operations.power_of_two(b, b.fma(score, scale, minus)) for score in line], scale, least

    def _subtrahend(self, largest: Value) -> Value:
        """The maximum, or zero where all scores so far are -inf, which become zero, too."""
        lowest = const_float(FLOAT, float("-inf"))
        return self._b.select(emit_fcmp(self._b, "oeq", largest, lowest), zero(FLOAT), largest)

    def _scale(self, largest: Value) -> Value:
        """The factor of the differences to a maximum, before they become powers of two."""
        b = self._b
        size = b.call_intrinsic("llvm.fabs", [FLOAT], FLOAT, [largest])
        is_large = emit_fcmp(b, "ogt", size, const_float(FLOAT, _LARGE))
        return b.select(is_large, const_float(FLOAT, 1.0), const_float(FLOAT, _LOG2_E_HIGH))

    def _combined_over_row(self, combine: Callable[[Value, Value], Value], value: Value) -> Value:
        """A value combined over the four threads that share a row."""
        b = self._b
        for distance in (1, 2):
            lane = b.binary("xor", self._lane, const_int(I32, distance))
            word = self._operations.shuffle(b, b.cast("bitcast", value, I32), lane, self._warp_threads)
            value = combine(value, b.cast("bitcast", word, FLOAT))
        return value

    def _tree(self, combine: Callable[[Value, Value], Value], values: Sequence[Value]) -> Value:
        """Values combined in pairs, then pairs of these."""
        while len(values) > 1:
            pairs = [combine(x, y) for x, y in zip(values[::2], values[1::2], strict=False)]
            values = [*pairs, *values[len(values) // 2 * 2 :]]
        return values[0]

    def _larger(self, x: Value, y: Value) -> Value:
        return self._b.call_intrinsic("llvm.maxnum", [FLOAT], FLOAT, [x, y])

    def _added(self, x: Value, y: Value) -> Value:
        return self._b.binary("fadd", x, y)
