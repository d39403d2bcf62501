"""Random bits by counters: Threefry 2x32 and Philox 4x32, with the results of XLA's `rng_bit_generator`.

Each block of bits is a function of the key and a number, so that all blocks are independent of each other:

    threefry: two numbers of 32 bits for each counter of 64 bits, 20 rounds
    philox:   four of them for each counter of 128 bits, 10 rounds

Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011); the order of the results is that of
`xla/hlo/builder/lib/prng.cc`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from tlx.graph.algorithms.sorting import Sorting
from tlx.graph.core import BOOL
from tlx.graph.value import DType, Operand, Value
from tlx.intrinsics.numpy_types import is_float

_UINT32: Final = np.dtype(np.uint32)
_UINT64: Final = np.dtype(np.uint64)
_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY: Final = 0x1BD11BDA
_MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
_INCREMENTS: Final = (0x9E3779B9, 0xBB67AE85)
_ALGORITHMS: Final = ("threefry", "philox")


class RandomBits(Sorting):
    """Random numbers."""

    def random_bits(
        self, state: Operand, shape: Sequence[int], dtype: str | type | DType = "uint32", algorithm: str = "threefry"
    ) -> tuple[Value, Value]:
        """The next state of a random number generator, and integers of random bits.

        Args:
            state: A vector of uint64: the key, and the counter. A counter has one element; for `philox` it may have
                two, the least significant one first; if it has one, the other one is the key.
            shape: Shape of the result.
            dtype: Its element type, an integer.
            algorithm: `threefry` or `philox`.
        """
        old = self._value("random_bits", state)
        extents, to = self._shape("random_bits", shape), self._dtype("random_bits", dtype)
        if algorithm not in _ALGORITHMS:
            self._fail("random_bits", f"{algorithm!r} is not one of {', '.join(_ALGORITHMS)}")
        lengths = (2,) if algorithm == "threefry" else (2, 3)
        if old.dtype != _UINT64 or old.rank != 1 or old.shape[0] not in lengths:
            expected = f"{' or '.join(map(str, lengths))} elements of uint64"
            self._fail("random_bits", f"the state is {old!r}: {algorithm} takes {expected}")
        if to == BOOL or is_float(to):
            self._fail("random_bits", f"bits are integers, not {to.name}: convert or bitcast them")
        if 0 in extents:
            return old, self._empty(extents, to)
        generate = self._threefry if algorithm == "threefry" else self._philox
        counter, bits = generate(self._halves(old[0]), old[1:], extents, wide=to.itemsize == 8)
        return self.concatenate([old[:1], counter]), self.convert(bits, to)

    # Threefry --------------------------------------------------------------------------------------------------

    def _threefry(
        self, key: tuple[Value, Value], counter: Value, shape: tuple[int, ...], *, wide: bool
    ) -> tuple[Value, Value]:
        """The counter after the bits, and the bits."""
        if wide:
            low, high = self._threefry_block(key, self._halves(counter + self._numbered(shape)))
            return counter + math.prod(shape), self._joined(low, high)
        split = _split_dimension(shape)
        half = tuple(-(-e // 2) if d == split else e for d, e in enumerate(shape)) or (1,)
        pair = self._threefry_block(key, self._halves(counter + self._numbered(half)))
        bits = self.stack(pair, split + 1)
        whole = self.reshape(bits, tuple(2 * e if d == split else e for d, e in enumerate(half)))
        return counter + math.prod(half), self._first(whole, shape)

    def _numbered(self, shape: tuple[int, ...]) -> Value:
        """The number of each element in row-major order."""
        return self.reshape(self.iota((math.prod(shape),), 0, _UINT64), shape)

    def _threefry_block(self, key: tuple[Value, Value], counter: tuple[Value, Value]) -> tuple[Value, Value]:
        keys = (*key, key[0] ^ key[1] ^ _PARITY)
        x, y = counter[0] + keys[0], counter[1] + keys[1]
        for group in range(5):
            for distance in _ROTATIONS[group % 2]:
                x = x + y
                y = ((y << distance) | (y >> (32 - distance))) ^ x
            x = x + keys[(group + 1) % 3]
            y = y + keys[(group + 2) % 3] + (group + 1)
        return x, y

    # Philox ----------------------------------------------------------------------------------------------------

    def _philox(
        self, key: tuple[Value, Value], counter: Value, shape: tuple[int, ...], *, wide: bool
    ) -> tuple[Value, Value]:
        """The counter after the bits, and the bits."""
        count = math.prod(shape)
        blocks = -(-count // (2 if wide else 4))
        low = counter[:1] + self.iota((blocks,), 0, _UINT64)
        carried = self.convert(low < counter[:1], _UINT64)
        high = carried + (counter[1:] if counter.shape[0] == 2 else self._joined(*key))
        numbers = list(self._philox_block(key, [*self._halves(low), *self._halves(high)]))
        if wide:
            numbers = [self._joined(*numbers[:2]), self._joined(*numbers[2:])]
        flat = self.reshape(self.stack(numbers, 1), (blocks * len(numbers),))
        following = counter[:1] + blocks
        parts = [following]
        if counter.shape[0] == 2:
            parts.append(counter[1:] + self.convert(following < counter[:1], _UINT64))
        return self.concatenate(parts), self.reshape(flat[:count], shape)

    def _philox_block(self, key: tuple[Value, Value], counter: Sequence[Value]) -> tuple[Value, ...]:
        a, b, c, d = counter
        first, second = key
        for number in range(10):
            if number:
                first, second = first + _INCREMENTS[0], second + _INCREMENTS[1]
            low_a, high_a = self._halves(self.convert(a, _UINT64) * _MULTIPLIERS[0])
            low_c, high_c = self._halves(self.convert(c, _UINT64) * _MULTIPLIERS[1])
            a, b, c, d = high_c ^ b ^ first, low_c, high_a ^ d ^ second, low_a
        return a, b, c, d

    # Words -----------------------------------------------------------------------------------------------------

    def _halves(self, x: Value) -> tuple[Value, Value]:
        """The low and the high 32 bits."""
        return self.convert(x, _UINT32), self.convert(x >> 32, _UINT32)

    def _joined(self, low: Value, high: Value) -> Value:
        """64 bits of two halves."""
        return self.convert(low, _UINT64) | (self.convert(high, _UINT64) << 32)

    def _first(self, x: Value, shape: tuple[int, ...]) -> Value:
        """The first positions of each dimension; a scalar is the only one."""
        return self.slice(x, (0,) * x.rank, shape) if shape else self.reshape(x[0], ())


def _split_dimension(shape: tuple[int, ...]) -> int:
    """The dimension along which the two numbers of a counter are neighbours: the first even one, else the longest."""
    even = [d for d, extent in enumerate(shape) if extent % 2 == 0]
    return even[0] if even else max(range(len(shape)), key=lambda d: shape[d], default=0)
