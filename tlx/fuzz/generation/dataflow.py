"""Functions that are graphs of any operations: each statement adds a value.

%v1 = load <12 x float>, ptr %b0                       a leaf: plain loads, tensor loads, constants, scalars
%v2 = call <12 x float> @llvm.tensor.relu(token %t1)   an operation on earlier values, or on new leaves
%v3 = fadd <12 x float> %v2, %v1
...                                                    finally, all unused values are stored

Facts about a value that hold in every run decide which operations may use it, so that every program has one meaning:

- sums of floats need integers that are small enough to be added in any order without rounding;
- a value that is only accurate to some units in the last place is moved, multiplied and stored, but not compared;
- conversions to integers need numbers that fit, `nsw` needs sums that do.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tlx.fuzz.generation.forms import RunTimeForms
from tlx.fuzz.generation.model import LARGEST_EXACT, ArrayParameter, BufferAddress, Choices, Contents
from tlx.fuzz.generation.profiles import Profile
from tlx.fuzz.generation.writer import TokenValue, Vector, dims_operand
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I1, I8, I16, I32, I64, FloatType, IntType, Type

if TYPE_CHECKING:
    from tlx.fuzz.generation.model import RandomFunction

_MOST_ULPS: Final = 64


@dataclass(frozen=True)
class ValueFacts:
    """What is known of the elements of a vector.

    Attributes:
        low: No element is smaller (integers: signed; floats: where `integral`).
        high: No element is larger.
        integral: Floats: all are integers of that range, no infinity or NaN among them.
        ulps: Floats: units in the last place by which results may differ.
        zeros: Floats: whether the signs of zeros are determined.
        moderate: Floats: whether relative errors stay small in products with it: it is neither tiny nor huge.
    """

    low: int = 0
    high: int = 0
    integral: bool = False
    ulps: float = 0.0
    zeros: bool = True
    moderate: bool = False

    @property
    def bound(self) -> int:
        """No magnitude is larger."""
        return max(abs(self.low), abs(self.high))

    @property
    def is_exact(self) -> bool:
        """Whether results may not differ at all."""
        return not self.ulps

    @property
    def is_moderate(self) -> bool:
        """Whether it is moderate, or small integers."""
        return self.moderate or (self.integral and self.bound <= 4096)

    def with_zero(self) -> ValueFacts:
        """The same with zeros among the elements."""
        return replace(self, low=min(self.low, 0), high=max(self.high, 0))

    def joined(self, other: ValueFacts) -> ValueFacts:
        """What is known where an element is of one or the other."""
        return ValueFacts(
            min(self.low, other.low),
            max(self.high, other.high),
            self.integral and other.integral,
            max(self.ulps, other.ulps),
            self.zeros and other.zeros,
            self.moderate and other.moderate,
        )


def unknown_facts(type_: Type) -> ValueFacts:
    """Any number of a type."""
    if isinstance(type_, IntType):
        half = 1 << (type_.bits - 1)
        return ValueFacts(-half, half - 1)
    return ValueFacts()


def range_facts(type_: Type, low: int, high: int, *, zeros: bool = True) -> ValueFacts:
    """Integers of a range where they fit the type (floats: where all of them are numbers of it); else any number."""
    if isinstance(type_, FloatType):
        if max(abs(low), abs(high)) > LARGEST_EXACT[type_]:
            return ValueFacts(zeros=zeros)
        return ValueFacts(low, high, integral=True, zeros=zeros)
    whole = unknown_facts(type_)
    return ValueFacts(low, high) if whole.low <= low and high <= whole.high else whole


def result_range(name: str, x: ValueFacts, y: ValueFacts) -> tuple[int, int]:
    """Least and largest result of `add`, `sub` or `mul`."""
    if name == "add":
        return x.low + y.low, x.high + y.high
    if name == "sub":
        return x.low - y.high, x.high - y.low
    corners = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
    return min(corners), max(corners)


@dataclass(frozen=True)
class KnownValue:
    """A flattened vector of the program and what is known of it."""

    vector: Vector
    facts: ValueFacts
    token: TokenValue | None = None

    @property
    def type(self) -> TensorType:
        """What its elements mean."""
        return self.vector.type

    @property
    def element(self) -> Type:
        """Type of its elements."""
        return self.vector.type.element

    @property
    def is_float(self) -> bool:
        """Whether its elements are floating-point numbers."""
        return isinstance(self.element, FloatType)

    @property
    def is_mask(self) -> bool:
        """Whether its elements are of i1."""
        return self.element == I1

    @property
    def is_loose(self) -> bool:
        """Whether it can take no more errors."""
        return self.facts.ulps >= _MOST_ULPS


FLOATS: Final = (FLOAT, DOUBLE, HALF, BFLOAT)
INTEGERS: Final = (I32, I8, I16, I64)
ELEMENTS: Final = (FLOAT, I32, FLOAT, DOUBLE, I8, I16, I64, HALF, BFLOAT)
_BOUNDS: Final = (3, 1, 2, 8, 20)
_LONGEST_CONSTANT: Final = 48


class DataflowWriter(RunTimeForms):
    """Makes one function of any form.

    Args:
        profile: What it may contain.
        choose: Where choices come from.
        name: The function.
        typed: Whether pointers have types.
        suffixes: Whether names carry suffixes as prototypes mangle them.
        callees: Functions that it may call.
        operations: What statements of `dataflow` may be, as often as they shall come.

    Attributes:
        used: Operations that it was made of.
        declarations: Functions that it calls without defining them.
        is_in_loop: Whether the body of a loop is being made.
    """

    def __init__(
        self,
        profile: Profile,
        choose: Choices,
        name: str,
        *,
        typed: bool,
        suffixes: bool,
        callees: Sequence[RandomFunction],
        operations: Sequence[tuple[str, Operation]],
    ) -> None:
        super().__init__(profile, choose, name, typed=typed, suffixes=suffixes)
        self.callees = list(callees)
        self._operations = operations
        self.used: set[str] = set()
        self.declarations: set[str] = set()
        self._flows: list[KnownValue] = []
        self._operands: set[str] = set()
        self.is_in_loop = False

    # Statements --------------------------------------------------------------------------------------------------

    def dataflow(self) -> None:
        """Any operations on what the ones before gave."""
        self.statements(2, 9)
        self._store_the_rest()

    def statements(self, least: int, most: int) -> None:
        """Some statements."""
        for part in self.random.parts(least, most):
            with self._drawing_from(part):
                self._statement()

    @contextmanager
    def _drawing_from(self, part: Choices) -> Generator[None]:
        before, self.random = self.random, part
        try:
            yield
        finally:
            self.random = before

    def _statement(self) -> None:
        name, operation = self.random.choice(self._operations)
        made = operation(self)
        if made is not None:
            self.used.add(name)
            self._flows.append(made)

    def add(self, *flows: KnownValue) -> None:
        """Make some values available to the following statements."""
        self._flows.extend(flows)

    @contextmanager
    def body(self) -> Generator[None]:
        """The body of a loop."""
        self.is_in_loop = True
        yield
        self.is_in_loop = False

    def _store_the_rest(self) -> None:
        rest = [flow for flow in self._flows if flow.vector.name not in self._operands]
        for flow in rest or self._flows[-1:]:
            self.sink(flow)

    def sink(self, flow: KnownValue) -> None:
        """Store a value somewhere."""
        self._operands.add(flow.vector.name)
        if flow.is_mask and self.chance(0.4):
            self._put_token(self.typeinfo(flow.vector, self._seen(flow.type)))
            return
        if flow.is_mask:
            self.sink(self.instruction("zext {} to {}", [flow], I8, ValueFacts(0, 1)))
            return
        first = len(self.buffers)
        self._put(flow.vector)
        for buffer in self.buffers[first:]:
            buffer.ulps, buffer.zeros = flow.facts.ulps, flow.facts.zeros

    # Operands ----------------------------------------------------------------------------------------------------

    def operand(self, fits: Callable[[KnownValue], bool], make: Callable[[], KnownValue]) -> KnownValue:
        """A suitable value: an existing one, or a new leaf."""
        flow = self.found(fits) or make()
        self._operands.add(flow.vector.name)
        return flow

    def found(self, fits: Callable[[KnownValue], bool]) -> KnownValue | None:
        """A suitable existing value; None where there is none, and at random."""
        fitting = [flow for flow in reversed(self._flows) if fits(flow)][:8]
        if not fitting or self.chance(0.25):
            return None
        flow = self.random.choice(fitting)
        self._operands.add(flow.vector.name)
        return flow

    def number(self, elements: Sequence[Type] = ELEMENTS, *, integral: bool = False, exact: bool = True) -> KnownValue:
        """A value of some element type; exact unless it need not be."""

        def fits(flow: KnownValue) -> bool:
            if flow.element not in elements or (flow.is_float and integral and not flow.facts.integral):
                return False
            return flow.facts.is_exact if exact else not flow.is_loose

        return self.operand(fits, lambda: self.leaf(self.random.choice(elements), integral=integral))

    def partner(self, of: KnownValue, *, integral: bool = False, exact: bool = True) -> KnownValue:
        """A second operand for an instruction: as many elements of the same type."""

        def fits(flow: KnownValue) -> bool:
            if flow.type.vector != of.type.vector or (flow.is_float and integral and not flow.facts.integral):
                return False
            return flow.facts.is_exact if exact else not flow.is_loose

        return self.operand(fits, lambda: self._made_partner(of, integral=integral))

    def _made_partner(self, of: KnownValue, *, integral: bool) -> KnownValue:
        if of.is_mask:
            return self._new_mask(of)
        kind = self.random.choice(["leaf", "constant", "leaf", "splat", "broadcast"])
        if kind == "constant":
            return self.constant(of.type)
        if kind == "splat":
            return self.splat(of.type)
        if kind == "broadcast" and of.type.is_row_major and not of.type.is_padded:
            return self._broadcast_leaf(of.type, integral=integral)
        return self.leaf_of(of.type, integral=integral)

    def number_like(self, mask: KnownValue) -> KnownValue:
        """A value of as many elements as a mask has."""

        def make() -> KnownValue:
            of = mask.type
            return self.leaf_of(TensorType(self.random.choice(ELEMENTS), of.shape, of.layout, of.padding))

        return self.operand(lambda v: v.type.count == mask.type.count and not v.is_mask and not v.is_loose, make)

    def mask(self) -> KnownValue:
        """A vector of i1: one there is, a tensor of i1 in memory, or a comparison."""

        def make() -> KnownValue:
            if self.chance(0.3):
                return self.leaf(I1)
            x = self.number()
            form = "fcmp olt {}, {}" if x.is_float else "icmp slt {}, {}"
            return self.instruction(form, [x, self.partner(x)], I1, unknown_facts(I1))

        return self.operand(lambda v: v.is_mask, make)

    def condition(self) -> str:
        """A scalar i1 that depends on memory."""
        scalar, _ = self.scalar(I32)
        name = self.fresh("c")
        self.line(f"{name} = icmp sgt i32 {scalar}, 1")
        return name

    def _new_mask(self, of: KnownValue) -> KnownValue:
        """Another vector of i1 of the same type."""
        if self.chance(0.2):
            return self.constant(of.type)
        if self.chance(0.3):
            return self.leaf_of(of.type)
        type_ = TensorType(I32, of.type.shape, of.type.layout, of.type.padding)
        return self.instruction("icmp slt {}, {}", [self.leaf_of(type_), self.constant(type_)], I1, unknown_facts(I1))

    # Leaves ------------------------------------------------------------------------------------------------------

    def extents(self, rank: int | None = None) -> tuple[int, ...]:
        """Extents of a tensor within the profile's room."""
        rank = rank or self.random.choice([2, 1, 2, 3, 2, 4])
        return self._some_extents(rank, self.profile.room // 2)

    def leaf(self, element: Type, *, integral: bool = False) -> KnownValue:
        """A new value of any shape."""
        return self.leaf_of(self.type_of(self.extents(), element), integral=integral)

    def leaf_of(self, type_: TensorType, *, integral: bool = False) -> KnownValue:
        """A new value of a type, from memory; i1 as a tensor, a byte an element, since vectors of it are packed."""
        contents = self.contents(type_.element, integral=integral)
        facts = facts_from_memory(type_.element, contents)
        if type_.element != I1 and self.chance(0.5):
            place = self._dense_place(type_)
            place.buffer.contents = contents
            return KnownValue(self.load_vector(place, type_), facts)
        token = self.loaded(type_, contents)
        vector = self.call(f"{type_.vector} {self.callee('tovector')}(token {token.name})", type_)
        return KnownValue(vector, facts.with_zero() if type_.is_padded else facts, token)

    def loaded(self, type_: TensorType, contents: Contents | None) -> TokenValue:
        """A token of a tensor in memory, of any pitches."""
        pitches = self.pitches(type_, overlap=True)
        return self.load(self.filled_place(type_, pitches, contents), type_, pitches)

    def contents(self, element: Type, *, integral: bool = False, bound: int | None = None) -> Contents | None:
        """What a buffer shall hold; None for integers, which are any."""
        if not isinstance(element, FloatType):
            return None
        if bound is None and not integral and self.chance(0.4):
            return Contents(wild=True)
        magnitude = bound or self.random.choice(_BOUNDS)
        return Contents(0 if self.chance(0.2) else -magnitude, magnitude)

    def filled_place(self, type_: TensorType, pitches: Sequence[int], contents: Contents | None) -> BufferAddress:
        """A place for a tensor in an array that holds `contents`."""
        place = self.place(type_, pitches)
        place.buffer.contents = contents
        return place

    def constant(self, type_: TensorType) -> KnownValue:
        """A constant: all zeros, or small numbers where it is not too long to be written out."""
        element = type_.element
        if type_.count > _LONGEST_CONSTANT or self.chance(0.15):
            return KnownValue(Vector("zeroinitializer", type_), range_facts(element, 0, 0))
        low = 0 if element == I1 else -3
        numbers = [self.random.randint(low, 1 if element == I1 else 5) for _ in range(min(type_.count, 4))]
        spread = [numbers[at % len(numbers)] for at in range(type_.count)]
        text = ", ".join(f"{element} {constant_literal(element, number)}" for number in spread)
        return KnownValue(Vector(f"<{text}>", type_), range_facts(element, min(numbers), max(numbers)))

    def splat(self, type_: TensorType) -> KnownValue:
        """A scalar in every element."""
        scalar, facts = self.scalar(type_.element)
        vector = type_.vector
        start = self.fresh("i")
        self.line(
            f"{start} = insertelement {vector} undef, {type_.element} {scalar}, {self.random.choice(['i32', 'i64'])} 0"
        )
        mask = f"<{type_.count} x i32> zeroinitializer"
        return KnownValue(self.let(f"shufflevector {vector} {start}, {vector} undef, {mask}", type_), facts)

    def scalar(self, element: Type) -> tuple[str, ValueFacts]:
        """A scalar operand without its type: a constant, or one from memory."""
        if self.chance(0.5):
            number = self.random.randint(-2, 6)
            return constant_literal(element, number), range_facts(element, number, number)
        contents = self.contents(element, integral=True)
        buffer = self.buffer(element, 1, contents)
        buffer.data[:] = True
        name = self.fresh("s")
        self.line(f"{name} = load {element}, {self._pointer_type(element)} %{buffer.name}, {self._align(element)}")
        return name, facts_from_memory(element, contents)

    def _broadcast_leaf(self, type_: TensorType, *, integral: bool) -> KnownValue:
        """A tensor of fewer dimensions, or of extents 1, repeated: a bias of a row, of a column, of planes."""
        kept = [d for d in range(type_.rank) if self.chance(0.5)] or [type_.rank - 1]
        extents = [1 if self.chance(0.2) else type_.shape[d] for d in kept]
        source = self.type_of(extents, type_.element)
        contents = self.contents(type_.element, integral=integral)
        token = self.loaded(source, contents)
        operands = f"token {token.name}, {dims_operand(type_.shape)}, {dims_operand(kept)}"
        vector = self.call(f"{type_.vector} {self.callee('broadcast')}({operands})", type_)
        return KnownValue(vector, facts_from_memory(type_.element, contents))

    # Calls -------------------------------------------------------------------------------------------------------

    def forwarded(self, buffer: ArrayParameter) -> ArrayParameter:
        """A parameter that is passed on to a function that takes such an array."""
        made = self.buffer(buffer.element, buffer.count, buffer.contents)
        made.data[:], made.written[:] = buffer.data, buffer.written
        made.ulps, made.zeros = buffer.ulps, buffer.zeros
        return made

    def call_function(self, callee: RandomFunction, buffers: Sequence[ArrayParameter]) -> None:
        """Call a function of the program."""
        given = callee.calling.parameters([f"{self._pointer_type(b.element)} %{b.name}" for b in buffers])
        self.line(f"call {callee.calling.prefix}void @{callee.name}({given})")

    def type_for(self, element: Type, count: int) -> TensorType:
        """A type of so many elements."""
        rows = self.random.choice([d for d in range(1, min(count, 20) + 1) if count % d == 0])
        return TensorType.dense(element, (rows, count // rows))

    # Lines -------------------------------------------------------------------------------------------------------

    def let(self, text: str, type_: TensorType) -> Vector:
        """A line that defines a vector."""
        vector = Vector(self.fresh("v"), type_)
        self.line(f"{vector.name} = {text}")
        return vector

    def call(self, text: str, type_: TensorType) -> Vector:
        """A call that gives a vector."""
        return self.let(f"call {text}", type_)

    def instruction(self, form: str, operands: Sequence[KnownValue], element: Type, facts: ValueFacts) -> KnownValue:
        """An instruction: in `form`, the first `{}` is the typed first operand, others are names, `{}` of a type last.

        Args:
            form: Such as `add nsw {}, {}` or `zext {} to {}`.
            operands: What fills the `{}`, followed by the result's type where there is one more.
            element: Type of the result's elements.
            facts: What is known of the result.
        """
        first = operands[0].type
        type_ = TensorType(element, first.shape, first.layout, first.padding)
        filling = [operands[0].vector.typed, *(flow.vector.name for flow in operands[1:]), str(type_.vector)]
        return KnownValue(self.let(form.format(*filling), type_), facts)

    def token_of(self, flow: KnownValue) -> TokenValue:
        """A token for a value."""
        if flow.token is not None and self.chance(0.6):
            return flow.token
        return self.typeinfo(flow.vector, flow.type)

    def any_token_of(self, flow: KnownValue) -> TokenValue:
        """A token for a value, sometimes of another shape."""
        if flow.type.is_padded or not self.chance(0.2):
            return self.token_of(flow)
        return self.typeinfo(flow.vector, self.reshaped(flow.type))


# What is known of leaves -------------------------------------------------------------------------------------------


def facts_from_memory(element: Type, contents: Contents | None) -> ValueFacts:
    """What is known of data from memory."""
    if contents is None or contents.wild:
        return unknown_facts(element)
    return range_facts(element, contents.low, contents.high)


def constant_literal(element: Type, number: int) -> str:
    """A constant of a type."""
    if isinstance(element, FloatType):
        return f"{number}.0"
    if isinstance(element, IntType) and element.bits == 1:
        return "true" if number & 1 else "false"
    return str(number)


Operation = Callable[[DataflowWriter], KnownValue | None]
