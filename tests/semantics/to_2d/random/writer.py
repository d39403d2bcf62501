"""Spelling of random tensor programs: names, pointers of either kind, tokens, and the memory they may use."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I8, I16, I32, I64, FloatType, Type

ROOM = 1600
"""Elements of each array."""
DTYPES: dict[Type, np.dtype[Any]] = {
    I8: np.dtype(np.int8),
    I16: np.dtype(np.int16),
    I32: np.dtype(np.int32),
    I64: np.dtype(np.int64),
    HALF: np.dtype(np.float16),
    BFLOAT: np.dtype(ml_dtypes.bfloat16),
    FLOAT: np.dtype(np.float32),
    DOUBLE: np.dtype(np.float64),
}
WIDER: dict[Type, tuple[Type, ...]] = {
    I8: (I8, I16, I32),
    I16: (I16, I32),
    I32: (I32, I64),
    I64: (I64,),
    HALF: (HALF, FLOAT),
    BFLOAT: (BFLOAT, FLOAT),
    FLOAT: (FLOAT, DOUBLE),
    DOUBLE: (DOUBLE,),
}


@dataclass(frozen=True)
class Memory:
    """A pointer that the program may use: its name, element type and number of elements."""

    name: str
    element: Type
    count: int
    writable: bool = True


@dataclass
class Scope:
    """The values defined at a point of the program."""

    vectors: list[tuple[str, TensorType]] = field(default_factory=list[tuple[str, TensorType]])
    tokens: list[tuple[str, TensorType]] = field(default_factory=list[tuple[str, TensorType]])
    memories: list[Memory] = field(default_factory=list[Memory])

    def copy(self) -> Scope:
        return Scope(list(self.vectors), list(self.tokens), list(self.memories))


def ints(numbers: Sequence[int]) -> str:
    return f"<{len(numbers)} x i32> <{', '.join(f'i32 {n}' for n in numbers)}>"


class Writer:
    """Writes the instructions of one function.

    Attributes:
        random: Source of all choices.
        typed: Whether pointers are spelled `T*`.
        lines: The body so far.
        label: The block that is being written.
        scope: What may be used here.
    """

    def __init__(self, seed: int, *, typed: bool) -> None:
        self.random = random.Random(seed)
        self.typed = typed
        self.lines: list[str] = []
        self.number = 0
        self.label = "entry"
        self.scope = Scope()
        self.padded = True

    def pick(self, choices: Sequence[str]) -> str:
        return self.random.choice(list(choices))

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def name(self, stem: str) -> str:
        self.number += 1
        return f"%{stem}{self.number}"

    def emit(self, line: str) -> None:
        self.lines.append(f"  {line}")

    def pointer(self, pointee: object) -> str:
        return f"{pointee}*" if self.typed else "ptr"

    def at(self, memory: Memory, offset: int) -> str:
        if offset == 0:
            return memory.name
        name = self.name("p")
        pointer = f"{self.pointer(memory.element)} {memory.name}"
        self.emit(f"{name} = getelementptr inbounds {memory.element}, {pointer}, i64 {offset}")
        return name

    def cast(self, name: str, source: Type, target: Type) -> str:
        if not self.typed or source == target:
            return name
        cast = self.name("q")
        self.emit(f"{cast} = bitcast {source}* {name} to {target}*")
        return cast

    def typed_load_pointer(self, element: Type, pointer: str) -> str:
        """A pointer operand with its element type, which `i8*` lacks."""
        attribute = f"elementtype({element}) " if not self.typed or element == I8 else ""
        return f"{self.pointer(element)} {attribute}{pointer}"

    def vector_pointer(self, memory: Memory, offset: int, count: int) -> str:
        """`ptr %p`, or a bitcast to `<E x T>*`, with its type."""
        name = self.at(memory, offset)
        if not self.typed:
            return f"ptr {name}"
        cast = self.name("vp")
        type_ = f"<{count} x {memory.element}>"
        self.emit(f"{cast} = bitcast {memory.element}* {name} to {type_}*")
        return f"{type_}* {cast}"

    def block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.label = label

    def typeinfo(self, value: str, type_: TensorType) -> str:
        name = self.name("t")
        dims = f"{ints(type_.shape)}, {ints(type_.layout)}, {ints(type_.padding)}"
        self.emit(f"{name} = call token @llvm.tensor.typeinfo({type_.vector} {value}, {dims})")
        self.scope.tokens.append((name, type_))
        return name

    def tensor_type(self, element: Type, extents: Sequence[int]) -> TensorType:
        """A type with these logical extents, any layout and padding."""
        rank = len(extents)
        layout = list(range(rank))
        if self.chance(0.6):
            self.random.shuffle(layout)
        padding = [self.random.choice([0, 0, 0, 1, 2]) if self.padded else 0 for _ in range(rank)]
        shape = [extents[d] + p for d, p in zip(layout, padding, strict=True)]
        return TensorType(element, tuple(shape), tuple(layout), tuple(padding))

    padded = True

    def pointer_typeinfo(self, memory: Memory, type_: TensorType) -> str:
        offset = self.random.randint(0, memory.count - type_.count)
        pointer = self.vector_pointer(memory, offset, type_.count)
        if not self.typed:
            pointer = f"ptr elementtype({type_.vector}) {pointer.split()[-1]}"
        name = self.name("t")
        dims = f"{ints(type_.shape)}, {ints(type_.layout)}, {ints(type_.padding)}"
        self.emit(f"{name} = call token @llvm.tensor.typeinfo({pointer}, {dims})")
        self.scope.tokens.append((name, type_))
        return name

    def pitches(self, type_: TensorType, room: int, *, load: bool) -> tuple[list[int], int]:
        """Pitches that fit into `room` elements, and the reach of the tensor with them."""
        for _ in range(4):
            pitches = [0]
            for size in type_.shape[1:]:
                low = max(1, size - 1) if load else size
                pitches.append(self.random.choice([0, 0, self.random.randint(low, size + 3)]))
            reach = 1 + sum((e - 1) * s for e, s in zip(type_.data_shape, type_.strides(pitches), strict=True))
            if reach <= room:
                return pitches, reach
        return [0] * type_.rank, type_.count

    def load(self, memory: Memory, type_: TensorType) -> str:
        pitches, reach = self.pitches(type_, memory.count, load=True)
        pointer = self.at(memory, self.random.randint(0, memory.count - reach))
        spelled = self.typed_load_pointer(memory.element, pointer)
        name = self.name("t")
        dims = f"{ints(type_.shape)}, {ints(type_.layout)}, {ints(type_.padding)}, {ints(pitches)}"
        self.emit(f"{name} = call token @llvm.tensor.load({spelled}, {dims})")
        self.scope.tokens.append((name, type_))
        return name

    def operation(self, name: str, operands: str, result: TensorType) -> str:
        value = self.name("r")
        self.emit(f"{value} = call {result.vector} @llvm.tensor.{name}({operands})")
        self.scope.vectors.append((value, result))
        return value

    def target(self, element: Type, count: int) -> Memory | None:
        fitting = [m for m in self.scope.memories if m.element == element and m.count >= count and m.writable]
        return self.random.choice(fitting) if fitting else None

    def poke(self) -> None:
        """A call that writes memory."""
        memory = self.random.choice(self.scope.memories)
        pointer = self.at(memory, self.random.randint(0, min(memory.count - 1, 60)))
        self.emit(f"call void @poke({self.pointer(I8)} {self.cast(pointer, memory.element, I8)})")

    def leak(self) -> None:
        """Let an address escape, or load one that has escaped."""
        memory = self.random.choice(self.scope.memories)
        byte = self.pointer(I8)
        slot = f"{byte}* @slot" if self.typed else "ptr @slot"
        pointer = self.cast(memory.name, memory.element, I8)
        self.emit(f"store {byte} {pointer}, {slot}")
        if self.chance(0.5):
            loaded = self.name("leaked")
            self.emit(f"{loaded} = load {byte}, {slot}")
            name = self.cast(loaded, I8, memory.element)
            self.scope.memories.append(Memory(name, memory.element, memory.count))

    def touch(self) -> None:
        self.emit("call void @touch()")

    def scalar_store(self) -> None:
        memory = self.random.choice(self.scope.memories)
        pointer = self.at(memory, self.random.randint(0, min(memory.count - 1, 60)))
        number = "1.0" if isinstance(memory.element, FloatType) else "1"
        self.emit(f"store {memory.element} {number}, {self.pointer(memory.element)} {pointer}, align 1")
