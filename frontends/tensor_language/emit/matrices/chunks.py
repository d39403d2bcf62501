"""Cooperative matrices that are only copied, such as from global to local memory: chunks of 16 bytes of a column.

    %a = cooperative_matrix_load %A[%x,%y] : coopmatrix<bf16x128x4,matrix_acc>
    cooperative_matrix_store %a, %tile[%c0,%y]            lane l of 32: 8 rows from 8 (l mod 16) on, of column l / 16
                                                          and the same rows of column 2 + l / 16

Each lane holds the bits of its chunks as vectors of i32. It loads and stores whole chunks if the matrix lies inside the
memory and its columns are aligned, which the kernel checks at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.frontends.tensor_language.emit.arithmetic.registers import gathered
from tlx.frontends.tensor_language.emit.emitter import Emitter, memory_type
from tlx.frontends.tensor_language.types import CoopMatrixType
from tlx.ir.types import I32, I64, VectorType
from tlx.ir.values import Value, const_int

CHUNK_BYTES: Final = 16
_WORDS: Final = CHUNK_BYTES // 4
_CHUNK: Final = VectorType(_WORDS, I32)


@dataclass(frozen=True, slots=True)
class ChunkLayout:
    """How the chunks of a matrix are distributed over the lanes of a subgroup.

    Attributes:
        type: Type of the matrix.
        subgroup_size: Lanes.
    """

    type: CoopMatrixType
    subgroup_size: int

    @property
    def elements(self) -> int:
        """Elements of a chunk."""
        return CHUNK_BYTES // self.type.component.size

    @property
    def chunks(self) -> int:
        """Chunks of a lane."""
        return self.type.rows * self.type.columns // (self.elements * self.subgroup_size)

    @property
    def words(self) -> VectorType:
        """The type of a lane's part."""
        return VectorType(self.chunks * _WORDS, I32)

    @property
    def is_exact(self) -> bool:
        """Whether the matrix consists of as many chunks in each lane."""
        type_ = self.type
        if type_.component.kind in ("complex", "bool") or type_.rows % self.elements:
            return False
        return type_.rows * type_.columns % (self.elements * self.subgroup_size) == 0

    def place(self, e: Emitter, chunk: int) -> tuple[Value, Value]:
        """Row and column of the first element of a chunk, i64."""
        assert e.item is not None
        b, of_column = e.b, const_int(I64, self.type.rows // self.elements)
        number = b.add(b.cast("zext", e.item.lane, I64), chunk * self.subgroup_size)
        return b.mul(b.binary("urem", number, of_column), self.elements), b.binary("udiv", number, of_column)


def load_chunks(e: Emitter, layout: ChunkLayout, address: Callable[[Value, Value], Value]) -> Value:
    """What a lane holds of a matrix in memory, whose columns are aligned.

    Args:
        e: The emitter.
        layout: The layout.
        address: Emits the address of an element, given its row and column.
    """
    chunks = [e.b.load(_CHUNK, address(*layout.place(e, chunk)), CHUNK_BYTES) for chunk in range(layout.chunks)]
    return gathered(e, [e.b.extract_element(chunk, word) for chunk in chunks for word in range(_WORDS)])


def store_chunks(e: Emitter, layout: ChunkLayout, words: Value, address: Callable[[Value, Value], Value]) -> None:
    """Store a lane's part to memory whose columns are aligned."""
    for number, chunk in enumerate(_chunks_of(e, layout, words)):
        e.b.store(chunk, address(*layout.place(e, number)), CHUNK_BYTES)


def elements_of(e: Emitter, layout: ChunkLayout, words: Value) -> list[Value]:
    """The elements that a lane holds, in the memory type."""
    vector = VectorType(layout.elements, memory_type(layout.type.component))
    vectors = [e.b.cast("bitcast", chunk, vector) for chunk in _chunks_of(e, layout, words)]
    return [e.b.extract_element(vector, k) for vector in vectors for k in range(layout.elements)]


def words_of(e: Emitter, layout: ChunkLayout, elements: Sequence[Value]) -> Value:
    """What a lane holds, given the elements in the memory type."""
    words: list[Value] = []
    for first in range(0, len(elements), layout.elements):
        chunk = e.b.cast("bitcast", gathered(e, elements[first : first + layout.elements]), _CHUNK)
        words += [e.b.extract_element(chunk, word) for word in range(_WORDS)]
    return gathered(e, words)


def _chunks_of(e: Emitter, layout: ChunkLayout, words: Value) -> list[Value]:
    scalars = [e.b.extract_element(words, number) for number in range(layout.chunks * _WORDS)]
    return [gathered(e, scalars[first : first + _WORDS]) for first in range(0, len(scalars), _WORDS)]
