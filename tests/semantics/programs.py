"""Random tensor programs, each with what it means: the seed decides everything.

A program is a module of several functions on arrays. The functions are of a few forms (a product and what is done with
it, sums in a loop, products in a loop, transposes, copies); types, extents, layouts, paddings, pitches, where tensors
come from and go to, and spellings are drawn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tests.semantics.model import LEVELS, Buffer, InexactError, Place, State, Step, reach, window
from tests.semantics.writer import Token, Vector, Writer
from tlx.intrinsics import lookup
from tlx.ir.canonical import canonicalise
from tlx.ir.reader import parse
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I8, I16, I32, I64, FloatType, Type
from tlx.numpy_types import Array
from tlx.types import TensorType

Family = tuple[Type, Type, Type]
FAMILIES: Final[tuple[Family, ...]] = (
    (I8, I8, I8),
    (I8, I8, I16),
    (I8, I8, I32),
    (I8, I8, I32),
    (I8, I8, I64),
    (I16, I16, I16),
    (I16, I16, I32),
    (I16, I16, I64),
    (I32, I32, I32),
    (I32, I32, I64),
    (I64, I64, I64),
    (HALF, HALF, HALF),
    (HALF, HALF, FLOAT),
    (HALF, HALF, DOUBLE),
    (BFLOAT, BFLOAT, BFLOAT),
    (BFLOAT, BFLOAT, FLOAT),
    (BFLOAT, BFLOAT, FLOAT),
    (BFLOAT, BFLOAT, DOUBLE),
    (FLOAT, FLOAT, FLOAT),
    (FLOAT, FLOAT, FLOAT),
    (FLOAT, FLOAT, DOUBLE),
    (DOUBLE, DOUBLE, DOUBLE),
)
"""Element types of lhs, rhs and result."""
MIXED: Final[tuple[Family, ...]] = (
    (I8, I16, I32),
    (I16, I8, I16),
    (I8, I32, I64),
    (I64, I8, I64),
    (HALF, BFLOAT, FLOAT),
    (BFLOAT, FLOAT, FLOAT),
    (FLOAT, HALF, DOUBLE),
)
TILED: Final[tuple[Family, ...]] = (
    (I8, I8, I32),
    (I8, I8, I32),
    (I8, I8, I8),
    (I8, I8, I16),
    (I8, I8, I64),
    (BFLOAT, BFLOAT, FLOAT),
    (BFLOAT, BFLOAT, FLOAT),
    (BFLOAT, BFLOAT, BFLOAT),
    (BFLOAT, BFLOAT, DOUBLE),
)
"""Those that AMX multiplies."""


@dataclass(frozen=True)
class Profile:
    """What programs may contain.

    Attributes:
        extents: Rows, columns and inner extents of products.
        work: Most multiplications of one product.
        room: Most elements of one array.
        families: Element types of products.
        forms: Names of the forms, as often as they shall come.
        unit: Positions that pitches and padding come in.
        functions: Functions of a module.
        shapes: (M, N, K) of products; empty for any of the extents.
    """

    extents: tuple[int, ...]
    work: int
    room: int
    families: tuple[Family, ...]
    forms: tuple[str, ...]
    unit: int = 1
    functions: int = 6
    shapes: tuple[tuple[int, int, int], ...] = ()


_FORMS: Final = ("product",) * 5 + ("sums", "sums", "update", "chain", "batch", "transpose", "transpose", "copy")
_PRODUCTS: Final = ("product",) * 4 + ("sums", "update", "chain")
_SMALL: Final = (1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 16, 17, 23, 31, 32, 32, 33, 47, 48, 64, 64, 65, 97, 100)
_SHAPES: Final = (
    (1, 4096, 64),
    (4096, 1, 31),
    (1, 700, 4097),
    (9, 7, 4097),
    (100, 333, 700),
    (513, 129, 511),
    (1, 1, 1),
)
_LARGE: Final = (1, 16, 31, 64, 100, 127, 128, 129, 200, 211, 255, 256, 257, 320, 333, 400, 511, 512, 513, 600, 700)
_TILES: Final = (1, 3, 16, 17, 31, 32, 32, 33, 48, 63, 64, 64, 65, 96, 100, 128, 128, 130, 192, 256)

PROFILES: Final = {
    "small": Profile(_SMALL, 120_000, 8_000, (*FAMILIES * 3, *MIXED), _FORMS),
    "large": Profile((*_LARGE, 4096, 4097), 40_000_000, 2_000_000, (*FAMILIES * 3, *MIXED), _PRODUCTS, functions=3),
    "shapes": Profile((1, 2, 33), 0, 0, FAMILIES, ("product", "product", "update"), functions=4, shapes=_SHAPES),
    "loops": Profile(_SMALL, 60_000, 8_000, FAMILIES, ("sums", "sums", "batch", "product", "chain", "transpose")),
    "moves": Profile((*_SMALL, *_LARGE), 0, 400_000, FAMILIES, ("transpose", "transpose", "copy")),
    "tiles": Profile(_TILES, 600_000, 40_000, TILED, _PRODUCTS, unit=4),
    "tiles-any": Profile(_TILES, 2_000_000, 80_000, TILED, _PRODUCTS),
    "tiles-large": Profile((*_LARGE, *_TILES, 4096, 4097), 60_000_000, 2_000_000, TILED, _PRODUCTS, functions=3),
}
"""Profiles by name. `shapes` are the extreme ones.

