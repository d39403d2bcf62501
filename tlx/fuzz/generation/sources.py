"""Where the operands of random programs come from (arguments, constant globals), and where results are stored.

@f0.w0 = private constant [6 x float] [float 1.0, float 0.0, ...]
%t = call token @llvm.tensor.load(ptr elementtype(float) @f0.w0, ...)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from tlx.fuzz.generation.model import BufferAddress, Choices, RunState, extent_in_memory, tensor_view
from tlx.fuzz.generation.profiles import FAMILIES, Family, Profile
from tlx.fuzz.generation.writer import FunctionWriter, TokenValue, Vector
from tlx.intrinsics import lookup
from tlx.intrinsics.numpy_types import Array, dtype_of
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import FloatType, IntType, Type
from tlx.ir.values import const_float, const_int

MOST_CONSTANT_ELEMENTS: Final = 4096
"""Maximum number of elements of a constant."""
_SHARE: Final = 0.3  # of nonzero floats, so that sums stay exact


class ConstantSources(FunctionWriter):
    """Writes a function that may load constants."""

    def constant_load(self, type_: TensorType, pitches: Sequence[int]) -> TokenValue:
        """`llvm.tensor.load` from a constant global, which may start before the tensor."""
        start = self.random.choice([0, 0, 3])
        count = start + extent_in_memory(type_, pitches)
        values = self._numbers(type_, count)
        name = self._global(type_, values)
        address = self._address_in(name, type_, count, start)
        token = TokenValue(self.fresh("t"), type_)
        operands = f"{address}, {self._type(type_)}, {self.numbers(pitches)}"
        self.line(f"{token.name} = call token {self.callee('load')}({operands})")
        tensor = tensor_view(values[start:], type_, list(pitches)).copy()

        def step(state: RunState) -> None:
            state.tensors[token.name] = tensor

        self.steps.append(step)
        return token

    def _numbers(self, type_: TensorType, count: int) -> Array:
        """Arbitrary integers; floats that are -1, 0 or 1."""
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


class Sources(ConstantSources):
    """Writes a function according to a profile.

    Args:
        profile: Profile of the program.
        choose: Source of random choices.
        name: Name of the function.
        typed: Whether pointers have types.
        suffixes: Whether intrinsics have mangled suffixes.
    """

    def __init__(self, profile: Profile, choose: Choices, name: str, *, typed: bool, suffixes: bool) -> None:
        super().__init__(choose, name, typed=typed, suffixes=suffixes)
        self.profile = profile

    # Choices -----------------------------------------------------------------------------------------------------

    def _family(self) -> Family:
        return self.random.choice(self.profile.families)

    def _kind(self, element: Type) -> str:
        return "smma" if isinstance(element, FloatType) else self.random.choice(["umma", "smma", "usmma", "summa"])

    def _wider(self, element: Type) -> Type:
        """A result type for products of such elements."""
        return self.random.choice([to for a, b, to in FAMILIES if a == b == element])

    def product_extents(self, *, batched: bool = True) -> tuple[tuple[int, ...], int, int, int]:
        """Batch, M, N and K of a product, within the profile's limits."""
        if self.profile.shapes:
            return (), *self.random.choice(self.profile.shapes)
        while True:
            batch = self.random.choice([(), (), (), (2,), (3,), (1,), (2, 3), (3, 1)]) if batched else ()
            m, n, k = (self.random.choice(self.profile.extents) for _ in range(3))
            times = math.prod(batch)
            if times * m * n * k <= self.profile.work and times * max(m * k, k * n, m * n) <= self.profile.room:
                return batch, m, n, k

    def limited(self, others: int) -> int:
        """An extent of a product within the profile's limit of work; `others` is the product of its other extents."""
        fitting = [e for e in self.profile.extents if e * others <= self.profile.work]
        return self.random.choice(fitting or [1])

    def _some_extents(self, rank: int, most: int) -> tuple[int, ...]:
        extents: list[int] = []
        for _ in range(rank):
            rest = most // math.prod(extents)
            extents.append(self.random.choice([e for e in self.profile.extents if e <= max(1, rest)]))
        self.random.shuffle(extents)
        return tuple(extents)

    def type_of(self, extents: Sequence[int], element: Type, *, row_major: bool = False) -> TensorType:
        """A type with these logical extents and random layout and padding."""
        layout = list(range(len(extents)))
        if not row_major and self.chance(0.6):
            self.random.shuffle(layout)
        padding = [0] * len(extents)
        if self.chance(0.35):
            padding = [self.random.choice([0, 0, 1, 2, 5]) for _ in extents]
            padding[-1] = self.random.choice([0, 1, 2, 3]) * self.profile.unit
        shape = [extents[d] + p for d, p in zip(layout, padding, strict=True)]
        return TensorType(element, tuple(shape), tuple(layout), tuple(padding))

    def pitches(self, type_: TensorType, *, overlap: bool) -> list[int]:
        """Pitches for a load or store; rows may overlap if `overlap` is set."""
        pitches = [self.random.choice([0, 0, type_.shape[0]])]
        unit = 1
        for k, size in enumerate(type_.shape[1:], 1):
            unit = self.profile.unit if k == type_.rank - 1 else 1
            wider = -(-size // unit) * unit + unit * self.random.choice([0, 1, 3, 8])
            narrower = max(unit, (size - 1) // unit * unit)
            choices = [0, 0, wider, wider]
            if unit > 1 and size % unit:
                choices = [wider]
            if overlap:
                choices.append(narrower)
            pitches.append(self.random.choice(choices))
        return pitches

    def _result(self, name: str, tokens: Sequence[TokenValue], element: Type) -> TensorType:
        """One of the possible result types of a call, among those that its return type distinguishes."""
        row = lookup(f"llvm.tensor.{name}")
        assert row is not None
        allowed = row.infer([token.type for token in tokens], [], element)
        counts = [type_.count for type_ in allowed]
        distinguishable = [t for i, t in enumerate(allowed) if i == 0 or counts.count(t.count) == 1]
        unit = self.profile.unit
        fitting = [t for i, t in enumerate(distinguishable) if i == 0 or not t.padding[-1] % unit]
        return self.random.choice([fitting[0], self.random.choice(fitting)])

    # Where tensors come from -------------------------------------------------------------------------------------

    def place(self, type_: TensorType, pitches: Sequence[int], *, iterations: int = 1) -> BufferAddress:
        """An address in a new array that ends with the tensor's last element."""
        size = extent_in_memory(type_, pitches)
        if iterations == 1:
            start = self.random.choice([0, 0, 0, 1, 5])
            buffer = self.buffer(type_.element, start + size)
            tensor_view(buffer.data[start:], type_, pitches)[...] = True
            return BufferAddress(buffer, start)
        step = self.random.choice([size, max(1, size // 2), 1])
        buffer = self.buffer(type_.element, size + step * (iterations - 1))
        for index in range(iterations):
            tensor_view(buffer.data[index * step :], type_, pitches)[...] = True
        return BufferAddress(buffer, 0, step)

    def _blocks(self, extents: Sequence[int], element: Type, iterations: int, *, padded: bool = True) -> TokenValue:
        """In a loop: load another part of an array in each iteration."""
        type_ = self.type_of(extents, element)
        if not padded:
            type_ = TensorType(element, type_.data_shape, type_.layout, (0,) * type_.rank)
        pitches = self.pitches(type_, overlap=True)
        return self.load(self.place(type_, pitches, iterations=iterations), type_, pitches)

    def _token(
        self, extents: Sequence[int], element: Type, *, bare: bool = False, transposed: bool = True
    ) -> TokenValue:
        """A token with these logical extents, from any source."""
        type_ = self.type_of(extents, element)
        kind = self.random.choice(["load", "load", "load", "vector", "pointer", "transpose"])
        if kind == "vector":
            return self.typeinfo(self._vector(type_), type_)
        if kind == "pointer":
            return self.typeinfo_of_pointer(self._dense_place(type_), type_)
        if kind == "transpose" and transposed:
            return self._retyped(type_)
        pitches = self.pitches(type_, overlap=True)
        if extent_in_memory(type_, pitches) <= MOST_CONSTANT_ELEMENTS and self.chance(0.15):
            return self.constant_load(type_, pitches)
        return self.load(self.place(type_, pitches), type_, pitches, bare=bare and self.chance(0.3))

    def _dense_place(self, type_: TensorType) -> BufferAddress:
        """An address for a flattened vector, whose padding is in memory."""
        start = self.random.choice([0, 0, 3])
        buffer = self.buffer(type_.element, start + type_.count)
        tensor_view(buffer.data[start:], type_, [0] * type_.rank)[...] = True
        return BufferAddress(buffer, start)

    def _vector(self, type_: TensorType) -> Vector:
        return self.load_vector(self._dense_place(type_), type_)

    def _start(self, type_: TensorType) -> Vector:
        """The initial value of a sum."""
        return self.zeros(type_) if self.chance(0.5) else self._vector(type_)

    def _mma(self, kind: str, size: tuple[int, int, int], family: Family, acc: TokenValue | None = None) -> Vector:
        m, n, k = size
        lhs, rhs, element = family
        if acc is None:
            zero = TensorType.dense(element, (m, n))
            acc = (
                self.typeinfo(self.zeros(zero), zero) if self.chance(0.15) else self._token((m, n), element, bare=True)
            )
        a = self._token((m, k), lhs, bare=lhs == rhs == element)
        tokens = [acc, a, self._token((k, n), rhs, bare=lhs == rhs)]
        return self.operation(kind, tokens, self._result(kind, tokens, element))

    def _retyped(self, type_: TensorType) -> TokenValue:
        """A transpose of another tensor whose flattened vector is read as one of `type_`."""
        order = self.random.sample(range(type_.rank), type_.rank)
        stored = TensorType(type_.element, type_.shape, tuple(order), type_.padding)
        if type_.rank > 1 and self.chance(0.3):
            *outer, row, column = order
            source = stored.transposed((*outer, column, row))
            vector = self.operation("transpose", [self._plain_token(source)], stored)
        else:
            source = stored.transposed(self.random.sample(range(type_.rank), type_.rank))
            vector = self.operation("transpose", [self._plain_token(source)], stored, [stored.layout])
        return self.typeinfo(vector, type_)

    def _plain_token(self, type_: TensorType) -> TokenValue:
        if self.chance(0.5):
            return self.typeinfo(self._vector(type_), type_)
        pitches = self.pitches(type_, overlap=False)
        return self.load(self.place(type_, pitches), type_, pitches)

    def _reordered(self, token: TokenValue) -> Vector:
        type_ = token.type
        if type_.rank > 1 and self.chance(0.3):
            *outer, row, column = type_.layout
            return self.operation("transpose", [token], type_.transposed((*outer, column, row)))
        layout = tuple(self.random.sample(range(type_.rank), type_.rank))
        return self.operation("transpose", [token], type_.transposed(layout), [layout])

    # Where results go --------------------------------------------------------------------------------------------

    def _put(self, vector: Vector) -> None:
        """Store a result: as a tensor, as a vector, transposed, or in several ways."""
        forms = self.random.choice([("tensor",), ("tensor",), ("vector",), ("transposed",), ("tensor", "vector")])
        for form in forms:
            if form == "vector":
                self.store_vector(BufferAddress(self.buffer(vector.type.element, vector.type.count)), vector)
            elif form == "tensor":
                self._put_token(self.typeinfo(vector, self._stored_type(vector.type)))
            else:
                other = self._reordered(self.typeinfo(vector, vector.type))
                self._put_token(self.typeinfo(other, self._stored_type(other.type)))

    def _stored_type(self, type_: TensorType) -> TensorType:
        """The type for storing a vector: its own, one with permuted dimensions, or another shape."""
        if self.chance(0.7):
            return type_
        if not type_.is_padded and self.chance(0.6):
            return self.reshaped(type_, padded=self.chance(0.3))
        layout = self.random.sample(range(type_.rank), type_.rank)
        return TensorType(type_.element, type_.shape, tuple(layout), type_.padding)

    def reshaped(self, type_: TensorType, *, padded: bool = False) -> TensorType:
        """Another type of any rank for the same flattened vector: its dimensions split and merge the old ones."""
        shape = self.factored(type_.count)
        if shape[-1] % self.profile.unit:
            return type_
        layout = self.random.sample(range(len(shape)), len(shape))
        padding = [self.random.choice([0, 1, min(3, size - 1)]) if padded and size > 1 else 0 for size in shape]
        padding[-1] = padding[-1] if self.profile.unit == 1 else 0
        return TensorType(type_.element, shape, tuple(layout), tuple(padding))

    def factored(self, count: int) -> tuple[int, ...]:
        """Random extents with this product."""
        shape: list[int] = []
        for _ in range(self.random.choice([0, 1, 2, 3])):
            divisors = [d for d in range(1, min(count, 70) + 1) if count % d == 0]
            shape.append(self.random.choice(divisors))
            count //= shape[-1]
        return (*shape, count)

    def _put_token(self, token: TokenValue) -> None:
        pitches = self.pitches(token.type, overlap=False)
        start = self.random.choice([0, 0, 2])
        buffer = self.buffer(token.type.element, start + extent_in_memory(token.type, pitches))
        self.store(BufferAddress(buffer, start), token, pitches)
