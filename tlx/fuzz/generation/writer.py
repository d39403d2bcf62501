"""Writes tensor programs: each method adds a line of IR and a numpy step that models it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from tlx.fuzz.generation.model import (
    ArrayParameter,
    BufferAddress,
    CallingChoices,
    Choices,
    InitialContents,
    ModelStep,
    RunState,
    compute_operation,
    draw_calling,
    tensor_from_vector,
    tensor_view,
    vector_from_tensor,
)
from tlx.intrinsics import lookup
from tlx.intrinsics.numpy_types import dtype_of
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.prepared import CONSTANT
from tlx.ir.types import I8, FloatType, Type, VectorType, max_ssa_elements


@dataclass(frozen=True)
class TokenValue:
    """A token of the program: its name with `%`, and its tensor type."""

    name: str
    type: TensorType


@dataclass(frozen=True)
class Vector:
    """A flattened vector of the program.

    Attributes:
        name: Its name with `%`, or a constant.
        type: Its tensor type.
        spelled: Its LLVM type, if it is not that of `type`.
    """

    name: str
    type: TensorType
    spelled: str = ""

    @property
    def typed(self) -> str:
        """The vector as an operand, with its type."""
        return f"{self.spelled or self.type.vector} {self.name}"


@dataclass(frozen=True)
class LoopCarried:
    """A flattened vector that a loop carries: the phi, its initial value, and its next value (set in the body)."""

    phi: Vector
    start: Vector
    following: list[Vector]


class FunctionWriter:
    """Writes a function.

    Args:
        choose: Source of random choices.
        name: Name of the function.
        typed: Whether pointers have types.
        suffixes: Whether intrinsics have mangled suffixes.
    """

    def __init__(self, choose: Choices, name: str, *, typed: bool, suffixes: bool) -> None:
        self.random = choose
        self.name = name
        self.typed = typed
        self.suffixes = suffixes
        self.buffers: list[ArrayParameter] = []
        self.steps: list[ModelStep] = []
        self.calling = CallingChoices()
        self._definitions: list[str] = []
        self._parameters: list[str] = []
        self._lines: list[str] = []
        self._label = "entry"
        self._index = ""
        self._trip_count = 1
        self._names = 0

    @property
    def text(self) -> str:
        """The function's definition, preceded by those of the functions that only it calls."""
        body = "\n".join(self._lines)
        head = f"define {self.calling.prefix}void @{self.name}({self.calling.parameters(self._parameters)})"
        own = f"{head} {{\nentry:\n{body}\n  ret void\n}}\n"
        return "".join([*self._definitions, own])

    def draw_calling(self) -> None:
        """Draw how the function, which must be complete, is called."""
        self.calling = draw_calling(self.random, self.buffers, typed=self.typed)

    def draw_constants(self) -> None:
        """Draw which of the arrays that the function only reads are constant over calls."""
        if not self.chance(0.3):
            return
        words = list(self.calling.passing or [""] * len(self.buffers))
        for number, buffer in enumerate(self.buffers):
            if not words[number] and not buffer.written.any() and self.chance(0.7):
                words[number] = CONSTANT
        self.calling = replace(self.calling, passing=tuple(words))

    def define(self, result: object, parameters: Sequence[str], lines: Sequence[str], convention: str = "") -> str:
        """Add a function that only this one calls; returns its name."""
        name = f"{self.name}.{len(self._definitions)}"
        linkage = self.random.choice(["", "internal "])
        body = "".join(line + "\n" if line.endswith(":") else f"  {line}\n" for line in lines)
        spelled = f"{linkage}{convention} " if convention else linkage
        self._definitions.append(f"define {spelled}{result} @{name}({', '.join(parameters)}) {{\n{body}}}\n")
        return name

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random.chance(probability)

    def line(self, text: str) -> None:
        """Add a line of IR."""
        self._lines.append(f"  {text}")

    def fresh(self, stem: str) -> str:
        """A name that is not used yet, with `%`."""
        self._names += 1
        return f"%{stem}{self._names}"

    @property
    def label(self) -> str:
        """Name of the block that the next line goes to, without `%`."""
        return self._label

    def begin(self, label: str) -> None:
        """Begin a block."""
        self._lines.append(f"{label}:")
        self._label = label

    def deferred(self) -> Callable[..., None]:
        """A function that later adds lines at the current position."""
        at = len(self._lines)

        def add(*texts: str) -> None:
            self._lines[at:at] = [f"  {text}" for text in texts]

        return add

    # Memory ------------------------------------------------------------------------------------------------------

    def buffer(self, element: Type, count: int, contents: InitialContents | None = None) -> ArrayParameter:
        """Add an array parameter."""
        parameter = ArrayParameter(f"b{len(self.buffers)}", element, count, contents)
        self.buffers.append(parameter)
        attributes = " noalias" if self.chance(0.5) else ""
        self._parameters.append(f"{self._pointer_type(element)}{attributes} %{parameter.name}")
        return parameter

    def _pointer_type(self, element: object) -> str:
        return f"{element}*" if self.typed else "ptr"

    def _address(self, place: BufferAddress) -> str:
        """A pointer to an address, without its type."""
        if place.pointer:
            return f"%{place.pointer}"
        base = f"%{place.buffer.name}"
        if not place.start and not place.step:
            return base
        element, unit = place.buffer.element, 1
        if not self.typed and self.chance(0.25):
            element, unit = I8, dtype_of(element).itemsize
        offset = str(place.start * unit)
        if place.step:
            scaled, offset = self.fresh("s"), self.fresh("o")
            self.line(f"{scaled} = mul i64 {self._index}, {place.step * unit}")
            self.line(f"{offset} = add i64 {scaled}, {place.start * unit}")
        pointer = self.fresh("p")
        self.line(f"{pointer} = getelementptr {element}, {self._pointer_type(element)} {base}, i64 {offset}")
        return pointer

    def _tensor_pointer(self, place: BufferAddress, *, bare: bool) -> str:
        """A pointer operand with its element type; `bare` if the users of the token determine it."""
        element = place.buffer.element
        address = self._address(place)
        needed = not bare and (element == I8 or not self.typed)
        attribute = f"elementtype({element}) " if needed else ""
        return f"{self._pointer_type(element)} {attribute}{address}"

    def _vector_pointer(self, place: BufferAddress, type_: TensorType) -> str:
        address = self._address(place)
        if not self.typed:
            return f"ptr {address}"
        cast = self.fresh("c")
        self.line(f"{cast} = bitcast {type_.element}* {address} to {type_.vector}*")
        return f"{type_.vector}* {cast}"

    def _starts(self, place: BufferAddress) -> list[int]:
        """The position of an address in each iteration of the surrounding loop."""
        return [place.start + place.step * index for index in range(self._trip_count)]

    def _align(self, element: Type) -> str:
        return f"align {dtype_of(element).itemsize}" if self.chance(0.7) else "align 1"

    def _volatile(self, type_: TensorType) -> str:
        """Sometimes ` volatile`, for vectors that fit in registers: others are not lowered."""
        return " volatile" if type_.count <= max_ssa_elements(type_.element) and self.chance(0.1) else ""

    def load(
        self, place: BufferAddress, type_: TensorType, pitches: Sequence[int], *, bare: bool = False
    ) -> TokenValue:
        """`llvm.tensor.load`."""
        token = TokenValue(self.fresh("t"), type_)
        pointer = self._tensor_pointer(place, bare=bare)
        self.line(
            f"{token.name} = call token {self.callee('load')}({pointer}, {self._type(type_)}, {self.numbers(pitches)})"
        )
        pitches_copy = list(pitches)

        def step(state: RunState) -> None:
            state.tensors[token.name] = tensor_view(place.of(state), type_, pitches_copy).copy()

        self.steps.append(step)
        return token

    def store(self, place: BufferAddress, token: TokenValue, pitches: Sequence[int]) -> None:
        """`llvm.tensor.store`."""
        pointer = self._tensor_pointer(place, bare=self.chance(0.5))
        operands = [f"token {token.name}", self.numbers(pitches)]
        if self.chance(0.2):
            operands.reverse()
        self.line(f"call void {self.callee('store')}({pointer}, {', '.join(operands)})")
        pitches_copy = list(pitches)
        for start in self._starts(place):
            tensor_view(place.buffer.written[start:], token.type, pitches_copy)[...] = True

        def step(state: RunState) -> None:
            tensor_view(place.of(state), token.type, pitches_copy)[...] = state.tensors[token.name]

        self.steps.append(step)

    def load_vector(self, place: BufferAddress, type_: TensorType) -> Vector:
        """A plain load of a flattened vector."""
        vector = self.vector("v", type_)
        pointer = self._vector_pointer(place, type_)
        self.line(
            f"{vector.name} = load{self._volatile(type_)} {type_.vector}, {pointer}, {self._align(type_.element)}"
        )

        def step(state: RunState) -> None:
            state.vectors[vector.typed] = place.of(state)[: type_.count].copy()

        self.steps.append(step)
        return vector

    def store_vector(self, place: BufferAddress, vector: Vector) -> None:
        """A plain store of a flattened vector."""
        type_ = vector.type
        pointer = self._vector_pointer(place, type_)
        self.line(f"store{self._volatile(type_)} {vector.typed}, {pointer}, {self._align(type_.element)}")
        for start in self._starts(place):
            place.buffer.written[start : start + type_.count] = True

        def step(state: RunState) -> None:
            place.of(state)[: type_.count] = state.vectors[vector.typed]

        self.steps.append(step)

    # Tensors -----------------------------------------------------------------------------------------------------

    def typeinfo(self, vector: Vector, type_: TensorType) -> TokenValue:
        """A token for a flattened vector, by either of the intrinsic's names."""
        token = TokenValue(self.fresh("t"), type_)
        callee = "@llvm.vector.totensor" if self.chance(0.15) else self.callee("typeinfo")
        self.line(f"{token.name} = call token {callee}({vector.typed}, {self._type(type_)})")

        def step(state: RunState) -> None:
            state.tensors[token.name] = tensor_from_vector(state.vectors[vector.typed], type_)

        self.steps.append(step)
        return token

    def typeinfo_of_pointer(self, place: BufferAddress, type_: TensorType) -> TokenValue:
        """A token for a flattened tensor in memory."""
        token = TokenValue(self.fresh("t"), type_)
        pointer = self._vector_pointer(place, type_)
        attribute = "byval" if self.typed or self.chance(0.5) else "elementtype"
        kind, address = pointer.rsplit(" ", 1)
        operand = f"{kind} {attribute}({self.vector_type(type_)}) {address}"
        self.line(f"{token.name} = call token {self.callee('typeinfo')}({operand}, {self._type(type_)})")

        def step(state: RunState) -> None:
            state.tensors[token.name] = tensor_from_vector(place.of(state), type_)

        self.steps.append(step)
        return token

    def operation(
        self, name: str, tokens: Sequence[TokenValue], result: TensorType, dims_: Sequence[tuple[int, ...]] = ()
    ) -> Vector:
        """A call of any intrinsic from tokens and constant vectors to a flattened vector."""
        row = lookup(f"llvm.tensor.{name}")
        assert row is not None
        vector = self.vector("r", result)
        operands = [f"token {token.name}" for token in tokens]
        operands += [self.extents_or_order(name, at, numbers) for at, numbers in enumerate(dims_)]
        self.line(f"{vector.name} = call {self.vector_type(result)} {self.callee(name)}({', '.join(operands)})")
        names = [token.name for token in tokens]
        dims_copy = list(dims_)

        def step(state: RunState) -> None:
            arrays = [state.tensors[name] for name in names]
            state.vectors[vector.typed] = vector_from_tensor(
                compute_operation(row, arrays, dims_copy, result.element), result
            )

        self.steps.append(step)
        return vector

    def sum(self, one: Vector, other: Vector) -> Vector:
        """`fadd` or `add` of two vectors."""
        vector = self.vector("v", one.type)
        opcode = "fadd" if isinstance(one.type.element, FloatType) else "add"
        self.line(f"{vector.name} = {opcode} {one.typed}, {other.name}")

        def step(state: RunState) -> None:
            state.vectors[vector.typed] = state.vectors[one.typed] + state.vectors[other.typed]

        self.steps.append(step)
        return vector

    def zeros(self, type_: TensorType) -> Vector:
        """The constant `zeroinitializer`."""
        vector = Vector("zeroinitializer", type_)

        def step(state: RunState) -> None:
            state.vectors[vector.typed] = np.zeros(type_.count, dtype_of(type_.element))

        self.steps.append(step)
        return vector

    # Loops -------------------------------------------------------------------------------------------------------

    def carry(self, start: Vector) -> LoopCarried:
        """A vector that the next loop carries; append its next value to `following` in the loop."""
        return LoopCarried(self.vector("phi", start.type), start, [])

    @contextmanager
    def loop(self, count: int, carried: Sequence[LoopCarried] = ()) -> Generator[None]:
        """A loop with trip count `count` > 0; the lines written in the context are its body."""
        before, head, done = self._label, self.fresh("loop")[1:], self.fresh("done")[1:]
        index, outer_index, outer_steps = self.fresh("i"), self._index, self.steps
        self.line(f"br label %{head}")
        self.begin(head)
        at = len(self._lines)
        self._index, self.steps = index, []
        self._trip_count, outer_count = count, self._trip_count
        starts = _starting(carried)
        yield
        following = self.fresh("next")
        self.line(f"{following} = add i64 {index}, 1")
        again = self.fresh("again")
        self.line(f"{again} = icmp ult i64 {following}, {count}")
        self.line(f"br i1 {again}, label %{head}, label %{done}")
        phis = [f"  {index} = phi i64 [ 0, %{before} ], [ {following}, %{self._label} ]"]
        for c in carried:
            incoming = f"[ {c.start.name}, %{before} ], [ {c.following[0].name}, %{self._label} ]"
            phis.append(f"  {c.phi.name} = phi {self.vector_type(c.phi.type)} {incoming}")
        self._lines[at:at] = phis
        self.begin(done)
        body, self.steps = self.steps, outer_steps
        self._index, self._trip_count = outer_index, outer_count
        self.steps.extend([starts, _repeated(count, body, carried)])

    # Spelling ----------------------------------------------------------------------------------------------------

    def vector(self, stem: str, type_: TensorType) -> Vector:
        """A new vector."""
        return Vector(self.fresh(stem), type_, str(self.vector_type(type_)))

    def vector_type(self, type_: TensorType) -> VectorType:
        """The type of a tensor's flattened vector."""
        return type_.vector

    def numbers(self, numbers: Sequence[int], *, is_shape: bool = False) -> str:
        """Extents, padding or pitches as an operand."""
        del is_shape
        return dims_operand(numbers)

    def extents_or_order(self, name: str, at: int, numbers: Sequence[int]) -> str:
        """The vector operand at position `at` of an operation: extents, or dimension numbers."""
        del name, at
        return dims_operand(numbers)

    def callee(self, name: str) -> str:
        """A tensor intrinsic's name in this program's spelling, with `@`."""
        if name == "smma" and self.chance(0.3):
            name = "mma"
        suffix = self.random.choice(["", ".v2i32", ".p0.v2i32", ".v9f32.v3i32.v3i32"]) if self.suffixes else ""
        return f"@llvm.tensor.{name}{suffix}"

    def _type(self, type_: TensorType) -> str:
        shown = [self.numbers(type_.shape, is_shape=True), dims_operand(type_.layout), self.numbers(type_.padding)]
        if self.chance(0.3):
            shown = [_shortest(text, numbers) for text, numbers in zip(shown, _parts(type_), strict=True)]
        return ", ".join(shown)


def dims_operand(numbers: Sequence[int]) -> str:
    """Numbers as an operand, such as `<2 x i32> <i32 3, i32 4>`."""
    return f"<{len(numbers)} x i32> <{', '.join(f'i32 {n}' for n in numbers)}>"


def _parts(type_: TensorType) -> list[tuple[int, ...]]:
    return [type_.shape, type_.layout, type_.padding]


def _shortest(text: str, numbers: Sequence[int]) -> str:
    return f"<{len(numbers)} x i32> zeroinitializer" if not any(numbers) else text


def _starting(carried: Sequence[LoopCarried]) -> ModelStep:
    def step(state: RunState) -> None:
        for c in carried:
            state.vectors[c.phi.typed] = state.vectors[c.start.typed]

    return step


def _repeated(count: int, body: Sequence[ModelStep], carried: Sequence[LoopCarried]) -> ModelStep:
    def step(state: RunState) -> None:
        outer = state.index
        for state.index in range(count):
            for inner in body:
                inner(state)
            values = [state.vectors[c.following[0].typed] for c in carried]
            for c, value in zip(carried, values, strict=True):
                state.vectors[c.phi.typed] = value
        state.index = outer

    return step
