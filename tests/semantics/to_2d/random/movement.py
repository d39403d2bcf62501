"""Random programs of the operations that move elements, and of reductions: operands and results of every kind.

`Movement(kind, seed)` makes the text of a module with one function `@f`, which runs one operation (sometimes several of
a kind, one on another's result), and the numpy arrays to call it on. Operands are loads with pitches, flattened
vectors and pointers; results are stored as tensors with pitches, as flattened vectors, or both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from tests.semantics.to_2d.random.writer import DTYPES, Memory, Writer, ints
from tlx.intrinsics import lookup
from tlx.intrinsics.numpy_types import Array
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I8, I16, I32, I64, FloatType, Type

ELEMENTS: Final = (I8, I16, I32, I64, HALF, BFLOAT, FLOAT, DOUBLE)
_LIMIT: Final = 6000
"""Elements of a result, at most."""
Token = tuple[str, TensorType]


class Movement(Writer):
    """One random program.

    Attributes:
        text: The module.
        seed: What it was made from.
        kind: The operation: a name of the table, `broadcast.scalar` among them.
    """

    def __init__(self, kind: str, seed: int, *, typed: bool = False, large: bool = False) -> None:
        super().__init__(seed, typed=typed)
        self.kind, self.seed, self.large = kind, seed, large
        integers = kind in ("reduce.and", "reduce.or", "reduce.xor")
        self.element: Type = self.random.choice(ELEMENTS[:4] if integers else ELEMENTS)
        self.counts: list[int] = []
        for _ in range(self.random.choice([1, 1, 2])):
            self._operation()
        self.text = self._module()

    # Operands --------------------------------------------------------------------------------------------------

    def extents(self) -> tuple[int, ...]:
        """Logical extents of an operand."""
        rank = self.random.choice([1, 2, 2, 3, 3, 4])
        if self.large:
            sizes = [[1, 2, 3, 16, 33, 70], [1, 5, 17, 40], [2, 3, 18]]
        else:
            sizes = [[1, 2, 3, 5, 8, 21, 37], [1, 2, 3, 5, 9], [1, 2, 3, 4]]
        while True:
            extents = tuple(self.random.choice(sizes[min(rank - 1, 3) - 1]) for _ in range(rank))
            if math.prod(extents) <= _LIMIT:
                return extents

    def operand(self, extents: Sequence[int]) -> Token:
        """A token with these extents, in a new array."""
        type_ = self.tensor_type(self.element, extents)
        how = self.random.choice(["load", "load", "pointer", "vector"])
        if how == "load":
            return self.load(self.memory(type_, load=True), type_), type_
        if how == "pointer":
            return self.pointer_typeinfo(self.memory(type_), type_), type_
        vector = self.name("v")
        pointer = self.vector_pointer(self.memory(type_), 0, type_.count)
        self.emit(f"{vector} = load {type_.vector}, {pointer}, align 1")
        return self.typeinfo(vector, type_), type_

    def memory(self, type_: TensorType, *, load: bool = False) -> Memory:
        """A new array, large enough for pitches."""
        room = math.prod(size + 3 for size in type_.shape[1:]) * type_.shape[0] if load else type_.count
        self.counts.append(room + self.random.choice([0, 0, 5]))
        return Memory(f"%a{len(self.counts) - 1}", self.element, self.counts[-1])

    def scalar(self) -> str:
        """A number: a constant, or the function's parameter."""
        if self.chance(0.4):
            return "%s"
        if isinstance(self.element, FloatType):
            return self.pick(["0.0", "-0.0", "2.0", "1.5"])
        return self.pick(["0", "7", "-1"])

    # Operations ------------------------------------------------------------------------------------------------

    def _operation(self) -> None:
        family, _, name = self.kind.partition(".")
        forms: dict[str, Callable[[], tuple[list[Token], list[list[int]], str]]] = {
            "broadcast": self._scalar_broadcast if name == "scalar" else self._broadcast,
            "reshape": self._block if name == "block" else self._permute,
            "pad": self._pad,
            "concat": self._concat,
            "reduce": self._reduce,
        }
        tokens, dims, operands = forms[family]()
        row = lookup("llvm.tensor." + ("broadcast" if family == "broadcast" else self.kind))
        assert row is not None
        allowed = row.infer([t for _, t in tokens], [tuple(d) for d in dims], self.element)
        clear = [type_ for type_ in allowed if sum(other.count == type_.count for other in allowed) == 1]
        result = self.random.choice(clear or [allowed[0]])
        value = self.operation(row.name, operands, result)
        self._use(value, result)

    def _broadcast(self) -> tuple[list[Token], list[list[int]], str]:
        extents = [e if self.chance(0.7) else 1 for e in self.extents()]
        places = self.random.sample(range(4), min(4, len(extents)))
        rank = self.random.randint(max(places) + 1, 4)
        shape = [self.random.choice([1, 2, 3, 6]) for _ in range(rank)]
        for place, extent in zip(places, extents, strict=True):
            shape[place] = extent if extent > 1 or self.chance(0.4) else self.random.choice([2, 5, 19])
        token, type_ = self.operand(extents)
        return [(token, type_)], [shape, places], f"token {token}, {ints(shape)}, {ints(places)}"

    def _scalar_broadcast(self) -> tuple[list[Token], list[list[int]], str]:
        token, type_ = self.operand(self.extents())
        return [(token, type_)], [], f"token {token}, {self.element} {self.scalar()}"

    def _block(self) -> tuple[list[Token], list[list[int]], str]:
        extents = self.extents()
        dims = [self.random.randrange(len(extents)) for _ in range(self.random.choice([1, 1, 2, 3]))]
        sizes = [self.random.choice([1, 2, 2, 3, 4, 8]) for _ in dims]
        token, type_ = self.operand(extents)
        return [(token, type_)], [dims, sizes], f"token {token}, {ints(dims)}, {ints(sizes)}"

    def _permute(self) -> tuple[list[Token], list[list[int]], str]:
        extents = self.extents()
        order = self.random.sample(range(len(extents)), len(extents))
        shape = [extents[d] for d in order]
        if self.chance(0.7):
            shape = self._reshaped(shape)
        token, type_ = self.operand(extents)
        return [(token, type_)], [order, shape], f"token {token}, {ints(order)}, {ints(shape)}"

    def _reshaped(self, shape: list[int]) -> list[int]:
        """Other extents with the same product: prime factors are distributed anew."""
        factors: list[int] = []
        rest, prime = math.prod(shape), 2
        while rest > 1:
            if rest % prime == 0:
                factors.append(prime)
                rest //= prime
            else:
                prime += 1
        if self.chance(0.5):
            self.random.shuffle(factors)
        sizes = [1] * self.random.randint(1, 4)
        for factor in factors:
            sizes[self.random.randrange(len(sizes))] *= factor
        return sizes

    def _pad(self) -> tuple[list[Token], list[list[int]], str]:
        extents = self.extents()
        low, high, interior = (
            [self.random.choice(c) for _ in extents] for c in ([0, 0, 1, 3], [0, 0, 2], [0, 0, 1, 2])
        )
        inside = self.chance(0.4)
        for d, extent in enumerate(extents):
            whole = extent + (extent - 1) * interior[d] if inside else extent
            if self.chance(0.3) and whole > 1:
                low[d] = -self.random.randint(1, whole - 1)
            left = whole + min(low[d], 0)
            if self.chance(0.3) and left > 1:
                high[d] = -self.random.randint(1, left - 1)
        token, type_ = self.operand(extents)
        operands = f"token {token}, {ints(low)}, {ints(high)}, {self.element} {self.scalar()}"
        if not inside:
            return [(token, type_)], [low, high], operands
        return [(token, type_)], [low, high, interior], f"{operands}, {ints(interior)}"

    def _concat(self) -> tuple[list[Token], list[list[int]], str]:
        extents = list(self.extents())
        axis = self.random.randrange(len(extents))
        tokens: list[Token] = []
        for _ in range(self.random.randint(1, 3)):
            extents[axis] = self.random.choice([1, 2, 4, 7])
            tokens.append(self.operand(extents))
        if self.chance(0.2):
            tokens.append(tokens[0])
        return tokens, [[axis]], ", ".join([*(f"token {token}" for token, _ in tokens), f"i32 {axis}"])

    def _reduce(self) -> tuple[list[Token], list[list[int]], str]:
        extents = self.extents()
        if self.chance(0.3):
            extents = (*extents[:-1], self.random.choice([17, 40, 65]))
        window = [self.random.choice([1, 1, e, min(e, 2), self.random.randint(1, e)]) for e in extents]
        strides = [self.random.choice([1, 1, 2, 3]) for _ in extents]
        token, type_ = self.operand(extents)
        return [(token, type_)], [window, strides], f"token {token}, {ints(window)}, {ints(strides)}"

    # Results ---------------------------------------------------------------------------------------------------

    def _use(self, value: str, type_: TensorType) -> None:
        how = self.random.choice(["tensor", "tensor", "vector", "both", "seen"])
        if how in ("tensor", "both"):
            self._store(self.typeinfo(value, type_), type_)
        if how in ("vector", "both"):
            memory = self.memory(type_)
            self.emit(f"store {type_.vector} {value}, {self.vector_pointer(memory, 0, type_.count)}, align 1")
        if how == "seen":
            whole = TensorType.dense(self.element, type_.shape)
            token = self.typeinfo(value, whole)
            transposed = whole.transposed(self.random.sample(range(whole.rank), whole.rank))
            layout = ints(transposed.layout)
            moved = self.operation("transpose", f"token {token}, {layout}", transposed)
            self._store(self.typeinfo(moved, transposed), transposed)

    def _store(self, token: str, type_: TensorType) -> None:
        memory = self.memory(type_, load=True)
        pitches, _ = self.pitches(type_, memory.count, load=False)
        self.emit(
            f"call void @llvm.tensor.store({self.pointer(self.element)} {memory.name}, token {token}, {ints(pitches)})"
        )

    def _module(self) -> str:
        pointers = [f"{self.pointer(self.element)} noalias %a{index}" for index in range(len(self.counts))]
        arguments = ", ".join([*pointers, f"{self.element} %s"])
        body = "\n".join(self.lines)
        return f"define void @f({arguments}) {{\nentry:\n{body}\n  ret void\n}}\n"

    @cached_property
    def given(self) -> list[Array]:
        """Arguments: any integers, floats that are small integers, with NaNs for maximum and minimum.

        Factors are ones and minus ones, so that every result is exact.
        """
        generator = np.random.default_rng(self.seed)
        dtype = DTYPES[self.element]
        if not isinstance(self.element, FloatType):
            info = np.iinfo(dtype)
            return [generator.integers(info.min, info.max, count, dtype, endpoint=True) for count in self.counts]
        low, high = (-1, 2) if self.kind == "reduce.mul" else (-9, 10)
        arrays = [generator.integers(low, high, count).astype(dtype) for count in self.counts]
        if self.kind in ("reduce.max", "reduce.min"):
            for array in arrays:
                array[generator.random(len(array)) < 0.05] = np.nan
        return arrays

    @property
    def argument(self) -> Array:
        """The scalar argument."""
        return np.asarray(3, DTYPES[self.element])[()]