In `tiles` rows are apart by multiples of 4 bytes wherever tiles are loaded from them in place: LLVM's scalarisation of
tile loads counts in words.
"""


@dataclass(frozen=True, eq=False)
class Function:
    """A function of a program.

    Attributes:
        name: Its name.
        form: What it was made as.
        text: Its definition, in the proposal's spelling.
        buffers: The arrays it takes, in order.
    """

    name: str
    form: str
    text: str
    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    seed: int

    def arguments(self) -> tuple[list[Array], list[Array]]:
        """Arrays for a call, and what they hold after it."""
        start = self.seed % 5
        for level in range(start, len(LEVELS)):
            try:
                return self._run(level)
            except InexactError:
                continue
        message = f"the sums of @{self.name} cannot be exact"
        raise AssertionError(message)

    def _run(self, level: int) -> tuple[list[Array], list[Array]]:
        generator = np.random.default_rng(self.seed)
        specials = bool(generator.random() < 0.15)
        before = [buffer.fill(generator, level, specials=specials) for buffer in self.buffers]
        after = [array.copy() for array in before]
        state = State({buffer.name: array for buffer, array in zip(self.buffers, after, strict=True)})
        with np.errstate(all="ignore"):
            for step in self.steps:
                step(state)
        return before, after


@dataclass(frozen=True, eq=False)
class Program:
    """A module of random functions.

    Attributes:
        text: The module.
        functions: Its functions.
        spelling: `proposal`, `suffixes` or `canonical`.
        typed: Whether pointers have types.
    """

    text: str
    functions: tuple[Function, ...]
    spelling: str
    typed: bool


def program(profile: str, seed: int, only: int | None = None) -> Program:
    """The program of a seed.

    Args:
        profile: Name of what it may contain.
        seed: Any number.
        only: Keep this one function.
    """
    chosen = PROFILES[profile]
    choose = random.Random(f"{profile} {seed}")
    spelling = choose.choice(["proposal", "suffixes", "canonical", "canonical"])
    typed = choose.random() < 0.25
    functions = [
        _function(chosen, f"{profile} {seed} {index}", f"f{index}", typed=typed, suffixes=spelling == "suffixes")
        for index in range(chosen.functions)
        if only in (None, index)
    ]
    text = "\n".join(function.text for function in functions)
    return Program(canonical(text) if spelling == "canonical" else text, tuple(functions), spelling, typed)


def canonical(text: str) -> str:
    """A module in the canonical spelling, with declarations."""
    module = parse(text)
    canonicalise(module)
    return str(module)


def _function(profile: Profile, seed: str, name: str, *, typed: bool, suffixes: bool) -> Function:
    maker = _Maker(profile, random.Random(seed), name, typed=typed, suffixes=suffixes)
    form = maker.random.choice(profile.forms)
    getattr(maker, form)()
    data = maker.random.randrange(1 << 32)
    return Function(name, form, maker.text, tuple(maker.buffers), tuple(maker.steps), data)


class _Maker(Writer):
    """Makes one function; the public methods are the forms."""

    def __init__(self, profile: Profile, choose: random.Random, name: str, *, typed: bool, suffixes: bool) -> None:
        super().__init__(choose, name, typed=typed, suffixes=suffixes)
        self.profile = profile

    # Forms -------------------------------------------------------------------------------------------------------

    def product(self) -> None:
        """A product of tensors from anywhere, and what becomes of it."""
        lhs, rhs, element = self._family()
        batch, m, n, k = self._extents()
        if not batch and self.chance(0.5):
            self._put(self._mma(self._kind(element), (m, n, k), (lhs, rhs, element)))
            return
        a = self._token((*batch, m, k), lhs, bare=lhs == rhs == element)
        b = self._token((*batch, k, n), rhs, bare=lhs == rhs)
        self._put(self.operation("matmul", [a, b], self._result("matmul", (a, b), element)))

    def update(self) -> None:
        """`C += A @ B`, in place."""
        lhs, rhs, element = self._family()
        _, m, n, k = self._extents(batched=False)
        type_ = self._type_of((m, n), element, row_major=self.chance(0.8))
        pitches = self._pitches(type_, overlap=False)
        place = self._place(type_, pitches)
        acc = self.load(place, type_, pitches)
        vector = self._mma(self._kind(element), (m, n, k), (lhs, rhs, element), acc)
        token = self.typeinfo(vector, vector.type)
        if type_.is_row_major:
            self.store(place, token, (0, pitches[1] or type_.shape[1]))
        else:
            self._put_token(token)

    def chain(self) -> None:
        """A product whose result is an operand of the next."""
        lhs, rhs, element = self._family()
        batch, m, n, k = self._extents()
        a = self._token((*batch, m, k), lhs)
        b = self._token((*batch, k, n), rhs)
        middle = self.operation("matmul", [a, b], self._result("matmul", (a, b), element))
        if self.chance(0.3):
            self._put(middle)
        wide = self._wider(element)
        token = self.typeinfo(middle, middle.type)
        width = self._limited(math.prod(batch) * m * n)
        if not batch and self.chance(0.4):
            other = self._token((width, m), element)
            last = self.operation("matmul", [other, token], self._result("matmul", (other, token), wide))
        else:
            other = self._token((*batch, n, width), element)
            last = self.operation("matmul", [token, other], self._result("matmul", (token, other), wide))
        self._put(last)

    def sums(self) -> None:
        """Products added up in a loop: a phi of the flattened vector, its typeinfo in the body."""
        lhs, rhs, element = self._family()
        _, m, n, k = self._extents(batched=False)
        rounds = self.random.randint(1, 4)
        type_ = TensorType.dense(element, (m, n))
        if self.chance(0.3):
            type_ = self._type_of((m, n), element, row_major=True)
        carried = self.carry(self._start(type_))
        kind = self._kind(element)
        after: Token | None = None
        with self.loop(rounds, [carried]):
            acc = self.typeinfo(carried.phi, type_)
            a = self._blocks((m, k), lhs, rounds, padded=not type_.is_padded)
            b = self._blocks((k, n), rhs, rounds, padded=not type_.is_padded)
            result = self.operation(kind, [acc, a, b], type_)
            carried.following.append(result)
            if self.chance(0.5):
                after = self.typeinfo(result, type_)
        if after is not None:
            self._put_token(after)
        if after is None or self.chance(0.2):
            self._put(result)

    def batch(self) -> None:
        """A loop of products on parts of arrays."""
        lhs, rhs, element = self._family()
        _, m, n, k = self._extents(batched=False)
        rounds = self.random.randint(1, 3)
        with self.loop(rounds):
            a = self._blocks((m, k), lhs, rounds)
            b = self._blocks((k, n), rhs, rounds)
            vector = self.operation("matmul", [a, b], self._result("matmul", (a, b), element))
            token = self.typeinfo(vector, vector.type)
            pitches = self._pitches(vector.type, overlap=False)
            size = reach(vector.type, pitches)
            self.store(Place(self.buffer(element, size * rounds), 0, size), token, pitches)

    def transpose(self) -> None:
        """Other orders of a tensor of any rank."""
        element = self.random.choice(self.profile.families)[0]
        rank = self.random.choice([1, 2, 2, 3, 3, 4, 5])
        extents = self._some_extents(rank, self.profile.room // 4)
        token = self._token(extents, element, transposed=False)
        vector = self._reordered(token)
        if self.chance(0.3):
            vector = self._reordered(self.typeinfo(vector, vector.type))
        self._put(vector)

    def copy(self) -> None:
        """From one place to another."""
        element = self.random.choice(self.profile.families)[0]
        extents = self._some_extents(self.random.choice([1, 2, 2, 3, 4]), self.profile.room // 4)
        token = self._token(extents, element, transposed=False)
        if self.chance(0.4):
            self._put(self.operation("tovector", [token], token.type))
        else:
            self._put_token(token)

    # Choices -----------------------------------------------------------------------------------------------------

    def _family(self) -> Family:
        return self.random.choice(self.profile.families)

    def _kind(self, element: Type) -> str:
        return "smma" if isinstance(element, FloatType) else self.random.choice(["umma", "smma", "usmma", "summa"])

    def _wider(self, element: Type) -> Type:
        """An element type that products of such elements may have."""
        return self.random.choice([to for a, b, to in FAMILIES if a == b == element])

    def _extents(self, *, batched: bool = True) -> tuple[tuple[int, ...], int, int, int]:
        """Batch, M, N and K of a product, within the profile's work and room."""
        if self.profile.shapes:
            return (), *self.random.choice(self.profile.shapes)
        while True:
            batch = self.random.choice([(), (), (), (2,), (3,), (1,), (2, 3), (3, 1)]) if batched else ()
            m, n, k = (self.random.choice(self.profile.extents) for _ in range(3))
            times = math.prod(batch)
            if times * m * n * k <= self.profile.work and times * max(m * k, k * n, m * n) <= self.profile.room:
                return batch, m, n, k

    def _limited(self, others: int) -> int:
        fitting = [e for e in self.profile.extents if e * others <= self.profile.work]
        return self.random.choice(fitting or [1])

    def _some_extents(self, rank: int, most: int) -> tuple[int, ...]:
        extents: list[int] = []
        for _ in range(rank):
            rest = most // math.prod(extents)
            extents.append(self.random.choice([e for e in self.profile.extents if e <= max(1, rest)]))
        self.random.shuffle(extents)
        return tuple(extents)

    def _type_of(self, extents: Sequence[int], element: Type, *, row_major: bool = False) -> TensorType:
        """A type with these logical extents, of any layout and padding."""
        layout = list(range(len(extents)))
        if not row_major and self.chance(0.6):
            self.random.shuffle(layout)
        padding = [0] * len(extents)
        if self.chance(0.35):
            padding = [self.random.choice([0, 0, 1, 2, 5]) for _ in extents]
            padding[-1] = self.random.choice([0, 1, 2, 3]) * self.profile.unit
        shape = [extents[d] + p for d, p in zip(layout, padding, strict=True)]
        return TensorType(element, tuple(shape), tuple(layout), tuple(padding))

    def _pitches(self, type_: TensorType, *, overlap: bool) -> list[int]:
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

    def _result(self, name: str, tokens: Sequence[Token], element: Type) -> TensorType:
        """One of the results that the call may have and that its return type tells apart."""
        row = lookup(f"llvm.tensor.{name}")
        assert row is not None
        allowed = row.infer([token.type for token in tokens], [], element)
        counts = [type_.count for type_ in allowed]
        told = [t for i, t in enumerate(allowed) if i == 0 or counts.count(t.count) == 1]
        unit = self.profile.unit
        fitting = [t for i, t in enumerate(told) if i == 0 or not t.padding[-1] % unit]
        return self.random.choice([fitting[0], self.random.choice(fitting)])

    # Where tensors come from -------------------------------------------------------------------------------------

    def _place(self, type_: TensorType, pitches: Sequence[int], *, rounds: int = 1) -> Place:
        """A place in an array of its own, which ends with the tensor's last element."""
        size = reach(type_, pitches)
        if rounds == 1:
            start = self.random.choice([0, 0, 0, 1, 5])
            buffer = self.buffer(type_.element, start + size)
            window(buffer.data[start:], type_, pitches)[...] = True
            return Place(buffer, start)
        step = self.random.choice([size, max(1, size // 2), 1])
        buffer = self.buffer(type_.element, size + step * (rounds - 1))
        for index in range(rounds):
            window(buffer.data[index * step :], type_, pitches)[...] = True
        return Place(buffer, 0, step)

    def _blocks(self, extents: Sequence[int], element: Type, rounds: int, *, padded: bool = True) -> Token:
        """In a loop: another part of an array in each round."""
        type_ = self._type_of(extents, element)
        if not padded:
            type_ = TensorType(element, type_.data_shape, type_.layout, (0,) * type_.rank)
        pitches = self._pitches(type_, overlap=True)
        return self.load(self._place(type_, pitches, rounds=rounds), type_, pitches)

    def _token(self, extents: Sequence[int], element: Type, *, bare: bool = False, transposed: bool = True) -> Token:
        """A token of these logical extents, from anywhere."""
        type_ = self._type_of(extents, element)
        kind = self.random.choice(["load", "load", "load", "vector", "pointer", "transpose"])
        if kind == "vector":
            return self.typeinfo(self._vector(type_), type_)
        if kind == "pointer":
            return self.typeinfo_of_pointer(self._dense_place(type_), type_)
        if kind == "transpose" and transposed:
            return self._retyped(type_)
        pitches = self._pitches(type_, overlap=True)
        return self.load(self._place(type_, pitches), type_, pitches, bare=bare and self.chance(0.3))

    def _dense_place(self, type_: TensorType) -> Place:
        """A place for a flattened vector: it has its padding in memory."""
        start = self.random.choice([0, 0, 3])
        buffer = self.buffer(type_.element, start + type_.count)
        window(buffer.data[start:], type_, [0] * type_.rank)[...] = True
        return Place(buffer, start)

    def _vector(self, type_: TensorType) -> Vector:
        return self.load_vector(self._dense_place(type_), type_)

    def _start(self, type_: TensorType) -> Vector:
        """What a sum starts with."""
        return self.zeros(type_) if self.chance(0.5) else self._vector(type_)

    def _mma(self, kind: str, size: tuple[int, int, int], family: Family, acc: Token | None = None) -> Vector:
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

    def _retyped(self, type_: TensorType) -> Token:
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

    def _plain_token(self, type_: TensorType) -> Token:
        if self.chance(0.5):
            return self.typeinfo(self._vector(type_), type_)
        pitches = self._pitches(type_, overlap=False)
        return self.load(self._place(type_, pitches), type_, pitches)

    def _reordered(self, token: Token) -> Vector:
        type_ = token.type
        if type_.rank > 1 and self.chance(0.3):
            *outer, row, column = type_.layout
            return self.operation("transpose", [token], type_.transposed((*outer, column, row)))
        layout = tuple(self.random.sample(range(type_.rank), type_.rank))
        return self.operation("transpose", [token], type_.transposed(layout), [layout])

    # Where results go --------------------------------------------------------------------------------------------

    def _put(self, vector: Vector) -> None:
        """Store a result: as a tensor, as a vector, transposed, or in several ways."""
        ways = self.random.choice([("tensor",), ("tensor",), ("vector",), ("transposed",), ("tensor", "vector")])
        for way in ways:
            if way == "vector":
                self.store_vector(Place(self.buffer(vector.type.element, vector.type.count)), vector)
            elif way == "tensor":
                self._put_token(self.typeinfo(vector, self._seen(vector.type)))
            else:
                other = self._reordered(self.typeinfo(vector, vector.type))
                self._put_token(self.typeinfo(other, self._seen(other.type)))

    def _seen(self, type_: TensorType) -> TensorType:
        """The type of a vector, or the same shape with its dimensions named otherwise."""
        if self.chance(0.8):
            return type_
        layout = self.random.sample(range(type_.rank), type_.rank)
        return TensorType(type_.element, type_.shape, tuple(layout), type_.padding)

    def _put_token(self, token: Token) -> None:
        pitches = self._pitches(token.type, overlap=False)
        start = self.random.choice([0, 0, 2])
        buffer = self.buffer(token.type.element, start + reach(token.type, pitches))
        self.store(Place(buffer, start), token, pitches)
