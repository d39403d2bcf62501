"""Forms of functions: a product and what is done with it, sums in a loop, moves. All have a meaning in numpy."""

from __future__ import annotations

import math

from tlx.fuzz.model import Place, reach
from tlx.fuzz.sources import Sources
from tlx.fuzz.writer import Token, Vector
from tlx.ir.types import BFLOAT, HALF, Type
from tlx.types import TensorType


class Forms(Sources):
    """Makes one function; the public methods are the forms."""

    def product(self) -> None:
        """A product of tensors from anywhere, and what becomes of it."""
        lhs, rhs, element = self._family()
        batch, m, n, k = self.product_extents()
        if not batch and self.chance(0.5):
            self._put(self._mma(self._kind(element), (m, n, k), (lhs, rhs, element)))
            return
        a = self._token((*batch, m, k), lhs, bare=lhs == rhs == element)
        b = self._token((*batch, k, n), rhs, bare=lhs == rhs)
        self._put(self.operation("matmul", [a, b], self._result("matmul", (a, b), element)))

    def update(self) -> None:
        """`C += A @ B`, in place."""
        lhs, rhs, element = self._family()
        _, m, n, k = self.product_extents(batched=False)
        type_ = self.type_of((m, n), element, row_major=self.chance(0.8))
        pitches = self.pitches(type_, overlap=False)
        place = self.place(type_, pitches)
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
        batch, m, n, k = self.product_extents()
        a = self._token((*batch, m, k), lhs)
        b = self._token((*batch, k, n), rhs)
        middle = self.operation("matmul", [a, b], self._result("matmul", (a, b), element))
        if self.chance(0.3):
            self._put(middle)
        wide = self._wider(element)
        token = self.typeinfo(middle, middle.type)
        width = self.limited(math.prod(batch) * m * n)
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
        _, m, n, k = self.product_extents(batched=False)
        rounds = self.random.randint(1, 4)
        type_ = self._sum_type((m, n), element)
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

    def _sum_type(self, extents: tuple[int, int], element: Type) -> TensorType:
        """The type of a sum, which may have padding."""
        if self.chance(0.3):
            return self.type_of(extents, element, row_major=True)
        return TensorType.dense(element, extents)

    def batch(self) -> None:
        """A loop of products on parts of arrays."""
        lhs, rhs, element = self._family()
        _, m, n, k = self.product_extents(batched=False)
        rounds = self.random.randint(1, 3)
        with self.loop(rounds):
            a = self._blocks((m, k), lhs, rounds)
            b = self._blocks((k, n), rhs, rounds)
            vector = self.operation("matmul", [a, b], self._result("matmul", (a, b), element))
            token = self.typeinfo(vector, vector.type)
            pitches = self.pitches(vector.type, overlap=False)
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

    def elements(self) -> None:
        """Element by element, and reductions, of a tensor."""
        element = self.random.choice(self.profile.families)[0]
        extents = self._some_extents(self.random.choice([2, 2, 1, 3]), self.profile.room // 4)
        token = self._token(extents, element)
        vector = self.operation(self.random.choice(["relu", "tovector"]), [token], token.type)
        for _ in range(self.random.randint(1, 3)):
            vector = self._element_step(vector)
        self._put(vector)

    def _element_step(self, vector: Vector) -> Vector:
        kind = self.random.choice(["sum", "relu", "sum", "reduce", "broadcast"])
        if kind == "sum":
            return self.sum(vector, self._vector(vector.type))
        token = self.typeinfo(vector, vector.type)
        if kind == "reduce":
            return self._reduced(token)
        if kind == "broadcast" and vector.type.is_row_major and not vector.type.is_padded:
            return self.sum(vector, self._row(vector.type))
        return self.operation("relu", [token], token.type)

    def _reduced(self, token: Token) -> Vector:
        """Some whole dimensions of a tensor, reduced; sums that would be rounded are none."""
        extents, element = token.type.extents, token.type.element
        window = [extent if self.chance(0.5) else 1 for extent in extents]
        left = TensorType.dense(element, [e // w for e, w in zip(extents, window, strict=True)])
        name = self.random.choice(["max", "min"] if element in (HALF, BFLOAT) else ["add", "max", "min"])
        return self.operation(f"reduce.{name}", [token], left, [tuple(window), (1,) * len(extents)])

    def _row(self, type_: TensorType) -> Vector:
        """A row for every row."""
        row = self._token(type_.shape[-1:], type_.element)
        return self.operation("broadcast", [row], type_, [type_.shape, (type_.rank - 1,)])

    def copy(self) -> None:
        """From one place to another."""
        element = self.random.choice(self.profile.families)[0]
        extents = self._some_extents(self.random.choice([1, 2, 2, 3, 4]), self.profile.room // 4)
        token = self._token(extents, element, transposed=False)
        if self.chance(0.4):
            self._put(self.operation("tovector", [token], token.type))
        else:
            self._put_token(token)
