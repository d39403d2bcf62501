"""Tensors of random programs that are known at compile time: loads from constant globals.

@f0.w0 = private constant [6 x float] [float 1.0, float 0.0, ...]
%t = call token @llvm.tensor.load(ptr elementtype(float) @f0.w0, ...)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tlx.fuzz.model import State, reach, window
from tlx.fuzz.writer import Token, Writer
from tlx.ir.types import FloatType, IntType
from tlx.ir.values import const_float, const_int
from tlx.numpy_types import Array, dtype_of
from tlx.types import TensorType

MOST: Final = 4096
"""Elements of a constant that a program writes out."""
_SHARE: Final = 0.3  # of floats that are not zero: sums stay exact


class Constants(Writer):
    """A function in the making that may have constants."""

    def constant_load(self, type_: TensorType, pitches: Sequence[int]) -> Token:
        """`llvm.tensor.load` from a constant global, which may begin in front of the tensor."""
        start = self.random.choice([0, 0, 3])
        count = start + reach(type_, pitches)
        values = self._numbers(type_, count)
        name = self._global(type_, values)
        address = self._address_in(name, type_, count, start)
        token = Token(self.fresh("t"), type_)
        operands = f"{address}, {self._type(type_)}, {self.numbers(pitches)}"
        self.line(f"{token.name} = call token {self.callee('load')}({operands})")
        tensor = window(values[start:], type_, list(pitches)).copy()

        def step(state: State) -> None:
            state.tensors[token.name] = tensor

        self.steps.append(step)
        return token

    def _numbers(self, type_: TensorType, count: int) -> Array:
        """Any integers; floats that are -1, 0 or 1."""
        dtype = dtype_of(type_.element)
        generator = np.random.default_rng(self.random.randrange(1 << 32))
        if isinstance(type_.element, FloatType):
            signs = generator.choice([-1.0, 1.0], count)
            return np.where(generator.random(count) < _SHARE, signs, 0.0).astype(dtype)
        info = np.iinfo(dtype)
        return generator.integers(info.min, info.max, count, dtype, endpoint=True)

    def _global(self, type_: TensorType, values: Array) -> str:
        element = type_.element
        if isinstance(element, FloatType):
            spelled = [const_float(element, float(value)).typed for value in values]
        else:
            assert isinstance(element, IntType)
            spelled = [const_int(element, int(value)).typed for value in values]
        linkage = self.random.choice(["private ", "internal ", "private unnamed_addr ", ""])
        name = f"@{self.name}.w{len(self._definitions)}"
        self._definitions.append(f"{name} = {linkage}constant [{len(values)} x {element}] [{', '.join(spelled)}]\n")
        return name

    def _address_in(self, name: str, type_: TensorType, count: int, start: int) -> str:
        """The pointer operand for the tensor's first element."""
        element = type_.element
        if self.typed:
            array = f"[{count} x {element}]"
            address = f"getelementptr ({array}, {array}* {name}, i64 0, i64 {start})"
            return f"{element}* elementtype({element}) {address}"
        address = f"getelementptr ({element}, ptr {name}, i64 {start})" if start else name
        return f"ptr elementtype({element}) {address}"
